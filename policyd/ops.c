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
 * policyd: the operations that a control client may ask for.  Each is a row
 * in a table: its name, whether the read-only socket serves it, whether it
 * takes a descriptor, the fields that it takes and those that it needs.  To
 * add one, add a row.
 */

#include <string.h>

#include "policyd.h"

#define F(x)	(1U << FIELD_##x)

struct op {
	const char	 *op_name;
	int		  op_read_only;
	int		  op_passed;	/* takes a descriptor */
	uint32_t	  op_may;
	uint32_t	  op_must;
	int		(*op_run)(struct client *, struct request *);
};

static int	 op_status(struct client *, struct request *);
static int	 op_reload(struct client *, struct request *);
static int	 op_log_level(struct client *, struct request *);
static int	 op_events_follow(struct client *, struct request *);

static const struct op ops[] = {
	{ "status", 1, 0, 0, 0, op_status },
	{ "reload", 0, 0, 0, 0, op_reload },
	{ "log.level", 0, 0, 0, F(LEVEL), op_log_level },
	{ "events.follow", 1, 0, F(SESSION) | F(KINDS), 0, op_events_follow },
	{ "session.environment", 1, 0, F(POLICY), 0, op_session_environment },
	{ "session.start", 0, 1, F(SESSION) | F(POLICY) | F(ENVIRONMENT), 0,
	    op_session_start },
	{ "session.wait", 1, 0, 0, F(SESSION), op_session_wait },
	{ "session.refusals", 1, 0, 0, F(SESSION), op_session_refusals },
	{ "session.message", 0, 0, 0, F(WHOSE) | F(ROLE) | F(CONTENT),
	    op_session_message },
	{ "session.metadata", 0, 0, 0, F(WHOSE) | F(METADATA),
	    op_session_metadata },
	{ "pending.list", 1, 0, 0, 0, op_pending_list },
	{ "pending.wait", 1, 0, 0, F(VERSION), op_pending_wait },
	{ "pending.answer", 0, 0, F(REASON) | F(REMEMBER),
	    F(PENDING) | F(DECISION), op_pending_answer },
	{ "decider.ask", 0, 0, F(MESSAGES), F(DECIDER) | F(SCHEME) | F(HOST) |
	    F(PORT) | F(METHOD) | F(PATH), op_decider_ask },
	{ "cache.list", 1, 0, F(WHOSE), 0, op_cache_list },
	{ "cache.clear", 0, 0, F(WHOSE) | F(HOST), 0, op_cache_clear },
};

static const struct op *
op_find(const char *name)
{
	size_t	 i;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strcmp(ops[i].op_name, name) == 0)
			return &ops[i];
	return NULL;
}

/* 0: done or under way; -1: the request says what was wrong. */
static int
op_run(struct client *cl, struct request *rq)
{
	const struct op	*op;

	if ((op = op_find(request_op(rq))) == NULL)
		return request_fail(rq, "unknown_op",
		    "%.64s: no such operation", request_op(rq));
	if (cl->cl_read_only && !op->op_read_only)
		return request_fail(rq, "not_permitted",
		    "%s: not on the read-only socket", op->op_name);
	if (request_check(rq, op->op_may, op->op_must) == -1)
		return -1;
	if (!op->op_passed && passed_any(&cl->cl_passed))
		return request_fail(rq, "bad_request",
		    "%s: it takes no descriptor", op->op_name);
	return op->op_run(cl, rq);
}

void
op_serve(struct client *cl, const char *line, size_t len)
{
	struct request	 rq;
	const char	*body;
	size_t		 bodylen;

	if (request_parse(&rq, line, len) == -1 || op_run(cl, &rq) == -1) {
		answer_error(rq.rq_code, rq.rq_message, strlen(rq.rq_message));
		body = answer_end(&bodylen);
		client_send(cl, &rq.rq_id, body, bodylen);
		if (rq.rq_hangup)
			client_hang_up(cl);
	}
	/* What came with this request is not the next one's. */
	passed_clear(&cl->cl_passed);
	request_free(&rq);
}

static int
op_status(struct client *cl, struct request *rq)
{
	struct waiter	*wt;

	if ((wt = waiter_new(cl, WAIT_STATUS, &rq->rq_id)) != NULL)
		status_ask(wt);
	return 0;
}

static int
op_reload(struct client *cl, struct request *rq)
{
	struct waiter	*wt;

	if ((wt = waiter_new(cl, WAIT_RELOAD, &rq->rq_id)) != NULL)
		ipc_send(child_parent, -1, RELOAD_ASK, cookie, wt->wt_cookie);
	return 0;
}

static int
op_log_level(struct client *cl, struct request *rq)
{
	struct jsonw	*w;
	const char	*body;
	size_t		 len;
	uint8_t		 level = 0;

	if (request_level(rq, &level) == -1)
		return -1;
	ipc_send(child_parent, -1, LOG_ASK, log_level, level);
	w = answer_ok();
	jsonw_key(w, "log_level");
	jsonw_str(w, log_level_name(level));
	body = answer_end(&len);
	client_send(cl, &rq->rq_id, body, len);
	return 0;
}

/* The last request of a connection: what follows it is not read. */
static int
op_events_follow(struct client *cl, struct request *rq)
{
	const char	*session, *body;
	uint32_t	 kinds;
	size_t		 len;

	if (request_session(rq, &session) == -1 ||
	    request_kinds(rq, &kinds) == -1)
		return -1;
	answer_ok();
	body = answer_end(&len);
	client_send(cl, &rq->rq_id, body, len);
	client_follow(cl, kinds, session);
	return 0;
}

/* The text has a line for each thing wrong; people read the first at least. */
static void
reload_error(const char *code, const char *text, int list)
{
	struct jsonw	*w;
	size_t		 n = strcspn(text, "\n");

	w = answer_error(code, text, n);
	if (!list)
		return;
	jsonw_key(w, "errors");
	jsonw_array(w);
	for (; *text != '\0'; n = strcspn(text, "\n")) {
		if (n > 0)
			jsonw_string(w, text, n);
		text += n + (text[n] == '\n');
	}
	jsonw_end(w);
}

int
policyd_parent_reload_done(struct ipc *ip, const union msg *m)
{
	static const char *const	 codes[RELOAD_RESULT_MAX] = {
		[RELOAD_BAD_CONF] = "bad_configuration",
		[RELOAD_REFUSED] = "reload_refused",
		[RELOAD_BUSY] = "busy",
	};
	const struct msg_reload_done	*md = &m->reload_done;
	struct jsonw			*w;
	struct waiter			*wt;
	const char			*body;
	size_t				 len;

	if (md->result >= RELOAD_RESULT_MAX)
		return ipc_bad(ip, "reload result %u", md->result);
	if ((wt = waiter_find(md->cookie, WAIT_RELOAD)) == NULL)
		return 0;
	if (md->result == RELOAD_OK) {
		w = answer_ok();
		jsonw_key(w, "generation");
		jsonw_uint(w, md->generation);
	} else
		reload_error(codes[md->result], md->text,
		    md->result == RELOAD_BAD_CONF);
	body = answer_end(&len);
	waiter_answer(wt, body, len);
	return 0;
}
