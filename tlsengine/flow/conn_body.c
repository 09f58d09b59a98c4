/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: what follows a request's head, its body or, once the
 * protocol was changed, bytes of which only the number is known.
 */

#include <errno.h>
#include <string.h>

#include "conn.h"
#include "tlsengine.h"

/* Read from the buffer first, then from the connection. */
ssize_t
conn_take(struct conn *cn, void *to, size_t want)
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

/* Read on, wait, body complete; or the exchange has ended. */
enum body { BODY_MORE, BODY_WAITS, BODY_END, BODY_OVER };

static enum body
body_length(struct conn *cn)
{
	struct exchange	*ex = cn->cn_ex;
	size_t		 room;
	ssize_t		 n;
	void		*p;

	if (cn->cn_left == 0)
		return BODY_END;
	if ((p = ex->ex_origin->reserve(ex, &room)) == NULL) {
		io_pause(&cn->cn_io);
		return BODY_WAITS;
	}
	n = conn_take(cn, p, room < cn->cn_left ? room : cn->cn_left);
	if (n > 0) {
		cn->cn_left -= n;
		return exchange_request_data(ex, p, n) &&
		    ex->ex_origin->commit(ex, n) ? BODY_MORE : BODY_OVER;
	}
	if (n == -1 && errno == EAGAIN)
		return BODY_WAITS;
	conn_gone(cn);
	conn_free(cn);
	return BODY_OVER;
}

/* Chunks are decoded in cn_in: only their data passes. */
static enum body
body_chunked(struct conn *cn)
{
	struct exchange	*ex = cn->cn_ex;
	const char	*data;
	size_t		 room, len;
	ssize_t		 n;
	void		*p;
	int		 more;

	if (h1_chunk_done(&cn->cn_chunk))
		return BODY_END;
	if ((p = ex->ex_origin->reserve(ex, &room)) == NULL) {
		io_pause(&cn->cn_io);
		return BODY_WAITS;
	}
	if (cn->cn_inpos == cn->cn_inlen) {
		cn->cn_inpos = cn->cn_inlen = 0;
		if ((more = conn_fill(cn)) != 1)
			return more == 0 ? BODY_WAITS : BODY_OVER;
	}
	len = cn->cn_inlen - cn->cn_inpos;
	n = h1_chunk_decode(&cn->cn_chunk, (char *)cn->cn_in + cn->cn_inpos,
	    len < room ? len : room, &data, &len);
	if (n == -1) {
		exchange_fail_end(ex, 400, REASON_BAD_REQUEST);
		return BODY_OVER;
	}
	cn->cn_inpos += n;
	if (len > 0) {
		if (!exchange_request_data(ex, data, len))
			return BODY_OVER;
		memcpy(p, data, len);
		if (!ex->ex_origin->commit(ex, len))
			return BODY_OVER;
	}
	return BODY_MORE;
}

/* False if the exchange has ended. */
bool
conn_body(struct conn *cn)
{
	struct exchange	*ex = cn->cn_ex;
	enum body	 how = BODY_END;
	int		 i = 0;

	timer_set(&cn->cn_timer, settings.st_idle_ms);
	if (ex->ex_origin == NULL) {
		/* The request waits for another upstream to be repeated on. */
		io_pause(&cn->cn_io);
		return true;
	}
	do {
		if (ex->ex_request.hd_framing == H1_LENGTH)
			how = body_length(cn);
		else if (ex->ex_request.hd_framing == H1_CHUNKED)
			how = body_chunked(cn);
	} while (how == BODY_MORE && ++i < IO_SHARE &&
	    cn->cn_state == CONN_BODY);
	if (how == BODY_OVER)
		return false;
	/* A commit may have called conn_go(), which has read the rest. */
	if (cn->cn_state != CONN_BODY)
		return true;
	if (how == BODY_MORE)
		io_again(&cn->cn_io);
	if (how != BODY_END) {
		ex->ex_origin->flush(ex);
		return true;
	}
	cn->cn_state = CONN_ANSWER;
	timer_clear(&cn->cn_timer);
	exchange_request_finish(ex, ex->ex_request.hd_framing == H1_CHUNKED ?
	    chunks_trailers(&cn->cn_chunk) : NULL);
	return true;
}

/* The upstream has taken the head, or has room again. */
bool
conn_go(struct exchange *ex)
{
	struct conn	*cn = ex->ex_conn;

	if (cn->cn_state == CONN_WAIT)
		cn->cn_state = CONN_BODY;
	if (cn->cn_state == CONN_TUNNEL && !ex->ex_request_end)
		io_resume(&cn->cn_io);
	if (cn->cn_state != CONN_BODY)
		return true;
	io_resume(&cn->cn_io);
	return conn_body(cn);
}

/* Read the body when the origin sends 100 or the client sends anyway. */
bool
conn_expect(struct exchange *ex)
{
	struct conn	*cn = ex->ex_conn;

	if (cn->cn_inlen > cn->cn_inpos)
		return conn_go(ex);
	ex->ex_origin->flush(ex);
	io_resume(&cn->cn_io);
	return true;
}

/* ---- upgraded ------------------------------------------------------------ */

/* From here on there are only bytes, of which some may be here already. */
void
conn_relay_begin(struct conn *cn, enum conn_state state)
{
	cn->cn_state = state;
	cn->cn_keep = false;
	timer_set(&cn->cn_timer, settings.st_tunnel_ms);
	io_flush(&cn->cn_io);
	io_resume(&cn->cn_io);
	if (cn->cn_inlen > cn->cn_inpos)
		event_active(&cn->cn_io.io_rev, EV_READ, 1);
}

bool
conn_tunnel(struct exchange *ex)
{
	conn_relay_begin(ex->ex_conn, CONN_TUNNEL);
	return true;
}

/* Return the buffer once the bytes read ahead are used up. */
void
conn_unbuffer(struct conn *cn)
{
	if (cn->cn_inpos < cn->cn_inlen)
		return;
	blocks_put(&in_blocks, cn->cn_in);
	cn->cn_in = NULL;
	cn->cn_inpos = cn->cn_inlen = 0;
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
		if ((n = conn_take(cn, p, room)) <= 0)
			break;
		if (!exchange_request_data(ex, p, n) ||
		    !ex->ex_origin->commit(ex, n))
			return;
	}
	end = p != NULL && (n == 0 || (n == -1 && errno != EAGAIN));
	if (i == IO_SHARE)
		io_again(&cn->cn_io);
	conn_unbuffer(cn);
	ex->ex_origin->flush(ex);
	if (!end)
		return;
	io_pause(&cn->cn_io);
	exchange_request_finish(ex, NULL);
}
