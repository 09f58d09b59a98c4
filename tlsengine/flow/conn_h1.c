/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: a client that speaks HTTP/1.  It has one request at a
 * time; what it sends ahead stays in the buffer until the answer is out.
 */

#include <stdio.h>
#include <string.h>

#include "conn.h"
#include "http/h2.h"
#include "policy.h"
#include "tlsengine.h"

/* ---- requests ------------------------------------------------------------ */

/* Answer an unreadable request and close. */
void
conn_bad_request(struct conn *cn, const struct h1_error *he)
{
	char	 head[256];
	int	 len;

	conn_report(cn, RECORD_REQUEST_DENIED, PROTOCOL_HTTP11,
	    REASON_BAD_REQUEST);
	len = snprintf(head, sizeof(head), "HTTP/1.1 %d %s\r\n"
	    "Egress-Decision: refuse, bad_request\r\nContent-Length: 0\r\n"
	    "Connection: close\r\n\r\n", he->he_status,
	    h1_reason(he->he_status));
	io_put(&cn->cn_io, head, len);
	io_flush(&cn->cn_io);
	conn_last(cn);
}

static void
conn_request(struct conn *cn, size_t len)
{
	struct exchange	*ex;
	struct h1_error	 he = { 0, NULL };
	const char	*mismatch;

	if ((ex = exchange_new(&client_h1, cn)) == NULL) {
		conn_free(cn);
		return;
	}
	if (h1_parse_request((char *)cn->cn_in, len, &ex->ex_request,
	    &he) == -1 || conn_sane(cn, &ex->ex_request, &he) == -1 ||
	    conn_place(cn, &ex->ex_request, &ex->ex_place, &mismatch,
	    &he) == -1 || exchange_path(ex, &he) == -1) {
		exchange_free(ex);
		conn_bad_request(cn, &he);
		return;
	}
	ex->ex_protocol = ex->ex_request.hd_minor == 0 ? PROTOCOL_HTTP10 :
	    PROTOCOL_HTTP11;
	cn->cn_inpos = len;
	cn->cn_state = CONN_WAIT;
	cn->cn_keep = ex->ex_request.hd_keep_alive;
	cn->cn_left = ex->ex_request.hd_length;
	if (ex->ex_request.hd_framing == H1_CHUNKED)
		chunks_begin(&cn->cn_chunk);
	memset(&cn->cn_scan, 0, sizeof(cn->cn_scan));
	cn->cn_ex = ex;
	cn->cn_requests++;
	timer_clear(&cn->cn_timer);
	exchange_open(ex, mismatch);
}

/*
 * HTTP/2 with prior knowledge (RFC 9113, 3.3), as insecure gRPC speaks it.
 * With TLS it is ALPN that says so, and behind a request the preface is a
 * second protocol on one connection: refused like any bad head.
 */
static bool
conn_knows_h2(const struct conn *cn, size_t len)
{
	return cn->cn_io.io_ssl == NULL && cn->cn_requests == 0 &&
	    len == H2_PREFACE_HEAD && memcmp(cn->cn_in, h2_preface, len) == 0;
}

/* A head begins at cn_in[0]. */
void
conn_head(struct conn *cn)
{
	struct h1_error	 he;
	int		 len, more;

	/* A client that does not read its answers gets no further ones. */
	if (cn->cn_io.io_full) {
		timer_set(&cn->cn_timer, settings.st_idle_ms);
		cn->cn_begun = false;
		io_pause(&cn->cn_io);
		return;
	}
	do {
		if (cn->cn_inlen > 0) {
			len = h1_scan(&cn->cn_scan, (char *)cn->cn_in,
			    cn->cn_inlen, &he);
			if (len > 0 && conn_knows_h2(cn, len)) {
				conn_h2_begin(cn);
				return;
			}
			if (len > 0) {
				conn_request(cn, len);
				return;
			}
			if (len == -1 && he.he_reason == h1_not_http &&
			    cn->cn_requests == 0 && cn->cn_io.io_ssl == NULL) {
				conn_not_http_end(cn, REASON_BAD_REQUEST);
				return;
			}
			if (len == -1 || cn->cn_inlen == IN_SIZE) {
				if (len != -1)
					he.he_status = 431;
				conn_bad_request(cn, &he);
				return;
			}
		}
	} while ((more = conn_fill(cn)) == 1);
	/* Half a TLS record may hold half a head: its time runs. */
	if (more == 0 && !cn->cn_begun &&
	    (cn->cn_inlen > 0 || io_pending(&cn->cn_io))) {
		timer_set(&cn->cn_timer, settings.st_head_ms);
		cn->cn_begun = true;
	}
	/* An idle connection holds no buffer. */
	if (more == 0 && cn->cn_inlen == 0) {
		blocks_put(&in_blocks, cn->cn_in);
		cn->cn_in = NULL;
	}
}

/* ---- the answer ---------------------------------------------------------- */

/* Write the head with framing that this client's version knows. */
static int
h1_answer(struct exchange *ex, struct h1_out_response *os)
{
	struct conn	*cn = ex->ex_conn;
	size_t		 room;
	ssize_t		 len;
	char		*p;

	if (os->os_status < 200 && os->os_status != 101 &&
	    ex->ex_request.hd_minor == 0)
		return 0;
	if (os->os_status >= 200) {
		/* An unread request body: no second request can follow. */
		if (ex->ex_request.hd_framing == H1_NONE)
			cn->cn_state = CONN_ANSWER;
		else if (cn->cn_state != CONN_ANSWER)
			cn->cn_keep = false;
		if (ex->ex_request.hd_minor == 0 &&
		    os->os_framing == H1_CHUNKED)
			os->os_framing = H1_UNTIL_CLOSE;
		if (os->os_framing == H1_UNTIL_CLOSE)
			cn->cn_keep = false;
		cn->cn_chunked_out = os->os_framing == H1_CHUNKED;
		os->os_connection = !cn->cn_keep ? H1_CONN_CLOSE :
		    ex->ex_request.hd_minor == 0 ? H1_CONN_KEEP_ALIVE :
		    H1_CONN_DEFAULT;
	}
	if ((p = io_reserve(&cn->cn_io, &room)) == NULL ||
	    (len = h1_format_response(p, room, os)) == -1)
		return -1;
	io_commit(&cn->cn_io, len);
	if (os->os_status < 200)
		io_flush(&cn->cn_io);
	return 0;
}

/* Room for the next bytes of the answer; NULL: none now. */
static void *
h1_reserve(struct exchange *ex, size_t *room)
{
	struct conn	*cn = ex->ex_conn;

	return io_reserve_body(&cn->cn_io, cn->cn_chunked_out, room);
}

static bool
h1_commit(struct exchange *ex, size_t len)
{
	struct conn	*cn = ex->ex_conn;

	io_commit_body(&cn->cn_io, cn->cn_chunked_out, len);
	return true;
}

static void
h1_flush(struct exchange *ex)
{
	if (ex->ex_upgraded)
		timer_set(&ex->ex_conn->cn_timer, settings.st_tunnel_ms);
	io_flush(&ex->ex_conn->cn_io);
}

/* Bytes behind the request are the beginning of the next one. */
static void
conn_next(struct conn *cn)
{
	size_t	 rest = cn->cn_inlen - cn->cn_inpos;

	if (rest > 0)
		memmove(cn->cn_in, cn->cn_in + cn->cn_inpos, rest);
	cn->cn_inlen = rest;
	cn->cn_inpos = 0;
	cn->cn_state = CONN_HEAD;
	cn->cn_begun = false;
	timer_set(&cn->cn_timer, settings.st_idle_ms);
	if (rest == 0) {
		blocks_put(&in_blocks, cn->cn_in);
		cn->cn_in = NULL;
	}
	io_resume(&cn->cn_io);
	/* The next request has its own turn: no client can keep us here. */
	if (rest > 0)
		event_active(&cn->cn_io.io_rev, EV_READ, 1);
}

static void
h1_finish(struct exchange *ex, const struct trailers *tr)
{
	struct conn	*cn = ex->ex_conn;

	if (cn->cn_chunked_out)
		chunks_put_last(&cn->cn_io, tr);
	cn->cn_chunked_out = false;
	cn->cn_ex = NULL;
	io_flush(&cn->cn_io);
	if (cn->cn_keep && cn->cn_state == CONN_ANSWER)
		conn_next(cn);
	else
		conn_last(cn);
}

static void
h1_cut(struct exchange *ex)
{
	struct conn	*cn = ex->ex_conn;

	cn->cn_ex = NULL;
	/* After the handshake, close_notify is the only alert we can send. */
	if (settings.st_options.po_refuse == REFUSE_ALERT && !ex->ex_answered &&
	    cn->cn_io.io_ssl != NULL)
		conn_last(cn);
	else
		conn_reset_end(cn);
}

const struct client_ops client_h1 = {
	.answer = h1_answer,
	.reserve = h1_reserve,
	.commit = h1_commit,
	.flush = h1_flush,
	.finish = h1_finish,
	.cut = h1_cut,
	.go = conn_go,
	.expect = conn_expect,
	.tunnel = conn_tunnel,
};
