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
 * tlsengine: one per session.  It holds that session's keys and reads what
 * the agent and the origins send.  It trusts the parent; policyd's verdicts
 * and the dialer's sockets it takes, everything else it checks.
 *
 *	conn	a client's connection
 *	exchange	one request and its answer, whatever protocols carry it
 *	upstream	a connection to an origin
 *
 * Between a conn and its exchanges, and between an upstream and its exchanges,
 * stands a codec: HTTP/1 carries one exchange at a time, HTTP/2 many.  The
 * exchange knows verdicts, records and limits, and nothing of spelling; each
 * codec is a table of functions, client_ops or origin_ops.
 */

#ifndef TLSENGINE_H
#define TLSENGINE_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include "addr.h"
#include "blocks.h"
#include "child.h"
#include "h1.h"
#include "hello.h"
#include "io.h"
#include "mint.h"
#include "secret.h"
#include "timer.h"
#include "urlpath.h"
#include "websocket.h"

struct settings {
	char		 st_policy[NAME_LEN + 1];
	uint8_t		 st_refuse;
	uint8_t		 st_asks;	/* about connections */
	uint8_t		 st_capture_hash;
	uint32_t	 st_capture;
	uint32_t	 st_connections;
	uint64_t	 st_quota_out;	/* bytes in all, 0: no end */
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

/* What policyd said, and for how long it may be believed. */
struct ruling {
	uint8_t		 rl_verdict;	/* enum verdict */
	uint8_t		 rl_scope;
	uint8_t		 rl_rule_kind;
	uint32_t	 rl_rule;
	uint64_t	 rl_body;	/* bytes of the request's, at most */
	uint32_t	 rl_waited_ms;	/* for a decider */
	bool		 rl_cached;	/* its answer was kept */
	char		 rl_decider[NAME_LEN + 1];
	char		 rl_reason[128];
};

struct conn;
struct exchange;
struct h2;
struct h2_stream;
struct upstream;

/* Fields that follow a body. */
struct trailers {
	const struct h1_field	*tr_fields;
	size_t			 tr_n;
};

/*
 * The side of an exchange that asked.  Bytes are put where they are sent from:
 * reserve gives room, or NULL if there is none, and then go of the other side
 * is called when there is some again.
 */
struct client_ops {
	/* A head, interim or final; -1 if it cannot be written. */
	int	 (*answer)(struct exchange *, struct h1_out_response *);
	void	*(*reserve)(struct exchange *, size_t *);
	void	 (*commit)(struct exchange *, size_t);
	void	 (*flush)(struct exchange *);
	/* The answer is complete; the exchange is over, unless it is raw. */
	void	 (*end)(struct exchange *, const struct trailers *);
	/* It ends here and now, and the client must notice. */
	void	 (*cut)(struct exchange *);
	/* The origin's side has taken the head, or has room again. */
	void	 (*go)(struct exchange *);
	/* The client waits to be told to send the body. */
	void	 (*expect)(struct exchange *);
	/* From here on there are only bytes. */
	void	 (*tunnel)(struct exchange *);
};

/* The side that answers. */
struct origin_ops {
	/* NULL: there is no head, all that comes is the answer. */
	int	 (*request)(struct exchange *, const struct h1_out_request *);
	void	*(*reserve)(struct exchange *, size_t *);
	void	 (*commit)(struct exchange *, size_t);
	void	 (*flush)(struct exchange *);
	void	 (*end)(struct exchange *, const struct trailers *);
	void	 (*go)(struct exchange *);
	/* What was carried for it since the last call is added to it. */
	void	 (*tally)(struct exchange *);
	/* Done with it; the connection may be fit for others. */
	void	 (*leave)(struct exchange *, struct upstream *, bool fit);
};

enum exchange_state {
	EX_CREDIT,		/* waits for leave to make a record */
	EX_VERDICT,		/* policyd is asked */
	EX_CONNECT,		/* an upstream is on its way */
	EX_FORWARD,		/* bytes pass */
	EX_DONE
};

/* Most paths need no memory of their own. */
#define PATH_ROOM	256

struct exchange {
	TAILQ_ENTRY(exchange)	 ex_entry;	/* of those without credit */
	TAILQ_ENTRY(exchange)	 ex_waits;	/* for the same upstream */
	TAILQ_ENTRY(exchange)	 ex_dues;
	TAILQ_ENTRY(exchange)	 ex_unsent;	/* questions */
	uint64_t		 ex_due;	/* ms; 0: it has no end */
	uint64_t		 ex_id;
	enum exchange_state	 ex_state;
	uint32_t		 ex_ask;	/* number of the question */
	uint32_t		 ex_dial;	/* and what goes with it */
	uint32_t		 ex_again;
	bool			 ex_asking;	/* it has not been sent */
	const struct client_ops	*ex_client;
	struct conn		*ex_conn;
	struct h2_stream	*ex_asks;	/* if the client speaks HTTP/2 */
	const struct origin_ops	*ex_origin;	/* NULL: not begun there */
	struct upstream		*ex_up;
	struct h2_stream	*ex_answers;	/* if the origin does */
	const char		*ex_mismatch;	/* it is refused for that */

	uint8_t			 ex_protocol;
	bool			 ex_raw;	/* a connection, not a request */
	bool			 ex_request_end;
	bool			 ex_retried;
	bool			 ex_redialled;	/* without a TLS session */
	bool			 ex_heard;	/* of the origin, a byte */
	bool			 ex_answered;	/* a head went to the client */
	bool			 ex_upgraded;
	bool			 ex_answer_end;	/* if raw */
	bool			 ex_text;	/* how a refusal is worded */
	int			 ex_status;
	uint64_t		 ex_request_body;
	uint64_t		 ex_answer_body;
	uint64_t		 ex_bytes_in;	/* from and to origins */
	uint64_t		 ex_bytes_out;
	uint64_t		 ex_in_before;	/* what ex_up had carried */
	uint64_t		 ex_out_before;
	EVP_MD_CTX		*ex_hash[2];	/* of the bodies, if wanted */
	bool			 ex_cut[2];	/* no more of it is shown */
	char			*ex_path;	/* canonical, or "*" or "" */
	size_t			 ex_pathlen;

	/* Large, and seldom used to the end: not cleared as a whole. */
	struct ruling		 ex_ruling;
	struct place		 ex_place;
	char			 ex_method[METHOD_LEN + 1];
	char			 ex_key[WEBSOCKET_KEY + 1]; /* we made it */
	char			 ex_why[128];	/* no upstream will come */
	char			 ex_path_room[PATH_ROOM];
	struct h1_head		 ex_request;
};
TAILQ_HEAD(exchanges, exchange);

#define CLIENT_LEFT	"client_left"	/* before there was a verdict */

/* What is known of a request that never had a credit. */
struct leaver {
	STAILQ_ENTRY(leaver)	 lv_entry;
	size_t			 lv_size;
	uint64_t		 lv_at;
	struct place		 lv_place;
	uint8_t			 lv_protocol;
	bool			 lv_raw;
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
	CONN_TUNNEL,		/* upgraded, or never looked into */
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
	bool			 cn_denied;	/* all of it, and not told yet */
	const char		*cn_gave_up;	/* TLS, but no request: why */
	unsigned int		 cn_asked_tls;	/* times, in another protocol */
	struct timer		 cn_timer;
	unsigned int		 cn_requests;
	bool			 cn_dead;	/* freed in a turn of its own */
	struct h2		*cn_h2;

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
	struct exchanges	 up_waiters;	/* until it is ready */
	struct timer		 up_timer;
	bool			 up_dead;	/* freed in a turn of its own */
	const struct origin_ops	*up_ops;

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

/* A block holds a head, of a request or of an answer. */
#define CONN_IN_SIZE	H1_HEAD_MAX
#define UP_IN_SIZE	CONN_IN_SIZE
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
unsigned char	*trust_java(size_t *);

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
void		 conn_free(struct conn *);
void		 conns_recheck(void);
void		 conns_end(void);
void		 conn_gone(struct conn *);
void		 conn_report(struct conn *, enum record_kind, enum protocol,
		    const char *);
void		 conn_reset(struct conn *);
void		 conn_last(struct conn *);
int		 conn_place(struct conn *, const struct h1_head *,
		    struct place *, const char **, struct h1_error *);
int		 conn_sane(const struct conn *, const struct h1_head *,
		    struct h1_error *);
/* conn_first.c */
int		 conn_fill(struct conn *);
void		 conn_say_no(struct conn *, const char *);
void		 conn_not_http(struct conn *, const char *);
void		 conn_first(struct conn *);
void		 conn_handshake(struct conn *);
void		 conn_alert(struct conn *, unsigned char);
void		 conn_on_secure(struct io *, const char *);
void		 name_by_address(struct conn *);
void		 name_by_client(struct conn *, const char *);
/* conn_h1.c, conn_body.c */
extern const struct client_ops	 client_h1;
void		 conn_bad_request(struct conn *, const struct h1_error *);
void		 conn_head(struct conn *);
void		 conn_body(struct conn *);
void		 conn_relay(struct conn *);
void		 conn_go(struct exchange *);
void		 conn_expect(struct exchange *);
void		 conn_tunnel(struct exchange *);

/* conn_h2.c */
extern const struct client_ops	 client_h2;
void		 conn_h2_begin(struct conn *);
void		 conn_h2_read(struct conn *);
void		 conn_h2_late(struct conn *);
void		 conn_h2_gone(struct conn *);
void		 conn_h2_recheck(struct conn *);

/* conn_raw.c */
void		 conn_wait(struct conn *);
bool		 conn_settled(const struct conn *);
bool		 conn_ask(struct conn *);
void		 raw_protocol(struct exchange *);
void		 raw_record(struct exchange *);
void		 raw_ruled(struct exchange *, const struct ruling *);
void		 raw_hello(struct conn *, const struct hello *);
bool		 raw_refuse(struct conn *, const char *);
void		 raw_gave_up(struct conn *, const char *);
bool		 raw_client_ended(const struct exchange *);
bool		 raw_nothing_left(const struct exchange *);
void		 raw_connected(struct exchange *);
void		 raw_settle(struct exchange *);
void		 raw_over(struct exchange *);
void		 raw_gone(struct conn *);

/* trailers.c */
#define TRAILERS_MAX	H1_FIELDS_MAX
void		 chunks_begin(struct h1_chunk *);
void		 chunks_end(struct h1_chunk *);
const struct trailers	*chunks_trailers(const struct h1_chunk *);
void		 chunks_put_last(struct io *, const struct trailers *);

/* exchange.c */
struct exchange	*exchange_new(const struct client_ops *, struct conn *);
void		 exchange_free(struct exchange *);
void		 exchange_end(struct exchange *);
const char	*exchange_obstacle(void);
int		 exchange_path(struct exchange *, struct h1_error *);
void		 exchange_open(struct exchange *, const char *);
void		 exchange_begin(struct exchange *);
void		 exchange_ruled(struct exchange *, const struct ruling *);
void		 exchange_decided(struct exchange *);
void		 exchange_connected(struct exchange *, struct upstream *);
void		 exchange_no_upstream(struct exchange *, const char *);
void		 exchange_ask_again(struct exchange *);
int		 exchange_request_data(struct exchange *, const void *, size_t);
void		 exchange_request_end(struct exchange *,
		    const struct trailers *);
void		 exchange_answer_head(struct exchange *,
		    const struct h1_head *, const struct h1_str *);
void		 exchange_interim(struct exchange *, const struct h1_head *);
void		 exchange_answer_data(struct exchange *, const void *, size_t);
void		 exchange_answer_end(struct exchange *,
		    const struct trailers *);
void		 exchange_up_lost(struct exchange *, const char *);
void		 exchange_up_refused(struct exchange *);
void		 exchange_fail(struct exchange *, int, const char *);
void		 exchange_client_room(struct exchange *);
void		 exchange_client_gone(struct exchange *, const char *);
void		 exchange_leave(struct exchange *, bool);

/* overdue.c */
void		 overdue_add(struct exchange *);
void		 overdue_remove(struct exchange *);

/* upstream_tls.c */
int		 upstream_secure(struct upstream *);
bool		 upstream_forget_session(struct upstream *);
bool		 upstream_chose_h2(struct upstream *);
bool		 place_may_speak_h2(const struct place *);
bool		 place_speaks_h2(const struct place *);
/* upstream_h1.c, upstream_answer.c */
extern const struct origin_ops	 origin_h1;
void		 upstream_answer(struct upstream *);
/* upstream_h2.c */
extern const struct origin_ops	 origin_h2;
int		 upstream_h2_new(struct upstream *);
bool		 upstream_h2_serves(const struct upstream *,
		    const struct exchange *);
void		 upstream_h2_late(struct upstream *);
void		 upstream_h2_lost(struct upstream *, const char *);
void		 upstream_h2_rest(struct upstream *);
/* upstream_pool.c */
unsigned int	 place_bucket(const struct place *);
bool		 upstream_prior(const struct exchange *);
void		 upstream_init(void);
bool		 upstream_kept(const struct exchange *);
struct upstream	*upstream_take(struct exchange *);
void		 upstream_want(struct exchange *);
void		 upstream_keep(struct upstream *);
void		 upstream_opening(struct upstream *);
void		 upstream_share(struct upstream *);
void		 upstream_retire(struct upstream *);
void		 upstream_unlist(struct upstream *);
void		 upstream_forget_idle(void);
/* upstream.c */
void		 upstream_trust_changed(void);
uint32_t	 upstream_dial(struct exchange *);
void		 upstream_begin(struct upstream *);
void		 upstream_wait(struct upstream *, struct exchange *);
void		 upstream_unwait(struct upstream *, struct exchange *);
void		 upstream_disband(struct upstream *, const struct exchange *);
void		 upstream_drop(struct upstream *);
int		 tlsengine_dialer_dialed(struct ipc *, const union msg *);
int		 tlsengine_dialer_dial_failed(struct ipc *,
		    const union msg *);

/* verdict.c */
const struct ruling	*verdict_known(const struct place *);
void		 verdict_ask(struct exchange *, uint32_t);
void		 verdict_unask(struct exchange *);
void		 verdict_ask_rest(void);
void		 verdict_forget(void);
bool		 place_same(const struct place *, const struct place *);
int		 tlsengine_policyd_verdict(struct ipc *, const union msg *);

/* credit.c */
bool		 credit_held(void);
void		 credit_return(void);
void		 credit_spend(void);
void		 credit_await(struct exchange *);
void		 credit_left(struct exchange *);
void		 credit_end(void);
int		 tlsengine_recorder_credit(struct ipc *, const union msg *);

/* report.c: records */
bool		 report_crowded(void);
uint64_t	 report_opened(struct exchange *, const struct ruling *);
void		 report_verdict(const struct exchange *);
void		 report_leaver(const struct leaver *);
void		 report_answer(const struct exchange *, const struct h1_str *);
void		 report_body(struct exchange *, int, uint64_t, const void *,
		    size_t);
void		 report_closed(struct exchange *, const char *);
void		 report_settle(void);
void		 report_other(enum record_kind, enum protocol, const char *,
		    uint16_t, const char *);

/* refuse.c */
void		 refuse(struct exchange *, int, const char *);
bool		 refuse_as_text(const struct h1_head *);

#endif /* TLSENGINE_H */
