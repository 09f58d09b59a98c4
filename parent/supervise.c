/* SPDX-License-Identifier: ISC */

/*
 * A child of the parent runs this, above a program of a custom sandbox.
 *
 *	parent --- supervisor --- program --- its children, ...
 *
 * Whatever the program starts, by however many forks and sessions, is left to
 * the supervisor when its own parent ends: so it ends with the program, with
 * its session, or with the daemon.  The supervisor keeps the parent's uid, as
 * the program's would let the program kill it; it opens nothing but /proc, and
 * what is below it cannot talk to it.
 */

#include <sys/prctl.h>
#include <sys/wait.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "clock.h"
#include "parent.h"

#define ROUND_MS	2	/* between two looks */
#define KILL_MS		5000

/*
 * Only children: as nobody else reaps one, its pid is its own.  What it had
 * started becomes ours when it is gone.
 */
static void
kill_children(void)
{
	FILE	*fp;
	int	 pid;

	if ((fp = fopen("/proc/thread-self/children", "re")) == NULL)
		return;
	while (fscanf(fp, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	fclose(fp);
}

/* Reap whoever has ended, the program among them; false if nobody is left. */
static bool
reap(pid_t *program, int *status)
{
	pid_t	 pid;
	int	 how;

	while ((pid = waitpid(-1, &how, WNOHANG)) > 0)
		if (pid == *program) {
			*program = 0;
			*status = how;
		}
	return pid == 0 || errno != ECHILD;
}

/* The parent is told how the program has ended, not how we have. */
static void __attribute__((__noreturn__))
end_like(int status)
{
	if (WIFSIGNALED(status)) {
		exec_signals();
		kill(getpid(), WTERMSIG(status));
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 127);
}

static void __attribute__((__noreturn__))
watch_over(pid_t program, const sigset_t *set)
{
	uint64_t	 end;
	int		 sig, status = SIGKILL;

	/* The connection is the program's; its end is to be seen. */
	close_range(0, UINT_MAX, 0);
	do
		sig = sigwaitinfo(set, NULL);
	while (sig != SIGTERM && reap(&program, &status) && program != 0);
	for (end = clock_ms() + KILL_MS; clock_ms() < end;) {
		kill_children();
		if (!reap(&program, &status))
			break;
		poll(NULL, 0, ROUND_MS);
	}
	end_like(status);
}

/* SIGTERM is the parent's word that it is over, and the word of its end. */
void
program_supervise(const struct program_spec *ps, int channel, int errfd)
{
	sigset_t	 set;
	pid_t		 parent = getppid(), program;

	exec_signals();
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_SETMASK, &set, NULL) == -1 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == -1 ||
	    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) == -1 ||
	    getppid() != parent || (program = fork()) == -1)
		_exit(127);
	if (program == 0)
		program_exec(ps, channel, errfd);
	watch_over(program, &set);
}
