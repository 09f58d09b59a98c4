/* SPDX-License-Identifier: ISC */

/*
 * Children that have something opened by the parent run this.  An opening is
 * known by a cookie until the child is done with it, and what comes for a
 * cookie that is done with is of no interest.
 */

#include "child.h"
#include "opening.h"

static int
opening_cmp(const struct opening *a, const struct opening *b)
{
	return a->og_cookie < b->og_cookie ? -1 : a->og_cookie > b->og_cookie;
}

static RB_HEAD(opening_tree, opening)	 openings;
static uint32_t				 last_cookie;

RB_PROTOTYPE(opening_tree, opening, og_entry, opening_cmp);
RB_GENERATE(opening_tree, opening, og_entry, opening_cmp);

static struct opening *
opening_find(uint32_t cookie)
{
	struct opening	 key = { .og_cookie = cookie };

	return RB_FIND(opening_tree, &openings, &key);
}

void
opening_ask(struct opening *og, enum open_kind kind, const char *name,
    const struct opening_ops *ops, void *arg)
{
	/* A program may run while the numbers go all the way round. */
	do {
		og->og_cookie = ++last_cookie;
	} while (og->og_cookie == 0 || opening_find(og->og_cookie) != NULL);
	og->og_opened = false;
	og->og_ops = ops;
	og->og_arg = arg;
	RB_INSERT(opening_tree, &openings, og);
	ipc_send(child_parent, -1, OPEN_ASK, open_ask,
	    .cookie = og->og_cookie, .kind = kind, .object = name);
}

/* The parent kills a program that still runs. */
void
opening_done(struct opening *og)
{
	if (og->og_cookie == 0)
		return;
	RB_REMOVE(opening_tree, &openings, og);
	ipc_send(child_parent, -1, OPEN_DONE, cookie, og->og_cookie);
	og->og_cookie = 0;
}

int
child_parent_opened(struct ipc *ip, const union msg *m)
{
	struct opening	*og = opening_find(m->cookie.cookie);
	int		 fd;

	if (og == NULL)
		return 0;
	if (og->og_opened)
		return ipc_bad(ip, "number %u twice", og->og_cookie);
	og->og_opened = true;
	if ((fd = ipc_take_fd(ip)) == -1)
		og->og_ops->oo_failed(og->og_arg, "no free descriptor");
	else
		og->og_ops->oo_opened(og->og_arg, fd);
	return 0;
}

int
child_parent_open_failed(struct ipc *ip, const union msg *m)
{
	struct opening	*og = opening_find(m->open_ended.cookie);

	(void)ip;
	if (og != NULL)
		og->og_ops->oo_failed(og->og_arg, m->open_ended.why);
	return 0;
}

int
child_parent_open_ended(struct ipc *ip, const union msg *m)
{
	struct opening	*og = opening_find(m->open_ended.cookie);
	const char	*why = m->open_ended.why;

	(void)ip;
	if (og != NULL)
		og->og_ops->oo_ended(og->og_arg, *why == '\0' ? NULL : why);
	return 0;
}
