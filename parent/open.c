/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: descriptors that a child cannot open itself.  A child
 * says of which kind and by which name of its own slice of the configuration;
 * what that is, a path or a program, it neither says nor needs to know.
 *
 * A child may have been taken over.  The table below says what each may ask
 * for, and the name is looked up in the configuration in force, where it may
 * be gone: a child may still ask of a generation that is no more.
 */

#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kube.h"
#include "parent.h"

#define UNREAD_MAX	(64 * 1024)	/* bytes of answers to a child */

/* What a name stands for, and who has named it. */
struct target {
	enum role		 tg_role;
	uint32_t		 tg_cookie;
	const char		*tg_path;	/* or the program's */
	const struct kube	*tg_kube;
	struct program_spec	 tg_program;
	char			 tg_name[NAME_LEN + 16];
};

/* A program that runs for a child, and the number that it has there. */
struct lent {
	TAILQ_ENTRY(lent)	 le_entry;
	enum role		 le_role;
	uint32_t		 le_cookie;
	struct program		*le_program;
};

static TAILQ_HEAD(, lent)	 lents = TAILQ_HEAD_INITIALIZER(lents);

/* ---- names ---- */

static bool
find_decider_program(const char *name, struct target *tg)
{
	const struct conf_decider	*dc;

	dc = conf_decider_find(d.d_conf, name);
	if (dc == NULL || dc->dc_kind != DECIDER_EXEC)
		return false;
	snprintf(tg->tg_name, sizeof(tg->tg_name), "decider: %s", dc->dc_name);
	tg->tg_path = TAILQ_FIRST(&dc->dc_command)->wd_text;
	tg->tg_program.ps_command = &dc->dc_command;
	tg->tg_program.ps_user = dc->dc_options.do_user;
	return true;
}

static bool
find_decider_socket(const char *name, struct target *tg)
{
	const struct conf_decider	*dc;

	dc = conf_decider_find(d.d_conf, name);
	if (dc == NULL || dc->dc_kind != DECIDER_SOCKET)
		return false;
	tg->tg_path = dc->dc_options.do_path;
	return true;
}

static bool
find_cluster_token(const char *name, struct target *tg)
{
	const struct kube	*kb;

	kb = kube_find(runtime_kubes(d.d_runtime), name);
	if (kb == NULL || kb->kb_auth != AUTH_TOKEN_FILE)
		return false;
	tg->tg_path = kb->kb_token_path;
	tg->tg_kube = kb;
	return true;
}

static bool
find_cluster_plugin(const char *name, struct target *tg)
{
	const struct kube	*kb;

	kb = kube_find(runtime_kubes(d.d_runtime), name);
	if (kb == NULL || kb->kb_auth != AUTH_PLUGIN)
		return false;
	snprintf(tg->tg_name, sizeof(tg->tg_name), "plugin: %s",
	    kb->kb_name[0] == '\0' ? "cluster" : kb->kb_name);
	tg->tg_path = TAILQ_FIRST(&kb->kb_command)->wd_text;
	tg->tg_program.ps_command = &kb->kb_command;
	tg->tg_program.ps_environment = &kb->kb_environment;
	tg->tg_program.ps_user = kb->kb_plugin_user;
	tg->tg_program.ps_uid = kb->kb_plugin_owner;
	return true;
}

/* ---- descriptors: -1 and why if there is none ---- */

static struct lent *
lent_find(enum role role, uint32_t cookie)
{
	struct lent	*le;

	TAILQ_FOREACH(le, &lents, le_entry)
		if (le->le_role == role && le->le_cookie == cookie)
			return le;
	return NULL;
}

static void
lent_ended(void *arg, const char *why)
{
	struct lent	*le = arg;
	struct proc	*pr = proc_find(le->le_role);

	if (pr != NULL && pr->pr_ipc != NULL)
		ipc_send(pr->pr_ipc, -1, OPEN_ENDED, open_ended,
		    .cookie = le->le_cookie, .why = why);
	TAILQ_REMOVE(&lents, le, le_entry);
	free(le);
}

static int
open_program(const struct target *tg, struct why *why)
{
	struct program_spec	 ps = tg->tg_program;
	struct lent		*le;
	int			 fd;

	ps.ps_name = tg->tg_name;
	ps.ps_role = tg->tg_role;
	if ((le = calloc(1, sizeof(*le))) == NULL ||
	    (le->le_program = program_start(&ps, &fd, lent_ended,
	    le)) == NULL) {
		why_set(why, "%s: %s", tg->tg_path, strerror(errno));
		free(le);
		return -1;
	}
	le->le_role = tg->tg_role;
	le->le_cookie = tg->tg_cookie;
	TAILQ_INSERT_TAIL(&lents, le, le_entry);
	return fd;
}

/* A full queue is an error at once: the parent waits for nobody. */
static int
open_socket(const struct target *tg, struct why *why)
{
	struct sockaddr_un	 sun = { .sun_family = AF_UNIX };
	int			 fd;

	if (strlcpy(sun.sun_path, tg->tg_path, sizeof(sun.sun_path)) >=
	    sizeof(sun.sun_path))
		return why_set(why, "%s: %s", tg->tg_path,
		    strerror(ENAMETOOLONG));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd != -1 && connect(fd, (const struct sockaddr *)&sun,
	    sizeof(sun)) == 0)
		return fd;
	why_set(why, "%s: %s", tg->tg_path, strerror(errno));
	if (fd != -1)
		close(fd);
	return -1;
}

/* A secret that is replaced now and then; looked at as when it was loaded. */
static int
open_token(const struct target *tg, struct why *why)
{
	return kube_token_open(tg->tg_kube, why);
}

/* ---- kinds ---- */

/* To add a kind, add a row. */
static const struct kind {
	uint32_t	 ki_roles;	/* who may ask */
	bool		 ki_runs;	/* a process, killed with OPEN_DONE */
	bool		(*ki_find)(const char *, struct target *);
	int		(*ki_open)(const struct target *, struct why *);
} kinds[OPEN_KIND_MAX] = {
	[OPEN_DECIDER_PROGRAM] = { R_DECIDERD, true, find_decider_program,
	    open_program },
	[OPEN_DECIDER_SOCKET] = { R_DECIDERD, false, find_decider_socket,
	    open_socket },
	[OPEN_CLUSTER_TOKEN] = { R_K8SD, false, find_cluster_token,
	    open_token },
	[OPEN_CLUSTER_PLUGIN] = { R_K8SD, true, find_cluster_plugin,
	    open_program },
};

static int
open_kind(struct ipc *ip, const struct kind *ki, const struct msg_open_ask *mo,
    struct why *why)
{
	struct target	 tg = {
		.tg_role = ip->ip_peer,
		.tg_cookie = mo->cookie
	};

	if (d.d_conf == NULL || (ki->ki_runs && d.d_stopping) ||
	    !ki->ki_find(mo->object, &tg))
		return why_set(why, "%s: %s", mo->object, strerror(ENOENT));
	/* A child that asks and does not read must not fill our table. */
	if (imsgbuf_queuelen(&ip->ip_buf) > UNREAD_MAX)
		return why_set(why, "%s: %s", tg.tg_path, strerror(EAGAIN));
	return ki->ki_open(&tg, why);
}

int
parent_child_open_ask(struct ipc *ip, const union msg *m)
{
	const struct msg_open_ask	*mo = &m->open_ask;
	struct why			 why;
	char				 text[PATH_LEN];
	int				 fd;

	if (mo->kind >= OPEN_KIND_MAX ||
	    !(kinds[mo->kind].ki_roles & 1U << ip->ip_peer))
		return ipc_bad(ip, "kind %u", mo->kind);
	if (lent_find(ip->ip_peer, mo->cookie) != NULL)
		return ipc_bad(ip, "number %u is in use", mo->cookie);
	fd = open_kind(ip, &kinds[mo->kind], mo, &why);
	if (fd != -1) {
		ipc_send(ip, fd, OPENED, cookie, mo->cookie);
		return 0;
	}
	strlcpy(text, why.text, sizeof(text));
	ipc_send(ip, -1, OPEN_FAILED, open_ended, .cookie = mo->cookie,
	    .why = text);
	return 0;
}

/* A program may have ended by itself, and other kinds have none. */
int
parent_child_open_done(struct ipc *ip, const union msg *m)
{
	struct lent	*le = lent_find(ip->ip_peer, m->cookie.cookie);

	if (le != NULL)
		program_kill(le->le_program);
	return 0;
}
