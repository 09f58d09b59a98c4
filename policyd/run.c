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
 * policyd: sessions for sandboxes that control clients make themselves.  The
 * client passes one end of a pair, whose other end its sandbox has; it goes
 * on unread to the parent, which starts an engine for it.  The session ends
 * when that engine does, so a client that has gone leaves nothing behind.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policyd.h"

/* Without letters that look alike: people type these. */
static void
run_make_name(char *name, size_t size)
{
	static const char	 set[] = "23456789abcdefghjkmnpqrstuvwxyz";
	char			 word[9] = "";
	size_t			 i;

	do {
		for (i = 0; i < sizeof(word) - 1; i++)
			word[i] = set[arc4random_uniform(sizeof(set) - 1)];
		snprintf(name, size, "run-%s", word);
	} while (session_find(name) != NULL);
}

/* A name that a configuration on its way declares is taken, too. */
static int
run_name(struct request *rq, char *name, size_t size)
{
	const char	*given;

	if (request_session(rq, &given) == -1) {
		rq->rq_code = "bad_session";
		return -1;
	}
	if (*given == '\0') {
		run_make_name(name, size);
		return 0;
	}
	if (session_find(given) != NULL ||
	    slice_session(slice_candidate, given) != NULL)
		return request_fail(rq, "session_exists",
		    "there is a session %s already", given);
	strlcpy(name, given, size);
	return 0;
}

/* Those there are, as many as have room. */
static const char *
run_policies(void)
{
	static char		 names[2 * NAME_LEN];
	static const char	 more[] = ", ...";
	const struct policy	*pl;
	size_t			 len = 0;

	strlcpy(names, "none", sizeof(names));
	TAILQ_FOREACH(pl, &slice_running->sl_policies, pl_entry) {
		if (len + strlen(", ") + strlen(pl->pl_name) + sizeof(more) >
		    sizeof(names)) {
			strlcat(names, more, sizeof(names));
			break;
		}
		len += (size_t)snprintf(names + len, sizeof(names) - len,
		    "%s%s", len == 0 ? "" : ", ", pl->pl_name);
	}
	return names;
}

/* The one that is named, or the only one. */
int
run_policy(struct request *rq, const char **policy)
{
	const struct policy	*pl = TAILQ_FIRST(&slice_running->sl_policies);

	if (request_policy(rq, policy) == -1)
		return -1;
	if (**policy == '\0') {
		if (pl == NULL || TAILQ_NEXT(pl, pl_entry) != NULL)
			return request_fail(rq, "unknown_policy", "policy: "
			    "wanted, as there is not exactly one; known are: "
			    "%s", run_policies());
		*policy = pl->pl_name;
	}
	if (slice_policy(slice_running, *policy) == NULL)
		return request_fail(rq, "unknown_policy",
		    "there is no policy %s, known are: %s", *policy,
		    run_policies());
	return 0;
}

int
op_session_start(struct client *cl, struct request *rq)
{
	struct session	*se;
	struct waiter	*wt;
	const char	*policy;
	char		 name[NAME_LEN + 1], names[ENVIRONMENT_LEN + 1];
	int		 fd;

	if (run_name(rq, name, sizeof(name)) == -1 ||
	    run_policy(rq, &policy) == -1 ||
	    request_environment(rq, names, sizeof(names)) == -1)
		return -1;
	if (session_count >= slice_running->sl_sessions_max)
		return request_fail(rq, "too_many_sessions",
		    "there are %u sessions, as many as 'limit sessions' "
		    "permits", session_count);
	if ((fd = passed_take(&cl->cl_passed)) == -1)
		return request_fail(rq, "bad_request",
		    "exactly one descriptor has to come with the request");
	if ((wt = waiter_new(cl, WAIT_START, &rq->rq_id)) == NULL) {
		close(fd);
		return 0;
	}
	se = session_run(name, policy, wt->wt_cookie,
	    rq->rq_fields[FIELD_ENVIRONMENT] != NULL ? names : NULL);
	ipc_send(child_parent, fd, SESSION_ASK, session_ask,
	    .cookie = se->se_cookie, .session = se->se_name,
	    .policy = se->se_policy);
	return 0;
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

/* The engine serves the sandbox, or there is none. */
int
policyd_parent_session_done(struct ipc *ip, const union msg *m)
{
	const struct msg_session_done	*md = &m->session_done;
	const char			*why = md->text, *body;
	struct session			*se;
	struct waiter			*wt;
	size_t				 len;

	if (md->ok > 1)
		return ipc_bad(ip, "session done: %u", md->ok);
	wt = waiter_find(md->cookie, WAIT_START);
	if ((se = session_asked(md->cookie)) == NULL) {
		if (md->ok)
			why = "its engine ended at once";
	} else if (md->ok) {
		se->se_cookie = 0;
		answer_session(se);
		why = NULL;
	} else
		session_forget(se, "engine_died");
	if (wt == NULL)
		return 0;
	if (why != NULL)
		answer_error("start_failed", why, strlen(why));
	body = answer_end(&len);
	waiter_answer(wt, body, len);
	return 0;
}

/* Answered when the session is over; the configuration's have no end. */
int
op_session_wait(struct client *cl, struct request *rq)
{
	struct session	*se;
	struct waiter	*wt;
	const char	*name;

	if (request_session(rq, &name) == -1)
		return -1;
	if ((se = session_find(name)) == NULL || se->se_kind != SESSION_RUN)
		return request_fail(rq, "unknown_session", "there is no "
		    "session %s of a sandbox", name);
	if ((wt = waiter_new(cl, WAIT_END, &rq->rq_id)) != NULL)
		waiter_queue(wt, &se->se_waiters);
	return 0;
}

void
run_ended(struct session *se, const char *reason)
{
	struct jsonw	*w;
	struct waiter	*wt;
	const char	*body;
	size_t		 len;

	if (TAILQ_EMPTY(&se->se_waiters))
		return;
	w = answer_session(se);
	jsonw_key(w, "reason");
	jsonw_str(w, *reason != '\0' ? reason : NULL);
	body = answer_end(&len);
	while ((wt = TAILQ_FIRST(&se->se_waiters)) != NULL)
		waiter_answer(wt, body, len);
}
