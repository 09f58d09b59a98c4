/* SPDX-License-Identifier: ISC */

/*
 * The message table as tests see it, and samples of its messages.  Rows,
 * fields and limits come from common/msgtab.h, but bytes are written and read
 * here and not by common/msg.c.
 */

#ifndef SAMPLE_H
#define SAMPLE_H

#include "msg.h"
#include "test.h"

#define PARTS_MAX	8
#define SOME_LEN	5	/* of what is neither empty nor full */

enum field_kind { FIELD_END, FIELD_NUMBER, FIELD_TEXT, FIELD_BYTES };

struct field {
	enum field_kind	 kind;
	size_t		 size;	/* of a number, else the largest */
};

#define U8(n)		{ FIELD_NUMBER, 1 },
#define U16(n)		{ FIELD_NUMBER, 2 },
#define U32(n)		{ FIELD_NUMBER, 4 },
#define U64(n)		{ FIELD_NUMBER, 8 },
#define STR(n, max)	{ FIELD_TEXT, max },
#define BYTES(n, max)	{ FIELD_BYTES, max },
#define FIELDS(x, ...)							\
static const struct field layout_##x[] = {				\
	__VA_ARGS__							\
	{ FIELD_END, 0 }						\
};
#include "msg_rows.h"

static uint64_t
take_number(const unsigned char **p, size_t size)
{
	uint64_t	 v = 0;

	while (size-- > 0)
		v = v << 8 | *(*p)++;
	return v;
}

static int
take_text(const unsigned char **p, const char *text)
{
	size_t	 len = take_number(p, 2);
	int	 same;

	same = strlen(text) == len && memcmp(text, *p, len) == 0;
	*p += len + 1;
	return same;
}

static int
take_bytes(const unsigned char **p, const struct msg_bytes *mb)
{
	size_t	 len = take_number(p, 2);
	int	 same;

	same = mb->len == len && memcmp(mb->data, *p, len) == 0;
	*p += len;
	return same;
}

/* Is this what those bytes say? */
#define U8(n)		if (m->n != take_number(&p, 1)) return 0;
#define U16(n)		if (m->n != take_number(&p, 2)) return 0;
#define U32(n)		if (m->n != take_number(&p, 4)) return 0;
#define U64(n)		if (m->n != take_number(&p, 8)) return 0;
#define STR(n, max)	if (!take_text(&p, m->n)) return 0;
#define BYTES(n, max)	if (!take_bytes(&p, &m->n)) return 0;
#define FIELDS(x, ...)							\
static int								\
agrees_##x(const union msg *u, const unsigned char *p)			\
{									\
	const struct msg_##x	*m = &u->x;				\
									\
	(void)m, (void)p;						\
	__VA_ARGS__							\
	return 1;							\
}
#include "msg_rows.h"

static const struct row {
	const char		*name;
	uint32_t		 type;
	uint32_t		 from;
	uint32_t		 to;
	enum msg_fd		 fd;
	uint32_t		 states;
	const struct field	*layout;
	int			(*agrees)(const union msg *,
				    const unsigned char *);
} rows[] = {
#define MSG(type, x, from, to, fd, states)				\
	{ #type, MSG_##type, from, to, fd, states, layout_##x, agrees_##x },
#include "msg_rows.h"
};
#define NROWS	(sizeof(rows) / sizeof(rows[0]))

static const struct row	*row;		/* of this case */

/*
 * A valid message.  Numbers differ from field to field and from byte to byte.
 */
enum fill { FILL_LEAST, FILL_SOME, FILL_MOST, FILL_MAX };

struct sample {
	unsigned char	 data[IMSG_MAX_SIZE];
	size_t		 len;
	/* Of text and bytes: where the length stands. */
	struct {
		const struct field	*field;
		size_t			 at;
	} parts[PARTS_MAX];
	size_t		 nparts;
};

static void
sample_number(struct sample *sa, uint64_t v, size_t size)
{
	while (size-- > 0)
		sa->data[sa->len++] = v >> (size * 8);
}

static void
sample_part(struct sample *sa, const struct field *fi, size_t len)
{
	size_t	 i;

	CHECK(sa->nparts < PARTS_MAX);
	sa->parts[sa->nparts].field = fi;
	sa->parts[sa->nparts++].at = sa->len;
	sample_number(sa, len, 2);
	for (i = 0; i < len; i++)
		sa->data[sa->len++] = 1 + (i + sa->nparts) % 255;
	if (fi->kind == FIELD_TEXT)
		sa->data[sa->len++] = '\0';
}

static void
sample_fill(struct sample *sa, enum fill fill)
{
	const struct field	*fi;
	uint64_t		 v = 0x0123456789abcdef;

	sa->len = sa->nparts = 0;
	for (fi = row->layout; fi->kind != FIELD_END; fi++) {
		v += 0x1111111111111111;
		if (fi->kind != FIELD_NUMBER)
			sample_part(sa, fi, fill == FILL_LEAST ? 0 :
			    fill == FILL_SOME ? SOME_LEN : fi->size);
		else
			sample_number(sa, fill == FILL_LEAST ? 0 :
			    fill == FILL_SOME ? v : UINT64_MAX, fi->size);
	}
}

static void
sample_insert(struct sample *sa, size_t at, unsigned char byte)
{
	memmove(sa->data + at + 1, sa->data + at, sa->len - at);
	sa->data[at] = byte;
	sa->len++;
}

static void
sample_set_length(struct sample *sa, size_t at, size_t len)
{
	sa->data[at] = len >> 8;
	sa->data[at + 1] = len;
}

#endif /* SAMPLE_H */
