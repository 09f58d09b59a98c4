/* SPDX-License-Identifier: ISC */

/*
 * policyd: a decider that is dead is not asked, so that what waits for it is
 * not kept waiting.  What a session asks about is its own choice, and so may
 * be the failures: those of one keep nobody else from asking, until another
 * fails as well.  A person has no breaker: see pending.c.
 */

#include <string.h>

#include "policyd.h"

/* Is the breaker open for this session? */
static int
breaker_holds(const struct breaker *br, const char *session)
{
	return br->br_wait_ms != 0 && (br->br_session[0] == '\0' ||
	    strcmp(br->br_session, session) == 0);
}

/* May a question be put, rather than fail at once? */
int
breaker_permits(const struct breaker *br, const char *session, uint64_t now)
{
	return !breaker_holds(br, session) ||
	    (!br->br_probing && now >= br->br_until);
}

/* A question is put; 1 if it is the half-open probe. */
int
breaker_ask(struct breaker *br, const char *session)
{
	if (!breaker_holds(br, session))
		return 0;
	br->br_probing = 1;
	return 1;
}

/* The probe was taken back and has shown nothing. */
void
breaker_unask(struct breaker *br)
{
	br->br_probing = 0;
}

void
breaker_good(struct breaker *br)
{
	memset(br, 0, sizeof(*br));
}

/* A failure while the breaker is closed; 1 if that opens it. */
static int
breaker_count(struct breaker *br, const char *session)
{
	if (br->br_failures == 0)
		strlcpy(br->br_session, session, sizeof(br->br_session));
	else if (strcmp(br->br_session, session) != 0)
		br->br_session[0] = '\0';
	if (++br->br_failures < BREAKER_FAILURES)
		return 0;
	br->br_wait_ms = BREAKER_WAIT_MS;
	return 1;
}

/* A failed probe keeps its own session out; others may probe, too. */
static void
breaker_double(struct breaker *br, const char *session)
{
	br->br_probing = 0;
	br->br_wait_ms *= 2;
	if (br->br_wait_ms > BREAKER_WAIT_MAX_MS)
		br->br_wait_ms = BREAKER_WAIT_MAX_MS;
	strlcpy(br->br_session, session, sizeof(br->br_session));
}

/*
 * While it is open for a session only the probe counts, unless an answer to
 * another question has closed it since.  1: it has opened, or again.
 */
int
breaker_bad(struct breaker *br, const char *session, int probe, uint64_t now)
{
	if (probe && br->br_probing)
		breaker_double(br, session);
	else if (breaker_holds(br, session))
		return 0;
	else if (br->br_wait_ms != 0)
		br->br_session[0] = '\0';
	else if (!breaker_count(br, session))
		return 0;
	br->br_until = now + br->br_wait_ms;
	return 1;
}

enum breaker_state
breaker_state(const struct breaker *br)
{
	return br->br_wait_ms == 0 ? BREAKER_CLOSED : br->br_probing ?
	    BREAKER_PROBING : BREAKER_OPEN;
}
