/* SPDX-License-Identifier: ISC */

/*
 * policyd: questions that only deciders can answer, and their answers.  What
 * they are about, an agent has chosen; whatever it is, it is bounded, and it
 * is denied until somebody says otherwise.
 */

#ifndef DECIDE_H
#define DECIDE_H

#include <sys/types.h>
#include <sys/queue.h>
#include <sys/tree.h>

#include <stdint.h>

#include <event2/event_struct.h>

#include "ipc.h"
#include "jsonput.h"
#include "jsonw.h"
#include "policy.h"
#include "reasons.h"

struct session;
struct slice;
struct pending;
TAILQ_HEAD(pendings, pending);
RB_HEAD(leaders, pending);

/*
 * breaker.c: who fails so often in a row is not asked for a while, then once
 * to see.  Times are milliseconds of a clock that only goes forward; sessions
 * go by their names.
 */
#define BREAKER_FAILURES	5
#define BREAKER_WAIT_MS		1000
#define BREAKER_WAIT_MAX_MS	60000

struct breaker {
	unsigned int		 br_failures;	/* in a row */
	char			 br_session[SESSION_LEN + 1];	/* "": many */
	uint64_t		 br_wait_ms;	/* 0: closed */
	uint64_t		 br_until;	/* then one may be asked */
	int			 br_probing;	/* one is being asked */
};

int	 breaker_permits(const struct breaker *, const char *, uint64_t);
int	 breaker_ask(struct breaker *, const char *);
void	 breaker_unask(struct breaker *);
void	 breaker_good(struct breaker *);
int	 breaker_bad(struct breaker *, const char *, int, uint64_t);
enum breaker_state breaker_state(const struct breaker *);

/* decider.c: a decider, and the questions that wait for a turn with it. */
struct turn;
TAILQ_HEAD(turns, turn);

struct decider {
	RB_ENTRY(decider)	 de_entry;
	char			 de_name[NAME_LEN + 1];
	enum decider_kind	 de_kind;
	uint64_t		 de_timeout_ms;
	uint32_t		 de_concurrency;
	uint32_t		 de_asked;	/* not yet answered */
	uint32_t		 de_waiting;	/* for their turn to be asked */
	struct breaker		 de_breaker;
	struct turns		 de_turns;	/* round and round */
};
RB_HEAD(deciders, decider);
RB_PROTOTYPE(deciders, decider, de_entry, decider_cmp);

/* subject.c: what a question is about, as an engine has put it. */
struct subject {
	enum url_scheme		 sj_scheme;
	uint16_t		 sj_port;
	uint64_t		 sj_length;	/* of the body, or UINT64_MAX */
	const char		*sj_host;
	const char		*sj_method;	/* "" of a connection */
	const char		*sj_path;	/* the same */
	int			 sj_cut;	/* of a pod: the path is, */
	uint64_t		 sj_hidden;	/* and this much is redacted */
};

/* What people and deciders see of it; all empty for a connection. */
struct shown {
	char			 sh_path[SHOWN_LEN + 1];
	int			 sh_truncated;
	uint64_t		 sh_redacted;	/* bytes that are hidden */
};

void	 subject_copy(struct subject *, const struct subject *);
void	 subject_free(struct subject *);
size_t	 subject_size(const struct subject *);
int	 subject_size_class(const struct subject *);
int	 subject_cmp(const struct subject *, const struct subject *,
	    enum rule_cache);
void	 subject_show(struct shown *, const struct redact *,
	    const struct subject *, int);
void	 subject_put(struct jsonw *, const struct redact *,
	    const struct subject *);

/* What a decider has said. */
#define REASON_TEXT	100	/* bytes of a decider's own words */
#define REASON_LEN	(sizeof(REASON_DECIDER ": ") + REASON_TEXT)

struct decision {
	int			 dn_allow;
	int			 dn_cached;	/* said before, and kept */
	char			 dn_reason[REASON_LEN];
	char			 dn_decider[NAME_LEN + 1];
};

/* cache.c: the answers that a session keeps. */
#define CACHE_ENTRIES	1024		/* of each session */
#define CACHE_BYTES	(1024 * 1024)

struct kept {
	RB_ENTRY(kept)		 ke_entry;
	TAILQ_ENTRY(kept)	 ke_used;	/* the last used first */
	const struct rule	*ke_rule;
	struct subject		 ke_subject;
	struct decision		 ke_decision;
	uint64_t		 ke_since;
	uint64_t		 ke_until;	/* UINT64_MAX: no end */
	uint32_t		 ke_uses;	/* left; UINT32_MAX: any */
	size_t			 ke_size;
};
RB_HEAD(keptree, kept);
TAILQ_HEAD(keptlist, kept);

struct cache {
	struct keptree		 ca_tree;
	struct keptlist		 ca_list;
	uint32_t		 ca_count;
	size_t			 ca_bytes;
};

void	 cache_init(struct cache *);
int	 cache_get(struct cache *, const struct rule *, const struct subject *,
	    uint64_t, struct decision *);
void	 cache_put(struct cache *, const struct rule *, const struct subject *,
	    uint64_t, const struct decision *);
uint32_t cache_clear(struct cache *, const char *);

/* storm.c: whether a session was denied too often in too short a time. */
#define STORM_BUCKETS	16

struct storm {
	uint64_t		 st_bucket;	/* number of the newest */
	uint64_t		 st_until;	/* it is paused till then */
	uint32_t		 st_counts[STORM_BUCKETS];
};

int	 storm_denied(struct storm *, const struct policy *, uint64_t);
int	 storm_paused(const struct storm *, uint64_t);

/* context.c: what deciders are told about a session. */
#define MESSAGES_MAX	100
#define MESSAGES_BYTES	65536
#define METADATA_MAX	256	/* entries */

struct message {
	TAILQ_ENTRY(message)	 ms_entry;
	uint64_t		 ms_at;		/* ns since the epoch */
	char			 ms_role[NAME_LEN + 1];
	char			*ms_content;
	size_t			 ms_len;
	int			 ms_truncated;
	size_t			 ms_size;	/* as JSON */
};
TAILQ_HEAD(messages, message);

struct context {
	struct messages		 cx_messages;	/* oldest first */
	uint32_t		 cx_count;
	size_t			 cx_bytes;
	char			*cx_metadata;	/* as in CONTEXT_METADATA */
	size_t			 cx_metadata_len;
};

void	 context_init(struct context *);
void	 context_free(struct context *);
void	 context_message(struct context *, const char *, const char *, int,
	    uint64_t);
int	 metadata_is_sound(const char *, size_t);
int	 context_metadata(struct context *, const char *, size_t);
void	 context_put_messages(struct jsonw *, const struct context *, uint32_t,
	    size_t);
void	 context_put_metadata(struct jsonw *, const char *, size_t,
	    const struct rule *);
int	 context_rule_fits(const struct rule *);

/*
 * A request that deciders have to allow, one rule after the other, of each
 * rule one decider after the other.  One of several that would be answered
 * alike is asked about and leads; the others follow it.
 */
enum pending_state {
	PENDING_NEW,
	PENDING_FOLLOWS,
	PENDING_QUEUED,		/* for a turn */
	PENDING_ASKED,		/* deciderd has it */
	PENDING_OPERATOR	/* a person is to answer */
};

struct pending {
	RB_ENTRY(pending)	 pe_entry;	/* by number, if it has one */
	RB_ENTRY(pending)	 pe_leads;
	TAILQ_ENTRY(pending)	 pe_sibling;	/* of the same session */
	TAILQ_ENTRY(pending)	 pe_queued;	/* or behind another */
	struct session		*pe_session;
	enum pending_state	 pe_state;
	uint32_t		 pe_ask;	/* the engine's numbers */
	uint32_t		 pe_dial;
	uint32_t		 pe_channel;	/* to a pod's gate; 0: none */
	uint64_t		 pe_pod_id;	/* the gate's number */
	uint64_t		 pe_pod_ms;	/* which waits so long */
	uint32_t		 pe_rule;	/* for this rule's */
	char			 pe_asked[NAME_LEN + 1];	/* decider */
	struct subject		 pe_subject;
	struct policy_verdict	 pe_verdict;	/* asks pe_stage now */
	unsigned int		 pe_stage;
	const struct condition	*pe_named;	/* its name, in the chain */
	struct decision		 pe_decision;	/* what was said last */
	struct decider		*pe_decider;
	struct turn		*pe_turn;
	uint32_t		 pe_id;		/* 0: none */
	int			 pe_leading;
	int			 pe_renewed;	/* the rules have changed */
	int			 pe_left;	/* nobody waits for it */
	int			 pe_probe;	/* of a breaker */
	struct pending		*pe_leader;
	struct pendings		 pe_followers;
	uint64_t		 pe_began;	/* ms */
	uint64_t		 pe_since;	/* this decider's turn */
	uint64_t		 pe_deadline;
	struct event		 pe_timer;
};
RB_HEAD(pendingtree, pending);
RB_PROTOTYPE(pendingtree, pending, pe_entry, pending_cmp);

/* pending.c */
extern struct pendingtree	 pendings;
extern uint32_t			 pending_count;

void	 pending_ask(struct session *, const struct subject *, uint32_t,
	    uint32_t, const struct policy_verdict *);
struct pending	*pending_find(uint32_t);
void	 pending_answered(struct pending *, enum answer_result, const char *,
	    int);
void	 pending_failed(struct pending *, enum answer_result, const char *);
void	 pending_release(struct session *);
void	 pending_left(struct session *, uint32_t);
void	 pending_drop(struct session *);
void	 pending_recall(void);
void	 pending_resume(void);
const struct rule *pending_rule(const struct pending *);


/* pending.c, for pod.c */
struct pending	*pending_new(struct session *, const struct subject *);
void	 pending_end(struct pending *);
void	 pending_put(struct pending *);
int	 pending_too_many(const struct session *);

/* pod.c: questions of gates in pods. */
void	 pending_pod_told(struct pending *, enum answer_result, const char *,
	    int);
void	 pending_pod_renew(struct pending *);
int	 policyd_podd_question(struct ipc *, const union msg *);
int	 policyd_podd_question_drop(struct ipc *, const union msg *);

/* allowance.c */
TAILQ_HEAD(allowances, allowance);

void	 allowance_keep(struct session *, uint32_t, const struct subject *,
	    const struct policy_verdict *, const struct decision *, uint64_t);
int	 allowance_use(struct session *, const struct msg_ask *,
	    const struct subject *);
void	 allowance_clear(struct session *);

/* failure.c: of deciders, for the record. */
const char *failure_reason(enum answer_result);
void	 failure_record(const struct session *, const struct subject *,
	    const char *, enum answer_result, const char *, uint64_t);

/* decider.c */
struct decider	*decider_find(struct slice *, const char *);
void	 decider_join(struct pending *);
void	 decider_leave(struct pending *);
void	 decider_result(struct pending *, enum answer_result);
void	 deciders_wake(void);
void	 deciders_drained(struct ipc *);
void	 deciders_free(struct slice *);
int	 policyd_parent_conf_decider_name(struct ipc *, const union msg *);
int	 policyd_deciderd_answer(struct ipc *, const union msg *);
int	 policyd_deciderd_served(struct ipc *, const union msg *);

/* question.c: NULL if it cannot be put into words. */
struct asking {
	const char		*as_session;
	const struct redact	*as_redact;
	const struct subject	*as_subject;
	const struct rule	*as_rule;	/* NULL: none */
	uint32_t		 as_messages;	/* the last so many */
};

const char	*question_write(const struct asking *, const struct context *,
		    size_t *);
const char	*question_make(const struct pending *, size_t *);

/* inquiry.c: questions that an operator makes up. */
#define INQUIRIES_MAX	64	/* under way; controld knows as much */

void	 inquiry_answered(const struct msg_answer *);
int	 policyd_controld_inquiry_message(struct ipc *, const union msg *);
int	 policyd_controld_inquiry_ask(struct ipc *, const union msg *);
int	 policyd_controld_inquiry_drop(struct ipc *, const union msg *);

/* operator.c */
int	 policyd_controld_pending_answer(struct ipc *, const union msg *);
int	 policyd_controld_cache_clear(struct ipc *, const union msg *);
int	 policyd_controld_context_message(struct ipc *, const union msg *);
int	 policyd_controld_context_metadata(struct ipc *, const union msg *);

/* list.c */
void	 pending_changed(void);
int	 policyd_controld_state_ask(struct ipc *, const union msg *);
int	 policyd_controld_pending_watch(struct ipc *, const union msg *);
int	 policyd_controld_list_ask(struct ipc *, const union msg *);

#endif /* DECIDE_H */
