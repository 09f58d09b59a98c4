/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: one connection, frames in and frames out.  The client is
 * not trusted: what it sends is checked here to the last bit of a header, and
 * a client that breaks the protocol is told so once and hung up on.
 *
 * What is to be sent waits in one buffer.  Above OUT_HIGH no request adds to it
 * but by answers, above OUT_STOP the client is not heard until it has read.
 */

#include <sys/socket.h>

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../box.h"
#include "op.h"

#define IN_SIZE		(2 * (FRAME_HEADER + FRAME_MAX))
#define FLUSH_MS	5000	/* for what is queued at the end */

struct frame {
	uint32_t	 fr_len;
	uint32_t	 fr_id;
	uint8_t		 fr_kind;
	const uint8_t	*fr_body;
};

static uint32_t
get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	    (uint32_t)p[2] << 8 | p[3];
}

static void
put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

/* Room for a frame with a body of that length, which may become shorter. */
uint8_t *
conn_frame(struct conn *cn, size_t len)
{
	size_t	 need = cn->cn_outlen + FRAME_HEADER + len;

	if (cn->cn_outoff > 0 && cn->cn_outoff + need > cn->cn_outsize) {
		memmove(cn->cn_outbuf, cn->cn_outbuf + cn->cn_outoff,
		    cn->cn_outlen);
		cn->cn_outoff = 0;
	}
	if (need > cn->cn_outsize) {
		cn->cn_outsize = need * 2;
		if ((cn->cn_outbuf = realloc(cn->cn_outbuf,
		    cn->cn_outsize)) == NULL)
			err(BOX_FAILED, NULL);
	}
	return cn->cn_outbuf + cn->cn_outoff + cn->cn_outlen + FRAME_HEADER;
}

void
conn_frame_end(struct conn *cn, uint32_t id, enum frame_kind kind, size_t len)
{
	uint8_t	*p = cn->cn_outbuf + cn->cn_outoff + cn->cn_outlen;

	put32(p, (uint32_t)len);
	put32(p + 4, id);
	p[8] = (uint8_t)kind;
	memset(p + 9, 0, 3);
	cn->cn_outlen += FRAME_HEADER + len;
}

void
conn_send(struct conn *cn, uint32_t id, enum frame_kind kind, const void *body,
    size_t len)
{
	uint8_t	*p = conn_frame(cn, len);

	if (len > 0)
		memcpy(p, body, len);
	conn_frame_end(cn, id, kind, len);
}

/* Nothing more is heard, and all that was asked for is dropped. */
static void
conn_end(struct conn *cn)
{
	struct request	*rq;

	while ((rq = TAILQ_FIRST(&cn->cn_requests)) != NULL)
		request_free(rq);
	cn->cn_inlen = 0;
	if (cn->cn_ended)
		return;
	cn->cn_ended = 1;
	cn->cn_deadline = loop_clock() + FLUSH_MS;
}

void
conn_refuse(struct conn *cn, const char *why)
{
	struct jsonw	*w = request_writer();
	const char	*text;
	size_t		 len;

	jsonw_object(w);
	jsonw_lit(w, "code");
	jsonw_str(w, "bad_request");
	jsonw_lit(w, "message");
	jsonw_str(w, why);
	jsonw_end(w);
	if ((text = jsonw_finish(w, &len)) != NULL)
		conn_send(cn, 0, FRAME_ERROR, text, len);
	cn->cn_refused = 1;
	conn_end(cn);
}

static void
conn_hello(struct conn *cn)
{
	struct jsonw	*w = request_writer();
	const struct op	*op;
	const char	*text;
	size_t		 i, len;

	jsonw_object(w);
	jsonw_lit(w, "protocol");
	jsonw_int(w, 1);
	jsonw_lit(w, "version");
	jsonw_str(w, EGRESSD_VERSION);
	jsonw_lit(w, "operations");
	jsonw_array(w);
	for (i = 0; (op = op_at(i)) != NULL; i++)
		if (op_offered(op, cn->cn_options))
			jsonw_str(w, op->op_name);
	jsonw_end(w);
	jsonw_lit(w, "cwd");
	jsonw_str(w, cn->cn_options->ho_cwd);
	jsonw_lit(w, "limits");
	jsonw_object(w);
	jsonw_lit(w, "requests");
	jsonw_int(w, REQUESTS_MAX);
	jsonw_lit(w, "frame");
	jsonw_int(w, FRAME_MAX);
	jsonw_lit(w, "credit");
	jsonw_int(w, CREDIT_START);
	jsonw_end(w);
	jsonw_end(w);
	if ((text = jsonw_finish(w, &len)) != NULL)
		conn_send(cn, 0, FRAME_RESULT, text, len);
}

static void
conn_call(struct conn *cn, const struct frame *fr)
{
	struct jsonr	*call;
	const char	*why;

	if (request_find(cn, fr->fr_id) != NULL) {
		conn_refuse(cn, "CALL: the id is in use");
		return;
	}
	call = jsonr_parse((const char *)fr->fr_body, fr->fr_len, &why);
	if (call == NULL || call->jr_type != JSONR_OBJECT) {
		jsonr_free(call);
		conn_refuse(cn, "CALL: the body is no JSON object");
		return;
	}
	request_call(cn, fr->fr_id, call);
}

static void
conn_data(struct request *rq, const struct frame *fr)
{
	if (rq->rq_ended) {
		conn_refuse(rq->rq_conn, "DATA after END");
		return;
	}
	if (fr->fr_len > rq->rq_allowed) {
		conn_refuse(rq->rq_conn, "DATA without credit");
		return;
	}
	rq->rq_allowed -= fr->fr_len;
	if (rq->rq_op->op_data != NULL && !rq->rq_over)
		rq->rq_op->op_data(rq, fr->fr_body, fr->fr_len);
}

static void
conn_note(struct request *rq, const struct frame *fr)
{
	struct jsonr	*note;
	const char	*why;

	note = jsonr_parse((const char *)fr->fr_body, fr->fr_len, &why);
	if (note == NULL || note->jr_type != JSONR_OBJECT)
		conn_refuse(rq->rq_conn, "NOTE: the body is no JSON object");
	else if (rq->rq_op->op_note != NULL && !rq->rq_over)
		rq->rq_op->op_note(rq, note);
	jsonr_free(note);
}

/* A frame for a request that is under way. */
static void
conn_more(struct request *rq, const struct frame *fr)
{
	switch (fr->fr_kind) {
	case FRAME_DATA:
		conn_data(rq, fr);
		break;
	case FRAME_END:
		if (!rq->rq_ended && rq->rq_op->op_end != NULL && !rq->rq_over)
			rq->rq_op->op_end(rq);
		rq->rq_ended = 1;
		break;
	case FRAME_CREDIT:
		rq->rq_credit += get32(fr->fr_body);
		break;
	case FRAME_CANCEL:
		request_cancel(rq);
		break;
	case FRAME_NOTE:
		conn_note(rq, fr);
		break;
	}
}

/* Whether a client may send a frame of this kind and length. */
static int
conn_permits(const struct frame *fr)
{
	switch (fr->fr_kind) {
	case FRAME_CALL:
	case FRAME_DATA:
	case FRAME_NOTE:
		return 1;
	case FRAME_END:
	case FRAME_CANCEL:
		return fr->fr_len == 0;
	case FRAME_CREDIT:
		return fr->fr_len == 4;
	default:
		return 0;
	}
}

static void
conn_take(struct conn *cn, const struct frame *fr)
{
	struct request	*rq;

	if (!conn_permits(fr)) {
		conn_refuse(cn, "a frame of that kind and length is not the "
		    "client's to send");
		return;
	}
	if (fr->fr_id == 0) {
		conn_refuse(cn, "id 0 is not the client's to use");
		return;
	}
	if (fr->fr_kind == FRAME_CALL) {
		conn_call(cn, fr);
		return;
	}
	/* The frame may have crossed the answer. */
	if ((rq = request_find(cn, fr->fr_id)) != NULL)
		conn_more(rq, fr);
}

/* Read a header; 1 if the whole frame is there. */
static int
conn_header(struct conn *cn, const uint8_t *p, size_t len, struct frame *fr)
{
	if (len < FRAME_HEADER)
		return 0;
	fr->fr_len = get32(p);
	fr->fr_id = get32(p + 4);
	fr->fr_kind = p[8];
	fr->fr_body = p + FRAME_HEADER;
	if (fr->fr_len > FRAME_MAX) {
		conn_refuse(cn, "a frame longer than 65536");
		return 0;
	}
	if (p[9] != 0 || p[10] != 0 || p[11] != 0) {
		conn_refuse(cn, "bytes 9 to 11 of a header are not zero");
		return 0;
	}
	return len - FRAME_HEADER >= fr->fr_len;
}

/* Take what frames have come, unless answers pile up. */
static void
conn_frames(struct conn *cn)
{
	struct frame	 fr;
	size_t		 off = 0;

	cn->cn_stalled = 0;
	while (!cn->cn_ended && conn_header(cn, cn->cn_inbuf + off,
	    cn->cn_inlen - off, &fr)) {
		if (cn->cn_outlen >= OUT_STOP) {
			cn->cn_stalled = 1;
			break;
		}
		conn_take(cn, &fr);
		off += FRAME_HEADER + fr.fr_len;
	}
	if (cn->cn_ended)
		return;
	cn->cn_inlen -= off;
	memmove(cn->cn_inbuf, cn->cn_inbuf + off, cn->cn_inlen);
}

static short
conn_in_wants(void *arg)
{
	const struct conn	*cn = arg;

	return cn->cn_ended || cn->cn_outlen >= OUT_STOP ||
	    cn->cn_inlen == IN_SIZE ? 0 : POLLIN;
}

static void
conn_in_ready(void *arg)
{
	struct conn	*cn = arg;
	ssize_t		 n;

	if (cn->cn_ended)
		return;
	n = read(cn->cn_in, cn->cn_inbuf + cn->cn_inlen,
	    IN_SIZE - cn->cn_inlen);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		conn_end(cn);
		return;
	}
	cn->cn_inlen += (size_t)n;
	conn_frames(cn);
}

static short
conn_out_wants(void *arg)
{
	const struct conn	*cn = arg;

	return cn->cn_outlen > 0 && !cn->cn_lost ? POLLOUT : 0;
}

static void
conn_out_ready(void *arg)
{
	struct conn	*cn = arg;
	ssize_t		 n;

	if (cn->cn_outlen == 0 || cn->cn_lost)
		return;
	n = write(cn->cn_out, cn->cn_outbuf + cn->cn_outoff, cn->cn_outlen);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == -1) {
		cn->cn_lost = 1;
		conn_end(cn);
		return;
	}
	cn->cn_outoff += (size_t)n;
	cn->cn_outlen -= (size_t)n;
	if (cn->cn_outlen == 0)
		cn->cn_outoff = 0;
}

/*
 * A turn of every request that has something to do, then what they said goes
 * out; 0 if the connection is over.
 */
int
conn_serve(struct conn *cn)
{
	struct request	*rq, *next;

	if (cn->cn_inlen > 0)
		conn_frames(cn);
	TAILQ_FOREACH_SAFE(rq, &cn->cn_requests, rq_entry, next)
		request_run(rq);
	conn_out_ready(cn);
	if (!cn->cn_ended)
		return 1;
	return cn->cn_outlen > 0 && !cn->cn_lost &&
	    loop_clock() < cn->cn_deadline;
}

/* How many milliseconds this connection can wait; -1 for ever. */
int
conn_wait(const struct conn *cn, int64_t now)
{
	const struct request	*rq;
	int64_t			 due = cn->cn_ended ? cn->cn_deadline : 0;

	if (cn->cn_stalled && cn->cn_outlen < OUT_STOP && !cn->cn_ended)
		return 0;
	TAILQ_FOREACH(rq, &cn->cn_requests, rq_entry) {
		if (request_runs(rq))
			return 0;
		if (rq->rq_deadline != 0 && (due == 0 || rq->rq_deadline < due))
			due = rq->rq_deadline;
	}
	if (due == 0)
		return -1;
	return due <= now ? 0 : due - now > 60000 ? 60000 : (int)(due - now);
}

struct conn *
conn_new(int in, int out, const struct hands_options *ho)
{
	struct conn	*cn;

	if ((cn = calloc(1, sizeof(*cn))) == NULL ||
	    (cn->cn_inbuf = malloc(IN_SIZE)) == NULL)
		err(BOX_FAILED, NULL);
	cn->cn_in = in;
	cn->cn_out = out;
	cn->cn_options = ho;
	TAILQ_INIT(&cn->cn_requests);
	cn->cn_reader = watch_new(in, conn_in_wants, conn_in_ready, cn);
	cn->cn_writer = watch_new(out, conn_out_wants, conn_out_ready, cn);
	conn_hello(cn);
	return cn;
}

/* The descriptors are closed. */
void
conn_free(struct conn *cn)
{
	if (cn == NULL)
		return;
	conn_end(cn);
	watch_free(cn->cn_reader);
	watch_free(cn->cn_writer);
	(void)close(cn->cn_in);
	if (cn->cn_out != cn->cn_in)
		(void)close(cn->cn_out);
	free(cn->cn_inbuf);
	free(cn->cn_outbuf);
	free(cn);
}
