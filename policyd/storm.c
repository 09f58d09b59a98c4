/* SPDX-License-Identifier: ISC */

/*
 * policyd: `pause after N denials in T'.  An agent that is denied and tries
 * again in other words may in time find some that a decider believes; one
 * that is denied that often has to wait.  Denials are counted in sixteenths
 * of T, so the memory is the same for any N.
 */

#include <string.h>

#include "policyd.h"

static void
storm_advance(struct storm *st, uint64_t bucket)
{
	uint64_t	 n = bucket - st->st_bucket;

	if (n >= STORM_BUCKETS)
		memset(st->st_counts, 0, sizeof(st->st_counts));
	else
		while (n-- > 0)
			st->st_counts[++st->st_bucket % STORM_BUCKETS] = 0;
	st->st_bucket = bucket;
}

/* Count a denial; 1 if the session is paused by it. */
int
storm_denied(struct storm *st, const struct policy *pl, uint64_t now)
{
	const struct policy_options	*po = &pl->pl_options;
	uint64_t			 total = 0;
	size_t				 i;

	if (po->po_pause_denials == 0 || po->po_pause_ms < STORM_BUCKETS ||
	    storm_paused(st, now))
		return 0;
	storm_advance(st, now / (po->po_pause_ms / STORM_BUCKETS));
	st->st_counts[st->st_bucket % STORM_BUCKETS]++;
	for (i = 0; i < STORM_BUCKETS; i++)
		total += st->st_counts[i];
	if (total < po->po_pause_denials)
		return 0;
	memset(st->st_counts, 0, sizeof(st->st_counts));
	st->st_until = now + po->po_pause_ms;
	return 1;
}

int
storm_paused(const struct storm *st, uint64_t now)
{
	return now < st->st_until;
}
