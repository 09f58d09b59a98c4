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
 * policyd: deciders as we see them: how many questions each takes at a time,
 * whose turn is next, whether it is worth asking.  Sessions take turns, so
 * that one with many questions does not keep the others from theirs.  What a
 * decider says comes through deciderd, which is trusted to carry it.
 */

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "policyd.h"

/* The questions of one session for one decider; there is always one. */
struct turn {
	TAILQ_ENTRY(turn)	 tu_entry;	/* in the decider's round */
	TAILQ_ENTRY(turn)	 tu_sibling;	/* of the same session */
	struct judge		*tu_judge;
	struct session		*tu_session;
	struct pendings		 tu_queue;
};

static struct event	 pump;

static int
judge_cmp(const struct judge *a, const struct judge *b)
{
	return strcmp(a->ju_name, b->ju_name);
}

RB_GENERATE(judges, judge, ju_entry, judge_cmp);

struct judge *
judge_find(struct slice *sl, const char *name)
{
	struct judge	 key;

	strlcpy(key.ju_name, name, sizeof(key.ju_name));
	return RB_FIND(judges, &sl->sl_judges, &key);
}

/* Nothing waits for them any more. */
void
judges_free(struct slice *sl)
{
	struct judge	*ju;

	while ((ju = RB_ROOT(&sl->sl_judges)) != NULL) {
		RB_REMOVE(judges, &sl->sl_judges, ju);
		free(ju);
	}
}

int
policyd_parent_conf_judge(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_judge	*mj = &m->conf_judge;
	struct judge			*ju;

	if (mj->kind >= DECIDER_KIND_MAX || mj->timeout_ms == 0 ||
	    (mj->concurrency == 0 && mj->kind != DECIDER_OPERATOR))
		return ipc_bad(ip, "decider %s: kind %u, concurrency %u",
		    mj->name, mj->kind, mj->concurrency);
	if (judge_find(slice_candidate, mj->name) != NULL)
		return ipc_bad(ip, "decider %s again", mj->name);
	if ((ju = calloc(1, sizeof(*ju))) == NULL)
		fatal("%s", __func__);
	strlcpy(ju->ju_name, mj->name, sizeof(ju->ju_name));
	ju->ju_kind = mj->kind;
	ju->ju_timeout_ms = mj->timeout_ms;
	ju->ju_concurrency = mj->concurrency;
	TAILQ_INIT(&ju->ju_turns);
	RB_INSERT(judges, &slice_candidate->sl_judges, ju);
	return 0;
}

static struct turn *
turn_get(struct judge *ju, struct session *se)
{
	struct turn	*tu;

	TAILQ_FOREACH(tu, &se->se_turns, tu_sibling)
		if (tu->tu_judge == ju)
			return tu;
	if ((tu = calloc(1, sizeof(*tu))) == NULL)
		fatal("%s", __func__);
	tu->tu_judge = ju;
	tu->tu_session = se;
	TAILQ_INIT(&tu->tu_queue);
	TAILQ_INSERT_TAIL(&ju->ju_turns, tu, tu_entry);
	TAILQ_INSERT_TAIL(&se->se_turns, tu, tu_sibling);
	return tu;
}

void
judge_join(struct pending *pe)
{
	pe->pe_turn = turn_get(pe->pe_judge, pe->pe_session);
	TAILQ_INSERT_TAIL(&pe->pe_turn->tu_queue, pe, pe_queued);
	pe->pe_judge->ju_waiting++;
	pe->pe_state = PENDING_QUEUED;
	judges_wake();
}

static void
turn_leave(struct pending *pe)
{
	struct turn	*tu = pe->pe_turn;

	TAILQ_REMOVE(&tu->tu_queue, pe, pe_queued);
	pe->pe_judge->ju_waiting--;
	pe->pe_turn = NULL;
	pe->pe_state = PENDING_NEW;
	if (!TAILQ_EMPTY(&tu->tu_queue))
		return;
	TAILQ_REMOVE(&tu->tu_judge->ju_turns, tu, tu_entry);
	TAILQ_REMOVE(&tu->tu_session->se_turns, tu, tu_sibling);
	free(tu);
}

/* The next of the session whose turn it is, which goes to the end. */
static struct pending *
judge_next(struct judge *ju)
{
	struct turn	*tu = TAILQ_FIRST(&ju->ju_turns);
	struct pending	*pe = TAILQ_FIRST(&tu->tu_queue);

	TAILQ_REMOVE(&ju->ju_turns, tu, tu_entry);
	TAILQ_INSERT_TAIL(&ju->ju_turns, tu, tu_entry);
	turn_leave(pe);
	return pe;
}

static void
judge_put(struct pending *pe, uint64_t now)
{
	struct judge	*ju = pe->pe_judge;
	const char	*text;
	size_t		 len;

	if ((text = question_make(pe, &len)) == NULL) {
		pending_failed(pe, ANSWER_ERROR, "the question is too long");
		return;
	}
	pe->pe_probe = breaker_ask(&ju->ju_breaker, pe->pe_session->se_name);
	pe->pe_state = PENDING_ASKED;
	ju->ju_asked++;
	ipc_send(channel_deciderd, -1, QUESTION, question, .id = pe->pe_id,
	    .timeout_ms = pe->pe_deadline > now ? pe->pe_deadline - now : 1,
	    .decider = ju->ju_name, .document = { text, len });
}

static void
judge_pump(struct judge *ju)
{
	struct turn	*tu;
	uint64_t	 now = clock_ms();

	while ((tu = TAILQ_FIRST(&ju->ju_turns)) != NULL) {
		if (channel_deciderd == NULL)
			pending_failed(judge_next(ju), ANSWER_ERROR,
			    "there is nobody to ask it");
		else if (!breaker_permits(&ju->ju_breaker,
		    tu->tu_session->se_name, now))
			pending_failed(judge_next(ju), ANSWER_ERROR,
			    "breaker open");
		else if (ju->ju_asked >= ju->ju_concurrency ||
		    channel_deciderd->ip_congested)
			break;
		else
			judge_put(judge_next(ju), now);
	}
}

static void
judges_pump(evutil_socket_t fd, short what, void *arg)
{
	struct judge	*ju;

	(void)fd, (void)what, (void)arg;
	if (slice_running == NULL)
		return;
	RB_FOREACH(ju, judges, &slice_running->sl_judges)
		judge_pump(ju);
}

/* In a turn of its own: what is asked may fail, and so free who asks. */
void
judges_wake(void)
{
	static const struct timeval	 at_once;

	if (!evtimer_initialized(&pump))
		evtimer_assign(&pump, child_base, judges_pump, NULL);
	if (evtimer_add(&pump, &at_once) == -1)
		fatalx("%s", __func__);
}

void
judges_drained(struct ipc *ip)
{
	(void)ip;
	judges_wake();
}

static void
judge_good(struct judge *ju)
{
	if (ju->ju_breaker.br_wait_ms != 0)
		log_info("decider %s: it answers again", ju->ju_name);
	breaker_good(&ju->ju_breaker);
}

static void
judge_bad(struct judge *ju, const struct pending *pe)
{
	struct breaker	*br = &ju->ju_breaker;
	const char	*one;

	if (!breaker_bad(br, pe->pe_session->se_name, pe->pe_probe,
	    clock_ms()))
		return;
	one = br->br_session;
	log_warnx("decider %s: not asked for %llu ms%s%s, as it fails",
	    ju->ju_name, (unsigned long long)br->br_wait_ms,
	    one[0] != '\0' ? " by session " : "", one);
}

/* It is answered, or will not be in time, and this is how it went. */
void
judge_result(struct pending *pe, enum answer_result result)
{
	struct judge	*ju = pe->pe_judge;

	if (result == ANSWER_ERROR || result == ANSWER_TIMEOUT)
		judge_bad(ju, pe);
	else if (result != ANSWER_BAD_RETURN)
		judge_good(ju);
	/* It lives, and may be led to say what is no answer. */
	else if (pe->pe_probe)
		breaker_unask(&ju->ju_breaker);
	ju->ju_asked--;
	pe->pe_probe = 0;
	pe->pe_state = PENDING_NEW;
	judges_wake();
}

/* It is no longer asked, whether anybody heard it or not. */
void
judge_leave(struct pending *pe)
{
	if (pe->pe_state == PENDING_QUEUED) {
		turn_leave(pe);
		return;
	}
	if (pe->pe_state != PENDING_ASKED)
		return;
	ipc_send(channel_deciderd, -1, QUESTION_DROP, cookie, pe->pe_id);
	if (pe->pe_probe)
		breaker_unask(&pe->pe_judge->ju_breaker);
	pe->pe_judge->ju_asked--;
	pe->pe_probe = 0;
	pe->pe_state = PENDING_NEW;
	judges_wake();
}

int
policyd_deciderd_answer(struct ipc *ip, const union msg *m)
{
	const struct msg_answer	*ma = &m->answer;
	struct pending		*pe;

	if (ma->result >= ANSWER_RESULT_MAX)
		return ipc_bad(ip, "answer %u", ma->result);
	if ((ma->id & INQUIRY) != 0) {
		inquiry_answer(ma);
		return 0;
	}
	pe = pending_find(ma->id);
	if (pe == NULL || pe->pe_state != PENDING_ASKED) {
		log_debug("question %u: an answer that nobody waits for",
		    ma->id);
		return 0;
	}
	judge_result(pe, ma->result);
	pending_answered(pe, ma->result, ma->reason, 1);
	return 0;
}
