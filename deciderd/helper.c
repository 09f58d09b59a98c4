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
 * deciderd runs this: programs and connections that the parent opens for us.
 * We name the decider, the parent knows the program or the path.  Each is
 * known by a cookie until we are done with it, and what comes for one that we
 * are done with is of no interest.
 */

#include "deciderd.h"

static int
helper_cmp(const struct helper *a, const struct helper *b)
{
	return a->he_cookie < b->he_cookie ? -1 : a->he_cookie > b->he_cookie;
}

static RB_HEAD(helper_tree, helper)	 helpers;
static uint32_t				 last_cookie;

RB_PROTOTYPE(helper_tree, helper, he_entry, helper_cmp);
RB_GENERATE(helper_tree, helper, he_entry, helper_cmp);

static struct helper *
helper_find(uint32_t cookie)
{
	struct helper	 key = { .he_cookie = cookie };

	return RB_FIND(helper_tree, &helpers, &key);
}

void
helper_ask(struct helper *he, const struct decider *de,
    const struct helper_ops *ops, void *arg)
{
	/* A persistent one may live while the numbers go all the way round. */
	do {
		he->he_cookie = ++last_cookie;
	} while (he->he_cookie == 0 || helper_find(he->he_cookie) != NULL);
	he->he_opened = false;
	he->he_ops = ops;
	he->he_arg = arg;
	RB_INSERT(helper_tree, &helpers, he);
	ipc_send(child_parent, -1, HELPER_ASK, helper_ask,
	    .cookie = he->he_cookie, .decider = de->de_name);
}

/* The parent ends what is still running of it. */
void
helper_done(struct helper *he)
{
	if (he->he_cookie == 0)
		return;
	RB_REMOVE(helper_tree, &helpers, he);
	ipc_send(child_parent, -1, HELPER_DONE, cookie, he->he_cookie);
	he->he_cookie = 0;
}

int
deciderd_parent_helper(struct ipc *ip, const union msg *m)
{
	struct helper	*he = helper_find(m->cookie.cookie);
	int		 fd;

	if (he == NULL)
		return 0;
	if (he->he_opened)
		return ipc_bad(ip, "helper %u twice", he->he_cookie);
	he->he_opened = true;
	if ((fd = ipc_take_fd(ip)) == -1)
		he->he_ops->ho_failed(he->he_arg, "no free descriptor");
	else
		he->he_ops->ho_opened(he->he_arg, fd);
	return 0;
}

int
deciderd_parent_helper_failed(struct ipc *ip, const union msg *m)
{
	struct helper	*he = helper_find(m->helper_failed.cookie);

	(void)ip;
	if (he != NULL)
		he->he_ops->ho_failed(he->he_arg, m->helper_failed.why);
	return 0;
}

int
deciderd_parent_helper_exited(struct ipc *ip, const union msg *m)
{
	struct helper	*he = helper_find(m->helper_failed.cookie);
	const char	*why = m->helper_failed.why;

	(void)ip;
	if (he != NULL)
		he->he_ops->ho_exited(he->he_arg, *why == '\0' ? NULL : why);
	return 0;
}
