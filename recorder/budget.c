/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this: how much the records of a session may say.  Lines of
 * the usual length are free, and so are the bodies that they show, which have
 * cost as many bytes on the wire.  Beyond that a line is an expense that an
 * agent can make with a few bytes (in HTTP/2 one byte stands for a field of
 * 4 KB), so there is a budget for it; when that is spent, lines say less.
 */

#include "clock.h"
#include "recorder.h"

#define LINE_USUAL	2048	/* bytes */
#define BUDGET_MAX	(4 * 1024 * 1024)	/* bytes at once */
#define BUDGET_RATE	512	/* bytes per ms */

bool
budget_spent(struct engine *en)
{
	uint64_t	 now, back;

	if (en->en_excess == 0)
		return false;
	now = clock_ms();
	back = (now - en->en_excess_at) * BUDGET_RATE;
	en->en_excess_at = now;
	en->en_excess -= back < en->en_excess ? back : en->en_excess;
	return en->en_excess > BUDGET_MAX;
}

void
budget_charge(struct engine *en, size_t len, size_t shown)
{
	if (len <= LINE_USUAL + shown)
		return;
	if (en->en_excess == 0)
		en->en_excess_at = clock_ms();
	en->en_excess += len - LINE_USUAL - shown;
}
