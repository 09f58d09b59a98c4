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
 * policyd: a question that an operator makes up, to see whether a decider can
 * be asked and what it says.  It is about nothing: no request waits for the
 * answer, no answer is kept or used for one, and the decider's breaker and
 * its bound on questions at a time know nothing of it.
 */

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "policyd.h"

#define SESSION		"operator"	/* what the decider is told */

static int
read_scheme(struct request *rq, struct subject *sj)
{
	const char	*scheme = request_text(rq, FIELD_SCHEME);

	if (strcmp(scheme, "https") == 0)
		sj->sj_scheme = URL_HTTPS;
	else if (strcmp(scheme, "http") == 0)
		sj->sj_scheme = URL_HTTP;
	else
		return request_fail(rq, "bad_request", "scheme: wanted https "
		    "or http, not \"%.64s\"", scheme);
	return 0;
}

/* As an engine would put it; the request has to be in canonical form. */
static int
read_subject(struct request *rq, struct subject *sj)
{
	const cJSON	*port = rq->rq_fields[FIELD_PORT];
	const char	*why;

	sj->sj_length = 0;
	sj->sj_host = request_text(rq, FIELD_HOST);
	sj->sj_method = request_text(rq, FIELD_METHOD);
	sj->sj_path = request_text(rq, FIELD_PATH);
	if (read_scheme(rq, sj) == -1)
		return -1;
	if (port->valuedouble < 1 || port->valuedouble > UINT16_MAX)
		return request_fail(rq, "bad_request",
		    "port: wanted 1 to 65535");
	sj->sj_port = (uint16_t)port->valuedouble;
	if ((why = subject_fault(sj->sj_host, sj->sj_method,
	    sj->sj_path)) != NULL)
		return request_fail(rq, "bad_request", "%s", why);
	return 0;
}

static struct judge *
read_judge(struct request *rq)
{
	const char	*name = request_text(rq, FIELD_DECIDER);
	struct judge	*ju;

	if (strlen(name) > NAME_LEN ||
	    (ju = judge_find(slice_running, name)) == NULL) {
		request_fail(rq, "unknown_decider",
		    "there is no decider \"%.64s\"", name);
		return NULL;
	}
	if (ju->ju_kind == DECIDER_OPERATOR) {
		request_fail(rq, "bad_request", "decider \"%s\" is a person",
		    name);
		return NULL;
	}
	return ju;
}

/* The messages are a user's. */
static const char *
make_document(struct request *rq, const struct subject *sj, size_t *len)
{
	const struct asking	 as = {
		.as_session = SESSION, .as_subject = sj,
		.as_messages = MESSAGES_MAX
	};
	struct context		 cx;
	const char		*text;
	const cJSON		*v;

	context_init(&cx);
	cJSON_ArrayForEach(v, rq->rq_fields[FIELD_MESSAGES]) {
		context_message(&cx, "user", v->valuestring, clock_wall_ns());
	}
	text = question_write(&as, &cx, len);
	context_free(&cx);
	return text;
}

int
op_decider_ask(struct client *cl, struct request *rq)
{
	struct subject	 sj;
	struct judge	*ju;
	struct waiter	*wt;
	const char	*text;
	size_t		 len;

	if ((ju = read_judge(rq)) == NULL || read_subject(rq, &sj) == -1)
		return -1;
	if (channel_deciderd == NULL || channel_deciderd->ip_congested)
		return request_fail(rq, "busy", "too much is being asked");
	if ((text = make_document(rq, &sj, &len)) == NULL)
		return request_fail(rq, "too_much", "the question is longer "
		    "than %d bytes", QUESTION_LEN);
	if ((wt = waiter_new(cl, WAIT_ANSWER, &rq->rq_id)) == NULL)
		return 0;
	if ((wt->wt_text = strndup(text, len)) == NULL)
		fatal("%s", __func__);
	wt->wt_since = clock_ms();
	log_info("decider %s: an operator asks it", ju->ju_name);
	ipc_send(channel_deciderd, -1, QUESTION, question,
	    .id = INQUIRY | wt->wt_cookie, .timeout_ms = ju->ju_timeout_ms,
	    .decider = ju->ju_name, .document = { text, len });
	return 0;
}

void
inquiry_answer(const struct msg_answer *ma)
{
	static const char *const	 words[ANSWER_RESULT_MAX] = {
		[ANSWER_ALLOW] = "allow", [ANSWER_DENY] = "deny",
		[ANSWER_UNSURE] = "unsure", [ANSWER_TIMEOUT] = NULL,
	};
	struct waiter	*wt = waiter_find(ma->id & ~INQUIRY, WAIT_ANSWER);
	struct jsonw	*w;
	const char	*body;
	size_t		 len;

	if (wt == NULL)
		return;
	w = answer_ok();
	jsonw_key(w, "question");
	jsonw_object(w);
	/* All of it but its braces. */
	jsonw_members(w, wt->wt_text + 1, strlen(wt->wt_text) - 2);
	jsonw_end(w);
	put_str(w, "decision", words[ma->result]);
	put_str(w, "failure", ma->result >= ANSWER_TIMEOUT ?
	    failure_reason(ma->result) : NULL);
	put_str(w, "reason", ma->reason);
	put_uint(w, "latency_ms", clock_ms() - wt->wt_since);
	free(wt->wt_text);
	wt->wt_text = NULL;
	body = answer_end(&len);
	waiter_answer(wt, body, len);
}

/* Who asked has gone. */
void
inquiry_drop(struct waiter *wt)
{
	if (wt->wt_kind != WAIT_ANSWER || wt->wt_text == NULL)
		return;
	free(wt->wt_text);
	if (channel_deciderd != NULL)
		ipc_send(channel_deciderd, -1, QUESTION_DROP, cookie,
		    INQUIRY | wt->wt_cookie);
}
