/* SPDX-License-Identifier: ISC */

/*
 * A policy on its way from the parent to whoever decides by it.  Each message
 * has its encoder and its decoder here: CONF_POLICY, then CONF_OPTION of it,
 * then for each rule CONF_RULE, CONF_OPTION and CONF_COND.  The receiver trusts
 * the parent; what the parent would never send is a bad message.
 */

#include <string.h>

#include "ipc.h"
#include "policy.h"

static void
rule_send(struct ipc *ip, struct rule *ru)
{
	const struct condition	*co;
	unsigned int		 kind;

	ipc_send(ip, -1, CONF_RULE, conf_rule, .index = ru->ru_index,
	    .kind = ru->ru_kind, .tcp = ru->ru_tcp);
	option_send(ip, OPTION_OF_RULE, ru);
	for (kind = 0; kind < COND_KIND_MAX; kind++)
		TAILQ_FOREACH(co, &ru->ru_conditions[kind], co_entry)
			ipc_send(ip, -1, CONF_COND, conf_cond, .kind = kind,
			    .first = co->co_first, .last = co->co_last,
			    .text = co->co_text, .value = co->co_value);
}

void
policy_send(struct ipc *ip, struct policy *pl)
{
	uint32_t	 i;

	ipc_send(ip, -1, CONF_POLICY, conf_policy, .name = pl->pl_name,
	    .allow = pl->pl_allow);
	option_send(ip, OPTION_OF_POLICY, &pl->pl_options);
	for (i = 0; i < pl->pl_nrules; i++)
		rule_send(ip, pl->pl_rules[i]);
}

int
policy_recv(struct ipc *ip, const struct msg_conf_policy *mp,
    struct policies *list)
{
	struct policy	*pl;

	TAILQ_FOREACH(pl, list, pl_entry)
		if (strcmp(pl->pl_name, mp->name) == 0)
			return ipc_bad(ip, "policy %s again", mp->name);
	if (mp->allow > 1)
		return ipc_bad(ip, "policy %s: allow %u", mp->name, mp->allow);
	pl = policy_new(mp->name);
	pl->pl_allow = mp->allow;
	TAILQ_INSERT_TAIL(list, pl, pl_entry);
	return 0;
}

int
policy_recv_rule(struct ipc *ip, const struct msg_conf_rule *mr,
    struct policies *list)
{
	struct policy	*pl = TAILQ_LAST(list, policies);

	if (pl == NULL || mr->index != pl->pl_nrules)
		return ipc_bad(ip, "rule %u out of order", mr->index);
	if (mr->kind >= RULE_KIND_MAX || mr->tcp > 1)
		return ipc_bad(ip, "rule %u: kind %u, tcp %u", mr->index,
		    mr->kind, mr->tcp);
	policy_add(pl, mr->kind)->ru_tcp = mr->tcp;
	return 0;
}

/* The rule that was sent last, or NULL. */
static struct rule *
last_rule(const struct policies *list)
{
	const struct policy	*pl = TAILQ_LAST(list, policies);

	return pl == NULL || pl->pl_nrules == 0 ? NULL :
	    pl->pl_rules[pl->pl_nrules - 1];
}

int
policy_recv_cond(struct ipc *ip, const struct msg_conf_cond *mc,
    struct policies *list)
{
	struct rule	*ru = last_rule(list);

	if (ru == NULL)
		return ipc_bad(ip, "condition without a rule");
	if (mc->kind >= COND_KIND_MAX || mc->first > mc->last)
		return ipc_bad(ip, "condition of kind %u, from %u to %u",
		    mc->kind, mc->first, mc->last);
	if (mc->kind == COND_PORT)
		rule_add_ports(ru, mc->first, mc->last);
	else
		rule_add(ru, mc->kind, mc->text, mc->value);
	return 0;
}

int
policy_recv_option(struct ipc *ip, const struct msg_conf_option *mo,
    struct policies *list)
{
	struct policy	*pl = TAILQ_LAST(list, policies);
	struct rule	*ru = last_rule(list);

	if (mo->of == OPTION_OF_POLICY && pl != NULL && ru == NULL)
		return option_recv(ip, mo, &pl->pl_options);
	if (mo->of == OPTION_OF_RULE && ru != NULL)
		return option_recv(ip, mo, ru);
	return ipc_bad(ip, "option of object %u out of order", mo->of);
}
