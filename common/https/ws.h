/* SPDX-License-Identifier: ISC */

/*
 * A WebSocket (RFC 6455) to a server of the HTTPS client: messages of bytes,
 * both ways, over a connection of its own.  The other end is a stranger: what
 * is not to the letter ends the connection, and nothing of what it sends is
 * kept beyond the piece that was read.
 *
 * Back-pressure is the user's by https_ws_room() and https_ws_hold(): who does
 * not take what comes stops the other end from sending, and there is never
 * more on its way out than a bounded buffer holds.
 */

#ifndef HTTPS_WS_H
#define HTTPS_WS_H

#include "https/https.h"

struct https_ws;

/* A piece of a message; one without a byte may begin or end one, or be both. */
struct https_ws_piece {
	const char	*wp_data;
	size_t		 wp_len;
	bool		 wp_first;
	bool		 wp_last;
};

/*
 * All come from the event loop, and https_ws_free() is fine in each but
 * wc_end, with which the socket is gone.
 */
struct https_ws_calls {
	/* The server has agreed to the subprotocol with this index. */
	void	(*wc_open)(void *, size_t);
	void	(*wc_piece)(void *, const struct https_ws_piece *);
	/* All that was sent has left, and https_ws_room() is what it can be. */
	void	(*wc_room)(void *);
	/*
	 * HTTPS_ANSWERED: with the status 101 the other end has closed, with
	 * ha_close and its reason as the body; with another it has refused,
	 * and said why in the body.  Else as of a call; a connection that is
	 * lost, or broken by what came, is HTTPS_FAILED.
	 */
	void	(*wc_end)(void *, const struct https_answer *);
};

/*
 * Subprotocols go up to a NULL and stay as long as the request, which is until
 * wc_open or wc_end.  hr_timeout_ms is for the upgrade.  After as much silence
 * as hr_idle_ms the other end is asked for a sign of life, and after three
 * times that it is taken for lost.
 */
struct https_ws	*https_upgrade(struct https_server *,
		    const struct https_request *, const char *const *,
		    const struct https_ws_calls *, void *);

/* How long a message https_ws_send() takes now; 0 if it is not open. */
size_t	 https_ws_room(const struct https_ws *);
void	 https_ws_send(struct https_ws *, const void *, size_t);

/* Nothing is read, and wc_piece not called, while it is held. */
void	 https_ws_hold(struct https_ws *, bool);

/* After what was sent; wc_end follows, at the latest after some seconds. */
void	 https_ws_close(struct https_ws *, unsigned int);
void	 https_ws_free(struct https_ws *);

#endif /* HTTPS_WS_H */
