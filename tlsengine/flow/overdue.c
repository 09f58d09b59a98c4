/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: the end of what takes too long as a whole, however
 * busy it is.  The limit is the same for all, so they end in the order in
 * which they began, and one timer is enough.
 */

#include "clock.h"
#include "flow.h"
#include "timer.h"
#include "tlsengine.h"

static struct flows	 dues = TAILQ_HEAD_INITIALIZER(dues);
static struct timer	 next;

static void
overdue_fire(void *arg)
{
	struct flow	*fl;
	uint64_t	 now = clock_coarse_ms();

	(void)arg;
	while ((fl = TAILQ_FIRST(&dues)) != NULL && fl->fl_due <= now) {
		overdue_remove(fl);
		fl->fl_ops->overdue_end(fl);
	}
	if (fl != NULL)
		timer_set(&next, fl->fl_due - now);
}

/* A reload may have shortened the time: insert in order. */
void
overdue_add(struct flow *fl)
{
	struct flow	*before;

	if (settings.st_total_ms == 0)
		return;
	if (next.ti_fn == NULL)
		timer_init(&next, child_base, overdue_fire, NULL);
	fl->fl_due = clock_coarse_ms() + settings.st_total_ms;
	TAILQ_FOREACH_REVERSE(before, &dues, flows, fl_dues)
		if (before->fl_due <= fl->fl_due)
			break;
	if (before != NULL) {
		TAILQ_INSERT_AFTER(&dues, before, fl, fl_dues);
		return;
	}
	TAILQ_INSERT_HEAD(&dues, fl, fl_dues);
	timer_set(&next, settings.st_total_ms);
}

void
overdue_remove(struct flow *fl)
{
	if (fl->fl_due == 0)
		return;
	TAILQ_REMOVE(&dues, fl, fl_dues);
	fl->fl_due = 0;
}
