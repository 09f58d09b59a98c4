/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: how many records the agent can cause at once, and each second
 * when those are spent.  Begins with rt_left at RATE_FULL of its burst.
 */

#ifndef RATE_H
#define RATE_H

#include <stdbool.h>
#include <stdint.h>

#define RATE_COST		1000	/* a millisecond earns rt_per_s */
#define RATE_FULL(burst)	((uint64_t)(burst) * RATE_COST)

struct rate {
	uint64_t	 rt_full;
	uint64_t	 rt_per_s;
	uint64_t	 rt_left;
	uint64_t	 rt_at;		/* ms, of rt_left; 0: not counted yet */
};

/* Whether one more may be spent now. */
bool	 rate_allows(struct rate *);
void	 rate_spend(struct rate *);

#endif /* RATE_H */
