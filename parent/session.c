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
 * The parent runs this: the fixed sessions of the configuration.  Each has
 * one engine; when it dies the session starts again with a new one, at once
 * the first time and then with growing delay.
 */

#include <stdlib.h>
#include <string.h>

#include "parent.h"

#define RETRY_FIRST_MS	500
#define RETRY_MAX_MS	30000
#define RETRY_CALM_S	60	/* an engine that lived so long was sound */

static TAILQ_HEAD(, session)	 sessions = TAILQ_HEAD_INITIALIZER(sessions);

static void
session_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	sessions_start();
}

static struct session *
session_find(const char *name)
{
	struct session	*se;

	TAILQ_FOREACH(se, &sessions, se_entry)
		if (strcmp(se->se_name, name) == 0)
			return se;
	return NULL;
}

static void
session_new(const char *name)
{
	struct session	*se;

	if ((se = calloc(1, sizeof(*se))) == NULL)
		fatal("%s", __func__);
	strlcpy(se->se_name, name, sizeof(se->se_name));
	event_assign(&se->se_retry, d.d_base, -1, 0, session_retry, se);
	TAILQ_INSERT_TAIL(&sessions, se, se_entry);
}

static void
session_free(struct session *se)
{
	TAILQ_REMOVE(&sessions, se, se_entry);
	event_del(&se->se_retry);
	if (se->se_engine != NULL) {
		se->se_engine->pr_session = NULL;
		proc_end(se->se_engine);
	}
	free(se);
}

/* A generation is in force: end what it no longer has, start what is new. */
void
sessions_follow(const struct config *conf)
{
	struct conf_session	*cs;
	struct session		*se, *next;

	TAILQ_FOREACH_SAFE(se, &sessions, se_entry, next)
		if (conf_session_find(conf, se->se_name) == NULL)
			session_free(se);
	TAILQ_FOREACH(cs, &conf->cf_sessions, ss_entry)
		if (session_find(cs->ss_name) == NULL)
			session_new(cs->ss_name);
	sessions_start();
}

/* Engines are not started into a transaction; its end calls us again. */
void
sessions_start(void)
{
	struct session	*se;

	if (reload_running() || d.d_stopping)
		return;
	TAILQ_FOREACH(se, &sessions, se_entry) {
		if (se->se_engine != NULL ||
		    event_pending(&se->se_retry, EV_TIMEOUT, NULL))
			continue;
		clock_gettime(CLOCK_MONOTONIC, &se->se_started);
		proc_start_engine(se);
	}
}

void
session_engine_gone(struct session *se)
{
	struct timespec	 now;
	struct timeval	 tv;

	se->se_engine = NULL;
	/* Removed: policyd hung up on the engine, and the session goes next. */
	if (conf_session_find(d.d_conf, se->se_name) == NULL)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec - se->se_started.tv_sec > RETRY_CALM_S)
		se->se_delay_ms = 0;
	tv.tv_sec = se->se_delay_ms / 1000;
	tv.tv_usec = se->se_delay_ms % 1000 * 1000;
	log_info("session %s: its engine starts again in %u ms", se->se_name,
	    se->se_delay_ms);
	se->se_delay_ms = se->se_delay_ms == 0 ? RETRY_FIRST_MS :
	    se->se_delay_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS :
	    se->se_delay_ms * 2;
	event_add(&se->se_retry, &tv);
}
