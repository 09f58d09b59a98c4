/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this.
 */

#include "clock.h"
#include "rate.h"

bool
rate_allows(struct rate *rt)
{
	uint64_t	 now = clock_ms();

	if (rt->rt_at != 0)
		rt->rt_left += (now - rt->rt_at) * rt->rt_per_s;
	rt->rt_at = now;
	if (rt->rt_left > rt->rt_full)
		rt->rt_left = rt->rt_full;
	return rt->rt_left >= RATE_COST;
}

void
rate_spend(struct rate *rt)
{
	rt->rt_left -= RATE_COST;
}
