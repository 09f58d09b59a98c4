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
 * Every process runs this.  Numbers travel in network order; a reader that
 * runs out of bytes fails and consumes nothing.
 */

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "imsg.h"

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
	b->fd = -1;
	return b;
}

/* Wrap bytes that somebody else owns for reading; ibuf_free is not due. */
void
ibuf_from_buffer(struct ibuf *b, void *data, size_t len)
{
	memset(b, 0, sizeof(*b));
	b->buf = data;
	b->size = b->wpos = len;
	b->fd = -1;
}

static int
ibuf_grow(struct ibuf *b, size_t len)
{
	unsigned char	*nb;
	size_t		 need, nsize;

	if (len > b->max || b->wpos > b->max - len) {
		errno = ERANGE;
		return -1;
	}
	need = b->wpos + len;
	for (nsize = b->size; nsize < need; )
		nsize = nsize > b->max / 2 ? b->max : nsize * 2;
	if ((nb = recallocarray(b->buf, b->size, nsize, 1)) == NULL)
		return -1;
	b->buf = nb;
	b->size = nsize;
	return 0;
}

int
ibuf_add(struct ibuf *b, const void *data, size_t len)
{
	if (len == 0)
		return 0;
	if (len > b->size - b->wpos && ibuf_grow(b, len) == -1)
		return -1;
	memcpy(b->buf + b->wpos, data, len);
	b->wpos += len;
	return 0;
}

int
ibuf_add_n8(struct ibuf *b, uint8_t v)
{
	return ibuf_add(b, &v, sizeof(v));
}

int
ibuf_add_n16(struct ibuf *b, uint16_t v)
{
	v = htobe16(v);
	return ibuf_add(b, &v, sizeof(v));
}

int
ibuf_add_n32(struct ibuf *b, uint32_t v)
{
	v = htobe32(v);
	return ibuf_add(b, &v, sizeof(v));
}

int
ibuf_add_n64(struct ibuf *b, uint64_t v)
{
	v = htobe64(v);
	return ibuf_add(b, &v, sizeof(v));
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

static int
ibuf_get(struct ibuf *b, void *data, size_t len)
{
	if (ibuf_size(b) < len) {
		errno = EBADMSG;
		return -1;
	}
	memcpy(data, ibuf_data(b), len);
	b->rpos += len;
	return 0;
}

int
ibuf_get_n8(struct ibuf *b, uint8_t *v)
{
	return ibuf_get(b, v, sizeof(*v));
}

int
ibuf_get_n16(struct ibuf *b, uint16_t *v)
{
	if (ibuf_get(b, v, sizeof(*v)) == -1)
		return -1;
	*v = be16toh(*v);
	return 0;
}

int
ibuf_get_n32(struct ibuf *b, uint32_t *v)
{
	if (ibuf_get(b, v, sizeof(*v)) == -1)
		return -1;
	*v = be32toh(*v);
	return 0;
}

int
ibuf_get_n64(struct ibuf *b, uint64_t *v)
{
	if (ibuf_get(b, v, sizeof(*v)) == -1)
		return -1;
	*v = be64toh(*v);
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

void *
ibuf_data(const struct ibuf *b)
{
	return b->buf + b->rpos;
}

size_t
ibuf_size(const struct ibuf *b)
{
	return b->wpos - b->rpos;
}

void
ibuf_fd_set(struct ibuf *b, int fd)
{
	if (b->fd != -1)
		close(b->fd);
	b->fd = fd;
}

/* Messages carry secrets now and then, so every buffer is wiped. */
void
ibuf_free(struct ibuf *b)
{
	if (b == NULL)
		return;
	if (b->fd != -1)
		close(b->fd);
	freezero(b->buf, b->size);
	free(b);
}
