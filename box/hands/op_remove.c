/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: the operation remove.  Down a tree of any depth with two
 * descriptors: that of the directory where we are, and where we began.  On the
 * way up, .. must be the directory that we came from, or somebody has moved
 * what we are in, and we stop.
 */

#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../box.h"
#include "op.h"

#define LOOKS		64		/* at names, in a turn */
#define DEPTH_MAX	65536

/* A directory above, and what we are called in it. */
struct above {
	dev_t		 ab_dev;
	ino_t		 ab_ino;
	char		*ab_name;
};

struct op_remove {
	const char	*rm_path;
	int		 rm_recursive;
	DIR		*rm_dir;	/* where we are */
	int		 rm_dirty;	/* names are gone since its beginning */
	int		 rm_base;	/* the directory of path */
	char		*rm_copy;	/* path without slashes at its end */
	struct above	*rm_above;
	size_t		 rm_depth;
	size_t		 rm_size;
	uint64_t	 rm_removed;
};

static const struct member remove_members[] = {
	MUST_STRING(op_remove, "path", rm_path),
	MAY_BOOL(op_remove, "recursive", rm_recursive, 0),
	MEMBERS_END
};

static void
remove_done(struct request *rq)
{
	struct op_remove	*rm = rq->rq_state;
	struct jsonw		*w = request_writer();

	jsonw_object(w);
	jsonw_lit(w, "removed");
	jsonw_uint(w, rm->rm_removed);
	jsonw_end(w);
	request_result(rq, w);
}

/* With what is gone already. */
static void
remove_failed(struct request *rq, int error, const char *name)
{
	struct op_remove	*rm = rq->rq_state;

	if (name == NULL || strcmp(name, rm->rm_path) == 0)
		request_error_with(rq, error_code(error), "removed",
		    rm->rm_removed, "%s: %s", rm->rm_path, strerror(error));
	else
		request_error_with(rq, error_code(error), "removed",
		    rm->rm_removed, "%s: %s: %s", rm->rm_path, name,
		    strerror(error));
}

/* Go down into a directory, and remember how to come back. */
static int
remove_enter(struct op_remove *rm, int at, const char *name)
{
	struct stat	 st;
	struct above	*ab;
	int		 fd;

	if (rm->rm_depth == DEPTH_MAX) {
		errno = ELOOP;
		return -1;
	}
	if (rm->rm_depth == rm->rm_size) {
		rm->rm_size = rm->rm_size * 2 + 16;
		if ((rm->rm_above = reallocarray(rm->rm_above, rm->rm_size,
		    sizeof(*rm->rm_above))) == NULL)
			err(BOX_FAILED, NULL);
	}
	if (fstat(at, &st) == -1 || (fd = openat(at, name, O_RDONLY |
	    O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) == -1)
		return -1;
	ab = &rm->rm_above[rm->rm_depth++];
	ab->ab_dev = st.st_dev;
	ab->ab_ino = st.st_ino;
	if ((ab->ab_name = strdup(name)) == NULL)
		err(BOX_FAILED, NULL);
	if (rm->rm_dir != NULL)
		(void)closedir(rm->rm_dir);
	if ((rm->rm_dir = fdopendir(fd)) == NULL)
		err(BOX_FAILED, NULL);
	rm->rm_dirty = 0;
	return 0;
}

/* Remove the directory that we are in, from the one above. */
static int
remove_leave(struct op_remove *rm)
{
	struct above	*ab = &rm->rm_above[rm->rm_depth - 1];
	struct stat	 st;
	int		 fd;

	fd = rm->rm_depth == 1 ? dup(rm->rm_base) : openat(dirfd(rm->rm_dir),
	    "..", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		return -1;
	(void)closedir(rm->rm_dir);
	rm->rm_dir = NULL;
	if (fstat(fd, &st) == -1 || st.st_dev != ab->ab_dev ||
	    st.st_ino != ab->ab_ino) {
		(void)close(fd);
		errno = ESTALE;
		return -1;
	}
	if (unlinkat(fd, ab->ab_name, AT_REMOVEDIR) == -1) {
		(void)close(fd);
		return -1;
	}
	rm->rm_removed++;
	rm->rm_dirty = 1;
	free(ab->ab_name);
	if (--rm->rm_depth == 0)
		(void)close(fd);
	else if ((rm->rm_dir = fdopendir(fd)) == NULL)
		err(BOX_FAILED, NULL);
	return 0;
}

/* Unlink it, or go down into it. */
static int
remove_name(struct op_remove *rm, int at, const char *name)
{
	struct stat	 st;

	if (unlinkat(at, name, 0) == 0) {
		rm->rm_removed++;
		rm->rm_dirty = 1;
		return 0;
	}
	if (errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return -1;
	if (!S_ISDIR(st.st_mode)) {
		errno = EPERM;
		return -1;
	}
	return remove_enter(rm, at, name);
}

/*
 * The next name of where we are; after the last, out of it.  A directory that
 * changes while it is read may hide some: it is read until there are none.
 */
static int
remove_once(struct op_remove *rm, const char **name)
{
	struct dirent	*de;

	do {
		errno = 0;
		de = readdir(rm->rm_dir);
	} while (de != NULL && (strcmp(de->d_name, ".") == 0 ||
	    strcmp(de->d_name, "..") == 0));
	*name = NULL;
	if (de != NULL) {
		*name = de->d_name;
		return remove_name(rm, dirfd(rm->rm_dir), de->d_name);
	}
	if (errno != 0)
		return -1;
	if (!rm->rm_dirty)
		return remove_leave(rm);
	rm->rm_dirty = 0;
	rewinddir(rm->rm_dir);
	return 0;
}

static void
remove_step(struct request *rq)
{
	struct op_remove	*rm = rq->rq_state;
	const char		*name;
	int			 i;

	for (i = 0; i < LOOKS && !rq->rq_over; i++) {
		if (remove_once(rm, &name) == -1)
			remove_failed(rq, errno, name);
		else if (rm->rm_depth == 0)
			remove_done(rq);
	}
}

/* The directory that the last name of path is in, and that name. */
static int
remove_base(struct op_remove *rm, const char **name)
{
	const char	*dir = ".";
	size_t		 len = strlen(rm->rm_path);
	char		*slash;

	while (len > 1 && rm->rm_path[len - 1] == '/')
		len--;
	if ((rm->rm_copy = strndup(rm->rm_path, len)) == NULL)
		err(BOX_FAILED, NULL);
	*name = rm->rm_copy;
	if ((slash = strrchr(rm->rm_copy, '/')) != NULL) {
		dir = slash == rm->rm_copy ? "/" : rm->rm_copy;
		*slash = '\0';
		*name = slash[1] == '\0' ? "." : slash + 1;
	}
	rm->rm_base = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return rm->rm_base == -1 ? -1 : 0;
}

static void
remove_start(struct request *rq)
{
	struct op_remove	*rm = rq->rq_state;
	const char		*name;
	struct stat		 st;
	int			 flag;

	rm->rm_base = -1;
	if (remove_base(rm, &name) == -1 || fstatat(rm->rm_base, name, &st,
	    AT_SYMLINK_NOFOLLOW) == -1) {
		request_failed(rq, errno, rm->rm_path);
		return;
	}
	flag = S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0;
	if (unlinkat(rm->rm_base, name, flag) == 0) {
		rm->rm_removed = 1;
		remove_done(rq);
	} else if (flag == 0 || !rm->rm_recursive || (errno != ENOTEMPTY &&
	    errno != EEXIST))
		request_error(rq, errno == EEXIST ? "failed" :
		    error_code(errno), "%s: %s", rm->rm_path, strerror(errno));
	else if (remove_enter(rm, rm->rm_base, name) == -1)
		request_failed(rq, errno, rm->rm_path);
	else
		rq->rq_busy = 1;
}

static void
remove_free(struct request *rq)
{
	struct op_remove	*rm = rq->rq_state;

	while (rm->rm_depth > 0)
		free(rm->rm_above[--rm->rm_depth].ab_name);
	free(rm->rm_above);
	free(rm->rm_copy);
	if (rm->rm_dir != NULL)
		(void)closedir(rm->rm_dir);
	if (rm->rm_base != -1)
		(void)close(rm->rm_base);
}

const struct op op_remove = {
	.op_name = "remove", .op_members = remove_members,
	.op_size = sizeof(struct op_remove),
	.op_start = remove_start, .op_step = remove_step,
	.op_free = remove_free,
};
