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
 * tlsengine runs this: the session layer of HTTP/2, for both ends.  The peer
 * is hostile either way.  nghttp2 keeps the protocol's own rules; what is
 * legal and still an attack is counted in h2_calm.c.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "h2.h"
#include "log.h"

#define READ_SIZE	(16 * 1024)	/* bytes, about a record */

/* What a peer may have sent us that we could not pass on yet, bytes. */
#define SERVER_WINDOW	(256 * 1024)
#define CLIENT_WINDOW	(512 * 1024)
#define CLIENT_WINDOW_ALL (1024 * 1024)

/*
 * A body whose answer is out already.  RFC 9113, 8.1 would have us reset the
 * stream with NO_ERROR; to curl that is an error, and the answer is lost.  So
 * it is read and forgotten, up to a point.
 */
#define WASTE_MAX	(64 * 1024 * 1024)	/* bytes */

static nghttp2_session_callbacks	*callbacks;
static nghttp2_option			*option;
static TAILQ_HEAD(, h2)			 dirty = TAILQ_HEAD_INITIALIZER(dirty);
static struct event			 turn;

void
h2_break(struct h2 *h2, const char *why)
{
	if (h2->h2_why == NULL)
		h2->h2_why = why;
}

/* ---- receiving ----------------------------------------------------------- */

static int
on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *arg)
{
	(void)session;
	h2_calm_begin(arg, hd);
	return 0;
}

/* Without it nghttp2 would not even tell on_begin_frame(). */
static int
on_unknown(nghttp2_session *session, void **payload,
    const nghttp2_frame_hd *hd, void *arg)
{
	(void)session, (void)payload, (void)hd, (void)arg;
	return NGHTTP2_ERR_CANCEL;
}

/* Straight to the other side if nothing waits before it. */
static int
on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id,
    const uint8_t *data, size_t len, void *arg)
{
	struct h2		*h2 = arg;
	struct h2_stream	*hs;
	size_t			 n = 0;

	(void)flags;
	hs = nghttp2_session_get_stream_user_data(session, id);
	if (hs == NULL || hs->hs_ex == NULL) {
		nghttp2_session_consume(session, id, len);
		if (hs != NULL && (hs->hs_wasted += len) > WASTE_MAX)
			nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE,
			    id, NGHTTP2_NO_ERROR);
		return 0;
	}
	hs->hs_bytes_in += len;
	while (TAILQ_EMPTY(&hs->hs_in) && len > 0) {
		n = h2->h2_ops->on_data(hs, data, len);
		if (h2->h2_dead)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
		if (hs->hs_ex == NULL)
			n = len;
		if (n == 0)
			break;
		nghttp2_session_consume(session, id, n);
		data += n;
		len -= n;
	}
	if (len > 0 && h2_stream_keep(hs, data, len) == -1)
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id,
		    NGHTTP2_INTERNAL_ERROR);
	return 0;
}

static int
on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame,
    void *arg)
{
	struct h2		*h2 = arg;
	struct h2_stream	*hs;
	bool			 first = false;
	enum h2_kind		 kind;

	hs = nghttp2_session_get_stream_user_data(session,
	    frame->hd.stream_id);
	if (h2->h2_server && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
		if (h2_crowded() ||
		    (hs = h2_stream_new(h2, frame->hd.stream_id)) == NULL)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		first = true;
	} else if (!h2->h2_server)
		/* Until the final one, heads are responses. */
		first = hs != NULL && !hs->hs_headed;
	kind = !first ? H2_TRAILERS : h2->h2_server ? H2_REQUEST :
	    H2_RESPONSE;
	h2->h2_head_of = hs;
	h2->h2_in_head = true;
	if (hs == NULL)
		return 0;
	if (h2->h2_head_text == NULL &&
	    (h2->h2_head_text = blocks_get(&in_blocks)) == NULL)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	h2_head_begin(&h2->h2_head, kind, h2->h2_head_text, CONN_IN_SIZE);
	return 0;
}

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame,
    const uint8_t *name, size_t nlen, const uint8_t *value, size_t vlen,
    uint8_t flags, void *arg)
{
	struct h2		*h2 = arg;
	struct h2_stream	*hs = h2->h2_head_of;

	(void)session, (void)frame, (void)flags;
	if (hs == NULL)
		return 0;
	hs->hs_bytes_in += nlen + vlen;
	h2_head_field(&h2->h2_head, (const char *)name, nlen,
	    (const char *)value, vlen);
	return 0;
}

/* Those that are wrong are dropped: the body is whole without them. */
static void
stream_trailers(struct h2_stream *hs)
{
	struct h2		*h2 = hs->hs_h2;
	static struct h1_field	 fields[TRAILERS_MAX];
	struct h1_error		 he;
	ssize_t			 n;

	n = h2_head_trailers(&h2->h2_head, fields, TRAILERS_MAX, &he);
	if (n <= 0 || hs->hs_in_text != NULL ||
	    (hs->hs_in_fields = calloc(n, sizeof(fields[0]))) == NULL)
		return;
	hs->hs_in_text = h2->h2_head_text;
	h2->h2_head_text = NULL;
	memcpy(hs->hs_in_fields, fields, n * sizeof(fields[0]));
	hs->hs_in_nfields = n;
}

static void
on_headers(struct h2 *h2, const nghttp2_frame *frame)
{
	struct h2_stream	*hs = h2->h2_head_of;
	bool			 end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	h2->h2_head_of = NULL;
	h2->h2_in_head = false;
	if (hs == NULL)
		return;
	if (end)
		hs->hs_in_end = true;
	if (h2->h2_head.hh_kind == H2_TRAILERS)
		stream_trailers(hs);
	else
		h2->h2_ops->on_head(hs, &h2->h2_head, end);
}

static int
on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2		*h2 = arg;
	struct h2_stream	*hs;

	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		on_headers(h2, frame);
		break;
	case NGHTTP2_DATA:
		/* Padding is no data, and the end of a stream is something. */
		if (frame->hd.length <= frame->data.padlen &&
		    !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
			h2_annoyed(h2);
		break;
	case NGHTTP2_SETTINGS:
		h2_annoyed(h2);
		h2->h2_ops->on_settings(h2);
		break;
	case NGHTTP2_GOAWAY:
		h2->h2_ops->on_goaway(h2, frame->goaway.last_stream_id);
		break;
	case NGHTTP2_WINDOW_UPDATE:
		break;
	case NGHTTP2_RST_STREAM:
		/* Of a request that is not over on_stream_close() tells. */
		hs = nghttp2_session_get_stream_user_data(session,
		    frame->hd.stream_id);
		if (!h2->h2_server || hs == NULL || hs->hs_ex == NULL)
			h2_annoyed(h2);
		break;
	default:
		h2_annoyed(h2);
	}
	if (h2->h2_dead)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
	    (frame->hd.type != NGHTTP2_HEADERS &&
	    frame->hd.type != NGHTTP2_DATA))
		return 0;
	hs = nghttp2_session_get_stream_user_data(session,
	    frame->hd.stream_id);
	if (hs != NULL) {
		hs->hs_in_end = true;
		h2_stream_pass(hs);
	}
	return h2->h2_dead ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int
on_stream_close(nghttp2_session *session, int32_t id, uint32_t code,
    void *arg)
{
	struct h2		*h2 = arg;
	struct h2_stream	*hs;

	hs = nghttp2_session_get_stream_user_data(session, id);
	if (hs == NULL)
		return 0;
	hs->hs_closed = true;
	if (h2->h2_head_of == hs)
		h2->h2_head_of = NULL;
	/* A whole answer that waits for its reader is no loss. */
	if (hs->hs_ex != NULL && code == NGHTTP2_NO_ERROR &&
	    (h2->h2_server ? hs->hs_out_end : hs->hs_in_end))
		return 0;
	/* A client that makes us do it has the same of it as if it did. */
	if (h2->h2_server && hs->hs_ex != NULL)
		h2_annoyed(h2);
	/* What nghttp2 found malformed never came to have a head. */
	if (hs->hs_ex != NULL || (h2->h2_server && !hs->hs_headed))
		h2->h2_ops->on_reset(hs, code);
	if (!h2->h2_dead)
		h2_stream_gone(hs);
	return h2->h2_dead ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* ---- sending ------------------------------------------------------------- */

static ssize_t
on_send(nghttp2_session *session, const uint8_t *data, size_t len, int flags,
    void *arg)
{
	struct h2	*h2 = arg;
	size_t		 room;
	void		*p;

	(void)session, (void)flags;
	if (h2->h2_io->io_full)
		return NGHTTP2_ERR_WOULDBLOCK;
	if ((p = io_reserve(h2->h2_io, &room)) == NULL || room < len)
		return NGHTTP2_ERR_WOULDBLOCK;
	memcpy(p, data, len);
	io_commit(h2->h2_io, len);
	return len;
}

static int
on_send_data(nghttp2_session *session, nghttp2_frame *frame,
    const uint8_t *head, size_t len, nghttp2_data_source *source, void *arg)
{
	struct h2_stream	*hs = source->ptr;
	struct h2		*h2 = arg;
	size_t			 room;
	unsigned char		*p;

	(void)session, (void)frame;
	if (h2->h2_io->io_full ||
	    (p = io_reserve(h2->h2_io, &room)) == NULL || room < len + 9)
		return NGHTTP2_ERR_WOULDBLOCK;
	memcpy(p, head, 9);
	if (len > 0)
		memcpy(p + 9, hs->hs_out + hs->hs_outpos, len);
	io_commit(h2->h2_io, len + 9);
	hs->hs_bytes_out += len;
	h2_calm_sent(h2, len);
	h2_stream_sent(hs, len);
	return 0;
}

/* As long as the socket takes it; a window that is closed ends it too. */
static void
send_all(struct h2 *h2)
{
	struct io	*io = h2->h2_io;
	bool		 full;

	do {
		if (nghttp2_session_send(h2->h2_session) != 0)
			h2_break(h2, "cannot send");
		if (h2->h2_dead || io->io_broken)
			return;
		/* One that is emptied here does not call on_drain. */
		if ((full = io->io_full))
			io_push(io);
	} while (full && !io->io_full &&
	    nghttp2_session_want_write(h2->h2_session));
	io_flush(io);
}

/* What is due goes to the io, which sends it at the end of this turn. */
void
h2_send_now(struct h2 *h2)
{
	if (h2->h2_inside)
		h2_send(h2);
	if (h2->h2_dead || h2->h2_inside)
		return;
	h2->h2_inside = true;
	send_all(h2);
	h2->h2_inside = false;
	h2_streams_bury(h2);
	if (h2->h2_dead)
		return;
	/* After an error of the protocol, or when both have said goodbye. */
	if (!nghttp2_session_want_read(h2->h2_session) &&
	    !nghttp2_session_want_write(h2->h2_session))
		h2_break(h2, "finished");
	if (h2->h2_why != NULL)
		h2->h2_ops->on_broken(h2, h2->h2_why);
}

static void
h2_on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct h2	*h2;

	(void)fd, (void)what, (void)arg;
	while ((h2 = TAILQ_FIRST(&dirty)) != NULL) {
		TAILQ_REMOVE(&dirty, h2, h2_entry);
		h2->h2_dirty = false;
		h2_send_now(h2);
	}
}

/* Once for all that this turn brings: frames are cheaper by the dozen. */
void
h2_send(struct h2 *h2)
{
	if (h2->h2_dead || h2->h2_dirty)
		return;
	if (TAILQ_EMPTY(&dirty))
		event_active(&turn, EV_TIMEOUT, 1);
	h2->h2_dirty = true;
	TAILQ_INSERT_TAIL(&dirty, h2, h2_entry);
}

/* ---- the session --------------------------------------------------------- */

void
h2_read(struct h2 *h2)
{
	static unsigned char	 buf[READ_SIZE];
	ssize_t			 n = 1;
	int			 i;

	h2->h2_inside = true;
	for (i = 0; i < IO_SHARE && h2->h2_why == NULL; i++) {
		n = io_read(h2->h2_io, buf, sizeof(buf));
		if (n <= 0)
			break;
		if (nghttp2_session_mem_recv(h2->h2_session, buf, n) < 0)
			h2_break(h2, "not HTTP/2");
		if (h2->h2_dead)
			return;
	}
	h2->h2_inside = false;
	if (n == 0)
		h2_break(h2, "closed");
	else if (n == -1 && errno != EAGAIN)
		h2_break(h2, "connection reset");
	else if (i == IO_SHARE)
		io_again(h2->h2_io);
	h2_send(h2);
}

void
h2_goodbye(struct h2 *h2, uint32_t code)
{
	nghttp2_submit_goaway(h2->h2_session, NGHTTP2_FLAG_NONE,
	    nghttp2_session_get_last_proc_stream_id(h2->h2_session), code,
	    NULL, 0);
	h2_send_now(h2);
}

/* Loads what all sessions share. */
static int
h2_prepare(void)
{
	int	 type;

	if (callbacks != NULL)
		return 0;
	if (nghttp2_session_callbacks_new(&callbacks) != 0 ||
	    nghttp2_option_new(&option) != 0)
		return -1;
	nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
	nghttp2_session_callbacks_set_send_data_callback(callbacks,
	    on_send_data);
	nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks,
	    on_begin_frame);
	nghttp2_session_callbacks_set_unpack_extension_callback(callbacks,
	    on_unknown);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks,
	    on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	/* What nghttp2 would leave out is for our parser to refuse. */
	nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks,
	    on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
	    on_data_chunk);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks,
	    on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
	    on_stream_close);
	event_assign(&turn, child_base, -1, 0, h2_on_turn, NULL);
	event_priority_set(&turn, 1);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_max_settings(option, 16);
	nghttp2_option_set_max_outbound_ack(option, 64);
	/* Priorities are not ours to keep: RFC 9113, 5.3 has dropped them. */
	nghttp2_option_set_no_closed_streams(option, 1);
	for (type = NGHTTP2_CONTINUATION + 1; type <= UINT8_MAX; type++)
		nghttp2_option_set_user_recv_extension_type(option, type);
	return 0;
}

static int
h2_greet(struct h2 *h2)
{
	nghttp2_settings_entry	 server[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, SERVER_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H1_HEAD_MAX },
		{ NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1 },
	};
	nghttp2_settings_entry	 client[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, CLIENT_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H1_HEAD_MAX },
	};

	return nghttp2_submit_settings(h2->h2_session, NGHTTP2_FLAG_NONE,
	    h2->h2_server ? server : client, h2->h2_server ? 4 : 3) == 0 &&
	    nghttp2_session_set_local_window_size(h2->h2_session,
	    NGHTTP2_FLAG_NONE, 0, h2->h2_server ? SERVER_WINDOW :
	    CLIENT_WINDOW_ALL) == 0 ? 0 : -1;
}

struct h2 *
h2_new(struct io *io, bool server, const struct h2_ops *ops, void *owner)
{
	struct h2	*h2;
	int		 rv;

	if (h2_prepare() == -1 || (h2 = calloc(1, sizeof(*h2))) == NULL)
		return NULL;
	h2->h2_io = io;
	h2->h2_server = server;
	h2->h2_ops = ops;
	h2->h2_owner = owner;
	TAILQ_INIT(&h2->h2_streams);
	TAILQ_INIT(&h2->h2_graves);
	timer_init(&h2->h2_timer, child_base, h2_on_deadline, h2);
	rv = server ? nghttp2_session_server_new3(&h2->h2_session, callbacks,
	    h2, option, &h2_mem) : nghttp2_session_client_new3(
	    &h2->h2_session, callbacks, h2, option, &h2_mem);
	if (rv != 0 || h2_greet(h2) == -1) {
		nghttp2_session_del(h2->h2_session);
		free(h2);
		return NULL;
	}
	return h2;
}

void
h2_close(struct h2 *h2)
{
	struct h2_stream	*hs;

	if (h2->h2_dead)
		return;
	h2->h2_dead = true;
	timer_end(&h2->h2_timer);
	if (h2->h2_dirty)
		TAILQ_REMOVE(&dirty, h2, h2_entry);
	h2->h2_dirty = false;
	while ((hs = TAILQ_FIRST(&h2->h2_streams)) != NULL)
		h2_stream_gone(hs);
}

void
h2_free(struct h2 *h2)
{
	if (h2 == NULL)
		return;
	h2_close(h2);
	h2_streams_bury(h2);
	nghttp2_session_del(h2->h2_session);
	blocks_put(&in_blocks, h2->h2_head_text);
	free(h2);
}
