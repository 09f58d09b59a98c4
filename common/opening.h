/* SPDX-License-Identifier: ISC */

/*
 * What the parent opens for a child: programs, sockets, files.  The child says
 * the kind and a name of its configuration and gets a descriptor; whoever asks
 * embeds a struct opening.
 */

#ifndef OPENING_H
#define OPENING_H

#include <sys/tree.h>

#include <stdbool.h>

#include "ipc.h"

struct opening_ops {
	void	(*oo_opened)(void *, int);
	void	(*oo_failed)(void *, const char *);
	/* A program has ended; why is NULL if with status 0. */
	void	(*oo_ended)(void *, const char *why);
};

struct opening {
	RB_ENTRY(opening)		 og_entry;
	uint32_t			 og_cookie;	/* 0: not asked for */
	bool				 og_opened;
	const struct opening_ops	*og_ops;
	void				*og_arg;
};

void	 opening_ask(struct opening *, enum open_kind, const char *,
	    const struct opening_ops *, void *);
void	 opening_done(struct opening *);

/* The entries of ch_handlers of a role that asks. */
#define OPENING_HANDLERS						\
	[MSG_OPENED] = child_parent_opened,				\
	[MSG_OPEN_FAILED] = child_parent_open_failed,			\
	[MSG_OPEN_ENDED] = child_parent_open_ended

int	 child_parent_opened(struct ipc *, const union msg *);
int	 child_parent_open_failed(struct ipc *, const union msg *);
int	 child_parent_open_ended(struct ipc *, const union msg *);

#endif /* OPENING_H */
