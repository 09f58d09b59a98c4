/* SPDX-License-Identifier: ISC */

/*
 * controld: the sessions, by name: those of the configuration, and those that
 * clients have started for their sandboxes.  What a session is judged by and
 * what it has asked is policyd's; here are its name, its policy's name and
 * who waits for its beginning or its end.
 *
 * A sandbox's session has a number beside its name.  The parent and policyd
 * give it back, so that the late end of one session is not taken for that of
 * the next one of the same name.
 */

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "controld.h"

struct sessions	 sessions = RB_INITIALIZER(&sessions);
uint32_t	 session_count;

static int
session_cmp(const struct session *a, const struct session *b)
{
	return strcmp(a->se_name, b->se_name);
}

RB_GENERATE(sessions, session, se_entry, session_cmp);

struct session *
session_find(const char *name)
{
	struct session	 key;

	strlcpy(key.se_name, name, sizeof(key.se_name));
	return RB_FIND(sessions, &sessions, &key);
}

/* The configuration's are nobody's. */
uint32_t
session_count_of(uid_t uid)
{
	struct session	*se;
	uint32_t	 n = 0;

	RB_FOREACH(se, sessions, &sessions)
		n += se->se_kind != SESSION_FIXED && se->se_uid == uid;
	return n;
}

const char *
session_kind_name(const struct session *se)
{
	static const char *const	 names[] = {
		[SESSION_FIXED] = "fixed", [SESSION_RUN] = "run",
		[SESSION_SANDBOX] = "sandbox",
	};

	return names[se->se_kind];
}

/* NULL is nothing unusual: it may be over. */
struct session *
session_by_number(uint32_t number)
{
	struct session	*se;

	RB_FOREACH(se, sessions, &sessions)
		if (se->se_number == number && number != 0)
			return se;
	return NULL;
}

/* Whoever waits for its end hears of it when policyd has seen it. */
static void
session_on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct session	*se = arg;

	(void)fd, (void)what;
	log_info("session %s: its deadline has passed", se->se_name);
	session_stop(se, CAUSE_DEADLINE);
}

/* Once is enough: whoever waits for its end waits for the same one. */
void
session_stop(struct session *se, enum session_cause cause)
{
	if (se->se_stopped)
		return;
	se->se_stopped = 1;
	if (se->se_pod != NULL && pod_stop(se, cause))
		return;
	ipc_send(child_parent, -1, SESSION_STOP, session_stop,
	    .number = se->se_number, .cause = cause);
}

/* Sessions without a name of their own end with the connection. */
void
session_owner_gone(const struct client *cl)
{
	struct session	*se;

	RB_FOREACH(se, sessions, &sessions)
		if (se->se_owner == cl) {
			se->se_owner = NULL;
			session_stop(se, CAUSE_OWNER);
		}
}

/* Seconds from now; 0 is never. */
void
session_expire(struct session *se, uint64_t seconds)
{
	struct timeval	 tv = { .tv_sec = seconds };

	if (seconds == 0)
		return;
	se->se_ends = se->se_began + seconds * 1000000000ULL;
	if (evtimer_add(&se->se_deadline, &tv) == -1)
		fatalx("session %s: no timer", se->se_name);
}

static struct session *
session_new(const char *name, const char *policy)
{
	struct session	*se;

	if ((se = calloc(1, sizeof(*se))) == NULL)
		fatal("%s", __func__);
	strlcpy(se->se_name, name, sizeof(se->se_name));
	strlcpy(se->se_policy, policy, sizeof(se->se_policy));
	evtimer_assign(&se->se_deadline, child_base, session_on_deadline, se);
	TAILQ_INIT(&se->se_starters);
	TAILQ_INIT(&se->se_waiters);
	RB_INSERT(sessions, &sessions, se);
	session_count++;
	return se;
}

/* For a sandbox; the parent is about to be asked for an engine. */
struct session *
session_start(enum session_kind kind, const char *name, const char *policy,
    const struct client *cl)
{
	static uint32_t	 last;
	struct session	*se;

	do
		last++;
	while (last == 0 || session_by_number(last) != NULL);
	se = session_new(name, policy);
	se->se_kind = kind;
	se->se_uid = cl->cl_uid;
	se->se_began = clock_wall_ns();
	se->se_number = last;
	se->se_starting = 1;
	return se;
}

/* Nobody waits for it any more. */
void
session_free(struct session *se)
{
	RB_REMOVE(sessions, &sessions, se);
	evtimer_del(&se->se_deadline);
	session_count--;
	pod_free(se->se_pod);
	free(se);
}

/*
 * A generation is committed: the sessions of the configuration are those that
 * it has.  A sandbox's session whose policy has gone ends when policyd says so.
 */
void
session_follow(void)
{
	const struct named_session	*ns;
	struct session			*se, *next;

	RB_FOREACH_SAFE(se, sessions, &sessions, next)
		if (se->se_kind == SESSION_FIXED &&
		    conf_session(conf_running, se->se_name) == NULL)
			session_free(se);
	TAILQ_FOREACH(ns, &conf_running->sl_sessions, ns_entry)
		if ((se = session_find(ns->ns_name)) == NULL)
			session_new(ns->ns_name, ns->ns_policy);
		else
			strlcpy(se->se_policy, ns->ns_policy,
			    sizeof(se->se_policy));
}
