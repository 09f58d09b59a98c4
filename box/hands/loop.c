/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: poll(2) over whatever the connections and requests
 * watch.  Each watch is asked before every turn what it waits for, so that
 * nobody has to remember to say when that changes.
 */

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "../box.h"
#include "op.h"

/* A freed watch stays until the turn is over: it may be due in it. */
struct watch {
	TAILQ_ENTRY(watch)	 wa_entry;
	int			 wa_fd;		/* -1: freed */
	short			(*wa_wants)(void *);
	void			(*wa_ready)(void *);
	void			*wa_arg;
	struct pollfd		*wa_poll;
};

static TAILQ_HEAD(, watch)	 watches = TAILQ_HEAD_INITIALIZER(watches);
static size_t			 nwatches;
static struct pollfd		*polls;
static size_t			 npolls;

struct watch *
watch_new(int fd, short (*wants)(void *), void (*ready)(void *), void *arg)
{
	struct watch	*wa;

	if ((wa = calloc(1, sizeof(*wa))) == NULL)
		err(BOX_FAILED, NULL);
	wa->wa_fd = fd;
	wa->wa_wants = wants;
	wa->wa_ready = ready;
	wa->wa_arg = arg;
	TAILQ_INSERT_TAIL(&watches, wa, wa_entry);
	nwatches++;
	return wa;
}

void
watch_free(struct watch *wa)
{
	if (wa != NULL)
		wa->wa_fd = -1;
}

int64_t
loop_clock(void)
{
	struct timespec	 ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void
loop_forget(void)
{
	struct watch	*wa, *next;

	TAILQ_FOREACH_SAFE(wa, &watches, wa_entry, next) {
		if (wa->wa_fd != -1)
			continue;
		TAILQ_REMOVE(&watches, wa, wa_entry);
		nwatches--;
		free(wa);
	}
}

/* A descriptor that nobody waits for would still report its end. */
static nfds_t
loop_gather(void)
{
	struct watch	*wa;
	nfds_t		 n = 0;
	short		 events;

	if (npolls < nwatches) {
		free(polls);
		npolls = nwatches * 2;
		if ((polls = calloc(npolls, sizeof(*polls))) == NULL)
			err(BOX_FAILED, NULL);
	}
	TAILQ_FOREACH(wa, &watches, wa_entry) {
		wa->wa_poll = NULL;
		if ((events = wa->wa_wants(wa->wa_arg)) == 0)
			continue;
		wa->wa_poll = &polls[n];
		polls[n++] = (struct pollfd){ wa->wa_fd, events, 0 };
	}
	return n;
}

/* Wait so many milliseconds for something, and see to it; 1 if it came. */
int
loop_turn(int timeout)
{
	struct watch	*wa;
	nfds_t		 n;
	int		 ready;

	loop_forget();
	n = loop_gather();
	if ((ready = poll(polls, n, timeout)) == -1 && errno != EINTR)
		err(BOX_FAILED, "poll");
	if (ready <= 0)
		return 0;
	/* A watch that is new has no poll of this turn. */
	TAILQ_FOREACH(wa, &watches, wa_entry)
		if (wa->wa_fd != -1 && wa->wa_poll != NULL &&
		    wa->wa_poll->revents != 0)
			wa->wa_ready(wa->wa_arg);
	return 1;
}
