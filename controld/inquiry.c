/* SPDX-License-Identifier: ISC */

/*
 * controld: a question that an operator makes up, to see whether a decider can
 * be asked and what it says.  It is about nothing: no request waits for the
 * answer, and no answer is kept or used for one.  policyd, which knows the
 * deciders, puts it into words and has it asked.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "canon.h"
#include "clock.h"
#include "controld.h"
#include "reasons.h"
#include "utf8.h"

static unsigned int	 inquiries;	/* not yet answered or dropped */

static int
read_scheme(struct request *rq, uint8_t *scheme)
{
	const char	*text = request_text(rq, "scheme");
	int		 n = url_scheme_find(text);

	if (n != URL_HTTP && n != URL_HTTPS)
		return request_fail(rq, CODE_BAD_REQUEST, "scheme: wanted "
		    "https or http, not \"%.64s\"", text);
	*scheme = n;
	return 0;
}

/* As an engine would put it; the request has to be in canonical form. */
static int
read_subject(struct request *rq, struct msg_inquiry_ask *ma)
{
	double		 port = request_number(rq, "port");
	const char	*why;

	ma->host = request_text(rq, "host");
	ma->method = request_text(rq, "method");
	ma->path = request_text(rq, "path");
	if (read_scheme(rq, &ma->scheme) == -1)
		return -1;
	if (port < 1 || port > UINT16_MAX)
		return request_fail(rq, CODE_BAD_REQUEST,
		    "port: wanted 1 to 65535");
	ma->port = (uint16_t)port;
	if ((why = canon_fault(ma->host, ma->method, ma->path)) != NULL)
		return request_fail(rq, CODE_BAD_REQUEST, "%s", why);
	if (strlen(ma->method) > METHOD_LEN)
		return request_fail(rq, CODE_BAD_REQUEST,
		    "method: at most %d bytes", METHOD_LEN);
	return 0;
}

/* The last so many: policyd keeps no more. */
#define MESSAGES_MAX	100

static void
send_message(const char *content)
{
	size_t	 len = strlen(content);
	char	 cut[CONTENT_LEN + 1];

	snprintf(cut, sizeof(cut), "%.*s",
	    (int)utf8_cut(content, len, CONTENT_LEN), content);
	ipc_send(channel_policyd, -1, INQUIRY_MESSAGE, inquiry_message,
	    .content = cut, .truncated = strlen(cut) < len);
}

static void
send_messages(const cJSON *list)
{
	const cJSON	*v;
	int		 skip = cJSON_GetArraySize(list) - MESSAGES_MAX;

	cJSON_ArrayForEach(v, list)
		if (skip-- <= 0)
			send_message(v->valuestring);
}

static int
op_decider_ask(struct client *cl, struct request *rq)
{
	union msg	 m = { .inquiry_ask = { 0 } };
	const char	*name = request_text(rq, "decider");
	struct waiter	*wt;

	if (strlen(name) > NAME_LEN)
		return request_fail(rq, CODE_UNKNOWN_DECIDER,
		    "there is no decider \"%.64s\"", name);
	if (read_subject(rq, &m.inquiry_ask) == -1)
		return -1;
	if (inquiries >= INQUIRIES_MAX)
		return request_fail(rq, CODE_BUSY, "too much is being asked");
	if ((wt = waiter_new(cl, WAIT_INQUIRY, &rq->rq_id)) == NULL)
		return 0;
	waiter_about(wt, name, strlen(name));
	inquiries++;
	send_messages(request_field(rq, "messages"));
	m.inquiry_ask.cookie = wt->wt_cookie;
	m.inquiry_ask.decider = name;
	ipc_compose(channel_policyd, MSG_INQUIRY_ASK, -1, &m);
	return 0;
}

static void
tell_refused(struct waiter *wt, enum inquiry_result result)
{
	switch (result) {
	case INQUIRY_UNKNOWN:
		waiter_error(wt, CODE_UNKNOWN_DECIDER,
		    "there is no decider \"%s\"", wt->wt_text);
		break;
	case INQUIRY_PERSON:
		waiter_error(wt, CODE_BAD_REQUEST, "decider \"%s\" is a person",
		    wt->wt_text);
		break;
	case INQUIRY_TOO_LONG:
		waiter_error(wt, CODE_TOO_MUCH, "the question is longer than "
		    "%d bytes", QUESTION_LEN);
		break;
	default:
		waiter_error(wt, CODE_BUSY, "too much is being asked");
		break;
	}
}

/* The question as the decider reads it, or why it is not put. */
int
controld_policyd_inquiry_asked(struct ipc *ip, const union msg *m)
{
	const struct msg_inquiry_asked	*ma = &m->inquiry_asked;
	struct waiter			*wt;

	if (ma->result >= INQUIRY_RESULT_MAX || inquiries == 0)
		return ipc_bad(ip, "result %u of %u inquiries", ma->result,
		    inquiries);
	if (ma->result == INQUIRY_ASKED &&
	    (ma->document.len < 2 || memchr(ma->document.data, '\0',
	    ma->document.len) != NULL))
		return ipc_bad(ip, "no document");
	wt = waiter_find(ma->cookie, WAIT_INQUIRY);
	if (ma->result != INQUIRY_ASKED) {
		inquiries--;
		if (wt != NULL)
			tell_refused(wt, ma->result);
	} else if (wt == NULL)
		/* The client has gone meanwhile; see inquiry_drop(). */
		ipc_send(ip, -1, INQUIRY_DROP, cookie, ma->cookie);
	else {
		waiter_about(wt, ma->document.data, ma->document.len);
		wt->wt_since = clock_ms();
	}
	return 0;
}

static void
tell_answer(struct waiter *wt, const struct msg_inquiry_answer *ma)
{
	static const char *const	 failures[ANSWER_RESULT_MAX] = {
		[ANSWER_TIMEOUT] = REASON_DECIDER_TIMEOUT,
		[ANSWER_ERROR] = REASON_DECIDER_ERROR,
		[ANSWER_BAD_RETURN] = REASON_DECIDER_BAD_RETURN,
	};
	struct jsonw	*w = answer_ok();

	jsonw_key(w, "question");
	jsonw_object(w);
	/* All of it but its braces. */
	jsonw_members(w, wt->wt_text + 1, strlen(wt->wt_text) - 2);
	jsonw_end(w);
	put_str(w, "decision", decision_name(ma->result));
	put_str(w, "failure", failures[ma->result]);
	put_str(w, "reason", ma->reason);
	put_uint(w, "latency_ms", clock_ms() - wt->wt_since);
	wt->wt_since = 0;
	waiter_finish(wt);
}

int
controld_policyd_inquiry_answer(struct ipc *ip, const union msg *m)
{
	const struct msg_inquiry_answer	*ma = &m->inquiry_answer;
	struct waiter			*wt;

	if (ma->result >= ANSWER_RESULT_MAX || inquiries == 0)
		return ipc_bad(ip, "answer %u of %u inquiries", ma->result,
		    inquiries);
	inquiries--;
	wt = waiter_find(ma->cookie, WAIT_INQUIRY);
	if (wt == NULL)
		return 0;
	if (wt->wt_since == 0)
		return ipc_bad(ip, "an answer before its question");
	tell_answer(wt, ma);
	return 0;
}

/* Who asked has gone, perhaps before the answer, which comes all the same. */
void
inquiry_drop(const struct waiter *wt)
{
	if (wt->wt_kind == WAIT_INQUIRY && wt->wt_since != 0)
		ipc_send(channel_policyd, -1, INQUIRY_DROP, cookie,
		    wt->wt_cookie);
}

static const struct field ask_fields[] = {
	{ "decider", FIELD_STRING, MUST },
	{ "scheme", FIELD_STRING, MUST },
	{ "host", FIELD_STRING, MUST },
	{ "port", FIELD_INTEGER, MUST },
	{ "method", FIELD_STRING, MUST },
	{ "path", FIELD_STRING, MUST },
	{ "messages", FIELD_STRINGS, MAY },
	{ NULL, 0, 0 }
};

const struct op inquiry_ops[] = {
	{ "decider.ask", 0, op_decider_ask, ask_fields },
	{ NULL, 0, NULL, NULL }
};
