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
 * policyd: its slice of the configuration, from the parent, which is
 * trusted: what it would never send is a bad message, and what memory does
 * not hold is the end.  A slice is built aside and changes nothing before it
 * is committed.
 */

#include <sys/resource.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policyd.h"

/* Channels, copies of sockets on their way, a second set of listeners. */
#define SPARE_FILES	256

struct slice	*slice_running;
struct slice	*slice_candidate;

static rlim_t	 files;		/* descriptors that we may have */

/* Before confinement: the time zone's file, and a limit that will stand. */
void
policyd_warm(void)
{
	struct rlimit	 rl;

	tzset();
	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("limit of descriptors");
	files = rl.rlim_max < policyd_sandbox.sb_files ? rl.rlim_max :
	    policyd_sandbox.sb_files;
}

static void *
slice_alloc(size_t size)
{
	void	*p;

	if ((p = calloc(1, size)) == NULL)
		fatal("configuration");
	return p;
}

void
policyd_begin(uint64_t generation)
{
	struct slice	*sl = slice_alloc(sizeof(*sl));

	sl->sl_generation = generation;
	TAILQ_INIT(&sl->sl_listeners);
	TAILQ_INIT(&sl->sl_policies);
	TAILQ_INIT(&sl->sl_sessions);
	TAILQ_INIT(&sl->sl_variables);
	RB_INIT(&sl->sl_judges);
	slice_candidate = sl;
}

static void
slice_free(struct slice *sl)
{
	struct slice_session	*ss;
	struct listener		*li;
	struct policy		*pl;

	if (sl == NULL)
		return;
	while ((li = TAILQ_FIRST(&sl->sl_listeners)) != NULL) {
		TAILQ_REMOVE(&sl->sl_listeners, li, li_entry);
		control_close(li);
		free(li);
	}
	while ((pl = TAILQ_FIRST(&sl->sl_policies)) != NULL) {
		TAILQ_REMOVE(&sl->sl_policies, pl, pl_entry);
		policy_free(pl);
	}
	while ((ss = TAILQ_FIRST(&sl->sl_sessions)) != NULL) {
		TAILQ_REMOVE(&sl->sl_sessions, ss, ss_entry);
		free(ss);
	}
	variables_free(sl);
	judges_free(sl);
	free(sl);
}

const struct policy *
slice_policy(const struct slice *sl, const char *name)
{
	const struct policy	*pl;

	TAILQ_FOREACH(pl, &sl->sl_policies, pl_entry)
		if (strcmp(pl->pl_name, name) == 0)
			return pl;
	return NULL;
}

/* The slice may be NULL: then there is no session. */
const struct slice_session *
slice_session(const struct slice *sl, const char *name)
{
	const struct slice_session	*ss;

	if (sl == NULL)
		return NULL;
	TAILQ_FOREACH(ss, &sl->sl_sessions, ss_entry)
		if (strcmp(ss->ss_name, name) == 0)
			return ss;
	return NULL;
}

static int	slice_refuse(char *, size_t, const char *, ...)
		    LOG_FORMAT(3, 4);

static int
slice_refuse(char *why, size_t len, const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	vsnprintf(why, len, fmt, ap);
	va_end(ap);
	return -1;
}

/*
 * The rules are complete: what a grant or a question has to carry must fit
 * into one, and there is somebody to ask.
 */
static int
rule_ready(struct slice *sl, const struct policy *pl, const struct rule *ru,
    char *why, size_t len)
{
	const struct conditions	*deciders = &ru->ru_conditions[COND_DECIDER];
	const struct condition	*co;
	char			 nets[PATH_LEN + 1];

	if (rule_nets(ru, nets, sizeof(nets)) == -1)
		return slice_refuse(why, len, "policy %s: rule %u opens too "
		    "many prefixes", pl->pl_name, ru->ru_index);
	if (!context_rule_fits(ru))
		return slice_refuse(why, len, "policy %s: rule %u has more "
		    "than %d bytes of metadata", pl->pl_name, ru->ru_index,
		    METADATA_LEN);
	if ((ru->ru_kind == RULE_DECIDE || ru->ru_kind == RULE_NARROW) &&
	    TAILQ_EMPTY(deciders))
		return slice_refuse(why, len, "policy %s: rule %u asks nobody",
		    pl->pl_name, ru->ru_index);
	TAILQ_FOREACH(co, deciders, co_entry)
		if (judge_find(sl, co->co_text) == NULL)
			return slice_refuse(why, len, "policy %s: rule %u asks "
			    "%s, which is no decider", pl->pl_name,
			    ru->ru_index, co->co_text);
	return 0;
}

static int
slice_ready(struct slice *sl, char *why, size_t len)
{
	struct policy	*pl;
	uint32_t	 i;

	TAILQ_FOREACH(pl, &sl->sl_policies, pl_entry) {
		for (i = 0; i < pl->pl_nrules; i++)
			if (rule_ready(sl, pl, pl->pl_rules[i], why,
			    len) == -1)
				return -1;
		policy_ready(pl);
	}
	return 0;
}

int
policyd_weigh(char *why, size_t len)
{
	struct slice			*sl = slice_candidate;
	const struct slice_session	*ss;
	const struct session		*se;
	uint32_t			 sessions_max;

	if (channel_recorder == NULL)
		return slice_refuse(why, len, "no channel to the recorder");
	if (!sl->sl_limited)
		return slice_refuse(why, len, "no limits");
	if (sl->sl_lost)
		return slice_refuse(why, len,
		    "control socket: no free descriptor");
	sessions_max = sl->sl_sessions_max > sl->sl_nsessions ?
	    sl->sl_sessions_max : sl->sl_nsessions;
	/* A client may have passed us a descriptor beside its own. */
	if (2 * (uint64_t)sl->sl_clients + sessions_max + SPARE_FILES > files)
		return slice_refuse(why, len, "%u clients and %u sessions need "
		    "more than the %llu descriptors that the system permits",
		    sl->sl_clients, sessions_max, (unsigned long long)files);
	TAILQ_FOREACH(ss, &sl->sl_sessions, ss_entry) {
		if (slice_policy(sl, ss->ss_policy) == NULL)
			return slice_refuse(why, len,
			    "session %s: no policy %s", ss->ss_name,
			    ss->ss_policy);
		if ((se = session_find(ss->ss_name)) != NULL &&
		    se->se_kind == SESSION_RUN)
			return slice_refuse(why, len, "session %s: the session "
			    "of a running sandbox has this name", ss->ss_name);
	}
	return slice_ready(sl, why, len);
}

void
policyd_commit(void)
{
	struct slice	*old = slice_running;

	pending_recall();
	slice_running = slice_candidate;
	slice_candidate = NULL;
	slice_free(old);
	control_listen(&slice_running->sl_listeners);
	session_sweep();
	pending_resume();
}

void
policyd_abort(void)
{
	slice_free(slice_candidate);
	slice_candidate = NULL;
	session_sweep();
}

int
policyd_parent_conf_control(struct ipc *ip, const union msg *m)
{
	struct listener	*li;
	int		 fd, flags;

	if (m->conf_control.read_only > 1)
		return ipc_bad(ip, "read-only %u", m->conf_control.read_only);
	if ((fd = ipc_take_fd(ip)) == -1) {
		slice_candidate->sl_lost = 1;
		return 0;
	}
	if ((flags = fcntl(fd, F_GETFL)) == -1 ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1)
		fatal("control socket: fcntl");
	li = slice_alloc(sizeof(*li));
	li->li_fd = fd;
	li->li_read_only = m->conf_control.read_only;
	TAILQ_INSERT_TAIL(&slice_candidate->sl_listeners, li, li_entry);
	return 0;
}

int
policyd_parent_conf_limits(struct ipc *ip, const union msg *m)
{
	if (slice_candidate->sl_limited)
		return ipc_bad(ip, "limits again");
	slice_candidate->sl_limited = 1;
	slice_candidate->sl_clients = m->conf_limits.clients;
	slice_candidate->sl_sessions_max = m->conf_limits.sessions;
	slice_candidate->sl_pending_max = m->conf_limits.pending;
	return 0;
}

int
policyd_parent_conf_session(struct ipc *ip, const union msg *m)
{
	struct slice_session	*ss;

	if (slice_session(slice_candidate, m->conf_session.session) != NULL)
		return ipc_bad(ip, "session %s again", m->conf_session.session);
	ss = slice_alloc(sizeof(*ss));
	strlcpy(ss->ss_name, m->conf_session.session, sizeof(ss->ss_name));
	strlcpy(ss->ss_policy, m->conf_session.policy, sizeof(ss->ss_policy));
	TAILQ_INSERT_TAIL(&slice_candidate->sl_sessions, ss, ss_entry);
	slice_candidate->sl_nsessions++;
	return 0;
}

int
policyd_parent_conf_policy(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_policy	*mp = &m->conf_policy;
	struct policy			*pl;

	if (slice_policy(slice_candidate, mp->name) != NULL)
		return ipc_bad(ip, "policy %s again", mp->name);
	if (mp->allow > 1 || mp->refuse >= REFUSE_MAX ||
	    mp->on_full >= FULL_MAX)
		return ipc_bad(ip, "policy %s: allow %u, refuse %u, on full %u",
		    mp->name, mp->allow, mp->refuse, mp->on_full);
	pl = policy_new(mp->name);
	pl->pl_allow = mp->allow;
	pl->pl_refuse = mp->refuse;
	pl->pl_full = mp->on_full;
	pl->pl_quota_out = mp->quota_out;
	pl->pl_pause_denials = mp->pause_denials;
	pl->pl_pause_ms = mp->pause_ms;
	TAILQ_INSERT_TAIL(&slice_candidate->sl_policies, pl, pl_entry);
	return 0;
}

int
policyd_parent_conf_redact(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_redact	*mr = &m->conf_redact;
	struct policy			*pl;

	pl = TAILQ_LAST(&slice_candidate->sl_policies, policies);
	if (pl == NULL || strcmp(pl->pl_name, mr->policy) != 0)
		return ipc_bad(ip, "redaction of policy %s out of order",
		    mr->policy);
	if (mr->kind >= REDACT_KIND_MAX || mr->show > 1)
		return ipc_bad(ip, "redaction of kind %u, show %u", mr->kind,
		    mr->show);
	if (pl->pl_redact == NULL)
		pl->pl_redact = redact_new();
	redact_add(pl->pl_redact, mr->kind, mr->name, mr->show);
	return 0;
}

static int
rule_is_sound(const struct msg_conf_rule *mr)
{
	return mr->kind < RULE_KIND_MAX && mr->tcp <= 1 &&
	    mr->scheme < SCHEME_MAX && mr->to_private <= 1 &&
	    mr->cache < CACHE_MAX;
}

int
policyd_parent_conf_rule(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_rule	*mr = &m->conf_rule;
	struct policy			*pl;
	struct rule			*ru;

	pl = TAILQ_LAST(&slice_candidate->sl_policies, policies);
	if (pl == NULL || mr->index != pl->pl_nrules)
		return ipc_bad(ip, "rule %u out of order", mr->index);
	if (!rule_is_sound(mr))
		return ipc_bad(ip, "rule %u: kind %u, tcp %u, scheme %u, "
		    "private %u, cache %u", mr->index, mr->kind, mr->tcp,
		    mr->scheme, mr->to_private, mr->cache);
	ru = policy_add(pl, mr->kind);
	ru->ru_tcp = mr->tcp;
	ru->ru_scheme = mr->scheme;
	ru->ru_to_private = mr->to_private;
	ru->ru_body = mr->body;
	ru->ru_timeout_ms = mr->timeout_ms;
	ru->ru_cache = mr->cache;
	ru->ru_ttl_ms = mr->ttl_ms;
	ru->ru_uses = mr->uses;
	ru->ru_messages = mr->messages;
	return 0;
}

int
policyd_parent_conf_cond(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_cond	*mc = &m->conf_cond;
	struct policy			*pl;
	struct rule			*ru;

	pl = TAILQ_LAST(&slice_candidate->sl_policies, policies);
	if (pl == NULL || pl->pl_nrules == 0)
		return ipc_bad(ip, "condition without a rule");
	if (mc->kind >= COND_KIND_MAX || mc->first > mc->last)
		return ipc_bad(ip, "condition of kind %u, from %u to %u",
		    mc->kind, mc->first, mc->last);
	ru = pl->pl_rules[pl->pl_nrules - 1];
	if (mc->kind == COND_PORT)
		rule_add_ports(ru, mc->first, mc->last);
	else
		rule_add(ru, mc->kind, mc->text, mc->value);
	return 0;
}
