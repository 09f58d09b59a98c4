/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: the files and sockets that a configuration names.
 * They are opened before any process hears of the configuration, so that a
 * missing file is a refused configuration and never a half-changed daemon.
 * What the next process gets is taken from here, once.
 */

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kube.h"
#include "parent.h"

#define CONTROL_BACKLOG	128

struct control {
	char	 co_path[PATH_LEN];	/* "": there is none */
	int	 co_fd;			/* ours, for the next generation */
	int	 co_pass;		/* controld's */
	bool	 co_bound;		/* by this generation */
	uid_t	 co_uid;
	gid_t	 co_gid;
	mode_t	 co_mode;
};

/* A path of the configuration, by identity: each place has its own. */
struct opened {
	TAILQ_ENTRY(opened)	 op_entry;
	const char		*op_path;
	int			 op_fd;
};
TAILQ_HEAD(openeds, opened);

enum { CONTROL_FULL, CONTROL_READ_ONLY, NCONTROLS };

struct runtime {
	struct control		 rt_control[NCONTROLS];
	struct auditfile	 rt_audit;
	struct openeds		 rt_files;
	struct bounds		 rt_bounds;
	struct kubes		 rt_kubes;
};

static void
close_fd(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

/* A socket in the way that nobody serves is what a crash left behind. */
static int
clear_stale(const char *path, const struct sockaddr_un *sun, struct why *why)
{
	struct stat	 st;
	int		 fd, busy;

	if (lstat(path, &st) == -1)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return why_set(why, "%s: exists and is not a socket", path);
	/* A queue that is full is somebody's, and not worth waiting for. */
	if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0)) == -1)
		return why_set(why, "socket: %s", strerror(errno));
	busy = connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) == 0 ||
	    errno == EAGAIN || errno == EACCES;
	close(fd);
	if (busy)
		return why_set(why, "%s: another egressd serves it", path);
	if (unlink(path) == -1)
		return why_set(why, "%s: %s", path, strerror(errno));
	return 0;
}

/*
 * The socket has its mode from its first moment, and is listened on only when
 * it has its owner: who waits for it is refused until it is served, and never
 * told that it may not.
 */
static int
control_bind(struct control *co, struct why *why)
{
	struct sockaddr_un	 sun = { .sun_family = AF_UNIX };
	mode_t			 old;
	int			 rv;

	if (strlcpy(sun.sun_path, co->co_path, sizeof(sun.sun_path)) >=
	    sizeof(sun.sun_path))
		return why_set(why, "%s: a socket's name has at most %zu bytes",
		    co->co_path, sizeof(sun.sun_path) - 1);
	if (clear_stale(co->co_path, &sun, why) == -1)
		return -1;
	co->co_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);
	if (co->co_fd == -1)
		return why_set(why, "socket: %s", strerror(errno));
	old = umask(~co->co_mode & 0777);
	rv = bind(co->co_fd, (struct sockaddr *)&sun, sizeof(sun));
	umask(old);
	if (rv == -1)
		return why_set(why, "%s: %s", co->co_path, strerror(errno));
	co->co_bound = true;
	if (lchown(co->co_path, co->co_uid, co->co_gid) == -1 ||
	    listen(co->co_fd, CONTROL_BACKLOG) == -1)
		return why_set(why, "%s: %s", co->co_path, strerror(errno));
	return 0;
}

/* Names or numbers; without either the socket is ours. */
static int
control_owner(struct control *co, const struct conf_control *ct,
    struct why *why)
{
	struct passwd	*pw;
	struct group	*gr;
	const char	*err;

	co->co_uid = -1;
	co->co_gid = -1;
	co->co_mode = ct != NULL ? ct->ct_mode : 0660;
	if (ct != NULL && ct->ct_owner != NULL) {
		co->co_uid = strtonum(ct->ct_owner, 0, UINT32_MAX - 1, &err);
		if (err != NULL && (pw = getpwnam(ct->ct_owner)) == NULL)
			return why_set(why, "%s:%u: owner \"%s\" does not "
			    "exist", ct->ct_pos.p_file, ct->ct_pos.p_line,
			    ct->ct_owner);
		if (err != NULL)
			co->co_uid = pw->pw_uid;
	}
	if (ct != NULL && ct->ct_group != NULL) {
		co->co_gid = strtonum(ct->ct_group, 0, UINT32_MAX - 1, &err);
		if (err != NULL && (gr = getgrnam(ct->ct_group)) == NULL)
			return why_set(why, "%s:%u: group \"%s\" does not "
			    "exist", ct->ct_pos.p_file, ct->ct_pos.p_line,
			    ct->ct_group);
		if (err != NULL)
			co->co_gid = gr->gr_gid;
	}
	return 0;
}

static int
control_apply(const struct control *co)
{
	if (lchown(co->co_path, co->co_uid, co->co_gid) == -1)
		return -1;
	return fchmodat(AT_FDCWD, co->co_path, co->co_mode,
	    AT_SYMLINK_NOFOLLOW);
}

static int
control_open(struct control *co, const char *path,
    const struct conf_control *ct, const struct control *old,
    struct why *why)
{
	if (path == NULL)
		return 0;
	if (strlcpy(co->co_path, path, sizeof(co->co_path)) >=
	    sizeof(co->co_path))
		return why_set(why, "%s: the name is too long", path);
	if (control_owner(co, ct, why) == -1)
		return -1;
	if (old != NULL && strcmp(old->co_path, path) == 0) {
		if ((co->co_fd = fcntl(old->co_fd, F_DUPFD_CLOEXEC, 0)) == -1)
			return why_set(why, "%s: %s", path, strerror(errno));
	} else if (place_check(path, co->co_uid, why) == -1 ||
	    pid_lock(path, why) == -1 || control_bind(co, why) == -1)
		return -1;
	if ((co->co_pass = fcntl(co->co_fd, F_DUPFD_CLOEXEC, 0)) == -1)
		return why_set(why, "%s: %s", path, strerror(errno));
	return 0;
}

static int
file_read(const struct conf_pos *pos, const char *path, struct why *why)
{
	struct why	 where;
	int		 fd;

	if ((fd = place_read(path, &where)) == -1)
		why_set(why, "%s:%u: %s", pos->p_file, pos->p_line, where.text);
	return fd;
}

/* The descriptor is kept for the next process. */
static int
file_keep(struct runtime *rt, const char *path, int fd, struct why *why)
{
	struct opened	*op;

	if (fd == -1)
		return -1;
	if ((op = calloc(1, sizeof(*op))) == NULL) {
		close(fd);
		return why_set(why, "%s: %s", path, strerror(errno));
	}
	op->op_path = path;
	op->op_fd = fd;
	TAILQ_INSERT_TAIL(&rt->rt_files, op, op_entry);
	return 0;
}

static int
file_open(struct runtime *rt, const struct conf_pos *pos, const char *path,
    struct why *why)
{
	return path == NULL ? 0 :
	    file_keep(rt, path, file_read(pos, path, why), why);
}

static int
secret_open(struct runtime *rt, const struct conf_pos *pos, const char *path,
    struct why *why)
{
	return path == NULL ? 0 :
	    file_keep(rt, path, key_open(pos, path, why), why);
}

/* Opened again for each engine: a session outlives many. */
static int
file_check(const struct conf_pos *pos, const char *path, struct why *why)
{
	int	 fd;

	if (path == NULL)
		return 0;
	if ((fd = file_read(pos, path, why)) == -1)
		return -1;
	close(fd);
	return 0;
}

static int
secret_check(const struct conf_pos *pos, const char *path, struct why *why)
{
	int	 fd;

	if (path == NULL)
		return 0;
	if ((fd = key_open(pos, path, why)) == -1)
		return -1;
	close(fd);
	return 0;
}

static int
directory_check(const struct conf_pos *pos, const char *path, struct why *why)
{
	struct why	 where;
	int		 fd;

	if (path == NULL)
		return 0;
	if ((fd = trust_directory(path, &where)) == -1)
		return why_set(why, "%s:%u: trust directory %s", pos->p_file,
		    pos->p_line, where.text);
	close(fd);
	return 0;
}

static int
sessions_check(const struct config *conf, struct why *why)
{
	const struct conf_session	*ss;
	const struct conf_pos		*pos;

	if (file_check(&conf->cf_upstream_trust_pos, conf->cf_upstream_trust,
	    why) == -1)
		return -1;
	TAILQ_FOREACH(ss, &conf->cf_sessions, ss_entry) {
		pos = &ss->ss_pos;
		if (file_check(pos, trust_bundle(conf, ss), why) == -1 ||
		    file_check(pos, ss->ss_ca_cert, why) == -1 ||
		    secret_check(pos, ss->ss_ca_key, why) == -1 ||
		    directory_check(pos, ss->ss_trust_directory, why) == -1)
			return -1;
	}
	return 0;
}

static int
files_open(struct runtime *rt, const struct config *conf, struct why *why)
{
	const struct decider_options	*op;
	const struct conf_decider	*dc;
	const struct conf_sandbox	*sb;

	TAILQ_FOREACH(dc, &conf->cf_deciders, dc_entry) {
		op = &dc->dc_options;
		if (secret_open(rt, &dc->dc_pos, op->do_key_file, why) == -1 ||
		    file_open(rt, &dc->dc_pos, op->do_prompt_file,
		    why) == -1 ||
		    file_open(rt, &dc->dc_pos, op->do_trust_file, why) == -1)
			return -1;
	}
	TAILQ_FOREACH(sb, &conf->cf_sandboxes, sb_entry)
		if (file_open(rt, &sb->sb_pos, sb->sb_pod.pd_merge_file,
		    why) == -1)
			return -1;
	return 0;
}

static struct runtime *
runtime_new(void)
{
	struct runtime	*rt;
	int		 i;

	if ((rt = calloc(1, sizeof(*rt))) == NULL)
		return NULL;
	for (i = 0; i < NCONTROLS; i++)
		rt->rt_control[i].co_fd = rt->rt_control[i].co_pass = -1;
	rt->rt_audit.af_fd = rt->rt_audit.af_tip = rt->rt_audit.af_ack = -1;
	TAILQ_INIT(&rt->rt_files);
	TAILQ_INIT(&rt->rt_bounds);
	TAILQ_INIT(&rt->rt_kubes);
	return rt;
}

/* Open everything that a configuration names; old is what is in force. */
struct runtime *
runtime_open(const struct config *conf, const struct runtime *old,
    struct why *why)
{
	const struct conf_control	*ct = conf->cf_control;
	const struct conf_control	*ro = conf->cf_control_ro;
	const struct control		*had = NULL;
	const char			*path;
	struct runtime			*rt;

	if (conf->cf_audit_stdout && !d.d_debug) {
		why_set(why, "audit stdout: a daemon in the background has "
		    "none (-d keeps it in the foreground)");
		return NULL;
	}
	if (old != NULL)
		had = old->rt_control;
	if ((rt = runtime_new()) == NULL) {
		why_set(why, "%s", strerror(errno));
		return NULL;
	}
	path = d.d_client != -1 ? NULL : d.d_socket != NULL ? d.d_socket :
	    ct != NULL ? ct->ct_path : path_socket;
	if (d.d_client != -1)
		ro = NULL;
	if (control_open(&rt->rt_control[CONTROL_FULL], path, ct,
	    had != NULL ? &had[CONTROL_FULL] : NULL, why) == -1 ||
	    control_open(&rt->rt_control[CONTROL_READ_ONLY],
	    ro != NULL ? ro->ct_path : NULL, ro,
	    had != NULL ? &had[CONTROL_READ_ONLY] : NULL, why) == -1 ||
	    auditfile_open(&rt->rt_audit, conf,
	    old != NULL ? &old->rt_audit : NULL, why) == -1 ||
	    files_open(rt, conf, why) == -1 ||
	    kubes_open(&rt->rt_kubes, conf, why) == -1 ||
	    sessions_check(conf, why) == -1 ||
	    sockets_check(conf, why) == -1 ||
	    bounds_open(&rt->rt_bounds, conf,
	    old != NULL ? &old->rt_bounds : NULL, why) == -1) {
		runtime_abort(rt);
		return NULL;
	}
	keys_warn(conf, false);
	conf_deciders_warn(conf);
	return rt;
}

static void
runtime_free(struct runtime *rt)
{
	struct opened	*op;
	int		 i;

	if (rt == NULL)
		return;
	for (i = 0; i < NCONTROLS; i++) {
		close_fd(&rt->rt_control[i].co_fd);
		close_fd(&rt->rt_control[i].co_pass);
	}
	close_fd(&rt->rt_audit.af_fd);
	close_fd(&rt->rt_audit.af_tip);
	close_fd(&rt->rt_audit.af_ack);
	bounds_close(&rt->rt_bounds);
	kubes_close(&rt->rt_kubes);
	while ((op = TAILQ_FIRST(&rt->rt_files)) != NULL) {
		TAILQ_REMOVE(&rt->rt_files, op, op_entry);
		close_fd(&op->op_fd);
		free(op);
	}
	free(rt);
}

/* The candidate never came into force: leave no trace of it. */
void
runtime_abort(struct runtime *rt)
{
	int	 i;

	for (i = 0; i < NCONTROLS; i++)
		if (rt->rt_control[i].co_bound)
			unlink(rt->rt_control[i].co_path);
	runtime_free(rt);
}

static bool
serves(const struct runtime *rt, const char *path)
{
	int	 i;

	for (i = 0; i < NCONTROLS; i++)
		if (strcmp(rt->rt_control[i].co_path, path) == 0)
			return true;
	return false;
}

void
runtime_commit(struct runtime *rt, struct runtime *old)
{
	struct control	*co;

	for (co = rt->rt_control; co < rt->rt_control + NCONTROLS; co++) {
		if (co->co_path[0] != '\0' && control_apply(co) == -1)
			log_warn("%s: owner and mode", co->co_path);
		if (old != NULL) {
			const char *was =
			    old->rt_control[co - rt->rt_control].co_path;

			if (was[0] != '\0' && !serves(rt, was))
				unlink(was);
		}
	}
	runtime_free(old);
}

/*
 * The daemon is about to end.  Whoever comes now finds no socket, and does not
 * wait at one where nobody accepts.
 */
void
runtime_withdraw(struct runtime *rt)
{
	struct control	*co;

	if (rt == NULL)
		return;
	for (co = rt->rt_control; co < rt->rt_control + NCONTROLS; co++) {
		if (co->co_path[0] != '\0')
			unlink(co->co_path);
		co->co_path[0] = '\0';
		close_fd(&co->co_fd);
		close_fd(&co->co_pass);
	}
}

/* The daemon ends. */
void
runtime_remove(struct runtime *rt)
{
	runtime_withdraw(rt);
	runtime_free(rt);
}

static int
take(int *fd)
{
	int	 taken = *fd;

	*fd = -1;
	return taken;
}

int
runtime_take_control(struct runtime *rt, bool read_only)
{
	return take(&rt->rt_control[read_only ? CONTROL_READ_ONLY :
	    CONTROL_FULL].co_pass);
}

struct auditfile *
runtime_audit(struct runtime *rt)
{
	return &rt->rt_audit;
}

const struct bounds *
runtime_bounds(const struct runtime *rt)
{
	return &rt->rt_bounds;
}

struct kubes *
runtime_kubes(struct runtime *rt)
{
	return &rt->rt_kubes;
}

int
runtime_take_file(struct runtime *rt, const char *path)
{
	struct opened	*op;

	TAILQ_FOREACH(op, &rt->rt_files, op_entry)
		if (op->op_path == path)
			return take(&op->op_fd);
	return -1;
}
