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
 * The parent runs this: the programs and sockets of deciders.  deciderd names
 * the decider and gets the other end of a pair, or of a connection; which
 * program that is, and as whom it runs, is the configuration's word alone.
 *
 * A program sees what strangers wrote.  It runs as a user of its own with an
 * empty environment and nothing open but its three standard descriptors, and
 * it ends, with all that it started in its session, when deciderd is done
 * with it or when we end.
 */

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

#define HELPERS_MAX	2048	/* deciderd asks no more questions at a time */
#define WORDS_MAX	64	/* of a command */
#define FILES_SOFT	1024	/* what programs expect; ours is raised */

struct helper {
	TAILQ_ENTRY(helper)	 he_entry;
	uint32_t		 he_cookie;
	pid_t			 he_pid;
	struct logpipe		*he_log;
	bool			 he_left;	/* somebody of its session */
};
TAILQ_HEAD(helperlist, helper);

static struct helperlist	 helpers = TAILQ_HEAD_INITIALIZER(helpers);
static struct helperlist	 ended = TAILQ_HEAD_INITIALIZER(ended);
static unsigned int		 count;
static struct event		 sweep;

static struct helper *
helper_find(uint32_t cookie)
{
	struct helper	*he;

	TAILQ_FOREACH(he, &helpers, he_entry)
		if (he->he_cookie == cookie)
			return he;
	return NULL;
}

/* ---- in the new process: what returns has worked ---- */

static void __attribute__((noreturn))
helper_fail(const char *what)
{
	dprintf(STDERR_FILENO, "%s: %s\n", what,
	    errno != 0 ? strerror(errno) : "no such user");
	_exit(127);
}

/* Who looks a user up may have to wait for it, so we do it here. */
static void
helper_become(const char *user)
{
	struct passwd	*pw;
	uid_t		 uid;
	gid_t		 gid;

	errno = 0;
	if (user == NULL) {
		if (!d.d_privileged)
			return;
		identity_get(ROLE_DECIDERD, &uid, &gid);
		if (setgroups(1, &gid) == -1)
			helper_fail("groups");
	} else {
		if ((pw = getpwnam(user)) == NULL)
			helper_fail(user);
		uid = pw->pw_uid;
		gid = pw->pw_gid;
		if (!d.d_privileged && uid == geteuid())
			return;
		if (initgroups(user, gid) == -1)
			helper_fail(user);
	}
	errno = EPERM;
	if (uid == 0)
		helper_fail("a decider does not run as root");
	if (setresgid(gid, gid, gid) == -1 || setresuid(uid, uid, uid) == -1)
		helper_fail("user");
}

static void
helper_signals(void)
{
	sigset_t	 none;
	int		 sig;

	for (sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void
helper_limits(void)
{
	struct rlimit	 core = { 0, 0 }, files;

	if (setrlimit(RLIMIT_CORE, &core) == -1 ||
	    getrlimit(RLIMIT_NOFILE, &files) == -1)
		helper_fail("limits");
	if (files.rlim_cur > FILES_SOFT)
		files.rlim_cur = FILES_SOFT;
	if (setrlimit(RLIMIT_NOFILE, &files) == -1)
		helper_fail("limits");
}

static void
helper_descriptors(int channel, int errfd)
{
	/* Out of the way of 0 to 2, whichever of them are open. */
	if ((errfd = fcntl(errfd, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    (channel = fcntl(channel, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    dup2(errfd, STDERR_FILENO) == -1 ||
	    dup2(channel, STDIN_FILENO) == -1 ||
	    dup2(channel, STDOUT_FILENO) == -1)
		_exit(127);
#ifdef __linux__
	if (close_range(STDERR_FILENO + 1, UINT_MAX, 0) == -1)
		helper_fail("close_range");
#else
	closefrom(STDERR_FILENO + 1);
#endif
}

static void __attribute__((noreturn))
helper_exec(const struct conf_decider *dc, int channel, int errfd)
{
	static char		 path[] = "PATH=/usr/bin:/bin";
	char			*argv[WORDS_MAX + 1], *envp[] = { path, NULL };
	const struct conf_word	*wd;
	size_t			 n = 0;

	setsid();
	helper_signals();
	helper_descriptors(channel, errfd);
	TAILQ_FOREACH(wd, &dc->dc_command, wd_entry) {
		errno = E2BIG;
		if (n == WORDS_MAX || (argv[n++] = strdup(wd->wd_text)) == NULL)
			helper_fail("command");
	}
	argv[n] = NULL;
	helper_limits();
	umask(077);
	helper_become(dc->dc_user);
	if (chdir("/") == -1)
		helper_fail("/");
#ifdef __linux__
	/* After the change of user, which clears the first. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		helper_fail("no_new_privs");
#endif
	execve(argv[0], argv, envp);
	helper_fail(argv[0]);
}

/* ---- here ---- */

static struct helper *
helper_new(const struct conf_decider *dc, uint32_t cookie, int *errfd)
{
	struct helper	*he;
	char		 name[NAME_LEN + 16];

	if ((he = calloc(1, sizeof(*he))) == NULL)
		return NULL;
	snprintf(name, sizeof(name), "decider: %s", dc->dc_name);
	if ((he->he_log = logpipe_new(d.d_base, name, errfd)) == NULL) {
		free(he);
		return NULL;
	}
	he->he_cookie = cookie;
	return he;
}

/* And its group; what has left that is for helpers_sweep(). */
static void
helper_kill(const struct helper *he)
{
	kill(-he->he_pid, SIGKILL);
	kill(he->he_pid, SIGKILL);
}

/* The other end for deciderd; -1 and errno if it cannot be started. */
static int
helper_start(const struct conf_decider *dc, uint32_t cookie)
{
	struct helper	*he;
	int		 sv[2], errfd;

	if (count == HELPERS_MAX) {
		errno = EAGAIN;
		return -1;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == -1)
		return -1;
	if ((he = helper_new(dc, cookie, &errfd)) == NULL)
		goto fail;
#ifdef __linux__
	/* What it leaves behind becomes our child. */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
#endif
	if ((he->he_pid = fork()) == 0)
		helper_exec(dc, sv[1], errfd);
	close(errfd);
	if (he->he_pid == -1) {
		logpipe_free(he->he_log);
		free(he);
		goto fail;
	}
	close(sv[1]);
	TAILQ_INSERT_TAIL(&helpers, he, he_entry);
	count++;
	return sv[0];
fail:
	close(sv[0]);
	close(sv[1]);
	return -1;
}

/* A full queue is an error at once: we wait for nobody. */
static int
helper_connect(const struct conf_decider *dc)
{
	struct sockaddr_un	 sun = { .sun_family = AF_UNIX };
	int			 fd, saved;

	if (strlcpy(sun.sun_path, dc->dc_path, sizeof(sun.sun_path)) >=
	    sizeof(sun.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0)) == -1)
		return -1;
	if (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) == 0)
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

int
parent_deciderd_helper_ask(struct ipc *ip, const union msg *m)
{
	const struct msg_helper_ask	*mh = &m->helper_ask;
	const struct conf_decider	*dc = NULL;
	const char			*what;
	char				 why[PATH_LEN];
	int				 fd = -1;

	if (helper_find(mh->cookie) != NULL)
		return ipc_bad(ip, "helper %u is running", mh->cookie);
	if (d.d_conf != NULL)
		dc = conf_decider_find(d.d_conf, mh->decider);
	/* deciderd may still ask of a generation that is no more. */
	if (dc != NULL && !d.d_stopping && dc->dc_kind == DECIDER_EXEC) {
		what = TAILQ_FIRST(&dc->dc_command)->wd_text;
		fd = helper_start(dc, mh->cookie);
	} else if (dc != NULL && dc->dc_kind == DECIDER_SOCKET) {
		what = dc->dc_path;
		fd = helper_connect(dc);
	} else {
		what = mh->decider;
		errno = ENOENT;
	}
	if (fd != -1) {
		ipc_send(ip, fd, HELPER, cookie, mh->cookie);
		return 0;
	}
	snprintf(why, sizeof(why), "%s: %s", what, strerror(errno));
	ipc_send(ip, -1, HELPER_FAILED, helper_failed, .cookie = mh->cookie,
	    .why = why);
	return 0;
}

/* It may have ended by itself, or have been a connection. */
int
parent_deciderd_helper_done(struct ipc *ip, const union msg *m)
{
	struct helper	*he = helper_find(m->cookie.cookie);

	(void)ip;
	if (he != NULL)
		helper_kill(he);
	return 0;
}

static void
helper_tell(const struct helper *he, int status)
{
	struct proc	*deciderd = proc_find(ROLE_DECIDERD);
	char		 why[128] = "";

	if (deciderd == NULL || deciderd->pr_ipc == NULL)
		return;
	if (WIFSIGNALED(status))
		snprintf(why, sizeof(why), "it died of signal %d (%s)",
		    WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) != 0)
		snprintf(why, sizeof(why), "it exited with status %d",
		    WEXITSTATUS(status));
	ipc_send(deciderd->pr_ipc, -1, HELPER_EXITED, helper_failed,
	    .cookie = he->he_cookie, .why = why);
}

/* A child of ours: is it of the session of one that has ended? */
static void
helper_left(pid_t pid)
{
	struct helper	*he;
	pid_t		 session = getsid(pid);

	/* Its leader would be another, with the number of one that was. */
	if (pid == session)
		return;
	TAILQ_FOREACH(he, &ended, he_entry)
		if (he->he_pid == session) {
			kill(pid, SIGKILL);
			he->he_left = true;
			return;
		}
}

/*
 * Whose parent has ended is our child, and as nobody else reaps it, its number
 * is its own.  What it started in turn comes to us when it is gone.
 */
static void
helpers_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct helper	*he, *next;
	FILE		*fp;
	int		 pid;

	(void)fd, (void)what, (void)arg;
	if ((fp = fopen("/proc/thread-self/children", "re")) != NULL) {
		while (fscanf(fp, "%d", &pid) == 1)
			helper_left(pid);
		fclose(fp);
	}
	TAILQ_FOREACH_SAFE(he, &ended, he_entry, next) {
		if (!he->he_left) {
			TAILQ_REMOVE(&ended, he, he_entry);
			free(he);
		} else
			he->he_left = false;
	}
}

/* Once for all that end together. */
static void
helpers_sweep_soon(void)
{
	static const struct timeval	 at_once;

	if (TAILQ_EMPTY(&ended))
		return;
	if (!evtimer_initialized(&sweep))
		evtimer_assign(&sweep, d.d_base, helpers_sweep, NULL);
	if (evtimer_add(&sweep, &at_once) == -1)
		fatalx("%s", __func__);
}

/* One that is none may be what another has left. */
void
helper_reaped(pid_t pid, int status)
{
	struct helper	*he;

	TAILQ_FOREACH(he, &helpers, he_entry)
		if (he->he_pid == pid)
			break;
	if (he != NULL) {
		/* What it left behind would keep its output open. */
		kill(-pid, SIGKILL);
		helper_tell(he, status);
		TAILQ_REMOVE(&helpers, he, he_entry);
		TAILQ_INSERT_TAIL(&ended, he, he_entry);
		count--;
		logpipe_free(he->he_log);
	}
	helpers_sweep_soon();
}

void
helpers_stop(void)
{
	struct helper	*he;

	TAILQ_FOREACH(he, &helpers, he_entry)
		helper_kill(he);
}
