/* SPDX-License-Identifier: ISC */

/*
 * controld: sessions for sandboxes that control clients make themselves.  The
 * client passes one end of a pair, whose other end its sandbox has; it goes
 * on unread to the parent, which starts an engine for it.  The session ends
 * when that engine does, so a client that has gone leaves nothing behind.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controld.h"
#include "reasons.h"

/* Names without letters that look alike: people type them. */
void
run_make_name(const char *prefix, char *name, size_t size)
{
	static const char	 set[] = "23456789abcdefghjkmnpqrstuvwxyz";
	char			 word[9] = "";
	size_t			 i;

	do {
		for (i = 0; i < sizeof(word) - 1; i++)
			word[i] = set[arc4random_uniform(sizeof(set) - 1)];
		snprintf(name, size, "%s-%s", prefix, word);
	} while (session_find(name) != NULL);
}

/* A name that a configuration on its way declares is taken, too. */
int
run_free_name(struct request *rq, const char *name)
{
	if (session_find(name) != NULL ||
	    conf_session(conf_candidate, name) != NULL)
		return request_fail(rq, CODE_SESSION_EXISTS,
		    "there is a session %s already", name);
	return 0;
}

static int
run_name(struct request *rq, char *name, size_t size)
{
	const char	*given;

	if (request_session(rq, &given) == -1) {
		rq->rq_code = CODE_BAD_SESSION;
		return -1;
	}
	if (*given == '\0') {
		run_make_name("run", name, size);
		return 0;
	}
	strlcpy(name, given, size);
	return run_free_name(rq, given);
}

/* The policies by name, as many as have room. */
static const char *
run_policies(void)
{
	static char			 names[2 * NAME_LEN];
	static const char		 more[] = ", ...";
	const struct named_policy	*np;
	size_t				 len = 0;

	strlcpy(names, "none", sizeof(names));
	TAILQ_FOREACH(np, &conf_running->sl_policies, np_entry) {
		if (len + strlen(", ") + strlen(np->np_name) + sizeof(more) >
		    sizeof(names)) {
			strlcat(names, more, sizeof(names));
			break;
		}
		len += (size_t)snprintf(names + len, sizeof(names) - len,
		    "%s%s", len == 0 ? "" : ", ", np->np_name);
	}
	return names;
}

/* The policy that is named, or the only one. */
int
run_policy(struct request *rq, const char **policy)
{
	const struct named_policy	*np;

	np = TAILQ_FIRST(&conf_running->sl_policies);
	if (request_name(rq, "policy", policy) == -1)
		return -1;
	if (**policy == '\0') {
		if (np == NULL || TAILQ_NEXT(np, np_entry) != NULL)
			return request_fail(rq, CODE_UNKNOWN_POLICY, "policy: "
			    "wanted, as there is not exactly one; known are: "
			    "%s", run_policies());
		*policy = np->np_name;
	}
	if (conf_policy(conf_running, *policy) == NULL)
		return request_fail(rq, CODE_UNKNOWN_POLICY,
		    "there is no policy %s, known are: %s", *policy,
		    run_policies());
	return 0;
}

/* In seconds; 0 for none. */
int
run_deadline(struct request *rq, uint64_t *deadline)
{
	double	 given = request_has(rq, "deadline") ?
		    request_number(rq, "deadline") : 0;

	if (request_has(rq, "deadline") &&
	    (given < 1 || given > RUN_DEADLINE_MAX_S))
		return request_fail(rq, CODE_BAD_REQUEST, "deadline: wanted 1 "
		    "to %d seconds, not %.0f", RUN_DEADLINE_MAX_S, given);
	*deadline = given;
	return 0;
}

int
run_room(struct request *rq, const struct client *cl)
{
	uint32_t	 max = conf_running->sl_sessions_max;
	uint32_t	 share = conf_share(cl->cl_uid, max);

	if (session_count >= max)
		return request_fail(rq, CODE_TOO_MANY_SESSIONS,
		    "there are %u sessions, as many as 'limit sessions' "
		    "permits", session_count);
	if (session_count_of(cl->cl_uid) >= share)
		return request_fail(rq, CODE_TOO_MANY_SESSIONS,
		    "user %u has %u sessions, as many as one user may have "
		    "of 'limit sessions'", cl->cl_uid, share);
	return 0;
}

/* For a sandbox that the client makes. */
static int
run_start(struct client *cl, struct request *rq)
{
	struct session	*se;
	struct waiter	*wt;
	uint64_t	 deadline;
	const char	*policy;
	char		 name[SESSION_LEN + 1], names[ENVIRONMENT_LEN + 1];
	int		 fd;

	if (run_name(rq, name, sizeof(name)) == -1 ||
	    run_policy(rq, &policy) == -1 ||
	    run_deadline(rq, &deadline) == -1 ||
	    request_environment(rq, names, sizeof(names)) == -1 ||
	    run_room(rq, cl) == -1)
		return -1;
	if ((fd = passed_take(&cl->cl_passed)) == -1)
		return request_fail(rq, CODE_BAD_REQUEST,
		    "exactly one descriptor has to come with the request");
	if ((wt = waiter_new(cl, WAIT_START, &rq->rq_id)) == NULL) {
		close(fd);
		return 0;
	}
	se = session_start(SESSION_RUN, name, policy, cl);
	waiter_queue(wt, &se->se_starters);
	session_expire(se, deadline);
	ipc_send(child_parent, fd, SESSION_ASK, session_ask,
	    .number = se->se_number, .session = se->se_name,
	    .policy = se->se_policy,
	    .told = request_has(rq, "environment"), .environment = names);
	return 0;
}

/*
 * A descriptor is one end of a pair whose other end the client's own sandbox
 * has; without one the daemon is to make the sandbox.
 */
static int
op_session_start(struct client *cl, struct request *rq)
{
	static const char *const	 theirs[] = { "sandbox", "cwd",
	    "caller_cwd", "env", "mounts", "progress" };
	size_t				 i;

	if (!passed_any(&cl->cl_passed))
		return boxed_start(cl, rq);
	for (i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++)
		if (request_has(rq, theirs[i]))
			return request_fail(rq, CODE_BAD_REQUEST, "%s: not "
			    "with a descriptor: then the client makes the "
			    "sandbox", theirs[i]);
	return run_start(cl, rq);
}

static struct jsonw *
answer_session(const struct session *se)
{
	struct jsonw	*w = answer_ok();

	jsonw_key(w, "session_id");
	jsonw_str(w, se->se_name);
	jsonw_key(w, "policy");
	jsonw_str(w, se->se_policy);
	return w;
}

static void
tell_all(struct waiters *queue, const char *body, size_t len)
{
	struct waiter	*wt;

	while ((wt = TAILQ_FIRST(queue)) != NULL)
		waiter_answer(wt, body, len);
}

/* Tell whoever waits for the session's beginning or its end, and free it. */
void
run_end(struct session *se, const char *reason)
{
	struct jsonw	*w;
	const char	*body;
	size_t		 len;

	if (!TAILQ_EMPTY(&se->se_starters)) {
		pod_refuse(se);
		body = answer_end(&len);
		tell_all(&se->se_starters, body, len);
	}
	if (!TAILQ_EMPTY(&se->se_waiters)) {
		w = answer_session(se);
		jsonw_key(w, "reason");
		jsonw_str(w, *reason != '\0' ? reason : NULL);
		body = answer_end(&len);
		tell_all(&se->se_waiters, body, len);
	}
	session_free(se);
}

static void
run_failed(struct session *se, const char *code, enum session_cause cause,
    const char *why)
{
	const char	*body;
	size_t		 len;

	answer_error(code, why, strlen(why));
	body = answer_end(&len);
	tell_all(&se->se_starters, body, len);
	run_end(se, cause != CAUSE_NONE ? session_cause_name(cause) :
	    REASON_ENGINE_DIED);
}

void
run_began(struct session *se)
{
	const char	*body;
	size_t		 len;

	boxed_put(answer_session(se), se);
	body = answer_end(&len);
	tell_all(&se->se_starters, body, len);
}

/* The engine serves the sandbox, or there is none. */
int
controld_parent_session_done(struct ipc *ip, const union msg *m)
{
	const struct msg_session_done	*md = &m->session_done;
	struct session			*se = session_by_number(md->number);

	if (md->ok > 1 || md->refused > 1 || md->cause >= SESSION_CAUSE_MAX ||
	    md->cgroup > 1 ||
	    se == NULL || !se->se_starting)
		return ipc_bad(ip, "session %u done: %u, cause %u",
		    md->number, md->ok, md->cause);
	se->se_starting = 0;
	se->se_boxed.bx_cgroup = md->cgroup;
	if (!md->ok)
		run_failed(se, md->refused ? CODE_NOT_PERMITTED :
		    CODE_START_FAILED, md->cause, md->text);
	else if (se->se_over)
		run_failed(se, CODE_START_FAILED, CAUSE_NONE,
		    se->se_pod == NULL ?
		    "its engine ended at once" :
		    "it was stopped before it began");
	else if (se->se_pod != NULL)
		pod_begin(se);
	else
		run_began(se);
	return 0;
}

/*
 * policyd has lost the session's engine.  The parent's answer about a session
 * that has just been asked for may come behind this; the client hears that.
 */
int
controld_policyd_session_ended(struct ipc *ip, const union msg *m)
{
	struct session	*se = session_by_number(m->session_ended.number);

	(void)ip;
	if (se == NULL)
		return 0;
	if (se->se_starting)
		se->se_over = 1;
	else if (!pod_outlives(se, m->session_ended.reason))
		run_end(se, m->session_ended.reason);
	return 0;
}

/* Answered when the session is over; the configuration's have no end. */
static int
op_session_wait(struct client *cl, struct request *rq)
{
	struct session	*se;
	struct waiter	*wt;
	const char	*name;

	if (request_session(rq, &name) == -1)
		return -1;
	if ((se = session_find(name)) == NULL || se->se_kind == SESSION_FIXED)
		return request_fail(rq, CODE_UNKNOWN_SESSION, "there is no "
		    "session %s of a sandbox", name);
	if ((wt = waiter_new(cl, WAIT_END, &rq->rq_id)) != NULL)
		waiter_queue(wt, &se->se_waiters);
	return 0;
}

static const struct field start_fields[] = {
	{ "session_id", FIELD_STRING, MAY },
	{ "policy", FIELD_STRING, MAY },
	{ "environment", FIELD_STRINGS, MAY },
	{ "deadline", FIELD_INTEGER, MAY },
	{ "sandbox", FIELD_STRING, MAY },
	{ "cwd", FIELD_STRING, MAY },
	{ "caller_cwd", FIELD_STRING, MAY },
	{ "env", FIELD_STRING_MAP, MAY },
	{ "progress", FIELD_BOOLEAN, MAY },
	{ "mounts", FIELD_OBJECTS, MAY },
	{ NULL, 0, 0 }
};
static const struct field wait_fields[] = {
	{ "session_id", FIELD_STRING, MUST },
	{ NULL, 0, 0 }
};

const struct op run_ops[] = {
	{ "session.start", OP_PASSED, op_session_start, start_fields },
	{ "session.wait", OP_READ_ONLY, op_session_wait, wait_fields },
	{ NULL, 0, NULL, NULL }
};
