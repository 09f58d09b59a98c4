/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * Tests of writing HTTP/2 heads, and of the way there and back through
 * nghttp2, which must find nothing wrong with them.
 */

#include "h2_feed.h"

#include "h1_echo.h"
#include "h1_parts.h"

static struct h2_nv	 nv;

/* As feed() would have it. */
static const char *
nv_text(int r)
{
	static char	 lines[2 * H1_HEAD_MAX];
	size_t		 i, n = 0;

	if (r == -1)
		return "refused";
	lines[0] = '\0';
	for (i = 0; i < nv.hn_n; i++)
		n += (size_t)snprintf(lines + n, sizeof(lines) - n,
		    "%.*s: %.*s\n", (int)nv.hn_nv[i].namelen,
		    (char *)nv.hn_nv[i].name, (int)nv.hn_nv[i].valuelen,
		    (char *)nv.hn_nv[i].value);
	return lines;
}

static struct h1_out_request
simple_request(void)
{
	return (struct h1_out_request){ .or_method = str("GET"),
	    .or_target = str("/"), .or_host = "a.test" };
}

TEST(write_request)
{
	struct h1_field		 hf[] = { field("Accept", "*/*"),
	    field("x-http-method-override", "PUT"), field("Trailer", "x"),
	    field("Host", "evil.test"), field("Connection", "close"),
	    field("TE", "gzip"), field("Content_Length", "7"),
	    field("accept-language", "de"), field("Listed", "x") };
	struct h1_field		 extra = field("Egress-Id", "1");
	struct h1_out_request	 rq = simple_request();

	hf[8].hf_hop = 1;
	CHECK_STR(nv_text(h2_nv_request(&nv, &rq, "https", 0)),
	    ":method: GET\n:scheme: https\n:authority: a.test\n:path: /\n");
	rq.or_fields = hf;
	rq.or_nfields = sizeof(hf) / sizeof(hf[0]);
	rq.or_extra = &extra;
	rq.or_nextra = 1;
	rq.or_connection = H1_CONN_CLOSE;
	rq.or_upgrade = str("websocket");
	CHECK_STR(nv_text(h2_nv_request(&nv, &rq, "http", 0)),
	    ":method: GET\n:scheme: http\n:authority: a.test\n:path: /\n"
	    "accept: */*\naccept-language: de\negress-id: 1\n");
	/* What needs no other case is not copied. */
	CHECK(nv.hn_nv[5].name == (const uint8_t *)hf[7].hf_name);
	CHECK(nv.hn_nv[4].value == (const uint8_t *)hf[0].hf_value);
	rq.or_framing = H1_LENGTH;
	rq.or_length = UINT64_MAX;
	rq.or_override = rq.or_te_trailers = rq.or_expect_continue = 1;
	CHECK_STR(nv_text(h2_nv_request(&nv, &rq, "http", 0)),
	    ":method: GET\n:scheme: http\n:authority: a.test\n:path: /\n"
	    "accept: */*\nx-http-method-override: PUT\ntrailer: x\n"
	    "accept-language: de\negress-id: 1\nexpect: 100-continue\n"
	    "content-length: 18446744073709551615\nte: trailers\n");
	rq.or_framing = H1_UNTIL_CLOSE;
	CHECK_INT(h2_nv_request(&nv, &rq, "http", 0), -1);
}

TEST(write_authority)
{
	static const struct {
		const char	*host;
		uint16_t	 port;
		const char	*want;
	} cases[] = {
		{ "a.test", 8443, "a.test:8443" }, { "::1", 0, "[::1]" },
		{ "2001:db8::1", 65535, "[2001:db8::1]:65535" },
		{ "127.0.0.1", 1, "127.0.0.1:1" },
	};
	struct h1_out_request	 rq = simple_request();
	size_t			 i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rq.or_host = cases[i].host;
		rq.or_port = cases[i].port;
		CHECK_INT(h2_nv_request(&nv, &rq, "https", 0), 0);
		CHECK_MEM(nv.hn_nv[2].value, nv.hn_nv[2].valuelen,
		    cases[i].want, strlen(cases[i].want));
	}
}

TEST(write_extended_connect)
{
	struct h1_out_request	 rq = simple_request();

	rq.or_upgrade = str("WebSocket");
	CHECK_STR(nv_text(h2_nv_request(&nv, &rq, "https", 1)),
	    ":method: CONNECT\n:protocol: websocket\n:scheme: https\n"
	    ":authority: a.test\n:path: /\n");
	rq.or_framing = H1_CHUNKED;
	CHECK_INT(h2_nv_request(&nv, &rq, "https", 1), -1);
	rq = simple_request();
	CHECK_INT(h2_nv_request(&nv, &rq, "https", 1), -1);
}

TEST(write_response)
{
	struct h1_field		 hf[] = { field("Server", "x"),
	    field("Keep-Alive", "1"), field("Trailer", "x") };
	struct h1_out_response	 rs = { .os_status = 200, .os_fields = hf,
	    .os_nfields = 3, .os_framing = H1_CHUNKED,
	    .os_reason = str("Fine") };

	CHECK_STR(nv_text(h2_nv_response(&nv, &rs)),
	    ":status: 200\nserver: x\ntrailer: x\n");
	rs.os_framing = H1_UNTIL_CLOSE;
	CHECK_STR(nv_text(h2_nv_response(&nv, &rs)),
	    ":status: 200\nserver: x\ntrailer: x\n");
	rs.os_framing = H1_LENGTH;
	rs.os_length = 7;
	CHECK_STR(nv_text(h2_nv_response(&nv, &rs)),
	    ":status: 200\nserver: x\ntrailer: x\ncontent-length: 7\n");
	rs.os_status = 204;
	rs.os_nfields = 0;
	CHECK_STR(nv_text(h2_nv_response(&nv, &rs)), ":status: 204\n");
	rs.os_status = 101;
	CHECK_INT(h2_nv_response(&nv, &rs), -1);
	rs.os_upgrade = str("websocket");
	CHECK_STR(nv_text(h2_nv_response(&nv, &rs)), ":status: 200\n");
	rs.os_status = 99;
	CHECK_INT(h2_nv_response(&nv, &rs), -1);
	rs.os_status = 1000;
	CHECK_INT(h2_nv_response(&nv, &rs), -1);
}

TEST(write_trailers)
{
	struct h1_field	 hf[] = { field("Grpc-Status", "0"),
	    field("Set-Cookie", "a"), field("host", "evil.test"),
	    field("x_sum", "1") };

	CHECK_STR(nv_text(h2_nv_trailers(&nv, hf, 4)),
	    "grpc-status: 0\nx_sum: 1\n");
	CHECK_STR(nv_text(h2_nv_trailers(&nv, hf, 0)), "");
	hf[0] = field("a", "b\r\nc: d");
	CHECK_INT(h2_nv_trailers(&nv, hf, 1), -1);
}

TEST(write_injects_nothing)
{
	static const char *const	 bad[] = { "a\r\nX: y", "a\nb", "a\rb",
	    "\x01", "b\x7f" };
	struct h1_out_request		 rq;
	struct h1_field			 hf;
	size_t				 i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rq = simple_request();
		rq.or_fields = &hf;
		rq.or_nfields = 1;
		hf = field("x", bad[i]);
		CHECK_INT(h2_nv_request(&nv, &rq, "https", 0), -1);
		hf = field(bad[i], "x");
		CHECK_INT(h2_nv_request(&nv, &rq, "https", 0), -1);
		rq = simple_request();
		rq.or_method = str(bad[i]);
		CHECK_INT(h2_nv_request(&nv, &rq, "https", 0), -1);
		rq = simple_request();
		rq.or_target = str(bad[i]);
		CHECK_INT(h2_nv_request(&nv, &rq, "https", 0), -1);
		rq = simple_request();
		rq.or_host = bad[i];
		CHECK_INT(h2_nv_request(&nv, &rq, "https", 0), -1);
		rq = simple_request();
		rq.or_upgrade = str(bad[i]);
		CHECK_INT(h2_nv_request(&nv, &rq, "https", 1), -1);
	}
}

TEST(write_limits)
{
	static struct h1_field	 hf[H2_NV_MAX + 1];
	static char		 name[H2_NV_TEXT + 1];
	struct h1_out_response	 rs = { .os_status = 200, .os_fields = hf };
	size_t			 i;

	for (i = 0; i <= H2_NV_MAX; i++)
		hf[i] = field("a", "b");
	rs.os_nfields = H2_NV_MAX - 1;
	CHECK_INT(h2_nv_response(&nv, &rs), 0);
	CHECK_INT(nv.hn_n, H2_NV_MAX);
	rs.os_nfields = H2_NV_MAX;
	CHECK_INT(h2_nv_response(&nv, &rs), -1);
	memset(name, 'A', sizeof(name) - 1);
	hf[0] = field(name, "b");
	CHECK_INT(h2_nv_trailers(&nv, hf, 1), 0);
	CHECK_MEM(nv.hn_nv[0].name, 2, "aa", 2);
	hf[1] = field("B", "b");
	CHECK_INT(h2_nv_trailers(&nv, hf, 2), -1);
}

/* ---- there and back ------------------------------------------------------ */

static nghttp2_session	*client, *server;
static int		 ended;		/* END_STREAM came with the head */
static int		 answered;	/* trailers are next */

static int
on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	(void)frame;
	(void)arg;
	h2_head_begin(&hh, session == server ? H2_REQUEST : answered ?
	    H2_TRAILERS : H2_RESPONSE, buf, sizeof(buf));
	return 0;
}

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame,
    const uint8_t *name, size_t nlen, const uint8_t *value, size_t vlen,
    uint8_t flags, void *arg)
{
	(void)session;
	(void)flags;
	(void)arg;
	h2_head_field(&hh, (const char *)name, nlen, (const char *)value,
	    vlen);
	ended = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
	return 0;
}

static void
carry(nghttp2_session *from, nghttp2_session *to)
{
	const uint8_t	*data;
	ssize_t		 n;

	while ((n = nghttp2_session_mem_send(from, &data)) > 0)
		CHECK_INT(nghttp2_session_mem_recv(to, data, (size_t)n), n);
	CHECK_INT(n, 0);
}

static void
connect_sessions(void)
{
	nghttp2_session_callbacks	*cb;
	nghttp2_settings_entry		 entry = {
	    NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1 };

	CHECK_INT(nghttp2_session_callbacks_new(&cb), 0);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	CHECK_INT(nghttp2_session_client_new(&client, cb, NULL), 0);
	CHECK_INT(nghttp2_session_server_new(&server, cb, NULL), 0);
	nghttp2_session_callbacks_del(cb);
	nghttp2_submit_settings(client, NGHTTP2_FLAG_NONE, NULL, 0);
	nghttp2_submit_settings(server, NGHTTP2_FLAG_NONE, &entry, 1);
	carry(client, server);
	carry(server, client);
	carry(client, server);
}

static ssize_t
no_data(nghttp2_session *session, int32_t id, uint8_t *data, size_t len,
    uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	(void)session;
	(void)id;
	(void)data;
	(void)len;
	(void)flags;
	(void)source;
	(void)arg;
	return NGHTTP2_ERR_DEFERRED;
}

static nghttp2_data_provider	 provider = { .read_callback = no_data };

/* Sends the request on, as an engine would; returns the stream. */
static int32_t
send_on(const char *lines, int end_stream)
{
	static struct h1_echo	 ec;
	int			 extended;
	int32_t			 id;

	answered = 0;
	request(lines, end_stream);
	extended = hh.hh_extended;
	CHECK_INT(h1_echo_out_request(&head, &ec), 0);
	CHECK_INT(h2_nv_request(&nv, &ec.rq, "https", extended), 0);
	id = nghttp2_submit_request(client, NULL, nv.hn_nv, nv.hn_n,
	    end_stream ? NULL : &provider, NULL);
	CHECK(id > 0);
	hh.hh_error = (struct h1_error){ 999, "nothing came" };
	carry(client, server);
	CHECK_INT(ended, end_stream);
	return id;
}

static void
check_there_and_back(const char *lines, int end_stream)
{
	static struct h1_head	 first;
	static char		 want[H1_HEAD_MAX];

	strlcpy(want, request(lines, end_stream), sizeof(want));
	first = head;
	send_on(lines, end_stream);
	CHECK_STR(outcome(h2_head_request(&hh, ended, &head, &error)), want);
	CHECK_INT(head.hd_framing, first.hd_framing);
	CHECK_INT(head.hd_te_trailers, first.hd_te_trailers);
}

TEST(request_there_and_back)
{
	connect_sessions();
	check_there_and_back(GET, 1);
	check_there_and_back(GET "accept: */*\ncookie: a=b; c=d\n"
	    "te: trailers\n", 1);
	check_there_and_back(POST, 0);
	check_there_and_back(POST "trailer: x\n", 0);
	check_there_and_back(POST "content-length: 7\n", 0);
	check_there_and_back(POST "content-length: 0\n", 1);
	check_there_and_back(WEBSOCKET "sec-websocket-version: 13\n", 0);
	check_there_and_back(":method: OPTIONS\n:scheme: https\n:path: *\n"
	    ":authority: [::1]:8443\n", 1);
	nghttp2_session_del(client);
	nghttp2_session_del(server);
}

static void
answer(int32_t id, const char *lines, int end_stream, int upgrade,
    const char *want)
{
	struct h1_out_response	 rs;

	response(lines, end_stream, H1_GET, upgrade);
	rs = h1_echo_out_response(&head);
	CHECK_INT(h2_nv_response(&nv, &rs), 0);
	if (head.hd_status < 200 && head.hd_status != 101)
		CHECK_INT(nghttp2_submit_headers(server, NGHTTP2_FLAG_NONE, id,
		    NULL, nv.hn_nv, nv.hn_n, NULL), 0);
	else
		CHECK_INT(nghttp2_submit_response(server, id, nv.hn_nv,
		    nv.hn_n, end_stream ? NULL : &provider), 0);
	hh.hh_error = (struct h1_error){ 999, "nothing came" };
	carry(server, client);
	CHECK_STR(outcome(h2_head_response(&hh, ended, H1_GET, upgrade, &head,
	    &error)), want);
	answered = head.hd_status >= 200 || head.hd_status == 101;
}

TEST(response_there_and_back)
{
	int32_t	 id;

	connect_sessions();
	answer(send_on(GET, 1), OK "a: b\n", 1, 0,
	    "HTTP/1.1 200 \r\na: b\r\ncontent-length: 0\r\n\r\n");
	answer(send_on(GET, 1), ":status: 404\ncontent-length: 7\n", 0, 0,
	    "HTTP/1.1 404 \r\ncontent-length: 7\r\n\r\n");
	answer(send_on(WEBSOCKET, 0), OK, 0, 1, "HTTP/1.1 101 \r\n"
	    "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	id = send_on(GET, 1);
	answer(id, ":status: 103\nlink: x\n", 0, 0,
	    "HTTP/1.1 103 \r\nlink: x\r\n\r\n");
	answer(id, OK "trailer: x\n", 0, 0, "HTTP/1.1 200 \r\ntrailer: x\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n");
	trailers[0] = field("X", "y");
	CHECK_INT(h2_nv_trailers(&nv, trailers, 1), 0);
	CHECK_INT(nghttp2_submit_trailer(server, id, nv.hn_nv, nv.hn_n), 0);
	carry(server, client);
	CHECK(ended);
	CHECK_INT(h2_head_trailers(&hh, trailers, 8, &error), 1);
	CHECK_MEM(trailers[0].hf_name, trailers[0].hf_nlen, "x", 1);
	nghttp2_session_del(client);
	nghttp2_session_del(server);
}

TEST_MAIN("h2_nv")
