/* SPDX-License-Identifier: ISC */

/*
 * The sandbox's first process runs this.  It makes the file system while the
 * sandbox is still empty, starts the command, and then is what pid 1 is:
 * parent of the orphans, and the one whose end is everybody's.  It stays in
 * the outer user namespace without any right there; the command sees that it
 * exists and can do nothing to it.
 */

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "box.h"
#include "caps.h"
#include "hands/hands.h"

struct init {
	const struct box *in_box;
	pid_t	 in_command;
	int	 in_stopped;
	pid_t	 in_owner;	/* of the terminal, when it stopped */
	int	 in_terminal;
	int	 in_job;
	uint8_t	 in_epoch;	/* of box's last question */
};

/* The place of the channel: the first one, and nothing behind it. */
#define INIT_HANDS	(STDERR_FILENO + 1)

/*
 * In place of a command: no execve(2) takes away rights and descriptors, so
 * both are given up by hand.
 */
static void __attribute__((__noreturn__))
init_hands(const struct box *bx)
{
	struct hands_options	 ho = {
		.ho_forward = bx->bx_forward, .ho_cwd = bx->bx_cwd
	};
	const char		*what;
	int			 fd, null;

	if (!bx->bx_root && (what = caps_drop()) != NULL)
		err(BOX_FAILED, "dropping %s", what);
	if ((null = open("/dev/null", O_RDWR)) == -1)
		err(BOX_FAILED, "/dev/null");
	for (fd = 0; fd <= STDERR_FILENO; fd++)
		if (dup2(null, fd) == -1)
			err(BOX_FAILED, "/dev/null");
	if ((bx->bx_hands != INIT_HANDS &&
	    dup3(bx->bx_hands, INIT_HANDS, O_CLOEXEC) == -1) ||
	    close_range(INIT_HANDS + 1, UINT_MAX, 0) == -1)
		_exit(BOX_FAILED);
	hands_serve_channel(INIT_HANDS, &ho);
}

/* A caller's directory may not be shown, any other is where work is done. */
static void
init_enter_cwd(const struct box *bx)
{
	if (chdir(bx->bx_cwd) == 0)
		return;
	if (bx->bx_virtual != 0 || bx->bx_hands != -1 || chdir("/") == -1)
		err(BOX_FAILED, "%s", bx->bx_cwd);
}

static void __attribute__((__noreturn__))
init_command(const struct box *bx)
{
	ns_enter_inner(bx);
	init_enter_cwd(bx);
	env_set(bx);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		err(BOX_FAILED, "no_new_privs");
	/* The caller's session and group are shared for a terminal only. */
	if (bx->bx_terminal == -1)
		(void)setsid();
	confine_signals();
	confine_calls();
	if (bx->bx_broker != 0)
		broker_attend(bx, confine_connect());
	sigprocmask(SIG_SETMASK, &bx->bx_mask, NULL);
	limit_set(bx);
	if (bx->bx_hands != -1)
		init_hands(bx);
	/* Descriptors above are closed already; this makes sure of it. */
	(void)close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
	execvp(bx->bx_argv[0], bx->bx_argv);
	warn("%s", bx->bx_argv[0]);
	_exit(errno == ENOENT ? BOX_NOTFOUND : BOX_NOEXEC);
}

static void
init_tell(const struct init *in, enum job_word word, int value)
{
	struct job_message	 jm = { word, value, in->in_epoch };

	(void)!send(in->in_job, &jm, sizeof(jm), MSG_NOSIGNAL);
}

/* Reap.  The command's end is the sandbox's; its stop is box's business. */
static void
init_reap(struct init *in)
{
	pid_t	 pid;
	int	 status;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED |
	    WCONTINUED)) > 0) {
		if (pid != in->in_command)
			continue;
		in->in_stopped = WIFSTOPPED(status);
		if (WIFSIGNALED(status) || WIFEXITED(status))
			home_say_lost(in->in_box);
		if (in->in_stopped)
			init_tell(in, JOB_STOPPED, 0);
		else if (WIFSIGNALED(status))
			init_tell(in, JOB_KILLED, WTERMSIG(status));
		else if (WIFEXITED(status))
			init_tell(in, JOB_EXITED, WEXITSTATUS(status));
		if (WIFSIGNALED(status) || WIFEXITED(status))
			_exit(0);
	}
}

/* A process group outside of this pid namespace has the number 0. */
static void
init_check(struct init *in)
{
	int	 flags = 0;

	init_reap(in);
	if (!in->in_stopped)
		return;
	in->in_owner = in->in_terminal == -1 ? 0 : tcgetpgrp(in->in_terminal);
	if (in->in_owner > 0)
		flags |= JOB_TERMINAL;
	if (getpgid(in->in_command) > 0)
		flags |= JOB_OWN_GROUP;
	init_tell(in, JOB_STAYS, flags);
}

/* After a stop, give the terminal back to the group that had it. */
static void
init_continue(struct init *in)
{
	if (in->in_owner > 0) {
		(void)tcsetpgrp(in->in_terminal, in->in_owner);
		(void)kill(-in->in_owner, SIGCONT);
	}
	in->in_owner = 0;
	(void)kill(in->in_command, SIGCONT);
}

static void
init_hear(struct init *in)
{
	struct job_message	 jm;

	/* Nobody is left to tell: the kernel ends all in here with us. */
	if (recv(in->in_job, &jm, sizeof(jm), 0) != sizeof(jm))
		_exit(BOX_FAILED);
	if (jm.jm_word == JOB_SIGNAL)
		(void)kill(in->in_command, jm.jm_value);
	else if (jm.jm_word == JOB_CHECK) {
		in->in_epoch = jm.jm_epoch;
		init_check(in);
	}
	else if (jm.jm_word == JOB_CONTINUE)
		init_continue(in);
}

static void __attribute__((__noreturn__))
init_serve(struct init *in, int children)
{
	struct signalfd_siginfo	 si;
	struct pollfd		 pfd[] = {
		{ .fd = children, .events = POLLIN },
		{ .fd = in->in_job, .events = POLLIN },
	};

	for (;;) {
		if (poll(pfd, NITEMS(pfd), -1) == -1)
			err(BOX_FAILED, "poll");
		if (pfd[0].revents != 0) {
			(void)!read(children, &si, sizeof(si));
			init_reap(in);
		}
		if (pfd[1].revents != 0)
			init_hear(in);
	}
}

void
init_run(const struct box *bx, int job)
{
	struct init	 in = {
		.in_box = bx, .in_job = job,
		.in_terminal = bx->bx_terminal
	};
	sigset_t	 set;
	int		 children;

	close(bx->bx_engine);
	stdio_enter(bx);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1)
		err(BOX_FAILED, "parent-death signal");
	root_build(bx);
	home_begin(bx);
	if (bx->bx_mounts != -1)
		mounts_offer(bx);

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if ((children = signalfd(-1, &set, SFD_CLOEXEC)) == -1)
		err(BOX_FAILED, "signalfd");
	if ((in.in_command = fork()) == -1)
		err(BOX_FAILED, "fork");
	if (in.in_command == 0)
		init_command(bx);
	if (bx->bx_broker != 0)
		close(bx->bx_brokerfd);
	if (bx->bx_hands != -1)
		close(bx->bx_hands);
	ns_drop();
	init_serve(&in, children);
}
