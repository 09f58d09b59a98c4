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
 * tlsengine runs this: connections that are forwarded unread because a tcp or
 * a pass rule says so.  policyd is asked before anything is read, since the
 * server may speak first; what no such rule is for is read after all, and its
 * requests are asked about one by one.  Of what passes the client's hello is
 * read, so that the name in it is the one that was allowed (promise P3).
 */

#include <sys/socket.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hostname.h"
#include "names.h"
#include "policy.h"
#include "tlsengine.h"

#define GOODBYE_MAX	64	/* bytes, of an alert in TLS */

#define SPEAK_MS	1000	/* for a client to show how to refuse it */

static const struct client_ops	 client_raw;

/* ---- beginning ----------------------------------------------------------- */

/* Whether nothing that the client says can give it another name. */
bool
conn_settled(const struct conn *cn)
{
	return cn->cn_named || (cn->cn_transparent && names_enabled());
}

/* It is by its hello that we know it for TLS. */
static bool
hello_read(const struct conn *cn)
{
	return cn->cn_place.pc_scheme == URL_HTTPS;
}

static void
raw_place(const struct conn *cn, struct place *pc)
{
	*pc = cn->cn_place;
	pc->pc_scheme = URL_TCP;
	if (!cn->cn_named)
		addr_format(&cn->cn_dest, pc->pc_host, sizeof(pc->pc_host));
	if (!cn->cn_transparent)
		pc->pc_port = 443;
}

/* Nothing is read before there is a verdict, or a connection. */
void
conn_wait(struct conn *cn)
{
	cn->cn_state = CONN_WAIT;
	timer_clear(&cn->cn_timer);
}

/* May it be forwarded unread?  False if that is known not to be. */
bool
conn_ask(struct conn *cn)
{
	const struct ruling	*known;
	struct exchange		*ex;
	struct place		 pc;

	raw_place(cn, &pc);
	known = verdict_known(&pc);
	if (known != NULL && known->rl_verdict == VERDICT_LOOK)
		return false;
	if ((ex = exchange_new(&client_raw, cn)) == NULL) {
		conn_free(cn);
		return true;
	}
	memset(&ex->ex_request, 0, sizeof(ex->ex_request));
	ex->ex_place = pc;
	ex->ex_raw = true;
	cn->cn_ex = ex;
	conn_wait(cn);
	exchange_open(ex, NULL);
	return true;
}

void
raw_protocol(struct exchange *ex)
{
	ex->ex_protocol = hello_read(ex->ex_conn) ||
	    ex->ex_ruling.rl_rule_kind == RULE_PASS ? PROTOCOL_TLS :
	    PROTOCOL_TCP;
}

/* From here on it has a record. */
void
raw_record(struct exchange *ex)
{
	raw_protocol(ex);
	ex->ex_id = report_opened(ex, NULL);
}

static void
raw_open(struct exchange *ex, int status, const char *why)
{
	conn_wait(ex->ex_conn);
	raw_record(ex);
	overdue_add(ex);
	if (why == NULL && ex->ex_ruling.rl_verdict == VERDICT_ALLOW &&
	    (why = exchange_obstacle()) != NULL)
		status = 403;
	if (why != NULL)
		refuse(ex, status, why);
	else
		exchange_decided(ex);
}

static void
raw_read(struct conn *cn)
{
	cn->cn_state = CONN_FIRST;
	timer_set(&cn->cn_timer, cn->cn_denied ? SPEAK_MS :
	    settings.st_handshake_ms);
	io_resume(&cn->cn_io);
}

/* It is read after all, and this has never been. */
static void
raw_look(struct exchange *ex)
{
	struct conn	*cn = ex->ex_conn;

	cn->cn_ex = NULL;
	exchange_end(ex);
	if (hello_read(cn))
		conn_handshake(cn);
	else
		raw_read(cn);
}

/*
 * Whether that is the last word.  Where names come from clients, there may be
 * another than the address; and one who is refused may be told why.
 */
static bool
raw_final(const struct exchange *ex)
{
	const struct conn	*cn = ex->ex_conn;
	const struct ruling	*rl = &ex->ex_ruling;

	if (rl->rl_verdict == VERDICT_ALLOW)
		return conn_settled(cn) || rl->rl_rule_kind != RULE_PASS;
	/* Its requests will be denied too, and that in words. */
	if (rl->rl_scope == VERDICT_HOST)
		return hello_read(cn) && settings.st_refuse == REFUSE_ALERT;
	return conn_settled(cn);
}

static void
gave_up_unruled(struct conn *cn)
{
	conn_report(cn, RECORD_REQUEST_FAILED, PROTOCOL_TLS, cn->cn_gave_up);
	conn_free(cn);
}

void
raw_ruled(struct exchange *ex, const struct ruling *rl)
{
	struct conn	*cn = ex->ex_conn;

	ex->ex_ruling = *rl;
	if (cn->cn_gave_up != NULL && rl->rl_verdict != VERDICT_DENY) {
		cn->cn_ex = NULL;
		exchange_end(ex);
		gave_up_unruled(cn);
	} else if (cn->cn_gave_up != NULL)
		raw_open(ex, 403, rl->rl_reason);
	else if (cn->cn_denied && rl->rl_verdict != VERDICT_DENY) {
		/* The rules have changed, and its first bytes are used up. */
		cn->cn_denied = false;
		cn->cn_ex = NULL;
		exchange_end(ex);
		conn_not_http(cn, "bad_request");
	} else if (cn->cn_denied)
		raw_open(ex, 403, rl->rl_reason);
	else if (rl->rl_verdict == VERDICT_LOOK || !raw_final(ex)) {
		cn->cn_denied = rl->rl_verdict == VERDICT_DENY &&
		    conn_settled(cn) && !hello_read(cn);
		raw_look(ex);
	} else if (rl->rl_verdict == VERDICT_ALLOW &&
	    rl->rl_rule_kind == RULE_PASS && !hello_read(cn))
		raw_read(cn);
	else
		raw_open(ex, 0, NULL);
}

/* The client's hello, if a pass rule is for it. */
void
raw_hello(struct conn *cn, const struct hello *he)
{
	struct exchange	*ex = cn->cn_ex;
	char		 name[HOSTNAME_MAX];

	cn->cn_place.pc_scheme = URL_HTTPS;
	if (he->he_sni != HELLO_SNI_NAME)
		raw_open(ex, 0, NULL);
	else if (hostname_canon(he->he_name, he->he_namelen, name,
	    sizeof(name), NULL) == -1)
		raw_open(ex, 400, "bad_request");
	else if (strcmp(name, ex->ex_place.pc_host) != 0) {
		/* Kept, so that the record can name it. */
		strlcpy(ex->ex_place.pc_host, name,
		    sizeof(ex->ex_place.pc_host));
		raw_open(ex, 421, "name_mismatch");
	} else
		raw_open(ex, 0, NULL);
}

/* No hello comes, or another thing; or it was refused and is not HTTP. */
bool
raw_refuse(struct conn *cn, const char *reason)
{
	if (cn->cn_ex != NULL) {
		raw_open(cn->cn_ex, 400, reason);
		return true;
	}
	return cn->cn_denied && conn_ask(cn);
}

/*
 * A client that ended TLS before it asked for anything, mostly since it does
 * not trust us.  If the host is denied as a whole, that is what there is to
 * tell, and policyd knows.  With rules about connections it has been asked, and
 * could put this one to a decider; without a port of its own, only a request
 * would tell for which it is.
 */
void
raw_gave_up(struct conn *cn, const char *why)
{
	struct place	 pc;

	io_pause(&cn->cn_io);
	cn->cn_gave_up = why;
	raw_place(cn, &pc);
	if (!cn->cn_transparent ||
	    (settings.st_asks && verdict_known(&pc) == NULL) || !conn_ask(cn))
		gave_up_unruled(cn);
}

void
raw_connected(struct exchange *ex)
{
	static const struct h1_str	 none = { NULL, 0 };

	ex->ex_origin->request(ex, NULL);
	ex->ex_upgraded = ex->ex_answered = true;
	report_answer(ex, &none);
	conn_tunnel(ex);
}

/* ---- the client's side --------------------------------------------------- */

static void *
raw_reserve(struct exchange *ex, size_t *room)
{
	struct io	*io = &ex->ex_conn->cn_io;

	return io->io_full ? NULL : io_reserve(io, room);
}

static void
raw_commit(struct exchange *ex, size_t len)
{
	struct io	*io = &ex->ex_conn->cn_io;

	io_commit(io, len);
	if (io->io_full)
		io_push(io);
}

static void
raw_flush(struct exchange *ex)
{
	timer_set(&ex->ex_conn->cn_timer, settings.st_tunnel_ms);
	io_flush(&ex->ex_conn->cn_io);
}

/* What the client has not read yet, it will. */
void
raw_over(struct exchange *ex)
{
	struct conn	*cn = ex->ex_conn;

	report_closed(ex, NULL);
	ex->ex_state = EX_DONE;
	cn->cn_ex = NULL;
	conn_last(cn);
	exchange_end(ex);
}

/* Both have ended, and the origin has all that was for it. */
void
raw_settle(struct exchange *ex)
{
	if (ex->ex_request_end && ex->ex_answer_end &&
	    io_empty(&ex->ex_up->up_io))
		raw_over(ex);
}

/*
 * The end may be there before its turn is, and behind the goodbye of TLS, an
 * alert that nobody waits for; or both reset each other over those.
 */
static bool
has_ended(const struct io *io, bool seen)
{
	struct tcp_info	 ti;
	socklen_t	 len = sizeof(ti);
	char		 last[GOODBYE_MAX + 1];
	ssize_t		 n;

	if (seen)
		return true;
	n = recv(io->io_fd, last, sizeof(last), MSG_PEEK | MSG_DONTWAIT);
	if (n == -1)
		return errno == ECONNRESET || errno == EPIPE;
	return n == 0 || (n <= GOODBYE_MAX &&
	    getsockopt(io->io_fd, IPPROTO_TCP, TCP_INFO, &ti, &len) == 0 &&
	    ti.tcpi_state == TCP_CLOSE_WAIT);
}

/*
 * Whether one side has ended, and all that it said was passed on.  The other
 * may then close without a look at the last of it, which makes a reset: so do
 * PostgreSQL and its clients with the end of TLS, and nothing is lost.
 */
bool
raw_client_ended(const struct exchange *ex)
{
	return ex->ex_raw && io_empty(&ex->ex_up->up_io) &&
	    has_ended(&ex->ex_conn->cn_io, ex->ex_request_end);
}

/* Likewise a client that resets when there is nothing more for it. */
bool
raw_nothing_left(const struct exchange *ex)
{
	char	 byte;

	if (!ex->ex_raw || ex->ex_state != EX_FORWARD || ex->ex_up == NULL ||
	    !io_empty(&ex->ex_conn->cn_io) || !io_empty(&ex->ex_up->up_io))
		return false;
	return ex->ex_answer_end || recv(ex->ex_up->up_io.io_fd, &byte, 1,
	    MSG_PEEK | MSG_DONTWAIT) <= 0;
}

/* If the client had ended and the origin has all it sent, nothing is lost. */
void
raw_gone(struct conn *cn)
{
	if (cn->cn_state == CONN_TUNNEL && !cn->cn_ex->ex_request_end)
		conn_relay(cn);
	if (cn->cn_state != CONN_TUNNEL || cn->cn_dead)
		return;
	io_push(&cn->cn_ex->ex_up->up_io);
	if (cn->cn_ex->ex_request_end && io_empty(&cn->cn_ex->ex_up->up_io))
		raw_over(cn->cn_ex);
}

/* The origin will say no more; the client still may. */
static void
raw_end(struct exchange *ex, const struct trailers *tr)
{
	struct io	*io = &ex->ex_conn->cn_io;

	(void)tr;
	io_pause(&ex->ex_up->up_io);
	io->io_ending = true;
	io_flush(io);
	if (io_empty(io))
		io_finish(io);
	raw_settle(ex);
}

static void
raw_cut(struct exchange *ex)
{
	struct conn	*cn = ex->ex_conn;
	const char	*why = ex->ex_ruling.rl_reason;
	char		 text[512];

	cn->cn_ex = NULL;
	if (ex->ex_answered || cn->cn_gave_up != NULL)
		conn_reset(cn);
	else if (hello_read(cn) && settings.st_refuse == REFUSE_ALERT)
		conn_alert(cn, SSL_AD_ACCESS_DENIED);
	else {
		/* Without a decider's words. */
		snprintf(text, sizeof(text), "Denied by egress policy: %.*s "
		    "(host %s, port %u)", (int)strcspn(why, ":"), why,
		    ex->ex_place.pc_host, ex->ex_place.pc_port);
		conn_say_no(cn, text);
	}
}

static void
raw_go(struct exchange *ex)
{
	if (ex->ex_request_end)
		raw_settle(ex);
	else
		io_resume(&ex->ex_conn->cn_io);
}

static const struct client_ops client_raw = {
	.reserve = raw_reserve,
	.commit = raw_commit,
	.flush = raw_flush,
	.end = raw_end,
	.cut = raw_cut,
	.go = raw_go,
};
