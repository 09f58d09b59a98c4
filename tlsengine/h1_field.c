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
#define L	(H1_B_TOKEN | H1_B_LOWER)
#define V	H1_B_VALUE
#define X	H1_B_TARGET
#define H	H1_B_HOST
#define S	H1_B_V6
#define D	H1_B_DIGIT

const uint8_t	 h1_byte[256] = {
	['\t'] = V,		[' '] = V,
	['!'] = L | V | X,	['"'] = V | X,		['#'] = L | V,
	['$'] = L | V | X,	['%'] = L | V | X,	['&'] = L | V | X,
	['\''] = L | V | X,	['('] = V | X,		[')'] = V | X,
	['*'] = L | V | X,	['+'] = L | V | X,	[','] = V | X,
	['-'] = L | V | X | H,	['.'] = L | V | X | H | S,
	['/'] = V | X,		['0' ... '9'] = L | V | X | H | S | D,
	[':'] = V | X | S,	[';' ... '@'] = V | X,
	['A' ... 'F'] = T | V | X | H | S,
	['G' ... 'Z'] = T | V | X | H,
	['[' ... ']'] = V | X,	['^'] = L | V | X,	['_'] = L | V | X | H,
	['`'] = L | V | X,
	['a' ... 'f'] = L | V | X | H | S,
	['g' ... 'z'] = L | V | X | H,
	['{'] = V | X,		['|'] = L | V | X,	['}'] = V | X,
	['~'] = L | V | X,	[0x80 ... 0xff] = V | X,
};

#undef T
#undef L
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
	NAME("te", H1_F_TE),
	NAME("host", H1_F_HOST),
	NAME("expect", H1_F_EXPECT),
	NAME("upgrade", H1_F_UPGRADE),
	NAME("trailer", H1_F_TRAILER),
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

/*
 * By these an origin, or a proxy before it, may be told another path or host
 * than the one of the request.  Here and below, a name that ends in a hyphen
 * stands for all that begin so.
 */
static const char *const	 reroutes[] = {
	"forwarded", "path-info", "script-name", "x-backend-host",
	"x-envoy-original-", "x-forwarded-host", "x-forwarded-path",
	"x-forwarded-prefix", "x-forwarded-server", "x-forwarded-uri",
	"x-forwarded-url", "x-gateway-host", "x-host", "x-host-override",
	"x-http-destinationurl", "x-http-host-override", "x-original-",
	"x-override-", "x-path-info", "x-proxy-host", "x-proxy-url",
	"x-replaced-path", "x-rewrite-", "x-script-name",
	"x-waws-unencoded-url",
};

/* Beyond those, and what is known. */
static const char *const	 no_trailer[] = {
	"age", "authentication-info", "authorization", "cache-control",
	"content-encoding", "content-range", "content-type", "cookie",
	"cookie2", "date", "expires", "if-", "location", "max-forwards",
	"pragma", "range", "retry-after", "set-cookie", "set-cookie2",
	"strict-transport-security", "vary", "warning", "www-authenticate",
	"x-forwarded-",
};

#define NKNOWN		(sizeof(known) / sizeof(known[0]))
#define PROXY		"proxy-"
#define NREROUTES	(sizeof(reroutes) / sizeof(reroutes[0]))
#define NNO_TRAILER	(sizeof(no_trailer) / sizeof(no_trailer[0]))
#define ONES		(~(uint64_t)0 / 255)	/* 0x01 in each byte */

/* Whether text is the lower-case word, in any case. */
int
h1_equal(const char *text, size_t len, const char *word)
{
	size_t	 i;

	for (i = 0; i < len; i++)
		if (word[i] == '\0' || h1_lower(text[i]) != word[i])
			return 0;
	return word[len] == '\0';
}

/*
 * CGI and its heirs make one variable of Content-Length and Content_Length, so
 * a known name is known with underscores too.
 */
static char
name_char(char c)
{
	return c == '_' ? '-' : h1_lower(c);
}

static int
is_name(const char *name, const char *word, size_t len)
{
	size_t	 i;

	for (i = 0; i < len; i++)
		if (name_char(name[i]) != word[i])
			return 0;
	return 1;
}

static int
is_listed(const char *name, size_t len, const char *const *list, size_t n)
{
	const char	*word;
	size_t		 i;

	for (; n > 0; n--, list++) {
		word = *list;
		for (i = 0; i < len && name_char(name[i]) == word[i]; i++)
			;
		if (i > 0 && word[i] == '\0' &&
		    (i == len || word[i - 1] == '-'))
			return 1;
	}
	return 0;
}

/* By their first letter, most names are none of them. */
static int
is_reroute(const char *name, size_t len)
{
	if (len < 6 || memchr("fpsx", h1_lower(name[0]), 4) == NULL)
		return 0;
	return is_listed(name, len, reroutes, NREROUTES);
}

enum h1_class
h1_classify(const char *name, size_t len)
{
	const struct known	*kn = known;

	if (len < 32 && (KNOWN_LENGTHS >> len & 1) != 0) {
		for (; kn < known + NKNOWN && kn->kn_len <= len; kn++)
			if (kn->kn_len == len &&
			    is_name(name, kn->kn_name, len))
				return kn->kn_class;
	}
	if (len >= strlen(PROXY) && h1_lower(name[0]) == 'p' &&
	    h1_equal(name, strlen(PROXY), PROXY))
		return H1_F_HOP;
	return is_reroute(name, len) ? H1_F_REROUTE : H1_F_ORDINARY;
}

/* Of one that a parser may or may not have seen. */
enum h1_class
h1_class(const struct h1_field *hf)
{
	return hf->hf_class != H1_F_UNKNOWN ? hf->hf_class :
	    h1_classify(hf->hf_name, hf->hf_nlen);
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
 * Of eight bytes: is one below space, or a DEL?  The lowest bit set tells
 * which was the first; bits above it may be wrong.
 */
static inline uint64_t
odd_bytes(const char *p)
{
	uint64_t	 x, del;

	memcpy(&x, p, sizeof(x));
	x = le64toh(x);
	del = x ^ ONES * 0x7f;
	return (((x - ONES * 0x20) & ~x) | ((del - ONES) & ~del)) &
	    ONES * 0x80;
}

/*
 * The same for H1_B_VALUE.  Most bytes of a head are in values, so eight at a
 * time, the last eight perhaps in part once more.  A tab is below space, and
 * legal.
 */
const char *
h1_value_span(const char *p, const char *end)
{
	const char	*last = end - p >= 8 ? end - 8 : NULL;
	uint64_t	 hit;

	while (end - p >= 8) {
		if ((hit = odd_bytes(p)) == 0) {
			p += 8;
			continue;
		}
		p += __builtin_ctzll(hit) / 8;
		if (*p != '\t')
			return p;
		p++;
	}
	if (last != NULL && odd_bytes(last) == 0)
		return end;
	return h1_span(p, end, H1_B_VALUE);
}

int
h1_is_hop_by_hop(const struct h1_field *hf)
{
	enum h1_class	 class;

	if (hf->hf_hop)
		return 1;
	class = h1_class(hf);
	return class != H1_F_ORDINARY && class != H1_F_OVERRIDE &&
	    class != H1_F_REROUTE;
}

/* Of the ordinary, with what the request or the body calls for. */
int
h1_is_forwarded(const struct h1_field *hf, int with)
{
	if (hf->hf_hop)
		return 0;
	switch (h1_class(hf)) {
	case H1_F_ORDINARY:
		return 1;
	case H1_F_OVERRIDE:
	case H1_F_REROUTE:
		return with & H1_WITH_OVERRIDE;
	case H1_F_TRAILER:
		return with & H1_WITH_TRAILER;
	default:
		return 0;
	}
}

/*
 * RFC 9110, 6.5.1: whoever merges trailers into the head would let these undo
 * what was decided from the head.
 */
int
h1_is_trailer(const struct h1_field *hf)
{
	return h1_is_forwarded(hf, 0) && !is_listed(hf->hf_name, hf->hf_nlen,
	    no_trailer, NNO_TRAILER);
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
