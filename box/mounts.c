/* SPDX-License-Identifier: ISC */

/*
 * Mounts into a sandbox that runs.  Its first process runs mounts_offer(),
 * before there is a command: from then on what is mounted in the outer mount
 * namespace comes to be in the commands' one as well, and is locked there.  The
 * outer namespace itself waits, as a descriptor, in a channel of which the
 * parent never reads; so the first process can give up its rights.
 *
 *	egressd-box mount -n fd -t fd [-w] target
 *
 * is a process of its own for one such mount, which the parent starts as the
 * sandbox's user.  That is the right it has: its user made the namespaces.  It
 * looks the other namespace up in the channel -n and enters it.  What is to be
 * mounted comes through -t, cloned by whoever could open it; its path is not
 * known here.  Commands write to all the target's directories meanwhile, and
 * nothing that they put there leads anywhere: links are not followed.
 */

#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <linux/nsfs.h>
#include <linux/openat2.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "exposure.h"
#include "fdpass.h"

struct mounts {
	int		 mo_namespace;	/* channels */
	int		 mo_tree;
	int		 mo_write;
	const char	*mo_target;
};

static void __attribute__((__noreturn__))
usage(void)
{
	fprintf(stderr, "usage: egressd-box mount -n fd -t fd [-w] target\n");
	exit(BOX_FAILED);
}

/* ---- the sandbox's first process ---------------------------------------- */

void
mounts_offer(const struct box *bx)
{
	struct mount_attr	 ma = { .propagation = MS_SHARED };
	int			 fd;

	if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &ma, sizeof(ma)) == -1)
		err(BOX_FAILED, "sandbox: shared mounts");
	if ((fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)) == -1)
		err(BOX_FAILED, "sandbox: mount namespace");
	if (fdpass_send(bx->bx_mounts, 'M', fd, 0) == -1)
		err(BOX_FAILED, "sandbox: mount namespace");
	close(fd);
	close(bx->bx_mounts);
}

/* ---- a mount ------------------------------------------------------------- */

/* The walk goes one name further; -1 and errno. */
static int
mounts_step(int dir, const char *name)
{
	return mnt_open(dir, name, RESOLVE_NO_SYMLINKS);
}

/*
 * Make what is not there, where the sandbox has a place of its own; in what is
 * mounted there it would be made outside.
 */
static int
mounts_make(const struct mounts *mo, int dir, const char *name, int directory)
{
	struct stat	 st, own;

	if (fstat(dir, &st) == -1 || stat("/", &own) == -1)
		err(BOX_FAILED, "%s", mo->mo_target);
	if (st.st_dev != own.st_dev)
		errx(BOX_FAILED, "%s: %s is not there, and is not made in "
		    "what is mounted on the way", mo->mo_target, name);
	if (directory ? mkdirat(dir, name, 0755) == -1 :
	    mknodat(dir, name, S_IFREG | 0444, 0) == -1)
		if (errno != EEXIST)
			err(BOX_FAILED, "%s: %s", mo->mo_target, name);
	return mounts_step(dir, name);
}

/* The place of the target, which is made if need be. */
static int
mounts_place(const struct mounts *mo, int directory)
{
	char	 path[PATH_MAX], *name, *rest;
	int	 dir, next;

	if (strlcpy(path, mo->mo_target, sizeof(path)) >= sizeof(path))
		errx(BOX_FAILED, "%s: name too long", mo->mo_target);
	if ((dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		err(BOX_FAILED, "/");
	for (rest = path + 1; (name = strsep(&rest, "/")) != NULL;
	    dir = next) {
		next = mounts_step(dir, name);
		if (next == -1 && errno == ENOENT)
			next = mounts_make(mo, dir, name,
			    directory || rest != NULL);
		if (next == -1 && errno == ELOOP)
			errx(BOX_FAILED, "%s: %s is a symbolic link, which "
			    "is not followed", mo->mo_target, name);
		if (next == -1)
			err(BOX_FAILED, "%s", mo->mo_target);
		close(dir);
	}
	return dir;
}

/* In that order: the rights in the second come with the first. */
static void
mounts_enter(int ns)
{
	int	 user;

	if ((user = ioctl(ns, NS_GET_USERNS)) == -1 ||
	    setns(user, CLONE_NEWUSER) == -1 || setns(ns, CLONE_NEWNS) == -1)
		err(BOX_FAILED, "the sandbox's mount namespace");
	close(user);
}

static void
mounts_attach(const struct mounts *mo, int tree)
{
	struct mount_attr	 ma = {
		.attr_set = mo->mo_write ? MNT_PLAIN : MNT_SYSTEM,
		.propagation = MS_PRIVATE,
	};
	struct stat		 st, on;
	int			 place;

	if (fstat(tree, &st) == -1 || mount_setattr(tree, "", AT_EMPTY_PATH |
	    AT_RECURSIVE, &ma, sizeof(ma)) == -1)
		err(BOX_FAILED, "%s: mount_setattr", mo->mo_target);
	place = mounts_place(mo, S_ISDIR(st.st_mode));
	if (fstat(place, &on) == -1)
		err(BOX_FAILED, "%s", mo->mo_target);
	if (S_ISDIR(st.st_mode) != S_ISDIR(on.st_mode))
		errx(BOX_FAILED, "%s: it is %s directory in the sandbox",
		    mo->mo_target, S_ISDIR(on.st_mode) ? "a" : "no");
	if (move_mount(tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH |
	    MOVE_MOUNT_T_EMPTY_PATH) == -1)
		err(BOX_FAILED, "%s: mount", mo->mo_target);
}

static void
mounts_options(struct mounts *mo, int argc, char **argv)
{
	const char	*taken;
	int		 ch;

	while ((ch = getopt(argc, argv, "n:t:w")) != -1) {
		switch (ch) {
		case 'n':
			mo->mo_namespace = box_descriptor(optarg);
			break;
		case 't':
			mo->mo_tree = box_descriptor(optarg);
			break;
		case 'w':
			mo->mo_write = 1;
			break;
		default:
			usage();
		}
	}
	if (argc - optind != 1 || mo->mo_namespace == -1 || mo->mo_tree == -1)
		usage();
	mo->mo_target = argv[optind];
	if (!exposure_is_plain(mo->mo_target))
		errx(BOX_FAILED, "%s: not a plain absolute path",
		    mo->mo_target);
	if ((taken = paths_taken_by(mo->mo_target)) != NULL)
		errx(BOX_FAILED, "%s: not in %s", mo->mo_target, taken);
}

int
mounts_main(int argc, char **argv)
{
	struct mounts	 mo = { -1, -1, 0, NULL };
	int		 ns, tree;

	mounts_options(&mo, argc, argv);
	/* The namespace stays in the channel, for the next mount. */
	if ((ns = fdpass_take(mo.mo_namespace, MSG_PEEK |
	    MSG_DONTWAIT)) == -1)
		errx(BOX_FAILED, "the sandbox takes no mounts");
	/* Whoever was to send it has said why there is none. */
	if ((tree = fdpass_take(mo.mo_tree, 0)) == -1)
		return BOX_FAILED;
	umask(022);
	mounts_enter(ns);
	mounts_attach(&mo, tree);
	return 0;
}
