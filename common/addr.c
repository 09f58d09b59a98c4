/* SPDX-License-Identifier: ISC */

/*
 * Addresses, prefixes and their classes; see addr.h.  Runs in every process.
 * The dialer classifies each address that a resolver returns just before it
 * connects: whoever runs evil.test chooses those addresses, so a range that is
 * missing here is a way into the operator's network.
 */

#include <arpa/inet.h>

#include <stdio.h>
#include <string.h>

#include "addr.h"

struct special {
	uint8_t		 sp_bytes[16];
	uint8_t		 sp_len;
	enum addr_class	 sp_class;
};

/*
 * First match wins.  From the IANA special-purpose registries, and what clouds
 * serve credentials from: metadata comes first, as some of it lies in ranges
 * that a rule may open.
 */
static const struct special special_v4[] = {
	{ { 169, 254, 169, 254 }, 32, ADDR_METADATA },	/* nearly all */
	{ { 100, 100, 100, 200 }, 32, ADDR_METADATA },	/* Alibaba */
	{ { 168, 63, 129, 16 }, 32, ADDR_METADATA },	/* Azure WireServer */
	{ { 192, 0, 0, 192 }, 32, ADDR_METADATA },	/* Oracle classic */
	{ { 0 }, 8, ADDR_THISNET },			/* RFC 1122 */
	{ { 10 }, 8, ADDR_PRIVATE },			/* RFC 1918 */
	{ { 100, 64 }, 10, ADDR_CGNAT },		/* RFC 6598 */
	{ { 127 }, 8, ADDR_LOOPBACK },
	{ { 169, 254 }, 16, ADDR_LINKLOCAL },		/* RFC 3927 */
	{ { 172, 16 }, 12, ADDR_PRIVATE },
	{ { 192, 0, 0 }, 24, ADDR_RESERVED },		/* RFC 6890 */
	{ { 192, 0, 2 }, 24, ADDR_RESERVED },		/* RFC 5737 */
	{ { 192, 88, 99 }, 24, ADDR_RESERVED },		/* RFC 7526 */
	{ { 192, 168 }, 16, ADDR_PRIVATE },
	{ { 198, 18 }, 15, ADDR_BENCHMARK },		/* RFC 2544 */
	{ { 198, 51, 100 }, 24, ADDR_RESERVED },	/* RFC 5737 */
	{ { 203, 0, 113 }, 24, ADDR_RESERVED },		/* RFC 5737 */
	{ { 224 }, 4, ADDR_MULTICAST },
	{ { 240 }, 4, ADDR_RESERVED },			/* and broadcast */
	{ { 0 }, 0, ADDR_GLOBAL }
};

/*
 * Here the last row is not everything: what lies outside 2000::/3 and is not
 * named is unallocated and refused, and with it the discard prefix 100::/64,
 * site-local fec0::/10 and segment identifiers 5f00::/16.  Rows that embed
 * IPv4 are global by themselves and are judged by what they embed, save
 * 64:ff9b:1::/48 and ::/96, which stay refused: where in the first the IPv4
 * address sits is up to whoever runs the translator (RFC 8215, RFC 6052 2.2),
 * and nothing routes the second.
 */
static const struct special special_v6[] = {
	{ { 0xfd, 0, 0x0e, 0xc2 }, 32, ADDR_METADATA },		/* AWS */
	{ { 0xfd, 0x20, 0, 0xce, [14] = 0x02, 0x54 }, 128,
	    ADDR_METADATA },					/* Google */
	{ { 0xfd, 0, 0, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe }, 128,
	    ADDR_METADATA },					/* Oracle */
	{ { 0xfd, 0, 0, 0x42, [14] = 0, 0x42 }, 128,
	    ADDR_METADATA },					/* Scaleway */
	{ { 0xfd, 0, 0xa9, 0xfe, 0xa9, 0xfe, [15] = 1 }, 128,
	    ADDR_METADATA },					/* Akamai */
	{ { 0xfd, 0, 0x01, 0, [12] = 0x01, 0, 0x02, 0 }, 128,
	    ADDR_METADATA },					/* Alibaba */
	{ { 0 }, 128, ADDR_THISNET },
	{ { [15] = 1 }, 128, ADDR_LOOPBACK },
	{ { [10] = 0xff, 0xff }, 96, ADDR_GLOBAL },		/* v4-mapped */
	{ { 0, 0x64, 0xff, 0x9b }, 96, ADDR_GLOBAL },		/* NAT64 */
	{ { 0xfc }, 7, ADDR_PRIVATE },				/* RFC 4193 */
	{ { 0xfe, 0x80 }, 10, ADDR_LINKLOCAL },
	{ { 0xff }, 8, ADDR_MULTICAST },
	{ { 0x20, 0x01 }, 32, ADDR_GLOBAL },			/* Teredo */
	{ { 0x20, 0x01, 0, 0x02 }, 48, ADDR_BENCHMARK },	/* RFC 5180 */
	{ { 0x20, 0x01 }, 23, ADDR_RESERVED },			/* RFC 2928 */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, ADDR_RESERVED },	/* RFC 3849 */
	{ { 0x3f, 0xff }, 20, ADDR_RESERVED },			/* RFC 9637 */
	{ { 0x20 }, 3, ADDR_GLOBAL }
};

/* Where IPv6 addresses of a prefix carry an IPv4 address. */
static const struct {
	uint8_t	 em_bytes[16];
	uint8_t	 em_len;
	uint8_t	 em_offset;
	uint8_t	 em_xor;
} embeddings[] = {
	{ { [10] = 0xff, 0xff }, 96, 12, 0 },		/* mapped, RFC 4291 */
	{ { 0 }, 96, 12, 0 },				/* compatible, ditto */
	{ { [8] = 0xff, 0xff }, 96, 12, 0 },		/* SIIT, RFC 2765 */
	{ { 0, 0x64, 0xff, 0x9b }, 96, 12, 0 },		/* NAT64, RFC 6052 */
	{ { 0, 0x64, 0xff, 0x9b, 0, 1 }, 48, 12, 0 },	/* NAT64, RFC 8215 */
	{ { 0x20, 0x02 }, 16, 2, 0 },			/* 6to4, RFC 3056 */
	{ { 0x20, 0x01 }, 32, 4, 0 },			/* Teredo's server */
	{ { 0x20, 0x01 }, 32, 12, 0xff }		/* Teredo's client */
};

static const char *const class_names[ADDR_NCLASSES] = {
	[ADDR_GLOBAL] = "global",
	[ADDR_PRIVATE] = "private",
	[ADDR_CGNAT] = "cgnat",
	[ADDR_RESERVED] = "reserved",
	[ADDR_BENCHMARK] = "benchmark",
	[ADDR_THISNET] = "this-network",
	[ADDR_MULTICAST] = "multicast",
	[ADDR_LINKLOCAL] = "link-local",
	[ADDR_LOOPBACK] = "loopback",
	[ADDR_METADATA] = "metadata"
};

#define NITEMS(a)	(sizeof(a) / sizeof((a)[0]))

static int
bits_equal(const uint8_t *a, const uint8_t *b, unsigned int nbits)
{
	unsigned int	 rest = nbits % 8;

	if (memcmp(a, b, nbits / 8) != 0)
		return 0;
	return rest == 0 || (a[nbits / 8] ^ b[nbits / 8]) >> (8 - rest) == 0;
}

/* Both inet_pton(3) of glibc and of BSD refuse octal, hex and short forms. */
int
addr_parse(const char *text, struct addr *ad)
{
	memset(ad, 0, sizeof(*ad));
	if (inet_pton(AF_INET, text, ad->ad_bytes) == 1)
		ad->ad_af = AF_INET;
	else if (inet_pton(AF_INET6, text, ad->ad_bytes) == 1)
		ad->ad_af = AF_INET6;
	else {
		memset(ad, 0, sizeof(*ad));
		return -1;
	}
	return 0;
}

const char *
addr_format(const struct addr *ad, char *buf, size_t bufsz)
{
	if (inet_ntop(ad->ad_af, ad->ad_bytes, buf, (socklen_t)bufsz) == NULL)
		strlcpy(buf, "invalid", bufsz);
	return buf;
}

int
addr_cmp(const struct addr *a, const struct addr *b)
{
	if (a->ad_af != b->ad_af)
		return a->ad_af < b->ad_af ? -1 : 1;
	return memcmp(a->ad_bytes, b->ad_bytes, sizeof(a->ad_bytes));
}

int
addr_from_sockaddr(const struct sockaddr *sa, socklen_t len, struct addr *ad,
    uint16_t *port)
{
	struct sockaddr_in	 sin;
	struct sockaddr_in6	 sin6;
	uint16_t		 nport;

	memset(ad, 0, sizeof(*ad));
	if (len >= sizeof(sin) && sa->sa_family == AF_INET) {
		memcpy(&sin, sa, sizeof(sin));
		memcpy(ad->ad_bytes, &sin.sin_addr, sizeof(sin.sin_addr));
		nport = sin.sin_port;
	} else if (len >= sizeof(sin6) && sa->sa_family == AF_INET6) {
		memcpy(&sin6, sa, sizeof(sin6));
		memcpy(ad->ad_bytes, &sin6.sin6_addr, sizeof(sin6.sin6_addr));
		nport = sin6.sin6_port;
	} else
		return -1;
	ad->ad_af = sa->sa_family;
	if (port != NULL)
		*port = ntohs(nport);
	return 0;
}

socklen_t
addr_to_sockaddr(const struct addr *ad, uint16_t port,
    struct sockaddr_storage *ss)
{
	struct sockaddr_in	*sin = (struct sockaddr_in *)ss;
	struct sockaddr_in6	*sin6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof(*ss));
	ss->ss_family = ad->ad_af;
	if (ad->ad_af == AF_INET) {
		memcpy(&sin->sin_addr, ad->ad_bytes, sizeof(sin->sin_addr));
		sin->sin_port = htons(port);
		return sizeof(*sin);
	}
	memcpy(&sin6->sin6_addr, ad->ad_bytes, sizeof(sin6->sin6_addr));
	sin6->sin6_port = htons(port);
	return sizeof(*sin6);
}

static void
embed_take(struct addr *v4, const uint8_t *bytes, uint8_t xor)
{
	int	 i;

	memset(v4, 0, sizeof(*v4));
	v4->ad_af = AF_INET;
	for (i = 0; i < 4; i++)
		v4->ad_bytes[i] = bytes[i] ^ xor;
}

/* RFC 5214, 6.1: an interface identifier of 00-00-5E-FE or 02-00-5E-FE. */
static int
is_isatap(const uint8_t *bytes)
{
	return (bytes[8] & ~0x02) == 0 && bytes[9] == 0 &&
	    bytes[10] == 0x5e && bytes[11] == 0xfe;
}

size_t
addr_embedded(const struct addr *ad, struct addr v4[ADDR_EMBED_MAX])
{
	size_t	 i, n = 0;

	if (ad->ad_af != AF_INET6)
		return 0;
	for (i = 0; i < NITEMS(embeddings); i++) {
		if (bits_equal(ad->ad_bytes, embeddings[i].em_bytes,
		    embeddings[i].em_len))
			embed_take(&v4[n++],
			    ad->ad_bytes + embeddings[i].em_offset,
			    embeddings[i].em_xor);
	}
	if (is_isatap(ad->ad_bytes))
		embed_take(&v4[n++], ad->ad_bytes + 12, 0);
	return n;
}

static enum addr_class
classify_in(const struct special *table, size_t n, const struct addr *ad)
{
	size_t	 i;

	for (i = 0; i < n; i++)
		if (bits_equal(ad->ad_bytes, table[i].sp_bytes,
		    table[i].sp_len))
			return table[i].sp_class;
	return ADDR_RESERVED;
}

enum addr_class
addr_classify(const struct addr *ad)
{
	struct addr	 v4[ADDR_EMBED_MAX];
	enum addr_class	 class, inner;
	size_t		 i, n;

	if (ad->ad_af == AF_INET)
		return classify_in(special_v4, NITEMS(special_v4), ad);
	if (ad->ad_af != AF_INET6)
		return ADDR_RESERVED;
	class = classify_in(special_v6, NITEMS(special_v6), ad);
	n = addr_embedded(ad, v4);
	for (i = 0; i < n; i++) {
		inner = classify_in(special_v4, NITEMS(special_v4), &v4[i]);
		if (inner > class)
			class = inner;
	}
	return class;
}

const char *
addr_class_name(enum addr_class class)
{
	return (unsigned int)class < ADDR_NCLASSES ? class_names[class] :
	    "invalid";
}

int
addr_class_openable(enum addr_class class)
{
	return class == ADDR_PRIVATE || class == ADDR_CGNAT;
}

/* -1 unless text is a decimal of 0 to max without sign, space or zeros. */
static int
prefix_len(const char *text, int max)
{
	size_t	 len = strlen(text);
	int	 n = 0;

	if (len == 0 || len > 3 || strspn(text, "0123456789") != len ||
	    (text[0] == '0' && len > 1))
		return -1;
	while (*text != '\0')
		n = n * 10 + (*text++ - '0');
	return n <= max ? n : -1;
}

/* Host bits set are a typing error whose direction nobody can guess. */
static int
has_host_bits(const struct prefix *pf)
{
	unsigned int	 i, mask = 0xff >> pf->pf_len % 8;

	for (i = pf->pf_len / 8; i < sizeof(pf->pf_addr.ad_bytes); i++) {
		if ((pf->pf_addr.ad_bytes[i] & mask) != 0)
			return 1;
		mask = 0xff;
	}
	return 0;
}

static int
prefix_max(const struct prefix *pf)
{
	return pf->pf_addr.ad_af == AF_INET ? 32 : 128;
}

int
prefix_valid(const struct prefix *pf)
{
	return (pf->pf_addr.ad_af == AF_INET ||
	    pf->pf_addr.ad_af == AF_INET6) &&
	    pf->pf_len <= prefix_max(pf) && !has_host_bits(pf);
}

static const char *
prefix_fault(const char *text, struct prefix *pf)
{
	const char	*slash = strchr(text, '/');
	char		 buf[ADDR_STRLEN];
	size_t		 len = strlen(text);
	int		 n, max;

	if (slash != NULL)
		len = (size_t)(slash - text);
	if (len >= sizeof(buf))
		return "bad address";
	memcpy(buf, text, len);
	buf[len] = '\0';
	if (addr_parse(buf, &pf->pf_addr) == -1)
		return "bad address";
	n = max = prefix_max(pf);
	if (slash != NULL && (n = prefix_len(slash + 1, max)) == -1)
		return max == 32 ? "prefix length is not 0 to 32" :
		    "prefix length is not 0 to 128";
	pf->pf_len = (uint8_t)n;
	return has_host_bits(pf) ? "bits set after the prefix length" : NULL;
}

int
prefix_parse(const char *text, struct prefix *pf, const char **why)
{
	const char	*fault;

	memset(pf, 0, sizeof(*pf));
	if ((fault = prefix_fault(text, pf)) == NULL)
		return 0;
	memset(pf, 0, sizeof(*pf));
	if (why != NULL)
		*why = fault;
	return -1;
}

const char *
prefix_format(const struct prefix *pf, char *buf, size_t bufsz)
{
	char	 text[ADDR_STRLEN];

	snprintf(buf, bufsz, "%s/%u",
	    addr_format(&pf->pf_addr, text, sizeof(text)), pf->pf_len);
	return buf;
}

int
prefix_match(const struct prefix *pf, const struct addr *ad)
{
	return pf->pf_addr.ad_af == ad->ad_af && prefix_valid(pf) &&
	    bits_equal(pf->pf_addr.ad_bytes, ad->ad_bytes, pf->pf_len);
}

int
addr_is_private(const struct addr *ad)
{
	switch (addr_classify(ad)) {
	case ADDR_PRIVATE:
	case ADDR_CGNAT:
	case ADDR_LINKLOCAL:
	case ADDR_LOOPBACK:
		return 1;
	default:
		return 0;
	}
}
