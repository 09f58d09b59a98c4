/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: a deadline that moves with every request.  Each connection has
 * one, and to move it is to note a number: the event behind it fires at the
 * old time and is then set again for what is left.
 */

#ifndef TIMER_H
#define TIMER_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include <stdint.h>

struct timer {
	struct event	 ti_ev;
	uint64_t	 ti_due;	/* clock_coarse_ms(); 0: not set */
	uint64_t	 ti_fires;	/* when ti_ev does; 0: not pending */
	void		(*ti_fn)(void *);
	void		*ti_arg;
};

void	 timer_init(struct timer *, struct event_base *, void (*)(void *),
	    void *);
void	 timer_set(struct timer *, uint64_t ms);
void	 timer_clear(struct timer *);
/* Remove the timer from the event base for good. */
void	 timer_end(struct timer *);

#endif /* TIMER_H */
