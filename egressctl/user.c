/* SPDX-License-Identifier: ISC */

/*
 * egressctl: the caller's home, which a sandbox is to be kept out of, and the
 * caller's configuration.  HOME is the caller's word, and may be unset, "/" or
 * another's; the user database is asked here, because box is linked statically
 * and cannot.
 */

#include <err.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egressctl.h"

#define ENTRY_MAX	(1024 * 1024)

/* Errors of getpwuid_r(3) that mean: this user has no entry. */
static int
is_no_entry(int error)
{
	return error == 0 || error == ENOENT || error == ESRCH ||
	    error == EBADF || error == EPERM;
}

/* The calling user's home in the user database, or NULL if it has none. */
const char *
user_home(void)
{
	struct passwd	 pw, *found = NULL;
	char		*buf = NULL, *home = NULL;
	size_t		 size = 1024;
	int		 error = ERANGE;

	while (error == ERANGE && size <= ENTRY_MAX) {
		free(buf);
		size *= 2;
		if ((buf = malloc(size)) == NULL)
			err(EXIT_NO_RUN, NULL);
		error = getpwuid_r(geteuid(), &pw, buf, size, &found);
	}
	if (found == NULL && !is_no_entry(error))
		errc(EXIT_NO_RUN, error, "user database: uid %u", geteuid());
	if (found != NULL && *pw.pw_dir == '/' &&
	    (home = strdup(pw.pw_dir)) == NULL)
		err(EXIT_NO_RUN, NULL);
	free(buf);
	return home;
}

/* The path of a file in the caller's configuration; -1: there is no home. */
int
conf_of_user(const char *name, char *path, size_t size)
{
	const char	*dir = getenv("XDG_CONFIG_HOME"), *below = "";

	if (dir == NULL || *dir != '/') {
		dir = getenv("HOME");
		below = "/.config";
	}
	/* As for the sandbox's home: the user database, if HOME is useless. */
	if (dir == NULL || *dir != '/' || strcmp(dir, "/") == 0)
		dir = user_home();
	if (dir == NULL || *dir != '/' || (size_t)snprintf(path, size,
	    "%s%s/%s", dir, below, name) >= size)
		return -1;
	return 0;
}

/*
 * The configuration of who names none, valid until called again: the caller's
 * own (`own', NULL if there is no place for it), else the daemon's; or NULL,
 * with errno for the latter.
 */
const char *
conf_choose(const struct invocation *in, const char **own)
{
	static char	 path[PATH_MAX];

	*own = conf_of_user("egressd.conf", path, sizeof(path)) == -1 ? NULL :
	    path;
	if (in->in_conf != path_conf)
		return in->in_conf;
	if (*own != NULL && access(*own, F_OK) == 0)
		return *own;
	return access(path_conf, R_OK) == 0 ? path_conf : NULL;
}
