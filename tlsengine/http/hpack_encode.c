/* SPDX-License-Identifier: ISC */

/*
 * Encoding HPACK (RFC 7541); see hpack.h.  Runs in the tlsengine; what it
 * writes was checked by its callers.
 */

#include <string.h>

#include "hpack.h"

#define INDEXED			0x80
#define NEVER_INDEXED		0x10
#define NEVER_INDEXED_BITS	4
#define LENGTH_BITS		7

/* By hash of a name its first index, 0 if there is none. */
static uint8_t	 slots[UINT8_MAX + 1];

/* Chosen so that no two names of the static table share one. */
static inline uint8_t
hash(const char *name, size_t len)
{
	return (uint8_t)name[0] + 8 * (uint8_t)name[len - 1] + 13 * len;
}

static void
init_slots(void)
{
	const struct hpack_static	*hs;
	size_t				 i;

	for (i = 1; i <= HPACK_STATIC_N; i++) {
		hs = &hpack_static[i];
		slots[hash(hs->hs_name, hs->hs_nlen)] = hs->hs_first;
	}
}

static size_t
find_name(const char *name, size_t len)
{
	static int	 ready;
	size_t		 i;

	if (!ready) {
		init_slots();
		ready = 1;
	}
	if (len == 0 || (i = slots[hash(name, len)]) == 0 ||
	    hpack_static[i].hs_nlen != len ||
	    memcmp(hpack_static[i].hs_name, name, len) != 0)
		return 0;
	return i;
}

/* Among the entries of that name. */
static size_t
find_value(size_t first, const char *value, size_t len)
{
	size_t	 i;

	for (i = first; i <= HPACK_STATIC_N &&
	    hpack_static[i].hs_first == first; i++) {
		if (hpack_static[i].hs_vlen == len &&
		    memcmp(hpack_static[i].hs_value, value, len) == 0)
			return i;
	}
	return 0;
}

static unsigned char *
put_integer(unsigned char *p, int pattern, int bits, size_t n)
{
	size_t	 mask = ((size_t)1 << bits) - 1;

	if (n < mask) {
		*p++ = pattern | n;
		return p;
	}
	*p++ = pattern | mask;
	for (n -= mask; n >= 0x80; n >>= 7)
		*p++ = 0x80 | (n & 0x7f);
	*p++ = n;
	return p;
}

static unsigned char *
put_string(unsigned char *p, const char *s, size_t len)
{
	p = put_integer(p, 0, LENGTH_BITS, len);
	memcpy(p, s, len);
	return p + len;
}

size_t
hpack_put(unsigned char *out, const char *name, size_t nlen,
    const char *value, size_t vlen)
{
	unsigned char	*p = out;
	size_t		 first = find_name(name, nlen), both;

	if (first != 0 && (both = find_value(first, value, vlen)) != 0) {
		*p = INDEXED | both;
		return 1;
	}
	p = put_integer(p, NEVER_INDEXED, NEVER_INDEXED_BITS, first);
	if (first == 0)
		p = put_string(p, name, nlen);
	p = put_string(p, value, vlen);
	return p - out;
}
