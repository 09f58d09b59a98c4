/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for the chunked coding.  The first byte says how the rest is
 * cut; what comes out must not depend on it, and must survive our encoder.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../tlsengine/http/h1.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

struct result {
	struct h1_chunk	 ck;
	char		*body;
	size_t		 len;
	size_t		 used;	/* if it was not refused */
	char		 keep[H1_TRAILER_MAX];
};

static void
decode(struct result *rs, const char *in, size_t inlen, size_t piece)
{
	const char	*data;
	size_t		 n, datalen;
	ssize_t		 r;

	memset(rs, 0, sizeof(*rs));
	rs->ck.hc_keep = rs->keep;
	rs->ck.hc_keepsz = sizeof(rs->keep);
	REQUIRE((rs->body = malloc(inlen + 1)) != NULL);
	while (rs->used < inlen && !h1_chunk_done(&rs->ck)) {
		n = piece < inlen - rs->used ? piece : inlen - rs->used;
		r = h1_chunk_decode(&rs->ck, in + rs->used, n, &data,
		    &datalen);
		REQUIRE((r == -1) == (rs->ck.hc_why != NULL));
		if (r == -1) {
			REQUIRE(datalen == 0);
			rs->used = 0;
			return;
		}
		REQUIRE(r > 0 && (size_t)r <= n && datalen <= (size_t)r);
		if (datalen > 0)
			memcpy(rs->body + rs->len, data, datalen);
		rs->len += datalen;
		rs->used += (size_t)r;
	}
}

static void
require_same(const struct result *a, const struct result *b)
{
	REQUIRE(a->len == b->len && memcmp(a->body, b->body, a->len) == 0);
	REQUIRE(a->used == b->used && a->ck.hc_state == b->ck.hc_state);
	REQUIRE(a->ck.hc_why == b->ck.hc_why);
	REQUIRE(a->ck.hc_trailer == b->ck.hc_trailer &&
	    memcmp(a->keep, b->keep, a->ck.hc_trailer) == 0);
}

/* Those that are kept, written again and read again, are the same. */
static void
require_trailers(const struct result *rs)
{
	static struct h1_field	 one[H1_TRAILER_MAX], two[H1_TRAILER_MAX];
	static char		 wire[2 * H1_TRAILER_MAX];
	struct h1_error		 he;
	ssize_t			 n, len, i;

	n = h1_parse_trailers(rs->keep, rs->ck.hc_trailer, one,
	    H1_TRAILER_MAX, &he);
	REQUIRE(n >= 0);
	len = h1_format_trailers(wire, sizeof(wire), one, (size_t)n);
	REQUIRE(len >= 5 && memcmp(wire, "0\r\n", 3) == 0);
	REQUIRE(h1_parse_trailers(wire + 3, (size_t)len - 3, two,
	    H1_TRAILER_MAX, &he) == n);
	for (i = 0; i < n; i++) {
		REQUIRE(one[i].hf_nlen == two[i].hf_nlen &&
		    one[i].hf_vlen == two[i].hf_vlen);
		REQUIRE(memcmp(one[i].hf_name, two[i].hf_name,
		    one[i].hf_nlen) == 0);
		REQUIRE(memcmp(one[i].hf_value, two[i].hf_value,
		    one[i].hf_vlen) == 0);
	}
}

/* As chunks of up to 7 bytes, and back. */
static void
require_encodes(const struct result *rs)
{
	struct result	 back;
	char		*wire;
	size_t		 i, n, len = 0;

	REQUIRE((wire = malloc(rs->len * 8 + 16)) != NULL);
	for (i = 0; i < rs->len; i += n) {
		n = rs->len - i < 7 ? rs->len - i : 7;
		len += h1_chunk_header(wire + len, n);
		memcpy(wire + len, rs->body + i, n);
		memcpy(wire + len + n, H1_CHUNK_END, 2);
		len += n + 2;
	}
	memcpy(wire + len, H1_CHUNK_LAST, 5);
	decode(&back, wire, len + 5, len + 5);
	REQUIRE(h1_chunk_done(&back.ck) && back.used == len + 5);
	REQUIRE(back.len == rs->len);
	REQUIRE(memcmp(back.body, rs->body, rs->len) == 0);
	free(back.body);
	free(wire);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct result	 whole, cut, bytes;
	const char	*in = (const char *)data + 1;

	if (size < 2)
		return 0;
	decode(&whole, in, size - 1, size - 1);
	decode(&cut, in, size - 1, data[0] % 31 + 2);
	decode(&bytes, in, size - 1, 1);
	require_same(&whole, &cut);
	require_same(&whole, &bytes);
	if (h1_chunk_done(&whole.ck)) {
		REQUIRE(whole.len == whole.ck.hc_total);
		require_encodes(&whole);
		require_trailers(&whole);
	}
	free(whole.body);
	free(cut.body);
	free(bytes.body);
	return 0;
}
