/* SPDX-License-Identifier: ISC */

/*
 * Programs of a build tree run this: they find each other by where they are
 * themselves, so that a tree that was moved or copied runs its own.  Installed
 * programs have fixed paths, do not look, and do not link this.
 */

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "tree.h"

const char *
tree_path(const char *below, const char *built)
{
	char	 path[PATH_MAX], *p;
	ssize_t	 n;

	if ((n = readlink("/proc/self/exe", path, sizeof(path) - 1)) == -1)
		return built;
	path[n] = '\0';
	if ((p = strrchr(path, '/')) == NULL)
		return built;
	*p = '\0';
	if (asprintf(&p, "%s/%s", path, below) == -1)
		fatalx("%s: no memory", __func__);
	return p;
}
