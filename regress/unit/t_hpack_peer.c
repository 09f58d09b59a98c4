/* SPDX-License-Identifier: ISC */

/*
 * Tests of HPACK against nghttp2's: connections with thousands of blocks, of
 * which both must say the same.
 */

#include "test.h"

#include "hpack_peer.h"

#define nitems(a)	(sizeof(a) / sizeof((a)[0]))
#define FIELDS_MAX	12
#define TEXT_MAX	3000

/* Codes are longest for what is rarest: all bytes, at all offsets of a bit. */
TEST(huffman_each_byte)
{
	static const char	 letters[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	nghttp2_hd_deflater	*deflater;
	uint8_t			 text[sizeof(letters) + 40], block[256];
	struct hpack_decoder	 hk;
	nghttp2_nv		 nv = { text, text, 1, 0,
	    NGHTTP2_NV_FLAG_NO_INDEX };
	struct seen		 want, got;
	ssize_t			 n;
	int			 byte;
	size_t			 at;

	CHECK_INT(nghttp2_hd_deflate_new(&deflater, 4096), 0);
	hpack_decoder_init(&hk);
	for (byte = 0; byte < 256; byte++) {
		for (at = 0; at < 8; at++) {
			memcpy(text, letters, sizeof(letters) - 1);
			text[1 + at] = byte;
			nv.valuelen = sizeof(letters) - 1 - byte % 8;
			n = nghttp2_hd_deflate_hd(deflater, block,
			    sizeof(block), &nv, 1);
			CHECK(n > 0 && (block[3] & 0x80) != 0);
			got = want = (struct seen){ 0 };
			seen_field(&want, text, 1, text, nv.valuelen);
			CHECK_INT(hpack_decode(&hk, block, (size_t)n,
			    seen_ours, &got), 0);
			CHECK(seen_same(&want, &got));
		}
	}
	hpack_decoder_free(&hk);
	nghttp2_hd_deflate_del(deflater);
}

static size_t
put_length(uint8_t *p, int huffman, size_t n)
{
	if (n < 127) {
		p[0] = huffman | n;
		return 1;
	}
	p[0] = huffman | 0x7f;
	p[1] = 0x80 | ((n - 127) & 0x7f);
	p[2] = 0x80 | ((n - 127) >> 7 & 0x7f);
	p[3] = (n - 127) >> 14;
	return 4;
}

/* Zeros are the code of `0', five bits each. */
TEST(huffman_fills_the_block)
{
	static uint8_t	 block[HPACK_BLOCK_MAX + 1];
	static char	 text[2 * HPACK_BLOCK_MAX];
	struct peers	 pe;
	struct seen	 want = { 0 }, got;
	size_t		 nlen = 30000, vlen = 35525, len;

	memset(text, '0', sizeof(text));
	block[0] = 0x10;
	len = 1 + put_length(block + 1, 0x80, nlen) + nlen;
	len += put_length(block + len, 0x80, vlen) + vlen;
	seen_field(&want, text, nlen * 8 / 5, text, vlen * 8 / 5);
	CHECK(len <= HPACK_BLOCK_MAX);
	while (len < HPACK_BLOCK_MAX) {
		block[len++] = 0x82;
		seen_field(&want, ":method", 7, "GET", 3);
	}
	peers_init(&pe);
	CHECK_INT(peers_ours(&pe, block, len, &got), 0);
	CHECK(seen_same(&want, &got));
	block[len++] = 0x82;
	CHECK_INT(peers_ours(&pe, block, len, &got), -1);
	peers_free(&pe);
}

/* As good as any for tests, and the same each time. */
static uint32_t
any(uint32_t below)
{
	static uint64_t	 state = 1;

	state = state * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)(state >> 33) % below;
}

struct list {
	nghttp2_nv	 l_nv[FIELDS_MAX];
	size_t		 l_n;
	struct seen	 l_seen;
	uint8_t		 l_text[2 * FIELDS_MAX * TEXT_MAX];
};

static size_t
any_length(void)
{
	switch (any(40)) {
	case 0:
		return any(TEXT_MAX);
	case 1:
		return 0;
	case 2:
		return 120 + any(16);
	default:
		return 1 + any(30);
	}
}

static size_t
any_name(uint8_t *p)
{
	const struct hpack_static	*hs;
	size_t				 i, len;

	if (any(2) == 0) {
		hs = &hpack_static[1 + any(HPACK_STATIC_N)];
		memcpy(p, hs->hs_name, hs->hs_nlen);
		return hs->hs_nlen;
	}
	len = any(2) == 0 ? 3 : any_length();
	for (i = 0; i < len; i++)
		p[i] = 'a' + any(len == 3 ? 3 : 26);
	return len;
}

static size_t
any_value(uint8_t *p)
{
	const struct hpack_static	*hs;
	size_t				 i, len;
	uint32_t			 kind = any(4);

	if (kind == 0) {
		hs = &hpack_static[1 + any(16)];
		memcpy(p, hs->hs_value, hs->hs_vlen);
		return hs->hs_vlen;
	}
	len = kind == 1 ? 1 : any_length();
	for (i = 0; i < len; i++)
		p[i] = kind == 3 && any(8) == 0 ? any(256) : '0' + any(10);
	return len;
}

static void
any_list(struct list *l)
{
	nghttp2_nv	*nv;
	uint8_t		*p = l->l_text;
	size_t		 i;

	l->l_n = any(FIELDS_MAX + 1);
	l->l_seen = (struct seen){ 0 };
	for (i = 0; i < l->l_n; i++) {
		nv = &l->l_nv[i];
		nv->name = p;
		p += nv->namelen = any_name(p);
		nv->value = p;
		p += nv->valuelen = any_value(p);
		nv->flags = any(8) == 0 ? NGHTTP2_NV_FLAG_NO_INDEX : 0;
		seen_field(&l->l_seen, nv->name, nv->namelen, nv->value,
		    nv->valuelen);
	}
}

TEST(nghttp2_deflates)
{
	static struct list	 l;
	static uint8_t		 block[HPACK_BLOCK_MAX];
	nghttp2_hd_deflater	*deflater;
	struct peers		 pe;
	struct seen		 got;
	ssize_t			 n;
	size_t			 i;

	CHECK_INT(nghttp2_hd_deflate_new(&deflater, HPACK_TABLE_SIZE), 0);
	peers_init(&pe);
	for (i = 0; i < 5000; i++) {
		if (any(50) == 0) {
			nghttp2_hd_deflate_change_table_size(deflater,
			    any(300));
			nghttp2_hd_deflate_change_table_size(deflater,
			    any(2) == 0 ? any(300) : any(4097));
		}
		any_list(&l);
		n = nghttp2_hd_deflate_hd(deflater, block, sizeof(block),
		    l.l_nv, l.l_n);
		CHECK(n >= 0);
		CHECK_INT(peers_ours(&pe, block, (size_t)n, &got), 0);
		CHECK(seen_same(&l.l_seen, &got));
		CHECK_INT(pe.pe_ours.hk_size,
		    nghttp2_hd_deflate_get_dynamic_table_size(deflater));
	}
	peers_free(&pe);
	nghttp2_hd_deflate_del(deflater);
}

static size_t
put_list(uint8_t *block, const struct list *l)
{
	const nghttp2_nv	*nv;
	size_t			 i, n, len = 0;

	for (i = 0; i < l->l_n; i++) {
		nv = &l->l_nv[i];
		n = hpack_put(block + len, (char *)nv->name, nv->namelen,
		    (char *)nv->value, nv->valuelen);
		CHECK(n <= HPACK_BOUND(nv->namelen, nv->valuelen));
		len += n;
	}
	return len;
}

TEST(nghttp2_inflates)
{
	static struct list	 l;
	static uint8_t		 block[HPACK_BLOCK_MAX];
	struct peers		 pe;
	struct seen		 ours, theirs;
	size_t			 i, len;

	peers_init(&pe);
	for (i = 0; i < 5000; i++) {
		block[0] = HPACK_NO_TABLE;
		len = i == 0;
		any_list(&l);
		len += put_list(block + len, &l);
		CHECK_INT(peers_ours(&pe, block, len, &ours), 0);
		CHECK_INT(peers_theirs(&pe, block, len, &theirs), 0);
		CHECK(seen_same(&l.l_seen, &ours));
		CHECK(seen_same(&l.l_seen, &theirs));
	}
	CHECK(pe.pe_ours.hk_table == NULL);
	CHECK_INT(pe.pe_ours.hk_max, 0);
	peers_free(&pe);
}

TEST(encodes_lengths)
{
	static const size_t	 lengths[] = { 0, 1, 126, 127, 128, 254, 255,
	    256, 16510, 16511, 16512, 30000 };
	static char		 text[30000];
	static unsigned char	 block[HPACK_BLOCK_MAX];
	struct peers		 pe;
	struct seen		 want, got;
	size_t			 i, j, n;

	memset(text, 'x', sizeof(text));
	peers_init(&pe);
	for (i = 0; i < nitems(lengths); i++) {
		for (j = 0; j < nitems(lengths); j++) {
			n = hpack_put(block, text, lengths[i], text,
			    lengths[j]);
			CHECK(n <= HPACK_BOUND(lengths[i], lengths[j]));
			want = (struct seen){ 0 };
			seen_field(&want, text, lengths[i], text, lengths[j]);
			CHECK_INT(peers_ours(&pe, block, n, &got), 0);
			CHECK(seen_same(&want, &got));
			CHECK_INT(peers_theirs(&pe, block, n, &got), 0);
			CHECK(seen_same(&want, &got));
		}
	}
	peers_free(&pe);
}

/* A cut between two fields leaves a block; nghttp2 knows which those are. */
TEST(cut_anywhere)
{
	static struct list	 l;
	static uint8_t		 block[HPACK_BLOCK_MAX];
	nghttp2_hd_deflater	*deflater;
	struct peers		 pe;
	struct seen		 ours, theirs;
	ssize_t			 n, len;
	int			 i, r;

	for (i = 0; i < 20; i++) {
		CHECK_INT(nghttp2_hd_deflate_new(&deflater, 4096), 0);
		any_list(&l);
		n = nghttp2_hd_deflate_hd(deflater, block, sizeof(block),
		    l.l_nv, l.l_n);
		nghttp2_hd_deflate_del(deflater);
		CHECK(n >= 0);
		for (len = 0; len <= n; len++) {
			peers_init(&pe);
			r = peers_ours(&pe, block, (size_t)len, &ours);
			CHECK_INT(r, peers_theirs(&pe, block, (size_t)len,
			    &theirs));
			CHECK(len < n || r == 0);
			CHECK(r == -1 || seen_same(&ours, &theirs));
			peers_free(&pe);
		}
	}
}

static size_t
put_any_text(uint8_t *p, size_t len)
{
	size_t	 i, n = put_length(p, 0, len);

	for (i = 0; i < len; i++)
		p[n++] = any(256);
	return n;
}

/* Its name is mostly that of an old entry, which often has to go for it. */
static size_t
put_any_entry(uint8_t *p, size_t entries)
{
	size_t	 n = 0, index;

	if (entries == 0 || any(10) == 0) {
		p[n++] = 0x40;
		n += put_any_text(p + n, any(1200));
	} else if ((index = 61 + entries - any((entries + 1) / 2)) == 62)
		p[n++] = 0x40 | 62;
	else {
		p[n++] = 0x7f;
		p[n++] = index - 63;
	}
	return n + put_any_text(p + n, any(3) == 0 ? any(4000) : any(100));
}

TEST(entries_of_all_sizes)
{
	static uint8_t	 block[HPACK_BLOCK_MAX];
	struct peers	 pe;
	struct seen	 ours, theirs;
	size_t		 i, j, n, entries;

	peers_init(&pe);
	for (i = 0; i < 5000; i++) {
		n = put_any_entry(block, pe.pe_ours.hk_n);
		CHECK_INT(peers_ours(&pe, block, n, &ours), 0);
		CHECK_INT(peers_theirs(&pe, block, n, &theirs), 0);
		CHECK(seen_same(&ours, &theirs));
		entries = pe.pe_ours.hk_n;
		for (j = n = 0; j < entries && j < 65; j++)
			block[n++] = 0x80 | (62 + j);
		CHECK_INT(peers_ours(&pe, block, n, &ours), 0);
		CHECK_INT(peers_theirs(&pe, block, n, &theirs), 0);
		CHECK(seen_same(&ours, &theirs));
	}
	peers_free(&pe);
}

TEST_MAIN("hpack_peer")
