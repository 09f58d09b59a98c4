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
/* For the last time: nothing of it stays with the event base. */
void	 timer_end(struct timer *);

#endif /* TIMER_H */
