/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: the origin's side.  A connection is made by the dialer
 * under a grant for one exchange, verified here, and kept for later requests
 * to the same place under the same rule and generation.  What an origin sends
 * is as hostile as what an agent sends.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/h2.h"
#include "log.h"
#include "tlsengine.h"
#include "upstream.h"

#define DIALS		256	/* buckets */

LIST_HEAD(dials, upstream);

static struct dials	 dials[DIALS];
static TAILQ_HEAD(, upstream) dead = TAILQ_HEAD_INITIALIZER(dead);
static struct event	 bury;
static uint32_t		 last_id;

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
		h2_free(up->up_h2);
		free(up);
	}
}

/* The memory stays until the callbacks that may still hold it are over. */
void
upstream_free(struct upstream *up)
{
	if (up->up_dead)
		return;
	up->up_dead = true;
	if (up->up_state == UP_DIAL)
		LIST_REMOVE(up, up_hash);
	upstream_unlist(up);
	if (up->up_h2 != NULL)
		h2_close(up->up_h2);
	if (up->up_open)
		io_close(&up->up_io);
	timer_end(&up->up_timer);
	up->up_ex = NULL;
	up->up_raw = NULL;
	TAILQ_INSERT_TAIL(&dead, up, up_entry);
	if (!event_initialized(&bury))
		event_assign(&bury, child_base, -1, 0, up_bury, NULL);
	event_active(&bury, EV_TIMEOUT, 1);
}

/* The connection failed: tell all that wait, or dial again. */
static void
up_fail_end(struct upstream *up, const char *reason, const char *detail)
{
	struct flow	*fl;
	char		 why[REASON_ROOM];

	if (detail != NULL)
		snprintf(why, sizeof(why), "%s: %s", reason, detail);
	else
		strlcpy(why, reason, sizeof(why));
	upstream_free(up);
	while ((fl = TAILQ_FIRST(&up->up_waiters)) != NULL) {
		TAILQ_REMOVE(&up->up_waiters, fl, fl_waits);
		fl->fl_up = NULL;
		if (!up->up_again || fl->fl_redialled) {
			fl->fl_ops->no_upstream(fl, why);
			continue;
		}
		fl->fl_redialled = true;
		/* Nothing is dialled before the verdict: ruled() will. */
		if (fl->fl_state != FLOW_VERDICT)
			fl->fl_ops->want(fl);
	}
}

/* A connection that was in use is gone, and its exchange with it. */
static void
up_lost_end(struct upstream *up, const char *why)
{
	if (up->up_ex != NULL)
		exchange_up_lost(up->up_ex, why);
	else
		upstream_free(up);
}

static void
up_on_timer(void *arg)
{
	struct upstream	*up = arg;

	switch (up->up_state) {
	case UP_IDLE:
		upstream_free(up);
		break;
	case UP_BUSY:
	case UP_SHARED:
		if (up->up_h2 != NULL)
			upstream_h2_late(up);
		else
			up_lost_end(up, up->up_in_body ?
			    REASON_STREAM_BROKEN ": idle" :
			    REASON_UPSTREAM_UNREACHABLE ": no answer in time");
		break;
	case UP_RAW:
		raw_origin_lost(up->up_raw, RAW_ORIGIN_IDLE);
		break;
	case UP_DIAL:
	case UP_HANDSHAKE:
	case UP_READY:
		up_fail_end(up, REASON_UPSTREAM_UNREACHABLE,
		    "no handshake in time");
	}
}

static struct upstream *
up_by_id(uint32_t id)
{
	struct upstream	*up;

	LIST_FOREACH(up, &dials[id % DIALS], up_hash)
		if (up->up_id == id)
			return up;
	return NULL;
}

void
upstream_wait(struct upstream *up, struct flow *fl)
{
	TAILQ_INSERT_TAIL(&up->up_waiters, fl, fl_waits);
	fl->fl_up = up;
}

/* All waiters but one look elsewhere; up is on no list. */
void
upstream_disband(struct upstream *up, const struct flow *but)
{
	struct flow	*fl, *next;

	TAILQ_FOREACH_SAFE(fl, &up->up_waiters, fl_waits, next) {
		if (fl == but)
			continue;
		TAILQ_REMOVE(&up->up_waiters, fl, fl_waits);
		fl->fl_up = NULL;
		fl->fl_ops->want(fl);
	}
}

/*
 * The exchange is over.  A connection that nobody waits for is not wanted, and
 * one whose grant was asked for by this exchange may never come.
 */
void
upstream_unwait(struct upstream *up, struct flow *fl)
{
	bool	 asked = fl == TAILQ_FIRST(&up->up_waiters);

	TAILQ_REMOVE(&up->up_waiters, fl, fl_waits);
	if (up->up_using > 0)
		return;
	if (TAILQ_EMPTY(&up->up_waiters))
		upstream_free(up);
	else if (up->up_state == UP_DIAL && asked) {
		upstream_free(up);
		upstream_disband(up, NULL);
	}
}

/* Connected and verified: serve the first that waits. */
static void
up_connected(struct upstream *up)
{
	struct flow	*fl = TAILQ_FIRST(&up->up_waiters);

	if (upstream_chose_h2(up)) {
		if (upstream_h2_new(up) == -1) {
			up_fail_end(up, REASON_UPSTREAM_UNREACHABLE,
			    "out of memory");
			return;
		}
	} else {
		up->up_ops = &origin_h1;
		upstream_unlist(up);
		upstream_disband(up, fl);
	}
	if (fl->fl_state == FLOW_VERDICT) {
		/* The connection may arrive before the verdict: wait for it. */
		up->up_state = UP_READY;
		io_pause(&up->up_io);
		return;
	}
	upstream_begin(up);
}

/* Hand the connection to the flow it was dialled for; false: that ended. */
bool
upstream_begin(struct upstream *up)
{
	struct flow	*fl = TAILQ_FIRST(&up->up_waiters);

	TAILQ_REMOVE(&up->up_waiters, fl, fl_waits);
	up->up_rule = fl->fl_ruling.rl_rule;
	up->up_state = UP_BUSY;
	io_resume(&up->up_io);
	return fl->fl_ops->connected(fl, up);
}

/* A connection for this flow, as soon as there is a grant: its number. */
uint32_t
upstream_dial(struct flow *fl, bool h1_only, bool prior)
{
	struct upstream	*up;

	if ((up = calloc(1, sizeof(*up))) == NULL)
		fatal("%s", __func__);
	do
		up->up_id = ++last_id;
	while (up->up_id == 0 || up_by_id(up->up_id) != NULL);
	up->up_state = UP_DIAL;
	up->up_place = fl->fl_place;
	up->up_h1_only = h1_only;
	up->up_prior = prior;
	TAILQ_INIT(&up->up_waiters);
	upstream_wait(up, fl);
	timer_init(&up->up_timer, child_base, up_on_timer, up);
	if (up->up_prior ||
	    (!up->up_h1_only && place_may_speak_h2(&up->up_place)))
		upstream_opening(up);
	LIST_INSERT_HEAD(&dials[up->up_id % DIALS], up, up_hash);
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
		up_fail_end(up, REASON_UPSTREAM_UNREACHABLE,
		    "no free descriptor");
		return 0;
	}
	strlcpy(up->up_address, m->dialed.address, sizeof(up->up_address));
	up->up_generation = generation;
	io_init(&up->up_io, child_base, fd, &up_ops, up);
	up->up_open = true;
	timer_set(&up->up_timer, settings.st_handshake_ms);
	if (up->up_place.pc_scheme != URL_HTTPS)
		up_connected(up);
	else if (!io_takes_name(up->up_place.pc_host,
	    strlen(up->up_place.pc_host)))
		up_fail_end(up, REASON_TLS_NAME_UNSUPPORTED, NULL);
	else if (upstream_secure(up) == -1)
		up_fail_end(up, REASON_UPSTREAM_UNREACHABLE, "out of memory");
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
	up_fail_end(up, m->dial_failed.failure == DIAL_ADDRESS_REFUSED ?
	    REASON_ADDRESS_REFUSED : REASON_UPSTREAM_UNREACHABLE,
	    m->dial_failed.why);
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
			up_fail_end(up, REASON_UPSTREAM_UNTRUSTED,
			    X509_verify_cert_error_string(verdict));
		else {
			up->up_again = upstream_forget_session(up);
			up_fail_end(up, REASON_UPSTREAM_UNREACHABLE, why);
		}
		return;
	}
	up_connected(up);
}

/* ---- events -------------------------------------------------------------- */

static void
up_on_read(struct io *io)
{
	struct upstream	*up = io->io_arg;
	char		 byte;

	if (up->up_h2 != NULL && up->up_state != UP_READY) {
		h2_read(up->up_h2);
		return;
	}
	if (up->up_state == UP_IDLE) {
		/* An idle origin may send tickets; anything else ends it. */
		if (io_read(io, &byte, 1) != -1 || errno != EAGAIN)
			upstream_free(up);
		return;
	}
	if (up->up_state == UP_RAW)
		raw_read_origin(up->up_raw);
	else if (up->up_state == UP_BUSY && up->up_ex != NULL)
		upstream_answer(up);
}

static void
up_on_drain(struct io *io)
{
	struct upstream	*up = io->io_arg;
	struct exchange	*ex = up->up_ex;

	if (up->up_h2 != NULL)
		h2_send(up->up_h2);
	if (up->up_state == UP_RAW)
		raw_origin_drained(up->up_raw);
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
	if (up->up_state == UP_IDLE)
		upstream_free(up);
	else if (up->up_state == UP_SHARED ||
	    (up->up_state == UP_BUSY && up->up_h2 != NULL))
		upstream_h2_lost(up, REASON_STREAM_BROKEN);
	else if (up->up_state == UP_RAW)
		raw_origin_lost(up->up_raw, RAW_ORIGIN_RESET);
	else if (up->up_state == UP_BUSY)
		up_lost_end(up, REASON_STREAM_BROKEN);
	else
		up_fail_end(up, REASON_STREAM_BROKEN, NULL);
}
