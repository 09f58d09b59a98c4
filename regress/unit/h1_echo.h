/* SPDX-License-Identifier: ISC */

/*
 * What the engine does with a head, for tests: it goes out again with the
 * same framing.  Included by tests and fuzzers of the HTTP/1 codec.
 */

#ifndef H1_ECHO_H
#define H1_ECHO_H

#include <string.h>

#include "../../common/urlpath.h"
#include "../../tlsengine/http/h1.h"

static inline enum h1_connection
h1_echo_connection(const struct h1_head *hd)
{
	return hd->hd_keep_alive ? H1_CONN_DEFAULT : H1_CONN_CLOSE;
}

struct h1_echo {
	struct h1_out_request	 rq;
	char			 host[512];
	char			 target[URLPATH_MAX];
};

/* -1 if the path has no canonical form. */
static inline int
h1_echo_out_request(const struct h1_head *hd, struct h1_echo *ec)
{
	struct h1_out_request	*rq = &ec->rq;

	memset(rq, 0, sizeof(*rq));
	rq->or_method = hd->hd_method_text;
	rq->or_target = hd->hd_target;
	if (hd->hd_form == H1_ORIGIN || hd->hd_form == H1_ABSOLUTE) {
		if (urlpath_canon(hd->hd_path.s, hd->hd_path.len, ec->target,
		    sizeof(ec->target), NULL) == -1)
			return -1;
		rq->or_target = (struct h1_str){ ec->target,
		    strlen(ec->target) };
	}
	if (hd->hd_host.len >= sizeof(ec->host))
		return -1;
	strlcpy(ec->host, "a.test", sizeof(ec->host));
	if (hd->hd_host.len > 0) {
		memcpy(ec->host, hd->hd_host.s, hd->hd_host.len);
		ec->host[hd->hd_host.len] = '\0';
	}
	rq->or_host = ec->host;
	rq->or_port = hd->hd_port;
	rq->or_fields = hd->hd_fields;
	rq->or_nfields = hd->hd_nfields;
	rq->or_framing = hd->hd_framing;
	rq->or_length = hd->hd_length;
	rq->or_upgrade = hd->hd_upgrade;
	rq->or_expect_continue = hd->hd_expect_continue;
	rq->or_te_trailers = hd->hd_te_trailers;
	return 0;
}

/* -1 also if the head does not fit. */
static inline ssize_t
h1_echo_request(const struct h1_head *hd, char *out, size_t outsz)
{
	struct h1_echo	 ec;

	if (h1_echo_out_request(hd, &ec) == -1)
		return -1;
	return h1_format_request(out, outsz, &ec.rq);
}

static inline struct h1_out_response
h1_echo_out_response(const struct h1_head *hd)
{
	return (struct h1_out_response){
		.os_status = hd->hd_status,
		.os_reason = hd->hd_reason,
		.os_fields = hd->hd_fields,
		.os_nfields = hd->hd_nfields,
		.os_framing = hd->hd_framing,
		.os_length = hd->hd_length,
		.os_connection = h1_echo_connection(hd),
		.os_upgrade = hd->hd_upgrade,
	};
}

static inline ssize_t
h1_echo_response(const struct h1_head *hd, char *out, size_t outsz)
{
	struct h1_out_response	 rs = h1_echo_out_response(hd);

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
	    (!a->hd_is_request || a->hd_te_trailers == b->hd_te_trailers) &&
	    h1_echo_same_str(a->hd_upgrade, b->hd_upgrade);
}

#endif /* H1_ECHO_H */
