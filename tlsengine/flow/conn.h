/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: the client's side.  What a conn has read was chosen by the agent.
 */

#ifndef CONN_H
#define CONN_H

#include "addr.h"
#include "flow.h"
#include "timer.h"
#include "tls/hello.h"
#include "tls/io.h"

struct h2;

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
	bool			 cn_dead;	/* freed as the turn ends */
	struct h2		*cn_h2;
	struct raw		*cn_raw;

	/* HTTP/1. */
	struct exchange		*cn_ex;
	bool			 cn_begun;	/* a head is on its way */
	unsigned char		*cn_in;		/* NULL while idle */
	size_t			 cn_inlen;
	size_t			 cn_inpos;	/* bytes of cn_in used up */
	struct h1_scan		 cn_scan;
	struct h1_chunk		 cn_chunk;
	uint64_t		 cn_left;	/* of a body of known length */
	bool			 cn_chunked_out;
	bool			 cn_keep;	/* another request may follow */
};

/* conn.c */
void		 conn_new(int, const struct addr *, uint16_t, bool);
void		 conn_free(struct conn *);
void		 conns_recheck(void);
void		 conns_end(void);
void		 conn_gone(struct conn *);
void		 conn_report(struct conn *, enum record_kind, enum protocol,
		    const char *);
void		 conn_reset_end(struct conn *);
void		 conn_last(struct conn *);
int		 conn_place(struct conn *, const struct h1_head *,
		    struct place *, const char **, struct h1_error *);
int		 conn_sane(const struct conn *, const struct h1_head *,
		    struct h1_error *);
/* conn_first.c */
int		 conn_fill(struct conn *);
void		 conn_refuse_end(struct conn *, const char *);
void		 conn_not_http_end(struct conn *, const char *);
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
bool		 conn_body(struct conn *);
ssize_t		 conn_take(struct conn *, void *, size_t);
void		 conn_unbuffer(struct conn *);
void		 conn_relay_begin(struct conn *, enum conn_state);
void		 conn_relay(struct conn *);
bool		 conn_go(struct exchange *);
bool		 conn_expect(struct exchange *);
bool		 conn_tunnel(struct exchange *);

/* conn_h2.c */
extern const struct client_ops	 client_h2;
void		 conn_h2_begin(struct conn *);
void		 conn_h2_read(struct conn *);
void		 conn_h2_late(struct conn *);
void		 conn_h2_gone(struct conn *);
void		 conn_h2_recheck(struct conn *);

/* raw.c: whether it is forwarded unread */
void		 conn_wait(struct conn *);
bool		 conn_settled(const struct conn *);
bool		 conn_ask(struct conn *);
void		 raw_hello(struct conn *, const struct hello *);
bool		 raw_refuse_ends(struct conn *, const char *);
void		 raw_gave_up_end(struct conn *, const char *);

#endif /* CONN_H */
