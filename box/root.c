/* SPDX-License-Identifier: ISC */

/*
 * The sandbox's first process runs this before there is a command: the file
 * system that the command will see, made from nothing by an allow-list.
 *
 *	/usr /bin /sbin /lib* /opt /nix/store	the host's, read-only
 *	/etc					the host's without secrets
 *	/tmp /run /var $HOME			private, gone at the end
 *	/dev /proc /sys				as little as programs expect
 *	working directory, exposed paths	as the caller said
 *
 * In a virtual sandbox the root and the working directory are private as well,
 * and all that is private is one file system of a given size.
 *
 * The inner user namespace gets a copy of these mounts that it can neither
 * take apart nor make writable.
 */

#include <sys/mount.h>
#include <sys/stat.h>

#include <ctype.h>
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "exposure.h"
#include "kernelfs.h"

/* What common tools look for in /var, and the host may show. */
static const char *const var_dirs[] = {
	"/var/lib/dpkg",	/* dpkg, apt: what is installed */
	"/var/lib/rpm",
	"/var/lib/texmf",	/* the formats of TeX */
	"/var/lib/dictionaries-common",
	"/var/cache/fontconfig",
	"/var/cache/man",
};

static const char *const devices[] = {
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
	"/dev/tty",
};

static const struct {
	const char	*path;
	const char	*target;
} dev_links[] = {
	{ "/dev/fd",		"/proc/self/fd" },
	{ "/dev/stdin",		"/proc/self/fd/0" },
	{ "/dev/stdout",	"/proc/self/fd/1" },
	{ "/dev/stderr",	"/proc/self/fd/2" },
	{ "/dev/ptmx",		"pts/ptmx" },
};

/*
 * The host's kernel shows through here, and its root may write here by uid
 * alone, in whatever user namespace it is.
 */
static const char *const proc_read_only[] = {
	"/proc/bus", "/proc/driver", "/proc/fs", "/proc/irq", "/proc/sys",
};
static const char *const proc_hidden[] = {
	"/proc/acpi", "/proc/dynamic_debug", "/proc/kallsyms",
	"/proc/key-users", "/proc/keys", "/proc/latency_stats", "/proc/mtrr",
	"/proc/sched_debug", "/proc/scsi", "/proc/timer_list",
	"/proc/timer_stats", "/proc/tty/driver",
};

static void
root_system(const struct mnt *mn)
{
	struct stat	 st;
	char		 link[256];
	const char	*path;
	ssize_t		 n;
	size_t		 i;

	for (i = 0; (path = exposure_shown[i]) != NULL; i++) {
		if (fstatat(mn->mn_host, path + 1, &st,
		    AT_SYMLINK_NOFOLLOW) == -1)
			continue;
		if (!S_ISLNK(st.st_mode)) {
			mnt_bind(mn, path, path, MNT_SYSTEM);
			continue;
		}
		if ((n = readlinkat(mn->mn_host, path + 1, link,
		    sizeof(link) - 1)) == -1)
			err(BOX_FAILED, "%s", path);
		link[n] = '\0';
		if (symlink(link, path) == -1)
			err(BOX_FAILED, "sandbox: %s", path);
	}
	/* Some ask here how many processors there are. */
	mnt_bind(mn, "/sys/devices/system/cpu", "/sys/devices/system/cpu",
	    MNT_SYSTEM);
}

static void
root_private(struct mnt *mn, const struct box *bx)
{
	const char	*home;
	size_t		 i;

	mnt_private(mn, "/tmp", 01777);
	mnt_private(mn, "/run", 0755);
	mnt_private(mn, "/var", 0755);
	mnt_mkdir("/run/lock", 0755);
	mnt_mkdir("/var/cache", 0755);
	mnt_mkdir("/var/lib", 0755);
	mnt_mkdir("/var/log", 0755);
	mnt_mkdir("/var/tmp", 0755);
	if (chmod("/var/tmp", 01777) == -1 ||
	    symlink("/run", "/var/run") == -1 ||
	    symlink("/run/lock", "/var/lock") == -1)
		err(BOX_FAILED, "sandbox: /var");
	for (i = 0; i < NITEMS(var_dirs); i++)
		mnt_bind(mn, var_dirs[i], var_dirs[i], MNT_SYSTEM);
	root_apt(mn);
	/* A home in /opt would be seen beside the command's. */
	for (i = 0; i < NITEMS(bx->bx_covered); i++)
		if ((home = bx->bx_covered[i]) != NULL &&
		    access(home, F_OK) == 0)
			mnt_private(mn, home, 0700);
	if (bx->bx_home != NULL)
		mnt_private(mn, bx->bx_home, 0700);
}

static void
root_dev(struct mnt *mn, const struct box *bx)
{
	size_t	 i;

	mnt_private(mn, "/dev", 0755);
	for (i = 0; i < NITEMS(devices); i++)
		mnt_bind(mn, devices[i], devices[i], MNT_DEVICES);
	mnt_fs("devpts", "/dev/pts", "ptmxmode", "666", MNT_DEVICES);
	mnt_private(mn, "/dev/shm", 01777);
	for (i = 0; i < NITEMS(dev_links); i++)
		if (symlink(dev_links[i].target, dev_links[i].path) == -1)
			err(BOX_FAILED, "sandbox: %s", dev_links[i].path);
	/* ttyname(3) finds the caller's terminal by this name. */
	if (bx->bx_tty != NULL)
		mnt_bind(mn, bx->bx_tty, "/dev/console", MNT_DEVICES);
}

/* 1 if not everybody may read it: then the sandbox may not, either. */
int
root_is_secret(const struct stat *st)
{
	mode_t	 need = S_ISDIR(st->st_mode) ? S_IROTH | S_IXOTH : S_IROTH;

	return (st->st_mode & need) != need;
}

/* Hide what only root may read in /proc: kcore, kmsg and later ones. */
static void
root_proc_secrets(void)
{
	char		 path[PATH_MAX];
	struct dirent	*de;
	struct stat	 st;
	DIR		*dir;

	if ((dir = opendir("/proc")) == NULL)
		err(BOX_FAILED, "sandbox: /proc");
	while ((de = readdir(dir)) != NULL) {
		if (isdigit((unsigned char)*de->d_name) ||
		    fstatat(dirfd(dir), de->d_name, &st,
		    AT_SYMLINK_NOFOLLOW) == -1 || S_ISLNK(st.st_mode) ||
		    !root_is_secret(&st))
			continue;
		snprintf(path, sizeof(path), "/proc/%s", de->d_name);
		mnt_hide(path);
	}
	closedir(dir);
}

/* /proc of the sandbox's pid namespace, without the host's processes. */
static void
root_proc(void)
{
	size_t	 i;
	int	 fd;

	mnt_fs("proc", "/proc", NULL, NULL, MNT_PLAIN);
	ns_no_cgroups();
	for (i = 0; i < NITEMS(proc_read_only); i++) {
		if ((fd = open(proc_read_only[i], O_PATH | O_CLOEXEC)) == -1)
			continue;
		mnt_bind_fd(fd, proc_read_only[i], MNT_SYSTEM);
		close(fd);
	}
	for (i = 0; i < NITEMS(proc_hidden); i++)
		mnt_hide(proc_hidden[i]);
	root_proc_secrets();
}

static int
root_by_length(const void *a, const void *b)
{
	const struct box_path	*x = a, *y = b;
	size_t			 xlen = strlen(x->bp_on);
	size_t			 ylen = strlen(y->bp_on);

	return (xlen > ylen) - (xlen < ylen);
}

/*
 * A directory before what is in it, or it would cover that.  All targets are
 * made before the first is covered by something that others can write to.
 */
static void
root_exposed(const struct mnt *mn, const struct box *bx)
{
	struct box_path	*bp;
	const char	*why;
	size_t		 i;

	if (bx->bx_npaths > 0)
		qsort(bx->bx_paths, bx->bx_npaths, sizeof(*bx->bx_paths),
		    root_by_length);
	for (i = 0; i < bx->bx_npaths; i++) {
		bp = &bx->bx_paths[i];
		bp->bp_fd = mnt_open_real(mn, bp->bp_path);
		if (bp->bp_fd == -1 && errno == ELOOP)
			errx(BOX_FAILED, "cannot expose %s: a symbolic link "
			    "has taken its place", bp->bp_path);
		if (bp->bp_fd == -1)
			err(BOX_FAILED, "cannot expose %s", bp->bp_path);
		if ((why = kernelfs_name(bp->bp_fd)) != NULL)
			errx(BOX_FAILED, "cannot expose %s: it is the "
			    "kernel's (%s)", bp->bp_path, why);
		mnt_target(bp->bp_fd, bp->bp_on);
	}
	for (i = 0; i < bx->bx_npaths; i++) {
		bp = &bx->bx_paths[i];
		mnt_bind_real(bp->bp_fd, bp->bp_on, bp->bp_write ?
		    MNT_PLAIN : MNT_SYSTEM);
		close(bp->bp_fd);
	}
}

/* Mount points as mountinfo has them, where odd bytes are octal. */
static void
root_unescape(char *path)
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

static int
root_is_exposed(const struct box *bx, const char *path)
{
	size_t	 i;

	for (i = 0; i < bx->bx_npaths; i++)
		if (exposure_beneath(path, bx->bx_paths[i].bp_on))
			return 1;
	return 0;
}

/*
 * What is mounted in an exposed directory is exposed with it, but for the
 * kernel's file systems, as in the root directory of a container: they show
 * the host's processes, and some obey the caller's uid.
 */
static void
root_hide_kernel(const struct box *bx)
{
	char	*line = NULL, point[PATH_MAX];
	size_t	 size = 0;
	FILE	*fp;
	int	 fd;

	if ((fp = fopen("/proc/self/mountinfo", "re")) == NULL)
		err(BOX_FAILED, "sandbox: mounts");
	while (getline(&line, &size, fp) != -1) {
		if (sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1)
			errx(BOX_FAILED, "sandbox: mounts: %s", line);
		root_unescape(point);
		if (!root_is_exposed(bx, point) ||
		    (fd = open(point, O_PATH | O_NOFOLLOW | O_CLOEXEC)) == -1)
			continue;
		if (kernelfs_name(fd) != NULL)
			mnt_hide(point);
		close(fd);
	}
	free(line);
	fclose(fp);
}

void
root_build(const struct box *bx)
{
	struct mnt	 mn;

	umask(022);
	mnt_begin(&mn, bx->bx_virtual);
	root_system(&mn);
	root_private(&mn, bx);
	root_dev(&mn, bx);
	root_proc();
	root_etc(&mn, bx);
	/* Before links of others can stand in its way. */
	if (bx->bx_virtual != 0)
		mnt_mkdir(bx->bx_cwd, 0755);
	root_exposed(&mn, bx);
	root_nss(bx);
	root_hide_kernel(bx);
	mnt_read_only("/etc");
	mnt_end(&mn);
}
