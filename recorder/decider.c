/* SPDX-License-Identifier: ISC */


/*
 * The recorder runs this: what policyd says about deciders that failed.  What
 * the question was about, an agent has chosen, and secrets in it are redacted
 * as in any record.
 */

#include <string.h>

#include "recorder.h"

static void
put_text(struct jsonw *w, const char *key, const char *text)
{
	jsonw_key(w, key);
	jsonw_str(w, *text != '\0' ? text : NULL);
}

static void
put_request(struct jsonw *w, const struct msg_record_decider *md)
{
	const struct redacted	 path = redact_path(
	    redact_of(md->session, ""), md->path, strlen(md->path));

	jsonw_key(w, "request");
	jsonw_object(w);
	put_text(w, "host", md->host);
	jsonw_key(w, "port");
	jsonw_uint(w, md->port);
	put_text(w, "scheme", url_scheme_name(md->scheme));
	put_text(w, "method", md->method);
	jsonw_key(w, "path");
	if (path.re_len > 0)
		jsonw_string(w, path.re_text, path.re_len);
	else
		jsonw_null(w);
	jsonw_end(w);
}

/* The decider's member, as in final records, with its failure. */
static void
put_decider(struct jsonw *w, const struct msg_record_decider *md)
{
	jsonw_key(w, "decider");
	jsonw_object(w);
	put_text(w, "name", md->decider);
	jsonw_key(w, "latency_ms");
	jsonw_uint(w, md->waited_ms);
	put_text(w, "detail", md->detail);
	jsonw_end(w);
}

int
recorder_policyd_record_decider(struct ipc *ip, const union msg *m)
{
	const struct msg_record_decider	*md = &m->record_decider;
	struct jsonw			*w;

	if (md->scheme >= URL_SCHEME_MAX)
		return ipc_bad(ip, "scheme %u", md->scheme);
	if (*md->session == '\0' || *md->decider == '\0')
		return ipc_bad(ip, "record about a decider without a name");
	w = chain_begin(RECORD_DECIDER_FAILURE, md->at, md->session, 0);
	if (w == NULL)
		return 0;
	put_request(w, md);
	put_text(w, "reason", md->reason);
	put_decider(w, md);
	chain_end();
	return 0;
}
