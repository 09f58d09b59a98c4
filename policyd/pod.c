/* SPDX-License-Identifier: ISC */

/*
 * policyd: questions of gates in pods.  A gate judges by the rules that it was
 * given, and asks us only what a decider has to say.  podd has read its lines,
 * and a hostile gate may have asked: no decider is asked but one of the
 * session's own policy, with what we know of the session.
 */

#include <string.h>

#include "hostname.h"
#include "policyd.h"

static const struct condition *
rule_decider(const struct rule *ru, const char *decider)
{
	const struct condition	*co;

	TAILQ_FOREACH(co, &ru->ru_conditions[COND_DECIDER], co_entry)
		if (strcmp(co->co_text, decider) == 0)
			return co;
	return NULL;
}

/* A decider of the session's rule of that number, and the rule; or NULL. */
static const struct condition *
pod_decider(const struct session *se, uint32_t index, const char *decider,
    const struct rule **ru)
{
	uint32_t	 i;

	for (i = 0; se->se_rules != NULL && i < se->se_rules->pl_nrules; i++) {
		*ru = se->se_rules->pl_rules[i];
		if ((*ru)->ru_index == index)
			return rule_decider(*ru, decider);
	}
	return NULL;
}

static int
policy_has(const struct session *se, const char *decider)
{
	uint32_t	 i;

	for (i = 0; i < se->se_rules->pl_nrules; i++)
		if (rule_decider(se->se_rules->pl_rules[i], decider) != NULL)
			return 1;
	return 0;
}

static void
refuse(struct ipc *ip, const struct msg_pod_question *mq, int hostile,
    const char *why)
{
	ipc_send(ip, -1, POD_QUESTION_ANSWER, pod_question_answer,
	    .channel = mq->channel, .id = mq->id, .result = ANSWER_ERROR,
	    .hostile = hostile, .reason = why);
}

/* The fault of a question that no gate of ours asks; a path may be cut. */
static const char *
fault_of(const struct msg_pod_question *mq)
{
	if (!hostname_is_canon(mq->host))
		return "it asks about a host that is not canonical";
	if (mq->scheme == URL_TCP)
		return *mq->method != '\0' || *mq->path != '\0' ?
		    "it asks about a connection with a method" : NULL;
	if (*mq->method == '\0' || (*mq->path != '/' &&
	    strcmp(mq->path, "*") != 0))
		return "it asks about a request without a path";
	return NULL;
}

/*
 * After a reload the rules may be others than the gate's, which has its own
 * until it is given the new ones.
 */
static void
refuse_decider(struct ipc *ip, const struct msg_pod_question *mq,
    const struct session *se)
{
	if (se->se_generation == slice_running->sl_generation &&
	    !policy_has(se, mq->decider))
		refuse(ip, mq, 1,
		    "it asks a decider that its policy does not have");
	else
		refuse(ip, mq, 0, "the policy has no such rule any more");
}

/* ---- what becomes of them ---- */

/* A gate in a pod hears what was said; what that means is its own affair. */
void
pending_pod_told(struct pending *pe, enum answer_result result,
    const char *text, int keep)
{
	if (!pe->pe_left)
		ipc_send(channel_podd, -1, POD_QUESTION_ANSWER,
		    pod_question_answer, .channel = pe->pe_channel,
		    .id = pe->pe_pod_id, .result = result, .keep = keep,
		    .reason = text);
	pending_end(pe);
}

/*
 * One decider of one rule: the gate walks its rules itself, keeps answers and
 * asks the next one.
 */
static void
pending_from_pod(struct session *se, const struct subject *sj,
    const struct rule *ru, const struct condition *co,
    const struct msg_pod_question *mq)
{
	struct pending	*pe = pending_new(se, sj);

	pe->pe_channel = mq->channel;
	pe->pe_pod_id = mq->id;
	pe->pe_pod_ms = mq->timeout_ms;
	pe->pe_rule = mq->rule;
	strlcpy(pe->pe_asked, mq->decider, sizeof(pe->pe_asked));
	pe->pe_verdict.pv_asking[0] = ru;
	pe->pe_verdict.pv_asks = 1;
	pe->pe_named = co;
	pe->pe_since = pe->pe_began;
	if (pending_too_many(se))
		pending_failed(pe, ANSWER_ERROR, "too many questions");
	else
		pending_put(pe);
}

/* As pending_left(): a decider that is at work on it goes on. */
static void
pending_pod_left(struct session *se, uint32_t channel, uint64_t id)
{
	struct pending	*pe;

	TAILQ_FOREACH(pe, &se->se_pendings, pe_sibling)
		if (pe->pe_channel == channel && pe->pe_pod_id == id &&
		    !pe->pe_left)
			break;
	if (pe == NULL)
		return;
	if (pe->pe_state == PENDING_ASKED)
		pe->pe_left = 1;
	else
		pending_end(pe);
}

/* The rule of that number may be another one now. */
void
pending_pod_renew(struct pending *pe)
{
	pe->pe_named = pod_decider(pe->pe_session, pe->pe_rule, pe->pe_asked,
	    &pe->pe_verdict.pv_asking[0]);
	if (pe->pe_named == NULL)
		pending_pod_told(pe, ANSWER_ERROR, "the policy has changed",
		    0);
	else
		pending_put(pe);
}

/* ---- from podd ---- */

int
policyd_podd_question(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_question	*mq = &m->pod_question;
	const struct subject		 sj = {
		.sj_scheme = mq->scheme, .sj_port = mq->port,
		.sj_length = mq->length, .sj_host = mq->host,
		.sj_method = mq->method, .sj_path = mq->path,
		.sj_cut = mq->truncated, .sj_hidden = mq->redacted
	};
	const struct condition		*co;
	const struct rule		*ru;
	struct session			*se = session_find(mq->session);
	const char			*why;

	if (mq->channel == 0 || mq->scheme >= URL_SCHEME_MAX ||
	    mq->port == 0 || mq->truncated > 1 || mq->timeout_ms == 0)
		return ipc_bad(ip, "question of a pod: scheme %u, port %u",
		    mq->scheme, mq->port);
	/* The session may have ended meanwhile. */
	if (se == NULL || se->se_kind != SESSION_RUN ||
	    se->se_engine != NULL || se->se_state != SESSION_RUNNING ||
	    se->se_rules == NULL)
		refuse(ip, mq, 0, "the session has ended");
	else if ((why = fault_of(mq)) != NULL)
		refuse(ip, mq, 1, why);
	else if ((co = pod_decider(se, mq->rule, mq->decider,
	    &ru)) == NULL)
		refuse_decider(ip, mq, se);
	else
		pending_from_pod(se, &sj, ru, co, mq);
	return 0;
}

int
policyd_podd_question_drop(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_question_drop	*md = &m->pod_question_drop;
	struct session				*se = session_find(md->session);

	(void)ip;
	if (se != NULL)
		pending_pod_left(se, md->channel, md->id);
	return 0;
}
