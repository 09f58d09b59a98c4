/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: connections to origins that others than those who
 * opened them may use.  All that a later request must share with the first is
 * place, rule and generation.
 *
 * A connection that speaks HTTP/1 is here while nobody uses it; one that
 * speaks HTTP/2 is here while it has room.  Where HTTP/2 was spoken the last
 * time, one connection is opened and the others wait for it.
 */

#include "tlsengine.h"
#include "upstream.h"

#define POOLS		256	/* buckets */
#define IDLE_MAX	256	/* connections kept in all pools */

static struct upstreams	 pools[POOLS];
static struct upstreams	 opening = TAILQ_HEAD_INITIALIZER(opening);
static unsigned int	 nidle;

static struct upstreams *
pool_of(const struct place *pc)
{
	return &pools[place_hash(pc) % POOLS];
}

void
upstream_init(void)
{
	unsigned int	 i;

	for (i = 0; i < POOLS; i++)
		TAILQ_INIT(&pools[i]);
}

static void
up_list(struct upstream *up, struct upstreams *list)
{
	upstream_unlist(up);
	TAILQ_INSERT_HEAD(list, up, up_entry);
	up->up_list = list;
}

void
upstream_unlist(struct upstream *up)
{
	if (up->up_list == NULL)
		return;
	TAILQ_REMOVE(up->up_list, up, up_entry);
	up->up_list = NULL;
	if (up->up_state == UP_IDLE)
		nidle--;
}

/* ---- to be had ----------------------------------------------------------- */

/*
 * In the clear nothing tells which version an origin speaks: it is spoken to
 * as the client has spoken.  A WebSocket has HTTP/1 to be opened with.
 */
bool
upstream_prior(const struct exchange *ex)
{
	return ex->ex_asks != NULL && ex->ex_place.pc_scheme == URL_HTTP &&
	    ex->ex_request.hd_upgrade.s == NULL;
}

static bool
up_serves(const struct upstream *up, const struct exchange *ex)
{
	return up->up_generation == generation &&
	    place_same(&up->up_place, &ex->ex_place) &&
	    up->up_prior == upstream_prior(ex) &&
	    (up->up_h2 == NULL || upstream_h2_serves(up, ex));
}

static bool
same_rule(const struct upstream *up, const struct exchange *ex)
{
	const struct flow	*first = TAILQ_FIRST(&up->up_waiters);

	if (up->up_state == UP_BUSY)
		return up->up_rule == ex->ex_ruling.rl_rule;
	return first->fl_state == FLOW_CONNECT &&
	    first->fl_ruling.rl_rule == ex->ex_ruling.rl_rule;
}

/*
 * Whether a connection that is being opened may serve others besides.  Where
 * that is not known yet, streams wait to hear, for they come in swarms; a
 * client of HTTP/1 has one request at a time and a connection for each.
 */
static bool
may_share(const struct exchange *ex)
{
	if (ex->ex_request.hd_upgrade.s != NULL)
		return false;
	return upstream_prior(ex) || place_speaks_h2(&ex->ex_place) ||
	    (ex->ex_asks != NULL && place_may_speak_h2(&ex->ex_place));
}

/* A connection being opened that ex may share; ruled: of its rule. */
static struct upstream *
up_to_come(const struct exchange *ex, bool ruled)
{
	struct upstream	*up;

	if (!may_share(ex))
		return NULL;
	TAILQ_FOREACH(up, &opening, up_entry)
		if (place_same(&up->up_place, &ex->ex_place) &&
		    (!ruled || same_rule(up, ex)))
			return up;
	return NULL;
}

/* Whether a connection is kept or opening that a verdict may allow. */
bool
upstream_kept(const struct exchange *ex)
{
	struct upstream	*up;

	TAILQ_FOREACH(up, pool_of(&ex->ex_place), up_entry)
		if (up_serves(up, ex))
			return true;
	return up_to_come(ex, false) != NULL;
}

struct upstream *
upstream_take(struct exchange *ex)
{
	struct upstreams	*pool = pool_of(&ex->ex_place);
	struct upstream		*up;

	TAILQ_FOREACH(up, pool, up_entry)
		if (up->up_rule == ex->ex_ruling.rl_rule && up_serves(up, ex))
			break;
	if (up == NULL)
		return NULL;
	up->up_reused = true;
	if (up->up_h2 != NULL) {
		upstream_share(up);
		return up;
	}
	upstream_unlist(up);
	up->up_state = UP_BUSY;
	return up;
}

/* Allowed, but no connection is kept: share one or dial. */
void
upstream_want(struct exchange *ex)
{
	struct upstream	*up = up_to_come(ex, true);

	if (up != NULL)
		upstream_wait(up, &ex->ex_flow);
	else
		verdict_ask(&ex->ex_flow, upstream_dial_exchange(ex));
}

uint32_t
upstream_dial_exchange(struct exchange *ex)
{
	return upstream_dial(&ex->ex_flow,
	    ex->ex_request.hd_upgrade.s != NULL, upstream_prior(ex));
}

/* ---- coming and going ---------------------------------------------------- */

/* List a connection being opened: others may wait for it. */
void
upstream_opening(struct upstream *up)
{
	up_list(up, &opening);
}

/* List a connection in use that has room for others. */
void
upstream_share(struct upstream *up)
{
	if (up->up_state == UP_SHARED)
		return;
	up_list(up, pool_of(&up->up_place));
	up->up_state = UP_SHARED;
	timer_clear(&up->up_timer);
}

/* No new requests; those under way are finished. */
void
upstream_retire(struct upstream *up)
{
	upstream_unlist(up);
	up->up_state = UP_BUSY;
}

/* Keep an unused connection for later requests. */
void
upstream_keep(struct upstream *up)
{
	if (nidle == IDLE_MAX || up->up_generation != generation) {
		upstream_free(up);
		return;
	}
	up_list(up, pool_of(&up->up_place));
	up->up_state = UP_IDLE;
	nidle++;
	io_resume(&up->up_io);
	timer_set(&up->up_timer, settings.st_idle_ms);
}

/* A new generation: what was opened under the old one is not used again. */
void
upstream_forget_idle(void)
{
	struct upstream	*up, *next;
	unsigned int	 i;

	for (i = 0; i < POOLS; i++)
		TAILQ_FOREACH_SAFE(up, &pools[i], up_entry, next)
			if (up->up_state == UP_IDLE)
				upstream_free(up);
			else
				upstream_retire(up);
	TAILQ_FOREACH_SAFE(up, &opening, up_entry, next)
		if (up->up_state == UP_BUSY)
			upstream_unlist(up);
}
