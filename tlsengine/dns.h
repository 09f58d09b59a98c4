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
/* What we say that we take (EDNS), and take; a question is far shorter. */
#define DNS_QUERY_MAX	1232
/* No answer of ours is longer, so none is ever cut and marked so. */
#define DNS_ANSWER_MAX	512

/* What a question told us of the agent. */
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
