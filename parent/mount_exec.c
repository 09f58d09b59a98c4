/* SPDX-License-Identifier: ISC */

/*
 * Two new children of the parent run this, for one mount into a sandbox (see
 * mount.c); the other half of the second is in mount_move.c.  Whatever cannot
 * be done ends the process, and its last words are what the client is told: a
 * function that returns has succeeded.
 *
 * The opener takes the client's user and groups before it touches a path, and
 * then has no right that the client does not have: what it needs for a clone
 * comes from a user namespace of its own, in which nobody is mapped.  It does
 * not become another program, so the client, whose user it has, cannot trace it
 * at any time and have it clone something else.  Source and everything above it
 * are opened in one go without following links, below a name that the
 * configuration permits.
 */

#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <linux/openat2.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exposure.h"
#include "fdpass.h"
#include "kernelfs.h"
#include "parent.h"

/* From 3 on: these descriptors, or up to a -1; nothing behind them. */
static void
take_descriptors(int tree, int namespace, int errfd)
{
	int	 null, last;

	last = namespace == -1 ? MOUNT_FD_TREE : MOUNT_FD_NAMESPACE;

	/* First out of the way of 0 to 4, whichever of these are open. */
	if ((errfd = fcntl(errfd, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    (tree = fcntl(tree, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    (namespace != -1 && (namespace = fcntl(namespace,
	    F_DUPFD_CLOEXEC, 10)) == -1) ||
	    (null = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1 ||
	    dup2(errfd, STDERR_FILENO) == -1 ||
	    dup2(null, STDIN_FILENO) == -1 ||
	    dup2(null, STDOUT_FILENO) == -1 ||
	    dup2(tree, MOUNT_FD_TREE) == -1 ||
	    (namespace != -1 && dup2(namespace, MOUNT_FD_NAMESPACE) == -1))
		_exit(127);
	if (close_range(last + 1, UINT_MAX, 0) == -1)
		exec_fail("close_range");
}

/* Either child begins so, while it is still the parent's user. */
void
mount_exec_begin(int channel, int namespace, int errfd)
{
	setsid();
	exec_signals();
	take_descriptors(channel, namespace, errfd);
	exec_limits();
	/* The user that it takes has other processes, too. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		exec_fail("dumpable");
}

static void
become_client(const struct peer *pe)
{
	if (!d.d_privileged) {
		if (pe->pe_uid != geteuid())
			exec_say("the daemon is not root, and has not the "
			    "rights of user %u", pe->pe_uid);
	} else if (setgroups(pe->pe_ngroups, pe->pe_groups) == -1 ||
	    setresgid(pe->pe_gid, pe->pe_gid, pe->pe_gid) == -1 ||
	    setresuid(pe->pe_uid, pe->pe_uid, pe->pe_uid) == -1)
		exec_fail("the client's user");
	/* After the change of user, which clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1)
		exec_fail("parent-death signal");
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) == -1)
		exec_fail("mount namespace");
}

/* root has no more rights here than any other owner of files. */
static void __attribute__((__noreturn__))
source_fail(const struct mount_spec *ms)
{
	if (errno == EACCES && ms->ms_client.pe_uid == 0)
		exec_say("%s: Permission denied: root, too, mounts only what "
		    "it could %s as its owner, or what everybody can",
		    ms->ms_source, ms->ms_write ? "write to" : "read");
	exec_fail(ms->ms_source);
}

static int
open_source(const struct mount_spec *ms)
{
	struct open_how	 how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
		    RESOLVE_NO_MAGICLINKS,
	};
	int		 fd, root;

	if ((root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		exec_fail("/");
	fd = syscall(SYS_openat2, root, ms->ms_source + 1, &how, sizeof(how));
	if (fd == -1 && errno == ELOOP)
		exec_say("%s: a symbolic link stands in it, which is not "
		    "followed", ms->ms_source);
	if (fd == -1)
		source_fail(ms);
	return fd;
}

/* To see a directory's name is not yet a right to what is in it. */
static void
check_source(const struct mount_spec *ms, int fd)
{
	struct stat	 st;
	const char	*why;
	int		 want = R_OK | (ms->ms_write ? W_OK : 0);

	if (fstat(fd, &st) == -1)
		source_fail(ms);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		exec_say("%s: neither a file nor a directory", ms->ms_source);
	if (S_ISDIR(st.st_mode))
		want |= X_OK;
	if (syscall(SYS_faccessat2, fd, "", want,
	    AT_EMPTY_PATH | AT_EACCESS) == -1)
		source_fail(ms);
	if ((why = kernelfs_name(fd)) != NULL)
		exec_say("%s: it is the kernel's (%s)", ms->ms_source, why);
}

/* Mount points as mountinfo has them, where odd bytes are octal. */
static void
unescape(char *path)
{
	char	*from, *to;

	for (from = to = path; *from != '\0'; to++)
		if (*from == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to = (from[1] - '0') << 6 | (from[2] - '0') << 3 |
			    (from[3] - '0');
			from += 4;
		} else
			*to = *from++;
	*to = '\0';
}

/* What is mounted in the source comes with it, and may be the kernel's. */
static void
check_beneath(const struct mount_spec *ms)
{
	char		*line = NULL, point[PATH_MAX];
	const char	*why;
	size_t		 size = 0;
	FILE		*fp;
	int		 fd;

	if ((fp = fopen("/proc/self/mountinfo", "re")) == NULL)
		exec_fail("mounts");
	while (getline(&line, &size, fp) != -1) {
		if (sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1)
			exec_say("mounts: %s", line);
		unescape(point);
		if (!exposure_beneath(point, ms->ms_source) ||
		    (fd = open(point, O_PATH | O_NOFOLLOW | O_CLOEXEC)) == -1)
			continue;
		if ((why = kernelfs_name(fd)) != NULL)
			exec_say("%s: the kernel's %s is mounted on %s",
			    ms->ms_source, why, point);
		close(fd);
	}
	free(line);
	fclose(fp);
}

/*
 * A clone that is read-only is so before anybody has it: whoever passes it on
 * has the sandbox's user, whose other processes may look into that one.
 */
static int
clone_source(const struct mount_spec *ms, int fd)
{
	struct mount_attr	 ma = {
		.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
		    (ms->ms_write ? 0 : MOUNT_ATTR_RDONLY),
		.propagation = MS_PRIVATE,
	};
	int			 tree;

	if ((tree = open_tree(fd, "", AT_EMPTY_PATH | AT_RECURSIVE |
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)) == -1 ||
	    mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &ma,
	    sizeof(ma)) == -1)
		exec_fail(ms->ms_source);
	return tree;
}

void
mount_exec_opener(const struct mount_spec *ms, int channel, int errfd)
{
	int	 fd;

	mount_exec_begin(channel, -1, errfd);
	become_client(&ms->ms_client);
	fd = open_source(ms);
	check_source(ms, fd);
	check_beneath(ms);
	if (fdpass_send(MOUNT_FD_TREE, 'T', clone_source(ms, fd), 0) == -1)
		_exit(127);
	_exit(0);
}
