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
 * policyd: what deciders have allowed without a connection, as the engine had
 * one that might serve.  If it does not, the engine asks again, and the word
 * stands: for this request, once.  The engine is believed that it is the same
 * one only as far as it looks the same from here.
 */

#include <stdlib.h>
#include <string.h>

#include "policyd.h"

#define STANDING_MAX	64	/* of a session; then the oldest is asked anew */

struct standing {
	TAILQ_ENTRY(standing)	 st_entry;
	uint32_t		 st_ask;	/* the engine's number */
	struct subject		 st_subject;
	struct policy_verdict	 st_verdict;
	struct word		 st_word;
	uint64_t		 st_waited;
};

static void
standing_remove(struct session *se, struct standing *st)
{
	TAILQ_REMOVE(&se->se_standings, st, st_entry);
	se->se_nstandings--;
	subject_free(&st->st_subject);
	free(st);
}

void
standing_keep(struct session *se, uint32_t ask, const struct subject *sj,
    const struct policy_verdict *pv, const struct word *wd, uint64_t waited)
{
	struct standing	*st;

	if ((st = calloc(1, sizeof(*st))) == NULL)
		fatal("%s", __func__);
	st->st_ask = ask;
	subject_copy(&st->st_subject, sj);
	st->st_verdict = *pv;
	st->st_word = *wd;
	st->st_waited = waited;
	TAILQ_INSERT_TAIL(&se->se_standings, st, st_entry);
	if (++se->se_nstandings > STANDING_MAX)
		standing_remove(se, TAILQ_FIRST(&se->se_standings));
}

/* 1: the engine has its verdict. */
int
standing_give(struct session *se, const struct msg_ask *ma,
    const struct subject *sj)
{
	struct standing	*st;

	TAILQ_FOREACH(st, &se->se_standings, st_entry)
		if (st->st_ask == ma->again)
			break;
	if (st == NULL || st->st_subject.sj_length != sj->sj_length ||
	    subject_cmp(&st->st_subject, sj, CACHE_REQUEST) != 0)
		return 0;
	verdict_give(se, ma->id, ma->dial, sj, &st->st_verdict,
	    &st->st_word, st->st_waited);
	standing_remove(se, st);
	return 1;
}

void
standing_clear(struct session *se)
{
	struct standing	*st;

	while ((st = TAILQ_FIRST(&se->se_standings)) != NULL)
		standing_remove(se, st);
}
