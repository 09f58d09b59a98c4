/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: new contents of a file, gathered in a file of their own
 * and put in its place when they are whole.  That file has no name where the
 * kernel can do so, and so is gone with us however we end.
 *
 *	beside the target	renamed over it
 *	elsewhere, if the	copied into it: a mount point cannot be renamed
 *	target's directory	over, nor a file in a directory that is not ours
 *	is not ours to write
 */

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "op.h"

#define LINKS_MAX	40
#define TEMPORARY	"/tmp"
#define MEMORY_MAX	(64 * 1024 * 1024)	/* staged without a disk */

/* The directory part of a path, which is to be freed. */
static char *
path_directory(const char *path)
{
	const char	*slash = strrchr(path, '/');

	if (slash == NULL)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Where a link leads, from where it is; NULL if path is no link. */
static char *
path_follow(const char *path)
{
	char	 target[PATH_MAX], *dir, *next;
	ssize_t	 n;

	if ((n = readlink(path, target, sizeof(target) - 1)) == -1)
		return NULL;
	target[n] = '\0';
	if (target[0] == '/')
		return strdup(target);
	if ((dir = path_directory(path)) == NULL)
		return NULL;
	if (asprintf(&next, "%s/%s", dir, target) == -1)
		next = NULL;
	free(dir);
	return next;
}

/* The name at the end of all links, which need not exist. */
static char *
path_resolve(const char *path)
{
	char	*at, *next;
	int	 i;

	if ((at = strdup(path)) == NULL)
		return NULL;
	for (i = 0; (next = path_follow(at)) != NULL; i++) {
		free(at);
		at = next;
		if (i == LINKS_MAX) {
			free(at);
			errno = ELOOP;
			return NULL;
		}
	}
	return at;
}

/* What is there now, if it may be written to. */
static int
replace_look(struct replace *rp)
{
	struct stat	 st;
	size_t		 len = strlen(rp->rp_path);

	if (lstat(rp->rp_path, &st) == -1) {
		rp->rp_created = 1;
		if (errno == ENOENT && len > 0 && rp->rp_path[len - 1] == '/')
			errno = EISDIR;
		return errno == ENOENT && len > 0 ? 0 : -1;
	}
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISDIR(st.st_mode) ? EISDIR : ENODEV;
		return -1;
	}
	rp->rp_mode = st.st_mode & 01777;
	rp->rp_uid = st.st_uid;
	rp->rp_gid = st.st_gid;
	return faccessat(AT_FDCWD, rp->rp_path, W_OK, AT_EACCESS);
}

static int
stage_named(struct replace *rp, const char *dir)
{
	if (asprintf(&rp->rp_name, "%s/.egressd-XXXXXX", dir) == -1) {
		rp->rp_name = NULL;
		return -1;
	}
	if ((rp->rp_fd = mkostemp(rp->rp_name, O_CLOEXEC)) != -1)
		return 0;
	free(rp->rp_name);
	rp->rp_name = NULL;
	return -1;
}

/* A file in that directory, without a name if that can be had. */
static int
stage_in(struct replace *rp, const char *dir)
{
	if (access("/proc/self/fd", X_OK) == 0) {
		rp->rp_fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (rp->rp_fd != -1)
			return 0;
		if (errno == EACCES || errno == EPERM || errno == EROFS ||
		    errno == ENOSPC || errno == EDQUOT)
			return -1;
		if (errno == ENOENT && access(dir, F_OK) == -1)
			return -1;
	}
	return stage_named(rp, dir);
}

/* Nearest to the target: directories are made when all has come. */
static int
stage_beside(struct replace *rp)
{
	char	*dir, *up;
	int	 error = -1;

	if ((dir = path_directory(rp->rp_path)) == NULL)
		return -1;
	while ((error = stage_in(rp, dir)) == -1 && errno == ENOENT &&
	    rp->rp_created && strcmp(dir, ".") != 0 && strcmp(dir, "/") != 0) {
		up = path_directory(dir);
		free(dir);
		if ((dir = up) == NULL)
			return -1;
	}
	free(dir);
	return error;
}

static int
stage_elsewhere(struct replace *rp)
{
	rp->rp_beside = 0;
	if ((rp->rp_fd = open(TEMPORARY, O_TMPFILE | O_RDWR | O_CLOEXEC,
	    0600)) != -1)
		return 0;
	rp->rp_max = MEMORY_MAX;
	rp->rp_fd = memfd_create("contents", MFD_CLOEXEC);
	return rp->rp_fd == -1 ? -1 : 0;
}

/* Begin, with the mode of a file that is new; or -1 and errno. */
int
replace_begin(struct replace *rp, const char *path, mode_t mode)
{
	memset(rp, 0, sizeof(*rp));
	rp->rp_fd = rp->rp_target = -1;
	rp->rp_mode = mode;
	rp->rp_uid = geteuid();
	rp->rp_gid = getegid();
	rp->rp_beside = 1;
	rp->rp_max = INT64_MAX;
	if ((rp->rp_path = path_resolve(path)) == NULL ||
	    replace_look(rp) == -1)
		return -1;
	if (stage_beside(rp) == 0)
		return 0;
	if (rp->rp_created || (errno != EACCES && errno != EPERM &&
	    errno != EROFS))
		return -1;
	return stage_elsewhere(rp);
}

int
replace_write(struct replace *rp, const void *data, size_t len)
{
	const char	*p = data;
	ssize_t		 n;

	while (len > 0) {
		if (rp->rp_len > rp->rp_max - (off_t)len) {
			errno = EFBIG;
			return -1;
		}
		if ((n = pwrite(rp->rp_fd, p, len, rp->rp_len)) == -1) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		p += n;
		len -= (size_t)n;
		rp->rp_len += n;
	}
	return 0;
}

/* Give the staged file a name; it has none yet. */
static int
stage_link(struct replace *rp, const char *name)
{
	char	 link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", rp->rp_fd);
	return linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static int
stage_name(struct replace *rp)
{
	char	*dir, *name;
	uint64_t number;
	int	 i, error = -1;

	if ((dir = path_directory(rp->rp_path)) == NULL)
		return -1;
	for (i = 0; i < 16 && error == -1; i++) {
		if (getentropy(&number, sizeof(number)) == -1 ||
		    asprintf(&name, "%s/.egressd-%016llx", dir,
		    (unsigned long long)number) == -1)
			break;
		if ((error = stage_link(rp, name)) == 0)
			rp->rp_name = name;
		else
			free(name);
		if (error == -1 && errno != EEXIST)
			break;
	}
	free(dir);
	return error;
}

static int
replace_rename(struct replace *rp)
{
	if (rp->rp_name == NULL && rp->rp_created) {
		if (stage_link(rp, rp->rp_path) == 0)
			return 0;
		if (errno != EEXIST)
			return -1;
		rp->rp_created = 0;
	}
	if (rp->rp_name == NULL && stage_name(rp) == -1)
		return -1;
	if (rename(rp->rp_name, rp->rp_path) == -1)
		return -1;
	free(rp->rp_name);
	rp->rp_name = NULL;
	return 0;
}

/* Open what is there, to be written over. */
static int
replace_in_place(struct replace *rp)
{
	struct stat	 st;

	if ((rp->rp_target = open(rp->rp_path, O_WRONLY | O_NONBLOCK |
	    O_NOFOLLOW | O_CLOEXEC | O_NOCTTY)) == -1)
		return -1;
	if (fstat(rp->rp_target, &st) == 0 && S_ISREG(st.st_mode))
		return 1;
	(void)close(rp->rp_target);
	rp->rp_target = -1;
	errno = ENODEV;
	return -1;
}

static int
replace_parents(const struct replace *rp)
{
	char	*dir;
	int	 created, error;

	if ((dir = path_directory(rp->rp_path)) == NULL)
		return -1;
	error = file_mkdirs(dir, 0755, &created);
	free(dir);
	return error;
}

/*
 * All has come: 0 if it is in its place, 1 if replace_copy() has to be called
 * until it is, or -1 and errno.
 */
int
replace_commit(struct replace *rp)
{
	if (!rp->rp_beside)
		return replace_in_place(rp);
	if (rp->rp_created && replace_parents(rp) == -1)
		return -1;
	/* An owner that we cannot give stays ours; so does a group. */
	if (rp->rp_uid != geteuid() || rp->rp_gid != getegid())
		(void)!fchown(rp->rp_fd, rp->rp_uid, rp->rp_gid);
	if (fchmod(rp->rp_fd, rp->rp_mode) == -1)
		return -1;
	if (replace_rename(rp) == 0)
		return 0;
	if (!rp->rp_created && (errno == EBUSY || errno == EXDEV ||
	    errno == EPERM || errno == EACCES))
		return replace_in_place(rp);
	return -1;
}

/* A slice of what is written in place: 1 if there is more to do. */
int
replace_copy(struct replace *rp)
{
	static uint8_t	 buf[SLICE];
	ssize_t		 n, done;

	if ((n = pread(rp->rp_fd, buf, sizeof(buf), rp->rp_copied)) == -1)
		return errno == EINTR ? 1 : -1;
	if (n == 0) {
		if (ftruncate(rp->rp_target, rp->rp_copied) == -1)
			return -1;
		(void)close(rp->rp_target);
		rp->rp_target = -1;
		return 0;
	}
	if ((done = pwrite(rp->rp_target, buf, (size_t)n,
	    rp->rp_copied)) == -1)
		return errno == EINTR ? 1 : -1;
	rp->rp_copied += done;
	return 1;
}

/* Half a copy would be worse than either, so one that has begun is ended. */
void
replace_free(struct replace *rp)
{
	if (rp->rp_target != -1) {
		while (replace_copy(rp) == 1)
			continue;
		if (rp->rp_target != -1)
			(void)close(rp->rp_target);
	}
	if (rp->rp_name != NULL)
		(void)unlink(rp->rp_name);
	free(rp->rp_name);
	free(rp->rp_path);
	if (rp->rp_fd != -1)
		(void)close(rp->rp_fd);
}
