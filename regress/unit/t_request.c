/* SPDX-License-Identifier: ISC */

/* Tests of controld/request.c. */

#include "test.h"

#include "../../controld/controld.h"

static const struct field all[] = {
	{ "level", FIELD_STRING, MAY },
	{ "session_id", FIELD_STRING, MAY },
	{ "kinds", FIELD_STRINGS_SOME, MAY },
	{ "map", FIELD_STRING_MAP, MAY },
	{ "list", FIELD_STRINGS, MAY },
	{ "yes", FIELD_BOOLEAN, MAY },
	{ "number", FIELD_INTEGER, MAY },
	{ NULL, 0, 0 }
};
static const struct field level_only[] = {
	{ "level", FIELD_STRING, MUST },
	{ NULL, 0, 0 }
};

static struct request	 rq;

static int
parse(const char *line)
{
	request_free(&rq);
	return request_parse(&rq, line, strlen(line));
}

static int
parse_whole(const char *line)
{
	return parse(line) == -1 ? -1 : request_check(&rq, all);
}

TEST(id)
{
	static const struct {
		const char	*line;
		int64_t		 id;
	} ids[] = {
		{ "{\"id\":1,\"op\":\"x\"}", 1 },
		{ "{\"op\":\"x\",\"id\":0}", 0 },
		{ "{\"id\":-7,\"op\":\"x\"}", -7 },
		{ "{\"id\":1e3,\"op\":\"x\"}", 1000 },
		{ "{\"id\":9007199254740991,\"op\":\"x\"}", 9007199254740991 },
		{ " {\"id\":5,\t\"op\":\"x\"} \r", 5 },
	};
	size_t	 i;

	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		CHECK_FOR(ids[i].line, parse(ids[i].line) == 0);
		CHECK_FOR(ids[i].line, rq.rq_id.ri_given);
		CHECK_FOR(ids[i].line, rq.rq_id.ri_value == ids[i].id);
	}
	CHECK_INT(parse("{\"op\":\"x\"}"), 0);
	CHECK_INT(rq.rq_id.ri_given, 0);
}

TEST(bad_json)
{
	static const char *const lines[] = {
		"", " ", "{", "}", "nonsense", "{\"op\":\"x\"", "{'op':'x'}",
		"{\"op\":\"x\"} {}", "{\"op\":\"x\"}x", "{\"op\":\"x\",}",
		"{\"op\":\"x\\u0000y\"}", "{\"op\\u0000\":\"x\"}",
		"\001{\"op\":\"x\"}", "{\"op\":\"x\033\"}", "{\"op\":\"\\",
		"\357\273\277", "\377\376", "[]", "1", "null", "\"op\"",
	};
	size_t	 i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		CHECK_FOR(lines[i], parse(lines[i]) == -1);
		CHECK_FOR(lines[i], strcmp(rq.rq_code, "bad_json") == 0);
		CHECK_FOR(lines[i], rq.rq_hangup);
		CHECK_FOR(lines[i], !rq.rq_id.ri_given);
	}
}

/* What stands behind the line belongs to another request. */
TEST(length_is_kept)
{
	const char	*two = "{\"op\":\"x\"}{\"op\":\"y\"}";

	request_free(&rq);
	CHECK_INT(request_parse(&rq, two, 10), 0);
	CHECK_STR(request_op(&rq), "x");
	request_free(&rq);
	CHECK_INT(request_parse(&rq, two, 9), -1);
	CHECK_STR(rq.rq_code, "bad_json");
	request_free(&rq);
	CHECK_INT(request_parse(&rq, "{\"op\":\"x\"\0}", 11), -1);
	CHECK_STR(rq.rq_message, "control character");
}

TEST(nesting)
{
	static char	 deep[LINE_LEN];

	memset(deep, '[', sizeof(deep));
	request_free(&rq);
	CHECK_INT(request_parse(&rq, deep, sizeof(deep)), -1);
	CHECK_STR(rq.rq_code, "bad_json");
}

TEST(escaped_backslash_is_no_nul)
{
	CHECK_INT(parse("{\"op\":\"\\\\u0000\"}"), 0);
	CHECK_STR(request_op(&rq), "\\u0000");
}

TEST(bad_request)
{
	static const struct {
		const char	*line;
		const char	*message;
	} bad[] = {
		{ "{}", "op: wanted a string" },
		{ "{\"op\":null}", "op: wanted a string" },
		{ "{\"id\":\"1\",\"op\":\"x\"}", "id: wanted an integer" },
		{ "{\"id\":null,\"op\":\"x\"}", "id: wanted an integer" },
		{ "{\"id\":1.5,\"op\":\"x\"}", "id: wanted an integer" },
		{ "{\"id\":1e99,\"op\":\"x\"}", "id: wanted an integer" },
		{ "{\"id\":9007199254740993,\"op\":\"x\"}",
		    "id: wanted an integer" },
		{ "{\"op\":\"x\",\"op\":\"y\"}", "op: given twice" },
		{ "{\"id\":1,\"id\":2,\"op\":\"y\"}", "id: given twice" },
		{ "{\"op\":\"x\",\"OP\":\"y\"}", "OP: no such field" },
		{ "{\"op\":\"x\",\"level\":1}", "level: wanted a string" },
		{ "{\"op\":\"x\",\"session_id\":[]}",
		    "session_id: wanted a string" },
		{ "{\"op\":\"x\",\"kinds\":\"gap\"}",
		    "kinds: wanted an array of strings, not empty" },
		{ "{\"op\":\"x\",\"kinds\":[]}",
		    "kinds: wanted an array of strings, not empty" },
		{ "{\"op\":\"x\",\"kinds\":[\"gap\",1]}",
		    "kinds: wanted an array of strings, not empty" },
		{ "{\"op\":\"x\",\"map\":{\"a\":\"1\",\"a\":\"2\"}}",
		    "map: wanted an object of strings, no name twice" },
		{ "{\"op\":\"x\",\"list\":[1]}",
		    "list: wanted an array of strings" },
		{ "{\"op\":\"x\",\"yes\":1}", "yes: wanted a boolean" },
		{ "{\"op\":\"x\",\"level\":\"a\",\"level\":\"b\"}",
		    "level: given twice" },
		{ "{\"op\":\"x\",\"session\":\"a\"}",
		    "session: no such field" },
	};
	size_t	 i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_FOR(bad[i].line, parse_whole(bad[i].line) == -1);
		CHECK_FOR(bad[i].line, strcmp(rq.rq_code, "bad_request") == 0);
		CHECK_STR(rq.rq_message, bad[i].message);
		CHECK_FOR(bad[i].line, !rq.rq_hangup);
	}
}

TEST(an_error_keeps_the_id)
{
	CHECK_INT(parse("{\"op\":1,\"id\":3}"), -1);
	CHECK_INT(rq.rq_id.ri_given, 1);
	CHECK_INT(rq.rq_id.ri_value, 3);
}

TEST(fields_of_an_operation)
{
	CHECK_INT(parse("{\"op\":\"x\",\"level\":\"info\"}"), 0);
	CHECK_INT(request_check(&rq, NULL), -1);
	CHECK_STR(rq.rq_stray, "level");
	CHECK_INT(parse("{\"op\":\"x\"}"), 0);
	CHECK_INT(request_check(&rq, level_only), -1);
	CHECK_STR(rq.rq_message, "level: wanted a string");
	CHECK_INT(parse("{\"op\":\"x\"}"), 0);
	CHECK_INT(request_check(&rq, all), 0);
	CHECK(field_known(all, "level") && !field_known(all, "id"));
	CHECK(!field_known(NULL, "level"));
}

TEST(values)
{
	CHECK_INT(parse_whole("{\"op\":\"x\",\"yes\":true,\"number\":7}"),
	    0);
	CHECK(request_is(&rq, "yes") && request_has(&rq, "yes"));
	CHECK(request_number(&rq, "number") == 7);
	CHECK_STR(request_text(&rq, "level"), "");
	CHECK(!request_has(&rq, "list"));
	CHECK_INT(parse_whole("{\"op\":\"x\",\"yes\":false}"), 0);
	CHECK(!request_is(&rq, "yes") && request_has(&rq, "yes"));
}

TEST(level)
{
	uint8_t	 level = 0;

	CHECK_INT(parse_whole("{\"op\":\"x\",\"level\":\"debug\"}"), 0);
	CHECK_INT(request_level(&rq, &level), 0);
	CHECK_INT(level, LOG_LVL_DEBUG);
	CHECK_INT(parse_whole("{\"op\":\"x\",\"level\":\"DEBUG\"}"), 0);
	CHECK_INT(request_level(&rq, &level), -1);
	CHECK_STR(rq.rq_code, "bad_request");
}

static int
take_session(const char *name)
{
	char		 line[512];
	const char	*got;

	snprintf(line, sizeof(line), "{\"op\":\"x\",\"session_id\":\"%s\"}",
	    name);
	CHECK_INT(parse_whole(line), 0);
	return request_session(&rq, &got);
}

TEST(session)
{
	char		 name[SESSION_LEN + 2];
	const char	*got;

	CHECK_INT(parse_whole("{\"op\":\"x\"}"), 0);
	CHECK_INT(request_session(&rq, &got), 0);
	CHECK_STR(got, "");
	memset(name, 'a', sizeof(name));
	name[SESSION_LEN] = '\0';
	CHECK_INT(take_session(name), 0);
	name[SESSION_LEN] = 'a';
	name[SESSION_LEN + 1] = '\0';
	CHECK_INT(take_session(name), -1);
	CHECK_INT(take_session("job-42.A_b"), 0);
	CHECK_INT(take_session(""), -1);
	CHECK_INT(take_session("team/x:1 %s 'a' \\\"b\\\" $(c) \\\\d"), 0);
	CHECK_INT(take_session("../~"), 0);
	CHECK_INT(take_session(" a"), -1);
	CHECK_INT(take_session("a "), -1);
	CHECK_INT(take_session("\303\244"), -1);
	CHECK_STR(rq.rq_message, "session_id: session ids are of printable "
	    "ASCII characters, byte 1 is 0xc3");
	CHECK_INT(take_session("ab\\n"), -1);
	CHECK_STR(rq.rq_message, "session_id: session ids are of printable "
	    "ASCII characters, byte 3 is 0x0a");
	CHECK_INT(take_session("a\177"), -1);
	CHECK_INT(take_session("-"), -1);
	CHECK_INT(take_session("-x"), -1);
	CHECK_INT(take_session("a\342\200\213"), -1);
}

TEST(kinds)
{
	uint32_t	 kinds;

	CHECK_INT(parse_whole("{\"op\":\"x\"}"), 0);
	CHECK_INT(request_kinds(&rq, &kinds), 0);
	CHECK_INT(kinds, (1U << RECORD_KIND_MAX) - 1);
	CHECK_INT(parse_whole("{\"op\":\"x\",\"kinds\":[\"gap\","
	    "\"session_ended\",\"gap\"]}"), 0);
	CHECK_INT(request_kinds(&rq, &kinds), 0);
	CHECK_INT(kinds, 1U << RECORD_GAP | 1U << RECORD_SESSION_ENDED);
	CHECK_INT(parse_whole("{\"op\":\"x\",\"kinds\":[\"gaps\"]}"), 0);
	CHECK_INT(request_kinds(&rq, &kinds), -1);
	CHECK_STR(rq.rq_message, "kinds: no such kind \"gaps\"");
	request_free(&rq);
}

TEST_MAIN("request")
