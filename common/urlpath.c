/* SPDX-License-Identifier: ISC */

/*
 * The canonical form of paths; see urlpath.h.  Runs in the engine, on the bytes
 * of hostile agents.
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

static size_t
put_escape(int c, char out[3])
{
	static const char	 hex[] = "0123456789ABCDEF";

	out[0] = '%';
	out[1] = hex[c >> 4];
	out[2] = hex[c & 15];
	return 3;
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

/* A % that begins no escape stays, as decoders in the field leave it. */
size_t
urlpath_decode(char *text, size_t len, int keep_slash, char star)
{
	const char	*end = text + len, *p = memchr(text, '%', len);
	char		*out;
	int		 c;

	if (p == NULL)
		return len;
	for (out = text + (p - text); p < end; p++) {
		if (*p != '%' || (c = unescape(p + 1, end)) == -1) {
			*out++ = *p;
			continue;
		}
		p += 2;
		if (c == '/' && keep_slash)
			out += put_escape(c, out);
		else
			*out++ = c == '*' ? star : (char)c;
	}
	if (out < end)
		*out = '\0';
	return (size_t)(out - text);
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

/*
 * Dots make a dot segment up to what ends it for some origin, and with spaces
 * (`.. ' is `..' to Windows).
 */
static const char *
level_fault(const char *p, const char *end)
{
	int	 c, before = 0, ndots = 0;

	for (; p < end; before = c) {
		c = (unsigned char)*p++;
		if (is_control(c))
			return "escaped control character in path";
		if (c == '\\')
			return "backslash in path";
		if (is_overlong(before, c))
			return "overlong UTF-8 in path";
		if (c == ' ' && ndots >= 0)
			continue;
		if (c == '.' && ndots >= 0 && ndots < 2)
			ndots++;
		else if (ndots > 0 && memchr("/;?#", c, 4) != NULL)
			break;
		else
			ndots = c == '/' ? 0 : -1;
	}
	return ndots > 0 ? "dot segment in path" : NULL;
}

/* As path_fault(), for each text that repeated decoding makes. */
static const char *
decoded_fault(const char *path, size_t len)
{
	char		 text[URLPATH_MAX];
	const char	*why;
	size_t		 before;
	int		 level;

	if (len >= sizeof(text))
		return "path too long";
	memcpy(text, path, len);
	for (level = 0; level <= URLPATH_DEPTH; level++) {
		before = len;
		if ((len = urlpath_decode(text, len, 0, '*')) == before)
			return NULL;
		if ((why = level_fault(text, text + len)) != NULL)
			return why;
	}
	return "path escaped too often";
}

/* What some origin could see in this canonical path, or NULL. */
static const char *
deep_fault(const char *path, size_t len)
{
	const char	*why = level_fault(path, path + len);

	if (why == NULL && memchr(path, '%', len) != NULL)
		why = decoded_fault(path, len);
	return why;
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
	if ((*why = deep_fault(out, n)) != NULL)
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
	else {
		out[0] = '\0';
		n = canon_path(in, query, out, outsz, &fault);
	}
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
