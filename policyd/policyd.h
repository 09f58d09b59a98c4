/* SPDX-License-Identifier: ISC */

/*
 * policyd: owns the rules and judges by them: verdicts, questions to deciders,
 * answers that are kept, and what deciders are told of a session.  It trusts
 * the parent and nobody else.  controld speaks for operators: it may answer
 * what waits for a person and tell deciders what a session is about; it cannot
 * name a rule or a connection.
 */

#ifndef POLICYD_H
#define POLICYD_H

#include <sys/types.h>
#include <sys/queue.h>
#include <sys/tree.h>

#include <stdint.h>

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

struct slice {
	uint64_t		 sl_generation;
	int			 sl_limited;	/* the limit has come */
	uint32_t		 sl_pending_max;
	struct deciders		 sl_deciders;
	struct policies		 sl_policies;
	struct slice_sessions	 sl_sessions;
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
int	 policyd_parent_conf_pending(struct ipc *, const union msg *);
int	 policyd_parent_conf_session(struct ipc *, const union msg *);
int	 policyd_parent_conf_policy(struct ipc *, const union msg *);
int	 policyd_parent_conf_redact(struct ipc *, const union msg *);
int	 policyd_parent_conf_rule(struct ipc *, const union msg *);
int	 policyd_parent_conf_option(struct ipc *, const union msg *);
int	 policyd_parent_conf_cond(struct ipc *, const union msg *);

/* channel.c */
extern struct ipc	*channel_controld;
extern struct ipc	*channel_recorder;
extern struct ipc	*channel_dialer;
extern struct ipc	*channel_deciderd;
extern struct ipc	*channel_podd;

int	 policyd_channel(const struct msg_channel *, int);

/* Declared by the configuration, or opened by the parent for a sandbox. */
enum session_kind {
	SESSION_FIXED,
	SESSION_RUN		/* ends with its engine */
};

struct session {
	RB_ENTRY(session)	 se_entry;
	enum session_kind	 se_kind;
	char			 se_name[SESSION_LEN + 1];
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
	uint32_t		 se_number;	/* of a sandbox's; 0: fixed */
	uint64_t		 se_generation;	/* under which it was opened */
	int			 se_ended;	/* controld knows */
	int			 se_closing;	/* the parent has closed it */
	const char		*se_cause;	/* of its end, or "" */
	char			*se_environment; /* names; NULL: not told */
	struct context		 se_context;
	struct cache		 se_cache;
	struct storm		 se_storm;
	struct allowances	 se_allowances;
	uint32_t		 se_nallowances;
	struct pendings		 se_pendings;
	uint32_t		 se_npendings;
	struct leaders		 se_leaders;	/* of these, by question */
	struct turns		 se_turns;
};
RB_HEAD(sessions, session);
RB_PROTOTYPE(sessions, session, se_entry, session_cmp);

/* session.c */
extern struct sessions	 sessions;

struct session	*session_find(const char *);
const struct redact *session_redact(const struct session *);
int	 policyd_parent_session_open(struct ipc *, const union msg *);
int	 policyd_parent_session_close(struct ipc *, const union msg *);
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
	    const struct decision *, uint64_t);

extern const struct sandbox	 policyd_sandbox;

#endif /* POLICYD_H */
