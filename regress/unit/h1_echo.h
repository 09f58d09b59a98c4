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
 * What the engine does with a head, for tests: it goes out again with the
 * same framing.  Included by tests and fuzzers of the HTTP/1 codec.
 */

#ifndef H1_ECHO_H
#define H1_ECHO_H

#include <string.h>

#include "../../common/urlpath.h"
#include "../../tlsengine/h1.h"

static inline enum h1_connection
h1_echo_connection(const struct h1_head *hd)
{
	return hd->hd_keep_alive ? H1_CONN_DEFAULT : H1_CONN_CLOSE;
}

/* -1 if the path has no canonical form or the head does not fit. */
static inline ssize_t
h1_echo_request(const struct h1_head *hd, char *out, size_t outsz)
{
	struct h1_out_request	 rq = { .or_method = hd->hd_method_text };
	char			 host[512] = "a.test", target[URLPATH_MAX];

	rq.or_target = hd->hd_target;
	if (hd->hd_form == H1_ORIGIN || hd->hd_form == H1_ABSOLUTE) {
		if (urlpath_canon(hd->hd_path.s, hd->hd_path.len, target,
		    sizeof(target), NULL) == -1)
			return -1;
		rq.or_target = (struct h1_str){ target, strlen(target) };
	}
	if (hd->hd_host.len >= sizeof(host))
		return -1;
	if (hd->hd_host.len > 0) {
		memcpy(host, hd->hd_host.s, hd->hd_host.len);
		host[hd->hd_host.len] = '\0';
	}
	rq.or_host = host;
	rq.or_port = hd->hd_port;
	rq.or_fields = hd->hd_fields;
	rq.or_nfields = hd->hd_nfields;
	rq.or_framing = hd->hd_framing;
	rq.or_length = hd->hd_length;
	rq.or_upgrade = hd->hd_upgrade;
	rq.or_expect_continue = hd->hd_expect_continue;
	return h1_format_request(out, outsz, &rq);
}

static inline ssize_t
h1_echo_response(const struct h1_head *hd, char *out, size_t outsz)
{
	struct h1_out_response	 rs = {
		.os_status = hd->hd_status,
		.os_reason = hd->hd_reason,
		.os_fields = hd->hd_fields,
		.os_nfields = hd->hd_nfields,
		.os_framing = hd->hd_framing,
		.os_length = hd->hd_length,
		.os_connection = h1_echo_connection(hd),
		.os_upgrade = hd->hd_upgrade,
	};

	return h1_format_response(out, outsz, &rs);
}

static inline int
h1_echo_same_str(struct h1_str a, struct h1_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.s, b.s, a.len) == 0);
}

/* Whether two heads mean the same message to the same host. */
static inline int
h1_echo_same(const struct h1_head *a, const struct h1_head *b)
{
	return a->hd_method == b->hd_method && a->hd_status == b->hd_status &&
	    h1_echo_same_str(a->hd_method_text, b->hd_method_text) &&
	    (a->hd_host.s == NULL ||
	    h1_echo_same_str(a->hd_host, b->hd_host)) &&
	    a->hd_port == b->hd_port && a->hd_framing == b->hd_framing &&
	    (a->hd_framing != H1_LENGTH || a->hd_length == b->hd_length) &&
	    a->hd_expect_continue == b->hd_expect_continue &&
	    h1_echo_same_str(a->hd_upgrade, b->hd_upgrade);
}

#endif /* H1_ECHO_H */
