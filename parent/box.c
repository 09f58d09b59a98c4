/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: sandboxes that the daemon makes, from the first process
 * of each to its end.
 *
 *	local, virtual	egressd-box as the sandbox's user, which makes the
 *			sandbox; the process in there that serves clients is at
 *			the other end of a channel, and gets each client's
 *			connection through it
 *	custom		a program of the configuration for each connection; a
 *			first process looks whether the client may have it
 *	kubernetes	that first process and no more: the rest is k8sd's
 *
 * Whoever is in the sandbox may have taken over that process: of the channel
 * nothing is read but one byte, which says that it serves.  Descriptors that it
 * sends are lost in the kernel, as nobody asks for them.
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

#include "box.h"
#include "fdpass.h"

#define WORD_SERVES	'R'	/* from the sandbox */
#define WORD_ATTACH	'A'	/* to the sandbox, with a descriptor */
#define LINES_MAX	100	/* of one sandbox, in the log */
#define SERVED_MAX	32	/* programs of one custom sandbox */

/* A program that serves one connection of a custom sandbox. */
struct served {
	TAILQ_ENTRY(served)	 sv_entry;
	struct box		*sv_box;	/* NULL: the session is over */
	struct program		*sv_program;
	uint32_t		 sv_attached;
};

static TAILQ_HEAD(, box)	 boxes = TAILQ_HEAD_INITIALIZER(boxes);

static void
box_shut(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

/* There is no process any more, and nothing is to be sent to its pid. */
static void
box_forget(struct box *bo)
{
	bo->bo_pid = 0;
	event_del(&bo->bo_overdue);
	mounts_end(bo);
	box_shut(&bo->bo_namespace);
	if (bo->bo_channel == -1)
		return;
	event_del(&bo->bo_ev);
	close(bo->bo_channel);
	bo->bo_channel = -1;
}

static void
box_free(struct box *bo)
{
	TAILQ_REMOVE(&boxes, bo, bo_entry);
	box_forget(bo);
	if (bo->bo_engine != -1)
		close(bo->bo_engine);
	box_shut(&bo->bo_said);
	box_shut(&bo->bo_spec.bs_said);
	box_shut(&bo->bo_spec.bs_namespace);
	logpipe_free(bo->bo_log);
	box_group_drop(bo->bo_cgroup);
	free(bo->bo_spec.bs_variables);
	free(bo->bo_spec.bs_mounts);
	free(bo);
}

/* It has not begun to serve in time, or has not ended. */
static void
box_on_overdue(evutil_socket_t fd, short what, void *arg)
{
	struct box	*bo = arg;

	(void)fd, (void)what;
	log_warnx("sandbox[%d] does not %s, killed", (int)bo->bo_pid,
	    bo->bo_within_ms != 0 ? "end" : "begin to serve");
	kill(bo->bo_pid, SIGKILL);
}

/*
 * A sandbox that was asked for, and is yet to be started.  The engine's end of
 * a new pair is in *engine; NULL and errno if there is none.
 */
struct box *
box_new(const struct msg_sandbox_ask *ma, const struct peer *pe, int *engine)
{
	struct box	*bo;
	int		 sv[2];

	if ((bo = calloc(1, sizeof(*bo))) == NULL ||
	    (bo->bo_spec.bs_variables = malloc(ma->variables.len + 1)) ==
	    NULL ||
	    (bo->bo_spec.bs_mounts = malloc(ma->mounts.len + 1)) == NULL)
		fatal("%s", __func__);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == -1) {
		free(bo->bo_spec.bs_variables);
		free(bo->bo_spec.bs_mounts);
		free(bo);
		return NULL;
	}
	*engine = sv[0];
	bo->bo_engine = sv[1];
	bo->bo_channel = -1;
	bo->bo_said = bo->bo_spec.bs_said = bo->bo_spec.bs_namespace = -1;
	bo->bo_namespace = -1;
	memcpy(bo->bo_spec.bs_mounts, ma->mounts.data, ma->mounts.len);
	bo->bo_spec.bs_mountslen = ma->mounts.len;
	memcpy(bo->bo_spec.bs_variables, ma->variables.data,
	    ma->variables.len);
	bo->bo_spec.bs_variableslen = ma->variables.len;
	strlcpy(bo->bo_spec.bs_sandbox, ma->sandbox,
	    sizeof(bo->bo_spec.bs_sandbox));
	strlcpy(bo->bo_spec.bs_cwd, ma->cwd, sizeof(bo->bo_spec.bs_cwd));
	bo->bo_spec.bs_uid = pe->pe_uid;
	bo->bo_spec.bs_gid = pe->pe_gid;
	bo->bo_spec.bs_client = *pe;
	evtimer_assign(&bo->bo_overdue, d.d_base, box_on_overdue, bo);
	TAILQ_INIT(&bo->bo_served);
	TAILQ_INIT(&bo->bo_attached.al_head);
	TAILQ_INSERT_TAIL(&boxes, bo, bo_entry);
	return bo;
}

/* Whether it has an engine here, or ever will; after box_start(). */
bool
box_is_gated(const struct box *bo)
{
	return !bo->bo_custom && !bo->bo_pod;
}

bool
box_is_pod(const struct box *bo)
{
	return bo->bo_pod;
}

/* The block of a pod whose gate is its own, or NULL. */
const struct conf_sandbox *
box_gated_pod(const struct box *bo)
{
	const struct conf_sandbox	*sb;

	if (bo == NULL || !bo->bo_pod)
		return NULL;
	sb = conf_sandbox_find(d.d_conf, bo->bo_spec.bs_sandbox);
	return sb != NULL && !sb->sb_ungated ? sb : NULL;
}

bool
box_serves(const struct box *bo)
{
	return bo->bo_serves;
}

/* Whether a control group keeps its limits; asked when it serves. */
bool
box_in_cgroup(const struct box *bo)
{
	char	 word;

	if (bo->bo_said != -1)
		return read(bo->bo_said, &word, 1) == 1 &&
		    word == LAUNCH_CGROUP;
	return bo->bo_cgroup != NULL && d.d_cgroup == CGROUP_LIMIT;
}

/* ---- the sandbox's own process ---- */

/* True if there is a process, which is reaped before long. */
static bool
box_stop_within(struct box *bo, unsigned int ms)
{
	struct timeval	 tv = { ms / 1000, ms % 1000 * 1000 };

	if (bo->bo_pid == 0)
		return false;
	if (bo->bo_within_ms != 0 && bo->bo_within_ms <= ms)
		return true;
	bo->bo_within_ms = ms;
	kill(bo->bo_pid, SIGTERM);
	event_add(&bo->bo_overdue, &tv);
	return true;
}

static void
box_on_word(evutil_socket_t fd, short what, void *arg)
{
	struct box	*bo = arg;
	char		 word[2];
	ssize_t		 n;

	(void)what;
	n = recv(fd, word, sizeof(word), MSG_DONTWAIT);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == 1 && word[0] == WORD_SERVES && !bo->bo_spoke &&
	    bo->bo_session != NULL) {
		bo->bo_spoke = true;
		box_begins(bo);
		return;
	}
	event_del(&bo->bo_ev);
	if (n <= 0) {
		/* Its end; with it the sandbox ends, or is ended. */
		box_stop_within(bo, BOX_TIMEOUT_MS);
		return;
	}
	log_warnx("sandbox[%d] is killed: it speaks out of turn",
	    (int)bo->bo_pid);
	kill(bo->bo_pid, SIGKILL);
}

static const char *
box_log_name(const struct box *bo)
{
	static char	 name[SESSION_LEN + 16];

	snprintf(name, sizeof(name), "sandbox: %s", bo->bo_session->se_name);
	return name;
}

/*
 * What holds its processes together: a control group of ours, or one that the
 * launcher will say something about.
 */
static int
box_prepare(struct box *bo, const struct conf_sandbox *sb)
{
	int	 fds[2];

	if (bo->bo_pod)
		return 0;
	if (d.d_launcher == NULL)
		return box_group_new(sb, &bo->bo_cgroup);
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) == -1)
		return -1;
	bo->bo_said = fds[0];
	bo->bo_spec.bs_said = fds[1];
	return 0;
}

/* -1 and errno if the system does not have what it takes. */
static int
box_fork(struct box *bo, const struct conf_sandbox *sb)
{
	struct timeval	 start = { START_TIMEOUT_MS / 1000, 0 };
	sigset_t	 all, mask;
	int		 sv[2], errfd;

	if (box_prepare(bo, sb) == -1 || box_offer(bo, sb) == -1 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1)
		return -1;
	bo->bo_log = logpipe_new(d.d_base, box_log_name(bo), &errfd);
	if (bo->bo_log == NULL) {
		close(sv[0]);
		close(sv[1]);
		return -1;
	}
	logpipe_limit(bo->bo_log, LINES_MAX);
	/*
	 * Until it has handlers of its own, a signal to the new process would
	 * be told to us, by what it has inherited of our event loop.
	 */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	if ((bo->bo_pid = cgroup_fork(bo->bo_cgroup)) == 0)
		box_exec(&bo->bo_spec, sb, bo->bo_engine, sv[1], errfd);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	close(errfd);
	close(sv[1]);
	box_shut(&bo->bo_spec.bs_said);
	box_shut(&bo->bo_spec.bs_namespace);
	if (bo->bo_pid == -1) {
		bo->bo_pid = 0;
		close(sv[0]);
		return -1;
	}
	/* The engine's other end stays, so that it sees box's end from us. */
	bo->bo_channel = sv[0];
	event_assign(&bo->bo_ev, d.d_base, sv[0], EV_READ | EV_PERSIST,
	    box_on_word, bo);
	event_priority_set(&bo->bo_ev, 1);
	event_add(&bo->bo_ev, NULL);
	event_add(&bo->bo_overdue, &start);
	return 0;
}

/* What only a block of the configuration can say; NULL is the built-in one. */
static int
box_check(const struct box *bo, const struct conf_sandbox *sb, struct why *why)
{
	bool	 caller = sb != NULL && sb->sb_user_caller;

	if (sb == NULL && d.d_privileged)
		return why_set(why, "no sandbox is named, and none is the "
		    "default of the configuration; without one the daemon "
		    "would have to choose a user");
	if (bo->bo_spec.bs_mountslen > 0 && !box_is_mountable(sb))
		return why_set(why, "the sandbox takes no mounts");
	if (sb != NULL && sb->sb_kind == SANDBOX_KUBERNETES)
		return 0;
	if (caller && (bo->bo_spec.bs_uid == 0 ||
	    identity_owns(bo->bo_spec.bs_uid))) {
		bo->bo_session->se_refused = true;
		return why_set(why, "%s: it runs as its caller, who must not "
		    "be root or one of the daemon's own users", sb->sb_name);
	}
	if (!d.d_privileged && bo->bo_spec.bs_uid != geteuid() &&
	    (sb == NULL || sb->sb_user == NULL))
		return why_set(why, "the daemon is not root, and cannot make "
		    "a sandbox for another user than its own");
	return 0;
}

/*
 * Start it, for a session that has just been made.  -1 and why if it cannot be
 * started; the rest is heard of when it is reaped.
 */
int
box_start(struct box *bo, struct session *se, struct why *why)
{
	const struct conf_sandbox	*sb = NULL;

	bo->bo_session = se;
	if (bo->bo_spec.bs_sandbox[0] != '\0' &&
	    (sb = conf_sandbox_find(d.d_conf, bo->bo_spec.bs_sandbox)) == NULL)
		return why_set(why, "there is no sandbox %s",
		    bo->bo_spec.bs_sandbox);
	if (box_check(bo, sb, why) == -1)
		return -1;
	bo->bo_custom = sb != NULL && sb->sb_kind == SANDBOX_CUSTOM;
	bo->bo_pod = sb != NULL && sb->sb_kind == SANDBOX_KUBERNETES;
	if (box_fork(bo, sb) == -1)
		return why_set(why, "cannot start it: %s", strerror(errno));
	return 0;
}

/* ---- connections ---- */

static void
served_ended(void *arg, const char *why)
{
	struct served	*sv = arg;

	if (why != NULL)
		log_info("session %s: its program: %s", sv->sv_box != NULL &&
		    sv->sv_box->bo_session != NULL ?
		    sv->sv_box->bo_session->se_name : "-", why);
	if (sv->sv_box != NULL) {
		TAILQ_REMOVE(&sv->sv_box->bo_served, sv, sv_entry);
		sv->sv_box->bo_nserved--;
		attached_end(&sv->sv_box->bo_attached, sv->sv_attached);
	}
	free(sv);
}

/* A program is written for input that blocks. */
static bool
box_serve_custom(struct box *bo, const struct conf_sandbox *sb, int fd,
    uint32_t number)
{
	struct conf_word	 word = { .wd_text = sb->sb_program };
	struct conf_words	 command = TAILQ_HEAD_INITIALIZER(command);
	struct program_spec	 ps = {
		.ps_command = &command, .ps_user = sb->sb_user,
		.ps_role = ROLE_BOX, .ps_name = box_log_name(bo),
		.ps_uid = sb->sb_user_caller ? bo->bo_spec.bs_uid : 0,
		.ps_cgroup = bo->bo_cgroup, .ps_launcher = d.d_launcher,
		.ps_session = bo->bo_session->se_name,
		.ps_variables = &sb->sb_environment,
	};
	struct served		*sv;
	int			 flags;

	/* One user's connections are not to take the programs of others. */
	if (bo->bo_nserved == SERVED_MAX) {
		log_info("session %s: more than %d connections at once",
		    bo->bo_session->se_name, SERVED_MAX);
		return false;
	}
	TAILQ_INSERT_TAIL(&command, &word, wd_entry);
	if ((flags = fcntl(fd, F_GETFL)) == -1 ||
	    fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == -1 ||
	    (sv = calloc(1, sizeof(*sv))) == NULL) {
		log_warn("session %s", bo->bo_session->se_name);
		return false;
	}
	if ((sv->sv_program = program_serve(&ps, fd, served_ended,
	    sv)) == NULL) {
		log_warn("session %s: %s", bo->bo_session->se_name,
		    sb->sb_program);
		free(sv);
		return false;
	}
	sv->sv_attached = number;
	sv->sv_box = bo;
	TAILQ_INSERT_TAIL(&bo->bo_served, sv, sv_entry);
	bo->bo_nserved++;
	return true;
}

static bool
box_pass(const struct box *bo, int fd)
{
	if (fdpass_send(bo->bo_channel, WORD_ATTACH, fd, MSG_DONTWAIT) != -1)
		return true;
	log_warn("session %s: a client cannot be attached",
	    bo->bo_session->se_name);
	return false;
}

/* The client's connection is the sandbox's; see attached.c for our copy. */
void
box_attach(struct box *bo, int fd)
{
	const struct conf_sandbox	*sb;
	uint32_t			 number;
	bool				 passed = false;

	sb = conf_sandbox_find(d.d_conf, bo->bo_spec.bs_sandbox);
	if ((number = attached_add(&bo->bo_attached, bo->bo_session, fd)) == 0)
		return;
	if (!bo->bo_serves)
		log_warnx("session %s: a client comes too early",
		    bo->bo_session->se_name);
	else if (bo->bo_pod)
		passed = true;		/* by k8sd, who has it */
	else if (bo->bo_channel != -1)
		passed = box_pass(bo, fd);
	else if (bo->bo_custom && sb != NULL &&
	    sb->sb_kind == SANDBOX_CUSTOM)
		passed = box_serve_custom(bo, sb, fd, number);
	if (!passed)
		attached_end(&bo->bo_attached, number);
}

/* ---- the end ---- */

/*
 * Have box end the sandbox; it ends itself when all in there are gone.  False
 * if there is no such process, else it will be reaped.
 */
bool
box_stop(struct box *bo)
{
	return box_stop_within(bo, BOX_TIMEOUT_MS);
}

/* The engine is to see that its sandbox has ended. */
void
box_let_go(struct box *bo)
{
	close(bo->bo_engine);
	bo->bo_engine = -1;
}

/* Whether there is a process, which will be reaped. */
bool
box_kill(const struct box *bo)
{
	return bo->bo_pid != 0 && kill(bo->bo_pid, SIGKILL) == 0;
}

/* The session is over, and so is all that it has made. */
void
box_end(struct box *bo)
{
	struct served	*sv;

	attached_end_all(&bo->bo_attached);
	bo->bo_session = NULL;
	event_del(&bo->bo_overdue);
	while ((sv = TAILQ_FIRST(&bo->bo_served)) != NULL) {
		TAILQ_REMOVE(&bo->bo_served, sv, sv_entry);
		sv->sv_box = NULL;
		program_kill(sv->sv_program);
	}
	/* With box its first process dies, and with that all in there. */
	if (bo->bo_pid != 0)
		kill(bo->bo_pid, SIGKILL);
	else
		box_free(bo);
}

/* Whether the process was a box. */
bool
box_reaped(pid_t pid, int status)
{
	struct session	*se;
	struct box	*bo;
	char		 why[LOG_LINE_MAX];

	TAILQ_FOREACH(bo, &boxes, bo_entry)
		if (bo->bo_pid == pid)
			break;
	if (bo == NULL)
		return false;
	log_debug("sandbox[%d] ended, status %d", (int)pid, status);
	box_forget(bo);
	/*
	 * Nobody who has slipped through stays.  A group that was killed once
	 * is of no use any more: the kernel may kill whoever comes there.
	 */
	if (bo->bo_cgroup != NULL && !bo->bo_custom)
		cgroup_kill(bo->bo_cgroup);
	logpipe_finish(bo->bo_log, why, sizeof(why));
	bo->bo_log = NULL;
	if ((se = bo->bo_session) == NULL)
		box_free(bo);
	else if (!box_is_gated(bo) && status == 0 &&
	    se->se_cause == CAUSE_NONE)
		box_begins(bo);
	else {
		attached_end_all(&bo->bo_attached);
		se->se_refused = WIFEXITED(status) &&
		    WEXITSTATUS(status) == EXEC_REFUSED;
		session_box_gone(se, *why != '\0' ? why :
		    "its sandbox ended at once");
	}
	return true;
}

/* Whether there are still some; called again when one is reaped. */
bool
boxes_stop(void)
{
	struct box	*bo;
	bool		 any = false;

	TAILQ_FOREACH(bo, &boxes, bo_entry)
		any |= box_stop_within(bo, STOP_TIMEOUT_MS);
	return any;
}
