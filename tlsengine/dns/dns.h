/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: a DNS question in, its answer out.  Nothing is asked of anyone:
 * names get synthetic addresses, all else gets an empty answer.
 */

#ifndef DNS_H
#define DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hostname.h"

#define DNS_HEADER_LEN	12
/* Size announced by EDNS; questions are far shorter. */
#define DNS_QUERY_MAX	1232
/* Upper bound of our answers: none is ever truncated. */
#define DNS_ANSWER_MAX	512

/* What a question is worth recording for. */
enum dns_news {
	DNS_NO_NEWS,
	DNS_NEW_NAME,		/* not asked before; it has an address now */
	DNS_NO_ROOM,		/* not asked before, and gets none */
	DNS_BAD_NAME		/* no host name at all */
};

struct dns_asked {
	enum dns_news	 da_news;
	char		 da_name[HOSTNAME_MAX];	/* a bad one with escapes */
};

/*
 * The length of the answer, 0 if none is due.  Without room, names that have
 * no address yet are refused one.
 */
size_t	 dns_answer(const uint8_t *, size_t, bool room,
	    uint8_t[DNS_ANSWER_MAX], struct dns_asked *);

#endif /* DNS_H */
