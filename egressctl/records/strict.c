/* SPDX-License-Identifier: ISC */

/*
 * egressctl: reads JSON to the letter of RFC 8259, for lines that are
 * evidence and may have been tampered with.  Nothing is allocated and nothing
 * decoded: what comes out are pieces of the line.  The recorder writes no
 * space between tokens, so there is none here.
 */

#include <ctype.h>
#include <string.h>

#include "records.h"
#include "utf8.h"

#define DEPTH_MAX	32	/* more than the recorder can write */

static int	skip_value(struct strict *, int);

static int
skip_char(struct strict *st, char c)
{
	if (*st->st_at != c)
		return -1;
	st->st_at++;
	return 0;
}

static int
skip_literal(struct strict *st, const char *word)
{
	for (; *word != '\0'; word++)
		if (skip_char(st, *word) == -1)
			return -1;
	return 0;
}

static int
skip_escape(struct strict *st)
{
	int	i;

	st->st_at++;
	if (*st->st_at != 'u') {
		if (*st->st_at == '\0' ||
		    strchr("\"\\/bfnrt", *st->st_at) == NULL)
			return -1;
		st->st_at++;
		return 0;
	}
	st->st_at++;
	for (i = 0; i < 4; i++, st->st_at++)
		if (!isxdigit((unsigned char)*st->st_at))
			return -1;
	return 0;
}

/* The NUL at the end of the line is a control character like others. */
static int
skip_string(struct strict *st)
{
	uint32_t	code;
	size_t		len;

	if (skip_char(st, '"') == -1)
		return -1;
	while (*st->st_at != '"') {
		if (*st->st_at == '\\') {
			if (skip_escape(st) == -1)
				return -1;
		} else if ((unsigned char)*st->st_at < 0x80) {
			if (*st->st_at < ' ')
				return -1;
			st->st_at++;
		} else {
			if ((len = utf8_decode(st->st_at, UTF8_LEN_MAX,
			    &code)) == 0)
				return -1;
			st->st_at += len;
		}
	}
	st->st_at++;
	return 0;
}

static int
skip_digits(struct strict *st)
{
	if (!isdigit((unsigned char)*st->st_at))
		return -1;
	while (isdigit((unsigned char)*st->st_at))
		st->st_at++;
	return 0;
}

static int
skip_number(struct strict *st)
{
	if (*st->st_at == '-')
		st->st_at++;
	if (*st->st_at == '0')
		st->st_at++;
	else if (skip_digits(st) == -1)
		return -1;
	if (*st->st_at == '.') {
		st->st_at++;
		if (skip_digits(st) == -1)
			return -1;
	}
	if (*st->st_at != 'e' && *st->st_at != 'E')
		return 0;
	st->st_at++;
	if (*st->st_at == '+' || *st->st_at == '-')
		st->st_at++;
	return skip_digits(st);
}

/* Skips the members of an object or array, and the closing bracket. */
static int
skip_inside(struct strict *st, char close, int depth)
{
	if (*st->st_at == close) {
		st->st_at++;
		return 0;
	}
	for (;;) {
		if (close == '}' && (skip_string(st) == -1 ||
		    skip_char(st, ':') == -1))
			return -1;
		if (skip_value(st, depth) == -1)
			return -1;
		if (*st->st_at != ',')
			return skip_char(st, close);
		st->st_at++;
	}
}

static int
skip_value(struct strict *st, int depth)
{
	switch (*st->st_at) {
	case '{':
	case '[':
		if (depth == DEPTH_MAX)
			return -1;
		return skip_inside(st, *st->st_at++ == '{' ? '}' : ']',
		    depth + 1);
	case '"':
		return skip_string(st);
	case 't':
		return skip_literal(st, "true");
	case 'f':
		return skip_literal(st, "false");
	case 'n':
		return skip_literal(st, "null");
	default:
		return skip_number(st);
	}
}

/* The line ends in a NUL at line[len]. */
void
strict_init(struct strict *st, const char *line, size_t len)
{
	st->st_line = st->st_at = line;
	st->st_end = line + len;
}

/*
 * The next member of the object that is the line, quotes and all: 1; 0 if
 * there is no other; or -1 if this is no JSON, and st_at is where.
 */
int
strict_member(struct strict *st, struct piece *name, struct piece *value)
{
	int	first = st->st_at == st->st_line;

	if (!first && *st->st_at == '}') {
		st->st_at++;
		return st->st_at == st->st_end ? 0 : -1;
	}
	if (skip_char(st, first ? '{' : ',') == -1)
		return -1;
	name->pc_text = st->st_at;
	if (skip_string(st) == -1)
		return -1;
	name->pc_len = (size_t)(st->st_at - name->pc_text);
	if (skip_char(st, ':') == -1)
		return -1;
	value->pc_text = st->st_at;
	if (skip_value(st, 1) == -1)
		return -1;
	value->pc_len = (size_t)(st->st_at - value->pc_text);
	return 1;
}
