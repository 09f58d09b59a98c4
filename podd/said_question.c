/* SPDX-License-Identifier: ISC */

/*
 * podd: a question of a gate in a pod, read strictly.  It is hostile.  What
 * the gate knows of the session's messages and metadata is nothing that we
 * want: policyd has those of its own.
 */

#include <string.h>

#include "jsonr.h"
#include "podd.h"

#define TIMEOUT_MAX_MS	(3600 * 1000)

/* "" for null, as of a connection that is not looked into; NULL: neither. */
static const char *
text_or_null(const struct jsonr *jr, const char *name, size_t max)
{
	const struct jsonr	*member = jsonr_member(jr, name);

	if (member != NULL && member->jr_type == JSONR_NULL)
		return "";
	return said_text(jr, name, max);
}

/* 0 or 1; not there is 0. */
static int
flag(const struct jsonr *jr, const char *name)
{
	const struct jsonr	*member = jsonr_member(jr, name);

	if (member == NULL)
		return 0;
	return member->jr_type == JSONR_BOOL ? (int)member->jr_number : -1;
}

static const char *
take_request(const struct jsonr *jr, struct msg_pod_question *mq)
{
	static const char *const	 names[] = { "scheme", "host", "port",
	    "method", "path", "path_truncated", "path_redacted", "body_bytes",
	    NULL };
	const struct jsonr		*length, *redacted;
	const char			*scheme = said_text(jr, "scheme",
					    NAME_LEN);
	int64_t				 port = said_number(jr, "port", 65535);
	int64_t				 size = said_number(jr, "body_bytes",
					    JSONR_INTEGER_MAX);
	int64_t				 hidden = said_number(jr,
					    "path_redacted",
					    JSONR_INTEGER_MAX);
	int				 n, cut;

	if (!said_is(jr, names))
		return "a question about no request";
	cut = flag(jr, "path_truncated");
	length = jsonr_member(jr, "body_bytes");
	redacted = jsonr_member(jr, "path_redacted");
	n = scheme != NULL ? url_scheme_find(scheme) : -1;
	mq->host = said_text(jr, "host", HOST_LEN);
	mq->method = text_or_null(jr, "method", METHOD_LEN);
	mq->path = text_or_null(jr, "path", SHOWN_LEN);
	if (n == -1 || port < 1 || cut == -1 || mq->host == NULL ||
	    mq->method == NULL || mq->path == NULL || length == NULL ||
	    (size == -1 && length->jr_type != JSONR_NULL) ||
	    (redacted != NULL && hidden == -1))
		return "a question about no request";
	mq->scheme = (uint8_t)n;
	mq->port = (uint16_t)port;
	mq->length = size == -1 ? UINT64_MAX : (uint64_t)size;
	mq->truncated = (uint8_t)cut;
	mq->redacted = redacted != NULL ? (uint64_t)hidden : 0;
	return NULL;
}

static const char *
take_document(const struct jsonr *jr, struct msg_pod_question *mq)
{
	static const char *const	 names[] = { "session_id",
	    "recent_messages", "messages_dropped", "request",
	    "metadata", NULL };
	const char			*session;

	if (!said_is(jr, names))
		return "a question without a document";
	session = said_text(jr, "session_id", NAME_LEN);
	if (session == NULL || strcmp(session, POD_SESSION) != 0)
		return "a question of another session";
	return take_request(jsonr_member(jr, "request"), mq);
}

static const char *
take_question(const struct jsonr *jr, struct said_question *sq)
{
	static const char *const	 names[] = { "id", "decider", "rule",
	    "timeout_ms", "question", NULL };
	static const char *const	 drop[] = { "id", "drop", NULL };
	struct msg_pod_question		*mq = &sq->sq_ask;
	int64_t				 id = said_number(jr, "id",
					    JSONR_INTEGER_MAX);
	int64_t				 rule, timeout;

	if (id == -1)
		return "a question without a number";
	mq->id = (uint64_t)id;
	if (said_is(jr, drop) && flag(jr, "drop") == 1) {
		sq->sq_drop = 1;
		return NULL;
	}
	rule = said_number(jr, "rule", UINT32_MAX - 1);
	timeout = said_number(jr, "timeout_ms", TIMEOUT_MAX_MS);
	mq->decider = said_text(jr, "decider", NAME_LEN);
	if (!said_is(jr, names) || rule == -1 || timeout < 1 ||
	    mq->decider == NULL || *mq->decider == '\0')
		return "a question that is none";
	mq->rule = (uint32_t)rule;
	mq->timeout_ms = (uint64_t)timeout;
	return take_document(jsonr_member(jr, "question"), mq);
}

/* With -1 there is nothing to be freed. */
int
said_question(const char *line, size_t len, struct said_question *sq,
    const char **why)
{
	memset(sq, 0, sizeof(*sq));
	if (len > SAID_QUESTION_LEN) {
		*why = "a question that is too long";
		return -1;
	}
	if ((sq->sq_json = jsonr_parse(line, len, why)) == NULL)
		return -1;
	if ((*why = take_question(sq->sq_json, sq)) == NULL)
		return 0;
	jsonr_free(sq->sq_json);
	sq->sq_json = NULL;
	return -1;
}
