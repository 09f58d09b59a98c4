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
 * Refusals for who does not speak HTTP, in words of a protocol that shows its
 * text to people.  No more is read of it than it takes to know it.
 */

#ifndef REFUSE_RAW_H
#define REFUSE_RAW_H

#include <stddef.h>

#define REFUSE_RAW_MAX	1024

enum spoken {
	SPOKEN_UNKNOWN,
	SPOKEN_MORE,		/* it could be one of these */
	SPOKEN_GIT,		/* git://: the request is a pkt-line */
	SPOKEN_SSH,		/* RFC 4253, 4.2 */
	SPOKEN_POSTGRES,	/* a start of version 3 */
	SPOKEN_POSTGRES_TLS	/* or the question for encryption before it */
};

/* By the first bytes of a client. */
enum spoken	 spoken_of(const unsigned char *, size_t);

/*
 * What a server of that protocol would say; the text is plain ASCII and is cut
 * off where there is no room.  Returns its length, 0 if there are no words.
 */
size_t		 refuse_raw(enum spoken, const char *text,
		    unsigned char out[REFUSE_RAW_MAX]);

#endif /* REFUSE_RAW_H */
