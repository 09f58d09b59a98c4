/* SPDX-License-Identifier: ISC */

/*
 * controld: what control clients do about questions: see those that a person
 * is to answer, answer them, see and drop the answers that sessions keep.
 * policyd has them all; what a client may not see of a request it has taken
 * out already.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controld.h"
#include "hostname.h"
#include "utf8.h"

#define LIST_LEN	(ANSWER_LEN - 65536)	/* then no more is listed */

static void		 pending_ask(const struct waiter *);
static void		 cache_ask(const struct waiter *);
static const char	*policyd_is_late(void);

static struct survey	 pending_survey = {
	.sv_name = "pending.list", .sv_ask = pending_ask,
	.sv_late = policyd_is_late
};
static struct survey	 cache_survey = {
	.sv_name = "cache.list", .sv_ask = cache_ask,
	.sv_late = policyd_is_late
};

/* A list as it comes in, an object with one array. */
struct list {
	struct jsonw	 ls_writer;
	uint32_t	 ls_more;	/* that had no room */
};
static struct list	 pending_list, cache_list;

static struct waiters	 watching = TAILQ_HEAD_INITIALIZER(watching);
static uint64_t		 version;	/* of the questions, as last heard */
static int		 watched;	/* policyd will tell of a change */

static const char *
policyd_is_late(void)
{
	return "policyd does not answer";
}

/* ---- lists --------------------------------------------------------------- */

static void
list_begin(struct list *ls, const char *key)
{
	if (ls->ls_writer.jw_max == 0)
		jsonw_init(&ls->ls_writer, ANSWER_LEN);
	jsonw_reset(&ls->ls_writer);
	jsonw_object(&ls->ls_writer);
	jsonw_key(&ls->ls_writer, key);
	jsonw_array(&ls->ls_writer);
	ls->ls_more = 0;
}

/* The writer, for one more entry; NULL if there is no room for it. */
static struct jsonw *
list_entry(struct list *ls)
{
	if (ls->ls_writer.jw_len > LIST_LEN) {
		ls->ls_more++;
		return NULL;
	}
	jsonw_object(&ls->ls_writer);
	return &ls->ls_writer;
}

/* All of it but its braces, into an answer. */
static void
list_put(struct jsonw *w, struct list *ls, uint32_t more)
{
	const char	*text;
	size_t		 len;

	jsonw_end(&ls->ls_writer);
	jsonw_end(&ls->ls_writer);
	if ((text = jsonw_finish(&ls->ls_writer, &len)) != NULL)
		jsonw_members(w, text + 1, len - 2);
	if (ls->ls_more + more > 0)
		put_uint(w, "more", (uint64_t)ls->ls_more + more);
}

static void
pending_ask(const struct waiter *wt)
{
	list_begin(&pending_list, "pending");
	ipc_send(channel_policyd, -1, LIST_ASK, list_ask,
	    .cookie = pending_survey.sv_cookie, .kind = LIST_PENDING,
	    .query = !wt->wt_client->cl_read_only);
}

static void
cache_ask(const struct waiter *wt)
{
	list_begin(&cache_list, "cache");
	ipc_send(channel_policyd, -1, LIST_ASK, list_ask,
	    .cookie = cache_survey.sv_cookie, .kind = LIST_CACHE,
	    .query = !wt->wt_client->cl_read_only, .session = wt->wt_text);
}

static void
put_place(struct jsonw *w, const char *scheme, const char *host, uint16_t port)
{
	put_str(w, "scheme", scheme);
	put_str(w, "host", host);
	put_uint(w, "port", port);
}

/* A connection has neither method nor path. */
static void
put_rest(struct jsonw *w, int is_tcp, const char *method, const char *path,
    int truncated, uint64_t redacted)
{
	put_str(w, "method", is_tcp ? NULL : method);
	put_str(w, "path", is_tcp ? NULL : path);
	if (truncated)
		put_bool(w, "path_truncated", 1);
	if (redacted > 0)
		put_uint(w, "path_redacted", redacted);
}

int
controld_policyd_listed_pending(struct ipc *ip, const union msg *m)
{
	const struct msg_listed_pending	*ml = &m->listed_pending;
	const char			*scheme = url_scheme_name(ml->scheme);
	struct jsonw			*w;
	char				 id[16];

	if (scheme == NULL)
		return ipc_bad(ip, "scheme %u", ml->scheme);
	if (!survey_is(&pending_survey, ml->cookie) ||
	    (w = list_entry(&pending_list)) == NULL)
		return 0;
	snprintf(id, sizeof(id), "%u", ml->id);
	put_str(w, "id", id);
	put_str(w, "session_id", ml->session);
	put_str(w, "decider", ml->decider);
	put_uint(w, "rule", ml->rule);
	jsonw_key(w, "request");
	jsonw_object(w);
	put_place(w, scheme, ml->host, ml->port);
	put_rest(w, ml->scheme == URL_TCP, ml->method, ml->path,
	    ml->truncated, ml->redacted);
	jsonw_end(w);
	put_uint(w, "waiting_ms", ml->waiting_ms);
	put_uint(w, "left_ms", ml->left_ms);
	jsonw_end(w);
	return 0;
}

/* Null for what has no end. */
static void
put_left(struct jsonw *w, const char *key, int endless, uint64_t left)
{
	jsonw_key(w, key);
	if (endless)
		jsonw_null(w);
	else
		jsonw_uint(w, left);
}

int
controld_policyd_listed_answer(struct ipc *ip, const union msg *m)
{
	static const char *const	 sizes[] = {
		"0", "1K", "64K", "1M", "more", "unknown"
	};
	const struct msg_listed_answer	*ml = &m->listed_answer;
	const char			*scheme = url_scheme_name(ml->scheme);
	struct jsonw			*w;

	if (scheme == NULL || ml->size >= sizeof(sizes) / sizeof(sizes[0]))
		return ipc_bad(ip, "scheme %u, size %u", ml->scheme, ml->size);
	if (!survey_is(&cache_survey, ml->cookie) ||
	    (w = list_entry(&cache_list)) == NULL)
		return 0;
	put_str(w, "session_id", ml->session);
	put_str(w, "decider", ml->decider);
	put_uint(w, "rule", ml->rule);
	put_place(w, scheme, ml->host, ml->port);
	if (ml->whole) {
		put_rest(w, ml->scheme == URL_TCP, ml->method, ml->path,
		    ml->truncated, ml->redacted);
		put_str(w, "size", sizes[ml->size]);
	}
	put_str(w, "decision", ml->allow ? "allow" : "deny");
	put_str(w, "reason", ml->reason);
	put_uint(w, "age_ms", ml->age_ms);
	put_left(w, "left_ms", ml->left_ms == UINT64_MAX, ml->left_ms);
	put_left(w, "left_uses", ml->left_uses == UINT32_MAX, ml->left_uses);
	jsonw_end(w);
	return 0;
}

static void
unknown_session(const char *name)
{
	char	 text[SESSION_LEN + 32];

	snprintf(text, sizeof(text), "there is no session %s", name);
	answer_error(CODE_UNKNOWN_SESSION, text, strlen(text));
}

static void
cache_end(const struct msg_list_end *ml)
{
	const struct waiter	*wt = TAILQ_FIRST(&cache_survey.sv_asking);

	if (ml->known || wt == NULL || wt->wt_text == NULL)
		list_put(answer_ok(), &cache_list, ml->more);
	else
		unknown_session(wt->wt_text);
	survey_finish(&cache_survey);
}

static void
pending_end(const struct msg_list_end *ml)
{
	struct jsonw	*w = answer_ok();

	version = ml->version;
	put_uint(w, "version", version);
	list_put(w, &pending_list, ml->more);
	survey_finish(&pending_survey);
}

int
controld_policyd_list_end(struct ipc *ip, const union msg *m)
{
	const struct msg_list_end	*ml = &m->list_end;

	(void)ip;
	if (survey_is(&pending_survey, ml->cookie))
		pending_end(ml);
	else if (survey_is(&cache_survey, ml->cookie))
		cache_end(ml);
	return 0;
}

/* ---- questions ----------------------------------------------------------- */

static int
op_pending_list(struct client *cl, struct request *rq)
{
	struct waiter	*wt;

	if ((wt = waiter_new(cl, WAIT_PENDING, &rq->rq_id)) != NULL)
		survey_join(&pending_survey, wt);
	return 0;
}

/* Ask to be told when the list is another than that of the last version. */
static void
watch(void)
{
	if (watched || TAILQ_EMPTY(&watching))
		return;
	watched = 1;
	ipc_send(channel_policyd, -1, PENDING_WATCH, version, version);
}

int
controld_policyd_pending_changed(struct ipc *ip, const union msg *m)
{
	struct waiter	*wt, *next;

	if (!watched)
		return ipc_bad(ip, "a change that nobody has asked for");
	watched = 0;
	version = m->version.version;
	TAILQ_FOREACH_SAFE(wt, &watching, wt_queued, next)
		if (wt->wt_version != (double)version)
			survey_join(&pending_survey, wt);
	watch();
	return 0;
}

static int
op_pending_wait(struct client *cl, struct request *rq)
{
	struct waiter	*wt;

	if ((wt = waiter_new(cl, WAIT_PENDING, &rq->rq_id)) == NULL)
		return 0;
	wt->wt_version = request_number(rq, "version");
	if (wt->wt_version != (double)version) {
		survey_join(&pending_survey, wt);
		return 0;
	}
	waiter_queue(wt, &watching);
	watch();
	return 0;
}

/* As it was listed: strtonum takes space, signs and zeros before it. */
static uint32_t
read_question(const char *text)
{
	const char	*why;
	uint32_t	 id;

	if (text[0] == '0' || text[strspn(text, "0123456789")] != '\0')
		return 0;
	id = strtonum(text, 1, UINT32_MAX, &why);
	return why == NULL ? id : 0;
}

static void
tell_answered(struct waiter *wt, const struct msg_control_done *md)
{
	if (md->result != CONTROL_OK) {
		waiter_error(wt, CODE_NO_SUCH_QUESTION, "there is no question "
		    "%s that waits for a person", wt->wt_text);
		return;
	}
	put_bool(answer_ok(), "remembered", md->count != 0);
	waiter_finish(wt);
}

static int
op_pending_answer(struct client *cl, struct request *rq)
{
	const char	*text = request_text(rq, "pending");
	const char	*decision = request_text(rq, "decision");
	const char	*reason = request_text(rq, "reason");
	char		 cut[PATH_LEN + 1];
	struct waiter	*wt;
	uint32_t	 id;
	int		 allow = strcmp(decision, "allow") == 0;

	if (!allow && strcmp(decision, "deny") != 0)
		return request_fail(rq, CODE_BAD_REQUEST, "decision: wanted "
		    "allow or deny, not \"%.64s\"", decision);
	if ((id = read_question(text)) == 0)
		return request_fail(rq, CODE_NO_SUCH_QUESTION, "there is no "
		    "question %.64s that waits for a person", text);
	if ((wt = errand_new(cl, rq, tell_answered)) == NULL)
		return 0;
	waiter_about(wt, text, strlen(text));
	snprintf(cut, sizeof(cut), "%.*s",
	    (int)utf8_cut(reason, strlen(reason), PATH_LEN), reason);
	ipc_send(channel_policyd, -1, PENDING_ANSWER, pending_answer,
	    .cookie = wt->wt_cookie, .id = id, .allow = allow,
	    .remember = request_is(rq, "remember"), .reason = cut);
	return 0;
}

/* ---- answers ------------------------------------------------------------- */

/* "" for all of them, if the request says so. */
static int
read_session(struct request *rq, const char **name)
{
	if (request_session(rq, name) == -1)
		return -1;
	if (**name != '\0' && session_find(*name) == NULL)
		return request_fail(rq, CODE_UNKNOWN_SESSION,
		    "there is no session %s", *name);
	return 0;
}

static int
op_cache_list(struct client *cl, struct request *rq)
{
	const char	*name;
	struct waiter	*wt;

	if (read_session(rq, &name) == -1)
		return -1;
	if ((wt = waiter_new(cl, WAIT_CACHE, &rq->rq_id)) == NULL)
		return 0;
	if (*name != '\0')
		waiter_about(wt, name, strlen(name));
	survey_join(&cache_survey, wt);
	return 0;
}

static void
tell_cleared(struct waiter *wt, const struct msg_control_done *md)
{
	if (md->result != CONTROL_OK)
		unknown_session(wt->wt_text);
	else
		put_uint(answer_ok(), "cleared", md->count);
	waiter_finish(wt);
}

static int
op_cache_clear(struct client *cl, struct request *rq)
{
	const char	*host = request_text(rq, "host"), *name;
	char		 canon[HOSTNAME_MAX] = "";
	struct waiter	*wt;

	if (read_session(rq, &name) == -1)
		return -1;
	if (request_has(rq, "host") && hostname_canon(host,
	    strlen(host), canon, sizeof(canon), NULL) == -1)
		return request_fail(rq, CODE_BAD_REQUEST,
		    "host: \"%.64s\" is no host name", host);
	if ((wt = errand_new(cl, rq, tell_cleared)) == NULL)
		return 0;
	waiter_about(wt, name, strlen(name));
	ipc_send(channel_policyd, -1, CACHE_CLEAR, cache_clear,
	    .cookie = wt->wt_cookie, .session = name, .host = canon);
	return 0;
}

/* ---- the table ----------------------------------------------------------- */

static const struct field wait_fields[] = {
	{ "version", FIELD_INTEGER, MUST },
	{ NULL, 0, 0 }
};
static const struct field answer_fields[] = {
	{ "pending", FIELD_STRING, MUST },
	{ "decision", FIELD_STRING, MUST },
	{ "reason", FIELD_STRING, MAY },
	{ "remember", FIELD_BOOLEAN, MAY },
	{ NULL, 0, 0 }
};
static const struct field list_fields[] = {
	{ "session_id", FIELD_STRING, MAY },
	{ NULL, 0, 0 }
};
static const struct field clear_fields[] = {
	{ "session_id", FIELD_STRING, MAY },
	{ "host", FIELD_STRING, MAY },
	{ NULL, 0, 0 }
};

const struct op decide_ops[] = {
	{ "pending.list", OP_READ_ONLY, op_pending_list, NULL },
	{ "pending.wait", OP_READ_ONLY, op_pending_wait, wait_fields },
	{ "pending.answer", OP_ERRAND, op_pending_answer, answer_fields },
	{ "cache.list", OP_READ_ONLY, op_cache_list, list_fields },
	{ "cache.clear", OP_ERRAND, op_cache_clear, clear_fields },
	{ NULL, 0, NULL, NULL }
};
