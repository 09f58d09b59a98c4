/* SPDX-License-Identifier: ISC */

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

/* In order of length: h1_classify() looks no further than the name's own. */
#define KNOWN_NAMES(N)							\
	N("te", H1_F_TE)						\
	N("host", H1_F_HOST)						\
	N("expect", H1_F_EXPECT)					\
	N("upgrade", H1_F_UPGRADE)					\
	N("trailer", H1_F_TRAILER)					\
	N("connection", H1_F_CONNECTION)				\
	N("keep-alive", H1_F_HOP)					\
	N("x-http-method", H1_F_OVERRIDE)				\
	N("content-length", H1_F_LENGTH)				\
	N("http2-settings", H1_F_HOP)					\
	N("transfer-encoding", H1_F_CODING)				\
	N("x-method-override", H1_F_OVERRIDE)				\
	N("x-http-method-override", H1_F_OVERRIDE)

#define KNOWN_ROW(s, class)	{ s, sizeof(s) - 1, class },
#define KNOWN_BIT(s, class)	| 1U << (sizeof(s) - 1)
#define KNOWN_ASCENDS(s, class)	<= sizeof(s) && sizeof(s)

static const struct known {
	const char	*kn_name;
	size_t		 kn_len;
	enum h1_class	 kn_class;
} known[] = { KNOWN_NAMES(KNOWN_ROW) };

/* The lengths of these, as most names can be dismissed by theirs. */
#define KNOWN_LENGTHS	(0U KNOWN_NAMES(KNOWN_BIT))

_Static_assert(1 KNOWN_NAMES(KNOWN_ASCENDS) <= 32,
    "known names stand in order of length, each a bit of KNOWN_LENGTHS");

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

/* Fields refused in trailers, besides the known names and reroutes. */
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

static uint32_t	 reroute_letters;	/* first ones, a bit each */
static size_t	 reroute_shortest;

static void
reroutes_init(void)
{
	size_t	 i, len;

	reroute_shortest = SIZE_MAX;
	for (i = 0; i < NREROUTES; i++) {
		reroute_letters |= 1U << (reroutes[i][0] - 'a');
		if ((len = strlen(reroutes[i])) < reroute_shortest)
			reroute_shortest = len;
	}
}

/* Most names are dismissed by their length or first letter. */
static int
is_reroute(const char *name, size_t len)
{
	unsigned int	 letter;

	if (reroute_letters == 0)
		reroutes_init();
	if (len < reroute_shortest)
		return 0;
	letter = (unsigned int)h1_lower(name[0]) - 'a';
	return letter < 26 && (reroute_letters >> letter & 1) != 0 &&
	    is_listed(name, len, reroutes, NREROUTES);
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

/* Class of a field, whether or not a parser has set it. */
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

/* with: H1_WITH_*, what is forwarded besides ordinary fields. */
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
