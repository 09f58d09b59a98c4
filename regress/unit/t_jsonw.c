/* SPDX-License-Identifier: ISC */

/* Tests of common/jsonw.c. */

#include "test.h"

#include "../../common/jsonw.h"

#define NITEMS(a)	(sizeof(a) / sizeof((a)[0]))

static void
check_doc(struct jsonw *w, const char *want)
{
	const char	*doc;
	size_t		 len;

	doc = jsonw_finish(w, &len);
	CHECK_STR(jsonw_error(w), NULL);
	CHECK_MEM(doc, len, want, strlen(want));
	jsonw_free(w);
}

static void
check_error(struct jsonw *w, const char *want)
{
	size_t	 len = 99;

	CHECK(jsonw_finish(w, &len) == NULL);
	CHECK_INT(len, 0);
	CHECK(jsonw_error(w) != NULL);
	CHECK_FOR(jsonw_error(w), strstr(jsonw_error(w), want) != NULL);
	jsonw_free(w);
}

static void
check_string(const char *in, size_t len, const char *want)
{
	struct jsonw	 w;

	jsonw_init(&w, 100000);
	jsonw_string(&w, in, len);
	check_doc(&w, want);
}

TEST(record)
{
	struct jsonw	 w;

	jsonw_init(&w, 4096);
	jsonw_object(&w);
	jsonw_key(&w, "seq");
	jsonw_uint(&w, 7);
	jsonw_key(&w, "request");
	jsonw_object(&w);
	jsonw_key(&w, "host");
	jsonw_str(&w, "api.github.com");
	jsonw_key(&w, "ports");
	jsonw_array(&w);
	jsonw_int(&w, 443);
	jsonw_int(&w, -1);
	jsonw_array(&w);
	jsonw_end(&w);
	jsonw_object(&w);
	jsonw_end(&w);
	jsonw_end(&w);
	jsonw_end(&w);
	jsonw_key(&w, "reason");
	jsonw_str(&w, NULL);
	jsonw_key(&w, "truncated");
	jsonw_bool(&w, 0);
	jsonw_keyn(&w, "whole\0", 6);
	jsonw_bool(&w, 2);
	jsonw_key(&w, "");
	jsonw_null(&w);
	jsonw_end(&w);
	check_doc(&w, "{\"seq\":7,\"request\":{\"host\":\"api.github.com\","
	    "\"ports\":[443,-1,[],{}]},\"reason\":null,\"truncated\":false,"
	    "\"whole\\u0000\":true,\"\":null}");
}

TEST(numbers)
{
	struct jsonw	 w;

	jsonw_init(&w, 4096);
	jsonw_array(&w);
	jsonw_int(&w, 0);
	jsonw_int(&w, INT64_MAX);
	jsonw_int(&w, INT64_MIN);
	jsonw_uint(&w, UINT64_MAX);
	jsonw_end(&w);
	check_doc(&w, "[0,9223372036854775807,-9223372036854775808,"
	    "18446744073709551615]");
}

TEST(times)
{
	struct jsonw	 w;

	jsonw_init(&w, 4096);
	jsonw_array(&w);
	jsonw_time(&w, 1700000000, 5);
	jsonw_time(&w, 0, 999999999);
	jsonw_time(&w, -1, 500000000);
	jsonw_time(&w, -3, 0);
	jsonw_end(&w);
	check_doc(&w, "[1700000000.000000005,0.999999999,-0.500000000,"
	    "-3.000000000]");
}

TEST(escapes)
{
	check_string("", 0, "\"\"");
	check_string(NULL, 0, "\"\"");
	check_string("a/b", 3, "\"a/b\"");
	check_string("\"\\", 2, "\"\\\"\\\\\"");
	check_string("\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"");
	check_string("\0\x01\x1b\x1f\x7f", 5,
	    "\"\\u0000\\u0001\\u001b\\u001f\\u007f\"");
	check_string("x\r\n{\"seq\":8}", 12, "\"x\\r\\n{\\\"seq\\\":8}\"");
}

TEST(utf8_stays)
{
	check_string("b\xc3\xbc" "cher", 7, "\"b\xc3\xbc" "cher\"");
	check_string("\xe2\x82\xac", 3, "\"\xe2\x82\xac\"");
	check_string("\xf0\x9f\x98\x80", 4, "\"\xf0\x9f\x98\x80\"");
	check_string("\xc2\xa1", 2, "\"\xc2\xa1\"");
	check_string("\xe2\x80\x90", 3, "\"\xe2\x80\x90\"");
	check_string("\xef\xbf\xbd", 3, "\"\xef\xbf\xbd\"");
}

TEST(deceptive_is_escaped)
{
	check_string("\xe2\x80\xa8\xe2\x80\xa9", 6, "\"\\u2028\\u2029\"");
	check_string("\xc2\x85\xc2\x9b", 4, "\"\\u0085\\u009b\"");
	check_string("\xe2\x80\xae\xe2\x81\xa6", 6, "\"\\u202e\\u2066\"");
	check_string("\xd8\x9c\xe2\x80\x8f", 5, "\"\\u061c\\u200f\"");
}

/* The battery, part K: what takes no room, or that of a space, or is a tag. */
TEST(unseen_is_escaped)
{
	static const struct {
		const char	*in, *out;
	} cases[] = {
		{ "a\xe2\x80\x8b" "b", "\"a\\u200bb\"" },	/* zero width */
		{ "\xef\xbb\xbf", "\"\\ufeff\"" },
		{ "\xe2\x81\xa0", "\"\\u2060\"" },	/* word joiner */
		{ "\xc2\xad", "\"\\u00ad\"" },
		{ "\xc2\xa0", "\"\\u00a0\"" },
		{ "\xe3\x80\x80", "\"\\u3000\"" },
		{ "\xe3\x85\xa4", "\"\\u3164\"" },
		{ "\xef\xb8\x8f", "\"\\ufe0f\"" },		/* selectors */
		{ "\xf3\xa0\x84\x80", "\"\\udb40\\udd00\"" },
		{ "\xf3\xa0\x81\x81", "\"\\udb40\\udc41\"" }, /* tag A */
		{ "\xf0\x9d\x85\xb3", "\"\\ud834\\udd73\"" },
		{ "\xf4\x8f\xbf\xbf", "\"\\udbff\\udfff\"" },
		{ "\xf0\x9f\xbf\xbe", "\"\\ud83f\\udffe\"" },
		{ "\xee\xbd\xbf", "\"\\uef7f\"" },		/* private */
		{ "\xef\x80\x80", "\"\\uf000\"" },
	};
	size_t	 i;

	for (i = 0; i < NITEMS(cases); i++)
		check_string(cases[i].in, strlen(cases[i].in), cases[i].out);
}

TEST(bytes_that_are_not_utf8)
{
	static const struct {
		const char	*in, *out;
	} cases[] = {
		{ "\x80", "\"\\uef80\"" },
		{ "\xff", "\"\\uefff\"" },
		{ "a\xffz", "\"a\\uefffz\"" },
		{ "\xc3", "\"\\uefc3\"" },			/* short */
		{ "\xe2\x82", "\"\\uefe2\\uef82\"" },
		{ "\xe2\x82x", "\"\\uefe2\\uef82x\"" },
		{ "\xc3\"", "\"\\uefc3\\\"\"" },
		{ "\xc0\xaf", "\"\\uefc0\\uefaf\"" },		/* overlong */
		{ "\xe0\x80\xaf", "\"\\uefe0\\uef80\\uefaf\"" },
		{ "\xf0\x80\x80\xaf", "\"\\ueff0\\uef80\\uef80\\uefaf\"" },
		{ "\xed\xa0\x80", "\"\\uefed\\uefa0\\uef80\"" }, /* surrogate */
		{ "\xf4\x90\x80\x80", "\"\\ueff4\\uef90\\uef80\\uef80\"" },
		{ "\xf5\x80\x80\x80", "\"\\ueff5\\uef80\\uef80\\uef80\"" },
		/* U+EF80 and U+EFFF themselves. */
		{ "\xee\xbe\x80", "\"\\uefee\\uefbe\\uef80\"" },
		{ "\xee\xbf\xbf", "\"\\uefee\\uefbf\\uefbf\"" },
	};
	size_t	 i;

	for (i = 0; i < NITEMS(cases); i++)
		check_string(cases[i].in, strlen(cases[i].in), cases[i].out);
}

static void
check_odd_at(char odd, const char *escape, size_t at, size_t len)
{
	char	 in[80], want[128], *p = want;

	memset(in, 'a', len);
	in[at] = odd;
	*p++ = '"';
	p = mempcpy(p, in, at);
	p = stpcpy(p, escape);
	p = mempcpy(p, in + at + 1, len - at - 1);
	strlcpy(p, "\"", sizeof(want) - (size_t)(p - want));
	check_string(in, len, want);
}

/* Every odd byte at every place of a run, for the scan of many at a time. */
TEST(odd_byte_anywhere)
{
	static const struct {
		char		 odd;
		const char	*escape;
	} cases[] = {
		{ '"', "\\\"" }, { '\\', "\\\\" }, { '\n', "\\n" },
		{ 0x1f, "\\u001f" }, { 0x7f, "\\u007f" },
		{ (char)0x80, "\\uef80" }, { (char)0xff, "\\uefff" },
	};
	size_t	 i, len, at;

	for (i = 0; i < NITEMS(cases); i++)
		for (len = 1; len <= 80; len++)
			for (at = 0; at < len; at++)
				check_odd_at(cases[i].odd, cases[i].escape, at,
				    len);
}

static size_t
utf8_encode(uint8_t *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (uint8_t)(0xc0 | c >> 6);
		out[1] = (uint8_t)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (uint8_t)(0xe0 | c >> 12);
		out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | c >> 18);
	out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
	out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
	out[3] = (uint8_t)(0x80 | (c & 0x3f));
	return 4;
}

/* The four digits at *at, which moves to the last of them. */
static uint32_t
read_unit(const char *doc, size_t len, size_t *at)
{
	char	 hex[5] = "";

	CHECK(*at + 4 < len - 1);
	memcpy(hex, doc + *at + 1, 4);
	*at += 4;
	return (uint32_t)strtoul(hex, NULL, 16);
}

/* What jsonw.h says a reader may do: back to the bytes. */
static size_t
read_back(const char *doc, size_t len, uint8_t *out)
{
	static const char	 from[] = "\"\\bfnrt", to[] = "\"\\\b\f\n\r\t";
	uint32_t		 c;
	size_t			 i, n = 0;

	CHECK(len >= 2 && doc[0] == '"' && doc[len - 1] == '"');
	for (i = 1; i < len - 1; i++) {
		CHECK((uint8_t)doc[i] >= 0x20 && doc[i] != 0x7f);
		CHECK(doc[i] != '"');
		if (doc[i] != '\\') {
			out[n++] = (uint8_t)doc[i];
			continue;
		}
		if (doc[++i] != 'u') {
			CHECK(strchr(from, doc[i]) != NULL);
			out[n++] = (uint8_t)to[strchr(from, doc[i]) - from];
			continue;
		}
		c = read_unit(doc, len, &i);
		if (c >= 0xd800 && c <= 0xdbff) {
			CHECK_MEM(doc + i + 1, 2, "\\u", 2);
			i += 2;
			c = ((c - 0xd7c0) << 10) +
			    (read_unit(doc, len, &i) & 0x3ff);
		}
		if (c >= 0xef80 && c <= 0xefff)
			out[n++] = (uint8_t)c;
		else
			n += utf8_encode(out + n, c);
	}
	return n;
}

TEST(bytes_can_be_recovered)
{
	/* Bytes that start, continue and break sequences come up often. */
	static const uint8_t	 likely[] = { 0xc2, 0xe2, 0xee, 0xef, 0xf0,
	    0xf3, 0xf4, 0xed, 0x80, 0xa0, 0x9f, 0xa8, 0xbe, 0xbf, '"', '\\',
	    0 };
	struct jsonw		 w;
	uint8_t			 in[64], back[sizeof(in) * 6];
	const char		*doc;
	size_t			 i, len, doclen;
	unsigned int		 round, seed = 1;

	jsonw_init(&w, 4096);
	for (round = 0; round < 100000; round++) {
		len = (size_t)rand_r(&seed) % (sizeof(in) + 1);
		for (i = 0; i < len; i++)
			in[i] = rand_r(&seed) % 2 ? (uint8_t)rand_r(&seed) :
			    likely[(size_t)rand_r(&seed) % sizeof(likely)];
		jsonw_reset(&w);
		jsonw_string(&w, (const char *)in, len);
		doc = jsonw_finish(&w, &doclen);
		CHECK(doc != NULL);
		CHECK_MEM(back, read_back(doc, doclen, back), in, len);
	}
	jsonw_free(&w);
}

TEST(limit)
{
	static const char	 text[] = "0123456789";
	struct jsonw		 w;

	jsonw_init(&w, 12);
	jsonw_string(&w, text, 10);
	check_doc(&w, "\"0123456789\"");
	jsonw_init(&w, 11);
	jsonw_string(&w, text, 10);
	check_error(&w, "limit");
	jsonw_init(&w, 10);
	jsonw_string(&w, text, 10);
	jsonw_end(&w);
	check_error(&w, "limit");
	jsonw_init(&w, 0);
	jsonw_null(&w);
	check_error(&w, "limit");
}

/* A document of every length up to past two doublings, limits to match. */
TEST(grows)
{
	char		 text[2100], want[2103];
	struct jsonw	 w;
	size_t		 len;

	memset(text, 'x', sizeof(text));
	for (len = 0; len <= sizeof(text); len++) {
		snprintf(want, sizeof(want), "\"%.*s\"", (int)len, text);
		jsonw_init(&w, len + 2);
		jsonw_string(&w, text, len);
		check_doc(&w, want);
	}
}

TEST(big_string)
{
	size_t		 len, size = 1024 * 1024;
	char		*text = malloc(size);
	struct jsonw	 w;

	CHECK(text != NULL);
	memset(text, '\n', size);
	jsonw_init(&w, 2 * size + 2);
	jsonw_string(&w, text, size);
	CHECK(jsonw_finish(&w, &len) != NULL);
	CHECK_INT(len, 2 * size + 2);
	jsonw_free(&w);
	jsonw_init(&w, 2 * size + 1);
	jsonw_string(&w, text, size);
	check_error(&w, "limit");
	free(text);
}

TEST(misuse_sticks)
{
	struct jsonw	 w;

	jsonw_init(&w, 100);
	jsonw_object(&w);
	jsonw_int(&w, 1);
	jsonw_key(&w, "k");
	jsonw_int(&w, 1);
	jsonw_end(&w);
	check_error(&w, "value without a key");

	jsonw_init(&w, 100);
	jsonw_object(&w);
	jsonw_key(&w, "k");
	jsonw_end(&w);
	check_error(&w, "key without a value");

	jsonw_init(&w, 100);
	jsonw_object(&w);
	jsonw_key(&w, "k");
	jsonw_key(&w, "k");
	jsonw_null(&w);
	jsonw_end(&w);
	check_error(&w, "key without a value");

	jsonw_init(&w, 100);
	jsonw_array(&w);
	jsonw_key(&w, "k");
	jsonw_end(&w);
	check_error(&w, "key outside an object");

	jsonw_init(&w, 100);
	jsonw_key(&w, "k");
	check_error(&w, "key outside an object");
}

TEST(misuse_unbalanced)
{
	struct jsonw	 w;

	jsonw_init(&w, 100);
	check_error(&w, "empty");

	jsonw_init(&w, 100);
	jsonw_end(&w);
	check_error(&w, "end without");

	jsonw_init(&w, 100);
	jsonw_object(&w);
	check_error(&w, "beginning without");

	jsonw_init(&w, 100);
	jsonw_array(&w);
	jsonw_end(&w);
	jsonw_end(&w);
	check_error(&w, "end without");

	jsonw_init(&w, 100);
	jsonw_null(&w);
	jsonw_null(&w);
	check_error(&w, "second value");
}

TEST(depth)
{
	struct jsonw	 w;
	size_t		 len;
	int		 i;

	jsonw_init(&w, 1000);
	for (i = 0; i < JSONW_DEPTH_MAX; i++)
		jsonw_array(&w);
	for (i = 0; i < JSONW_DEPTH_MAX; i++)
		jsonw_end(&w);
	CHECK(jsonw_finish(&w, &len) != NULL);
	CHECK_INT(len, 2 * JSONW_DEPTH_MAX);
	jsonw_reset(&w);
	for (i = 0; i <= JSONW_DEPTH_MAX; i++)
		jsonw_array(&w);
	for (i = 0; i <= JSONW_DEPTH_MAX; i++)
		jsonw_end(&w);
	check_error(&w, "deep");
}

TEST(literal_keys)
{
	struct jsonw	 w;

	jsonw_init(&w, 1000);
	jsonw_object(&w);
	jsonw_lit(&w, "a");
	jsonw_object(&w);
	jsonw_lit(&w, "b");
	jsonw_plain(&w, "", 0);
	jsonw_key(&w, "c");
	jsonw_null(&w);
	jsonw_lit(&w, "d");
	jsonw_plain(&w, "word", 4);
	jsonw_end(&w);
	jsonw_lit(&w, "e");
	jsonw_uint(&w, UINT64_MAX);
	jsonw_end(&w);
	check_doc(&w, "{\"a\":{\"b\":\"\",\"c\":null,\"d\":\"word\"},"
	    "\"e\":18446744073709551615}");
}

TEST(literal_keys_out_of_place)
{
	struct jsonw	 w;

	jsonw_init(&w, 1000);
	jsonw_lit(&w, "a");
	check_error(&w, "key outside an object");
	jsonw_array(&w);
	jsonw_lit(&w, "a");
	check_error(&w, "key outside an object");
	jsonw_object(&w);
	jsonw_lit(&w, "a");
	jsonw_lit(&w, "b");
	check_error(&w, "key without a value");
	jsonw_object(&w);
	jsonw_plain(&w, "a", 1);
	check_error(&w, "value without a key");
}

/* What was written once is written again, as first members and as later. */
TEST(members_again)
{
	struct jsonw	 w;
	const char	*text;
	char		 kept[64];
	size_t		 from, len;

	jsonw_init(&w, 1000);
	jsonw_object(&w);
	jsonw_lit(&w, "a");
	jsonw_object(&w);
	from = jsonw_len(&w);
	jsonw_lit(&w, "x");
	jsonw_uint(&w, 1);
	jsonw_lit(&w, "y");
	jsonw_str(&w, "2");
	text = jsonw_since(&w, from, &len);
	CHECK_MEM(text, len, "\"x\":1,\"y\":\"2\"", 13);
	memcpy(kept, text, len);
	jsonw_end(&w);
	jsonw_lit(&w, "b");
	jsonw_object(&w);
	jsonw_members(&w, kept, len);
	jsonw_lit(&w, "z");
	jsonw_bool(&w, 1);
	jsonw_end(&w);
	jsonw_members(&w, kept, len);
	jsonw_members(&w, NULL, 0);
	jsonw_end(&w);
	check_doc(&w, "{\"a\":{\"x\":1,\"y\":\"2\"},\"b\":{\"x\":1,"
	    "\"y\":\"2\",\"z\":true},\"x\":1,\"y\":\"2\"}");
	jsonw_array(&w);
	jsonw_members(&w, kept, len);
	CHECK(jsonw_since(&w, 0, &len) == NULL);
	CHECK_INT(len, 0);
	check_error(&w, "key outside an object");
}

/* After an error nothing is written, however little. */
TEST(limit_of_literals)
{
	struct jsonw	 w;
	size_t		 max;

	for (max = 0; max < sizeof("{\"a\":\"bcd\",\"e\":7}") - 1; max++) {
		jsonw_init(&w, max);
		jsonw_object(&w);
		jsonw_lit(&w, "a");
		jsonw_plain(&w, "bcd", 3);
		jsonw_lit(&w, "e");
		jsonw_uint(&w, 7);
		jsonw_end(&w);
		CHECK(w.jw_len <= max);
		check_error(&w, "longer than its limit");
	}
}

TEST(reset_starts_afresh)
{
	struct jsonw	 w;
	const char	*before;
	size_t		 len;

	jsonw_init(&w, 100);
	jsonw_object(&w);
	jsonw_end(&w);
	before = jsonw_finish(&w, &len);
	jsonw_end(&w);
	CHECK(jsonw_error(&w) != NULL);
	jsonw_reset(&w);
	jsonw_array(&w);
	jsonw_end(&w);
	CHECK(jsonw_finish(&w, &len) == before);
	check_doc(&w, "[]");
	jsonw_free(&w);
	jsonw_free(NULL);
}

/* In memory of somebody else: all of it is used, and no byte more. */
TEST(placed)
{
	char		 buf[14];
	struct jsonw	 w;
	size_t		 len, size;

	for (size = 0; size < sizeof(buf); size++) {
		memset(buf, '#', sizeof(buf));
		jsonw_place(&w, buf, size);
		jsonw_array(&w);
		jsonw_uint(&w, 18);
		jsonw_string(&w, "ab\ncd", 5);
		jsonw_end(&w);
		CHECK_INT(buf[size], '#');
		if (size < sizeof(buf) - 1)
			CHECK(jsonw_finish(&w, &len) == NULL);
	}
	CHECK(jsonw_finish(&w, &len) == buf);
	CHECK_MEM(buf, len, "[18,\"ab\\ncd\"]", 13);
}

TEST_MAIN("jsonw")
