/* SPDX-License-Identifier: ISC */

/*
 * HTTP/2 heads, spelt as HTTP/1; see h2_head.h.  Runs in the tlsengine, on the
 * fields of hostile agents and hostile origins, of which HPACK has checked
 * nothing.  A name or value that held a line break would be two lines to the
 * parser, so each is checked before it is written; what was found is noted
 * with the entry of the table that it came from, and not looked for again.
 */

#include <string.h>

#include "h1_field.h"
#include "h2_head.h"

#define STATUS_AT	(sizeof("HTTP/1.1 ") - 1)
#define MIN(a, b)	((a) < (b) ? (a) : (b))

#define PSEUDO(s, kind)	{ s, sizeof(s) - 1, kind }
static const struct {
	const char	*ps_name;
	size_t		 ps_len;
	enum h2_kind	 ps_kind;
} pseudos[H2_P_COUNT] = {
	[H2_P_METHOD] = PSEUDO(":method", H2_REQUEST),
	[H2_P_SCHEME] = PSEUDO(":scheme", H2_REQUEST),
	[H2_P_AUTHORITY] = PSEUDO(":authority", H2_REQUEST),
	[H2_P_PATH] = PSEUDO(":path", H2_REQUEST),
	[H2_P_PROTOCOL] = PSEUDO(":protocol", H2_REQUEST),
	[H2_P_STATUS] = PSEUDO(":status", H2_RESPONSE),
};
#undef PSEUDO

static int
refuse(struct h2_head *hh, int status, const char *reason)
{
	hh->hh_error.he_status = status;
	hh->hh_error.he_reason = reason;
	return -1;
}

static int
put(struct h2_head *hh, const char *text, size_t len)
{
	if (hh->hh_tail - hh->hh_len < len)
		return refuse(hh, 431, "head too long");
	memcpy(hh->hh_buf + hh->hh_len, text, len);
	hh->hh_len += len;
	return 0;
}

static int
put_text(struct h2_head *hh, const char *text)
{
	return put(hh, text, strlen(text));
}

static int
put_str(struct h2_head *hh, const struct h1_str *str)
{
	return put(hh, str->s, str->len);
}

static int
is_word(const struct h1_str *str, const char *word)
{
	return str->len == strlen(word) && memcmp(str->s, word, str->len) == 0;
}

void
h2_head_begin(struct h2_head *hh, enum h2_kind kind, char *buf, size_t size)
{
	size_t	 max = kind == H2_TRAILERS ? H1_TRAILER_MAX : H1_HEAD_MAX;

	memset(hh, 0, offsetof(struct h2_head, hh_fields));
	hh->hh_kind = kind;
	hh->hh_buf = buf;
	hh->hh_size = hh->hh_tail = MIN(size, max);
	hh->hh_begun = kind == H2_TRAILERS;
}

/* Append a line; their number is limited, so that joining cookies is cheap. */
static int
put_line(struct h2_head *hh, int class, const char *name, size_t nlen,
    const char *value, size_t vlen)
{
	struct h1_field	*hf = &hh->hh_fields[hh->hh_nfields];
	size_t		 len = nlen + strlen(": ") + vlen + strlen("\r\n");
	char		*p = hh->hh_buf + hh->hh_len;

	if (hh->hh_nfields == H1_FIELDS_MAX)
		return refuse(hh, 431, "too many fields");
	if (len > H1_LINE_MAX)
		return refuse(hh, 431, "field line too long");
	if (len > hh->hh_tail - hh->hh_len)
		return refuse(hh, 431, "head too long");
	memcpy(p, name, nlen);
	memcpy(p + nlen, ": ", 2);
	if (vlen > 0)
		memcpy(p + nlen + 2, value, vlen);
	memcpy(p + nlen + 2 + vlen, "\r\n", 2);
	*hf = (struct h1_field){ p, nlen, p + nlen + 2, vlen, class, 0 };
	hh->hh_len += len;
	hh->hh_nfields++;
	return 0;
}

/* Add a field of our own making. */
static int
put_own(struct h2_head *hh, const char *name, const char *value)
{
	return put_line(hh, h1_classify(name, strlen(name)), name,
	    strlen(name), value, strlen(value));
}

static int
put_upgrade(struct h2_head *hh)
{
	return put_own(hh, "Connection", "Upgrade") == -1 ? -1 :
	    put_own(hh, "Upgrade", "websocket");
}

/* ---- the start line ------------------------------------------------------ */

/* The one of that name, or H2_P_COUNT. */
static int
find_pseudo(const struct hpack_field *hp)
{
	int	 i;

	if (*hp->hp_name_memo != 0)
		return *hp->hp_name_memo - 1;
	for (i = 0; i < H2_P_COUNT; i++)
		if (pseudos[i].ps_len == hp->hp_nlen &&
		    memcmp(pseudos[i].ps_name, hp->hp_name, hp->hp_nlen) == 0)
			break;
	*hp->hp_name_memo = i + 1;
	return i;
}

static int
check_pseudo(struct h2_head *hh, int i, const struct hpack_field *hp)
{
	const char	*value = hp->hp_value;

	if (i == H2_P_COUNT || pseudos[i].ps_kind != hh->hh_kind)
		return refuse(hh, 400, "unknown pseudo-header");
	if (hh->hh_begun)
		return refuse(hh, 400, "pseudo-header after a field");
	if (hh->hh_pseudo[i].s != NULL)
		return refuse(hh, 400, "pseudo-header twice");
	if (hp->hp_vlen == 0)
		return refuse(hh, 400, "empty pseudo-header");
	if (i == H2_P_PATH && hp->hp_vlen > H1_TARGET_MAX)
		return refuse(hh, 414, "request target too long");
	if (*hp->hp_value_memo == 0 && h1_span(value, value + hp->hp_vlen,
	    H1_B_TARGET) != value + hp->hp_vlen)
		return refuse(hh, 400, "illegal character in pseudo-header");
	*hp->hp_value_memo = 1;
	return 0;
}

/*
 * Pseudo fields come in any order, so they wait at the far end of the buffer
 * until the first other field shows that there are no more.
 */
static int
pseudo_field(struct h2_head *hh, const struct hpack_field *hp)
{
	int	 i = find_pseudo(hp);

	if (check_pseudo(hh, i, hp) == -1)
		return -1;
	if (hp->hp_vlen > hh->hh_tail)
		return refuse(hh, 431, "head too long");
	hh->hh_tail -= hp->hp_vlen;
	memcpy(hh->hh_buf + hh->hh_tail, hp->hp_value, hp->hp_vlen);
	hh->hh_pseudo[i] = (struct h1_str){ hh->hh_buf + hh->hh_tail,
	    hp->hp_vlen };
	return 0;
}

/* RFC 9113, 8.5: the tunnel, for the caller to refuse. */
static int
check_connect(struct h2_head *hh)
{
	const struct h1_str	*ps = hh->hh_pseudo;

	if (ps[H2_P_SCHEME].s != NULL || ps[H2_P_PATH].s != NULL)
		return refuse(hh, 400, "CONNECT with :scheme or :path");
	if (ps[H2_P_AUTHORITY].s == NULL)
		return refuse(hh, 400, "CONNECT without :authority");
	return 0;
}

/* RFC 9113, 8.3.1; RFC 8441, 4. */
static int
check_request(struct h2_head *hh)
{
	const struct h1_str	*ps = hh->hh_pseudo;
	int			 connect;

	if (ps[H2_P_METHOD].s == NULL)
		return refuse(hh, 400, "no :method");
	connect = is_word(&ps[H2_P_METHOD], "CONNECT");
	if (ps[H2_P_PROTOCOL].s != NULL) {
		if (!connect)
			return refuse(hh, 400, ":protocol without CONNECT");
		if (!is_word(&ps[H2_P_PROTOCOL], "websocket"))
			return refuse(hh, 501, "unknown :protocol");
		hh->hh_extended = 1;
	} else if (connect)
		return check_connect(hh);
	if (ps[H2_P_SCHEME].s == NULL)
		return refuse(hh, 400, "no :scheme");
	if (is_word(&ps[H2_P_SCHEME], "https"))
		hh->hh_scheme = "https";
	else if (is_word(&ps[H2_P_SCHEME], "http"))
		hh->hh_scheme = "http";
	else
		return refuse(hh, 400, "unknown :scheme");
	if (ps[H2_P_PATH].s == NULL)
		return refuse(hh, 400, "no :path");
	if (ps[H2_P_PATH].s[0] != '/' && !is_word(&ps[H2_P_PATH], "*"))
		return refuse(hh, 400, ":path is no path");
	return 0;
}

/* The authority's copy at the far end will be overwritten. */
static int
put_host(struct h2_head *hh)
{
	struct h1_str	*host = &hh->hh_pseudo[H2_P_AUTHORITY];

	if (put_line(hh, H1_F_HOST, "Host", 4, host->s, host->len) == -1)
		return -1;
	host->s = hh->hh_fields[hh->hh_nfields - 1].hf_value;
	return 0;
}

static int
begin_request(struct h2_head *hh)
{
	static const struct h1_str	 get = { "GET", 3 };
	const struct h1_str		*ps = hh->hh_pseudo;

	if (check_request(hh) == -1 ||
	    put_str(hh, hh->hh_extended ? &get : &ps[H2_P_METHOD]) == -1 ||
	    put_text(hh, " ") == -1 ||
	    put_str(hh, &ps[ps[H2_P_PATH].s != NULL ? H2_P_PATH :
	    H2_P_AUTHORITY]) == -1 ||
	    put_text(hh, " HTTP/1.1\r\n") == -1)
		return -1;
	if (ps[H2_P_AUTHORITY].s != NULL && put_host(hh) == -1)
		return -1;
	return hh->hh_extended ? put_upgrade(hh) : 0;
}

static int
begin_response(struct h2_head *hh)
{
	const struct h1_str	*status = &hh->hh_pseudo[H2_P_STATUS];

	if (status->s == NULL)
		return refuse(hh, 502, "no :status");
	if (status->len != 3)
		return refuse(hh, 502, "malformed status code");
	if (is_word(status, "101"))
		return refuse(hh, 502, "status 101 in HTTP/2");
	if (put_text(hh, "HTTP/1.1 ") == -1 || put_str(hh, status) == -1)
		return -1;
	return put_text(hh, " \r\n");
}

static int
begin_text(struct h2_head *hh)
{
	int	 r;

	r = hh->hh_kind == H2_REQUEST ? begin_request(hh) : begin_response(hh);
	hh->hh_begun = 1;
	hh->hh_tail = hh->hh_size;
	return r;
}

/* ---- fields -------------------------------------------------------------- */

/* The class of the name, or -1 if it is illegal. */
static int
check_name(struct h2_head *hh, const struct hpack_field *hp)
{
	const char	*name = hp->hp_name;
	size_t		 nlen = hp->hp_nlen;

	if (*hp->hp_name_memo != H1_F_UNKNOWN)
		return *hp->hp_name_memo;
	if (nlen == 0)
		return refuse(hh, 400, "empty field name");
	if (h1_span(name, name + nlen, H1_B_LOWER) != name + nlen)
		return refuse(hh, 400, "illegal character in field name");
	return *hp->hp_name_memo = h1_classify(name, nlen);
}

static int
check_value(struct h2_head *hh, const struct hpack_field *hp)
{
	const char	*value = hp->hp_value;
	size_t		 vlen = hp->hp_vlen;

	if (vlen == 0)
		return 0;
	if (*hp->hp_value_memo == 0 &&
	    h1_value_span(value, value + vlen) != value + vlen)
		return refuse(hh, 400, "control character in field");
	*hp->hp_value_memo = 1;
	/* Blanks cost a request its life; trim() drops those of origins. */
	if (hh->hh_kind == H2_REQUEST &&
	    (h1_is_blank(value[0]) || h1_is_blank(value[vlen - 1])))
		return refuse(hh, 400, "space around field value");
	return 0;
}

/* Move the fields behind the Cookie to make room. */
static void
make_way(struct h2_head *hh, char *p, size_t len)
{
	size_t	 i;

	memmove(p + len, p, hh->hh_buf + hh->hh_len - p);
	hh->hh_len += len;
	for (i = hh->hh_cookie; i < hh->hh_nfields; i++) {
		hh->hh_fields[i].hf_name += len;
		hh->hh_fields[i].hf_value += len;
	}
}

/* RFC 9113, 8.2.3: crumbs of one Cookie, usually one after the other. */
static int
put_cookie(struct h2_head *hh, const char *value, size_t vlen)
{
	struct h1_field	*hf;
	size_t		 len = strlen("; ") + vlen;
	char		*p;

	if (vlen == 0)
		return 0;
	if (hh->hh_cookie == 0) {
		if (put_line(hh, H1_F_ORDINARY, "cookie", 6, value,
		    vlen) == -1)
			return -1;
		hh->hh_cookie = hh->hh_nfields;
		return 0;
	}
	hf = &hh->hh_fields[hh->hh_cookie - 1];
	if (strlen("cookie: ") + hf->hf_vlen + len + 2 > H1_LINE_MAX)
		return refuse(hh, 431, "field line too long");
	if (len > hh->hh_tail - hh->hh_len)
		return refuse(hh, 431, "head too long");
	p = hh->hh_buf + (hf->hf_value + hf->hf_vlen - hh->hh_buf);
	make_way(hh, p, len);
	memcpy(p, "; ", 2);
	memcpy(p + 2, value, vlen);
	hf->hf_vlen += len;
	return 0;
}

/* Two names for one host must be one name, as in an absolute target. */
static int
host_field(struct h2_head *hh, const char *value, size_t vlen)
{
	const struct h1_str	*host = &hh->hh_pseudo[H2_P_AUTHORITY];

	if (hh->hh_host)
		return refuse(hh, 400, "more than one Host");
	hh->hh_host = 1;
	if (host->s == NULL)
		return put_line(hh, H1_F_HOST, "host", 4, value, vlen);
	if (host->len != vlen || strncasecmp(host->s, value, vlen) != 0)
		return refuse(hh, 421, ":authority and Host differ");
	return 0;
}

/* Proxy-Connection is the only Proxy-* field about the connection. */
static int
is_connection_specific(enum h1_class class, const char *name, size_t nlen)
{
	switch (class) {
	case H1_F_CONNECTION:
	case H1_F_CODING:
	case H1_F_UPGRADE:
		return 1;
	case H1_F_HOP:
		return nlen < 6 || memcmp(name, "proxy-", 6) != 0 ||
		    h1_equal(name, nlen, "proxy-connection");
	default:
		return 0;
	}
}

/* Strip blanks like HTTP/1; requests never have any here. */
static void
trim(struct h1_field *hf)
{
	while (hf->hf_vlen > 0 && h1_is_blank(hf->hf_value[0])) {
		hf->hf_value++;
		hf->hf_vlen--;
	}
	while (hf->hf_vlen > 0 && h1_is_blank(hf->hf_value[hf->hf_vlen - 1]))
		hf->hf_vlen--;
}

/* Checks of a field that only HTTP/2 has. */
static int
check_class(struct h2_head *hh, int class, const struct hpack_field *hp)
{
	if (is_connection_specific(class, hp->hp_name, hp->hp_nlen))
		return refuse(hh, 400, "connection-specific field");
	if (class == H1_F_TE &&
	    !h1_equal(hp->hp_value, hp->hp_vlen, "trailers"))
		return refuse(hh, 400, "TE other than trailers");
	if (class == H1_F_LENGTH)
		hh->hh_length = 1;
	return 0;
}

int
h2_head_field(struct h2_head *hh, const struct hpack_field *hp)
{
	const char	*name = hp->hp_name, *value = hp->hp_value;
	size_t		 nlen = hp->hp_nlen, vlen = hp->hp_vlen;
	int		 class;

	if (hh->hh_error.he_reason != NULL)
		return -1;
	if (nlen > 0 && name[0] == ':')
		return pseudo_field(hh, hp);
	if ((class = check_name(hh, hp)) == -1 || check_value(hh, hp) == -1 ||
	    (!hh->hh_begun && begin_text(hh) == -1) ||
	    (class != H1_F_ORDINARY && check_class(hh, class, hp) == -1))
		return -1;
	if (hh->hh_kind == H2_REQUEST) {
		if (class == H1_F_HOST)
			return host_field(hh, value, vlen);
		if (nlen == 6 && memcmp(name, "cookie", 6) == 0)
			return put_cookie(hh, value, vlen);
	}
	if (put_line(hh, class, name, nlen, value, vlen) == -1)
		return -1;
	if (hh->hh_kind == H2_RESPONSE)
		trim(&hh->hh_fields[hh->hh_nfields - 1]);
	return 0;
}

/* ---- the end ------------------------------------------------------------- */

static int
frame_request(struct h2_head *hh, int end_stream)
{
	if (hh->hh_error.he_reason != NULL ||
	    (!hh->hh_begun && begin_text(hh) == -1))
		return -1;
	/* A tunnel has no body, and a CONNECT no scheme. */
	if (!end_stream && !hh->hh_length && !hh->hh_extended &&
	    hh->hh_scheme != NULL &&
	    put_own(hh, "Transfer-Encoding", "chunked") == -1)
		return -1;
	return put_text(hh, "\r\n");
}

/* A declared length must be 0 if the stream has ended. */
static int
check_length(struct h2_head *hh, int end_stream, const struct h1_head *hd)
{
	if (end_stream && hd->hd_framing == H1_LENGTH && hd->hd_length > 0)
		return refuse(hh, 400, "Content-Length without a body");
	return 0;
}

static int
parse_request(struct h2_head *hh, int end_stream, struct h1_head *hd)
{
	if (frame_request(hh, end_stream) == -1 ||
	    h1_take_request(hh->hh_buf, hh->hh_len, hh->hh_fields,
	    hh->hh_nfields, hd, &hh->hh_error) == -1)
		return -1;
	if (hh->hh_extended &&
	    (hd->hd_upgrade.s == NULL || hd->hd_framing != H1_NONE))
		return refuse(hh, 400, "CONNECT with a body");
	return check_length(hh, end_stream, hd);
}

ssize_t
h2_head_request(struct h2_head *hh, int end_stream, struct h1_head *hd,
    struct h1_error *err)
{
	if (parse_request(hh, end_stream, hd) == -1) {
		*err = hh->hh_error;
		return -1;
	}
	return (ssize_t)hh->hh_len;
}

/* Whatever such an answer says of its length, no body comes with it. */
static int
has_no_body(const char *status, enum h1_method method)
{
	return method == H1_HEAD || status[0] == '1' ||
	    memcmp(status, "204", 3) == 0 || memcmp(status, "304", 3) == 0;
}

/* The framing field that HTTP/1 would have. */
static int
put_framing(struct h2_head *hh, int end_stream, enum h1_method method,
    int upgrade)
{
	char	*status = hh->hh_buf + STATUS_AT;

	if (upgrade && status[0] == '2') {
		memcpy(status, "101", 3);
		return put_upgrade(hh);
	}
	if (status[0] == '1' && end_stream)
		return refuse(hh, 502, "interim response and no other");
	if (hh->hh_length || has_no_body(status, method))
		return 0;
	return end_stream ? put_own(hh, "Content-Length", "0") :
	    put_own(hh, "Transfer-Encoding", "chunked");
}

static int
frame_response(struct h2_head *hh, int end_stream, enum h1_method method,
    int upgrade)
{
	if (hh->hh_error.he_reason != NULL ||
	    (!hh->hh_begun && begin_text(hh) == -1) ||
	    put_framing(hh, end_stream, method, upgrade) == -1)
		return -1;
	return put_text(hh, "\r\n");
}

ssize_t
h2_head_response(struct h2_head *hh, int end_stream, enum h1_method method,
    int upgrade, struct h1_head *hd, struct h1_error *err)
{
	if (frame_response(hh, end_stream, method, upgrade) == -1 ||
	    h1_take_response(hh->hh_buf, hh->hh_len, hh->hh_fields,
	    hh->hh_nfields, method, upgrade, hd, &hh->hh_error) == -1 ||
	    check_length(hh, end_stream, hd) == -1) {
		*err = hh->hh_error;
		err->he_status = 502;
		return -1;
	}
	return (ssize_t)hh->hh_len;
}

ssize_t
h2_head_trailers(struct h2_head *hh, struct h1_field *fields, size_t max,
    struct h1_error *err)
{
	if (hh->hh_error.he_reason == NULL && put_text(hh, "\r\n") == 0)
		return h1_parse_trailers(hh->hh_buf, hh->hh_len, fields, max,
		    err);
	*err = hh->hh_error;
	return -1;
}
