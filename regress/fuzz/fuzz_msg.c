/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for common/msg.c.  The input is given to the decoder of every
 * message: it needs no number in front, and samples stay good when the table
 * changes.  What a decoder accepts has to lie within the limits and to encode
 * to the same bytes.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/msg.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

/* Text and bytes lie in the message and nowhere else. */
static void
require_inside(const uint8_t *data, size_t size, const void *part, size_t len)
{
	const uint8_t	*p = part;

	REQUIRE(p >= data && p <= data + size);
	REQUIRE(len <= (size_t)(data + size - p));
}

#define U8(n)
#define U16(n)
#define U32(n)
#define U64(n)
#define STR(n, max)							\
	REQUIRE(strlen(m->n) <= (max));					\
	require_inside(data, size, m->n, strlen(m->n) + 1);
#define BYTES(n, max)							\
	REQUIRE(m->n.len <= (max));					\
	require_inside(data, size, m->n.data, m->n.len);
#define FIELDS(x, ...)							\
static void								\
require_##x(const union msg *u, const uint8_t *data, size_t size)	\
{									\
	const struct msg_##x	*m = &u->x;				\
									\
	(void)m, (void)data, (void)size;				\
	__VA_ARGS__							\
}
#include "../../common/msg_rows.h"

static void	(*const require[MSG_MAX])(const union msg *, const uint8_t *,
		    size_t) = {
#define MSG(type, x, ...) [MSG_##type] = require_##x,
#include "../../common/msg_rows.h"
};

static void
require_round_trip(const struct msg_desc *md, const union msg *m,
    const uint8_t *data, size_t size)
{
	struct ibuf	*b;

	if ((b = ibuf_dynamic(1, IMSG_MAX_SIZE)) == NULL)
		return;
	REQUIRE(md->md_put(b, m) == 0);
	REQUIRE(ibuf_size(b) == size);
	REQUIRE(size == 0 || memcmp(ibuf_data(b), data, size) == 0);
	ibuf_free(b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct msg_desc	*md;
	struct ibuf		 b;
	union msg		 m;
	uint32_t		 type;
	uint8_t			*copy;

	/* Of its very size, so that a byte too far is noticed. */
	if ((copy = malloc(size)) == NULL)
		return 0;
	if (size > 0)
		memcpy(copy, data, size);
	for (type = 0; type <= MSG_MAX; type++) {
		if ((md = msg_find(type)) == NULL)
			continue;
		ibuf_from_buffer(&b, copy, size);
		if (md->md_get(&b, &m) == -1)
			continue;
		REQUIRE(size >= md->md_min && size <= md->md_max);
		require[type](&m, copy, size);
		require_round_trip(md, &m, copy, size);
	}
	free(copy);
	return 0;
}
