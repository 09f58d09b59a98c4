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
 * policyd: sessions and the channels to their engines.  An engine handles
 * what an agent sends and may fall to it: nothing that it says is believed
 * before it is checked, and its loss ends its session's turn and nothing
 * else.  The parent, which is told, starts another; but the session of a
 * client's sandbox ends with its engine.
 */

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "policyd.h"

struct sessions	 sessions = RB_INITIALIZER(&sessions);
uint32_t	 session_count;

static int	 session_cmp(const struct session *, const struct session *);
static int	 policyd_engine_hello(struct ipc *, const union msg *);
static int	 policyd_engine_ca(struct ipc *, const union msg *);
static int	 policyd_engine_bye(struct ipc *, const union msg *);

RB_GENERATE(sessions, session, se_entry, session_cmp);

static const ipc_handler engine_handlers[MSG_MAX] = {
	[MSG_ENGINE_HELLO] = policyd_engine_hello,
	[MSG_ENGINE_CA] = policyd_engine_ca,
	[MSG_ENGINE_BYE] = policyd_engine_bye,
	[MSG_ASK] = policyd_engine_ask,
	[MSG_ASK_DROP] = policyd_engine_ask_drop,
};

static int
session_cmp(const struct session *a, const struct session *b)
{
	return strcmp(a->se_name, b->se_name);
}

static void
session_record(const struct session *se, enum record_kind kind, uint64_t at,
    const char *reason)
{
	ipc_send(channel_recorder, -1, RECORD_SESSION, record_session,
	    .kind = kind, .at = at, .session = se->se_name,
	    .policy = se->se_policy, .reason = reason, .ca = se->se_ca,
	    .told = se->se_environment != NULL,
	    .environment = se->se_environment);
}

/* The engine is no more, or no more ours. */
static void
session_lose_engine(struct session *se, const char *reason)
{
	if (se->se_engine == NULL)
		return;
	log_info("session %s: engine %u: %s", se->se_name,
	    se->se_engine->ip_instance, *reason != '\0' ? reason : "ended");
	/* One that never said hello has no beginning on record either. */
	if (se->se_state == SESSION_RUNNING)
		session_record(se, RECORD_SESSION_ENDED, clock_wall_ns(),
		    reason);
	pending_drop(se);
	ipc_free(se->se_engine);
	se->se_engine = NULL;
	se->se_state = SESSION_WAITING;
	se->se_started = 0;
}

static void
policyd_engine_gone(struct ipc *ip, const char *why)
{
	struct session	*se = ip->ip_arg;
	const char	*reason = se->se_bye ? "" : "engine_died";

	if (why != NULL) {
		log_warnx("session %s: bad message from engine %u: %s",
		    se->se_name, ip->ip_instance, why);
		child_engine_bad(ip, why);
		reason = "engine_compromised";
	}
	if (se->se_kind == SESSION_RUN) {
		session_forget(se, reason);
		return;
	}
	se->se_restarts++;
	session_lose_engine(se, reason);
}

/* Its keys are made and its listeners served. */
static int
policyd_engine_hello(struct ipc *ip, const union msg *m)
{
	struct session	*se = ip->ip_arg;

	(void)m;
	if (se->se_state != SESSION_STARTING)
		return ipc_bad(ip, "hello from a running engine");
	se->se_state = SESSION_RUNNING;
	se->se_started = clock_wall_ns();
	session_record(se, RECORD_SESSION_STARTED, se->se_started, "");
	free(se->se_environment);
	se->se_environment = NULL;
	return 0;
}

/*
 * Before its hello an engine says which CA clients are to trust, and again if a
 * reload brings another.  Clients load a CA once: a new one locks them out.
 */
static int
policyd_engine_ca(struct ipc *ip, const union msg *m)
{
	const struct msg_engine_ca	*me = &m->engine_ca;
	struct session			*se = ip->ip_arg;

	if (strspn(me->sha256, "0123456789abcdef") != FINGERPRINT_LEN)
		return ipc_bad(ip, "a CA without a fingerprint");
	se->se_ca_end = me->not_after;
	if (strcmp(se->se_ca, me->sha256) == 0)
		return 0;
	if (se->se_ca[0] != '\0') {
		se->se_ca_changes++;
		log_warnx("session %s: new CA %s: clients that loaded the one "
		    "before reject it ('ca certificate ... key ...' keeps "
		    "one)", se->se_name, me->sha256);
	}
	strlcpy(se->se_ca, me->sha256, sizeof(se->se_ca));
	se->se_ca_since = clock_wall_ns();
	return 0;
}

/* The sandbox has ended, and the engine follows. */
static int
policyd_engine_bye(struct ipc *ip, const union msg *m)
{
	struct session	*se = ip->ip_arg;

	(void)m;
	if (se->se_kind != SESSION_RUN || se->se_state != SESSION_RUNNING)
		return ipc_bad(ip, "an engine without a sandbox takes leave");
	se->se_bye = 1;
	return 0;
}

/* What its policy hides and shows. */
const struct redact *
session_redact(const struct session *se)
{
	return se->se_rules != NULL ? se->se_rules->pl_redact : NULL;
}

struct session *
session_find(const char *name)
{
	struct session	 key;

	strlcpy(key.se_name, name, sizeof(key.se_name));
	return RB_FIND(sessions, &sessions, &key);
}

/* The one for which the parent was asked with this cookie, or NULL. */
struct session *
session_asked(uint32_t cookie)
{
	struct session	*se;

	RB_FOREACH(se, sessions, &sessions)
		if (se->se_cookie != 0 && se->se_cookie == cookie)
			return se;
	return NULL;
}

static struct session *
session_new(const char *name, const char *policy)
{
	struct session	*se;

	if ((se = calloc(1, sizeof(*se))) == NULL)
		fatal("%s", __func__);
	strlcpy(se->se_name, name, sizeof(se->se_name));
	strlcpy(se->se_policy, policy, sizeof(se->se_policy));
	TAILQ_INIT(&se->se_waiters);
	TAILQ_INIT(&se->se_pendings);
	TAILQ_INIT(&se->se_standings);
	TAILQ_INIT(&se->se_turns);
	RB_INIT(&se->se_leaders);
	context_init(&se->se_context);
	cache_init(&se->se_cache);
	RB_INSERT(sessions, &sessions, se);
	session_count++;
	return se;
}

/* For a client's sandbox; the parent is being asked for an engine. */
struct session *
session_run(const char *name, const char *policy, uint32_t cookie,
    const char *environment)
{
	struct session	*se = session_new(name, policy);

	if (environment != NULL &&
	    (se->se_environment = strdup(environment)) == NULL)
		fatal("%s", __func__);

	se->se_kind = SESSION_RUN;
	se->se_rules = slice_policy(slice_running, policy);
	se->se_cookie = cookie;
	return se;
}

void
session_forget(struct session *se, const char *reason)
{
	session_lose_engine(se, reason);
	run_ended(se, reason);
	context_free(&se->se_context);
	free(se->se_environment);
	RB_REMOVE(sessions, &sessions, se);
	session_count--;
	free(se);
}

/* An engine may come before the commit of the generation that wants it. */
static struct session *
session_get(const char *name)
{
	const struct slice_session	*ss;
	struct session			*se;

	if ((se = session_find(name)) != NULL)
		return se;
	if ((ss = slice_session(slice_running, name)) == NULL &&
	    (ss = slice_session(slice_candidate, name)) == NULL)
		return NULL;
	return session_new(ss->ss_name, ss->ss_policy);
}

/* The parent has started an engine and this is the way to it. */
int
session_attach(const struct msg_channel *mc, int fd)
{
	struct session	*se;

	/* Without the recorder the session's first record would be lost. */
	if (channel_recorder == NULL || (se = session_get(mc->session)) == NULL)
		return -1;
	if (se->se_engine != NULL) {
		/* The old engine's end is still on its way to us. */
		se->se_restarts++;
		session_lose_engine(se, "engine_died");
	}
	se->se_engine = child_engine(mc, fd, engine_handlers);
	se->se_engine->ip_gone = policyd_engine_gone;
	se->se_engine->ip_arg = se;
	se->se_state = SESSION_STARTING;
	return 0;
}

static void
session_want(const struct slice_session *ss)
{
	struct session	*se;

	if ((se = session_find(ss->ss_name)) == NULL)
		se = session_new(ss->ss_name, ss->ss_policy);
	else
		strlcpy(se->se_policy, ss->ss_policy, sizeof(se->se_policy));
	se->se_rules = slice_policy(slice_running, ss->ss_policy);
	se->se_wanted = 1;
}

/* Has it a place in the running generation? */
static int
session_stays(struct session *se)
{
	int	 wanted = se->se_wanted;

	se->se_wanted = 0;
	if (se->se_kind == SESSION_FIXED)
		return wanted;
	se->se_rules = slice_policy(slice_running, se->se_policy);
	return se->se_rules != NULL;
}

/* After a commit or an abort: the running generation says which there are. */
void
session_sweep(void)
{
	const struct slice_session	*ss;
	struct session			*se, *next;

	if (slice_running != NULL)
		TAILQ_FOREACH(ss, &slice_running->sl_sessions, ss_entry)
			session_want(ss);
	RB_FOREACH_SAFE(se, sessions, &sessions, next)
		if (!session_stays(se))
			session_forget(se, "removed");
}

/* All end.  The recorder, which goes last, is told of it first. */
void
session_stop(void)
{
	struct session	*se;

	RB_FOREACH(se, sessions, &sessions)
		session_lose_engine(se, "stopped");
	if (channel_recorder != NULL)
		ipc_flush(channel_recorder);
}
