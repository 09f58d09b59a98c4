/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: one per session.  It holds that session's keys and reads what
 * the agent and the origins send.  It trusts the parent; policyd's verdicts
 * and the dialer's sockets it takes, everything else it checks.
 *
 *	conn	a client's connection
 *	exchange	one request and its answer, whatever protocols carry it
 *	raw	a connection that is forwarded unread
 *	flow	what these two have in common: record, verdict, connection
 *	upstream	a connection to an origin
 *
 * Between a conn and its exchanges, and between an upstream and its exchanges,
 * stands a codec: HTTP/1 carries one exchange at a time, HTTP/2 many.  The
 * exchange knows verdicts, records and limits, and nothing of spelling; each
 * codec is a table of functions, client_ops or origin_ops.
 *
 *	http/	HTTP/1, HTTP/2 and WebSocket as bytes: no verdicts, no records
 *	tls/	bytes in and out of sockets, the CA and its leaves
 *	dns/	names and the addresses that stand for them
 *	flow/	conn, exchange and upstream; verdicts and records
 *
 * The first three have headers of their own and know nothing of this one, but
 * for the files that the process starts them by (ca.c, dns_socket.c, sslmem.c).
 */

#ifndef TLSENGINE_H
#define TLSENGINE_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include "addr.h"
#include "blocks.h"
#include "child.h"
#include "http/h1.h"
#include "http/trailers.h"
#include "http/websocket.h"
#include "policy.h"
#include "reasons.h"
#include "secret.h"
#include "timer.h"
#include "tls/hello.h"
#include "tls/io.h"
#include "tls/mint.h"
#include "urlpath.h"

struct settings {
	char		 st_policy[NAME_LEN + 1];
	struct policy_options st_options;
	uint8_t		 st_asks;	/* about connections */
	uint32_t	 st_connections;
	uint64_t	 st_handshake_ms;
	uint64_t	 st_head_ms;
	uint64_t	 st_response_ms;
	uint64_t	 st_idle_ms;
	uint64_t	 st_tunnel_ms;
	uint64_t	 st_total_ms;	/* 0: no end */
};

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
	bool		 rl_cached;	/* its answer was kept */
	char		 rl_decider[NAME_LEN + 1];
	char		 rl_reason[REASON_ROOM];
};

struct conn;
struct exchange;
struct h2;
struct h2_stream;
struct upstream;

/*
 * Whoever calls what is marked ENDS has the first argument no more: it is
 * freed, or may be.  What is not marked leaves it, or says by false (or -1)
 * that it has ended.
 */
#define ENDS

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
	/* The answer is complete; the exchange is over. */
	void	 (*end)(struct exchange *, const struct trailers *);
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
	void	 (*end)(struct exchange *, const struct trailers *);
	ENDS void (*go)(struct exchange *);
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
	ENDS void (*begin)(struct flow *);
	/* The question to policyd, as it is sent. */
	void	 (*ask)(struct flow *);
	ENDS void (*ruled)(struct flow *, const struct ruling *);
	/* The rules have changed since the question. */
	void	 (*ask_again)(struct flow *);
	/* The upstream is this flow's; or there will be none, and why. */
	ENDS void (*connected)(struct flow *, struct upstream *);
	ENDS void (*no_upstream)(struct flow *, const char *);
	/* The upstream cannot be had: look for another. */
	void	 (*want)(struct flow *);
	/* All the time that the policy gives is up. */
	ENDS void (*overdue)(struct flow *);
};

/* The part of an exchange or raw connection that both have. */
struct flow {
	const struct flow_ops	*fl_ops;
	TAILQ_ENTRY(flow)	 fl_entry;	/* of those without credit */
	TAILQ_ENTRY(flow)	 fl_waits;	/* for the same upstream */
	TAILQ_ENTRY(flow)	 fl_dues;
	TAILQ_ENTRY(flow)	 fl_unsent;	/* questions */
	uint64_t		 fl_due;	/* ms; 0: it has no end */
	uint64_t		 fl_id;		/* 0: has no record yet */
	enum flow_state		 fl_state;
	uint32_t		 fl_ask;	/* number of the question */
	uint32_t		 fl_dial;	/* and what goes with it */
	uint32_t		 fl_again;
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
	const char		*ex_mismatch;	/* it is refused for that */

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

	/* Not cleared as a whole. */
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
	bool			 rw_client_end;	/* has said all */
	bool			 rw_origin_end;
	enum raw_cause		 rw_lost;	/* how the origin was */
	size_t			 rw_untold;	/* to it, of a goodbye */
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

enum conn_state {
	CONN_FIRST,		/* nothing is known yet */
	CONN_HANDSHAKE,
	CONN_HEAD,		/* between requests, or in a head */
	CONN_WAIT,		/* the head is read, the exchange decides */
	CONN_BODY,		/* of the request */
	CONN_ANSWER,		/* the request is read, the answer is not out */
	CONN_TUNNEL,		/* upgraded */
	CONN_RAW,		/* forwarded unread: raw_relay.c */
	CONN_H2,		/* requests are streams: conn_h2.c */
	CONN_LAST		/* closes when all is out */
};

struct conn {
	TAILQ_ENTRY(conn)	 cn_entry;
	struct io		 cn_io;
	enum conn_state		 cn_state;
	struct addr		 cn_dest;
	struct place		 cn_place;
	bool			 cn_synthetic;	/* we gave that address out */
	bool			 cn_transparent;
	bool			 cn_named;	/* cn_place is settled */
	const char		*cn_mismatch;	/* two names: all is refused */
	bool			 cn_denied;	/* as a whole, not told yet */
	const char		*cn_gave_up;	/* TLS, but no request: why */
	unsigned int		 cn_asked_tls;	/* times, in another protocol */
	struct timer		 cn_timer;
	unsigned int		 cn_requests;
	bool			 cn_dead;	/* its memory goes next turn */
	struct h2		*cn_h2;
	struct raw		*cn_raw;

	/* HTTP/1. */
	struct exchange		*cn_ex;
	bool			 cn_begun;	/* a head is on its way */
	unsigned char		*cn_in;		/* NULL while idle */
	size_t			 cn_inlen;
	size_t			 cn_inpos;	/* of these, used */
	struct h1_scan		 cn_scan;
	struct h1_chunk		 cn_chunk;
	uint64_t		 cn_left;	/* of a body of known length */
	bool			 cn_chunked_out;
	bool			 cn_keep;	/* another request may follow */
};

enum upstream_state {
	UP_DIAL,		/* the dialer is at it */
	UP_HANDSHAKE,
	UP_READY,		/* the verdict is not here yet */
	UP_IDLE,		/* in the pool */
	UP_BUSY,
	UP_RAW,			/* up_raw has it */
	UP_SHARED		/* in the pool, in use: HTTP/2 */
};
TAILQ_HEAD(upstreams, upstream);

struct upstream {
	TAILQ_ENTRY(upstream)	 up_entry;
	struct upstreams	*up_list;	/* of up_entry, or NULL */
	LIST_ENTRY(upstream)	 up_hash;	/* by number, while dialled */
	uint32_t		 up_id;
	enum upstream_state	 up_state;
	struct place		 up_place;
	uint32_t		 up_rule;	/* whose grant opened it */
	uint64_t		 up_generation;
	char			 up_address[ADDRESS_LEN + 1];
	struct io		 up_io;
	bool			 up_open;	/* up_io is in use */
	bool			 up_reused;
	bool			 up_h1_only;	/* for an upgrade */
	bool			 up_offered;	/* a TLS session to resume */
	bool			 up_again;	/* it failed for that */
	bool			 up_prior;	/* HTTP/2 in the clear */
	struct flows		 up_waiters;	/* until it is ready */
	struct timer		 up_timer;
	bool			 up_dead;	/* its memory goes next turn */
	const struct origin_ops	*up_ops;
	struct raw		*up_raw;

	/* HTTP/2. */
	struct h2		*up_h2;
	bool			 up_settled;	/* its settings are known */
	unsigned int		 up_using;	/* exchanges */
	const char		*up_why;	/* it is lost */

	/* HTTP/1. */
	struct exchange		*up_ex;
	char			*up_in;
	size_t			 up_inlen;
	size_t			 up_inpos;
	struct h1_scan		 up_scan;
	struct h1_head		*up_head;
	struct h1_chunk		 up_chunk;
	enum h1_framing		 up_framing;
	uint64_t		 up_left;
	bool			 up_in_body;
	bool			 up_keep;
	bool			 up_chunked_out;
	unsigned int		 up_interim;	/* 1xx answers so far */
};

/* cn_in and up_in are blocks of in_blocks: each holds a head. */
#define CONN_IN_SIZE	H1_HEAD_MAX
#define UP_IN_SIZE	CONN_IN_SIZE
extern struct blocks	 in_blocks;	/* conn.c */
#define INTERIM_MAX	16	/* 1xx answers to one request */

/* tlsengine.c */
extern struct settings		 settings;
extern uint64_t			 generation;
extern struct ipc		*policyd;
extern struct ipc		*recorder;
extern char			 request_prefix[REQUEST_PREFIX_LEN + 1];
extern const struct sandbox	 tlsengine_sandbox;
void		 set_timer(struct event *, uint64_t);

const struct secret	*trust_bundle(void);

/* ca.c */
extern struct mint		*mint;		/* NULL before a commit */
extern SSL_CTX			*server_ctx;
void		 ca_commit(const struct secret *, const struct secret *);
struct trust_file {
	unsigned char	*tf_data;
	size_t		 tf_len;
};
unsigned char	*trust_java(size_t *);
void		 trust_nss(struct trust_file *, struct trust_file *);

/* sslmem.c */
void		 sslmem_init(void);

/* box.c */
void		 box_attach(int);
void		 box_hear(void);

/* listen.c */
void		 listen_add(enum listen_kind, int);
int		 tlsengine_parent_conf_listen(struct ipc *,
		    const union msg *);
void		 listen_begin(void);
void		 listen_commit(void);

/* dns_socket.c */
void		 dns_prepare(int);				/* UDP */
void		 dns_read(evutil_socket_t, short, void *);
void		 dns_accept(int);				/* TCP */

/* nflog_socket.c */
void		 nflog_read(evutil_socket_t, short, void *);

/* conn.c */
void		 conn_new(int, const struct addr *, uint16_t, bool);
ENDS void	 conn_free(struct conn *);
void		 conns_recheck(void);
void		 conns_end(void);
void		 conn_gone(struct conn *);
void		 conn_report(struct conn *, enum record_kind, enum protocol,
		    const char *);
ENDS void	 conn_reset(struct conn *);
void		 conn_last(struct conn *);
int		 conn_place(struct conn *, const struct h1_head *,
		    struct place *, const char **, struct h1_error *);
int		 conn_sane(const struct conn *, const struct h1_head *,
		    struct h1_error *);
/* conn_first.c */
int		 conn_fill(struct conn *);
ENDS void	 conn_say_no(struct conn *, const char *);
ENDS void	 conn_not_http(struct conn *, const char *);
ENDS void	 conn_first(struct conn *);
ENDS void	 conn_handshake(struct conn *);
void		 conn_alert(struct conn *, unsigned char);
void		 conn_on_secure(struct io *, const char *);
void		 name_by_address(struct conn *);
void		 name_by_client(struct conn *, const char *);
/* conn_h1.c, conn_body.c */
extern const struct client_ops	 client_h1;
void		 conn_bad_request(struct conn *, const struct h1_error *);
ENDS void	 conn_head(struct conn *);
bool		 conn_body(struct conn *);
ssize_t		 conn_take(struct conn *, void *, size_t);
void		 conn_unbuffer(struct conn *);
void		 conn_relay_begin(struct conn *, enum conn_state);
ENDS void	 conn_relay(struct conn *);
bool		 conn_go(struct exchange *);
bool		 conn_expect(struct exchange *);
bool		 conn_tunnel(struct exchange *);

/* conn_h2.c */
extern const struct client_ops	 client_h2;
ENDS void	 conn_h2_begin(struct conn *);
void		 conn_h2_read(struct conn *);
void		 conn_h2_late(struct conn *);
void		 conn_h2_gone(struct conn *);
void		 conn_h2_recheck(struct conn *);

/* raw.c */
void		 conn_wait(struct conn *);
bool		 conn_settled(const struct conn *);
bool		 conn_ask(struct conn *);
void		 raw_ask_again(struct flow *);
ENDS void	 raw_hello(struct conn *, const struct hello *);
ENDS bool	 raw_refuse(struct conn *, const char *);
ENDS void	 raw_gave_up(struct conn *, const char *);
ENDS void	 raw_client_gone(struct raw *, enum raw_cause);
ENDS void	 raw_free(struct raw *);
ENDS void	 raw_end(struct raw *, enum raw_cause, const char *);
/* raw_relay.c */
void		 raw_connected(struct flow *, struct upstream *);
ENDS void	 raw_read_client(struct raw *);
ENDS void	 raw_read_origin(struct raw *);
void		 raw_client_drained(struct raw *);
ENDS void	 raw_origin_drained(struct raw *);
ENDS void	 raw_origin_lost(struct raw *, enum raw_cause);
ENDS void	 raw_client_late(struct raw *);
bool		 raw_nothing_left(const struct raw *);
ENDS void	 raw_finish(struct raw *);

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
ENDS void	 exchange_free(struct exchange *);
ENDS void	 exchange_end(struct exchange *);
int		 exchange_path(struct exchange *, struct h1_error *);
ENDS void	 exchange_open(struct exchange *, const char *);
void		 exchange_ask_again(struct flow *);
int		 exchange_request_data(struct exchange *, const void *, size_t);
void		 exchange_request_end(struct exchange *,
		    const struct trailers *);
bool		 exchange_answer_head(struct exchange *,
		    const struct h1_head *, const struct h1_str *);
bool		 exchange_interim(struct exchange *, const struct h1_head *);
void		 exchange_answer_data(struct exchange *, const void *, size_t);
ENDS void	 exchange_answer_end(struct exchange *,
		    const struct trailers *);
ENDS void	 exchange_up_lost(struct exchange *, const char *);
ENDS void	 exchange_up_refused(struct exchange *);
ENDS void	 exchange_fail(struct exchange *, int, const char *);
ENDS void	 exchange_client_room(struct exchange *);
ENDS void	 exchange_client_gone(struct exchange *, const char *);
void		 exchange_leave(struct exchange *, bool);

/* overdue.c */
void		 overdue_add(struct flow *);
void		 overdue_remove(struct flow *);

/* upstream_tls.c */
int		 upstream_secure(struct upstream *);
bool		 upstream_forget_session(struct upstream *);
bool		 upstream_chose_h2(struct upstream *);
bool		 place_may_speak_h2(const struct place *);
bool		 place_speaks_h2(const struct place *);
/* upstream_h1.c, upstream_answer.c */
extern const struct origin_ops	 origin_h1;
ENDS void	 upstream_answer(struct upstream *);
/* upstream_h2.c */
extern const struct origin_ops	 origin_h2;
int		 upstream_h2_new(struct upstream *);
bool		 upstream_h2_serves(const struct upstream *,
		    const struct exchange *);
ENDS void	 upstream_h2_late(struct upstream *);
ENDS void	 upstream_h2_lost(struct upstream *, const char *);
ENDS void	 upstream_h2_rest(struct upstream *);
/* upstream_pool.c */
bool		 upstream_prior(const struct exchange *);
uint32_t	 upstream_dial_exchange(struct exchange *);
void		 upstream_init(void);
bool		 upstream_kept(const struct exchange *);
struct upstream	*upstream_take(struct exchange *);
void		 upstream_want(struct exchange *);
ENDS void	 upstream_keep(struct upstream *);
void		 upstream_opening(struct upstream *);
void		 upstream_share(struct upstream *);
void		 upstream_retire(struct upstream *);
void		 upstream_unlist(struct upstream *);
void		 upstream_forget_idle(void);
/* upstream.c */
void		 upstream_trust_changed(void);
uint32_t	 upstream_dial(struct flow *, bool, bool);
ENDS void	 upstream_begin(struct upstream *);
void		 upstream_wait(struct upstream *, struct flow *);
ENDS void	 upstream_unwait(struct upstream *, struct flow *);
void		 upstream_disband(struct upstream *, const struct flow *);
ENDS void	 upstream_drop(struct upstream *);
int		 tlsengine_dialer_dialed(struct ipc *, const union msg *);
int		 tlsengine_dialer_dial_failed(struct ipc *,
		    const union msg *);

/* verdict.c */
const struct ruling	*verdict_known(const struct place *);
void		 verdict_ask(struct flow *, uint32_t);
void		 verdict_unask(struct flow *);
void		 verdict_ask_rest(void);
void		 verdict_forget(void);
uint32_t	 place_hash(const struct place *);
bool		 place_same(const struct place *, const struct place *);
int		 tlsengine_policyd_verdict(struct ipc *, const union msg *);

/* credit.c */
bool		 credit_held(void);
void		 credit_return(void);
void		 credit_spend(void);
ENDS void	 credit_await(struct flow *);
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
ENDS void	 refuse(struct exchange *, int, const char *);
bool		 refuse_as_text(const struct h1_head *);

#endif /* TLSENGINE_H */
