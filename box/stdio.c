/* SPDX-License-Identifier: ISC */

/*
 * egressd-box runs this before any namespace: what the command gets as its
 * standard input, output and error.
 *
 *	file, pipe, terminal, /dev/null and kin	the caller's own
 *	socket					a pipe, box copies (relay.c)
 *	anything else				refused
 *
 * A socket keeps the network namespace that it was made in: a TCP connection
 * that inetd or a socket unit hands over can be disconnected and connected to
 * anywhere, past gate and records.  A connected Unix stream cannot, but its
 * peer can pass descriptors through it, which may be sockets, and it names its
 * peer by a pidfd.  So no socket of the host gets in.
 */

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <vis.h>

#include "box.h"
#include "kernelfs.h"

#define MEMORY_DEVICES	1	/* major number of /dev/null and kin */

/* A device whose driver can do no more than make or take bytes. */
static int
stdio_is_plain_device(int fd, dev_t dev)
{
	unsigned int	 number;

	if (major(dev) == MEMORY_DEVICES)
		switch (minor(dev)) {
		case 3:			/* null */
		case 5:			/* zero */
		case 7:			/* full */
		case 8:			/* random */
		case 9:			/* urandom */
			return 1;
		}
	/* The master side of a terminal types for its user. */
	return isatty(fd) && ioctl(fd, TIOCGPTN, &number) == -1;
}

/* Raw, packet and netlink sockets do harm even through a pipe. */
static int
stdio_is_plain_socket(int fd)
{
	socklen_t	 len = sizeof(int);
	int		 family, type;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) == -1 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == -1)
		return 0;
	return (family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
	    family == AF_VSOCK) && (type == SOCK_STREAM ||
	    type == SOCK_DGRAM || type == SOCK_SEQPACKET);
}

/* The kind of a descriptor that the sandbox must not have, or NULL. */
static const char *
stdio_refused(int fd, int flags, const struct stat *st)
{
	if (flags & O_PATH)
		return "a path of the host, not open for reading or writing";
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFIFO:
		return kernelfs_name(fd) == NULL ? NULL :
		    "a file of the kernel's";
	case S_IFCHR:
		return stdio_is_plain_device(fd, st->st_rdev) ? NULL :
		    "a device of the host";
	case S_IFSOCK:
		return stdio_is_plain_socket(fd) ? NULL :
		    "a socket that carries more than data";
	case S_IFDIR:
		return "a directory of the host";
	case S_IFBLK:
		return "a disk of the host";
	default:
		return "an object of the kernel's";
	}
}

static void __attribute__((__noreturn__))
stdio_refuse(int fd, const char *what)
{
	char	 link[32], path[PATH_MAX], shown[256];
	ssize_t	 n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if ((n = readlink(link, path, sizeof(path) - 1)) == -1)
		n = 0;
	path[n] = '\0';
	strnvis(shown, path, sizeof(shown), VIS_CSTYLE | VIS_NL | VIS_TAB);
	errx(BOX_FAILED, "descriptor %d is %s (%s); the command's may be "
	    "files, pipes, terminals and sockets", fd, what, shown);
}

static int
stdio_same_socket(int a, int b)
{
	struct stat	 sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 &&
	    sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* A pipe, one end for the command and the other for a relay. */
static void
stdio_pipe(struct box *bx, int fd)
{
	int	 ends[2];

	/* A socket keeps the order of what is written to it. */
	if (fd == STDERR_FILENO && bx->bx_stdio[STDOUT_FILENO] != -1 &&
	    stdio_same_socket(fd, STDOUT_FILENO)) {
		bx->bx_stdio[fd] = bx->bx_stdio[STDOUT_FILENO];
		return;
	}
	if (pipe2(ends, O_CLOEXEC) == -1)
		err(BOX_FAILED, "pipe");
	if (fd == STDIN_FILENO) {
		bx->bx_stdio[fd] = ends[0];
		bx->bx_relays[bx->bx_nrelays++] = relay_new(fd, ends[1], fd);
	} else {
		bx->bx_stdio[fd] = ends[1];
		bx->bx_relays[bx->bx_nrelays++] = relay_new(ends[0], fd, fd);
	}
}

void
stdio_vet(struct box *bx)
{
	struct stat	 st;
	const char	*what;
	int		 fd, flags;

	for (fd = 0; fd < BOX_STDIO; fd++) {
		bx->bx_stdio[fd] = -1;
		if ((flags = fcntl(fd, F_GETFL)) == -1) {
			if (open("/dev/null", O_RDWR) != fd)
				err(BOX_FAILED, "/dev/null");
			continue;
		}
		if (fstat(fd, &st) == -1)
			err(BOX_FAILED, "descriptor %d", fd);
		if ((what = stdio_refused(fd, flags, &st)) != NULL)
			stdio_refuse(fd, what);
	}
}

/* To be called when all that the caller left open has been closed. */
void
stdio_detach(struct box *bx)
{
	struct stat	 st;
	int		 fd;

	for (fd = 0; fd < BOX_STDIO; fd++)
		if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
			stdio_pipe(bx, fd);
}

/* In box: close the command's ends. */
void
stdio_leave(struct box *bx)
{
	int	 fd;

	for (fd = 0; fd < BOX_STDIO; fd++)
		if (bx->bx_stdio[fd] > STDERR_FILENO)
			(void)close(bx->bx_stdio[fd]);
}

/* In the sandbox: close sockets and the relays' ends. */
void
stdio_enter(const struct box *bx)
{
	size_t	 i;
	int	 fd;

	for (i = 0; i < bx->bx_nrelays; i++)
		relay_forget(bx->bx_relays[i]);
	for (fd = 0; fd < BOX_STDIO; fd++)
		if (bx->bx_stdio[fd] != -1 && dup2(bx->bx_stdio[fd], fd) == -1)
			err(BOX_FAILED, "descriptor %d", fd);
	for (fd = 0; fd < BOX_STDIO; fd++)
		if (bx->bx_stdio[fd] != -1)
			(void)close(bx->bx_stdio[fd]);
}
