/* SPDX-License-Identifier: ISC */

/*
 * egressd-box runs this: the command's home.  By default that is an empty one,
 * gone at the end; or a directory of the caller's, which is kept.
 */

#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vis.h>

#include "box.h"
#include "exposure.h"

#define LOST_SHOWN	5	/* names, of all that are gone */

/* Make and open a directory, following no link put there meanwhile. */
int
home_enter(int dir, const char *name)
{
	if (mkdirat(dir, name, 0700) == -1 && errno != EEXIST)
		return -1;
	return openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
}

static int
home_touch(int dir, const char *name)
{
	int	 fd;

	if ((fd = openat(dir, name, O_RDONLY | O_CREAT | O_NOFOLLOW |
	    O_NONBLOCK | O_CLOEXEC, 0600)) == -1)
		return -1;
	close(fd);
	return 0;
}

/* Make what this path will be mounted on; -1 with errno. */
static int
home_make(int home, const char *below, int is_dir)
{
	char	*copy, *rest, *part;
	int	 dir, next = -1, rv = 0;

	if ((copy = rest = strdup(below)) == NULL ||
	    (dir = fcntl(home, F_DUPFD_CLOEXEC, 0)) == -1)
		err(BOX_FAILED, NULL);
	while (rv == 0 && (part = strsep(&rest, "/")) != NULL) {
		if (rest == NULL && !is_dir)
			rv = home_touch(dir, part);
		else if ((next = home_enter(dir, part)) == -1)
			rv = -1;
		else {
			close(dir);
			dir = next;
		}
	}
	close(dir);
	free(copy);
	return rv;
}

/*
 * Paths that are shown in a home that is kept need a place there.  Sandboxes
 * of before have written to it, so no link in it is followed.
 */
void
home_prepare(struct box *bx)
{
	const struct box_path	*bp;
	struct stat		 st;
	size_t			 i, len;
	int			 home;

	if (bx->bx_kept_home == NULL)
		return;
	len = strlen(bx->bx_home);
	if ((home = open(bx->bx_kept_home, O_PATH | O_DIRECTORY |
	    O_CLOEXEC)) == -1)
		err(BOX_FAILED, "home %s", bx->bx_kept_home);
	for (i = 0; i < bx->bx_npaths; i++) {
		bp = &bx->bx_paths[i];
		if (!exposure_beneath(bp->bp_on, bx->bx_home) ||
		    bp->bp_on[len] != '/')
			continue;
		if (stat(bp->bp_path, &st) == -1 ||
		    home_make(home, bp->bp_on + len + 1,
		    S_ISDIR(st.st_mode)) == -1)
			err(BOX_FAILED, "home %s: no place for %s",
			    bx->bx_kept_home, bp->bp_on);
	}
	close(home);
}

/* Entries of the home before the command ran, made by box. */
static struct {
	char	**names;
	size_t	  count;
} places;

void
home_begin(const struct box *bx)
{
	struct dirent	**list;
	int		  i, n;

	if (bx->bx_home == NULL || bx->bx_kept_home != NULL ||
	    bx->bx_virtual != 0 ||
	    (n = scandir(bx->bx_home, &list, NULL, alphasort)) == -1)
		return;
	if ((places.names = calloc(n + 1, sizeof(*places.names))) == NULL)
		err(BOX_FAILED, NULL);
	for (i = 0; i < n; i++)
		places.names[places.count++] = list[i]->d_name;
}

static int
home_is_new(const char *name)
{
	size_t	 i;

	for (i = 0; i < places.count; i++)
		if (strcmp(places.names[i], name) == 0)
			return 0;
	return 1;
}

static void
home_put_name(const char *name, int first)
{
	char	 text[4 * NAME_MAX + 1];

	strvisx(text, name, strlen(name), VIS_CSTYLE | VIS_NL | VIS_TAB);
	fprintf(stderr, "%s%s", first ? "" : ", ", text);
}

/*
 * The sandbox's first process runs this at the end: whoever has logged in
 * somewhere, in there, should hear that it was for this time only.
 */
void
home_say_lost(const struct box *bx)
{
	struct dirent	*de;
	size_t		 n = 0;
	DIR		*dir;

	if (bx->bx_quiet || places.count == 0 ||
	    (dir = opendir(bx->bx_home)) == NULL)
		return;
	while ((de = readdir(dir)) != NULL) {
		if (!home_is_new(de->d_name))
			continue;
		if (n == 0)
			fputs("egressd-box: gone with the sandbox's home: ",
			    stderr);
		if (n < LOST_SHOWN)
			home_put_name(de->d_name, n == 0);
		n++;
	}
	if (n > LOST_SHOWN)
		fprintf(stderr, " and %zu more", n - LOST_SHOWN);
	if (n > 0)
		fputs(" (--home keeps one)\n", stderr);
	closedir(dir);
}
