/* SPDX-License-Identifier: ISC */

/*
 * controld: who follows the records, who has written them down elsewhere and
 * says so, and who answers questions for deciders.  The recorder and deciderd
 * serve them: here a control client's wish is checked for its form, and carried
 * there.
 */

#include "controld.h"

#define ACKS_MAX	64	/* not yet answered */
#define NUMBER_MAX	((UINT64_C(1) << 53) - 1)	/* of JSON */

static unsigned int	 asked;

/* An integer of at least min; by default 0 if it was not given. */
static int
take_number(struct request *rq, const char *name, uint64_t min, uint64_t max,
    uint64_t *number)
{
	double	 v;

	if (!request_has(rq, name))
		return 0;
	v = request_number(rq, name);
	if (v < (double)min || v > (double)max)
		return request_fail(rq, CODE_BAD_REQUEST, "%s: must be %llu to "
		    "%llu", name, (unsigned long long)min,
		    (unsigned long long)max);
	*number = (uint64_t)v;
	return 0;
}

/* Who acknowledges gets all there is, and nobody else does it meanwhile. */
static int
check_acknowledged(struct client *cl, struct request *rq)
{
	if (cl->cl_read_only)
		return request_fail(rq, CODE_NOT_PERMITTED, "from "
		    "acknowledged: not on the read-only socket");
	if (request_has(rq, "kinds") || request_has(rq, "session_id"))
		return request_fail(rq, CODE_BAD_REQUEST, "from acknowledged: "
		    "takes no kinds and no session_id");
	return 0;
}

static int
take_from(struct client *cl, struct request *rq, struct msg_follow *mf)
{
	const cJSON	*from = request_field(rq, "from");

	mf->from = FOLLOW_LIVE;
	if (from != NULL && cJSON_IsNumber(from)) {
		mf->from = FOLLOW_NUMBER;
		mf->first = (uint64_t)from->valuedouble;
	} else if (from != NULL)
		mf->from = FOLLOW_ACKNOWLEDGED;
	if (mf->from == FOLLOW_ACKNOWLEDGED)
		return check_acknowledged(cl, rq);
	if (request_has(rq, "window") || request_has(rq, "term"))
		return request_fail(rq, CODE_BAD_REQUEST, "window and term are "
		    "for from acknowledged");
	return 0;
}

/* The last request of a connection: what follows it is not read. */
static int
op_events_follow(struct client *cl, struct request *rq)
{
	struct msg_follow	 mf = { .window = FOLLOW_WINDOW };

	if (request_session(rq, &mf.session) == -1 ||
	    request_kinds(rq, &mf.kinds) == -1 ||
	    take_from(cl, rq, &mf) == -1 ||
	    take_number(rq, "window", FOLLOW_WINDOW_MIN, FOLLOW_WINDOW_MAX,
	    &mf.window) == -1 ||
	    take_number(rq, "term", 0, NUMBER_MAX, &mf.term) == -1)
		return -1;
	answer_ok();
	client_answer(cl, rq);
	client_follow(cl, &mf);
	return 0;
}

/*
 * The last request of a connection, and nothing may follow it before the
 * answer: what controld has read deciderd would never see.
 */
static int
op_questions_serve(struct client *cl, struct request *rq)
{
	uint64_t	 term = 0;

	if (take_number(rq, "term", 0, NUMBER_MAX, &term) == -1)
		return -1;
	if (client_said_more(cl))
		return request_fail(rq, CODE_BAD_REQUEST, "questions.serve: "
		    "what follows waits for its answer");
	answer_ok();
	client_answer(cl, rq);
	client_answers(cl, term);
	return 0;
}

/* Without a term, whoever knows the number may acknowledge it. */
static int
op_events_ack(struct client *cl, struct request *rq)
{
	uint64_t	 seq = 0, term = UINT64_MAX;
	struct waiter	*wt;

	if (take_number(rq, "seq", 0, NUMBER_MAX, &seq) == -1 ||
	    take_number(rq, "term", 0, NUMBER_MAX, &term) == -1)
		return -1;
	if (asked == ACKS_MAX)
		return request_fail(rq, CODE_BUSY, "%d are under way",
		    ACKS_MAX);
	if ((wt = waiter_new(cl, WAIT_ACK, &rq->rq_id)) == NULL)
		return 0;
	asked++;
	ipc_send(channel_recorder, -1, ACK_ASK, ack_ask,
	    .cookie = wt->wt_cookie, .seq = seq, .term = term);
	return 0;
}

static void
ack_refused(struct waiter *wt, const struct msg_ack_done *ma)
{
	switch (ma->result) {
	case ACK_NO_SPOOL:
		waiter_error(wt, CODE_NOT_SUPPORTED,
		    "the audit file is no spool");
		break;
	case ACK_OLD_TERM:
		waiter_error(wt, CODE_TAKEN_OVER,
		    "there was a follower with a higher term");
		break;
	case ACK_FAILED:
		waiter_error(wt, CODE_INTERNAL, "it could not be written down");
		break;
	default:
		waiter_error(wt, CODE_OUT_OF_RANGE, "seq: must be %llu to %llu",
		    (unsigned long long)ma->acknowledged,
		    (unsigned long long)ma->sent);
	}
}

int
controld_recorder_ack_done(struct ipc *ip, const union msg *m)
{
	const struct msg_ack_done	*ma = &m->ack_done;
	struct waiter			*wt;

	if (asked == 0 || ma->result >= ACK_RESULT_MAX)
		return ipc_bad(ip, "acknowledged %u, asked for %u times",
		    ma->result, asked);
	asked--;
	if ((wt = waiter_find(ma->cookie, WAIT_ACK)) == NULL)
		return 0;
	if (ma->result != ACK_OK) {
		ack_refused(wt, ma);
		return 0;
	}
	put_uint(answer_ok(), "acknowledged", ma->acknowledged);
	waiter_finish(wt);
	return 0;
}

static const struct field follow_fields[] = {
	{ "session_id", FIELD_STRING, MAY },
	{ "kinds", FIELD_STRINGS_SOME, MAY },
	{ "from", FIELD_FROM, MAY },
	{ "window", FIELD_INTEGER, MAY },
	{ "term", FIELD_INTEGER, MAY },
	{ NULL, 0, 0 }
};
static const struct field ack_fields[] = {
	{ "seq", FIELD_INTEGER, MUST },
	{ "term", FIELD_INTEGER, MAY },
	{ NULL, 0, 0 }
};
static const struct field serve_fields[] = {
	{ "term", FIELD_INTEGER, MAY },
	{ NULL, 0, 0 }
};

const struct op follow_ops[] = {
	{ "events.follow", OP_READ_ONLY, op_events_follow, follow_fields },
	{ "events.ack", 0, op_events_ack, ack_fields },
	{ "questions.serve", 0, op_questions_serve, serve_fields },
	{ NULL, 0, NULL, NULL }
};
