/* SPDX-License-Identifier: ISC */

/*
 * The parent's new child runs this, on its way to standing in for a sandbox or
 * program that the launcher starts (launch/).  It stays root for the time that
 * it takes to connect, and whatever cannot be done ends it.
 */

#include <sys/prctl.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "parent.h"

#define OPTIONS_MAX	16

static size_t
add_number(char **argv, size_t n, const char *option, uint64_t value)
{
	if (value != 0 && asprintf(&argv[n++], "%s%llu", option,
	    (unsigned long long)value) == -1)
		exec_fail("arguments");
	return n;
}

static size_t
add_text(char **argv, size_t n, const char *option, const char *text)
{
	if (asprintf(&argv[n], "%s%s", option, text) == -1)
		exec_fail("arguments");
	return n + 1;
}

void
launch_exec(const struct launch *la)
{
	char	**argv, path[PATH_LEN];
	size_t	  i, n = 0, words = 0;

	while (la->la_argv[words] != NULL)
		words++;
	if ((argv = calloc(OPTIONS_MAX + words + 1, sizeof(*argv))) == NULL)
		exec_fail("arguments");
	n = add_text(argv, n, "egressd-launch", "");
	n = add_text(argv, n, "-s", d.d_launcher);
	n = add_text(argv, n, "-u", la->la_user);
	n = add_text(argv, n, "-d", la->la_cwd);
	n = add_number(argv, n, "-D", la->la_data);
	n = add_number(argv, n, "-m", la->la_memory);
	n = add_number(argv, n, "-p", la->la_processes);
	n = add_text(argv, n, "--", "");
	n = add_text(argv, n, "", la->la_program);
	for (i = 0; i < words; i++)
		argv[n++] = la->la_argv[i];
#ifdef __linux__
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1)
		exec_fail("parent-death signal");
#endif
	snprintf(path, sizeof(path), "%s/egressd-launch", path_libexec);
	execve(path, argv, la->la_envp);
	exec_fail(path);
}
