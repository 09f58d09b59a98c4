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
 * not kept waiting.  A person has no breaker: see pending.c.
 */

#include <string.h>

#include "policyd.h"

/* May a question be put, rather than fail at once? */
int
breaker_permits(const struct breaker *br, uint64_t now)
{
	return br->br_wait_ms == 0 || (!br->br_probing && now >= br->br_until);
}

/* One is put; whether it is the one that shows how things are. */
int
breaker_ask(struct breaker *br)
{
	if (br->br_wait_ms == 0)
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

/* While it is open only the probe counts.  1: it has opened, or again. */
int
breaker_bad(struct breaker *br, int probe, uint64_t now)
{
	if (probe) {
		br->br_probing = 0;
		br->br_wait_ms *= 2;
		if (br->br_wait_ms > BREAKER_WAIT_MAX_MS)
			br->br_wait_ms = BREAKER_WAIT_MAX_MS;
	} else if (br->br_wait_ms == 0 &&
	    ++br->br_failures >= BREAKER_FAILURES)
		br->br_wait_ms = BREAKER_WAIT_MS;
	else
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
