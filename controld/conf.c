/* SPDX-License-Identifier: ISC */

/*
 * controld: its slice of the configuration, from the parent, which is
 * trusted: what it would never send is a bad message, and what memory does
 * not hold is the end.  A slice is built aside and changes nothing before it
 * is committed.
 */

#include <sys/resource.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "controld.h"

/* Channels, copies of sockets on their way, a second set of listeners. */
#define SPARE_FILES	256

struct slice	*conf_running;
struct slice	*conf_candidate;

static rlim_t	 files;		/* descriptors that we may have */
static uid_t	 starter;	/* whose the daemon is */

/* Before confinement: the time zone's file, who we are, a limit to stand. */
void
controld_warm(void)
{
	struct rlimit	 rl;

	tzset();
	starter = geteuid();
	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("limit of descriptors");
	files = rl.rlim_max < controld_sandbox.sb_files ? rl.rlim_max :
	    controld_sandbox.sb_files;
}

/* root; and where the daemon is another user's, that one. */
int
conf_operator(uid_t uid)
{
	return uid == 0 || uid == starter;
}

/*
 * What one user may have of what there is for all.  Who runs the daemon may
 * have it all, and can always stop something.
 */
uint32_t
conf_share(uid_t uid, uint32_t max)
{
	return conf_operator(uid) ? max : max - max / 4;
}

void
controld_begin(uint64_t generation)
{
	struct slice	*sl = child_alloc(sizeof(*sl));

	(void)generation;
	TAILQ_INIT(&sl->sl_listeners);
	TAILQ_INIT(&sl->sl_policies);
	TAILQ_INIT(&sl->sl_sandboxes);
	TAILQ_INIT(&sl->sl_sessions);
	conf_candidate = sl;
}

static void
policy_name_free(struct named_policy *np)
{
	struct variable	*va;

	while ((va = TAILQ_FIRST(&np->np_variables)) != NULL) {
		TAILQ_REMOVE(&np->np_variables, va, va_entry);
		free(va);
	}
	free(np);
}

static void
conf_slice_free(struct slice *sl)
{
	struct named_session	*ns;
	struct named_sandbox	*nb;
	struct named_policy	*np;
	struct listener		*li;

	if (sl == NULL)
		return;
	while ((li = TAILQ_FIRST(&sl->sl_listeners)) != NULL) {
		TAILQ_REMOVE(&sl->sl_listeners, li, li_entry);
		control_close(li);
		free(li);
	}
	while ((np = TAILQ_FIRST(&sl->sl_policies)) != NULL) {
		TAILQ_REMOVE(&sl->sl_policies, np, np_entry);
		policy_name_free(np);
	}
	while ((nb = TAILQ_FIRST(&sl->sl_sandboxes)) != NULL) {
		TAILQ_REMOVE(&sl->sl_sandboxes, nb, nb_entry);
		free(nb);
	}
	while ((ns = TAILQ_FIRST(&sl->sl_sessions)) != NULL) {
		TAILQ_REMOVE(&sl->sl_sessions, ns, ns_entry);
		free(ns);
	}
	free(sl);
}

const struct named_policy *
conf_policy(const struct slice *sl, const char *name)
{
	const struct named_policy	*np;

	TAILQ_FOREACH(np, &sl->sl_policies, np_entry)
		if (strcmp(np->np_name, name) == 0)
			return np;
	return NULL;
}

/* The slice may be NULL: then there is no session. */
const struct named_session *
conf_session(const struct slice *sl, const char *name)
{
	const struct named_session	*ns;

	if (sl == NULL)
		return NULL;
	TAILQ_FOREACH(ns, &sl->sl_sessions, ns_entry)
		if (strcmp(ns->ns_name, name) == 0)
			return ns;
	return NULL;
}

const struct named_sandbox *
conf_sandbox(const struct slice *sl, const char *name)
{
	const struct named_sandbox	*nb;

	TAILQ_FOREACH(nb, &sl->sl_sandboxes, nb_entry)
		if (strcmp(nb->nb_name, name) == 0)
			return nb;
	return NULL;
}

/* NULL: there is none but the one that is built in. */
const struct named_sandbox *
conf_default_sandbox(const struct slice *sl)
{
	const struct named_sandbox	*nb;

	TAILQ_FOREACH(nb, &sl->sl_sandboxes, nb_entry)
		if (nb->nb_default)
			return nb;
	return NULL;
}

/* The names of the configuration and those of sandboxes are one set. */
static int
conf_weigh_sessions(const struct slice *sl, char *why, size_t len)
{
	const struct named_session	*ns;
	const struct session		*se;

	TAILQ_FOREACH(ns, &sl->sl_sessions, ns_entry) {
		if (conf_policy(sl, ns->ns_policy) == NULL)
			return child_refuse(why, len,
			    "session %s: no policy %s", ns->ns_name,
			    ns->ns_policy);
		if ((se = session_find(ns->ns_name)) != NULL &&
		    se->se_kind != SESSION_FIXED)
			return child_refuse(why, len, "session %s: the session "
			    "of a running sandbox has this name", ns->ns_name);
	}
	return 0;
}

int
controld_weigh(char *why, size_t len)
{
	struct slice	*sl = conf_candidate;
	uint32_t	 sessions_max;

	if (channel_recorder == NULL || channel_policyd == NULL)
		return child_refuse(why, len, "no channel to %s",
		    channel_recorder == NULL ? "the recorder" : "policyd");
	if (!sl->sl_limited)
		return child_refuse(why, len, "no limits");
	if (sl->sl_lost)
		return child_refuse(why, len,
		    "control socket: no free descriptor");
	sessions_max = sl->sl_sessions_max > sl->sl_nsessions ?
	    sl->sl_sessions_max : sl->sl_nsessions;
	/*
	 * A client may have passed us a descriptor beside its own.  Sessions
	 * are counted for policyd, which has as many descriptors as we have
	 * and one of them for each session.
	 */
	if (2 * (uint64_t)sl->sl_clients + sessions_max + SPARE_FILES > files)
		return child_refuse(why, len, "%u clients and %u sessions need "
		    "more than the %llu descriptors that the system permits",
		    sl->sl_clients, sessions_max, (unsigned long long)files);
	return conf_weigh_sessions(sl, why, len);
}

void
controld_commit(void)
{
	struct slice	*old = conf_running;

	conf_running = conf_candidate;
	conf_candidate = NULL;
	conf_slice_free(old);
	session_follow();
	control_listen(&conf_running->sl_listeners);
}

void
controld_abort(void)
{
	conf_slice_free(conf_candidate);
	conf_candidate = NULL;
}

int
controld_parent_conf_control(struct ipc *ip, const union msg *m)
{
	struct listener	*li;
	int		 fd, flags;

	if (m->conf_control.read_only > 1)
		return ipc_bad(ip, "read-only %u", m->conf_control.read_only);
	if ((fd = ipc_take_fd(ip)) == -1) {
		conf_candidate->sl_lost = 1;
		return 0;
	}
	if ((flags = fcntl(fd, F_GETFL)) == -1 ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1)
		fatal("control socket: fcntl");
	li = child_alloc(sizeof(*li));
	li->li_fd = fd;
	li->li_read_only = m->conf_control.read_only;
	TAILQ_INSERT_TAIL(&conf_candidate->sl_listeners, li, li_entry);
	return 0;
}

int
controld_parent_conf_limits(struct ipc *ip, const union msg *m)
{
	if (conf_candidate->sl_limited)
		return ipc_bad(ip, "limits again");
	conf_candidate->sl_limited = 1;
	conf_candidate->sl_clients = m->conf_limits.clients;
	conf_candidate->sl_sessions_max = m->conf_limits.sessions;
	return 0;
}

int
controld_parent_conf_session(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_session	*mc = &m->conf_session;
	struct named_session		*ns;

	if (conf_session(conf_candidate, mc->session) != NULL)
		return ipc_bad(ip, "session %s again", mc->session);
	ns = child_alloc(sizeof(*ns));
	strlcpy(ns->ns_name, mc->session, sizeof(ns->ns_name));
	strlcpy(ns->ns_policy, mc->policy, sizeof(ns->ns_policy));
	TAILQ_INSERT_TAIL(&conf_candidate->sl_sessions, ns, ns_entry);
	conf_candidate->sl_nsessions++;
	return 0;
}

int
controld_parent_conf_policy_name(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_policy_name	*mp = &m->conf_policy_name;
	struct named_policy			*np;

	if (conf_policy(conf_candidate, mp->name) != NULL)
		return ipc_bad(ip, "policy %s again", mp->name);
	np = child_alloc(sizeof(*np));
	strlcpy(np->np_name, mp->name, sizeof(np->np_name));
	np->np_rules = mp->rules;
	TAILQ_INIT(&np->np_variables);
	TAILQ_INSERT_TAIL(&conf_candidate->sl_policies, np, np_entry);
	return 0;
}

/* Of the policy before it. */
int
controld_parent_conf_environment(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_environment	*me = &m->conf_environment;
	struct named_policy			*np;
	struct variable				*va;

	np = TAILQ_LAST(&conf_candidate->sl_policies, named_policies);
	if (np == NULL || me->pass > 1)
		return ipc_bad(ip, "environment %u: %s", me->pass,
		    me->pattern);
	va = child_alloc(sizeof(*va));
	va->va_pass = me->pass;
	strlcpy(va->va_pattern, me->pattern, sizeof(va->va_pattern));
	TAILQ_INSERT_TAIL(&np->np_variables, va, va_entry);
	return 0;
}

int
controld_parent_conf_sandbox(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_sandbox	*ms = &m->conf_sandbox;
	struct named_sandbox		*nb;

	if (ms->kind >= SANDBOX_KIND_MAX || ms->is_default > 1 ||
	    ms->restricted > 1 || ms->mountable > 1 ||
	    conf_sandbox(conf_candidate, ms->name) != NULL)
		return ipc_bad(ip, "sandbox %s of kind %u", ms->name,
		    ms->kind);
	nb = child_alloc(sizeof(*nb));
	strlcpy(nb->nb_name, ms->name, sizeof(nb->nb_name));
	strlcpy(nb->nb_policy, ms->policy, sizeof(nb->nb_policy));
	strlcpy(nb->nb_cwd, ms->cwd, sizeof(nb->nb_cwd));
	strlcpy(nb->nb_user, ms->user, sizeof(nb->nb_user));
	nb->nb_default = ms->is_default;
	nb->nb_conf = *ms;
	nb->nb_conf.name = nb->nb_conf.policy = NULL;
	nb->nb_conf.cwd = nb->nb_conf.user = NULL;
	TAILQ_INSERT_TAIL(&conf_candidate->sl_sandboxes, nb, nb_entry);
	return 0;
}
