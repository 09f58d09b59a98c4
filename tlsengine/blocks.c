/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this.  What a block held is plaintext of the session whose
 * engine this is, so it is not cleared for the next request of that session.
 */

#include <stdlib.h>

#include "blocks.h"

struct block {
	struct block	*bl_next;
};

void *
blocks_get(struct blocks *bk)
{
	struct block	*bl = bk->bk_free;

	if (bl == NULL)
		return malloc(bk->bk_size);
	bk->bk_free = bl->bl_next;
	bk->bk_kept--;
	/* With hundreds in use, the next block is no longer cached. */
	__builtin_prefetch(bk->bk_free, 1);
	return bl;
}

void
blocks_put(struct blocks *bk, void *p)
{
	struct block	*bl = p;

	if (bl == NULL)
		return;
	/* Free at once, so that a sanitizer notices use after free. */
#ifdef SANITIZE
	bk->bk_keep = 0;
#endif
	if (bk->bk_kept == bk->bk_keep) {
		free(bl);
		return;
	}
	bl->bl_next = bk->bk_free;
	bk->bk_free = bl;
	bk->bk_kept++;
}
