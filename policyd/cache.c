/* SPDX-License-Identifier: ISC */

/*
 * policyd: the answers that a session keeps, so that nobody is asked twice.
 * An agent chooses what is asked about, so there are bounds, and what has not
 * been used for longest makes room.  Rules are those of the generation in
 * force: a new one empties the cache.
 */

#include <stdlib.h>
#include <string.h>

#include "policyd.h"

static int
kept_cmp(const struct kept *a, const struct kept *b)
{
	if (a->ke_rule->ru_index != b->ke_rule->ru_index)
		return a->ke_rule->ru_index < b->ke_rule->ru_index ? -1 : 1;
	return subject_cmp(&a->ke_subject, &b->ke_subject,
	    a->ke_rule->ru_cache);
}

RB_PROTOTYPE(keptree, kept, ke_entry, kept_cmp);
RB_GENERATE(keptree, kept, ke_entry, kept_cmp);

void
cache_init(struct cache *ca)
{
	memset(ca, 0, sizeof(*ca));
	RB_INIT(&ca->ca_tree);
	TAILQ_INIT(&ca->ca_list);
}

static void
cache_remove(struct cache *ca, struct kept *ke)
{
	RB_REMOVE(keptree, &ca->ca_tree, ke);
	TAILQ_REMOVE(&ca->ca_list, ke, ke_used);
	ca->ca_count--;
	ca->ca_bytes -= ke->ke_size;
	subject_free(&ke->ke_subject);
	free(ke);
}

static struct kept *
cache_find(struct cache *ca, const struct rule *ru, const struct subject *sj)
{
	struct kept	 key;

	key.ke_rule = ru;
	key.ke_subject = *sj;
	return RB_FIND(keptree, &ca->ca_tree, &key);
}

/* 1: an answer is kept, and one use of it is spent. */
int
cache_get(struct cache *ca, const struct rule *ru, const struct subject *sj,
    uint64_t now, struct decision *dn)
{
	struct kept	*ke;

	if ((ke = cache_find(ca, ru, sj)) == NULL)
		return 0;
	if (now >= ke->ke_until) {
		cache_remove(ca, ke);
		return 0;
	}
	*dn = ke->ke_decision;
	dn->dn_cached = 1;
	TAILQ_REMOVE(&ca->ca_list, ke, ke_used);
	TAILQ_INSERT_HEAD(&ca->ca_list, ke, ke_used);
	if (ke->ke_uses != UINT32_MAX && --ke->ke_uses == 0)
		cache_remove(ca, ke);
	return 1;
}

void
cache_put(struct cache *ca, const struct rule *ru, const struct subject *sj,
    uint64_t now, const struct decision *dn)
{
	struct kept	*ke;

	if (ru->ru_cache == CACHE_OFF)
		return;
	if ((ke = cache_find(ca, ru, sj)) != NULL)
		cache_remove(ca, ke);
	if ((ke = calloc(1, sizeof(*ke))) == NULL)
		fatal("%s", __func__);
	ke->ke_rule = ru;
	subject_copy(&ke->ke_subject, sj);
	ke->ke_decision = *dn;
	ke->ke_decision.dn_cached = 0;
	ke->ke_since = now;
	ke->ke_until = ru->ru_ttl_ms == 0 ? UINT64_MAX : now + ru->ru_ttl_ms;
	ke->ke_uses = ru->ru_uses == 0 ? UINT32_MAX : ru->ru_uses;
	ke->ke_size = sizeof(*ke) + subject_size(sj);
	RB_INSERT(keptree, &ca->ca_tree, ke);
	TAILQ_INSERT_HEAD(&ca->ca_list, ke, ke_used);
	ca->ca_count++;
	ca->ca_bytes += ke->ke_size;
	while (ca->ca_count > CACHE_ENTRIES || ca->ca_bytes > CACHE_BYTES)
		cache_remove(ca, TAILQ_LAST(&ca->ca_list, keptlist));
}

/* Drop answers about a host, or all; returns how many. */
uint32_t
cache_clear(struct cache *ca, const char *host)
{
	struct kept	*ke, *next;
	uint32_t	 n = 0;

	TAILQ_FOREACH_SAFE(ke, &ca->ca_list, ke_used, next)
		if (host == NULL || strcmp(ke->ke_subject.sj_host, host) == 0) {
			cache_remove(ca, ke);
			n++;
		}
	return n;
}
