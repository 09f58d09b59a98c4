/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: large blocks of one size, kept for the next user.  libc takes
 * its time over blocks of this size, and every request needs several.
 */

#ifndef BLOCKS_H
#define BLOCKS_H

#include <stddef.h>

struct block;

struct blocks {
	size_t		 bk_size;	/* of each */
	unsigned int	 bk_keep;	/* at most this many */
	unsigned int	 bk_kept;
	struct block	*bk_free;
};

/* Not cleared; NULL if memory is short. */
void	*blocks_get(struct blocks *);
void	 blocks_put(struct blocks *, void *);

#endif /* BLOCKS_H */
