/* SPDX-License-Identifier: ISC */

/*
 * controld: when what fails again and again is tried the next time, and when
 * no more.  Times are milliseconds of a clock that only goes forward.
 */

#include <stdlib.h>
#include <string.h>

#include "controld.h"

/* All is well, or somebody wants it tried as if it were. */
void
backoff_reset(struct backoff *bo)
{
	memset(bo, 0, sizeof(*bo));
}

/* A channel that came up and fell at once has not been well. */
void
backoff_up(struct backoff *bo, uint64_t now)
{
	bo->bo_up = now;
}

/*
 * It has failed: after how long it is tried again, with some chance in it so
 * that many do not try together; -1: not any more.
 */
int
backoff_failed(struct backoff *bo, uint64_t now)
{
	unsigned int	 delay;

	if (bo->bo_up != 0 && now - bo->bo_up >= BACKOFF_WELL_MS)
		backoff_reset(bo);
	bo->bo_up = 0;
	if (bo->bo_since == 0)
		bo->bo_since = now;
	if (now - bo->bo_since >= BACKOFF_BUDGET_MS)
		return -1;
	delay = bo->bo_delay_ms != 0 ? bo->bo_delay_ms : BACKOFF_FIRST_MS;
	bo->bo_delay_ms = delay * 2 < BACKOFF_MOST_MS ? delay * 2 :
	    BACKOFF_MOST_MS;
	return (int)(delay - delay / 4 + arc4random_uniform(delay / 2));
}
