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
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "box.h"

#define HOST		"/.host"
#define EMPTY_FILE	"/.empty"
#define EMPTY_DIR	"/.none"
#define OPEN_TRIES	1000	/* against who renames all the time */

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

/* Not mounted anywhere yet; option may be NULL. */
static int
mnt_new(const char *type, const char *target, const char *key,
    const char *value, uint64_t attr)
{
	int	 fs, mnt;

	if ((fs = fsopen(type, FSOPEN_CLOEXEC)) == -1 || (key != NULL &&
	    fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) == -1) ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == -1 ||
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
	int	 mnt;

	mnt_mkdir(target, 0755);
	mnt = mnt_new(type, target, key, value, attr);
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

/* Mount a tmpfs on an open directory; returns the new one. */
int
mnt_tmpfs_fd(int dir, const char *name)
{
	int	 mnt = mnt_new("tmpfs", name, "mode", "700", MNT_PLAIN);

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

/* A private mount namespace whose root is ours and empty but for the host. */
void
mnt_begin(struct mnt *mn)
{
	if (unshare(CLONE_NEWNS) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		err(BOX_FAILED, "mount namespace");
	if ((mn->mn_host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		err(BOX_FAILED, "/");
	/* Any directory would do; this one everybody has. */
	mnt_tmpfs("/tmp", "755");
	if (mkdir("/tmp" HOST, 0700) == -1 ||
	    syscall(SYS_pivot_root, "/tmp", "/tmp" HOST) == -1 ||
	    chdir("/") == -1)
		err(BOX_FAILED, "pivot_root");
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
	mnt_read_only("/");
}
