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
 * policyd: a decider that is dead is not asked, so that what waits for it is
 * not kept waiting.  What a session asks about is its own choice, and so may
 * be the failures: those of one keep nobody else from asking, until another
 * fails as well.  A person has no breaker: see pending.c.
 */

#include <string.h>

#include "policyd.h"

/* Is it open, and for this session? */
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

/* One is put; whether it is the one that shows how things are. */
int
breaker_ask(struct breaker *br, const char *session)
{
	if (!breaker_holds(br, session))
		return 0;
	br->br_probing = 1;
	return 1;
}

/* That one was taken back, and has shown nothing. */
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

/* It failed while closed: whether that was one too many. */
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

/* A probe speaks for its session; the others may see for themselves. */
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

const char *
breaker_word(const struct breaker *br)
{
	return br->br_wait_ms == 0 ? "closed" : br->br_probing ? "probing" :
	    "open";
}
