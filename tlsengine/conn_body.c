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
 * tlsengine runs this: what follows a request's head, its body or, once the
 * protocol was changed, bytes of which only the number is known.
 */

#include <errno.h>
#include <string.h>

#include "tlsengine.h"

/* Up to all of what is wanted from the buffer, then from the connection. */
static ssize_t
body_read(struct conn *cn, void *to, size_t want)
{
	size_t	 have = cn->cn_inlen - cn->cn_inpos;

	if (have == 0)
		return io_take(&cn->cn_io, to, want);
	if (have > want)
		have = want;
	memcpy(to, cn->cn_in + cn->cn_inpos, have);
	cn->cn_inpos += have;
	return have;
}

/* 1: go on, 0: wait, -1: it is over. */
static int
body_length(struct conn *cn)
{
	struct exchange	*ex = cn->cn_ex;
	size_t		 room;
	ssize_t		 n;
	void		*p;

	if (cn->cn_left == 0)
		return -1;
	if ((p = ex->ex_origin->reserve(ex, &room)) == NULL) {
		io_pause(&cn->cn_io);
		return 0;
	}
	n = body_read(cn, p, room < cn->cn_left ? room : cn->cn_left);
	if (n > 0) {
		cn->cn_left -= n;
		if (exchange_request_data(ex, p, n) == -1)
			return 0;
		ex->ex_origin->commit(ex, n);
		return 1;
	}
	if (n == -1 && errno == EAGAIN)
		return 0;
	conn_gone(cn);
	conn_free(cn);
	return 0;
}

/* Chunks are undone in our buffer: what passes is their data. */
static int
body_chunked(struct conn *cn)
{
	struct exchange	*ex = cn->cn_ex;
	const char	*data;
	size_t		 room, len;
	ssize_t		 n;
	void		*p;

	if (h1_chunk_done(&cn->cn_chunk))
		return -1;
	if ((p = ex->ex_origin->reserve(ex, &room)) == NULL) {
		io_pause(&cn->cn_io);
		return 0;
	}
	if (cn->cn_inpos == cn->cn_inlen) {
		cn->cn_inpos = cn->cn_inlen = 0;
		if (conn_fill(cn) != 1)
			return 0;
	}
	len = cn->cn_inlen - cn->cn_inpos;
	n = h1_chunk_decode(&cn->cn_chunk, (char *)cn->cn_in + cn->cn_inpos,
	    len < room ? len : room, &data, &len);
	if (n == -1) {
		exchange_fail(ex, 400, "bad_request");
		return 0;
	}
	cn->cn_inpos += n;
	if (len > 0) {
		if (exchange_request_data(ex, data, len) == -1)
			return 0;
		memcpy(p, data, len);
		ex->ex_origin->commit(ex, len);
	}
	return 1;
}

void
conn_body(struct conn *cn)
{
	struct exchange	*ex = cn->cn_ex;
	int		 more = -1, i = 0;

	timer_set(&cn->cn_timer, settings.st_idle_ms);
	if (ex->ex_origin == NULL) {
		/* It is sent again, elsewhere. */
		io_pause(&cn->cn_io);
		return;
	}
	do {
		if (ex->ex_request.hd_framing == H1_LENGTH)
			more = body_length(cn);
		else if (ex->ex_request.hd_framing == H1_CHUNKED)
			more = body_chunked(cn);
	} while (more == 1 && ++i < IO_SHARE && !cn->cn_dead &&
	    cn->cn_state == CONN_BODY);
	if (cn->cn_dead || cn->cn_state != CONN_BODY)
		return;
	if (more == 1)
		io_again(&cn->cn_io);
	if (more != -1) {
		ex->ex_origin->flush(ex);
		return;
	}
	cn->cn_state = CONN_ANSWER;
	timer_clear(&cn->cn_timer);
	exchange_request_end(ex, ex->ex_request.hd_framing == H1_CHUNKED ?
	    chunks_trailers(&cn->cn_chunk) : NULL);
}

/* The upstream has taken the head, or has room again. */
void
conn_go(struct exchange *ex)
{
	struct conn	*cn = ex->ex_conn;

	if (cn->cn_state == CONN_WAIT)
		cn->cn_state = CONN_BODY;
	if (cn->cn_state == CONN_TUNNEL && !ex->ex_request_end)
		io_resume(&cn->cn_io);
	if (cn->cn_state != CONN_BODY)
		return;
	io_resume(&cn->cn_io);
	conn_body(cn);
}

/* The body is due once the origin or, tired of waiting, the client wants. */
void
conn_expect(struct exchange *ex)
{
	struct conn	*cn = ex->ex_conn;

	if (cn->cn_inlen > cn->cn_inpos) {
		conn_go(ex);
		return;
	}
	ex->ex_origin->flush(ex);
	io_resume(&cn->cn_io);
}

/* ---- upgraded ------------------------------------------------------------ */

void
conn_tunnel(struct exchange *ex)
{
	struct conn	*cn = ex->ex_conn;

	cn->cn_state = CONN_TUNNEL;
	cn->cn_keep = false;
	timer_set(&cn->cn_timer, settings.st_tunnel_ms);
	io_flush(&cn->cn_io);
	io_resume(&cn->cn_io);
	if (cn->cn_inlen > cn->cn_inpos)
		event_active(&cn->cn_io.io_rev, EV_READ, 1);
}

void
conn_relay(struct conn *cn)
{
	struct exchange	*ex = cn->cn_ex;
	size_t		 room;
	ssize_t		 n = 1;
	void		*p = NULL;
	bool		 end;
	int		 i;

	timer_set(&cn->cn_timer, settings.st_tunnel_ms);
	for (i = 0; i < IO_SHARE; i++) {
		if ((p = ex->ex_origin->reserve(ex, &room)) == NULL) {
			io_pause(&cn->cn_io);
			break;
		}
		if ((n = body_read(cn, p, room)) <= 0)
			break;
		if (exchange_request_data(ex, p, n) == -1)
			return;
		ex->ex_origin->commit(ex, n);
		/* Which may have found the stream reset. */
		if (cn->cn_dead)
			return;
	}
	end = p != NULL && (n == 0 || (n == -1 && errno != EAGAIN));
	if (i == IO_SHARE)
		io_again(&cn->cn_io);
	if (cn->cn_inpos == cn->cn_inlen) {
		blocks_put(&in_blocks, cn->cn_in);
		cn->cn_in = NULL;
		cn->cn_inpos = cn->cn_inlen = 0;
	}
	if (end && n == -1 && ex->ex_raw) {
		conn_gone(cn);
		conn_free(cn);
		return;
	}
	ex->ex_origin->flush(ex);
	if (!end)
		return;
	io_pause(&cn->cn_io);
	exchange_request_end(ex, NULL);
	if (ex->ex_raw)
		raw_settle(ex);
}
