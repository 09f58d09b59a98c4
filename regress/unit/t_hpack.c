/* SPDX-License-Identifier: ISC */

/*
 * Tests of HPACK: the examples of RFC 7541, each rule broken, what becomes of
 * memos, and what the encoder chooses.
 */

#include "test.h"

#include "../../tlsengine/http/hpack.h"

#define nitems(a)	(sizeof(a) / sizeof((a)[0]))

static char	 lines[4096];
static size_t	 lines_len;

static void
add_line(void *arg, const struct hpack_field *hp)
{
	(void)arg;
	CHECK(hp->hp_name_memo != NULL && hp->hp_value_memo != NULL);
	CHECK(lines_len + hp->hp_nlen + hp->hp_vlen + 4 < sizeof(lines));
	memcpy(lines + lines_len, hp->hp_name, hp->hp_nlen);
	lines_len += hp->hp_nlen;
	memcpy(lines + lines_len, ": ", 2);
	memcpy(lines + lines_len + 2, hp->hp_value, hp->hp_vlen);
	lines_len += 2 + hp->hp_vlen;
	lines[lines_len++] = '\n';
	lines[lines_len] = '\0';
}

/* Spaces are for the reader. */
static size_t
from_hex(uint8_t *out, const char *hex)
{
	size_t		 n = 0;
	unsigned int	 byte;

	for (; *hex != '\0'; hex++) {
		if (*hex == ' ')
			continue;
		CHECK(sscanf(hex++, "%2x", &byte) == 1);
		out[n++] = byte;
	}
	return n;
}

static int
decode_hex(struct hpack_decoder *hk, const char *hex)
{
	uint8_t	 block[1024], *copy;
	size_t	 len = from_hex(block, hex);
	int	 r;

	CHECK((copy = malloc(len + 1)) != NULL);
	memcpy(copy + 1, block, len);
	lines_len = 0;
	lines[0] = '\0';
	r = hpack_decode(hk, copy + 1, len, add_line, NULL);
	free(copy);
	return r;
}

static const char *
text_of(struct hpack_decoder *hk, const char *hex)
{
	return decode_hex(hk, hex) == -1 ? "refused" : lines;
}

static const char *
text_alone(const char *hex)
{
	struct hpack_decoder	 hk;
	const char		*text;

	hpack_decoder_init(&hk);
	text = text_of(&hk, hex);
	hpack_decoder_free(&hk);
	return text;
}

TEST(rfc_c2_each_representation)
{
	CHECK_STR(text_alone("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f"
	    "6d2d 6865 6164 6572"), "custom-key: custom-header\n");
	CHECK_STR(text_alone("040c 2f73 616d 706c 652f 7061 7468"),
	    ":path: /sample/path\n");
	CHECK_STR(text_alone("1008 7061 7373 776f 7264 0673 6563 7265 74"),
	    "password: secret\n");
	CHECK_STR(text_alone("82"), ":method: GET\n");
	CHECK_STR(text_alone(""), "");
}

/* With and without Huffman coding they say the same. */
static void
check_requests(const char *one, const char *two, const char *three)
{
	struct hpack_decoder	 hk;

	hpack_decoder_init(&hk);
	CHECK(hk.hk_table == NULL);
	CHECK_STR(text_of(&hk, one), ":method: GET\n:scheme: http\n:path: /\n"
	    ":authority: www.example.com\n");
	CHECK_INT(hk.hk_size, 57);
	CHECK_STR(text_of(&hk, two), ":method: GET\n:scheme: http\n:path: /\n"
	    ":authority: www.example.com\ncache-control: no-cache\n");
	CHECK_INT(hk.hk_size, 110);
	CHECK_STR(text_of(&hk, three), ":method: GET\n:scheme: https\n"
	    ":path: /index.html\n:authority: www.example.com\n"
	    "custom-key: custom-value\n");
	CHECK_INT(hk.hk_size, 164);
	CHECK_STR(text_of(&hk, "be bf c0"), "custom-key: custom-value\n"
	    "cache-control: no-cache\n:authority: www.example.com\n");
	CHECK_STR(text_of(&hk, "c1"), "refused");
	hpack_decoder_free(&hk);
	CHECK(hk.hk_table == NULL);
}

TEST(rfc_c3_requests)
{
	check_requests("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
	    "8286 84be 5808 6e6f 2d63 6163 6865",
	    "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d"
	    "7661 6c75 65");
}

TEST(rfc_c4_requests_huffman)
{
	check_requests("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
	    "8286 84be 5886 a8eb 1064 9cbf",
	    "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf");
}

#define COOKIE	"set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; "\
		"version=1\n"

/* The table has 256 bytes, so these evict. */
static void
check_responses(const char *one, const char *two, const char *three)
{
	struct hpack_decoder	 hk;

	hpack_decoder_init(&hk);
	CHECK_STR(text_of(&hk, "3fe101"), "");
	CHECK_STR(text_of(&hk, one), ":status: 302\ncache-control: private\n"
	    "date: Mon, 21 Oct 2013 20:13:21 GMT\n"
	    "location: https://www.example.com\n");
	CHECK_INT(hk.hk_size, 222);
	CHECK_STR(text_of(&hk, two), ":status: 307\ncache-control: private\n"
	    "date: Mon, 21 Oct 2013 20:13:21 GMT\n"
	    "location: https://www.example.com\n");
	CHECK_INT(hk.hk_size, 222);
	CHECK_STR(text_of(&hk, three), ":status: 200\n"
	    "cache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\n"
	    "location: https://www.example.com\ncontent-encoding: gzip\n"
	    COOKIE);
	CHECK_INT(hk.hk_size, 215);
	CHECK_STR(text_of(&hk, "be bf c0"), COOKIE "content-encoding: gzip\n"
	    "date: Mon, 21 Oct 2013 20:13:22 GMT\n");
	CHECK_STR(text_of(&hk, "c1"), "refused");
	hpack_decoder_free(&hk);
}

TEST(rfc_c5_responses)
{
	check_responses("4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c"
	    "2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e"
	    "1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
	    "4803 3330 37c1 c0bf",
	    "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133"
	    "3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48"
	    "514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178"
	    "2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31");
}

TEST(rfc_c6_responses_huffman)
{
	check_responses("4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4"
	    "44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b"
	    "97c8 e9ae 82ae 43d3",
	    "4883 640e ffc1 c0bf",
	    "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff"
	    "c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af"
	    "2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50"
	    "07");
}

TEST(malformed)
{
	static const char *const	 bad[] = {
		/* Indices. */
		"80", "be", "ff00", "7f00 0161", "0f80 01 0161", "82 80",
		/* Integers: cut, padded, beyond any type. */
		"ff", "ff80", "ff8080", "ff80808000", "ffffffffff0f",
		"ffffffffffffffffffff7f", "7fffffffffffffffffff01",
		"0001 61 7f80808000", "3fe19f8000", "3fe19f808000",
		/* Strings beyond the block. */
		"40", "4001", "4001 61", "4001 61 01", "00 02 61", "04 02 61",
		"04 7f00", "04 7fffff7f", "04 ff", "04 82 1f",
		/* Huffman: whole bytes of padding, zeros, EOS, a code cut. */
		"04 81 ff", "04 82 1fff", "04 84 ffffffff", "04 81 18",
		"04 81 1e", "04 85 1fffffffff", "04 85 ffffffff f0",
		"04 82 ffc0", "04 81 fe", "04 83 fffffe",
		/* Sizes: too large, late, too many. */
		"3fe21f", "3fffff7f", "82 20", "82 20 82", "20 20 20",
		"2020 82 20", "3f",
	};
	size_t	 i;

	for (i = 0; i < nitems(bad); i++)
		CHECK_FOR(bad[i], strcmp(text_alone(bad[i]), "refused") == 0);
}

/* What is next to the malformed and is none. */
TEST(well_formed)
{
	static const struct { const char *hex, *text; } good[] = {
		{ "bd", "www-authenticate: \n" },
		{ "0f2e 00", "www-authenticate: \n" },
		{ "00 00 00", ": \n" },
		{ "04 80", ":path: \n" },
		{ "04 81 1f", ":path: a\n" },
		{ "04 85 18c6318c63", ":path: aaaaaaaa\n" },
		{ "04 83 fffe1f", ":path: \\\n" },
		{ "04 84 fffffff7", ":path: \r\n" },
		{ "04 86 1fffffffd1ff", ":path: a\x16" "b\n" },
		{ "04 84 fff9ff7f", ":path: <>\n" },
		{ "3fe11f", "" },
		{ "3fe19f00", "" },
		{ "3f818000 82", ":method: GET\n" },
		{ "20 3fe11f 82", ":method: GET\n" },
	};
	size_t	 i;

	for (i = 0; i < nitems(good); i++)
		CHECK_STR(text_alone(good[i].hex), good[i].text);
}

TEST(too_large_empties)
{
	struct hpack_decoder	 hk;

	hpack_decoder_init(&hk);
	/* A table of 66 bytes, and fields of 34 and 67. */
	CHECK_STR(text_of(&hk, "3f23 4001 61 01 62 be"), "a: b\na: b\n");
	CHECK_INT(hk.hk_n, 1);
	/* The name is of the entry that goes, and none comes. */
	CHECK_STR(text_of(&hk, "7e 22 3031323334353637383930313233343536373839"
	    "3031323334353637383930313233"),
	    "a: 0123456789012345678901234567890123\n");
	CHECK_INT(hk.hk_n, 0);
	CHECK_INT(hk.hk_size, 0);
	CHECK_STR(text_of(&hk, "be"), "refused");
	hpack_decoder_free(&hk);
}

TEST(evicts_own_name)
{
	struct hpack_decoder	 hk;

	hpack_decoder_init(&hk);
	CHECK_STR(text_of(&hk, "3f23 4003 616263 02 6465 7e 03 666768"),
	    "abc: de\nabc: fgh\n");
	CHECK_INT(hk.hk_n, 1);
	CHECK_STR(text_of(&hk, "be 7e 01 69 be"), "abc: fgh\nabc: i\nabc: i\n");
	/* A smaller table, and none. */
	CHECK_STR(text_of(&hk, "3f05"), "");
	CHECK_INT(hk.hk_n, 1);
	CHECK_STR(text_of(&hk, "3f04"), "");
	CHECK_INT(hk.hk_n, 0);
	CHECK_STR(text_of(&hk, "20 4000 00 be"), "refused");
	hpack_decoder_free(&hk);
}

struct memo {
	int	 m_name, m_value;		/* found */
	int	 m_set_name, m_set_value;	/* left, if not 0 */
};

static void
use_memo(void *arg, const struct hpack_field *hp)
{
	struct memo	*m = arg;

	m->m_name = *hp->hp_name_memo;
	m->m_value = *hp->hp_value_memo;
	if (m->m_set_name != 0)
		*hp->hp_name_memo = m->m_set_name;
	if (m->m_set_value != 0)
		*hp->hp_value_memo = m->m_set_value;
}

/* One field; as found, and then as given. */
static int
memo(struct hpack_decoder *hk, const char *hex, int name, int value)
{
	uint8_t		 block[64];
	struct memo	 m = { .m_set_name = name, .m_set_value = value };

	CHECK_INT(hpack_decode(hk, block, from_hex(block, hex), use_memo, &m),
	    0);
	return m.m_name * 10 + m.m_value;
}

TEST(memos_of_entries)
{
	struct hpack_decoder	 hk;

	hpack_decoder_init(&hk);
	CHECK_INT(memo(&hk, "4001 61 01 62", 1, 2), 0);
	CHECK_INT(memo(&hk, "be", 0, 0), 12);
	CHECK_INT(memo(&hk, "be", 3, 4), 12);
	/* By name only: that of the name stays, those of values do not. */
	CHECK_INT(memo(&hk, "0f2f 01 63", 0, 5), 30);
	CHECK_INT(memo(&hk, "1f2f 01 63", 6, 5), 30);
	CHECK_INT(memo(&hk, "be", 0, 0), 64);
	CHECK_INT(memo(&hk, "7e 01 63", 0, 7), 60);
	CHECK_INT(memo(&hk, "be", 0, 0), 67);
	CHECK_INT(memo(&hk, "7e 01 64", 8, 9), 60);
	CHECK_INT(memo(&hk, "be", 0, 0), 89);
	CHECK_INT(memo(&hk, "bf", 0, 0), 87);
	CHECK_INT(memo(&hk, "c0", 0, 0), 64);
	/* The same text, but another entry. */
	CHECK_INT(memo(&hk, "4001 61 01 62", 0, 0), 0);
	CHECK_INT(memo(&hk, "0001 61 01 62", 0, 0), 0);
	CHECK_INT(memo(&hk, "0001 61 01 62 1001 61 01 62", 1, 2), 0);
	/* From an entry that its own insertion evicts. */
	CHECK_INT(memo(&hk, "3f03 be", 3, 4), 0);
	CHECK_INT(memo(&hk, "7e 01 63", 0, 5), 30);
	CHECK_INT(hk.hk_n, 1);
	CHECK_INT(memo(&hk, "be", 0, 0), 35);
	hpack_decoder_free(&hk);
}

TEST(memos_of_the_static_table)
{
	struct hpack_decoder	 one, two;

	hpack_decoder_init(&one);
	hpack_decoder_init(&two);
	memo(&one, "8c", 1, 2);
	memo(&one, "8d", 0, 3);
	CHECK_INT(memo(&two, "8c", 0, 0), 12);
	CHECK_INT(memo(&two, "8d", 0, 0), 13);
	CHECK_INT(memo(&two, "4e 03 323031", 4, 5), 10);
	CHECK_INT(memo(&two, "be", 0, 0), 45);
	CHECK_INT(memo(&one, "8c", 0, 0), 42);
	CHECK_INT(memo(&one, "0e 03 323031", 0, 6), 40);
	CHECK_INT(memo(&one, "8d", 0, 0), 43);
	hpack_decoder_free(&one);
	hpack_decoder_free(&two);
}

TEST(encodes_static)
{
	const struct hpack_static	*hs;
	unsigned char			 out[64];
	size_t				 i;

	for (i = 1; i <= HPACK_STATIC_N; i++) {
		hs = &hpack_static[i];
		CHECK_INT(hpack_put(out, hs->hs_name, hs->hs_nlen,
		    hs->hs_value, hs->hs_vlen), 1);
		CHECK_INT(out[0], 0x80 | i);
		CHECK_INT(hpack_put(out, hs->hs_name, hs->hs_nlen, "x", 1),
		    hs->hs_first < 15 ? 3 : 4);
		CHECK_INT(out[0] & 0xf0, 0x10);
		CHECK_INT((out[0] & 0xf) == 0xf ? 15 + out[1] : out[0] & 0xf,
		    hs->hs_first);
	}
	CHECK_INT(hpack_put(out, "", 0, "", 0), 3);
	CHECK_MEM(out, 3, "\x10\0\0", 3);
	CHECK_INT(hpack_put(out, "te", 2, "trailers", 8), 13);
	CHECK_MEM(out, 13, "\x10\2te\10trailers", 13);
}

/* No entry is smaller than 32 bytes: the most there can be. */
TEST(full_of_empty_entries)
{
	struct hpack_decoder	 hk;
	int			 i;

	hpack_decoder_init(&hk);
	for (i = 0; i < 1000; i++)
		CHECK_STR(text_of(&hk, "40 00 00"), ": \n");
	CHECK_INT(hk.hk_n, 128);
	CHECK_INT(hk.hk_size, HPACK_TABLE_SIZE);
	CHECK_STR(text_of(&hk, "ff3e"), ": \n");
	CHECK_STR(text_of(&hk, "ff3f"), "refused");
	hpack_decoder_free(&hk);
}

TEST_MAIN("hpack")
