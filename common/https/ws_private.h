/* SPDX-License-Identifier: ISC */

/*
 * What the parts of a WebSocket know of each other.
 */

#ifndef HTTPS_WS_PRIVATE_H
#define HTTPS_WS_PRIVATE_H

#include <wslay/wslay.h>

#include "https/private.h"
#include "https/ws.h"

#define WS_KEY_LEN	24	/* 16 bytes in base64 */
#define WS_ACCEPT_LEN	28	/* 20 bytes likewise */
#define WS_CONTROL_LEN	125	/* RFC 6455, 5.5 */

enum ws_state {
	WS_CONNECTING,
	WS_ASKING,		/* the head of the answer is to come */
	WS_REFUSED,		/* its body is to come */
	WS_OPEN,
	WS_CLOSING,		/* our close is out, theirs is to come */
	WS_CLOSED		/* theirs has come, ours is to leave */
};

struct https_ws {
	struct https_call	*ws_call;	/* has the connection */
	const struct https_ws_calls *ws_calls;
	void			*ws_arg;
	const char *const	*ws_protocols;
	enum ws_state		 ws_state;
	bool			*ws_gone;	/* told when this is freed */
	struct event		 ws_readable;
	struct event		 ws_writable;
	struct event		 ws_timer;
	uint64_t		 ws_idle_ms;
	unsigned int		 ws_silences;	/* of ws_idle_ms each */
	const char		*ws_broken;	/* why nothing more comes */
	bool			 ws_dry;	/* nothing more comes now */
	bool			 ws_held;
	/* What is on its way out, and the length that was last tried. */
	char			*ws_out;
	size_t			 ws_out_off;
	size_t			 ws_out_len;
	size_t			 ws_out_try;
	/* The answer; once it is a 101, what has come after its head. */
	char			 ws_key[WS_KEY_LEN + 1];
	char			*ws_in;
	size_t			 ws_in_off;
	size_t			 ws_in_len;
	/* The frame that is being read, and its message. */
	wslay_frame_context_ptr	 ws_frames;
	uint64_t		 ws_left;	/* bytes of the frame */
	uint64_t		 ws_message;	/* bytes of the message */
	bool			 ws_within;	/* a message */
	bool			 ws_first;	/* none of it was told */
	char			 ws_control[WS_CONTROL_LEN];
	size_t			 ws_control_len;
	unsigned int		 ws_code;	/* of their close */
};

/* What an answer to an upgrade says. */
struct ws_answer {
	unsigned int	 wa_status;
	size_t		 wa_head;	/* bytes of it, up to the body */
	bool		 wa_upgrade;	/* Upgrade and Connection are right */
	bool		 wa_extended;	/* it wants an extension */
	bool		 wa_chunked;
	bool		 wa_sized;	/* wa_length is of the body */
	size_t		 wa_length;
	char		 wa_accept[WS_ACCEPT_LEN + 1];
	char		 wa_protocol[64];
};

/* ws_answer.c */
int	 ws_answer_parse(const char *, size_t, struct ws_answer *);
int	 ws_answer_dechunk(char *, size_t *);
void	 ws_accept(const char *, char [WS_ACCEPT_LEN + 1]);

/* ws_frame.c */
void	 ws_frames_new(struct https_ws *);
void	 ws_read_frames(struct https_ws *, const bool *);
void	 ws_put_frame(struct https_ws *, uint8_t, const void *, size_t);
void	 ws_put_close(struct https_ws *, unsigned int);

/* ws.c */
ssize_t	 ws_read(struct https_ws *, void *, size_t);
int	 ws_put(struct https_ws *, const void *, size_t);
bool	 ws_has_room(const struct https_ws *);
void	 ws_over(struct https_ws *, const struct https_answer *);
void	 ws_fail(struct https_ws *, const char *, ...)
	    __attribute__((__format__(__printf__, 2, 3)));
void	 ws_bad(struct https_ws *, unsigned int, const char *);
void	 ws_closed(struct https_ws *);

#endif /* HTTPS_WS_PRIVATE_H */
