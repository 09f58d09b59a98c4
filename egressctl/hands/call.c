/* SPDX-License-Identifier: ISC */

/*
 * egressctl: requests under way on a link, and what box sends for them.  Box
 * is hostile: a frame has to be for a request that is under way, of a sort
 * that the request may get, and within the credit that it was given.
 */

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "show.h"

#define CODE_MAX	32	/* letters of an error's code */

static struct call *
call_find(const struct link *lk, uint32_t id)
{
	size_t	i;

	for (i = 0; i < lk->lk_ncalls; i++)
		if (lk->lk_calls[i]->ca_id == id)
			return lk->lk_calls[i];
	return NULL;
}

static void
call_remove(struct call *ca)
{
	struct link	*lk = ca->ca_link;
	size_t		 i;

	for (i = 0; lk->lk_calls[i] != ca; i++)
		;
	lk->lk_calls[i] = lk->lk_calls[--lk->lk_ncalls];
}

/* ---- what box sends ------------------------------------------------------ */

/* Tells the outcome, and frees the call. */
static void
call_done_free(struct call *ca, const struct outcome *oc)
{
	call_remove(ca);
	ca->ca_over = 1;
	if (!ca->ca_dropped)
		ca->ca_ops->op_done(ca, oc);
	free(ca);
}

/* All of them: the link is over. */
void
calls_gone(struct link *lk)
{
	struct outcome	oc = {
		.oc_code = "gone",
		.oc_message = lk->lk_error,
	};

	while (lk->lk_ncalls > 0)
		call_done_free(lk->lk_calls[lk->lk_ncalls - 1], &oc);
}

static int
is_code(const char *s)
{
	size_t	len = strspn(s, "abcdefghijklmnopqrstuvwxyz_");

	return len > 0 && len <= CODE_MAX && s[len] == '\0';
}

/* RESULT or ERROR. */
static void
take_outcome(struct call *ca, const struct frame *fm, const cJSON *json)
{
	struct outcome	oc = { .oc_body = json, .oc_text = fm->fm_body };

	if (fm->fm_kind == FRAME_ERROR) {
		oc.oc_code = json_string(json, "code");
		oc.oc_message = json_string(json, "message");
		if (oc.oc_code == NULL || oc.oc_message == NULL ||
		    !is_code(oc.oc_code)) {
			link_broken(ca->ca_link,
			    "an error without code and message");
			return;
		}
	}
	call_done_free(ca, &oc);
}

/* Counts what was consumed, and grants it in pieces worth a frame. */
static void
call_consume(struct call *ca, size_t len)
{
	uint32_t	be;

	ca->ca_consumed += len;
	if (ca->ca_consumed < FRAME_CREDIT / 4 || ca->ca_over)
		return;
	be = htobe32((uint32_t)ca->ca_consumed);
	link_put(ca->ca_link, ca->ca_id, FRAME_CREDIT_MORE, (char *)&be,
	    sizeof(be));
	ca->ca_window += ca->ca_consumed;
	ca->ca_consumed = 0;
}

/* 0 if box may send so much for the call; else the link has ended. */
static int
take_credit(struct call *ca, size_t len)
{
	if (len <= ca->ca_window) {
		ca->ca_window -= len;
		return 0;
	}
	link_broken(ca->ca_link, "more bytes than it was permitted to send");
	return -1;
}

static void
take_data(struct call *ca, const struct frame *fm)
{
	void	(*take)(struct call *, const char *, size_t);

	take = fm->fm_kind == FRAME_DATA ? ca->ca_ops->op_data :
	    ca->ca_ops->op_errors;
	if (take == NULL || (fm->fm_kind == FRAME_DATA && ca->ca_quiet)) {
		link_broken(ca->ca_link, "bytes where there are none to come");
		return;
	}
	if (take_credit(ca, fm->fm_len) == -1 || fm->fm_len == 0)
		return;
	if (!ca->ca_dropped)
		take(ca, fm->fm_body, fm->fm_len);
	if (ca->ca_dropped || !ca->ca_ops->op_slow)
		call_consume(ca, fm->fm_len);
}

static void
take_item(struct call *ca, const struct frame *fm, const cJSON *json)
{
	if (ca->ca_ops->op_item == NULL) {
		link_broken(ca->ca_link, "an item where there is none to come");
		return;
	}
	if (take_credit(ca, fm->fm_len) == -1)
		return;
	if (!ca->ca_dropped)
		ca->ca_ops->op_item(ca, json, fm->fm_body);
	call_consume(ca, fm->fm_len);
}

static void
take_end(struct call *ca, const struct frame *fm)
{
	if (fm->fm_len != 0 || ca->ca_quiet || ca->ca_ops->op_data == NULL) {
		link_broken(ca->ca_link, "an end where there is none to come");
		return;
	}
	ca->ca_quiet = 1;
	if (!ca->ca_dropped && ca->ca_ops->op_end != NULL)
		ca->ca_ops->op_end(ca);
}

/* Credit for a request that is over has crossed its end. */
static void
take_more(struct link *lk, struct call *ca, const struct frame *fm)
{
	uint32_t	be;

	if (fm->fm_len != sizeof(be)) {
		link_broken(lk, "a credit of %zu bytes, not %zu", fm->fm_len,
		    sizeof(be));
		return;
	}
	memcpy(&be, fm->fm_body, sizeof(be));
	if (ca != NULL && ca->ca_credit <= UINT64_MAX - UINT32_MAX)
		ca->ca_credit += be32toh(be);
}

static void
take_object(struct call *ca, const struct frame *fm)
{
	struct link	*lk = ca->ca_link;
	cJSON		*json;

	if ((json = body_parse(fm->fm_body, fm->fm_len)) == NULL) {
		link_broken(lk, "not a JSON object where one has to be");
		return;
	}
	if (fm->fm_kind == FRAME_ITEM)
		take_item(ca, fm, json);
	else
		take_outcome(ca, fm, json);
	cJSON_Delete(json);
}

/* A frame for a request; the head was in order. */
void
call_take(struct link *lk, const struct frame *fm)
{
	struct call	*ca = call_find(lk, fm->fm_id);

	if (ca == NULL && (fm->fm_kind != FRAME_CREDIT_MORE ||
	    fm->fm_id > lk->lk_last_id)) {
		link_broken(lk, "a frame for request %u, which is not under "
		    "way", fm->fm_id);
		return;
	}
	switch (fm->fm_kind) {
	case FRAME_RESULT:
	case FRAME_ERROR:
	case FRAME_ITEM:
		take_object(ca, fm);
		break;
	case FRAME_DATA:
	case FRAME_DATA_ERR:
		take_data(ca, fm);
		break;
	case FRAME_END:
		take_end(ca, fm);
		break;
	case FRAME_CREDIT_MORE:
		take_more(lk, ca, fm);
		break;
	default:
		link_broken(lk, "a frame of kind %u, which only clients send",
		    fm->fm_kind);
		break;
	}
}

/* ---- what box is sent ---------------------------------------------------- */

/* Begins a request. */
void
call_op(struct jsonw *w, const char *op)
{
	jsonw_init(w, FRAME_BODY_MAX);
	jsonw_object(w);
	put_str(w, "op", op);
}

static struct call *
call_new(struct link *lk, const struct call_ops *ops, void *arg)
{
	struct call	*ca;

	if ((ca = calloc(1, sizeof(*ca))) == NULL)
		return NULL;
	ca->ca_link = lk;
	ca->ca_id = ++lk->lk_last_id;
	ca->ca_ops = ops;
	ca->ca_arg = arg;
	ca->ca_credit = lk->lk_credit;
	ca->ca_window = FRAME_CREDIT;
	lk->lk_calls[lk->lk_ncalls++] = ca;
	return ca;
}

/* Ends and frees the writer.  NULL: nothing was sent, `why' says why. */
struct call *
link_call(struct link *lk, struct jsonw *w, const struct call_ops *ops,
    void *arg, const char **why)
{
	struct call	*ca = NULL;
	const char	*body;
	size_t		 len;

	jsonw_end(w);
	body = jsonw_finish(w, &len);
	if (lk->lk_error[0] != '\0')
		*why = lk->lk_error;
	else if (body == NULL)
		*why = "the request has more than 65536 bytes";
	else if (lk->lk_ncalls >= lk->lk_limit)
		*why = "too many requests are under way";
	else if (lk->lk_last_id == UINT32_MAX)
		*why = "too many requests on one connection";
	else if ((ca = call_new(lk, ops, arg)) == NULL)
		*why = "out of memory";
	else
		link_put(lk, ca->ca_id, FRAME_CALL, body, len);
	jsonw_free(w);
	return ca;
}

void *
call_arg(const struct call *ca)
{
	return ca->ca_arg;
}

struct link *
call_link(const struct call *ca)
{
	return ca->ca_link;
}

/* Bytes that call_send() takes now: by box's credit and our own queue. */
size_t
call_room(const struct call *ca)
{
	const struct link	*lk = ca->ca_link;
	size_t			 queued = lk->lk_out_len - lk->lk_out_at;
	size_t			 room;

	if (ca->ca_ended || ca->ca_over || lk->lk_error[0] != '\0' ||
	    queued >= LINK_OUT_DATA)
		return 0;
	room = LINK_OUT_DATA - queued;
	return ca->ca_credit < room ? (size_t)ca->ca_credit : room;
}

/* At most call_room() bytes. */
void
call_send(struct call *ca, const char *data, size_t len)
{
	size_t	n;

	for (; len > 0; data += n, len -= n) {
		n = len < FRAME_BODY_MAX ? len : FRAME_BODY_MAX;
		if (n > ca->ca_credit)
			return;
		link_put(ca->ca_link, ca->ca_id, FRAME_DATA, data, n);
		ca->ca_credit -= n;
	}
}

void
call_end(struct call *ca)
{
	if (ca->ca_ended || ca->ca_over)
		return;
	ca->ca_ended = 1;
	link_put(ca->ca_link, ca->ca_id, FRAME_END, NULL, 0);
}

/* Of a call with op_slow. */
void
call_grant(struct call *ca, size_t len)
{
	call_consume(ca, len);
}

/* Ends and frees the writer, which began with jsonw_object(). */
void
call_note(struct call *ca, struct jsonw *w)
{
	const char	*body;
	size_t		 len;

	jsonw_end(w);
	if (!ca->ca_over && (body = jsonw_finish(w, &len)) != NULL)
		link_put(ca->ca_link, ca->ca_id, FRAME_NOTE, body, len);
	jsonw_free(w);
}

void
call_cancel(struct call *ca)
{
	if (ca->ca_cancelled || ca->ca_over)
		return;
	ca->ca_cancelled = 1;
	link_put(ca->ca_link, ca->ca_id, FRAME_CANCEL, NULL, 0);
}

/* What still comes is thrown away; op_done is not called. */
void
call_drop(struct call *ca)
{
	call_cancel(ca);
	ca->ca_dropped = 1;
}
