/* SPDX-License-Identifier: ISC */

/*
 * controld: owns the control sockets, what operators ask for, and of each
 * session its name, its client and its life.  It sees no rules, no keys and
 * no requests of agents: what it is asked about those, it asks policyd and the
 * recorder.  It trusts the parent, and policyd and the recorder to answer; a
 * control client can lose its connection by what it does, and never more.
 */

#ifndef CONTROLD_H
#define CONTROLD_H

#include <sys/types.h>
#include <sys/queue.h>
#include <sys/tree.h>

#include <stdint.h>

#include <cjson/cJSON.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#include "child.h"
#include "codes.h"
#include "ipc.h"
#include "jsonput.h"
#include "jsonw.h"
#include "log.h"
#include "sandbox.h"

/* The slice of the configuration. */
struct named_session {
	TAILQ_ENTRY(named_session) ns_entry;
	char			 ns_name[NAME_LEN + 1];
	char			 ns_policy[NAME_LEN + 1];
};
TAILQ_HEAD(named_sessions, named_session);

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
	int			 va_pass;
	char			 va_pattern[NAME_LEN + 1];
};
TAILQ_HEAD(variables, variable);

/* Of a policy its name; the rules are policyd's. */
struct named_policy {
	TAILQ_ENTRY(named_policy) np_entry;
	char			 np_name[NAME_LEN + 1];
	uint32_t		 np_rules;	/* how many */
	struct variables	 np_variables;
};
TAILQ_HEAD(named_policies, named_policy);

/* What a client may ask for by name; the rest of it is the parent's. */
struct named_sandbox {
	TAILQ_ENTRY(named_sandbox) nb_entry;
	char			 nb_name[NAME_LEN + 1];
	char			 nb_policy[NAME_LEN + 1];
	char			 nb_cwd[PATH_LEN + 1];	/* or "" */
	char			 nb_user[NAME_LEN + 1];	/* or "" */
	int			 nb_default;
	struct msg_conf_sandbox	 nb_conf;	/* without its texts */
};
TAILQ_HEAD(named_sandboxes, named_sandbox);

struct slice {
	int			 sl_limited;	/* the limits have come */
	int			 sl_lost;	/* a descriptor has not */
	uint32_t		 sl_clients;
	uint32_t		 sl_sessions_max;	/* of every kind */
	uint32_t		 sl_nsessions;
	struct listeners	 sl_listeners;
	struct named_policies	 sl_policies;
	struct named_sandboxes	 sl_sandboxes;
	struct named_sessions	 sl_sessions;
};

/* conf.c */
extern struct slice	*conf_running;		/* NULL before the first */
extern struct slice	*conf_candidate;	/* NULL: none is prepared */

void	 controld_warm(void);
int	 conf_operator(uid_t);
uint32_t conf_share(uid_t, uint32_t);
void	 controld_begin(uint64_t);
int	 controld_weigh(char *, size_t);
void	 controld_commit(void);
void	 controld_abort(void);
const struct named_session *conf_session(const struct slice *, const char *);
const struct named_policy *conf_policy(const struct slice *, const char *);
int	 controld_parent_conf_control(struct ipc *, const union msg *);
int	 controld_parent_conf_limits(struct ipc *, const union msg *);
int	 controld_parent_conf_session(struct ipc *, const union msg *);
int	 controld_parent_conf_policy_name(struct ipc *, const union msg *);
const struct named_sandbox *conf_sandbox(const struct slice *, const char *);
const struct named_sandbox *conf_default_sandbox(const struct slice *);
int	 controld_parent_conf_sandbox(struct ipc *, const union msg *);
int	 controld_parent_conf_environment(struct ipc *, const union msg *);

/* channel.c */
extern struct ipc	*channel_policyd;
extern struct ipc	*channel_recorder;
extern struct ipc	*channel_k8sd;
extern struct ipc	*channel_podd;

int	 controld_channel(const struct msg_channel *, int);

/*
 * Declared by the configuration; started for a sandbox that a client makes; or
 * with a sandbox that the daemon makes.  The latter two end with their engine.
 */
enum session_kind {
	SESSION_FIXED,
	SESSION_RUN,
	SESSION_SANDBOX
};

/* A sandbox that the daemon makes, as whoever asked for it is told of it. */
struct boxed {
	char			 bx_name[NAME_LEN + 1];	/* or "": built in */
	enum sandbox_kind	 bx_kind;
	char			 bx_cwd[PATH_LEN + 1];	/* or "" */
	char			 bx_user[NAME_LEN + 1];	/* or "" */
	struct msg_conf_sandbox	 bx_conf;	/* its limits */
	uint8_t			 bx_cgroup;	/* which keeps them */
};

/* backoff.c */
#define BACKOFF_FIRST_MS	500
#define BACKOFF_MOST_MS		15000
#define BACKOFF_WELL_MS		15000	/* up for so long: all is well */
#define BACKOFF_BUDGET_MS	(10 * 60 * 1000)

struct backoff {
	uint64_t		 bo_since;	/* it has not been well; ms */
	uint64_t		 bo_up;		/* or 0 */
	unsigned int		 bo_delay_ms;	/* the next time */
};

void	 backoff_reset(struct backoff *);
void	 backoff_up(struct backoff *, uint64_t);
int	 backoff_failed(struct backoff *, uint64_t);

/* link.c: the channel to a pod's gate. */
enum link_state {
	LINK_NONE,
	LINK_DIALLING,
	LINK_OPENING,
	LINK_UP,
	LINK_OTHER,
	LINK_WAITING,
	LINK_GIVEN_UP,
	LINK_HOSTILE
};

struct link {
	enum link_state		 lk_state;
	uint32_t		 lk_number;	/* of the last one; 0: none */
	uint64_t		 lk_since;	/* ns since the epoch */
	struct backoff		 lk_backoff;
	struct event		 lk_timer;
	char			 lk_uid[NAME_LEN + 1];	/* of the pod */
	char			 lk_node[HOST_LEN + 1];
	char			 lk_text[512];	/* why, or "" */
	char			 lk_ended[512];	/* as k8sd says */
};

/* See pods.c. */
enum pod_life {
	POD_ASKED,
	POD_STARTING,
	POD_RUNS,
	POD_STOPPING,
	POD_OVER
};

struct pod {
	enum pod_life		 po_life;
	int			 po_named;	/* its client gave it an id */
	char			*po_variables;	/* until k8sd has them */
	size_t			 po_variableslen;
	char			 po_cwd[PATH_LEN + 1];	/* or "" */
	uint64_t		 po_deadline_ms;
	char			 po_name[HOST_LEN + 1];	/* once it runs */
	int			 po_gated;	/* it has a gate */
	struct link		 po_link;	/* to it */
	enum pod_fate		 po_fate;	/* when it is stopped */
	enum session_cause	 po_cause;	/* why it is */
	enum pod_error		 po_error;	/* it did not start, */
	char			*po_text;	/* or NULL */
	char			*po_reason;	/* policyd's; or NULL */
};

struct waiter;
TAILQ_HEAD(waiters, waiter);

struct session {
	RB_ENTRY(session)	 se_entry;
	enum session_kind	 se_kind;
	char			 se_name[SESSION_LEN + 1];
	char			 se_policy[NAME_LEN + 1];
	uint32_t		 se_number;	/* of a sandbox's; 0: fixed */
	int			 se_starting;	/* the parent is asked */
	int			 se_over;	/* ended before it answered */
	struct event		 se_deadline;	/* if it has one */
	uint64_t		 se_ends;	/* then: ns since the epoch */
	uint64_t		 se_began;	/* was asked for; likewise */
	uid_t			 se_uid;	/* of the client that did */
	struct client		*se_owner;	/* ends with it, or NULL */
	uint32_t		 se_attached;	/* clients, so far */
	int			 se_stopped;	/* the parent was told to */
	struct boxed		 se_boxed;
	struct pod		*se_pod;	/* NULL: no pod's */
	struct waiters		 se_starters;	/* for its beginning */
	struct waiters		 se_waiters;	/* for its end */
	/* What policyd said in the survey of this cookie. */
	uint32_t		 se_surveyed;
	struct msg_state_session se_state;	/* without its texts */
	char			 se_ca[FINGERPRINT_LEN + 1];
};
RB_HEAD(sessions, session);
RB_PROTOTYPE(sessions, session, se_entry, session_cmp);

/* session.c */
extern struct sessions	 sessions;
extern uint32_t		 session_count;

uint32_t	 session_count_of(uid_t);
struct session	*session_find(const char *);
struct session	*session_by_number(uint32_t);
const char	*session_kind_name(const struct session *);
struct session	*session_start(enum session_kind, const char *, const char *,
	    const struct client *);
void	 session_expire(struct session *, uint64_t);
void	 session_stop(struct session *, enum session_cause);
void	 session_owner_gone(const struct client *);
void	 session_free(struct session *);
void	 session_follow(void);

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
void	 line_back(struct line *, char *, size_t);

/* What a client calls its request; the answer carries it back. */
struct request_id {
	int			 ri_given;
	int64_t			 ri_value;
};

/* A field of an operation: a row of the operation's own table. */
enum field_type {
	FIELD_INTEGER,
	FIELD_STRING,
	FIELD_FROM,	/* a record's number, or "acknowledged" */
	FIELD_BOOLEAN,
	FIELD_STRINGS,		/* an array of them */
	FIELD_STRINGS_SOME,	/* not an empty one */
	FIELD_STRING_MAP,	/* an object of them */
	FIELD_OBJECTS		/* an array of objects */
};

struct field {
	const char		*fi_name;	/* NULL ends a table */
	enum field_type		 fi_type;
	enum { MAY, MUST }	 fi_must;
};

#define REQUEST_FIELDS	10	/* of an operation, beside id and op */

/*
 * One request.  A function that returns -1 has set code and message of the
 * error that the client is told; request_free() is due in any case.
 */
struct request {
	cJSON			*rq_json;
	struct request_id	 rq_id;
	const cJSON		*rq_id_field;
	const cJSON		*rq_op_field;
	const struct field	*rq_fields;	/* of the operation, or NULL */
	const cJSON		*rq_values[REQUEST_FIELDS];
	const char		*rq_twice;	/* a field given again */
	const char		*rq_stray;	/* not a field of it */
	unsigned int		 rq_credit;	/* OP_ERRAND, OP_REFUSALS */
	const char		*rq_code;
	char			 rq_message[512];
	int			 rq_hangup;
};

/* request.c */
int	 request_parse(struct request *, const char *, size_t);
int	 request_check(struct request *, const struct field *);
int	 request_fail(struct request *, const char *, const char *, ...)
	    LOG_FORMAT(3, 4);
int	 field_known(const struct field *, const char *);
const char *request_op(const struct request *);
const cJSON *request_field(const struct request *, const char *);
int	 request_has(const struct request *, const char *);
const char *request_text(const struct request *, const char *);
double	 request_number(const struct request *, const char *);
int	 request_is(const struct request *, const char *);
int	 request_name(struct request *, const char *, const char **);
int	 request_session(struct request *, const char **);
int	 request_level(struct request *, uint8_t *);
int	 request_kinds(struct request *, uint32_t *);
void	 request_free(struct request *);

/* answer.c: the bodies of answers, objects without the id. */
#define ANSWER_LEN	(1024 * 1024 - 64)	/* fits in CLIENT_QUEUE */

struct jsonw	*answer_ok(void);
struct jsonw	*answer_error(const char *, const char *, size_t);
void		 answer_progress(const char *);
const char	*answer_end(size_t *);

/*
 * A connection to a control socket.  Nothing is read from it before the
 * parent has said who is at the other end.
 */
enum client_state {
	CLIENT_PEER,	/* the parent is asked */
	CLIENT_OPEN,
	CLIENT_FOLLOW,	/* no more requests; then it is the recorder's */
	CLIENT_SERVE,	/* no more requests; then it is deciderd's */
	CLIENT_ATTACH,	/* no more requests; then it is a sandbox's */
	CLIENT_END,	/* no more requests; then it is closed */
	CLIENT_DEAD	/* freed in a turn of its own */
};

struct client {
	TAILQ_ENTRY(client)	 cl_entry;
	enum client_state	 cl_state;
	int			 cl_fd;		/* -1: handed over */
	int			 cl_read_only;
	uid_t			 cl_uid;
	gid_t			 cl_gid;
	int			 cl_eof;	/* it will send no more */
	int			 cl_parked;	/* it waits for credit */
	struct line		 cl_line;
	struct passed		 cl_passed;	/* for the next request */
	struct evbuffer		*cl_out;
	struct event		 cl_rev;
	struct event		 cl_wev;
	struct event		 cl_timer;
	struct event		 cl_look;	/* has it gone? */
	struct waiters		 cl_waiters;
	unsigned int		 cl_nwaiters;
	struct msg_follow	 cl_follow;	/* but for the session; or the
						 * term of who serves */
	char			 cl_session[SESSION_LEN + 1];	/* follows */
	uint32_t		 cl_number;	/* of the session to attach */
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
void	 client_open(struct client *, uid_t, gid_t);
void	 client_send(struct client *, const struct request_id *, const char *,
	    size_t);
void	 client_answer(struct client *, const struct request *);
void	 client_settle(struct client *);
void	 client_follow(struct client *, const struct msg_follow *);
void	 client_answers(struct client *, uint64_t);
int	 client_said_more(const struct client *);
void	 client_attach(struct client *, uint32_t);
void	 client_hang_up(struct client *);
void	 client_drop(struct client *);
void	 client_resume(struct ipc *);
void	 client_unpark(void);

/*
 * What a client waits for.  Whoever is asked for it knows the waiter by its
 * cookie.
 */
enum waiter_kind {
	WAIT_PEER,
	WAIT_STATUS,
	WAIT_RELOAD,
	WAIT_START,
	WAIT_END,
	WAIT_MOUNT,
	WAIT_REFUSALS,
	WAIT_ACK,
	WAIT_PENDING,		/* for a list of questions, or a change */
	WAIT_CACHE,		/* for a list of kept answers */
	WAIT_INQUIRY,		/* for a decider's answer */
	WAIT_POD,		/* for k8sd's; ops_pods.c */
	WAIT_ERRAND		/* errand.c */
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
	int			 wt_progress;	/* it is to be told */
	char			*wt_text;	/* what it is about, or NULL */
	double			 wt_version;	/* of the list that is known */
	uint64_t		 wt_since;	/* ms */
	void			(*wt_tell)(struct waiter *,
				    const struct msg_control_done *);
};

/* waiter.c */
struct waiter	*waiter_new(struct client *, enum waiter_kind,
		    const struct request_id *);
struct waiter	*waiter_find(uint32_t, enum waiter_kind);
void		 waiter_about(struct waiter *, const char *, size_t);
void		 waiter_queue(struct waiter *, struct waiters *);
void		 waiter_answer(struct waiter *, const char *, size_t);
void		 waiter_finish(struct waiter *);
void		 waiter_error(struct waiter *, const char *, const char *, ...)
		    LOG_FORMAT(3, 4);
void		 waiter_free(struct waiter *);
uint32_t	 waiter_cookie(void);

/*
 * survey.c: what is asked of others for several clients at once.  A request
 * that comes while a survey runs waits for the next one, so that no answer is
 * older than its question, and so does one that comes while the answer is late;
 * and however many ask, there are at most SURVEY_RATE surveys in any second.
 */
#define SURVEY_RATE		10
#define SURVEY_TIMEOUT_S	5

struct survey {
	const char		*sv_name;
	int			 sv_alike;	/* one answer serves all */
	void			(*sv_ask)(const struct waiter *);
	const char		*(*sv_late)(void);	/* who is it? */
	int			 sv_ready;	/* survey_join() was here */
	uint32_t		 sv_cookie;	/* 0: none is running */
	struct waiters		 sv_waiting;
	struct waiters		 sv_asking;
	uint64_t		 sv_began[SURVEY_RATE];	/* ms, the last ones */
	unsigned int		 sv_next;	/* in sv_began: the oldest */
	struct event		 sv_timer;
};

void	 survey_join(struct survey *, struct waiter *);
int	 survey_is(const struct survey *, uint32_t);
void	 survey_finish(struct survey *);
void	 survey_fail(struct survey *, const char *);

/*
 * errand.c: what policyd does for a client and answers at once.  No more than
 * ERRANDS_MAX are under way; a client that wants another waits unread.
 */
#define ERRANDS_MAX	32

int	 errand_room(void);
struct waiter *errand_new(struct client *, const struct request *,
	    void (*)(struct waiter *, const struct msg_control_done *));
int	 controld_policyd_control_done(struct ipc *, const union msg *);

/* control.c */
void	 control_listen(struct listeners *);
void	 control_close(struct listener *);
int	 controld_parent_peer_answer(struct ipc *, const union msg *);
int	 controld_parent_client(struct ipc *, const union msg *);

/*
 * An operation: a row of the table of the file that carries it out.  The
 * tables are listed in ops.c.
 */
#define OP_READ_ONLY	0x01	/* the read-only socket serves it */
#define OP_PASSED	0x02	/* it takes a descriptor */
#define OP_ERRAND	0x04	/* policyd has to do it: errand_new() */
#define OP_REFUSALS	0x08	/* the recorder has to: refusals_room() */

struct op {
	const char	 *op_name;	/* NULL ends a table */
	unsigned int	  op_flags;
	int		(*op_run)(struct client *, struct request *);
	const struct field *op_fields;
};

/* ops.c */
void	 op_spend(const struct request *, unsigned int);
int	 op_serve(struct client *, const char *, size_t);
int	 controld_parent_reload_done(struct ipc *, const union msg *);

/* environment.c */
extern const struct op	 environment_ops[];

int	 request_environment(struct request *, char *, size_t);

/* run.c */
#define RUN_DEADLINE_MAX_S	(366 * 24 * 60 * 60)

extern const struct op	 run_ops[];

int	 run_room(struct request *, const struct client *);
int	 run_policy(struct request *, const char **);
int	 run_deadline(struct request *, uint64_t *);
int	 run_free_name(struct request *, const char *);
void	 run_make_name(const char *, char *, size_t);
void	 run_began(struct session *);
void	 run_end(struct session *, const char *);
int	 controld_parent_session_done(struct ipc *, const union msg *);
int	 controld_policyd_session_ended(struct ipc *, const union msg *);

/* boxed.c: sessions whose sandbox the daemon makes */
extern const struct op	 boxed_ops[];

int	 boxed_start(struct client *, struct request *);
struct session *boxed_owned(struct client *, struct request *);
void	 boxed_put(struct jsonw *, const struct session *);
void	 boxed_put_sessions(struct jsonw *, const char *);
int	 boxed_check_owner(struct request *, const struct session *,
	    const struct client *);
int	 boxed_stop(struct client *, struct request *, struct session *);

/* pods.c: of these, sessions whose sandbox is a pod */
void	 pod_new(struct session *, int, const char *, uint64_t, const void *,
	    size_t);
void	 pod_free(struct pod *);
char	*pod_copy(const char *);
void	 pod_begin(struct session *);
int	 pod_is_starting(const struct session *);
int	 pod_stop(struct session *, enum session_cause);
int	 pod_outlives(struct session *, const char *);
void	 pod_refuse(const struct session *);
int	 pod_attach(const struct session *, int);
void	 pod_put(struct jsonw *, const struct session *);
int	 controld_k8sd_pod_progress(struct ipc *, const union msg *);
int	 controld_k8sd_pod_done(struct ipc *, const union msg *);
int	 controld_k8sd_pod_ended(struct ipc *, const union msg *);

/* link.c */
void	 link_begin(struct session *);
void	 link_again(struct session *);
void	 link_end(struct pod *);
void	 link_put(struct jsonw *, const struct session *);
int	 controld_k8sd_pod_channel_opened(struct ipc *, const union msg *);
int	 controld_k8sd_pod_channel_ended(struct ipc *, const union msg *);
int	 controld_podd_podd_state(struct ipc *, const union msg *);

/* ops_pods.c */
extern const struct op	 pods_ops[];

int	 pods_list(struct client *, struct request *, const char *, int);
int	 controld_k8sd_pod_item(struct ipc *, const union msg *);
int	 controld_k8sd_pod_answer(struct ipc *, const union msg *);

/* mounting.c: what their owners have mounted in there */
extern const struct op	 mounting_ops[];

int	 mounting_take(struct request *, char *, size_t, size_t *);
int	 mounting_check(struct request *, enum sandbox_kind, int);
int	 controld_parent_session_mounted(struct ipc *, const union msg *);

/* refusals.c */
extern const struct op	 refusals_ops[];

int	 refusals_room(void);

/* follow.c */
extern const struct op	 follow_ops[];
int	 controld_recorder_ack_done(struct ipc *, const union msg *);
int	 controld_recorder_refusal(struct ipc *, const union msg *);
int	 controld_recorder_refusals(struct ipc *, const union msg *);

/* ops_decide.c */
extern const struct op	 decide_ops[];

int	 controld_policyd_pending_changed(struct ipc *, const union msg *);
int	 controld_policyd_listed_pending(struct ipc *, const union msg *);
int	 controld_policyd_listed_answer(struct ipc *, const union msg *);
int	 controld_policyd_list_end(struct ipc *, const union msg *);

/* ops_context.c */
#define METADATA_MAX	256	/* entries */

extern const struct op	 context_ops[];

/* inquiry.c: a question that an operator makes up. */
#define INQUIRIES_MAX	64	/* under way */

extern const struct op	 inquiry_ops[];

void	 inquiry_drop(const struct waiter *);
int	 controld_policyd_inquiry_asked(struct ipc *, const union msg *);
int	 controld_policyd_inquiry_answer(struct ipc *, const union msg *);

/* status.c */
extern const struct op	 status_ops[];

int	 controld_parent_status_proc(struct ipc *, const union msg *);
int	 controld_parent_status_end(struct ipc *, const union msg *);
int	 controld_policyd_state_session(struct ipc *, const union msg *);
int	 controld_policyd_state_decider(struct ipc *, const union msg *);
int	 controld_policyd_state_end(struct ipc *, const union msg *);
int	 controld_recorder_audit_status(struct ipc *, const union msg *);

extern const struct sandbox	 controld_sandbox;

#endif /* CONTROLD_H */
