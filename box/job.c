/* SPDX-License-Identifier: ISC */

/*
 * egressd-box runs this from the command's start to its end: it stands in
 * for the command towards the shell that started it.
 *
 * The command is in the caller's session and process group, so the terminal
 * reaches it as it reaches env(1)'s command: ^C, ^\, ^Z, SIGWINCH and hangup
 * arrive without help.  What somebody sends to box itself is passed on.  The
 * command cannot stop the group that box and its caller are in (confine.c),
 * as editors do on ^Z, so box stops it when the command has stopped.
 */

#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "box.h"

struct job {
	struct box	*jo_box;
	int		 jo_init;	/* to the sandbox's first process */
	pid_t		 jo_pid;	/* of that */
	int		 jo_signals;
	int		 jo_wake;	/* continue the command on SIGCONT */
	uint8_t		 jo_epoch;	/* how often SIGCONT came */
	int		 jo_gate_lost;
	int		 jo_done;
	struct job_message jo_end;
};

static void
job_tell(struct job *jo, enum job_word word, int value)
{
	struct job_message	 jm = { word, value, jo->jo_epoch };

	(void)!send(jo->jo_init, &jm, sizeof(jm), MSG_NOSIGNAL);
}

/*
 * Only a job that has the terminal is stopped as a whole: elsewhere a command
 * that stops itself would stop whoever waits for it.
 */
static void
job_stop(struct job *jo, int flags)
{
	int	 tty = jo->jo_box->bx_terminal;

	if (tty == -1 || (!(flags & JOB_TERMINAL) &&
	    tcgetpgrp(tty) != getpgrp()))
		return;
	if (flags & JOB_TERMINAL)
		(void)tcsetpgrp(tty, getpgrp());
	jo->jo_wake = flags != 0;
	(void)kill(0, SIGTSTP);
}

/*
 * That it has stopped may be old news, of a ^Z that stopped us as well and is
 * over; so it is asked again, and an answer from before we were woken does
 * not count either.
 */
static void
job_hear(struct job *jo)
{
	struct job_message	 jm;

	if (recv(jo->jo_init, &jm, sizeof(jm), 0) != sizeof(jm))
		jo->jo_done = 1;
	else if (jm.jm_word == JOB_STOPPED || (jm.jm_word == JOB_STAYS &&
	    jm.jm_epoch != jo->jo_epoch))
		job_tell(jo, JOB_CHECK, 0);
	else if (jm.jm_word == JOB_STAYS)
		job_stop(jo, jm.jm_value);
	else {
		jo->jo_end = jm;
		jo->jo_done = 1;
	}
}

/*
 * Nobody in the sandbox can refuse: with its first process the kernel ends all
 * others, and whoever has waited for us knows that they are gone.
 */
static void
job_kill(const struct job *jo)
{
	(void)kill(jo->jo_pid, SIGKILL);
}

static void
job_signal(struct job *jo)
{
	struct signalfd_siginfo	 si;

	if (read(jo->jo_signals, &si, sizeof(si)) != sizeof(si))
		err(BOX_FAILED, "signalfd");
	if (si.ssi_signo == SIGCONT) {
		/* A command in a group of its own has not seen it. */
		if (jo->jo_wake)
			job_tell(jo, JOB_CONTINUE, 0);
		jo->jo_wake = 0;
		jo->jo_epoch++;
	} else if (jo->jo_box->bx_hands != -1) {
		job_kill(jo);
	} else if (si.ssi_code <= 0) {
		/* Sent by a process; the terminal's go to all by themselves. */
		job_tell(jo, JOB_SIGNAL, si.ssi_signo);
	}
}

/* The engine has no more to say: anything to read is its end. */
static void
job_gate(struct job *jo)
{
	jo->jo_gate_lost = 1;
	close(jo->jo_box->bx_engine);
	jo->jo_box->bx_engine = -1;
	warnx("the gate is gone: connections are refused from now on");
}

/* Take the terminal back from a group of the sandbox that is gone. */
static void
job_restore_terminal(int tty)
{
	pid_t	 owner;

	if (tty != -1 && (owner = tcgetpgrp(tty)) > 0 &&
	    kill(-owner, 0) == -1 && errno == ESRCH)
		(void)tcsetpgrp(tty, getpgrp());
}

static int
job_end(struct job *jo)
{
	struct sigaction	 sa = { .sa_handler = SIG_DFL };
	sigset_t		 set;
	int			 sig = jo->jo_end.jm_value;

	while (waitpid(jo->jo_pid, NULL, 0) == -1 && errno == EINTR)
		;
	broker_stop(jo->jo_box);
	relay_finish(jo->jo_box, jo->jo_signals);
	job_restore_terminal(jo->jo_box->bx_terminal);
	if (jo->jo_gate_lost) {
		warnx("the gate was lost before the command ended");
		return BOX_FAILED;
	}
	if (jo->jo_end.jm_word == JOB_EXITED)
		return jo->jo_end.jm_value;
	/* Die of the command's signal, as the shell expects. */
	sigaction(sig, &sa, NULL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	return 128 + sig;
}

/*
 * A stop by the terminal may happen while we wait and nowhere else, so that
 * what is read afterwards is known to be of after it.
 */
static void
job_loop(struct job *jo, const sigset_t *waiting)
{
	struct box	*bx = jo->jo_box;
	struct pollfd	 pfd[3 + BOX_STDIO] = {
		{ .fd = jo->jo_signals, .events = POLLIN },
		{ .fd = jo->jo_init, .events = POLLIN },
		{ .fd = bx->bx_engine, .events = POLLIN },
	};
	size_t		 i;

	while (!jo->jo_done) {
		for (i = 0; i < bx->bx_nrelays; i++)
			relay_wants(bx->bx_relays[i], &pfd[3 + i]);
		if (ppoll(pfd, 3 + bx->bx_nrelays, NULL, waiting) == -1) {
			if (errno == EINTR)
				continue;
			err(BOX_FAILED, "poll");
		}
		if (pfd[0].revents != 0)
			job_signal(jo);
		if (pfd[1].revents != 0)
			job_hear(jo);
		if (pfd[2].revents != 0) {
			job_gate(jo);
			pfd[2].fd = -1;
		}
		for (i = 0; i < bx->bx_nrelays; i++)
			if (pfd[3 + i].revents != 0)
				relay_serve(bx->bx_relays[i]);
	}
}

/* The exit code, unless it ends by a signal. */
int
job_run(struct box *bx, int initfd, pid_t init)
{
	static const int	 signals[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM,
		SIGCONT
	};
	struct job		 jo = {
		.jo_box = bx, .jo_init = initfd, .jo_pid = init,
		.jo_end = { JOB_EXITED, BOX_FAILED, 0 }
	};
	sigset_t		 set, busy;
	size_t			 i;

	sigemptyset(&set);
	for (i = 0; i < NITEMS(signals); i++)
		sigaddset(&set, signals[i]);
	busy = set;
	sigaddset(&busy, SIGTSTP);
	sigaddset(&busy, SIGTTIN);
	sigaddset(&busy, SIGTTOU);
	if ((jo.jo_signals = signalfd(-1, &set, SFD_CLOEXEC)) == -1 ||
	    sigprocmask(SIG_SETMASK, &busy, NULL) == -1)
		err(BOX_FAILED, "signals");
	/* A pipe that the command has closed is told to relays by EPIPE. */
	signal(SIGPIPE, SIG_IGN);
	job_loop(&jo, &set);
	return job_end(&jo);
}
