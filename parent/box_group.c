/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: control groups of the sandboxes that it starts, where
 * one is delegated to it.  Under systemd the launcher has them (launch/).
 */

#include <errno.h>
#include <stdlib.h>

#include "parent.h"

#define SWEEP_MS	50	/* what was killed takes a moment to be gone */

static struct event	 sweep;

/* A daemon for one run makes no sandboxes, and stays where its caller is. */
void
box_groups_begin(void)
{
	d.d_launcher = getenv("EGRESSD_LAUNCHER");
	if (d.d_launcher != NULL && d.d_launcher[0] != '/')
		fatalx("EGRESSD_LAUNCHER=%s: not an absolute path",
		    d.d_launcher);
	if (d.d_launcher != NULL || d.d_private || d.d_client != -1)
		return;
	if ((d.d_cgroup = cgroup_begin()) == CGROUP_KILL)
		log_info("the control group has no memory and pids "
		    "controllers: limits of sandboxes are setrlimit's");
}

/* In memory, files are memory too. */
uint64_t
box_memory(const struct conf_sandbox *sb)
{
	if (sb->sb_limits.sl_memory == 0)
		return 0;
	return sb->sb_limits.sl_memory +
	    (sb->sb_kind == SANDBOX_VIRTUAL ? sb->sb_size : 0);
}

/* -1 and errno if there has to be one, and cannot. */
int
box_group_new(const struct conf_sandbox *sb, struct cgroup **cg)
{
	uint64_t	 memory = 0, processes = 0;

	*cg = NULL;
	if (d.d_cgroup == CGROUP_NONE)
		return 0;
	if (d.d_cgroup == CGROUP_LIMIT && sb != NULL) {
		memory = box_memory(sb);
		processes = sb->sb_limits.sl_processes;
	}
	return (*cg = cgroup_new(memory, processes)) != NULL ? 0 : -1;
}

static void
box_groups_sweep(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval	 soon = { 0, SWEEP_MS * 1000 };

	(void)fd, (void)what, (void)arg;
	if (cgroup_sweep() && evtimer_add(&sweep, &soon) == -1)
		fatalx("%s", __func__);
}

/* All in there ends, and then the group is removed. */
void
box_group_drop(struct cgroup *cg)
{
	if (cg == NULL)
		return;
	if (!evtimer_initialized(&sweep))
		evtimer_assign(&sweep, d.d_base, box_groups_sweep, NULL);
	cgroup_drop(cg);
	box_groups_sweep(-1, 0, NULL);
}
