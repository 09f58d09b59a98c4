/* SPDX-License-Identifier: ISC */

/*
 * The sandbox's first process runs this before there is a command: the database
 * in which Chromium and its kin, Electron and the tools of NSS look for what
 * their user trusts.  They write to it, too, so the command has a copy of its
 * own in its home.
 *
 * In a home that is kept the copy lies in a mount: a CA that lives for one
 * session is not left behind.  A database that such a home has, and whatever
 * the caller exposes in its place, is the caller's and stays as it is.
 */

#include <sys/mount.h>
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "exposure.h"

#define NSS_DIR		".pki"
#define NSS_SUB		"nssdb"
#define NSS_CERTS	"cert9.db"
#define COPY_SIZE	8192

static const char *const nss_files[] = { NSS_CERTS, "key4.db" };

/* Exposed, be it in part, and not as the home that is kept. */
static int
nss_is_callers(const struct box *bx)
{
	const struct box_path	*bp;
	char			 path[PATH_MAX];
	size_t			 i;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s/%s", bx->bx_home,
	    NSS_DIR, NSS_SUB) >= sizeof(path))
		return 1;
	for (i = 0; i < bx->bx_npaths; i++) {
		bp = &bx->bx_paths[i];
		if (bp->bp_path != bx->bx_kept_home &&
		    (exposure_beneath(path, bp->bp_on) ||
		    exposure_beneath(bp->bp_on, path)))
			return 1;
	}
	return 0;
}

static void
nss_copy(int dir, const char *name)
{
	char	 path[PATH_MAX], data[COPY_SIZE];
	ssize_t	 n;
	int	 in, out;

	snprintf(path, sizeof(path), "%s/%s", BOX_TRUST_DIR, name);
	if ((in = open(path, O_RDONLY | O_CLOEXEC)) == -1 ||
	    (out = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0600)) == -1)
		err(BOX_FAILED, "sandbox: %s of the home", name);
	while ((n = read(in, data, sizeof(data))) > 0)
		mnt_write_all(out, name, data, n);
	if (n == -1)
		err(BOX_FAILED, "sandbox: %s", path);
	close(in);
	close(out);
}

/* Sandboxes of before may have put links into a home that is kept. */
static int
nss_enter(const struct box *bx)
{
	int	 home, dir = -1, sub = -1;

	if ((home = open(bx->bx_home, O_PATH | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC)) != -1 && (dir = home_enter(home, NSS_DIR)) != -1)
		sub = home_enter(dir, NSS_SUB);
	if (sub == -1)
		box_notice(bx, "%s has no place for %s/%s: %s", bx->bx_home,
		    NSS_DIR, NSS_SUB, strerror(errno));
	if (home != -1)
		close(home);
	if (dir != -1)
		close(dir);
	return sub;
}

void
root_nss(const struct box *bx)
{
	struct stat	 st;
	size_t		 i;
	int		 dir, mnt;

	if (bx->bx_home == NULL || nss_is_callers(bx) ||
	    (dir = nss_enter(bx)) == -1)
		return;
	if (fstatat(dir, NSS_CERTS, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		close(dir);
		return;
	}
	if (bx->bx_kept_home != NULL) {
		mnt = mnt_tmpfs_fd(dir, NSS_SUB);
		close(dir);
		dir = mnt;
	}
	for (i = 0; i < NITEMS(nss_files); i++)
		nss_copy(dir, nss_files[i]);
	close(dir);
}
