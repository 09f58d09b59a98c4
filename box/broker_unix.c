/* SPDX-License-Identifier: ISC */

/*
 * The broker runs this: whose Unix socket is it that a process of the sandbox
 * wants to connect to?
 *
 * A socket belongs to the network namespace of who made it, and the kernel
 * lists those of ours with the file that each is bound to.  What is not on
 * that list is the host's, or another sandbox's.  The file is opened once and
 * connected to by that descriptor, so a name that changes meanwhile changes
 * nothing, and a file is bound to one socket in all its life.
 */

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <linux/magic.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "broker.h"

#define ANSWER_SIZE	(32 * 1024)

/* The kernel's own form of a device number. */
#define SMALL_DISK	(UINT64_C(1) << 40)	/* inode numbers are places */
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC	0x58465342
#endif
#define KERNEL_MAJOR(dev)	((dev) >> 20)
#define KERNEL_MINOR(dev)	((dev) & 0xfffff)

static int
list_ask(int fd)
{
	struct {
		struct nlmsghdr		 nh;
		struct unix_diag_req	 req;
	}	 ask = {
		.nh = {
			.nlmsg_len = sizeof(ask),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.req = {
			.sdiag_family = AF_UNIX,
			.udiag_states = UINT32_MAX,
			.udiag_show = UDIAG_SHOW_VFS,
		},
	};

	return send(fd, &ask, sizeof(ask), 0) == sizeof(ask) ? 0 : -1;
}

/*
 * 1 if this entry is bound to that file.  The list has half of a long inode
 * number, and the device of the whole file system where some give out one for
 * each part: where that could be ambiguous, it is not the same.
 */
static int
list_is_file(const struct nlmsghdr *nh, const struct stat *st)
{
	const char		*p = (const char *)nh + NLMSG_LENGTH(
	    sizeof(struct unix_diag_msg));
	const char		*end = (const char *)nh + nh->nlmsg_len;
	struct rtattr		 rta;
	struct unix_diag_vfs	 vfs;

	for (; (size_t)(end - p) >= sizeof(rta) && end > p;
	    p += RTA_ALIGN(rta.rta_len)) {
		memcpy(&rta, p, sizeof(rta));
		if (rta.rta_len < sizeof(rta) || rta.rta_len > end - p)
			return 0;
		if (rta.rta_type != UNIX_DIAG_VFS ||
		    rta.rta_len < RTA_LENGTH(sizeof(vfs)))
			continue;
		memcpy(&vfs, p + RTA_LENGTH(0), sizeof(vfs));
		return st->st_ino <= UINT32_MAX &&
		    vfs.udiag_vfs_ino == st->st_ino &&
		    KERNEL_MAJOR(vfs.udiag_vfs_dev) == major(st->st_dev) &&
		    KERNEL_MINOR(vfs.udiag_vfs_dev) == minor(st->st_dev);
	}
	return 0;
}

/* 1 if a socket of the sandbox's network is bound to that file. */
static int
list_has(const struct stat *st)
{
	uint32_t		 buf[ANSWER_SIZE / sizeof(uint32_t)];
	struct nlmsghdr		*nh;
	ssize_t			 n;
	int			 fd, found = 0, done = 0;

	if ((fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
	    NETLINK_SOCK_DIAG)) == -1)
		return 0;
	if (list_ask(fd) == -1)
		done = 1;
	while (!done && (n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		for (nh = (struct nlmsghdr *)buf; !done &&
		    NLMSG_OK(nh, (size_t)n); nh = NLMSG_NEXT(nh, n)) {
			done = nh->nlmsg_type != SOCK_DIAG_BY_FAMILY;
			found |= !done && list_is_file(nh, st);
		}
	}
	close(fd);
	return found;
}

/* The absolute name of what a process means by this one. */
static int
unix_name(pid_t tid, const char *path, char *name, size_t size)
{
	char	 link[64];
	ssize_t	 n = 0;

	if (*path != '/') {
		snprintf(link, sizeof(link), "/proc/%d/cwd", tid);
		if ((n = readlink(link, name, size - 1)) == -1)
			return -1;
	}
	if ((size_t)snprintf(name + n, size - n, "%s%s", n == 0 ? "" : "/",
	    path) >= size - n) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return 0;
}

/* The file of that name, looked up as the process would. */
static int
unix_open(pid_t tid, const char *path)
{
	char	 link[64], name[PATH_MAX + 128];
	int	 error, fd, root;

	if (unix_name(tid, path, name, sizeof(name)) == -1)
		return -1;
	snprintf(link, sizeof(link), "/proc/%d/root", tid);
	if ((root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		return -1;
	fd = mnt_open(root, name, 0);
	error = errno;
	close(root);
	errno = error;
	return fd;
}

/*
 * 1 if the file is in a directory that is the sandbox's alone, where a socket
 * that nobody listens on is one of its own that is left over.  Programs remove
 * such ones, and are not to remove those of the host.
 */
static int
unix_is_private(const struct broker_call *bc, const struct stat *st)
{
	const char	*dirs[] = {
		"/tmp", "/run", "/var", "/dev/shm", bc->bc_home
	};
	char		 path[PATH_MAX];
	struct stat	 dir;
	size_t		 i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (dirs[i] == NULL)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/root%s", bc->bc_tid,
		    dirs[i]);
		if (stat(path, &dir) == 0 && dir.st_dev == st->st_dev)
			return 1;
	}
	return 0;
}

/* 1 if this device is mounted where box was started, or nobody can tell. */
static int
unix_host_mounts(dev_t dev)
{
	char		*line = NULL;
	size_t		 size = 0;
	unsigned int	 ma, mi;
	FILE		*fp;
	int		 found = 0;

	if ((fp = fopen("/proc/self/mountinfo", "re")) == NULL)
		return 1;
	while (!found && getline(&line, &size, fp) != -1)
		found = sscanf(line, "%*s %*s %u:%u", &ma, &mi) != 2 ||
		    (ma == major(dev) && mi == minor(dev));
	free(line);
	fclose(fp);
	return found;
}

/*
 * Whether no two files there can have the same lower half of their inode
 * numbers, by which the list tells them: else a socket of the sandbox's with
 * the number of one of the host's, and 2^32 more, would stand for that.
 */
static int
unix_ino_is_whole(int fd, dev_t dev)
{
	struct statfs	 sf;

	if (fstatfs(fd, &sf) == -1)
		return 0;
	switch ((unsigned long)sf.f_type) {
	case EXT4_SUPER_MAGIC:
		return 1;
	case TMPFS_MAGIC:
		return !unix_host_mounts(dev);
	case XFS_SUPER_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
		return (uint64_t)sf.f_blocks * (uint64_t)sf.f_bsize <
		    SMALL_DISK;
	default:
		return 0;
	}
}

/*
 * Names without a file are found in the socket's own network only, and what
 * is malformed the kernel refuses.  A file becomes that descriptor.
 */
int
broker_unix(struct broker_call *bc)
{
	struct sockaddr_un	 un;
	struct stat		 st;
	char			 path[sizeof(un.sun_path) + 1];
	size_t			 len;

	if (bc->bc_addr.ss_family != AF_UNIX || bc->bc_len > sizeof(un) ||
	    bc->bc_len <= offsetof(struct sockaddr_un, sun_path))
		return 0;
	memcpy(&un, &bc->bc_addr, sizeof(un));
	if (*un.sun_path == '\0')
		return 0;
	len = bc->bc_len - offsetof(struct sockaddr_un, sun_path);
	memcpy(path, un.sun_path, len);
	path[len] = '\0';
	if ((bc->bc_target = unix_open(bc->bc_tid, path)) == -1 ||
	    fstat(bc->bc_target, &st) == -1)
		return -1;
	if (S_ISSOCK(st.st_mode) && (!list_has(&st) ||
	    !unix_ino_is_whole(bc->bc_target, st.st_dev))) {
		errno = unix_is_private(bc, &st) ? ECONNREFUSED : EACCES;
		return -1;
	}
	len = snprintf(un.sun_path, sizeof(un.sun_path), "/proc/self/fd/%d",
	    bc->bc_target);
	memcpy(&bc->bc_addr, &un, sizeof(un));
	bc->bc_len = offsetof(struct sockaddr_un, sun_path) + len + 1;
	return 0;
}
