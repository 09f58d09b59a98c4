/* SPDX-License-Identifier: ISC */

/*
 * The lines of an HTTP/1 head.  Runs in the tlsengine, on the bytes of hostile
 * agents and hostile origins.  A line is read in one pass over tables; what it
 * means for the message is h1_target.c's and h1_framing.c's.
 */

#include <string.h>

#include "h1_field.h"

static const struct {
	const char	*text;
	size_t		 len;
	enum h1_method	 method;
} methods[] = {
	{ "GET", 3, H1_GET },
	{ "POST", 4, H1_POST },
	{ "HEAD", 4, H1_HEAD },
	{ "PUT", 3, H1_PUT },
	{ "DELETE", 6, H1_DELETE },
	{ "OPTIONS", 7, H1_OPTIONS },
	{ "PATCH", 5, H1_PATCH },
	{ "TRACE", 5, H1_TRACE },
	{ "CONNECT", 7, H1_CONNECT },
};

/* Fields that must be unique: readers disagree which one counts. */
static const char *const	 twice[H1_F_NCLASSES] = {
	[H1_F_HOST] = "more than one Host",
	[H1_F_LENGTH] = "more than one Content-Length",
	[H1_F_CODING] = "more than one Transfer-Encoding",
	[H1_F_UPGRADE] = "more than one Upgrade",
	[H1_F_EXPECT] = "more than one Expect",
	[H1_F_OVERRIDE] = "more than one method override",
};

int
h1_refuse(struct h1_parser *pa, int status, const char *reason)
{
	pa->pa_err->he_status = status;
	pa->pa_err->he_reason = reason;
	return -1;
}

enum h1_method
h1_method(const char *text, size_t len)
{
	size_t	 i;

	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (methods[i].len == len &&
		    memcmp(methods[i].text, text, len) == 0)
			return methods[i].method;
	return H1_OTHER;
}

const struct h1_field *
h1_find(const struct h1_head *hd, const char *name)
{
	const struct h1_field	*hf;
	size_t			 i, nlen = strlen(name);

	for (i = 0; i < hd->hd_nfields; i++) {
		hf = &hd->hd_fields[i];
		if (hf->hf_nlen == nlen &&
		    strncasecmp(hf->hf_name, name, nlen) == 0)
			return hf;
	}
	return NULL;
}

/* The error text for a byte that is illegal in a line. */
static const char *
byte_fault(const struct h1_parser *pa, const char *p)
{
	if (p == pa->pa_end)
		return "head ends within a line";
	switch (*p) {
	case '\0':
		return "NUL in head";
	case '\n':
		return "bare LF";
	case '\r':
		return "bare CR";
	default:
		return h1_is(*p, H1_B_VALUE) ? "text after HTTP version" :
		    "control character in head";
	}
}

static int
parse_crlf(struct h1_parser *pa)
{
	const char	*p = pa->pa_p;

	if (pa->pa_end - p < 2 || p[0] != '\r' || p[1] != '\n')
		return h1_refuse(pa, 400, byte_fault(pa, p));
	pa->pa_p = p + 2;
	return 0;
}

static int
parse_space(struct h1_parser *pa, const char *p, const char *fault)
{
	if (p == pa->pa_end || *p != ' ')
		return h1_refuse(pa, 400, fault);
	pa->pa_p = p + 1;
	return 0;
}

static int
parse_version(struct h1_parser *pa)
{
	const char	*p = pa->pa_p;

	if (pa->pa_end - p < 8 || memcmp(p, "HTTP/", 5) != 0 ||
	    !h1_is(p[5], H1_B_DIGIT) || p[6] != '.' ||
	    !h1_is(p[7], H1_B_DIGIT))
		return h1_refuse(pa, 400, "malformed HTTP version");
	if (p[5] != '1' || p[7] > '1')
		return h1_refuse(pa, 505,
		    "HTTP version other than 1.0 and 1.1");
	pa->pa_head->hd_minor = p[7] - '0';
	pa->pa_p = p + 8;
	return 0;
}

static int
parse_request_line(struct h1_parser *pa)
{
	struct h1_head	*hd = pa->pa_head;
	const char	*p, *start = pa->pa_p;

	p = h1_span(start, pa->pa_end, H1_B_TOKEN);
	hd->hd_method_text = (struct h1_str){ start, (size_t)(p - start) };
	hd->hd_method = h1_method(start, (size_t)(p - start));
	if (p == start)
		return h1_refuse(pa, 400, "no method");
	if (p - start > H1_METHOD_MAX)
		return h1_refuse(pa, 501, "method too long");
	if (parse_space(pa, p, "illegal character in method") == -1)
		return -1;

	start = pa->pa_p;
	p = h1_span(start, pa->pa_end, H1_B_TARGET);
	if (p == start)
		return h1_refuse(pa, 400, "no request target");
	if (p - start > H1_TARGET_MAX)
		return h1_refuse(pa, 414, "request target too long");
	if (p < pa->pa_end && *p == '\r')
		return h1_refuse(pa, 400, "no HTTP version");
	if (parse_space(pa, p, "illegal character in request target") == -1)
		return -1;
	if (parse_version(pa) == -1 || parse_crlf(pa) == -1)
		return -1;
	return h1_parse_target(pa, start, (size_t)(p - start));
}

/* Many origins omit the space before an empty reason phrase. */
static int
parse_status_line(struct h1_parser *pa)
{
	struct h1_head	*hd = pa->pa_head;
	const char	*p;

	if (parse_version(pa) == -1 ||
	    parse_space(pa, pa->pa_p, "no space after HTTP version") == -1)
		return -1;
	p = pa->pa_p;
	if (pa->pa_end - p < 4 || p[0] < '1' || p[0] > '9' ||
	    !h1_is(p[1], H1_B_DIGIT) || !h1_is(p[2], H1_B_DIGIT) ||
	    (p[3] != ' ' && p[3] != '\r'))
		return h1_refuse(pa, 400, "malformed status code");
	hd->hd_status = (p[0] - '0') * 100 + (p[1] - '0') * 10 + p[2] - '0';
	p += p[3] == ' ' ? 4 : 3;
	pa->pa_p = h1_value_span(p, pa->pa_end);
	hd->hd_reason = (struct h1_str){ p, (size_t)(pa->pa_p - p) };
	return parse_crlf(pa);
}

static const char *
name_fault(const struct h1_parser *pa, const char *start, const char *p)
{
	if (p == pa->pa_end || *p == '\0' || *p == '\n')
		return byte_fault(pa, p);
	if (p == start && h1_is_blank(*p))
		return pa->pa_head != NULL && pa->pa_head->hd_nfields == 0 ?
		    "space before the first field" : "folded field";
	if (p == start && *p == ':')
		return "empty field name";
	if (h1_is_blank(*p))
		return "space in field name or before its colon";
	return "illegal character in field name";
}

static int
parse_line(struct h1_parser *pa, struct h1_field *hf)
{
	const char	*p, *start = pa->pa_p;

	p = h1_span(start, pa->pa_end, H1_B_TOKEN);
	if (p == start || p == pa->pa_end || *p != ':')
		return h1_refuse(pa, 400, name_fault(pa, start, p));
	hf->hf_name = start;
	hf->hf_nlen = (size_t)(p - start);
	hf->hf_class = h1_classify(hf->hf_name, hf->hf_nlen);
	hf->hf_hop = 0;

	for (p++; p < pa->pa_end && h1_is_blank(*p); p++)
		;
	hf->hf_value = p;
	pa->pa_p = p = h1_value_span(p, pa->pa_end);
	while (p > hf->hf_value && h1_is_blank(p[-1]))
		p--;
	hf->hf_vlen = (size_t)(p - hf->hf_value);
	return parse_crlf(pa);
}

/*
 * A name that means something to us is refused in the spelling that only some
 * readers take for it (see h1_classify); of those that are just dropped, both
 * spellings are.
 */
static int
note_field(struct h1_parser *pa, const struct h1_field *hf)
{
	enum h1_class	 class = hf->hf_class;
	int		 framing;

	if (class == H1_F_ORDINARY || class == H1_F_REROUTE)
		return 0;
	if (memchr(hf->hf_name, '_', hf->hf_nlen) != NULL &&
	    !h1_equal(hf->hf_name, 6, "proxy-"))
		return h1_refuse(pa, 400, "field name with an underscore for "
		    "a hyphen");
	if (class == H1_F_CONNECTION)
		return h1_parse_connection(pa, hf);
	if (class == H1_F_TE)
		h1_parse_te(pa, hf);
	framing = class == H1_F_LENGTH || class == H1_F_CODING;
	if (twice[class] != NULL && pa->pa_sole[class] != NULL &&
	    (pa->pa_head->hd_is_request || framing))
		return h1_refuse(pa, 400, twice[class]);
	pa->pa_sole[class] = hf;
	return 0;
}

static int
parse_fields(struct h1_parser *pa)
{
	struct h1_head	*hd = pa->pa_head;
	struct h1_field	*hf;

	while (pa->pa_p < pa->pa_end && *pa->pa_p != '\r') {
		if (hd->hd_nfields == H1_FIELDS_MAX)
			return h1_refuse(pa, 431, "too many fields");
		hf = &hd->hd_fields[hd->hd_nfields];
		if (parse_line(pa, hf) == -1 || note_field(pa, hf) == -1)
			return -1;
		hd->hd_nfields++;
	}
	if (parse_crlf(pa) == -1)
		return -1;
	if (pa->pa_p != pa->pa_end)
		return h1_refuse(pa, 400, "empty line within the head");
	return 0;
}

/* Fields that another parser has split already. */
static int
take_fields(struct h1_parser *pa, const struct h1_field *from, size_t n)
{
	struct h1_head	*hd = pa->pa_head;

	for (; n > 0; n--) {
		hd->hd_fields[hd->hd_nfields] = *from++;
		if (note_field(pa, &hd->hd_fields[hd->hd_nfields++]) == -1)
			return -1;
	}
	return 0;
}

/* The array of fields is left alone: clearing it would cost more than all. */
static void
parser_init(struct h1_parser *pa, const char *buf, size_t len,
    struct h1_head *hd, struct h1_error *err)
{
	memset(hd, 0, offsetof(struct h1_head, hd_fields));
	memset(pa, 0, sizeof(*pa));
	pa->pa_p = buf;
	pa->pa_end = buf + len;
	pa->pa_head = hd;
	pa->pa_err = err;
}

/* RFC 9110, 10.1.1: Expect of an HTTP/1.0 client is ignored. */
static int
check_expect(struct h1_parser *pa)
{
	const struct h1_field	*hf = pa->pa_sole[H1_F_EXPECT];
	struct h1_head		*hd = pa->pa_head;

	if (hf == NULL || hd->hd_minor == 0)
		return 0;
	if (!h1_equal(hf->hf_value, hf->hf_vlen, "100-continue"))
		return h1_refuse(pa, 417, "unknown expectation");
	hd->hd_expect_continue = hd->hd_framing == H1_CHUNKED ||
	    hd->hd_length > 0;
	return 0;
}

static int
check_override(struct h1_parser *pa)
{
	const struct h1_field	*hf = pa->pa_sole[H1_F_OVERRIDE];
	const char		*end;

	if (hf == NULL)
		return 0;
	end = hf->hf_value + hf->hf_vlen;
	if (hf->hf_vlen == 0 || hf->hf_vlen > H1_METHOD_MAX ||
	    h1_span(hf->hf_value, end, H1_B_TOKEN) != end)
		return h1_refuse(pa, 400, "method override is no method");
	pa->pa_head->hd_override = (struct h1_str){ hf->hf_value,
	    hf->hf_vlen };
	return 0;
}

static int
check_request(struct h1_parser *pa)
{
	if (h1_check_host(pa) == -1 || h1_frame_request(pa) == -1 ||
	    check_expect(pa) == -1 || check_override(pa) == -1)
		return -1;
	return 0;
}

int
h1_parse_request(const char *buf, size_t len, struct h1_head *hd,
    struct h1_error *err)
{
	struct h1_parser	 pa;

	parser_init(&pa, buf, len, hd, err);
	hd->hd_is_request = 1;
	return parse_request_line(&pa) == -1 || parse_fields(&pa) == -1 ? -1 :
	    check_request(&pa);
}

int
h1_take_request(const char *buf, size_t len, const struct h1_field *fields,
    size_t n, struct h1_head *hd, struct h1_error *err)
{
	struct h1_parser	 pa;

	parser_init(&pa, buf, len, hd, err);
	hd->hd_is_request = 1;
	return parse_request_line(&pa) == -1 ||
	    take_fields(&pa, fields, n) == -1 ? -1 : check_request(&pa);
}

ssize_t
h1_parse_trailers(const char *buf, size_t len, struct h1_field *fields,
    size_t max, struct h1_error *err)
{
	struct h1_parser	 pa = {
		.pa_p = buf, .pa_end = buf + len, .pa_err = err };
	struct h1_field		 hf;
	size_t			 n = 0;

	while (pa.pa_p < pa.pa_end && *pa.pa_p != '\r') {
		if (parse_line(&pa, &hf) == -1)
			return -1;
		if (!h1_is_trailer(&hf))
			continue;
		if (n == max)
			return h1_refuse(&pa, 431, "too many trailers");
		fields[n++] = hf;
	}
	if (parse_crlf(&pa) == -1)
		return -1;
	if (pa.pa_p != pa.pa_end)
		return h1_refuse(&pa, 400, "empty line within the trailers");
	return (ssize_t)n;
}

int
h1_parse_response(const char *buf, size_t len, enum h1_method method,
    int upgrade, struct h1_head *hd, struct h1_error *err)
{
	struct h1_parser	 pa;

	parser_init(&pa, buf, len, hd, err);
	if (parse_status_line(&pa) == 0 && parse_fields(&pa) == 0 &&
	    h1_frame_response(&pa, method, upgrade) == 0)
		return 0;
	err->he_status = 502;
	return -1;
}

int
h1_take_response(const char *buf, size_t len, const struct h1_field *fields,
    size_t n, enum h1_method method, int upgrade, struct h1_head *hd,
    struct h1_error *err)
{
	struct h1_parser	 pa;

	parser_init(&pa, buf, len, hd, err);
	if (parse_status_line(&pa) == 0 && take_fields(&pa, fields, n) == 0 &&
	    h1_frame_response(&pa, method, upgrade) == 0)
		return 0;
	err->he_status = 502;
	return -1;
}
