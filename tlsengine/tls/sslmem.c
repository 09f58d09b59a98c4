/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: libssl lets go of its record buffers whenever they are
 * empty, so that an idle connection costs little, and takes new ones for every
 * record.  They are all of about one size; we keep some at hand.
 */

#include <malloc.h>
#include <stdlib.h>

#include <openssl/crypto.h>

#include "blocks.h"
#include "tlsengine.h"

#ifdef __GLIBC__

#define RECORD_MIN	16384		/* what libssl asks for lies between */
#define RECORD_SIZE	(18 * 1024)

static struct blocks	 records = { .bk_size = RECORD_SIZE, .bk_keep = 128 };

static void *
sslmem_malloc(size_t len, const char *file, int line)
{
	(void)file, (void)line;
	if (len >= RECORD_MIN && len <= RECORD_SIZE)
		return blocks_get(&records);
	return malloc(len);
}

static void *
sslmem_realloc(void *p, size_t len, const char *file, int line)
{
	(void)file, (void)line;
	return realloc(p, len);
}

/* Recognise a record buffer by its usable size. */
static void
sslmem_free(void *p, const char *file, int line)
{
	size_t	 size;

	(void)file, (void)line;
	if (p == NULL)
		return;
	size = malloc_usable_size(p);
	if (size >= RECORD_SIZE && size < RECORD_SIZE + 64)
		blocks_put(&records, p);
	else
		free(p);
}

/* libcrypto takes these only before its first allocation. */
void
sslmem_init(void)
{
	CRYPTO_set_mem_functions(sslmem_malloc, sslmem_realloc, sslmem_free);
}

#else

void
sslmem_init(void)
{
}

#endif
