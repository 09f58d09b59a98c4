/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: streams of HTTP/2.  A stream outlives its exchange if
 * there is something left to send, and the exchange outlives it if something
 * received is left to be passed on.
 */

#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "clock.h"
#include "h2.h"

static struct blocks	 out_blocks = {
	.bk_size = H2_OUT_SIZE, .bk_keep = 32
};
static struct blocks	 streams = {
	.bk_size = sizeof(struct h2_stream), .bk_keep = 512
};
static unsigned int	 nstreams;

/* ---- life and death ------------------------------------------------------ */

static unsigned int
bucket(int32_t id)
{
	return (uint32_t)id / 2 % H2_BUCKETS;
}

struct h2_stream *
h2_stream_find(struct h2 *h2, int32_t id)
{
	struct h2_stream	*hs;

	LIST_FOREACH(hs, &h2->h2_table[bucket(id)], hs_bucket)
		if (hs->hs_id == id)
			break;
	return hs;
}

/* Whether there are as many as we can bear. */
bool
h2_crowded(void)
{
	return nstreams >= H2_STREAMS_ALL;
}

struct h2_stream *
h2_stream_new(struct h2 *h2, int32_t id)
{
	struct h2_stream	*hs;

	if ((hs = blocks_get(&streams)) == NULL)
		return NULL;
	memset(hs, 0, offsetof(struct h2_stream, hs_usual));
	hs->hs_h2 = h2;
	hs->hs_id = id;
	hs->hs_in_window = h2->h2_stream_window;
	hs->hs_out_window = h2->h2_peer_window;
	hs->hs_left = H2_LEFT_OPEN;
	TAILQ_INIT(&hs->hs_in);
	TAILQ_INSERT_TAIL(&h2->h2_streams, hs, hs_entry);
	LIST_INSERT_HEAD(&h2->h2_table[bucket(id)], hs, hs_bucket);
	h2->h2_nstreams++;
	h2->h2_nopen++;
	nstreams++;
	return hs;
}

/* Frames no longer find the stream. */
static void
stream_unlink(struct h2_stream *hs)
{
	if (hs->hs_closed)
		return;
	hs->hs_closed = true;
	h2_stream_idle(hs);
	if (hs->hs_h2->h2_tail == hs)
		hs->hs_h2->h2_tail = NULL;
	if (hs->hs_h2->h2_data_of == hs)
		hs->hs_h2->h2_data_of = NULL;
	LIST_REMOVE(hs, hs_bucket);
	hs->hs_h2->h2_nopen--;
}

/* The stream is over; freed once no call is inside the h2. */
void
h2_stream_gone(struct h2_stream *hs)
{
	struct h2	*h2 = hs->hs_h2;

	h2_stream_drop(hs);
	stream_unlink(hs);
	hs->hs_ex = NULL;
	TAILQ_REMOVE(&h2->h2_streams, hs, hs_entry);
	TAILQ_INSERT_TAIL(&h2->h2_graves, hs, hs_entry);
	h2->h2_nstreams--;
	nstreams--;
}

void
h2_stream_close(struct h2_stream *hs, uint32_t code)
{
	struct h2	*h2 = hs->hs_h2;

	if (hs->hs_closed)
		return;
	stream_unlink(hs);
	/* A complete answer that waits for its reader is still delivered. */
	if (hs->hs_ex != NULL && code == H2_NO_ERROR &&
	    (h2->h2_server ? hs->hs_out_end : hs->hs_in_end))
		return;
	/* A reset that a client provokes counts like its own. */
	if (h2->h2_server && hs->hs_ex != NULL)
		h2_annoyed(h2);
	if (hs->hs_ex != NULL)
		h2->h2_ops->on_reset(hs, code);
	if (!h2->h2_dead)
		h2_stream_gone(hs);
}

static void
stream_forget_out(struct h2_stream *hs)
{
	if (hs->hs_out == NULL)
		return;
	blocks_put(&out_blocks, hs->hs_out);
	hs->hs_out = NULL;
	if (hs->hs_outlen > 0)
		hs->hs_h2->h2_nkept--;
}

void
h2_streams_bury(struct h2 *h2)
{
	struct h2_stream	*hs;

	while ((hs = TAILQ_FIRST(&h2->h2_graves)) != NULL) {
		TAILQ_REMOVE(&h2->h2_graves, hs, hs_entry);
		stream_forget_out(hs);
		if (hs->hs_text != hs->hs_usual)
			free(hs->hs_text);
		free(hs->hs_in_fields);
		free(hs->hs_out_fields);
		blocks_put(&streams, hs);
	}
}

/* A stream error: reset it; RFC 9113, 5.4.2. */
void
h2_stream_fail(struct h2_stream *hs, uint32_t code)
{
	h2_put_reset(hs->hs_h2, hs->hs_id, code);
	h2_stream_close(hs, code);
}

/* One timer is enough for a session: streams come and go too fast. */
void
h2_deadline(struct h2_stream *hs, uint64_t ms)
{
	struct timer	*ti = &hs->hs_h2->h2_timer;

	hs->hs_due = ms == 0 ? 0 : clock_coarse_ms() + ms;
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
	uint64_t		 now = clock_coarse_ms();

	while (!h2->h2_dead && (hs = first_due(h2)) != NULL) {
		if (hs->hs_due > now) {
			timer_set(&h2->h2_timer, hs->hs_due - now);
			return;
		}
		hs->hs_due = 0;
		h2->h2_ops->on_late(hs);
	}
}

/* ---- heads --------------------------------------------------------------- */

static void
str_move(struct h1_str *str, const char *from, const char *to)
{
	if (str->s != NULL)
		str->s = to + (str->s - from);
}

/* Move the head's text to the stream and adjust pointers into it. */
int
h2_keep_head(struct h2_stream *hs, const struct h2_head *hh,
    struct h1_head *hd)
{
	const char	*from = hh->hh_buf;
	size_t		 i;
	char		*to = hs->hs_usual;

	if (hh->hh_len > sizeof(hs->hs_usual) &&
	    (to = malloc(hh->hh_len)) == NULL)
		return -1;
	memcpy(to, from, hh->hh_len);
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

/* Fields and, behind them, what they point to. */
static struct h1_field *
copy_fields(const struct h1_field *from, size_t n)
{
	struct h1_field	*to;
	size_t		 i, len = 0;
	char		*p;

	for (i = 0; i < n; i++)
		len += from[i].hf_nlen + from[i].hf_vlen;
	if ((to = malloc(n * sizeof(*to) + len)) == NULL)
		return NULL;
	p = (char *)(to + n);
	for (i = 0; i < n; i++) {
		to[i] = from[i];
		to[i].hf_name = memcpy(p, from[i].hf_name, from[i].hf_nlen);
		p += from[i].hf_nlen;
		to[i].hf_value = memcpy(p, from[i].hf_value, from[i].hf_vlen);
		p += from[i].hf_vlen;
	}
	return to;
}

/* Illegal trailers are dropped: the body is complete without them. */
void
h2_stream_trailers(struct h2_stream *hs, struct h2_head *hh)
{
	static struct h1_field	 fields[TRAILERS_MAX];
	struct h1_error		 he;
	ssize_t			 n;

	n = h2_head_trailers(hh, fields, TRAILERS_MAX, &he);
	if (n > 0 && (hs->hs_in_fields = copy_fields(fields, n)) != NULL)
		hs->hs_in_nfields = n;
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

/* ---- to be sent ---------------------------------------------------------- */

void
h2_stream_sent(struct h2_stream *hs, size_t len)
{
	if (len > 0 && len == hs->hs_outlen) {
		stream_forget_out(hs);
		hs->hs_outpos = hs->hs_outlen = 0;
	} else {
		hs->hs_outpos += len;
		hs->hs_outlen -= len;
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
	void	*p;

	if (hs->hs_outlen > H2_OUT_LOW)
		hs->hs_out_full = true;
	if (hs->hs_out_full || hs->hs_closed)
		return NULL;
	if ((p = h2_data_reserve(hs, room)) != NULL) {
		hs->hs_out_direct = true;
		return p;
	}
	hs->hs_out_direct = false;
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

void
h2_commit(struct h2_stream *hs, size_t len)
{
	if (hs->hs_out_direct)
		h2_data_commit(hs, len);
	else {
		if (hs->hs_outlen == 0 && len > 0)
			hs->hs_h2->h2_nkept++;
		hs->hs_outlen += len;
		h2_stream_ready(hs);
	}
	if (hs->hs_outlen > H2_OUT_LOW || hs->hs_h2->h2_io->io_full)
		h2_push(hs->hs_h2);
}

void
h2_end(struct h2_stream *hs, const struct trailers *tr)
{
	hs->hs_out_end = true;
	if (hs->hs_closed)
		return;
	if (tr != NULL && tr->tr_n > 0 && hs->hs_out_fields == NULL &&
	    (hs->hs_out_fields = copy_fields(tr->tr_fields, tr->tr_n)) != NULL)
		hs->hs_out_nfields = tr->tr_n;
	h2_data_end(hs);
	h2_stream_ready(hs);
	h2_send(hs->hs_h2);
}

int
h2_interim(struct h2_stream *hs, const struct h2_nv *nv)
{
	return hs->hs_closed ? -1 : h2_put_head(hs, nv, false);
}

int
h2_respond(struct h2_stream *hs, const struct h2_nv *nv, bool end)
{
	if (hs->hs_closed || h2_put_head(hs, nv, end) == -1)
		return -1;
	if (end) {
		hs->hs_out_end = true;
		h2_stream_ready(hs);
		h2_send(hs->hs_h2);
	}
	return 0;
}

bool
h2_has_room(const struct h2 *h2)
{
	return !h2->h2_dead && !h2->h2_leaving && !h2->h2_parting &&
	    h2->h2_why == NULL && h2->h2_nopen < h2->h2_peer_streams &&
	    h2->h2_nstreams < H2_STREAMS_MAX && h2->h2_last < H2_ID_MAX - 1 &&
	    h2->h2_queuelen < H2_QUEUE_MUCH;
}

struct h2_stream *
h2_open(struct h2 *h2, const struct h2_nv *nv, bool end)
{
	struct h2_stream	*hs;
	int32_t			 id = h2->h2_last == 0 ? 1 : h2->h2_last + 2;

	if (!h2_has_room(h2) || (hs = h2_stream_new(h2, id)) == NULL)
		return NULL;
	h2->h2_last = id;
	hs->hs_out_end = end;
	hs->hs_bytes_out = nv->hn_bytes;
	h2_calm_head(h2);
	if (h2_put_head(hs, nv, end) == 0)
		return hs;
	h2_stream_gone(hs);
	return NULL;
}

/* The exchange is over before the stream is; nothing is owed to it. */
void
h2_reset(struct h2_stream *hs, uint32_t code)
{
	h2_stream_drop(hs);
	if (hs->hs_closed) {
		if (hs->hs_ex != NULL)
			hs->hs_h2->h2_ops->on_reset(hs, code);
		if (!hs->hs_h2->h2_dead)
			h2_stream_gone(hs);
		return;
	}
	hs->hs_doomed = true;
	hs->hs_code = code;
	h2_stream_ready(hs);
	h2_send(hs->hs_h2);
}

/* The exchange has all of it; what is still to be sent is sent. */
void
h2_done(struct h2_stream *hs)
{
	hs->hs_ex = NULL;
	h2_stream_drop(hs);
	if (hs->hs_closed)
		h2_stream_gone(hs);
}
