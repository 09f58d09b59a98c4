/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this: which policy says what must not be written down
 * (promise P7); common/redact.h knows the rest.  Of a session whose policy we
 * do not know yet is hidden what any policy names, and shown no more than
 * usual.
 */

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "policy.h"
#include "recorder.h"

struct hidden {
	TAILQ_ENTRY(hidden)	 hi_entry;
	char			 hi_policy[NAME_LEN + 1];	/* "": any */
	struct redact		*hi_names;
};

struct belongs {
	TAILQ_ENTRY(belongs)	 be_entry;
	char			 be_session[NAME_LEN + 1];
	char			 be_policy[NAME_LEN + 1];
};

/* A policy under which records may be lost. */
struct lossy {
	TAILQ_ENTRY(lossy)	 lo_entry;
	char			 lo_policy[NAME_LEN + 1];
};

struct redacts {
	TAILQ_HEAD(, hidden)	 rs_list;
	TAILQ_HEAD(, belongs)	 rs_sessions;
	TAILQ_HEAD(, lossy)	 rs_lossy;
};

static struct redacts	 running = {
	TAILQ_HEAD_INITIALIZER(running.rs_list),
	TAILQ_HEAD_INITIALIZER(running.rs_sessions),
	TAILQ_HEAD_INITIALIZER(running.rs_lossy)
};
static struct redacts	 candidate = {
	TAILQ_HEAD_INITIALIZER(candidate.rs_list),
	TAILQ_HEAD_INITIALIZER(candidate.rs_sessions),
	TAILQ_HEAD_INITIALIZER(candidate.rs_lossy)
};
static uint32_t		 version;	/* of what is running */
static struct belongs	*recent;	/* who was asked about last, or NULL */

static void
redacts_clear(struct redacts *rs)
{
	struct hidden	*hi;
	struct belongs	*be;
	struct lossy	*lo;

	while ((hi = TAILQ_FIRST(&rs->rs_list)) != NULL) {
		TAILQ_REMOVE(&rs->rs_list, hi, hi_entry);
		redact_free(hi->hi_names);
		free(hi);
	}
	while ((be = TAILQ_FIRST(&rs->rs_sessions)) != NULL) {
		TAILQ_REMOVE(&rs->rs_sessions, be, be_entry);
		free(be);
	}
	while ((lo = TAILQ_FIRST(&rs->rs_lossy)) != NULL) {
		TAILQ_REMOVE(&rs->rs_lossy, lo, lo_entry);
		free(lo);
	}
}

void
redact_begin(void)
{
	redacts_clear(&candidate);
}

void
redact_commit(void)
{
	version++;
	recent = NULL;
	redacts_clear(&running);
	TAILQ_CONCAT(&running.rs_list, &candidate.rs_list, hi_entry);
	TAILQ_CONCAT(&running.rs_sessions, &candidate.rs_sessions, be_entry);
	TAILQ_CONCAT(&running.rs_lossy, &candidate.rs_lossy, lo_entry);
}

uint32_t
redact_version(void)
{
	return version;
}

static struct hidden *
hidden_find(const struct redacts *rs, const char *policy)
{
	struct hidden	*hi;

	TAILQ_FOREACH(hi, &rs->rs_list, hi_entry)
		if (strcmp(hi->hi_policy, policy) == 0)
			return hi;
	return NULL;
}

static void
hidden_add(const char *policy, const struct msg_conf_redact *mr)
{
	struct hidden	*hi;

	if ((hi = hidden_find(&candidate, policy)) == NULL) {
		if ((hi = calloc(1, sizeof(*hi))) == NULL)
			fatal("%s", __func__);
		strlcpy(hi->hi_policy, policy, sizeof(hi->hi_policy));
		hi->hi_names = redact_new();
		TAILQ_INSERT_TAIL(&candidate.rs_list, hi, hi_entry);
	}
	redact_add(hi->hi_names, mr->kind, mr->name, mr->show);
}

int
recorder_parent_conf_redact(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_redact	*mr = &m->conf_redact;

	if (mr->kind >= REDACT_KIND_MAX || mr->show > 1)
		return ipc_bad(ip, "redaction of kind %u, show %u", mr->kind,
		    mr->show);
	hidden_add(mr->policy, mr);
	if (!mr->show)
		hidden_add("", mr);
	return 0;
}

int
recorder_parent_conf_session(struct ipc *ip, const union msg *m)
{
	struct belongs	*be;

	(void)ip;
	if ((be = calloc(1, sizeof(*be))) == NULL)
		fatal("%s", __func__);
	strlcpy(be->be_session, m->conf_session.session,
	    sizeof(be->be_session));
	strlcpy(be->be_policy, m->conf_session.policy, sizeof(be->be_policy));
	TAILQ_INSERT_TAIL(&candidate.rs_sessions, be, be_entry);
	return 0;
}

int
recorder_parent_conf_gap(struct ipc *ip, const union msg *m)
{
	struct lossy	*lo;

	(void)ip;
	if ((lo = calloc(1, sizeof(*lo))) == NULL)
		fatal("%s", __func__);
	strlcpy(lo->lo_policy, m->conf_gap.policy, sizeof(lo->lo_policy));
	TAILQ_INSERT_TAIL(&candidate.rs_lossy, lo, lo_entry);
	return 0;
}

/* Looked up for each part of a record: the last one is remembered. */
static const struct belongs *
belongs_find(const char *session)
{
	struct belongs	*be;

	if (recent != NULL && strcmp(recent->be_session, session) == 0)
		return recent;
	TAILQ_FOREACH(be, &running.rs_sessions, be_entry)
		if (strcmp(be->be_session, session) == 0)
			return recent = be;
	return NULL;
}

/*
 * Whether a session goes on while records are lost.  The policy of one that
 * is not in the configuration, a sandbox's, is that of its engine's start.
 */
int
redact_may_lose(const char *session, const char *policy)
{
	const struct belongs	*be = belongs_find(session);
	const struct lossy	*lo;

	if (be != NULL)
		policy = be->be_policy;
	TAILQ_FOREACH(lo, &running.rs_lossy, lo_entry)
		if (strcmp(lo->lo_policy, policy) == 0)
			return 1;
	return 0;
}

/*
 * What the policy of a session says of it.  That of a sandbox's is known by
 * its engine; of an unknown one, "", all that any policy hides is hidden.
 */
const struct redact *
redact_of(const char *session, const char *policy)
{
	const struct belongs	*be;
	const struct hidden	*hi;

	if (TAILQ_EMPTY(&running.rs_list))
		return NULL;
	be = belongs_find(session);
	hi = hidden_find(&running, be != NULL ? be->be_policy : policy);
	return hi != NULL ? hi->hi_names : NULL;
}
