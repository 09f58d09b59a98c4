/* SPDX-License-Identifier: ISC */

/*
 * The command's process runs this before it becomes the command: what one
 * process, or all of the sandbox, may use of the machine.  A sandbox cannot
 * raise a hard limit, whatever it is root of.
 *
 * Hands serve for as long as the session lives, and for many.  Memory and time
 * are limited in each command that they start, and not in themselves.
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
	int		 later;		/* not of hands */
} limits[BOX_LIMITS] = {
	{ "memory",	RLIMIT_DATA,	1 },
	{ "processes",	RLIMIT_NPROC,	0 },	/* of the inner namespace */
	{ "file",	RLIMIT_FSIZE,	0 },
	{ "cpu",	RLIMIT_CPU,	1 },
};

static const struct box	*later;		/* if hands are limited: whose */

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

/* The caller's own holds if it is lower. */
static int
limit_one(int resource, rlim_t value)
{
	struct rlimit	 rl;

	if (getrlimit(resource, &rl) == -1)
		return -1;
	if (rl.rlim_max > value)
		rl.rlim_max = value;
	rl.rlim_cur = rl.rlim_max;
	return setrlimit(resource, &rl);
}

void
limit_set(const struct box *bx)
{
	size_t	 i;

	if (bx->bx_hands != -1)
		later = bx;
	for (i = 0; i < BOX_LIMITS; i++)
		if (bx->bx_limits[i] != 0 && !(later && limits[i].later) &&
		    limit_one(limits[i].resource, bx->bx_limits[i]) == -1)
			err(BOX_FAILED, "limit %s", limits[i].name);
}

/* In a process that hands have forked for a command; -1 with errno. */
int
limit_command(void)
{
	size_t	 i;

	for (i = 0; later != NULL && i < BOX_LIMITS; i++)
		if (later->bx_limits[i] != 0 && limits[i].later &&
		    limit_one(limits[i].resource, later->bx_limits[i]) == -1)
			return -1;
	return 0;
}
