/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * egressctl: egressd-box as a child of ours, from its start to its end.  The
 * terminal, its signals and the working directory are box's as if we were not
 * there.
 */

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "egressctl.h"

/* In the new process: nothing of a run is to outlive us. */
static void __attribute__((__noreturn__))
box_exec(char *const argv[], int engine, const sigset_t *mask, pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
	    fcntl(engine, F_SETFD, 0) == -1 ||
	    sigprocmask(SIG_SETMASK, mask, NULL) == -1)
		err(EXIT_NO_RUN, "%s", path_box);
	if (getppid() != parent)
		_exit(EXIT_NO_RUN);
	execve(path_box, argv, environment_kept());
	err(EXIT_NO_RUN, "%s", path_box);
}

/*
 * Whoever waits for us is to see that box has stopped.  The signal is blocked
 * elsewhere: when the terminal has sent it to us as well, the two are one, and
 * we stop once.
 */
static void
stop_as(int sig)
{
	sigset_t	set, old;

	sigemptyset(&set);
	sigaddset(&set, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &set, &old);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

/* 1 when it has ended. */
static int
box_reap(pid_t box, int *status)
{
	int	continued;

	while (waitpid(box, status, WNOHANG | WUNTRACED) > 0) {
		if (!WIFSTOPPED(*status))
			return 1;
		stop_as(WSTOPSIG(*status));
		if (waitpid(box, &continued, WNOHANG | WCONTINUED) == 0)
			kill(box, SIGCONT);
		else if (!WIFCONTINUED(continued)) {
			*status = continued;
			return 1;
		}
	}
	return 0;
}

/*
 * What the terminal sends, it sends to box and to the command as well, and so
 * does box.  What another process has sent to us is meant for the command.
 */
static int
box_wait(pid_t box, const sigset_t *set, struct private *pv)
{
	siginfo_t	si;
	int		status;

	for (;;) {
		if (sigwaitinfo(set, &si) == -1) {
			if (errno == EINTR)
				continue;
			err(EXIT_NO_RUN, "sigwaitinfo");
		}
		if (si.si_signo != SIGCHLD) {
			if (si.si_code <= 0 && si.si_pid != box)
				kill(box, si.si_signo);
			continue;
		}
		private_reap(pv);
		if (box_reap(box, &status))
			return status;
	}
}

/* The status of box, as wait(2) has it; takes box's end of the pair. */
int
box_run(char *const argv[], int engine, struct private *pv)
{
	static const int	signals[] = { SIGCHLD, SIGHUP, SIGINT, SIGQUIT,
	    SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP };
	sigset_t		set, mask;
	pid_t			box, self = getpid();
	size_t			i;

	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, &mask);
	if ((box = fork()) == -1)
		err(EXIT_NO_RUN, "fork");
	if (box == 0)
		box_exec(argv, engine, &mask, self);
	close(engine);
	return box_wait(box, &set, pv);
}

/* Exit as it exited, die of what it died of. */
int
box_end_as(int status)
{
	struct rlimit	none = { 0, 0 };
	sigset_t	set;
	int		sig;

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	sig = WTERMSIG(status);
	setrlimit(RLIMIT_CORE, &none);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	return 128 + sig;
}
