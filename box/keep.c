/* SPDX-License-Identifier: ISC */

/*
 * The first process of a pod's workspace container runs this.  It holds the
 * container while clients come and go (each has hands of its own, started from
 * outside), and is the parent of what their commands leave behind.  It trusts
 * nobody inside: only a signal from outside ends it.
 */

#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "box.h"

#define KEEP_END_MS	1000	/* for the others, once we are told to end */
#define KEEP_LOOK_MS	10	/* processes of others' tell nobody */

static void
keep_reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

/*
 * A sender that has no number here is in a namespace above: the runtime.  One
 * inside cannot pretend to be that: the kernel fills in who sent a SI_USER.
 */
static int
keep_is_end(const siginfo_t *si)
{
	return si->si_signo == SIGTERM && si->si_code == SI_USER &&
	    si->si_pid == 0;
}

/* Ask all others to end, and give them a moment; the kernel does the rest. */
static void
keep_end(const sigset_t *set)
{
	struct timespec	 look = { 0, KEEP_LOOK_MS * 1000000 };
	int		 i;

	(void)kill(-1, SIGTERM);
	for (i = 0; i < KEEP_END_MS / KEEP_LOOK_MS; i++) {
		keep_reap();
		if (kill(-1, 0) == -1 && errno == ESRCH)
			break;
		(void)sigtimedwait(set, NULL, &look);
	}
}

/*
 * Any other than the first process would signal all of its user's at the end,
 * and be nobody's parent.
 */
int
keep_main(int argc, char **argv)
{
	siginfo_t	 si;
	sigset_t	 set;

	(void)argv;
	if (argc != 1) {
		fprintf(stderr, "usage: egressd-box keep\n");
		return BOX_FAILED;
	}
	if (getpid() != 1)
		errx(BOX_FAILED, "keep: not the first process of a container");
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_SETMASK, &set, NULL) == -1)
		err(BOX_FAILED, "signals");
	for (;;) {
		keep_reap();
		if (sigwaitinfo(&set, &si) == -1)
			continue;
		if (keep_is_end(&si))
			break;
	}
	keep_end(&set);
	return 0;
}
