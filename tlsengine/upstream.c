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
	if (up->up_state == UP_IDLE)
		pool_remove(up);
	if (up->up_open)
		io_close(&up->up_io);
	event_del(&up->up_timer);
	up->up_ex = NULL;
	TAILQ_INSERT_TAIL(&dead, up, up_entry);
	if (!event_initialized(&bury))
		event_assign(&bury, child_base, -1, 0, up_bury, NULL);
	event_active(&bury, EV_TIMEOUT, 1);
}

/* The connection is of no use; whoever waits for it hears why. */
static void
up_fail(struct upstream *up, const char *reason, const char *detail)
{
	struct exchange	*ex = up->up_ex;
	char		 why[128];
	bool		 busy = up->up_state == UP_BUSY;

	if (ex == NULL) {
		upstream_drop(up);
		return;
	}
	if (busy) {
		exchange_up_lost(ex, reason);
		return;
	}
	if (detail != NULL)
		snprintf(why, sizeof(why), "%s: %s", reason, detail);
	else
		strlcpy(why, reason, sizeof(why));
	upstream_drop(up);
	exchange_no_upstream(ex, why);
}

static void
up_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct upstream	*up = arg;

	(void)fd, (void)what;
	switch (up->up_state) {
	case UP_IDLE:
		upstream_drop(up);
		break;
	case UP_BUSY:
		up_fail(up, up->up_in_body ? "stream_broken" :
		    "upstream_unreachable: no answer in time", NULL);
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
	up->up_ex = ex;
	ex->ex_up = up;
	event_assign(&up->up_timer, child_base, -1, 0, up_on_timer, up);
	event_priority_set(&up->up_timer, 1);
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
	set_timer(&up->up_timer, settings.st_handshake_ms);
	if (up->up_place.pc_scheme == URL_HTTP)
		exchange_connected(up->up_ex, up);
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
	exchange_connected(up->up_ex, up);
}

/* ---- the pool ------------------------------------------------------------ */

/* Whether there is a connection that the verdict may turn out to allow. */
bool
upstream_kept(const struct place *pc)
{
	struct upstream	*up;

	TAILQ_FOREACH(up, &pools[place_bucket(pc)], up_entry)
		if (place_same(&up->up_place, pc))
			return true;
	return false;
}

struct upstream *
upstream_take(const struct exchange *ex)
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

/* An exchange is done with it. */
void
upstream_release(struct upstream *up, bool reusable)
{
	struct pool	*pool = &pools[place_bucket(&up->up_place)];

	up->up_ex = NULL;
	if (!reusable || !up->up_keep || up->up_io.io_broken ||
	    up->up_io.io_eof || up->up_inpos != up->up_inlen ||
	    io_pending(&up->up_io) || nidle == IDLE_MAX ||
	    up->up_generation != generation) {
		upstream_drop(up);
		return;
	}
	blocks_put(&in_blocks, up->up_in);
	up->up_in = NULL;
	up->up_inlen = up->up_inpos = 0;
	up->up_in_body = false;
	up->up_interim = 0;
	memset(&up->up_scan, 0, sizeof(up->up_scan));
	up->up_state = UP_IDLE;
	io_resume(&up->up_io);
	set_timer(&up->up_timer, settings.st_idle_ms);
	TAILQ_INSERT_HEAD(pool, up, up_entry);
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

/* ---- the request --------------------------------------------------------- */

int
upstream_request(struct exchange *ex, const struct h1_out_request *or)
{
	struct upstream	*up = ex->ex_up;
	size_t		 room;
	ssize_t		 len;
	char		*p;

	up->up_state = UP_BUSY;
	if (!up->up_reused)
		up->up_rule = ex->ex_ruling.rl_rule;
	io_resume(&up->up_io);
	set_timer(&up->up_timer, settings.st_response_ms);
	up->up_chunked_out = or->or_framing == H1_CHUNKED;
	if ((p = io_reserve(&up->up_io, &room)) == NULL ||
	    (len = h1_format_request(p, room, or)) == -1)
		return -1;
	io_commit(&up->up_io, len);
	return 0;
}

void *
upstream_reserve(struct exchange *ex, size_t *room)
{
	struct upstream	*up = ex->ex_up;

	if (up->up_io.io_full)
		return NULL;
	return up->up_chunked_out ? io_reserve_chunk(&up->up_io, room) :
	    io_reserve(&up->up_io, room);
}

void
upstream_commit(struct exchange *ex, size_t len)
{
	struct upstream	*up = ex->ex_up;

	if (up->up_chunked_out)
		io_commit_chunk(&up->up_io, len);
	else
		io_commit(&up->up_io, len);
	if (up->up_io.io_full)
		io_flush(&up->up_io);
}

/* The answer is due so long after the last of the request. */
void
upstream_flush(struct exchange *ex)
{
	struct upstream	*up = ex->ex_up;

	if (!up->up_in_body)
		set_timer(&up->up_timer, settings.st_response_ms);
	io_flush(&up->up_io);
}

void
upstream_end(struct exchange *ex)
{
	struct upstream	*up = ex->ex_up;

	if (up->up_chunked_out)
		io_put(&up->up_io, "0\r\n\r\n", 5);
	upstream_flush(ex);
	if (ex->ex_upgraded && io_empty(&up->up_io))
		io_finish(&up->up_io);
}

/* ---- events -------------------------------------------------------------- */

/* The client has room again. */
void
upstream_go(struct exchange *ex)
{
	struct upstream	*up = ex->ex_up;

	if (up != NULL && up->up_state == UP_BUSY)
		io_resume(&up->up_io);
}

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
	conn_go(ex);
}

static void
up_on_error(struct io *io, const char *why)
{
	struct upstream	*up = io->io_arg;

	log_debug("origin %s: %s", up->up_place.pc_host, why);
	if (up->up_state == UP_IDLE)
		upstream_drop(up);
	else
		up_fail(up, "stream_broken", NULL);
}
