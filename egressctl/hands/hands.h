/* SPDX-License-Identifier: ISC */

/*
 * Private header of egressctl/hands: what is done inside a sandbox that the
 * daemon has made, by way of frames (egressd-box(5)), and the library for it.
 *
 *	link	the connection: from session.attach on it carries frames
 *	call	a request under way on it; several at once
 *
 * Box, at the other end, lives with whoever is in the sandbox and is hostile:
 * every frame is checked, what a call may be sent is bounded by the credit that
 * was given, and the first frame that is not in order ends the link.  Nothing
 * here waits but link_open() and link_wait(); a program with other descriptors
 * to look after polls the link's among them:
 *
 *	pfd.fd = link_fd(lk), pfd.events = link_events(lk);
 *	poll(&pfd, ...);
 *	link_handle(lk, pfd.revents);	calls the functions of call_ops
 *
 * Every call that was begun is told its outcome exactly once by op_done, also
 * when the link ends (code "gone"), except those given up by call_drop() or
 * link_close(); then the struct call is no more.
 */

#ifndef HANDS_H
#define HANDS_H

#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "egressctl.h"
#include "jsonput.h"

#define PROTOCOL_VERSION	1
#define FRAME_HEAD_LEN		12
#define FRAME_BODY_MAX		65536
#define FRAME_CREDIT		262144	/* bytes of a call, each direction */
#define CALLS_MAX		64	/* at once on a link */

enum frame_kind {
	FRAME_CALL = 1,
	FRAME_RESULT,
	FRAME_ERROR,
	FRAME_DATA,
	FRAME_DATA_ERR,
	FRAME_END,
	FRAME_CREDIT_MORE,
	FRAME_CANCEL,
	FRAME_NOTE,
	FRAME_ITEM
};

struct client;
struct link;
struct call;

/*
 * How a request ended.  Strings in oc_body are bytes, as they are inside the
 * sandbox (U+EFXX was turned back into the byte XX), and never hold a NUL;
 * oc_text is the same object as box spelt it: JSON in one line.  Whatever
 * comes from box is shown to people by visible_put() only.
 */
struct outcome {
	const char	*oc_code;	/* NULL: it went well */
	const char	*oc_message;	/* with a code */
	const cJSON	*oc_body;	/* of RESULT or ERROR; NULL: gone */
	const char	*oc_text;	/* likewise */
};

/*
 * What a call gets.  What it has no function for, box must not send it.  The
 * bytes are the caller's only until the function returns.  Each function may
 * begin, cancel or drop calls, also its own, but not close the link.
 */
struct call_ops {
	void	(*op_data)(struct call *, const char *, size_t);
	void	(*op_errors)(struct call *, const char *, size_t);
	void	(*op_end)(struct call *);	/* no more DATA; may be NULL */
	void	(*op_item)(struct call *, const cJSON *, const char *text);
	void	(*op_done)(struct call *, const struct outcome *);
	/*
	 * 1: bytes of DATA and DATA_ERR are consumed when call_grant() says
	 * so, and no more than FRAME_CREDIT can wait; 0: when op_data has
	 * returned.
	 */
	int	  op_slow;
};

/*
 * attach.c.  NULL after saying why on standard error, or as -j has it, and
 * `status' is for exit(3).  link_of takes the connection from the client.
 */
struct link *link_open(const struct invocation *, const char *session,
	    int *status);
struct link *link_of(const struct invocation *, struct client *,
	    const char *session, int *status);

/* link.c */
struct link *link_new(int fd, const char *bytes, size_t len);
void	 link_close(struct link *);
int	 link_fd(const struct link *);
short	 link_events(const struct link *);
int	 link_handle(struct link *, short revents);	/* -1: it is over */
int	 link_wait(struct link *, int timeout_ms);	/* poll and handle */
const char *link_error(const struct link *);	/* NULL: it is not over */
const cJSON *link_hello(const struct link *);	/* NULL: not there yet */
int	 link_can(const struct link *, const char *op);	/* by the hello */

/*
 * call.c.  A request is written with call_op(), then members (jsonput.h), then
 * link_call(), which ends and frees the writer.  NULL: `why' says why not, a
 * text of ours; nothing was sent and op_done is not called.
 */
void	 call_op(struct jsonw *, const char *op);
struct call *link_call(struct link *, struct jsonw *, const struct call_ops *,
	    void *arg, const char **why);
void	*call_arg(const struct call *);
struct link *call_link(const struct call *);
size_t	 call_room(const struct call *);	/* may be sent now */
void	 call_send(struct call *, const char *, size_t);	/* <= room */
void	 call_end(struct call *);		/* no more DATA from here */
void	 call_grant(struct call *, size_t);	/* so much was consumed */
void	 call_note(struct call *, struct jsonw *);	/* ends, frees it */
void	 call_cancel(struct call *);	/* op_done follows */
void	 call_drop(struct call *);	/* cancel, and tell nobody */

/* body.c */
cJSON	*body_parse(const char *, size_t);	/* NULL: no object in order */
int	 body_number(const cJSON *, const char *, uint64_t *);
int	 body_bool(const cJSON *, const char *, int *);

#endif /* HANDS_H */
