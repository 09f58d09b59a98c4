/* SPDX-License-Identifier: ISC */

/*
 * The command's process runs this before it becomes the command: what one
 * process, or all of the sandbox, may use of the machine.  A sandbox cannot
 * raise a hard limit, whatever it is root of.
 */

#include <sys/resource.h>

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "box.h"

static const struct {
	const char	*name;
	int		 resource;
} limits[BOX_LIMITS] = {
	{ "memory",	RLIMIT_DATA },
	{ "processes",	RLIMIT_NPROC },	/* of the inner namespace, and all */
	{ "file",	RLIMIT_FSIZE },
	{ "cpu",	RLIMIT_CPU },
};

/* Of an option: name=value, in bytes, processes or seconds. */
void
limit_option(struct box *bx, const char *text)
{
	const char	*value = strchr(text, '='), *why;
	size_t		 i;

	for (i = 0; value != NULL && i < BOX_LIMITS; i++) {
		if (strncmp(limits[i].name, text, value - text) != 0 ||
		    limits[i].name[value - text] != '\0')
			continue;
		bx->bx_limits[i] = strtonum(value + 1, 1, INT64_MAX, &why);
		if (why != NULL)
			errx(BOX_FAILED, "limit %s: %s", text, why);
		return;
	}
	errx(BOX_FAILED, "limit %s: must be memory, processes, file or cpu, "
	    "and = with a number", text);
}

void
limit_set(const struct box *bx)
{
	struct rlimit	 rl;
	size_t		 i;

	for (i = 0; i < BOX_LIMITS; i++) {
		if (bx->bx_limits[i] == 0)
			continue;
		if (getrlimit(limits[i].resource, &rl) == -1)
			err(BOX_FAILED, "limit %s", limits[i].name);
		/* The caller's own holds if it is lower. */
		if (rl.rlim_max > bx->bx_limits[i])
			rl.rlim_max = bx->bx_limits[i];
		rl.rlim_cur = rl.rlim_max;
		if (setrlimit(limits[i].resource, &rl) == -1)
			err(BOX_FAILED, "limit %s", limits[i].name);
	}
}
