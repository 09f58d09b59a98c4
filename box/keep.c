/* SPDX-License-Identifier: ISC */

/*
 * The first process of a pod's workspace container runs this.  It holds the
 * container while clients come and go (each has hands of its own, started from
 * outside), and is the parent of what their commands leave behind.  In a pod
 * with a gate it lets programs trust the gate, and is confined as they are.  It
 * trusts nobody inside: only a signal from outside ends it.
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

static void __attribute__((__noreturn__))
usage(void)
{
	fprintf(stderr, "usage: egressd-box keep [-u] [-t directory]\n");
	exit(BOX_FAILED);
}

/* A directory that was named has to be there. */
static const char *
keep_options(int argc, char **argv, int *ungated)
{
	const char	*trust = NULL;
	int		 ch;

	while ((ch = getopt(argc, argv, "+t:u")) != -1) {
		switch (ch) {
		case 't':
			trust = optarg;
			break;
		case 'u':
			*ungated = 1;
			break;
		default:
			usage();
		}
	}
	if (argc != optind || (*ungated && trust != NULL))
		usage();
	if (trust == NULL)
		return access(BOX_POD_TRUST, F_OK) == 0 ? BOX_POD_TRUST : NULL;
	if (access(trust, F_OK) == -1)
		err(BOX_FAILED, "%s", trust);
	return trust;
}

/*
 * Any other than the first process would signal all of its user's at the end,
 * and be nobody's parent.
 */
int
keep_main(int argc, char **argv)
{
	const char	*trust;
	siginfo_t	 si;
	sigset_t	 set;
	int		 ungated = 0;

	trust = keep_options(argc, argv, &ungated);
	if (getpid() != 1)
		errx(BOX_FAILED, "keep: not the first process of a container");
	if (!ungated) {
		pod_check_rights();
		pod_confine();
	}
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_SETMASK, &set, NULL) == -1)
		err(BOX_FAILED, "signals");
	if (!ungated && trust != NULL)
		pod_trust_begin(trust);
	for (;;) {
		keep_reap();
		if (sigwaitinfo(&set, &si) == -1)
			continue;
		if (si.si_signo == SIGIO)
			pod_trust_changed();
		if (keep_is_end(&si))
			break;
	}
	keep_end(&set);
	return 0;
}
