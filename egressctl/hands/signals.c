/* SPDX-License-Identifier: ISC */

/*
 * egressctl: signals as something that poll(2) sees, for commands that pass
 * them on to a sandbox.  One that comes a second time, before the first has
 * had an effect, acts as it always does: box must not be able to keep us.
 */

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "hands.h"
#include "tty.h"

static int			 ends[2];
static volatile sig_atomic_t	 seen[NSIG];

/* Signals that end a program, if they come again. */
static int
is_fatal(int sig)
{
	return sig == SIGHUP || sig == SIGINT || sig == SIGQUIT ||
	    sig == SIGTERM;
}

static void
on_signal(int sig)
{
	unsigned char	byte = (unsigned char)sig;
	int		saved = errno;
	sigset_t	set;

	if (is_fatal(sig) && seen[sig]++ > 0) {
		tty_restore();
		signal(sig, SIG_DFL);
		sigemptyset(&set);
		sigaddset(&set, sig);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		raise(sig);
	}
	/* Should the pipe be full, there are signals enough in it. */
	(void)!write(ends[1], &byte, 1);
	errno = saved;
}

/* What ends us by our own fault leaves no raw terminal behind either. */
static void
on_crash(int sig)
{
	tty_restore();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* Catches those that are not ignored; the descriptor to poll(2). */
int
signals_catch(const int *signals, size_t n)
{
	static const int	crashes[] = { SIGABRT, SIGPIPE,
#ifndef SANITIZE
	    SIGBUS, SIGFPE, SIGILL, SIGSEGV,
#endif
	};
	struct sigaction	sa = { .sa_flags = SA_RESTART }, old;
	size_t			i;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == -1)
		err(EXIT_NO_RUN, "pipe");
	sigemptyset(&sa.sa_mask);
	sa.sa_handler = on_signal;
	for (i = 0; i < n; i++)
		if (sigaction(signals[i], NULL, &old) == 0 &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &sa, NULL);
	sa.sa_handler = on_crash;
	for (i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		sigaction(crashes[i], &sa, NULL);
	return ends[0];
}

/* The next that has come, or 0. */
int
signals_next(void)
{
	unsigned char	byte;

	return read(ends[0], &byte, 1) == 1 ? byte : 0;
}
