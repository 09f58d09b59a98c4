/* SPDX-License-Identifier: ISC */

/*
 * Tests of writing HTTP/2 heads.  It is nghttp2 that reads them, and that must
 * find nothing wrong with them, neither as blocks nor in frames.
 */

#include "h2_feed.h"

#include <nghttp2/nghttp2.h>

#include "../../tlsengine/http/h2.h"
#include "h1_echo.h"
#include "h1_parts.h"

static struct h2_nv	 nv;
static char		 lines[4 * H1_HEAD_MAX];
static size_t		 linesn;
static size_t		 nfields;
static size_t		 nbytes;

static void
note_field(const nghttp2_nv *field)
{
	CHECK(linesn + field->namelen + field->valuelen + 4 < sizeof(lines));
	linesn += (size_t)snprintf(lines + linesn, sizeof(lines) - linesn,
	    "%.*s: %.*s\n", (int)field->namelen, (char *)field->name,
	    (int)field->valuelen, (char *)field->value);
	nfields++;
	nbytes += field->namelen + field->valuelen;
}

/* As feed() would have it, read by nghttp2. */
static void
inflate(void)
{
	nghttp2_hd_inflater	*inflater;
	nghttp2_nv		 field;
	const uint8_t		*p = nv.hn_block;
	size_t			 left = nv.hn_len;
	ssize_t			 n;
	int			 flags = 0;

	lines[0] = '\0';
	linesn = nfields = nbytes = 0;
	CHECK_INT(nghttp2_hd_inflate_new(&inflater), 0);
	while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
		flags = 0;
		n = nghttp2_hd_inflate_hd2(inflater, &field, &flags, p, left,
		    1);
		CHECK(n >= 0);
		p += n;
		left -= (size_t)n;
		if (flags & NGHTTP2_HD_INFLATE_EMIT)
			note_field(&field);
	}
	CHECK_INT(left, 0);
	CHECK_INT(nghttp2_hd_inflate_get_max_dynamic_table_size(inflater), 0);
	CHECK_INT(nghttp2_hd_inflate_get_num_table_entries(inflater), 61);
	nghttp2_hd_inflate_del(inflater);
}

static const char *
nv_text(int r)
{
	if (r == -1)
		return "refused";
	CHECK_INT(nv.hn_block[0], HPACK_NO_TABLE);
	inflate();
	CHECK_INT(nv.hn_bytes, nbytes);
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
	    field("X-Original-URL", "/x"), field("forwarded", "host=x"),
	    field("Host", "evil.test"), field("Connection", "close"),
	    field("TE", "gzip"), field("Content_Length", "7"),
	    field("accept-language", "de"), field("Listed", "x") };
	struct h1_field		 extra = field("Egress-Id", "1");
	struct h1_out_request	 rq = simple_request();

	hf[10].hf_hop = 1;
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
	rq.or_framing = H1_LENGTH;
	rq.or_length = UINT64_MAX;
	rq.or_override = rq.or_te_trailers = rq.or_expect_continue = 1;
	CHECK_STR(nv_text(h2_nv_request(&nv, &rq, "http", 0)),
	    ":method: GET\n:scheme: http\n:authority: a.test\n:path: /\n"
	    "accept: */*\nx-http-method-override: PUT\ntrailer: x\n"
	    "x-original-url: /x\nforwarded: host=x\n"
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
	char			 want[128];
	size_t			 i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rq.or_host = cases[i].host;
		rq.or_port = cases[i].port;
		snprintf(want, sizeof(want), ":method: GET\n:scheme: https\n"
		    ":authority: %s\n:path: /\n", cases[i].want);
		CHECK_STR(nv_text(h2_nv_request(&nv, &rq, "https", 0)), want);
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

/* As many fields and bytes as can come, and no byte beyond the block. */
TEST(write_limits)
{
	static struct h1_field	 hf[H1_FIELDS_MAX];
	static char		 name[H1_LINE_MAX + 2];
	static char		 value[H1_HEAD_MAX + 1];
	struct h1_out_response	 rs = { .os_status = 299, .os_fields = hf };
	size_t			 i, each = H1_HEAD_MAX / H1_FIELDS_MAX;

	memset(value, 'v', sizeof(value) - 1);
	for (i = 0; i < H1_FIELDS_MAX; i++)
		hf[i] = (struct h1_field){ .hf_name = "a", .hf_nlen = 1,
		    .hf_value = value, .hf_vlen = each - 1 };
	rs.os_nfields = H1_FIELDS_MAX;
	nv_text(h2_nv_response(&nv, &rs));
	CHECK_INT(nfields, H1_FIELDS_MAX + 1);
	CHECK_INT(nbytes, H1_HEAD_MAX + strlen(":status299"));
	for (i = 0; i < H1_FIELDS_MAX; i++)
		hf[i].hf_vlen = H1_HEAD_MAX;
	CHECK_INT(h2_nv_response(&nv, &rs), -1);
	CHECK(nv.hn_len <= sizeof(nv.hn_block));
	memset(name, 'A', sizeof(name) - 1);
	hf[0] = field(name, "b");
	CHECK_INT(h2_nv_trailers(&nv, hf, 1), -1);
	hf[0].hf_nlen--;
	nv_text(h2_nv_trailers(&nv, hf, 1));
	CHECK_MEM(lines, 2, "aa", 2);
	CHECK_INT(nbytes, H1_LINE_MAX + 1);
	/* A copy in lower case is in use until the next. */
	hf[0] = field("Aa", "Bb");
	hf[1] = field("CC", "DD");
	hf[2] = field("Aa", "Ee");
	CHECK_STR(nv_text(h2_nv_trailers(&nv, hf, 3)),
	    "aa: Bb\ncc: DD\naa: Ee\n");
}

/* ---- there and back ------------------------------------------------------ */

static nghttp2_session	*client, *server;
static int		 ended;		/* END_STREAM came with the head */
static int		 answered;	/* trailers are next */
static int		 first[2];	/* no head was sent yet, by either */

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
	give((const char *)name, nlen, (const char *)value, vlen);
	ended = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
	return 0;
}

static int
on_invalid(nghttp2_session *session, const nghttp2_frame *frame, int error_code,
    void *arg)
{
	(void)session;
	(void)frame;
	(void)arg;
	hh.hh_error = (struct h1_error){ 998, nghttp2_strerror(error_code) };
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
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb,
	    on_invalid);
	CHECK_INT(nghttp2_session_client_new(&client, cb, NULL), 0);
	CHECK_INT(nghttp2_session_server_new(&server, cb, NULL), 0);
	nghttp2_session_callbacks_del(cb);
	nghttp2_submit_settings(client, NGHTTP2_FLAG_NONE, NULL, 0);
	nghttp2_submit_settings(server, NGHTTP2_FLAG_NONE, &entry, 1);
	carry(client, server);
	carry(server, client);
	carry(client, server);
	first[0] = first[1] = 1;
}

/* What nghttp2 would send is not of interest: the peer gets ours. */
static void
discard(nghttp2_session *session)
{
	const uint8_t	*data;

	while (nghttp2_session_mem_send(session, &data) > 0)
		;
}

/* The block in frames of 60 bytes, as h2_put_head() has longer ones. */
static void
put_head(nghttp2_session *to, int32_t id, int end_stream)
{
	uint8_t		 frame[H2_FRAME_HEAD + 60] = { 0 };
	const uint8_t	*p = nv.hn_block;
	size_t		 len = nv.hn_len, n;
	int		*is_first = &first[to == server];
	int		 type = NGHTTP2_HEADERS;

	if (!*is_first) {
		p++;
		len--;
	}
	*is_first = 0;
	do {
		n = len < 60 ? len : 60;
		frame[2] = (uint8_t)n;
		frame[3] = (uint8_t)type;
		frame[4] = (n == len ? NGHTTP2_FLAG_END_HEADERS : 0) |
		    (end_stream && type == NGHTTP2_HEADERS ?
		    NGHTTP2_FLAG_END_STREAM : 0);
		frame[8] = (uint8_t)id;
		memcpy(frame + H2_FRAME_HEAD, p, n);
		CHECK_INT(nghttp2_session_mem_recv(to, frame,
		    H2_FRAME_HEAD + n), H2_FRAME_HEAD + n);
		type = NGHTTP2_CONTINUATION;
		p += n;
		len -= n;
	} while (len > 0);
}

/* So that the client knows of it. */
static int32_t
open_stream(int extended)
{
#define PAIR(name, value)	{ (uint8_t *)(uintptr_t)(name),		\
	    (uint8_t *)(uintptr_t)(value), sizeof(name) - 1,		\
	    sizeof(value) - 1, NGHTTP2_NV_FLAG_NONE }
	static nghttp2_nv	 get[] = { PAIR(":method", "GET"),
	    PAIR(":scheme", "https"), PAIR(":authority", "a.test"),
	    PAIR(":path", "/") };
	static nghttp2_nv	 tunnel[] = { PAIR(":method", "CONNECT"),
	    PAIR(":protocol", "websocket"), PAIR(":scheme", "https"),
	    PAIR(":authority", "a.test"), PAIR(":path", "/") };
#undef PAIR
	int32_t			 id;

	id = extended ? nghttp2_submit_headers(client, 0, -1, NULL, tunnel, 5,
	    NULL) : nghttp2_submit_request(client, NULL, get, 4, NULL, NULL);
	discard(client);
	return id;
}

/* Sends the request on, as an engine would; returns the stream. */
static int32_t
send_on(const char *text, int end_stream)
{
	static struct h1_echo	 ec;
	int			 extended;
	int32_t			 id;

	answered = 0;
	request(text, end_stream);
	extended = hh.hh_extended;
	CHECK_INT(h1_echo_out_request(&head, &ec), 0);
	CHECK_INT(h2_nv_request(&nv, &ec.rq, "https", extended), 0);
	CHECK((id = open_stream(extended)) > 0);
	hh.hh_error = (struct h1_error){ 999, "nothing came" };
	put_head(server, id, end_stream);
	CHECK_INT(ended, end_stream);
	return id;
}

static void
check_there_and_back(const char *text, int end_stream)
{
	static struct h1_head	 before;
	static char		 want[H1_HEAD_MAX];

	strlcpy(want, request(text, end_stream), sizeof(want));
	before = head;
	send_on(text, end_stream);
	CHECK_STR(end_request(ended), want);
	CHECK_INT(head.hd_framing, before.hd_framing);
	CHECK_INT(head.hd_te_trailers, before.hd_te_trailers);
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
answer(int32_t id, const char *text, int end_stream, int upgrade,
    const char *want)
{
	struct h1_out_response	 rs;

	response(text, end_stream, H1_GET, upgrade);
	rs = h1_echo_out_response(&head);
	CHECK_INT(h2_nv_response(&nv, &rs), 0);
	hh.hh_error = (struct h1_error){ 999, "nothing came" };
	put_head(client, id, end_stream);
	CHECK_STR(end_response(ended, H1_GET, upgrade), want);
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
	put_head(client, id, 1);
	CHECK(ended);
	CHECK_INT(h2_head_trailers(&hh, trailers, 8, &error), 1);
	CHECK_MEM(trailers[0].hf_name, trailers[0].hf_nlen, "x", 1);
	nghttp2_session_del(client);
	nghttp2_session_del(server);
}

TEST_MAIN("h2_nv")
