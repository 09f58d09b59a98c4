/* SPDX-License-Identifier: ISC */

/*
 * egressctl: secrets that a configuration names, before a sandbox and a daemon
 * of our own are made.  Both have the caller's rights, so what the sandbox is
 * shown its command can read.
 */

#include <err.h>
#include <limits.h>
#include <stdlib.h>

#include "conf.h"
#include "run.h"

static int
visit(const struct conf_pos *pos, const char *path, void *arg)
{
	int	(**is_seen)(const char *) = arg;
	char	real[PATH_MAX];

	if (path == NULL || realpath(path, real) == NULL || !(*is_seen)(real))
		return 0;
	warnx("%s:%u: %s: the sandbox would see this secret; keep it "
	    "elsewhere", pos->p_file, pos->p_line, path);
	return 1;
}

/* Other errors of the configuration are left to the daemon to tell. */
int
secrets_check(const char *path, int (*is_seen)(const char *))
{
	struct conf_errors	 errors = { .ce_count = 0 };
	struct config		*conf = conf_parse(path, &errors);
	int			 seen;

	conf_errors_free(&errors);
	if (conf == NULL)
		return 0;
	seen = conf_secrets(conf, visit, &is_seen);
	conf_free(conf);
	return seen ? -1 : 0;
}
