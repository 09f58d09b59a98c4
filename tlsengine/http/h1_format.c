/* SPDX-License-Identifier: ISC */

/*
 * Writing HTTP/1 heads.  Runs in the tlsengine.  Fields come from peers, by
 * HTTP/1 or HTTP/2, so each is checked once more on its way out: this is the
 * last place where a line break in a value could be stopped.
 */

#include <string.h>

#include "h1_field.h"

/* wr_bad stays set after something too long or illegal. */
struct writer {
	char	*wr_p;
	char	*wr_end;
	int	 wr_bad;
};

static const struct {
	int		 status;
	const char	*reason;
} reasons[] = {
	{ 100, "Continue" },
	{ 101, "Switching Protocols" },
	{ 103, "Early Hints" },
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 203, "Non-Authoritative Information" },
	{ 204, "No Content" },
	{ 205, "Reset Content" },
	{ 206, "Partial Content" },
	{ 207, "Multi-Status" },
	{ 300, "Multiple Choices" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 402, "Payment Required" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 421, "Misdirected Request" },
	{ 422, "Unprocessable Content" },
	{ 425, "Too Early" },
	{ 426, "Upgrade Required" },
	{ 428, "Precondition Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 451, "Unavailable For Legal Reasons" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
};

const char *
h1_reason(int status)
{
	size_t	 i;

	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "";
}

static void
put(struct writer *wr, const void *data, size_t len)
{
	if (wr->wr_bad || (size_t)(wr->wr_end - wr->wr_p) < len) {
		wr->wr_bad = 1;
		return;
	}
	if (len > 0)
		memcpy(wr->wr_p, data, len);
	wr->wr_p += len;
}

static void
put_text(struct writer *wr, const char *text)
{
	put(wr, text, strlen(text));
}

/* Returns how many there are. */
size_t
h1_digits(char out[H1_DIGITS_MAX], uint64_t n)
{
	char	 digits[H1_DIGITS_MAX];
	size_t	 i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	memcpy(out, digits + i, sizeof(digits) - i);
	return sizeof(digits) - i;
}

static void
put_number(struct writer *wr, uint64_t n)
{
	char	 digits[H1_DIGITS_MAX];

	put(wr, digits, h1_digits(digits, n));
}

/* Append s, which must be of such bytes and not empty. */
static void
put_span(struct writer *wr, const struct h1_str *str, int what)
{
	if (str->len == 0 ||
	    h1_span(str->s, str->s + str->len, what) != str->s + str->len)
		wr->wr_bad = 1;
	else
		put(wr, str->s, str->len);
}

static void
put_value(struct writer *wr, const struct h1_str *str)
{
	if (str->len > 0 &&
	    h1_value_span(str->s, str->s + str->len) != str->s + str->len)
		wr->wr_bad = 1;
	else
		put(wr, str->s, str->len);
}

static void
put_field(struct writer *wr, const struct h1_field *hf)
{
	struct h1_str	 name = { hf->hf_name, hf->hf_nlen };
	struct h1_str	 value = { hf->hf_value, hf->hf_vlen };

	put_span(wr, &name, H1_B_TOKEN);
	put(wr, ": ", 2);
	put_value(wr, &value);
	put(wr, "\r\n", 2);
}

static void
put_fields(struct writer *wr, const struct h1_field *hf, size_t n, int with)
{
	for (; n > 0; n--, hf++)
		if (h1_is_forwarded(hf, with))
			put_field(wr, hf);
}

static void
put_framing(struct writer *wr, enum h1_framing framing, uint64_t length)
{
	switch (framing) {
	case H1_LENGTH:
		put_text(wr, "Content-Length: ");
		put_number(wr, length);
		put_text(wr, "\r\n");
		break;
	case H1_CHUNKED:
		put_text(wr, "Transfer-Encoding: chunked\r\n");
		break;
	case H1_NONE:
	case H1_UNTIL_CLOSE:
		break;
	}
}

/* RFC 9110, 10.1.4: Connection lists TE, or a proxy would pass it on. */
static void
put_connection(struct writer *wr, enum h1_connection conn,
    const struct h1_str *upgrade, int te)
{
	const char	*option = NULL;

	if (upgrade->len > 0)
		option = "Upgrade";
	else if (conn == H1_CONN_CLOSE)
		option = "close";
	else if (conn == H1_CONN_KEEP_ALIVE)
		option = "keep-alive";
	if (te)
		put_text(wr, "TE: trailers\r\n");
	if (te || option != NULL) {
		put_text(wr, "Connection: ");
		put_text(wr, option != NULL ? option : "TE");
		put_text(wr, te && option != NULL ? ", TE\r\n" : "\r\n");
	}
	if (upgrade->len > 0) {
		put_text(wr, "Upgrade: ");
		put_value(wr, upgrade);
		put_text(wr, "\r\n");
	}
}

static void
put_host(struct writer *wr, const char *name, uint16_t port)
{
	struct h1_str	 host = { name, strlen(name) };
	int		 v6 = strchr(name, ':') != NULL;

	put_text(wr, v6 ? "Host: [" : "Host: ");
	put_span(wr, &host, v6 ? H1_B_V6 : H1_B_HOST);
	if (v6)
		put_text(wr, "]");
	if (port != 0) {
		put_text(wr, ":");
		put_number(wr, port);
	}
	put_text(wr, "\r\n");
}

static ssize_t
finish(struct writer *wr, const char *start)
{
	put_text(wr, "\r\n");
	return wr->wr_bad ? -1 : wr->wr_p - start;
}

/* Only a chunked body has room for trailers to announce. */
static int
trailer_with(enum h1_framing framing)
{
	return framing == H1_CHUNKED ? H1_WITH_TRAILER : 0;
}

ssize_t
h1_format_request(char *out, size_t outsz, const struct h1_out_request *rq)
{
	struct writer	 wr = { out, out + outsz, 0 };
	int		 with = trailer_with(rq->or_framing);

	if (rq->or_framing == H1_UNTIL_CLOSE)
		return -1;
	if (rq->or_override)
		with |= H1_WITH_OVERRIDE;
	put_span(&wr, &rq->or_method, H1_B_TOKEN);
	put_text(&wr, " ");
	put_span(&wr, &rq->or_target, H1_B_TARGET);
	put_text(&wr, " HTTP/1.1\r\n");
	put_host(&wr, rq->or_host, rq->or_port);
	put_fields(&wr, rq->or_fields, rq->or_nfields, with);
	put_fields(&wr, rq->or_extra, rq->or_nextra, 0);
	if (rq->or_expect_continue)
		put_text(&wr, "Expect: 100-continue\r\n");
	put_framing(&wr, rq->or_framing, rq->or_length);
	put_connection(&wr, rq->or_connection, &rq->or_upgrade,
	    rq->or_te_trailers);
	return finish(&wr, out);
}

/* RFC 9110, 8.6 and RFC 9112, 6.1: a client would wait for that body. */
int
h1_has_no_framing(int status)
{
	return status < 200 || status == 204;
}

ssize_t
h1_format_response(char *out, size_t outsz, const struct h1_out_response *rs)
{
	struct writer		 wr = { out, out + outsz, 0 };
	enum h1_connection	 conn = rs->os_connection;
	int			 with = H1_WITH_OVERRIDE |
	    trailer_with(rs->os_framing);

	if (rs->os_status < 100 || rs->os_status > 999)
		return -1;
	put_text(&wr, "HTTP/1.1 ");
	put_number(&wr, (uint64_t)rs->os_status);
	put_text(&wr, " ");
	if (rs->os_reason.len > 0)
		put_value(&wr, &rs->os_reason);
	else
		put_text(&wr, h1_reason(rs->os_status));
	put_text(&wr, "\r\n");
	put_fields(&wr, rs->os_fields, rs->os_nfields, with);
	put_fields(&wr, rs->os_extra, rs->os_nextra, with);
	if (!h1_has_no_framing(rs->os_status)) {
		put_framing(&wr, rs->os_framing, rs->os_length);
		if (rs->os_framing == H1_UNTIL_CLOSE)
			conn = H1_CONN_CLOSE;
	}
	put_connection(&wr, conn, &rs->os_upgrade, 0);
	return finish(&wr, out);
}

ssize_t
h1_format_trailers(char *out, size_t outsz, const struct h1_field *hf,
    size_t n)
{
	struct writer	 wr = { out, out + outsz, 0 };

	put_text(&wr, "0\r\n");
	for (; n > 0; n--, hf++)
		if (h1_is_trailer(hf))
			put_field(&wr, hf);
	return finish(&wr, out);
}
