/* SPDX-License-Identifier: ISC */

/*
 * Tests of WebSockets between versions of HTTP.
 */

#include "test.h"

#include "tlsengine/http/websocket.h"
#include "h1_parts.h"

/* RFC 6455, 1.3. */
#define KEY	"dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT	"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static struct h1_head	 request, answer;

static void
add(struct h1_head *hd, const char *name, const char *value)
{
	hd->hd_fields[hd->hd_nfields++] = field(name, value);
}

static void
begin(void)
{
	memset(&request, 0, sizeof(request));
	memset(&answer, 0, sizeof(answer));
	answer.hd_status = 101;
	answer.hd_upgrade = (struct h1_str){ "websocket", 9 };
}

TEST(accept)
{
	char	 out[WEBSOCKET_ACCEPT + 1];

	CHECK_INT(websocket_accept(KEY, strlen(KEY), out), 0);
	CHECK_STR(out, ACCEPT);
	CHECK_INT(websocket_accept(KEY, strlen(KEY) - 1, out), -1);
	CHECK_INT(websocket_accept(KEY "x", strlen(KEY) + 1, out), -1);
	CHECK_INT(websocket_accept("", 0, out), -1);
}

TEST(keys_differ)
{
	char	 a[WEBSOCKET_KEY + 1], b[WEBSOCKET_KEY + 1];

	websocket_key(a);
	websocket_key(b);
	CHECK_INT(strlen(a), WEBSOCKET_KEY);
	CHECK(strcmp(a, b) != 0);
}

TEST(wanted)
{
	struct h1_str	 yes = { "WebSocket", 9 }, no = { "websockets", 10 };
	struct h1_str	 list = { "websocket, x", 12 }, none = { NULL, 0 };

	CHECK(websocket_wanted(&yes));
	CHECK(!websocket_wanted(&no));
	CHECK(!websocket_wanted(&list));
	CHECK(!websocket_wanted(&none));
}

TEST(without_key)
{
	struct h1_field	 from[3] = { field("A", "1"),
	    field("Sec-WebSocket-KEY", "x"), field("B", "2") }, to[3];

	CHECK_INT(websocket_without_key(to, from, 3), 2);
	CHECK_STR(to[0].hf_value, "1");
	CHECK_STR(to[1].hf_value, "2");
}

/* An origin by HTTP/1 has to prove it, and the client does not see that. */
TEST(proven)
{
	begin();
	add(&answer, "Sec-WebSocket-Accept", ACCEPT);
	add(&answer, "X", "1");
	CHECK_INT(websocket_proven(&answer, KEY), 0);
	CHECK_INT(answer.hd_nfields, 1);
	CHECK_STR(answer.hd_fields[0].hf_value, "1");
}

TEST(not_proven)
{
	begin();
	CHECK_INT(websocket_proven(&answer, KEY), -1);
	add(&answer, "sec-websocket-accept", "x" ACCEPT);
	CHECK_INT(websocket_proven(&answer, KEY), -1);
	answer.hd_fields[0] = field("sec-websocket-accept",
	    "S3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	CHECK_INT(websocket_proven(&answer, KEY), -1);
	answer.hd_fields[0] = field("sec-websocket-accept", ACCEPT);
	answer.hd_upgrade = (struct h1_str){ "other", 5 };
	CHECK_INT(websocket_proven(&answer, KEY), -1);
}

/* A client by HTTP/1 gets the proof of us, and no other. */
TEST(prove)
{
	char	 proof[WEBSOCKET_ACCEPT + 1];

	begin();
	add(&request, "sec-websocket-key", KEY);
	add(&answer, "sec-websocket-accept", "lie");
	CHECK_INT(websocket_prove(&answer, &request, proof), 0);
	CHECK_INT(answer.hd_nfields, 1);
	CHECK_STR(answer.hd_fields[0].hf_value, ACCEPT);
	answer.hd_nfields = 0;
	while (answer.hd_nfields < H1_FIELDS_MAX)
		add(&answer, "x", "1");
	CHECK_INT(websocket_prove(&answer, &request, proof), -1);
	request.hd_nfields = answer.hd_nfields = 0;
	CHECK_INT(websocket_prove(&answer, &request, proof), -1);
}

TEST_MAIN("websocket")
