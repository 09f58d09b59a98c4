/* SPDX-License-Identifier: ISC */

/*
 * egressd-box runs this: the two user namespaces.
 *
 * The outer one owns the network, the file system, the process numbers and the
 * view of control groups of the sandbox.  Its root is the caller, and nothing
 * but box ever runs there.  The command lives in the inner one: even its root
 * has no right over what the outer one owns, so it can change neither routes
 * nor rules nor mounts, and may neither trace nor look into a process of box.
 */

#include <sys/prctl.h>
#include <sys/syscall.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "caps.h"

static void
ns_write(const char *path, const char *text)
{
	int	 fd;

	if ((fd = open(path, O_WRONLY | O_CLOEXEC)) == -1 ||
	    write(fd, text, strlen(text)) == -1)
		err(BOX_FAILED, "%s", path);
	close(fd);
}

/* Map one uid and gid: inner, outer. */
static void
ns_map(uid_t uid, uid_t outer_uid, gid_t gid, gid_t outer_gid)
{
	char	 map[64];

	ns_write("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1\n", uid, outer_uid);
	ns_write("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1\n", gid, outer_gid);
	ns_write("/proc/self/gid_map", map);
}

void
ns_enter_outer(const struct box *bx)
{
	/*
	 * Supplementary groups stay with the command, unless we are root: the
	 * kernel lets nobody else leave one, not even in a user namespace.
	 */
	if (setgroups(0, NULL) == -1 && errno != EPERM)
		err(BOX_FAILED, "setgroups");
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWCGROUP) == -1)
		err(BOX_FAILED, "no user namespace (" BOX_USERNS_HINT ")");
	ns_map(0, bx->bx_uid, 0, bx->bx_gid);
}

void
ns_enter_inner(const struct box *bx)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC |
	    CLONE_NEWUTS) == -1)
		err(BOX_FAILED, "namespaces of the command");
	if (bx->bx_root)
		ns_map(0, 0, 0, 0);
	else
		ns_map(bx->bx_uid, 0, bx->bx_gid, 0);
}

/*
 * Who owns a namespace of control groups can mount their file system, and
 * kill or freeze there by uid alone, the caller's shell too.  Ours stays the
 * only one.  To be called when /proc is the sandbox's, which we can write to
 * even where the host's is read-only, as in a container.
 */
void
ns_no_cgroups(void)
{
	ns_write("/proc/sys/user/max_cgroup_namespaces", "0");
}

/*
 * What stays in the outer namespace until the command ends needs no right
 * there, and is nobody's to trace.
 */
void
ns_drop(void)
{
	const char	*what;

	if ((what = caps_bound()) != NULL || (what = caps_drop()) != NULL)
		err(BOX_FAILED, "dropping %s", what);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		err(BOX_FAILED, "dropping privileges");
}
