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
 * policyd: what control clients do about questions: see those that a person
 * is to answer, answer them, see and drop the answers that sessions keep, and
 * tell deciders what a session is about.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "hostname.h"
#include "policyd.h"

#define LIST_LEN	(ANSWER_LEN - 65536)	/* then no more is listed */
#define CHANGE_MS	20	/* changes that come together are told once */

static struct waiters	 watching = TAILQ_HEAD_INITIALIZER(watching);
static uint64_t		 version = 1;	/* of the list of questions */
static struct event	 change;

/* ---- questions ----------------------------------------------------------- */

static void
put_pending(struct jsonw *w, const struct pending *pe, uint64_t now,
    int read_only)
{
	char	 id[16];

	snprintf(id, sizeof(id), "%u", pe->pe_id);
	jsonw_object(w);
	put_str(w, "id", id);
	put_str(w, "session", pe->pe_session->se_name);
	put_str(w, "decider", pe->pe_decider->co_text);
	put_uint(w, "rule", pending_rule(pe)->ru_index);
	jsonw_key(w, "request");
	jsonw_object(w);
	subject_put(w, session_redact(pe->pe_session), &pe->pe_subject,
	    !read_only);
	jsonw_end(w);
	put_uint(w, "waiting_ms", now - pe->pe_began);
	put_uint(w, "left_ms", pe->pe_deadline > now ? pe->pe_deadline - now :
	    0);
	jsonw_end(w);
}

/* The oldest first. */
static void
answer_pending(int read_only)
{
	struct jsonw	*w = answer_ok();
	struct pending	*pe;
	uint64_t	 now = clock_ms();
	uint32_t	 more = 0;

	put_uint(w, "version", version);
	jsonw_key(w, "pending");
	jsonw_array(w);
	RB_FOREACH(pe, pendingtree, &pendings) {
		if (pe->pe_state != PENDING_OPERATOR)
			continue;
		if (w->jw_len > LIST_LEN)
			more++;
		else
			put_pending(w, pe, now, read_only);
	}
	jsonw_end(w);
	if (more > 0)
		put_uint(w, "more", more);
}

/* A body for those who may answer, another for those who may not. */
static void
change_tell(int read_only)
{
	struct waiter	*wt, *next;
	const char	*body = NULL;
	size_t		 len = 0;

	TAILQ_FOREACH_SAFE(wt, &watching, wt_queued, next) {
		if (wt->wt_client->cl_read_only != read_only)
			continue;
		if (body == NULL) {
			answer_pending(read_only);
			body = answer_end(&len);
		}
		waiter_answer(wt, body, len);
	}
}

static void
change_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	change_tell(0);
	change_tell(1);
}

/* A question for a person has come or gone. */
void
pending_changed(void)
{
	struct timeval	 tv = { .tv_usec = CHANGE_MS * 1000 };

	version++;
	if (TAILQ_EMPTY(&watching))
		return;
	if (!evtimer_initialized(&change))
		evtimer_assign(&change, child_base, change_on_timer, NULL);
	if (!evtimer_pending(&change, NULL) && evtimer_add(&change, &tv) == -1)
		log_warnx("pending: no timer, an answer may take long");
}

int
op_pending_list(struct client *cl, struct request *rq)
{
	answer_pending(cl->cl_read_only);
	client_answer(cl, rq);
	return 0;
}

int
op_pending_wait(struct client *cl, struct request *rq)
{
	const cJSON	*known = rq->rq_fields[FIELD_VERSION];
	struct waiter	*wt;

	if (known->valuedouble != (double)version)
		return op_pending_list(cl, rq);
	if ((wt = waiter_new(cl, WAIT_PENDING, &rq->rq_id)) != NULL)
		waiter_queue(wt, &watching);
	return 0;
}

static struct pending *
find_question(const char *text)
{
	const char	*why;
	uint32_t	 id;

	/* As it was listed: strtonum takes space, signs and zeros before it. */
	if (text[0] == '0' || text[strspn(text, "0123456789")] != '\0')
		return NULL;
	id = strtonum(text, 1, UINT32_MAX, &why);
	return why == NULL ? pending_find(id) : NULL;
}

int
op_pending_answer(struct client *cl, struct request *rq)
{
	const char	*id = request_text(rq, FIELD_PENDING);
	const char	*decision = request_text(rq, FIELD_DECISION);
	struct session	*se;
	struct pending	*pe;
	int		 allow = strcmp(decision, "allow") == 0, keep;

	if (!allow && strcmp(decision, "deny") != 0)
		return request_fail(rq, "bad_request", "decision: wanted allow "
		    "or deny, not \"%.64s\"", decision);
	if ((pe = find_question(id)) == NULL ||
	    pe->pe_state != PENDING_OPERATOR)
		return request_fail(rq, "no_such_question", "there is no "
		    "question %.64s that waits for a person", id);
	se = pe->pe_session;
	keep = request_is(rq, FIELD_REMEMBER) &&
	    pending_rule(pe)->ru_cache != CACHE_OFF;
	log_info("question %u of session %s: %s", pe->pe_id, se->se_name,
	    allow ? "allowed" : "denied");
	pending_answered(pe, allow ? ANSWER_ALLOW : ANSWER_DENY,
	    request_text(rq, FIELD_REASON), keep);
	if (keep)
		pending_release(se);
	put_bool(answer_ok(), "remembered", keep);
	client_answer(cl, rq);
	return 0;
}

/* ---- answers ------------------------------------------------------------- */

static void
put_kept(struct jsonw *w, const struct session *se, const struct kept *ke,
    uint64_t now, int read_only)
{
	static const char *const	 sizes[] = {
		"0", "1K", "64K", "1M", "more", "unknown"
	};
	const struct subject		*sj = &ke->ke_subject;

	jsonw_object(w);
	put_str(w, "session", se->se_name);
	put_str(w, "decider", ke->ke_word.wd_decider);
	put_uint(w, "rule", ke->ke_rule->ru_index);
	if (ke->ke_rule->ru_cache == CACHE_REQUEST) {
		subject_put(w, session_redact(se), sj, !read_only);
		put_str(w, "size", sizes[subject_size_class(sj)]);
	} else
		subject_put_place(w, sj);
	put_str(w, "decision", ke->ke_word.wd_allow ? "allow" : "deny");
	put_str(w, "reason", ke->ke_word.wd_reason);
	put_uint(w, "age_ms", now - ke->ke_since);
	jsonw_key(w, "left_ms");
	if (ke->ke_until == UINT64_MAX)
		jsonw_null(w);
	else
		jsonw_uint(w, ke->ke_until - now);
	jsonw_key(w, "left_uses");
	if (ke->ke_uses == UINT32_MAX)
		jsonw_null(w);
	else
		jsonw_uint(w, ke->ke_uses);
	jsonw_end(w);
}

static uint32_t
put_cache(struct jsonw *w, const struct session *se, int read_only)
{
	const struct kept	*ke;
	uint64_t		 now = clock_ms();
	uint32_t		 more = 0;

	TAILQ_FOREACH(ke, &se->se_cache.ca_list, ke_used) {
		if (now >= ke->ke_until)
			continue;
		if (w->jw_len > LIST_LEN)
			more++;
		else
			put_kept(w, se, ke, now, read_only);
	}
	return more;
}

/* NULL for all of them, if the request says so. */
static int
find_session(struct request *rq, struct session **se)
{
	const char	*name;

	*se = NULL;
	if (request_name(rq, FIELD_WHOSE, &name) == -1)
		return -1;
	if (*name != '\0' && (*se = session_find(name)) == NULL)
		return request_fail(rq, "unknown_session",
		    "there is no session %s", name);
	return 0;
}

int
op_cache_list(struct client *cl, struct request *rq)
{
	struct session	*one, *se;
	struct jsonw	*w;
	uint32_t	 more = 0;

	if (find_session(rq, &one) == -1)
		return -1;
	w = answer_ok();
	jsonw_key(w, "cache");
	jsonw_array(w);
	RB_FOREACH(se, sessions, &sessions)
		if (one == NULL || se == one)
			more += put_cache(w, se, cl->cl_read_only);
	jsonw_end(w);
	if (more > 0)
		put_uint(w, "more", more);
	client_answer(cl, rq);
	return 0;
}

int
op_cache_clear(struct client *cl, struct request *rq)
{
	const char	*host = request_text(rq, FIELD_HOST);
	struct session	*one, *se;
	char		 canon[HOSTNAME_MAX];
	uint32_t	 n = 0;

	if (find_session(rq, &one) == -1)
		return -1;
	if (rq->rq_fields[FIELD_HOST] != NULL && hostname_canon(host,
	    strlen(host), canon, sizeof(canon), NULL) == -1)
		return request_fail(rq, "bad_request",
		    "host: \"%.64s\" is no host name", host);
	RB_FOREACH(se, sessions, &sessions)
		if (one == NULL || se == one)
			n += cache_clear(&se->se_cache,
			    rq->rq_fields[FIELD_HOST] != NULL ? canon : NULL);
	put_uint(answer_ok(), "cleared", n);
	client_answer(cl, rq);
	return 0;
}

/* ---- context ------------------------------------------------------------- */

int
op_session_message(struct client *cl, struct request *rq)
{
	struct session	*se;
	const char	*role;

	if (find_session(rq, &se) == -1 ||
	    request_name(rq, FIELD_ROLE, &role) == -1)
		return -1;
	context_message(&se->se_context, role,
	    request_text(rq, FIELD_CONTENT), clock_wall_ns());
	put_uint(answer_ok(), "messages", se->se_context.cx_count);
	client_answer(cl, rq);
	return 0;
}

int
op_session_metadata(struct client *cl, struct request *rq)
{
	struct session	*se;

	if (find_session(rq, &se) == -1)
		return -1;
	if (context_metadata(&se->se_context,
	    rq->rq_fields[FIELD_METADATA]) == -1)
		return request_fail(rq, "too_much", "metadata: at most %d "
		    "entries and %d bytes as JSON", METADATA_MAX,
		    METADATA_LEN);
	answer_ok();
	client_answer(cl, rq);
	return 0;
}
