/* SPDX-License-Identifier: ISC */

/*
 * Heads of HTTP/2 that come again.  What was found out about a name or a value
 * stays with the entry of the table that it came from, so each head is read
 * three times from one connection, and by turns as a request, a response and
 * trailers: nothing but the bytes may decide.
 */

#include "h2_feed.h"

#include <nghttp2/nghttp2.h>

#define FIELDS_MAX	(4 * H1_FIELDS_MAX)

static nghttp2_nv	 nva[FIELDS_MAX];
static size_t		 nnv;
static char		 want[H1_HEAD_MAX + 1];

static const char *const	 requests[] = {
	GET, POST, WEBSOCKET, "",
	GET "accept: */*\naccept-encoding: gzip, deflate\nuser-agent: x\n",
	GET "host: a.test\n", GET "host: A.TEST\n", GET "host: b.test\n",
	GET "host: a.test\nhost: a.test\n",
	":method: GET\n:scheme: https\n:path: /\nhost: a.test:8443\n",
	":method: GET\n:scheme: http\n:path: /index.html\n:authority: [::1]\n",
	":method: GET\n:scheme: https\n:path: *\n:authority: a.test\n",
	":method: OPTIONS\n:scheme: https\n:path: *\n:authority: a.test\n",
	":method: CONNECT\n:authority: a.test:443\n",
	":method: CONNECT\n:authority: a.test\n",
	":method: G/T\n:scheme: https\n:path: /\n:authority: a.test\n",
	":method: GET\n:scheme: https\n:path: /\n:authority: u@a.test\n",
	":method: GET\n:scheme: https\n:path: /#\n:authority: a.test\n",
	":method: GET\n:scheme: https\n:path: / a\n:authority: a.test\n",
	GET ":status: 200\n", GET ":x: y\n", GET ":path: /\n",
	GET "a: b\n:path: /\n", GET "A: b\n", GET "a b: c\n",
	GET "a: b\r\n", GET "a:  b\n", GET "a: b \n", GET "a: b\tc\n",
	GET "a: \n", GET "a: \nb: \na: \n", GET "a: \x80\xff\n",
	GET "cookie: a\n", GET "cookie: \n", GET "cookie: \ncookie: a\n",
	GET "cookie: a\ncookie: b\ncookie: a\n",
	GET "cookie: a\nx: y\ncookie: b\nz: z\ncookie: \ncookie: c\n",
	GET "x: y\ncookie: a\nte: trailers\ncookie: b\n"
	    "x-http-method-override: PUT\ncookie: c\n",
	POST "cookie: a\ncontent-length: 7\ncookie: b\nexpect: 100-continue\n"
	    "cookie: c\n",
	POST "cookie: a\nhost: a.test\ncookie: b\ncontent-length: 07\n",
	WEBSOCKET "cookie: a\nsec-websocket-version: 13\ncookie: b\n",
	GET "te: trailers\n", GET "te: gzip\n", GET "te: \n",
	GET "connection: close\n", GET "keep-alive: 1\n", GET "upgrade: h2c\n",
	GET "transfer-encoding: chunked\n", GET "proxy-connection: x\n",
	GET "proxy-authorization: x\n", GET "http2-settings: AA\n",
	GET "trailer: x\n", GET "content_length: 1\n", GET "x_y: 1\n",
	POST "content-length: 0\n", POST "content-length: 7\n",
	POST "content-length: 7\ncontent-length: 7\n",
	POST "content-length: 7, 7\n", POST "content-length: -1\n",
	POST "content-length: 99999999999999999999\n",
	POST "expect: 100-continue\n", POST "expect: x\n",
	POST "expect: 100-continue\nexpect: 100-continue\n",
	POST "x-http-method: PUT\nx-method-override: PUT\n",
	GET "x-original-url: /x\nx-original-url: /y\nx_host: x\n",
	POST "x-http-method-override: \n", POST "x-http-method: P T\n",
	WEBSOCKET "content-length: 1\n", WEBSOCKET "host: a.test\n",
};

static const char *const	 responses[] = {
	OK, "", "a: b\n", OK OK, OK ":path: /\n", ":status: 20\n",
	":status: 2x0\n", ":status: 012\n", ":status: 101\n", ":status: 100\n",
	":status: 103\nlink: x\n", ":status: 100\ncontent-length: 1\n",
	":status: 204\n", ":status: 204\ncontent-length: 1\n",
	":status: 304\ncontent-length: 7\n", ":status: 404\n",
	OK "server: x\ndate: today\ncontent-type: text/html\n",
	OK "a:  b\n", OK "a: b \n", OK "a:  \t b c \t\n", OK "a:    \n",
	OK "a: \t\n", OK "a:  \nb: b \na:  \n", OK "content-length:  7 \n",
	OK "content-length: 7\n", OK "content-length: 0\n",
	OK "content-length: 7\ncontent-length: 7\n", OK "content_length: 7\n",
	OK "set-cookie: a\nset-cookie: b\n", OK "cookie: a\ncookie: b\n",
	OK "host: a\nhost: b\n", OK "te: gzip\n", OK "te:  trailers\n",
	OK "trailer: x\ntrailer: y\n", OK "connection: close\n",
	OK "transfer-encoding: chunked\n", OK "upgrade: h2c\n",
	OK "proxy-authenticate: x\n", OK "expect: x\nexpect: x\n",
	OK "A: b\n", OK "a: b\r\n", OK "a: \x7f\n", OK "a: \xff \n",
	OK "x-http-method: PUT\nx-http-method: PUT\n",
	OK "x-original-url: /x\nforwarded: host=x\n",
};

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

/* As feed(), for nghttp2. */
static void
read_lines(const char *lines)
{
	const char	*colon, *end;

	for (nnv = 0; *lines != '\0'; lines = end + 1, nnv++) {
		CHECK((end = strchr(lines, '\n')) != NULL);
		CHECK((colon = strstr(lines + 1, ": ")) != NULL);
		CHECK(nnv < FIELDS_MAX);
		nva[nnv].name = (uint8_t *)(uintptr_t)lines;
		nva[nnv].namelen = (size_t)(colon - lines);
		nva[nnv].value = (uint8_t *)(uintptr_t)(colon + 2);
		nva[nnv].valuelen = (size_t)(end - colon) - 2;
		nva[nnv].flags = NGHTTP2_NV_FLAG_NONE;
	}
}

/* ---- one connection ------------------------------------------------------ */

static nghttp2_hd_deflater	*deflater;
static struct hpack_decoder	 decoder;
static size_t			 blocklen;	/* of the last */

static void
connection_new(void)
{
	CHECK_INT(nghttp2_hd_deflate_new(&deflater, HPACK_TABLE_SIZE), 0);
	hpack_decoder_init(&decoder);
}

static void
connection_free(void)
{
	nghttp2_hd_deflate_del(deflater);
	hpack_decoder_free(&decoder);
}

static void
on_field(void *arg, const struct hpack_field *hp)
{
	(void)arg;
	h2_head_field(&hh, hp);
}

static void
carry(enum h2_kind kind)
{
	static uint8_t	 block[HPACK_BLOCK_MAX];
	ssize_t		 n;

	h2_head_begin(&hh, kind, buf, sizeof(buf));
	n = nghttp2_hd_deflate_hd(deflater, block, sizeof(block), nva, nnv);
	CHECK(n >= 0);
	blocklen = (size_t)n;
	CHECK_INT(hpack_decode(&decoder, block, blocklen, on_field, NULL), 0);
}

static void
check_request(const char *lines, int end_stream)
{
	strlcpy(want, request(lines, end_stream), sizeof(want));
	read_lines(lines);
	carry(H2_REQUEST);
	CHECK_STR(end_request(end_stream), want);
}

static void
check_response(const char *lines, int end_stream, enum h1_method method,
    int upgrade)
{
	strlcpy(want, response(lines, end_stream, method, upgrade),
	    sizeof(want));
	read_lines(lines);
	carry(H2_RESPONSE);
	CHECK_STR(end_response(end_stream, method, upgrade), want);
}

/* How many they are, or why not. */
static const char *
trailers_text(void)
{
	static char	 text[128];
	ssize_t		 n;

	n = h2_head_trailers(&hh, trailers, 8, &error);
	snprintf(text, sizeof(text), "%zd %s", n, n == -1 ? error.he_reason :
	    "");
	return text;
}

static void
check_trailers(const char *lines)
{
	h2_head_begin(&hh, H2_TRAILERS, buf, sizeof(buf));
	feed(lines);
	strlcpy(want, trailers_text(), sizeof(want));
	read_lines(lines);
	carry(H2_TRAILERS);
	CHECK_STR(trailers_text(), want);
}

/* ---- cases --------------------------------------------------------------- */

TEST(requests)
{
	size_t	 i;
	int	 n;

	for (i = 0; i < COUNT(requests); i++) {
		connection_new();
		for (n = 0; n < 6; n++)
			check_request(requests[i], n & 1);
		connection_free();
	}
}

TEST(responses)
{
	size_t	 i;
	int	 n;

	for (i = 0; i < COUNT(responses); i++) {
		connection_new();
		for (n = 0; n < 24; n++)
			check_response(responses[i], n & 1,
			    n & 2 ? H1_HEAD : H1_GET, n & 4);
		connection_free();
	}
}

/* What is wrong in one of them may be right in another. */
static void
check_as_all(const char *lines)
{
	check_request(lines, 1);
	check_response(lines, 0, H1_GET, 0);
	check_trailers(lines);
}

TEST(by_turns)
{
	size_t	 i;
	int	 n;

	for (i = 0; i < COUNT(requests) + COUNT(responses); i++) {
		connection_new();
		for (n = 0; n < 3; n++)
			check_as_all(i < COUNT(requests) ? requests[i] :
			    responses[i - COUNT(requests)]);
		connection_free();
	}
}

/* All of them on one connection, whose table is too small for that. */
TEST(one_after_another)
{
	size_t	 i;
	int	 n;

	connection_new();
	for (n = 0; n < 3; n++) {
		for (i = 0; i < COUNT(requests); i++)
			check_request(requests[i], n & 1);
		for (i = 0; i < COUNT(responses); i++)
			check_response(responses[i], n & 1, H1_GET, 0);
	}
	connection_free();
}

/* Or nothing above would have come from the table. */
TEST(table_is_used)
{
	size_t	 first;

	connection_new();
	check_request(GET "x-a: some value\nx-b: another one\n", 1);
	first = blocklen;
	check_request(GET "x-a: some value\nx-b: another one\n", 1);
	CHECK(blocklen < first / 2);
	CHECK_INT(decoder.hk_n, 3);
	connection_free();
}

/* Crumbs between fields, as many as there may be. */
TEST(many_crumbs)
{
	static char	 lines[64 * FIELDS_MAX];
	size_t		 n;
	int		 i, turn;

	n = strlcpy(lines, GET, sizeof(lines));
	for (i = 0; i < 2 * H1_FIELDS_MAX; i++)
		n += (size_t)snprintf(lines + n, sizeof(lines) - n,
		    i % 3 == 0 ? "x-%d: %d\n" : "cookie: crumb-%d=%d\n", i, i);
	connection_new();
	for (turn = 0; turn < 3; turn++) {
		check_request(lines, 1);
		CHECK_INT(head.hd_nfields, 1 + 1 + (2 * H1_FIELDS_MAX + 2) / 3);
	}
	CHECK_MEM(head.hd_fields[2].hf_name, 6, "cookie", 6);
	CHECK_MEM(head.hd_fields[2].hf_value, 28,
	    "crumb-1=1; crumb-2=2; crumb-", 28);
	connection_free();
}

TEST_MAIN("h2_memo")
