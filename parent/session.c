/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: sessions.  Each has one engine, but for those of
 * sandboxes that no gate of ours holds.  When it dies, a fixed session starts
 * again with a new one, at once the first time and then with growing delay; a
 * sandbox's session is over.  Before we are ready it is a start that has
 * failed.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "name.h"
#include "parent.h"

#define RETRY_FIRST_MS	500
#define RETRY_MAX_MS	30000
#define RETRY_CALM_MS	60000	/* an engine that lived so long was sound */

static TAILQ_HEAD(, session)	 sessions = TAILQ_HEAD_INITIALIZER(sessions);
static uint32_t	 session_count;

static void
session_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	sessions_start();
}

static struct session *
session_find(const char *name)
{
	struct session	*se;

	TAILQ_FOREACH(se, &sessions, se_entry)
		if (strcmp(se->se_name, name) == 0)
			return se;
	return NULL;
}

/* The policy that a session has in a configuration, or NULL: it has to go. */
const struct conf_policy *
session_policy(const struct config *conf, const struct session *se)
{
	const struct conf_session	*ss;

	if (se->se_policy[0] != '\0')
		return conf_policy_find(conf, se->se_policy);
	ss = conf_session_find(conf, se->se_name);
	return ss != NULL ? ss->ss_policy : NULL;
}

static struct session *
session_new(const char *name)
{
	struct session	*se;

	if ((se = calloc(1, sizeof(*se))) == NULL)
		fatal("%s", __func__);
	strlcpy(se->se_name, name, sizeof(se->se_name));
	se->se_why = "the engine did not start";
	se->se_text = "";
	se->se_box = -1;
	event_assign(&se->se_retry, d.d_base, -1, 0, session_retry, se);
	TAILQ_INSERT_TAIL(&sessions, se, se_entry);
	session_count++;
	return se;
}

/* Whoever asked for the session hears how it went. */
static void
session_answer(struct session *se, bool ok, const char *text)
{
	struct proc	*controld = proc_find(ROLE_CONTROLD);

	if (!se->se_asked || controld == NULL || controld->pr_ipc == NULL)
		return;
	se->se_asked = false;
	ipc_send(controld->pr_ipc, -1, SESSION_DONE, session_done,
	    .number = se->se_number, .ok = ok, .refused = se->se_refused,
	    .cause = se->se_cause, .cgroup = ok && se->se_boxed != NULL &&
	    box_in_cgroup(se->se_boxed), .text = text);
}

/* policyd judges for sessions that the configuration or we have told it of. */
static void
session_open(struct session *se)
{
	struct proc	*policyd = proc_find(ROLE_POLICYD);

	if (se->se_policy[0] == '\0' || policyd == NULL ||
	    policyd->pr_ipc == NULL)
		return;
	se->se_opened = true;
	ipc_send(policyd->pr_ipc, -1, SESSION_OPEN, session_open,
	    .number = se->se_number, .session = se->se_name,
	    .policy = se->se_policy, .engine = !se->se_engineless,
	    .told = se->se_environment != NULL,
	    .environment = se->se_environment);
	free(se->se_environment);
	se->se_environment = NULL;
}

static void
session_close(struct session *se)
{
	struct proc	*policyd = proc_find(ROLE_POLICYD);

	if (!se->se_opened || policyd == NULL || policyd->pr_ipc == NULL)
		return;
	ipc_send(policyd->pr_ipc, -1, SESSION_CLOSE, session_close,
	    .number = se->se_number, .cause = se->se_cause,
	    .text = se->se_text);
	se->se_opened = false;
	/* policyd is to hear why before it sees the engine end. */
	ipc_push(policyd->pr_ipc);
}

static void
session_free(struct session *se)
{
	TAILQ_REMOVE(&sessions, se, se_entry);
	session_count--;
	event_del(&se->se_retry);
	if (session_policy(d.d_conf, se) == NULL)
		se->se_why = "its policy is no longer there";
	session_answer(se, false, se->se_why);
	/* Who was attached is recorded before the end of the session is. */
	if (se->se_boxed != NULL)
		box_end(se->se_boxed);
	session_close(se);
	if (se->se_box != -1)
		close(se->se_box);
	if (se->se_engine != NULL) {
		se->se_engine->pr_session = NULL;
		proc_end(se->se_engine);
	}
	free(se->se_environment);
	free(se);
}

/* A generation is in force: end what it no longer has, and know what is new. */
void
sessions_follow(const struct config *conf)
{
	struct conf_session	*cs;
	struct session		*se, *next;

	TAILQ_FOREACH_SAFE(se, &sessions, se_entry, next)
		if (session_policy(conf, se) == NULL)
			session_free(se);
	TAILQ_FOREACH(cs, &conf->cf_sessions, ss_entry)
		if (session_find(cs->ss_name) == NULL)
			session_new(cs->ss_name);
}

/* The sandbox of a session that the daemon makes; false, and over, if not. */
static bool
session_start_box(struct session *se)
{
	struct why	 why;

	if (se->se_boxed == NULL)
		return true;
	if (box_start(se->se_boxed, se, &why) == -1) {
		session_answer(se, false, why.text);
		session_free(se);
		return false;
	}
	if (box_is_gated(se->se_boxed))
		return true;
	/* policyd hears of it when we know that the client may have it. */
	se->se_engineless = true;
	box_let_go(se->se_boxed);
	close(se->se_box);
	se->se_box = -1;
	return true;
}

/* Engines are not started into a transaction; its end calls us again. */
void
sessions_start(void)
{
	struct session	*se, *next;

	if (reload_running())
		return;
	TAILQ_FOREACH_SAFE(se, &sessions, se_entry, next) {
		if (d.d_stopping)
			return;
		if (se->se_engine != NULL || se->se_engineless ||
		    event_pending(&se->se_retry, EV_TIMEOUT, NULL))
			continue;
		se->se_started = clock_ms();
		/* They start side by side: box waits for its engine. */
		if (!session_start_box(se) || se->se_engineless)
			continue;
		session_open(se);
		proc_start_engine(se);
	}
}

void
session_engine_gone(struct session *se)
{
	struct timeval	 tv;

	se->se_engine = NULL;
	if (se->se_policy[0] != '\0') {
		/* What its box says last is why it did not start. */
		if (!se->se_asked || se->se_boxed == NULL ||
		    !box_kill(se->se_boxed))
			session_free(se);
		return;
	}
	/* Removed: policyd hung up on the engine, and the session goes next. */
	if (conf_session_find(d.d_conf, se->se_name) == NULL)
		return;
	/* What fails at the first start is for whoever started us to mend. */
	if (!d.d_ready) {
		log_errorx("session %s: its engine does not start: all ends",
		    se->se_name);
		parent_stop(1);
		return;
	}
	if (clock_ms() - se->se_started > RETRY_CALM_MS)
		se->se_delay_ms = 0;
	tv.tv_sec = se->se_delay_ms / 1000;
	tv.tv_usec = se->se_delay_ms % 1000 * 1000;
	log_info("session %s: its engine starts again in %u ms", se->se_name,
	    se->se_delay_ms);
	se->se_delay_ms = se->se_delay_ms == 0 ? RETRY_FIRST_MS :
	    se->se_delay_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS :
	    se->se_delay_ms * 2;
	event_add(&se->se_retry, &tv);
}

void
session_engine_runs(struct session *se)
{
	se->se_runs = true;
	if (se->se_boxed == NULL || box_serves(se->se_boxed))
		session_answer(se, true, "");
}

void
session_box_serves(struct session *se)
{
	const struct conf_sandbox	*sb = box_gated_pod(se->se_boxed);
	struct why			 why;

	if (sb != NULL && podconf_send(se, sb, &why) == -1) {
		session_answer(se, false, why.text);
		session_free(se);
		return;
	}
	if (se->se_engineless)
		session_open(se);
	if (se->se_engineless || se->se_runs)
		session_answer(se, true, "");
}

/*
 * With its box, all that ran in the sandbox is gone.  The engine is told next,
 * and ends; whoever waits for the end of the session hears of it after that.
 */
void
session_box_gone(struct session *se, const char *why)
{
	if (d.d_stopping)
		return;
	if (se->se_cause != CAUSE_NONE)
		why = se->se_why;
	else if (se->se_engine != NULL)
		se->se_cause = CAUSE_SANDBOX;
	if (se->se_asked || se->se_engine == NULL) {
		session_answer(se, false, why);
		session_free(se);
		return;
	}
	session_close(se);
	box_let_go(se->se_boxed);
	proc_ends(se->se_engine);
}

/* A sandbox's session; NULL is nothing unusual, it may be over. */
static struct session *
session_by_number(uint32_t number)
{
	struct session	*se;

	TAILQ_FOREACH(se, &sessions, se_entry)
		if (se->se_policy[0] != '\0' && se->se_number == number)
			return se;
	return NULL;
}

int
parent_controld_session_stop(struct ipc *ip, const union msg *m)
{
	static const char *const	 whys[SESSION_CAUSE_MAX] = {
		[CAUSE_DEADLINE] = "its deadline has passed",
		[CAUSE_REQUEST] = "it was stopped before it began",
		[CAUSE_OWNER] = "its owner has left",
		[CAUSE_SANDBOX] = "its pod has ended",
	};
	const struct msg_session_stop	*ms = &m->session_stop;
	struct session			*se;

	if (ms->cause >= SESSION_CAUSE_MAX || whys[ms->cause] == NULL)
		return ipc_bad(ip, "cause %u", ms->cause);
	if ((se = session_by_number(ms->number)) == NULL)
		return 0;
	/* Of the others we know ourselves how they are. */
	if (ms->cause == CAUSE_SANDBOX &&
	    (se->se_boxed == NULL || !box_is_pod(se->se_boxed)))
		return ipc_bad(ip, "cause %u, and no pod", ms->cause);
	se->se_cause = ms->cause;
	se->se_why = whys[se->se_cause];
	se->se_text = ms->text;
	/* A box that runs comes first: see session_box_gone(). */
	if (se->se_boxed == NULL || !box_stop(se->se_boxed))
		session_free(se);
	else
		se->se_text = "";
	return 0;
}

/* The connection of a client, for the sandbox that we have made. */
int
parent_controld_session_attach(struct ipc *ip, const union msg *m)
{
	struct session	*se = session_by_number(m->session_attach.number);
	int		 fd = ipc_take_fd(ip);

	if (fd == -1)
		return 0;
	if (se != NULL && se->se_boxed != NULL)
		box_attach(se->se_boxed, fd);
	else
		close(fd);
	return 0;
}

/* Something for the sandbox that we have made, with its client's rights. */
int
parent_controld_session_mount(struct ipc *ip, const union msg *m)
{
	const struct msg_session_mount	*mm = &m->session_mount;
	struct session			*se = session_by_number(mm->number);
	struct mount_spec		 ms = {
		.ms_source = mm->source, .ms_target = mm->target,
		.ms_write = mm->write, .ms_cookie = mm->cookie
	};
	const char			*why;
	int				 fd = ipc_take_fd(ip);
	bool				 known = peer_who(fd, &ms.ms_client);

	if (fd != -1)
		close(fd);
	if (mm->cookie == 0 || mm->write > 1)
		return ipc_bad(ip, "mount %u, write %u", mm->cookie,
		    mm->write);
	why = !known ? "whose client that is cannot be told" :
	    se == NULL || se->se_boxed == NULL ? "the session is over" :
	    box_mount_later(se->se_boxed, &ms);
	if (why != NULL)
		ipc_send(ip, -1, SESSION_MOUNTED, session_mounted,
		    .cookie = mm->cookie, .result = MOUNT_FAILED, .text = why);
	return 0;
}

/* Names with a space between them: of variables, and nothing else. */
static bool
environment_is_sound(const char *environment)
{
	char	*copy, *rest, *name;
	bool	 sound = true;

	if ((copy = rest = strdup(environment)) == NULL)
		fatal("%s", __func__);
	while (sound && *environment != '\0' &&
	    (name = strsep(&rest, " ")) != NULL)
		sound = name_variable_error(name) == NULL;
	free(copy);
	return sound;
}

/*
 * controld keeps to the limit.  We count to twice the limit, as the engine of a
 * session whose end controld knows of may not be reaped yet.  Beyond that are
 * only sessions that were asked for before controld heard of a lower limit,
 * hence not more in a row than any limit permits.
 */
static bool
session_crowd(void)
{
	return session_count >= 2 * d.d_conf->cf_limit[CONF_LIMIT_SESSIONS];
}

/* How many in a row controld has asked for that were too many. */
static unsigned int
session_beyond(void)
{
	static unsigned int	 beyond;

	beyond = session_crowd() ? beyond + 1 : 0;
	return beyond;
}

/* NULL if the session may be, or why it cannot. */
static const char *
session_fault(const char *name, const char *policy)
{
	const char	*why;

	if ((why = name_session_error(name)) != NULL)
		return why;
	if (session_find(name) != NULL)
		return "there is such a session already";
	if (conf_policy_find(d.d_conf, policy) == NULL)
		return "there is no such policy";
	if (session_crowd())
		return "there are more sessions than 'limit sessions' permits";
	return NULL;
}

static void
session_refuse(struct ipc *ip, uint32_t number, const char *why)
{
	ipc_send(ip, -1, SESSION_DONE, session_done, .number = number,
	    .ok = 0, .text = why);
}

static void
session_ask(const struct msg_session_ask *ma, int fd)
{
	struct session	*se = session_new(ma->session);

	strlcpy(se->se_policy, ma->policy, sizeof(se->se_policy));
	se->se_box = fd;
	se->se_asked = true;
	se->se_number = ma->number;
	if (ma->told && (se->se_environment = strdup(ma->environment)) == NULL)
		fatal("%s", __func__);
	sessions_start();
}

/* A control client has a sandbox and wants a gate for it. */
int
parent_controld_session_ask(struct ipc *ip, const union msg *m)
{
	const struct msg_session_ask	*ma = &m->session_ask;
	struct session			*se = session_find(ma->session);
	unsigned int			 beyond = session_beyond();
	const char			*why;
	int				 fd = ipc_take_fd(ip);

	if (ma->number == 0 || ma->told > 1 || beyond > CONF_SESSIONS_MAX ||
	    !environment_is_sound(ma->environment)) {
		if (fd != -1)
			close(fd);
		return ipc_bad(ip, "session %u, told %u, %u beyond the limit",
		    ma->number, ma->told, beyond);
	}
	/* controld, which keeps the names, has heard of its end already. */
	if (se != NULL && se->se_policy[0] != '\0')
		session_free(se);
	why = fd == -1 ? "no free descriptor" :
	    session_fault(ma->session, ma->policy);
	if (why == NULL) {
		session_ask(ma, fd);
		return 0;
	}
	if (fd != -1)
		close(fd);
	session_refuse(ip, ma->number, why);
	return 0;
}

/* ---- sandboxes of the daemon's own ---- */

/* The name of the variable at p, which a NUL ends; NULL for one of none. */
static const char *
variable_name(const char *p, char *name, size_t size)
{
	size_t	 len = strcspn(p, "=");

	if (p[len] != '=' || len >= size)
		return NULL;
	memcpy(name, p, len);
	name[len] = '\0';
	return name_variable_error(name) == NULL ? name : NULL;
}

/* The names of variables with a space between them; NULL: not sound. */
static char *
variables_names(const struct msg_bytes *variables)
{
	const char	*p = variables->data, *end = p + variables->len;
	char		*names, name[NAME_LEN + 1];

	if (variables->len > 0 && end[-1] != '\0')
		return NULL;
	if ((names = calloc(1, ENVIRONMENT_LEN + 1)) == NULL)
		fatal("%s", __func__);
	for (; p < end; p += strlen(p) + 1) {
		if (variable_name(p, name, sizeof(name)) == NULL ||
		    (*names != '\0' && strlcat(names, " ",
		    ENVIRONMENT_LEN + 1) > ENVIRONMENT_LEN) ||
		    strlcat(names, name, ENVIRONMENT_LEN + 1) >
		    ENVIRONMENT_LEN) {
			free(names);
			return NULL;
		}
	}
	return names;
}

/* A control client wants a sandbox, and a gate for it. */
int
parent_controld_sandbox_ask(struct ipc *ip, const union msg *m)
{
	const struct msg_sandbox_ask	*ma = &m->sandbox_ask;
	struct session			*se = session_find(ma->session);
	unsigned int			 beyond = session_beyond();
	struct box			*bo;
	const char			*why;
	char				*names;
	struct peer			 client;
	int				 fd = ipc_take_fd(ip);
	bool				 known;

	/* Nobody who has taken controld over becomes another user by it. */
	known = peer_who(fd, &client);
	if (fd != -1)
		close(fd);
	if (ma->number == 0 || beyond > CONF_SESSIONS_MAX ||
	    (*ma->cwd != '\0' && *ma->cwd != '/') ||
	    mount_count(&ma->mounts) == -1 ||
	    (names = variables_names(&ma->variables)) == NULL)
		return ipc_bad(ip, "session %u, cwd %s, %u beyond the limit",
		    ma->number, ma->cwd, beyond);
	if (se != NULL && se->se_policy[0] != '\0')
		session_free(se);
	why = !known ? "whose client that is cannot be told" :
	    session_fault(ma->session, ma->policy);
	if (why != NULL || (bo = box_new(ma, &client, &fd)) == NULL) {
		session_refuse(ip, ma->number, why != NULL ? why :
		    strerror(errno));
		free(names);
		return 0;
	}
	se = session_new(ma->session);
	strlcpy(se->se_policy, ma->policy, sizeof(se->se_policy));
	se->se_box = fd;
	se->se_boxed = bo;
	se->se_asked = true;
	se->se_number = ma->number;
	se->se_environment = names;
	sessions_start();
	return 0;
}
