/* SPDX-License-Identifier: ISC */

/*
 * What the parent says to egressd-launch: options, then the program and the
 * words that it is called with.  Descriptors from 0 on, the environment and the
 * umask are those that egressd-launch itself has.
 *
 *	egressd-launch -s socket -u user -d directory [-D bytes] [-m bytes]
 *	    [-p number] -- program word ...
 */

#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdint.h>

#define LAUNCH_FDS	5	/* at most; so many are a sandbox's */

/* On a sandbox's standard output, before it is one: what keeps its limits. */
#define LAUNCH_CGROUP	'c'
#define LAUNCH_RLIMIT	'r'

struct launch {
	const char	 *la_user;
	const char	 *la_cwd;
	uint64_t	  la_memory;	/* of a control group, if any */
	uint64_t	  la_data;	/* of each process, else */
	uint64_t	  la_processes;
	const char	 *la_program;
	char		**la_argv;
	char		**la_envp;
};

#endif /* LAUNCH_H */
