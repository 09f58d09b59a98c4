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
 * tlsengine runs this: what the recorder is told.  It keeps the request from
 * its opening to its final record, so each fact is sent once.  A request may
 * only be opened on a credit of the recorder's.
 */

#include <string.h>
#include <time.h>

#include "log.h"
#include "tlsengine.h"

static uint32_t	 credits;
static bool	 held;		/* records would be lost */
static uint64_t	 last_request;

bool
report_credit(void)
{
	if (credits == 0)
		return false;
	credits--;
	return true;
}

/* What it was taken for needs no record. */
void
report_uncredit(void)
{
	credits++;
}

bool
report_held(void)
{
	return held;
}

int
tlsengine_recorder_credit(struct ipc *ip, const union msg *m)
{
	if (m->credit.count > UINT32_MAX - credits)
		return ipc_bad(ip, "credit %u", m->credit.count);
	credits += m->credit.count;
	held = m->credit.hold != 0;
	exchange_credit();
	return 0;
}

/* With what was known of it already, if anything was. */
uint64_t
report_opened(struct exchange *ex, const struct ruling *known)
{
	const struct h1_head	*hd = &ex->ex_request;
	const char		*begin, *end;
	struct msg_bytes	 fields = { NULL, 0 };

	if (hd->hd_nfields > 0) {
		begin = hd->hd_fields[0].hf_name;
		end = hd->hd_fields[hd->hd_nfields - 1].hf_value +
		    hd->hd_fields[hd->hd_nfields - 1].hf_vlen;
		fields.data = begin;
		fields.len = end - begin;
	}
	if (fields.len > FIELDS_LEN)
		fields.len = FIELDS_LEN;
	last_request++;
	ipc_send(recorder, -1, RECORD_OPENED, record_opened,
	    .request = last_request, .at = now_ns(),
	    .scheme = ex->ex_protocol == PROTOCOL_TLS ? URL_HTTPS :
	    ex->ex_place.pc_scheme, .protocol = ex->ex_protocol,
	    .inspected = !ex->ex_raw, .allowed = known != NULL &&
	    known->rl_verdict == VERDICT_ALLOW,
	    .rule_kind = known != NULL ? known->rl_rule_kind : 0,
	    .rule = known != NULL ? known->rl_rule : RULE_NONE,
	    .port = ex->ex_place.pc_port, .host = ex->ex_place.pc_host,
	    .method = ex->ex_method, .path = ex->ex_path, .fields = fields);
	return last_request;
}

void
report_verdict(const struct exchange *ex)
{
	const struct ruling	*rl = &ex->ex_ruling;

	ipc_send(recorder, -1, RECORD_VERDICT, record_verdict,
	    .request = ex->ex_id, .at = now_ns(), .verdict = rl->rl_verdict,
	    .rule_kind = rl->rl_rule_kind, .rule = rl->rl_rule,
	    .reason = rl->rl_verdict == VERDICT_ALLOW ? "" : rl->rl_reason,
	    .decider = rl->rl_decider, .waited_ms = rl->rl_waited_ms);
}

void
report_answer(const struct exchange *ex, const struct h1_str *fields)
{
	ipc_send(recorder, -1, RECORD_HEAD, record_head,
	    .request = ex->ex_id, .status = ex->ex_status,
	    .address = ex->ex_up->up_address,
	    .fields = { fields->s, fields->len < FIELDS_LEN ? fields->len :
	    FIELDS_LEN });
}

/* A body that was not hashed from its beginning has no hash. */
static void
hash_body(struct exchange *ex, int answer, uint64_t before, const void *data,
    size_t len)
{
	EVP_MD_CTX	**ctx = &ex->ex_hash[answer];

	if (before == 0 && settings.st_capture_hash &&
	    ((*ctx = EVP_MD_CTX_new()) == NULL ||
	    !EVP_DigestInit_ex(*ctx, EVP_sha256(), NULL)))
		fatalx("%s: out of memory", __func__);
	if (*ctx != NULL)
		EVP_DigestUpdate(*ctx, data, len);
}

static struct msg_bytes
hash_end(EVP_MD_CTX *ctx, unsigned char *out)
{
	unsigned int	 len = 0;

	if (ctx != NULL)
		EVP_DigestFinal_ex(ctx, out, &len);
	return (struct msg_bytes){ out, len };
}

/* The beginning of a body, as far as the policy wants to see it. */
void
report_body(struct exchange *ex, int answer, uint64_t before,
    const void *data, size_t len)
{
	const char	*p = data;
	size_t		 n;

	if (ex->ex_raw)
		return;
	hash_body(ex, answer, before, data, len);
	if (before >= settings.st_capture)
		return;
	if (len > settings.st_capture - before)
		len = settings.st_capture - before;
	for (; len > 0; p += n, len -= n) {
		n = len < 4096 ? len : 4096;
		ipc_send(recorder, -1, RECORD_BODY, record_body,
		    .request = ex->ex_id, .answer = answer, .data = { p, n });
	}
}

/* The final record of an allowed request; why is NULL if all went well. */
void
report_closed(struct exchange *ex, const char *why)
{
	unsigned char	 hash[2][EVP_MAX_MD_SIZE];

	if (ex->ex_origin != NULL)
		ex->ex_origin->tally(ex);
	ipc_send(recorder, -1, RECORD_CLOSED, record_closed,
	    .request = ex->ex_id, .at = now_ns(), .failed = why != NULL,
	    .bytes_in = ex->ex_bytes_in, .bytes_out = ex->ex_bytes_out,
	    .request_body = ex->ex_request_body,
	    .answer_body = ex->ex_answer_body,
	    .request_hash = hash_end(ex->ex_hash[0], hash[0]),
	    .answer_hash = hash_end(ex->ex_hash[1], hash[1]), .reason = why);
}

/* What never became a request. */
void
report_other(enum record_kind kind, enum protocol protocol, const char *host,
    uint16_t port, const char *reason)
{
	ipc_send(recorder, -1, RECORD_OTHER, record_other, .kind = kind,
	    .at = now_ns(), .protocol = protocol, .port = port, .host = host,
	    .reason = reason);
}
