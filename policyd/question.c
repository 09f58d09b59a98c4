/* SPDX-License-Identifier: ISC */

/*
 * policyd: a question as deciders read it, described in egressd.conf(5).
 * Much in it was chosen by the agent that is to be judged.  It is one JSON
 * document, every text in it is bounded, and what was cut is marked, so that
 * length cannot hide what matters.
 */

#include "policyd.h"

/* What `messages_dropped' and its number need. */
#define SLACK	64

static struct jsonw	 writer;

static void
put_request(struct jsonw *w, const struct redact *rd, const struct subject *sj)
{
	jsonw_key(w, "request");
	jsonw_object(w);
	subject_put(w, rd, sj);
	jsonw_key(w, "body_bytes");
	if (sj->sj_length == UINT64_MAX)
		jsonw_null(w);
	else
		jsonw_uint(w, sj->sj_length);
	jsonw_end(w);
}

static const char *
write_question(const struct asking *as, const struct context *cx, size_t room,
    size_t *len)
{
	struct jsonw	*w = &writer;

	if (w->jw_max == 0)
		jsonw_init(w, QUESTION_LEN);
	jsonw_reset(w);
	jsonw_object(w);
	put_str(w, "session_id", as->as_session);
	context_put_messages(w, cx, as->as_messages, room);
	put_request(w, as->as_redact, as->as_subject);
	jsonw_key(w, "metadata");
	context_put_metadata(w, cx->cx_metadata, cx->cx_metadata_len,
	    as->as_rule);
	jsonw_end(w);
	return jsonw_finish(w, len);
}

/* Messages take the room that the rest leaves. */
const char *
question_write(const struct asking *as, const struct context *cx, size_t *len)
{
	if (write_question(as, cx, 0, len) == NULL ||
	    *len + SLACK > QUESTION_LEN)
		return NULL;
	return write_question(as, cx, QUESTION_LEN - SLACK - *len, len);
}

const char *
question_make(const struct pending *pe, size_t *len)
{
	const struct session	*se = pe->pe_session;
	const struct rule	*ru = pending_rule(pe);
	const struct asking	 as = {
		.as_session = se->se_name, .as_redact = session_redact(se),
		.as_subject = &pe->pe_subject, .as_rule = ru,
		.as_messages = ru->ru_messages
	};

	return question_write(&as, &se->se_context, len);
}
