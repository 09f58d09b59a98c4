/* SPDX-License-Identifier: ISC */

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

#include "conn.h"
#include "dns/names.h"
#include "hostname.h"
#include "http/h2.h"
#include "log.h"
#include "tlsengine.h"

#define LINGER_MS	2000	/* for the client to read the last answer */

struct blocks	 in_blocks = { .bk_size = IN_SIZE, .bk_keep = 64 };

static TAILQ_HEAD(, conn)	 conns = TAILQ_HEAD_INITIALIZER(conns);
static TAILQ_HEAD(, conn)	 dead = TAILQ_HEAD_INITIALIZER(dead);
static unsigned int		 nconns;
static struct event		 bury;

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
		h2_free(cn->cn_h2);
		chunks_end(&cn->cn_chunk);
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
	if (cn->cn_h2 != NULL)
		conn_h2_gone(cn);
	io_close(&cn->cn_io);
	timer_end(&cn->cn_timer);
	TAILQ_REMOVE(&conns, cn, cn_entry);
	TAILQ_INSERT_TAIL(&dead, cn, cn_entry);
	nconns--;
	if (!event_initialized(&bury))
		event_assign(&bury, child_base, -1, 0, conn_bury, NULL);
	event_active(&bury, EV_TIMEOUT, 1);
}

/* A client that sent something, of which the protocol is unknown. */
static bool
conn_spoke(const struct conn *cn)
{
	return cn->cn_state == CONN_FIRST &&
	    (cn->cn_inlen > 0 || cn->cn_asked_tls > 0);
}

/*
 * The client is gone, and its requests end.  A PostgreSQL client that insists
 * on TLS leaves when it is told that there is none: that was its refusal.
 */
void
conn_gone(struct conn *cn)
{
	struct exchange	*ex = cn->cn_ex;

	if (ex == NULL && cn->cn_raw == NULL && conn_spoke(cn))
		conn_report(cn, RECORD_CONNECTION_REFUSED, PROTOCOL_TCP,
		    REASON_BAD_REQUEST);
	cn->cn_ex = NULL;
	if (ex != NULL)
		exchange_client_gone_end(ex, REASON_STREAM_BROKEN);
	if (cn->cn_raw != NULL)
		raw_client_gone_end(cn->cn_raw, RAW_CLIENT_RESET);
	if (cn->cn_h2 != NULL)
		conn_h2_gone(cn);
}

/* A record without a request; an unnamed connection has its address. */
void
conn_report(struct conn *cn, enum record_kind kind, enum protocol protocol,
    const char *reason)
{
	if (!cn->cn_named && cn->cn_transparent)
		name_by_address(cn);
	report_other(kind, protocol, cn->cn_place.pc_host,
	    cn->cn_place.pc_port, reason);
}

/* Close by a reset: the client learns nothing else. */
void
conn_reset_end(struct conn *cn)
{
	struct linger	 hard = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(cn->cn_io.io_fd, SOL_SOCKET, SO_LINGER, &hard,
	    sizeof(hard));
	conn_free(cn);
}

/* The client was idle for too long within a request. */
static void
conn_late(struct conn *cn)
{
	struct exchange	*ex = cn->cn_ex;

	cn->cn_ex = NULL;
	if (ex != NULL)
		exchange_client_gone_end(ex, REASON_STREAM_BROKEN ": idle");
}

static void
conn_on_timer(void *arg)
{
	static const struct h1_error	 late = { 408, "late" };
	struct conn			*cn = arg;

	if (cn->cn_state == CONN_H2) {
		conn_h2_late(cn);
		return;
	}
	if (cn->cn_state == CONN_HEAD && cn->cn_begun) {
		conn_bad_request(cn, &late);
		return;
	}
	if (cn->cn_state == CONN_FIRST &&
	    raw_refuse_ends(cn, REASON_BAD_REQUEST))
		return;
	if (cn->cn_state == CONN_RAW) {
		raw_client_late_end(cn->cn_raw);
		return;
	}
	conn_late(cn);
	if (cn->cn_state == CONN_HANDSHAKE || conn_spoke(cn))
		conn_report(cn, RECORD_CONNECTION_REFUSED, PROTOCOL_TLS,
		    REASON_BAD_REQUEST);
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
		    REASON_QUOTA);
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
	timer_init(&cn->cn_timer, child_base, conn_on_timer, cn);
	timer_set(&cn->cn_timer, settings.st_handshake_ms);
	TAILQ_INSERT_TAIL(&conns, cn, cn_entry);
	nconns++;
	/* Before a byte is read: the server may be the one to speak first. */
	if (settings.st_asks && transparent)
		conn_ask(cn);
}

/* ---- names --------------------------------------------------------------- */

/* The name of this request; NULL in *mismatch if it is the connection's. */
int
conn_place(struct conn *cn, const struct h1_head *hd, struct place *pc,
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
			*mismatch = REASON_NAME_MISMATCH;
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
		    place_usual_port(pc);
	else if (hd->hd_port != 0 && hd->hd_port != pc->pc_port)
		*mismatch = REASON_NAME_MISMATCH;
	return 0;
}

/* Refuse methods and target forms that are for proxies. */
int
conn_sane(const struct conn *cn, const struct h1_head *hd,
    struct h1_error *he)
{
	const char	*scheme = url_scheme_name(cn->cn_place.pc_scheme);

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

/* ---- the end ------------------------------------------------------------- */

/* Send what is queued, then close. */
void
conn_last(struct conn *cn)
{
	cn->cn_state = CONN_LAST;
	cn->cn_io.io_ending = true;
	timer_set(&cn->cn_timer, io_empty(&cn->cn_io) ? LINGER_MS :
	    settings.st_idle_ms);
	if (io_empty(&cn->cn_io))
		io_finish(&cn->cn_io);
	io_resume(&cn->cn_io);
}

/* ---- events -------------------------------------------------------------- */

/* After the last answer: read and forget until the client has closed. */
static void
conn_discard(struct conn *cn)
{
	char	 buf[4096];
	ssize_t	 n = 1;
	int	 i;

	for (i = 0; i < IO_SHARE && n > 0; i++)
		n = io_read(&cn->cn_io, buf, sizeof(buf));
	/* A client that never stops sending must not starve others. */
	if (n > 0)
		io_again(&cn->cn_io);
	else if (n == 0 && !io_empty(&cn->cn_io))
		io_pause(&cn->cn_io);
	else if (n == 0 || errno != EAGAIN)
		conn_free(cn);
}

/* Whether the client has closed both directions. */
static bool
conn_left(const struct conn *cn)
{
	char	 byte;
	ssize_t	 n = recv(cn->cn_io.io_fd, &byte, 1, MSG_PEEK);

	return n == -1 ? errno != EAGAIN && errno != EINTR :
	    n == 0 && cn->cn_io.io_ssl != NULL;
}

/*
 * The client sends out of turn.  Its bytes may wait, but a client that has left
 * is not to keep a person, or a server, busy.  In the clear the end of what is
 * sent does not say that nobody reads the answer.
 */
static void
conn_ahead(struct conn *cn)
{
	ssize_t	 n = -1;

	if (cn->cn_io.io_ssl != NULL && cn->cn_in != NULL &&
	    cn->cn_inlen < IN_SIZE) {
		n = io_read(&cn->cn_io, cn->cn_in + cn->cn_inlen,
		    IN_SIZE - cn->cn_inlen);
		if (n > 0) {
			cn->cn_inlen += n;
			return;
		}
		if (n == -1 && errno == EAGAIN)
			return;
	}
	if (conn_left(cn)) {
		conn_gone(cn);
		conn_free(cn);
	} else
		io_pause(&cn->cn_io);
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
	case CONN_RAW:
		raw_read_client(cn->cn_raw);
		break;
	case CONN_H2:
		conn_h2_read(cn);
		break;
	case CONN_LAST:
		conn_discard(cn);
		break;
	case CONN_WAIT:
		if (cn->cn_ex != NULL && cn->cn_ex->ex_state == FLOW_FORWARD) {
			conn_go(cn->cn_ex);
			break;
		}
		/* FALLTHROUGH */
	case CONN_ANSWER:
		conn_ahead(cn);
		break;
	case CONN_HANDSHAKE:
		io_pause(io);
		break;
	}
}

static void
conn_on_drain(struct io *io)
{
	struct conn	*cn = io->io_arg;

	if (cn->cn_state == CONN_H2)
		h2_send(cn->cn_h2);
	else if (cn->cn_state == CONN_RAW)
		raw_client_drained(cn->cn_raw);
	else if (cn->cn_ex != NULL)
		exchange_client_room(cn->cn_ex);
	else if (cn->cn_state == CONN_HEAD && io->io_paused) {
		io_resume(io);
		if (cn->cn_inlen > 0)
			event_active(&io->io_rev, EV_READ, 1);
	} else if (cn->cn_state == CONN_LAST && io_empty(io)) {
		io_finish(io);
		timer_set(&cn->cn_timer, LINGER_MS);
		if (io->io_eof)
			conn_free(cn);
	}
}

static void
conn_on_error(struct io *io, const char *why)
{
	struct conn	*cn = io->io_arg;

	log_debug("client of %s: %s", cn->cn_place.pc_host, why);
	conn_gone(cn);
	conn_free(cn);
}

/* A new generation is in force: what goes on must still be allowed. */
void
conns_recheck(void)
{
	struct conn	*cn;

	TAILQ_FOREACH(cn, &conns, cn_entry) {
		if (cn->cn_ex != NULL)
			exchange_ask_again(&cn->cn_ex->ex_flow);
		if (cn->cn_raw != NULL)
			raw_ask_again(&cn->cn_raw->rw_flow);
		if (cn->cn_state == CONN_H2)
			conn_h2_recheck(cn);
	}
}

/* The engine stops: end all requests, answer none. */
void
conns_end(void)
{
	struct conn	*cn, *next;

	TAILQ_FOREACH_SAFE(cn, &conns, cn_entry, next) {
		if (cn->cn_state != CONN_RAW || raw_finish(cn->cn_raw))
			conn_gone(cn);
	}
	credit_end();
}
