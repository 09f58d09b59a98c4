/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: a file that another file names, opened with the rights
 * of that one's owner.  A user whose kubeconfig is used says there what else is
 * to be read, and must not have the parent read what that user cannot.  So a
 * child that has become the user opens it, with nothing of the parent's at
 * hand, and passes the descriptor back.
 */

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <linux/openat2.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "kube.h"

#define OWNED_S		5	/* for the user database, and the file */

static int
become(uid_t uid)
{
	const struct passwd	*pw;

	errno = 0;
	if ((pw = getpwuid(uid)) == NULL) {
		if (errno == 0)
			errno = ESRCH;
		return -1;
	}
	if (initgroups(pw->pw_name, pw->pw_gid) == -1 ||
	    setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) == -1)
		return -1;
	return setresuid(uid, uid, uid);
}

/* 0 and a descriptor, or the errno; one message either way. */
static void
pass(int channel, int fd, int error)
{
	union {
		struct cmsghdr	 hdr;
		char		 room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec	 iov = { &error, sizeof(error) };
	struct msghdr	 msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd != -1) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		control.hdr.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.hdr), &fd, sizeof(fd));
	}
	sendmsg(channel, &msg, MSG_NOSIGNAL);
}

/* In the new process. */
static void __attribute__((__noreturn__))
open_as(int channel, uid_t uid, const char *path)
{
	struct open_how	 how = {
		.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		.resolve = RESOLVE_NO_MAGICLINKS
	};
	int		 fd = -1;

	/* /proc/self/fd of this process leads to nothing of the parent's. */
	if (dup2(channel, STDIN_FILENO) == -1 ||
	    close_range(STDIN_FILENO + 1, UINT_MAX, 0) == -1)
		_exit(1);
	/* Our memory is the parent's: the user is not to look into it. */
	if (become(uid) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
		fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how,
		    sizeof(how));
	pass(STDIN_FILENO, fd, fd == -1 ? errno : 0);
	_exit(0);
}

/* The descriptor, or -1 and errno. */
static int
take(int channel)
{
	union {
		struct cmsghdr	 hdr;
		char		 room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	int		 error = 0, fd;
	struct iovec	 iov = { &error, sizeof(error) };
	struct msghdr	 msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)
	};
	ssize_t		 n;

	do
		n = recvmsg(channel, &msg, MSG_CMSG_CLOEXEC);
	while (n == -1 && errno == EINTR);
	if (n != (ssize_t)sizeof(error)) {
		if (n != -1)
			errno = EIO;
		return -1;
	}
	if (error != 0 || CMSG_FIRSTHDR(&msg) == NULL) {
		errno = error != 0 ? error : EMFILE;
		return -1;
	}
	memcpy(&fd, CMSG_DATA(&control.hdr), sizeof(fd));
	return fd;
}

static int
ask(uid_t uid, const char *path)
{
	static const struct timeval	 limit = { .tv_sec = OWNED_S };
	pid_t				 pid;
	int				 sv[2], fd = -1, saved;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1)
		return -1;
	if ((pid = fork()) == 0)
		open_as(sv[1], uid, path);
	close(sv[1]);
	if (pid != -1 && setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &limit,
	    sizeof(limit)) == 0)
		fd = take(sv[0]);
	saved = errno;
	close(sv[0]);
	if (pid != -1) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
			continue;
	}
	errno = saved;
	return fd;
}

/* A regular file to read, as the user could; -1 and why. */
int
owned_open(uid_t uid, const char *path, struct why *why)
{
	struct stat	 st;
	int		 fd;

	if (!d.d_privileged || uid == 0)
		fd = place_read(path, why);
	else if ((fd = ask(uid, path)) == -1)
		why_set(why, "%s: %s for uid %u", path, strerror(errno), uid);
	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return why_set(why, "%s: not a regular file", path);
}
