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
 * policyd: what clients wait for.  The parent gives back a cookie, which is
 * looked up; the client that it was for may be gone by then.
 */

#include <stdlib.h>

#include "policyd.h"

RB_HEAD(waitertree, waiter);

static struct waitertree	 waitertree = RB_INITIALIZER(&waitertree);

static int
waiter_cmp(const struct waiter *a, const struct waiter *b)
{
	if (a->wt_cookie == b->wt_cookie)
		return 0;
	return a->wt_cookie < b->wt_cookie ? -1 : 1;
}

RB_PROTOTYPE(waitertree, waiter, wt_entry, waiter_cmp);
RB_GENERATE(waitertree, waiter, wt_entry, waiter_cmp);

static struct waiter *
waiter_lookup(uint32_t cookie)
{
	struct waiter	 key = { .wt_cookie = cookie };

	return RB_FIND(waitertree, &waitertree, &key);
}

/* Not 0, and not in use even after the number has gone round. */
uint32_t
waiter_cookie(void)
{
	static uint32_t	 last;

	do
		last = (last + 1) & ~INQUIRY;
	while (last == 0 || waiter_lookup(last) != NULL);
	return last;
}

/* NULL if the client has asked enough or memory is short: it is dropped. */
struct waiter *
waiter_new(struct client *cl, enum waiter_kind kind,
    const struct request_id *id)
{
	struct waiter	*wt;

	if (cl->cl_nwaiters == CLIENT_WAITERS ||
	    (wt = calloc(1, sizeof(*wt))) == NULL) {
		client_drop(cl);
		return NULL;
	}
	wt->wt_client = cl;
	wt->wt_kind = kind;
	wt->wt_cookie = waiter_cookie();
	if (id != NULL)
		wt->wt_id = *id;
	RB_INSERT(waitertree, &waitertree, wt);
	TAILQ_INSERT_TAIL(&cl->cl_waiters, wt, wt_sibling);
	cl->cl_nwaiters++;
	return wt;
}

/* NULL is nothing unusual. */
struct waiter *
waiter_find(uint32_t cookie, enum waiter_kind kind)
{
	struct waiter	*wt = waiter_lookup(cookie);

	return wt != NULL && wt->wt_kind == kind ? wt : NULL;
}

/* To the end of a queue, out of the one where it was. */
void
waiter_queue(struct waiter *wt, struct waiters *queue)
{
	if (wt->wt_queue != NULL)
		TAILQ_REMOVE(wt->wt_queue, wt, wt_queued);
	if (queue != NULL)
		TAILQ_INSERT_TAIL(queue, wt, wt_queued);
	wt->wt_queue = queue;
}

void
waiter_answer(struct waiter *wt, const char *body, size_t len)
{
	struct client	*cl = wt->wt_client;

	client_send(cl, &wt->wt_id, body, len);
	waiter_free(wt);
	client_settle(cl);
}

void
waiter_free(struct waiter *wt)
{
	inquiry_drop(wt);
	waiter_queue(wt, NULL);
	RB_REMOVE(waitertree, &waitertree, wt);
	TAILQ_REMOVE(&wt->wt_client->cl_waiters, wt, wt_sibling);
	wt->wt_client->cl_nwaiters--;
	free(wt);
}
