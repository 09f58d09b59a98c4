/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: the life of a request, from its CALL to its answer, what
 * it may send in between, and what became of it.
 */

#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../box.h"
#include "op.h"

#define GRANT_MIN	65536	/* bytes that are granted again at once */

#define OPERATION_ROW(name)	&op_##name,
static const struct op *const	 operations[] = {
	OPERATIONS(OPERATION_ROW)
};
#undef OPERATION_ROW

const struct op *
op_at(size_t i)
{
	return i < NITEMS(operations) ? operations[i] : NULL;
}

/* Whether hello names it. */
int
op_offered(const struct op *op, const struct hands_options *ho)
{
	return op != &op_mount && (op != &op_forward || ho->ho_forward);
}

struct request *
request_find(struct conn *cn, uint32_t id)
{
	struct request	*rq;

	TAILQ_FOREACH(rq, &cn->cn_requests, rq_entry)
		if (rq->rq_id == id)
			return rq;
	return NULL;
}

static struct request *
request_new(struct conn *cn, uint32_t id, struct jsonr *call)
{
	struct request	*rq;

	if ((rq = calloc(1, sizeof(*rq))) == NULL)
		err(BOX_FAILED, NULL);
	rq->rq_conn = cn;
	rq->rq_id = id;
	rq->rq_call = call;
	rq->rq_credit = rq->rq_allowed = CREDIT_START;
	TAILQ_INSERT_TAIL(&cn->cn_requests, rq, rq_entry);
	cn->cn_nrequests++;
	return rq;
}

void
request_free(struct request *rq)
{
	if (rq->rq_state != NULL && rq->rq_op->op_free != NULL)
		rq->rq_op->op_free(rq);
	TAILQ_REMOVE(&rq->rq_conn->cn_requests, rq, rq_entry);
	rq->rq_conn->cn_nrequests--;
	free(rq->rq_state);
	free(rq->rq_item);
	jsonr_free(rq->rq_call);
	free(rq);
}

static const struct op *
request_op(struct request *rq)
{
	const struct jsonr	*name = jsonr_member(rq->rq_call, "op");
	size_t			 i;

	if (name == NULL || name->jr_type != JSONR_STRING) {
		request_error(rq, "bad_request", "op: %s", name == NULL ?
		    "missing" : "not a string");
		return NULL;
	}
	for (i = 0; i < NITEMS(operations); i++)
		if (strcmp(operations[i]->op_name, name->jr_text) == 0)
			return operations[i];
	request_error(rq, "not_supported", "%.100s: no such operation",
	    name->jr_text);
	return NULL;
}

static void
request_begin(struct request *rq)
{
	const struct op	*op;
	char		 why[256];
	void		*state;

	if (rq->rq_conn->cn_nrequests > REQUESTS_MAX) {
		request_error(rq, "too_many", "%d requests are under way",
		    REQUESTS_MAX);
		return;
	}
	if (!members_whole(rq->rq_call, why, sizeof(why))) {
		request_error(rq, "bad_request", "%s", why);
		return;
	}
	if ((op = request_op(rq)) == NULL)
		return;
	if ((state = calloc(1, op->op_size)) == NULL)
		err(BOX_FAILED, NULL);
	if (members_take(op->op_members, rq->rq_call, state, why,
	    sizeof(why)) == -1) {
		free(state);
		request_error(rq, "bad_request", "%s", why);
		return;
	}
	rq->rq_op = op;
	rq->rq_state = state;
	op->op_start(rq);
}

/* The call is the request's to free. */
void
request_call(struct conn *cn, uint32_t id, struct jsonr *call)
{
	struct request	*rq = request_new(cn, id, call);

	request_begin(rq);
	request_run(rq);
}

/* How many bytes of data may be sent now. */
size_t
request_room(const struct request *rq)
{
	if (rq->rq_over || rq->rq_conn->cn_outlen >= OUT_HIGH)
		return 0;
	return rq->rq_credit > SIZE_MAX / 2 ? SIZE_MAX / 2 : rq->rq_credit;
}

/* Whether there is something to do now. */
int
request_runs(const struct request *rq)
{
	if (rq->rq_over)
		return 1;
	if (rq->rq_item != NULL)
		return request_room(rq) >= rq->rq_itemlen;
	return rq->rq_busy && request_room(rq) > 0;
}

/* A turn; a request that is over is freed. */
void
request_run(struct request *rq)
{
	if (!rq->rq_over && rq->rq_item != NULL &&
	    request_room(rq) >= rq->rq_itemlen) {
		request_data(rq, FRAME_ITEM, rq->rq_item, rq->rq_itemlen);
		free(rq->rq_item);
		rq->rq_item = NULL;
	}
	if (!rq->rq_over && rq->rq_busy && rq->rq_item == NULL &&
	    request_room(rq) > 0)
		rq->rq_op->op_step(rq);
	if (!rq->rq_over && rq->rq_deadline != 0 &&
	    rq->rq_deadline <= loop_clock()) {
		rq->rq_deadline = 0;
		rq->rq_op->op_late(rq);
	}
	if (rq->rq_over)
		request_free(rq);
}

void
request_cancel(struct request *rq)
{
	if (rq->rq_over)
		return;
	if (rq->rq_op->op_cancel != NULL)
		rq->rq_op->op_cancel(rq);
	else
		request_error(rq, "cancelled", "cancelled by the client");
}

/* No more than there is room for; FRAME_MAX at most. */
void
request_data(struct request *rq, enum frame_kind kind, const void *data,
    size_t len)
{
	rq->rq_credit -= len;
	conn_send(rq->rq_conn, rq->rq_id, kind, data, len);
}

static size_t
request_slice(const struct request *rq, size_t max)
{
	size_t	 room = request_room(rq);

	if (max > room)
		max = room;
	return max > SLICE ? SLICE : max;
}

static ssize_t
request_was_read(struct request *rq, enum frame_kind kind, ssize_t n)
{
	if (n > 0) {
		rq->rq_credit -= (size_t)n;
		conn_frame_end(rq->rq_conn, rq->rq_id, kind, (size_t)n);
	}
	return n;
}

/* Send what a descriptor has, a slice at most, as read(2) gives it. */
ssize_t
request_read(struct request *rq, enum frame_kind kind, int fd, size_t max)
{
	size_t	 len = request_slice(rq, max);

	return request_was_read(rq, kind, read(fd, conn_frame(rq->rq_conn, len),
	    len));
}

ssize_t
request_pread(struct request *rq, int fd, size_t max, off_t at)
{
	size_t	 len = request_slice(rq, max);

	return request_was_read(rq, FRAME_DATA, pread(fd,
	    conn_frame(rq->rq_conn, len), len, at));
}

void
request_send_end(struct request *rq)
{
	conn_send(rq->rq_conn, rq->rq_id, FRAME_END, NULL, 0);
}

/*
 * Send one of many, or keep it until there is room: op_step is not called
 * before that, and must not make another in this turn.
 */
void
request_item_text(struct request *rq, const char *text, size_t len)
{
	if (request_room(rq) >= len) {
		request_data(rq, FRAME_ITEM, text, len);
		return;
	}
	if ((rq->rq_item = malloc(len)) == NULL)
		err(BOX_FAILED, NULL);
	memcpy(rq->rq_item, text, len);
	rq->rq_itemlen = len;
}

void
request_item(struct request *rq, struct jsonw *w)
{
	const char	*text;
	size_t		 len;

	if ((text = jsonw_finish(w, &len)) == NULL)
		request_error(rq, "too_large", "an item longer than a frame");
	else
		request_item_text(rq, text, len);
}

/* So many bytes of the client's are used up; it may send as many again. */
void
request_eat(struct request *rq, size_t len)
{
	uint8_t	 grant[4];

	rq->rq_eaten += len;
	if (rq->rq_eaten < GRANT_MIN || rq->rq_ended || rq->rq_over)
		return;
	grant[0] = (uint8_t)(rq->rq_eaten >> 24);
	grant[1] = (uint8_t)(rq->rq_eaten >> 16);
	grant[2] = (uint8_t)(rq->rq_eaten >> 8);
	grant[3] = (uint8_t)rq->rq_eaten;
	rq->rq_allowed += rq->rq_eaten;
	rq->rq_eaten = 0;
	conn_send(rq->rq_conn, rq->rq_id, FRAME_CREDIT, grant, sizeof(grant));
}

/* The one writer that there is; its document is used before the next. */
struct jsonw *
request_writer(void)
{
	static struct jsonw	 writer;

	if (writer.jw_max == 0)
		jsonw_init(&writer, FRAME_MAX);
	jsonw_reset(&writer);
	return &writer;
}

void
request_answer(struct request *rq, enum frame_kind kind, const char *text,
    size_t len)
{
	conn_send(rq->rq_conn, rq->rq_id, kind, text, len);
	rq->rq_over = 1;
}

void
request_result(struct request *rq, struct jsonw *w)
{
	const char	*text;
	size_t		 len;

	if ((text = jsonw_finish(w, &len)) == NULL)
		request_error(rq, "too_large", "a result longer than a frame");
	else
		request_answer(rq, FRAME_RESULT, text, len);
}

/* An answer's longest text is a path's: 4096 bytes, escaped. */
static struct jsonw *
error_begin(const char *code, const char *fmt, va_list ap)
{
	struct jsonw	*w = request_writer();
	char		 text[8192];

	vsnprintf(text, sizeof(text), fmt, ap);
	jsonw_object(w);
	jsonw_lit(w, "code");
	jsonw_str(w, code);
	jsonw_lit(w, "message");
	jsonw_str(w, text);
	return w;
}

static void
error_send(struct request *rq, struct jsonw *w)
{
	const char	*text;
	size_t		 len;

	jsonw_end(w);
	if ((text = jsonw_finish(w, &len)) != NULL)
		conn_send(rq->rq_conn, rq->rq_id, FRAME_ERROR, text, len);
	rq->rq_over = 1;
}

void
request_error(struct request *rq, const char *code, const char *fmt, ...)
{
	struct jsonw	*w;
	va_list		 ap;

	va_start(ap, fmt);
	w = error_begin(code, fmt, ap);
	va_end(ap);
	error_send(rq, w);
}

/* With one member more, a number. */
void
request_error_with(struct request *rq, const char *code, const char *name,
    uint64_t number, const char *fmt, ...)
{
	struct jsonw	*w;
	va_list		 ap;

	va_start(ap, fmt);
	w = error_begin(code, fmt, ap);
	va_end(ap);
	jsonw_key(w, name);
	jsonw_uint(w, number);
	error_send(rq, w);
}

const char *
error_code(int error)
{
	switch (error) {
	case ENOENT:
		return "not_found";
	case EACCES:
	case EPERM:
	case EROFS:
		return "denied";
	case EEXIST:
		return "exists";
	case EISDIR:
	case ENOTDIR:
	case ENXIO:
	case ENODEV:
		return "wrong_type";
	case ENOSPC:
	case EDQUOT:
		return "no_space";
	case EFBIG:
		return "too_large";
	default:
		return "failed";
	}
}

/* An error of the system's, about what. */
void
request_failed(struct request *rq, int error, const char *what)
{
	request_error(rq, error_code(error), "%s: %s", what, error == ENODEV ?
	    "Not a regular file" : strerror(error));
}
