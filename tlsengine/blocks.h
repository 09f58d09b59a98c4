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

/* For a head, of a request or of an answer. */
extern struct blocks	 in_blocks;

/* Not cleared; NULL if memory is short. */
void	*blocks_get(struct blocks *);
void	 blocks_put(struct blocks *, void *);

#endif /* BLOCKS_H */
