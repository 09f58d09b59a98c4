/* SPDX-License-Identifier: ISC */

/*
 * A streaming JSON writer.  The recorder formats every record with it, the
 * control socket every answer; strings come from the network and are hostile.
 *
 * The output is one line of strict JSON without control characters.  The buffer
 * grows by doubling up to a limit and is kept by jsonw_reset(), so a writer
 * that is reused allocates nothing per field and in time nothing per record.
 *
 * Nothing returns an error.  The first one (limit, memory, a value without a
 * key, an unbalanced end) sticks, later calls do nothing, and jsonw_finish()
 * returns NULL: half an object is never taken for a whole one.
 *
 * Strings are bytes, and a reader can recover which bytes they were:
 * - well-formed UTF-8 stays as it is; controls (C0, DEL) and what a person does
 *   not see (utf8_unseen()) are escaped, as a record is read by people;
 * - a byte 0xXX that is not part of well-formed UTF-8 is written `\uefXX', the
 *   private-use character U+EFXX (XX is 80 to ff);
 * - a genuine U+EF80 to U+EFFF is written byte by byte in that same way.
 * So U+EFXX in a record always means the byte XX, everything else means its
 * UTF-8, and two different inputs never look alike.  jsonw_plain() is for
 * words of our own, which need none of this.
 */

#ifndef JSONW_H
#define JSONW_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JSONW_DEPTH_MAX	32
#define JSONW_DIGITS	20	/* of the largest number */
#define JSONW_ESCAPED(n)	(6 * (n))	/* bytes of text, at most */

struct jsonw {
	char		*jw_buf;
	size_t		 jw_len;
	size_t		 jw_size;	/* of the buffer, or jw_len on error */
	size_t		 jw_whole;	/* jw_size before it */
	size_t		 jw_max;
	const char	*jw_error;	/* constant text, or NULL */
	unsigned int	 jw_depth;
	/* State of each open level; level 0 is the document itself. */
	uint8_t		 jw_state[JSONW_DEPTH_MAX + 1];
};

void	 jsonw_init(struct jsonw *, size_t max);
void	 jsonw_reset(struct jsonw *);
void	 jsonw_free(struct jsonw *);

/*
 * Begin a document in memory of the caller, which also is its limit.  Such a
 * writer is neither reset nor freed.
 */
void	 jsonw_place(struct jsonw *, char *, size_t);

void	 jsonw_object(struct jsonw *);
void	 jsonw_array(struct jsonw *);
void	 jsonw_end(struct jsonw *);
void	 jsonw_key(struct jsonw *, const char *);
void	 jsonw_keyn(struct jsonw *, const char *, size_t);

void	 jsonw_string(struct jsonw *, const char *, size_t);
void	 jsonw_plain(struct jsonw *, const char *, size_t);
void	 jsonw_str(struct jsonw *, const char *);	/* NULL writes null */
void	 jsonw_int(struct jsonw *, int64_t);
void	 jsonw_uint(struct jsonw *, uint64_t);
void	 jsonw_time(struct jsonw *, int64_t, uint32_t);	/* seconds, ns */
void	 jsonw_bool(struct jsonw *, int);
void	 jsonw_null(struct jsonw *);

/*
 * jsonw_lit(w, "key") is jsonw_key() for a literal that needs no escapes: it
 * is quoted, and the copying unrolled, when it is compiled.
 */
#define jsonw_lit(w, key)						\
	jsonw_ready_key(w, ",\"" key "\":", sizeof(",\"" key "\":") - 1)

/*
 * To write the same members of an object again and again: jsonw_since() is
 * what was written since the document had a certain length, and
 * jsonw_members() writes it once more.  It has to be whole members.
 */
size_t	 jsonw_len(const struct jsonw *);
const char *jsonw_since(const struct jsonw *, size_t, size_t *len);
void	 jsonw_members(struct jsonw *, const char *, size_t);

/* The digits of a number, to end where end points; up to JSONW_DIGITS. */
char	*jsonw_digits(uint64_t, char *end);

/*
 * The whole document, without newline or NUL, valid until the next call on
 * this writer; or NULL and jsonw_error() says why.
 */
const char *jsonw_finish(struct jsonw *, size_t *len);
const char *jsonw_error(const struct jsonw *);

/* A level is a container of one kind, perhaps not empty, perhaps keyed. */
#define JSONW_DOCUMENT	0x01
#define JSONW_OBJECT	0x02
#define JSONW_ARRAY	0x04
#define JSONW_FILLED	0x10
#define JSONW_KEYED	0x20

int	 jsonw_grow(struct jsonw *, size_t);
void	 jsonw_no_member(struct jsonw *);

/* Where len more bytes may be written, or NULL after an error. */
static inline char *
jsonw_more(struct jsonw *w, size_t len)
{
	char	*p;

	if (len > w->jw_size - w->jw_len && !jsonw_grow(w, len))
		return NULL;
	p = w->jw_buf + w->jw_len;
	w->jw_len += len;
	return p;
}

static inline void
jsonw_ready_key(struct jsonw *w, const char *text, size_t len)
{
	uint8_t	*state = &w->jw_state[w->jw_depth];
	char	*p;

	if (*state == (JSONW_OBJECT | JSONW_FILLED)) {
		if ((p = jsonw_more(w, len)) != NULL)
			memcpy(p, text, len);
	} else if (*state == JSONW_OBJECT) {
		if ((p = jsonw_more(w, len - 1)) != NULL)
			memcpy(p, text + 1, len - 1);
	} else
		jsonw_no_member(w);
	*state |= JSONW_KEYED;
}

#endif /* JSONW_H */
