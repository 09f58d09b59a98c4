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
 * tlsengine runs this: frames of HTTP/2 that are legal and still an attack,
 * for they cost the peer nothing and us a little: resets, pings, settings,
 * empty or unknown frames and updates of windows without end.
 */

#include <time.h>

#include "h2.h"

/* Frames that mean nothing: so many at once, and so many each second. */
#define NUISANCE_MAX	400
#define NUISANCE_PER_S	40

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
	struct timespec	 ts;
	uint64_t	 now, gone;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
	gone = (now - h2->h2_nuisance_ms) * NUISANCE_PER_S / 1000;
	if (gone > 0) {
		h2->h2_nuisance -= gone < h2->h2_nuisance ? gone :
		    h2->h2_nuisance;
		h2->h2_nuisance_ms = now;
	}
	if (++h2->h2_nuisance <= NUISANCE_MAX)
		return;
	h2->h2_abused = true;
	nghttp2_session_terminate_session(h2->h2_session,
	    NGHTTP2_ENHANCE_YOUR_CALM);
	h2_break(h2, "too many frames to no purpose");
}

/* One that others have paid for is none of those. */
static void
spend(struct h2 *h2, uint64_t *due)
{
	if (*due > 0)
		(*due)--;
	else
		h2_annoyed(h2);
}

/*
 * What nghttp2 ignores does not come to on_frame(): updates for streams that
 * are closed, and types that it does not know.  One of these may go with each
 * head and DATA frame: there are browsers that test us so.
 */
void
h2_calm_begin(struct h2 *h2, const nghttp2_frame_hd *hd)
{
	switch (hd->type) {
	case NGHTTP2_HEADERS:
		h2->h2_updates += UPDATES_EACH;
		/* FALLTHROUGH */
	case NGHTTP2_DATA:
		h2->h2_unknown++;
		break;
	case NGHTTP2_WINDOW_UPDATE:
		spend(h2, &h2->h2_updates);
		break;
	default:
		if (hd->type > NGHTTP2_CONTINUATION)
			spend(h2, &h2->h2_unknown);
	}
}

/* A DATA frame has gone out. */
void
h2_calm_sent(struct h2 *h2, size_t len)
{
	h2->h2_updates += UPDATES_EACH + len / UPDATE_BYTES;
}
