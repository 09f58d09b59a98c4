/* SPDX-License-Identifier: ISC */

/*
 * A process between the hands and each command runs this.
 *
 *	hands --- pair --- supervisor --- command --- its children, ...
 *
 * Whatever the command starts, by however many forks and sessions, is left to
 * the supervisor when its parent ends, and to nobody further up: so there is
 * one place from which a whole tree can be found and killed.  That is done when
 * the hands say so, and when they are gone.
 */

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../box.h"
#include "op.h"

#define CHANNEL		STDIN_FILENO	/* of the supervisor */
#define CHILDREN	STDOUT_FILENO
#define DEPTH_MAX	32
#define ROUND_MS	2		/* between two looks */
#define KILL_MS		5000

static void
say(int fd, enum word word, int value)
{
	struct word_message	 wm = { word, value };

	(void)!send(fd, &wm, sizeof(wm), MSG_NOSIGNAL);
}

static void	 tree_process(pid_t, int);

/* Kill what a thread has started, and all below that. */
static void
tree_thread(pid_t pid, const char *tid, int depth)
{
	char	 path[64];
	FILE	*fp;
	int	 child;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/children", pid, tid);
	if ((fp = fopen(path, "re")) == NULL)
		return;
	while (fscanf(fp, "%d", &child) == 1) {
		(void)kill(child, SIGKILL);
		tree_process(child, depth + 1);
	}
	(void)fclose(fp);
}

static void
tree_process(pid_t pid, int depth)
{
	struct dirent	*de;
	char		 path[64];
	DIR		*dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	if (depth > DEPTH_MAX || (dir = opendir(path)) == NULL)
		return;
	while ((de = readdir(dir)) != NULL)
		if (de->d_name[0] != '.')
			tree_thread(pid, de->d_name, depth);
	(void)closedir(dir);
}

/*
 * End all that is below this process.  Who is killed forks no more, and what
 * it had started becomes ours; so each look finds less.
 */
void
tree_kill(int64_t ms)
{
	int64_t	 end = loop_clock() + ms;
	pid_t	 pid;

	for (;;) {
		tree_process(getpid(), 0);
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			continue;
		if ((pid == -1 && errno != EINTR) || loop_clock() >= end)
			return;
		(void)poll(NULL, 0, ROUND_MS);
	}
}

/* As a program expects them: none is ignored or blocked. */
static void
command_signals(void)
{
	struct sigaction	 sa = { .sa_handler = SIG_DFL };
	sigset_t		 none;
	int			 i;

	for (i = 1; i < NSIG; i++)
		(void)sigaction(i, &sa, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void __attribute__((__noreturn__))
command_run(const struct command *co, int channel)
{
	int	 i;

	if (!co->co_tty)
		(void)setsid();
	else
		(void)setpgid(0, 0);
	for (i = 0; i <= STDERR_FILENO; i++)
		if (dup2(co->co_stdio[i], i) == -1)
			goto fail;
	if (co->co_tty)
		(void)tcsetpgrp(STDIN_FILENO, getpid());
	if (co->co_cwd != NULL && chdir(co->co_cwd) == -1) {
		say(channel, WORD_CWD, errno);
		_exit(BOX_NOEXEC);
	}
	(void)close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
	(void)setrlimit(RLIMIT_NOFILE, co->co_files);
	if (limit_command() == -1)
		goto fail;
	command_signals();
	environ = (char **)(uintptr_t)co->co_env;
	execvp(co->co_argv[0], co->co_argv);
 fail:
	say(channel, WORD_FAILED, errno);
	_exit(BOX_NOEXEC);
}

static void
supervisor_reap(pid_t *command)
{
	pid_t	 pid;
	int	 status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != *command)
			continue;
		*command = 0;
		say(CHANNEL, WORD_ENDED, status);
	}
}

/* Whatever else is heard is the end of the hands, or of the request. */
static void
supervisor_hear(pid_t command)
{
	struct word_message	 wm;

	if (recv(CHANNEL, &wm, sizeof(wm), 0) == sizeof(wm)) {
		if (wm.wm_word == WORD_LEAVE)
			_exit(0);
		if (wm.wm_word == WORD_SIGNAL) {
			if (command > 0 && kill(-command, wm.wm_value) == -1)
				(void)kill(command, wm.wm_value);
			return;
		}
	}
	tree_kill(KILL_MS);
	say(CHANNEL, WORD_DONE, 0);
	_exit(0);
}

static void __attribute__((__noreturn__))
supervisor_serve(pid_t command)
{
	struct signalfd_siginfo	 si;
	struct pollfd		 pfd[] = {
		{ .fd = CHANNEL, .events = POLLIN },
		{ .fd = CHILDREN, .events = POLLIN },
	};

	for (;;) {
		if (poll(pfd, NITEMS(pfd), -1) == -1 && errno != EINTR)
			_exit(BOX_FAILED);
		if (pfd[1].revents != 0) {
			(void)!read(CHILDREN, &si, sizeof(si));
			supervisor_reap(&command);
		}
		if (pfd[0].revents != 0)
			supervisor_hear(command);
	}
}

/*
 * A terminal's session is the supervisor's: when the leader of a session ends,
 * the kernel drops what the terminal had still to say.  Without a terminal it
 * has none of its own: each costs a turn of the scheduler.
 */
static void __attribute__((__noreturn__))
supervisor_run(const struct command *co, int channel)
{
	sigset_t	 set;
	pid_t		 command;
	int		 children;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	sigfillset(&set);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (co->co_tty) {
		(void)setsid();
		(void)ioctl(co->co_stdio[0], TIOCSCTTY, 0);
	}
	if ((children = signalfd(-1, &set, SFD_CLOEXEC)) == -1 ||
	    (command = fork()) == -1) {
		say(channel, WORD_FAILED, errno);
		_exit(BOX_FAILED);
	}
	if (command == 0)
		command_run(co, channel);
	if (dup2(channel, CHANNEL) == -1 || dup2(children, CHILDREN) == -1)
		_exit(BOX_FAILED);
	(void)close_range(STDERR_FILENO, UINT_MAX, 0);
	supervisor_serve(command);
}

/* Start a command under a supervisor at the other end of the channel. */
pid_t
supervise(const struct command *co, int channel)
{
	pid_t	 pid;

	if ((pid = fork()) == 0)
		supervisor_run(co, channel);
	return pid;
}
