/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: one request and its answer, between a client's side
 * and an origin's side that may speak different versions of HTTP.  Here it is
 * recorded, put to policyd, given an upstream and carried out.  Whatever goes
 * wrong, the client gets an answer that says so if one is still possible, and
 * there is exactly one final record (promise P6).
 */

#include <stdlib.h>
#include <string.h>

#include "tlsengine.h"
#include "upstream.h"

_Static_assert(H1_METHOD_MAX <= METHOD_LEN && H1_TARGET_MAX < URLPATH_MAX &&
    URLPATH_MAX <= URL_LEN, "a question has room for any method and path");
_Static_assert(offsetof(struct exchange, ex_flow) == 0, "see exchange_of()");

static struct blocks	 exchanges = {
	.bk_size = sizeof(struct exchange), .bk_keep = 256
};

static const struct flow_ops	 exchange_ops;

struct exchange *
exchange_new(const struct client_ops *client, struct conn *cn)
{
	struct exchange	*ex;

	if ((ex = blocks_get(&exchanges)) == NULL)
		return NULL;
	flow_init(&ex->ex_flow, &exchange_ops, cn);
	memset((char *)ex + sizeof(ex->ex_flow), 0,
	    offsetof(struct exchange, ex_method) - sizeof(ex->ex_flow));
	ex->ex_method[0] = ex->ex_key[0] = '\0';
	ex->ex_path = ex->ex_path_room;
	ex->ex_path[0] = '\0';
	ex->ex_client = client;
	return ex;
}

void
exchange_free(struct exchange *ex)
{
	flow_clear(&ex->ex_flow);
	if (ex->ex_path != ex->ex_path_room)
		free(ex->ex_path);
	EVP_MD_CTX_free(ex->ex_hash[0]);
	EVP_MD_CTX_free(ex->ex_hash[1]);
	blocks_put(&exchanges, ex);
}

static struct exchange *
exchange_of(struct flow *fl)
{
	return (struct exchange *)fl;
}

/*
 * Another version of HTTP, or TLS around it, would carry requests that nobody
 * sees.  Each is a verdict's, so such an upgrade is not asked for; RFC 9110,
 * 7.8 lets a server ignore it.
 */
static bool
upgrade_hides_requests(const struct h1_str *to)
{
	static const char *const	 hide[] = { "h2", "http", "tls" };
	size_t				 i, n;
	const char			*p;

	for (p = to->s; p < to->s + to->len; p++)
		for (i = 0; i < sizeof(hide) / sizeof(hide[0]); i++) {
			n = strlen(hide[i]);
			if ((size_t)(to->s + to->len - p) >= n &&
			    strncasecmp(p, hide[i], n) == 0)
				return true;
		}
	return false;
}

/* One canonical path is both judged and sent. */
int
exchange_path(struct exchange *ex, struct h1_error *he)
{
	static char		 path[URLPATH_MAX];
	const struct h1_head	*hd = &ex->ex_request;

	if (hd->hd_upgrade.s != NULL && upgrade_hides_requests(&hd->hd_upgrade))
		ex->ex_request.hd_upgrade = (struct h1_str){ NULL, 0 };
	he->he_status = 400;
	if (hd->hd_method_text.len > METHOD_LEN)
		return -1;
	/* Copied: chunks may overwrite the head before the last verdict. */
	memcpy(ex->ex_method, hd->hd_method_text.s, hd->hd_method_text.len);
	ex->ex_method[hd->hd_method_text.len] = '\0';
	ex->ex_text = refuse_as_text(hd);
	if (hd->hd_form == H1_ASTERISK) {
		ex->ex_pathlen = strlcpy(ex->ex_path, "*", PATH_ROOM);
		return 0;
	}
	if (urlpath_canon(hd->hd_path.s, hd->hd_path.len, path, sizeof(path),
	    &he->he_reason) == -1)
		return -1;
	ex->ex_pathlen = strlen(path);
	if (ex->ex_pathlen >= PATH_ROOM &&
	    (ex->ex_path = malloc(ex->ex_pathlen + 1)) == NULL) {
		ex->ex_path = ex->ex_path_room;
		he->he_status = 503;
		return -1;
	}
	memcpy(ex->ex_path, path, ex->ex_pathlen + 1);
	return 0;
}

/* Detach from the upstream, connected or still waited for. */
void
exchange_leave(struct exchange *ex, bool fit)
{
	const struct origin_ops	*origin = ex->ex_origin;
	struct upstream		*up = ex->ex_up;

	if (up == NULL)
		return;
	ex->ex_origin = NULL;
	ex->ex_up = NULL;
	if (origin != NULL)
		origin->leave(ex, up, fit);
	else
		upstream_unwait(up, &ex->ex_flow);
}

/* End an exchange that no client refers to any more. */
void
exchange_end(struct exchange *ex)
{
	exchange_leave(ex, false);
	exchange_free(ex);
}

/* ---- beginning ----------------------------------------------------------- */

static bool	 exchange_allowed(struct exchange *);

/* The credit is here: record the request and have it judged. */
static bool
exchange_begin(struct flow *fl)
{
	struct exchange		*ex = exchange_of(fl);
	const struct ruling	*known = NULL;
	const char		*why = ex->ex_mismatch != NULL ?
	    ex->ex_mismatch : flow_obstacle();

	if (why == NULL)
		known = verdict_known(&ex->ex_place);
	report_opened(ex, known);
	if (why != NULL)
		return refuse_end(ex, ex->ex_mismatch != NULL ? 421 :
		    credit_held() ? 503 : 403, why);
	overdue_add(fl);
	ex->ex_state = FLOW_VERDICT;
	if (known != NULL) {
		ex->ex_ruling = *known;
		return known->rl_verdict == VERDICT_ALLOW ?
		    exchange_allowed(ex) :
		    refuse_end(ex, 403, known->rl_reason);
	}
	verdict_ask(fl, upstream_kept(ex) ? 0 : upstream_dial_exchange(ex));
	return true;
}

/* Every request first spends a credit: no record, no request. */
bool
exchange_open(struct exchange *ex, const char *mismatch)
{
	ex->ex_state = FLOW_CREDIT;
	ex->ex_mismatch = mismatch;
	return credit_await(&ex->ex_flow);
}

/* ---- verdict and connection ---------------------------------------------- */

/* Bytes that will be sent; nobody knows how many go through a tunnel. */
static uint64_t
body_length(const struct h1_head *hd)
{
	if (hd->hd_upgrade.s != NULL)
		return UINT64_MAX;
	return hd->hd_framing == H1_NONE ? 0 :
	    hd->hd_framing == H1_LENGTH ? hd->hd_length : UINT64_MAX;
}

static void
exchange_ask(struct flow *fl)
{
	const struct exchange	*ex = exchange_of(fl);

	verdict_send(fl, ABOUT_REQUEST, body_length(&ex->ex_request),
	    ex->ex_method, ex->ex_path);
}

static bool
body_too_long(const struct exchange *ex)
{
	return ex->ex_request.hd_framing == H1_LENGTH &&
	    ex->ex_request.hd_length > ex->ex_ruling.rl_body;
}

/*
 * The rules have changed.  What is not under way yet begins anew: a connection
 * that was granted by the old rules is not used under the new ones.
 */
void
exchange_ask_again(struct flow *fl)
{
	struct exchange	*ex = exchange_of(fl);

	if (ex->ex_state == FLOW_FORWARD) {
		verdict_ask(fl, 0);
		return;
	}
	if (ex->ex_state != FLOW_VERDICT && ex->ex_state != FLOW_CONNECT)
		return;
	exchange_leave(ex, false);
	ex->ex_why[0] = '\0';
	verdict_ask(fl, upstream_dial_exchange(ex));
}

static bool	 exchange_connected(struct flow *, struct upstream *);
static bool	 exchange_no_upstream(struct flow *, const char *);

static bool
exchange_allowed(struct exchange *ex)
{
	struct upstream	*up;

	ex->ex_state = FLOW_CONNECT;
	if (body_too_long(ex))
		return refuse_end(ex, 413, REASON_BODY_LIMIT);
	if (ex->ex_why[0] != '\0')
		return exchange_no_upstream(&ex->ex_flow, ex->ex_why);
	if (ex->ex_up == NULL) {
		if ((up = upstream_take(ex)) != NULL)
			return exchange_connected(&ex->ex_flow, up);
		upstream_want(ex);
	} else if (ex->ex_up->up_state == UP_READY)
		return upstream_begin(ex->ex_up);
	/* Else the connection is under way, asked for with the verdict. */
	return true;
}

static bool
exchange_decided(struct exchange *ex)
{
	if (ex->ex_ruling.rl_verdict != VERDICT_ALLOW)
		return refuse_end(ex, 403, ex->ex_ruling.rl_reason);
	report_verdict(&ex->ex_flow);
	return exchange_allowed(ex);
}

static bool
exchange_ruled(struct flow *fl, const struct ruling *rl)
{
	struct exchange	*ex = exchange_of(fl);
	const char	*why = flow_denial(rl);
	bool		 fine = rl->rl_verdict == VERDICT_ALLOW;

	if (ex->ex_state == FLOW_FORWARD) {
		/* Bytes passed when the rules changed: go on, or cut. */
		ex->ex_ruling.rl_body = rl->rl_body;
		if (!fine)
			return exchange_fail_end(ex, 403, why);
		if (ex->ex_request_body > rl->rl_body)
			return exchange_fail_end(ex, 413, REASON_BODY_LIMIT);
		return true;
	}
	ex->ex_ruling = *rl;
	if (ex->ex_state == FLOW_VERDICT)
		return exchange_decided(ex);
	/* A second verdict only renews the grant for a connection. */
	if (!fine)
		return refuse_end(ex, 403, why);
	if (body_too_long(ex))
		return refuse_end(ex, 413, REASON_BODY_LIMIT);
	return true;
}

/* The head for the origin, without hop-by-hop fields. */
static int
send_head(struct exchange *ex)
{
	const struct h1_head	*hd = &ex->ex_request;
	struct h1_out_request	 or = {
		.or_method = { ex->ex_method, strlen(ex->ex_method) },
		.or_target = { ex->ex_path, ex->ex_pathlen },
		.or_host = ex->ex_place.pc_host,
		.or_fields = hd->hd_fields,
		.or_nfields = hd->hd_nfields,
		.or_framing = hd->hd_framing,
		.or_length = hd->hd_length,
		.or_upgrade = hd->hd_upgrade,
		.or_expect_continue = hd->hd_expect_continue,
		.or_te_trailers = hd->hd_te_trailers,
	};

	if (ex->ex_place.pc_port != place_usual_port(&ex->ex_place))
		or.or_port = ex->ex_place.pc_port;
	return ex->ex_origin->request(ex, &or);
}

/* An upstream is ready for our head. */
static bool
exchange_connected(struct flow *fl, struct upstream *up)
{
	struct exchange	*ex = exchange_of(fl);

	ex->ex_up = up;
	ex->ex_origin = up->up_ops;
	ex->ex_state = FLOW_FORWARD;
	if (send_head(ex) == -1)
		return exchange_fail_end(ex, 400, REASON_BAD_REQUEST);
	if (ex->ex_request_end) {
		/* A repeated request, which had no body. */
		ex->ex_origin->finish(ex, NULL);
		return true;
	}
	return ex->ex_request.hd_expect_continue ?
	    ex->ex_client->expect(ex) : ex->ex_client->go(ex);
}

/* why is one of the stable reasons, with details behind a colon. */
static bool
exchange_no_upstream(struct flow *fl, const char *why)
{
	struct exchange	*ex = exchange_of(fl);

	if (ex->ex_state == FLOW_VERDICT) {
		strlcpy(ex->ex_why, why, sizeof(ex->ex_why));
		return true;
	}
	return refuse_end(ex, strncmp(why, REASON_ADDRESS_REFUSED,
	    strlen(REASON_ADDRESS_REFUSED)) == 0 ? 403 : 502, why);
}

static void
exchange_want(struct flow *fl)
{
	upstream_want(exchange_of(fl));
}

static void
exchange_overdue_end(struct flow *fl)
{
	exchange_fail_end(exchange_of(fl), 504, REASON_TOTAL_TIME);
}

static const struct flow_ops exchange_ops = {
	.begin = exchange_begin,
	.ask = exchange_ask,
	.ruled = exchange_ruled,
	.ask_again = exchange_ask_again,
	.connected = exchange_connected,
	.no_upstream = exchange_no_upstream,
	.want = exchange_want,
	.overdue_end = exchange_overdue_end,
};

/* ---- the request's body -------------------------------------------------- */

/* Capture and count a piece; false: over a limit, the exchange ended. */
bool
exchange_request_data(struct exchange *ex, const void *data, size_t len)
{
	uint64_t	 before = ex->ex_request_body;

	if (!flow_send(&ex->ex_flow, len))
		return exchange_fail_end(ex, 413,
		    len > ex->ex_ruling.rl_body - before ?
		    REASON_BODY_LIMIT : REASON_QUOTA);
	report_body(ex, 0, before, data, len);
	return true;
}

void
exchange_request_finish(struct exchange *ex, const struct trailers *tr)
{
	ex->ex_request_end = true;
	ex->ex_origin->finish(ex, tr);
}

/* ---- the answer ---------------------------------------------------------- */

bool
exchange_interim(struct exchange *ex, const struct h1_head *hd)
{
	struct h1_out_response	 os = {
		.os_status = hd->hd_status,
		.os_fields = hd->hd_fields,
		.os_nfields = hd->hd_nfields,
	};

	ex->ex_client->answer(ex, &os);
	/* After a 100 the body may be sent. */
	return hd->hd_status != 100 || ex->ex_client->go(ex);
}

bool
exchange_answer_head(struct exchange *ex, const struct h1_head *hd,
    const struct h1_str *fields)
{
	struct h1_out_response	 os = {
		.os_status = hd->hd_status,
		.os_reason = hd->hd_reason,
		.os_fields = hd->hd_fields,
		.os_nfields = hd->hd_nfields,
		.os_framing = hd->hd_framing,
		.os_length = hd->hd_length,
		.os_upgrade = hd->hd_upgrade,
	};

	ex->ex_status = hd->hd_status;
	report_answer(&ex->ex_flow, ex->ex_status, fields);
	if (hd->hd_framing == H1_UNTIL_CLOSE)
		os.os_framing = H1_CHUNKED;
	if (hd->hd_framing == H1_NONE && hd->hd_has_length)
		os.os_framing = H1_LENGTH;
	if (ex->ex_client->answer(ex, &os) == -1) {
		exchange_up_lost(ex, REASON_STREAM_BROKEN);
		return false;
	}
	ex->ex_answered = true;
	if (hd->hd_status != 101)
		return true;
	ex->ex_upgraded = true;
	/* The end of the request is now the end of the tunnel. */
	ex->ex_request_end = false;
	return ex->ex_client->tunnel(ex);
}

void
exchange_answer_data(struct exchange *ex, const void *data, size_t len)
{
	report_body(ex, 1, ex->ex_answer_body, data, len);
	ex->ex_answer_body += len;
}

void
exchange_answer_end(struct exchange *ex, const struct trailers *tr)
{
	report_closed(ex, NULL);
	ex->ex_state = FLOW_DONE;
	ex->ex_client->finish(ex, tr);
	exchange_leave(ex, ex->ex_request_end && !ex->ex_upgraded);
	exchange_free(ex);
}

/* The client's side can take more. */
bool
exchange_client_room(struct exchange *ex)
{
	return ex->ex_origin == NULL || ex->ex_origin->go(ex);
}

/* ---- what goes wrong ----------------------------------------------------- */

/*
 * A kept connection may be closed by the origin just as we use it.  Then a
 * request that has not begun to be answered and can be repeated is.
 */
static bool
can_repeat(const struct exchange *ex)
{
	return ex->ex_up->up_reused && !ex->ex_retried && !ex->ex_heard &&
	    ex->ex_request_end &&
	    ex->ex_request.hd_framing == H1_NONE &&
	    (ex->ex_request.hd_method == H1_GET ||
	    ex->ex_request.hd_method == H1_HEAD ||
	    ex->ex_request.hd_method == H1_OPTIONS);
}

/* An allowed request fails; the client is told unless a head went out. */
bool
exchange_fail_end(struct exchange *ex, int status, const char *why)
{
	if (!ex->ex_answered)
		return refuse_end(ex, status, why);
	report_closed(ex, why);
	ex->ex_client->cut(ex);
	exchange_end(ex);
	return false;
}

/* Repeat the request once, on another connection; true: still there. */
static bool
exchange_repeat(struct exchange *ex)
{
	ex->ex_origin->tally(ex);
	exchange_leave(ex, false);
	ex->ex_retried = true;
	ex->ex_state = FLOW_CONNECT;
	upstream_want(ex);
	return true;
}

/*
 * The origin's side is gone before the answer was complete.  Repeated or over,
 * the exchange has left that upstream.
 */
bool
exchange_up_lost(struct exchange *ex, const char *why)
{
	return can_repeat(ex) ? exchange_repeat(ex) :
	    exchange_fail_end(ex, 502, why);
}

/*
 * The origin says that it has done nothing about the request (RFC 9113, 8.7),
 * which can be sent again if we still have all of it.  HTTP/1 reads chunks to
 * where the head was.
 */
bool
exchange_up_refused(struct exchange *ex)
{
	if (!ex->ex_retried && !ex->ex_heard && ex->ex_request_body == 0 &&
	    (ex->ex_request.hd_framing != H1_CHUNKED || ex->ex_asks != NULL))
		return exchange_repeat(ex);
	return exchange_fail_end(ex, 502, REASON_STREAM_BROKEN);
}

/* The client's side is gone; conn or stream free themselves. */
void
exchange_client_gone_end(struct exchange *ex, const char *why)
{
	credit_left(&ex->ex_flow, ex);
	/* Left before a verdict: record the attempt. */
	if (ex->ex_id != 0)
		report_closed(ex, ex->ex_state == FLOW_VERDICT ?
		    REASON_CLIENT_LEFT : why);
	exchange_end(ex);
}
