/* SPDX-License-Identifier: ISC */

/*
 * A new child of the parent runs this, the mover of one mount into a sandbox
 * (see mount.c).  It takes the sandbox's user: that is the right it has, as its
 * user made the namespaces.  It looks the outer mount namespace up in a
 * channel, where the sandbox's first process has left it, and enters it.  What
 * is to be mounted comes from the opener, read-only if it is to be; its path is
 * not known here.  Commands write to all the target's directories meanwhile,
 * and nothing that they put there leads anywhere: links are not followed.
 *
 * What the opener sends may be more than the sandbox's user could have by
 * itself, or write to.  So the mover does not become another program: that
 * could be traced by whoever has its user, from its first instruction on.
 */

#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <linux/nsfs.h>
#include <linux/openat2.h>

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "exposure.h"
#include "fdpass.h"
#include "parent.h"

/* The walk goes one name further; -1 and errno. */
static int
move_step(int dir, const char *name)
{
	struct open_how	 how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS,
	};

	return syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

/*
 * Make what is not there, where the sandbox has a place of its own; in what is
 * mounted there it would be made outside.
 */
static int
move_make(const char *target, int dir, const char *name, bool directory)
{
	struct stat	 st, own;

	if (fstat(dir, &st) == -1 || stat("/", &own) == -1)
		exec_fail(target);
	if (st.st_dev != own.st_dev)
		exec_say("%s: %s is not there, and is not made in what is "
		    "mounted on the way", target, name);
	if ((directory ? mkdirat(dir, name, 0755) :
	    mknodat(dir, name, S_IFREG | 0444, 0)) == -1 && errno != EEXIST)
		exec_fail(target);
	return move_step(dir, name);
}

/* The place of the target, which is made if need be. */
static int
move_place(const char *target, bool directory)
{
	char	 path[PATH_LEN + 1], *name, *rest;
	int	 dir, next;

	strlcpy(path, target, sizeof(path));
	if ((dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		exec_fail("/");
	for (rest = path + 1; (name = strsep(&rest, "/")) != NULL;
	    dir = next) {
		next = move_step(dir, name);
		if (next == -1 && errno == ENOENT)
			next = move_make(target, dir, name,
			    directory || rest != NULL);
		if (next == -1 && errno == ELOOP)
			exec_say("%s: %s is a symbolic link, which is not "
			    "followed", target, name);
		if (next == -1)
			exec_fail(target);
		close(dir);
	}
	return dir;
}

/* In that order: the rights in the second come with the first. */
static void
move_enter(int ns)
{
	int	 user;

	if ((user = ioctl(ns, NS_GET_USERNS)) == -1 ||
	    setns(user, CLONE_NEWUSER) == -1 || setns(ns, CLONE_NEWNS) == -1)
		exec_fail("the sandbox's mount namespace");
	close(user);
}

static void
move_attach(const char *target, int tree)
{
	struct stat	 st, on;
	int		 place;

	if (fstat(tree, &st) == -1)
		exec_fail(target);
	place = move_place(target, S_ISDIR(st.st_mode));
	if (fstat(place, &on) == -1)
		exec_fail(target);
	if (S_ISDIR(st.st_mode) != S_ISDIR(on.st_mode))
		exec_say("%s: it is %s directory in the sandbox", target,
		    S_ISDIR(on.st_mode) ? "a" : "no");
	if (move_mount(tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH |
	    MOVE_MOUNT_T_EMPTY_PATH) == -1)
		exec_fail(target);
}

static void
become_sandbox(const struct mount_spec *ms, const struct conf_sandbox *sb)
{
	exec_as(box_user(ms->ms_owner, sb));
	/* After the change of user, on which both depend. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1)
		exec_fail("the sandbox's user");
	if (chdir("/") == -1)
		exec_fail("/");
}

void
mount_exec_mover(const struct mount_spec *ms, const struct conf_sandbox *sb,
    int channel, int errfd)
{
	const char	*taken;
	int		 ns, tree;

	mount_exec_begin(channel, ms->ms_namespace, errfd);
	become_sandbox(ms, sb);
	if ((taken = exposure_taken_by(ms->ms_target)) != NULL)
		exec_say("%s: not in %s", ms->ms_target, taken);
	/* The namespace stays in the channel, for the next mount. */
	if ((ns = fdpass_take(MOUNT_FD_NAMESPACE, MSG_PEEK |
	    MSG_DONTWAIT)) == -1)
		exec_say("the sandbox takes no mounts");
	/* Whoever was to send it has said why there is none. */
	if ((tree = fdpass_take(MOUNT_FD_TREE, 0)) == -1)
		_exit(127);
	umask(022);
	move_enter(ns);
	move_attach(ms->ms_target, tree);
	_exit(0);
}
