/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: connections that are forwarded unread because a tcp or
 * a pass rule says so.  policyd is asked before anything is read, since the
 * server may speak first; what no such rule is for is read after all, and its
 * requests are asked about one by one.  Of what passes the client's hello is
 * read, so that the name in it is the one that was allowed (promise P3).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "dns/names.h"
#include "hostname.h"
#include "policy.h"
#include "tlsengine.h"
#include "upstream.h"

#define SPEAK_MS	1000	/* for a client to show how to refuse it */

_Static_assert(offsetof(struct raw, rw_flow) == 0, "see raw_of()");

static const struct flow_ops	 raw_ops;

static struct raw *
raw_of(struct flow *fl)
{
	return (struct raw *)fl;
}

/* ---- beginning ----------------------------------------------------------- */

/* Whether the name is final, whatever the client says. */
bool
conn_settled(const struct conn *cn)
{
	return cn->cn_named || (cn->cn_transparent && names_enabled());
}

/* The scheme is https only after a hello was read. */
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

/* Read nothing until there is a verdict, or a connection. */
void
conn_wait(struct conn *cn)
{
	cn->cn_state = CONN_WAIT;
	timer_clear(&cn->cn_timer);
}

static void
raw_protocol(struct flow *fl)
{
	fl->fl_protocol = hello_read(fl->fl_conn) ||
	    fl->fl_ruling.rl_rule_kind == RULE_PASS ? PROTOCOL_TLS :
	    PROTOCOL_TCP;
}

static bool	 raw_judged(struct raw *, const struct ruling *);

/* A connection is asked for together with the verdict. */
static void
raw_want(struct flow *fl)
{
	verdict_ask(fl, upstream_dial(fl, true, false));
}

/*
 * Ask whether a connection may be forwarded unread; false: known that not.
 * After true the connection is the question's, and may have ended with it.
 */
bool
conn_ask(struct conn *cn)
{
	const struct ruling	*known;
	struct raw		*rw;
	struct place		 pc;

	raw_place(cn, &pc);
	known = verdict_known(&pc);
	if (known != NULL && known->rl_verdict == VERDICT_LOOK)
		return false;
	if ((rw = calloc(1, sizeof(*rw))) == NULL) {
		conn_free(cn);
		return true;
	}
	flow_init(&rw->rw_flow, &raw_ops, cn);
	rw->rw_flow.fl_place = pc;
	raw_protocol(&rw->rw_flow);
	cn->cn_raw = rw;
	conn_wait(cn);
	credit_await(&rw->rw_flow);
	return true;
}

/* No record yet: of a connection that is looked into, requests have some. */
static bool
raw_begin(struct flow *fl)
{
	const struct ruling	*known = verdict_known(&fl->fl_place);

	fl->fl_state = FLOW_VERDICT;
	if (known != NULL)
		return raw_judged(raw_of(fl), known);
	raw_want(fl);
	return true;
}

static void
raw_ask(struct flow *fl)
{
	verdict_send(fl, ABOUT_CONNECTION, UINT64_MAX, "", "");
}

/* ---- the end ------------------------------------------------------------- */

/* Detach from the upstream, connected or still waited for. */
static void
raw_leave(struct raw *rw)
{
	struct upstream	*up = rw->rw_flow.fl_up;

	if (up == NULL)
		return;
	rw->rw_flow.fl_up = NULL;
	if (up->up_raw == rw)
		upstream_free(up);
	else
		upstream_unwait(up, &rw->rw_flow);
}

void
raw_free(struct raw *rw)
{
	struct flow	*fl = &rw->rw_flow;

	if (fl->fl_state == FLOW_VERDICT && fl->fl_id == 0)
		credit_return();
	fl->fl_conn->cn_raw = NULL;
	raw_leave(rw);
	flow_clear(fl);
	free(rw);
}

/* The client is told, in words if nothing has been forwarded. */
static void
raw_cut(const struct raw *rw)
{
	const struct flow	*fl = &rw->rw_flow;
	struct conn		*cn = fl->fl_conn;
	const char		*why = fl->fl_ruling.rl_reason;
	char			 text[512];

	if (fl->fl_state == FLOW_FORWARD || cn->cn_gave_up != NULL)
		conn_reset_end(cn);
	else if (hello_read(cn) &&
	    settings.st_options.po_refuse == REFUSE_ALERT)
		conn_alert(cn, SSL_AD_ACCESS_DENIED);
	else {
		/* The stable part of the reason, without a decider's words. */
		snprintf(text, sizeof(text), "Denied by egress policy: %.*s "
		    "(host %s, port %u)", (int)strcspn(why, ":"), why,
		    fl->fl_place.pc_host, fl->fl_place.pc_port);
		conn_refuse_end(cn, text);
	}
}

/* The end of what was not allowed. */
static bool
raw_deny_end(struct raw *rw, int status, const char *why)
{
	flow_deny(&rw->rw_flow, status, why);
	raw_leave(rw);
	raw_cut(rw);
	raw_free(rw);
	return false;
}

/* Bytes as the record has them. */
static void
raw_tally(struct raw *rw)
{
	struct flow		*fl = &rw->rw_flow;
	const struct io		*io;

	if (fl->fl_state != FLOW_FORWARD)
		return;
	io = &fl->fl_up->up_io;
	fl->fl_bytes_in = io->io_in_total;
	fl->fl_bytes_out = io->io_out_total + io->io_outlen;
}

/* The end of what was allowed; why, if the reason is not in the table. */
bool
raw_end(struct raw *rw, enum raw_cause how, const char *why)
{
	static const char *const	 reasons[] = {
		[RAW_CLIENT_RESET] = REASON_STREAM_BROKEN,
		[RAW_CLIENT_IDLE] = REASON_STREAM_BROKEN ": idle",
		[RAW_ORIGIN_RESET] = REASON_STREAM_BROKEN,
		[RAW_ORIGIN_IDLE] = REASON_STREAM_BROKEN ": idle",
		[RAW_OVERDUE] = REASON_TOTAL_TIME,
		[RAW_QUOTA] = REASON_QUOTA,
		[RAW_RULES] = NULL,
	};
	struct conn			*cn = rw->rw_flow.fl_conn;

	raw_tally(rw);
	report_raw_closed(&rw->rw_flow, why != NULL ? why : reasons[how]);
	/* The client still reads what is queued. */
	if (how == RAW_CLOSED)
		conn_last(cn);
	else if (how != RAW_CLIENT_DONE && how != RAW_CLIENT_RESET &&
	    how != RAW_CLIENT_IDLE)
		raw_cut(rw);
	raw_free(rw);
	return false;
}

/* ---- verdict and connection ---------------------------------------------- */

static bool
raw_connect(struct raw *rw)
{
	struct flow	*fl = &rw->rw_flow;

	fl->fl_state = FLOW_CONNECT;
	if (fl->fl_why[0] != '\0')
		return raw_end(rw, RAW_NO_ORIGIN, fl->fl_why);
	if (fl->fl_up == NULL)
		raw_want(fl);
	else if (fl->fl_up->up_state == UP_READY)
		return upstream_begin(fl->fl_up);
	/* Else the connection is under way, asked for with the verdict. */
	return true;
}

/* The verdict counts: from here on there is a record. */
static bool
raw_open(struct raw *rw, int status, const char *why)
{
	struct flow	*fl = &rw->rw_flow;

	conn_wait(fl->fl_conn);
	raw_protocol(fl);
	report_raw_opened(fl);
	overdue_add(fl);
	if (why == NULL && fl->fl_ruling.rl_verdict == VERDICT_ALLOW &&
	    (why = flow_obstacle()) != NULL)
		status = 403;
	if (why != NULL)
		return raw_deny_end(rw, status, why);
	if (fl->fl_ruling.rl_verdict != VERDICT_ALLOW)
		return raw_deny_end(rw, 403, fl->fl_ruling.rl_reason);
	report_verdict(fl);
	return raw_connect(rw);
}

static void
raw_read(struct conn *cn)
{
	cn->cn_state = CONN_FIRST;
	timer_set(&cn->cn_timer, cn->cn_denied ? SPEAK_MS :
	    settings.st_handshake_ms);
	io_resume(&cn->cn_io);
}

/* The connection is looked into after all; drop the question. */
static bool
raw_look_end(struct raw *rw)
{
	struct conn	*cn = rw->rw_flow.fl_conn;

	raw_free(rw);
	if (hello_read(cn))
		conn_handshake(cn);
	else
		raw_read(cn);
	return false;
}

/*
 * Whether the verdict is the last word.  Where names come from clients, another
 * than the address may follow; and a client that is refused may be told why.
 */
static bool
raw_final(const struct raw *rw)
{
	const struct conn	*cn = rw->rw_flow.fl_conn;
	const struct ruling	*rl = &rw->rw_flow.fl_ruling;

	if (rl->rl_verdict == VERDICT_ALLOW)
		return conn_settled(cn) || rl->rl_rule_kind != RULE_PASS;
	/* Requests will be denied as well, with an answer that says why. */
	if (rl->rl_scope == VERDICT_HOST)
		return hello_read(cn) &&
		    settings.st_options.po_refuse == REFUSE_ALERT;
	return conn_settled(cn);
}

static void
gave_up_unruled_end(struct conn *cn)
{
	conn_report(cn, RECORD_REQUEST_FAILED, PROTOCOL_TLS, cn->cn_gave_up);
	conn_free(cn);
}

/* The first verdict, for a client that can still be served. */
static bool
raw_judged_live(struct raw *rw, const struct ruling *rl)
{
	struct conn	*cn = rw->rw_flow.fl_conn;

	if (rl->rl_verdict == VERDICT_LOOK || !raw_final(rw)) {
		cn->cn_denied = rl->rl_verdict == VERDICT_DENY &&
		    conn_settled(cn) && !hello_read(cn);
		return raw_look_end(rw);
	}
	if (rl->rl_verdict == VERDICT_ALLOW &&
	    rl->rl_rule_kind == RULE_PASS && !hello_read(cn)) {
		raw_read(cn);
		return true;
	}
	return raw_open(rw, 0, NULL);
}

/* The first verdict. */
static bool
raw_judged(struct raw *rw, const struct ruling *rl)
{
	struct conn	*cn = rw->rw_flow.fl_conn;

	rw->rw_flow.fl_ruling = *rl;
	if (cn->cn_gave_up == NULL && !cn->cn_denied)
		return raw_judged_live(rw, rl);
	if (rl->rl_verdict == VERDICT_DENY)
		return raw_open(rw, 403, rl->rl_reason);
	raw_free(rw);
	if (cn->cn_gave_up != NULL)
		gave_up_unruled_end(cn);
	else {
		/* Allowed by new rules, but its first bytes were consumed. */
		cn->cn_denied = false;
		conn_not_http_end(cn, REASON_BAD_REQUEST);
	}
	return false;
}

/* Without the hello a connection cannot become one of a pass rule. */
static bool
still_allowed(const struct ruling *was, const struct ruling *rl)
{
	return rl->rl_verdict == VERDICT_ALLOW &&
	    (rl->rl_rule_kind != RULE_PASS || was->rl_rule_kind == RULE_PASS);
}

static bool
raw_ruled(struct flow *fl, const struct ruling *rl)
{
	struct raw	*rw = raw_of(fl);
	bool		 fine = still_allowed(&fl->fl_ruling, rl);

	if (fl->fl_state == FLOW_VERDICT)
		return raw_judged(rw, rl);
	/* The rules changed, or a connection was asked for once more. */
	if (fl->fl_state == FLOW_FORWARD)
		fl->fl_ruling.rl_body = rl->rl_body;
	else
		fl->fl_ruling = *rl;
	if (!fine)
		return raw_end(rw, RAW_RULES, flow_denial(rl));
	if (fl->fl_request_body > rl->rl_body)
		return raw_end(rw, RAW_QUOTA, NULL);
	return true;
}

void
raw_ask_again(struct flow *fl)
{
	if (fl->fl_state == FLOW_FORWARD)
		verdict_ask(fl, 0);
	else if (fl->fl_state != FLOW_CREDIT) {
		raw_leave(raw_of(fl));
		/* A hello has to wait for the new verdict. */
		conn_wait(fl->fl_conn);
		fl->fl_why[0] = '\0';
		raw_want(fl);
	}
}

static bool
raw_no_upstream(struct flow *fl, const char *why)
{
	if (fl->fl_state != FLOW_VERDICT)
		return raw_end(raw_of(fl), RAW_NO_ORIGIN, why);
	strlcpy(fl->fl_why, why, sizeof(fl->fl_why));
	return true;
}

static void
raw_overdue_end(struct flow *fl)
{
	raw_end(raw_of(fl), RAW_OVERDUE, NULL);
}

static const struct flow_ops raw_ops = {
	.begin = raw_begin,
	.ask = raw_ask,
	.ruled = raw_ruled,
	.ask_again = raw_ask_again,
	.connected = raw_connected,
	.no_upstream = raw_no_upstream,
	.want = raw_want,
	.overdue_end = raw_overdue_end,
};

/* ---- what the client says, or does not ----------------------------------- */

/* The hello of a connection that a pass rule allows. */
void
raw_hello(struct conn *cn, const struct hello *he)
{
	struct raw	*rw = cn->cn_raw;
	char		*host = rw->rw_flow.fl_place.pc_host;
	char		 name[HOSTNAME_MAX];

	cn->cn_place.pc_scheme = URL_HTTPS;
	if (he->he_sni != HELLO_SNI_NAME)
		raw_open(rw, 0, NULL);
	else if (hostname_canon(he->he_name, he->he_namelen, name,
	    sizeof(name), NULL) == -1)
		raw_open(rw, 400, REASON_BAD_REQUEST);
	else if (strcmp(name, host) != 0) {
		/* The client's name is kept, so that the record has it. */
		strlcpy(host, name, HOST_LEN + 1);
		raw_open(rw, 421, REASON_NAME_MISMATCH);
	} else
		raw_open(rw, 0, NULL);
}

/*
 * End a connection that sent no hello, or that is denied and not HTTP, now or
 * by the verdict that is asked for; false: it is neither, and still there.
 */
bool
raw_refuse_ends(struct conn *cn, const char *reason)
{
	if (cn->cn_raw != NULL) {
		raw_open(cn->cn_raw, 400, reason);
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
raw_gave_up_end(struct conn *cn, const char *why)
{
	struct place	 pc;

	io_pause(&cn->cn_io);
	cn->cn_gave_up = why;
	raw_place(cn, &pc);
	if (!cn->cn_transparent ||
	    (settings.st_asks && verdict_known(&pc) == NULL) || !conn_ask(cn))
		gave_up_unruled_end(cn);
}

/* The client's side is gone; the conn frees itself. */
void
raw_client_gone_end(struct raw *rw, enum raw_cause how)
{
	struct flow	*fl = &rw->rw_flow;

	credit_left(fl, NULL);
	if (fl->fl_state == FLOW_CREDIT) {
		raw_free(rw);
		return;
	}
	/* Left before a verdict: record the attempt. */
	if (fl->fl_state == FLOW_VERDICT && fl->fl_id == 0) {
		raw_protocol(fl);
		report_raw_opened(fl);
	}
	if (fl->fl_state == FLOW_VERDICT)
		raw_end(rw, how, REASON_CLIENT_LEFT);
	else if (raw_nothing_left(rw))
		raw_end(rw, RAW_CLIENT_DONE, NULL);
	else
		raw_end(rw, how, NULL);
}
