/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: the names that were asked for, and the synthetic addresses that
 * each was given.  A name keeps its pair and a pair its name for the life of
 * the session, since clients remember addresses for as long as they like.
 */

#ifndef NAMES_H
#define NAMES_H

#include <stdbool.h>

#include "addr.h"

#define NAMES_MAX	65536

struct names_pair {
	struct addr	 np_v4;		/* of 198.18.0.0/15 */
	struct addr	 np_v6;		/* of the session's own /64 */
};

enum names_result {
	NAMES_KNOWN,
	NAMES_NEW,
	NAMES_FULL		/* or no memory: there is no pair */
};

/* Whether this session's DNS is ours, so that addresses stand for names. */
bool		 names_enabled(void);
void		 names_enable(bool);

/*
 * The pair of a canonical name, which is no literal address.  Without room a
 * name gets none unless it has one already.
 */
enum names_result names_assign(const char *, bool room, struct names_pair *);
/* The name that was given this address, or NULL. */
const char	*names_find(const struct addr *);

#endif /* NAMES_H */
