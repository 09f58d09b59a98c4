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
void	 link_fail(struct link *, const char *, ...)	/* ends it */
	    __attribute__((__format__(printf, 2, 3)));
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

/* ---- for commands -------------------------------------------------------- */

/* A command and the request that it makes, or one after the other. */
struct task {
	const struct invocation	*ta_in;
	struct link	*ta_link;
	const char	*ta_subject;	/* what an error is about, or NULL */
	const char	*ta_excused;	/* error that is not shown, or NULL */
	struct call	*ta_call;	/* NULL: none is under way */
	cJSON		*ta_result;	/* of the last one; NULL: it failed */
	char		*ta_text;	/* the same, as it came */
	int		 ta_was_excused;
	int		 ta_status;	/* for exit(3) */
};

/* Bytes from the sandbox on their way to standard output or error. */
struct content {
	int		 ct_fd;
	const char	*ct_json;	/* -j: the member of a line, or NULL */
	int		 ct_seen;	/* at a terminal: not to drive it */
	int		 ct_failed;
	size_t		 ct_len;
	char		 ct_rest[4];	/* of a character that is not whole */
};

/* What exec is to run. */
struct order {
	const char	*or_command;	/* for a shell; or NULL and */
	const char *const *or_argv;	/* up to a NULL */
	const char	*or_cwd;	/* or NULL */
	const char *const *or_env;	/* NAME=value, up to a NULL; or NULL */
	unsigned int	 or_timeout;	/* s, or 0 */
	int		 or_stdin;
	int		 or_tty;
};

/* content.c */
void	 content_init(struct content *, int, const struct invocation *,
	    const char *);
int	 content_put(struct content *, const char *, size_t);
int	 content_end(struct content *);
int	 write_all(int, const char *, size_t);

/* ls.c */
void	 mtime_put(const cJSON *);

/* process.c */
int	 process_run(const struct invocation *, const char *,
	    const struct order *);

/* signals.c */
int	 signals_catch(const int *, size_t);
int	 signals_next(void);

/* task.c */
int	 task_open(struct task *, const struct invocation *, const char *);
int	 task_begin(struct task *, struct jsonw *, const struct call_ops *);
int	 task_wait(struct task *);
int	 task_ask(struct task *, struct jsonw *, const struct call_ops *);
void	 task_item(struct call *, const cJSON *, const char *);
void	 task_done(struct call *, const struct outcome *);
int	 task_broken(struct task *, const char *);
int	 task_close(struct task *);
int	 task_show_close(struct task *);
int	 task_run(const struct invocation *, const char *, const char *,
	    struct jsonw *, const struct call_ops *);
extern const struct call_ops	 task_ops;	/* no items */
extern const struct call_ops	 task_item_ops;	/* each is shown */
void	 truncated_put(const cJSON *);
uint32_t mode_take(const char *);

#endif /* HANDS_H */
