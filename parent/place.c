/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: where it may leave files, and which it may read.
 * Whoever can change a directory on the way to one can put a link there, and
 * root would write wherever that leads.  So root takes only ways that nobody
 * else can change; a sticky directory will do, as long as what we pass through
 * in it is ours.  What is only read may lie in a user's home, but a link of
 * that user's leads to nothing but that user's files.
 */

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

#define LINKS_MAX	16
#define NOBODY		((uid_t)-1)

struct walk {
	int		 wk_fd;			/* as far as we are */
	bool		 wk_reads;		/* and writes nothing */
	uid_t		 wk_owner;		/* trusted besides root */
	uid_t		 wk_linker;		/* not root, led us by a link */
	unsigned int	 wk_links;
	char		 wk_seen[PATH_LEN];	/* that, for messages */
	char		 wk_rest[PATH_LEN];	/* still to go */
};

static int
weigh(const struct walk *wk, const struct stat *st, const char *name,
    struct why *why)
{
	mode_t	 others = st->st_gid == 0 ? S_IWOTH : S_IWOTH | S_IWGRP;

	if (st->st_uid != 0 && st->st_uid != wk->wk_owner)
		return why_set(why, "%s/%s: belongs to uid %u, so that root "
		    "leaves no files there", wk->wk_seen, name, st->st_uid);
	if (S_ISDIR(st->st_mode) && (st->st_mode & others) &&
	    !(st->st_mode & S_ISVTX))
		return why_set(why, "%s/%s: others can write to it, so that "
		    "root leaves no files there", wk->wk_seen, name);
	return 0;
}

/* One user may lead us, and the end of the way shows to what. */
static int
weigh_link(struct walk *wk, const struct stat *st, const char *name,
    struct why *why)
{
	if (!S_ISLNK(st->st_mode) || st->st_uid == 0 ||
	    st->st_uid == wk->wk_linker)
		return 0;
	if (wk->wk_linker != NOBODY)
		return why_set(why, "%s/%s: a link of uid %u after one of uid "
		    "%u, which root does not follow", wk->wk_seen, name,
		    st->st_uid, wk->wk_linker);
	wk->wk_linker = st->st_uid;
	return 0;
}

static bool
next_name(struct walk *wk, char *name, size_t len)
{
	char	*from = wk->wk_rest + strspn(wk->wk_rest, "/");
	size_t	 n = strcspn(from, "/");

	if (n == 0)
		return false;
	snprintf(name, len, "%.*s", (int)n, from);
	memmove(wk->wk_rest, from + n, strlen(from + n) + 1);
	return true;
}

static void
walk_to(struct walk *wk, int fd)
{
	if (wk->wk_fd != -1)
		close(wk->wk_fd);
	wk->wk_fd = fd;
}

static int
walk_root(struct walk *wk)
{
	wk->wk_seen[0] = '\0';
	walk_to(wk, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
	return wk->wk_fd == -1 ? -1 : 0;
}

/* The target of a link comes before the names that were left. */
static int
walk_link(struct walk *wk, int link)
{
	char	 target[PATH_LEN * 2];
	ssize_t	 n;

	if (++wk->wk_links > LINKS_MAX) {
		errno = ELOOP;
		return -1;
	}
	if ((n = readlinkat(link, "", target, PATH_LEN)) == -1)
		return -1;
	snprintf(target + n, sizeof(target) - n, "/%s", wk->wk_rest);
	if (strlcpy(wk->wk_rest, target, sizeof(wk->wk_rest)) >=
	    sizeof(wk->wk_rest)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return target[0] == '/' ? walk_root(wk) : 0;
}

/* One name further; -1 and why if it is not for us. */
static int
walk_step(struct walk *wk, const char *name, struct why *why)
{
	struct stat	 st;
	int		 fd, rv = -1;

	fd = openat(wk->wk_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &st) == -1) {
		why_set(why, "%s/%s: %s", wk->wk_seen, name, strerror(errno));
		goto done;
	}
	if ((wk->wk_reads ? weigh_link(wk, &st, name, why) :
	    weigh(wk, &st, name, why)) == -1)
		goto done;
	if (!S_ISLNK(st.st_mode)) {
		strlcat(wk->wk_seen, "/", sizeof(wk->wk_seen));
		strlcat(wk->wk_seen, name, sizeof(wk->wk_seen));
		walk_to(wk, fd);
		return 0;
	}
	if ((rv = walk_link(wk, fd)) == -1)
		why_set(why, "%s/%s: %s", wk->wk_seen, name, strerror(errno));
done:
	if (fd != -1)
		close(fd);
	return rv;
}

static int
walk_begin(struct walk *wk, const char *path, struct why *why)
{
	wk->wk_fd = -1;
	wk->wk_linker = NOBODY;
	if (strlcpy(wk->wk_rest, path, sizeof(wk->wk_rest)) >=
	    sizeof(wk->wk_rest))
		return why_set(why, "%s: the name is too long", path);
	if (walk_root(wk) == -1)
		return why_set(why, "/: %s", strerror(errno));
	return 0;
}

/* A directory on a way that only root, and owner, can change. */
static int
walk_way(const char *dir, uid_t owner, struct why *why)
{
	struct walk	 wk = { .wk_owner = owner };
	char		 name[PATH_LEN];

	if (!d.d_privileged) {
		wk.wk_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (wk.wk_fd == -1)
			why_set(why, "%s: %s", dir, strerror(errno));
		return wk.wk_fd;
	}
	if (walk_begin(&wk, dir, why) == -1)
		return -1;
	while (next_name(&wk, name, sizeof(name)))
		if (walk_step(&wk, name, why) == -1) {
			close(wk.wk_fd);
			return -1;
		}
	return wk.wk_fd;
}

/*
 * A directory in which we may write; owner is whom root trusts besides
 * itself, or -1.
 */
int
place_open(const char *dir, uid_t owner, struct why *why)
{
	int	 fd;

	if ((fd = walk_way(dir, owner, why)) == -1)
		return -1;
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0)
		return fd;
	why_set(why, "%s: %s", dir, strerror(errno));
	close(fd);
	return -1;
}

/* The directory of a file, and its name there; NULL: it is too long. */
static const char *
split(const char *path, char *dir, size_t size)
{
	size_t	 len;

	if ((len = strlcpy(dir, path, size)) >= size)
		return NULL;
	while (len > 1 && dir[len - 1] == '/')
		len--;
	while (len > 1 && dir[len - 1] != '/')
		len--;
	dir[len] = '\0';
	return path + len;
}

/* May a file, which need not be there, be made and replaced? */
int
place_check(const char *path, uid_t owner, struct why *why)
{
	struct why	 where;
	char		 dir[PATH_LEN];
	int		 fd;

	if (split(path, dir, sizeof(dir)) == NULL)
		return why_set(why, "%s: the name is too long", path);
	if ((fd = place_open(dir, owner, &where)) != -1) {
		close(fd);
		return 0;
	}
	return why_set(why, "%s: %s%s", path, where.text,
	    !d.d_privileged && path == path_socket ?
	    " (-s names a socket elsewhere)" : "");
}

/* Where others make files too, one that is theirs was put there for us. */
static int
check_file(int dir, int fd, const char *path, struct why *why)
{
	struct stat	 st, above;

	if (fstat(fd, &st) == -1 || fstat(dir, &above) == -1)
		return why_set(why, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return why_set(why, "%s: not a regular file", path);
	if ((above.st_mode & (S_IWGRP | S_IWOTH)) &&
	    (st.st_uid != geteuid() || st.st_nlink > 1))
		return why_set(why, "%s: exists and is not a file of ours",
		    path);
	return 0;
}

/*
 * A regular file to write, which is made if it is not there.  If it is refused
 * for what it is, and not by the system, errno is 0.
 */
int
place_file(const char *path, int flags, mode_t mode, struct why *why)
{
	struct why	 where;
	const char	*name;
	char		 dir[PATH_LEN];
	int		 dirfd, fd, error = 0;

	errno = 0;
	if ((name = split(path, dir, sizeof(dir))) == NULL)
		return why_set(why, "%s: the name is too long", path);
	/* A file that is there may be writable where no other can be made. */
	if ((dirfd = walk_way(dir, NOBODY, &where)) == -1)
		return why_set(why, "%s: %s", path, where.text);
	fd = openat(dirfd, name, flags | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
	    O_CLOEXEC, mode);
	if (fd == -1) {
		error = errno;
		why_set(why, "%s: %s", path, strerror(error));
	} else if (check_file(dirfd, fd, path, why) == -1) {
		close(fd);
		fd = -1;
	}
	close(dirfd);
	errno = error;
	return fd;
}

/* The last name of a way; 0 if it is a link and the way goes on. */
static int
read_last(struct walk *wk, const char *name, const char *path, int *fd,
    struct why *why)
{
	struct stat	 st;

	*fd = openat(wk->wk_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
	    O_CLOEXEC);
	if (*fd == -1)
		return errno == ELOOP ? 0 : why_set(why, "%s: %s", path,
		    strerror(errno));
	if (fstat(*fd, &st) == 0 && (wk->wk_linker == NOBODY ||
	    wk->wk_linker == st.st_uid))
		return 1;
	close(*fd);
	*fd = -1;
	return why_set(why, "%s: a link of uid %u leads there, and the file "
	    "belongs to uid %u", path, wk->wk_linker, st.st_uid);
}

/* A file to read, without waiting for who may be at the other end of it. */
int
place_read(const char *path, struct why *why)
{
	struct walk	 wk = { .wk_reads = true };
	struct why	 where;
	char		 name[PATH_LEN];
	int		 fd = -1;

	if (!d.d_privileged) {
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		return fd != -1 ? fd :
		    why_set(why, "%s: %s", path, strerror(errno));
	}
	if (walk_begin(&wk, path, why) == -1)
		return -1;
	why_set(why, "%s: not a file", path);
	while (next_name(&wk, name, sizeof(name))) {
		if (wk.wk_rest[strspn(wk.wk_rest, "/")] == '\0' &&
		    read_last(&wk, name, path, &fd, why) != 0)
			break;
		if (walk_step(&wk, name, &where) == -1) {
			why_set(why, "%s: %s", path, where.text);
			break;
		}
	}
	close(wk.wk_fd);
	return fd;
}
