/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: what is judged, recorded and carried.
 *
 *	conn	a client's connection (conn.h)
 *	exchange	one request and its answer, whatever protocols carry it
 *	raw	a connection that is forwarded unread
 *	flow	what these two have in common: record, verdict, connection
 *	upstream	a connection to an origin (upstream.h)
 *
 * Between a conn and its exchanges, and between an upstream and its exchanges,
 * stands a codec: HTTP/1 carries one exchange at a time, HTTP/2 many.  The
 * exchange knows verdicts, records and limits, and nothing of spelling; each
 * codec is a table of functions, client_ops or origin_ops.
 */

#ifndef FLOW_H
#define FLOW_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include <openssl/evp.h>

#include "blocks.h"
#include "child.h"
#include "http/h1.h"
#include "http/trailers.h"
#include "http/websocket.h"
#include "policy.h"
#include "reasons.h"
#include "urlpath.h"

/* Where a request goes: the one name of promise P3. */
struct place {
	char		 pc_host[HOST_LEN + 1];
	uint16_t	 pc_port;
	uint8_t		 pc_scheme;	/* enum url_scheme */
};

/* A stable reason, with details that may be cut. */
#define REASON_ROOM	128

/* A verdict of policyd and its scope. */
struct ruling {
	uint8_t		 rl_verdict;	/* enum verdict */
	uint8_t		 rl_scope;
	uint8_t		 rl_rule_kind;
	uint32_t	 rl_rule;
	uint64_t	 rl_body;	/* bytes of the request's, at most */
	uint32_t	 rl_waited_ms;	/* for a decider */
	bool		 rl_cached;	/* a decision that was kept */
	char		 rl_decider[NAME_LEN + 1];
	char		 rl_reason[REASON_ROOM];
};

struct conn;
struct exchange;
struct h2_stream;
struct upstream;

/*
 * Who frees what.  After a function named ..._end or ..._free the caller has
 * its first argument no more.  A function that may end a flow, and with it the
 * exchange or the raw connection, returns whether the flow is still there; if
 * it is named ..._end, that is false, for its caller to return.  The memory of
 * a flow goes at once, that of a conn or an upstream when the turn is over:
 * whoever holds one during an event may look at it till then.
 */

/*
 * The side of an exchange that asked.  Bytes are put where they are sent from:
 * reserve gives room, or NULL if there is none, and then go of the other side
 * is called when there is some again.
 */
struct client_ops {
	/* A head, interim or final; -1 if it cannot be written. */
	int	 (*answer)(struct exchange *, struct h1_out_response *);
	void	*(*reserve)(struct exchange *, size_t *);
	bool	 (*commit)(struct exchange *, size_t);
	void	 (*flush)(struct exchange *);
	/* The answer is complete; the client's side forgets the exchange. */
	void	 (*finish)(struct exchange *, const struct trailers *);
	/* Break off at once, visibly to the client. */
	void	 (*cut)(struct exchange *);
	/* The origin's side has taken the head, or has room again. */
	bool	 (*go)(struct exchange *);
	/* The client waits to be told to send the body. */
	bool	 (*expect)(struct exchange *);
	/* From here on there are only bytes. */
	bool	 (*tunnel)(struct exchange *);
};

/* The side that answers. */
struct origin_ops {
	/* A head; -1 if it cannot be written. */
	int	 (*request)(struct exchange *, const struct h1_out_request *);
	void	*(*reserve)(struct exchange *, size_t *);
	bool	 (*commit)(struct exchange *, size_t);
	void	 (*flush)(struct exchange *);
	/* The request is complete. */
	void	 (*finish)(struct exchange *, const struct trailers *);
	bool	 (*go)(struct exchange *);
	/* Add the bytes carried since the last call to the exchange. */
	void	 (*tally)(struct exchange *);
	/* The exchange leaves; fit: the connection may serve others. */
	void	 (*leave)(struct exchange *, struct upstream *, bool fit);
};

enum flow_state {
	FLOW_CREDIT,		/* waits for leave to make a record */
	FLOW_VERDICT,		/* policyd is asked */
	FLOW_CONNECT,		/* an upstream is on its way */
	FLOW_FORWARD,		/* bytes pass */
	FLOW_DONE
};

struct flow;

/* Events that an exchange and a raw connection each handle. */
struct flow_ops {
	/* The recorder has given a credit. */
	bool	 (*begin)(struct flow *);
	/* The question to policyd, as it is sent. */
	void	 (*ask)(struct flow *);
	bool	 (*ruled)(struct flow *, const struct ruling *);
	/* The rules have changed since the question. */
	void	 (*ask_again)(struct flow *);
	/* The upstream is this flow's; or there will be none, and why. */
	bool	 (*connected)(struct flow *, struct upstream *);
	bool	 (*no_upstream)(struct flow *, const char *);
	/* The upstream cannot be had: look for another. */
	void	 (*want)(struct flow *);
	/* The flow has lasted as long as the policy permits. */
	void	 (*overdue_end)(struct flow *);
};

/* The part of an exchange or raw connection that both have. */
struct flow {
	const struct flow_ops	*fl_ops;
	TAILQ_ENTRY(flow)	 fl_entry;	/* flows without credit */
	TAILQ_ENTRY(flow)	 fl_waits;	/* for the same upstream */
	TAILQ_ENTRY(flow)	 fl_dues;
	TAILQ_ENTRY(flow)	 fl_unsent;	/* questions */
	uint64_t		 fl_due;	/* ms; 0: it has no end */
	uint64_t		 fl_id;		/* 0: has no record yet */
	enum flow_state		 fl_state;
	uint32_t		 fl_ask;	/* number of the question */
	uint32_t		 fl_dial;	/* number of the connection */
	uint32_t		 fl_again;	/* an earlier question, or 0 */
	bool			 fl_asking;	/* the question is not sent */
	bool			 fl_redialled;	/* without a TLS session */
	uint8_t			 fl_protocol;
	struct conn		*fl_conn;
	struct upstream		*fl_up;
	uint64_t		 fl_request_body;
	uint64_t		 fl_answer_body;
	uint64_t		 fl_bytes_in;	/* from and to origins */
	uint64_t		 fl_bytes_out;

	/* Large, and seldom used to the end: not cleared as a whole. */
	struct ruling		 fl_ruling;
	struct place		 fl_place;
	char			 fl_why[REASON_ROOM]; /* no upstream comes */
};
TAILQ_HEAD(flows, flow);

/* Buffers of conns and of upstreams are blocks of one kind, each for a head. */
#define IN_SIZE		H1_HEAD_MAX
extern struct blocks	 in_blocks;	/* conn.c */

/* Most paths need no memory of their own. */
#define PATH_ROOM	256

/* One request and its answer. */
struct exchange {
	struct flow		 ex_flow;	/* first */
#define ex_id			 ex_flow.fl_id
#define ex_state		 ex_flow.fl_state
#define ex_protocol		 ex_flow.fl_protocol
#define ex_conn			 ex_flow.fl_conn
#define ex_up			 ex_flow.fl_up
#define ex_request_body		 ex_flow.fl_request_body
#define ex_answer_body		 ex_flow.fl_answer_body
#define ex_bytes_in		 ex_flow.fl_bytes_in
#define ex_bytes_out		 ex_flow.fl_bytes_out
#define ex_ruling		 ex_flow.fl_ruling
#define ex_place		 ex_flow.fl_place
#define ex_why			 ex_flow.fl_why
	const struct client_ops	*ex_client;
	struct h2_stream	*ex_asks;	/* of a client of HTTP/2 */
	const struct origin_ops	*ex_origin;	/* NULL: not begun there */
	struct h2_stream	*ex_answers;	/* of an origin of HTTP/2 */
	const char		*ex_mismatch;	/* why it is refused, or NULL */

	bool			 ex_request_end;
	bool			 ex_retried;
	bool			 ex_heard;	/* of the origin, a byte */
	bool			 ex_answered;	/* a head went to the client */
	bool			 ex_upgraded;
	bool			 ex_text;	/* how a refusal is worded */
	int			 ex_status;
	uint64_t		 ex_in_before;	/* what ex_up had carried */
	uint64_t		 ex_out_before;
	EVP_MD_CTX		*ex_hash[2];	/* of the bodies, if wanted */
	bool			 ex_cut[2];	/* no more of it is shown */
	char			*ex_path;	/* canonical, or "*" or "" */
	size_t			 ex_pathlen;

	/* Large: exchange_new() does not clear it as a whole. */
	char			 ex_method[METHOD_LEN + 1];
	char			 ex_key[WEBSOCKET_KEY + 1]; /* we made it */
	char			 ex_path_room[PATH_ROOM];
	struct h1_head		 ex_request;
};

/* How a raw connection that was allowed has ended. */
enum raw_cause {
	RAW_UNDER_WAY,
	RAW_CLOSED,		/* by both, and all that was said passed on */
	RAW_CLIENT_DONE,	/* reset, with nothing left for either */
	RAW_CLIENT_RESET,
	RAW_CLIENT_IDLE,
	RAW_ORIGIN_RESET,
	RAW_ORIGIN_IDLE,
	RAW_NO_ORIGIN,		/* could not be connected */
	RAW_OVERDUE,		/* after all the time that the policy gives */
	RAW_QUOTA,
	RAW_RULES		/* have changed, and allow it no more */
};

/* A connection that is forwarded unread. */
struct raw {
	struct flow		 rw_flow;	/* first */
	bool			 rw_client_end;	/* the client has said all */
	bool			 rw_origin_end;
	enum raw_cause		 rw_lost;	/* how the origin was lost */
	size_t			 rw_untold;	/* bytes, to a lost origin */
};

/* What is known of a request that never had a credit. */
struct leaver {
	STAILQ_ENTRY(leaver)	 lv_entry;
	size_t			 lv_size;
	uint64_t		 lv_at;
	struct place		 lv_place;
	uint8_t			 lv_protocol;
	bool			 lv_inspected;
	char			 lv_method[METHOD_LEN + 1];
	char			 lv_path[];
};

/* flow.c */
void		 flow_init(struct flow *, const struct flow_ops *,
		    struct conn *);
void		 flow_clear(struct flow *);
const char	*flow_obstacle(void);
bool		 flow_send(struct flow *, size_t);
const char	*flow_denial(const struct ruling *);
void		 flow_deny(struct flow *, int, const char *);

/* exchange.c */
struct exchange	*exchange_new(const struct client_ops *, struct conn *);
void		 exchange_free(struct exchange *);
void		 exchange_end(struct exchange *);
int		 exchange_path(struct exchange *, struct h1_error *);
bool		 exchange_open(struct exchange *, const char *);
void		 exchange_ask_again(struct flow *);
bool		 exchange_request_data(struct exchange *, const void *, size_t);
void		 exchange_request_finish(struct exchange *,
		    const struct trailers *);
bool		 exchange_answer_head(struct exchange *,
		    const struct h1_head *, const struct h1_str *);
bool		 exchange_interim(struct exchange *, const struct h1_head *);
void		 exchange_answer_data(struct exchange *, const void *, size_t);
void		 exchange_answer_end(struct exchange *,
		    const struct trailers *);
bool		 exchange_up_lost(struct exchange *, const char *);
bool		 exchange_up_refused(struct exchange *);
bool		 exchange_fail_end(struct exchange *, int, const char *);
bool		 exchange_client_room(struct exchange *);
void		 exchange_client_gone_end(struct exchange *, const char *);
void		 exchange_leave(struct exchange *, bool);

/* overdue.c */
void		 overdue_add(struct flow *);
void		 overdue_remove(struct flow *);

/* raw.c */
void		 raw_ask_again(struct flow *);
void		 raw_client_gone_end(struct raw *, enum raw_cause);
void		 raw_free(struct raw *);
bool		 raw_end(struct raw *, enum raw_cause, const char *);
/* raw_relay.c */
bool		 raw_connected(struct flow *, struct upstream *);
bool		 raw_read_client(struct raw *);
bool		 raw_read_origin(struct raw *);
void		 raw_client_drained(struct raw *);
bool		 raw_origin_drained(struct raw *);
bool		 raw_origin_lost(struct raw *, enum raw_cause);
void		 raw_client_late_end(struct raw *);
bool		 raw_nothing_left(const struct raw *);
bool		 raw_finish(struct raw *);

/* verdict.c */
const struct ruling	*verdict_known(const struct place *);
void		 verdict_ask(struct flow *, uint32_t);
void		 verdict_send(const struct flow *, enum about, uint64_t,
		    const char *, const char *);
void		 verdict_unask(struct flow *);
void		 verdict_ask_rest(void);
void		 verdict_forget(void);
uint32_t	 place_hash(const struct place *);
bool		 place_same(const struct place *, const struct place *);
uint16_t	 place_usual_port(const struct place *);
int		 tlsengine_policyd_verdict(struct ipc *, const union msg *);

/* credit.c */
bool		 credit_held(void);
void		 credit_return(void);
void		 credit_spend(void);
bool		 credit_await(struct flow *);
void		 credit_left(struct flow *, const struct exchange *);
void		 credit_end(void);
int		 tlsengine_recorder_credit(struct ipc *, const union msg *);

/* report.c: records */
bool		 report_crowded(void);
void		 report_opened(struct exchange *, const struct ruling *);
void		 report_raw_opened(struct flow *);
void		 report_verdict(const struct flow *);
void		 report_leaver(const struct leaver *);
void		 report_answer(const struct flow *, int, const struct h1_str *);
void		 report_body(struct exchange *, int, uint64_t, const void *,
		    size_t);
void		 report_closed(struct exchange *, const char *);
void		 report_raw_closed(const struct flow *, const char *);
void		 report_settle(void);
void		 report_other(enum record_kind, enum protocol, const char *,
		    uint16_t, const char *);

/* refuse.c */
bool		 refuse_end(struct exchange *, int, const char *);
bool		 refuse_as_text(const struct h1_head *);

#endif /* FLOW_H */
