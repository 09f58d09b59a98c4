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
 * What msgtab.h unfolds to: a struct for each list of fields, a pair of
 * functions for each struct, a description for each row.
 */

#ifndef MSG_H
#define MSG_H

#include <stddef.h>
#include <stdint.h>

#include "imsg.h"
#include "msgtab.h"

struct msg_bytes {
	const void	*data;
	size_t		 len;
};

#define MSG_U8(n)	uint8_t n;
#define MSG_U16(n)	uint16_t n;
#define MSG_U32(n)	uint32_t n;
#define MSG_U64(n)	uint64_t n;
#define MSG_STR(n, max)	const char *n;
#define MSG_BYTES(n, max) struct msg_bytes n;
#define S(x)								\
struct msg_##x {							\
	FIELDS_##x(MSG_U8, MSG_U16, MSG_U32, MSG_U64, MSG_STR, MSG_BYTES) \
};									\
int	 msg_##x##_put(struct ibuf *, const struct msg_##x *);		\
int	 msg_##x##_get(struct ibuf *, struct msg_##x *);
MSG_STRUCTS(S)
#undef S
#undef MSG_U8
#undef MSG_U16
#undef MSG_U32
#undef MSG_U64
#undef MSG_STR
#undef MSG_BYTES

/* A received message.  Text and bytes lie in the channel's read buffer. */
union msg {
#define S(x) struct msg_##x x;
	MSG_STRUCTS(S)
#undef S
};

struct msg_desc {
	const char	*md_name;
	uint32_t	 md_type;
	uint32_t	 md_from;
	uint32_t	 md_to;
	uint32_t	 md_states;
	enum msg_fd	 md_fd;
	size_t		 md_min;
	size_t		 md_max;
	int		(*md_get)(struct ibuf *, union msg *);
	int		(*md_put)(struct ibuf *, const union msg *);
};

/* NULL for a number that is no message. */
const struct msg_desc	*msg_find(uint32_t);

#endif /* MSG_H */
