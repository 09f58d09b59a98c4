/* SPDX-License-Identifier: ISC */

/*
 * controld: surveys.  However many clients ask, and however often, policyd and
 * the others are asked for one survey at a time and for no more than so many
 * in a second: a crowd of clients costs them little more than one client does.
 * Clients do not wait for longer than SURVEY_TIMEOUT_S; a survey does, until it
 * is answered, or questions would pile up before a process that is slow.
 */

#include <string.h>

#include "clock.h"
#include "controld.h"

static void
survey_timer(struct survey *sv, uint64_t ms)
{
	struct timeval	 tv = { .tv_sec = ms / 1000,
	    .tv_usec = ms % 1000 * 1000 };

	if (evtimer_add(&sv->sv_timer, &tv) == -1)
		log_warnx("%s: no timer, an answer may take long",
		    sv->sv_name);
}

/* All of a queue get the answer that was just written. */
static void
survey_tell(struct waiters *queue)
{
	struct waiter	*wt;
	const char	*body;
	size_t		 len;

	body = answer_end(&len);
	while ((wt = TAILQ_FIRST(queue)) != NULL)
		waiter_answer(wt, body, len);
}

static void
survey_refuse(const struct survey *sv, struct waiters *queue, const char *why)
{
	if (TAILQ_EMPTY(queue))
		return;
	log_warnx("%s: %s", sv->sv_name, why);
	answer_error(CODE_INTERNAL, why, strlen(why));
	survey_tell(queue);
}

/* How long until one more is within the rate, in ms; 0: now. */
static uint64_t
survey_wait(const struct survey *sv, uint64_t now)
{
	uint64_t	 free_at = sv->sv_began[sv->sv_next] + 1000;

	return sv->sv_began[sv->sv_next] == 0 || now >= free_at ? 0 :
	    free_at - now;
}

/* Would the answer to the one be the answer to the other? */
static int
survey_same(const struct survey *sv, const struct waiter *a,
    const struct waiter *b)
{
	const char	*one = a->wt_text != NULL ? a->wt_text : "";
	const char	*two = b->wt_text != NULL ? b->wt_text : "";

	return sv->sv_alike ||
	    (a->wt_client->cl_read_only == b->wt_client->cl_read_only &&
	    strcmp(one, two) == 0);
}

/* Whoever waits for the same as the first one has its answer, too. */
static void
survey_gather(struct survey *sv)
{
	struct waiter	*first = TAILQ_FIRST(&sv->sv_waiting), *wt, *next;

	TAILQ_FOREACH_SAFE(wt, &sv->sv_waiting, wt_queued, next)
		if (survey_same(sv, first, wt))
			waiter_queue(wt, &sv->sv_asking);
}

static void
survey_next(struct survey *sv)
{
	uint64_t	 now = clock_ms(), wait;

	if (sv->sv_cookie != 0 || TAILQ_EMPTY(&sv->sv_waiting))
		return;
	if ((wait = survey_wait(sv, now)) > 0) {
		survey_timer(sv, wait);
		return;
	}
	sv->sv_began[sv->sv_next] = now;
	sv->sv_next = (sv->sv_next + 1) % SURVEY_RATE;
	sv->sv_cookie = waiter_cookie();
	survey_gather(sv);
	survey_timer(sv, SURVEY_TIMEOUT_S * 1000);
	sv->sv_ask(TAILQ_FIRST(&sv->sv_asking));
}

/* Those who have come since wait as long again, for a survey of their own. */
static void
survey_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct survey	*sv = arg;

	(void)fd, (void)what;
	if (sv->sv_cookie == 0) {
		survey_next(sv);
		return;
	}
	survey_refuse(sv, TAILQ_EMPTY(&sv->sv_asking) ? &sv->sv_waiting :
	    &sv->sv_asking, sv->sv_late());
	survey_timer(sv, SURVEY_TIMEOUT_S * 1000);
}

void
survey_join(struct survey *sv, struct waiter *wt)
{
	if (!sv->sv_ready) {
		TAILQ_INIT(&sv->sv_waiting);
		TAILQ_INIT(&sv->sv_asking);
		evtimer_assign(&sv->sv_timer, child_base, survey_on_timer, sv);
		sv->sv_ready = 1;
	}
	waiter_queue(wt, &sv->sv_waiting);
	survey_next(sv);
}

/* Is this about the survey that runs? */
int
survey_is(const struct survey *sv, uint32_t cookie)
{
	return cookie != 0 && sv->sv_cookie == cookie;
}

/* The survey is answered; whom it was late for has had an error. */
void
survey_finish(struct survey *sv)
{
	survey_tell(&sv->sv_asking);
	evtimer_del(&sv->sv_timer);
	sv->sv_cookie = 0;
	survey_next(sv);
}

/* Nothing comes of the survey; what is still to be answered is waited for. */
void
survey_fail(struct survey *sv, const char *why)
{
	survey_refuse(sv, &sv->sv_asking, why);
}
