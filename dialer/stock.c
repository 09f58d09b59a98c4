/* SPDX-License-Identifier: ISC */


/*
 * The dialer runs this: sockets.  It may not make any, so it keeps a few of
 * each kind that the parent made, and asks for another as one is used.  Who
 * finds none waits, and is called when there may be one.
 *
 * Name resolution may take the last ones: else connections, which come in
 * bursts, could leave none for an answer that must be fetched over TCP.
 */

#include <sys/resource.h>

#include <errno.h>
#include <unistd.h>

#include "dialer.h"
#include "log.h"

#define STOCK_SIZE	8	/* of each kind, when nobody waits */
#define STOCK_RESERVE	2	/* of these, for name resolution */
#define STOCK_ASKED_MAX	64	/* of each kind, not yet here */
#define STOCK_RETRY_MS	100
#define STOCK_ABSENT_MS	1000

_Static_assert(STOCK_RESERVE < STOCK_SIZE, "some are for connections");

static struct stock {
	int		 st_fds[STOCK_SIZE + 1];
	size_t		 st_count;
	size_t		 st_reserve;
	size_t		 st_asked;
	bool		 st_seen;	/* the parent can make them */
	bool		 st_absent;	/* it seems that it cannot */
	size_t		 st_nwaiters;
	TAILQ_HEAD(, stock_waiter) st_waiters;
} stocks[SOCKET_KIND_MAX];

static rlim_t		 in_use, in_use_max;
static struct event	 on_turn, on_retry, on_absent;
static bool		 is_open;

/* Descriptors that must be left for channels and for what is being passed. */
void
stock_warm(void)
{
	struct rlimit	 rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("limit of descriptors");
	in_use_max = dialer_sandbox.sb_files;
	if (rl.rlim_max < in_use_max)
		in_use_max = rl.rlim_max;
	in_use_max = in_use_max / 4 * 3;
}

bool
stock_is_tight(void)
{
	return in_use >= in_use_max / 2;
}

static void
stock_refill(enum socket_kind kind)
{
	struct stock	*st = &stocks[kind];
	size_t		 want = STOCK_SIZE;

	if (event_pending(&on_retry, EV_TIMEOUT, NULL))
		return;
	if (in_use < in_use_max)
		want += st->st_nwaiters;
	while (st->st_count + st->st_asked < want &&
	    st->st_asked < STOCK_ASKED_MAX) {
		ipc_send(child_parent, -1, SOCKET_ASK, socket_kind,
		    .kind = kind);
		st->st_asked++;
	}
}

/*
 * What is in front has waited longest; who finds nothing waits again.  What
 * came for somebody who is gone meanwhile is not kept.
 */
static void
stock_serve(enum socket_kind kind)
{
	struct stock		*st = &stocks[kind];
	struct stock_waiter	*sw;
	size_t			 n = st->st_nwaiters;

	while (n-- > 0 && (stock_has(kind) || st->st_absent) &&
	    (sw = TAILQ_FIRST(&st->st_waiters)) != NULL) {
		stock_unwait(sw);
		sw->sw_again(sw->sw_arg);
	}
	while (st->st_count > STOCK_SIZE)
		close(st->st_fds[--st->st_count]);
	stock_refill(kind);
}

static void
stock_serve_all(evutil_socket_t fd, short what, void *arg)
{
	enum socket_kind	 kind;

	(void)fd, (void)what, (void)arg;
	for (kind = 0; kind < SOCKET_KIND_MAX; kind++)
		stock_serve(kind);
}

/* Sockets that have not come by now are of a family that is missing. */
static void
stock_give_up(evutil_socket_t fd, short what, void *arg)
{
	enum socket_kind	 kind;

	for (kind = 0; kind < SOCKET_KIND_MAX; kind++)
		stocks[kind].st_absent = !stocks[kind].st_seen;
	stock_serve_all(fd, what, arg);
}

/* With the first configuration the parent may be asked for sockets. */
void
stock_open(void)
{
	static const struct timeval	 absent = { STOCK_ABSENT_MS / 1000, 0 };
	enum socket_kind		 kind;

	if (is_open)
		return;
	is_open = true;
	event_assign(&on_turn, child_base, -1, 0, stock_serve_all, NULL);
	event_assign(&on_retry, child_base, -1, 0, stock_serve_all, NULL);
	event_assign(&on_absent, child_base, -1, 0, stock_give_up, NULL);
	event_add(&on_absent, &absent);
	stocks[SOCKET_TCP4].st_reserve = STOCK_RESERVE;
	stocks[SOCKET_TCP6].st_reserve = STOCK_RESERVE;
	for (kind = 0; kind < SOCKET_KIND_MAX; kind++) {
		TAILQ_INIT(&stocks[kind].st_waiters);
		stock_refill(kind);
	}
}

/* The mark is another one: what was made before must not be dialled with. */
void
stock_renew(void)
{
	enum socket_kind	 kind;

	for (kind = 0; kind < SOCKET_KIND_MAX; kind++) {
		while (stocks[kind].st_count > 0)
			close(stocks[kind].st_fds[--stocks[kind].st_count]);
		stock_refill(kind);
	}
}

bool
stock_has(enum socket_kind kind)
{
	const struct stock	*st = &stocks[kind];

	return st->st_count > st->st_reserve && in_use < in_use_max;
}

bool
stock_absent(enum socket_kind kind)
{
	return stocks[kind].st_absent;
}

/* Take the newest: the oldest may stay at the bottom. */
int
stock_take_reserved(enum socket_kind kind)
{
	struct stock	*st = &stocks[kind];
	int		 fd;

	if (st->st_count == 0) {
		errno = EMFILE;
		return -1;
	}
	fd = st->st_fds[--st->st_count];
	in_use++;
	stock_refill(kind);
	return fd;
}

int
stock_take(enum socket_kind kind)
{
	return stock_has(kind) ? stock_take_reserved(kind) : -1;
}

void
stock_wait(struct stock_waiter *sw, enum socket_kind kind)
{
	sw->sw_kind = kind;
	sw->sw_waits = true;
	TAILQ_INSERT_TAIL(&stocks[kind].st_waiters, sw, sw_entry);
	stocks[kind].st_nwaiters++;
	stock_refill(kind);
}

void
stock_unwait(struct stock_waiter *sw)
{
	if (!sw->sw_waits)
		return;
	sw->sw_waits = false;
	TAILQ_REMOVE(&stocks[sw->sw_kind].st_waiters, sw, sw_entry);
	stocks[sw->sw_kind].st_nwaiters--;
}

/* A socket went to an engine: it is no longer in our count. */
void
stock_handed(void)
{
	static const struct timeval	 at_once;

	if (in_use-- >= in_use_max)
		event_add(&on_turn, &at_once);
}

void
stock_close(int fd)
{
	close(fd);
	stock_handed();
}

int
dialer_parent_socket(struct ipc *ip, const union msg *m)
{
	static const struct timeval	 retry = { 0, STOCK_RETRY_MS * 1000 };
	uint8_t				 kind = m->socket_kind.kind;
	int				 fd = ipc_take_fd(ip);

	if (kind >= SOCKET_KIND_MAX || stocks[kind].st_asked == 0) {
		if (fd != -1)
			close(fd);
		return ipc_bad(ip, "kind %u, which was not asked for", kind);
	}
	stocks[kind].st_asked--;
	stocks[kind].st_seen = true;
	stocks[kind].st_absent = false;
	if (fd == -1) {
		/* No free descriptor: retry after some are closed. */
		event_add(&on_retry, &retry);
		return 0;
	}
	stocks[kind].st_fds[stocks[kind].st_count++] = fd;
	stock_serve(kind);
	return 0;
}
