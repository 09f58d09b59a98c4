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
 * The recorder runs this: records about requests.  An engine opens a request
 * and tells it piece by piece; we keep what it said and write a record at each
 * station, the last one with everything.  Engines are hostile: they may open
 * no more requests than they have credit for, each piece is bounded, and when
 * one dies every request that it left open is closed as failed (promise P6).
 */

#include <sys/tree.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "log.h"
#include "recorder.h"

#define CREDIT_MAX	512	/* requests open at once, per engine */
#define CREDIT_BATCH	64	/* given back in one message */
#define BODY_MAX	65536	/* bytes of a body that we keep */
#define FIELDS_MAX	256	/* lines of a head that we write */

struct blob {
	char		*bl_data;
	size_t		 bl_len;
};

struct request {
	RB_ENTRY(request)	 rq_entry;
	uint64_t		 rq_id;		/* the engine's number */
	uint64_t		 rq_started;
	uint8_t			 rq_scheme;
	uint8_t			 rq_protocol;
	uint16_t		 rq_port;
	bool			 rq_allowed;
	uint8_t			 rq_rule_kind;
	uint32_t		 rq_rule;
	uint16_t		 rq_status;	/* 0: no answer yet */
	char			*rq_host;
	char			*rq_method;
	char			*rq_path;
	char			*rq_address;
	struct blob		 rq_fields[2];	/* of request and answer */
	struct blob		 rq_body[2];	/* their beginnings */
};
RB_HEAD(requests, request);

struct engine {
	TAILQ_ENTRY(engine)	 en_entry;
	struct ipc		*en_ipc;
	char			 en_session[NAME_LEN + 1];
	uint32_t		 en_instance;
	uint32_t		 en_spent;	/* credit to give back */
	uint32_t		 en_open;
	struct requests		 en_requests;
};

static TAILQ_HEAD(, engine)	 engines = TAILQ_HEAD_INITIALIZER(engines);

static int	 request_cmp(const struct request *, const struct request *);
RB_PROTOTYPE(requests, request, rq_entry, request_cmp)
RB_GENERATE(requests, request, rq_entry, request_cmp)

static int
request_cmp(const struct request *a, const struct request *b)
{
	return a->rq_id < b->rq_id ? -1 : a->rq_id > b->rq_id;
}

static struct request *
request_find(struct engine *en, uint64_t id)
{
	struct request	 key = { .rq_id = id };

	return RB_FIND(requests, &en->en_requests, &key);
}

static char *
keep_text(const char *s)
{
	char	*p;

	if ((p = strdup(s)) == NULL)
		fatal("%s", __func__);
	return p;
}

static void
keep_bytes(struct blob *bl, const struct msg_bytes *mb, size_t max)
{
	size_t	 len = mb->len;
	char	*p;

	if (len > max - bl->bl_len)
		len = max - bl->bl_len;
	if (len == 0)
		return;
	if ((p = realloc(bl->bl_data, bl->bl_len + len)) == NULL)
		fatal("%s", __func__);
	memcpy(p + bl->bl_len, mb->data, len);
	bl->bl_data = p;
	bl->bl_len += len;
}

static void
request_free(struct engine *en, struct request *rq)
{
	int	 i;

	RB_REMOVE(requests, &en->en_requests, rq);
	en->en_open--;
	en->en_spent++;
	for (i = 0; i < 2; i++) {
		free(rq->rq_fields[i].bl_data);
		free(rq->rq_body[i].bl_data);
	}
	free(rq->rq_host);
	free(rq->rq_method);
	free(rq->rq_path);
	free(rq->rq_address);
	free(rq);
}

static int	 losing;	/* the audit file cannot be written */

static int
on_hold(const struct engine *en)
{
	return losing && !redact_may_lose(en->en_session);
}

/* What an engine has used up comes back once its records are made. */
static void
credit_return(struct ipc *ip)
{
	struct engine	*en = ip->ip_arg;

	if (en->en_spent < CREDIT_BATCH)
		return;
	ipc_send(ip, -1, CREDIT, credit, .count = en->en_spent,
	    .hold = on_hold(en));
	en->en_spent = 0;
}

/* ---- formatting ---------------------------------------------------------- */

static const char *const scheme_names[URL_SCHEME_MAX] = {
	[URL_HTTP] = "http", [URL_HTTPS] = "https", [URL_TCP] = "tcp",
};

static const char *const protocol_names[PROTOCOL_MAX] = {
	[PROTOCOL_HTTP10] = "http/1.0", [PROTOCOL_HTTP11] = "http/1.1",
	[PROTOCOL_H2] = "h2", [PROTOCOL_TCP] = "tcp", [PROTOCOL_UDP] = "udp",
	[PROTOCOL_ICMP] = "icmp", [PROTOCOL_OTHER] = "other",
	[PROTOCOL_TLS] = "tls",
};

/* By the number that a rule's kind has on the wire. */
static const char *const rule_kinds[] = {
	"allow", "deny", "pass", "decide", "narrow"
};

static void
put_id(struct jsonw *w, const struct engine *en, uint64_t id)
{
	char	 text[48];

	snprintf(text, sizeof(text), "%u-%llu", en->en_instance,
	    (unsigned long long)id);
	jsonw_key(w, "id");
	jsonw_str(w, text);
}

static bool
same_field(const struct redact_field *a, const struct redact_field *b)
{
	return a->rf_nlen == b->rf_nlen &&
	    strncasecmp(a->rf_name, b->rf_name, a->rf_nlen) == 0;
}

/* All values of the i-th name, as one, in the order in which they came. */
static void
put_values(struct jsonw *w, const struct redact_field *f, size_t i, size_t n)
{
	static char	 joined[2 * FIELDS_LEN];
	size_t		 len = 0, j;

	for (j = i; j < n; j++) {
		if (!same_field(&f[i], &f[j]))
			continue;
		if (j != i) {
			memcpy(joined + len, ", ", 2);
			len += 2;
		}
		memcpy(joined + len, f[j].rf_value, f[j].rf_vlen);
		len += f[j].rf_vlen;
	}
	jsonw_string(w, joined, len);
}

/* Every name is one member; a field that comes twice has its values joined. */
static void
put_fields(struct jsonw *w, const char *key, const struct engine *en,
    const struct blob *bl)
{
	struct redact_field	 f[FIELDS_MAX];
	const char		*p = bl->bl_data;
	size_t			 left = bl->bl_len, i, j, n = 0;

	jsonw_key(w, key);
	jsonw_object(w);
	while (n < FIELDS_MAX && redact_next(en->en_session, &p, &left, &f[n]))
		n++;
	for (i = 0; i < n; i++) {
		for (j = 0; j < i && !same_field(&f[i], &f[j]); j++)
			continue;
		if (j < i)
			continue;
		jsonw_keyn(w, f[i].rf_name, f[i].rf_nlen);
		if (f[i].rf_secret)
			jsonw_str(w, "[redacted]");
		else
			put_values(w, f, i, n);
	}
	jsonw_end(w);
}

static void
put_body(struct jsonw *w, const char *key, const struct blob *bl,
    uint64_t total, const struct msg_bytes *hash)
{
	char	 hex[65];
	size_t	 i;

	jsonw_key(w, key);
	jsonw_object(w);
	jsonw_key(w, "sha256");
	for (i = 0; i < hash->len && i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x",
		    ((const unsigned char *)hash->data)[i]);
	jsonw_str(w, hash->len == 32 ? hex : NULL);
	jsonw_key(w, "bytes");
	jsonw_uint(w, total);
	jsonw_key(w, "preview");
	if (bl->bl_len > 0)
		jsonw_string(w, bl->bl_data, bl->bl_len);
	else
		jsonw_null(w);
	jsonw_key(w, "truncated");
	jsonw_bool(w, total > bl->bl_len);
	jsonw_end(w);
}

/* What every record about a request says of it. */
static void
put_request(struct jsonw *w, const struct engine *en, const struct request *rq)
{
	/* Not on the stack, where it would be cleared each time. */
	static char	 path[URL_LEN + 1];

	jsonw_key(w, "request");
	jsonw_object(w);
	put_id(w, en, rq->rq_id);
	jsonw_key(w, "host");
	jsonw_str(w, rq->rq_host);
	jsonw_key(w, "port");
	jsonw_uint(w, rq->rq_port);
	jsonw_key(w, "scheme");
	jsonw_str(w, scheme_names[rq->rq_scheme]);
	jsonw_key(w, "protocol");
	jsonw_str(w, protocol_names[rq->rq_protocol]);
	jsonw_key(w, "method");
	jsonw_str(w, *rq->rq_method != '\0' ? rq->rq_method : NULL);
	jsonw_key(w, "path");
	jsonw_str(w, redact_path(en->en_session, rq->rq_path, path,
	    sizeof(path)));
}

static void
put_rule(struct jsonw *w, const struct request *rq)
{
	jsonw_key(w, "matched_rule");
	if (rq == NULL || rq->rq_rule == RULE_NONE ||
	    rq->rq_rule_kind >= sizeof(rule_kinds) / sizeof(rule_kinds[0])) {
		jsonw_null(w);
		return;
	}
	jsonw_object(w);
	jsonw_key(w, "index");
	jsonw_uint(w, rq->rq_rule);
	jsonw_key(w, "kind");
	jsonw_str(w, rule_kinds[rq->rq_rule_kind]);
	jsonw_end(w);
}

static void
put_reason(struct jsonw *w, const char *reason)
{
	jsonw_key(w, "reason");
	jsonw_str(w, *reason != '\0' ? reason : NULL);
}

/* A station on the way: opened, allowed. */
static void
record_station(const struct engine *en, const struct request *rq,
    enum record_kind kind, uint64_t at)
{
	struct jsonw	*w;

	if ((w = chain_begin(kind, at, en->en_session)) == NULL)
		return;
	put_request(w, en, rq);
	jsonw_end(w);
	if (kind == RECORD_REQUEST_ALLOWED)
		put_rule(w, rq);
	chain_end();
}

/* The last record of a request, with all that is known. */
static void
record_final(const struct engine *en, const struct request *rq,
    enum record_kind kind, uint64_t at, const char *reason,
    const struct msg_record_closed *mc)
{
	static const struct msg_record_closed	 nothing = { .reason = "" };
	struct jsonw				*w;

	if ((w = chain_begin(kind, at, en->en_session)) == NULL)
		return;
	if (mc == NULL)
		mc = &nothing;
	put_request(w, en, rq);
	put_fields(w, "request_headers", en, &rq->rq_fields[0]);
	jsonw_key(w, "response_status");
	if (rq->rq_status != 0)
		jsonw_uint(w, rq->rq_status);
	else
		jsonw_null(w);
	put_fields(w, "response_headers", en, &rq->rq_fields[1]);
	put_body(w, "request_body", &rq->rq_body[0], mc->request_body,
	    &mc->request_hash);
	put_body(w, "response_body", &rq->rq_body[1], mc->answer_body,
	    &mc->answer_hash);
	jsonw_key(w, "started_at");
	jsonw_str(w, chain_time(rq->rq_started));
	jsonw_key(w, "finished_at");
	jsonw_str(w, chain_time(at));
	jsonw_key(w, "address");
	jsonw_str(w, rq->rq_address);
	jsonw_end(w);
	jsonw_key(w, "bytes_in");
	jsonw_uint(w, mc->bytes_in);
	jsonw_key(w, "bytes_out");
	jsonw_uint(w, mc->bytes_out);
	put_reason(w, reason);
	put_rule(w, rq);
	chain_end();
}

/* ---- what engines say ---------------------------------------------------- */

static int
recorder_engine_record_opened(struct ipc *ip, const union msg *m)
{
	const struct msg_record_opened	*mo = &m->record_opened;
	struct engine			*en = ip->ip_arg;
	struct request			*rq;

	if (mo->scheme >= URL_SCHEME_MAX || mo->protocol >= PROTOCOL_MAX)
		return ipc_bad(ip, "scheme %u, protocol %u", mo->scheme,
		    mo->protocol);
	if (en->en_open + en->en_spent >= CREDIT_MAX)
		return ipc_bad(ip, "a request without credit");
	if (request_find(en, mo->request) != NULL)
		return ipc_bad(ip, "request %llu is open already",
		    (unsigned long long)mo->request);
	if ((rq = calloc(1, sizeof(*rq))) == NULL)
		fatal("%s", __func__);
	rq->rq_id = mo->request;
	rq->rq_started = mo->at;
	rq->rq_scheme = mo->scheme;
	rq->rq_protocol = mo->protocol;
	rq->rq_port = mo->port;
	rq->rq_rule = RULE_NONE;
	rq->rq_host = keep_text(mo->host);
	rq->rq_method = keep_text(mo->method);
	rq->rq_path = keep_text(mo->path);
	keep_bytes(&rq->rq_fields[0], &mo->fields, FIELDS_LEN);
	RB_INSERT(requests, &en->en_requests, rq);
	en->en_open++;
	record_station(en, rq, RECORD_REQUEST_OPENED, mo->at);
	return 0;
}

static struct request *
open_request(struct ipc *ip, uint64_t id)
{
	struct request	*rq;

	if ((rq = request_find(ip->ip_arg, id)) == NULL)
		ipc_bad(ip, "request %llu is not open",
		    (unsigned long long)id);
	return rq;
}

static int
recorder_engine_record_verdict(struct ipc *ip, const union msg *m)
{
	const struct msg_record_verdict	*mv = &m->record_verdict;
	struct engine			*en = ip->ip_arg;
	struct request			*rq;

	if ((rq = open_request(ip, mv->request)) == NULL)
		return -1;
	if (rq->rq_allowed || (mv->verdict != VERDICT_ALLOW &&
	    mv->verdict != VERDICT_DENY))
		return ipc_bad(ip, "verdict %u on request %llu", mv->verdict,
		    (unsigned long long)mv->request);
	rq->rq_rule = mv->rule;
	rq->rq_rule_kind = mv->rule_kind;
	if (mv->verdict == VERDICT_ALLOW) {
		rq->rq_allowed = true;
		record_station(en, rq, RECORD_REQUEST_ALLOWED, mv->at);
		return 0;
	}
	record_final(en, rq, RECORD_REQUEST_DENIED, mv->at, mv->reason, NULL);
	request_free(en, rq);
	credit_return(ip);
	return 0;
}

static int
recorder_engine_record_head(struct ipc *ip, const union msg *m)
{
	const struct msg_record_head	*mh = &m->record_head;
	struct request			*rq;

	if ((rq = open_request(ip, mh->request)) == NULL)
		return -1;
	if (!rq->rq_allowed || rq->rq_address != NULL)
		return ipc_bad(ip, "a second answer to request %llu",
		    (unsigned long long)mh->request);
	rq->rq_status = mh->status;
	rq->rq_address = keep_text(mh->address);
	keep_bytes(&rq->rq_fields[1], &mh->fields, FIELDS_LEN);
	return 0;
}

static int
recorder_engine_record_body(struct ipc *ip, const union msg *m)
{
	const struct msg_record_body	*mb = &m->record_body;
	struct request			*rq;

	if ((rq = open_request(ip, mb->request)) == NULL)
		return -1;
	if (mb->answer > 1)
		return ipc_bad(ip, "body %u of a request", mb->answer);
	keep_bytes(&rq->rq_body[mb->answer], &mb->data, BODY_MAX);
	return 0;
}

static int
recorder_engine_record_closed(struct ipc *ip, const union msg *m)
{
	const struct msg_record_closed	*mc = &m->record_closed;
	struct engine			*en = ip->ip_arg;
	struct request			*rq;

	if ((rq = open_request(ip, mc->request)) == NULL)
		return -1;
	if (!rq->rq_allowed)
		return ipc_bad(ip, "request %llu ends before its verdict",
		    (unsigned long long)mc->request);
	record_final(en, rq, mc->failed ? RECORD_REQUEST_FAILED :
	    RECORD_REQUEST_CLOSED, mc->at, mc->reason, mc);
	request_free(en, rq);
	credit_return(ip);
	return 0;
}

/* What never became a request. */
static int
recorder_engine_record_other(struct ipc *ip, const union msg *m)
{
	const struct msg_record_other	*mo = &m->record_other;
	struct engine			*en = ip->ip_arg;
	struct jsonw			*w;

	if ((mo->kind != RECORD_CONNECTION_REFUSED &&
	    mo->kind != RECORD_NAME_ASKED &&
	    mo->kind != RECORD_REQUEST_FAILED &&
	    mo->kind != RECORD_REQUEST_DENIED) ||
	    mo->protocol >= PROTOCOL_MAX)
		return ipc_bad(ip, "record of kind %u, protocol %u", mo->kind,
		    mo->protocol);
	if ((w = chain_begin(mo->kind, mo->at, en->en_session)) == NULL)
		return 0;
	jsonw_key(w, "request");
	jsonw_object(w);
	jsonw_key(w, "host");
	jsonw_str(w, *mo->host != '\0' ? mo->host : NULL);
	jsonw_key(w, "port");
	jsonw_uint(w, mo->port);
	jsonw_key(w, "protocol");
	jsonw_str(w, protocol_names[mo->protocol]);
	jsonw_key(w, "method");
	jsonw_null(w);
	jsonw_end(w);
	put_reason(w, mo->reason);
	put_rule(w, NULL);
	chain_end();
	return 0;
}

/* ---- engines ------------------------------------------------------------- */

static const ipc_handler engine_handlers[MSG_MAX] = {
	[MSG_RECORD_OPENED] = recorder_engine_record_opened,
	[MSG_RECORD_VERDICT] = recorder_engine_record_verdict,
	[MSG_RECORD_HEAD] = recorder_engine_record_head,
	[MSG_RECORD_BODY] = recorder_engine_record_body,
	[MSG_RECORD_CLOSED] = recorder_engine_record_closed,
	[MSG_RECORD_OTHER] = recorder_engine_record_other,
};

/* Its requests did not end: say so in its place. */
static void
recorder_engine_gone(struct ipc *ip, const char *why)
{
	struct engine	*en = ip->ip_arg;
	struct request	*rq;
	uint64_t	 now = chain_now();

	if (why != NULL)
		child_engine_bad(ip, why);
	while ((rq = RB_MIN(requests, &en->en_requests)) != NULL) {
		record_final(en, rq, rq->rq_allowed ? RECORD_REQUEST_FAILED :
		    RECORD_REQUEST_DENIED, now, "no_engine", NULL);
		request_free(en, rq);
	}
	TAILQ_REMOVE(&engines, en, en_entry);
	free(en);
	ipc_free(ip);
}

/*
 * The audit file cannot be written, or can again.  A policy that says nothing
 * else wants no request that nobody can account for.
 */
void
engines_hold(int broken)
{
	struct engine	*en;

	losing = broken;
	TAILQ_FOREACH(en, &engines, en_entry)
		ipc_send(en->en_ipc, -1, CREDIT, credit, .count = 0,
		    .hold = on_hold(en));
}

void
engine_new(const struct msg_channel *mc, int fd)
{
	struct engine	*en;
	struct ipc	*ip;

	if ((en = calloc(1, sizeof(*en))) == NULL)
		fatal("%s", __func__);
	strlcpy(en->en_session, mc->session, sizeof(en->en_session));
	en->en_instance = mc->instance;
	RB_INIT(&en->en_requests);
	ip = child_engine(mc, fd, engine_handlers);
	ip->ip_arg = en;
	ip->ip_gone = recorder_engine_gone;
	en->en_ipc = ip;
	TAILQ_INSERT_TAIL(&engines, en, en_entry);
	ipc_send(ip, -1, CREDIT, credit, .count = CREDIT_MAX,
	    .hold = on_hold(en));
}
