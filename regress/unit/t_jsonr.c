/* SPDX-License-Identifier: ISC */

/* Tests of common/jsonr.c. */

#include "test.h"

#include "jsonr.h"
#include "jsonw.h"

#define NITEMS(a)	(sizeof(a) / sizeof((a)[0]))

static struct jsonr *
parse(const char *text, size_t len)
{
	struct jsonr	*jr;
	const char	*why = NULL;
	char		*copy;

	/* So that a read past the end is noticed. */
	CHECK((copy = malloc(len + 1)) != NULL);
	memcpy(copy, text, len);
	jr = jsonr_parse(copy, len, &why);
	free(copy);
	CHECK((jr == NULL) == (why != NULL));
	return jr;
}

static void
check_refused(const char *text, size_t len, const char *want)
{
	const char	*why = NULL;

	CHECK_FOR(text, jsonr_parse(text, len, &why) == NULL);
	CHECK_STR(why, want);
}

TEST(call)
{
	struct jsonr		*jr;
	const struct jsonr	*m;
	const char		*text = " {\"op\":\"exec\", \"argv\" : [\"a\", "
	    "\"b\"],\"env\":{\"X\":\"1\"},\"t\":-7,\"y\":true,\"n\":false,"
	    "\"z\":null,\"e\":[],\"o\":{}}\r\n";

	CHECK((jr = parse(text, strlen(text))) != NULL);
	CHECK_INT(jr->jr_type, JSONR_OBJECT);
	CHECK_INT(jr->jr_len, 9);
	CHECK_STR(jsonr_member(jr, "op")->jr_text, "exec");
	CHECK_INT((m = jsonr_member(jr, "argv"))->jr_type, JSONR_ARRAY);
	CHECK_INT(m->jr_len, 2);
	CHECK_STR(m->jr_first->jr_text, "a");
	CHECK_STR(m->jr_first->jr_next->jr_text, "b");
	CHECK(m->jr_first->jr_next->jr_next == NULL);
	CHECK_STR(jsonr_member(jr, "env")->jr_first->jr_name, "X");
	CHECK_INT(jsonr_member(jr, "t")->jr_number, -7);
	CHECK_INT(jsonr_member(jr, "y")->jr_number, 1);
	CHECK_INT(jsonr_member(jr, "n")->jr_type, JSONR_BOOL);
	CHECK_INT(jsonr_member(jr, "z")->jr_type, JSONR_NULL);
	CHECK_INT(jsonr_member(jr, "e")->jr_len, 0);
	CHECK(jsonr_member(jr, "o")->jr_first == NULL);
	CHECK(jsonr_member(jr, "X") == NULL);
	jsonr_free(jr);
}

TEST(strings)
{
	static const struct {
		const char	*in, *out;
	} cases[] = {
		{ "\"\"", "" },
		{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
		{ "\"\\u0041\\u00e9\\u20ac\"", "A\303\251\342\202\254" },
		{ "\"\\ud83d\\ude00\"", "\360\237\230\200" },
		{ "\"\303\251\360\237\230\200\177\"",
		    "\303\251\360\237\230\200\177" },
		/* U+EF80 to U+EFFF, escaped and not. */
		{ "\"a\\uef80\\uEFFFz\"", "a\200\377z" },
		{ "\"\356\276\200\356\277\277\"", "\200\377" },
		{ "\"\\uef7f\\uf000\"", "\356\275\277\357\200\200" },
		{ "\"\\uefc3\\uefa9\"", "\303\251" },
	};
	struct jsonr	*jr;
	size_t		 i;

	for (i = 0; i < NITEMS(cases); i++) {
		jr = parse(cases[i].in, strlen(cases[i].in));
		CHECK_FOR(cases[i].in, jr != NULL);
		CHECK_INT(jr->jr_type, JSONR_STRING);
		CHECK_STR(jr->jr_text, cases[i].out);
		CHECK_INT(jr->jr_len, strlen(cases[i].out));
		jsonr_free(jr);
	}
}

TEST(numbers)
{
	static const struct {
		const char	*in;
		enum jsonr_type	 type;
		int64_t		 number;
	} cases[] = {
		{ "0", JSONR_INTEGER, 0 }, { "-0", JSONR_INTEGER, 0 },
		{ "493", JSONR_INTEGER, 493 },
		{ "9007199254740992", JSONR_INTEGER, JSONR_INTEGER_MAX },
		{ "-9007199254740992", JSONR_INTEGER, -JSONR_INTEGER_MAX },
		{ "9007199254740993", JSONR_NUMBER, 0 },
		{ "99999999999999999999999999", JSONR_NUMBER, 0 },
		{ "1.5", JSONR_NUMBER, 1 }, { "1e3", JSONR_NUMBER, 1 },
		{ "0.1E-9", JSONR_NUMBER, 0 }, { "1e+1", JSONR_NUMBER, 1 },
	};
	struct jsonr	*jr;
	size_t		 i;

	for (i = 0; i < NITEMS(cases); i++) {
		jr = parse(cases[i].in, strlen(cases[i].in));
		CHECK_FOR(cases[i].in, jr != NULL);
		CHECK_INT(jr->jr_type, cases[i].type);
		if (jr->jr_type == JSONR_INTEGER)
			CHECK_INT(jr->jr_number, cases[i].number);
		jsonr_free(jr);
	}
}

TEST(refused)
{
	static const struct {
		const char	*in, *why;
	} cases[] = {
		{ "", "no value" }, { " ", "no value" },
		{ "{", "member without a name" },
		{ "{\"a\"", "member without a value" },
		{ "{\"a\":", "no value" },
		{ "{\"a\":1", "container without an end" },
		{ "{\"a\":1,}", "member without a name" },
		{ "{\"a\":1 \"b\":2}", "container without an end" },
		{ "{a:1}", "member without a name" },
		{ "{'a':1}", "member without a name" },
		{ "{\"a\":1,\"b\":2,\"a\":3}", "a name twice in an object" },
		{ "{\"a\":1,\"\\u0061\":3}", "a name twice in an object" },
		{ "[1,]", "no value" }, { "[1", "container without an end" },
		{ "[1}", "container without an end" },
		{ "{} x", "something after the value" },
		{ "{}{}", "something after the value" },
		{ "nul", "no value" }, { "True", "no value" },
		{ "NaN", "no value" }, { "/**/1", "no value" },
		{ "01", "bad number" }, { "-", "bad number" },
		{ "1.", "bad number" }, { "1e", "bad number" },
		{ ".5", "no value" }, { "+1", "no value" },
		{ "\"a", "string without an end" },
		{ "\"a\\", "string without an end" },
		{ "\"\\x\"", "bad escape" }, { "\"\\u12\"", "bad escape" },
		{ "\"\\u12", "bad escape" },
		{ "\"\\ud800\"", "half a surrogate pair" },
		{ "\"\\ud800\\u0041\"", "half a surrogate pair" },
		{ "\"\\udc00\"", "half a surrogate pair" },
		{ "\"\n\"", "control character in a string" },
		{ "\"\377\"", "not UTF-8" }, { "\"\303\"", "not UTF-8" },
		{ "\"\300\257\"", "not UTF-8" },
		{ "\"\355\240\200\"", "not UTF-8" },
	};
	size_t	 i;

	for (i = 0; i < NITEMS(cases); i++)
		check_refused(cases[i].in, strlen(cases[i].in), cases[i].why);
	check_refused("\"\0\"", 3, "control character in a string");
	check_refused("1\0", 2, "something after the value");
}

/* Cut short, it would be another string: it is none. */
TEST(nul)
{
	struct jsonr	*jr;
	const char	*text = "{\"a\":\"x\\u0000y\",\"b\\u0000\":1,"
	    "\"c\":[\"\\u0000\",\"z\"]}";

	CHECK((jr = parse(text, strlen(text))) != NULL);
	CHECK_INT(jsonr_member(jr, "a")->jr_type, JSONR_NUL);
	CHECK_INT(jsonr_member(jr, "b")->jr_type, JSONR_NUL);
	CHECK_INT(jsonr_member(jr, "c")->jr_type, JSONR_ARRAY);
	CHECK_INT(jsonr_member(jr, "c")->jr_first->jr_type, JSONR_NUL);
	CHECK_STR(jsonr_member(jr, "c")->jr_first->jr_next->jr_text, "z");
	jsonr_free(jr);
}

/* So deep and no deeper; a name once in each object of several. */
TEST(depth)
{
	struct jsonr	*jr;
	const char	*ok = "[[[[[[[[1]]]]]]]]", *bad = "[[[[[[[[[1]]]]]]]]]";

	CHECK((jr = parse(ok, strlen(ok))) != NULL);
	jsonr_free(jr);
	check_refused(bad, strlen(bad), "nested too deep");
	ok = "[{\"a\":{\"a\":1}},{\"a\":2}]";
	CHECK((jr = parse(ok, strlen(ok))) != NULL);
	jsonr_free(jr);
}

static size_t
repeat(char *buf, size_t size, const char *open, const char *close, int n)
{
	size_t	 len;
	int	 i;

	len = strlcpy(buf, open, size);
	for (i = 0; i < n; i++)
		len += (size_t)snprintf(buf + len, size - len, *open == '{' ?
		    "%s\"%d\":1" : "%s%d", i == 0 ? "" : ",", i);
	return len + strlcpy(buf + len, close, size - len);
}

TEST(limits)
{
	static char	 buf[400000];
	struct jsonr	*jr;
	size_t		 len;

	len = repeat(buf, sizeof(buf), "{", "}", JSONR_MEMBERS_MAX);
	CHECK((jr = parse(buf, len)) != NULL);
	jsonr_free(jr);
	len = repeat(buf, sizeof(buf), "{", "}", JSONR_MEMBERS_MAX + 1);
	check_refused(buf, len, "too many members");
	len = repeat(buf, sizeof(buf), "[", "]", JSONR_VALUES_MAX / 2 - 1);
	CHECK((jr = parse(buf, len)) != NULL);
	jsonr_free(jr);
	len = repeat(buf, sizeof(buf), "[", "]", JSONR_VALUES_MAX);
	check_refused(buf, len, "too many values");
}

/* Whatever bytes the writer wrote, but NUL, come back. */
TEST(reads_what_jsonw_writes)
{
	static const uint8_t	 likely[] = { 0xc2, 0xe2, 0xee, 0xef, 0xf0,
	    0xf3, 0xf4, 0xed, 0x80, 0xa0, 0x9f, 0xa8, 0xbe, 0xbf, '"', '\\' };
	struct jsonw		 w;
	struct jsonr		*jr;
	uint8_t			 in[64];
	const char		*doc;
	size_t			 i, len, doclen;
	unsigned int		 round, seed = 1;

	jsonw_init(&w, 4096);
	for (round = 0; round < 100000; round++) {
		len = (size_t)rand_r(&seed) % sizeof(in);
		for (i = 0; i < len; i++)
			in[i] = rand_r(&seed) % 2 ? likely[(size_t)
			    rand_r(&seed) % NITEMS(likely)] :
			    (uint8_t)(rand_r(&seed) % 255 + 1);
		jsonw_reset(&w);
		jsonw_string(&w, (char *)in, len);
		CHECK((doc = jsonw_finish(&w, &doclen)) != NULL);
		CHECK((jr = parse(doc, doclen)) != NULL);
		CHECK_MEM(jr->jr_text, jr->jr_len, in, len);
		jsonr_free(jr);
	}
	jsonw_free(&w);
}

TEST_MAIN("jsonr")
