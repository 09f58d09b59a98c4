/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * tlsengine runs this: streams of HTTP/2.  A stream outlives its exchange if
 * there is something left to send, and the exchange outlives it if something
 * received is left to be passed on.
 */

#include <stdlib.h>
#include <string.h>

#include "h2.h"

#define PIECE_SIZE	(16 * 1024)
#define PIECES_FREE	512	/* that hold up no other stream */

/*
 * A stream whose reader is slow should hold up itself and no other.  So as
 * long as all that waits anywhere is little, the window of the connection
 * opens at once, and only that of the stream as the bytes are passed on.
 */
struct h2_piece {
	TAILQ_ENTRY(h2_piece)	 hp_entry;
	bool			 hp_free;	/* for the connection */
	size_t			 hp_pos;
	size_t			 hp_len;
	unsigned char		 hp_data[PIECE_SIZE];
};

static struct blocks	 pieces = {
	.bk_size = sizeof(struct h2_piece), .bk_keep = 32
};
static struct blocks	 out_blocks = {
	.bk_size = H2_OUT_SIZE, .bk_keep = 32
};
static unsigned int	 nstreams;
static unsigned int	 npieces;

/* ---- life and death ------------------------------------------------------ */

struct h2_stream *
h2_stream_new(struct h2 *h2, int32_t id)
{
	struct h2_stream	*hs;

	if ((hs = h2_malloc(sizeof(*hs), NULL)) == NULL)
		return NULL;
	memset(hs, 0, sizeof(*hs));
	hs->hs_h2 = h2;
	hs->hs_id = id;
	TAILQ_INIT(&hs->hs_in);
	TAILQ_INSERT_TAIL(&h2->h2_streams, hs, hs_entry);
	h2->h2_nstreams++;
	nstreams++;
	nghttp2_session_set_stream_user_data(h2->h2_session, id, hs);
	return hs;
}

static void
piece_drop(struct h2_stream *hs, struct h2_piece *hp)
{
	TAILQ_REMOVE(&hs->hs_in, hp, hp_entry);
	blocks_put(&pieces, hp);
	npieces--;
}

static void
piece_consume(const struct h2_stream *hs, const struct h2_piece *hp, size_t n)
{
	nghttp2_session	*session = hs->hs_h2->h2_session;

	if (!hp->hp_free)
		nghttp2_session_consume_connection(session, n);
	nghttp2_session_consume_stream(session, hs->hs_id, n);
}

/* Whoever still sends may go on, and is not heard. */
static void
stream_drop_in(struct h2_stream *hs)
{
	struct h2_piece	*hp;

	while ((hp = TAILQ_FIRST(&hs->hs_in)) != NULL) {
		if (!hs->hs_h2->h2_dead)
			piece_consume(hs, hp, hp->hp_len - hp->hp_pos);
		piece_drop(hs, hp);
	}
}

/* Nobody will ask for it; its memory stays until nobody is inside. */
void
h2_stream_gone(struct h2_stream *hs)
{
	struct h2	*h2 = hs->hs_h2;

	stream_drop_in(hs);
	hs->hs_ex = NULL;
	TAILQ_REMOVE(&h2->h2_streams, hs, hs_entry);
	TAILQ_INSERT_TAIL(&h2->h2_graves, hs, hs_entry);
	h2->h2_nstreams--;
	nstreams--;
}

void
h2_streams_bury(struct h2 *h2)
{
	struct h2_stream	*hs;

	while ((hs = TAILQ_FIRST(&h2->h2_graves)) != NULL) {
		TAILQ_REMOVE(&h2->h2_graves, hs, hs_entry);
		blocks_put(&out_blocks, hs->hs_out);
		blocks_put(&in_blocks, hs->hs_in_text);
		h2_release(hs->hs_text, NULL);
		free(hs->hs_in_fields);
		free(hs->hs_out_fields);
		h2_release(hs, NULL);
	}
}

/* One timer is enough for a session: streams come and go too fast. */
void
h2_deadline(struct h2_stream *hs, uint64_t ms)
{
	struct timer	*ti = &hs->hs_h2->h2_timer;

	hs->hs_due = ms == 0 ? 0 : timer_now() + ms;
	if (ms != 0 && (ti->ti_due == 0 || ti->ti_due > hs->hs_due))
		timer_set(ti, ms);
}

static struct h2_stream *
first_due(struct h2 *h2)
{
	struct h2_stream	*hs, *first = NULL;

	TAILQ_FOREACH(hs, &h2->h2_streams, hs_entry)
		if (hs->hs_due != 0 &&
		    (first == NULL || hs->hs_due < first->hs_due))
			first = hs;
	return first;
}

void
h2_on_deadline(void *arg)
{
	struct h2		*h2 = arg;
	struct h2_stream	*hs;
	uint64_t		 now = timer_now();

	while (!h2->h2_dead && (hs = first_due(h2)) != NULL) {
		if (hs->hs_due > now) {
			timer_set(&h2->h2_timer, hs->hs_due - now);
			return;
		}
		hs->hs_due = 0;
		h2->h2_ops->on_late(hs);
	}
}

/* ---- received ------------------------------------------------------------ */

/* 1: all of it was passed on. */
static int
piece_pass(struct h2_stream *hs, struct h2_piece *hp)
{
	struct h2	*h2 = hs->hs_h2;
	size_t		 n;

	while (hp->hp_pos < hp->hp_len) {
		n = h2->h2_ops->on_data(hs, hp->hp_data + hp->hp_pos,
		    hp->hp_len - hp->hp_pos);
		if (h2->h2_dead || hs->hs_ex == NULL || n == 0)
			return 0;
		hp->hp_pos += n;
		piece_consume(hs, hp, n);
	}
	piece_drop(hs, hp);
	return 1;
}

size_t
h2_stream_waiting(const struct h2_stream *hs)
{
	const struct h2_piece	*hp;
	size_t			 n = 0;

	TAILQ_FOREACH(hp, &hs->hs_in, hp_entry)
		n += hp->hp_len - hp->hp_pos;
	return n;
}

/* Whether there are as many as we can bear. */
bool
h2_crowded(void)
{
	return nstreams >= H2_STREAMS_ALL;
}

/* What waits goes on as far as the other side takes it. */
void
h2_stream_pass(struct h2_stream *hs)
{
	struct h2	*h2 = hs->hs_h2;
	struct h2_piece	*hp;

	while ((hp = TAILQ_FIRST(&hs->hs_in)) != NULL)
		if (!piece_pass(hs, hp))
			return;
	if (hs->hs_in_end && !hs->hs_in_told && hs->hs_ex != NULL) {
		hs->hs_in_told = true;
		h2->h2_ops->on_end(hs);
	}
}

void
h2_pump(struct h2_stream *hs)
{
	struct h2	*h2 = hs->hs_h2;
	bool		 inside = h2->h2_inside;

	/* Whatever it leads to, this stream stays until we are out. */
	h2->h2_inside = true;
	h2_stream_pass(hs);
	h2->h2_inside = inside;
	h2_send(h2);
}

static struct h2_piece *
piece_new(struct h2_stream *hs)
{
	struct h2_piece	*hp;

	if ((hp = blocks_get(&pieces)) == NULL)
		return NULL;
	hp->hp_pos = hp->hp_len = 0;
	hp->hp_free = npieces++ < PIECES_FREE;
	TAILQ_INSERT_TAIL(&hs->hs_in, hp, hp_entry);
	return hp;
}

int
h2_stream_keep(struct h2_stream *hs, const unsigned char *data, size_t len)
{
	struct h2_piece	*hp = TAILQ_LAST(&hs->hs_in, h2_pieces);
	size_t		 n;

	for (; len > 0; data += n, len -= n) {
		if ((hp == NULL || hp->hp_len == PIECE_SIZE) &&
		    (hp = piece_new(hs)) == NULL)
			return -1;
		n = PIECE_SIZE - hp->hp_len;
		if (n > len)
			n = len;
		memcpy(hp->hp_data + hp->hp_len, data, n);
		hp->hp_len += n;
		if (hp->hp_free)
			nghttp2_session_consume_connection(
			    hs->hs_h2->h2_session, n);
	}
	return 0;
}

static void
str_move(struct h1_str *str, const char *from, const char *to)
{
	if (str->s != NULL)
		str->s = to + (str->s - from);
}

/* Its text moves to memory of its own size, and all that points there. */
int
h2_keep_head(struct h2_stream *hs, size_t len, struct h1_head *hd)
{
	const char	*from = hs->hs_h2->h2_head_text;
	size_t		 i;
	char		*to;

	if ((to = h2_malloc(len, NULL)) == NULL)
		return -1;
	memcpy(to, from, len);
	hs->hs_text = to;
	str_move(&hd->hd_method_text, from, to);
	str_move(&hd->hd_target, from, to);
	str_move(&hd->hd_scheme, from, to);
	str_move(&hd->hd_path, from, to);
	str_move(&hd->hd_host, from, to);
	str_move(&hd->hd_host_field, from, to);
	str_move(&hd->hd_override, from, to);
	str_move(&hd->hd_upgrade, from, to);
	for (i = 0; i < hd->hd_nfields; i++) {
		hd->hd_fields[i].hf_name += to - from;
		hd->hd_fields[i].hf_value += to - from;
	}
	return 0;
}

/* ---- to be sent ---------------------------------------------------------- */

/* Heads are counted as they are when they come: spelt out. */
static size_t
nv_bytes(const struct h2_nv *nv)
{
	size_t	 i, n = 0;

	for (i = 0; i < nv->hn_n; i++)
		n += nv->hn_nv[i].namelen + nv->hn_nv[i].valuelen;
	return n;
}

/* nghttp2 sends heads first: given earlier, they would overtake the data. */
static int
put_trailers(struct h2_stream *hs)
{
	static struct h2_nv	 nv;

	if (hs->hs_out_nfields == 0 || h2_nv_trailers(&nv, hs->hs_out_fields,
	    hs->hs_out_nfields) == -1 || nv.hn_n == 0 ||
	    nghttp2_submit_trailer(hs->hs_h2->h2_session, hs->hs_id, nv.hn_nv,
	    nv.hn_n) != 0)
		return -1;
	hs->hs_bytes_out += nv_bytes(&nv);
	return 0;
}

/* Fields and, behind them, what they point to. */
static void
keep_trailers(struct h2_stream *hs, const struct trailers *tr)
{
	const struct h1_field	*from = tr->tr_fields;
	struct h1_field		*to;
	size_t			 i, len = 0;
	char			*p;

	for (i = 0; i < tr->tr_n; i++)
		len += from[i].hf_nlen + from[i].hf_vlen;
	if ((to = malloc(tr->tr_n * sizeof(*to) + len)) == NULL)
		return;
	p = (char *)(to + tr->tr_n);
	for (i = 0; i < tr->tr_n; i++) {
		to[i] = from[i];
		to[i].hf_name = memcpy(p, from[i].hf_name, from[i].hf_nlen);
		p += from[i].hf_nlen;
		to[i].hf_value = memcpy(p, from[i].hf_value, from[i].hf_vlen);
		p += from[i].hf_vlen;
	}
	hs->hs_out_fields = to;
	hs->hs_out_nfields = tr->tr_n;
}

static ssize_t
h2_stream_data(nghttp2_session *session, int32_t id, uint8_t *buf, size_t len,
    uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct h2_stream	*hs = source->ptr;

	(void)session, (void)id, (void)buf, (void)arg;
	if (hs->hs_outlen == 0 && !hs->hs_out_end) {
		hs->hs_out_asleep = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (len >= hs->hs_outlen) {
		len = hs->hs_outlen;
		if (hs->hs_out_end)
			*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (hs->hs_out_end && put_trailers(hs) == 0)
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	}
	return len;
}

void
h2_stream_sent(struct h2_stream *hs, size_t len)
{
	hs->hs_outpos += len;
	hs->hs_outlen -= len;
	if (hs->hs_outlen == 0) {
		blocks_put(&out_blocks, hs->hs_out);
		hs->hs_out = NULL;
		hs->hs_outpos = 0;
	}
	if (hs->hs_out_full && hs->hs_outlen <= H2_OUT_LOW) {
		hs->hs_out_full = false;
		if (hs->hs_ex != NULL)
			hs->hs_h2->h2_ops->on_room(hs);
	}
}

void *
h2_reserve(struct h2_stream *hs, size_t *room)
{
	if (hs->hs_outlen > H2_OUT_LOW)
		hs->hs_out_full = true;
	if (hs->hs_out_full || hs->hs_closed)
		return NULL;
	if (hs->hs_out == NULL &&
	    (hs->hs_out = blocks_get(&out_blocks)) == NULL)
		return NULL;
	if (hs->hs_outpos > 0 && H2_OUT_SIZE - hs->hs_outpos - hs->hs_outlen <
	    H2_OUT_SIZE / 2) {
		memmove(hs->hs_out, hs->hs_out + hs->hs_outpos, hs->hs_outlen);
		hs->hs_outpos = 0;
	}
	*room = H2_OUT_SIZE - hs->hs_outpos - hs->hs_outlen;
	return hs->hs_out + hs->hs_outpos + hs->hs_outlen;
}

static void
stream_wake(struct h2_stream *hs)
{
	if (!hs->hs_out_asleep)
		return;
	hs->hs_out_asleep = false;
	nghttp2_session_resume_data(hs->hs_h2->h2_session, hs->hs_id);
}

void
h2_commit(struct h2_stream *hs, size_t len)
{
	hs->hs_outlen += len;
	stream_wake(hs);
	if (hs->hs_outlen > H2_OUT_LOW)
		h2_send_now(hs->hs_h2);
}

void
h2_end(struct h2_stream *hs, const struct trailers *tr)
{
	hs->hs_out_end = true;
	if (hs->hs_closed)
		return;
	if (tr != NULL && tr->tr_n > 0 && hs->hs_out_fields == NULL)
		keep_trailers(hs, tr);
	stream_wake(hs);
	h2_send(hs->hs_h2);
}

int
h2_interim(struct h2_stream *hs, const struct h2_nv *nv)
{
	return hs->hs_closed ? -1 : nghttp2_submit_headers(
	    hs->hs_h2->h2_session, NGHTTP2_FLAG_NONE, hs->hs_id, NULL,
	    nv->hn_nv, nv->hn_n, NULL) == 0 ? 0 : -1;
}

int
h2_respond(struct h2_stream *hs, const struct h2_nv *nv, bool end)
{
	nghttp2_data_provider	 body = {
		.source.ptr = hs, .read_callback = h2_stream_data
	};

	if (hs->hs_closed)
		return -1;
	if (end)
		hs->hs_out_end = true;
	return nghttp2_submit_response(hs->hs_h2->h2_session, hs->hs_id,
	    nv->hn_nv, nv->hn_n, end ? NULL : &body) == 0 ? 0 : -1;
}

struct h2_stream *
h2_open(struct h2 *h2, const struct h2_nv *nv, bool end)
{
	nghttp2_data_provider	 body = { .read_callback = h2_stream_data };
	struct h2_stream	*hs;
	int32_t			 id;

	if (h2->h2_dead || (hs = h2_stream_new(h2, 0)) == NULL)
		return NULL;
	body.source.ptr = hs;
	id = nghttp2_submit_request(h2->h2_session, NULL, nv->hn_nv, nv->hn_n,
	    end ? NULL : &body, hs);
	if (id < 0) {
		hs->hs_closed = true;
		h2_stream_gone(hs);
		return NULL;
	}
	hs->hs_id = id;
	hs->hs_out_end = end;
	hs->hs_bytes_out = nv_bytes(nv);
	return hs;
}

/* The exchange is over before the stream is; nothing is owed to it. */
void
h2_reset(struct h2_stream *hs, uint32_t code)
{
	struct h2	*h2 = hs->hs_h2;

	stream_drop_in(hs);
	if (hs->hs_closed) {
		h2_stream_gone(hs);
		return;
	}
	nghttp2_submit_rst_stream(h2->h2_session, NGHTTP2_FLAG_NONE,
	    hs->hs_id, code);
	h2_send(h2);
}

/* The exchange has all of it; what is still to be sent is sent. */
void
h2_done(struct h2_stream *hs)
{
	hs->hs_ex = NULL;
	stream_drop_in(hs);
	if (hs->hs_closed)
		h2_stream_gone(hs);
}

const struct trailers *
h2_trailers(const struct h2_stream *hs)
{
	static struct trailers	 tr;

	if (hs->hs_in_nfields == 0)
		return NULL;
	tr.tr_fields = hs->hs_in_fields;
	tr.tr_n = hs->hs_in_nfields;
	return &tr;
}

