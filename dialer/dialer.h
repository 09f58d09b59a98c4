/* SPDX-License-Identifier: ISC */

/*
 * dialer: resolves names, vets addresses, connects.  It trusts the parent;
 * policyd's grants are checked, engines are hostile, and so is whatever a
 * name server says.
 *
 * A grant becomes a dial.  Its addresses come from `hosts', from the host
 * itself if that is an address, or from a lookup that dials of the same name
 * share; those that the policy permits go into a plan, and attempts are made
 * in the order of the plan until the first connects.
 */

#ifndef DIALER_H
#define DIALER_H

#include <sys/queue.h>
#include <sys/tree.h>

#include <stdbool.h>
#include <stdint.h>

#include "addr.h"
#include "child.h"
#include "resolver.h"

#define DIALS_MAX		2048
#define DIALS_ENGINE_MAX	256
#define LOOKUPS_MAX		2048	/* under way, also if nobody waits */
#define LOOKUPS_ENGINE_MAX	256
#define ATTEMPTS_ENGINE_MAX	512	/* then one per dial at a time */
#define CACHE_MAX		1024	/* names */
#define CACHE_TTL_MIN_S		1
#define CACHE_TTL_MAX_S		300
#define ANSWER_MAX		32	/* addresses taken of one answer */
#define PLAN_MAX		4	/* addresses tried of one family */
#define STAGGER_MS		250	/* RFC 8305, 5 */
#define RESOLUTION_DELAY_MS	50	/* RFC 8305, 3 */

/* hosts { name address }: what the operator says of a name. */
struct host {
	TAILQ_ENTRY(host)	 ho_entry;
	char			 ho_name[HOST_LEN + 1];
	struct addr		 ho_addr;
};

/* An address range closed by the operator, besides the built-in ones. */
struct closed {
	TAILQ_ENTRY(closed)	 cl_entry;
	struct prefix		 cl_prefix;
};

struct slice {
	uint64_t		 sl_timeout_ms;
	uint32_t		 sl_mark;	/* of the sockets; 0: none */
	TAILQ_HEAD(, host)	 sl_hosts;
	struct resolvers	 sl_resolvers;
	TAILQ_HEAD(, closed)	 sl_closed;
};

enum family { FAMILY_V6, FAMILY_V4, FAMILY_MAX };

/* What the rule behind a grant opens. */
struct permit {
	bool			 pm_private;
	struct prefix		*pm_nets;
	size_t			 pm_nnets;
};

/* Vetted addresses in the order in which they are tried. */
struct plan {
	struct addr		 pl_addr[FAMILY_MAX][PLAN_MAX];
	size_t			 pl_count[FAMILY_MAX];
	size_t			 pl_next[FAMILY_MAX];
	enum family		 pl_turn;
};

struct stock_waiter {
	TAILQ_ENTRY(stock_waiter) sw_entry;
	enum socket_kind	 sw_kind;
	bool			 sw_waits;
	void			(*sw_again)(void *);
	void			*sw_arg;
};

struct attempt {
	TAILQ_ENTRY(attempt)	 at_entry;
	struct dial		*at_dial;
	struct addr		 at_addr;
	int			 at_fd;		/* -1: waits for a socket */
	struct event		 at_event;
	struct stock_waiter	 at_wait;
};

struct engine;
struct name;

struct dial {
	TAILQ_ENTRY(dial)	 di_entry;	/* of its engine */
	TAILQ_ENTRY(dial)	 di_name_entry;
	struct engine		*di_engine;
	uint32_t		 di_number;	/* the engine's for it */
	uint16_t		 di_port;
	struct permit		 di_permit;
	struct name		*di_name;	/* may bring more addresses */
	unsigned int		 di_had;	/* 1 << family: has brought */
	struct plan		 di_plan;
	TAILQ_HEAD(, attempt)	 di_attempts;
	uint64_t		 di_timeout_ms;
	struct event		 di_timeout;
	struct event		 di_stagger;
	int			 di_errno;	/* why attempts fail */
	struct addr		 di_errno_addr;
	const char		*di_refusal;	/* what the policy says of */
	struct addr		 di_refused;	/* the first it refused */
	const char		*di_why;	/* the name has no address */
};
TAILQ_HEAD(dials, dial);

struct engine {
	RB_ENTRY(engine)	 en_entry;
	uint32_t		 en_instance;
	struct ipc		*en_ipc;
	struct dials		 en_dials;
	unsigned int		 en_ndials;
	unsigned int		 en_nattempts;
	unsigned int		 en_nlookups;
};

/* One question to the name servers, and the answer to it. */
struct query {
	struct name		*qu_name;
	enum family		 qu_family;
	bool			 qu_out;
	const char		*qu_error;	/* NULL: answered */
	bool			 qu_no_name;	/* the answer: NXDOMAIN */
	size_t			 qu_count;
	struct addr		 qu_addr[ANSWER_MAX];
	uint32_t		 qu_ttl;	/* seconds */
};

extern const struct sandbox	 dialer_sandbox;

/* conf.c */
const struct slice	*slice_running(void);
void	 slice_begin(uint64_t);
int	 slice_weigh(char *, size_t);
void	 slice_commit(void);
void	 slice_abort(void);
int	 dialer_parent_conf_dial(struct ipc *, const union msg *);
int	 dialer_parent_conf_host(struct ipc *, const union msg *);
int	 dialer_parent_conf_resolver(struct ipc *, const union msg *);
int	 dialer_parent_conf_deny_net(struct ipc *, const union msg *);

/* grant.c */
int	 dialer_policyd_grant(struct ipc *, const union msg *);

/* engine.c */
int		 engine_new(const struct msg_channel *, int);
struct engine	*engine_find(uint32_t);
bool		 engine_may_widen(const struct engine *);
void		 engine_dialed(struct engine *, uint32_t, const struct addr *,
		    int);
void		 engine_failed(struct engine *, uint32_t, enum dial_failure,
		    const char *);

/* dial.c */
int	 dial_count(void);
void	 dial_start(struct engine *, const struct msg_grant *,
	    struct permit *);
void	 dial_free(struct dial *);
void	 dial_addresses(struct dial *, const struct addr *, size_t);
void	 dial_connected(struct dial *, struct attempt *);
void	 dial_attempt_failed(struct dial *, struct attempt *, int);

/* attempt.c */
int	 attempt_start(struct dial *, const struct addr *);
void	 attempt_free(struct attempt *);

/* plan.c */
void	 plan_init(struct plan *);
int	 plan_add(struct plan *, const struct addr *);
int	 plan_next(struct plan *, struct addr *);

/* vet.c: NULL, or a word for the refusal */
const char	*vet(const struct slice *, const struct permit *,
		    const struct addr *);

/* name.c */
int	 name_join(struct dial *, const char *);
void	 name_leave(struct dial *);
void	 name_answered(struct query *);
void	 name_cancelled(struct query *);
void	 names_forget(void);
void	 names_ask_again(void);
void	 names_engine_gone(const struct engine *);

/* resolve.c */
void	 resolve_warm(void);
void	 resolve_servers(struct resolvers *);
bool	 resolve_possible(void);
bool	 resolve_lacks(enum socket_kind *);
void	 resolve_ask(const char *, struct query *);

/* stock.c */
void	 stock_warm(void);
void	 stock_open(void);
void	 stock_renew(void);
bool	 stock_has(enum socket_kind);
bool	 stock_absent(enum socket_kind);
bool	 stock_is_tight(void);
int	 stock_take(enum socket_kind);
int	 stock_take_reserved(enum socket_kind);
void	 stock_wait(struct stock_waiter *, enum socket_kind);
void	 stock_unwait(struct stock_waiter *);
void	 stock_close(int);
void	 stock_handed(void);
int	 dialer_parent_socket(struct ipc *, const union msg *);

#endif /* DIALER_H */
