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
 * Bytes and names of HTTP fields; see h1_field.h.  Runs in the tlsengine, on
 * the bytes of strangers.
 */

#include <endian.h>
#include <string.h>

#include "h1_field.h"

#define T	H1_B_TOKEN
#define V	H1_B_VALUE
#define X	H1_B_TARGET
#define H	H1_B_HOST
#define S	H1_B_V6
#define D	H1_B_DIGIT

const uint8_t	 h1_byte[256] = {
	['\t'] = V,		[' '] = V,
	['!'] = T | V | X,	['"'] = V | X,		['#'] = T | V,
	['$'] = T | V | X,	['%'] = T | V | X,	['&'] = T | V | X,
	['\''] = T | V | X,	['('] = V | X,		[')'] = V | X,
	['*'] = T | V | X,	['+'] = T | V | X,	[','] = V | X,
	['-'] = T | V | X | H,	['.'] = T | V | X | H | S,
	['/'] = V | X,		['0' ... '9'] = T | V | X | H | S | D,
	[':'] = V | X | S,	[';' ... '@'] = V | X,
	['A' ... 'F'] = T | V | X | H | S,
	['G' ... 'Z'] = T | V | X | H,
	['[' ... ']'] = V | X,	['^'] = T | V | X,	['_'] = T | V | X | H,
	['`'] = T | V | X,
	['a' ... 'f'] = T | V | X | H | S,
	['g' ... 'z'] = T | V | X | H,
	['{'] = V | X,		['|'] = T | V | X,	['}'] = V | X,
	['~'] = T | V | X,	[0x80 ... 0xff] = V | X,
};

#undef T
#undef V
#undef X
#undef H
#undef S
#undef D

/* In order of length. */
#define NAME(s, class)	{ s, sizeof(s) - 1, class }
static const struct known {
	const char	*kn_name;
	size_t		 kn_len;
	enum h1_class	 kn_class;
} known[] = {
	NAME("te", H1_F_HOP),
	NAME("host", H1_F_HOST),
	NAME("expect", H1_F_EXPECT),
	NAME("upgrade", H1_F_UPGRADE),
	NAME("trailer", H1_F_HOP),
	NAME("connection", H1_F_CONNECTION),
	NAME("keep-alive", H1_F_HOP),
	NAME("x-http-method", H1_F_OVERRIDE),
	NAME("content-length", H1_F_LENGTH),
	NAME("http2-settings", H1_F_HOP),
	NAME("transfer-encoding", H1_F_CODING),
	NAME("x-method-override", H1_F_OVERRIDE),
	NAME("x-http-method-override", H1_F_OVERRIDE),
};
#undef NAME

/* The lengths above, as most names can be dismissed by theirs. */
#define KNOWN_LENGTHS	(1U << 2 | 1U << 4 | 1U << 6 | 1U << 7 | 1U << 10 | \
			    1U << 13 | 1U << 14 | 1U << 17 | 1U << 22)

#define NKNOWN		(sizeof(known) / sizeof(known[0]))
#define PROXY		"proxy-"
#define ONES		(~(uint64_t)0 / 255)	/* 0x01 in each byte */

/* <ctype.h> depends on the locale; a protocol must not. */
static char
to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether text is the lower-case word, in any case. */
int
h1_equal(const char *text, size_t len, const char *word)
{
	size_t	 i;

	for (i = 0; i < len; i++)
		if (word[i] == '\0' || to_lower(text[i]) != word[i])
			return 0;
	return word[len] == '\0';
}

/*
 * CGI and its heirs make one variable of Content-Length and Content_Length, so
 * a known name is known with underscores too.
 */
static int
is_name(const char *name, const struct known *kn)
{
	size_t	 i;
	char	 c;

	for (i = 0; i < kn->kn_len; i++) {
		c = name[i] == '_' ? '-' : to_lower(name[i]);
		if (c != kn->kn_name[i])
			return 0;
	}
	return 1;
}

enum h1_class
h1_classify(const char *name, size_t len)
{
	const struct known	*kn = known;

	if (len < 32 && (KNOWN_LENGTHS >> len & 1) != 0) {
		for (; kn < known + NKNOWN && kn->kn_len <= len; kn++)
			if (kn->kn_len == len && is_name(name, kn))
				return kn->kn_class;
	}
	if (len >= strlen(PROXY) && to_lower(name[0]) == 'p' &&
	    h1_equal(name, strlen(PROXY), PROXY))
		return H1_F_HOP;
	return H1_F_ORDINARY;
}

/* The first byte that is not of this kind, or end. */
const char *
h1_span(const char *p, const char *end, int what)
{
	while (p < end && h1_is(*p, what))
		p++;
	return p;
}

/*
 * The same for H1_B_VALUE.  Most bytes of a head are in values, so eight at a
 * time: is one below space, or a DEL?  The lowest bit set tells which was the
 * first; bits above it may be wrong.  A tab is below space, and legal.
 */
const char *
h1_value_span(const char *p, const char *end)
{
	uint64_t	 x, del, hit;

	while (end - p >= 8) {
		memcpy(&x, p, sizeof(x));
		x = le64toh(x);
		del = x ^ ONES * 0x7f;
		hit = (((x - ONES * 0x20) & ~x) | ((del - ONES) & ~del)) &
		    ONES * 0x80;
		if (hit == 0) {
			p += 8;
			continue;
		}
		p += __builtin_ctzll(hit) / 8;
		if (*p != '\t')
			return p;
		p++;
	}
	return h1_span(p, end, H1_B_VALUE);
}

int
h1_is_hop_by_hop(const struct h1_field *hf)
{
	enum h1_class	 class;

	if (hf->hf_hop)
		return 1;
	class = h1_classify(hf->hf_name, hf->hf_nlen);
	return class != H1_F_ORDINARY && class != H1_F_OVERRIDE;
}

int
h1_field_valid(const struct h1_field *hf)
{
	const char	*name = hf->hf_name, *value = hf->hf_value;

	if (hf->hf_nlen == 0 || h1_span(name, name + hf->hf_nlen,
	    H1_B_TOKEN) != name + hf->hf_nlen)
		return 0;
	return hf->hf_vlen == 0 || h1_value_span(value,
	    value + hf->hf_vlen) == value + hf->hf_vlen;
}
