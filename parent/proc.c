/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: it starts the other programs, knows them by pid and
 * channel, and sees them end.  Each is started by its absolute path with an
 * empty environment, a channel at descriptor 3 and nothing else; who it is
 * and what it may do comes in messages.
 */

#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "parent.h"

struct procs	 procs = TAILQ_HEAD_INITIALIZER(procs);

#define RECORDS_SIZE	(256 * 1024)	/* bytes, if the system permits it */

static uint32_t	 last_instance;

struct proc *
proc_find(enum role role)
{
	struct proc	*pr;

	TAILQ_FOREACH(pr, &procs, pr_entry)
		if (pr->pr_role == role)
			return pr;
	return NULL;
}

struct proc *
proc_by_instance(uint32_t instance)
{
	struct proc	*pr;

	TAILQ_FOREACH(pr, &procs, pr_entry)
		if (pr->pr_instance == instance)
			return pr;
	return NULL;
}

bool
proc_owns_uid(uid_t uid)
{
	struct proc	*pr;

	TAILQ_FOREACH(pr, &procs, pr_entry)
		if (uid != 0 && pr->pr_uid == uid)
			return true;
	return false;
}

/* Has every process of these roles taken the generation that it was sent? */
bool
procs_all_run(uint32_t roles)
{
	struct proc	*pr;

	TAILQ_FOREACH(pr, &procs, pr_entry)
		if ((roles & (1U << pr->pr_role)) &&
		    (pr->pr_ipc == NULL || pr->pr_ipc->ip_state != S_RUN))
			return false;
	return true;
}

void
procs_log_level(enum log_level level)
{
	struct proc	*pr;

	log_set_level(level);
	TAILQ_FOREACH(pr, &procs, pr_entry)
		if (pr->pr_ipc != NULL)
			ipc_send(pr->pr_ipc, -1, LOG_LEVEL, log_level,
			    .level = level);
	log_info("log level is %s", log_level_name(level));
}

static void
proc_overdue(evutil_socket_t fd, short what, void *arg)
{
	struct proc	*pr = arg;

	(void)fd, (void)what;
	if (pr->pr_ipc != NULL) {
		proc_kill(pr, pr->pr_ends ? "it does not end" :
		    "it does not start");
		return;
	}
	log_warnx("%s[%d] does not end, killed", pr->pr_name, (int)pr->pr_pid);
	kill(pr->pr_pid, SIGKILL);
}

/* Ask a process to end: it sees its channel closed. */
void
proc_end(struct proc *pr)
{
	struct timeval	 tv = { 0, STOP_TIMEOUT_MS * 1000 };

	if (pr->pr_ipc == NULL)
		return;
	ipc_free(pr->pr_ipc);
	pr->pr_ipc = NULL;
	event_add(&pr->pr_deadline, &tv);
}

/* An engine that has a reason to end by itself, and not for ever. */
void
proc_ends(struct proc *pr)
{
	struct timeval	 tv = { ENGINE_TIMEOUT_MS / 1000, 0 };

	pr->pr_ends = true;
	event_add(&pr->pr_deadline, &tv);
}

/* A process that cannot be trusted any more is not asked. */
void
proc_kill(struct proc *pr, const char *why)
{
	log_warnx("%s[%d] is killed: %s", pr->pr_name, (int)pr->pr_pid, why);
	kill(pr->pr_pid, SIGKILL);
	proc_end(pr);
}

static void
parent_child_gone(struct ipc *ip, const char *why)
{
	struct proc	*pr = ip->ip_arg;

	if (why != NULL)
		proc_kill(pr, why);
	else
		proc_end(pr);
}

/* In the new process.  Nothing here may return. */
static void
proc_exec(enum role role, const char *title, int channel, int errfd)
{
	char	 path[PATH_LEN], arg0[SESSION_LEN + 32];
	char	*argv[] = { arg0, NULL }, *envp[] = { NULL };
	int	 null;

	snprintf(path, sizeof(path), "%s/egressd-%s", path_libexec,
	    role_name(role));
	snprintf(arg0, sizeof(arg0), "egressd-%s", title);
	/* Out of the way of 0 to 3, whichever of them are open. */
	if ((channel = fcntl(channel, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    (errfd = fcntl(errfd, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    (null = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1 ||
	    dup2(null, STDIN_FILENO) == -1 ||
	    dup2(null, STDOUT_FILENO) == -1 ||
	    dup2(errfd, STDERR_FILENO) == -1 ||
	    dup2(channel, CHILD_FD) == -1)
		_exit(127);
	if (null == CHILD_FD)
		_exit(127);
	execve(path, argv, envp);
	dprintf(STDERR_FILENO, "egressd: %s: %s\n", path, strerror(errno));
	_exit(127);
}

static void
proc_boot(struct proc *pr)
{
	uid_t	 uid = 0;
	gid_t	 gid = 0;

	if (d.d_privileged)
		identity_get(pr->pr_role, &uid, &gid);
	pr->pr_uid = uid;
	ipc_send(pr->pr_ipc, -1, BOOT, boot, .version = msg_version,
	    .role = pr->pr_role, .log_level = log_get_level(),
	    .log_marks = d.d_journal || pr->pr_log != NULL,
	    .uid = uid, .gid = gid, .life = d.d_life,
	    .chroot = uid != 0 ? identity_root(pr->pr_role) : "",
	    .session = pr->pr_session != NULL ? pr->pr_session->se_name : "");
	pr->pr_ipc->ip_state = S_SETUP;
}

static struct proc *
proc_new(enum role role, struct session *se)
{
	struct proc	*pr;

	if ((pr = calloc(1, sizeof(*pr))) == NULL)
		return NULL;
	pr->pr_role = role;
	pr->pr_session = se;
	pr->pr_instance = ++last_instance;
	if (se == NULL)
		strlcpy(pr->pr_name, role_name(role), sizeof(pr->pr_name));
	else
		snprintf(pr->pr_name, sizeof(pr->pr_name), "%s: %s",
		    role_name(role), se->se_name);
	event_assign(&pr->pr_deadline, d.d_base, -1, 0, proc_overdue, pr);
	return pr;
}

/* NULL if the system would not have it; nothing is left behind. */
static struct proc *
proc_start(enum role role, struct session *se)
{
	struct proc	*pr;
	int		 sv[2] = { -1, -1 }, errfd = -1;

	if ((pr = proc_new(role, se)) == NULL ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == -1)
		goto fail;
	if (!d.d_debug && (pr->pr_log = logpipe_new(d.d_base, pr->pr_name,
	    &errfd)) == NULL)
		goto fail;
	if ((pr->pr_pid = fork()) == -1)
		goto fail;
	if (pr->pr_pid == 0)
		proc_exec(role, pr->pr_name, sv[1],
		    errfd != -1 ? errfd : STDERR_FILENO);
	close(sv[1]);
	if (errfd != -1)
		close(errfd);
	pr->pr_ipc = ipc_new(d.d_base, sv[0], ROLE_PARENT, role, pr->pr_name,
	    parent_handlers);
	pr->pr_ipc->ip_gone = parent_child_gone;
	pr->pr_ipc->ip_arg = pr;
	TAILQ_INSERT_TAIL(&procs, pr, pr_entry);
	proc_boot(pr);
	return pr;
fail:
	log_warn("%s: cannot start", role_name(role));
	if (sv[0] != -1) {
		close(sv[0]);
		close(sv[1]);
	}
	if (errfd != -1)
		close(errfd);
	if (pr != NULL)
		logpipe_free(pr->pr_log);
	free(pr);
	return NULL;
}

/*
 * What an engine tells the recorder may wait while others run: as long as it
 * does, nothing of that engine's leaves.  So there is room for some.
 */
static void
proc_widen(int fd)
{
	int	 size = RECORDS_SIZE;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == -1)
		log_warn("setsockopt SO_SNDBUF");
}

/* A side channel between two of them; an engine is named by its session. */
static int
proc_wire(struct proc *a, struct proc *b)
{
	const char	*session = "", *policy = "";
	int		 sv[2];

	if (b->pr_session != NULL) {
		session = b->pr_session->se_name;
		policy = b->pr_session->se_policy;
	}
	if (a->pr_ipc == NULL || b->pr_ipc == NULL ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == -1)
		return -1;
	if (a->pr_role == ROLE_RECORDER && b->pr_role == ROLE_ENGINE)
		proc_widen(sv[1]);
	ipc_send(a->pr_ipc, sv[0], CHANNEL, channel, .peer = b->pr_role,
	    .instance = b->pr_instance, .session = session,
	    .policy = policy);
	ipc_send(b->pr_ipc, sv[1], CHANNEL, channel, .peer = a->pr_role,
	    .instance = b->pr_instance, .session = session);
	return 0;
}

/* The side channels, and no others.  -1 if one cannot be made. */
int
procs_start(void)
{
	static const enum role	 pairs[][2] = {
		{ ROLE_CONTROLD, ROLE_POLICYD },
		{ ROLE_CONTROLD, ROLE_RECORDER },
		{ ROLE_CONTROLD, ROLE_K8SD },
		{ ROLE_CONTROLD, ROLE_PODD },
		{ ROLE_POLICYD, ROLE_RECORDER },
		{ ROLE_POLICYD, ROLE_DIALER },
		{ ROLE_POLICYD, ROLE_DECIDERD },
		{ ROLE_PODD, ROLE_POLICYD },
		{ ROLE_PODD, ROLE_RECORDER },
	};
	enum role		 role;
	size_t			 i;

	for (role = ROLE_PARENT + 1; role < ROLE_ENGINE; role++)
		if (proc_start(role, NULL) == NULL)
			return -1;
	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (proc_wire(proc_find(pairs[i][0]),
		    proc_find(pairs[i][1])) == -1) {
			log_warn("%s: cannot connect it to %s",
			    role_name(pairs[i][1]), role_name(pairs[i][0]));
			return -1;
		}
	return 0;
}

void
proc_start_engine(struct session *se)
{
	static const enum role	 engine_peers[] = { ROLE_RECORDER, ROLE_POLICYD,
	    ROLE_DIALER };
	struct timeval		 start = { START_TIMEOUT_MS / 1000, 0 };
	struct proc		*pr;
	size_t			 i;

	if ((pr = proc_start(ROLE_ENGINE, se)) == NULL) {
		session_engine_gone(se);
		return;
	}
	se->se_engine = pr;
	for (i = 0; i < sizeof(engine_peers) / sizeof(engine_peers[0]); i++)
		if (proc_wire(proc_find(engine_peers[i]), pr) == -1) {
			proc_kill(pr, "no descriptors for its channels");
			return;
		}
	if (se->se_box != -1)
		ipc_send(pr->pr_ipc, se->se_box, CHANNEL, channel,
		    .peer = ROLE_BOX, .instance = pr->pr_instance,
		    .session = se->se_name);
	se->se_box = -1;
	event_add(&pr->pr_deadline, &start);
	reload_engine(pr);
}

/*
 * An engine that serves nobody.  It weighs the CAs of a configuration, which
 * we could not: only engines know what a key is.  NULL if it does not start.
 */
struct proc *
proc_start_weigher(void)
{
	struct proc	*pr;

	if ((pr = proc_start(ROLE_ENGINE, NULL)) != NULL)
		pr->pr_weighs = true;
	return pr;
}

/* The process has its slice, and no deadline but a transaction's. */
void
proc_started(struct proc *pr)
{
	event_del(&pr->pr_deadline);
}

static void
proc_free(struct proc *pr)
{
	TAILQ_REMOVE(&procs, pr, pr_entry);
	event_del(&pr->pr_deadline);
	ipc_free(pr->pr_ipc);
	logpipe_free(pr->pr_log);
	free(pr);
}

static void
log_end(const struct proc *pr, int status)
{
	if (WIFSIGNALED(status))
		log_warnx("%s[%d] died of signal %d (%s)%s", pr->pr_name,
		    (int)pr->pr_pid, WTERMSIG(status),
		    strsignal(WTERMSIG(status)),
		    WTERMSIG(status) == SIGSYS ?
		    ": it made a system call that it may not" : "");
	else if (WEXITSTATUS(status) != 0)
		log_warnx("%s[%d] exited with status %d", pr->pr_name,
		    (int)pr->pr_pid, WEXITSTATUS(status));
	else
		log_debug("%s[%d] ended", pr->pr_name, (int)pr->pr_pid);
}

static void
proc_reaped(pid_t pid, int status)
{
	struct session	*se;
	struct proc	*pr;
	enum role	 role;

	TAILQ_FOREACH(pr, &procs, pr_entry)
		if (pr->pr_pid == pid)
			break;
	if (pr == NULL) {
		if (mount_reaped(pid, status))
			return;
		if (!box_reaped(pid, status))
			program_reaped(pid, status);
		else if (d.d_stopping)
			procs_stop();
		return;
	}
	log_end(pr, status);
	role = pr->pr_role;
	se = pr->pr_session;
	if (se != NULL && WIFEXITED(status) &&
	    WEXITSTATUS(status) == CHILD_OTHER_VERSION)
		se->se_why = "the engine is of another version than the "
		    "running egressd: restart the daemon";
	if (pr->pr_weighs)
		reload_weigher_gone(pr->pr_voted);
	proc_free(pr);
	if (d.d_stopping)
		procs_stop();
	else if (role != ROLE_ENGINE) {
		/* Who ends in order has seen another die; we will hear. */
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			log_errorx("%s has lost a peer: all ends",
			    role_name(role));
		else
			log_errorx("%s is gone: all ends", role_name(role));
		parent_stop(1);
	} else if (se != NULL)
		session_engine_gone(se);
}

void
procs_reap(void)
{
	pid_t	 pid;
	int	 status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		proc_reaped(pid, status);
	if (!d.d_stopping)
		reload_weigh();
}

static bool
end_these(uint32_t roles)
{
	struct proc	*pr;
	bool		 any = false;

	TAILQ_FOREACH(pr, &procs, pr_entry)
		if (roles & (1U << pr->pr_role)) {
			proc_end(pr);
			any = true;
		}
	return any;
}

/*
 * First the one that allows, so that nothing is allowed any more, last the one
 * that writes down how it all ended.  Called again whenever one is gone.
 */
void
procs_stop(void)
{
	bool	 boxed;

	programs_stop();
	boxed = boxes_stop();
	if (end_these(R_POLICYD) || end_these(R_CHILDREN & ~R_RECORDER) ||
	    end_these(R_RECORDER) || boxed)
		return;
	event_base_loopexit(d.d_base, NULL);
}
