/* SPDX-License-Identifier: ISC */

/*
 * controld: what a session was refused, in sum.  The recorder counts it; here a
 * control client's question goes there and the answer back.  An answer is
 * several messages: the number under way is bounded, whether their clients
 * are still there or not, or a flood of questions would fill the recorder's
 * queue to us, which is the end of all.
 */

#include <string.h>

#include "controld.h"

/* An answer on its way; the recorder sends one after the other. */
static struct {
	uint32_t	 cookie;
	size_t		 count;
	struct {
		uint64_t	 count;
		char		 host[HOST_LEN + 1];
		char		 reason[NAME_LEN + 1];
	} places[REFUSALS_TOLD];
} told;

#define REFUSALS_MAX	32	/* questions not yet answered */

static unsigned int	 asked;

int
refusals_room(void)
{
	return asked < REFUSALS_MAX;
}

/* A session that has ended counts, as long as the recorder remembers. */
static int
op_session_refusals(struct client *cl, struct request *rq)
{
	struct waiter	*wt;
	const char	*name;

	if (request_session(rq, &name) == -1)
		return -1;
	op_spend(rq, OP_REFUSALS);
	if ((wt = waiter_new(cl, WAIT_REFUSALS, &rq->rq_id)) == NULL)
		return 0;
	asked++;
	ipc_send(channel_recorder, -1, REFUSALS_ASK, refusals_ask,
	    .cookie = wt->wt_cookie, .session = name);
	return 0;
}

static const struct field refusals_fields[] = {
	{ "session_id", FIELD_STRING, MUST },
	{ NULL, 0, 0 }
};

const struct op refusals_ops[] = {
	{ "session.refusals", OP_READ_ONLY | OP_REFUSALS,
	    op_session_refusals, refusals_fields },
	{ NULL, 0, NULL, NULL }
};

int
controld_recorder_refusal(struct ipc *ip, const union msg *m)
{
	const struct msg_refusal	*mr = &m->refusal;

	if (mr->cookie != told.cookie) {
		told.cookie = mr->cookie;
		told.count = 0;
	}
	if (told.count == REFUSALS_TOLD)
		return ipc_bad(ip, "more than %d refusals", REFUSALS_TOLD);
	told.places[told.count].count = mr->count;
	strlcpy(told.places[told.count].host, mr->host,
	    sizeof(told.places[0].host));
	strlcpy(told.places[told.count].reason, mr->reason,
	    sizeof(told.places[0].reason));
	told.count++;
	return 0;
}

int
controld_recorder_refusals(struct ipc *ip, const union msg *m)
{
	const struct msg_refusals	*mr = &m->refusals;
	struct waiter			*wt;
	struct jsonw			*w;
	const char			*body;
	size_t				 i, len;

	if (asked == 0)
		return ipc_bad(ip, "refusals that nobody asked for");
	if (--asked <= REFUSALS_MAX / 2)
		client_unpark();
	if (mr->cookie != told.cookie)
		told.count = 0;
	told.cookie = 0;
	if ((wt = waiter_find(mr->cookie, WAIT_REFUSALS)) == NULL)
		return 0;
	w = answer_ok();
	put_uint(w, "total", mr->total);
	jsonw_key(w, "refusals");
	jsonw_array(w);
	for (i = 0; i < told.count; i++) {
		jsonw_object(w);
		put_str(w, "host", told.places[i].host);
		put_str(w, "reason", told.places[i].reason);
		put_uint(w, "count", told.places[i].count);
		jsonw_end(w);
	}
	jsonw_end(w);
	body = answer_end(&len);
	waiter_answer(wt, body, len);
	return 0;
}
