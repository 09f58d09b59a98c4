/* SPDX-License-Identifier: ISC */

/*
 * egressctl: what of the host the sandbox of `run` will see, and what it may
 * change.  box decides and makes it so; here it is foretold, from the same
 * options, for warnings and for who must not be seen.
 */

#include <err.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exposure.h"
#include "run.h"

static struct {
	struct list	 writable;
	struct list	 readable;
	struct list	 inside;	/* names that mounts have in there */
	int		 elsewhere;	/* not in the working directory */
	int		 as_root;
	const char	*home;		/* by the user database, or NULL */
} shown;

void
shown_path(const char *path, int writable)
{
	list_add(writable ? &shown.writable : &shown.readable, path);
}

void
shown_mount(const char *inside)
{
	list_add(&shown.inside, inside);
}

/* The command runs in another directory than the caller's. */
void
shown_elsewhere(void)
{
	shown.elsewhere = 1;
}

void
shown_user(const char *home, int as_root)
{
	shown.home = home;
	shown.as_root = as_root;
}

static void
warn_if_beneath(const char *path, const char *dir)
{
	char	real[PATH_MAX];

	if (realpath(dir, real) == NULL || !exposure_beneath(path, real))
		return;
	fputs("egressctl: warning: ", stderr);
	visible_put(stderr, path, VISIBLE_TEXT);
	if (strcmp(path, real) == 0)
		fputs(": the sandbox may write to it\n", stderr);
	else
		fprintf(stderr, " is in %s, where the sandbox may write\n",
		    real);
}

static int
shows_working_directory(char *dir, size_t size)
{
	return !shown.elsewhere && getcwd(dir, size) != NULL &&
	    exposure_why_not_cwd(dir, shown.home, shown.as_root) == NULL;
}

/*
 * An agent that can write to its own policy obeys another one the next time,
 * and one that can write to the records has made none.
 */
void
shown_warn(const cJSON *file)
{
	char	dir[PATH_MAX], real[PATH_MAX];
	size_t	i;

	if (!cJSON_IsString(file) || realpath(file->valuestring, real) == NULL)
		return;
	for (i = 0; i < shown.writable.li_count; i++)
		warn_if_beneath(real, shown.writable.li_words[i]);
	if (shows_working_directory(dir, sizeof(dir)))
		warn_if_beneath(real, dir);
}

static int
shows(const char *dir, const char *path)
{
	char	real[PATH_MAX];

	return realpath(dir, real) != NULL && exposure_beneath(path, real);
}

/* Whether the sandbox sees a real path; of /etc what all may read. */
int
shown_is(const char *path)
{
	char	dir[PATH_MAX];
	size_t	i;
	int	seen = exposure_shown_in(path) != NULL;

	for (i = 0; i < shown.writable.li_count; i++)
		seen |= shows(shown.writable.li_words[i], path);
	for (i = 0; i < shown.readable.li_count; i++)
		seen |= shows(shown.readable.li_words[i], path);
	if (shows_working_directory(dir, sizeof(dir)))
		seen |= shows(dir, path);
	return seen;
}

/* Whether something of this name is seen in there, perhaps another. */
int
shown_by_name(const char *path)
{
	size_t	i;

	for (i = 0; i < shown.inside.li_count; i++)
		if (exposure_beneath(path, shown.inside.li_words[i]))
			return 1;
	return shown_is(path);
}

/*
 * A socket that can be seen can be connected to.  controld hangs up on whoever
 * lives in a sandbox, but one wall is not two.
 */
int
shown_check_directory(const char *directory)
{
	char	real[PATH_MAX];

	if (directory == NULL)
		return 0;
	if (realpath(directory, real) == NULL) {
		warn("%s", directory);
		return -1;
	}
	if (!shown_is(real) && !shows("/etc", real))
		return 0;
	warnx("-S %s: the sandbox would see the control socket there; name "
	    "another directory", directory);
	return -1;
}
