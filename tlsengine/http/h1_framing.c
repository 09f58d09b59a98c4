/* SPDX-License-Identifier: ISC */

/*
 * Where an HTTP/1 message ends and whether another may follow (RFC 9112, 6.3
 * and 9.3).  Runs in the tlsengine, on heads of hostile agents and hostile
 * origins.  Request smuggling is two readers who answer this differently, so
 * every shape that has more than one answer is refused.
 */

#include <string.h>

#include "h1_field.h"

/* The next element of a list without blanks around it; s is NULL at the end. */
static struct h1_str
list_next(struct h1_str *rest)
{
	struct h1_str	 item;
	const char	*comma;

	do {
		if (rest->len == 0)
			return (struct h1_str){ NULL, 0 };
		item = *rest;
		if ((comma = memchr(item.s, ',', item.len)) != NULL)
			item.len = (size_t)(comma - item.s);
		rest->s += item.len;
		rest->len -= item.len;
		if (comma != NULL) {
			rest->s++;
			rest->len--;
		}
		while (item.len > 0 && (*item.s == ' ' || *item.s == '\t')) {
			item.s++;
			item.len--;
		}
		while (item.len > 0 && (item.s[item.len - 1] == ' ' ||
		    item.s[item.len - 1] == '\t'))
			item.len--;
	} while (item.len == 0);
	return item;
}

/* Options are whole words: `notupgrade' upgrades nothing. */
int
h1_parse_connection(struct h1_parser *pa, const struct h1_field *hf)
{
	struct h1_str	 item, rest = { hf->hf_value, hf->hf_vlen };

	while ((item = list_next(&rest)).s != NULL) {
		if (h1_span(item.s, item.s + item.len, H1_B_TOKEN) !=
		    item.s + item.len)
			return h1_refuse(pa, 400, "malformed Connection");
		if (++pa->pa_noptions > H1_CONNECTION_MAX)
			return h1_refuse(pa, 400,
			    "too many options in Connection");
		if (h1_equal(item.s, item.len, "close"))
			pa->pa_close = 1;
		else if (h1_equal(item.s, item.len, "keep-alive"))
			pa->pa_keep_alive = 1;
		else if (h1_equal(item.s, item.len, "upgrade"))
			pa->pa_upgrade = 1;
		else
			pa->pa_listed = 1;
	}
	return 0;
}

/* TE is only a wish: unknown codings in it are no error. */
void
h1_parse_te(struct h1_parser *pa, const struct h1_field *hf)
{
	struct h1_str	 item, rest = { hf->hf_value, hf->hf_vlen };

	if (pa->pa_head->hd_minor == 0)
		return;
	while ((item = list_next(&rest)).s != NULL)
		if (h1_equal(item.s, item.len, "trailers"))
			pa->pa_head->hd_te_trailers = 1;
}

static void
mark_fields(struct h1_head *hd, const struct h1_str *name)
{
	struct h1_field	*hf;
	size_t		 i;

	for (i = 0; i < hd->hd_nfields; i++) {
		hf = &hd->hd_fields[i];
		if (hf->hf_nlen == name->len &&
		    strncasecmp(hf->hf_name, name->s, name->len) == 0)
			hf->hf_hop = 1;
	}
}

static void
mark_listed(struct h1_parser *pa)
{
	const struct h1_field	*hf;
	struct h1_str		 item, rest;
	size_t			 i;

	for (i = 0; i < pa->pa_head->hd_nfields; i++) {
		hf = &pa->pa_head->hd_fields[i];
		if (h1_class(hf) != H1_F_CONNECTION)
			continue;
		rest = (struct h1_str){ hf->hf_value, hf->hf_vlen };
		while ((item = list_next(&rest)).s != NULL)
			mark_fields(pa->pa_head, &item);
	}
}

static void
set_keep_alive(struct h1_parser *pa)
{
	if (pa->pa_listed)
		mark_listed(pa);
	pa->pa_head->hd_keep_alive = !pa->pa_close &&
	    (pa->pa_head->hd_minor == 1 || pa->pa_keep_alive);
}

/* Digits and nothing else: no sign, no 0x, no list of equal lengths. */
static int
parse_length(struct h1_parser *pa, const struct h1_field *hf)
{
	const char	*p = hf->hf_value, *end = p + hf->hf_vlen;
	uint64_t	 length = 0, digit;

	if (p == end || h1_span(p, end, H1_B_DIGIT) != end)
		return h1_refuse(pa, 400, "Content-Length is not a number");
	for (; p < end; p++) {
		digit = (uint64_t)(*p - '0');
		if (length > ((uint64_t)H1_LENGTH_MAX - digit) / 10)
			return h1_refuse(pa, 400, "Content-Length too large");
		length = length * 10 + digit;
	}
	pa->pa_head->hd_has_length = 1;
	pa->pa_head->hd_length = length;
	return 0;
}

/*
 * Only `chunked' alone will do.  With other codings before it the sender is
 * merely asking for more than we do (501); anything else has no certain end
 * (400).
 */
static int
parse_coding(struct h1_parser *pa, const struct h1_field *hf)
{
	struct h1_str	 item, rest = { hf->hf_value, hf->hf_vlen };
	int		 n = 0, nchunked = 0, last = 0;

	if (h1_equal(hf->hf_value, hf->hf_vlen, "chunked"))
		return 0;
	while ((item = list_next(&rest)).s != NULL) {
		n++;
		last = h1_equal(item.s, item.len, "chunked");
		nchunked += last;
	}
	if (n > 1 && last && nchunked == 1)
		return h1_refuse(pa, 501, "transfer coding before chunked");
	return h1_refuse(pa, 400, "Transfer-Encoding is not chunked");
}

static int
parse_framing(struct h1_parser *pa)
{
	const struct h1_field	*length = pa->pa_sole[H1_F_LENGTH];
	const struct h1_field	*coding = pa->pa_sole[H1_F_CODING];

	if (length != NULL && coding != NULL)
		return h1_refuse(pa, 400,
		    "Content-Length and Transfer-Encoding");
	if (coding != NULL && pa->pa_head->hd_minor == 0)
		return h1_refuse(pa, 400, "Transfer-Encoding in HTTP/1.0");
	if (coding != NULL)
		return parse_coding(pa, coding);
	return length != NULL ? parse_length(pa, length) : 0;
}

int
h1_frame_request(struct h1_parser *pa)
{
	const struct h1_field	*hf = pa->pa_sole[H1_F_UPGRADE];
	struct h1_head		*hd = pa->pa_head;

	set_keep_alive(pa);
	if (parse_framing(pa) == -1)
		return -1;
	if (pa->pa_sole[H1_F_CODING] != NULL)
		hd->hd_framing = H1_CHUNKED;
	else if (hd->hd_has_length)
		hd->hd_framing = H1_LENGTH;
	if (hd->hd_method == H1_CONNECT && hd->hd_framing != H1_NONE)
		return h1_refuse(pa, 400, "CONNECT with a body");
	/* An upgrade with a body is ignored (RFC 9110, 7.8). */
	if (hf != NULL && hf->hf_vlen > 0 && pa->pa_upgrade &&
	    hd->hd_minor == 1 && hd->hd_framing != H1_CHUNKED &&
	    hd->hd_length == 0)
		hd->hd_upgrade = (struct h1_str){ hf->hf_value, hf->hf_vlen };
	return 0;
}

/* A body here would be read as the next response. */
static int
frame_interim(struct h1_parser *pa, int upgrade)
{
	const struct h1_field	*hf = pa->pa_sole[H1_F_UPGRADE];
	struct h1_head		*hd = pa->pa_head;

	if (pa->pa_sole[H1_F_CODING] != NULL || hd->hd_length > 0)
		return h1_refuse(pa, 502, "interim response with a body");
	if (hd->hd_status != 101)
		return 0;
	if (!upgrade || hd->hd_minor == 0)
		return h1_refuse(pa, 502, "upgrade that nobody asked for");
	if (hf == NULL || hf->hf_vlen == 0 || !pa->pa_upgrade)
		return h1_refuse(pa, 502, "upgrade to nothing");
	hd->hd_upgrade = (struct h1_str){ hf->hf_value, hf->hf_vlen };
	return 0;
}

int
h1_frame_response(struct h1_parser *pa, enum h1_method method, int upgrade)
{
	struct h1_head	*hd = pa->pa_head;
	int		 chunked = pa->pa_sole[H1_F_CODING] != NULL;

	set_keep_alive(pa);
	if (parse_framing(pa) == -1)
		return -1;
	if (hd->hd_status < 200)
		return frame_interim(pa, upgrade);
	if (hd->hd_status == 204) {
		/* A body is announced where none may follow: do not reuse. */
		if (chunked || hd->hd_length > 0)
			hd->hd_keep_alive = 0;
	} else if (method == H1_HEAD || hd->hd_status == 304)
		hd->hd_framing = H1_NONE;
	else if (chunked)
		hd->hd_framing = H1_CHUNKED;
	else if (hd->hd_has_length)
		hd->hd_framing = H1_LENGTH;
	else {
		hd->hd_framing = H1_UNTIL_CLOSE;
		hd->hd_keep_alive = 0;
	}
	return 0;
}
