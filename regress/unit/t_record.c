/* SPDX-License-Identifier: ISC */

/*
 * The recorder's records about requests, see record_peer.h.
 */

#include "record_peer.h"

/*
 * The next record is this one, between its number and its hash.  With a kind
 * that is NULL there is none.
 */
static void
expect(const char *kind, const char *at, const char *rest)
{
	static char	 want[65536];
	char		*nl, *prev;

	if (kind == NULL) {
		CHECK_STR(line, "");
		return;
	}
	CHECK((nl = strchr(line, '\n')) != NULL);
	*nl = '\0';
	CHECK((prev = strstr(line, ",\"prev\":")) != NULL);
	*prev = '\0';
	CHECK((line = strstr(line, ",\"kind\":")) != NULL);
	snprintf(want, sizeof(want), ",\"kind\":\"%s\",\"at\":%s,"
	    "\"session_id\":\"edge\",%s", kind, at, rest);
	CHECK_STR(line, want);
	line = nl + 1;
}

TEST(a_request)
{
	static const unsigned char	 hash[32] = { 0x01, 0xab, [31] = 0xff };

	setup();
	OPEN(1, .inspected = 1, .fields = FIELDS("Host: a.example\r\n"
	    "Cookie: a=b\r\nAccept: x\r\nnonsense\r\naccept:\ty\r\n"));
	ALLOW(1, .rule_kind = 1, .rule = 12);
	ipc_send(engine, -1, RECORD_BODY, record_body, .request = 1,
	    .data = FIELDS("up"));
	ipc_send(engine, -1, RECORD_HEAD, record_head, .request = 1,
	    .status = 204, .address = "192.0.2.1",
	    .fields = FIELDS("Server: \"s\""));
	ipc_send(engine, -1, RECORD_BODY, record_body, .request = 1,
	    .answer = 1, .data = FIELDS("do"));
	ipc_send(engine, -1, RECORD_BODY, record_body, .request = 1,
	    .answer = 1, .data = FIELDS("wn\n"));
	CLOSE(1, .bytes_in = 10, .bytes_out = 20, .request_body = 2,
	    .answer_body = 6, .answer_hash = { hash, sizeof(hash) });
	look();
	expect("request_opened", T_AT, "\"request\":{" IDENTITY("7-1") "}");
	expect("request_allowed", T_AT, "\"request\":{" IDENTITY("7-1") "},"
	    "\"matched_rule\":{\"index\":12,\"kind\":\"deny\"}");
	expect("request_closed", T_LATER, "\"request\":{" IDENTITY("7-1") ","
	    "\"request_headers\":{\"Host\":\"a.example\","
	    "\"Cookie\":\"[redacted]\",\"Accept\":\"x, y\"},"
	    "\"response_status\":204,"
	    "\"response_headers\":{\"Server\":\"\\\"s\\\"\"},"
	    "\"request_body\":{\"sha256\":null,\"bytes\":2,"
	    "\"preview\":\"up\",\"truncated\":false},"
	    "\"response_body\":{\"sha256\":\"01ab0000000000000000000000"
	    "000000000000000000000000000000000000ff\",\"bytes\":6,"
	    "\"preview\":\"down\\n\",\"truncated\":true},"
	    "\"started_at\":" T_AT ",\"finished_at\":" T_LATER ","
	    "\"address\":\"192.0.2.1\"},\"bytes_in\":10,\"bytes_out\":20,"
	    "\"reason\":null,"
	    "\"matched_rule\":{\"index\":12,\"kind\":\"deny\"}");
	expect(NULL, NULL, NULL);
}

#define FINAL(id, finished, reason, who)				\
	"\"request\":{" IDENTITY(id) ",\"request_headers\":{},"		\
	"\"response_status\":null,\"response_headers\":{},"		\
	"\"request_body\":" NO_BODY ",\"response_body\":" NO_BODY ","	\
	"\"started_at\":" T_AT ",\"finished_at\":" finished ","		\
	"\"address\":null},\"bytes_in\":0,\"bytes_out\":0,"		\
	"\"reason\":" reason "," who

/* The verdict was known when it was opened: one message, two records. */
TEST(allowed_at_once)
{
	setup();
	OPEN(1, .inspected = 1, .allowed = 1, .rule_kind = 0, .rule = 3);
	OPEN(2, .inspected = 1, .allowed = 1, .rule = RULE_NONE);
	CLOSE(1);
	ALLOW(2);
	look();
	expect("request_opened", T_AT, "\"request\":{" IDENTITY("7-1") "}");
	expect("request_allowed", T_AT, "\"request\":{" IDENTITY("7-1") "},"
	    "\"matched_rule\":{\"index\":3,\"kind\":\"allow\"}");
	expect("request_opened", T_AT, "\"request\":{" IDENTITY("7-2") "}");
	expect("request_allowed", T_AT, "\"request\":{" IDENTITY("7-2") "},"
	    "\"matched_rule\":null");
	expect("request_closed", T_LATER, FINAL("7-1", T_LATER, "null",
	    "\"matched_rule\":{\"index\":3,\"kind\":\"allow\"}"));
	CHECK_STR(gone_why, "RECORD_VERDICT: verdict 0 on request 2");
}

/* A short answer: head, body and end in one message. */
TEST(done)
{
	setup();
	OPEN(1, .inspected = 1, .allowed = 1, .rule = RULE_NONE);
	ipc_send(engine, -1, RECORD_BODY, record_body, .request = 1,
	    .data = FIELDS("up"));
	ipc_send(engine, -1, RECORD_DONE, record_done, .request = 1,
	    .at = LATER, .bytes_in = 10, .bytes_out = 20, .request_body = 2,
	    .answer_body = 5, .status = 404, .address = "192.0.2.1",
	    .fields = FIELDS("Server: s\r\n"), .data = FIELDS("down"));
	look();
	expect("request_opened", T_AT, "\"request\":{" IDENTITY("7-1") "}");
	expect("request_allowed", T_AT, "\"request\":{" IDENTITY("7-1") "},"
	    "\"matched_rule\":null");
	expect("request_closed", T_LATER, "\"request\":{" IDENTITY("7-1") ","
	    "\"request_headers\":{},\"response_status\":404,"
	    "\"response_headers\":{\"Server\":\"s\"},"
	    "\"request_body\":{\"sha256\":null,\"bytes\":2,"
	    "\"preview\":\"up\",\"truncated\":false},"
	    "\"response_body\":{\"sha256\":null,\"bytes\":5,"
	    "\"preview\":\"down\",\"truncated\":true},"
	    "\"started_at\":" T_AT ",\"finished_at\":" T_LATER ","
	    "\"address\":\"192.0.2.1\"},\"bytes_in\":10,\"bytes_out\":20,"
	    "\"reason\":null,\"matched_rule\":null");
	expect(NULL, NULL, NULL);
}

#define DECIDER	"\"decider\":{\"name\":\"llm\",\"latency_ms\":1234}," \
	"\"matched_rule\":{\"index\":0,\"kind\":\"decide\"}"

TEST(decider)
{
	setup();
	OPEN(1, .inspected = 1);
	OPEN(2, .inspected = 1);
	ALLOW(1, .rule_kind = 3, .decider = "llm", .waited_ms = 1234);
	ipc_send(engine, -1, RECORD_VERDICT, record_verdict, .request = 2,
	    .at = LATER, .verdict = VERDICT_DENY, .rule_kind = 3,
	    .reason = "decider", .decider = "llm", .waited_ms = 1234);
	CLOSE(1, .failed = 1, .reason = "reset");
	look();
	expect("request_opened", T_AT, "\"request\":{" IDENTITY("7-1") "}");
	expect("request_opened", T_AT, "\"request\":{" IDENTITY("7-2") "}");
	expect("request_allowed", T_AT, "\"request\":{" IDENTITY("7-1") "},"
	    DECIDER);
	expect("request_denied", T_LATER, FINAL("7-2", T_LATER,
	    "\"decider\"", DECIDER));
	expect("request_failed", T_LATER, FINAL("7-1", T_LATER, "\"reset\"",
	    DECIDER));
	expect(NULL, NULL, NULL);
}

TEST(not_inspected)
{
	setup();
	ipc_send(engine, -1, RECORD_OPENED, record_opened, .request = 5,
	    .at = AT, .scheme = URL_TCP, .protocol = PROTOCOL_TCP, .port = 22,
	    .host = "b.example");
	look();
	expect("request_opened", T_AT, "\"request\":{\"id\":\"7-5\","
	    "\"host\":\"b.example\",\"port\":22,\"scheme\":\"tcp\","
	    "\"protocol\":\"tcp\",\"inspected\":false,\"method\":null,"
	    "\"path\":null}");
}

TEST(never_a_request)
{
	setup();
	ipc_send(engine, -1, RECORD_OTHER, record_other,
	    .kind = RECORD_CONNECTION_REFUSED, .at = AT,
	    .protocol = PROTOCOL_UDP, .port = 53, .reason = "fence");
	look();
	expect("connection_refused", T_AT, "\"request\":{\"host\":null,"
	    "\"port\":53,\"protocol\":\"udp\",\"method\":null},"
	    "\"reason\":\"fence\",\"matched_rule\":null");
}

/* Nobody heard of it when it was opened; its last record says it all. */
TEST(heard_late)
{
	char	 why[64];

	setup();
	audit_begin();
	audit_commit();
	OPEN(1, .inspected = 1, .allowed = 1, .rule = RULE_NONE);
	settle();
	audit_begin();
	CHECK_INT(audit_offer(dup(file), "audit"), 0);
	CHECK_INT(tip_offer(memfd_create("tip", 0)), 0);
	CHECK_INT(audit_weigh(why, sizeof(why)), 0);
	audit_commit();
	CLOSE(1);
	look();
	CHECK(strstr(line, "\"file_opened\"") != NULL);
	line = strchr(line, '\n') + 1;
	expect("request_closed", T_LATER, FINAL("7-1", T_LATER, "null",
	    "\"matched_rule\":null"));
}

/* How many lines of the file have this in them, and how long they all are. */
static unsigned int
count_lines(const char *what, off_t *size)
{
	static char	 buf[512 * 1024];
	unsigned int	 found = 0;
	FILE		*f;

	settle();
	audit_flush();
	CHECK((f = fdopen(dup(file), "r")) != NULL);
	rewind(f);
	while (fgets(buf, sizeof(buf), f) != NULL)
		found += strstr(buf, what) != NULL;
	*size = ftello(f);
	fclose(f);
	return found;
}

/* A few bytes of an agent's can be long lines: not without end. */
TEST(budget)
{
	enum { COUNT = 1500 };
	static char	 path[8001];
	off_t		 size;
	uint64_t	 i;

	setup();
	memset(path, 'p', sizeof(path) - 1);
	path[0] = '/';
	for (i = 1; i <= COUNT; i++) {
		ipc_send(engine, -1, RECORD_OPENED, record_opened,
		    .request = i, .at = AT, .port = 443, .host = "a.example",
		    .method = "GET", .path = path, .allowed = 1);
		CLOSE(i);
		if (i % 50 == 0)
			settle();
	}
	CHECK_INT(count_lines("request_closed", &size), COUNT);
	CHECK(count_lines("\"path_truncated\":true", &size) > COUNT);
	CHECK(size < 10 * 1024 * 1024);
	CHECK_STR(gone_why, "");
}

/* What is kept of open requests has a bound, and the records say so. */
TEST(kept)
{
	enum { COUNT = 2000, WHOLE = 32 * 1024 * 1024 / FIELDS_LEN };
	static char	 fields[FIELDS_LEN];
	off_t		 size;
	uint64_t	 i;

	setup();
	memset(fields, 'f', sizeof(fields));
	memcpy(fields, "A: ", 3);
	for (i = 1; i <= COUNT; i++) {
		OPEN(i, .allowed = 1, .fields = { fields, sizeof(fields) });
		if (i % 50 == 0)
			settle();
	}
	hang_up();
	CHECK_INT(count_lines("request_failed", &size), COUNT);
	CHECK_INT(count_lines("\"request_headers\":{},"
	    "\"request_headers_truncated\":true", &size), COUNT - WHOLE);
	CHECK_STR(gone_why, "");
}

/* Numbers that meet, storage that is used again, and the order of the end. */
TEST(many_requests)
{
	enum { COUNT = 520 };
	char		 id[64], *at;
	uint64_t	 i;

	setup();
	for (i = 0; i < COUNT; i++)
		OPEN((i + 1) * REQUEST_SLOTS, .inspected = 1, .allowed = 1,
		    .fields = FIELDS("A: long enough to be seen later"));
	for (i = COUNT; i-- > COUNT / 2; )
		CLOSE((i + 1) * REQUEST_SLOTS);
	for (i = 1; i <= COUNT / 2; i++)
		OPEN(i * REQUEST_SLOTS + 1, .inspected = 1);
	settle();
	CHECK_INT(credit, 512 + (COUNT + COUNT / 2) / 256 * 256);
	hang_up();
	look();
	CHECK_STR(gone_why, "");
	for (i = 0; i < COUNT; i++) {
		snprintf(id, sizeof(id), "{\"id\":\"7-%llu\"",
		    (unsigned long long)(i < COUNT / 2 ?
		    (i + 1) * REQUEST_SLOTS :
		    (i - COUNT / 2 + 1) * REQUEST_SLOTS + 1));
		CHECK((at = strchr(line, '\n')) != NULL);
		while (strstr(line, "\"no_engine\"") > at) {
			line = at + 1;
			CHECK((at = strchr(line, '\n')) != NULL);
		}
		*at = '\0';
		CHECK_FOR(id, strstr(line, id) != NULL);
		CHECK_FOR(line, (strstr(line, "request_failed") != NULL) ==
		    (i < COUNT / 2));
		CHECK_FOR(line, (strstr(line, "long enough") != NULL) ==
		    (i < COUNT / 2));
		line = at + 1;
	}
	expect(NULL, NULL, NULL);
}

/* Its client left before there was a verdict. */
TEST(left_undecided)
{
	setup();
	OPEN(1);
	CLOSE(1, .failed = 1, .reason = "client_left");
	look();
	CHECK(strstr(line, "\"kind\":\"request_allowed\"") == NULL);
	CHECK((line = strstr(line, "\"kind\":\"request_failed\"")) != NULL);
	CHECK(strstr(line, "\"reason\":\"client_left\",\"matched_rule\":null")
	    != NULL);
}

TEST(what_is_bad)
{
	int	 i;

	setup();
	for (i = 0; i < 2049; i++)
		OPEN(i);
	settle();
	CHECK_STR(gone_why, "RECORD_OPENED: a request without credit");
	setup();
	OPEN(1);
	OPEN(1);
	settle();
	CHECK_STR(gone_why, "RECORD_OPENED: request 1 is open already");
	setup();
	OPEN(1);
	CLOSE(1);
	settle();
	CHECK_STR(gone_why, "RECORD_CLOSED: request 1 ends before its "
	    "verdict");
	setup();
	ALLOW(1 + REQUEST_SLOTS);
	settle();
	CHECK_STR(gone_why, "RECORD_VERDICT: request 1025 is not open");
	setup();
	OPEN(1, .allowed = 1);
	for (i = 0; i < 2; i++)
		ipc_send(engine, -1, RECORD_HEAD, record_head, .request = 1);
	settle();
	CHECK_STR(gone_why, "RECORD_HEAD: a second answer to request 1");
	setup();
	OPEN(1, .allowed = 1);
	ipc_send(engine, -1, RECORD_HEAD, record_head, .request = 1);
	ipc_send(engine, -1, RECORD_DONE, record_done, .request = 1);
	settle();
	CHECK_STR(gone_why, "RECORD_DONE: a second answer to request 1");
	setup();
	OPEN(1);
	ipc_send(engine, -1, RECORD_DONE, record_done, .request = 1);
	settle();
	CHECK_STR(gone_why, "RECORD_DONE: a second answer to request 1");
}

/* Why a decider allowed it, and that it was no new answer. */
TEST(why_allowed)
{
	setup();
	OPEN(1, .inspected = 1);
	ALLOW(1, .decider = "guard", .reason = "decider: it \"fits\"",
	    .cached = 1, .waited_ms = 3, .rule = RULE_NONE);
	CLOSE(1);
	OPEN(2, .inspected = 1);
	ALLOW(2, .decider = "guard", .rule = RULE_NONE);
	look();
	CHECK((line = strstr(line, "\"request_allowed\"")) != NULL);
	CHECK((line = strstr(line, "\"decider\":{\"name\":\"guard\","
	    "\"latency_ms\":3,\"reason\":\"it \\\"fits\\\"\","
	    "\"cached\":true}")) != NULL);
	CHECK((line = strstr(line, "\"request_closed\"")) != NULL);
	CHECK((line = strstr(line, "\"cached\":true}")) != NULL);
	CHECK((line = strstr(line, "\"decider\":{\"name\":\"guard\","
	    "\"latency_ms\":0}")) != NULL);
}

TEST_MAIN("record")
