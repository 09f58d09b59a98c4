/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: mounts that clients ask for, into virtual sandboxes
 * whose block permits them.  Two processes make one, and the parent opens
 * nothing of it:
 *
 *	opener	has the client's rights and no more; opens the source and
 *		clones it (mount_exec.c)
 *	mover	has the rights of the sandbox's user; gets the clone from the
 *		opener, enters the sandbox's mount namespace and puts it on
 *		its target (mount_move.c)
 *
 * Whoever dies on the way leaves nothing: a clone that nobody holds is gone.
 * A source may lie on a file system that a user serves, and that answers
 * nobody: then not even SIGKILL ends its opener.  The client hears in time, and
 * it is the same user who has fewer openers to go on with.
 */

#include <sys/socket.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exposure.h"
#include "parent.h"

#define RUNNING_MAX	8	/* mounts that are being made for one user */
#define TIMEOUT_MS	10000
#define LINES_MAX	20	/* of one mount, in the log */

enum { OPENER, MOVER, WORKERS };

struct mount {
	TAILQ_ENTRY(mount)	 mo_entry;
	struct box		*mo_box;	/* NULL: nobody waits for it */
	uid_t			 mo_uid;	/* the client's */
	uint32_t		 mo_cookie;	/* 0: part of its start */
	pid_t			 mo_pids[WORKERS];	/* 0: none */
	bool			 mo_failed;
	struct logpipe		*mo_log;
	struct event		 mo_overdue;
	char			*mo_what;	/* for the log */
};

static TAILQ_HEAD(, mount)	 mounts = TAILQ_HEAD_INITIALIZER(mounts);

static void
mount_kill(const struct mount *mo)
{
	size_t	 i;

	for (i = 0; i < WORKERS; i++)
		if (mo->mo_pids[i] != 0)
			kill(mo->mo_pids[i], SIGKILL);
}

/* Whoever has asked hears of it. */
static void
mount_answer(struct box *bo, uint32_t cookie, enum mount_result result,
    const char *text)
{
	const struct proc	*controld = proc_find(ROLE_CONTROLD);

	if (cookie == 0)
		box_mounted(bo, result == MOUNT_DONE ? NULL : text);
	else if (controld != NULL && controld->pr_ipc != NULL)
		ipc_send(controld->pr_ipc, -1, SESSION_MOUNTED,
		    session_mounted, .cookie = cookie, .result = result,
		    .text = text);
}

static void
mount_on_overdue(evutil_socket_t fd, short what, void *arg)
{
	struct mount	*mo = arg;
	struct box	*bo = mo->mo_box;

	(void)fd, (void)what;
	log_warnx("%s: not made in time", mo->mo_what);
	mo->mo_failed = true;
	mo->mo_box = NULL;
	mount_kill(mo);
	if (bo != NULL)
		mount_answer(bo, mo->mo_cookie, MOUNT_FAILED,
		    "it could not be made in time");
}

static void
mount_end(struct mount *mo)
{
	char	 why[LOG_LINE_MAX];

	logpipe_finish(mo->mo_log, why, sizeof(why));
	if (!mo->mo_failed)
		log_info("%s", mo->mo_what);
	if (mo->mo_box != NULL)
		mount_answer(mo->mo_box, mo->mo_cookie, mo->mo_failed ?
		    MOUNT_FAILED : MOUNT_DONE, *why != '\0' ? why :
		    "it was interrupted");
	event_del(&mo->mo_overdue);
	TAILQ_REMOVE(&mounts, mo, mo_entry);
	free(mo->mo_what);
	free(mo);
}

/* Whether the process was one of these. */
bool
mount_reaped(pid_t pid, int status)
{
	struct mount	*mo;
	size_t		 i;

	TAILQ_FOREACH(mo, &mounts, mo_entry)
		for (i = 0; i < WORKERS; i++)
			if (mo->mo_pids[i] == pid)
				goto found;
	return false;
found:
	mo->mo_pids[i] = 0;
	mo->mo_failed |= status != 0;
	if (mo->mo_pids[OPENER] == 0 && mo->mo_pids[MOVER] == 0)
		mount_end(mo);
	return true;
}

/* A sandbox ends: nothing more comes into it. */
void
mounts_end(const struct box *bo)
{
	struct mount	*mo;

	TAILQ_FOREACH(mo, &mounts, mo_entry)
		if (mo->mo_box == bo) {
			/* Who waits for it hears that the session is over. */
			if (mo->mo_cookie != 0)
				mount_answer(mo->mo_box, mo->mo_cookie,
				    MOUNT_FAILED, "the sandbox has ended");
			mo->mo_box = NULL;
			mount_kill(mo);
		}
}

/*
 * NULL if the block permits it, by the names alone.  Else *path is the name
 * that is at fault, or stays as it is.
 */
static const char *
mount_fault(const struct conf_sandbox *sb, const struct mount_spec *ms,
    const char **path)
{
	const struct conf_mount	*mn;
	const char		*why;

	if (sb == NULL || TAILQ_EMPTY(&sb->sb_below))
		return "its sandbox block has no \"mount below\"";
	*path = ms->ms_target;
	if (strcmp(ms->ms_target, "/") == 0)
		return "nothing can be mounted on the root itself";
	if (!exposure_is_plain(ms->ms_target))
		return "wanted without . or .. or a slash too many";
	*path = ms->ms_source;
	if ((why = exposure_why_not(ms->ms_source)) != NULL)
		return why;
	if (!exposure_is_plain(ms->ms_source))
		return "wanted without . or .. or a slash too many";
	TAILQ_FOREACH(mn, &sb->sb_below, mn_entry)
		if (exposure_beneath(ms->ms_source, mn->mn_source) &&
		    (mn->mn_write || !ms->ms_write))
			return NULL;
	return ms->ms_write ? "not below a directory that its sandbox block "
	    "permits to mount read-write" : "not below a directory that its "
	    "sandbox block permits to mount";
}

/* The block does not permit it: the client and the log are told. */
static void
mount_deny(const struct mount_spec *ms, const char *path, const char *why)
{
	char	 text[PATH_LEN];

	log_info("session %s: user %u may not mount %s on %s: %s",
	    ms->ms_session, ms->ms_client.pe_uid, ms->ms_source,
	    ms->ms_target, why);
	/* A name that is cut short leaves the reason whole. */
	snprintf(text, sizeof(text), "%.*s%s%s", PATH_LEN / 2,
	    path != NULL ? path : "", path != NULL ? ": " : "", why);
	mount_answer(ms->ms_box, ms->ms_cookie, MOUNT_DENIED, text);
}

/* Until it has handlers of its own, a signal to a child would be told to us. */
static pid_t
mount_fork(void)
{
	sigset_t	 all, mask;
	pid_t		 pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	if ((pid = fork()) != 0)
		sigprocmask(SIG_SETMASK, &mask, NULL);
	return pid;
}

/* -1 and errno; then there is no process, or it is about to end. */
static int
mount_start(struct mount *mo, const struct mount_spec *ms,
    const struct conf_sandbox *sb, int errfd)
{
	int	 sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == -1)
		return -1;
	if ((mo->mo_pids[OPENER] = mount_fork()) == 0)
		mount_exec_opener(ms, sv[0], errfd);
	close(sv[0]);
	if (mo->mo_pids[OPENER] != -1 &&
	    (mo->mo_pids[MOVER] = mount_fork()) == 0)
		mount_exec_mover(ms, sb, sv[1], errfd);
	close(sv[1]);
	if (mo->mo_pids[OPENER] != -1 && mo->mo_pids[MOVER] != -1)
		return 0;
	if (mo->mo_pids[OPENER] == -1)
		mo->mo_pids[OPENER] = 0;
	mo->mo_pids[MOVER] = 0;
	return -1;
}

static struct mount *
mount_new(const struct mount_spec *ms, int *errfd)
{
	struct mount	*mo;

	if ((mo = calloc(1, sizeof(*mo))) == NULL)
		return NULL;
	if (asprintf(&mo->mo_what, "session %s: user %u mounts %s on %s, %s",
	    ms->ms_session, ms->ms_client.pe_uid, ms->ms_source,
	    ms->ms_target, ms->ms_write ? "read-write" : "read-only") == -1) {
		free(mo);
		return NULL;
	}
	mo->mo_log = logpipe_new(d.d_base, ms->ms_session, errfd);
	if (mo->mo_log == NULL) {
		free(mo->mo_what);
		free(mo);
		return NULL;
	}
	logpipe_limit(mo->mo_log, LINES_MAX);
	mo->mo_box = ms->ms_box;
	mo->mo_uid = ms->ms_client.pe_uid;
	mo->mo_cookie = ms->ms_cookie;
	evtimer_assign(&mo->mo_overdue, d.d_base, mount_on_overdue, mo);
	TAILQ_INSERT_TAIL(&mounts, mo, mo_entry);
	return mo;
}

static bool
mount_may_run(uid_t uid)
{
	const struct mount	*mo;
	unsigned int		 n = 0;

	TAILQ_FOREACH(mo, &mounts, mo_entry)
		n += mo->mo_uid == uid;
	return n < RUNNING_MAX;
}

/* Begin; the answer comes in any case, perhaps before this returns. */
void
mount_begin(const struct mount_spec *ms)
{
	struct timeval			 tv = { TIMEOUT_MS / 1000, 0 };
	const struct conf_sandbox	*sb;
	const char			*path = NULL, *why;
	struct mount			*mo = NULL;
	int				 errfd;

	sb = conf_sandbox_find(d.d_conf, ms->ms_sandbox);
	if ((why = mount_fault(sb, ms, &path)) != NULL) {
		mount_deny(ms, path, why);
		return;
	}
	if (!mount_may_run(ms->ms_client.pe_uid) ||
	    (mo = mount_new(ms, &errfd)) == NULL) {
		mount_answer(ms->ms_box, ms->ms_cookie, MOUNT_BUSY,
		    "too many mounts are being made for this user at once");
		return;
	}
	event_add(&mo->mo_overdue, &tv);
	if (mount_start(mo, ms, sb, errfd) == -1) {
		log_warn("%s", mo->mo_what);
		mo->mo_failed = true;
		if (mo->mo_pids[OPENER] == 0)
			mount_end(mo);
	}
	close(errfd);
}

/* ---- lists of them ---- */

/* What a start asks for: r or w, source, NUL, target, NUL; and so on. */
bool
mount_next(const struct msg_bytes *list, size_t *at, struct mount_spec *ms)
{
	const char	*p = (const char *)list->data + *at;
	size_t		 left = list->len - *at, source, target;

	if (left < 4 || (*p != 'r' && *p != 'w') ||
	    (source = strnlen(p + 1, left - 1)) == left - 1)
		return false;
	left -= source + 2;
	if ((target = strnlen(p + source + 2, left)) == left ||
	    source > PATH_LEN || target > PATH_LEN)
		return false;
	ms->ms_write = *p == 'w';
	ms->ms_source = p + 1;
	ms->ms_target = p + source + 2;
	*at += source + target + 3;
	return true;
}

/* How many there are; -1 if they are not sound, or too many. */
int
mount_count(const struct msg_bytes *list)
{
	struct mount_spec	 ms;
	size_t			 at = 0;
	int			 n;

	for (n = 0; at < list->len; n++)
		if (n == MOUNTS_MAX || !mount_next(list, &at, &ms))
			return -1;
	return n;
}
