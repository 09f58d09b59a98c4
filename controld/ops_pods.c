/* SPDX-License-Identifier: ISC */

/*
 * controld: what control clients ask about pods and clusters.  k8sd answers,
 * with any number of items before; a question whose client has gone is still
 * answered, and counts until then.  What was started here is its owner's and
 * root's; a sandbox that is not for everybody is for root and for who has a
 * session of it; of the rest k8sd hears for whom it is asked.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controld.h"

#define ASKS_MAX	32		/* under way; logs are apart */
#define LOGS_MAX	32
#define ITEMS_LEN	(700 * 1024)	/* of an answer: fits in ANSWER_LEN */
#define ITEM_COST	128		/* names of members, numbers */
#define AGE_S		(15 * 60)	/* of what is reaped */
#define AGE_MAX_S	(366 * 24 * 60 * 60)
#define TAIL_MAX	1000000		/* lines */

struct item {
	TAILQ_ENTRY(item)	 it_entry;
	char			*it_session;
	char			*it_pod;
	char			*it_text;
	uint32_t		 it_owner;
	enum pod_state		 it_state;
	uint64_t		 it_age_s;
};
TAILQ_HEAD(items, item);

/* A question that k8sd has not answered yet; the ticket is a waiter's. */
struct ask {
	TAILQ_ENTRY(ask)	 as_entry;
	uint32_t		 as_ticket;
	uid_t			 as_uid;	/* who has asked */
	int			 as_logs;
	enum pod_ask		 as_what;
	char			*as_sessions;	/* of this sandbox, too */
	struct items		 as_items;
	size_t			 as_len;
	int			 as_truncated;
};

static TAILQ_HEAD(, ask) asks = TAILQ_HEAD_INITIALIZER(asks);
static unsigned int	 nasks, nlogs;

static struct ask *
ask_find(uint32_t ticket)
{
	struct ask	*as;

	TAILQ_FOREACH(as, &asks, as_entry)
		if (as->as_ticket == ticket)
			return as;
	return NULL;
}

static void
ask_free(struct ask *as)
{
	struct item	*it;

	TAILQ_REMOVE(&asks, as, as_entry);
	*(as->as_logs ? &nlogs : &nasks) -= 1;
	while ((it = TAILQ_FIRST(&as->as_items)) != NULL) {
		TAILQ_REMOVE(&as->as_items, it, it_entry);
		free(it->it_session);
		free(it->it_pod);
		free(it->it_text);
		free(it);
	}
	free(as->as_sessions);
	free(as);
}

static int
ask_may(const struct client *cl, int logs)
{
	uint32_t		 max = logs ? LOGS_MAX : ASKS_MAX, n = 0;
	const struct ask	*as;

	TAILQ_FOREACH(as, &asks, as_entry)
		n += as->as_logs == logs && as->as_uid == cl->cl_uid;
	return (logs ? nlogs : nasks) < max &&
	    n < conf_share(cl->cl_uid, max);
}

/* NULL: the request says why, or the client has gone; *rv tells which. */
static struct ask *
ask_new(struct client *cl, struct request *rq, int logs, int *rv)
{
	struct waiter	*wt;
	struct ask	*as;

	*rv = -1;
	if (channel_k8sd == NULL)
		request_fail(rq, CODE_NOT_SUPPORTED, "there is no k8sd");
	else if (!ask_may(cl, logs))
		request_fail(rq, CODE_BUSY, "%u questions about pods are "
		    "under way", logs ? nlogs : nasks);
	else {
		*rv = 0;
		if ((wt = waiter_new(cl, WAIT_POD, &rq->rq_id)) == NULL)
			return NULL;
		if ((as = calloc(1, sizeof(*as))) == NULL)
			fatal("%s", __func__);
		as->as_ticket = wt->wt_cookie;
		as->as_uid = cl->cl_uid;
		as->as_logs = logs;
		TAILQ_INIT(&as->as_items);
		TAILQ_INSERT_TAIL(&asks, as, as_entry);
		*(logs ? &nlogs : &nasks) += 1;
		return as;
	}
	return NULL;
}

/* ---- who may ------------------------------------------------------------ */

static int
is_operator(const struct client *cl)
{
	return conf_operator(cl->cl_uid);
}

static uint32_t
asks_for(const struct client *cl)
{
	return is_operator(cl) ? UINT32_MAX : cl->cl_uid;
}

static int
has_session(const struct client *cl, const char *sandbox)
{
	struct session	*se;

	RB_FOREACH(se, sessions, &sessions)
		if (se->se_pod != NULL && se->se_uid == cl->cl_uid &&
		    strcmp(se->se_boxed.bx_name, sandbox) == 0)
			return 1;
	return 0;
}

/* The sandbox that the request names, a pod that its client may ask about. */
static const struct named_sandbox *
take_block(const struct client *cl, struct request *rq, const char *name)
{
	const struct named_sandbox	*nb = conf_sandbox(conf_running, name);

	if (nb == NULL)
		request_fail(rq, CODE_UNKNOWN_SANDBOX, "there is no sandbox "
		    "%s", name);
	else if (nb->nb_conf.kind != SANDBOX_KUBERNETES)
		request_fail(rq, CODE_NOT_SUPPORTED, "sandbox %s: it is %s, "
		    "and has no pods", name,
		    sandbox_kind_name(nb->nb_conf.kind));
	else if (nb->nb_conf.restricted && !is_operator(cl) &&
	    !has_session(cl, name))
		request_fail(rq, CODE_NOT_PERMITTED, "sandbox %s is not for "
		    "everybody, and user %u has no session of it", name,
		    cl->cl_uid);
	else
		return nb;
	return NULL;
}

/*
 * The sandbox of the session that the request names: of one that runs here its
 * own, of another the one that is named, as only its cluster knows it.
 */
static int
take_session(const struct client *cl, struct request *rq, const char **session,
    const char **sandbox)
{
	const struct session	*se;

	if (request_session(rq, session) == -1 ||
	    request_name(rq, "sandbox", sandbox) == -1)
		return -1;
	if ((se = session_find(*session)) != NULL) {
		if (boxed_check_owner(rq, se, cl) == -1)
			return -1;
		if (se->se_pod == NULL)
			return request_fail(rq, CODE_NOT_SUPPORTED,
			    "session %s has no pod", *session);
		*sandbox = se->se_boxed.bx_name;
		return 0;
	}
	if (**sandbox == '\0')
		return request_fail(rq, CODE_UNKNOWN_SESSION, "there is no "
		    "session %s here; with \"sandbox\" its cluster is asked",
		    *session);
	return take_block(cl, rq, *sandbox) == NULL ? -1 : 0;
}

/* ---- operations --------------------------------------------------------- */

/* Of the pods of a sandbox, and with sessions of its sessions here as well. */
int
pods_list(struct client *cl, struct request *rq, const char *sandbox,
    int with_sessions)
{
	struct ask	*as;
	int		 rv;

	if (take_block(cl, rq, sandbox) == NULL)
		return -1;
	if ((as = ask_new(cl, rq, 0, &rv)) == NULL)
		return rv;
	as->as_what = POD_ASK_LIST;
	as->as_sessions = with_sessions ? pod_copy(sandbox) : NULL;
	ipc_send(channel_k8sd, -1, POD_ASK, pod_ask, .ticket = as->as_ticket,
	    .what = POD_ASK_LIST, .sandbox = sandbox, .uid = UINT32_MAX);
	return 0;
}

static int
op_pods_list(struct client *cl, struct request *rq)
{
	const char	*sandbox;

	if (request_name(rq, "sandbox", &sandbox) == -1)
		return -1;
	return pods_list(cl, rq, sandbox, 0);
}

static int
take_number(struct request *rq, const char *field, double least, double most,
    double preset, uint64_t *value)
{
	double	 given = request_has(rq, field) ? request_number(rq, field) :
		    preset;

	if (given < least || given > most)
		return request_fail(rq, CODE_BAD_REQUEST, "%s: wanted %.0f to "
		    "%.0f, not %.0f", field, least, most, given);
	*value = given;
	return 0;
}

/* k8sd looks at its form, which is Kubernetes' own. */
static int
check_selector(struct request *rq)
{
	if (strlen(request_text(rq, "selector")) < PATH_LEN)
		return 0;
	return request_fail(rq, CODE_BAD_REQUEST, "selector: longer than %d "
	    "bytes", PATH_LEN - 1);
}

static int
op_pods_reap(struct client *cl, struct request *rq)
{
	struct ask	*as;
	const char	*sandbox;
	uint64_t	 age;
	int		 rv;

	if (request_name(rq, "sandbox", &sandbox) == -1 ||
	    take_block(cl, rq, sandbox) == NULL ||
	    take_number(rq, "age", 0, AGE_MAX_S, AGE_S, &age) == -1 ||
	    check_selector(rq) == -1)
		return -1;
	if ((as = ask_new(cl, rq, 0, &rv)) == NULL)
		return rv;
	as->as_what = POD_ASK_REAP;
	ipc_send(channel_k8sd, -1, POD_ASK, pod_ask, .ticket = as->as_ticket,
	    .what = POD_ASK_REAP, .sandbox = sandbox, .uid = asks_for(cl),
	    .age_s = age, .dry_run = request_is(rq, "dry_run"),
	    .selector = request_text(rq, "selector"));
	return 0;
}

static int
ask_about_session(struct client *cl, struct request *rq, enum pod_ask what)
{
	struct ask	*as;
	const char	*session, *sandbox;
	int		 rv;

	if (take_session(cl, rq, &session, &sandbox) == -1)
		return -1;
	if ((as = ask_new(cl, rq, 0, &rv)) == NULL)
		return rv;
	as->as_what = what;
	ipc_send(channel_k8sd, -1, POD_ASK, pod_ask, .ticket = as->as_ticket,
	    .what = what, .sandbox = sandbox, .session = session,
	    .uid = asks_for(cl));
	return 0;
}

static int
op_session_heartbeat(struct client *cl, struct request *rq)
{
	return ask_about_session(cl, rq, POD_ASK_HEARTBEAT);
}

/* What runs here is stopped, so that nobody goes on with half of it. */
static int
op_pods_terminate(struct client *cl, struct request *rq)
{
	struct session	*se;
	const char	*session, *sandbox;

	if (take_session(cl, rq, &session, &sandbox) == -1)
		return -1;
	if ((se = session_find(session)) == NULL)
		return ask_about_session(cl, rq, POD_ASK_TERMINATE);
	se->se_pod->po_fate = POD_FATE_DELETE;
	return boxed_stop(cl, rq, se);
}

/* Of a sandbox, or of a cluster, which k8sd alone knows by name. */
static int
op_cluster_check(struct client *cl, struct request *rq)
{
	struct ask	*as;
	const char	*name;
	int		 rv;

	if (request_name(rq, "name", &name) == -1)
		return -1;
	if (conf_sandbox(conf_running, name) != NULL) {
		if (take_block(cl, rq, name) == NULL)
			return -1;
	} else if (!is_operator(cl))
		return request_fail(rq, CODE_NOT_PERMITTED, "there is no "
		    "sandbox %s, and only root asks about clusters", name);
	if ((as = ask_new(cl, rq, 0, &rv)) == NULL)
		return rv;
	as->as_what = POD_ASK_CHECK;
	ipc_send(channel_k8sd, -1, POD_ASK, pod_ask, .ticket = as->as_ticket,
	    .what = POD_ASK_CHECK, .sandbox = name, .uid = asks_for(cl));
	return 0;
}

static int
take_container(struct request *rq, int *container)
{
	const char	*word = request_text(rq, "container");
	char		 list[64];

	*container = POD_WORKSPACE;
	if (!request_has(rq, "container") ||
	    (*container = pod_container_find(word)) != -1)
		return 0;
	words_join(pod_container_words, list, sizeof(list));
	return request_fail(rq, CODE_BAD_REQUEST, "container: wanted %s, not "
	    "\"%.64s\"", list, word);
}

/* The log goes to the descriptor that came along, from k8sd itself. */
static int
op_session_logs(struct client *cl, struct request *rq)
{
	struct ask	*as;
	const char	*session, *sandbox;
	uint64_t	 tail;
	int		 container, fd, rv;

	if (take_session(cl, rq, &session, &sandbox) == -1 ||
	    take_container(rq, &container) == -1 ||
	    take_number(rq, "tail", 0, TAIL_MAX, 0, &tail) == -1)
		return -1;
	if (session_find(session) == NULL && !is_operator(cl))
		return request_fail(rq, CODE_NOT_PERMITTED, "session %s does "
		    "not run here: its log is root's to read", session);
	if ((fd = passed_take(&cl->cl_passed)) == -1)
		return request_fail(rq, CODE_BAD_REQUEST,
		    "exactly one descriptor has to come with the request");
	if ((as = ask_new(cl, rq, 1, &rv)) == NULL) {
		close(fd);
		return rv;
	}
	ipc_send(channel_k8sd, fd, POD_LOGS, pod_logs,
	    .ticket = as->as_ticket, .sandbox = sandbox, .session = session,
	    .container = container, .follow = request_is(rq, "follow"),
	    .tail = tail);
	return 0;
}

static const struct field sandbox_fields[] = {
	{ "sandbox", FIELD_STRING, MUST },
	{ NULL, 0, 0 }
};
static const struct field reap_fields[] = {
	{ "sandbox", FIELD_STRING, MUST },
	{ "age", FIELD_INTEGER, MAY },
	{ "selector", FIELD_STRING, MAY },
	{ "dry_run", FIELD_BOOLEAN, MAY },
	{ NULL, 0, 0 }
};
static const struct field session_fields[] = {
	{ "session_id", FIELD_STRING, MUST },
	{ "sandbox", FIELD_STRING, MAY },
	{ NULL, 0, 0 }
};
static const struct field check_fields[] = {
	{ "name", FIELD_STRING, MUST },
	{ NULL, 0, 0 }
};
static const struct field logs_fields[] = {
	{ "session_id", FIELD_STRING, MUST },
	{ "sandbox", FIELD_STRING, MAY },
	{ "container", FIELD_STRING, MAY },
	{ "follow", FIELD_BOOLEAN, MAY },
	{ "tail", FIELD_INTEGER, MAY },
	{ NULL, 0, 0 }
};

const struct op pods_ops[] = {
	{ "pods.list", 0, op_pods_list, sandbox_fields },
	{ "pods.reap", 0, op_pods_reap, reap_fields },
	{ "pods.terminate", 0, op_pods_terminate, session_fields },
	{ "session.heartbeat", 0, op_session_heartbeat, session_fields },
	{ "session.logs", OP_PASSED, op_session_logs, logs_fields },
	{ "cluster.check", 0, op_cluster_check, check_fields },
	{ NULL, 0, NULL, NULL }
};

/* ---- answers ------------------------------------------------------------ */

int
controld_k8sd_pod_item(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_item	*mi = &m->pod_item;
	struct ask			*as = ask_find(mi->ticket);
	struct item			*it;

	if (as == NULL || as->as_logs || mi->state >= POD_STATE_MAX)
		return ipc_bad(ip, "item of ticket %u, state %u", mi->ticket,
		    mi->state);
	if (waiter_find(mi->ticket, WAIT_POD) == NULL)
		return 0;
	as->as_len += strlen(mi->session) + strlen(mi->pod) +
	    strlen(mi->text) + ITEM_COST;
	if (as->as_len > ITEMS_LEN) {
		as->as_truncated = 1;
		return 0;
	}
	if ((it = calloc(1, sizeof(*it))) == NULL)
		fatal("%s", __func__);
	it->it_session = pod_copy(mi->session);
	it->it_pod = pod_copy(mi->pod);
	it->it_text = pod_copy(mi->text);
	it->it_owner = mi->owner;
	it->it_state = mi->state;
	it->it_age_s = mi->age_s;
	TAILQ_INSERT_TAIL(&as->as_items, it, it_entry);
	return 0;
}

static void
put_item(struct jsonw *w, const struct ask *as, const struct item *it)
{
	int	 check = as->as_what == POD_ASK_CHECK;

	jsonw_object(w);
	if (!check)
		put_str(w, "session_id", it->it_session);
	put_str(w, check ? "what" : "pod", it->it_pod);
	put_str(w, "state", pod_state_name(it->it_state));
	if (!check) {
		if (it->it_owner != UINT32_MAX)
			put_uint(w, "owner", it->it_owner);
		put_uint(w, "age", it->it_age_s);
	}
	put_str(w, "text", *it->it_text != '\0' ? it->it_text : NULL);
	jsonw_end(w);
}

static void
answer_items(const struct ask *as)
{
	struct jsonw		*w = answer_ok();
	const struct item	*it;

	if (as->as_logs)
		return;
	if (as->as_sessions != NULL)
		boxed_put_sessions(w, as->as_sessions);
	jsonw_key(w, as->as_what == POD_ASK_CHECK ? "checks" : "pods");
	jsonw_array(w);
	TAILQ_FOREACH(it, &as->as_items, it_entry)
		put_item(w, as, it);
	jsonw_end(w);
	if (as->as_truncated)
		put_bool(w, "truncated", 1);
}

int
controld_k8sd_pod_answer(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_answer	*ma = &m->pod_answer;
	struct ask			*as = ask_find(ma->ticket);
	struct waiter			*wt;
	const char			*code = pod_error_name(ma->code);

	if (as == NULL || ma->ok > 1 || ma->code >= POD_ERROR_MAX ||
	    (ma->code == POD_ERROR_NONE) != ma->ok)
		return ipc_bad(ip, "answer to ticket %u: %u, code %u",
		    ma->ticket, ma->ok, ma->code);
	if ((wt = waiter_find(ma->ticket, WAIT_POD)) != NULL) {
		if (ma->ok)
			answer_items(as);
		else
			answer_error(code, ma->text, strlen(ma->text));
		waiter_finish(wt);
	}
	ask_free(as);
	return 0;
}
