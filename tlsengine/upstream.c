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
 * tlsengine runs this: the origin's side.  A connection is made by the dialer
 * under a grant for one exchange, verified here, and kept for later requests
 * to the same place under the same rule and generation.  What an origin sends
 * is as hostile as what an agent sends.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "tlsengine.h"

#define POOLS		256	/* buckets */
#define IDLE_MAX	256	/* connections kept in all pools */

TAILQ_HEAD(pool, upstream);
LIST_HEAD(dials, upstream);

static struct pool	 pools[POOLS];
static struct dials	 dials[POOLS];
static TAILQ_HEAD(, upstream) dead = TAILQ_HEAD_INITIALIZER(dead);
static struct event	 bury;
static uint32_t		 last_id;
static unsigned int	 nidle;

static void	 up_on_read(struct io *);
static void	 up_on_drain(struct io *);
static void	 up_on_secure(struct io *, const char *);
static void	 up_on_error(struct io *, const char *);

static const struct io_ops up_ops = {
	.on_read = up_on_read,
	.on_drain = up_on_drain,
	.on_secure = up_on_secure,
	.on_error = up_on_error,
};

unsigned int
place_bucket(const struct place *pc)
{
	const char	*p;
	uint32_t	 h = pc->pc_port;

	for (p = pc->pc_host; *p != '\0'; p++)
		h = h * 31 + (unsigned char)*p;
	return h % POOLS;
}

void
upstream_init(void)
{
	unsigned int	 i;

	for (i = 0; i < POOLS; i++)
		TAILQ_INIT(&pools[i]);
}

/* ---- life and death ------------------------------------------------------ */

static void
up_bury(evutil_socket_t fd, short what, void *arg)
{
	struct upstream	*up;

	(void)fd, (void)what, (void)arg;
	while ((up = TAILQ_FIRST(&dead)) != NULL) {
		TAILQ_REMOVE(&dead, up, up_entry);
		free(up->up_head);
		chunks_end(&up->up_chunk);
		blocks_put(&in_blocks, up->up_in);
		free(up);
	}
}

static void
pool_remove(struct upstream *up)
{
	TAILQ_REMOVE(&pools[place_bucket(&up->up_place)], up, up_entry);
	nidle--;
}

void
upstream_drop(struct upstream *up)
{
	if (up->up_dead)
		return;
	up->up_dead = true;
	if (up->up_state == UP_DIAL)
		LIST_REMOVE(up, up_hash);
	if (up->up_state == UP_IDLE || up->up_state == UP_SHARED)
		pool_remove(up);
	if (up->up_open)
		io_close(&up->up_io);
	timer_end(&up->up_timer);
	up->up_ex = NULL;
	TAILQ_INSERT_TAIL(&dead, up, up_entry);
	if (!event_initialized(&bury))
		event_assign(&bury, child_base, -1, 0, up_bury, NULL);
	event_active(&bury, EV_TIMEOUT, 1);
}

/* The connection will not be; whoever waits for it hears why. */
static void
up_fail(struct upstream *up, const char *reason, const char *detail)
{
	struct exchange	*ex;
	char		 why[128];

	if (detail != NULL)
		snprintf(why, sizeof(why), "%s: %s", reason, detail);
	else
		strlcpy(why, reason, sizeof(why));
	upstream_drop(up);
	while ((ex = TAILQ_FIRST(&up->up_waiters)) != NULL) {
		TAILQ_REMOVE(&up->up_waiters, ex, ex_waits);
		ex->ex_up = NULL;
		exchange_no_upstream(ex, why);
	}
}

/* A connection that was in use is gone, and its exchange with it. */
static void
up_lost(struct upstream *up, const char *why)
{
	if (up->up_ex != NULL)
		exchange_up_lost(up->up_ex, why);
	else
		upstream_drop(up);
}

static void
up_on_timer(void *arg)
{
	struct upstream	*up = arg;

	switch (up->up_state) {
	case UP_IDLE:
	case UP_SHARED:
		upstream_drop(up);
		break;
	case UP_BUSY:
		up_lost(up, up->up_in_body ? "stream_broken" :
		    "upstream_unreachable: no answer in time");
		break;
	case UP_DIAL:
	case UP_HANDSHAKE:
	case UP_READY:
		up_fail(up, "upstream_unreachable", "no handshake in time");
	}
}

static struct upstream *
up_by_id(uint32_t id)
{
	struct upstream	*up;

	LIST_FOREACH(up, &dials[id % POOLS], up_hash)
		if (up->up_id == id)
			return up;
	return NULL;
}

static void
up_wait(struct upstream *up, struct exchange *ex)
{
	TAILQ_INSERT_TAIL(&up->up_waiters, ex, ex_waits);
	ex->ex_up = up;
}

/* The exchange is over; a connection that nobody waits for is not wanted. */
void
upstream_unwait(struct upstream *up, struct exchange *ex)
{
	TAILQ_REMOVE(&up->up_waiters, ex, ex_waits);
	if (TAILQ_EMPTY(&up->up_waiters))
		upstream_drop(up);
}

/* It can take a request now. */
static void
up_connected(struct upstream *up)
{
	struct exchange	*ex = TAILQ_FIRST(&up->up_waiters);

	up->up_ops = &origin_h1;
	if (ex->ex_state == EX_VERDICT) {
		/* Verdict and connection come by different channels. */
		up->up_state = UP_READY;
		io_pause(&up->up_io);
		return;
	}
	upstream_begin(up);
}

/* The one that it was dialled for begins. */
void
upstream_begin(struct upstream *up)
{
	struct exchange	*ex = TAILQ_FIRST(&up->up_waiters);

	TAILQ_REMOVE(&up->up_waiters, ex, ex_waits);
	up->up_rule = ex->ex_ruling.rl_rule;
	up->up_state = UP_BUSY;
	exchange_connected(ex, up);
}

/* A connection for this exchange, as soon as there is a grant: its number. */
uint32_t
upstream_dial(struct exchange *ex)
{
	struct upstream	*up;

	if ((up = calloc(1, sizeof(*up))) == NULL)
		fatal("%s", __func__);
	do
		up->up_id = ++last_id;
	while (up->up_id == 0 || up_by_id(up->up_id) != NULL);
	up->up_state = UP_DIAL;
	up->up_place = ex->ex_place;
	TAILQ_INIT(&up->up_waiters);
	up_wait(up, ex);
	timer_init(&up->up_timer, child_base, up_on_timer, up);
	LIST_INSERT_HEAD(&dials[up->up_id % POOLS], up, up_hash);
	return up->up_id;
}

int
tlsengine_dialer_dialed(struct ipc *ip, const union msg *m)
{
	struct upstream	*up = up_by_id(m->dialed.dial);
	int		 fd = ipc_take_fd(ip);

	if (up == NULL) {
		if (fd != -1)
			close(fd);
		return 0;
	}
	LIST_REMOVE(up, up_hash);
	up->up_state = UP_HANDSHAKE;
	if (fd == -1) {
		up_fail(up, "upstream_unreachable", "no free descriptor");
		return 0;
	}
	strlcpy(up->up_address, m->dialed.address, sizeof(up->up_address));
	up->up_generation = generation;
	io_init(&up->up_io, child_base, fd, &up_ops, up);
	up->up_open = true;
	timer_set(&up->up_timer, settings.st_handshake_ms);
	if (up->up_place.pc_scheme != URL_HTTPS)
		up_connected(up);
	else if (upstream_secure(up) == -1)
		up_fail(up, "upstream_unreachable", "out of memory");
	return 0;
}

int
tlsengine_dialer_dial_failed(struct ipc *ip, const union msg *m)
{
	struct upstream	*up = up_by_id(m->dial_failed.dial);

	(void)ip;
	if (up == NULL)
		return 0;
	LIST_REMOVE(up, up_hash);
	up->up_state = UP_HANDSHAKE;
	if (m->dial_failed.failure == DIAL_ADDRESS_REFUSED)
		up_fail(up, "address_refused", NULL);
	else
		up_fail(up, "upstream_unreachable", m->dial_failed.why);
	return 0;
}

static void
up_on_secure(struct io *io, const char *why)
{
	struct upstream	*up = io->io_arg;
	long		 verdict;

	if (why != NULL) {
		verdict = io->io_ssl == NULL ? X509_V_OK :
		    SSL_get_verify_result(io->io_ssl);
		if (verdict != X509_V_OK)
			up_fail(up, "upstream_untrusted",
			    X509_verify_cert_error_string(verdict));
		else
			up_fail(up, "upstream_unreachable", why);
		return;
	}
	up_connected(up);
}

/* ---- the pool ------------------------------------------------------------ */

/* Whether there is a connection that the verdict may turn out to allow. */
bool
upstream_kept(const struct exchange *ex)
{
	const struct place	*pc = &ex->ex_place;
	struct upstream		*up;

	TAILQ_FOREACH(up, &pools[place_bucket(pc)], up_entry)
		if (place_same(&up->up_place, pc))
			return true;
	return false;
}

struct upstream *
upstream_take(struct exchange *ex)
{
	struct pool	*pool = &pools[place_bucket(&ex->ex_place)];
	struct upstream	*up;

	TAILQ_FOREACH(up, pool, up_entry)
		if (up->up_generation == generation &&
		    up->up_rule == ex->ex_ruling.rl_rule &&
		    place_same(&up->up_place, &ex->ex_place))
			break;
	if (up == NULL)
		return NULL;
	pool_remove(up);
	up->up_state = UP_BUSY;
	up->up_reused = true;
	return up;
}

/* Nobody uses it now: the next one may. */
void
upstream_keep(struct upstream *up)
{
	if (nidle == IDLE_MAX || up->up_generation != generation) {
		upstream_drop(up);
		return;
	}
	up->up_state = UP_IDLE;
	io_resume(&up->up_io);
	timer_set(&up->up_timer, settings.st_idle_ms);
	TAILQ_INSERT_HEAD(&pools[place_bucket(&up->up_place)], up, up_entry);
	nidle++;
}

/* A new generation: what was opened under the old one is not used again. */
void
upstream_forget_idle(void)
{
	struct upstream	*up, *next;
	unsigned int	 i;

	for (i = 0; i < POOLS; i++)
		TAILQ_FOREACH_SAFE(up, &pools[i], up_entry, next)
			upstream_drop(up);
}

/* ---- events -------------------------------------------------------------- */

static void
up_on_read(struct io *io)
{
	struct upstream	*up = io->io_arg;

	if (up->up_state == UP_IDLE) {
		/* Nothing is due: it is closing, or it lies. */
		upstream_drop(up);
		return;
	}
	if (up->up_state == UP_BUSY && up->up_ex != NULL)
		upstream_answer(up);
}

static void
up_on_drain(struct io *io)
{
	struct upstream	*up = io->io_arg;
	struct exchange	*ex = up->up_ex;

	if (ex == NULL)
		return;
	if (ex->ex_upgraded && ex->ex_request_end && io_empty(io))
		io_finish(io);
	ex->ex_client->go(ex);
}

static void
up_on_error(struct io *io, const char *why)
{
	struct upstream	*up = io->io_arg;

	log_debug("origin %s: %s", up->up_place.pc_host, why);
	if (up->up_state == UP_BUSY)
		up_lost(up, "stream_broken");
	else if (up->up_state == UP_IDLE)
		upstream_drop(up);
	else
		up_fail(up, "stream_broken", NULL);
}
