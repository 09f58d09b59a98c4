/* SPDX-License-Identifier: ISC */

/*
 * Every process runs this.  Numbers travel in network order; a reader that
 * runs out of bytes fails and consumes nothing.
 */

#include <stdlib.h>
#include <unistd.h>

#include "imsg.h"

#define IBUF_SIZE_MIN	4096

struct ibuf *
ibuf_dynamic(size_t len, size_t max)
{
	struct ibuf	*b;

	if (len == 0 || max < len) {
		errno = EINVAL;
		return NULL;
	}
	if ((b = calloc(1, sizeof(*b))) == NULL)
		return NULL;
	if ((b->buf = malloc(len)) == NULL) {
		free(b);
		return NULL;
	}
	b->size = len;
	b->max = max;
	return b;
}

/* Wrap bytes that somebody else owns for reading; ibuf_free is not due. */
void
ibuf_from_buffer(struct ibuf *b, void *data, size_t len)
{
	b->buf = data;
	b->size = b->max = b->wpos = len;
	b->rpos = 0;
}

/* Storage for len more bytes; out of line, as it is seldom needed. */
int
ibuf_grow(struct ibuf *b, size_t len)
{
	unsigned char	*nb;
	size_t		 need, nsize;

	if (len > b->max || b->wpos > b->max - len) {
		errno = ERANGE;
		return -1;
	}
	need = b->wpos + len;
	for (nsize = b->size > 0 ? b->size : IBUF_SIZE_MIN; nsize < need; )
		nsize = nsize > b->max / 2 ? b->max : nsize * 2;
	if ((nb = recallocarray(b->buf, b->size, nsize, 1)) == NULL)
		return -1;
	b->buf = nb;
	b->size = nsize;
	return 0;
}

/* Overwrite what was written before: a length known only at the end. */
int
ibuf_set_n32(struct ibuf *b, size_t pos, uint32_t v)
{
	if (b->wpos < sizeof(v) || pos > b->wpos - sizeof(v)) {
		errno = ERANGE;
		return -1;
	}
	v = htobe32(v);
	memcpy(b->buf + pos, &v, sizeof(v));
	return 0;
}

int
ibuf_skip(struct ibuf *b, size_t len)
{
	if (ibuf_size(b) < len) {
		errno = EBADMSG;
		return -1;
	}
	b->rpos += len;
	return 0;
}

/* What was read makes room, and no trace of it stays: it may be a secret. */
void
ibuf_slide(struct ibuf *b)
{
	size_t	 len = ibuf_size(b);

	if (len > 0)
		memmove(b->buf, b->buf + b->rpos, len);
	explicit_bzero(b->buf + len, b->wpos - len);
	b->wpos = len;
	b->rpos = 0;
}

/* Messages carry secrets now and then, so every buffer is wiped. */
void
ibuf_free(struct ibuf *b)
{
	if (b == NULL)
		return;
	freezero(b->buf, b->size);
	free(b);
}
