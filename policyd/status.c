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
 * policyd: the answer to "status".  Parts of it are the parent's and the
 * recorder's to tell.  They are asked for one survey at a time, however many
 * clients want one: a request that comes while a survey runs waits for the
 * next, so that no answer is older than its question.
 */

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "policyd.h"

#define SURVEY_TIMEOUT_S	5

struct proc {
	TAILQ_ENTRY(proc)	 pr_entry;
	enum role		 pr_role;
	uint32_t		 pr_pid;
	char			 pr_session[NAME_LEN + 1];
};
TAILQ_HEAD(procs, proc);

static struct {
	uint32_t		 sv_cookie;	/* 0: none is running */
	int			 sv_parent;	/* has answered */
	int			 sv_recorder;	/* has answered */
	struct procs		 sv_procs;
	struct msg_status_end	 sv_status;
	char			 sv_configuration[PATH_LEN + 1];
	struct msg_audit_status	 sv_audit;
	char			 sv_path[PATH_LEN + 1];
	struct event		 sv_timer;
} survey = {
	.sv_procs = TAILQ_HEAD_INITIALIZER(survey.sv_procs),
};

static struct waiters	 asking = TAILQ_HEAD_INITIALIZER(asking);
static struct waiters	 waiting = TAILQ_HEAD_INITIALIZER(waiting);

static void	 survey_on_timer(evutil_socket_t, short, void *);

static void
survey_start(void)
{
	struct timeval	 tv = { .tv_sec = SURVEY_TIMEOUT_S };
	struct waiter	*wt;

	while ((wt = TAILQ_FIRST(&waiting)) != NULL)
		waiter_queue(wt, &asking);
	survey.sv_cookie = waiter_cookie();
	survey.sv_parent = survey.sv_recorder = 0;
	ipc_send(child_parent, -1, STATUS_ASK, cookie, survey.sv_cookie);
	ipc_send(channel_recorder, -1, AUDIT_ASK, cookie, survey.sv_cookie);
	if (!evtimer_initialized(&survey.sv_timer))
		evtimer_assign(&survey.sv_timer, child_base, survey_on_timer,
		    NULL);
	if (evtimer_add(&survey.sv_timer, &tv) == -1)
		log_warnx("status: no timer, an answer may take long");
}

/* The same body for all: a crowd of clients costs little more than one. */
static void
survey_finish(void)
{
	struct proc	*pr;
	struct waiter	*wt;
	const char	*body;
	size_t		 len;

	body = answer_end(&len);
	while ((wt = TAILQ_FIRST(&asking)) != NULL)
		waiter_answer(wt, body, len);
	while ((pr = TAILQ_FIRST(&survey.sv_procs)) != NULL) {
		TAILQ_REMOVE(&survey.sv_procs, pr, pr_entry);
		free(pr);
	}
	evtimer_del(&survey.sv_timer);
	survey.sv_cookie = 0;
	if (!TAILQ_EMPTY(&waiting))
		survey_start();
}

static void
survey_fail(const char *why)
{
	log_warnx("status: %s", why);
	answer_error("internal", why, strlen(why));
	survey_finish();
}

static void
survey_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	survey_fail(survey.sv_parent ? "the recorder does not answer" :
	    "the parent does not answer");
}

void
status_ask(struct waiter *wt)
{
	waiter_queue(wt, &waiting);
	if (survey.sv_cookie == 0)
		survey_start();
}

static void
put_processes(struct jsonw *w)
{
	const struct proc	*pr;

	jsonw_key(w, "processes");
	jsonw_array(w);
	TAILQ_FOREACH(pr, &survey.sv_procs, pr_entry) {
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
	put_time(w, "since", se->se_ca_since);
	put_seconds(w, "not_after", se->se_ca_end);
	put_uint(w, "changes", se->se_ca_changes);
	jsonw_end(w);
}

static void
put_sessions(struct jsonw *w)
{
	static const char *const states[] = {
		[SESSION_WAITING] = "waiting",
		[SESSION_STARTING] = "starting",
		[SESSION_RUNNING] = "running",
	};
	struct session	*se;

	jsonw_key(w, "sessions");
	jsonw_array(w);
	RB_FOREACH(se, sessions, &sessions) {
		jsonw_object(w);
		put_str(w, "session_id", se->se_name);
		put_str(w, "kind", se->se_kind == SESSION_RUN ? "run" :
		    "fixed");
		put_str(w, "policy", se->se_policy);
		put_str(w, "state", states[se->se_state]);
		put_time(w, "started_at", se->se_started);
		put_uint(w, "restarts", se->se_restarts);
		put_ca(w, se);
		put_uint(w, "pending", se->se_npendings);
		put_bool(w, "paused", storm_paused(&se->se_storm, clock_ms()));
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void
put_policies(struct jsonw *w)
{
	const struct policy	*pl;

	jsonw_key(w, "policies");
	jsonw_array(w);
	TAILQ_FOREACH(pl, &slice_running->sl_policies, pl_entry) {
		jsonw_object(w);
		put_str(w, "name", pl->pl_name);
		put_uint(w, "rules", pl->pl_nrules);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void
put_deciders(struct jsonw *w)
{
	static const char *const	 kinds[DECIDER_KIND_MAX] = {
		[DECIDER_AGENT] = "agent",
		[DECIDER_WEBHOOK] = "webhook",
		[DECIDER_EXEC] = "exec",
		[DECIDER_SOCKET] = "socket",
		[DECIDER_OPERATOR] = "operator",
	};
	struct judge	*ju;

	jsonw_key(w, "deciders");
	jsonw_array(w);
	RB_FOREACH(ju, judges, &slice_running->sl_judges) {
		jsonw_object(w);
		put_str(w, "name", ju->ju_name);
		put_str(w, "kind", kinds[ju->ju_kind]);
		put_uint(w, "asked", ju->ju_asked);
		put_uint(w, "waiting", ju->ju_waiting);
		put_str(w, "breaker", breaker_word(&ju->ju_breaker));
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void
put_audit(struct jsonw *w)
{
	jsonw_key(w, "audit");
	jsonw_object(w);
	put_str(w, "file", survey.sv_path[0] != '\0' ? survey.sv_path : NULL);
	put_uint(w, "seq", survey.sv_audit.seq);
	put_uint(w, "followers", survey.sv_audit.followers);
	put_bool(w, "full", survey.sv_audit.full);
	jsonw_end(w);
}

static void
survey_progress(void)
{
	const struct msg_status_end	*ms = &survey.sv_status;
	struct jsonw			*w;

	if (!survey.sv_parent || !survey.sv_recorder)
		return;
	w = answer_ok();
	put_str(w, "version", EGRESSD_VERSION);
	put_uint(w, "generation", ms->generation);
	put_time(w, "started_at", ms->started);
	put_str(w, "configuration", survey.sv_configuration);
	jsonw_key(w, "privileged");
	jsonw_bool(w, ms->privileged);
	put_str(w, "log_level", log_level_name(ms->log_level));
	put_uint(w, "clients", client_count);
	put_processes(w);
	put_sessions(w);
	put_policies(w);
	put_deciders(w);
	put_audit(w);
	survey_finish();
}

int
policyd_parent_status_proc(struct ipc *ip, const union msg *m)
{
	const struct msg_status_proc	*ms = &m->status_proc;
	struct proc			*pr;

	if (role_name(ms->role) == NULL)
		return ipc_bad(ip, "role %u", ms->role);
	if (ms->cookie != survey.sv_cookie)
		return 0;
	if ((pr = calloc(1, sizeof(*pr))) == NULL) {
		survey_fail("out of memory");
		return 0;
	}
	pr->pr_role = ms->role;
	pr->pr_pid = ms->pid;
	strlcpy(pr->pr_session, ms->session, sizeof(pr->pr_session));
	TAILQ_INSERT_TAIL(&survey.sv_procs, pr, pr_entry);
	return 0;
}

int
policyd_parent_status_end(struct ipc *ip, const union msg *m)
{
	const struct msg_status_end	*ms = &m->status_end;

	if (log_level_name(ms->log_level) == NULL)
		return ipc_bad(ip, "log level %u", ms->log_level);
	if (ms->cookie != survey.sv_cookie)
		return 0;
	survey.sv_status = *ms;
	survey.sv_status.configuration = NULL;
	strlcpy(survey.sv_configuration, ms->configuration,
	    sizeof(survey.sv_configuration));
	survey.sv_parent = 1;
	survey_progress();
	return 0;
}

int
policyd_recorder_audit_status(struct ipc *ip, const union msg *m)
{
	const struct msg_audit_status	*ma = &m->audit_status;

	(void)ip;
	if (ma->cookie != survey.sv_cookie)
		return 0;
	survey.sv_audit = *ma;
	survey.sv_audit.path = NULL;
	strlcpy(survey.sv_path, ma->path, sizeof(survey.sv_path));
	survey.sv_recorder = 1;
	survey_progress();
	return 0;
}
