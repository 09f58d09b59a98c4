/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for tlsengine/tls/hello.c.  The input is what a client sent, from
 * the first byte of its connection.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../tlsengine/tls/hello.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

#define HEADER	5

static void
require_sane(enum hello_result result, const struct hello *he)
{
	if (result == HELLO_BAD) {
		REQUIRE(he->he_why != NULL);
		return;
	}
	REQUIRE((he->he_why != NULL) == (he->he_sni == HELLO_SNI_MALFORMED));
	if (result != HELLO_DONE)
		return;
	REQUIRE(he->he_version <= 0x0304);
	REQUIRE(!(he->he_flags & HELLO_SSL) == (he->he_version > 0x0300));
	if (he->he_flags & (HELLO_ALPN_H2 | HELLO_ALPN_HTTP11 |
	    HELLO_ALPN_OTHER))
		REQUIRE(he->he_flags & HELLO_ALPN);
	if (he->he_sni == HELLO_SNI_NAME) {
		REQUIRE(he->he_namelen > 0 && he->he_namelen <= HELLO_NAME_MAX);
		REQUIRE(strlen(he->he_name) == he->he_namelen);
	}
}

static int
same(const struct hello *a, const struct hello *b)
{
	return a->he_sni == b->he_sni && a->he_flags == b->he_flags &&
	    a->he_legacy_version == b->he_legacy_version &&
	    a->he_version == b->he_version && a->he_namelen == b->he_namelen &&
	    strcmp(a->he_name, b->he_name) == 0 && a->he_why == b->he_why;
}

/* Decided once, decided for good, wherever the segments end. */
static void
fuzz_prefixes(const uint8_t *data, size_t size, enum hello_result result,
    const struct hello *full)
{
	struct hello		 he;
	enum hello_result	 r;
	size_t			 n, step = size / 16 + 1;

	for (n = 0; n < size; n += step) {
		r = hello_parse(data, n, &he);
		require_sane(r, &he);
		REQUIRE(r == HELLO_MORE || r == result);
		if (r == HELLO_DONE)
			REQUIRE(same(&he, full));
	}
}

/* Cut every record in two: the bytes of the handshake stay the same. */
static void
fuzz_records(const uint8_t *data, size_t size, const struct hello *full)
{
	static uint8_t	 cut[2 * HELLO_MAX];
	struct hello	 he;
	size_t		 i, len, half, n = 0;

	for (i = 0; i + HEADER <= size && data[i] == 22; i += HEADER + len) {
		len = (size_t)data[i + 3] << 8 | data[i + 4];
		if (len > size - i - HEADER)
			len = size - i - HEADER;
		if (len < 2 || n + len + 2 * HEADER > HELLO_MAX)
			break;
		half = len / 2;
		memcpy(cut + n, data + i, 3);
		cut[n + 3] = (uint8_t)(half >> 8);
		cut[n + 4] = (uint8_t)half;
		memcpy(cut + n + HEADER, data + i + HEADER, half);
		n += HEADER + half;
		memcpy(cut + n, data + i, 3);
		cut[n + 3] = (uint8_t)((len - half) >> 8);
		cut[n + 4] = (uint8_t)(len - half);
		memcpy(cut + n + HEADER, data + i + HEADER + half, len - half);
		n += HEADER + len - half;
	}
	/* Less than the whole hello if a limit stopped it. */
	if (hello_parse(cut, n, &he) == HELLO_DONE)
		REQUIRE(same(&he, full));
	else
		REQUIRE(i + HEADER <= size);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hello		 he;
	enum hello_result	 result;

	result = hello_parse(data, size, &he);
	require_sane(result, &he);
	REQUIRE(size < HELLO_MAX || result != HELLO_MORE);
	fuzz_prefixes(data, size, result, &he);
	if (result == HELLO_DONE)
		fuzz_records(data, size, &he);
	return 0;
}
