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
 * tlsengine runs this: the end of what takes too long as a whole, however
 * busy it is.  The limit is the same for all, so they end in the order in
 * which they began, and one timer is enough.
 */

#include "clock.h"
#include "tlsengine.h"

static struct exchanges	 dues = TAILQ_HEAD_INITIALIZER(dues);
static struct timer	 next;

static void
overdue_fire(void *arg)
{
	struct exchange	*ex;
	uint64_t	 now = clock_coarse_ms();

	(void)arg;
	while ((ex = TAILQ_FIRST(&dues)) != NULL && ex->ex_due <= now) {
		overdue_remove(ex);
		exchange_fail(ex, 504, "total_time");
	}
	if (ex != NULL)
		timer_set(&next, ex->ex_due - now);
}

/* It has a record from now on.  A reload may have made the time shorter. */
void
overdue_add(struct exchange *ex)
{
	struct exchange	*before;

	if (settings.st_total_ms == 0)
		return;
	if (next.ti_fn == NULL)
		timer_init(&next, child_base, overdue_fire, NULL);
	ex->ex_due = clock_coarse_ms() + settings.st_total_ms;
	TAILQ_FOREACH_REVERSE(before, &dues, exchanges, ex_dues)
		if (before->ex_due <= ex->ex_due)
			break;
	if (before != NULL) {
		TAILQ_INSERT_AFTER(&dues, before, ex, ex_dues);
		return;
	}
	TAILQ_INSERT_HEAD(&dues, ex, ex_dues);
	timer_set(&next, settings.st_total_ms);
}

void
overdue_remove(struct exchange *ex)
{
	if (ex->ex_due == 0)
		return;
	TAILQ_REMOVE(&dues, ex, ex_dues);
	ex->ex_due = 0;
}
