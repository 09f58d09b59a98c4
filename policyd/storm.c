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

/* One more; 1 if the session is paused by it. */
int
storm_denied(struct storm *st, const struct policy *pl, uint64_t now)
{
	uint64_t	 total = 0;
	size_t		 i;

	if (pl->pl_pause_denials == 0 || pl->pl_pause_ms < STORM_BUCKETS ||
	    storm_paused(st, now))
		return 0;
	storm_advance(st, now / (pl->pl_pause_ms / STORM_BUCKETS));
	st->st_counts[st->st_bucket % STORM_BUCKETS]++;
	for (i = 0; i < STORM_BUCKETS; i++)
		total += st->st_counts[i];
	if (total < pl->pl_pause_denials)
		return 0;
	memset(st->st_counts, 0, sizeof(st->st_counts));
	st->st_until = now + pl->pl_pause_ms;
	return 1;
}

int
storm_paused(const struct storm *st, uint64_t now)
{
	return now < st->st_until;
}
