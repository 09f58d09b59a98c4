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
