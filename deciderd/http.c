/* SPDX-License-Identifier: ISC */

/*
 * deciderd runs this: questions over HTTP, by way of the HTTPS client of
 * common/https.  It verifies the other end and bounds what that may send;
 * here is what the answer means.
 */

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "deciderd.h"

#define REST_MAX_S	60	/* whatever a server asks for */
#define FAULT_LEN	256	/* bytes shown of a failure's body */

/* A question on its way to a server. */
struct call {
	struct question		*ca_question;
	struct https_call	*ca_https;
	struct jsonw		 ca_body;	/* for an agent */
	enum decider_form	 ca_form;	/* that ca_body asks for */
};

static void	 call_send(struct call *);

/* ---- what comes back ---- */

/* A later answer to an earlier question does not cut a rest short. */
static void
decider_rest(struct decider *de, long long wait)
{
	uint64_t	 until = clock_ms() + 1000 *
	    (uint64_t)(wait < REST_MAX_S ? wait : REST_MAX_S);

	if (until > de->de_rest_until_ms)
		de->de_rest_until_ms = until;
}

static void
call_status(struct call *ca, const struct https_answer *ha)
{
	struct decider	*de = ca->ca_question->qu_decider;
	long long	 wait = ha->ha_retry_after_s;
	char		 after[48] = "", said[FAULT_LEN + 1];

	if ((ha->ha_status == 429 || ha->ha_status == 503) && wait > 0) {
		decider_rest(de, wait);
		snprintf(after, sizeof(after), ", retry after %lld s", wait);
	}
	fault_text(de, ha->ha_body, ha->ha_body_len, said, sizeof(said));
	question_finish(ca->ca_question, ANSWER_ERROR, "status %ld%s%s%s",
	    ha->ha_status, after, said[0] != '\0' ? ": " : "", said);
}

static void
call_reply(struct call *ca, const struct https_answer *ha)
{
	struct question	*qu = ca->ca_question;
	struct reply	 rp;

	if (ha->ha_body_len == 0)
		reply_bad(&rp, "it sent nothing");
	else if (qu->qu_decider->de_kind == DECIDER_AGENT)
		agent_reply(qu->qu_decider, ha->ha_body, ha->ha_body_len, &rp);
	else
		reply_text(ha->ha_body, ha->ha_body_len, false, &rp);
	question_reply(qu, &rp);
}

static void
call_answered(struct call *ca, const struct https_answer *ha)
{
	struct decider	*de = ca->ca_question->qu_decider;

	if (ha->ha_status == 200)
		call_reply(ca, ha);
	else if (ha->ha_status == 400 && de->de_kind == DECIDER_AGENT &&
	    ha->ha_body_len > 0 && agent_asks_else(de, ca->ca_form,
	    ha->ha_body, ha->ha_body_len))
		call_send(ca);
	else
		call_status(ca, ha);
}

static void
call_ended(void *arg, const struct https_answer *ha)
{
	struct call	*ca = arg;
	struct question	*qu = ca->ca_question;

	ca->ca_https = NULL;
	jsonw_free(&ca->ca_body);
	switch (ha->ha_result) {
	case HTTPS_ANSWERED:
		call_answered(ca, ha);
		break;
	case HTTPS_HUGE:
		question_finish(qu, ANSWER_BAD_RETURN,
		    "it sent more than %d bytes", REPLY_LEN);
		break;
	case HTTPS_LATE:
		question_late(qu);
		break;
	case HTTPS_FAILED:
		question_finish(qu, ANSWER_ERROR, "%s", ha->ha_why);
		break;
	}
}

/* ---- what goes out ---- */

/* The second attempt, in another form, has what is left of the time. */
static void
call_send(struct call *ca)
{
	struct question		*qu = ca->ca_question;
	struct decider		*de = qu->qu_decider;
	uint64_t		 now = clock_ms();
	struct https_request	 hr = {
		.hr_method = "POST",
		.hr_headers = de->de_headers,
		.hr_body = qu->qu_document.tx_data,
		.hr_body_len = qu->qu_document.tx_len,
		.hr_answer_max = REPLY_LEN,
		.hr_timeout_ms = now < qu->qu_until_ms ?
		    qu->qu_until_ms - now : 0,
	};

	if (de->de_kind == DECIDER_AGENT) {
		ca->ca_form = de->de_form;
		if (agent_body(de, ca->ca_form, &qu->qu_document,
		    &ca->ca_body) == -1) {
			question_finish(qu, ANSWER_ERROR, "the question is "
			    "too long");
			return;
		}
		hr.hr_body = jsonw_finish(&ca->ca_body, &hr.hr_body_len);
	}
	ca->ca_https = https_begin(de->de_server, &hr, call_ended, ca);
}

static void
http_begin(struct question *qu)
{
	struct call	*ca;
	uint64_t	 now = clock_ms();
	uint64_t	 rest = qu->qu_decider->de_rest_until_ms;

	if ((ca = calloc(1, sizeof(*ca))) == NULL)
		fatal("%s", __func__);
	ca->ca_question = qu;
	qu->qu_call = ca;
	if (now < rest)
		question_finish(qu, ANSWER_ERROR, "not asked, as it wants to "
		    "be left alone for another %llu s",
		    (unsigned long long)(rest - now + 999) / 1000);
	else
		call_send(ca);
}

static void
http_forget(struct question *qu)
{
	struct call	*ca = qu->qu_call;

	https_cancel(ca->ca_https);
	jsonw_free(&ca->ca_body);
	free(ca);
}

const struct asker http_asker = {
	.as_keeps_time = true,
	.as_begin = http_begin,
	.as_forget = http_forget,
};
