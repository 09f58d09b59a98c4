/* SPDX-License-Identifier: ISC */

/*
 * controld: the answer to "status".  Most of it is the parent's, policyd's and
 * the recorder's to tell.  The recorder is asked when policyd has answered:
 * it hears policyd out first, so what the answer says of sessions has been
 * recorded.
 */

#include <stdlib.h>
#include <string.h>

#include "controld.h"

struct proc {
	TAILQ_ENTRY(proc)	 pr_entry;
	enum role		 pr_role;
	uint32_t		 pr_pid;
	char			 pr_session[SESSION_LEN + 1];
};
TAILQ_HEAD(procs, proc);

struct decider {
	TAILQ_ENTRY(decider)	 de_entry;
	char			 de_name[NAME_LEN + 1];
	struct msg_state_decider de_state;	/* without its text */
};
TAILQ_HEAD(deciders, decider);

static struct {
	int			 st_parent;	/* has answered */
	int			 st_policyd;
	int			 st_recorder;
	struct procs		 st_procs;
	struct deciders		 st_deciders;
	struct msg_status_end	 st_status;
	char			 st_configuration[PATH_LEN + 1];
	char			 st_sha256[FINGERPRINT_LEN + 1];
	struct msg_audit_status	 st_audit;
	char			 st_path[PATH_LEN + 1];
} state = {
	.st_procs = TAILQ_HEAD_INITIALIZER(state.st_procs),
	.st_deciders = TAILQ_HEAD_INITIALIZER(state.st_deciders),
};

static void		 status_ask(const struct waiter *);
static const char	*status_late(void);

static struct survey	 survey = {
	.sv_name = "status", .sv_alike = 1, .sv_ask = status_ask,
	.sv_late = status_late
};

static void
status_clear(void)
{
	struct proc	*pr;
	struct decider	*de;

	while ((pr = TAILQ_FIRST(&state.st_procs)) != NULL) {
		TAILQ_REMOVE(&state.st_procs, pr, pr_entry);
		free(pr);
	}
	while ((de = TAILQ_FIRST(&state.st_deciders)) != NULL) {
		TAILQ_REMOVE(&state.st_deciders, de, de_entry);
		free(de);
	}
	state.st_parent = state.st_policyd = state.st_recorder = 0;
}

static void
status_ask(const struct waiter *wt)
{
	(void)wt;
	status_clear();
	ipc_send(child_parent, -1, STATUS_ASK, cookie, survey.sv_cookie);
	ipc_send(channel_policyd, -1, STATE_ASK, cookie, survey.sv_cookie);
}

static const char *
status_late(void)
{
	return !state.st_parent ? "the parent does not answer" :
	    !state.st_policyd ? "policyd does not answer" :
	    "the recorder does not answer";
}

static int
op_status(struct client *cl, struct request *rq)
{
	struct waiter	*wt;

	if ((wt = waiter_new(cl, WAIT_STATUS, &rq->rq_id)) != NULL)
		survey_join(&survey, wt);
	return 0;
}

const struct op status_ops[] = {
	{ "status", OP_READ_ONLY, op_status, NULL },
	{ NULL, 0, NULL, NULL }
};

static void
put_processes(struct jsonw *w)
{
	const struct proc	*pr;

	jsonw_key(w, "processes");
	jsonw_array(w);
	TAILQ_FOREACH(pr, &state.st_procs, pr_entry) {
		jsonw_object(w);
		put_str(w, "role", role_name(pr->pr_role));
		put_uint(w, "pid", pr->pr_pid);
		if (pr->pr_session[0] != '\0')
			put_str(w, "session_id", pr->pr_session);
		jsonw_end(w);
	}
	jsonw_end(w);
}

/* Null before the first engine has said which it is. */
static void
put_ca(struct jsonw *w, const struct session *se)
{
	jsonw_key(w, "ca");
	if (se->se_ca[0] == '\0') {
		jsonw_null(w);
		return;
	}
	jsonw_object(w);
	put_str(w, "sha256", se->se_ca);
	put_time(w, "since", se->se_state.ca_since);
	put_seconds(w, "not_after", se->se_state.ca_end);
	put_uint(w, "changes", se->se_state.ca_changes);
	jsonw_end(w);
}

/* policyd may not know one that has just been asked for. */
static void
put_session(struct jsonw *w, struct session *se)
{
	if (se->se_surveyed != survey.sv_cookie) {
		memset(&se->se_state, 0, sizeof(se->se_state));
		se->se_ca[0] = '\0';
	}
	jsonw_object(w);
	put_str(w, "session_id", se->se_name);
	put_str(w, "kind", session_kind_name(se));
	put_str(w, "policy", se->se_policy);
	put_str(w, "state", session_state_name(se->se_state.state));
	put_time(w, "started_at", se->se_state.started);
	put_uint(w, "restarts", se->se_state.restarts);
	put_ca(w, se);
	put_uint(w, "pending", se->se_state.pending);
	put_bool(w, "paused", se->se_state.paused);
	jsonw_end(w);
}

static void
put_sessions(struct jsonw *w)
{
	struct session	*se;

	jsonw_key(w, "sessions");
	jsonw_array(w);
	RB_FOREACH(se, sessions, &sessions)
		put_session(w, se);
	jsonw_end(w);
}

static void
put_policies(struct jsonw *w)
{
	const struct named_policy	*np;

	jsonw_key(w, "policies");
	jsonw_array(w);
	TAILQ_FOREACH(np, &conf_running->sl_policies, np_entry) {
		jsonw_object(w);
		put_str(w, "name", np->np_name);
		put_uint(w, "rules", np->np_rules);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void
put_deciders(struct jsonw *w)
{
	const struct decider	*de;

	jsonw_key(w, "deciders");
	jsonw_array(w);
	TAILQ_FOREACH(de, &state.st_deciders, de_entry) {
		jsonw_object(w);
		put_str(w, "name", de->de_name);
		put_str(w, "kind", decider_kind_name(de->de_state.kind));
		put_uint(w, "asked", de->de_state.asked);
		put_uint(w, "waiting", de->de_state.waiting);
		put_str(w, "breaker",
		    breaker_state_name(de->de_state.breaker));
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void
put_audit(struct jsonw *w)
{
	jsonw_key(w, "audit");
	jsonw_object(w);
	put_str(w, "file", state.st_path[0] != '\0' ? state.st_path : NULL);
	put_uint(w, "seq", state.st_audit.seq);
	put_uint(w, "followers", state.st_audit.followers);
	put_bool(w, "full", state.st_audit.full);
	if (state.st_audit.spool > 0) {
		jsonw_key(w, "spool");
		jsonw_object(w);
		put_uint(w, "size", state.st_audit.spool);
		put_uint(w, "waiting", state.st_audit.waiting);
		put_uint(w, "acknowledged", state.st_audit.acknowledged);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void
status_progress(void)
{
	const struct msg_status_end	*ms = &state.st_status;
	struct jsonw			*w;

	if (!state.st_parent || !state.st_policyd || !state.st_recorder)
		return;
	w = answer_ok();
	put_str(w, "version", EGRESSD_VERSION);
	put_uint(w, "generation", ms->generation);
	put_time(w, "started_at", ms->started);
	put_str(w, "configuration", state.st_configuration);
	put_str(w, "configuration_sha256", state.st_sha256);
	jsonw_key(w, "privileged");
	jsonw_bool(w, ms->privileged);
	put_str(w, "log_level", log_level_name(ms->log_level));
	put_uint(w, "clients", client_count);
	put_processes(w);
	put_sessions(w);
	put_policies(w);
	put_deciders(w);
	put_audit(w);
	survey_finish(&survey);
}

int
controld_parent_status_proc(struct ipc *ip, const union msg *m)
{
	const struct msg_status_proc	*ms = &m->status_proc;
	struct proc			*pr;

	if (role_name(ms->role) == NULL)
		return ipc_bad(ip, "role %u", ms->role);
	if (!survey_is(&survey, ms->cookie))
		return 0;
	if ((pr = calloc(1, sizeof(*pr))) == NULL) {
		survey_fail(&survey, "out of memory");
		return 0;
	}
	pr->pr_role = ms->role;
	pr->pr_pid = ms->pid;
	strlcpy(pr->pr_session, ms->session, sizeof(pr->pr_session));
	TAILQ_INSERT_TAIL(&state.st_procs, pr, pr_entry);
	return 0;
}

int
controld_parent_status_end(struct ipc *ip, const union msg *m)
{
	const struct msg_status_end	*ms = &m->status_end;

	if (log_level_name(ms->log_level) == NULL)
		return ipc_bad(ip, "log level %u", ms->log_level);
	if (!survey_is(&survey, ms->cookie))
		return 0;
	state.st_status = *ms;
	state.st_status.configuration = state.st_status.sha256 = NULL;
	strlcpy(state.st_configuration, ms->configuration,
	    sizeof(state.st_configuration));
	strlcpy(state.st_sha256, ms->sha256, sizeof(state.st_sha256));
	state.st_parent = 1;
	status_progress();
	return 0;
}

/* Of sessions that have just ended there is nothing to be told. */
int
controld_policyd_state_session(struct ipc *ip, const union msg *m)
{
	const struct msg_state_session	*ms = &m->state_session;
	struct session			*se;

	if (ms->state >= SESSION_STATE_MAX)
		return ipc_bad(ip, "state %u", ms->state);
	if (!survey_is(&survey, ms->cookie) ||
	    (se = session_find(ms->session)) == NULL)
		return 0;
	se->se_surveyed = ms->cookie;
	se->se_state = *ms;
	se->se_state.session = se->se_state.ca = NULL;
	strlcpy(se->se_ca, ms->ca, sizeof(se->se_ca));
	return 0;
}

int
controld_policyd_state_decider(struct ipc *ip, const union msg *m)
{
	const struct msg_state_decider	*ms = &m->state_decider;
	struct decider			*de;

	if (ms->kind >= DECIDER_KIND_MAX || ms->breaker >= BREAKER_STATE_MAX)
		return ipc_bad(ip, "decider of kind %u, breaker %u", ms->kind,
		    ms->breaker);
	if (!survey_is(&survey, ms->cookie))
		return 0;
	if ((de = calloc(1, sizeof(*de))) == NULL) {
		survey_fail(&survey, "out of memory");
		return 0;
	}
	strlcpy(de->de_name, ms->name, sizeof(de->de_name));
	de->de_state = *ms;
	de->de_state.name = NULL;
	TAILQ_INSERT_TAIL(&state.st_deciders, de, de_entry);
	return 0;
}

int
controld_policyd_state_end(struct ipc *ip, const union msg *m)
{
	(void)ip;
	if (!survey_is(&survey, m->cookie.cookie))
		return 0;
	state.st_policyd = 1;
	ipc_send(channel_recorder, -1, AUDIT_ASK, cookie, survey.sv_cookie);
	return 0;
}

int
controld_recorder_audit_status(struct ipc *ip, const union msg *m)
{
	const struct msg_audit_status	*ma = &m->audit_status;

	(void)ip;
	if (!survey_is(&survey, ma->cookie))
		return 0;
	state.st_audit = *ma;
	state.st_audit.path = NULL;
	strlcpy(state.st_path, ma->path, sizeof(state.st_path));
	state.st_recorder = 1;
	status_progress();
	return 0;
}
