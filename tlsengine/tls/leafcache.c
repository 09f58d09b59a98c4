/* SPDX-License-Identifier: ISC */

/*
 * The mint's cache of leaves; see leafcache.h.  Runs in the engine.
 */

#include <stdlib.h>
#include <string.h>

#include <openssl/x509.h>

#include "leafcache.h"

static int
leaf_cmp(const struct leaf *a, const struct leaf *b)
{
	return strcmp(a->lf_name, b->lf_name);
}

RB_PROTOTYPE(leaf_tree, leaf, lf_node, leaf_cmp);
RB_GENERATE(leaf_tree, leaf, lf_node, leaf_cmp);

void
leafcache_init(struct leafcache *lc, size_t max)
{
	memset(lc, 0, sizeof(*lc));
	RB_INIT(&lc->lc_names);
	TAILQ_INIT(&lc->lc_used);
	lc->lc_max = max;
}

struct leaf *
leafcache_find(struct leafcache *lc, const char *name)
{
	struct leaf	 key, *leaf;

	if (strlcpy(key.lf_name, name, sizeof(key.lf_name)) >=
	    sizeof(key.lf_name))
		return NULL;
	if ((leaf = RB_FIND(leaf_tree, &lc->lc_names, &key)) == NULL)
		return NULL;
	TAILQ_REMOVE(&lc->lc_used, leaf, lf_use);
	TAILQ_INSERT_HEAD(&lc->lc_used, leaf, lf_use);
	return leaf;
}

struct leaf *
leafcache_add(struct leafcache *lc, const char *name, X509 *cert)
{
	struct leaf	*leaf;

	if ((leaf = calloc(1, sizeof(*leaf))) == NULL)
		return NULL;
	if (strlcpy(leaf->lf_name, name, sizeof(leaf->lf_name)) >=
	    sizeof(leaf->lf_name)) {
		free(leaf);
		return NULL;
	}
	if (lc->lc_n == lc->lc_max) {
		leafcache_remove(lc, TAILQ_LAST(&lc->lc_used, leaf_list));
		lc->lc_evictions++;
	}
	leaf->lf_cert = cert;
	RB_INSERT(leaf_tree, &lc->lc_names, leaf);
	TAILQ_INSERT_HEAD(&lc->lc_used, leaf, lf_use);
	lc->lc_n++;
	return leaf;
}

void
leafcache_remove(struct leafcache *lc, struct leaf *leaf)
{
	RB_REMOVE(leaf_tree, &lc->lc_names, leaf);
	TAILQ_REMOVE(&lc->lc_used, leaf, lf_use);
	lc->lc_n--;
	X509_free(leaf->lf_cert);
	free(leaf);
}

void
leafcache_clear(struct leafcache *lc)
{
	struct leaf	*leaf;

	while ((leaf = TAILQ_FIRST(&lc->lc_used)) != NULL)
		leafcache_remove(lc, leaf);
}
