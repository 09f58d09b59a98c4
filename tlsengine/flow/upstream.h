/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: the origin's side.  What an upstream has read is as hostile as
 * what a client sends.
 */

#ifndef UPSTREAM_H
#define UPSTREAM_H

#include "flow.h"
#include "timer.h"
#include "tls/io.h"

struct h2;

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

#define INTERIM_MAX	16	/* 1xx answers to one request */

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
	bool			 up_again;	/* up_offered made it fail */
	bool			 up_prior;	/* HTTP/2 in the clear */
	struct flows		 up_waiters;	/* until it is ready */
	struct timer		 up_timer;
	bool			 up_dead;	/* freed as the turn ends */
	const struct origin_ops	*up_ops;
	struct raw		*up_raw;

	/* HTTP/2. */
	struct h2		*up_h2;
	bool			 up_settled;	/* the origin's settings came */
	unsigned int		 up_using;	/* exchanges */
	const char		*up_why;	/* lost for this, or NULL */

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
bool		 upstream_prior(const struct exchange *);
uint32_t	 upstream_dial_exchange(struct exchange *);
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
uint32_t	 upstream_dial(struct flow *, bool, bool);
bool		 upstream_begin(struct upstream *);
void		 upstream_wait(struct upstream *, struct flow *);
void		 upstream_unwait(struct upstream *, struct flow *);
void		 upstream_disband(struct upstream *, const struct flow *);
void		 upstream_free(struct upstream *);
int		 tlsengine_dialer_dialed(struct ipc *, const union msg *);
int		 tlsengine_dialer_dial_failed(struct ipc *,
		    const union msg *);

#endif /* UPSTREAM_H */
