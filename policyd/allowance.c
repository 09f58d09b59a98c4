/* SPDX-License-Identifier: ISC */

/*
 * policyd: what deciders have allowed without a connection, as the engine had
 * one that might serve.  If it does not, the engine asks again, and what was
 * allowed is allowed still: for this request, once.  The engine is believed
 * that it is the same request only as far as it looks the same from here.
 */

#include <stdlib.h>
#include <string.h>

#include "policyd.h"

#define ALLOWANCES_MAX	64	/* of a session; the oldest goes first */

struct allowance {
	TAILQ_ENTRY(allowance)	 al_entry;
	uint32_t		 al_ask;	/* the engine's number */
	struct subject		 al_subject;
	struct policy_verdict	 al_verdict;
	struct decision		 al_decision;
	uint64_t		 al_waited;
};

static void
allowance_remove(struct session *se, struct allowance *al)
{
	TAILQ_REMOVE(&se->se_allowances, al, al_entry);
	se->se_nallowances--;
	subject_free(&al->al_subject);
	free(al);
}

void
allowance_keep(struct session *se, uint32_t ask, const struct subject *sj,
    const struct policy_verdict *pv, const struct decision *dn, uint64_t waited)
{
	struct allowance	*al;

	if ((al = calloc(1, sizeof(*al))) == NULL)
		fatal("%s", __func__);
	al->al_ask = ask;
	subject_copy(&al->al_subject, sj);
	al->al_verdict = *pv;
	al->al_decision = *dn;
	al->al_waited = waited;
	TAILQ_INSERT_TAIL(&se->se_allowances, al, al_entry);
	if (++se->se_nallowances > ALLOWANCES_MAX)
		allowance_remove(se, TAILQ_FIRST(&se->se_allowances));
}

/* 1: the engine has its verdict. */
int
allowance_use(struct session *se, const struct msg_ask *ma,
    const struct subject *sj)
{
	struct allowance	*al;

	TAILQ_FOREACH(al, &se->se_allowances, al_entry)
		if (al->al_ask == ma->again)
			break;
	if (al == NULL || al->al_subject.sj_length != sj->sj_length ||
	    subject_cmp(&al->al_subject, sj, CACHE_REQUEST) != 0)
		return 0;
	verdict_give(se, ma->id, ma->dial, sj, &al->al_verdict,
	    &al->al_decision, al->al_waited);
	allowance_remove(se, al);
	return 1;
}

void
allowance_clear(struct session *se)
{
	struct allowance	*al;

	while ((al = TAILQ_FIRST(&se->se_allowances)) != NULL)
		allowance_remove(se, al);
}
