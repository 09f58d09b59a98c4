/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: what a request and a raw connection have in common.
 * Both are recorded, judged and connected; how, their flow_ops say.
 */

#include <string.h>

#include "addr.h"
#include "flow.h"
#include "hostname.h"
#include "policy.h"
#include "tlsengine.h"

_Static_assert(HOSTNAME_MAX == HOST_LEN + 1 && ADDR_STRLEN <= HOST_LEN + 1,
    "a place has room for any name, or address in its stead");
static uint64_t	 sent_out;	/* bytes, of the whole session */

void
flow_init(struct flow *fl, const struct flow_ops *ops, struct conn *cn)
{
	memset(fl, 0, offsetof(struct flow, fl_ruling) +
	    offsetof(struct ruling, rl_decider));
	fl->fl_ruling.rl_decider[0] = fl->fl_ruling.rl_reason[0] = '\0';
	fl->fl_place.pc_host[0] = fl->fl_why[0] = '\0';
	fl->fl_ops = ops;
	fl->fl_conn = cn;
}

/* Take the flow off all lists and withdraw its question. */
void
flow_clear(struct flow *fl)
{
	verdict_unask(fl);
	overdue_remove(fl);
}

/* Bytes of bodies that the session may still send. */
static uint64_t
quota_left(void)
{
	if (settings.st_options.po_quota_out == 0)
		return UINT64_MAX;
	return settings.st_options.po_quota_out > sent_out ?
	    settings.st_options.po_quota_out - sent_out : 0;
}

/* Why nothing new can begin, or NULL. */
const char *
flow_obstacle(void)
{
	return credit_held() ? REASON_AUDIT_FULL :
	    quota_left() == 0 ? REASON_QUOTA : NULL;
}

/* Counts what is about to be sent; false if rule or quota lets out less. */
bool
flow_send(struct flow *fl, size_t len)
{
	if (len > fl->fl_ruling.rl_body - fl->fl_request_body ||
	    len > quota_left())
		return false;
	fl->fl_request_body += len;
	sent_out += len;
	return true;
}

/* Why a flow is no longer allowed, if this is not an allow. */
const char *
flow_denial(const struct ruling *rl)
{
	return rl->rl_verdict == VERDICT_DENY && rl->rl_reason[0] != '\0' ?
	    rl->rl_reason : REASON_DEFAULT_DENY;
}

/* The final record of what was not allowed; of a 403, with its rule. */
void
flow_deny(struct flow *fl, int status, const char *why)
{
	struct ruling	*rl = &fl->fl_ruling;

	if (rl->rl_verdict != VERDICT_DENY || status != 403)
		rl->rl_rule = RULE_NONE;
	rl->rl_verdict = VERDICT_DENY;
	if (why != rl->rl_reason)
		strlcpy(rl->rl_reason, why, sizeof(rl->rl_reason));
	report_verdict(fl);
}
