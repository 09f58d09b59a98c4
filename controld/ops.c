/* SPDX-License-Identifier: ISC */

/*
 * controld: the operations that a control client may ask for.  Each is a row
 * in the table of the file that carries it out: its name, how it is served,
 * and the fields that it takes.  To add one, add a row and its fields.
 */

#include <string.h>

#include "controld.h"

static const struct op	 own_ops[];

static const struct op *const	 tables[] = {
	own_ops, status_ops, environment_ops, run_ops, boxed_ops, pods_ops,
	mounting_ops, refusals_ops, follow_ops, decide_ops, context_ops,
	inquiry_ops,
};
#define NTABLES	(sizeof(tables) / sizeof(tables[0]))

static const struct op *
op_find(const char *name)
{
	const struct op	*op;
	size_t		 i;

	for (i = 0; i < NTABLES; i++)
		for (op = tables[i]; op->op_name != NULL; op++)
			if (strcmp(op->op_name, name) == 0)
				return op;
	return NULL;
}

/* Whether some operation has a field of this name. */
static int
op_field_exists(const char *name)
{
	const struct op	*op;
	size_t		 i;

	for (i = 0; i < NTABLES; i++)
		for (op = tables[i]; op->op_name != NULL; op++)
			if (field_known(op->op_fields, name))
				return 1;
	return 0;
}

static int
op_check(struct request *rq, const struct op *op)
{
	if (request_check(rq, op->op_fields) == 0)
		return 0;
	if (rq->rq_stray != NULL && op_field_exists(rq->rq_stray))
		return request_fail(rq, CODE_BAD_REQUEST,
		    "%s: not a field of %s", rq->rq_stray, op->op_name);
	return -1;
}

static int
op_permitted(struct client *cl, struct request *rq, const struct op *op)
{
	if (cl->cl_read_only && !(op->op_flags & OP_READ_ONLY))
		return request_fail(rq, CODE_NOT_PERMITTED,
		    "%s: not on the read-only socket", op->op_name);
	if (op_check(rq, op) == -1)
		return -1;
	if (!(op->op_flags & OP_PASSED) && passed_any(&cl->cl_passed))
		return request_fail(rq, CODE_BAD_REQUEST,
		    "%s: it takes no descriptor", op->op_name);
	return 0;
}

/* 0: done or under way; 1: not now; -1: the request says what was wrong. */
static int
op_run(struct client *cl, struct request *rq)
{
	const struct op	*op;

	if ((op = op_find(request_op(rq))) == NULL)
		return request_fail(rq, CODE_UNKNOWN_OP,
		    "%.64s: no such operation", request_op(rq));
	if (op_permitted(cl, rq, op) == -1)
		return -1;
	if (((op->op_flags & OP_ERRAND) && !errand_room()) ||
	    ((op->op_flags & OP_REFUSALS) && !refusals_room()))
		return 1;
	rq->rq_credit = op->op_flags & (OP_ERRAND | OP_REFUSALS);
	return op->op_run(cl, rq);
}

/*
 * An operation whose row declares no credit would ask without end in a flood;
 * here it fails with its first test.
 */
void
op_spend(const struct request *rq, unsigned int credit)
{
	if (!(rq->rq_credit & credit))
		fatalx("%s: its row declares no credit", request_op(rq));
}

static void
op_refuse(struct client *cl, const struct request *rq)
{
	answer_error(rq->rq_code, rq->rq_message, strlen(rq->rq_message));
	client_answer(cl, rq);
	if (rq->rq_hangup)
		client_hang_up(cl);
}

/* 0: the line is to come again when there is room for it. */
int
op_serve(struct client *cl, const char *line, size_t len)
{
	struct request	 rq;
	int		 rv;

	if ((rv = request_parse(&rq, line, len)) == 0)
		rv = op_run(cl, &rq);
	if (rv == -1)
		op_refuse(cl, &rq);
	request_free(&rq);
	if (rv == 1)
		return 0;
	/* What came with this request is not the next one's. */
	passed_clear(&cl->cl_passed);
	return 1;
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
controld_parent_reload_done(struct ipc *ip, const union msg *m)
{
	static const char *const	 codes[RELOAD_RESULT_MAX] = {
		[RELOAD_BAD_CONF] = CODE_BAD_CONFIGURATION,
		[RELOAD_REFUSED] = CODE_RELOAD_REFUSED,
		[RELOAD_BUSY] = CODE_BUSY,
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

static const struct field level_fields[] = {
	{ "level", FIELD_STRING, MUST },
	{ NULL, 0, 0 }
};

static const struct op own_ops[] = {
	{ "reload", 0, op_reload, NULL },
	{ "log.level", 0, op_log_level, level_fields },
	{ NULL, 0, NULL, NULL }
};
