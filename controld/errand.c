/* SPDX-License-Identifier: ISC */

/*
 * controld: what policyd does for a client: one message there, one back.  The
 * number under way is bounded, so that what clients send in a flood delays a
 * verdict by that many messages and no more.
 */

#include "controld.h"

static unsigned int	 errands;	/* not yet answered */

int
errand_room(void)
{
	return errands < ERRANDS_MAX;
}

/* The caller sends the message with the waiter's cookie; NULL: no need. */
struct waiter *
errand_new(struct client *cl, const struct request *rq,
    void (*tell)(struct waiter *, const struct msg_control_done *))
{
	struct waiter	*wt;

	op_spend(rq, OP_ERRAND);
	if ((wt = waiter_new(cl, WAIT_ERRAND, &rq->rq_id)) == NULL)
		return NULL;
	wt->wt_tell = tell;
	errands++;
	return wt;
}

/* The client may have gone; the credit is back in any case. */
int
controld_policyd_control_done(struct ipc *ip, const union msg *m)
{
	const struct msg_control_done	*md = &m->control_done;
	struct waiter			*wt;

	if (errands == 0 || md->result >= CONTROL_RESULT_MAX)
		return ipc_bad(ip, "result %u of %u errands", md->result,
		    errands);
	errands--;
	if ((wt = waiter_find(md->cookie, WAIT_ERRAND)) != NULL)
		wt->wt_tell(wt, md);
	if (errands <= ERRANDS_MAX / 2)
		client_unpark();
	return 0;
}
