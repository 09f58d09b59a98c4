/* SPDX-License-Identifier: ISC */

/*
 * policyd: deciders as we see them: how many questions each takes at a time,
 * whose turn is next, whether it is worth asking.  Sessions take turns, so
 * that one with many questions does not keep the others from theirs.  What a
 * decider says comes through deciderd, which is trusted to carry it.
 */

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "policyd.h"

/* The questions of one session for one decider; never empty. */
struct turn {
	TAILQ_ENTRY(turn)	 tu_entry;	/* in the decider's round */
	TAILQ_ENTRY(turn)	 tu_sibling;	/* of the same session */
	struct decider		*tu_decider;
	struct session		*tu_session;
	struct pendings		 tu_queue;
};

static struct event	 pump;

static int
decider_cmp(const struct decider *a, const struct decider *b)
{
	return strcmp(a->de_name, b->de_name);
}

RB_GENERATE(deciders, decider, de_entry, decider_cmp);

struct decider *
decider_find(struct slice *sl, const char *name)
{
	struct decider	 key;

	strlcpy(key.de_name, name, sizeof(key.de_name));
	return RB_FIND(deciders, &sl->sl_deciders, &key);
}

/* With no question waiting for any of them. */
void
deciders_free(struct slice *sl)
{
	struct decider	*de;

	while ((de = RB_ROOT(&sl->sl_deciders)) != NULL) {
		RB_REMOVE(deciders, &sl->sl_deciders, de);
		free(de);
	}
}

int
policyd_parent_conf_decider_name(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_decider_name	*mj = &m->conf_decider_name;
	struct decider			*de;

	if (mj->kind >= DECIDER_KIND_MAX || mj->timeout_ms == 0 ||
	    (mj->concurrency == 0 && mj->kind != DECIDER_OPERATOR))
		return ipc_bad(ip, "decider %s: kind %u, concurrency %u",
		    mj->name, mj->kind, mj->concurrency);
	if (decider_find(slice_candidate, mj->name) != NULL)
		return ipc_bad(ip, "decider %s again", mj->name);
	if ((de = calloc(1, sizeof(*de))) == NULL)
		fatal("%s", __func__);
	strlcpy(de->de_name, mj->name, sizeof(de->de_name));
	de->de_kind = mj->kind;
	de->de_timeout_ms = mj->timeout_ms;
	de->de_concurrency = mj->concurrency;
	TAILQ_INIT(&de->de_turns);
	RB_INSERT(deciders, &slice_candidate->sl_deciders, de);
	return 0;
}

static struct turn *
turn_get(struct decider *de, struct session *se)
{
	struct turn	*tu;

	TAILQ_FOREACH(tu, &se->se_turns, tu_sibling)
		if (tu->tu_decider == de)
			return tu;
	if ((tu = calloc(1, sizeof(*tu))) == NULL)
		fatal("%s", __func__);
	tu->tu_decider = de;
	tu->tu_session = se;
	TAILQ_INIT(&tu->tu_queue);
	TAILQ_INSERT_TAIL(&de->de_turns, tu, tu_entry);
	TAILQ_INSERT_TAIL(&se->se_turns, tu, tu_sibling);
	return tu;
}

void
decider_join(struct pending *pe)
{
	pe->pe_turn = turn_get(pe->pe_decider, pe->pe_session);
	TAILQ_INSERT_TAIL(&pe->pe_turn->tu_queue, pe, pe_queued);
	pe->pe_decider->de_waiting++;
	pe->pe_state = PENDING_QUEUED;
	deciders_wake();
}

static void
turn_leave(struct pending *pe)
{
	struct turn	*tu = pe->pe_turn;

	TAILQ_REMOVE(&tu->tu_queue, pe, pe_queued);
	pe->pe_decider->de_waiting--;
	pe->pe_turn = NULL;
	pe->pe_state = PENDING_NEW;
	if (!TAILQ_EMPTY(&tu->tu_queue))
		return;
	TAILQ_REMOVE(&tu->tu_decider->de_turns, tu, tu_entry);
	TAILQ_REMOVE(&tu->tu_session->se_turns, tu, tu_sibling);
	free(tu);
}

/* The next of the session whose turn it is, which goes to the end. */
static struct pending *
decider_next(struct decider *de)
{
	struct turn	*tu = TAILQ_FIRST(&de->de_turns);
	struct pending	*pe = TAILQ_FIRST(&tu->tu_queue);

	TAILQ_REMOVE(&de->de_turns, tu, tu_entry);
	TAILQ_INSERT_TAIL(&de->de_turns, tu, tu_entry);
	turn_leave(pe);
	return pe;
}

static void
decider_put(struct pending *pe, uint64_t now)
{
	struct decider	*de = pe->pe_decider;
	const char	*text;
	size_t		 len;

	if ((text = question_make(pe, &len)) == NULL) {
		pending_failed(pe, ANSWER_ERROR, "the question is too long");
		return;
	}
	pe->pe_probe = breaker_ask(&de->de_breaker, pe->pe_session->se_name);
	pe->pe_state = PENDING_ASKED;
	de->de_asked++;
	ipc_send(channel_deciderd, -1, QUESTION, question, .id = pe->pe_id,
	    .timeout_ms = pe->pe_deadline > now ? pe->pe_deadline - now : 1,
	    .decider = de->de_name, .rule = pending_rule(pe)->ru_index,
	    .document = { text, len });
}

static void
decider_pump(struct decider *de)
{
	struct turn	*tu;
	uint64_t	 now = clock_ms();

	while ((tu = TAILQ_FIRST(&de->de_turns)) != NULL) {
		if (channel_deciderd == NULL)
			pending_failed(decider_next(de), ANSWER_ERROR,
			    "there is nobody to ask it");
		else if (!breaker_permits(&de->de_breaker,
		    tu->tu_session->se_name, now))
			pending_failed(decider_next(de), ANSWER_ERROR,
			    "breaker open");
		else if (de->de_asked >= de->de_concurrency ||
		    channel_deciderd->ip_congested)
			break;
		else
			decider_put(decider_next(de), now);
	}
}

static void
deciders_pump(evutil_socket_t fd, short what, void *arg)
{
	struct decider	*de;

	(void)fd, (void)what, (void)arg;
	if (slice_running == NULL)
		return;
	RB_FOREACH(de, deciders, &slice_running->sl_deciders)
		decider_pump(de);
}

/* In a turn of its own: asking may fail, and so free the caller's question. */
void
deciders_wake(void)
{
	static const struct timeval	 at_once;

	if (!evtimer_initialized(&pump))
		evtimer_assign(&pump, child_base, deciders_pump, NULL);
	if (evtimer_add(&pump, &at_once) == -1)
		fatalx("%s", __func__);
}

void
deciders_drained(struct ipc *ip)
{
	(void)ip;
	deciders_wake();
}

static void
decider_good(struct decider *de)
{
	if (de->de_breaker.br_wait_ms != 0)
		log_info("decider %s: it answers again", de->de_name);
	breaker_good(&de->de_breaker);
}

static void
decider_bad(struct decider *de, const struct pending *pe)
{
	struct breaker	*br = &de->de_breaker;
	const char	*one;

	if (!breaker_bad(br, pe->pe_session->se_name, pe->pe_probe,
	    clock_ms()))
		return;
	one = br->br_session;
	log_warnx("decider %s: not asked for %llu ms%s%s, as it fails",
	    de->de_name, (unsigned long long)br->br_wait_ms,
	    one[0] != '\0' ? " by session " : "", one);
}

/* A question was answered, or is overdue: count it for the breaker. */
void
decider_result(struct pending *pe, enum answer_result result)
{
	struct decider	*de = pe->pe_decider;

	if (result == ANSWER_ERROR || result == ANSWER_TIMEOUT)
		decider_bad(de, pe);
	else if (result != ANSWER_BAD_RETURN)
		decider_good(de);
	/* A bad return: the decider lives, and an agent may provoke it. */
	else if (pe->pe_probe)
		breaker_unask(&de->de_breaker);
	de->de_asked--;
	pe->pe_probe = 0;
	pe->pe_state = PENDING_NEW;
	deciders_wake();
}

/* Take a question out of the queue, or back from deciderd. */
void
decider_leave(struct pending *pe)
{
	if (pe->pe_state == PENDING_QUEUED) {
		turn_leave(pe);
		return;
	}
	if (pe->pe_state != PENDING_ASKED)
		return;
	ipc_send(channel_deciderd, -1, QUESTION_DROP, cookie, pe->pe_id);
	if (pe->pe_probe)
		breaker_unask(&pe->pe_decider->de_breaker);
	pe->pe_decider->de_asked--;
	pe->pe_probe = 0;
	pe->pe_state = PENDING_NEW;
	deciders_wake();
}

int
policyd_deciderd_answer(struct ipc *ip, const union msg *m)
{
	const struct msg_answer	*ma = &m->answer;
	struct pending		*pe;

	if (ma->result >= ANSWER_RESULT_MAX || ma->keep > 1)
		return ipc_bad(ip, "answer %u, keep %u", ma->result, ma->keep);
	if ((ma->id & INQUIRY_BIT) != 0) {
		inquiry_answered(ma);
		return 0;
	}
	pe = pending_find(ma->id);
	if (pe == NULL || pe->pe_state != PENDING_ASKED) {
		log_debug("question %u: an answer that nobody waits for",
		    ma->id);
		return 0;
	}
	decider_result(pe, ma->result);
	pending_answered(pe, ma->result, ma->reason, ma->keep);
	return 0;
}

/* Failures for want of somebody to ask say nothing about the next question. */
int
policyd_deciderd_served(struct ipc *ip, const union msg *m)
{
	struct decider	*de;

	(void)ip, (void)m;
	if (slice_running == NULL)
		return 0;
	RB_FOREACH(de, deciders, &slice_running->sl_deciders)
		if (de->de_kind == DECIDER_CONTROL)
			decider_good(de);
	deciders_wake();
	return 0;
}
