/* SPDX-License-Identifier: ISC */

/*
 * A strict reader of one JSON text, for a process that has no library for it.
 * The text is hostile.
 *
 * - RFC 8259 and nothing besides: no comment, no comma at the end, no control
 *   in a string, UTF-8 that is well-formed, surrogates in pairs only.
 * - No name twice in an object.  A string is a C string: one with a NUL in it,
 *   or with a name that has one, is no string but JSONR_NUL.
 * - Strings stand for bytes as jsonw.h has it: U+EF80 to U+EFFF are the bytes
 *   80 to ff, escaped or not, and everything else is its UTF-8.
 * - A number is an integer if it is spelt as one and within 2^53 of zero; of
 *   any other only its presence is told.
 * - Depth, members of an object and values in all have a limit.
 */

#ifndef JSONR_H
#define JSONR_H

#include <stddef.h>
#include <stdint.h>

#define JSONR_DEPTH_MAX		8
#define JSONR_MEMBERS_MAX	1024	/* of one object */
#define JSONR_VALUES_MAX	16384
#define JSONR_INTEGER_MAX	((int64_t)1 << 53)

enum jsonr_type {
	JSONR_NULL,
	JSONR_BOOL,
	JSONR_INTEGER,
	JSONR_NUMBER,		/* another than an integer */
	JSONR_STRING,
	JSONR_NUL,		/* a string that C could not tell */
	JSONR_ARRAY,
	JSONR_OBJECT
};

struct jsonr {
	enum jsonr_type	 jr_type;
	const char	*jr_name;	/* of a member, or NULL */
	const char	*jr_text;	/* of a string, ends in a NUL */
	size_t		 jr_len;	/* of it; of a container its values */
	int64_t		 jr_number;	/* of an integer; 0 or 1 of a bool */
	struct jsonr	*jr_first;	/* in a container */
	struct jsonr	*jr_next;	/* beside this one */
};

/* The text's value, freed as a whole; or NULL, and a constant says why. */
struct jsonr	*jsonr_parse(const char *, size_t, const char **why);
void		 jsonr_free(struct jsonr *);

/* A member of an object, or NULL. */
const struct jsonr *jsonr_member(const struct jsonr *, const char *);

#endif /* JSONR_H */
