/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this: what each session was refused, for whoever started
 * it and wonders at its end.  The records have it all; this is their sum, for
 * so many sessions and so many places of each.
 */

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "recorder.h"

#define SESSIONS_MAX	64

struct place {
	uint64_t	 pc_count;
	char		 pc_host[HOST_LEN + 1];
	char		 pc_reason[NAME_LEN + 1];
};

struct sum {
	TAILQ_ENTRY(sum)	 su_entry;
	char			 su_session[SESSION_LEN + 1];
	uint64_t		 su_total;
	size_t			 su_nplaces;
	struct place		 su_places[REFUSALS_TOLD];
};

static TAILQ_HEAD(, sum)	 sums = TAILQ_HEAD_INITIALIZER(sums);
static size_t			 nsums;

static struct sum *
sum_find(const char *session)
{
	struct sum	*su;

	TAILQ_FOREACH(su, &sums, su_entry)
		if (strcmp(su->su_session, session) == 0)
			return su;
	return NULL;
}

static void
sum_free(struct sum *su)
{
	TAILQ_REMOVE(&sums, su, su_entry);
	nsums--;
	free(su);
}

/* A new session displaces the oldest sum. */
static struct sum *
sum_new(const char *session)
{
	struct sum	*su;

	if (nsums == SESSIONS_MAX)
		sum_free(TAILQ_FIRST(&sums));
	if ((su = calloc(1, sizeof(*su))) == NULL)
		fatal("%s", __func__);
	strlcpy(su->su_session, session, sizeof(su->su_session));
	TAILQ_INSERT_TAIL(&sums, su, su_entry);
	nsums++;
	return su;
}

/* A decider's own words are cut to the length of a reason. */
void
refusal_add(const char *session, const char *host, const char *reason)
{
	struct sum	*su;
	struct place	*pc;
	size_t		 i;

	if ((su = sum_find(session)) == NULL)
		su = sum_new(session);
	su->su_total++;
	for (i = 0; i < su->su_nplaces; i++) {
		pc = &su->su_places[i];
		if (strcmp(pc->pc_host, host) == 0 && strncmp(pc->pc_reason,
		    reason, sizeof(pc->pc_reason) - 1) == 0) {
			pc->pc_count++;
			return;
		}
	}
	if (i == REFUSALS_TOLD)
		return;
	pc = &su->su_places[su->su_nplaces++];
	pc->pc_count = 1;
	strlcpy(pc->pc_host, host, sizeof(pc->pc_host));
	strlcpy(pc->pc_reason, reason, sizeof(pc->pc_reason));
}

/* Another session begins under this name. */
void
refusals_forget(const char *session)
{
	struct sum	*su;

	if ((su = sum_find(session)) != NULL)
		sum_free(su);
}

void
refusals_tell(struct ipc *ip, const struct msg_refusals_ask *ma)
{
	const struct sum	*su;
	size_t			 i;

	/* The engine's last messages may not have been read yet. */
	engines_hear(ma->session);
	su = sum_find(ma->session);
	for (i = 0; su != NULL && i < su->su_nplaces; i++)
		ipc_send(ip, -1, REFUSAL, refusal, .cookie = ma->cookie,
		    .count = su->su_places[i].pc_count,
		    .host = su->su_places[i].pc_host,
		    .reason = su->su_places[i].pc_reason);
	ipc_send(ip, -1, REFUSALS, refusals, .cookie = ma->cookie,
	    .total = su != NULL ? su->su_total : 0);
}
