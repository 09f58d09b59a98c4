/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: what the recorder is told.  It keeps the request from
 * its opening to its final record, so each fact is sent once.  Most answers
 * are short and come whole: the one that has come last is held back for a
 * moment, so that its head, its body and its end are one message.
 *
 * The queue to the recorder has an end, and an engine that passes it is dead,
 * so an agent must not be able to fill it (50 KB of references to one field of
 * HPACK's table once did).  While it is congested no request begins
 * (credit.c), and no frame, body or answer is read (io_take).  What was read
 * before that may still be told: the heads of as many answers as one turn of
 * one HTTP/2 connection brings, and the verdict and the end of each request.
 * Beyond half of the queue no beginning of a body is told, and nobody is
 * accepted, of whom something would be.
 */

#include <string.h>

#include <openssl/sha.h>

#include "clock.h"
#include "http/h2.h"
#include "log.h"
#include "tlsengine.h"
#include "upstream.h"

#define CROWDED		(IPC_QUEUE_MAX / 2)	/* bytes queued */
#define SMALL_MAX	512	/* a message without head and body */

_Static_assert(IMSG_HEADER_SIZE + REASON_ROOM + NAME_LEN + ADDRESS_LEN +
    2 * SHA256_DIGEST_LENGTH + 16 * sizeof(uint64_t) <= SMALL_MAX &&
    IMSG_HEADER_SIZE + HOST_LEN + METHOD_LEN + 16 * sizeof(uint64_t) <=
    SMALL_MAX, "what else a message about a request may say");

_Static_assert(IPC_HIGH_WATER + URL_LEN + FIELDS_LEN + SMALL_MAX +
    H2_STREAMS_MAX * (FIELDS_LEN + SMALL_MAX) <= CROWDED &&
    CROWDED + FIELDS_LEN + PIECE_LEN + 2 * CREDIT_MAX * SMALL_MAX <=
    IPC_QUEUE_MAX, "what is told of requests fits into the queue");

static uint64_t	 last_request;

bool
report_crowded(void)
{
	return imsgbuf_queuelen(&recorder->ip_buf) > CROWDED;
}

static struct {
	uint64_t	 an_of;		/* the request; 0: none is held back */
	uint16_t	 an_status;
	char		 an_address[ADDRESS_LEN + 1];
	size_t		 an_flen;
	size_t		 an_dlen;
	char		 an_fields[FIELDS_LEN];
	char		 an_data[PIECE_LEN];
} answer;

/* known: a verdict that was kept, or NULL. */
void
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
	ex->ex_id = ++last_request;
	ipc_send(recorder, -1, RECORD_OPENED, record_opened,
	    .request = ex->ex_id, .at = clock_wall_ns(),
	    .scheme = ex->ex_place.pc_scheme, .protocol = ex->ex_protocol,
	    .inspected = 1, .allowed = known != NULL &&
	    known->rl_verdict == VERDICT_ALLOW,
	    .rule_kind = known != NULL ? known->rl_rule_kind : 0,
	    .rule = known != NULL ? known->rl_rule : RULE_NONE,
	    .port = ex->ex_place.pc_port, .host = ex->ex_place.pc_host,
	    .method = ex->ex_method, .path = ex->ex_path, .fields = fields);
}

static uint8_t
raw_scheme(uint8_t protocol, const struct place *pc)
{
	return protocol == PROTOCOL_TLS ? URL_HTTPS : pc->pc_scheme;
}

void
report_raw_opened(struct flow *fl)
{
	fl->fl_id = ++last_request;
	ipc_send(recorder, -1, RECORD_OPENED, record_opened,
	    .request = fl->fl_id, .at = clock_wall_ns(),
	    .scheme = raw_scheme(fl->fl_protocol, &fl->fl_place),
	    .protocol = fl->fl_protocol, .rule = RULE_NONE,
	    .port = fl->fl_place.pc_port, .host = fl->fl_place.pc_host,
	    .method = "", .path = "");
}

void
report_verdict(const struct flow *fl)
{
	const struct ruling	*rl = &fl->fl_ruling;

	ipc_send(recorder, -1, RECORD_VERDICT, record_verdict,
	    .request = fl->fl_id, .at = clock_wall_ns(),
	    .verdict = rl->rl_verdict, .rule_kind = rl->rl_rule_kind,
	    .rule = rl->rl_rule,
	    .reason = rl->rl_reason, .decider = rl->rl_decider,
	    .cached = rl->rl_cached, .waited_ms = rl->rl_waited_ms);
}

/* Opening and end of a request that left before it had credit. */
void
report_leaver(const struct leaver *lv)
{
	ipc_send(recorder, -1, RECORD_OPENED, record_opened,
	    .request = ++last_request, .at = lv->lv_at,
	    .scheme = raw_scheme(lv->lv_protocol, &lv->lv_place),
	    .protocol = lv->lv_protocol,
	    .inspected = lv->lv_inspected, .rule = RULE_NONE,
	    .port = lv->lv_place.pc_port, .host = lv->lv_place.pc_host,
	    .method = lv->lv_method, .path = lv->lv_path);
	ipc_send(recorder, -1, RECORD_CLOSED, record_closed,
	    .request = last_request, .at = lv->lv_at, .failed = 1,
	    .reason = REASON_CLIENT_LEFT);
}

static void
send_body(uint64_t request, int of_answer, const char *data, size_t len)
{
	ipc_send(recorder, -1, RECORD_BODY, record_body, .request = request,
	    .answer = of_answer, .data = { data, len });
}

/* Send the answer that was held back. */
void
report_settle(void)
{
	if (answer.an_of == 0)
		return;
	ipc_send(recorder, -1, RECORD_HEAD, record_head,
	    .request = answer.an_of, .status = answer.an_status,
	    .address = answer.an_address,
	    .fields = { answer.an_fields, answer.an_flen });
	if (answer.an_dlen > 0)
		send_body(answer.an_of, 1, answer.an_data, answer.an_dlen);
	answer.an_of = 0;
}

void
report_answer(const struct flow *fl, int status, const struct h1_str *fields)
{
	report_settle();
	answer.an_of = fl->fl_id;
	answer.an_status = status;
	strlcpy(answer.an_address, fl->fl_up->up_address,
	    sizeof(answer.an_address));
	answer.an_flen = fields->len < FIELDS_LEN ? fields->len : FIELDS_LEN;
	if (answer.an_flen > 0)
		memcpy(answer.an_fields, fields->s, answer.an_flen);
	answer.an_dlen = 0;
}

/* Add to the answer that is held back; false if it does not fit. */
static bool
add_body(uint64_t request, const void *data, size_t len)
{
	if (answer.an_of != request)
		return false;
	if (len > sizeof(answer.an_data) - answer.an_dlen) {
		report_settle();
		return false;
	}
	memcpy(answer.an_data + answer.an_dlen, data, len);
	answer.an_dlen += len;
	return true;
}

/* A body that was not hashed from its beginning has no hash. */
static void
hash_body(struct exchange *ex, int of_answer, uint64_t before,
    const void *data, size_t len)
{
	EVP_MD_CTX	**ctx = &ex->ex_hash[of_answer];

	if (before == 0 && settings.st_options.po_capture_hash &&
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
report_body(struct exchange *ex, int of_answer, uint64_t before,
    const void *data, size_t len)
{
	const char	*p = data;
	size_t		 n;

	hash_body(ex, of_answer, before, data, len);
	if (before >= settings.st_options.po_capture || ex->ex_cut[of_answer])
		return;
	if (report_crowded()) {
		ex->ex_cut[of_answer] = true;
		return;
	}
	if (len > settings.st_options.po_capture - before)
		len = settings.st_options.po_capture - before;
	if (of_answer && add_body(ex->ex_id, data, len))
		return;
	for (; len > 0; p += n, len -= n) {
		n = len < PIECE_LEN ? len : PIECE_LEN;
		send_body(ex->ex_id, of_answer, p, n);
	}
}

static void
report_done(const struct flow *fl)
{
	ipc_send(recorder, -1, RECORD_DONE, record_done, .request = fl->fl_id,
	    .at = clock_wall_ns(), .bytes_in = fl->fl_bytes_in,
	    .bytes_out = fl->fl_bytes_out,
	    .request_body = fl->fl_request_body,
	    .answer_body = fl->fl_answer_body, .status = answer.an_status,
	    .address = answer.an_address,
	    .fields = { answer.an_fields, answer.an_flen },
	    .data = { answer.an_data, answer.an_dlen });
	answer.an_of = 0;
}

/* The final record of what was allowed, or whose client left before that. */
static void
send_closed(const struct flow *fl, const char *why, EVP_MD_CTX *const *hash)
{
	unsigned char	 out[2][EVP_MAX_MD_SIZE];

	if (answer.an_of == fl->fl_id) {
		if (why == NULL && hash[0] == NULL && hash[1] == NULL) {
			report_done(fl);
			return;
		}
		report_settle();
	}
	ipc_send(recorder, -1, RECORD_CLOSED, record_closed,
	    .request = fl->fl_id, .at = clock_wall_ns(), .failed = why != NULL,
	    .bytes_in = fl->fl_bytes_in, .bytes_out = fl->fl_bytes_out,
	    .request_body = fl->fl_request_body,
	    .answer_body = fl->fl_answer_body,
	    .request_hash = hash_end(hash[0], out[0]),
	    .answer_hash = hash_end(hash[1], out[1]), .reason = why);
}

/* why is NULL if all went well. */
void
report_closed(struct exchange *ex, const char *why)
{
	if (ex->ex_origin != NULL)
		ex->ex_origin->tally(ex);
	send_closed(&ex->ex_flow, why, ex->ex_hash);
}

void
report_raw_closed(const struct flow *fl, const char *why)
{
	static EVP_MD_CTX *const	 none[2];

	send_closed(fl, why, none);
}

/* A record without a request. */
void
report_other(enum record_kind kind, enum protocol protocol, const char *host,
    uint16_t port, const char *reason)
{
	ipc_send(recorder, -1, RECORD_OTHER, record_other, .kind = kind,
	    .at = clock_wall_ns(), .protocol = protocol, .port = port,
	    .host = host, .reason = reason);
}
