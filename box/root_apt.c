/* SPDX-License-Identifier: ISC */

/*
 * The sandbox's first process runs this before there is a command: where apt
 * keeps its lists and what it fetches.  A sandbox can ask for new lists, and
 * begins with the host's: links to them lie in a directory of its own, and
 * apt puts a new list in a link's place.  An overlay would not do: the host's
 * directories belong to a root that is nobody in here.
 */

#include <sys/mount.h>
#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box.h"

#define APT		"/var/lib/apt"
#define APT_HOST	"/var/lib/.apt"		/* the host's */

/* apt wants these to be there. */
static const char *const dirs[] = {
	APT "/lists/auxfiles", APT "/lists/partial", APT "/mirrors/partial",
	"/var/cache/apt/archives/partial",
};

/* Links to all files of a directory.  A lock is taken by who may write it. */
static void
apt_link(const char *sub)
{
	char		 source[PATH_MAX], target[PATH_MAX];
	struct dirent	*de;
	struct stat	 st;
	DIR		*dir;

	snprintf(source, sizeof(source), APT_HOST "%s", sub);
	if ((dir = opendir(source)) == NULL)
		return;
	while ((de = readdir(dir)) != NULL) {
		if (fstatat(dirfd(dir), de->d_name, &st,
		    AT_SYMLINK_NOFOLLOW) == -1 || !S_ISREG(st.st_mode) ||
		    root_is_secret(&st) || strcmp(de->d_name, "lock") == 0)
			continue;
		snprintf(source, sizeof(source), APT_HOST "%s/%s", sub,
		    de->d_name);
		snprintf(target, sizeof(target), APT "%s/%s", sub, de->d_name);
		if (symlink(source, target) == -1 && errno != EEXIST)
			err(BOX_FAILED, "sandbox: %s", target);
	}
	closedir(dir);
}

void
root_apt(const struct mnt *mn)
{
	size_t	 i;

	mnt_bind(mn, APT, APT_HOST, MNT_SYSTEM);
	if (access(APT_HOST, F_OK) == -1)
		return;
	for (i = 0; i < NITEMS(dirs); i++)
		mnt_mkdir(dirs[i], 0755);
	apt_link("");
	apt_link("/lists");
}
