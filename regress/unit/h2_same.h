/* SPDX-License-Identifier: ISC */

/*
 * Heads of HTTP/2 have a text as of HTTP/1, which the daemon does not read
 * again: fields are kept as they come.  Here the text is read, and must mean
 * the same to the byte.  Included by tests and fuzzers.
 */

#ifndef H2_SAME_H
#define H2_SAME_H

#include <string.h>

#include "../../tlsengine/http/h2_head.h"

/* Both point to the same text. */
static inline const char *
h2_differs_fields(const struct h1_field *a, const struct h1_field *b, size_t n)
{
	for (; n > 0; n--, a++, b++) {
		if (a->hf_name != b->hf_name || a->hf_nlen != b->hf_nlen)
			return "a name";
		if (a->hf_value != b->hf_value || a->hf_vlen != b->hf_vlen)
			return "a value";
		if (a->hf_class != b->hf_class || a->hf_hop != b->hf_hop)
			return "the class of a field";
	}
	return NULL;
}

/* Parsers clear all before the fields, so that bytes can be compared. */
static inline const char *
h2_differs_heads(const struct h1_head *a, const struct h1_head *b)
{
	if (memcmp(a, b, offsetof(struct h1_head, hd_nfields)) != 0)
		return "what it means";
	if (a->hd_nfields != b->hd_nfields)
		return "the number of fields";
	return h2_differs_fields(a->hd_fields, b->hd_fields, a->hd_nfields);
}

/* Of what HTTP/1 accepts. */
static inline int
h2_may_refuse(const char *reason)
{
	return strcmp(reason, "CONNECT with a body") == 0 ||
	    strcmp(reason, "Content-Length without a body") == 0;
}

/* Whether it was refused for one of its fields, before the text was whole. */
static inline int
h2_is_cut(const struct h2_head *hh)
{
	return hh->hh_len < 4 ||
	    memcmp(hh->hh_buf + hh->hh_len - 4, "\r\n\r\n", 4) != 0;
}

/*
 * What the two ways disagree about, or NULL.  n is what h2_head_request() or
 * h2_head_response() has returned, with this head or error.
 */
static inline const char *
h2_differs(const struct h2_head *hh, ssize_t n, enum h1_method method,
    int upgrade, const struct h1_head *hd, const struct h1_error *he)
{
	static struct h1_head	 want;
	struct h1_error		 why = { 0, NULL };
	int			 r;

	if (h2_is_cut(hh))
		return n == -1 ? NULL : "where the text ends";
	if (hh->hh_kind == H2_REQUEST)
		r = h1_parse_request(hh->hh_buf, hh->hh_len, &want, &why);
	else
		r = h1_parse_response(hh->hh_buf, hh->hh_len, method, upgrade,
		    &want, &why);
	if (r == -1)
		return n == -1 && he->he_status == why.he_status &&
		    strcmp(he->he_reason, why.he_reason) == 0 ? NULL :
		    why.he_reason;
	if (n == -1)
		return h2_may_refuse(he->he_reason) ? NULL : he->he_reason;
	return h2_differs_heads(hd, &want);
}

#endif /* H2_SAME_H */
