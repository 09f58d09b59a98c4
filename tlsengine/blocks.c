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
 * tlsengine runs this.  What a block held is plaintext of the session whose
 * engine this is, so it is not cleared for the next request of that session.
 */

#include <stdlib.h>

#include "blocks.h"
#include "h1.h"

struct block {
	struct block	*bl_next;
};

struct blocks	 in_blocks = { .bk_size = H1_HEAD_MAX, .bk_keep = 64 };

void *
blocks_get(struct blocks *bk)
{
	struct block	*bl = bk->bk_free;

	if (bl == NULL)
		return malloc(bk->bk_size);
	bk->bk_free = bl->bl_next;
	bk->bk_kept--;
	/* With hundreds in use the next one has left the nearer caches. */
	__builtin_prefetch(bk->bk_free, 1);
	return bl;
}

void
blocks_put(struct blocks *bk, void *p)
{
	struct block	*bl = p;

	if (bl == NULL)
		return;
	/* A sanitizer is to notice who uses it after this. */
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
