/* SPDX-License-Identifier: ISC */

/*
 * The sandbox's first process runs this, with root's rights in the outer user
 * namespace and before there is a command: mounts, and the files that go
 * between them.  Sources are looked up in the host's root directory, which
 * symbolic links cannot leave; targets lie in the new root, which we made.
 * What is shown writable, another sandbox may be changing right now: there
 * links are not followed at all.
 */

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <linux/openat2.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box.h"

#define HOST		"/.host"
#define EMPTY_FILE	"/.empty"
#define EMPTY_DIR	"/.none"
#define OPEN_TRIES	1000	/* against who renames all the time */
#define ALL		"/.all"
#define ALL_ROOT	"root"
#define INODE_BYTES	2048	/* of a virtual sandbox's, per file */
#define INODES_MIN	4096

/*
 * Open a path below a root for its place only; -1 with errno.  The kernel
 * gives up at `..' if anything on the machine was mounted or renamed since
 * the look-up began, and wants to be asked again.
 */
int
mnt_open(int root, const char *path, uint64_t links)
{
	struct open_how	 how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | links,
	};
	int		 fd, tries = OPEN_TRIES;

	do
		fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	while (fd == -1 && errno == EAGAIN && --tries > 0);
	return fd;
}

/* Open a path of the host; ELOOP if a link has come to stand in it. */
int
mnt_open_real(const struct mnt *mn, const char *path)
{
	return mnt_open(mn->mn_host, path, RESOLVE_NO_SYMLINKS);
}

/* Make a directory and its parents. */
void
mnt_mkdir(const char *path, mode_t mode)
{
	char	 buf[PATH_MAX], *p;

	if (strlcpy(buf, path, sizeof(buf)) >= sizeof(buf))
		errx(BOX_FAILED, "%s: name too long", path);
	for (p = strchr(buf + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(buf, 0755) == -1 && errno != EEXIST)
			err(BOX_FAILED, "sandbox: %s", buf);
		*p = '/';
	}
	if (mkdir(buf, mode) == -1 && errno != EEXIST)
		err(BOX_FAILED, "sandbox: %s", buf);
}

static void
mnt_touch(const char *path)
{
	char	 dir[PATH_MAX], *p;
	int	 fd;

	if (strlcpy(dir, path, sizeof(dir)) >= sizeof(dir))
		errx(BOX_FAILED, "%s: name too long", path);
	if ((p = strrchr(dir, '/')) != NULL && p != dir) {
		*p = '\0';
		mnt_mkdir(dir, 0755);
	}
	if ((fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0444)) == -1)
		err(BOX_FAILED, "sandbox: %s", path);
	close(fd);
}

/* Make what the descriptor can be mounted on: a file or directory. */
void
mnt_target(int fd, const char *target)
{
	struct stat	 st;

	if (access(target, F_OK) == 0)
		return;
	if (fstat(fd, &st) == -1)
		err(BOX_FAILED, "sandbox: %s", target);
	if (S_ISDIR(st.st_mode))
		mnt_mkdir(target, 0755);
	else
		mnt_touch(target);
}

/* A new mount of this, with all that is mounted beneath it. */
static int
mnt_clone(int fd, const char *target, uint64_t attr)
{
	struct mount_attr	 ma = { .attr_set = attr };
	int			 tree;

	if ((tree = open_tree(fd, "", AT_EMPTY_PATH | AT_RECURSIVE |
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)) == -1)
		err(BOX_FAILED, "sandbox: %s", target);
	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &ma,
	    sizeof(ma)) == -1)
		err(BOX_FAILED, "sandbox: %s: mount_setattr (Linux 5.12)",
		    target);
	return tree;
}

void
mnt_bind_fd(int fd, const char *target, uint64_t attr)
{
	int	 tree = mnt_clone(fd, target, attr);

	mnt_target(fd, target);
	if (move_mount(tree, "", AT_FDCWD, target,
	    MOVE_MOUNT_F_EMPTY_PATH) == -1)
		err(BOX_FAILED, "sandbox: mount %s", target);
	close(tree);
}

/* Mount on a target that exists and has no link in its path. */
void
mnt_bind_real(int fd, const char *target, uint64_t attr)
{
	int	 on, tree = mnt_clone(fd, target, attr);

	if ((on = mnt_open(AT_FDCWD, target, RESOLVE_NO_SYMLINKS)) == -1 ||
	    move_mount(tree, "", on, "", MOVE_MOUNT_F_EMPTY_PATH |
	    MOVE_MOUNT_T_EMPTY_PATH) == -1)
		err(BOX_FAILED, "sandbox: mount %s", target);
	close(on);
	close(tree);
}

/* Mount a path of the host; nothing if the host does not have it. */
void
mnt_bind(const struct mnt *mn, const char *source, const char *target,
    uint64_t attr)
{
	int	 fd;

	if ((fd = mnt_open(mn->mn_host, source, RESOLVE_NO_MAGICLINKS)) ==
	    -1) {
		if (errno == ENOENT || errno == ENOTDIR || errno == EACCES)
			return;
		err(BOX_FAILED, "sandbox: %s", source);
	}
	mnt_bind_fd(fd, target, attr);
	close(fd);
}

/* Not mounted anywhere yet; options are names and values up to a NULL. */
static int
mnt_new(const char *type, const char *target, const char *const *options,
    uint64_t attr)
{
	int	 fs, mnt;

	if ((fs = fsopen(type, FSOPEN_CLOEXEC)) == -1)
		err(BOX_FAILED, "sandbox: %s on %s", type, target);
	for (; *options != NULL; options += 2)
		if (fsconfig(fs, FSCONFIG_SET_STRING, options[0], options[1],
		    0) == -1)
			err(BOX_FAILED, "sandbox: %s on %s: %s", type, target,
			    options[0]);
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == -1 ||
	    (mnt = fsmount(fs, FSMOUNT_CLOEXEC, attr)) == -1)
		err(BOX_FAILED, "sandbox: %s on %s", type, target);
	close(fs);
	return mnt;
}

/* A file system of the sandbox's own; option may be NULL. */
void
mnt_fs(const char *type, const char *target, const char *key,
    const char *value, uint64_t attr)
{
	const char	*options[] = { key, value, NULL };
	int		 mnt;

	mnt_mkdir(target, 0755);
	mnt = mnt_new(type, target, options, attr);
	if (move_mount(mnt, "", AT_FDCWD, target,
	    MOVE_MOUNT_F_EMPTY_PATH) == -1)
		err(BOX_FAILED, "sandbox: mount %s", target);
	close(mnt);
}

void
mnt_tmpfs(const char *target, const char *mode)
{
	mnt_fs("tmpfs", target, "mode", mode, MNT_PLAIN);
}

/*
 * A directory of the sandbox's own that it can write to.  In a virtual one all
 * of these share a tmpfs and so its size; they are mounts nevertheless, which
 * the command cannot put another directory in the place of.
 */
void
mnt_private(struct mnt *mn, const char *target, mode_t mode)
{
	char	 text[16];
	int	 fd;

	if (mn->mn_all == -1) {
		snprintf(text, sizeof(text), "%o", mode);
		mnt_tmpfs(target, text);
		return;
	}
	snprintf(text, sizeof(text), "%u", mn->mn_next++);
	if (mkdirat(mn->mn_all, text, 0700) == -1 ||
	    fchmodat(mn->mn_all, text, mode, 0) == -1 ||
	    (fd = openat(mn->mn_all, text, O_PATH | O_DIRECTORY |
	    O_CLOEXEC)) == -1)
		err(BOX_FAILED, "sandbox: %s", target);
	mnt_bind_fd(fd, target, MNT_PLAIN);
	close(fd);
}

/* Mount a tmpfs on an open directory; returns the new one. */
int
mnt_tmpfs_fd(int dir, const char *name)
{
	static const char *const options[] = { "mode", "700", NULL };
	int			 mnt = mnt_new("tmpfs", name, options,
				    MNT_PLAIN);

	if (move_mount(mnt, "", dir, "", MOVE_MOUNT_F_EMPTY_PATH |
	    MOVE_MOUNT_T_EMPTY_PATH) == -1)
		err(BOX_FAILED, "sandbox: mount %s", name);
	return mnt;
}

/* This mount only, not those beneath it. */
void
mnt_read_only(const char *path)
{
	struct mount_attr	 ma = { .attr_set = MOUNT_ATTR_RDONLY };

	if (mount_setattr(AT_FDCWD, path, 0, &ma, sizeof(ma)) == -1)
		err(BOX_FAILED, "sandbox: %s read-only", path);
}

/* Cover a path with an empty file or directory, if it exists. */
void
mnt_hide(const char *path)
{
	struct stat	 st;
	int		 fd;

	if (lstat(path, &st) == -1)
		return;
	if ((fd = open(S_ISDIR(st.st_mode) ? EMPTY_DIR : EMPTY_FILE,
	    O_PATH | O_CLOEXEC)) == -1)
		err(BOX_FAILED, "sandbox: hide %s", path);
	mnt_bind_real(fd, path, MOUNT_ATTR_RDONLY);
	close(fd);
}

void
mnt_write_all(int fd, const char *path, const void *data, size_t len)
{
	const char	*p = data;
	ssize_t		 n;

	for (; len > 0; p += n, len -= n)
		if ((n = write(fd, p, len)) == -1)
			err(BOX_FAILED, "sandbox: %s", path);
}

void
mnt_write(const char *path, const void *data, size_t len)
{
	int	 fd;

	if ((fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0444)) == -1)
		err(BOX_FAILED, "sandbox: %s", path);
	mnt_write_all(fd, path, data, len);
	close(fd);
}

/* Mount an open directory on another, by its path. */
static void
mnt_move(int mnt, const char *target)
{
	if (move_mount(mnt, "", AT_FDCWD, target,
	    MOVE_MOUNT_F_EMPTY_PATH) == -1)
		err(BOX_FAILED, "sandbox: mount %s", target);
}

/*
 * A tmpfs of this size on a directory, and on a directory in it that one
 * itself, to become the root: what lies beside the root cannot be reached from
 * it.
 */
static void
mnt_all(struct mnt *mn, uint64_t size, const char *on)
{
	uint64_t	 files = size / INODE_BYTES;
	char		 bytes[24], inodes[24], root[64];
	const char	*options[] = {
		"mode", "700", "size", bytes, "nr_inodes", inodes, NULL
	};
	int		 mnt, fd;

	snprintf(bytes, sizeof(bytes), "%" PRIu64, size);
	snprintf(inodes, sizeof(inodes), "%" PRIu64,
	    files < INODES_MIN ? INODES_MIN : files);
	snprintf(root, sizeof(root), "%s/" ALL_ROOT, on);
	mnt = mnt_new("tmpfs", on, options, MNT_PLAIN);
	mnt_move(mnt, on);
	close(mnt);
	if ((mn->mn_all = open(on, O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1 ||
	    mkdirat(mn->mn_all, ALL_ROOT, 0755) == -1 ||
	    (fd = openat(mn->mn_all, ALL_ROOT, O_PATH | O_CLOEXEC)) == -1)
		err(BOX_FAILED, "%s", on);
	mnt = mnt_clone(fd, root, MNT_PLAIN);
	mnt_move(mnt, root);
	close(mnt);
	close(fd);
}

static void
mnt_pivot(const char *root)
{
	char	 host[64];

	snprintf(host, sizeof(host), "%s" HOST, root);
	if (mkdir(host, 0700) == -1 ||
	    syscall(SYS_pivot_root, root, host) == -1 || chdir("/") == -1)
		err(BOX_FAILED, "pivot_root");
}

/*
 * A private mount namespace whose root is ours and empty but for the host.
 * With a size, nothing but that much can be written to in all (virtual).
 */
void
mnt_begin(struct mnt *mn, uint64_t size)
{
	mn->mn_all = -1;
	mn->mn_next = 0;
	if (unshare(CLONE_NEWNS) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		err(BOX_FAILED, "mount namespace");
	if ((mn->mn_host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		err(BOX_FAILED, "/");
	/* Any directory would do; this one everybody has. */
	if (size == 0) {
		mnt_tmpfs("/tmp", "755");
		mnt_pivot("/tmp");
	} else {
		mnt_all(mn, size, "/tmp");
		mnt_pivot("/tmp/" ALL_ROOT);
		/* Or it would cover what the host has there. */
		mnt_mkdir(ALL, 0700);
		mnt_move(mn->mn_all, ALL);
	}
	mnt_touch(EMPTY_FILE);
	mnt_mkdir(EMPTY_DIR, 0555);
}

void
mnt_end(struct mnt *mn)
{
	close(mn->mn_host);
	if (umount2(HOST, MNT_DETACH) == -1 || rmdir(HOST) == -1 ||
	    unlink(EMPTY_FILE) == -1 || rmdir(EMPTY_DIR) == -1)
		err(BOX_FAILED, "leaving the host's file system");
	if (mn->mn_all == -1) {
		mnt_read_only("/");
		return;
	}
	close(mn->mn_all);
	if (umount2(ALL, MNT_DETACH) == -1 || rmdir(ALL) == -1)
		err(BOX_FAILED, "leaving " ALL);
}
