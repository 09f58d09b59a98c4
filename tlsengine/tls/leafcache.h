/* SPDX-License-Identifier: ISC */

/*
 * The leaves of a mint that are kept, by name; the one unused for longest goes
 * first.  Names are the agent's choice: the number kept is bounded, and a tree
 * rather than a hash leaves nothing to collide.
 */

#ifndef LEAFCACHE_H
#define LEAFCACHE_H

#include <sys/queue.h>
#include <sys/tree.h>

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <openssl/ssl.h>

#include "hostname.h"

struct leaf {
	RB_ENTRY(leaf)		 lf_node;
	TAILQ_ENTRY(leaf)	 lf_use;
	X509			*lf_cert;
	time_t			 lf_made;
	unsigned char		 lf_context[SSL_MAX_SID_CTX_LENGTH];
	char			 lf_name[HOSTNAME_MAX];
};

RB_HEAD(leaf_tree, leaf);
TAILQ_HEAD(leaf_list, leaf);

struct leafcache {
	struct leaf_tree	 lc_names;
	struct leaf_list	 lc_used;	/* latest first */
	size_t			 lc_n;
	size_t			 lc_max;
	uint64_t		 lc_evictions;
};

void		 leafcache_init(struct leafcache *, size_t max);
struct leaf	*leafcache_find(struct leafcache *, const char *name);
/* The name is not there yet.  The cache owns cert, unless NULL is returned. */
struct leaf	*leafcache_add(struct leafcache *, const char *name,
		    X509 *cert);
void		 leafcache_remove(struct leafcache *, struct leaf *);
void		 leafcache_clear(struct leafcache *);

#endif /* LEAFCACHE_H */
