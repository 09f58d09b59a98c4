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

#include <cjson/cJSON.h>
#include <event2/event_struct.h>

#include "ipc.h"
#include "jsonw.h"
#include "policy.h"

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
	char			 br_session[NAME_LEN + 1]; /* whose, "": many */
	uint64_t		 br_wait_ms;	/* 0: closed */
	uint64_t		 br_until;	/* then one may be asked */
	int			 br_probing;	/* one is */
};

int	 breaker_permits(const struct breaker *, const char *, uint64_t);
int	 breaker_ask(struct breaker *, const char *);
void	 breaker_unask(struct breaker *);
void	 breaker_good(struct breaker *);
int	 breaker_bad(struct breaker *, const char *, int, uint64_t);
const char *breaker_word(const struct breaker *);

/* judge.c: a decider, and the questions that wait for a turn with it. */
struct turn;
TAILQ_HEAD(turns, turn);

struct judge {
	RB_ENTRY(judge)		 ju_entry;
	char			 ju_name[NAME_LEN + 1];
	enum decider_kind	 ju_kind;
	uint64_t		 ju_timeout_ms;
	uint32_t		 ju_concurrency;
	uint32_t		 ju_asked;	/* not yet answered */
	uint32_t		 ju_waiting;	/* not yet asked */
	struct breaker		 ju_breaker;
	struct turns		 ju_turns;	/* round and round */
};
RB_HEAD(judges, judge);
RB_PROTOTYPE(judges, judge, ju_entry, judge_cmp);

/* subject.c: what a question is about, as an engine has put it. */
struct subject {
	enum url_scheme		 sj_scheme;
	uint16_t		 sj_port;
	uint64_t		 sj_length;	/* of the body, or UINT64_MAX */
	const char		*sj_host;
	const char		*sj_method;	/* "" of a connection */
	const char		*sj_path;	/* the same */
};

#define SHOWN_PATH	2048	/* bytes of a path that anybody is shown */

void	 subject_copy(struct subject *, const struct subject *);
void	 subject_free(struct subject *);
size_t	 subject_size(const struct subject *);
int	 subject_size_class(const struct subject *);
int	 subject_cmp(const struct subject *, const struct subject *,
	    enum rule_cache);
void	 subject_put_place(struct jsonw *, const struct subject *);
void	 subject_put(struct jsonw *, const struct redact *,
	    const struct subject *, int);
const char *subject_fault(const char *, const char *, const char *);
size_t	 text_cut(const char *, size_t, size_t);

/* What a decider has said. */
#define REASON_TEXT	100	/* bytes of a decider's own words */
#define REASON_LEN	(sizeof("decider: ") + REASON_TEXT)

struct word {
	int			 wd_allow;
	int			 wd_cached;	/* said before, and kept */
	char			 wd_reason[REASON_LEN];
	char			 wd_decider[NAME_LEN + 1];
};

/* cache.c: the answers that a session keeps. */
#define CACHE_ENTRIES	1024		/* of each session */
#define CACHE_BYTES	(1024 * 1024)

struct kept {
	RB_ENTRY(kept)		 ke_entry;
	TAILQ_ENTRY(kept)	 ke_used;	/* the last used first */
	const struct rule	*ke_rule;
	struct subject		 ke_subject;
	struct word		 ke_word;
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
	    uint64_t, struct word *);
void	 cache_put(struct cache *, const struct rule *, const struct subject *,
	    uint64_t, const struct word *);
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
#define SHOWN_CONTENT	4096	/* bytes of a message that are kept */
#define METADATA_MAX	256	/* entries */
#define METADATA_LEN	8192	/* bytes of JSON */

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
	cJSON			*cx_metadata;	/* NULL: none */
};

void	 context_init(struct context *);
void	 context_free(struct context *);
void	 context_message(struct context *, const char *, const char *,
	    uint64_t);
int	 context_metadata(struct context *, const cJSON *);
void	 context_put_messages(struct jsonw *, const struct context *, uint32_t,
	    size_t);
void	 context_put_metadata(struct jsonw *, const cJSON *,
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
	struct subject		 pe_subject;
	struct policy_verdict	 pe_verdict;	/* pe_stage of its judges */
	unsigned int		 pe_stage;
	const struct condition	*pe_decider;	/* its name, in the chain */
	struct word		 pe_word;	/* what was said last */
	struct judge		*pe_judge;
	struct turn		*pe_turn;
	uint32_t		 pe_id;		/* 0: none */
	int			 pe_leading;
	int			 pe_renewed;	/* the rules have changed */
	int			 pe_left;	/* nobody waits for the verdict */
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

/* standing.c */
TAILQ_HEAD(standings, standing);

void	 standing_keep(struct session *, uint32_t, const struct subject *,
	    const struct policy_verdict *, const struct word *, uint64_t);
int	 standing_give(struct session *, const struct msg_ask *,
	    const struct subject *);
void	 standing_clear(struct session *);

/* failure.c: of deciders, for the record. */
const char *failure_reason(enum answer_result);
void	 failure_record(const struct session *, const struct subject *,
	    const char *, enum answer_result, const char *, uint64_t);

/* judge.c */
struct judge	*judge_find(struct slice *, const char *);
void	 judge_join(struct pending *);
void	 judge_leave(struct pending *);
void	 judge_result(struct pending *, enum answer_result);
void	 judges_wake(void);
void	 judges_drained(struct ipc *);
void	 judges_free(struct slice *);
int	 policyd_parent_conf_judge(struct ipc *, const union msg *);
int	 policyd_deciderd_answer(struct ipc *, const union msg *);

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

/* inquiry.c: numbers of questions that are an operator's have this bit. */
#define INQUIRY		UINT32_C(0x80000000)

struct waiter;
void	 inquiry_answer(const struct msg_answer *);
void	 inquiry_drop(struct waiter *);

#endif /* DECIDE_H */
