/* SPDX-License-Identifier: ISC */

/*
 * policyd: questions and verdicts.  An engine reads what an agent sends and
 * may have fallen to it, so a question is checked to the last byte, and one
 * that a sound engine would not ask ends the engine.  What it asks about is
 * decided by the rules of its own session, whatever it says.
 */

#include <string.h>

#include "canon.h"
#include "hostname.h"
#include "policyd.h"

static int
ask_check(struct ipc *ip, const struct msg_ask *ma)
{
	const struct session	*se = ip->ip_arg;
	const char		*why;

	if (se->se_state != SESSION_RUNNING)
		return ipc_bad(ip, "before hello");
	if (ma->about >= QUESTION_MAX || ma->scheme >= URL_SCHEME_MAX ||
	    (ma->about == ABOUT_CONNECTION) != (ma->scheme == URL_TCP))
		return ipc_bad(ip, "about %u, scheme %u", ma->about,
		    ma->scheme);
	if (ma->port == 0)
		return ipc_bad(ip, "port 0");
	if (ma->about == ABOUT_CONNECTION) {
		if (!hostname_is_canon(ma->host))
			return ipc_bad(ip, "a host that is not canonical");
		if (ma->method[0] != '\0' || ma->path[0] != '\0')
			return ipc_bad(ip, "a connection with a method or "
			    "path");
		return 0;
	}
	if ((why = canon_fault(ma->host, ma->method, ma->path)) != NULL)
		return ipc_bad(ip, "%s", why);
	return 0;
}

static void
verdict_deny(struct policy_verdict *pv, const char *reason)
{
	*pv = (struct policy_verdict){ .pv_verdict = VERDICT_DENY,
	    .pv_scope = VERDICT_ONCE, .pv_reason = reason };
}

static void
verdict_send(struct ipc *ip, uint32_t id, const struct policy_verdict *pv,
    const struct decision *dn, uint64_t waited)
{
	const struct rule	*ru = pv->pv_rule;
	const char		*reason = pv->pv_reason;

	if (pv->pv_verdict == VERDICT_ALLOW && dn != NULL)
		reason = dn->dn_reason;
	ipc_send(ip, -1, VERDICT, verdict, .id = id,
	    .verdict = pv->pv_verdict, .scope = pv->pv_scope,
	    .rule_kind = ru != NULL ? ru->ru_kind :
	    pv->pv_verdict == VERDICT_DENY ? RULE_DENY : RULE_ALLOW,
	    .rule = ru != NULL ? ru->ru_index : RULE_NONE,
	    .generation = slice_running != NULL ?
	    slice_running->sl_generation : 0,
	    .body = pv->pv_body, .reason = reason,
	    .decider = dn != NULL ? dn->dn_decider : "",
	    .cached = dn != NULL && dn->dn_cached,
	    .waited_ms = waited > UINT32_MAX ? UINT32_MAX : waited);
}

/* That the prefixes fit was seen to before the rules came into force. */
static void
grant_send(const struct ipc *ip, uint32_t dial, const struct subject *sj,
    const struct rule *ru)
{
	char	 nets[PATH_LEN + 1] = "";

	if (ru != NULL && rule_nets(ru, nets, sizeof(nets)) == -1)
		fatalx("%s: rule %u", __func__, ru->ru_index);
	ipc_send(channel_dialer, -1, GRANT, grant,
	    .instance = ip->ip_instance, .dial = dial, .port = sj->sj_port,
	    .to_private = ru != NULL && ru->ru_to_private,
	    .host = sj->sj_host, .nets = nets);
}

/*
 * The verdict goes first, so that the connection does not come before it.  A
 * dialer that does not keep up is given no more: it is the engines that fill
 * its queue, and what overflows it would end the daemon.
 */
void
verdict_give(const struct session *se, uint32_t id, uint32_t dial,
    const struct subject *sj, struct policy_verdict *pv,
    const struct decision *dn, uint64_t waited)
{
	if (pv->pv_verdict != VERDICT_ALLOW)
		dial = 0;
	if (dial != 0 &&
	    (channel_dialer == NULL || channel_dialer->ip_congested)) {
		verdict_deny(pv, REASON_UPSTREAM_UNREACHABLE
		    ": too many connections are being made");
		dial = 0;
	}
	verdict_send(se->se_engine, id, pv, dn, waited);
	if (dial != 0)
		grant_send(se->se_engine, dial, sj, pv->pv_rule);
}

void
verdict_evaluate(const struct session *se, const struct subject *sj,
    struct policy_verdict *pv)
{
	struct policy_request	 pr;

	pr.pr_host = sj->sj_host;
	pr.pr_port = sj->sj_port;
	pr.pr_scheme = sj->sj_scheme;
	pr.pr_method = sj->sj_method;
	pr.pr_path = sj->sj_path;
	if (se->se_rules != NULL)
		policy_evaluate(se->se_rules, &pr, pv);
	else
		verdict_deny(pv, REASON_DEFAULT_DENY);
}

int
policyd_engine_ask(struct ipc *ip, const union msg *m)
{
	struct session		*se = ip->ip_arg;
	const struct msg_ask	*ma = &m->ask;
	struct policy_verdict	 pv;
	const struct subject	 sj = {
		.sj_scheme = ma->scheme, .sj_port = ma->port,
		.sj_length = ma->length, .sj_host = ma->host,
		.sj_method = ma->method, .sj_path = ma->path
	};

	if (ask_check(ip, ma) == -1)
		return -1;
	if (ma->again != 0 && ma->dial != 0 && allowance_use(se, ma, &sj))
		return 0;
	verdict_evaluate(se, &sj, &pv);
	if (pv.pv_asks > 0)
		pending_ask(se, &sj, ma->id, ma->dial, &pv);
	else
		verdict_give(se, ma->id, ma->dial, &sj, &pv, NULL, 0);
	return 0;
}

/* The request is gone.  Its verdict may just have passed this message. */
int
policyd_engine_ask_drop(struct ipc *ip, const union msg *m)
{
	pending_left(ip->ip_arg, m->cookie.cookie);
	return 0;
}
