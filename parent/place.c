/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * The parent runs this: where it may leave files.  Whoever can change a
 * directory on the way to one can put a link there, and root would write
 * wherever that leads.  So root takes only ways that nobody else can change;
 * a sticky directory will do, as long as what we pass through in it is ours.
 */

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

#define LINKS_MAX	16

struct walk {
	int		 wk_fd;			/* as far as we are */
	uid_t		 wk_owner;		/* trusted besides root */
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

/* What a link says comes before what was left. */
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
	if (weigh(wk, &st, name, why) == -1)
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

/*
 * A directory in which we may write; owner is whom root trusts besides
 * itself, or -1.
 */
int
place_open(const char *dir, uid_t owner, struct why *why)
{
	struct walk	 wk = { .wk_fd = -1, .wk_owner = owner };
	char		 name[PATH_LEN];

	if (!d.d_privileged)
		wk.wk_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	else {
		if (strlcpy(wk.wk_rest, dir, sizeof(wk.wk_rest)) >=
		    sizeof(wk.wk_rest))
			return why_set(why, "%s: the name is too long", dir);
		if (walk_root(&wk) == -1)
			return why_set(why, "/: %s", strerror(errno));
		while (next_name(&wk, name, sizeof(name)))
			if (walk_step(&wk, name, why) == -1) {
				close(wk.wk_fd);
				return -1;
			}
	}
	if (wk.wk_fd != -1 && faccessat(wk.wk_fd, ".", W_OK | X_OK,
	    AT_EACCESS) == 0)
		return wk.wk_fd;
	why_set(why, "%s: %s", dir, strerror(errno));
	if (wk.wk_fd != -1)
		close(wk.wk_fd);
	return -1;
}

/* May a file, which need not be there, be made and replaced? */
int
place_check(const char *path, uid_t owner, struct why *why)
{
	struct why	 where;
	char		 dir[PATH_LEN];
	size_t		 len;
	int		 fd;

	if ((len = strlcpy(dir, path, sizeof(dir))) >= sizeof(dir))
		return why_set(why, "%s: the name is too long", path);
	while (len > 1 && dir[len - 1] == '/')
		len--;
	while (len > 1 && dir[len - 1] != '/')
		len--;
	dir[len] = '\0';
	if ((fd = place_open(dir, owner, &where)) != -1) {
		close(fd);
		return 0;
	}
	return why_set(why, "%s: %s%s", path, where.text,
	    !d.d_privileged && path == path_socket ?
	    " (-s names a socket elsewhere)" : "");
}
