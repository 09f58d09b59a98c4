/* SPDX-License-Identifier: ISC */

/* Tests of reading HTTP/2 heads: each rule both ways, each byte, each limit. */

#include "h2_feed.h"

/* ---- requests ------------------------------------------------------------ */

TEST(request)
{
	CHECK_STR(request(":method: GET\n:path: /a?b\n:scheme: https\n"
	    ":authority: a.test:8443\naccept: */*\nx-empty: \n", 1),
	    "GET /a?b HTTP/1.1\r\nHost: a.test:8443\r\naccept: */*\r\n"
	    "x-empty: \r\n\r\n");
	CHECK_INT(head.hd_method, H1_GET);
	CHECK_MEM(head.hd_path.s, head.hd_path.len, "/a?b", 4);
	CHECK_MEM(head.hd_host.s, head.hd_host.len, "a.test", 6);
	CHECK_INT(head.hd_port, 8443);
	CHECK_INT(head.hd_framing, H1_NONE);
	CHECK_STR(hh.hh_scheme, "https");
	CHECK_INT(hh.hh_extended, 0);
	CHECK_STR(request(":scheme: http\n:authority: [::1]\n:path: *\n"
	    ":method: OPTIONS\n", 1),
	    "OPTIONS * HTTP/1.1\r\nHost: [::1]\r\n\r\n");
	CHECK_STR(hh.hh_scheme, "http");
}

TEST(pseudo_headers_once_and_not_empty)
{
	CHECK_STR(request(":scheme: https\n:path: /\n:authority: a.test\n", 1),
	    "400 no :method");
	CHECK_STR(request(":method: GET\n:path: /\n:authority: a.test\n", 1),
	    "400 no :scheme");
	CHECK_STR(request(":method: GET\n:scheme: https\n:authority: a\n", 1),
	    "400 no :path");
	CHECK_STR(request(":method: GET\n:scheme: https\n:path: /\n", 1),
	    "400 no Host");
	CHECK_STR(request("", 1), "400 no :method");
	CHECK_STR(request(GET ":method: GET\n", 1), "400 pseudo-header twice");
	CHECK_STR(request(GET ":scheme: https\n", 1),
	    "400 pseudo-header twice");
	CHECK_STR(request(GET ":path: /\n", 1), "400 pseudo-header twice");
	CHECK_STR(request(GET ":authority: a.test\n", 1),
	    "400 pseudo-header twice");
	CHECK_STR(request(":method: \n", 1), "400 empty pseudo-header");
	CHECK_STR(request(":scheme: \n", 1), "400 empty pseudo-header");
	CHECK_STR(request(":path: \n", 1), "400 empty pseudo-header");
	CHECK_STR(request(":authority: \n", 1), "400 empty pseudo-header");
}

TEST(pseudo_headers_known_and_first)
{
	CHECK_STR(request(GET ":status: 200\n", 1),
	    "400 unknown pseudo-header");
	CHECK_STR(request(GET ":x: y\n", 1), "400 unknown pseudo-header");
	CHECK_STR(request(GET ":Method: y\n", 1), "400 unknown pseudo-header");
	CHECK_STR(request(":method: GET\n:scheme: https\n:path: /\n"
	    "host: a.test\n:authority: a.test\n", 1),
	    "400 pseudo-header after a field");
	/* A field before them means that they are missing. */
	CHECK_STR(request("a: b\n" GET, 1), "400 no :method");
}

TEST(start_line_is_one_line)
{
	CHECK_STR(request(":method: GET /evil\n:scheme: https\n:path: /\n"
	    ":authority: a.test\n", 1),
	    "400 illegal character in pseudo-header");
	CHECK_STR(request(":method: GET\n:scheme: https\n"
	    ":path: / HTTP/1.1\r\n:authority: a.test\n", 1),
	    "400 illegal character in pseudo-header");
	CHECK_STR(request(":method: GET\n:scheme: https\n:path: /\n"
	    ":authority:  a.test\n", 1),
	    "400 illegal character in pseudo-header");
	CHECK_STR(request(":method: G/T\n:scheme: https\n:path: /\n"
	    ":authority: a.test\n", 1), "400 illegal character in method");
}

TEST(path_is_a_path)
{
	CHECK_STR(request(":method: GET\n:scheme: https\n"
	    ":path: http://evil.test/\n:authority: a.test\n", 1),
	    "400 :path is no path");
	CHECK_STR(request(":method: GET\n:scheme: https\n:path: a\n"
	    ":authority: a.test\n", 1), "400 :path is no path");
	CHECK_STR(request(":method: GET\n:scheme: https\n:path: *\n"
	    ":authority: a.test\n", 1), "400 target `*' without OPTIONS");
	CHECK_STR(request(":method: GET\n:scheme: https\n:path: /#a\n"
	    ":authority: a.test\n", 1),
	    "400 illegal character in pseudo-header");
	CHECK_STR(request(":method: GET\n:scheme: ftp\n:path: /\n"
	    ":authority: a.test\n", 1), "400 unknown :scheme");
	CHECK_STR(request(":method: GET\n:scheme: HTTPS\n:path: /\n"
	    ":authority: a.test\n", 1), "400 unknown :scheme");
}

TEST(authority_and_host)
{
	static const char	 bare[] =
	    ":method: GET\n:scheme: https\n:path: /\nhost: a.test:1\n";

	CHECK_STR(request(bare, 1),
	    "GET / HTTP/1.1\r\nhost: a.test:1\r\n\r\n");
	CHECK_INT(head.hd_port, 1);
	CHECK_STR(request(GET "a: b\nhost: A.test\n", 1),
	    "GET / HTTP/1.1\r\nHost: a.test\r\na: b\r\n\r\n");
	CHECK_STR(request(GET "host: b.test\n", 1),
	    "421 :authority and Host differ");
	CHECK_STR(request(GET "host: a.test:443\n", 1),
	    "421 :authority and Host differ");
	CHECK_STR(request(GET "host: \n", 1), "421 :authority and Host differ");
	CHECK_STR(request(GET "host: a.test\nhost: a.test\n", 1),
	    "400 more than one Host");
	CHECK_STR(request(":method: GET\n:scheme: https\n:path: /\n"
	    "host: a.test\nhost: a.test\n", 1), "400 more than one Host");
	CHECK_STR(request(":method: GET\n:scheme: https\n:path: /\n"
	    ":authority: u@a.test\n", 1), "400 user information in host");
	/* Also when the far end of the buffer was written over. */
	h2_head_begin(&hh, H2_REQUEST, buf, 90);
	feed(GET "x: 0123456789012345678901234567890123456789012345678\n");
	feed("host: a.test\n");
	CHECK(h2_head_request(&hh, 1, &head, &error) > 0);
}

TEST(connection_specific_fields)
{
	static const char *const	 bad[] = { "connection: close\n",
	    "connection: upgrade\n", "keep-alive: 1\n",
	    "proxy-connection: x\n", "transfer-encoding: chunked\n",
	    "upgrade: h2c\n", "http2-settings: AA\n",
	    "transfer_encoding: chunked\n", "keep_alive: 1\n" };
	char				 lines[256];
	size_t				 i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(lines, sizeof(lines), GET "%s", bad[i]);
		CHECK_STR(request(lines, 1), "400 connection-specific field");
		snprintf(lines, sizeof(lines), OK "%s", bad[i]);
		CHECK_STR(response(lines, 1, H1_GET, 0),
		    "502 connection-specific field");
	}
	CHECK_STR(request(GET "proxy-authorization: x\n", 1),
	    "GET / HTTP/1.1\r\nHost: a.test\r\n"
	    "proxy-authorization: x\r\n\r\n");
}

TEST(te)
{
	CHECK_STR(request(GET "te: gzip\n", 1), "400 TE other than trailers");
	CHECK_STR(request(GET "te: trailers, gzip\n", 1),
	    "400 TE other than trailers");
	CHECK_STR(request(GET "te: \n", 1), "400 TE other than trailers");
	request(GET, 1);
	CHECK_INT(head.hd_te_trailers, 0);
	CHECK_STR(request(GET "te: trailers\n", 1),
	    "GET / HTTP/1.1\r\nHost: a.test\r\nte: trailers\r\n\r\n");
	CHECK_INT(head.hd_te_trailers, 1);
}

TEST(names_and_values)
{
	CHECK_STR(request(GET "X-a: b\n", 1),
	    "400 illegal character in field name");
	CHECK_STR(request(GET "x a: b\n", 1),
	    "400 illegal character in field name");
	CHECK_STR(request(GET "a: b\r\n", 1), "400 control character in field");
	CHECK_STR(request(GET "a:  b\n", 1), "400 space around field value");
	CHECK_STR(request(GET "a: b\t\n", 1), "400 space around field value");
	CHECK_STR(response(OK "a:  b \ncontent-length: 0\n", 1, H1_GET, 0),
	    "HTTP/1.1 200 \r\na:  b \r\ncontent-length: 0\r\n\r\n");
	CHECK_MEM(head.hd_fields[0].hf_value, head.hd_fields[0].hf_vlen,
	    "b", 1);
	CHECK_STR(request(GET "content_length: 1\n", 0),
	    "400 field name with an underscore for a hyphen");
	h2_head_begin(&hh, H2_REQUEST, buf, sizeof(buf));
	feed(GET);
	CHECK_INT(give("", 0, "x", 1), -1);
	CHECK_INT(give("a", 1, "x", 1), -1);
	CHECK_STR(end_request(1), "400 empty field name");
}

/* No byte, wherever it stands, makes a line more. */
static void
check_lines(const char *text, size_t nfields)
{
	size_t	 n = 0;

	if (text[0] >= '4' && text[0] <= '5')
		return;
	for (; *text != '\0'; text++)
		n += *text == '\n';
	CHECK_INT(n, nfields + 2);
	CHECK_INT(head.hd_nfields, nfields);
}

/* Five fields; one has the byte c at this place of its name or value. */
static void
feed_byte(int which, int in_name, size_t at, int c)
{
	static const char *const	 names[] = { ":method", ":scheme",
	    ":path", ":authority", "a" };
	static const char *const	 values[] = { "GET", "https", "/xyz",
	    "a.test", "0123456789" };
	char				 name[16], value[16];
	int				 i;

	for (i = 0; i < 5; i++) {
		memset(name, 0, sizeof(name));
		memset(value, 0, sizeof(value));
		strlcpy(name, names[i], sizeof(name));
		strlcpy(value, values[i], sizeof(value));
		if (i == which)
			(in_name ? name : value)[at] = (char)c;
		give(name, strlen(names[i]), value, strlen(values[i]));
	}
}

TEST(every_byte_everywhere)
{
	size_t	 at;
	int	 which, in_name, c;

	for (which = 0; which < 5; which++)
		for (in_name = 0; in_name < 2; in_name++)
			for (at = 0; at < 10; at++)
				for (c = 0; c < 256; c++) {
					h2_head_begin(&hh, H2_REQUEST, buf,
					    sizeof(buf));
					feed_byte(which, in_name, at, c);
					check_lines(end_request(1), 2);
				}
}

TEST(cookies_are_joined)
{
	CHECK_STR(request(GET "cookie: a=b\ncookie: c=d\n", 1),
	    "GET / HTTP/1.1\r\nHost: a.test\r\ncookie: a=b; c=d\r\n\r\n");
	CHECK_STR(request(GET "cookie: a=b\nx: y\ncookie: \ncookie: c=d\n"
	    "z: z\ncookie: e\n", 1),
	    "GET / HTTP/1.1\r\nHost: a.test\r\ncookie: a=b; c=d; e\r\n"
	    "x: y\r\nz: z\r\n\r\n");
	CHECK_STR(response(OK "cookie: a\ncookie: b\n", 1, H1_HEAD, 0),
	    "HTTP/1.1 200 \r\ncookie: a\r\ncookie: b\r\n\r\n");
}

/* ---- bodies of requests -------------------------------------------------- */

TEST(request_bodies)
{
	CHECK_STR(request(POST, 0), "POST / HTTP/1.1\r\nHost: a.test\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n");
	CHECK_INT(head.hd_framing, H1_CHUNKED);
	CHECK_STR(request(POST "content-length: 7\nexpect: 100-continue\n",
	    0), "POST / HTTP/1.1\r\nHost: a.test\r\ncontent-length: 7\r\n"
	    "expect: 100-continue\r\n\r\n");
	CHECK_INT(head.hd_framing, H1_LENGTH);
	CHECK_INT(head.hd_length, 7);
	CHECK_INT(head.hd_expect_continue, 1);
	request(POST "content-length: 0\n", 1);
	CHECK_INT(head.hd_framing, H1_LENGTH);
	CHECK_INT(head.hd_length, 0);
	CHECK_STR(request(POST "content-length: 7\n", 1),
	    "400 Content-Length without a body");
	CHECK_STR(request(POST "content-length: 7\ncontent-length: 7\n", 0),
	    "400 more than one Content-Length");
	CHECK_STR(request(POST "content-length: 7, 7\n", 0),
	    "400 Content-Length is not a number");
}

TEST(connect)
{
	CHECK_STR(request(":method: CONNECT\n:authority: a.test:443\n", 0),
	    "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
	CHECK_INT(head.hd_method, H1_CONNECT);
	CHECK(hh.hh_scheme == NULL);
	CHECK_STR(request(":method: CONNECT\n:authority: a.test:443\n"
	    ":path: /\n", 0), "400 CONNECT with :scheme or :path");
	CHECK_STR(request(":method: CONNECT\n:authority: a.test:443\n"
	    ":scheme: https\n", 0), "400 CONNECT with :scheme or :path");
	CHECK_STR(request(":method: CONNECT\n", 0),
	    "400 CONNECT without :authority");
	CHECK_STR(request(":method: CONNECT\n:authority: a.test\n", 0),
	    "400 CONNECT without a port");
}

TEST(extended_connect)
{
	CHECK_STR(request(WEBSOCKET "sec-websocket-version: 13\n", 0),
	    "GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\n"
	    "Upgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n");
	CHECK_INT(head.hd_method, H1_GET);
	CHECK_INT(hh.hh_extended, 1);
	CHECK_STR(hh.hh_scheme, "https");
	CHECK_MEM(head.hd_upgrade.s, head.hd_upgrade.len, "websocket", 9);
	CHECK_INT(head.hd_framing, H1_NONE);
	CHECK_STR(request(WEBSOCKET "content-length: 1\n", 0),
	    "400 CONNECT with a body");
	CHECK_STR(request(WEBSOCKET "content-length: 0\n", 0),
	    "400 CONNECT with a body");
	CHECK_STR(request(GET ":protocol: websocket\n", 0),
	    "400 :protocol without CONNECT");
	CHECK_STR(request(":method: CONNECT\n:protocol: connect-udp\n"
	    ":scheme: https\n:path: /\n:authority: a.test\n", 0),
	    "501 unknown :protocol");
	CHECK_STR(request(":method: CONNECT\n:protocol: websocket\n"
	    ":authority: a.test\n", 0), "400 no :scheme");
}

/* ---- limits -------------------------------------------------------------- */

static void
feed_long(const char *name, size_t vlen)
{
	static char	 value[2 * H1_HEAD_MAX];

	memset(value, 'v', sizeof(value));
	value[0] = '/';
	give(name, strlen(name), value, vlen);
}

TEST(target_limit)
{
	h2_head_begin(&hh, H2_REQUEST, buf, sizeof(buf));
	feed(":method: GET\n:scheme: https\n:authority: a.test\n");
	feed_long(":path", H1_TARGET_MAX);
	CHECK(h2_head_request(&hh, 1, &head, &error) > H1_TARGET_MAX);
	h2_head_begin(&hh, H2_REQUEST, buf, sizeof(buf));
	feed(":method: GET\n:scheme: https\n:authority: a.test\n");
	feed_long(":path", H1_TARGET_MAX + 1);
	CHECK_STR(end_request(1), "414 request target too long");
}

static int
accepts_line(const char *lines, const char *name, size_t vlen)
{
	h2_head_begin(&hh, H2_REQUEST, buf, sizeof(buf));
	feed(lines);
	feed_long(name, vlen);
	return h2_head_request(&hh, 1, &head, &error) != -1;
}

TEST(line_limit)
{
	static const char	 crumb[] = GET "cookie: a\nx: y\n";
	size_t			 max = H1_LINE_MAX - strlen("x: \r\n");

	CHECK(accepts_line(GET, "x", max));
	CHECK(!accepts_line(GET, "x", max + 1));
	CHECK_STR(error.he_reason, "field line too long");
	max = H1_LINE_MAX - strlen("cookie: a; \r\n");
	CHECK(accepts_line(crumb, "cookie", max));
	CHECK(!accepts_line(crumb, "cookie", max + 1));
	CHECK_STR(error.he_reason, "field line too long");
}

/* To the byte, and nothing behind it is touched. */
TEST(head_limit)
{
	static const char	 lines[] = GET "cookie: a\nb: c\ncookie: d\n";
	size_t			 len, size;

	request(lines, 0);
	len = strlen(buf);
	for (size = 0; size <= len + 40; size++) {
		memset(buf, '#', sizeof(buf));
		h2_head_begin(&hh, H2_REQUEST, buf, size);
		feed(lines);
		if (h2_head_request(&hh, 0, &head, &error) == -1)
			CHECK_INT(error.he_status, 431);
		else
			CHECK(size >= len);
		CHECK_INT(buf[size], '#');
	}
	CHECK_INT(hh.hh_len, len);
	h2_head_begin(&hh, H2_REQUEST, buf, sizeof(buf));
	feed(GET);
	feed_long("a", H1_LINE_MAX / 2);
	feed_long("a", H1_LINE_MAX / 2);
	feed_long("a", H1_LINE_MAX / 2);
	feed_long("a", H1_LINE_MAX / 2);
	CHECK_STR(end_request(1), "431 head too long");
}

TEST(field_limit)
{
	int	 i;

	h2_head_begin(&hh, H2_REQUEST, buf, sizeof(buf));
	feed(GET);
	for (i = 1; i < H1_FIELDS_MAX; i++)
		feed("a: b\n");
	CHECK(h2_head_request(&hh, 1, &head, &error) > 0);
	CHECK_INT(head.hd_nfields, H1_FIELDS_MAX);
	h2_head_begin(&hh, H2_REQUEST, buf, sizeof(buf));
	feed(GET);
	for (i = 1; i < H1_FIELDS_MAX; i++)
		CHECK_INT(give("a", 1, "b", 1), 0);
	CHECK_INT(give("a", 1, "b", 1), -1);
	CHECK_STR(end_request(1), "431 too many fields");
	/* Crumbs are one line. */
	h2_head_begin(&hh, H2_REQUEST, buf, sizeof(buf));
	feed(GET);
	for (i = 0; i < 2 * H1_FIELDS_MAX; i++)
		feed("cookie: b\n");
	CHECK(h2_head_request(&hh, 1, &head, &error) > 0);
	CHECK_INT(head.hd_nfields, 2);
}

/* ---- responses ----------------------------------------------------------- */

TEST(responses)
{
	CHECK_STR(response(":status: 404\nserver: x\n", 0, H1_GET, 0),
	    "HTTP/1.1 404 \r\nserver: x\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n");
	CHECK_INT(head.hd_status, 404);
	CHECK_INT(head.hd_framing, H1_CHUNKED);
	CHECK_STR(response(OK, 1, H1_GET, 0),
	    "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n");
	CHECK_INT(head.hd_framing, H1_LENGTH);
	CHECK_STR(response(OK "content-length: 7\n", 0, H1_GET, 0),
	    "HTTP/1.1 200 \r\ncontent-length: 7\r\n\r\n");
	CHECK_INT(head.hd_framing, H1_LENGTH);
	CHECK_INT(head.hd_length, 7);
	CHECK_STR(response(OK "content-length: 7\n", 1, H1_GET, 0),
	    "502 Content-Length without a body");
	CHECK_STR(response(OK "te: gzip\n", 1, H1_GET, 0),
	    "502 TE other than trailers");
}

TEST(response_status)
{
	CHECK_STR(response("a: b\n", 1, H1_GET, 0), "502 no :status");
	CHECK_STR(response("", 1, H1_GET, 0), "502 no :status");
	CHECK_STR(response(":status: 20\n", 1, H1_GET, 0),
	    "502 malformed status code");
	CHECK_STR(response(":status: 2000\n", 1, H1_GET, 0),
	    "502 malformed status code");
	CHECK_STR(response(":status: 2x0\n", 1, H1_GET, 0),
	    "502 malformed status code");
	CHECK_STR(response(":status: 012\n", 1, H1_GET, 0),
	    "502 malformed status code");
	CHECK_STR(response(OK OK, 1, H1_GET, 0), "502 pseudo-header twice");
	CHECK_STR(response(OK ":path: /\n", 1, H1_GET, 0),
	    "502 unknown pseudo-header");
	CHECK_STR(response("a: b\n" OK, 1, H1_GET, 0), "502 no :status");
	CHECK_STR(response(":status: 101\n", 0, H1_GET, 0),
	    "502 status 101 in HTTP/2");
	CHECK_STR(response(":status: 101\n", 0, H1_GET, 1),
	    "502 status 101 in HTTP/2");
}

TEST(responses_without_a_body)
{
	static const char	 lines[] = OK "content-length: 7\n";

	CHECK_STR(response(lines, 1, H1_HEAD, 0),
	    "HTTP/1.1 200 \r\ncontent-length: 7\r\n\r\n");
	CHECK_INT(head.hd_framing, H1_NONE);
	CHECK_INT(head.hd_length, 7);
	CHECK_STR(response(OK, 0, H1_HEAD, 0), "HTTP/1.1 200 \r\n\r\n");
	CHECK_INT(head.hd_has_length, 0);
	CHECK_STR(response(":status: 204\n", 1, H1_GET, 0),
	    "HTTP/1.1 204 \r\n\r\n");
	CHECK_STR(response(":status: 304\ncontent-length: 7\n", 1, H1_GET, 0),
	    "HTTP/1.1 304 \r\ncontent-length: 7\r\n\r\n");
	CHECK_INT(head.hd_framing, H1_NONE);
	CHECK_STR(response(":status: 103\nlink: x\n", 0, H1_GET, 0),
	    "HTTP/1.1 103 \r\nlink: x\r\n\r\n");
	CHECK_STR(response(":status: 103\n", 1, H1_GET, 0),
	    "502 interim response and no other");
	CHECK_STR(response(":status: 100\ncontent-length: 1\n", 0, H1_GET, 0),
	    "502 interim response with a body");
}

TEST(tunnel_granted)
{
	CHECK_STR(response(OK "a: b\n", 0, H1_GET, 1),
	    "HTTP/1.1 101 \r\na: b\r\nConnection: Upgrade\r\n"
	    "Upgrade: websocket\r\n\r\n");
	CHECK_INT(head.hd_status, 101);
	CHECK_MEM(head.hd_upgrade.s, head.hd_upgrade.len, "websocket", 9);
	CHECK_STR(response(OK "content-length: 1\n", 0, H1_GET, 1),
	    "502 interim response with a body");
	response(":status: 403\n", 0, H1_GET, 1);
	CHECK_INT(head.hd_status, 403);
	CHECK_INT(head.hd_framing, H1_CHUNKED);
}

/* ---- trailers ------------------------------------------------------------ */

static ssize_t
parse_trailers(const char *lines, size_t max)
{
	h2_head_begin(&hh, H2_TRAILERS, buf, sizeof(buf));
	feed(lines);
	return h2_head_trailers(&hh, trailers, max, &error);
}

TEST(trailers)
{
	CHECK_INT(parse_trailers("grpc-status: 0\nhost: evil.test\n"
	    "content-length: 7\nauthorization: x\ncookie: a\ngrpc-message: \n",
	    8), 2);
	CHECK_MEM(trailers[0].hf_name, trailers[0].hf_nlen, "grpc-status", 11);
	CHECK_MEM(trailers[0].hf_value, trailers[0].hf_vlen, "0", 1);
	CHECK_MEM(trailers[1].hf_name, trailers[1].hf_nlen, "grpc-message",
	    12);
	CHECK_INT(parse_trailers("", 0), 0);
	CHECK_INT(parse_trailers(":path: /\n", 8), -1);
	CHECK_STR(error.he_reason, "unknown pseudo-header");
	CHECK_INT(parse_trailers("connection: x\n", 8), -1);
	CHECK_STR(error.he_reason, "connection-specific field");
	CHECK_INT(parse_trailers("A: x\n", 8), -1);
	CHECK_STR(error.he_reason, "illegal character in field name");
	CHECK_INT(parse_trailers("a: x\nb: y\n", 1), -1);
	CHECK_STR(error.he_reason, "too many trailers");
	h2_head_begin(&hh, H2_TRAILERS, buf, sizeof(buf));
	feed_long("a", H1_TRAILER_MAX - 7);
	CHECK_INT(h2_head_trailers(&hh, trailers, 8, &error), 1);
	h2_head_begin(&hh, H2_TRAILERS, buf, sizeof(buf));
	feed_long("a", H1_TRAILER_MAX - 6);
	CHECK_INT(h2_head_trailers(&hh, trailers, 8, &error), -1);
	CHECK_INT(error.he_status, 431);
}

TEST_MAIN("h2_head")
