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
 * egressd-box runs this with the caller's rights, before any namespace: which
 * paths of the host the sandbox is to see, by their real names.  A socket of
 * the host can be connected to even on a read-only mount and from another
 * network namespace, so directories that are known for sockets are refused.
 */

#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"

static const struct {
	const char	*path;
	int		 tree;		/* and what is beneath it */
	const char	*why;
} refused[] = {
	{ "/",		0, "it is the whole host" },
	{ "/proc",	1, "it shows the host's processes" },
	{ "/sys",	1, "it steers the host's kernel" },
	{ "/dev",	1, "it holds the host's devices" },
	{ "/run",	1, "it holds the host's sockets" },
	{ "/tmp",	0, "it holds the host's sockets" },
	{ "/var",	0, "it holds the host's sockets" },
	{ "/var/tmp",	0, "it is shared with the host" },
	{ "/etc",	0, "it holds the host's secrets" },
};

/* Visible anyway, and not to be written because a shell stands there. */
static const char *const system_trees[] = {
	"/bin", "/boot", "/etc", "/gnu", "/lib", "/nix", "/sbin", "/usr",
};

int
paths_beneath(const char *path, const char *tree)
{
	size_t	 len = strlen(tree);

	if (strcmp(tree, "/") == 0)
		return 1;
	return strncmp(path, tree, len) == 0 &&
	    (path[len] == '\0' || path[len] == '/');
}

static const char *
paths_why_not(const char *path)
{
	size_t	 i;

	for (i = 0; i < NITEMS(refused); i++)
		if (strcmp(path, refused[i].path) == 0 || (refused[i].tree &&
		    paths_beneath(path, refused[i].path)))
			return refused[i].why;
	return NULL;
}

static void
paths_add(struct box *bx, char *real, int writable)
{
	struct box_path	*bp;

	if ((bp = reallocarray(bx->bx_paths, bx->bx_npaths + 1,
	    sizeof(*bp))) == NULL)
		err(BOX_FAILED, NULL);
	bx->bx_paths = bp;
	bp[bx->bx_npaths].bp_path = real;
	bp[bx->bx_npaths++].bp_write = writable;
}

/* By the caller's word; that it must not be is an error. */
void
paths_expose(struct box *bx, const char *path, int writable)
{
	struct stat	 st;
	const char	*why;
	char		*real;

	if ((real = realpath(path, NULL)) == NULL || stat(real, &st) == -1)
		err(BOX_FAILED, "cannot expose %s", path);
	if ((why = paths_why_not(real)) != NULL)
		errx(BOX_FAILED, "cannot expose %s: %s", real, why);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		errx(BOX_FAILED, "cannot expose %s: neither a file nor a "
		    "directory", real);
	paths_add(bx, real, writable);
}

static const char *
paths_why_not_cwd(const struct box *bx, const char *cwd)
{
	const char	*why;
	size_t		 i;

	if ((why = paths_why_not(cwd)) != NULL)
		return why;
	if (bx->bx_home != NULL && paths_beneath(bx->bx_home, cwd))
		return "it holds all of your home directory";
	for (i = 0; i < NITEMS(system_trees); i++)
		if (paths_beneath(cwd, system_trees[i]))
			return "it belongs to the system";
	return NULL;
}

/*
 * Where the caller happens to stand is exposed too, unless that would give
 * away much more than a project; the command then starts in what the sandbox
 * has of that name.
 */
void
paths_cwd(struct box *bx, const char *named)
{
	const char	*why;

	if (named != NULL) {
		paths_expose(bx, named, 1);
		bx->bx_cwd = bx->bx_paths[bx->bx_npaths - 1].bp_path;
		return;
	}
	if ((bx->bx_cwd = getcwd(NULL, 0)) == NULL)
		err(BOX_FAILED, "working directory");
	if (*bx->bx_cwd != '/')
		errx(BOX_FAILED, "working directory: %s", bx->bx_cwd);
	if ((why = paths_why_not_cwd(bx, bx->bx_cwd)) != NULL)
		box_notice(bx, "%s is not exposed: %s", bx->bx_cwd, why);
	else
		paths_add(bx, bx->bx_cwd, 1);
}

/* A home that is an existing directory of the system gets no private one. */
void
paths_home(struct box *bx)
{
	const char	*home = bx->bx_root ? "/root" : getenv("HOME");
	char		*real;

	if (home == NULL || *home != '/')
		return;
	if ((real = realpath(home, NULL)) != NULL)
		home = real;
	if (strstr(home, "/..") != NULL || strstr(home, "//") != NULL ||
	    paths_why_not(home) != NULL)
		return;
	bx->bx_home = home;
}
