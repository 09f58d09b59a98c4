/* SPDX-License-Identifier: ISC */

/*
 * policyd: what operators do, by way of controld, which reads what they send.
 * It is believed that a person has said so, and no more: an answer counts for
 * a question that waits for a person, and is kept only if the rule has answers
 * kept.  Each message has its answer at once.
 */

#include <string.h>

#include "clock.h"
#include "name.h"
#include "policyd.h"

static int
done(struct ipc *ip, uint32_t cookie, enum control_result result,
    uint32_t count)
{
	ipc_send(ip, -1, CONTROL_DONE, control_done, .cookie = cookie,
	    .result = result, .count = count);
	return 0;
}

int
policyd_controld_pending_answer(struct ipc *ip, const union msg *m)
{
	const struct msg_pending_answer	*ma = &m->pending_answer;
	struct pending			*pe = pending_find(ma->id);
	struct session			*se;
	int				 keep;

	if (ma->allow > 1 || ma->remember > 1)
		return ipc_bad(ip, "allow %u, remember %u", ma->allow,
		    ma->remember);
	if (pe == NULL || pe->pe_state != PENDING_OPERATOR)
		return done(ip, ma->cookie, CONTROL_NONE, 0);
	se = pe->pe_session;
	keep = ma->remember && pending_rule(pe)->ru_cache != CACHE_OFF;
	log_info("question %u of session %s: %s", pe->pe_id, se->se_name,
	    ma->allow ? "allowed" : "denied");
	pending_answered(pe, ma->allow ? ANSWER_ALLOW : ANSWER_DENY,
	    ma->reason, keep);
	if (keep)
		pending_release(se);
	return done(ip, ma->cookie, CONTROL_OK, keep);
}

int
policyd_controld_cache_clear(struct ipc *ip, const union msg *m)
{
	const struct msg_cache_clear	*mc = &m->cache_clear;
	const char			*host;
	struct session			*se;
	uint32_t			 n = 0;

	host = *mc->host != '\0' ? mc->host : NULL;
	if (*mc->session != '\0') {
		if ((se = session_find(mc->session)) == NULL)
			return done(ip, mc->cookie, CONTROL_NONE, 0);
		return done(ip, mc->cookie, CONTROL_OK,
		    cache_clear(&se->se_cache, host));
	}
	RB_FOREACH(se, sessions, &sessions)
		n += cache_clear(&se->se_cache, host);
	return done(ip, mc->cookie, CONTROL_OK, n);
}

int
policyd_controld_context_message(struct ipc *ip, const union msg *m)
{
	const struct msg_context_message	*mm = &m->context_message;
	struct session				*se;

	if (name_error(mm->role) != NULL || mm->truncated > 1)
		return ipc_bad(ip, "role %.16s, truncated %u", mm->role,
		    mm->truncated);
	if ((se = session_find(mm->session)) == NULL)
		return done(ip, mm->cookie, CONTROL_NONE, 0);
	context_message(&se->se_context, mm->role, mm->content, mm->truncated,
	    clock_wall_ns());
	return done(ip, mm->cookie, CONTROL_OK, se->se_context.cx_count);
}

int
policyd_controld_context_metadata(struct ipc *ip, const union msg *m)
{
	const struct msg_context_metadata	*mm = &m->context_metadata;
	struct session				*se;

	if (!metadata_is_sound(mm->pairs.data, mm->pairs.len))
		return ipc_bad(ip, "metadata that is no pairs");
	if ((se = session_find(mm->session)) == NULL)
		return done(ip, mm->cookie, CONTROL_NONE, 0);
	if (context_metadata(&se->se_context, mm->pairs.data,
	    mm->pairs.len) == -1)
		return done(ip, mm->cookie, CONTROL_TOO_MUCH, 0);
	return done(ip, mm->cookie, CONTROL_OK, 0);
}
