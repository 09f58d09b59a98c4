/* SPDX-License-Identifier: ISC */

/*
 * policyd: what operators see: the state of sessions and deciders, questions
 * that wait for a person, and answers that are kept.  controld asks, in the
 * name of as many clients as there are, for one of each at a time; what its
 * clients must not see is taken out here.
 */

#include <string.h>

#include "clock.h"
#include "policyd.h"

#define LIST_BYTES	(1024 * 1024)	/* then the rest is only counted */
#define ENTRY_BYTES	256		/* beside its longer texts */
#define CHANGE_MS	20	/* changes that come together are told once */

static uint64_t		 version = 1;	/* of the questions for people */
static int		 watched;	/* controld waits for a change */
static struct event	 change;

/* ---- state --------------------------------------------------------------- */

static void
tell_session(struct ipc *ip, uint32_t cookie, const struct session *se,
    uint64_t now)
{
	ipc_send(ip, -1, STATE_SESSION, state_session, .cookie = cookie,
	    .session = se->se_name, .state = se->se_state,
	    .started = se->se_started, .restarts = se->se_restarts,
	    .ca = se->se_ca, .ca_since = se->se_ca_since,
	    .ca_end = se->se_ca_end, .ca_changes = se->se_ca_changes,
	    .pending = se->se_npendings,
	    .paused = storm_paused(&se->se_storm, now));
}

static void
tell_decider(struct ipc *ip, uint32_t cookie, const struct decider *de)
{
	ipc_send(ip, -1, STATE_DECIDER, state_decider, .cookie = cookie,
	    .name = de->de_name, .kind = de->de_kind, .asked = de->de_asked,
	    .waiting = de->de_waiting,
	    .breaker = breaker_state(&de->de_breaker));
}

int
policyd_controld_state_ask(struct ipc *ip, const union msg *m)
{
	uint32_t	 cookie = m->cookie.cookie;
	uint64_t	 now = clock_ms();
	struct session	*se;
	struct decider	*de;

	RB_FOREACH(se, sessions, &sessions)
		tell_session(ip, cookie, se, now);
	if (slice_running != NULL)
		RB_FOREACH(de, deciders, &slice_running->sl_deciders)
			tell_decider(ip, cookie, de);
	ipc_send(ip, -1, STATE_END, cookie, cookie);
	return 0;
}

/* ---- changes ------------------------------------------------------------- */

static void
change_tell(void)
{
	watched = 0;
	ipc_send(channel_controld, -1, PENDING_CHANGED, version, version);
}

static void
change_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (watched)
		change_tell();
}

/* A question for a person has come or gone. */
void
pending_changed(void)
{
	struct timeval	 tv = { .tv_usec = CHANGE_MS * 1000 };

	version++;
	if (!watched)
		return;
	if (!evtimer_initialized(&change))
		evtimer_assign(&change, child_base, change_on_timer, NULL);
	if (!evtimer_pending(&change, NULL) && evtimer_add(&change, &tv) == -1)
		log_warnx("pending: no timer, an answer may take long");
}

int
policyd_controld_pending_watch(struct ipc *ip, const union msg *m)
{
	if (watched)
		return ipc_bad(ip, "a second watch");
	watched = 1;
	if (m->version.version != version)
		change_tell();
	return 0;
}

/* ---- lists --------------------------------------------------------------- */

/* A list on its way: what is left of its room, and what had none. */
struct listing {
	struct ipc	*ls_ip;
	uint32_t	 ls_cookie;
	int		 ls_query;	/* of paths, too */
	uint64_t	 ls_now;
	size_t		 ls_room;
	uint32_t	 ls_more;
};

static int
list_has_room(struct listing *ls, const struct subject *sj,
    const struct shown *sh)
{
	size_t	 size = ENTRY_BYTES + strlen(sj->sj_host) +
		    strlen(sh->sh_path);

	if (size > ls->ls_room) {
		ls->ls_room = 0;
		ls->ls_more++;
		return 0;
	}
	ls->ls_room -= size;
	return 1;
}

static void
list_pending(struct listing *ls, const struct pending *pe)
{
	const struct subject	*sj = &pe->pe_subject;
	uint64_t		 now = ls->ls_now;
	struct shown		 sh;

	subject_show(&sh, session_redact(pe->pe_session), sj, ls->ls_query);
	if (!list_has_room(ls, sj, &sh))
		return;
	ipc_send(ls->ls_ip, -1, LISTED_PENDING, listed_pending,
	    .cookie = ls->ls_cookie, .id = pe->pe_id,
	    .session = pe->pe_session->se_name,
	    .decider = pe->pe_named->co_text,
	    .rule = pending_rule(pe)->ru_index, .scheme = sj->sj_scheme,
	    .port = sj->sj_port, .host = sj->sj_host, .method = sj->sj_method,
	    .path = sh.sh_path, .truncated = sh.sh_truncated,
	    .redacted = sh.sh_redacted, .waiting_ms = now - pe->pe_began,
	    .left_ms = pe->pe_deadline > now ? pe->pe_deadline - now : 0);
}

static void
list_kept(struct listing *ls, const struct session *se, const struct kept *ke)
{
	const struct subject	*sj = &ke->ke_subject;
	struct shown		 sh;
	int			 whole = ke->ke_rule->ru_cache ==
				    CACHE_REQUEST;

	memset(&sh, 0, sizeof(sh));
	if (whole)
		subject_show(&sh, session_redact(se), sj, ls->ls_query);
	if (!list_has_room(ls, sj, &sh))
		return;
	ipc_send(ls->ls_ip, -1, LISTED_ANSWER, listed_answer,
	    .cookie = ls->ls_cookie, .session = se->se_name,
	    .decider = ke->ke_decision.dn_decider,
	    .rule = ke->ke_rule->ru_index, .whole = whole,
	    .scheme = sj->sj_scheme, .port = sj->sj_port, .host = sj->sj_host,
	    .method = whole ? sj->sj_method : "", .path = sh.sh_path,
	    .truncated = sh.sh_truncated, .redacted = sh.sh_redacted,
	    .size = subject_size_class(sj), .allow = ke->ke_decision.dn_allow,
	    .reason = ke->ke_decision.dn_reason,
	    .age_ms = ls->ls_now - ke->ke_since,
	    .left_ms = ke->ke_until == UINT64_MAX ? UINT64_MAX :
	    ke->ke_until - ls->ls_now, .left_uses = ke->ke_uses);
}

/* The oldest first. */
static void
list_pendings(struct listing *ls)
{
	struct pending	*pe;

	RB_FOREACH(pe, pendingtree, &pendings)
		if (pe->pe_state == PENDING_OPERATOR)
			list_pending(ls, pe);
}

/* Of a session, or of all of them; whether there is such a session. */
static int
list_cache(struct listing *ls, const char *session)
{
	const struct kept	*ke;
	struct session		*se;

	if (*session != '\0' && session_find(session) == NULL)
		return 0;
	RB_FOREACH(se, sessions, &sessions) {
		if (*session != '\0' && strcmp(se->se_name, session) != 0)
			continue;
		TAILQ_FOREACH(ke, &se->se_cache.ca_list, ke_used)
			if (ls->ls_now < ke->ke_until)
				list_kept(ls, se, ke);
	}
	return 1;
}

int
policyd_controld_list_ask(struct ipc *ip, const union msg *m)
{
	const struct msg_list_ask	*ml = &m->list_ask;
	struct listing			 ls = {
		.ls_ip = ip, .ls_cookie = ml->cookie, .ls_query = ml->query,
		.ls_now = clock_ms(), .ls_room = LIST_BYTES
	};
	int				 known = 1;

	if (ml->kind >= LIST_KIND_MAX || ml->query > 1)
		return ipc_bad(ip, "list of kind %u, query %u", ml->kind,
		    ml->query);
	if (ml->kind == LIST_PENDING)
		list_pendings(&ls);
	else
		known = list_cache(&ls, ml->session);
	ipc_send(ip, -1, LIST_END, list_end, .cookie = ml->cookie,
	    .known = known, .version = version, .more = ls.ls_more);
	return 0;
}
