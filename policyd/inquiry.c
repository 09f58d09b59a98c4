/* SPDX-License-Identifier: ISC */

/*
 * policyd: a question that an operator makes up, to see whether a decider can
 * be asked and what it says.  It is about nothing: no request waits for the
 * answer, no answer is kept or used for one, and the decider's breaker and
 * its bound on questions at a time know nothing of it.
 */

#include "canon.h"
#include "clock.h"
#include "policyd.h"

#define SESSION		"operator"	/* what the decider is told */

static uint32_t		 asked[INQUIRIES_MAX];	/* cookies; 0: free */
static struct context	 messages;	/* of the inquiry that follows them */
static int		 messages_ready;

/* The place of a cookie, or with 0 a free one; NULL: there is none. */
static uint32_t *
inquiry_find(uint32_t cookie)
{
	size_t	 i;

	for (i = 0; i < INQUIRIES_MAX; i++)
		if (asked[i] == cookie)
			return &asked[i];
	return NULL;
}

/* The messages are a user's. */
int
policyd_controld_inquiry_message(struct ipc *ip, const union msg *m)
{
	const struct msg_inquiry_message	*mm = &m->inquiry_message;

	if (mm->truncated > 1)
		return ipc_bad(ip, "truncated %u", mm->truncated);
	if (!messages_ready)
		context_init(&messages);
	messages_ready = 1;
	context_message(&messages, "user", mm->content, mm->truncated,
	    clock_wall_ns());
	return 0;
}

static const char *
make_document(const struct subject *sj, size_t *len)
{
	const struct asking	 as = {
		.as_session = SESSION, .as_subject = sj,
		.as_messages = MESSAGES_MAX
	};
	const char		*text;

	if (!messages_ready)
		context_init(&messages);
	messages_ready = 0;
	text = question_write(&as, &messages, len);
	context_free(&messages);
	return text;
}

/* NULL: it cannot be asked, and this is why. */
static const struct decider *
find_decider(const char *name, enum inquiry_result *why)
{
	const struct decider	*de = NULL;

	if (slice_running != NULL)
		de = decider_find(slice_running, name);
	*why = de == NULL ? INQUIRY_UNKNOWN :
	    de->de_kind == DECIDER_OPERATOR ? INQUIRY_PERSON :
	    channel_deciderd == NULL || channel_deciderd->ip_congested ?
	    INQUIRY_BUSY : INQUIRY_ASKED;
	return *why == INQUIRY_ASKED ? de : NULL;
}

static void
inquiry_put(struct ipc *ip, const struct msg_inquiry_ask *ma)
{
	const struct subject	 sj = {
		.sj_scheme = ma->scheme, .sj_port = ma->port,
		.sj_host = ma->host, .sj_method = ma->method,
		.sj_path = ma->path
	};
	const struct decider	*de;
	const char		*text;
	enum inquiry_result	 why;
	size_t			 len;

	de = find_decider(ma->decider, &why);
	if ((text = make_document(&sj, &len)) == NULL && de != NULL)
		why = INQUIRY_TOO_LONG;
	if (why != INQUIRY_ASKED) {
		ipc_send(ip, -1, INQUIRY_ASKED, inquiry_asked,
		    .cookie = ma->cookie, .result = why);
		return;
	}
	*inquiry_find(0) = ma->cookie;
	log_info("decider %s: an operator asks it", de->de_name);
	ipc_send(ip, -1, INQUIRY_ASKED, inquiry_asked, .cookie = ma->cookie,
	    .result = INQUIRY_ASKED, .document = { text, len });
	ipc_send(channel_deciderd, -1, QUESTION, question,
	    .id = INQUIRY_BIT | ma->cookie, .timeout_ms = de->de_timeout_ms,
	    .decider = de->de_name, .rule = RULE_NONE,
	    .document = { text, len });
}

int
policyd_controld_inquiry_ask(struct ipc *ip, const union msg *m)
{
	const struct msg_inquiry_ask	*ma = &m->inquiry_ask;
	const char			*why;

	if (ma->cookie == 0 || (ma->cookie & INQUIRY_BIT) != 0 ||
	    inquiry_find(ma->cookie) != NULL || inquiry_find(0) == NULL)
		return ipc_bad(ip, "inquiry %u", ma->cookie);
	if ((ma->scheme != URL_HTTP && ma->scheme != URL_HTTPS) ||
	    ma->port == 0)
		return ipc_bad(ip, "scheme %u, port %u", ma->scheme, ma->port);
	if ((why = canon_fault(ma->host, ma->method, ma->path)) != NULL)
		return ipc_bad(ip, "%s", why);
	inquiry_put(ip, ma);
	return 0;
}

static void
inquiry_end(uint32_t *place, enum answer_result result, const char *reason)
{
	ipc_send(channel_controld, -1, INQUIRY_ANSWER, inquiry_answer,
	    .cookie = *place, .result = result, .reason = reason);
	*place = 0;
}

/* The operator may have given it up meanwhile. */
void
inquiry_answered(const struct msg_answer *ma)
{
	uint32_t	*place = inquiry_find(ma->id & ~INQUIRY_BIT);

	if (place != NULL && *place != 0)
		inquiry_end(place, ma->result, ma->reason);
}

int
policyd_controld_inquiry_drop(struct ipc *ip, const union msg *m)
{
	uint32_t	*place = inquiry_find(m->cookie.cookie);

	if (m->cookie.cookie == 0)
		return ipc_bad(ip, "inquiry 0");
	/* Its answer may just have passed this. */
	if (place == NULL)
		return 0;
	ipc_send(channel_deciderd, -1, QUESTION_DROP, cookie,
	    INQUIRY_BIT | *place);
	inquiry_end(place, ANSWER_ERROR, "dropped");
	return 0;
}
