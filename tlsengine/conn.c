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
 * tlsengine runs this: the client's side.  Everything that is read here was
 * chosen by the agent.  A connection is settled on one name (promise P3) by
 * the address that we gave out, by SNI or by the first Host; a request that
 * names another is refused, also the second one of the connection.
 */

#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostname.h"
#include "log.h"
#include "names.h"
#include "tlsengine.h"

#define LINGER_MS	2000	/* for the client to read the last answer */

static TAILQ_HEAD(, conn)	 conns = TAILQ_HEAD_INITIALIZER(conns);
static TAILQ_HEAD(, conn)	 dead = TAILQ_HEAD_INITIALIZER(dead);
static unsigned int		 nconns;
static struct event		 bury;

/* For a head, on either side. */
struct blocks	 in_blocks = { .bk_size = CONN_IN_SIZE, .bk_keep = 64 };

static void	 conn_on_read(struct io *);
static void	 conn_on_drain(struct io *);
static void	 conn_on_error(struct io *, const char *);

static const struct io_ops conn_ops = {
	.on_read = conn_on_read,
	.on_drain = conn_on_drain,
	.on_secure = conn_on_secure,
	.on_error = conn_on_error,
};

/* ---- life and death ------------------------------------------------------ */

static void
conn_bury(evutil_socket_t fd, short what, void *arg)
{
	struct conn	*cn;

	(void)fd, (void)what, (void)arg;
	while ((cn = TAILQ_FIRST(&dead)) != NULL) {
		TAILQ_REMOVE(&dead, cn, cn_entry);
		blocks_put(&in_blocks, cn->cn_in);
		free(cn);
	}
}

/* The memory stays until the callbacks that may still hold it are over. */
void
conn_free(struct conn *cn)
{
	if (cn->cn_dead)
		return;
	cn->cn_dead = true;
	io_close(&cn->cn_io);
	event_del(&cn->cn_timer);
	TAILQ_REMOVE(&conns, cn, cn_entry);
	TAILQ_INSERT_TAIL(&dead, cn, cn_entry);
	nconns--;
	if (!event_initialized(&bury))
		event_assign(&bury, child_base, -1, 0, conn_bury, NULL);
	event_active(&bury, EV_TIMEOUT, 1);
}

/* A reset, so that not even the shape of an answer is given. */
void
conn_reset(struct conn *cn)
{
	struct linger	 hard = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(cn->cn_io.io_fd, SOL_SOCKET, SO_LINGER, &hard,
	    sizeof(hard));
	conn_free(cn);
}

static void
conn_on_timer(evutil_socket_t fd, short what, void *arg)
{
	static const struct h1_error	 late = { 408, "late" };
	struct conn			*cn = arg;

	(void)fd, (void)what;
	if (cn->cn_state == CONN_HEAD && cn->cn_begun) {
		conn_bad_request(cn, &late);
		return;
	}
	if (cn->cn_ex != NULL)
		exchange_client_gone(cn->cn_ex, "stream_broken");
	else if (cn->cn_state == CONN_HANDSHAKE ||
	    (cn->cn_state == CONN_FIRST && cn->cn_inlen > 0))
		report_other(RECORD_CONNECTION_REFUSED, PROTOCOL_TLS,
		    cn->cn_place.pc_host, cn->cn_place.pc_port, "bad_request");
	else if (cn->cn_state == CONN_HEAD)
		io_finish(&cn->cn_io);
	conn_free(cn);
}

void
conn_new(int fd, const struct addr *dest, uint16_t port, bool transparent)
{
	struct conn	*cn;
	const char	*name;

	if (nconns >= settings.st_connections ||
	    (cn = calloc(1, sizeof(*cn))) == NULL) {
		report_other(RECORD_CONNECTION_REFUSED, PROTOCOL_TCP, "", port,
		    "quota");
		close(fd);
		return;
	}
	cn->cn_dest = *dest;
	cn->cn_transparent = transparent;
	cn->cn_place.pc_port = port;
	if ((name = names_find(dest)) != NULL) {
		strlcpy(cn->cn_place.pc_host, name,
		    sizeof(cn->cn_place.pc_host));
		cn->cn_synthetic = cn->cn_named = true;
	}
	io_init(&cn->cn_io, child_base, fd, &conn_ops, cn);
	event_assign(&cn->cn_timer, child_base, -1, 0, conn_on_timer, cn);
	event_priority_set(&cn->cn_timer, 1);
	set_timer(&cn->cn_timer, settings.st_handshake_ms);
	TAILQ_INSERT_TAIL(&conns, cn, cn_entry);
	nconns++;
}

/* ---- requests ------------------------------------------------------------ */

/* What cannot be read is answered as far as possible, and that was it. */
void
conn_bad_request(struct conn *cn, const struct h1_error *he)
{
	char	 head[256];
	int	 len;

	report_other(RECORD_REQUEST_DENIED, PROTOCOL_HTTP11,
	    cn->cn_place.pc_host, cn->cn_place.pc_port, "bad_request");
	len = snprintf(head, sizeof(head), "HTTP/1.1 %d %s\r\n"
	    "Egress-Decision: refuse, bad_request\r\nContent-Length: 0\r\n"
	    "Connection: close\r\n\r\n", he->he_status,
	    h1_reason(he->he_status));
	io_put(&cn->cn_io, head, len);
	io_flush(&cn->cn_io);
	conn_last(cn);
}

/* The name of this request; NULL in *mismatch if it is the connection's. */
static int
request_place(struct conn *cn, const struct h1_head *hd, struct place *pc,
    const char **mismatch, struct h1_error *he)
{
	char	 name[HOSTNAME_MAX];

	*mismatch = NULL;
	if (hd->hd_host.s != NULL) {
		if (hostname_canon(hd->hd_host.s, hd->hd_host.len, name,
		    sizeof(name), &he->he_reason) == -1) {
			he->he_status = 400;
			return -1;
		}
		if (!cn->cn_named)
			name_by_client(cn, name);
		*pc = cn->cn_place;
		if (strcmp(name, pc->pc_host) != 0) {
			strlcpy(pc->pc_host, name, sizeof(pc->pc_host));
			*mismatch = "name_mismatch";
		}
	} else {
		if (!cn->cn_named)
			name_by_address(cn);
		*pc = cn->cn_place;
	}
	if (cn->cn_mismatch != NULL)
		*mismatch = cn->cn_mismatch;
	if (!cn->cn_transparent)
		pc->pc_port = hd->hd_port != 0 ? hd->hd_port :
		    pc->pc_scheme == URL_HTTPS ? 443 : 80;
	else if (hd->hd_port != 0 && hd->hd_port != pc->pc_port)
		*mismatch = "name_mismatch";
	return 0;
}

/* Methods and forms that have no business at an origin. */
static int
request_sane(const struct conn *cn, const struct h1_head *hd,
    struct h1_error *he)
{
	const char	*scheme = cn->cn_place.pc_scheme == URL_HTTPS ?
	    "https" : "http";

	he->he_status = 400;
	if (hd->hd_method == H1_CONNECT || hd->hd_method == H1_TRACE) {
		he->he_status = 405;
		return -1;
	}
	if (hd->hd_form == H1_ABSOLUTE &&
	    (hd->hd_scheme.len != strlen(scheme) ||
	    strncasecmp(hd->hd_scheme.s, scheme, hd->hd_scheme.len) != 0))
		return -1;
	return 0;
}

static void
conn_request(struct conn *cn, size_t len)
{
	struct exchange	*ex;
	struct h1_error	 he = { 0, NULL };
	const char	*mismatch;

	if ((ex = exchange_new(cn)) == NULL) {
		conn_free(cn);
		return;
	}
	if (h1_parse_request((char *)cn->cn_in, len, &ex->ex_request,
	    &he) == -1 || request_sane(cn, &ex->ex_request, &he) == -1 ||
	    request_place(cn, &ex->ex_request, &ex->ex_place, &mismatch,
	    &he) == -1 || exchange_path(ex, &he) == -1) {
		exchange_free(ex);
		conn_bad_request(cn, &he);
		return;
	}
	cn->cn_inpos = len;
	cn->cn_state = CONN_WAIT;
	cn->cn_keep = ex->ex_request.hd_keep_alive;
	cn->cn_left = ex->ex_request.hd_length;
	memset(&cn->cn_chunk, 0, sizeof(cn->cn_chunk));
	memset(&cn->cn_scan, 0, sizeof(cn->cn_scan));
	cn->cn_ex = ex;
	cn->cn_requests++;
	event_del(&cn->cn_timer);
	exchange_open(ex, mismatch);
}

/* A head begins at cn_in[0]. */
void
conn_head(struct conn *cn)
{
	struct h1_error	 he;
	int		 len, more;

	/* A client that does not read its answers gets no further ones. */
	if (cn->cn_io.io_full) {
		set_timer(&cn->cn_timer, settings.st_idle_ms);
		cn->cn_begun = false;
		io_pause(&cn->cn_io);
		return;
	}
	do {
		if (cn->cn_inlen > 0) {
			len = h1_scan(&cn->cn_scan, (char *)cn->cn_in,
			    cn->cn_inlen, &he);
			if (len > 0) {
				conn_request(cn, len);
				return;
			}
			if (len == -1 && he.he_reason == h1_not_http &&
			    cn->cn_requests == 0 && cn->cn_io.io_ssl == NULL) {
				conn_not_http(cn, "bad_request");
				return;
			}
			if (len == -1 || cn->cn_inlen == CONN_IN_SIZE) {
				if (len != -1)
					he.he_status = 431;
				conn_bad_request(cn, &he);
				return;
			}
		}
	} while ((more = conn_fill(cn)) == 1);
	/* Half a record may be half a head, too. */
	if (more == 0 && !cn->cn_begun &&
	    (cn->cn_inlen > 0 || io_pending(&cn->cn_io))) {
		set_timer(&cn->cn_timer, settings.st_head_ms);
		cn->cn_begun = true;
	}
	/* Between requests nothing is held. */
	if (more == 0 && cn->cn_inlen == 0) {
		blocks_put(&in_blocks, cn->cn_in);
		cn->cn_in = NULL;
	}
}

/* ---- the answer ---------------------------------------------------------- */

/* Framing as this client needs it; -1 if the head cannot be written. */
int
conn_answer(struct exchange *ex, struct h1_out_response *os)
{
	struct conn	*cn = ex->ex_conn;
	size_t		 room;
	ssize_t		 len;
	char		*p;

	if (os->os_status >= 200) {
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

/* Where the next bytes of the answer are to be put, or NULL: no room now. */
void *
conn_reserve(struct exchange *ex, size_t *room)
{
	struct conn	*cn = ex->ex_conn;

	if (cn->cn_io.io_full)
		return NULL;
	return cn->cn_chunked_out ? io_reserve_chunk(&cn->cn_io, room) :
	    io_reserve(&cn->cn_io, room);
}

void
conn_commit(struct exchange *ex, size_t len)
{
	struct conn	*cn = ex->ex_conn;

	if (cn->cn_chunked_out)
		io_commit_chunk(&cn->cn_io, len);
	else
		io_commit(&cn->cn_io, len);
}

void
conn_flush(struct exchange *ex)
{
	io_flush(&ex->ex_conn->cn_io);
}

/* Nothing more will be said here than what is already in the queue. */
void
conn_last(struct conn *cn)
{
	cn->cn_state = CONN_LAST;
	set_timer(&cn->cn_timer, io_empty(&cn->cn_io) ? LINGER_MS :
	    settings.st_idle_ms);
	if (io_empty(&cn->cn_io))
		io_finish(&cn->cn_io);
	io_resume(&cn->cn_io);
}

/* What came behind the request is the beginning of the next. */
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
	set_timer(&cn->cn_timer, settings.st_idle_ms);
	if (rest == 0) {
		blocks_put(&in_blocks, cn->cn_in);
		cn->cn_in = NULL;
	}
	io_resume(&cn->cn_io);
	/* In a turn of its own, so that one client cannot keep us here. */
	if (rest > 0)
		event_active(&cn->cn_io.io_rev, EV_READ, 1);
}

/* The answer is complete and the exchange is over. */
void
conn_end(struct exchange *ex)
{
	struct conn	*cn = ex->ex_conn;
	static const char last[] = "0\r\n\r\n";

	if (cn->cn_chunked_out)
		io_put(&cn->cn_io, last, sizeof(last) - 1);
	cn->cn_chunked_out = false;
	cn->cn_ex = NULL;
	io_flush(&cn->cn_io);
	if (cn->cn_keep && cn->cn_state == CONN_ANSWER)
		conn_next(cn);
	else
		conn_last(cn);
}

/* The exchange ends here and now, and the client must notice. */
void
conn_break(struct exchange *ex)
{
	struct conn	*cn = ex->ex_conn;

	cn->cn_ex = NULL;
	conn_reset(cn);
}

/* ---- events -------------------------------------------------------------- */

/* After the last answer: read and forget until the client has closed. */
static void
conn_discard(struct conn *cn)
{
	char	 buf[4096];
	ssize_t	 n;

	while ((n = io_read(&cn->cn_io, buf, sizeof(buf))) > 0)
		continue;
	if (n == 0 && !io_empty(&cn->cn_io))
		io_pause(&cn->cn_io);
	else if (n == 0 || errno != EAGAIN)
		conn_free(cn);
}

static void
conn_on_read(struct io *io)
{
	struct conn	*cn = io->io_arg;

	switch (cn->cn_state) {
	case CONN_FIRST:
		conn_first(cn);
		break;
	case CONN_HEAD:
		conn_head(cn);
		break;
	case CONN_BODY:
		conn_body(cn);
		break;
	case CONN_TUNNEL:
		conn_relay(cn);
		break;
	case CONN_LAST:
		conn_discard(cn);
		break;
	case CONN_WAIT:
		if (cn->cn_ex->ex_state == EX_FORWARD) {
			conn_go(cn->cn_ex);
			break;
		}
		/* FALLTHROUGH */
	case CONN_HANDSHAKE:
	case CONN_ANSWER:
		/* It is not its turn; most clients know and are not paused. */
		io_pause(io);
		break;
	}
}

static void
conn_on_drain(struct io *io)
{
	struct conn	*cn = io->io_arg;

	if (cn->cn_ex != NULL)
		upstream_go(cn->cn_ex);
	else if (cn->cn_state == CONN_HEAD && io->io_paused) {
		io_resume(io);
		if (cn->cn_inlen > 0)
			event_active(&io->io_rev, EV_READ, 1);
	} else if (cn->cn_state == CONN_LAST && io_empty(io)) {
		io_finish(io);
		set_timer(&cn->cn_timer, LINGER_MS);
		if (io->io_eof)
			conn_free(cn);
	}
}

static void
conn_on_error(struct io *io, const char *why)
{
	struct conn	*cn = io->io_arg;

	log_debug("client of %s: %s", cn->cn_place.pc_host, why);
	if (cn->cn_ex != NULL)
		exchange_client_gone(cn->cn_ex, "stream_broken");
	conn_free(cn);
}

/* A new generation is in force: what goes on must still be allowed. */
void
conns_recheck(void)
{
	struct conn	*cn;

	TAILQ_FOREACH(cn, &conns, cn_entry)
		if (cn->cn_ex != NULL)
			exchange_ask_again(cn->cn_ex);
}
