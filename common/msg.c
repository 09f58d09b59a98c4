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
 * Every process runs this: encoders and decoders, unfolded from msgtab.h.
 * The bytes may come from a compromised peer.  A decoder fails unless they
 * are exactly one message; text is a length, the bytes and a NUL, so that it
 * can be used where it lies.
 */

#include <errno.h>
#include <string.h>

#include "msg.h"

/* What text costs beyond its bytes: the length before, the NUL after. */
#define STR_OVERHEAD	(sizeof(uint16_t) + 1)

static int
put_str(struct ibuf *b, const char *s, size_t max)
{
	size_t		 len;
	uint16_t	 n;
	char		*p;

	if (s == NULL)
		s = "";
	if ((len = strlen(s)) > max) {
		errno = EMSGSIZE;
		return -1;
	}
	if ((p = ibuf_room(b, STR_OVERHEAD + len)) == NULL)
		return -1;
	n = htobe16(len);
	memcpy(p, &n, sizeof(n));
	memcpy(p + sizeof(n), s, len + 1);
	return 0;
}

static int
get_str(struct ibuf *b, const char **s, size_t max)
{
	const char	*p;
	uint16_t	 len;

	if (ibuf_get_n16(b, &len) == -1)
		return -1;
	p = ibuf_data(b);
	if (len > max || ibuf_size(b) <= len ||
	    memchr(p, '\0', (size_t)len + 1) != p + len) {
		errno = EBADMSG;
		return -1;
	}
	*s = p;
	return ibuf_skip(b, (size_t)len + 1);
}

static int
put_bytes(struct ibuf *b, const struct msg_bytes *mb, size_t max)
{
	if (mb->len > max) {
		errno = EMSGSIZE;
		return -1;
	}
	if (ibuf_add_n16(b, mb->len) == -1)
		return -1;
	return ibuf_add(b, mb->data, mb->len);
}

static int
get_bytes(struct ibuf *b, struct msg_bytes *mb, size_t max)
{
	uint16_t	 len;

	if (ibuf_get_n16(b, &len) == -1)
		return -1;
	if (len > max) {
		errno = EBADMSG;
		return -1;
	}
	mb->data = ibuf_data(b);
	mb->len = len;
	return ibuf_skip(b, len);
}

static int
get_end(struct ibuf *b)
{
	if (ibuf_size(b) == 0)
		return 0;
	errno = EBADMSG;
	return -1;
}

#define PUT_U8(n)	if (ibuf_add_n8(b, m->n) == -1) return -1;
#define PUT_U16(n)	if (ibuf_add_n16(b, m->n) == -1) return -1;
#define PUT_U32(n)	if (ibuf_add_n32(b, m->n) == -1) return -1;
#define PUT_U64(n)	if (ibuf_add_n64(b, m->n) == -1) return -1;
#define PUT_STR(n, max)	if (put_str(b, m->n, max) == -1) return -1;
#define PUT_BYTES(n, max) if (put_bytes(b, &m->n, max) == -1) return -1;
#define GET_U8(n)	if (ibuf_get_n8(b, &m->n) == -1) return -1;
#define GET_U16(n)	if (ibuf_get_n16(b, &m->n) == -1) return -1;
#define GET_U32(n)	if (ibuf_get_n32(b, &m->n) == -1) return -1;
#define GET_U64(n)	if (ibuf_get_n64(b, &m->n) == -1) return -1;
#define GET_STR(n, max)	if (get_str(b, &m->n, max) == -1) return -1;
#define GET_BYTES(n, max) if (get_bytes(b, &m->n, max) == -1) return -1;

#define S(x)								\
int									\
msg_##x##_put(struct ibuf *b, const struct msg_##x *m)			\
{									\
	(void)b, (void)m;						\
	FIELDS_##x(PUT_U8, PUT_U16, PUT_U32, PUT_U64, PUT_STR, PUT_BYTES) \
	return 0;							\
}									\
									\
int									\
msg_##x##_get(struct ibuf *b, struct msg_##x *m)			\
{									\
	(void)m;							\
	FIELDS_##x(GET_U8, GET_U16, GET_U32, GET_U64, GET_STR, GET_BYTES) \
	return get_end(b);						\
}									\
									\
static int								\
union_##x##_put(struct ibuf *b, const union msg *m)			\
{									\
	return msg_##x##_put(b, &m->x);					\
}									\
									\
static int								\
union_##x##_get(struct ibuf *b, union msg *m)				\
{									\
	return msg_##x##_get(b, &m->x);					\
}
MSG_STRUCTS(S)
#undef S

#define LEN_U8(n)	+ sizeof(uint8_t)
#define LEN_U16(n)	+ sizeof(uint16_t)
#define LEN_U32(n)	+ sizeof(uint32_t)
#define LEN_U64(n)	+ sizeof(uint64_t)
#define MIN_STR(n, max)	+ STR_OVERHEAD
#define MAX_STR(n, max)	+ STR_OVERHEAD + (max)
#define MIN_BYTES(n, max) + sizeof(uint16_t)
#define MAX_BYTES(n, max) + sizeof(uint16_t) + (max)
#define MIN_LEN(x)							\
	(0 FIELDS_##x(LEN_U8, LEN_U16, LEN_U32, LEN_U64, MIN_STR, MIN_BYTES))
#define MAX_LEN(x)							\
	(0 FIELDS_##x(LEN_U8, LEN_U16, LEN_U32, LEN_U64, MAX_STR, MAX_BYTES))

static const struct msg_desc msg_table[MSG_MAX] = {
#define M(type, x, from, to, fd, states)				\
	[MSG_##type] = { #type, MSG_##type, from, to, states, fd,	\
	    MIN_LEN(x), MAX_LEN(x), union_##x##_get, union_##x##_put },
	MSG_TABLE(M)
#undef M
};

/* Every message must fit in the channel's read buffer. */
#define M(type, x, ...)							\
_Static_assert(MAX_LEN(x) <= IMSG_MAX_SIZE - IMSG_HEADER_SIZE,		\
    "message " #type " is too large");
MSG_TABLE(M)
#undef M

const struct msg_desc *
msg_find(uint32_t type)
{
	return type > MSG_NONE && type < MSG_MAX ? &msg_table[type] : NULL;
}
