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
 * policyd: what a session was refused, in sum.  The recorder counts it; here a
 * control client's question goes there and the answer back.
 */

#include <string.h>

#include "policyd.h"

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

/* Also of a session that has ended, as long as the recorder remembers. */
int
op_session_refusals(struct client *cl, struct request *rq)
{
	struct waiter	*wt;
	const char	*name;

	if (request_session(rq, &name) == -1)
		return -1;
	if ((wt = waiter_new(cl, WAIT_REFUSALS, &rq->rq_id)) != NULL)
		ipc_send(channel_recorder, -1, REFUSALS_ASK, refusals_ask,
		    .cookie = wt->wt_cookie, .session = name);
	return 0;
}

int
policyd_recorder_refusal(struct ipc *ip, const union msg *m)
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
policyd_recorder_refusals(struct ipc *ip, const union msg *m)
{
	const struct msg_refusals	*mr = &m->refusals;
	struct waiter			*wt;
	struct jsonw			*w;
	const char			*body;
	size_t				 i, len;

	(void)ip;
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
