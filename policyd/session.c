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
 * else.  The parent, which is told, starts another.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policyd.h"

struct sessions	 sessions = RB_INITIALIZER(&sessions);

static int	 session_cmp(const struct session *, const struct session *);
static int	 policyd_engine_hello(struct ipc *, const union msg *);

RB_GENERATE(sessions, session, se_entry, session_cmp);

static const ipc_handler engine_handlers[MSG_MAX] = {
	[MSG_ENGINE_HELLO] = policyd_engine_hello,
};

static int
session_cmp(const struct session *a, const struct session *b)
{
	return strcmp(a->se_name, b->se_name);
}

static uint64_t
session_clock(void)
{
	struct timespec	 ts;

	if (clock_gettime(CLOCK_REALTIME, &ts) == -1)
		fatal("clock_gettime");
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void
session_record(const struct session *se, enum record_kind kind, uint64_t at,
    const char *reason)
{
	ipc_send(channel_recorder, -1, RECORD_SESSION, record_session,
	    .kind = kind, .at = at, .session = se->se_name,
	    .policy = se->se_policy, .reason = reason);
}

/* The engine is no more, or no more ours. */
static void
session_lose_engine(struct session *se, const char *reason)
{
	if (se->se_engine == NULL)
		return;
	log_info("session %s: engine %u: %s", se->se_name,
	    se->se_engine->ip_instance, reason);
	/* One that never said hello has no beginning on record either. */
	if (se->se_state == SESSION_RUNNING)
		session_record(se, RECORD_SESSION_ENDED, session_clock(),
		    reason);
	ipc_free(se->se_engine);
	se->se_engine = NULL;
	se->se_state = SESSION_WAITING;
	se->se_started = 0;
}

static void
policyd_engine_gone(struct ipc *ip, const char *why)
{
	struct session	*se = ip->ip_arg;

	if (why != NULL) {
		log_warnx("session %s: bad message from engine %u: %s",
		    se->se_name, ip->ip_instance, why);
		child_engine_bad(ip, why);
	}
	se->se_restarts++;
	session_lose_engine(se, why != NULL ? "engine_compromised" :
	    "engine_died");
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
	se->se_started = session_clock();
	session_record(se, RECORD_SESSION_STARTED, se->se_started, "");
	return 0;
}

static struct session *
session_find(const char *name)
{
	struct session	 key;

	strlcpy(key.se_name, name, sizeof(key.se_name));
	return RB_FIND(sessions, &sessions, &key);
}

static struct session *
session_new(const struct slice_session *ss)
{
	struct session	*se;

	if ((se = calloc(1, sizeof(*se))) == NULL)
		fatal("%s", __func__);
	strlcpy(se->se_name, ss->ss_name, sizeof(se->se_name));
	strlcpy(se->se_policy, ss->ss_policy, sizeof(se->se_policy));
	RB_INSERT(sessions, &sessions, se);
	return se;
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
	return session_new(ss);
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
		se = session_new(ss);
	else
		strlcpy(se->se_policy, ss->ss_policy, sizeof(se->se_policy));
	se->se_wanted = 1;
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
	RB_FOREACH_SAFE(se, sessions, &sessions, next) {
		if (se->se_wanted) {
			se->se_wanted = 0;
			continue;
		}
		session_lose_engine(se, "removed");
		RB_REMOVE(sessions, &sessions, se);
		free(se);
	}
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
