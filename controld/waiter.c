/* SPDX-License-Identifier: ISC */

/*
 * controld: what clients wait for.  Whoever is asked for it gives back a
 * cookie, which is looked up; the client that it was for may be gone by then.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controld.h"

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

/* A cookie is not 0 and not in use, even after a wrap-around. */
uint32_t
waiter_cookie(void)
{
	static uint32_t	 last;

	do
		last = (last + 1) & ~INQUIRY_BIT;
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

/* NULL is nothing unusual: the client may have gone. */
struct waiter *
waiter_find(uint32_t cookie, enum waiter_kind kind)
{
	struct waiter	*wt = waiter_lookup(cookie);

	return wt != NULL && wt->wt_kind == kind ? wt : NULL;
}

/* Move a waiter to the end of a queue, or with NULL out of any. */
void
waiter_queue(struct waiter *wt, struct waiters *queue)
{
	if (wt->wt_queue != NULL)
		TAILQ_REMOVE(wt->wt_queue, wt, wt_queued);
	if (queue != NULL)
		TAILQ_INSERT_TAIL(queue, wt, wt_queued);
	wt->wt_queue = queue;
}

/* What it is about, for when it is answered. */
void
waiter_about(struct waiter *wt, const char *text, size_t len)
{
	free(wt->wt_text);
	if ((wt->wt_text = strndup(text, len)) == NULL)
		fatal("%s", __func__);
}

void
waiter_answer(struct waiter *wt, const char *body, size_t len)
{
	struct client	*cl = wt->wt_client;

	client_send(cl, &wt->wt_id, body, len);
	waiter_free(wt);
	client_settle(cl);
}

/* With the answer that was just written. */
void
waiter_finish(struct waiter *wt)
{
	const char	*body;
	size_t		 len;

	body = answer_end(&len);
	waiter_answer(wt, body, len);
}

void
waiter_error(struct waiter *wt, const char *code, const char *fmt, ...)
{
	char	 text[256];
	va_list	 ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	answer_error(code, text, strlen(text));
	waiter_finish(wt);
}

void
waiter_free(struct waiter *wt)
{
	inquiry_drop(wt);
	waiter_queue(wt, NULL);
	RB_REMOVE(waitertree, &waitertree, wt);
	TAILQ_REMOVE(&wt->wt_client->cl_waiters, wt, wt_sibling);
	wt->wt_client->cl_nwaiters--;
	free(wt->wt_text);
	free(wt);
}
