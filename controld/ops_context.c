/* SPDX-License-Identifier: ISC */

/*
 * controld: what a client tells deciders about a session.  It is cut to what
 * policyd keeps and passed on; of JSON nothing but names and values goes
 * there.
 */

#include <stdio.h>
#include <string.h>

#include "controld.h"
#include "utf8.h"

static int
read_session(struct request *rq, const char **name)
{
	if (request_session(rq, name) == -1)
		return -1;
	if (session_find(*name) == NULL)
		return request_fail(rq, CODE_UNKNOWN_SESSION,
		    "there is no session %s", *name);
	return 0;
}

/* Whether policyd knows the session, too; else the waiter is answered. */
static int
known(struct waiter *wt, const struct msg_control_done *md)
{
	if (md->result != CONTROL_NONE)
		return 1;
	waiter_error(wt, CODE_UNKNOWN_SESSION, "there is no session %s",
	    wt->wt_text);
	return 0;
}

static void
tell_message(struct waiter *wt, const struct msg_control_done *md)
{
	if (!known(wt, md))
		return;
	put_uint(answer_ok(), "messages", md->count);
	waiter_finish(wt);
}

static int
op_session_message(struct client *cl, struct request *rq)
{
	const char	*content = request_text(rq, "content"), *name, *role;
	size_t		 len = strlen(content);
	char		 cut[CONTENT_LEN + 1];
	struct waiter	*wt;

	if (read_session(rq, &name) == -1 ||
	    request_name(rq, "role", &role) == -1)
		return -1;
	if ((wt = errand_new(cl, rq, tell_message)) == NULL)
		return 0;
	waiter_about(wt, name, strlen(name));
	snprintf(cut, sizeof(cut), "%.*s",
	    (int)utf8_cut(content, len, CONTENT_LEN), content);
	ipc_send(channel_policyd, -1, CONTEXT_MESSAGE, context_message,
	    .cookie = wt->wt_cookie, .session = name, .role = role,
	    .content = cut, .truncated = strlen(cut) < len);
	return 0;
}

static void
tell_metadata(struct waiter *wt, const struct msg_control_done *md)
{
	if (!known(wt, md))
		return;
	if (md->result == CONTROL_TOO_MUCH) {
		waiter_error(wt, CODE_TOO_MUCH, "metadata: at most %d entries "
		    "and %d bytes as JSON", METADATA_MAX, METADATA_LEN);
		return;
	}
	answer_ok();
	waiter_finish(wt);
}

/*
 * Names and values with a NUL behind each; -1 if there is no room.  As JSON it
 * would be longer, so what does not fit here is too much in any case.
 */
static int
pack_metadata(const cJSON *metadata, char *pairs, size_t size, size_t *len)
{
	const cJSON	*v;
	size_t		 n;

	*len = 0;
	cJSON_ArrayForEach(v, metadata) {
		n = strlen(v->string) + 1;
		if (*len + n + strlen(v->valuestring) + 1 > size)
			return -1;
		memcpy(pairs + *len, v->string, n);
		*len += n;
		n = strlen(v->valuestring) + 1;
		memcpy(pairs + *len, v->valuestring, n);
		*len += n;
	}
	return 0;
}

static int
op_session_metadata(struct client *cl, struct request *rq)
{
	char		 pairs[METADATA_LEN];
	const char	*name;
	struct waiter	*wt;
	size_t		 len;

	if (read_session(rq, &name) == -1)
		return -1;
	if (pack_metadata(request_field(rq, "metadata"), pairs,
	    sizeof(pairs), &len) == -1)
		return request_fail(rq, CODE_TOO_MUCH, "metadata: at most %d "
		    "entries and %d bytes as JSON", METADATA_MAX,
		    METADATA_LEN);
	if ((wt = errand_new(cl, rq, tell_metadata)) == NULL)
		return 0;
	waiter_about(wt, name, strlen(name));
	ipc_send(channel_policyd, -1, CONTEXT_METADATA, context_metadata,
	    .cookie = wt->wt_cookie, .session = name,
	    .pairs = { pairs, len });
	return 0;
}

static const struct field message_fields[] = {
	{ "session_id", FIELD_STRING, MUST },
	{ "role", FIELD_STRING, MUST },
	{ "content", FIELD_STRING, MUST },
	{ NULL, 0, 0 }
};
static const struct field metadata_fields[] = {
	{ "session_id", FIELD_STRING, MUST },
	{ "metadata", FIELD_STRING_MAP, MUST },
	{ NULL, 0, 0 }
};

const struct op context_ops[] = {
	{ "session.message", OP_ERRAND, op_session_message, message_fields },
	{ "session.metadata", OP_ERRAND, op_session_metadata,
	    metadata_fields },
	{ NULL, 0, NULL, NULL }
};
