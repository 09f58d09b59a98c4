/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: programs that the configuration names, from their start
 * to their end.  Which program it is and as whom it runs is the configuration's
 * word alone.  It ends, with all that it started in its session, when whoever
 * asked for it is done with it or when the parent ends; see supervise.c for
 * those of sandboxes.
 */

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

#define PROGRAMS_MAX	2048	/* for one role: deciderd's questions */
#define LINES_MAX	100	/* of a sandbox's program, in the log */

struct program {
	TAILQ_ENTRY(program)	 pg_entry;
	enum role		 pg_role;
	pid_t			 pg_pid;
	struct logpipe		*pg_log;
	void			(*pg_ended)(void *, const char *);
	void			*pg_arg;
	bool			 pg_left;	/* its session is not empty */
};
TAILQ_HEAD(programs, program);

static struct programs	 running = TAILQ_HEAD_INITIALIZER(running);
static struct programs	 ended = TAILQ_HEAD_INITIALIZER(ended);
static unsigned int	 count[ROLE_MAX];
static struct event	 sweep;

static struct program *
program_new(const struct program_spec *ps, int *errfd)
{
	struct program	*pg;

	if ((pg = calloc(1, sizeof(*pg))) == NULL)
		return NULL;
	if ((pg->pg_log = logpipe_new(d.d_base, ps->ps_name, errfd)) == NULL) {
		free(pg);
		return NULL;
	}
	/* A decider's is the operator's own, a sandbox's may be anybody's. */
	if (ps->ps_role == ROLE_BOX)
		logpipe_limit(pg->pg_log, LINES_MAX);
	pg->pg_role = ps->ps_role;
	return pg;
}

/*
 * The descriptor, of which the caller keeps its own, is the program's input and
 * output; on_end is told how it ended, with NULL if well.  NULL and errno if it
 * cannot be started.
 */
struct program *
program_serve(const struct program_spec *ps, int fd,
    void (*on_end)(void *, const char *), void *arg)
{
	struct program	*pg;
	sigset_t	 all, mask;
	int		 errfd;

	if (count[ps->ps_role] == PROGRAMS_MAX) {
		errno = EAGAIN;
		return NULL;
	}
	if ((pg = program_new(ps, &errfd)) == NULL)
		return NULL;
#ifdef __linux__
	/* What a program leaves behind becomes a child of the parent. */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
#endif
	/* A signal to the new process is not to be told to our event loop. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	if ((pg->pg_pid = cgroup_fork(ps->ps_cgroup)) == 0) {
		if (ps->ps_role == ROLE_BOX)
			program_supervise(ps, fd, errfd);
		program_exec(ps, fd, errfd);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	close(errfd);
	if (pg->pg_pid == -1) {
		logpipe_free(pg->pg_log);
		free(pg);
		return NULL;
	}
	pg->pg_ended = on_end;
	pg->pg_arg = arg;
	TAILQ_INSERT_TAIL(&running, pg, pg_entry);
	count[ps->ps_role]++;
	return pg;
}

/* The same; *fd gets the other end of its input and output. */
struct program *
program_start(const struct program_spec *ps, int *fd,
    void (*on_end)(void *, const char *), void *arg)
{
	struct program	*pg;
	int		 sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == -1)
		return NULL;
	pg = program_serve(ps, sv[1], on_end, arg);
	close(sv[1]);
	if (pg == NULL)
		close(sv[0]);
	else
		*fd = sv[0];
	return pg;
}

/*
 * The program and its group; programs_sweep() finds who has left that.  One of
 * a sandbox has a supervisor, who sees to all of it.
 */
void
program_kill(const struct program *pg)
{
	if (pg->pg_role == ROLE_BOX) {
		kill(pg->pg_pid, SIGTERM);
		return;
	}
	kill(-pg->pg_pid, SIGKILL);
	kill(pg->pg_pid, SIGKILL);
}

static void
program_tell(const struct program *pg, int status)
{
	char	 why[128];

	if (WIFSIGNALED(status))
		snprintf(why, sizeof(why), "it died of signal %d (%s)",
		    WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(why, sizeof(why), "it exited with status %d",
		    WEXITSTATUS(status));
	pg->pg_ended(pg->pg_arg, status == 0 ? NULL : why);
}

/* Kill a child that is of the session of a program which has ended. */
static void
sweep_child(pid_t pid)
{
	struct program	*pg;
	pid_t		 session = getsid(pid);

	/* A leader is a new program: the pid was reused. */
	if (pid == session)
		return;
	TAILQ_FOREACH(pg, &ended, pg_entry)
		if (pg->pg_pid == session) {
			kill(pid, SIGKILL);
			pg->pg_left = true;
			return;
		}
}

/*
 * An orphan of a program is the parent's child, and as nobody else reaps it,
 * its pid is its own.  What it started in turn comes here when it is gone.
 */
static void
programs_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct program	*pg, *next;
	FILE		*fp;
	int		 pid;

	(void)fd, (void)what, (void)arg;
	if ((fp = fopen("/proc/thread-self/children", "re")) != NULL) {
		while (fscanf(fp, "%d", &pid) == 1)
			sweep_child(pid);
		fclose(fp);
	}
	TAILQ_FOREACH_SAFE(pg, &ended, pg_entry, next) {
		if (!pg->pg_left) {
			TAILQ_REMOVE(&ended, pg, pg_entry);
			free(pg);
		} else
			pg->pg_left = false;
	}
}

/* One sweep for all that end together. */
static void
programs_sweep_soon(void)
{
	static const struct timeval	 at_once;

	if (TAILQ_EMPTY(&ended))
		return;
	if (!evtimer_initialized(&sweep))
		evtimer_assign(&sweep, d.d_base, programs_sweep, NULL);
	if (evtimer_add(&sweep, &at_once) == -1)
		fatalx("%s", __func__);
}

/* A child that is not one of the daemon's; perhaps an orphan of a program. */
void
program_reaped(pid_t pid, int status)
{
	struct program	*pg;

	TAILQ_FOREACH(pg, &running, pg_entry)
		if (pg->pg_pid == pid)
			break;
	if (pg != NULL) {
		/* Its orphans would keep its output open. */
		kill(-pid, SIGKILL);
		TAILQ_REMOVE(&running, pg, pg_entry);
		TAILQ_INSERT_TAIL(&ended, pg, pg_entry);
		count[pg->pg_role]--;
		program_tell(pg, status);
		logpipe_free(pg->pg_log);
	}
	programs_sweep_soon();
}

void
programs_stop(void)
{
	struct program	*pg;

	TAILQ_FOREACH(pg, &running, pg_entry)
		program_kill(pg);
}
