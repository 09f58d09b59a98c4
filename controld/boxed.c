/* SPDX-License-Identifier: ISC */

/*
 * controld: sessions whose sandbox the daemon makes.  Whoever started one owns
 * it, by uid: only its owner and root may attach to it or stop it.  A session
 * that was given an id outlives the connection that asked for it, one without
 * ends with it.
 *
 * What the sandbox is made of, and who may have it, is the parent's business;
 * here are its names.  A client that attaches leaves us: its connection goes to
 * the sandbox, and we read nothing of what they say to each other.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "controld.h"
#include "name.h"

/* What a request comes down to. */
struct wish {
	const struct named_sandbox *wi_sandbox;	/* NULL: the built-in one */
	const char		*wi_policy;
	const char		*wi_cwd;	/* or "" */
	uint64_t		 wi_deadline;	/* s; 0: none */
	char			 wi_variables[VARIABLES_LEN];
	size_t			 wi_variableslen;
	char			 wi_mounts[MOUNTS_LEN];
	size_t			 wi_mountslen;
};

static const char *
wish_name(const struct wish *wi)
{
	return wi->wi_sandbox != NULL ? wi->wi_sandbox->nb_name : "";
}

static int
wish_is_pod(const struct wish *wi)
{
	return wi->wi_sandbox != NULL &&
	    wi->wi_sandbox->nb_conf.kind == SANDBOX_KUBERNETES;
}

/* ---- a request --------------------------------------------------------- */

/* The one that is named, else the default, else what is built in. */
static int
take_sandbox(struct request *rq, struct wish *wi)
{
	const char	*name;

	if (request_name(rq, "sandbox", &name) == -1)
		return -1;
	wi->wi_sandbox = *name != '\0' ? conf_sandbox(conf_running, name) :
	    conf_default_sandbox(conf_running);
	if (*name != '\0' && wi->wi_sandbox == NULL)
		return request_fail(rq, CODE_UNKNOWN_SANDBOX,
		    "there is no sandbox %s", name);
	return 0;
}

static int
take_policy(struct request *rq, struct wish *wi)
{
	if (wi->wi_sandbox == NULL || request_has(rq, "policy"))
		return run_policy(rq, &wi->wi_policy);
	wi->wi_policy = wi->wi_sandbox->nb_policy;
	return 0;
}

static int
check_directory(struct request *rq, const char *field)
{
	const char	*path = request_text(rq, field);

	if (strlen(path) >= PATH_LEN)
		return request_fail(rq, CODE_BAD_REQUEST, "%s: longer than %d "
		    "bytes", field, PATH_LEN - 1);
	if (request_has(rq, field) && *path != '/')
		return request_fail(rq, CODE_BAD_REQUEST, "%s: wanted an "
		    "absolute path, not \"%.64s\"", field, path);
	return 0;
}

/*
 * Where commands run: as the request says, else the block; else, on this
 * machine's files, where the client stands.
 */
static int
take_cwd(struct request *rq, struct wish *wi)
{
	const struct named_sandbox	*nb = wi->wi_sandbox;

	if (check_directory(rq, "cwd") == -1 ||
	    check_directory(rq, "caller_cwd") == -1)
		return -1;
	wi->wi_cwd = request_text(rq, "cwd");
	if (!request_has(rq, "cwd") && (nb == NULL ||
	    (nb->nb_cwd[0] == '\0' && nb->nb_conf.kind == SANDBOX_LOCAL)))
		wi->wi_cwd = request_text(rq, "caller_cwd");
	return 0;
}

/* A block's own deadline is the most that a request can have. */
static int
take_deadline(struct request *rq, struct wish *wi)
{
	uint64_t	 most = 0;

	if (run_deadline(rq, &wi->wi_deadline) == -1)
		return -1;
	if (wi->wi_sandbox != NULL)
		most = wi->wi_sandbox->nb_conf.deadline_ms / 1000;
	if (most != 0 && wi->wi_deadline > most)
		return request_fail(rq, CODE_BAD_REQUEST, "deadline: sandbox "
		    "%s has %llu seconds at most", wish_name(wi),
		    (unsigned long long)most);
	if (wi->wi_deadline == 0)
		wi->wi_deadline = most;
	return 0;
}

static int
take_variable(struct request *rq, struct wish *wi, const cJSON *item)
{
	char		*to = wi->wi_variables + wi->wi_variableslen;
	size_t		 room = sizeof(wi->wi_variables) - wi->wi_variableslen;
	const char	*why;
	int		 n;

	if ((why = name_variable_error(item->string)) != NULL)
		return request_fail(rq, CODE_BAD_REQUEST, "env: \"%.64s\": %s",
		    item->string, why);
	n = snprintf(to, room, "%s=%s", item->string, item->valuestring);
	if (n < 0 || (size_t)n >= room)
		return request_fail(rq, CODE_BAD_REQUEST, "env: more than %zu "
		    "bytes in all", sizeof(wi->wi_variables));
	wi->wi_variableslen += n + 1;
	return 0;
}

static int
take_env(struct request *rq, struct wish *wi)
{
	const cJSON	*item;

	if (request_has(rq, "environment"))
		return request_fail(rq, CODE_BAD_REQUEST, "environment: only "
		    "with a descriptor; variables are \"env\"");
	wi->wi_variableslen = 0;
	cJSON_ArrayForEach(item, request_field(rq, "env"))
		if (take_variable(rq, wi, item) == -1)
			return -1;
	return 0;
}

static int
take_mounts(struct request *rq, struct wish *wi)
{
	const struct named_sandbox	*nb = wi->wi_sandbox;

	if (mounting_take(rq, wi->wi_mounts, sizeof(wi->wi_mounts),
	    &wi->wi_mountslen) == -1)
		return -1;
	return wi->wi_mountslen == 0 ? 0 : mounting_check(rq, nb != NULL ?
	    nb->nb_conf.kind : SANDBOX_LOCAL, nb != NULL &&
	    nb->nb_conf.mountable);
}

static int
take_wish(struct request *rq, struct wish *wi)
{
	if (take_sandbox(rq, wi) == -1 || take_policy(rq, wi) == -1 ||
	    take_cwd(rq, wi) == -1 || take_deadline(rq, wi) == -1 ||
	    take_mounts(rq, wi) == -1)
		return -1;
	return take_env(rq, wi);
}

/* ---- start ------------------------------------------------------------- */

/* Whether a session that there is already is the one that is meant. */
static int
same_session(struct request *rq, const struct session *se,
    const struct wish *wi, const struct client *cl)
{
	if (se->se_kind == SESSION_SANDBOX && se->se_uid != cl->cl_uid)
		return request_fail(rq, CODE_SESSION_EXISTS, "session %s: it "
		    "is another user's", se->se_name);
	if (se->se_kind != SESSION_SANDBOX)
		return request_fail(rq, CODE_SESSION_EXISTS, "session %s: the "
		    "daemon has not made its sandbox", se->se_name);
	if (strcmp(se->se_boxed.bx_name, wish_name(wi)) != 0)
		return request_fail(rq, CODE_SESSION_EXISTS, "session %s: its "
		    "sandbox is %s", se->se_name,
		    se->se_boxed.bx_name[0] != '\0' ? se->se_boxed.bx_name :
		    "the built-in one");
	if (strcmp(se->se_policy, wi->wi_policy) != 0)
		return request_fail(rq, CODE_SESSION_EXISTS, "session %s: its "
		    "policy is %s", se->se_name, se->se_policy);
	if (se->se_stopped || se->se_over)
		return request_fail(rq, CODE_SESSION_EXISTS, "session %s: it "
		    "is ending", se->se_name);
	return 0;
}

static void
boxed_describe(struct boxed *bx, const struct wish *wi)
{
	const struct named_sandbox	*nb = wi->wi_sandbox;

	strlcpy(bx->bx_name, wish_name(wi), sizeof(bx->bx_name));
	bx->bx_kind = nb != NULL ? nb->nb_conf.kind : SANDBOX_LOCAL;
	strlcpy(bx->bx_cwd, *wi->wi_cwd != '\0' ? wi->wi_cwd :
	    nb != NULL ? nb->nb_cwd : "", sizeof(bx->bx_cwd));
	if (nb == NULL)
		return;
	strlcpy(bx->bx_user, nb->nb_user, sizeof(bx->bx_user));
	bx->bx_conf = nb->nb_conf;
}

/* What its starter is told, beside its name and policy. */
void
boxed_put(struct jsonw *w, const struct session *se)
{
	const struct boxed	*bx = &se->se_boxed;

	if (se->se_kind != SESSION_SANDBOX)
		return;
	put_str(w, "sandbox", bx->bx_name[0] != '\0' ? bx->bx_name : NULL);
	put_str(w, "backend", sandbox_kind_name(bx->bx_kind));
	put_str(w, "cwd", bx->bx_cwd[0] != '\0' ? bx->bx_cwd : NULL);
	pod_put(w, se);
}

/* Who waits for its beginning, and wants to hear how it goes. */
static struct waiter *
boxed_wait(struct client *cl, const struct request *rq)
{
	struct waiter	*wt;

	if ((wt = waiter_new(cl, WAIT_START, &rq->rq_id)) != NULL)
		wt->wt_progress = request_is(rq, "progress");
	return wt;
}

/* Attach to what is there: at once, or when it has begun. */
static int
boxed_again(struct client *cl, struct request *rq, struct session *se)
{
	struct jsonw	*w;
	struct waiter	*wt;

	if (se->se_starting || pod_is_starting(se)) {
		if ((wt = boxed_wait(cl, rq)) != NULL)
			waiter_queue(wt, &se->se_starters);
		return 0;
	}
	link_again(se);
	w = answer_ok();
	put_str(w, "session_id", se->se_name);
	put_str(w, "policy", se->se_policy);
	boxed_put(w, se);
	put_bool(w, "existed", 1);
	client_answer(cl, rq);
	return 0;
}

static int
boxed_new(struct client *cl, struct request *rq, const char *name,
    const struct wish *wi)
{
	struct session	*se;
	struct waiter	*wt;
	char		 made[SESSION_LEN + 1];
	int		 fd;

	if (run_room(rq, cl) == -1)
		return -1;
	if (wish_is_pod(wi) && channel_k8sd == NULL)
		return request_fail(rq, CODE_NOT_SUPPORTED,
		    "there is no k8sd, and so are no pods");
	if ((fd = dup(cl->cl_fd)) == -1)
		return request_fail(rq, CODE_BUSY, "no free descriptor");
	if ((wt = boxed_wait(cl, rq)) == NULL) {
		close(fd);
		return 0;
	}
	run_make_name("s", made, sizeof(made));
	se = session_start(SESSION_SANDBOX, *name != '\0' ? name : made,
	    wi->wi_policy, cl);
	se->se_owner = *name != '\0' ? NULL : cl;
	boxed_describe(&se->se_boxed, wi);
	if (wish_is_pod(wi))
		pod_new(se, *name != '\0', wi->wi_cwd, wi->wi_deadline,
		    wi->wi_variables, wi->wi_variableslen);
	waiter_queue(wt, &se->se_starters);
	session_expire(se, wi->wi_deadline);
	ipc_send(child_parent, fd, SANDBOX_ASK, sandbox_ask,
	    .number = se->se_number, .session = se->se_name,
	    .policy = se->se_policy, .sandbox = se->se_boxed.bx_name,
	    .cwd = wi->wi_cwd,
	    .variables = { wi->wi_variables, wi->wi_variableslen },
	    .mounts = { wi->wi_mounts, wi->wi_mountslen });
	return 0;
}

int
boxed_start(struct client *cl, struct request *rq)
{
	struct wish	 wi;
	struct session	*se;
	const char	*name;

	if (request_session(rq, &name) == -1) {
		rq->rq_code = CODE_BAD_SESSION;
		return -1;
	}
	if (take_wish(rq, &wi) == -1)
		return -1;
	if (*name == '\0')
		return boxed_new(cl, rq, name, &wi);
	if ((se = session_find(name)) == NULL)
		return run_free_name(rq, name) == -1 ? -1 :
		    boxed_new(cl, rq, name, &wi);
	return same_session(rq, se, &wi, cl) == -1 ? -1 :
	    boxed_again(cl, rq, se);
}

/* ---- list and show ------------------------------------------------------ */

static const char *
boxed_state(const struct session *se)
{
	return se->se_stopped || se->se_over ? "ending" :
	    se->se_starting || pod_is_starting(se) ? "starting" : "running";
}

static void
put_one(struct jsonw *w, const struct session *se)
{
	put_str(w, "session_id", se->se_name);
	put_str(w, "kind", session_kind_name(se));
	put_str(w, "policy", se->se_policy);
	put_str(w, "state", boxed_state(se));
	put_time(w, "started", se->se_began);
	put_time(w, "deadline", se->se_ends);
	if (se->se_kind == SESSION_FIXED)
		return;
	put_uint(w, "owner", se->se_uid);
	boxed_put(w, se);
	if (se->se_kind == SESSION_SANDBOX)
		put_uint(w, "attached", se->se_attached);
}

/* Those of a sandbox, or with NULL all. */
void
boxed_put_sessions(struct jsonw *w, const char *sandbox)
{
	struct session	*se;

	jsonw_key(w, "sessions");
	jsonw_array(w);
	RB_FOREACH(se, sessions, &sessions) {
		if (sandbox != NULL && (se->se_kind != SESSION_SANDBOX ||
		    strcmp(se->se_boxed.bx_name, sandbox) != 0))
			continue;
		jsonw_object(w);
		put_one(w, se);
		jsonw_end(w);
	}
	jsonw_end(w);
}

/* With a sandbox whose sandboxes are pods, what its cluster has as well. */
static int
op_session_list(struct client *cl, struct request *rq)
{
	const struct named_sandbox	*nb;
	const char			*sandbox;

	if (request_name(rq, "sandbox", &sandbox) == -1)
		return -1;
	if (*sandbox != '\0') {
		nb = conf_sandbox(conf_running, sandbox);
		if (nb == NULL)
			return request_fail(rq, CODE_UNKNOWN_SANDBOX,
			    "there is no sandbox %s", sandbox);
		if (nb->nb_conf.kind == SANDBOX_KUBERNETES)
			return pods_list(cl, rq, sandbox, 1);
	}
	boxed_put_sessions(answer_ok(), *sandbox != '\0' ? sandbox : NULL);
	client_answer(cl, rq);
	return 0;
}

/* 0 is no limit, and not said. */
static void
put_limit(struct jsonw *w, const char *name, uint64_t value)
{
	if (value != 0)
		put_uint(w, name, value);
}

static void
put_limits(struct jsonw *w, const struct session *se)
{
	const struct boxed		*bx = &se->se_boxed;
	const struct msg_conf_sandbox	*mc = &bx->bx_conf;

	put_str(w, "user", bx->bx_user[0] != '\0' ? bx->bx_user : NULL);
	put_str(w, "limited_by", bx->bx_cgroup && (mc->memory != 0 ||
	    mc->processes != 0) ? "cgroup" : mc->memory != 0 ||
	    mc->processes != 0 || mc->file != 0 || mc->cpu_ms != 0 ?
	    "rlimit" : NULL);
	jsonw_key(w, "limits");
	jsonw_object(w);
	put_limit(w, "size", mc->size);
	put_limit(w, "memory", mc->memory);
	put_limit(w, "processes", mc->processes);
	put_limit(w, "file", mc->file);
	put_limit(w, "cpu_ms", mc->cpu_ms);
	jsonw_end(w);
	put_bool(w, "gated", bx->bx_kind == SANDBOX_LOCAL ||
	    bx->bx_kind == SANDBOX_VIRTUAL || (se->se_pod != NULL &&
	    se->se_pod->po_gated));
	link_put(w, se);
	put_bool(w, "mountable", mc->mountable);
}

/* The session of a request that must name one; NULL after saying so. */
static struct session *
find_session(struct request *rq)
{
	struct session	*se;
	const char	*name;

	if (request_session(rq, &name) == -1)
		return NULL;
	if ((se = session_find(name)) == NULL)
		request_fail(rq, CODE_UNKNOWN_SESSION,
		    "there is no session %s", name);
	return se;
}

static int
op_session_show(struct client *cl, struct request *rq)
{
	const struct session	*se;
	struct jsonw		*w;

	if ((se = find_session(rq)) == NULL)
		return -1;
	w = answer_ok();
	put_one(w, se);
	if (se->se_kind == SESSION_SANDBOX)
		put_limits(w, se);
	client_answer(cl, rq);
	return 0;
}

/* ---- stop and attach ---------------------------------------------------- */

int
boxed_check_owner(struct request *rq, const struct session *se,
    const struct client *cl)
{
	if (se->se_kind == SESSION_FIXED)
		return request_fail(rq, CODE_NOT_PERMITTED, "session %s is the "
		    "configuration's", se->se_name);
	if (cl->cl_uid != 0 && cl->cl_uid != se->se_uid)
		return request_fail(rq, CODE_NOT_PERMITTED,
		    "session %s is another user's", se->se_name);
	return 0;
}

/* A session whose sandbox is ours, serves and is the client's to use. */
struct session *
boxed_owned(struct client *cl, struct request *rq)
{
	struct session	*se;

	if ((se = find_session(rq)) == NULL ||
	    boxed_check_owner(rq, se, cl) == -1)
		return NULL;
	if (se->se_kind != SESSION_SANDBOX) {
		request_fail(rq, CODE_NOT_SUPPORTED, "session %s: the daemon "
		    "has not made its sandbox", se->se_name);
		return NULL;
	}
	if (se->se_starting || se->se_stopped || pod_is_starting(se)) {
		request_fail(rq, CODE_BUSY, "session %s is %s", se->se_name,
		    boxed_state(se));
		return NULL;
	}
	return se;
}

/* Answered when it is over, as session.wait is. */
int
boxed_stop(struct client *cl, struct request *rq, struct session *se)
{
	struct waiter	*wt;

	if ((wt = waiter_new(cl, WAIT_END, &rq->rq_id)) == NULL)
		return 0;
	waiter_queue(wt, &se->se_waiters);
	session_stop(se, CAUSE_REQUEST);
	return 0;
}

static int
op_session_stop(struct client *cl, struct request *rq)
{
	struct session	*se;

	if ((se = find_session(rq)) == NULL ||
	    boxed_check_owner(rq, se, cl) == -1)
		return -1;
	if (request_has(rq, "delete")) {
		if (se->se_pod == NULL)
			return request_fail(rq, CODE_NOT_SUPPORTED, "delete: "
			    "session %s has no pod", se->se_name);
		se->se_pod->po_fate = request_is(rq, "delete") ?
		    POD_FATE_DELETE : POD_FATE_KEEP;
	}
	return boxed_stop(cl, rq, se);
}

/*
 * The last request of a connection: behind the answer it carries frames, and
 * none may come before, as they would be ours.
 */
static int
op_session_attach(struct client *cl, struct request *rq)
{
	struct session	*se;
	struct jsonw	*w;

	if ((se = boxed_owned(cl, rq)) == NULL)
		return -1;
	if (se->se_owner == cl)
		return request_fail(rq, CODE_BAD_REQUEST, "session %s ends "
		    "with this connection: attach by another", se->se_name);
	if (cl->cl_nwaiters > 0 || client_said_more(cl))
		return request_fail(rq, CODE_BAD_REQUEST, "session.attach: it "
		    "must be alone, and what follows waits for its answer");
	se->se_attached++;
	link_again(se);
	w = answer_ok();
	put_str(w, "session_id", se->se_name);
	client_answer(cl, rq);
	client_attach(cl, se->se_number);
	return 0;
}

static const struct field one_fields[] = {
	{ "session_id", FIELD_STRING, MUST },
	{ NULL, 0, 0 }
};
static const struct field list_fields[] = {
	{ "sandbox", FIELD_STRING, MAY },
	{ NULL, 0, 0 }
};
static const struct field stop_fields[] = {
	{ "session_id", FIELD_STRING, MUST },
	{ "delete", FIELD_BOOLEAN, MAY },
	{ NULL, 0, 0 }
};

const struct op boxed_ops[] = {
	{ "session.list", OP_READ_ONLY, op_session_list, list_fields },
	{ "session.show", OP_READ_ONLY, op_session_show, one_fields },
	{ "session.stop", 0, op_session_stop, stop_fields },
	{ "session.attach", 0, op_session_attach, one_fields },
	{ NULL, 0, NULL, NULL }
};
