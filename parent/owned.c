/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: a file that another file names, read with the rights of
 * that one's owner.  A user whose kubeconfig is used says there what else is to
 * be read, and must not have the parent read what that user cannot.  So a child
 * that has become the user opens it, with nothing of the parent's at hand, and
 * passes back a copy: the file may lie on a file system that the user serves,
 * and that answers nobody.  Then not even SIGKILL ends the child; nobody waits
 * for it, and the user's files are not asked for until it has ended.
 */

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <linux/openat2.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "kube.h"

#define OWNED_S		5	/* for the user database, and the file */
#define OWNED_MAX	(1024 * 1024)
#define KILL_MS		1000	/* to end, for who was killed */
#define LATE_MAX	16
#define NOT_REGULAR	ENOTSUP

/* Children that were killed and have not ended. */
static struct {
	bool	 used;
	uid_t	 uid;
	int	 pidfd;
} late[LATE_MAX];

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

/* All of a regular file in memory, which nobody can hold up; -1 and errno. */
static int
copy(int from)
{
	static char	 buf[OWNED_MAX + 1];
	struct stat	 st;
	size_t		 len = 0;
	ssize_t		 n;
	int		 fd;

	errno = NOT_REGULAR;
	if (fstat(from, &st) == -1 || !S_ISREG(st.st_mode))
		return -1;
	while ((n = read(from, buf + len, sizeof(buf) - len)) > 0)
		len += (size_t)n;
	if (n == -1)
		return -1;
	errno = EFBIG;
	if (len > OWNED_MAX ||
	    (fd = memfd_create("owned", MFD_CLOEXEC)) == -1)
		return -1;
	if (fchmod(fd, 0600) == -1 ||
	    write(fd, buf, len) != (ssize_t)len ||
	    lseek(fd, 0, SEEK_SET) == -1)
		return -1;
	return fd;
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
	if (become(uid) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
	    (fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how,
	    sizeof(how))) != -1)
		fd = copy(fd);
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

static bool
has_ended(int pidfd, int ms)
{
	struct pollfd	 pfd = { .fd = pidfd, .events = POLLIN };
	int		 n;

	do
		n = poll(&pfd, 1, ms);
	while (n == -1 && errno == EINTR);
	return n != 0;
}

static bool
is_late(uid_t uid)
{
	size_t	 i;

	for (i = 0; i < LATE_MAX; i++) {
		if (late[i].used && has_ended(late[i].pidfd, 0)) {
			close(late[i].pidfd);
			late[i].used = false;
		}
		if (late[i].used && late[i].uid == uid)
			return true;
	}
	return false;
}

/* The child is reaped with the others, whenever it ends. */
static void
end(pid_t pid, uid_t uid)
{
	int	 pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	size_t	 i;

	kill(pid, SIGKILL);
	if (pidfd == -1)
		return;
	for (i = 0; i < LATE_MAX && late[i].used; i++)
		;
	if (i == LATE_MAX || has_ended(pidfd, KILL_MS)) {
		close(pidfd);
		return;
	}
	late[i].used = true;
	late[i].uid = uid;
	late[i].pidfd = pidfd;
}

static int
ask(uid_t uid, const char *path)
{
	static const struct timeval	 limit = { .tv_sec = OWNED_S };
	pid_t				 pid;
	int				 sv[2], fd = -1, saved;

	errno = EBUSY;
	if (is_late(uid) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC,
	    0, sv) == -1)
		return -1;
	if ((pid = fork()) == 0)
		open_as(sv[1], uid, path);
	close(sv[1]);
	if (pid != -1 && setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &limit,
	    sizeof(limit)) == 0)
		fd = take(sv[0]);
	saved = errno == EAGAIN ? ETIMEDOUT : errno;
	close(sv[0]);
	if (pid != -1)
		end(pid, uid);
	errno = saved;
	return fd;
}

/* A regular file's content, as the user could read it; -1 and why. */
int
owned_open(uid_t uid, const char *path, struct why *why)
{
	struct stat	 st;
	int		 fd;

	if (d.d_privileged && uid != 0) {
		if ((fd = ask(uid, path)) == -1)
			why_set(why, "%s: %s for uid %u", path, errno ==
			    NOT_REGULAR ? "not a regular file" :
			    strerror(errno), uid);
		return fd;
	}
	if ((fd = place_read(path, why)) == -1)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return why_set(why, "%s: not a regular file", path);
}
