/* SPDX-License-Identifier: ISC */

/*
 * policyd: requests that wait for deciders.  Every way out of here but an
 * answer that allows is a denial.  Agents choose how many questions there are
 * and deciders how long they take, so there are bounds on both: what is too
 * much is denied, and no session has more than its share.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "policyd.h"
#include "utf8.h"

#define SESSION_SHARE	4	/* one part of so many is a session's */

struct pendingtree	 pendings = RB_INITIALIZER(&pendings);
uint32_t		 pending_count;

static void	 pending_stage(struct pending *);
static void	 pending_on_timer(evutil_socket_t, short, void *);

static int
pending_cmp(const struct pending *a, const struct pending *b)
{
	return a->pe_id < b->pe_id ? -1 : a->pe_id > b->pe_id;
}

RB_GENERATE(pendingtree, pending, pe_entry, pending_cmp);

/* Would an answer to the one be kept as one to the other? */
static int
leader_cmp(const struct pending *a, const struct pending *b)
{
	const struct rule	*one = pending_rule(a), *two = pending_rule(b);

	if (one->ru_index != two->ru_index)
		return one->ru_index < two->ru_index ? -1 : 1;
	return subject_cmp(&a->pe_subject, &b->pe_subject, one->ru_cache);
}

RB_PROTOTYPE(leaders, pending, pe_leads, leader_cmp);
RB_GENERATE(leaders, pending, pe_leads, leader_cmp);

/* The rule whose deciders are to answer now. */
const struct rule *
pending_rule(const struct pending *pe)
{
	return pe->pe_verdict.pv_asking[pe->pe_stage];
}

struct pending *
pending_find(uint32_t id)
{
	struct pending	 key = { .pe_id = id };

	return RB_FIND(pendingtree, &pendings, &key);
}

/* A new one for each decider: a late answer of one is not the next one's. */
static void
pending_number(struct pending *pe)
{
	static uint32_t	 last;

	do
		last = (last + 1) & ~INQUIRY_BIT;
	while (last == 0 || pending_find(last) != NULL);
	pe->pe_id = last;
	RB_INSERT(pendingtree, &pendings, pe);
}

static void
pending_unnumber(struct pending *pe)
{
	if (pe->pe_id == 0)
		return;
	RB_REMOVE(pendingtree, &pendings, pe);
	pe->pe_id = 0;
	evtimer_del(&pe->pe_timer);
	if (pe->pe_state == PENDING_OPERATOR)
		pending_changed();
}

/* Take the question back from whoever has it; its followers are freed. */
static void
pending_unask(struct pending *pe, struct pendings *freed)
{
	struct pending	*other;

	if (pe->pe_state == PENDING_FOLLOWS)
		TAILQ_REMOVE(&pe->pe_leader->pe_followers, pe, pe_queued);
	decider_leave(pe);
	pending_unnumber(pe);
	pe->pe_state = PENDING_NEW;
	pe->pe_leader = NULL;
	if (!pe->pe_leading)
		return;
	RB_REMOVE(leaders, &pe->pe_session->se_leaders, pe);
	pe->pe_leading = 0;
	TAILQ_FOREACH(other, &pe->pe_followers, pe_queued) {
		other->pe_state = PENDING_NEW;
		other->pe_leader = NULL;
	}
	TAILQ_CONCAT(freed, &pe->pe_followers, pe_queued);
}

/* Freed followers find a kept answer, or ask for themselves. */
static void
pending_go_on(struct pendings *freed)
{
	struct pending	*pe;

	while ((pe = TAILQ_FIRST(freed)) != NULL) {
		TAILQ_REMOVE(freed, pe, pe_queued);
		pending_stage(pe);
	}
}

static void
pending_free(struct pending *pe)
{
	TAILQ_REMOVE(&pe->pe_session->se_pendings, pe, pe_sibling);
	pe->pe_session->se_npendings--;
	pending_count--;
	evtimer_del(&pe->pe_timer);
	subject_free(&pe->pe_subject);
	free(pe);
}

struct pending *
pending_new(struct session *se, const struct subject *sj)
{
	struct pending	*pe;

	if ((pe = calloc(1, sizeof(*pe))) == NULL)
		fatal("%s", __func__);
	pe->pe_session = se;
	pe->pe_began = clock_ms();
	subject_copy(&pe->pe_subject, sj);
	TAILQ_INIT(&pe->pe_followers);
	evtimer_assign(&pe->pe_timer, child_base, pending_on_timer, pe);
	TAILQ_INSERT_TAIL(&se->se_pendings, pe, pe_sibling);
	se->se_npendings++;
	pending_count++;
	return pe;
}

/* End a request without a verdict. */
void
pending_end(struct pending *pe)
{
	struct pendings	 freed = TAILQ_HEAD_INITIALIZER(freed);

	pending_unask(pe, &freed);
	pending_free(pe);
	pending_go_on(&freed);
}

static void
pending_tell(struct pending *pe)
{
	struct policy_verdict	 pv = pe->pe_verdict;
	uint64_t		 waited = clock_ms() - pe->pe_began;

	if (pe->pe_decision.dn_allow) {
		pv.pv_verdict = VERDICT_ALLOW;
		pv.pv_rule = pv.pv_opens;
		pv.pv_reason = "";
		if (pe->pe_dial == 0)
			allowance_keep(pe->pe_session, pe->pe_ask,
			    &pe->pe_subject, &pv, &pe->pe_decision, waited);
	} else {
		pv.pv_rule = pending_rule(pe);
		pv.pv_body = 0;
		pv.pv_reason = pe->pe_decision.dn_reason;
	}
	verdict_give(pe->pe_session, pe->pe_ask, pe->pe_dial, &pe->pe_subject,
	    &pv, &pe->pe_decision, waited);
}

/*
 * The engine hears the last word.  For a request that is gone there is none:
 * an allow would have a connection made for nobody.
 */
static void
pending_settle(struct pending *pe)
{
	if (!pe->pe_left)
		pending_tell(pe);
	pending_end(pe);
}

/* A decider's denial, unlike a failure, counts for `pause'. */
static void
pending_denied(struct pending *pe)
{
	struct session			*se = pe->pe_session;
	const struct policy_options	*po = &se->se_rules->pl_options;

	if (storm_denied(&se->se_storm, se->se_rules, clock_ms()))
		log_info("session %s: %u denials, no more questions for %llu "
		    "ms", se->se_name, po->po_pause_denials,
		    (unsigned long long)po->po_pause_ms);
	pending_settle(pe);
}

/* In a header field, a record and a terminal: no controls, not too long. */
static void
pending_say(struct pending *pe, int allow, const char *text)
{
	struct decision	*dn = &pe->pe_decision;
	char		*p;

	dn->dn_allow = allow;
	dn->dn_cached = 0;
	strlcpy(dn->dn_decider, pe->pe_named->co_text,
	    sizeof(dn->dn_decider));
	snprintf(dn->dn_reason, sizeof(dn->dn_reason), REASON_DECIDER ": %.*s",
	    (int)utf8_cut(text, strlen(text), REASON_TEXT), text);
	for (p = dn->dn_reason; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
}

void
pending_failed(struct pending *pe, enum answer_result result,
    const char *detail)
{
	struct decision	*dn = &pe->pe_decision;

	dn->dn_allow = dn->dn_cached = 0;
	strlcpy(dn->dn_decider, pe->pe_named->co_text,
	    sizeof(dn->dn_decider));
	strlcpy(dn->dn_reason, failure_reason(result), sizeof(dn->dn_reason));
	failure_record(pe->pe_session, &pe->pe_subject, dn->dn_decider, result,
	    detail, clock_ms() - pe->pe_began);
	if (pe->pe_channel != 0)
		pending_pod_told(pe, result, detail, 0);
	else
		pending_settle(pe);
}

static void
pending_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct pending	*pe = arg;

	(void)fd, (void)what;
	switch (pe->pe_state) {
	case PENDING_ASKED:
		/* deciderd has the same clock, and counts who is late. */
		decider_result(pe, ANSWER_TIMEOUT);
		pending_failed(pe, ANSWER_TIMEOUT, "no answer in time");
		break;
	case PENDING_OPERATOR:
		pending_failed(pe, ANSWER_TIMEOUT, "nobody answered in time");
		break;
	default:
		pending_failed(pe, ANSWER_TIMEOUT,
		    "too many others were asked first");
		break;
	}
}

/* Ask the decider whose turn it is in the chain. */
void
pending_put(struct pending *pe)
{
	const struct rule	*ru = pending_rule(pe);
	struct timeval		 tv;
	uint64_t		 now = clock_ms(), left;

	pe->pe_decider = decider_find(slice_running, pe->pe_named->co_text);
	if (pe->pe_decider == NULL)
		fatalx("decider %s is gone", pe->pe_named->co_text);
	pe->pe_deadline = pe->pe_since + (ru->ru_timeout_ms != 0 ?
	    ru->ru_timeout_ms : pe->pe_decider->de_timeout_ms);
	if (pe->pe_channel != 0 &&
	    pe->pe_deadline > pe->pe_began + pe->pe_pod_ms)
		pe->pe_deadline = pe->pe_began + pe->pe_pod_ms;
	if (now >= pe->pe_deadline) {
		pending_failed(pe, ANSWER_TIMEOUT, "no answer in time");
		return;
	}
	left = pe->pe_deadline - now;
	tv.tv_sec = left / 1000;
	tv.tv_usec = left % 1000 * 1000;
	pending_number(pe);
	if (evtimer_add(&pe->pe_timer, &tv) == -1)
		fatalx("%s", __func__);
	if (pe->pe_decider->de_kind == DECIDER_OPERATOR) {
		pe->pe_state = PENDING_OPERATOR;
		pending_changed();
	} else
		decider_join(pe);
}

/*
 * One answer may serve several that wait, if it will be kept.  Not if it may
 * be used only so often, nor if a person may have to answer: that is kept
 * only on demand, and people like to see all that waits for them.
 */
static int
rule_shares(const struct rule *ru)
{
	const struct condition	*co;

	if (ru->ru_cache == CACHE_OFF || ru->ru_uses != 0)
		return 0;
	TAILQ_FOREACH(co, &ru->ru_conditions[COND_DECIDER], co_entry)
		if (decider_find(slice_running, co->co_text)->de_kind ==
		    DECIDER_OPERATOR)
			return 0;
	return 1;
}

/* 1: it follows another, whose deadline holds for both. */
static int
pending_follow(struct pending *pe)
{
	struct pending	*leader;

	if (!rule_shares(pending_rule(pe)))
		return 0;
	leader = RB_INSERT(leaders, &pe->pe_session->se_leaders, pe);
	if (leader == NULL) {
		pe->pe_leading = 1;
		return 0;
	}
	pe->pe_leader = leader;
	pe->pe_state = PENDING_FOLLOWS;
	TAILQ_INSERT_TAIL(&leader->pe_followers, pe, pe_queued);
	return 1;
}

int
pending_too_many(const struct session *se)
{
	uint32_t	 max = slice_running->sl_pending_max;

	return pending_count > max ||
	    se->se_npendings > (max < SESSION_SHARE ? max :
	    max / SESSION_SHARE);
}

/* Of the rules that want it asked, on to the first without an answer. */
static void
pending_stage(struct pending *pe)
{
	struct session	*se = pe->pe_session;
	uint64_t	 now = clock_ms();

	if (pe->pe_left) {
		pending_settle(pe);
		return;
	}
	for (; pe->pe_stage < pe->pe_verdict.pv_asks; pe->pe_stage++) {
		if (!cache_get(&se->se_cache, pending_rule(pe),
		    &pe->pe_subject, now, &pe->pe_decision))
			break;
		if (!pe->pe_decision.dn_allow) {
			pending_denied(pe);
			return;
		}
	}
	if (pe->pe_stage == pe->pe_verdict.pv_asks) {
		pending_settle(pe);
		return;
	}
	pe->pe_named =
	    TAILQ_FIRST(&pending_rule(pe)->ru_conditions[COND_DECIDER]);
	if (pe->pe_since == 0)
		pe->pe_since = now;
	if (storm_paused(&se->se_storm, now)) {
		pending_say(pe, 0, "paused");
		pending_settle(pe);
	} else if (pending_too_many(se))
		pending_failed(pe, ANSWER_ERROR, "too many questions");
	else if (!pending_follow(pe))
		pending_put(pe);
}

void
pending_ask(struct session *se, const struct subject *sj, uint32_t ask,
    uint32_t dial, const struct policy_verdict *pv)
{
	struct pending	*pe = pending_new(se, sj);

	pe->pe_ask = ask;
	pe->pe_dial = dial;
	pe->pe_verdict = *pv;
	pending_stage(pe);
}

/* Ask the next decider of the chain; the last one's doubt is a denial. */
static void
pending_unsure(struct pending *pe)
{
	const struct condition	*next = TAILQ_NEXT(pe->pe_named, co_entry);

	if (next == NULL) {
		pending_say(pe, 0, "unsure");
		pending_denied(pe);
		return;
	}
	if (pe->pe_left) {
		pending_settle(pe);
		return;
	}
	pe->pe_named = next;
	pe->pe_since = clock_ms();
	pending_unnumber(pe);
	pending_put(pe);
}

/* keep: the rule may still say that answers are not kept. */
void
pending_answered(struct pending *pe, enum answer_result result,
    const char *text, int keep)
{
	struct pendings	 freed = TAILQ_HEAD_INITIALIZER(freed);
	int		 allow = result == ANSWER_ALLOW;

	if (pe->pe_channel != 0 && decision_name(result) != NULL) {
		pending_pod_told(pe, result, text, keep);
		return;
	}
	if (result == ANSWER_UNSURE) {
		pending_unsure(pe);
		return;
	}
	if (!allow && result != ANSWER_DENY) {
		pending_failed(pe, result, text);
		return;
	}
	pending_say(pe, allow, *text != '\0' ? text : allow ? "allowed" :
	    "denied");
	if (keep)
		cache_put(&pe->pe_session->se_cache, pending_rule(pe),
		    &pe->pe_subject, clock_ms(), &pe->pe_decision);
	pending_unask(pe, &freed);
	if (allow) {
		pe->pe_stage++;
		pe->pe_since = 0;
		pending_stage(pe);
	} else
		pending_denied(pe);
	pending_go_on(&freed);
}

/* A person's answer was kept: it serves other questions that wait. */
void
pending_release(struct session *se)
{
	struct pendings	 freed = TAILQ_HEAD_INITIALIZER(freed);
	struct pending	*pe, *next;
	struct decision	 dn;

	TAILQ_FOREACH_SAFE(pe, &se->se_pendings, pe_sibling, next) {
		if (pe->pe_state != PENDING_OPERATOR ||
		    !cache_get(&se->se_cache, pending_rule(pe),
		    &pe->pe_subject, clock_ms(), &dn))
			continue;
		pe->pe_decision = dn;
		pending_unask(pe, &freed);
		if (dn.dn_allow) {
			pe->pe_stage++;
			pe->pe_since = 0;
			pending_stage(pe);
		} else
			pending_denied(pe);
	}
	pending_go_on(&freed);
}

static void
pending_unask_all(struct session *se)
{
	struct pendings	 freed = TAILQ_HEAD_INITIALIZER(freed);
	struct pending	*pe;

	TAILQ_FOREACH(pe, &se->se_pendings, pe_sibling)
		pending_unask(pe, &freed);
}

/*
 * The client has gone, or the engine asks anew under other rules.  A decider
 * that is at work on it goes on, and takes up the session's share until it is
 * done: who leaves and comes back does not get to ask more than who waits.
 * What it says may serve others; nobody else is asked for this one.
 */
void
pending_left(struct session *se, uint32_t ask)
{
	struct pending	*pe;

	TAILQ_FOREACH(pe, &se->se_pendings, pe_sibling)
		if (pe->pe_ask == ask && !pe->pe_left)
			break;
	if (pe == NULL)
		return;
	if (pe->pe_state == PENDING_ASKED && !pe->pe_renewed)
		pe->pe_left = 1;
	else
		pending_end(pe);
}

/* The engine is gone: nobody could hear a verdict. */
void
pending_drop(struct session *se)
{
	struct pending	*pe;

	pending_unask_all(se);
	while ((pe = TAILQ_FIRST(&se->se_pendings)) != NULL)
		pending_free(pe);
	allowance_clear(se);
	cache_clear(&se->se_cache, NULL);
	memset(&se->se_storm, 0, sizeof(se->se_storm));
}

/* The rules in force are about to go, and with them what deciders said. */
void
pending_recall(void)
{
	struct session	*se;

	RB_FOREACH(se, sessions, &sessions) {
		pending_unask_all(se);
		allowance_clear(se);
		cache_clear(&se->se_cache, NULL);
		memset(&se->se_storm, 0, sizeof(se->se_storm));
	}
}

/*
 * What was asked under the old rules is asked again under the new.  Engines
 * ask again as well and give up the old number, but some may have done so
 * before our commit.
 */
static void
pending_renew(struct pending *pe)
{
	if (pe->pe_left) {
		pending_free(pe);
		return;
	}
	if (pe->pe_channel != 0) {
		pending_pod_renew(pe);
		return;
	}
	verdict_evaluate(pe->pe_session, &pe->pe_subject, &pe->pe_verdict);
	pe->pe_stage = 0;
	pe->pe_since = 0;
	pe->pe_renewed = 1;
	if (pe->pe_verdict.pv_asks > 0) {
		pending_stage(pe);
		return;
	}
	verdict_give(pe->pe_session, pe->pe_ask, pe->pe_dial, &pe->pe_subject,
	    &pe->pe_verdict, NULL, clock_ms() - pe->pe_began);
	pending_free(pe);
}

void
pending_resume(void)
{
	struct session	*se;
	struct pending	*pe, *next;

	RB_FOREACH(se, sessions, &sessions)
		TAILQ_FOREACH_SAFE(pe, &se->se_pendings, pe_sibling, next)
			pending_renew(pe);
}
