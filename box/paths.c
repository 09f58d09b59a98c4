/* SPDX-License-Identifier: ISC */

/*
 * egressd-box runs this with the caller's rights, before any namespace: which
 * paths of the host the sandbox is to see, by their real names.  That they
 * hold no links is relied upon when they are opened (root.c).
 */

#include <sys/stat.h>

#include <err.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "exposure.h"

#define STEPS_MAX	1024	/* names on the way to a path */

static void
paths_add(struct box *bx, char *real, int writable)
{
	struct box_path	*bp;

	if ((bp = reallocarray(bx->bx_paths, bx->bx_npaths + 1,
	    sizeof(*bp))) == NULL)
		err(BOX_FAILED, NULL);
	bx->bx_paths = bp;
	bp[bx->bx_npaths].bp_path = real;
	bp[bx->bx_npaths].bp_on = real;
	bp[bx->bx_npaths].bp_given = NULL;
	bp[bx->bx_npaths++].bp_write = writable;
}

/*
 * The name of what is, or will be, in the sandbox: absolute, each name after
 * one slash, and none that leads back.
 */
static char *
paths_inside(const char *path)
{
	char		*name, *to;
	const char	*p = path;
	size_t		 len;

	if (*path != '/')
		errx(BOX_FAILED, "%s: not an absolute path", path);
	if (strlen(path) >= PATH_MAX)
		errx(BOX_FAILED, "%s: name too long", path);
	if ((name = to = calloc(1, strlen(path) + 2)) == NULL)
		err(BOX_FAILED, NULL);
	while (*(p += strspn(p, "/")) != '\0') {
		len = strcspn(p, "/");
		if (strncmp(p, "..", len) == 0)
			errx(BOX_FAILED, "%s: must not contain . or ..", path);
		*to++ = '/';
		memcpy(to, p, len);
		to += len;
		p += len;
	}
	if (to == name)
		*to = '/';
	return name;
}

/* A path that the caller names; one that must not be shown is an error. */
void
paths_expose(struct box *bx, const char *path, int writable)
{
	struct stat	 st;
	const char	*why;
	char		*real;

	if ((real = realpath(path, NULL)) == NULL || stat(real, &st) == -1)
		err(BOX_FAILED, "cannot expose %s", path);
	if ((why = exposure_why_not(real)) != NULL)
		errx(BOX_FAILED, "cannot expose %s: %s", real, why);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		errx(BOX_FAILED, "cannot expose %s: neither a file nor a "
		    "directory", real);
	paths_add(bx, real, writable);
	bx->bx_paths[bx->bx_npaths - 1].bp_given = path;
}

/* source:target, the target without a colon: shown by another name. */
void
paths_mount(struct box *bx, const char *text, int writable)
{
	const char	*colon = strrchr(text, ':'), *taken;
	char		*source, *target;

	if (colon == NULL || colon == text)
		errx(BOX_FAILED, "mount %s: must be a path, : and where it is "
		    "in the sandbox", text);
	if ((source = strndup(text, colon - text)) == NULL)
		err(BOX_FAILED, NULL);
	target = paths_inside(colon + 1);
	if (strcmp(target, "/") == 0)
		errx(BOX_FAILED, "mount %s: not on the root", text);
	if ((taken = exposure_taken_by(target)) != NULL)
		errx(BOX_FAILED, "mount %s: not in %s", text, taken);
	paths_expose(bx, source, writable);
	bx->bx_paths[bx->bx_npaths - 1].bp_on = target;
}

/* A directory that the working directory must be, or be beneath. */
void
paths_top(struct box *bx, const char *path)
{
	const char	**tops;

	if ((tops = reallocarray(bx->bx_tops, bx->bx_ntops + 1,
	    sizeof(*tops))) == NULL)
		err(BOX_FAILED, NULL);
	bx->bx_tops = tops;
	tops[bx->bx_ntops++] = path;
}

/*
 * Both are compared by their real names, which hold no links; in a virtual
 * sandbox, where nothing is there yet, by their names.
 */
static void
paths_check_tops(const struct box *bx)
{
	char	*top;
	size_t	 i;

	if (bx->bx_ntops == 0)
		return;
	for (i = 0; i < bx->bx_ntops; i++) {
		top = bx->bx_virtual != 0 ? paths_inside(bx->bx_tops[i]) :
		    realpath(bx->bx_tops[i], NULL);
		if (top != NULL && exposure_beneath(bx->bx_cwd, top))
			return;
		free(top);
	}
	errx(BOX_FAILED, "working directory %s: not beneath %s%s", bx->bx_cwd,
	    bx->bx_tops[0], bx->bx_ntops == 1 ? "" : ", nor another one that "
	    "is permitted");
}

/*
 * Where the caller happens to stand is exposed too, unless that would give
 * away much more than a project; the command then starts in what the sandbox
 * has of that name.  A virtual sandbox has a directory of its own.
 */
void
paths_cwd(struct box *bx, const char *named)
{
	const char	*why;

	if (bx->bx_virtual != 0) {
		bx->bx_cwd = paths_inside(named != NULL ? named : BOX_WORK);
		paths_check_tops(bx);
		return;
	}
	if (named != NULL) {
		paths_expose(bx, named, 1);
		bx->bx_cwd = bx->bx_paths[bx->bx_npaths - 1].bp_path;
		paths_check_tops(bx);
		return;
	}
	if ((bx->bx_cwd = getcwd(NULL, 0)) == NULL)
		err(BOX_FAILED, "working directory");
	if (*bx->bx_cwd != '/')
		errx(BOX_FAILED, "working directory: %s", bx->bx_cwd);
	paths_check_tops(bx);
	if ((why = exposure_why_not_cwd(bx->bx_cwd, bx->bx_user_home,
	    bx->bx_root)) != NULL && bx->bx_hands != -1)
		errx(BOX_FAILED, "working directory %s: %s", bx->bx_cwd, why);
	if (why != NULL)
		box_notice(bx, "%s is not exposed: %s", bx->bx_cwd, why);
	else
		paths_add(bx, bx->bx_cwd, 1);
}

/* Whether a path lies in a tree of the host's, where box makes nothing. */
static int
paths_is_shown(const char *path)
{
	size_t	 i;

	for (i = 0; exposure_shown[i] != NULL; i++)
		if (exposure_beneath(path, exposure_shown[i]))
			return 1;
	return 0;
}

/*
 * A home that is the system's, as /usr/sbin is that of daemons, gets no
 * private one in its place; /usr/home/me is not the system's.
 */
static const char *
paths_private(const char *home)
{
	const char	*in_system;
	char		*real;

	if (home == NULL || *home != '/')
		return NULL;
	if ((real = realpath(home, NULL)) != NULL)
		home = real;
	else if (paths_is_shown(home))
		return NULL;
	if (strstr(home, "/..") != NULL || strstr(home, "//") != NULL ||
	    exposure_why_not(home) != NULL)
		return NULL;
	if ((in_system = exposure_system(home)) != NULL &&
	    (*in_system == '\0' || strchr(in_system + 1, '/') == NULL))
		return NULL;
	return home;
}

/*
 * The command's is where HOME says, or the user database if HOME says nothing
 * of use; the caller's stay covered where the sandbox would see them.
 */
void
paths_home(struct box *bx)
{
	const char	*callers = paths_private(getenv("HOME"));
	const char	*users = paths_private(bx->bx_user_home);

	if (bx->bx_root)
		bx->bx_home = paths_private("/root");
	else
		bx->bx_home = callers != NULL ? callers : users;
	bx->bx_covered[0] = callers;
	bx->bx_covered[1] = users;
}

/* A home that the caller names, which outlives the sandbox. */
void
paths_kept_home(struct box *bx, const char *named)
{
	if (bx->bx_home == NULL)
		errx(BOX_FAILED, "home %s: this user has none to replace",
		    named);
	paths_expose(bx, named, 1);
	bx->bx_kept_home = bx->bx_paths[bx->bx_npaths - 1].bp_path;
	bx->bx_paths[bx->bx_npaths - 1].bp_on = bx->bx_home;
}

static int
paths_is_writable(const struct box *bx, const char *dir)
{
	size_t	 i;

	for (i = 0; i < bx->bx_npaths; i++)
		if (bx->bx_paths[i].bp_write &&
		    exposure_beneath(dir, bx->bx_paths[i].bp_path))
			return 1;
	return 0;
}

/* One name further; the target of a link is put before the rest. */
static void
paths_step(const struct box *bx, const char *given, const char *name,
    char *at, char *rest)
{
	char	 next[PATH_MAX], link[PATH_MAX], more[PATH_MAX];
	ssize_t	 n;

	if (strcmp(name, "..") == 0) {
		*strrchr(at, '/') = '\0';
		return;
	}
	if ((size_t)snprintf(next, sizeof(next), "%s/%s", at, name) >=
	    sizeof(next))
		errx(BOX_FAILED, "cannot expose %s: name too long", given);
	if ((n = readlink(next, link, sizeof(link) - 1)) == -1) {
		strlcpy(at, next, PATH_MAX);
		return;
	}
	link[n] = '\0';
	if (paths_is_writable(bx, *at == '\0' ? "/" : at))
		errx(BOX_FAILED, "cannot expose %s: %s is a link, and the "
		    "sandbox may write where it is", given, next);
	if ((size_t)snprintf(more, sizeof(more), "%s/%s", link, rest) >=
	    sizeof(more))
		errx(BOX_FAILED, "cannot expose %s: name too long", given);
	strlcpy(rest, more, PATH_MAX);
	if (*link == '/')
		*at = '\0';
}

/*
 * A sandbox that was here before may have put a link where this one is to be
 * shown something by name: to a home, for instance.
 */
static void
paths_check_link(const struct box *bx, const char *given)
{
	char	 at[PATH_MAX] = "", rest[PATH_MAX], *p, name[PATH_MAX];
	size_t	 len;
	int	 i;

	if (*given != '/' && getcwd(at, sizeof(at)) == NULL)
		err(BOX_FAILED, "working directory");
	if (strcmp(at, "/") == 0)
		*at = '\0';
	if (strlcpy(rest, given, sizeof(rest)) >= sizeof(rest))
		errx(BOX_FAILED, "cannot expose %s: name too long", given);
	for (i = 0; i < STEPS_MAX; i++) {
		p = rest + strspn(rest, "/");
		if ((len = strcspn(p, "/")) == 0)
			return;
		memcpy(name, p, len);
		name[len] = '\0';
		memmove(rest, p + len, strlen(p + len) + 1);
		if (strcmp(name, ".") != 0 &&
		    (strcmp(name, "..") != 0 || *at != '\0'))
			paths_step(bx, given, name, at, rest);
	}
	errx(BOX_FAILED, "cannot expose %s: too many links", given);
}

/* Called last, when all that the sandbox may write to is known. */
void
paths_check_links(const struct box *bx)
{
	size_t	 i;

	for (i = 0; i < bx->bx_npaths; i++)
		if (bx->bx_paths[i].bp_given != NULL)
			paths_check_link(bx, bx->bx_paths[i].bp_given);
}
