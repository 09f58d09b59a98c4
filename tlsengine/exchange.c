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
 * tlsengine runs this: one request and its answer, between a client's side
 * and an origin's side that may speak different versions of HTTP.  Here it is
 * recorded, put to policyd, given an upstream and carried out.  Whatever goes
 * wrong, the client gets an answer that says so if one is still possible, and
 * there is exactly one final record (promise P6).
 */

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "policy.h"
#include "tlsengine.h"

static struct blocks	 exchanges = {
	.bk_size = sizeof(struct exchange), .bk_keep = 256
};
static uint64_t	 sent_out;	/* bytes of all requests' bodies */

struct exchange *
exchange_new(const struct client_ops *client, struct conn *cn)
{
	struct exchange	*ex;

	if ((ex = blocks_get(&exchanges)) == NULL)
		return NULL;
	memset(ex, 0, offsetof(struct exchange, ex_ruling) +
	    offsetof(struct ruling, rl_decider));
	ex->ex_ruling.rl_decider[0] = ex->ex_ruling.rl_reason[0] = '\0';
	ex->ex_place.pc_host[0] = '\0';
	ex->ex_method[0] = ex->ex_key[0] = ex->ex_why[0] = '\0';
	ex->ex_path = ex->ex_path_room;
	ex->ex_path[0] = '\0';
	ex->ex_client = client;
	ex->ex_conn = cn;
	return ex;
}

void
exchange_free(struct exchange *ex)
{
	if (ex->ex_raw && ex->ex_state == EX_VERDICT && ex->ex_id == 0)
		credit_return();
	verdict_unask(ex);
	overdue_remove(ex);
	if (ex->ex_path != ex->ex_path_room)
		free(ex->ex_path);
	EVP_MD_CTX_free(ex->ex_hash[0]);
	EVP_MD_CTX_free(ex->ex_hash[1]);
	blocks_put(&exchanges, ex);
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

/* What is evaluated is what is sent: one canonical path. */
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
	/* A body may take the place of the head long before the last verdict. */
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

/* The origin's side, if there is one, has nothing more to do with it. */
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
		upstream_unwait(up, ex);
}

/* It is over: nobody on either side knows it any more. */
void
exchange_end(struct exchange *ex)
{
	exchange_leave(ex, false);
	exchange_free(ex);
}

/* ---- beginning ----------------------------------------------------------- */

/* What the session may still send in bodies. */
static uint64_t
quota_left(void)
{
	if (settings.st_quota_out == 0)
		return UINT64_MAX;
	return settings.st_quota_out > sent_out ?
	    settings.st_quota_out - sent_out : 0;
}

/* Why nothing new can begin, or NULL. */
const char *
exchange_obstacle(void)
{
	return credit_held() ? "audit_full" : quota_left() == 0 ? "quota" :
	    NULL;
}

static void	 exchange_allowed(struct exchange *);

/* A connection that turns out to be looked into has no record of its own. */
static void
raw_begin(struct exchange *ex)
{
	const struct ruling	*known = verdict_known(&ex->ex_place);

	ex->ex_state = EX_VERDICT;
	if (known != NULL)
		raw_ruled(ex, known);
	else
		verdict_ask(ex, upstream_dial(ex));
}

/* It has a credit. */
void
exchange_begin(struct exchange *ex)
{
	const struct ruling	*known = NULL;
	const char		*why = ex->ex_mismatch != NULL ?
	    ex->ex_mismatch : exchange_obstacle();

	if (ex->ex_raw) {
		raw_begin(ex);
		return;
	}
	if (why == NULL)
		known = verdict_known(&ex->ex_place);
	ex->ex_id = report_opened(ex, known);
	if (why != NULL) {
		refuse(ex, ex->ex_mismatch != NULL ? 421 :
		    credit_held() ? 503 : 403, why);
		return;
	}
	overdue_add(ex);
	ex->ex_state = EX_VERDICT;
	if (known != NULL) {
		ex->ex_ruling = *known;
		if (known->rl_verdict == VERDICT_ALLOW)
			exchange_allowed(ex);
		else
			refuse(ex, 403, known->rl_reason);
		return;
	}
	verdict_ask(ex, upstream_kept(ex) ? 0 : upstream_dial(ex));
}

/* Every request first spends a credit: no record, no request. */
void
exchange_open(struct exchange *ex, const char *mismatch)
{
	ex->ex_state = EX_CREDIT;
	ex->ex_mismatch = mismatch;
	credit_await(ex);
}

/* ---- verdict and connection ---------------------------------------------- */

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
exchange_ask_again(struct exchange *ex)
{
	if (ex->ex_state == EX_FORWARD) {
		verdict_ask(ex, 0);
		return;
	}
	if (ex->ex_state != EX_VERDICT && ex->ex_state != EX_CONNECT)
		return;
	exchange_leave(ex, false);
	if (ex->ex_raw)
		/* A hello has to wait for the new verdict. */
		conn_wait(ex->ex_conn);
	ex->ex_why[0] = '\0';
	verdict_ask(ex, upstream_dial(ex));
}

static void
exchange_allowed(struct exchange *ex)
{
	struct upstream	*up;

	ex->ex_state = EX_CONNECT;
	if (body_too_long(ex))
		refuse(ex, 413, "quota");
	else if (ex->ex_why[0] != '\0')
		exchange_no_upstream(ex, ex->ex_why);
	else if (ex->ex_up == NULL) {
		if ((up = upstream_take(ex)) != NULL)
			exchange_connected(ex, up);
		else
			upstream_want(ex);
	} else if (ex->ex_up->up_state == UP_READY)
		upstream_begin(ex->ex_up);
	/* Else it was asked for together with the verdict, and will come. */
}

/* Its first verdict counts now. */
void
exchange_decided(struct exchange *ex)
{
	if (ex->ex_ruling.rl_verdict == VERDICT_ALLOW) {
		report_verdict(ex);
		exchange_allowed(ex);
	} else
		refuse(ex, 403, ex->ex_ruling.rl_reason);
}

/* What was not looked into at its beginning cannot be any more. */
static bool
still_allowed(const struct exchange *ex, const struct ruling *rl)
{
	return rl->rl_verdict == VERDICT_ALLOW && (!ex->ex_raw ||
	    rl->rl_rule_kind != RULE_PASS ||
	    ex->ex_ruling.rl_rule_kind == RULE_PASS);
}

void
exchange_ruled(struct exchange *ex, const struct ruling *rl)
{
	const char	*why = rl->rl_verdict == VERDICT_DENY &&
	    rl->rl_reason[0] != '\0' ? rl->rl_reason : "default_deny";
	bool		 fine = still_allowed(ex, rl);

	if (ex->ex_state == EX_FORWARD) {
		/* Under way when the rules changed: it goes on, or is cut. */
		ex->ex_ruling.rl_body = rl->rl_body;
		if (!fine)
			exchange_fail(ex, 403, why);
		else if (ex->ex_request_body > rl->rl_body)
			exchange_fail(ex, 413, "quota");
		return;
	}
	if (ex->ex_state == EX_VERDICT && ex->ex_raw) {
		raw_ruled(ex, rl);
		return;
	}
	ex->ex_ruling = *rl;
	if (ex->ex_state == EX_VERDICT)
		exchange_decided(ex);
	/* A second one is for a connection, and the dialer has that grant. */
	else if (!fine)
		refuse(ex, 403, why);
	else if (body_too_long(ex))
		refuse(ex, 413, "quota");
}

/* As it goes to the origin: hop by hop nothing is copied. */
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

	if (ex->ex_place.pc_port !=
	    (ex->ex_place.pc_scheme == URL_HTTPS ? 443 : 80))
		or.or_port = ex->ex_place.pc_port;
	return ex->ex_origin->request(ex, &or);
}

/* An upstream is ready for our head. */
void
exchange_connected(struct exchange *ex, struct upstream *up)
{
	ex->ex_up = up;
	ex->ex_origin = up->up_ops;
	ex->ex_state = EX_FORWARD;
	if (ex->ex_raw)
		raw_connected(ex);
	else if (send_head(ex) == -1)
		exchange_fail(ex, 400, "bad_request");
	else if (ex->ex_request_end)
		/* It is repeated, and had no body. */
		ex->ex_origin->end(ex, NULL);
	else if (ex->ex_request.hd_expect_continue)
		ex->ex_client->expect(ex);
	else
		ex->ex_client->go(ex);
}

/* why is one of the stable reasons, with details behind a colon. */
void
exchange_no_upstream(struct exchange *ex, const char *why)
{
	if (ex->ex_state == EX_VERDICT)
		strlcpy(ex->ex_why, why, sizeof(ex->ex_why));
	else
		refuse(ex, strncmp(why, "address_refused",
		    strlen("address_refused")) == 0 ? 403 : 502, why);
}

/* ---- the request's body -------------------------------------------------- */

/* About to be sent: captured and counted, or -1 if the rule lets out less. */
int
exchange_request_data(struct exchange *ex, const void *data, size_t len)
{
	if (len > ex->ex_ruling.rl_body - ex->ex_request_body ||
	    len > quota_left()) {
		exchange_fail(ex, 413, "quota");
		return -1;
	}
	report_body(ex, 0, ex->ex_request_body, data, len);
	ex->ex_request_body += len;
	sent_out += len;
	return 0;
}

void
exchange_request_end(struct exchange *ex, const struct trailers *tr)
{
	ex->ex_request_end = true;
	ex->ex_origin->end(ex, tr);
}

/* ---- the answer ---------------------------------------------------------- */

void
exchange_interim(struct exchange *ex, const struct h1_head *hd)
{
	struct h1_out_response	 os = {
		.os_status = hd->hd_status,
		.os_fields = hd->hd_fields,
		.os_nfields = hd->hd_nfields,
	};

	ex->ex_client->answer(ex, &os);
	/* The origin wants the body that its 100 was waited for with. */
	if (hd->hd_status == 100)
		ex->ex_client->go(ex);
}

void
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
	report_answer(ex, fields);
	if (hd->hd_framing == H1_UNTIL_CLOSE)
		os.os_framing = H1_CHUNKED;
	if (hd->hd_framing == H1_NONE && hd->hd_has_length)
		os.os_framing = H1_LENGTH;
	if (ex->ex_client->answer(ex, &os) == -1) {
		exchange_up_lost(ex, "stream_broken");
		return;
	}
	ex->ex_answered = true;
	if (hd->hd_status == 101) {
		ex->ex_upgraded = true;
		/* What follows the head is another matter. */
		ex->ex_request_end = false;
		ex->ex_client->tunnel(ex);
	}
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
	if (ex->ex_raw) {
		/* Half of it: what the client sends may still go on. */
		ex->ex_answer_end = true;
		ex->ex_client->end(ex, tr);
		return;
	}
	report_closed(ex, NULL);
	ex->ex_state = EX_DONE;
	ex->ex_client->end(ex, tr);
	exchange_leave(ex, ex->ex_request_end && !ex->ex_upgraded);
	exchange_free(ex);
}

/* The client's side can take more. */
void
exchange_client_room(struct exchange *ex)
{
	if (ex->ex_origin != NULL)
		ex->ex_origin->go(ex);
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

/* The end of what was allowed; told to the client if it can still be told. */
void
exchange_fail(struct exchange *ex, int status, const char *why)
{
	if (!ex->ex_answered) {
		refuse(ex, status, why);
		return;
	}
	report_closed(ex, why);
	ex->ex_client->cut(ex);
	exchange_end(ex);
}

/* Over another connection, and once. */
static void
exchange_repeat(struct exchange *ex)
{
	ex->ex_origin->tally(ex);
	exchange_leave(ex, false);
	ex->ex_retried = true;
	ex->ex_state = EX_CONNECT;
	upstream_want(ex);
}

/* The origin's side is gone before the answer was complete. */
void
exchange_up_lost(struct exchange *ex, const char *why)
{
	if (ex->ex_answer_end || raw_client_ended(ex))
		/* It had closed both ways, as what we sent it has shown. */
		raw_over(ex);
	else if (can_repeat(ex))
		exchange_repeat(ex);
	else
		exchange_fail(ex, 502, why);
}

/*
 * The origin says that it has done nothing about the request (RFC 9113, 8.7),
 * which can be sent again if we still have all of it.  HTTP/1 reads chunks to
 * where the head was.
 */
void
exchange_up_refused(struct exchange *ex)
{
	if (!ex->ex_retried && !ex->ex_heard && ex->ex_request_body == 0 &&
	    (ex->ex_request.hd_framing != H1_CHUNKED || ex->ex_asks != NULL))
		exchange_repeat(ex);
	else
		exchange_fail(ex, 502, "stream_broken");
}

/* The client's side is gone; it frees itself. */
void
exchange_client_gone(struct exchange *ex, const char *why)
{
	credit_left(ex);
	if (ex->ex_raw && ex->ex_id == 0 && ex->ex_state == EX_VERDICT)
		raw_record(ex);
	/* Without a verdict it was not denied, but it was tried. */
	if (ex->ex_id != 0)
		report_closed(ex, ex->ex_state == EX_VERDICT ? CLIENT_LEFT :
		    raw_nothing_left(ex) ? NULL : why);
	exchange_end(ex);
}
