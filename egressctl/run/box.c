/* SPDX-License-Identifier: ISC */

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

#include "clock.h"
#include "run.h"

/* The daemon ends the session, whose last record says why; then we box. */
#define DAEMON_FIRST_MS	2000

/* Runs in the new process, which must not outlive egressctl. */
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

/* 1 when box has ended. */
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
box_wait(pid_t box, const sigset_t *set, unsigned int deadline,
    struct private *pv, int *status)
{
	struct timespec	wait;
	uint64_t	left, end = clock_ms() + 1000 * (uint64_t)deadline +
			    DAEMON_FIRST_MS;
	siginfo_t	si;
	int		late = 0;

	for (;;) {
		left = end > clock_ms() ? end - clock_ms() : 0;
		wait.tv_sec = left / 1000;
		wait.tv_nsec = left % 1000 * 1000000;
		if (sigtimedwait(set, &si, deadline != 0 && !late ? &wait :
		    NULL) == -1) {
			if (errno == EAGAIN) {
				/* All of the sandbox dies with it. */
				late = 1;
				kill(box, SIGKILL);
			} else if (errno != EINTR)
				err(EXIT_NO_RUN, "sigtimedwait");
			continue;
		}
		if (si.si_signo != SIGCHLD) {
			if (si.si_code <= 0 && si.si_pid != box)
				kill(box, si.si_signo);
			continue;
		}
		private_reap(pv);
		if (box_reap(box, status))
			return late;
	}
}

/*
 * Takes box's end of the pair.  1 if the deadline, in seconds, has passed; the
 * status of box is as wait(2) has it.
 */
int
box_run(char *const argv[], int engine, unsigned int deadline,
    struct private *pv, int *status)
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
	return box_wait(box, &set, deadline, pv, status);
}

/* Ends as box did: with its exit status, or by its signal. */
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
