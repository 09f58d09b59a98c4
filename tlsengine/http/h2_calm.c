/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: frames of HTTP/2 that are legal and still an attack,
 * for they cost the peer nothing and us a little: resets, pings, settings,
 * empty or unknown frames and updates of windows without end.
 */

#include "clock.h"
#include "h2.h"

/* Frames that mean nothing: so many at once, and so many each second. */
#define NUISANCE_MAX	400
#define NUISANCE_PER_S	40

/*
 * Some such frames go with what has a meaning: each head and each DATA frame,
 * either way.  There are browsers that test us with frames of no known type,
 * and gRPC pings with every message.
 */
#define PAID_BY_HEAD	4

/*
 * Updates of windows mean something where something was sent: so many may come
 * for each head from the peer and each DATA frame to it, and one more for so
 * many bytes.  To give back each KiB, for stream and connection, is well below.
 */
#define UPDATES_EACH	4
#define UPDATE_BYTES	512

/* A peer that sends many of them is cut off; RFC 9113, 10.5. */
void
h2_annoyed(struct h2 *h2)
{
	uint64_t	 now = clock_ms(), gone;

	gone = (now - h2->h2_nuisance_ms) * NUISANCE_PER_S / 1000;
	if (gone > 0) {
		h2->h2_nuisance -= gone < h2->h2_nuisance ? gone :
		    h2->h2_nuisance;
		h2->h2_nuisance_ms = now;
	}
	if (++h2->h2_nuisance <= NUISANCE_MAX)
		return;
	h2->h2_abused = true;
	h2_fail(h2, H2_ENHANCE_YOUR_CALM, "too many frames to no purpose");
}

/* Charge the allowance; else count as abuse. */
static void
spend(struct h2 *h2, uint64_t *due)
{
	if (*due > 0)
		(*due)--;
	else
		h2_annoyed(h2);
}

void
h2_calm_spend(struct h2 *h2)
{
	spend(h2, &h2->h2_paid);
}

void
h2_calm_update(struct h2 *h2)
{
	spend(h2, &h2->h2_updates);
}

void
h2_calm_paid(struct h2 *h2, unsigned int n)
{
	h2->h2_paid += n;
}

/* A head has come, or a stream of ours has opened. */
void
h2_calm_head(struct h2 *h2)
{
	h2->h2_paid += PAID_BY_HEAD;
	h2->h2_updates += UPDATES_EACH;
}

/* A DATA frame has gone out. */
void
h2_calm_sent(struct h2 *h2, size_t len)
{
	h2->h2_paid++;
	h2->h2_updates += UPDATES_EACH + len / UPDATE_BYTES;
}
