/* SPDX-License-Identifier: ISC */

/*
 * egressctl: the command of `run`, before there is a sandbox.  A program that
 * the caller has and the sandbox does not show would end as "not found", which
 * helps nobody; so it is looked for as execvp(3) will, with the sandbox's eyes
 * and with the caller's.
 */

#include <sys/stat.h>

#include <err.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

/* A program's path, and the path that links lead to. */
struct place {
	char	 pl_name[PATH_MAX];
	char	 pl_real[PATH_MAX];
};

static int
is_program(const char *path)
{
	struct stat	 st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	    access(path, X_OK) == 0;
}

/* Resolves the directory only for pl_name, all links for pl_real. */
static int
place_of(const char *path, struct place *pl)
{
	char		 dir[PATH_MAX], real[PATH_MAX];
	const char	*base = strrchr(path, '/');

	if (base == NULL || realpath(path, pl->pl_real) == NULL)
		return -1;
	snprintf(dir, sizeof(dir), "%.*s", (int)(base - path), path);
	if (realpath(base == path ? "/" : dir, real) == NULL ||
	    (size_t)snprintf(pl->pl_name, sizeof(pl->pl_name), "%s%s", real,
	    base) >= sizeof(pl->pl_name))
		return -1;
	return 0;
}

/* The name if it has a slash, else it in each directory of PATH in turn. */
static int
next_candidate(const char *name, const char **path, char *out, size_t size)
{
	const char	*dir = *path;
	size_t		 len;

	if (dir == NULL)
		return 0;
	if (strchr(name, '/') != NULL) {
		*path = NULL;
		return (size_t)snprintf(out, size, "%s", name) < size;
	}
	len = strcspn(dir, ":");
	*path = dir[len] == ':' ? dir + len + 1 : NULL;
	if ((size_t)snprintf(out, size, "%.*s/%s", len == 0 ? 1 : (int)len,
	    len == 0 ? "." : dir, name) >= size)
		*out = '\0';
	return 1;
}

static void
explain(const char *name, const struct place *pl, int (*shows)(const char *))
{
	const char	*real[] = { pl->pl_name, pl->pl_real };
	char		 dir[PATH_MAX], last[PATH_MAX] = "";
	size_t		 i;

	warnx("%s: it is %s, which the sandbox does not show", name,
	    pl->pl_name);
	fputs("egressctl: this does:", stderr);
	for (i = 0; i < 2; i++) {
		snprintf(dir, sizeof(dir), "%.*s",
		    (int)(strrchr(real[i], '/') - real[i]), real[i]);
		if (!shows(real[i]) && strcmp(dir, last) != 0) {
			fputs(" -x ", stderr);
			visible_put(stderr, dir, VISIBLE_WORD);
		}
		strlcpy(last, dir, sizeof(last));
	}
	fputs(" (or a profile, -P)\n", stderr);
}

/*
 * -1 after saying why a command that the caller has will not be found.  One
 * that nobody has is left to box, which has the last word.
 */
int
seek_command(const char *name, int (*shows)(const char *))
{
	const char	*path = getenv("PATH");
	char		 candidate[PATH_MAX];
	struct place	 pl, hidden;
	int		 found = 0;

	if (path == NULL)
		path = "/bin:/usr/bin";
	while (next_candidate(name, &path, candidate, sizeof(candidate))) {
		if (!is_program(candidate) || place_of(candidate, &pl) == -1)
			continue;
		if (shows(pl.pl_name) && shows(pl.pl_real))
			return 0;
		if (!found)
			hidden = pl;
		found = 1;
	}
	if (!found)
		return 0;
	explain(name, &hidden, shows);
	return -1;
}
