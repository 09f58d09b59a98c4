/* SPDX-License-Identifier: ISC */

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

/* Make a key; the proof for a key, or -1 if it is not one. */
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
