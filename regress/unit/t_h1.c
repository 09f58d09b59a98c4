/* SPDX-License-Identifier: ISC */

/*
 * Tests of the HTTP/1 codec that are not data: limits, every byte in every
 * place, and what the formatter refuses to write.  The cases of single heads
 * are in regress/http.
 */

#include "test.h"

#include "h1_echo.h"
#include "h1_parts.h"

#define REQUEST		"GET / HTTP/1.1\r\nHost: a.test\r\n"

static struct h1_head	 head;
static struct h1_error	 error;
static char		 buf[2 * H1_HEAD_MAX];
static size_t		 buflen;

static void
add(const char *text)
{
	memcpy(buf + buflen, text, strlen(text));
	buflen += strlen(text);
}

static void
add_bytes(char c, size_t n)
{
	memset(buf + buflen, c, n);
	buflen += n;
}

static void
start(const char *text)
{
	buflen = 0;
	add(text);
}

static int
scan(void)
{
	struct h1_scan	 st = { 0 };

	return h1_scan(&st, buf, buflen, &error);
}

static int
parse(const char *data, size_t len)
{
	return h1_parse_request(data, len, &head, &error);
}

TEST(scan_stops_at_the_first_head)
{
	struct h1_scan	 st = { 0 };

	start(REQUEST "\r\n");
	CHECK_INT(scan(), buflen);
	add("GET /second HTTP/1.1\r\n");
	CHECK_INT(scan(), strlen(REQUEST "\r\n"));
	start(REQUEST "x\r\n");
	CHECK_INT(scan(), 0);
	CHECK_INT(h1_scan(&st, buf, 0, &error), 0);
	CHECK_INT(h1_scan(&st, buf, 5, &error), 0);
	CHECK_INT(st.hs_seen, 5);
	CHECK_INT(h1_scan(&st, buf, 5, &error), 0);
}

TEST(scan_limits_the_start_line)
{
	start("GET /");
	add_bytes('x', H1_LINE_MAX - buflen);
	CHECK_INT(scan(), 0);
	add("x");
	CHECK_INT(scan(), -1);
	CHECK_INT(error.he_status, 414);
}

TEST(scan_limits_a_field_line)
{
	start(REQUEST "X: ");
	add_bytes('x', H1_LINE_MAX - 5);
	add("\r\n\r\n");
	CHECK_INT(scan(), buflen);
	start(REQUEST "X: ");
	add_bytes('x', H1_LINE_MAX - 4);
	add("\r\n\r\n");
	CHECK_INT(scan(), -1);
	CHECK_INT(error.he_status, 431);
	CHECK_STR(error.he_reason, "field line too long");
}

TEST(scan_limits_the_head)
{
	start(REQUEST);
	while (buflen < H1_HEAD_MAX - 1000) {
		add("X: ");
		add_bytes('x', 500);
		add("\r\n");
	}
	add("X: ");
	add_bytes('x', H1_HEAD_MAX - 4 - buflen);
	add("\r\n\r\n");
	CHECK_INT(scan(), H1_HEAD_MAX);
	buflen -= 4;
	add("x\r\n\r\n");
	CHECK_INT(scan(), -1);
	CHECK_STR(error.he_reason, "head too long");
}

TEST(target_limit)
{
	start("GET /");
	add_bytes('x', H1_TARGET_MAX - 1);
	add(" HTTP/1.1\r\nHost: a.test\r\n\r\n");
	CHECK_INT(parse(buf, buflen), 0);
	start("GET /");
	add_bytes('x', H1_TARGET_MAX);
	add(" HTTP/1.1\r\nHost: a.test\r\n\r\n");
	CHECK_INT(parse(buf, buflen), -1);
	CHECK_INT(error.he_status, 414);
}

TEST(field_limit)
{
	int	 i;

	start(REQUEST);
	for (i = 1; i < H1_FIELDS_MAX; i++)
		add("a:b\r\n");
	add("\r\n");
	CHECK_INT(parse(buf, buflen), 0);
	CHECK_INT(head.hd_nfields, H1_FIELDS_MAX);
	buflen -= 2;
	add("a:b\r\n\r\n");
	CHECK_INT(parse(buf, buflen), -1);
	CHECK_INT(error.he_status, 431);
}

TEST(connection_limit)
{
	int	 i;

	start(REQUEST "Connection: ");
	for (i = 0; i < H1_CONNECTION_MAX; i++)
		add("x,");
	add("\r\n\r\n");
	CHECK_INT(parse(buf, buflen), 0);
	buflen -= 4;
	add("\r\nConnection: y\r\n\r\n");
	CHECK_INT(parse(buf, buflen), -1);
	CHECK_STR(error.he_reason, "too many options in Connection");
}

/* A value of 24 bytes, so that each place in a word is tried. */
TEST(every_byte_in_a_value)
{
	size_t	 at;
	int	 c, legal;

	for (at = 1; at < 23; at++)
		for (c = 0; c < 256; c++) {
			start(REQUEST "X: ");
			add_bytes('v', 24);
			add("\r\n\r\n");
			buf[buflen - 28 + at] = (char)c;
			legal = c == '\t' || (c >= ' ' && c != 0x7f);
			CHECK_INT(parse(buf, buflen), legal ? 0 : -1);
		}
}

TEST(every_byte_in_a_name)
{
	static const char	 other[] = "!#$%&'*+-.^_`|~";
	int			 c, legal;

	for (c = 0; c < 256; c++) {
		start(REQUEST "X?Y: v\r\n\r\n");
		*strchr(buf, '?') = (char)c;
		legal = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
		    (c >= 'A' && c <= 'Z') || c == ':' ||
		    (c != 0 && strchr(other, c) != NULL);
		CHECK_INT(parse(buf, buflen), legal ? 0 : -1);
	}
}

/* Every prefix and every lost byte ends in a verdict, not in a bad read. */
TEST(truncated_and_shortened)
{
	static const char	 whole[] =
	    "POST http://a.test:80/ HTTP/1.1\r\nHost: a.test\r\n"
	    "Connection: x, close\r\nContent-Length: 10\r\n\r\n";
	size_t			 i, len = sizeof(whole) - 1;
	char			*copy;

	CHECK_INT(parse(whole, len), 0);
	for (i = 0; i < len; i++) {
		CHECK((copy = malloc(i + 1)) != NULL);
		memcpy(copy, whole, i);
		CHECK_INT(parse(copy, i), -1);
		free(copy);
	}
	for (i = 0; i < len; i++) {
		CHECK((copy = malloc(len - 1)) != NULL);
		memcpy(copy, whole, i);
		memcpy(copy + i, whole + i + 1, len - i - 1);
		if (parse(copy, len - 1) == -1)
			CHECK(error.he_reason != NULL);
		free(copy);
	}
}

TEST(empty_line_within)
{
	start(REQUEST "\r\nX: y\r\n\r\n");
	CHECK_INT(parse(buf, buflen), -1);
	CHECK_STR(error.he_reason, "empty line within the head");
}

TEST(find)
{
	const struct h1_field	*hf;

	start(REQUEST "Cookie: a\r\ncookie: b\r\n\r\n");
	CHECK_INT(parse(buf, buflen), 0);
	CHECK((hf = h1_find(&head, "COOKIE")) != NULL);
	CHECK_MEM(hf->hf_value, hf->hf_vlen, "a", 1);
	CHECK(h1_find(&head, "cook") == NULL);
}

static struct h1_out_request
simple_request(void)
{
	return (struct h1_out_request){ .or_method = str("GET"),
	    .or_target = str("/"), .or_host = "a.test" };
}

static void
check_text(const char *out, ssize_t len, const char *want)
{
	CHECK_MEM(len == -1 ? NULL : out, (size_t)len, want, strlen(want));
}

TEST(format_needs_room)
{
	struct h1_out_request	 rq = simple_request();
	struct h1_field		 hf = field("Accept", "*/*");
	char			 out[256];
	ssize_t			 len;
	size_t			 i;

	rq.or_fields = &hf;
	rq.or_nfields = 1;
	rq.or_framing = H1_LENGTH;
	rq.or_length = UINT64_MAX;
	CHECK((len = h1_format_request(out, sizeof(out), &rq)) > 0);
	check_text(out, len,
	    "GET / HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\n"
	    "Content-Length: 18446744073709551615\r\n\r\n");
	for (i = 0; i < (size_t)len; i++)
		CHECK_INT(h1_format_request(out, i, &rq), -1);
	CHECK_INT(h1_format_request(out, (size_t)len, &rq), len);
}

TEST(format_injects_nothing)
{
	static const char *const	 bad[] = { "a\r\nX: y", "a\nb", "a\rb",
	    "\x01", "b\x7f" };
	struct h1_out_request		 rq = simple_request();
	struct h1_out_response		 rs = { .os_status = 200 };
	struct h1_field			 hf;
	char				 out[256];
	size_t				 i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rq = simple_request();
		hf = field("X", bad[i]);
		CHECK(!h1_field_valid(&hf));
		rq.or_fields = &hf;
		rq.or_nfields = 1;
		CHECK_INT(h1_format_request(out, sizeof(out), &rq), -1);
		hf = field(bad[i], "x");
		CHECK(!h1_field_valid(&hf));
		CHECK_INT(h1_format_request(out, sizeof(out), &rq), -1);
		rq = simple_request();
		rq.or_method = str(bad[i]);
		CHECK_INT(h1_format_request(out, sizeof(out), &rq), -1);
		rq = simple_request();
		rq.or_target = str(bad[i]);
		CHECK_INT(h1_format_request(out, sizeof(out), &rq), -1);
		rq = simple_request();
		rq.or_host = bad[i];
		CHECK_INT(h1_format_request(out, sizeof(out), &rq), -1);
		rq = simple_request();
		rq.or_upgrade = str(bad[i]);
		CHECK_INT(h1_format_request(out, sizeof(out), &rq), -1);
		rs.os_reason = str(bad[i]);
		CHECK_INT(h1_format_response(out, sizeof(out), &rs), -1);
	}
}

TEST(format_refuses_nonsense)
{
	struct h1_out_request	 rq = simple_request();
	struct h1_out_response	 rs = { .os_status = 99 };
	struct h1_field		 hf = field("", "x");
	char			 out[256];

	rq.or_framing = H1_UNTIL_CLOSE;
	CHECK_INT(h1_format_request(out, sizeof(out), &rq), -1);
	rq = simple_request();
	rq.or_host = "";
	CHECK_INT(h1_format_request(out, sizeof(out), &rq), -1);
	rq = simple_request();
	rq.or_target = str("");
	CHECK_INT(h1_format_request(out, sizeof(out), &rq), -1);
	rq = simple_request();
	rq.or_target = str("/a b");
	CHECK_INT(h1_format_request(out, sizeof(out), &rq), -1);
	rq = simple_request();
	rq.or_fields = &hf;
	rq.or_nfields = 1;
	CHECK_INT(h1_format_request(out, sizeof(out), &rq), -1);
	CHECK_INT(h1_format_response(out, sizeof(out), &rs), -1);
	rs.os_status = 1000;
	CHECK_INT(h1_format_response(out, sizeof(out), &rs), -1);
}

/* Fields that never saw our parser are classified all the same. */
TEST(format_drops_foreign_hops)
{
	struct h1_field		 hf[] = {
		field("connection", "keep-alive"), field("te", "trailers"),
		field("transfer-encoding", "chunked"),
		field("content_length", "7"), field("host", "evil.test"),
		field("x-http-method-override", "PUT"), field("a", "b"),
		{ .hf_name = "c", .hf_nlen = 1 },
	};
	struct h1_field		 extra = field("Egress-Decision", "allow");
	struct h1_out_request	 rq = simple_request();
	char			 out[256];
	ssize_t			 len;

	rq.or_fields = hf;
	rq.or_nfields = sizeof(hf) / sizeof(hf[0]);
	rq.or_extra = &extra;
	rq.or_nextra = 1;
	rq.or_connection = H1_CONN_CLOSE;
	rq.or_override = 1;
	len = h1_format_request(out, sizeof(out), &rq);
	check_text(out, len, "GET / HTTP/1.1\r\nHost: a.test\r\n"
	    "x-http-method-override: PUT\r\na: b\r\nc: \r\n"
	    "Egress-Decision: allow\r\nConnection: close\r\n\r\n");
	CHECK(h1_is_hop_by_hop(&hf[0]) && h1_is_hop_by_hop(&hf[3]));
	CHECK(!h1_is_hop_by_hop(&hf[5]) && !h1_is_hop_by_hop(&hf[6]));
}

TEST(format_response_framing)
{
	struct h1_out_response	 rs = { .os_status = 204,
	    .os_framing = H1_CHUNKED };
	char			 out[256];
	ssize_t			 len;

	len = h1_format_response(out, sizeof(out), &rs);
	check_text(out, len, "HTTP/1.1 204 No Content\r\n\r\n");
	rs.os_status = 304;
	rs.os_framing = H1_LENGTH;
	rs.os_length = 7;
	len = h1_format_response(out, sizeof(out), &rs);
	check_text(out, len,
	    "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n");
	rs.os_status = 418;
	rs.os_framing = H1_UNTIL_CLOSE;
	rs.os_connection = H1_CONN_KEEP_ALIVE;
	len = h1_format_response(out, sizeof(out), &rs);
	check_text(out, len, "HTTP/1.1 418 \r\nConnection: close\r\n\r\n");
	rs.os_status = 200;
	rs.os_framing = H1_LENGTH;
	len = h1_format_response(out, sizeof(out), &rs);
	check_text(out, len, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n"
	    "Connection: keep-alive\r\n\r\n");
}

TEST(format_announces_trailers)
{
	struct h1_field		 hf = field("Trailer", "X-Sum");
	struct h1_out_request	 rq = simple_request();
	char			 out[256];
	ssize_t			 len;

	rq.or_fields = &hf;
	rq.or_nfields = 1;
	rq.or_framing = H1_CHUNKED;
	rq.or_te_trailers = 1;
	rq.or_connection = H1_CONN_CLOSE;
	len = h1_format_request(out, sizeof(out), &rq);
	check_text(out, len, "GET / HTTP/1.1\r\nHost: a.test\r\n"
	    "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n"
	    "TE: trailers\r\nConnection: close, TE\r\n\r\n");
	rq.or_framing = H1_LENGTH;
	rq.or_te_trailers = 0;
	len = h1_format_request(out, sizeof(out), &rq);
	check_text(out, len, "GET / HTTP/1.1\r\nHost: a.test\r\n"
	    "Content-Length: 0\r\nConnection: close\r\n\r\n");
}

static ssize_t
trailers(const char *text, struct h1_field *hf, size_t max)
{
	error.he_reason = NULL;
	return h1_parse_trailers(text, strlen(text), hf, max, &error);
}

TEST(trailers)
{
	struct h1_field	 hf[4];
	char		 out[256];
	ssize_t		 len;
	size_t		 i;

	CHECK_INT(trailers("\r\n", hf, 0), 0);
	CHECK_INT(trailers("X-Sum:1 \r\nEmpty:\r\n\r\n", hf, 4), 2);
	CHECK_MEM(hf[0].hf_name, hf[0].hf_nlen, "X-Sum", 5);
	CHECK_MEM(hf[0].hf_value, hf[0].hf_vlen, "1", 1);
	CHECK_INT(hf[0].hf_hop, 0);
	len = h1_format_trailers(out, sizeof(out), hf, 2);
	check_text(out, len, "0\r\nX-Sum: 1\r\nEmpty: \r\n\r\n");
	for (i = 0; i < (size_t)len; i++)
		CHECK_INT(h1_format_trailers(out, i, hf, 2), -1);
	len = h1_format_trailers(out, sizeof(out), NULL, 0);
	check_text(out, len, H1_CHUNK_LAST);
	CHECK_INT(trailers("A: b\r\nC: d\r\n\r\n", hf, 1), -1);
	CHECK_STR(error.he_reason, "too many trailers");
	hf[0] = field("A", "b\r\nC: d");
	CHECK_INT(h1_format_trailers(out, sizeof(out), hf, 1), -1);
}

TEST(trailer_syntax)
{
	static const char *const	 bad[] = { "", "A", "A:", "A: b\r",
	    "A: b\r\n", " A: b\r\n\r\n", "A: b\r\n c\r\n\r\n",
	    "A : b\r\n\r\n", ": b\r\n\r\n", "A: b\n\r\n",
	    "A: b\r\n\r\nC: d\r\n\r\n", "A: \x01\r\n\r\n", "\r\n\r\n",
	    "GET / HTTP/1.1\r\n\r\n" };
	struct h1_field			 hf[4];
	size_t				 i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_FOR(bad[i], trailers(bad[i], hf, 4) == -1);
		CHECK(error.he_reason != NULL);
	}
}

/* RFC 9110, 6.5.1; in any case, and as CGI would read them. */
TEST(never_trailers)
{
	static const char *const	 names[] = { "Host", "Content-Length",
	    "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade",
	    "HTTP2-Settings", "Proxy-Authorization", "Expect", "TE",
	    "Trailer", "X-HTTP-Method-Override", "content_length",
	    "Authorization", "Cookie", "Set-Cookie", "SET_COOKIE",
	    "WWW-Authenticate", "Content-Encoding", "Content-Type",
	    "Content-Range", "Cache-Control", "Pragma", "Range", "If-Match",
	    "if_none_match", "Max-Forwards", "Age", "Date", "Expires",
	    "Location", "Retry-After", "Vary", "Warning",
	    "X-Forwarded-For", "Forwarded", "X-Original-URL", "X_HOST" };
	static const char *const	 fine[] = { "ETag", "Digest", "Ranges",
	    "Cookie3", "X-Cookie", "Iffy", "Grpc-Status", "Server-Timing",
	    "Ag", "X-Forwarded", "X-Original", "Forwarded2" };
	struct h1_field			 hf[1];
	char				 text[64], out[64];
	size_t				 i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), "%s: x\r\n\r\n", names[i]);
		CHECK_FOR(names[i], trailers(text, hf, 1) == 0);
		hf[0] = field(names[i], "x");
		CHECK_INT(h1_format_trailers(out, sizeof(out), hf, 1), 5);
	}
	for (i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		snprintf(text, sizeof(text), "%s: x\r\n\r\n", fine[i]);
		CHECK_FOR(fine[i], trailers(text, hf, 1) == 1);
	}
}

TEST_MAIN("h1")
