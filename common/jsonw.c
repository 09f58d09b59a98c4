/* SPDX-License-Identifier: ISC */

/*
 * The streaming JSON writer; see jsonw.h.  Runs in the recorder, policyd,
 * deciderd, k8sd, egressctl and the hands of a sandbox.  It trusts its caller
 * with nothing but memory: strings are hostile, and calls in the wrong order
 * end in an error and never in malformed output.
 */

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "jsonw.h"
#include "utf8.h"

#define JSONW_SIZE_MIN	512

/* Nothing is written after this: there is no room, and no more is made. */
static void
jsonw_fail(struct jsonw *w, const char *error)
{
	if (w->jw_error != NULL)
		return;
	w->jw_error = error;
	w->jw_whole = w->jw_size;
	w->jw_size = w->jw_len;
}

void
jsonw_init(struct jsonw *w, size_t max)
{
	memset(w, 0, sizeof(*w));
	w->jw_max = max;
	w->jw_state[0] = JSONW_DOCUMENT;
}

void
jsonw_reset(struct jsonw *w)
{
	if (w->jw_error != NULL)
		w->jw_size = w->jw_whole;
	w->jw_len = 0;
	w->jw_error = NULL;
	w->jw_depth = 0;
	w->jw_state[0] = JSONW_DOCUMENT;
}

void
jsonw_place(struct jsonw *w, char *buf, size_t size)
{
	jsonw_init(w, size);
	w->jw_buf = buf;
	w->jw_size = size;
}

void
jsonw_free(struct jsonw *w)
{
	if (w == NULL)
		return;
	free(w->jw_buf);
	jsonw_init(w, w->jw_max);
}

/* Out of line, so that the test in jsonw_more() is all that a field costs. */
int
jsonw_grow(struct jsonw *w, size_t len)
{
	size_t	 size = w->jw_size;
	char	*buf;

	if (w->jw_error != NULL)
		return 0;
	if (len > w->jw_max - w->jw_len) {
		jsonw_fail(w, "document longer than its limit");
		return 0;
	}
	if (size == 0)
		size = JSONW_SIZE_MIN;
	while (size < w->jw_len + len)
		size = size > w->jw_max / 2 ? w->jw_max : size * 2;
	if (size > w->jw_max)
		size = w->jw_max;
	if ((buf = realloc(w->jw_buf, size)) == NULL) {
		jsonw_fail(w, "out of memory");
		return 0;
	}
	w->jw_buf = buf;
	w->jw_size = size;
	return 1;
}

static inline void
jsonw_put(struct jsonw *w, const char *bytes, size_t len)
{
	char	*p;

	if (len > 0 && (p = jsonw_more(w, len)) != NULL)
		memcpy(p, bytes, len);
}

static inline void
jsonw_putc(struct jsonw *w, char c)
{
	char	*p;

	if ((p = jsonw_more(w, 1)) != NULL)
		*p = c;
}

/* `\uXXXX' */
static void
jsonw_escape(struct jsonw *w, uint32_t unit)
{
	static const char	 hex[] = "0123456789abcdef";
	char			*p;

	if ((p = jsonw_more(w, 6)) == NULL)
		return;
	p[0] = '\\';
	p[1] = 'u';
	p[2] = hex[unit >> 12 & 0xf];
	p[3] = hex[unit >> 8 & 0xf];
	p[4] = hex[unit >> 4 & 0xf];
	p[5] = hex[unit & 0xf];
}

typedef uint8_t bytes16 __attribute__((__vector_size__(16)));

/* Which of sixteen bytes are controls, DEL, quote, backslash or no ASCII. */
static inline bytes16
odd_of16(const uint8_t *s)
{
	bytes16	 v;

	memcpy(&v, s, sizeof(v));
	return (bytes16)(v - 0x20 >= 0x7f - 0x20) | (bytes16)(v == '"') |
	    (bytes16)(v == '\\');
}

/* Whether 32 bytes need no escape. */
static inline int
is_plain32(const uint8_t *s)
{
	uint64_t	 halves[2];
	bytes16		 odd = odd_of16(s) | odd_of16(s + 16);

	memcpy(halves, &odd, sizeof(halves));
	return (halves[0] | halves[1]) == 0;
}

/*
 * Which of eight bytes need some, in one word: of the first that does, and
 * perhaps of some after it, the top bit is set.  A byte with a clear top bit
 * is less than n iff subtracting n borrows into that bit, and equal to c iff
 * (byte ^ c) is less than 1.  A borrow or carry reaches only into later bytes.
 */
static inline uint64_t
odd_of8(const uint8_t *s)
{
	const uint64_t	 ones = 0x0101010101010101, tops = ones << 7;
	uint64_t	 v;

	memcpy(&v, s, sizeof(v));
	v = le64toh(v);
	return (v | (v + ones) | (v - ones * 0x20) |
	    ((v ^ ones * '"') - ones) | ((v ^ ones * '\\') - ones)) & tops;
}

static inline int
is_plain(uint8_t c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/*
 * Copy bytes up to the first that needs thought, and say how many.  There is
 * room for all; what is left in the rest of it means nothing.
 */
static size_t
copy_plain(char *to, const uint8_t *s, size_t len)
{
	size_t		 i = 0;
	uint64_t	 odd;

	for (; len - i >= 32 && is_plain32(s + i); i += 32)
		memcpy(to + i, s + i, 32);
	for (; len - i >= 8; i += 8) {
		memcpy(to + i, s + i, 8);
		if ((odd = odd_of8(s + i)) != 0)
			return i + (size_t)__builtin_ctzll(odd) / 8;
	}
	/* The last 8 bytes, some of them looked at a second time. */
	if (i > 0 && odd_of8(s + len - 8) == 0) {
		memcpy(to + len - 8, s + len - 8, 8);
		return len;
	}
	for (; i < len && is_plain(s[i]); i++)
		to[i] = (char)s[i];
	return i;
}

/* Above U+FFFF as a surrogate pair (RFC 8259 section 7). */
static void
jsonw_unseen(struct jsonw *w, uint32_t c)
{
	if (c > 0xffff) {
		jsonw_escape(w, 0xd7c0 + (c >> 10));
		c = 0xdc00 | (c & 0x3ff);
	}
	jsonw_escape(w, c);
}

static size_t
jsonw_multibyte(struct jsonw *w, const uint8_t *s, size_t len)
{
	size_t		 i, n;
	uint32_t	 c;

	n = utf8_decode((const char *)s, len, &c);
	if (n == 0) {
		jsonw_escape(w, 0xef00U | s[0]);
		return 1;
	}
	if (c >= 0xef80 && c <= 0xefff) {
		for (i = 0; i < n; i++)
			jsonw_escape(w, 0xef00U | s[i]);
	} else if (utf8_unseen(c))
		jsonw_unseen(w, c);
	else
		jsonw_put(w, (const char *)s, n);
	return n;
}

static void
jsonw_ascii(struct jsonw *w, uint8_t c)
{
	static const char	 letters[0x80] = {
		['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
		['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'
	};
	char			*p;

	if (letters[c] == '\0')
		jsonw_escape(w, c);
	else if ((p = jsonw_more(w, 2)) != NULL) {
		p[0] = '\\';
		p[1] = letters[c];
	}
}

/* Characters that are not plain, and how many bytes they were. */
static size_t
jsonw_odd(struct jsonw *w, const uint8_t *s, size_t len)
{
	size_t	 n = 0;

	while (n < len && !is_plain(s[n]))
		if (s[n] >= 0x80)
			n += jsonw_multibyte(w, s + n, len - n);
		else
			jsonw_ascii(w, s[n++]);
	return n;
}

/* No string takes less room than its own length and the quotes. */
static void
jsonw_quote(struct jsonw *w, const char *str, size_t len)
{
	const uint8_t	*s = (const uint8_t *)str;
	size_t		 n;
	char		*p;

	if ((p = jsonw_more(w, len + 2)) == NULL)
		return;
	*p++ = '"';
	while ((n = copy_plain(p, s, len)) < len) {
		w->jw_len -= len - n + 1;
		n += jsonw_odd(w, s + n, len - n);
		s += n;
		len -= n;
		if ((p = jsonw_more(w, len + 1)) == NULL)
			return;
	}
	p[len] = '"';
}

/* Outside an object: writes the comma, checks that a value is due. */
static void
jsonw_element(struct jsonw *w)
{
	uint8_t	*state = &w->jw_state[w->jw_depth];

	if (*state & JSONW_OBJECT)
		jsonw_fail(w, "value without a key");
	else if (*state == (JSONW_DOCUMENT | JSONW_FILLED))
		jsonw_fail(w, "second value in a document");
	else if (*state & JSONW_FILLED)
		jsonw_putc(w, ',');
	*state |= JSONW_FILLED;
}

/* Makes ready for a value. */
static inline void
jsonw_value(struct jsonw *w)
{
	uint8_t	*state = &w->jw_state[w->jw_depth];

	if (*state & JSONW_KEYED)
		*state = JSONW_OBJECT | JSONW_FILLED;
	else
		jsonw_element(w);
}

static inline void
jsonw_open(struct jsonw *w, uint8_t level, char bracket)
{
	jsonw_value(w);
	if (w->jw_depth == JSONW_DEPTH_MAX) {
		jsonw_fail(w, "nested too deep");
		return;
	}
	w->jw_state[++w->jw_depth] = level;
	jsonw_putc(w, bracket);
}

void
jsonw_object(struct jsonw *w)
{
	jsonw_open(w, JSONW_OBJECT, '{');
}

void
jsonw_array(struct jsonw *w)
{
	jsonw_open(w, JSONW_ARRAY, '[');
}

void
jsonw_end(struct jsonw *w)
{
	uint8_t	 state = w->jw_state[w->jw_depth];

	if (state & (JSONW_DOCUMENT | JSONW_KEYED)) {
		jsonw_fail(w, state & JSONW_DOCUMENT ?
		    "end without a beginning" : "key without a value");
		return;
	}
	w->jw_depth--;
	jsonw_putc(w, state & JSONW_OBJECT ? '}' : ']');
}

/* Fail with the reason why no member can begin here. */
void
jsonw_no_member(struct jsonw *w)
{
	jsonw_fail(w, w->jw_state[w->jw_depth] & JSONW_OBJECT ?
	    "key without a value" : "key outside an object");
}

/* Begin a member: the comma before it, if one is due. */
static void
jsonw_member(struct jsonw *w)
{
	uint8_t	 state = w->jw_state[w->jw_depth];

	if (state == (JSONW_OBJECT | JSONW_FILLED))
		jsonw_putc(w, ',');
	else if (state != JSONW_OBJECT)
		jsonw_no_member(w);
}

void
jsonw_keyn(struct jsonw *w, const char *key, size_t len)
{
	jsonw_member(w);
	w->jw_state[w->jw_depth] |= JSONW_KEYED;
	jsonw_quote(w, key, len);
	jsonw_putc(w, ':');
}

void
jsonw_key(struct jsonw *w, const char *key)
{
	jsonw_keyn(w, key, strlen(key));
}

void
jsonw_members(struct jsonw *w, const char *text, size_t len)
{
	if (len == 0)
		return;
	jsonw_member(w);
	w->jw_state[w->jw_depth] |= JSONW_FILLED;
	jsonw_put(w, text, len);
}

size_t
jsonw_len(const struct jsonw *w)
{
	return w->jw_len;
}

const char *
jsonw_since(const struct jsonw *w, size_t from, size_t *len)
{
	*len = 0;
	if (w->jw_error != NULL || from > w->jw_len)
		return NULL;
	*len = w->jw_len - from;
	return w->jw_buf + from;
}

void
jsonw_string(struct jsonw *w, const char *s, size_t len)
{
	jsonw_value(w);
	jsonw_quote(w, s, len);
}

void
jsonw_plain(struct jsonw *w, const char *s, size_t len)
{
	char	*p;

	jsonw_value(w);
	if ((p = jsonw_more(w, len + 2)) == NULL)
		return;
	p[0] = '"';
	memcpy(p + 1, s, len);
	p[len + 1] = '"';
}

void
jsonw_str(struct jsonw *w, const char *s)
{
	if (s == NULL)
		jsonw_null(w);
	else
		jsonw_string(w, s, strlen(s));
}

char *
jsonw_digits(uint64_t n, char *end)
{
	do {
		*--end = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	return end;
}

static void
jsonw_number(struct jsonw *w, uint64_t n, int negative)
{
	size_t		 len = 1;
	uint64_t	 over = 10;
	char		*p;

	for (; n >= over && len < JSONW_DIGITS; len++)
		over *= 10;
	jsonw_value(w);
	if (negative)
		jsonw_putc(w, '-');
	if ((p = jsonw_more(w, len)) != NULL)
		jsonw_digits(n, p + len);
}

void
jsonw_int(struct jsonw *w, int64_t n)
{
	jsonw_number(w, n < 0 ? -(uint64_t)n : (uint64_t)n, n < 0);
}

void
jsonw_uint(struct jsonw *w, uint64_t n)
{
	jsonw_number(w, n, 0);
}

/* A number of seconds with nine digits of a fraction, as timespec has them. */
void
jsonw_time(struct jsonw *w, int64_t seconds, uint32_t ns)
{
	char	 digits[JSONW_DIGITS], *p;
	int	 negative = seconds < 0;

	if (negative && ns > 0) {
		seconds++;
		ns = 1000000000 - ns;
	}
	jsonw_number(w, negative ? -(uint64_t)seconds : (uint64_t)seconds,
	    negative);
	/* Ten digits, of which the first is the place of the point. */
	p = jsonw_digits(1000000000ULL + ns % 1000000000,
	    digits + sizeof(digits));
	*p = '.';
	jsonw_put(w, p, 10);
}

void
jsonw_bool(struct jsonw *w, int yes)
{
	jsonw_value(w);
	jsonw_put(w, yes ? "true" : "false", yes ? 4 : 5);
}

void
jsonw_null(struct jsonw *w)
{
	jsonw_value(w);
	jsonw_put(w, "null", 4);
}

const char *
jsonw_finish(struct jsonw *w, size_t *len)
{
	if (w->jw_depth > 0)
		jsonw_fail(w, "beginning without an end");
	else if ((w->jw_state[0] & JSONW_FILLED) == 0)
		jsonw_fail(w, "empty document");
	*len = 0;
	if (w->jw_error != NULL)
		return NULL;
	*len = w->jw_len;
	return w->jw_buf;
}

const char *
jsonw_error(const struct jsonw *w)
{
	return w->jw_error;
}
