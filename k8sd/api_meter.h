/* SPDX-License-Identifier: ISC */

/*
 * k8sd: what is known of an API server between calls: how many calls it has
 * had of late, how far its clock is from ours, its version.  It goes by the
 * name of the cluster and outlives reloads.
 */

#ifndef API_METER_H
#define API_METER_H

#include <sys/queue.h>

#include <stdint.h>

#include <event2/event_struct.h>

#define METER_RATE	50	/* calls in a second, on average */
#define METER_BURST	100	/* calls at once */

/* A call that waits for its turn. */
struct meter_entry {
	TAILQ_ENTRY(meter_entry)	 me_entry;
	int				 me_waits;
	void				(*me_turn)(void *);
	void				*me_arg;
};

struct meter {
	LIST_ENTRY(meter)		 mt_entry;
	char				*mt_name;
	char				 mt_version[32];
	uint64_t			 mt_tokens;	/* thousandths */
	uint64_t			 mt_filled_ms;
	int64_t				 mt_skew_s;	/* server less ours */
	TAILQ_HEAD(, meter_entry)	 mt_waiting;
	struct event			 mt_timer;
};

struct meter	*meter_find(const char *);
/* me_turn is called from the event loop, in the order of arrival. */
void	 meter_enter(struct meter *, struct meter_entry *, int);
void	 meter_leave(struct meter *, struct meter_entry *);
void	 meter_clock(struct meter *, int64_t);
int64_t	 meter_now(const struct meter *);

#endif /* API_METER_H */
