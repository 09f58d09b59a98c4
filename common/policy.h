/* SPDX-License-Identifier: ISC */

/*
 * A policy, and what it makes of a request.  Linked by whoever decides and by
 * whoever wants to know how it would be decided; it knows no process.
 *
 * Rules are walked in their order and the first that matches decides; then
 * the default does.  In what an author left out, a rule that opens (allow,
 * pass) means the least and one that closes (deny, decide, narrow) the most:
 *
 *  - port: without one, allow means the usual port of the scheme, 80 or 443,
 *    pass means 443, allow tcp means none, and what closes means every port;
 *  - path: where origins may read a path in several ways, what opens wants a
 *    match in all of them, what closes in one (urlpath.h).  A decide rule that
 *    matches in some only is as narrow: its decider has to allow it, and so has
 *    what follows.  The target `*' has no path: some readings of it match;
 *  - tcp: allow tcp is for connections that nobody looks into and does not
 *    match a request.  What closes and says tcp closes for requests too;
 *  - pass matches an https request that came to be looked into, as allow would.
 *
 * Deciders are not asked here: what hangs on them is denied, and the rules
 * that want them asked are named.  Each of these has to allow it.
 */

#ifndef POLICY_H
#define POLICY_H

#include <sys/types.h>
#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include "option.h"
#include "redact.h"
#include "role.h"
#include "words.h"

/* Kinds of rule that permit a row of policy_rows.h. */
#define IN_ALLOW	(1U << RULE_ALLOW)
#define IN_DENY		(1U << RULE_DENY)
#define IN_PASS		(1U << RULE_PASS)
#define IN_ASK		(1U << RULE_DECIDE | 1U << RULE_NARROW)
#define IN_READ		(IN_ALLOW | IN_DENY | IN_ASK)
#define IN_TCP		(1U << 31)	/* beside the kind */
#define IN_ANY		UINT32_MAX

enum cond_kind {
#define RULE_CONDITION(kind, ...)	COND_##kind,
#include "policy_rows.h"
	COND_KIND_MAX
};

#define PATH_NOCASE	"nocase"	/* co_value of a path */

struct condition {
	TAILQ_ENTRY(condition)	 co_entry;
	uint16_t		 co_first;	/* ports */
	uint16_t		 co_last;
	char			*co_text;	/* canonical; "" for ports */
	char			*co_value;	/* metadata, PATH_NOCASE, "" */
};
TAILQ_HEAD(conditions, condition);

/*
 * ru_body is UINT64_MAX without a limit, ru_timeout_ms is 0 for the decider's
 * own, ru_ttl_ms for the session's life, and ru_uses for any number.
 */
struct rule {
	uint32_t		 ru_index;	/* in its policy, from 0 */
	enum rule_kind		 ru_kind;
	bool			 ru_tcp;
#define RULE_OPTION(type, member, ...)	OPTION_MEMBER_##type(ru_##member)
#include "policy_rows.h"
	struct conditions	 ru_conditions[COND_KIND_MAX];
};

struct hosts;

/* po_quota_out and po_pause_denials are 0 if there is no such limit. */
struct policy_options {
#define POLICY_OPTION(type, member, ...) OPTION_MEMBER_##type(po_##member)
#include "policy_rows.h"
};

struct policy {
	TAILQ_ENTRY(policy)	 pl_entry;
	char			 pl_name[NAME_LEN + 1];
	int			 pl_allow;	/* when no rule matches */
	struct policy_options	 pl_options;
	struct redact		*pl_redact;	/* NULL: no more than usual */
	struct rule		**pl_rules;
	uint32_t		 pl_nrules;
	struct hosts		*pl_hosts;	/* policy_ready() */
};
TAILQ_HEAD(policies, policy);

/*
 * What is asked about.  With URL_TCP it is a connection of which nothing has
 * been read; method and path are then of no account.
 */
struct policy_request {
	const char		*pr_host;	/* canonical */
	uint16_t		 pr_port;
	enum url_scheme		 pr_scheme;
	const char		*pr_method;
	const char		*pr_path;	/* canonical, query too; `*' */
};

#define ASKING_MAX	16	/* rules whose deciders one request may meet */

struct policy_verdict {
	enum verdict		 pv_verdict;
	enum verdict_scope	 pv_scope;
	const struct rule	*pv_rule;	/* NULL: the default */
	const struct rule	*pv_opens;	/* if all asked allow */
	uint64_t		 pv_body;	/* limit of what is allowed */
	const char		*pv_reason;	/* "" if not denied */
	unsigned int		 pv_asks;	/* only deciders could allow */
	const struct rule	*pv_asking[ASKING_MAX];	/* so many, in order */
};

/*
 * A policy is made by adding rules, and to each its conditions; once it is
 * ready it does not change any more.  Memory that cannot be had is fatal.
 */
struct policy	*policy_new(const char *);
struct rule	*policy_add(struct policy *, enum rule_kind);
void		 rule_add(struct rule *, enum cond_kind, const char *text,
		    const char *value);
void		 rule_add_ports(struct rule *, uint16_t first, uint16_t last);
void		 policy_ready(struct policy *);
void		 policy_free(struct policy *);

/* VERDICT_LOOK is for connections only: read it, and ask about a request. */
void		 policy_evaluate(const struct policy *,
		    const struct policy_request *, struct policy_verdict *);

/*
 * How a path that origins read in several ways fared, to explain a verdict:
 * the reading in which a rule that closes matches although the path as it is
 * does not, or in which one that opens does not match although the path as it
 * is does; or NULL.  It is good until the next call of anything here.
 * policy_missed() is the first rule of the latter kind that is for this
 * request, or NULL.
 */
const char	*rule_reading(const struct rule *, const char *path);
const struct rule *policy_missed(const struct policy *,
		    const struct policy_request *);

/* Whether a rule wants to know more than host, port and scheme. */
int		 rule_reads(const struct rule *);

/* NULL for a number that is no kind. */
const char	*rule_kind_name(uint32_t);

/* The prefixes that a rule opens, separated by spaces; -1: no room. */
int		 rule_nets(const struct rule *, char *, size_t);

/*
 * policy_wire.c: a policy as messages.  The receiver calls these with what it
 * was sent, in that order; 0, or ipc_bad() and -1.
 */
struct ipc;
struct msg_conf_policy;
struct msg_conf_rule;
struct msg_conf_cond;
struct msg_conf_option;

void		 policy_send(struct ipc *, struct policy *);
int		 policy_recv(struct ipc *, const struct msg_conf_policy *,
		    struct policies *);
int		 policy_recv_rule(struct ipc *, const struct msg_conf_rule *,
		    struct policies *);
int		 policy_recv_cond(struct ipc *, const struct msg_conf_cond *,
		    struct policies *);
int		 policy_recv_option(struct ipc *,
		    const struct msg_conf_option *, struct policies *);

/*
 * policy_hosts.c: of the rules of a policy, those whose host condition a name
 * meets, in their order, without a look at the others.
 */
#define HOSTS_SUFFIXES	128	/* of a name: 127 labels and what is empty */

struct hosts_cursor {
	const struct hosts_entry *hc_next;
	const struct hosts_entry *hc_end;
};

struct hosts_walk {
	const struct policy	*hw_policy;
	const char		*hw_name;
	uint32_t		 hw_from;	/* rules before it are done */
	size_t			 hw_ncursors;
	struct hosts_cursor	 hw_cursors[HOSTS_SUFFIXES];
};

struct hosts	*hosts_new(const struct policy *);
void		 hosts_free(struct hosts *);
void		 hosts_begin(struct hosts_walk *, const struct policy *,
		    const char *);
const struct rule *hosts_next(struct hosts_walk *);

#endif /* POLICY_H */
