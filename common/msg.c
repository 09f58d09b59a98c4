/* SPDX-License-Identifier: ISC */

/*
 * Every process runs this: encoders and decoders, unfolded from msgtab.h.
 * The bytes may come from a compromised peer.  A decoder fails unless they
 * are exactly one message; text is a length, the bytes and a NUL, so that it
 * can be used where it lies.
 */

#include <errno.h>
#include <string.h>

#include "msg.h"

const char	 msg_version[] = "egressd " EGRESSD_VERSION;

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

#define U8(n)		if (ibuf_add_n8(b, m->n) == -1) return -1;
#define U16(n)		if (ibuf_add_n16(b, m->n) == -1) return -1;
#define U32(n)		if (ibuf_add_n32(b, m->n) == -1) return -1;
#define U64(n)		if (ibuf_add_n64(b, m->n) == -1) return -1;
#define STR(n, max)	if (put_str(b, m->n, max) == -1) return -1;
#define BYTES(n, max)	if (put_bytes(b, &m->n, max) == -1) return -1;
#define FIELDS(x, ...)							\
int									\
msg_##x##_put(struct ibuf *b, const struct msg_##x *m)			\
{									\
	(void)b, (void)m;						\
	__VA_ARGS__							\
	return 0;							\
}									\
									\
static int								\
union_##x##_put(struct ibuf *b, const union msg *m)			\
{									\
	return msg_##x##_put(b, &m->x);					\
}
#include "msg_rows.h"

#define U8(n)		if (ibuf_get_n8(b, &m->n) == -1) return -1;
#define U16(n)		if (ibuf_get_n16(b, &m->n) == -1) return -1;
#define U32(n)		if (ibuf_get_n32(b, &m->n) == -1) return -1;
#define U64(n)		if (ibuf_get_n64(b, &m->n) == -1) return -1;
#define STR(n, max)	if (get_str(b, &m->n, max) == -1) return -1;
#define BYTES(n, max)	if (get_bytes(b, &m->n, max) == -1) return -1;
#define FIELDS(x, ...)							\
int									\
msg_##x##_get(struct ibuf *b, struct msg_##x *m)			\
{									\
	(void)m;							\
	__VA_ARGS__							\
	return get_end(b);						\
}									\
									\
static int								\
union_##x##_get(struct ibuf *b, union msg *m)				\
{									\
	return msg_##x##_get(b, &m->x);					\
}
#include "msg_rows.h"

/* The smallest and the largest length of each list. */
enum {
#define U8(n)		+ sizeof(uint8_t)
#define U16(n)		+ sizeof(uint16_t)
#define U32(n)		+ sizeof(uint32_t)
#define U64(n)		+ sizeof(uint64_t)
#define STR(n, max)	+ STR_OVERHEAD
#define BYTES(n, max)	+ sizeof(uint16_t)
#define FIELDS(x, ...)	MIN_##x = 0 __VA_ARGS__,
#include "msg_rows.h"
#define U8(n)		+ sizeof(uint8_t)
#define U16(n)		+ sizeof(uint16_t)
#define U32(n)		+ sizeof(uint32_t)
#define U64(n)		+ sizeof(uint64_t)
#define STR(n, max)	+ STR_OVERHEAD + (max)
#define BYTES(n, max)	+ sizeof(uint16_t) + (max)
#define FIELDS(x, ...)	MAX_##x = 0 __VA_ARGS__,
#include "msg_rows.h"
};

static const struct msg_desc msg_table[MSG_MAX] = {
#define MSG(type, x, from, to, fd, states)				\
	[MSG_##type] = { #type, MSG_##type, from, to, states, fd,	\
	    MIN_##x, MAX_##x, union_##x##_get, union_##x##_put },
#include "msg_rows.h"
};

/* Every message must fit in the channel's read buffer. */
#define FIELDS(x, ...)							\
_Static_assert(MAX_##x <= IMSG_MAX_SIZE - IMSG_HEADER_SIZE,		\
    "a message with the fields " #x " is too large");
#include "msg_rows.h"

const struct msg_desc *
msg_find(uint32_t type)
{
	return type > MSG_NONE && type < MSG_MAX ? &msg_table[type] : NULL;
}
