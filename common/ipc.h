/* SPDX-License-Identifier: ISC */

/*
 * A channel between two of our processes: imsg on libevent, with every
 * message checked against msgtab.h before a handler sees it.
 */

#ifndef IPC_H
#define IPC_H

#include <sys/types.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "imsg.h"
#include "msg.h"

#define IPC_BATCH	64		/* messages per turn of the loop */
#define IPC_MUCH	(64 * 1024)	/* bytes at once: no time to rest */
#define IPC_REST_READS	64		/* of a peer at the end */
#define IPC_HIGH_WATER	(256 * 1024)	/* bytes queued: stop producing */
#define IPC_LOW_WATER	(64 * 1024)	/* bytes queued: go on */
#define IPC_QUEUE_MAX	(8 * 1024 * 1024)	/* queued: peer is stuck */

struct ipc;

/*
 * 0, or ipc_bad() for values that a sound peer would not send.  A handler
 * takes the descriptor with ipc_take_fd(); one that it leaves is closed.
 */
typedef int (*ipc_handler)(struct ipc *, const union msg *);

struct ipc {
	struct imsgbuf		 ip_buf;
	struct event		 ip_rev;
	struct event		 ip_wev;
	struct event		 ip_more;	/* the next turn */
	enum role		 ip_me;
	enum role		 ip_peer;
	uint32_t		 ip_state;	/* one of S_* */
	uint32_t		 ip_instance;	/* of an engine, else 0 */
	const ipc_handler	*ip_handlers;	/* MSG_MAX of them */
	struct imsg		 ip_imsg;	/* being handled */
	char			 ip_why[256];	/* of ipc_bad() */
	char			 ip_name[SESSION_LEN + 16];	/* for logs */
	/*
	 * How long a peer that has just been heard is not listened to, for
	 * one that says much and expects no answer.  0: it always is.
	 */
	unsigned int		 ip_pace_ms;
	int			 ip_resting;
	int			 ip_write_due;
	int			 ip_congested;
	int			 ip_stuck;	/* over IPC_QUEUE_MAX */
	int			 ip_busy;	/* a handler runs */
	int			 ip_closed;	/* while it ran */
	/*
	 * The peer has closed (why is NULL) or has broken the protocol.  The
	 * owner ends the channel, with ipc_free() or by exiting.
	 */
	void			(*ip_gone)(struct ipc *, const char *why);
	/* The queue fell below the low water mark; may be NULL. */
	void			(*ip_drained)(struct ipc *);
	void			*ip_arg;
};

struct ipc	*ipc_new(struct event_base *, int, enum role, enum role,
		    const char *, const ipc_handler *);
void		 ipc_free(struct ipc *);
int		 ipc_bad(struct ipc *, const char *, ...)
		    __attribute__((__format__(__printf__, 2, 3)));
int		 ipc_take_fd(struct ipc *);
int		 ipc_push(struct ipc *);
int		 ipc_flush(struct ipc *);
int		 ipc_read_one(struct ipc *);
int		 ipc_read_rest(struct ipc *);
void		 ipc_compose(struct ipc *, uint32_t, int, const union msg *);

/*
 * ipc_send(ip, fd, CHANNEL, channel, .peer = ROLE_DIALER, ...): queue one
 * message; a descriptor (or -1) is closed when it has been sent.  It cannot
 * fail: our own messages fit the table or we have a bug, and a peer that
 * does not read is gone.
 */
#define ipc_send(ip, fd, type, fields, ...)				\
	ipc_compose(ip, MSG_##type, fd,					\
	    &(const union msg){ .fields = { __VA_ARGS__ } })

#endif /* IPC_H */
