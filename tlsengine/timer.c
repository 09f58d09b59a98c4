/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this.
 */

#include "clock.h"
#include "timer.h"

static void
timer_arm(struct timer *ti, uint64_t now)
{
	uint64_t	 ms = ti->ti_due - now;
	struct timeval	 tv = { ms / 1000, ms % 1000 * 1000 };

	ti->ti_fires = ti->ti_due;
	event_add(&ti->ti_ev, &tv);
}

static void
timer_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct timer	*ti = arg;
	uint64_t	 now = clock_coarse_ms();

	(void)fd, (void)what;
	ti->ti_fires = 0;
	if (ti->ti_due == 0)
		return;
	if (ti->ti_due > now) {
		timer_arm(ti, now);
		return;
	}
	ti->ti_due = 0;
	ti->ti_fn(ti->ti_arg);
}

void
timer_init(struct timer *ti, struct event_base *base, void (*fn)(void *),
    void *arg)
{
	event_assign(&ti->ti_ev, base, -1, 0, timer_on_event, ti);
	event_priority_set(&ti->ti_ev, 1);
	ti->ti_due = ti->ti_fires = 0;
	ti->ti_fn = fn;
	ti->ti_arg = arg;
}

void
timer_set(struct timer *ti, uint64_t ms)
{
	uint64_t	 now = clock_coarse_ms();

	ti->ti_due = now + ms;
	if (ti->ti_fires == 0 || ti->ti_fires > ti->ti_due)
		timer_arm(ti, now);
}

void
timer_clear(struct timer *ti)
{
	ti->ti_due = 0;
}

void
timer_end(struct timer *ti)
{
	event_del(&ti->ti_ev);
	ti->ti_due = ti->ti_fires = 0;
}
