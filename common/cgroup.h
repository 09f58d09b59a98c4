/* SPDX-License-Identifier: ISC */

/*
 * Control groups (version 2) for sandboxes: one for each, below the one that a
 * service manager has delegated to whoever starts them.
 */

#ifndef CGROUP_H
#define CGROUP_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

enum cgroup_use {
	CGROUP_NONE,	/* none is delegated to us */
	CGROUP_KILL,	/* they hold processes together, but limit nothing */
	CGROUP_LIMIT
};

struct cgroup;

enum cgroup_use	 cgroup_begin(void);
struct cgroup	*cgroup_new(uint64_t, uint64_t);
pid_t		 cgroup_fork(const struct cgroup *);
void		 cgroup_kill(const struct cgroup *);
void		 cgroup_drop(struct cgroup *);
bool		 cgroup_sweep(void);
void		 cgroup_end(void);

#endif /* CGROUP_H */
