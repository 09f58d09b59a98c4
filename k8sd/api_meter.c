/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: the rate of calls to an API server, a bucket of tokens for
 * each, and its clock.  Ages of pods are by that clock, since ours may be
 * anywhere; what it says is bounded only by what a Date header can hold.
 */

#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "api_meter.h"
#include "child.h"
#include "clock.h"
#include "log.h"

#define TOKEN		1000

static LIST_HEAD(, meter)	 meters = LIST_HEAD_INITIALIZER(meters);

static void
meter_fill(struct meter *mt)
{
	uint64_t	 now = clock_ms();

	mt->mt_tokens += (now - mt->mt_filled_ms) * METER_RATE;
	if (mt->mt_tokens > METER_BURST * TOKEN)
		mt->mt_tokens = METER_BURST * TOKEN;
	mt->mt_filled_ms = now;
}

static void
meter_arm(struct meter *mt, uint64_t ms)
{
	struct timeval	 tv = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_usec = (suseconds_t)(ms % 1000 * 1000)
	};

	if (event_add(&mt->mt_timer, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

static void
meter_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct meter		*mt = arg;
	struct meter_entry	*me;

	(void)fd, (void)what;
	meter_fill(mt);
	while (mt->mt_tokens >= TOKEN &&
	    (me = TAILQ_FIRST(&mt->mt_waiting)) != NULL) {
		mt->mt_tokens -= TOKEN;
		meter_leave(mt, me);
		me->me_turn(me->me_arg);
	}
	if (!TAILQ_EMPTY(&mt->mt_waiting))
		meter_arm(mt, (TOKEN - mt->mt_tokens) / METER_RATE + 1);
}

struct meter *
meter_find(const char *name)
{
	struct meter	*mt;

	LIST_FOREACH(mt, &meters, mt_entry)
		if (strcmp(mt->mt_name, name) == 0)
			return mt;
	if ((mt = calloc(1, sizeof(*mt))) == NULL ||
	    (mt->mt_name = strdup(name)) == NULL)
		fatal("%s", __func__);
	mt->mt_tokens = METER_BURST * TOKEN;
	mt->mt_filled_ms = clock_ms();
	TAILQ_INIT(&mt->mt_waiting);
	event_assign(&mt->mt_timer, child_base, -1, 0, meter_on_timer, mt);
	LIST_INSERT_HEAD(&meters, mt, mt_entry);
	return mt;
}

void
meter_enter(struct meter *mt, struct meter_entry *me, int urgent)
{
	me->me_waits = 1;
	if (urgent)
		TAILQ_INSERT_HEAD(&mt->mt_waiting, me, me_entry);
	else
		TAILQ_INSERT_TAIL(&mt->mt_waiting, me, me_entry);
	if (!event_pending(&mt->mt_timer, EV_TIMEOUT, NULL))
		meter_arm(mt, 0);
}

void
meter_leave(struct meter *mt, struct meter_entry *me)
{
	if (!me->me_waits)
		return;
	me->me_waits = 0;
	TAILQ_REMOVE(&mt->mt_waiting, me, me_entry);
}

/* ---- the clock ---- */

static int64_t
wall_s(void)
{
	return (int64_t)(clock_wall_ns() / 1000000000);
}

void
meter_clock(struct meter *mt, int64_t date)
{
	if (date > 0)
		mt->mt_skew_s = date - wall_s();
}

int64_t
meter_now(const struct meter *mt)
{
	return wall_s() + mt->mt_skew_s;
}
