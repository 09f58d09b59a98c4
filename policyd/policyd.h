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
 * policyd: owns the rules, the sessions and the control sockets.  It trusts
 * the parent and nobody else; a control client can lose its connection by
 * what it does, and never more than that.
 */

#ifndef POLICYD_H
#define POLICYD_H

#include <sys/types.h>
#include <sys/queue.h>
#include <sys/tree.h>

#include <stdint.h>

#include <cjson/cJSON.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#include "child.h"
#include "decide.h"
#include "ipc.h"
#include "jsonw.h"
#include "log.h"
#include "policy.h"
#include "sandbox.h"

/* The slice of the configuration. */
struct slice_session {
	TAILQ_ENTRY(slice_session) ss_entry;
	char			 ss_name[NAME_LEN + 1];
	char			 ss_policy[NAME_LEN + 1];
};
TAILQ_HEAD(slice_sessions, slice_session);

struct listener {
	TAILQ_ENTRY(listener)	 li_entry;
	int			 li_fd;
	int			 li_read_only;
	struct event		 li_ev;
};
TAILQ_HEAD(listeners, listener);

/* What a policy says of the environment, in the order of their turn. */
struct variable {
	TAILQ_ENTRY(variable)	 va_entry;
	const struct policy	*va_policy;
	int			 va_pass;
	char			 va_pattern[NAME_LEN + 1];
};
TAILQ_HEAD(variables, variable);

struct slice {
	uint64_t		 sl_generation;
	int			 sl_limited;	/* the limits have come */
	int			 sl_lost;	/* a descriptor has not */
	uint32_t		 sl_clients;
	uint32_t		 sl_sessions_max;	/* of every kind */
	uint32_t		 sl_nsessions;
	uint32_t		 sl_pending_max;
	struct judges		 sl_judges;
	struct listeners	 sl_listeners;
	struct policies		 sl_policies;
	struct slice_sessions	 sl_sessions;
	struct variables	 sl_variables;
};

/* conf.c */
extern struct slice	*slice_running;		/* NULL before the first */
extern struct slice	*slice_candidate;	/* NULL: none is prepared */

void	 policyd_warm(void);
void	 policyd_begin(uint64_t);
int	 policyd_weigh(char *, size_t);
void	 policyd_commit(void);
void	 policyd_abort(void);
const struct slice_session *slice_session(const struct slice *, const char *);
const struct policy *slice_policy(const struct slice *, const char *);
int	 policyd_parent_conf_control(struct ipc *, const union msg *);
int	 policyd_parent_conf_limits(struct ipc *, const union msg *);
int	 policyd_parent_conf_session(struct ipc *, const union msg *);
int	 policyd_parent_conf_policy(struct ipc *, const union msg *);
int	 policyd_parent_conf_redact(struct ipc *, const union msg *);
int	 policyd_parent_conf_rule(struct ipc *, const union msg *);
int	 policyd_parent_conf_cond(struct ipc *, const union msg *);

/* channel.c */
extern struct ipc	*channel_recorder;
extern struct ipc	*channel_dialer;
extern struct ipc	*channel_deciderd;

int	 policyd_channel(const struct msg_channel *, int);

/* A session outlives its engines and the generation that declared it. */
enum session_state {
	SESSION_WAITING,	/* for an engine */
	SESSION_STARTING,	/* for the engine's word */
	SESSION_RUNNING
};

/* Declared by the configuration, or started for a sandbox of a client's. */
enum session_kind {
	SESSION_FIXED,
	SESSION_RUN		/* ends with its engine */
};

struct waiter;
TAILQ_HEAD(waiters, waiter);
struct session {
	RB_ENTRY(session)	 se_entry;
	enum session_kind	 se_kind;
	char			 se_name[NAME_LEN + 1];
	char			 se_policy[NAME_LEN + 1];
	const struct policy	*se_rules;	/* in force; NULL: none yet */
	enum session_state	 se_state;
	struct ipc		*se_engine;	/* NULL while waiting */
	uint64_t		 se_started;	/* ns since the epoch, or 0 */
	uint32_t		 se_restarts;
	char			 se_ca[FINGERPRINT_LEN + 1]; /* "": none yet */
	uint64_t		 se_ca_since;	/* ns since the epoch */
	uint64_t		 se_ca_end;	/* s since the epoch */
	uint32_t		 se_ca_changes;
	int			 se_wanted;	/* session_sweep() */
	int			 se_bye;	/* its engine ends in order */
	uint32_t		 se_cookie;	/* the parent is asked, or 0 */
	char			*se_environment; /* names; NULL: not told */
	struct waiters		 se_waiters;	/* for its end */
	struct context		 se_context;
	struct cache		 se_cache;
	struct storm		 se_storm;
	struct standings	 se_standings;
	uint32_t		 se_nstandings;
	struct pendings		 se_pendings;
	uint32_t		 se_npendings;
	struct leaders		 se_leaders;	/* of these, by question */
	struct turns		 se_turns;
};
RB_HEAD(sessions, session);
RB_PROTOTYPE(sessions, session, se_entry, session_cmp);

/* session.c */
extern struct sessions	 sessions;
extern uint32_t		 session_count;

struct session	*session_find(const char *);
const struct redact *session_redact(const struct session *);
struct session	*session_asked(uint32_t);
struct session	*session_run(const char *, const char *, uint32_t,
		    const char *);
void	 session_forget(struct session *, const char *);
int	 session_attach(const struct msg_channel *, int);
void	 session_sweep(void);
void	 session_stop(void);

/* verdict.c */
int	 policyd_engine_ask(struct ipc *, const union msg *);
int	 policyd_engine_ask_drop(struct ipc *, const union msg *);
void	 verdict_evaluate(const struct session *, const struct subject *,
	    struct policy_verdict *);
void	 verdict_give(const struct session *, uint32_t, uint32_t,
	    const struct subject *, struct policy_verdict *,
	    const struct word *, uint64_t);

/* passed.c: what clients pass beside their bytes. */
struct passed {
	int			 ps_fd;		/* -1: none */
	int			 ps_spoilt;	/* more, or one is lost */
};

void	 passed_init(struct passed *);
void	 passed_clear(struct passed *);
int	 passed_any(const struct passed *);
int	 passed_take(struct passed *);
ssize_t	 passed_read(struct passed *, int, void *, size_t);

/* line.c: a reader of lines that does not grow beyond LINE_LEN. */
#define LINE_LEN	65536		/* without the newline */

struct line {
	char			*ln_buf;
	size_t			 ln_size;
	size_t			 ln_start;	/* of the next line */
	size_t			 ln_seen;	/* no newline up to here */
	size_t			 ln_end;	/* of what has been read */
};

void	 line_init(struct line *);
void	 line_free(struct line *);
ssize_t	 line_read(struct line *, int, struct passed *);
int	 line_next(struct line *, char **, size_t *);

/* What a client calls its request; the answer carries it back. */
struct request_id {
	int			 ri_given;
	int64_t			 ri_value;
};

enum field {
	FIELD_ID,
	FIELD_OP,
	FIELD_LEVEL,
	FIELD_SESSION,
	FIELD_KINDS,
	FIELD_POLICY,
	FIELD_WHOSE,
	FIELD_ROLE,
	FIELD_CONTENT,
	FIELD_METADATA,
	FIELD_VERSION,
	FIELD_PENDING,
	FIELD_DECISION,
	FIELD_REASON,
	FIELD_REMEMBER,
	FIELD_HOST,
	FIELD_ENVIRONMENT,
	FIELD_DECIDER,
	FIELD_SCHEME,
	FIELD_PORT,
	FIELD_METHOD,
	FIELD_PATH,
	FIELD_MESSAGES,
	FIELD_MAX
};

/*
 * One request.  A function that returns -1 has set code and message of the
 * error that the client is told; request_free() is due in any case.
 */
struct request {
	cJSON			*rq_json;
	struct request_id	 rq_id;
	const cJSON		*rq_fields[FIELD_MAX];
	const char		*rq_twice;	/* a field given again */
	const char		*rq_stray;	/* a field we do not know */
	const char		*rq_code;
	char			 rq_message[256];
	int			 rq_hangup;
};

/* request.c */
int	 request_parse(struct request *, const char *, size_t);
int	 request_check(struct request *, uint32_t, uint32_t);
int	 request_fail(struct request *, const char *, const char *, ...)
	    LOG_FORMAT(3, 4);
const char *request_op(const struct request *);
int	 request_level(struct request *, uint8_t *);
int	 request_session(struct request *, const char **);
int	 request_kinds(struct request *, uint32_t *);
int	 request_policy(struct request *, const char **);
int	 request_name(struct request *, enum field, const char **);
const char *request_text(const struct request *, enum field);
int	 request_is(const struct request *, enum field);
void	 request_free(struct request *);

/* answer.c: the bodies of answers, objects without the id. */
#define ANSWER_LEN	(1024 * 1024 - 64)	/* fits in CLIENT_QUEUE */

struct jsonw	*answer_ok(void);
struct jsonw	*answer_error(const char *, const char *, size_t);
const char	*answer_end(size_t *);
void		 put_str(struct jsonw *, const char *, const char *);
void		 put_uint(struct jsonw *, const char *, uint64_t);
void		 put_bool(struct jsonw *, const char *, int);
void		 put_time(struct jsonw *, const char *, uint64_t);
void		 put_seconds(struct jsonw *, const char *, uint64_t);

/*
 * A connection to a control socket.  Nothing is read from it before the
 * parent has said who is at the other end.
 */
enum client_state {
	CLIENT_PEER,	/* the parent is asked */
	CLIENT_OPEN,
	CLIENT_FOLLOW,	/* no more requests; then it is the recorder's */
	CLIENT_END,	/* no more requests; then it is closed */
	CLIENT_DEAD	/* freed in a turn of its own */
};

struct client {
	TAILQ_ENTRY(client)	 cl_entry;
	enum client_state	 cl_state;
	int			 cl_fd;		/* -1: handed over */
	int			 cl_read_only;
	int			 cl_eof;	/* it will send no more */
	struct line		 cl_line;
	struct passed		 cl_passed;	/* for the next request */
	struct evbuffer		*cl_out;
	struct event		 cl_rev;
	struct event		 cl_wev;
	struct event		 cl_timer;
	struct event		 cl_look;	/* has it gone? */
	struct waiters		 cl_waiters;
	unsigned int		 cl_nwaiters;
	uint32_t		 cl_kinds;	/* to follow */
	char			 cl_session[NAME_LEN + 1];
};

#define CLIENT_BATCH	16		/* requests per turn of the loop */
#define CLIENT_WAITERS	64		/* requests not yet answered */
#define CLIENT_QUEUE	(1024 * 1024)	/* bytes of answers not yet taken */
#define CLIENT_FIRST_S	15		/* for the first request */
#define CLIENT_LINGER_S	5		/* for the last answer */
#define CLIENT_LOOK_S	1		/* whether it still waits */

/* client.c */
extern uint32_t	 client_count;
extern uint32_t	 client_readers;	/* of these, read-only */

struct client	*client_new(int, int);
void	 client_open(struct client *);
void	 client_send(struct client *, const struct request_id *, const char *,
	    size_t);
void	 client_answer(struct client *, const struct request *);
void	 client_settle(struct client *);
void	 client_follow(struct client *, uint32_t, const char *);
void	 client_hang_up(struct client *);
void	 client_drop(struct client *);
void	 client_resume(struct ipc *);

/* What a client waits for, known to the other process by a cookie. */
enum waiter_kind {
	WAIT_PEER,
	WAIT_STATUS,
	WAIT_RELOAD,
	WAIT_START,
	WAIT_END,
	WAIT_REFUSALS,
	WAIT_PENDING,
	WAIT_ANSWER	/* of a decider */
};

struct waiter {
	RB_ENTRY(waiter)	 wt_entry;
	TAILQ_ENTRY(waiter)	 wt_sibling;	/* of the same client */
	TAILQ_ENTRY(waiter)	 wt_queued;
	struct waiters		*wt_queue;	/* or NULL */
	struct client		*wt_client;
	enum waiter_kind	 wt_kind;
	uint32_t		 wt_cookie;
	struct request_id	 wt_id;
	char			*wt_text;	/* inquiry.c: the question */
	uint64_t		 wt_since;	/* ms */
};

/* waiter.c */
struct waiter	*waiter_new(struct client *, enum waiter_kind,
		    const struct request_id *);
struct waiter	*waiter_find(uint32_t, enum waiter_kind);
void		 waiter_queue(struct waiter *, struct waiters *);
void		 waiter_answer(struct waiter *, const char *, size_t);
void		 waiter_free(struct waiter *);
uint32_t	 waiter_cookie(void);

/* control.c */
void	 control_listen(struct listeners *);
void	 control_close(struct listener *);
int	 policyd_parent_peer_answer(struct ipc *, const union msg *);
int	 policyd_parent_client(struct ipc *, const union msg *);

/* ops.c */
void	 op_serve(struct client *, const char *, size_t);
int	 policyd_parent_reload_done(struct ipc *, const union msg *);

/* environment.c */
int	 op_session_environment(struct client *, struct request *);
int	 request_environment(struct request *, char *, size_t);
void	 variables_free(struct slice *);
int	 policyd_parent_conf_environment(struct ipc *, const union msg *);

/* run.c */
int	 run_policy(struct request *, const char **);
int	 op_session_start(struct client *, struct request *);
int	 op_session_wait(struct client *, struct request *);

/* refusals.c */
int		 op_session_refusals(struct client *, struct request *);
int		 policyd_recorder_refusal(struct ipc *, const union msg *);
int		 policyd_recorder_refusals(struct ipc *, const union msg *);

void	 run_ended(struct session *, const char *);
int	 policyd_parent_session_done(struct ipc *, const union msg *);

/* ops_decide.c */
int	 op_pending_list(struct client *, struct request *);
int	 op_pending_wait(struct client *, struct request *);
int	 op_pending_answer(struct client *, struct request *);
int	 op_cache_list(struct client *, struct request *);
int	 op_decider_ask(struct client *, struct request *);
int	 op_cache_clear(struct client *, struct request *);
int	 op_session_message(struct client *, struct request *);
int	 op_session_metadata(struct client *, struct request *);
void	 pending_changed(void);

/* status.c */
void	 status_ask(struct waiter *);
int	 policyd_parent_status_proc(struct ipc *, const union msg *);
int	 policyd_parent_status_end(struct ipc *, const union msg *);
int	 policyd_recorder_audit_status(struct ipc *, const union msg *);

extern const struct sandbox	 policyd_sandbox;

#endif /* POLICYD_H */
