/* SPDX-License-Identifier: ISC */

/*
 * What the recorder's records about requests hide, see record_peer.h.
 */

#include "record_peer.h"

static void
hide(uint8_t kind, const char *name)
{
	union msg	 m = { .conf_redact = { .policy = "p", .kind = kind,
	    .name = name } };

	redact_begin();
	CHECK_INT(recorder_parent_conf_redact(NULL, &m), 0);
	redact_commit();
}

/* What a new generation hides is hidden in requests that are open, too. */
TEST(hidden_meanwhile)
{
	setup();
	OPEN(1, .inspected = 1, .allowed = 1);
	settle();
	hide(REDACT_QUERY, "taken");
	CLOSE(1);
	look();
	CHECK((line = strstr(line, "\"request_closed\"")) != NULL);
	CHECK(strstr(line, "\"path\":\"/x?taken=[redacted]\"") != NULL);
	CHECK(strstr(line, "taken=1") == NULL);
}

/* All three records say it alike: escaped, and without the credential. */
TEST(hidden_and_escaped)
{
	static const char	 want[] = "\"request\":{\"id\":\"7-1\","
	    "\"host\":\"\\\\.example\",\"port\":443,\"scheme\":\"https\","
	    "\"protocol\":\"h2\",\"method\":\"\\\"G\\\\\","
	    "\"path\":\"/\\u001b\\\"\\uefff?to%6ben=[redacted]&a=\\\"b\\\"\"";
	int			 i;

	setup();
	hide(REDACT_QUERY, "token");
	ipc_send(engine, -1, RECORD_OPENED, record_opened, .request = 1,
	    .scheme = URL_HTTPS, .protocol = PROTOCOL_H2, .port = 443,
	    .inspected = 1, .allowed = 1, .host = "\\.example",
	    .method = "\"G\\",
	    .path = "/\x1b\"\xff?to%6ben=sec\"ret&a=\"b\"");
	CLOSE(1);
	look();
	for (i = 0; i < 3; i++) {
		CHECK((line = strstr(line, "\"request\":{")) != NULL);
		CHECK_MEM(line, sizeof(want) - 1, want, sizeof(want) - 1);
		line++;
	}
	CHECK(strstr(text, "sec") == NULL);
}

#define HEADS(id, asked, answered)					\
	OPEN(id, .inspected = 1, .allowed = 1, .fields = FIELDS(asked)); \
	ipc_send(engine, -1, RECORD_DONE, record_done, .request = id,	\
	    .at = LATER, .status = 200, .fields = FIELDS(answered))

/* The heads of the next final record. */
static void
expect_heads(const char *request, const char *answer)
{
	static char	 want[4096];

	snprintf(want, sizeof(want), "\"request_headers\":{%s},"
	    "\"response_status\":200,\"response_headers\":{%s},", request,
	    answer);
	CHECK((line = strstr(line, "\"request_headers\"")) != NULL);
	CHECK_MEM(line, strlen(want), want, strlen(want));
	line += strlen(want);
}

/* The same heads again and again, until something differs. */
TEST(heads_again)
{
	char	 longer[3000];

	setup();
	HEADS(1, "A: \"1\"\r\ncookie: c\r\na: 2\r\n", "B: 3\r\n");
	HEADS(2, "A: \"1\"\r\ncookie: c\r\na: 2\r\n", "B: 3\r\n");
	HEADS(3, "A: \"1\"\r\ncookie: c\r\na: 2\r\n", "B: 4\r\n");
	HEADS(4, "B: 4\r\n", "");
	HEADS(5, "", "B: 4\r\n");
	memset(longer, 'x', sizeof(longer));
	memcpy(longer, "B: ", 3);
	longer[sizeof(longer) - 1] = '\0';
	OPEN(6, .inspected = 1, .allowed = 1,
	    .fields = { longer, strlen(longer) });
	ipc_send(engine, -1, RECORD_DONE, record_done, .request = 6,
	    .status = 200, .fields = { longer, 5 });
	look();
	expect_heads("\"A\":\"\\\"1\\\", 2\",\"cookie\":\"[redacted]\"",
	    "\"B\":\"3\"");
	expect_heads("\"A\":\"\\\"1\\\", 2\",\"cookie\":\"[redacted]\"",
	    "\"B\":\"3\"");
	expect_heads("\"A\":\"\\\"1\\\", 2\",\"cookie\":\"[redacted]\"",
	    "\"B\":\"4\"");
	expect_heads("\"B\":\"4\"", "");
	expect_heads("", "\"B\":\"4\"");
	CHECK(strstr(line, longer + 3) != NULL);
	CHECK(strstr(line, "\"response_headers\":{\"B\":\"xx\"}") != NULL);
}

/* What was written of a head holds for one generation. */
TEST(heads_hidden_meanwhile)
{
	setup();
	HEADS(1, "Kin: 1\r\n", "Kin: 2\r\n");
	look();
	expect_heads("\"Kin\":\"1\"", "\"Kin\":\"2\"");
	hide(REDACT_HEADER, "kin");
	HEADS(2, "Kin: 1\r\n", "Kin: 2\r\n");
	look();
	CHECK((line = strstr(line, "\"7-2\"")) != NULL);
	expect_heads("\"Kin\":\"[redacted]\"", "\"Kin\":\"[redacted]\"");
}

/* The bodies of the next final record, as far as their previews. */
static void
expect_bodies(const char *request, const char *answer)
{
	static char	 want[4096];

	CHECK((line = strstr(line, "\"request_body\"")) != NULL);
	snprintf(want, sizeof(want), "\"preview\":%s", request);
	CHECK((line = strstr(line, "\"preview\"")) != NULL);
	CHECK_MEM(line, strlen(want), want, strlen(want));
	snprintf(want, sizeof(want), "\"preview\":%s", answer);
	CHECK((line = strstr(line + 1, "\"preview\"")) != NULL);
	CHECK_MEM(line, strlen(want), want, strlen(want));
}

#define BODIES(id, asked, sent, answered, got)				\
	OPEN(id, .inspected = 1, .allowed = 1, .fields = FIELDS(asked)); \
	ipc_send(engine, -1, RECORD_BODY, record_body, .request = id,	\
	    .data = FIELDS(sent));					\
	ipc_send(engine, -1, RECORD_DONE, record_done, .request = id,	\
	    .at = LATER, .status = 200, .fields = FIELDS(answered),	\
	    .data = FIELDS(got), .request_body = sizeof(sent) - 1,	\
	    .answer_body = sizeof(got) - 1)

/* Credentials in bodies, also of a head that was seen before. */
TEST(hidden_in_bodies)
{
	int	 i;

	setup();
	hide(REDACT_FIELD, "iban");
	for (i = 1; i < 3; i++) {
		BODIES(i, "Content-Type: application/x-www-form-urlencoded\r\n",
		    "user=a&password=s3cret&iban=s3cret",
		    "Content-Type: application/json\r\n",
		    "{\"access_token\":\"s3cret\",\"expires_in\":1}");
	}
	BODIES(3, "A: b\r\n", "{\"a\":1}", "A: b\r\n",
	    "{\"refresh_token\":\"s3cr");
	look();
	for (i = 1; i < 3; i++)
		expect_bodies("\"user=a&password=[redacted]&"
		    "iban=[redacted]\",\"truncated\":false}",
		    "\"{\\\"access_token\\\":\\\"[redacted]\\\","
		    "\\\"expires_in\\\":1}\",\"truncated\":false}");
	expect_bodies("\"{\\\"a\\\":1}\",\"truncated\":false}",
	    "\"{\\\"refresh_token\\\":\\\"[redacted]\\\"\"");
	CHECK(strstr(text, "s3cr") == NULL);
}

/* What nobody can look into is not shown, and said to be withheld. */
TEST(withheld)
{
	setup();
	BODIES(1, "Content-Type: application/json\r\nContent-Encoding: gzip"
	    "\r\n", "s3cret", "Content-Encoding: identity\r\n", "fine");
	BODIES(2, "Content-Type: application/json\r\n", "{\0\"\0s3cret",
	    "Content-Type: application/octet-stream\r\n", "a\0b");
	look();
	expect_bodies("null,\"truncated\":true,\"withheld\":true}",
	    "\"fine\",\"truncated\":false}");
	expect_bodies("null,\"truncated\":true,\"withheld\":true}",
	    "\"a\\u0000b\",\"truncated\":false}");
	CHECK(strstr(text, "s3cret") == NULL);
}

/* Fields hold URLs, and these hold credentials. */
TEST(hidden_in_urls)
{
	setup();
	HEADS(1, "Referer: https://u:s3cret@a/?x=y\r\nLink: </?a=b>\r\n"
	    "link: </?key=s3cret>\r\n", "Location: /cb?code=s3cret&a=b\r\n");
	look();
	expect_heads("\"Referer\":\"https://[redacted]@a/?x=y\","
	    "\"Link\":\"</?a=b>, </?key=[redacted]\"",
	    "\"Location\":\"/cb?code=[redacted]&a=b\"");
	CHECK(strstr(text, "s3cret") == NULL);
}

TEST_MAIN("record_hidden")
