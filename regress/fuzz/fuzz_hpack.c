/* SPDX-License-Identifier: ISC */

/*
 * HPACK blocks of one connection, each after two bytes of length.  nghttp2
 * must find the same fields in them, and in what our encoder makes of them; it
 * is laxer than we are only about integers that are longer than any value
 * needs, and about the number of size updates.
 */

#include "../unit/hpack_peer.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)
#define INPUT_MAX	8192

/* The same fields once more, as our encoder has them. */
struct again {
	struct seen	 a_seen;
	unsigned char	 a_block[HPACK_BLOCK_MAX];
	size_t		 a_len;
	bool		 a_full;
};

/* An integer that we do not read though nghttp2 might; p moves behind it. */
static bool
lax_integer(const uint8_t **p, const uint8_t *end, int bits, size_t *n)
{
	size_t	 mask = ((size_t)1 << bits) - 1;
	int	 i;

	if ((*n = *(*p)++ & mask) < mask)
		return false;
	for (i = 0; *p < end; i++) {
		if (i == 3)
			return true;
		*n += (size_t)(**p & 0x7f) << (7 * i);
		if ((*(*p)++ & 0x80) == 0)
			break;
	}
	return false;
}

static bool
lax_string(const uint8_t **p, const uint8_t *end)
{
	size_t	 n;

	if (*p == end)
		return false;
	if (lax_integer(p, end, 7, &n))
		return true;
	*p += n < (size_t)(end - *p) ? n : (size_t)(end - *p);
	return false;
}

/* Whether nghttp2 may accept what we do not. */
static bool
lax(const uint8_t *p, size_t len)
{
	const uint8_t	*end = p + len;
	size_t		 n;
	int		 kind, updates = 0;

	while (p < end) {
		kind = *p;
		if (lax_integer(&p, end, kind & 0x80 ? 7 : kind & 0x40 ? 6 :
		    kind & 0x20 ? 5 : 4, &n))
			return true;
		if (kind & 0x80)
			continue;
		if ((kind & 0xe0) == 0x20) {
			if (++updates > 2)
				return true;
			continue;
		}
		if ((n == 0 && lax_string(&p, end)) || lax_string(&p, end))
			return true;
	}
	return false;
}

static void
put_again(void *arg, const struct hpack_field *hp)
{
	struct again	*a = arg;
	size_t		 n;

	if (a->a_len + HPACK_BOUND(hp->hp_nlen, hp->hp_vlen) >
	    sizeof(a->a_block)) {
		a->a_full = true;
		return;
	}
	n = hpack_put(a->a_block + a->a_len, hp->hp_name, hp->hp_nlen,
	    hp->hp_value, hp->hp_vlen);
	REQUIRE(n <= HPACK_BOUND(hp->hp_nlen, hp->hp_vlen));
	a->a_len += n;
	seen_ours(&a->a_seen, hp);
}

static void
encode_again(const uint8_t *block, size_t len)
{
	static struct again	 a;
	struct peers		 pe;
	struct hpack_decoder	 hk;
	struct seen		 ours, theirs;

	a.a_seen = (struct seen){ 0 };
	a.a_block[0] = HPACK_NO_TABLE;
	a.a_len = 1;
	a.a_full = false;
	hpack_decoder_init(&hk);
	if (hpack_decode(&hk, block, len, put_again, &a) == 0 && !a.a_full) {
		peers_init(&pe);
		REQUIRE(peers_ours(&pe, a.a_block, a.a_len, &ours) == 0);
		REQUIRE(peers_theirs(&pe, a.a_block, a.a_len, &theirs) == 0);
		REQUIRE(seen_same(&ours, &a.a_seen));
		REQUIRE(seen_same(&theirs, &a.a_seen));
		REQUIRE(pe.pe_ours.hk_table == NULL);
		peers_free(&pe);
	}
	hpack_decoder_free(&hk);
}

static int
decode_both(struct peers *pe, const uint8_t *block, size_t len)
{
	const struct hpack_decoder	*hk = &pe->pe_ours;
	struct seen			 ours, theirs;

	if (peers_ours(pe, block, len, &ours) == -1) {
		REQUIRE(lax(block, len) ||
		    peers_theirs(pe, block, len, &theirs) == -1);
		return -1;
	}
	REQUIRE(peers_theirs(pe, block, len, &theirs) == 0);
	REQUIRE(seen_same(&ours, &theirs));
	REQUIRE(hk->hk_size == nghttp2_hd_inflate_get_dynamic_table_size(
	    pe->pe_theirs));
	REQUIRE(hk->hk_size <= hk->hk_max && hk->hk_max <= HPACK_TABLE_SIZE);
	REQUIRE(hk->hk_n + (size_t)61 ==
	    nghttp2_hd_inflate_get_num_table_entries(pe->pe_theirs));
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peers	 pe;
	size_t		 len;

	if (size > INPUT_MAX)
		return 0;
	peers_init(&pe);
	while (size >= 2) {
		len = (size_t)data[0] << 8 | data[1];
		data += 2;
		size -= 2;
		len = len < size ? len : size;
		encode_again(data, len);
		if (decode_both(&pe, data, len) == -1)
			break;
		data += len;
		size -= len;
	}
	peers_free(&pe);
	return 0;
}
