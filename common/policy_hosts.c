/* SPDX-License-Identifier: ISC */

/*
 * The host conditions of a policy, so that a request meets only the rules
 * that name its host, be there ten of them or a hundred thousand.
 *
 * Each pattern is filed under the literal labels at its end: `*.example.com'
 * under example.com, `www.example.com' under itself, `**' and a rule without
 * a host under nothing.  A name is looked up under itself, under what follows
 * each of its dots, and under nothing; what turns up is merged in the order of
 * the rules.  The files are only known by a hash: a pattern that turns up in
 * error fails the match that each of them is put to.
 */

#include <stdlib.h>
#include <string.h>

#include "hostname.h"
#include "log.h"
#include "policy.h"

#define HASH_EMPTY	2166136261U	/* FNV-1a, from the end backwards */
#define HASH_PRIME	16777619U

struct hosts_entry {
	uint32_t	 he_hash;
	uint32_t	 he_rule;	/* index */
	const char	*he_pattern;	/* NULL: any host */
};

/* Entries in the order of hash, then rule; hx_start is by a hash's top bits. */
struct hosts {
	size_t			 hx_nentries;
	struct hosts_entry	*hx_entries;
	int			 hx_shift;
	uint32_t		*hx_start;
};

static void *
hosts_alloc(size_t n, size_t size)
{
	void	*p;

	if ((p = calloc(n, size)) == NULL)
		fatal("policy");
	return p;
}

static uint32_t
hash_byte(uint32_t hash, char c)
{
	return (hash ^ (unsigned char)c) * HASH_PRIME;
}

/* What follows the last label with a wildcard in it. */
static const char *
literal_end(const char *pattern)
{
	const char	*star, *dot;

	if ((star = strrchr(pattern, '*')) == NULL)
		return pattern;
	if ((dot = strchr(star, '.')) == NULL)
		return "";
	return dot + 1;
}

static uint32_t
hash_text(const char *text)
{
	const char	*p = text + strlen(text);
	uint32_t	 hash = HASH_EMPTY;

	while (p > text)
		hash = hash_byte(hash, *--p);
	return hash;
}

static void
file_pattern(struct hosts *hx, const struct rule *ru, const char *pattern)
{
	struct hosts_entry	*he = &hx->hx_entries[hx->hx_nentries++];

	he->he_hash = pattern == NULL ? HASH_EMPTY :
	    hash_text(literal_end(pattern));
	he->he_rule = ru->ru_index;
	he->he_pattern = pattern;
}

static void
file_rule(struct hosts *hx, const struct rule *ru)
{
	const struct conditions	*hosts = &ru->ru_conditions[COND_HOST];
	const struct condition	*co;

	if (TAILQ_EMPTY(hosts))
		file_pattern(hx, ru, NULL);
	TAILQ_FOREACH(co, hosts, co_entry)
		file_pattern(hx, ru, co->co_text);
}

static int
entry_cmp(const void *a, const void *b)
{
	const struct hosts_entry	*x = a, *y = b;

	if (x->he_hash != y->he_hash)
		return x->he_hash < y->he_hash ? -1 : 1;
	return x->he_rule < y->he_rule ? -1 : x->he_rule > y->he_rule;
}

/* As many starts as there are entries, or up to twice that. */
static void
index_entries(struct hosts *hx)
{
	size_t	 bits = 1, i, n = 0;

	while (((size_t)1 << bits) < hx->hx_nentries)
		bits++;
	hx->hx_shift = (int)(32 - bits);
	hx->hx_start = hosts_alloc((size_t)1 << bits, sizeof(*hx->hx_start));
	for (i = 0; i < (size_t)1 << bits; i++) {
		while (n < hx->hx_nentries &&
		    hx->hx_entries[n].he_hash >> hx->hx_shift < i)
			n++;
		hx->hx_start[i] = (uint32_t)n;
	}
}

static size_t
count_patterns(const struct policy *pl)
{
	const struct condition	*co;
	size_t			 i, n = pl->pl_nrules;

	for (i = 0; i < pl->pl_nrules; i++)
		TAILQ_FOREACH(co, &pl->pl_rules[i]->ru_conditions[COND_HOST],
		    co_entry)
			n++;
	return n;
}

struct hosts *
hosts_new(const struct policy *pl)
{
	struct hosts	*hx = hosts_alloc(1, sizeof(*hx));
	size_t		 i;

	hx->hx_entries = hosts_alloc(count_patterns(pl) + 1,
	    sizeof(*hx->hx_entries));
	for (i = 0; i < pl->pl_nrules; i++)
		file_rule(hx, pl->pl_rules[i]);
	qsort(hx->hx_entries, hx->hx_nentries, sizeof(*hx->hx_entries),
	    entry_cmp);
	index_entries(hx);
	return hx;
}

void
hosts_free(struct hosts *hx)
{
	if (hx == NULL)
		return;
	free(hx->hx_entries);
	free(hx->hx_start);
	free(hx);
}

static void
open_file(struct hosts_walk *hw, const struct hosts *hx, uint32_t hash)
{
	const struct hosts_entry	*he, *end;
	struct hosts_cursor		*hc;

	end = hx->hx_entries + hx->hx_nentries;
	he = hx->hx_entries + hx->hx_start[hash >> hx->hx_shift];
	while (he < end && he->he_hash < hash)
		he++;
	if (he == end || he->he_hash != hash)
		return;
	hc = &hw->hw_cursors[hw->hw_ncursors++];
	hc->hc_next = he;
	hc->hc_end = end;
}

void
hosts_begin(struct hosts_walk *hw, const struct policy *pl, const char *name)
{
	const char	*p = name + strlen(name);
	uint32_t	 hash = HASH_EMPTY;

	hw->hw_policy = pl;
	hw->hw_name = name;
	hw->hw_from = 0;
	hw->hw_ncursors = 0;
	open_file(hw, pl->pl_hosts, hash);
	while (p > name) {
		hash = hash_byte(hash, *--p);
		if (p == name || p[-1] == '.')
			open_file(hw, pl->pl_hosts, hash);
	}
}

/* The next entry of a file that the name matches; 0: there is none. */
static int
cursor_settle(const struct hosts_walk *hw, struct hosts_cursor *hc)
{
	const struct hosts_entry	*he = hc->hc_next;
	uint32_t			 hash = he->he_hash;

	for (; he < hc->hc_end && he->he_hash == hash; he++)
		if (he->he_rule >= hw->hw_from && (he->he_pattern == NULL ||
		    hostname_match(he->he_pattern, hw->hw_name))) {
			hc->hc_next = he;
			return 1;
		}
	return 0;
}

/* NULL: the rest of the rules are about other hosts. */
const struct rule *
hosts_next(struct hosts_walk *hw)
{
	const struct rule	*ru;
	uint32_t		 first = UINT32_MAX;
	size_t			 i = 0;

	while (i < hw->hw_ncursors) {
		if (!cursor_settle(hw, &hw->hw_cursors[i])) {
			hw->hw_cursors[i] = hw->hw_cursors[--hw->hw_ncursors];
			continue;
		}
		if (hw->hw_cursors[i].hc_next->he_rule < first)
			first = hw->hw_cursors[i].hc_next->he_rule;
		i++;
	}
	if (first == UINT32_MAX)
		return NULL;
	ru = hw->hw_policy->pl_rules[first];
	hw->hw_from = first + 1;
	return ru;
}
