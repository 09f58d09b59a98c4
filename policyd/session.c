/* SPDX-License-Identifier: ISC */

/*
 * policyd: sessions and the channels to their engines.  An engine handles
 * what an agent sends and may fall to it: nothing that it says is believed
 * before it is checked, and its loss ends its session's turn and nothing
 * else.  The parent, which is told, starts another; but the session of a
 * client's sandbox ends with its engine.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "policyd.h"

struct sessions	 sessions = RB_INITIALIZER(&sessions);

static int	 session_cmp(const struct session *, const struct session *);
static void	 session_forget(struct session *, const char *);
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

/*
 * controld answers those who wait for the end of a sandbox's session, once.
 * The record goes to the recorder before that.
 */
static void
session_tell_end(struct session *se, const char *reason)
{
	if (se->se_kind != SESSION_RUN || se->se_ended ||
	    channel_controld == NULL)
		return;
	se->se_ended = 1;
	ipc_send(channel_controld, -1, SESSION_ENDED, session_ended,
	    .number = se->se_number, .reason = reason);
}

/* Let go of an engine that has ended or has to; some have none and run. */
static void
session_lose_engine(struct session *se, const char *reason)
{
	if (se->se_engine == NULL && se->se_state != SESSION_RUNNING)
		return;
	if (se->se_engine != NULL)
		log_info("session %s: engine %u: %s", se->se_name,
		    se->se_engine->ip_instance,
		    *reason != '\0' ? reason : "ended");
	/* An engine that never said hello has no beginning on record. */
	if (se->se_state == SESSION_RUNNING)
		session_record(se, RECORD_SESSION_ENDED, clock_wall_ns(),
		    reason);
	session_tell_end(se, reason);
	pending_drop(se);
	if (se->se_engine != NULL)
		ipc_free(se->se_engine);
	se->se_engine = NULL;
	se->se_state = SESSION_WAITING;
	se->se_started = 0;
}

static void
policyd_engine_gone(struct ipc *ip, const char *why)
{
	struct session	*se = ip->ip_arg;
	const char	*reason = *se->se_cause != '\0' ? se->se_cause :
			    se->se_bye ? "" : REASON_ENGINE_DIED;

	if (why != NULL) {
		log_warnx("session %s: bad message from engine %u: %s",
		    se->se_name, ip->ip_instance, why);
		child_engine_bad(ip, why);
		reason = REASON_ENGINE_COMPROMISED;
	}
	if (se->se_kind == SESSION_FIXED)
		se->se_restarts++;
	session_lose_engine(se, reason);
	if (se->se_closing)
		session_forget(se, reason);
}

static void
session_begin(struct session *se)
{
	se->se_state = SESSION_RUNNING;
	se->se_started = clock_wall_ns();
	session_record(se, RECORD_SESSION_STARTED, se->se_started, "");
	free(se->se_environment);
	se->se_environment = NULL;
}

/* The engine has its keys and serves its listeners. */
static int
policyd_engine_hello(struct ipc *ip, const union msg *m)
{
	struct session	*se = ip->ip_arg;

	(void)m;
	if (se->se_state != SESSION_STARTING)
		return ipc_bad(ip, "hello from a running engine");
	session_begin(se);
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

/* What the session's policy hides and shows. */
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

static struct session *
session_new(const char *name, const char *policy)
{
	struct session	*se;

	if ((se = calloc(1, sizeof(*se))) == NULL)
		fatal("%s", __func__);
	strlcpy(se->se_name, name, sizeof(se->se_name));
	strlcpy(se->se_policy, policy, sizeof(se->se_policy));
	se->se_cause = session_cause_name(CAUSE_NONE);
	TAILQ_INIT(&se->se_pendings);
	TAILQ_INIT(&se->se_allowances);
	TAILQ_INIT(&se->se_turns);
	RB_INIT(&se->se_leaders);
	context_init(&se->se_context);
	cache_init(&se->se_cache);
	RB_INSERT(sessions, &sessions, se);
	return se;
}

static void
session_forget(struct session *se, const char *reason)
{
	session_lose_engine(se, reason);
	session_tell_end(se, reason);
	context_free(&se->se_context);
	free(se->se_environment);
	RB_REMOVE(sessions, &sessions, se);
	free(se);
}

/*
 * The parent is about to start an engine for a sandbox.  What controld knows
 * of it comes along: we write the record of its beginning, as we hear the
 * engine's first word, before which nothing of the session is judged.  Of a
 * sandbox that no gate of ours holds we take the parent's word.
 */
int
policyd_parent_session_open(struct ipc *ip, const union msg *m)
{
	const struct msg_session_open	*ma = &m->session_open;
	struct session			*se = session_find(ma->session);

	if (ma->number == 0 || ma->told > 1 || ma->engine > 1 ||
	    slice_running == NULL || channel_recorder == NULL)
		return ipc_bad(ip, "session %s, number %u", ma->session,
		    ma->number);
	if (se != NULL && se->se_closing) {
		/* The end of the old engine is still on its way to us. */
		session_forget(se, REASON_ENGINE_DIED);
		se = NULL;
	}
	if (se != NULL)
		return ipc_bad(ip, "session %s again", ma->session);
	se = session_new(ma->session, ma->policy);
	se->se_kind = SESSION_RUN;
	se->se_number = ma->number;
	se->se_generation = slice_running->sl_generation;
	se->se_rules = slice_policy(slice_running, ma->policy);
	if (ma->told && (se->se_environment = strdup(ma->environment)) == NULL)
		fatal("%s", __func__);
	if (!ma->engine)
		session_begin(se);
	return 0;
}

/* The word of the cause, and what else was said of it. */
static const char *
session_reason(const struct session *se, const char *text)
{
	static char	 reason[PATH_LEN + 1];
	const char	*word = *se->se_cause != '\0' ? se->se_cause :
			    REASON_ENGINE_DIED;

	if (*text == '\0')
		return word;
	snprintf(reason, sizeof(reason), "%s: %s", word, text);
	return reason;
}

/*
 * The parent has seen the engine of a sandbox end.  What that has said last
 * may be unread, for instance that it ends in order: the end of its channel
 * is waited for.
 */
int
policyd_parent_session_close(struct ipc *ip, const union msg *m)
{
	struct session	*se;

	RB_FOREACH(se, sessions, &sessions)
		if (se->se_kind == SESSION_RUN && !se->se_closing &&
		    se->se_number == m->session_close.number)
			break;
	if (se == NULL || m->session_close.cause >= SESSION_CAUSE_MAX)
		return ipc_bad(ip, "no session %u, cause %u",
		    m->session_close.number, m->session_close.cause);
	se->se_cause = session_cause_name(m->session_close.cause);
	if (se->se_engine == NULL)
		session_forget(se, session_reason(se, m->session_close.text));
	else
		se->se_closing = 1;
	return 0;
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
		session_lose_engine(se, REASON_ENGINE_DIED);
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

/* Does the running generation have this session? */
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
		if (session_stays(se))
			continue;
		else if (se->se_kind == SESSION_FIXED)
			session_forget(se, REASON_REMOVED);
		else
			/* The parent closes it when it has seen it end. */
			session_lose_engine(se, REASON_REMOVED);
}

/* The daemon ends: tell the recorder, which goes last. */
void
session_stop(void)
{
	struct session	*se;

	RB_FOREACH(se, sessions, &sessions)
		session_lose_engine(se, REASON_STOPPED);
	if (channel_recorder != NULL)
		ipc_flush(channel_recorder);
}
