/* SPDX-License-Identifier: ISC */


/*
 * The dialer runs this: names, with the dials that wait for them and with
 * what is known of them.  What a name server said is kept for as long as it
 * says, within bounds, and only if it was an address; each use is vetted
 * anew, so that keeping it opens nothing.
 *
 * Nobody is called back from within name_join() or an answer: dials hear of
 * a name in a turn of its own.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "dialer.h"
#include "log.h"

struct name {
	RB_ENTRY(name)		 na_entry;
	TAILQ_ENTRY(name)	 na_kept;	/* in the cache */
	char			 na_host[HOST_LEN + 1];
	struct query		 na_query[FAMILY_MAX];
	bool			 na_asked;	/* else waits for a socket */
	bool			 na_again;	/* asked of former servers */
	bool			 na_is_kept;
	time_t			 na_expires;
	struct dials		 na_dials;
	struct engine		*na_engine;	/* on whose account */
	struct event		 na_turn;
	struct stock_waiter	 na_wait;
};

static int
name_cmp(const struct name *a, const struct name *b)
{
	return strcmp(a->na_host, b->na_host);
}

static RB_HEAD(names, name)	 names = RB_INITIALIZER(&names);
RB_PROTOTYPE(names, name, na_entry, name_cmp)
RB_GENERATE(names, name, na_entry, name_cmp)

static TAILQ_HEAD(, name)	 cache = TAILQ_HEAD_INITIALIZER(cache);
static unsigned int		 ncached, nlookups;

static void	 name_ask(struct name *);

static time_t
now_s(void)
{
	return (time_t)(clock_ms() / 1000);
}

static void
name_soon(struct name *na, int ms)
{
	struct timeval	 tv = { 0, ms * 1000 };

	if (event_add(&na->na_turn, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

static bool
name_is_out(const struct name *na)
{
	return na->na_query[FAMILY_V6].qu_out || na->na_query[FAMILY_V4].qu_out;
}

/* The lookup ended: its engine may start another. */
static void
name_settle(struct name *na)
{
	if (na->na_engine != NULL)
		na->na_engine->en_nlookups--;
	na->na_engine = NULL;
	nlookups--;
}

static void
name_uncache(struct name *na)
{
	if (!na->na_is_kept)
		return;
	TAILQ_REMOVE(&cache, na, na_kept);
	na->na_is_kept = false;
	ncached--;
}

static void
name_free(struct name *na)
{
	if (na->na_is_kept)
		name_uncache(na);
	else
		name_settle(na);
	event_del(&na->na_turn);
	stock_unwait(&na->na_wait);
	RB_REMOVE(names, &names, na);
	free(na);
}

/* Both families were answered, with at least one address. */
static bool
name_is_worth_keeping(const struct name *na)
{
	const struct query	*v6 = &na->na_query[FAMILY_V6];
	const struct query	*v4 = &na->na_query[FAMILY_V4];

	return v6->qu_error == NULL && v4->qu_error == NULL &&
	    v6->qu_count + v4->qu_count > 0;
}

/* Free the oldest name that no dial waits for. */
static void
cache_trim(void)
{
	struct name	*na;

	TAILQ_FOREACH(na, &cache, na_kept)
		if (TAILQ_EMPTY(&na->na_dials)) {
			name_free(na);
			return;
		}
}

static void
name_keep(struct name *na)
{
	uint32_t	 ttl = CACHE_TTL_MAX_S;
	int		 i;

	for (i = 0; i < FAMILY_MAX; i++)
		if (na->na_query[i].qu_count > 0 &&
		    na->na_query[i].qu_ttl < ttl)
			ttl = na->na_query[i].qu_ttl;
	if (ttl < CACHE_TTL_MIN_S)
		ttl = CACHE_TTL_MIN_S;
	na->na_expires = now_s() + ttl;
	na->na_is_kept = true;
	name_settle(na);
	TAILQ_INSERT_TAIL(&cache, na, na_kept);
	if (++ncached > CACHE_MAX)
		cache_trim();
}

/* For people: why a name has no address. */
static const char *
name_fault(const struct name *na)
{
	const struct query	*v6 = &na->na_query[FAMILY_V6];
	const struct query	*v4 = &na->na_query[FAMILY_V4];

	if (v4->qu_error != NULL)
		return v4->qu_error;
	if (v6->qu_error != NULL)
		return v6->qu_error;
	return v4->qu_no_name || v6->qu_no_name ? "no such name" : "no address";
}

/* Pass on what was answered since; may free the dial. */
static void
name_tell(struct name *na, struct dial *di)
{
	const struct query	*qu;
	struct addr		 ad[FAMILY_MAX * ANSWER_MAX];
	size_t			 n = 0;
	int			 i;

	for (i = 0; i < FAMILY_MAX; i++) {
		qu = &na->na_query[i];
		if (qu->qu_out || (di->di_had & (1U << i)))
			continue;
		di->di_had |= 1U << i;
		memcpy(ad + n, qu->qu_addr, qu->qu_count * sizeof(ad[0]));
		n += qu->qu_count;
	}
	if (!name_is_out(na)) {
		di->di_why = name_fault(na);
		name_leave(di);
	}
	dial_addresses(di, ad, n);
}

static void
name_on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct name	*na = arg;
	struct dial	*di, *next;

	(void)fd, (void)what;
	TAILQ_FOREACH_SAFE(di, &na->na_dials, di_name_entry, next)
		name_tell(na, di);
	if (name_is_out(na) || na->na_is_kept)
		return;
	if (name_is_worth_keeping(na))
		name_keep(na);
	else
		name_free(na);
}

static void
name_again(void *arg)
{
	name_ask(arg);
}

static void
name_ask(struct name *na)
{
	enum socket_kind	 kind;
	int			 i;

	if (resolve_lacks(&kind)) {
		stock_wait(&na->na_wait, kind);
		return;
	}
	na->na_asked = true;
	for (i = 0; i < FAMILY_MAX; i++) {
		memset(&na->na_query[i], 0, sizeof(na->na_query[i]));
		na->na_query[i].qu_name = na;
		na->na_query[i].qu_family = i;
		na->na_query[i].qu_out = true;
	}
	for (i = 0; i < FAMILY_MAX; i++)
		resolve_ask(na->na_host, &na->na_query[i]);
}

/*
 * IPv4 alone waits a moment for IPv6, which is tried first; not the other
 * way round.
 */
void
name_answered(struct query *qu)
{
	struct name	*na = qu->qu_name;
	bool		 early;

	qu->qu_out = false;
	early = qu->qu_family == FAMILY_V4 && name_is_out(na);
	name_soon(na, early ? RESOLUTION_DELAY_MS : 0);
}

/* The name servers are being replaced: ask the new ones later. */
void
name_cancelled(struct query *qu)
{
	qu->qu_name->na_again = true;
}

static struct name *
name_new(struct engine *en, const char *host)
{
	struct name	*na;

	if ((na = calloc(1, sizeof(*na))) == NULL)
		fatal("%s", __func__);
	strlcpy(na->na_host, host, sizeof(na->na_host));
	TAILQ_INIT(&na->na_dials);
	na->na_engine = en;
	na->na_wait.sw_again = name_again;
	na->na_wait.sw_arg = na;
	event_assign(&na->na_turn, child_base, -1, 0, name_on_turn, na);
	RB_INSERT(names, &names, na);
	en->en_nlookups++;
	nlookups++;
	return na;
}

static struct name *
name_find(const char *host)
{
	struct name	 key, *na;

	strlcpy(key.na_host, host, sizeof(key.na_host));
	na = RB_FIND(names, &names, &key);
	if (na != NULL && na->na_is_kept && TAILQ_EMPTY(&na->na_dials) &&
	    na->na_expires <= now_s()) {
		name_free(na);
		na = NULL;
	}
	return na;
}

/* 0: the dial will hear; -1: too many lookups are under way. */
int
name_join(struct dial *di, const char *host)
{
	struct engine	*en = di->di_engine;
	struct name	*na = name_find(host);
	bool		 is_new = na == NULL;

	if (is_new) {
		if (nlookups >= LOOKUPS_MAX ||
		    en->en_nlookups >= LOOKUPS_ENGINE_MAX)
			return -1;
		na = name_new(en, host);
	}
	di->di_name = na;
	TAILQ_INSERT_TAIL(&na->na_dials, di, di_name_entry);
	if (is_new)
		name_ask(na);
	else if (na->na_asked)
		name_soon(na, 0);
	return 0;
}

/* The lookup goes on without the dial: its answer is cached. */
void
name_leave(struct dial *di)
{
	struct name	*na = di->di_name;

	TAILQ_REMOVE(&na->na_dials, di, di_name_entry);
	di->di_name = NULL;
	if (TAILQ_EMPTY(&na->na_dials) && !na->na_asked)
		name_free(na);
}

/* A new configuration: forget all answers. */
void
names_forget(void)
{
	struct name	*na, *next;

	TAILQ_FOREACH_SAFE(na, &cache, na_kept, next)
		if (TAILQ_EMPTY(&na->na_dials))
			name_free(na);
		else
			na->na_expires = 0;
}

/* Repeat what was cancelled, now of the new servers. */
void
names_ask_again(void)
{
	struct name	*na;

	RB_FOREACH(na, names, &names) {
		if (!na->na_again)
			continue;
		na->na_again = false;
		event_del(&na->na_turn);
		name_ask(na);
	}
}

void
names_engine_gone(const struct engine *en)
{
	struct name	*na;

	RB_FOREACH(na, names, &names)
		if (na->na_engine == en)
			na->na_engine = NULL;
}
