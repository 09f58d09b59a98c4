/* SPDX-License-Identifier: ISC */

/*
 * Refusals for who does not speak HTTP, in words of a protocol that shows its
 * text to people.  No more is read of it than it takes to know it.
 */

#ifndef REFUSE_RAW_H
#define REFUSE_RAW_H

#include <stddef.h>

#define REFUSE_RAW_MAX	1024
#define POSTGRES_TLS_LEN	8	/* bytes of its wish for TLS */

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
