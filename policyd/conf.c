/* SPDX-License-Identifier: ISC */

/*
 * policyd: its slice of the configuration, from the parent, which is
 * trusted: what it would never send is a bad message, and what memory does
 * not hold is the end.  A slice is built aside and changes nothing before it
 * is committed.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policyd.h"

struct slice	*slice_running;
struct slice	*slice_candidate;

/* Before confinement: the time zone's file. */
void
policyd_warm(void)
{
	tzset();
}

void
policyd_begin(uint64_t generation)
{
	struct slice	*sl = child_alloc(sizeof(*sl));

	sl->sl_generation = generation;
	TAILQ_INIT(&sl->sl_policies);
	TAILQ_INIT(&sl->sl_sessions);
	RB_INIT(&sl->sl_deciders);
	slice_candidate = sl;
}

static void
slice_free(struct slice *sl)
{
	struct slice_session	*ss;
	struct policy		*pl;

	if (sl == NULL)
		return;
	while ((pl = TAILQ_FIRST(&sl->sl_policies)) != NULL) {
		TAILQ_REMOVE(&sl->sl_policies, pl, pl_entry);
		policy_free(pl);
	}
	while ((ss = TAILQ_FIRST(&sl->sl_sessions)) != NULL) {
		TAILQ_REMOVE(&sl->sl_sessions, ss, ss_entry);
		free(ss);
	}
	deciders_free(sl);
	free(sl);
}

const struct policy *
slice_policy(const struct slice *sl, const char *name)
{
	const struct policy	*pl;

	TAILQ_FOREACH(pl, &sl->sl_policies, pl_entry)
		if (strcmp(pl->pl_name, name) == 0)
			return pl;
	return NULL;
}

/* The slice may be NULL: then there is no session. */
const struct slice_session *
slice_session(const struct slice *sl, const char *name)
{
	const struct slice_session	*ss;

	if (sl == NULL)
		return NULL;
	TAILQ_FOREACH(ss, &sl->sl_sessions, ss_entry)
		if (strcmp(ss->ss_name, name) == 0)
			return ss;
	return NULL;
}

/*
 * The rules are complete: what a grant or a question has to carry must fit
 * into one, and there is somebody to ask.
 */
static int
rule_ready(struct slice *sl, const struct policy *pl, const struct rule *ru,
    char *why, size_t len)
{
	const struct conditions	*deciders = &ru->ru_conditions[COND_DECIDER];
	const struct condition	*co;
	char			 nets[PATH_LEN + 1];

	if (rule_nets(ru, nets, sizeof(nets)) == -1)
		return child_refuse(why, len, "policy %s: rule %u opens too "
		    "many prefixes", pl->pl_name, ru->ru_index);
	if (!context_rule_fits(ru))
		return child_refuse(why, len, "policy %s: rule %u has more "
		    "than %d bytes of metadata", pl->pl_name, ru->ru_index,
		    METADATA_LEN);
	if ((ru->ru_kind == RULE_DECIDE || ru->ru_kind == RULE_NARROW) &&
	    TAILQ_EMPTY(deciders))
		return child_refuse(why, len, "policy %s: rule %u asks nobody",
		    pl->pl_name, ru->ru_index);
	TAILQ_FOREACH(co, deciders, co_entry)
		if (decider_find(sl, co->co_text) == NULL)
			return child_refuse(why, len, "policy %s: rule %u asks "
			    "%s, which is no decider", pl->pl_name,
			    ru->ru_index, co->co_text);
	return 0;
}

static int
slice_ready(struct slice *sl, char *why, size_t len)
{
	struct policy	*pl;
	uint32_t	 i;

	TAILQ_FOREACH(pl, &sl->sl_policies, pl_entry) {
		for (i = 0; i < pl->pl_nrules; i++)
			if (rule_ready(sl, pl, pl->pl_rules[i], why,
			    len) == -1)
				return -1;
		policy_ready(pl);
	}
	return 0;
}

int
policyd_weigh(char *why, size_t len)
{
	struct slice			*sl = slice_candidate;
	const struct slice_session	*ss;
	const struct session		*se;

	if (channel_recorder == NULL)
		return child_refuse(why, len, "no channel to the recorder");
	if (!sl->sl_limited)
		return child_refuse(why, len, "no limits");
	TAILQ_FOREACH(ss, &sl->sl_sessions, ss_entry) {
		if (slice_policy(sl, ss->ss_policy) == NULL)
			return child_refuse(why, len,
			    "session %s: no policy %s", ss->ss_name,
			    ss->ss_policy);
		if ((se = session_find(ss->ss_name)) != NULL &&
		    se->se_kind == SESSION_RUN)
			return child_refuse(why, len, "session %s: the session "
			    "of a running sandbox has this name", ss->ss_name);
	}
	return slice_ready(sl, why, len);
}

void
policyd_commit(void)
{
	struct slice	*old = slice_running;

	pending_recall();
	slice_running = slice_candidate;
	slice_candidate = NULL;
	slice_free(old);
	session_sweep();
	pending_resume();
}

void
policyd_abort(void)
{
	slice_free(slice_candidate);
	slice_candidate = NULL;
	session_sweep();
}

int
policyd_parent_conf_pending(struct ipc *ip, const union msg *m)
{
	if (slice_candidate->sl_limited)
		return ipc_bad(ip, "limit of questions again");
	slice_candidate->sl_limited = 1;
	slice_candidate->sl_pending_max = m->conf_pending.max;
	return 0;
}

int
policyd_parent_conf_session(struct ipc *ip, const union msg *m)
{
	struct slice_session	*ss;

	if (slice_session(slice_candidate, m->conf_session.session) != NULL)
		return ipc_bad(ip, "session %s again", m->conf_session.session);
	ss = child_alloc(sizeof(*ss));
	strlcpy(ss->ss_name, m->conf_session.session, sizeof(ss->ss_name));
	strlcpy(ss->ss_policy, m->conf_session.policy, sizeof(ss->ss_policy));
	TAILQ_INSERT_TAIL(&slice_candidate->sl_sessions, ss, ss_entry);
	return 0;
}

int
policyd_parent_conf_policy(struct ipc *ip, const union msg *m)
{
	return policy_recv(ip, &m->conf_policy, &slice_candidate->sl_policies);
}

int
policyd_parent_conf_rule(struct ipc *ip, const union msg *m)
{
	return policy_recv_rule(ip, &m->conf_rule,
	    &slice_candidate->sl_policies);
}

int
policyd_parent_conf_cond(struct ipc *ip, const union msg *m)
{
	return policy_recv_cond(ip, &m->conf_cond,
	    &slice_candidate->sl_policies);
}

int
policyd_parent_conf_option(struct ipc *ip, const union msg *m)
{
	return policy_recv_option(ip, &m->conf_option,
	    &slice_candidate->sl_policies);
}

int
policyd_parent_conf_redact(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_redact	*mr = &m->conf_redact;
	struct policy			*pl;

	pl = TAILQ_LAST(&slice_candidate->sl_policies, policies);
	if (pl == NULL || strcmp(pl->pl_name, mr->policy) != 0)
		return ipc_bad(ip, "redaction of policy %s out of order",
		    mr->policy);
	if (mr->kind >= REDACT_KIND_MAX || mr->show > 1)
		return ipc_bad(ip, "redaction of kind %u, show %u", mr->kind,
		    mr->show);
	if (pl->pl_redact == NULL)
		pl->pl_redact = redact_new();
	redact_add(pl->pl_redact, mr->kind, mr->name, mr->show);
	return 0;
}
