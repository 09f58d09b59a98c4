/* SPDX-License-Identifier: ISC */

/*
 * box and egressctl run this with the caller's rights and environment, and
 * believe both.  A socket of the host can be connected to even on a read-only
 * mount and from another network namespace, if the caller says so (-U), so
 * directories that are known for sockets are refused.
 */

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "exposure.h"

#define NITEMS(a)	(sizeof(a) / sizeof((a)[0]))

const char *const exposure_shown[] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt",
	"/nix/store", "/gnu/store", NULL
};

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

/* Shown anyway, and not writable only because a shell stands there. */
static const char *const system_trees[] = {
	"/bin", "/boot", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/libx32",
	"/nix", "/sbin", "/usr",
};

int
exposure_beneath(const char *path, const char *tree)
{
	size_t	 len = strlen(tree);

	if (strcmp(tree, "/") == 0)
		return 1;
	return strncmp(path, tree, len) == 0 &&
	    (path[len] == '\0' || path[len] == '/');
}

/* Each name after one slash, and none that leads back. */
int
exposure_is_plain(const char *path)
{
	size_t	 len;

	do {
		if (*path++ != '/')
			return 0;
		len = strcspn(path, "/");
		if (len == 0 || (len <= 2 && strncmp(path, "..", len) == 0))
			return 0;
		path += len;
	} while (*path != '\0');
	return 1;
}

const char *
exposure_shown_in(const char *path)
{
	char	 real[PATH_MAX];
	size_t	 i;

	for (i = 0; exposure_shown[i] != NULL; i++)
		if (realpath(exposure_shown[i], real) != NULL &&
		    exposure_beneath(path, real))
			return exposure_shown[i];
	return NULL;
}

const char *
exposure_system(const char *path)
{
	size_t	 i;

	for (i = 0; i < NITEMS(system_trees); i++)
		if (exposure_beneath(path, system_trees[i]))
			return path + strlen(system_trees[i]);
	return NULL;
}

const char *
exposure_why_not(const char *path)
{
	size_t	 i;

	for (i = 0; i < NITEMS(refused); i++)
		if (strcmp(path, refused[i].path) == 0 || (refused[i].tree &&
		    exposure_beneath(path, refused[i].path)))
			return refused[i].why;
	return NULL;
}

/* Places in a home that may hold keys, where no project is. */
static const struct {
	const char	*path;
	int		 tree;
} private_places[] = {
	{ "/.aws",			1 },
	{ "/.azure",			1 },
	{ "/.cache",			0 },
	{ "/.config",			0 },
	{ "/.config/egressd",		1 },
	{ "/.config/gcloud",		1 },
	{ "/.config/gh",		1 },
	{ "/.docker",			1 },
	{ "/.gnupg",			1 },
	{ "/.kube",			1 },
	{ "/.local",			0 },
	{ "/.local/share",		0 },
	{ "/.local/share/keyrings",	1 },
	{ "/.mozilla",			1 },
	{ "/.password-store",		1 },
	{ "/.ssh",			1 },
};

static int
exposure_is_private(const char *in_home)
{
	size_t	 i;

	for (i = 0; i < NITEMS(private_places); i++)
		if (strcmp(in_home, private_places[i].path) == 0 ||
		    (private_places[i].tree &&
		    exposure_beneath(in_home, private_places[i].path)))
			return 1;
	return 0;
}

static const char *
exposure_why_not_near(const char *cwd, const char *home)
{
	char	 real[PATH_MAX];

	if (home == NULL || *home != '/')
		return NULL;
	if (realpath(home, real) != NULL)
		home = real;
	if (exposure_beneath(home, cwd))
		return "it holds all of your home directory";
	if (strcmp(home, "/") != 0 && exposure_beneath(cwd, home) &&
	    exposure_is_private(cwd + strlen(home)))
		return "it holds settings or keys of yours";
	return NULL;
}

/* Homes are the caller's here, not the one that the command gets. */
const char *
exposure_why_not_cwd(const char *cwd, const char *user_home, int as_root)
{
	const char	*homes[] = {
		getenv("HOME"), user_home, as_root ? "/root" : NULL
	};
	const char	*why;
	size_t		 i;

	if ((why = exposure_why_not(cwd)) != NULL)
		return why;
	for (i = 0; i < NITEMS(homes); i++)
		if ((why = exposure_why_not_near(cwd, homes[i])) != NULL)
			return why;
	if (exposure_system(cwd) != NULL)
		return "it belongs to the system";
	return NULL;
}

/* Paths that box itself makes, or that the gate's answers lie in. */
static const char *const taken[] = {
	"/dev", "/proc", "/sys", BOX_TRUST_DIR
};

const char *
exposure_taken_by(const char *target)
{
	size_t	 i;

	for (i = 0; i < NITEMS(taken); i++)
		if (exposure_beneath(target, taken[i]))
			return taken[i];
	return NULL;
}
