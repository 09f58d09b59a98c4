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
 * tlsengine: WebSockets between HTTP/1 and HTTP/2.  Pure functions.
 */

#ifndef WEBSOCKET_H
#define WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "h1.h"

#define WEBSOCKET_KEY		24	/* bytes of text */
#define WEBSOCKET_ACCEPT	28

bool	 websocket_wanted(const struct h1_str *upgrade);

/* A new key; what answers a key, or -1 if that is none. */
void	 websocket_key(char[WEBSOCKET_KEY + 1]);
int	 websocket_accept(const char *, size_t, char[WEBSOCKET_ACCEPT + 1]);

/* To an origin by HTTP/2: returns how many fields there are without a key. */
size_t	 websocket_without_key(struct h1_field *to, const struct h1_field *,
	    size_t);
/* To an origin by HTTP/1, for a client that needed none. */
struct h1_field	 websocket_key_field(const char *);

/* The 101 answers this key; the proof is not for the client.  0, or -1. */
int	 websocket_proven(struct h1_head *answer, const char *key);
/* The 101 came by HTTP/2, the request by HTTP/1: add the proof.  0, or -1. */
int	 websocket_prove(struct h1_head *answer, const struct h1_head *request,
	    char proof[WEBSOCKET_ACCEPT + 1]);

#endif /* WEBSOCKET_H */
