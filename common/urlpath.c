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
 * Paths of URLs; see urlpath.h.  Runs in the engine, on the bytes of hostile
 * agents, and in policyd on canonical ones.
 */

#include <stdint.h>
#include <string.h>

#include "urlpath.h"

#define B_UNRESERVED	0x01	/* RFC 3986, 2.3 */
#define B_PATH		0x02	/* may stand in a path as it is */
#define B_QUERY		0x04	/* is let pass in a query */
#define B_ESCAPE	0x08	/* may stand in a path, but escaped */
#define B_HEX		0x10

#define U	(B_UNRESERVED | B_PATH | B_QUERY)
#define P	(B_PATH | B_QUERY)
#define E	(B_ESCAPE | B_QUERY)

static const uint8_t	 byte[256] = {
	['A' ... 'F'] = U | B_HEX,	['G' ... 'Z'] = U,
	['a' ... 'f'] = U | B_HEX,	['g' ... 'z'] = U,
	['0' ... '9'] = U | B_HEX,
	['-'] = U, ['.'] = U, ['_'] = U, ['~'] = U,
	['/'] = P, [':'] = P, ['@'] = P, ['!'] = P, ['$'] = P, ['&'] = P,
	['\''] = P, ['('] = P, [')'] = P, ['*'] = P, ['+'] = P, [','] = P,
	[';'] = P, ['='] = P,
	['"'] = E, ['<'] = E, ['>'] = E, ['['] = E, [']'] = E, ['^'] = E,
	['`'] = E, ['{'] = E, ['|'] = E, ['}'] = E, [0x80 ... 0xff] = E,
	['%'] = B_QUERY, ['?'] = B_QUERY, ['\\'] = B_QUERY,
};

#undef U
#undef P
#undef E

/* How an origin may read a path; the bits are combined. */
#define READ_PLAIN	0x00
#define READ_DECODED	0x01	/* escapes undone once, also %2F */
#define READ_MERGED	0x02	/* // is / */
#define READ_CUT	0x04	/* no parameters after ; */

#define END		(-1)

static int
is(char c, int what)
{
	return byte[(unsigned char)c] & what;
}

static int
hex_value(char c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* The byte that the two digits at p stand for, or -1 if they are none. */
static int
unescape(const char *p, const char *end)
{
	if (end - p < 2 || !is(p[0], B_HEX) || !is(p[1], B_HEX))
		return -1;
	return hex_value(p[0]) << 4 | hex_value(p[1]);
}

static int
is_control(int c)
{
	return c < ' ' || c == 0x7f;
}

static const char *
path_fault(char c)
{
	if (c == '\0')
		return "NUL in path";
	if (c == '\\')
		return "backslash in path";
	if (c == '#')
		return "fragment in path";
	return "space or control character in path";
}

/*
 * The byte at *pp as it is after the last of any number of decodings: %2E and
 * %25252E are both a dot.
 */
static int
peel(const char **pp, const char *end)
{
	const char	*p = *pp;
	int		 c = (unsigned char)*p++, deeper;

	while (c == '%' && (deeper = unescape(p, end)) != -1) {
		c = deeper;
		p += 2;
	}
	*pp = p;
	return c;
}

/* %C0%AE and its longer kin: old decoders make ASCII of it. */
static int
is_overlong(int first, int second)
{
	if (second < 0x80 || second > 0xbf)
		return 0;
	return first == 0xc0 || first == 0xc1 ||
	    (first == 0xe0 && second < 0xa0) ||
	    (first == 0xf0 && second < 0x90);
}

/* What some origin could see in this canonical path, or NULL. */
static const char *
deep_fault(const char *p, const char *end)
{
	int	 c, before = 0, ndots = 0;

	for (; p < end; before = c) {
		c = peel(&p, end);
		if (is_control(c))
			return "escaped control character in path";
		if (c == '\\')
			return "backslash in path";
		if (is_overlong(before, c))
			return "overlong UTF-8 in path";
		if (c == '.' && ndots >= 0 && ndots < 2)
			ndots++;
		else if ((c == '/' || c == ';') && ndots > 0)
			break;
		else
			ndots = c == '/' ? 0 : -1;
	}
	return ndots > 0 ? "dot segment in path" : NULL;
}

static size_t
put_escape(int c, char out[3])
{
	static const char	 hex[] = "0123456789ABCDEF";

	out[0] = '%';
	out[1] = hex[c >> 4];
	out[2] = hex[c & 15];
	return 3;
}

/* One byte of a path: the length of its canonical spelling, or 0. */
static size_t
canon_byte(const char **pp, const char *end, char out[3], const char **why)
{
	const char	*p = (*pp)++;
	int		 c;

	out[0] = *p;
	if (is(*p, B_PATH))
		return 1;
	if (is(*p, B_ESCAPE))
		return put_escape((unsigned char)*p, out);
	if (*p != '%') {
		*why = path_fault(*p);
		return 0;
	}
	if ((c = unescape(p + 1, end)) == -1) {
		*why = "malformed escape in path";
		return 0;
	}
	*pp += 2;
	if (!is((char)c, B_UNRESERVED))
		return put_escape(c, out);
	out[0] = (char)c;
	return 1;
}

/* Returns the length of the path in out, or -1. */
static int
canon_path(const char *p, const char *end, char *out, size_t outsz,
    const char **why)
{
	char	 enc[3];
	size_t	 n = 0, len;

	if (p == end) {
		p = "/";
		end = p + 1;
	} else if (*p != '/') {
		*why = "path does not begin with a slash";
		return -1;
	}
	while (p < end) {
		if ((len = canon_byte(&p, end, enc, why)) == 0)
			return -1;
		if (len >= outsz - n) {
			*why = "path too long";
			return -1;
		}
		memcpy(out + n, enc, len);
		n += len;
	}
	if ((*why = deep_fault(out, out + n)) != NULL)
		return -1;
	return (int)n;
}

static int
copy_query(const char *p, size_t len, char *out, size_t outsz,
    const char **why)
{
	size_t	 i;

	if (len >= outsz) {
		*why = "query too long";
		return -1;
	}
	for (i = 0; i < len; i++) {
		if (!is(p[i], B_QUERY)) {
			*why = "illegal character in query";
			return -1;
		}
		out[i] = p[i];
	}
	out[len] = '\0';
	return 0;
}

int
urlpath_canon(const char *in, size_t len, char *out, size_t outsz,
    const char **why)
{
	const char	*query, *end, *fault = NULL;
	int		 n = -1;

	if (len == 0) {
		in = "/";
		len = 1;
	}
	end = in + len;
	if ((query = memchr(in, '?', len)) == NULL)
		query = end;
	if (outsz == 0)
		fault = "no room for the path";
	else
		n = canon_path(in, query, out, outsz, &fault);
	if (n != -1 && copy_query(query, (size_t)(end - query), out + n,
	    outsz - (size_t)n, &fault) == -1)
		n = -1;
	if (n == -1) {
		if (outsz > 0)
			out[0] = '\0';
		if (why != NULL)
			*why = fault;
	}
	return n;
}

static int
is_end(char c)
{
	return c == '\0' || c == '?';
}

/* The length of a slash at p in this reading, or 0. */
static size_t
slash_len(const char *p, int reading)
{
	if (*p == '/')
		return 1;
	return (reading & READ_DECODED) && strncmp(p, "%2F", 3) == 0 ? 3 : 0;
}

/* Moves over what is not there in this reading, after the byte c. */
static const char *
skip_unseen(const char *p, int c, int reading)
{
	size_t	 len;

	for (;;) {
		if ((reading & READ_CUT) && *p == ';')
			p += strcspn(p, "/?");
		else if ((reading & READ_MERGED) && c == '/' &&
		    (len = slash_len(p, reading)) > 0)
			p += len;
		else
			return p;
	}
}

/* One byte of a path or of the literal part of a pattern, or END. */
static int
next_byte(const char **pp, int reading)
{
	const char	*p = *pp;
	int		 c, escaped;

	if (is_end(*p))
		return END;
	c = (unsigned char)*p++;
	if (c == '%' && (reading & READ_DECODED) &&
	    (escaped = unescape(p, p + strnlen(p, 2))) != -1) {
		c = escaped;
		p += 2;
	}
	*pp = skip_unseen(p, c, reading);
	return c;
}

/* The start of the next segment, or NULL. */
static const char *
next_segment(const char *p, int reading)
{
	int	 c;

	while ((c = next_byte(&p, reading)) != '/')
		if (c == END)
			return NULL;
	return p;
}

static int
ends_segment(int c)
{
	return c == '/' || c == END;
}

static int
peek(const char *p, int reading)
{
	return next_byte(&p, reading);
}

/*
 * One segment against one segment of the pattern.  After a mismatch only the
 * latest `*' is made longer: what an earlier one could gain, the later one has
 * tried.
 */
static int
segment_match(const char *p, const char *n, int reading)
{
	const char	*star = NULL, *retry = NULL, *pnext, *nnext;
	int		 pc, nc;

	if (*p == '*' && ends_segment(peek(p + 1, reading)))
		return !ends_segment(peek(n, reading));
	for (;;) {
		if (*p == '*') {
			star = ++p;
			retry = n;
			continue;
		}
		pnext = p;
		nnext = n;
		pc = next_byte(&pnext, reading);
		nc = next_byte(&nnext, reading);
		if (ends_segment(nc))
			return ends_segment(pc);
		if (pc == nc) {
			p = pnext;
			n = nnext;
		} else if (star != NULL) {
			p = star;
			(void)next_byte(&retry, reading);
			n = retry;
		} else
			return 0;
	}
}

static int
is_deep(const char *p, int reading)
{
	return p != NULL && p[0] == '*' && p[1] == '*' &&
	    ends_segment(peek(p + 2, reading));
}

/*
 * The same walk over segments, with `**' in the place of `*'.  Each restart
 * begins one segment of the path later, so a segment of the pattern meets a
 * given segment of the path only once.
 */
static int
reading_match(const char *p, const char *n, int reading)
{
	const char	*deep = NULL, *retry = NULL;

	p = next_segment(p, reading);
	n = next_segment(n, reading);
	while (n != NULL) {
		if (is_deep(p, reading)) {
			if ((deep = p = next_segment(p, reading)) == NULL)
				return 1;
			retry = n;
		} else if (p != NULL && segment_match(p, n, reading)) {
			p = next_segment(p, reading);
			n = next_segment(n, reading);
		} else if (deep != NULL) {
			p = deep;
			n = retry = next_segment(retry, reading);
		} else
			return 0;
	}
	while (is_deep(p, reading))
		p = next_segment(p, reading);
	return p == NULL;
}

/* Whether every reader reads this the same. */
static int
is_plain(const char *p)
{
	for (; !is_end(*p); p++)
		if (*p == '%' || *p == ';' || (p[0] == '/' && p[1] == '/'))
			return 0;
	return 1;
}

/* How many readings there are, and in how many of them the pattern matches. */
static int
count_matches(const char *pattern, const char *path, int *total)
{
	static const int	 readings[] = {
		READ_PLAIN,
		READ_DECODED | READ_MERGED,
		READ_DECODED | READ_MERGED | READ_CUT,
	};
	int			 i, n = 0;

	if (is_plain(pattern) && is_plain(path))
		*total = 1;
	else	/* A rule about parameters is for origins that see them. */
		*total = strchr(pattern, ';') != NULL ? 2 : 3;
	for (i = 0; i < *total; i++)
		n += reading_match(pattern, path, readings[i]);
	return n;
}

int
urlpath_match(const char *pattern, const char *path)
{
	int	 total;

	return count_matches(pattern, path, &total) == total;
}

int
urlpath_may_match(const char *pattern, const char *path)
{
	int	 total;

	return count_matches(pattern, path, &total) > 0;
}
