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
 * tlsengine runs this: memory for nghttp2, and for what we keep beside its
 * streams.  Each request takes and gives back a dozen pieces of a few sizes,
 * hundreds of requests at a time, which libc's caches are too small for.  What
 * is given back stays at hand for the next piece of its size.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "h2.h"

#define SMALLEST	64	/* bytes */
#define CLASSES		8	/* each twice the one before: 64 to 8192 */
#define KEEP		(256 * 1024)	/* bytes of each class at hand */

/* Before every piece. */
union tag {
	struct {
		size_t		 tg_class;	/* CLASSES: libc's alone */
		size_t		 tg_len;
	};
	max_align_t	 tg_align;
};

static struct blocks	 classes[CLASSES];

static size_t
class_of(size_t len)
{
	size_t	 class = 0, size = SMALLEST;

	for (; class < CLASSES && size < len; class++)
		size *= 2;
	return class;
}

static void *
class_get(size_t class)
{
	struct blocks	*bk = &classes[class];

	if (bk->bk_size == 0) {
		bk->bk_size = sizeof(union tag) + ((size_t)SMALLEST << class);
		bk->bk_keep = KEEP / bk->bk_size;
	}
	return blocks_get(bk);
}

void *
h2_malloc(size_t len, void *unused)
{
	size_t		 class = class_of(len);
	union tag	*tg;

	(void)unused;
	if (len > SIZE_MAX - sizeof(*tg))
		return NULL;
	tg = class < CLASSES ? class_get(class) : malloc(sizeof(*tg) + len);
	if (tg == NULL)
		return NULL;
	tg->tg_class = class;
	tg->tg_len = len;
	return tg + 1;
}

void
h2_release(void *p, void *unused)
{
	union tag	*tg = p;

	(void)unused;
	if (p == NULL)
		return;
	tg--;
	if (tg->tg_class < CLASSES)
		blocks_put(&classes[tg->tg_class], tg);
	else
		free(tg);
}

static void *
mem_calloc(size_t n, size_t size, void *unused)
{
	void	*p;

	if (size != 0 && n > SIZE_MAX / size)
		return NULL;
	if ((p = h2_malloc(n * size, unused)) != NULL)
		memset(p, 0, n * size);
	return p;
}

static void *
mem_realloc(void *old, size_t len, void *unused)
{
	union tag	*tg = old;
	void		*p;

	if (old != NULL && tg[-1].tg_class < CLASSES &&
	    class_of(len) == tg[-1].tg_class) {
		tg[-1].tg_len = len;
		return old;
	}
	if ((p = h2_malloc(len, unused)) == NULL || old == NULL)
		return p;
	memcpy(p, old, tg[-1].tg_len < len ? tg[-1].tg_len : len);
	h2_release(old, unused);
	return p;
}

nghttp2_mem	 h2_mem = {
	NULL, h2_malloc, h2_release, mem_calloc, mem_realloc
};
