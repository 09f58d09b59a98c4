/* SPDX-License-Identifier: ISC */

/*
 * A sandbox that the parent makes, for the files that look into it: box.c,
 * which has its life, and box_mount.c.
 */

#ifndef BOX_H
#define BOX_H

#include "parent.h"

struct served;

struct box {
	TAILQ_ENTRY(box)	 bo_entry;
	struct session		*bo_session;	/* NULL: it is over */
	struct box_spec		 bo_spec;
	pid_t			 bo_pid;	/* 0: none runs */
	int			 bo_engine;	/* the engine's other end */
	int			 bo_channel;	/* -1: custom, or ended */
	int			 bo_namespace;	/* never read; -1: no mounts */
	unsigned int		 bo_mounts;	/* by clients, so far */
	size_t			 bo_mounted;	/* of the start's list, bytes */
	struct event		 bo_ev;
	struct event		 bo_overdue;
	struct logpipe		*bo_log;
	bool			 bo_custom;
	bool			 bo_pod;
	bool			 bo_spoke;	/* there is who serves */
	bool			 bo_serves;
	unsigned int		 bo_within_ms;	/* to end; 0: not asked to */
	struct cgroup		*bo_cgroup;	/* or NULL */
	int			 bo_said;	/* by the launcher; or -1 */
	unsigned int		 bo_nserved;
	TAILQ_HEAD(, served)	 bo_served;
	struct attached_list	 bo_attached;
};

/* box_mount.c */
void	 box_begins(struct box *);
int	 box_offer(struct box *, const struct conf_sandbox *);

#endif /* BOX_H */
