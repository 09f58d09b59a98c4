/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: the pid file stands beside the control socket,
 * /run/egressd.pid for /run/egressd.sock.  Its lock is taken before the socket
 * is touched, so that of two who start at once one is refused, and is held
 * while we live.
 */

#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

static char	 pid_path[PATH_LEN];
static int	 pid_fd = -1;
static bool	 pid_ours;	/* made or written by us, so ours to remove */

static int
pid_name(const char *socket, struct why *why)
{
	size_t	 len = strlen(socket);
	int	 n;

	if (len > 5 && strcmp(socket + len - 5, ".sock") == 0)
		len -= 5;
	n = snprintf(pid_path, sizeof(pid_path), "%.*s.pid", (int)len, socket);
	if (n < 0 || (size_t)n >= sizeof(pid_path))
		return why_set(why, "%s: the pid file's name is too long",
		    socket);
	return 0;
}

/* The pid file is not written before its owner is known. */
static int
pid_open(struct why *why)
{
	struct stat	 st;

	pid_fd = open(pid_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	pid_ours = pid_fd != -1;
	if (pid_fd == -1 && errno == EEXIST)
		pid_fd = open(pid_path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK |
		    O_CLOEXEC);
	if (pid_fd == -1 && errno == ENOENT)
		return 0;
	if (pid_fd == -1 && errno != ELOOP)
		return why_set(why, "%s: %s", pid_path, strerror(errno));
	if (pid_fd == -1 || fstat(pid_fd, &st) == -1 ||
	    !S_ISREG(st.st_mode) || st.st_nlink > 1 ||
	    (!pid_ours && st.st_uid != geteuid()))
		return why_set(why, "%s: exists and is not a file of ours",
		    pid_path);
	return 0;
}

/* Whoever had the lock may have removed the file that we waited for. */
static bool
pid_current(void)
{
	struct stat	 ours, now;

	return fstat(pid_fd, &ours) == 0 && lstat(pid_path, &now) == 0 &&
	    ours.st_dev == now.st_dev && ours.st_ino == now.st_ino;
}

static void
pid_close(void)
{
	if (pid_fd != -1)
		close(pid_fd);
	pid_fd = -1;
	pid_ours = false;
}

/* Once: a socket that moves later leaves the file where it is. */
int
pid_lock(const char *socket, struct why *why)
{
	if (pid_fd != -1)
		return 0;
	if (pid_name(socket, why) == -1)
		return -1;
	for (;;) {
		if (pid_open(why) == -1)
			break;
		if (pid_fd != -1 && flock(pid_fd, LOCK_EX | LOCK_NB) == -1) {
			why_set(why, "%s: another egressd serves it", socket);
			break;
		}
		if (pid_fd != -1 && pid_current())
			return 0;
		pid_close();
	}
	pid_close();
	return -1;
}

int
pid_publish(struct why *why)
{
	pid_ours = true;
	if (ftruncate(pid_fd, 0) == -1 ||
	    dprintf(pid_fd, "%d", (int)getpid()) < 0)
		return why_set(why, "%s: %s", pid_path, strerror(errno));
	return 0;
}

void
pid_withdraw(void)
{
	if (pid_ours)
		unlink(pid_path);
	pid_close();
}
