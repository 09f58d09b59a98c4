/* SPDX-License-Identifier: ISC */

/*
 * Private header of egressctl/offline: policies without the daemon, and
 * distinct requests of a replay with what becomes of them.
 */

#ifndef OFFLINE_H
#define OFFLINE_H

#include <sys/types.h>
#include <sys/queue.h>
#include <sys/tree.h>

#include <stdint.h>

#include <cjson/cJSON.h>

#include "conf.h"
#include "egressctl.h"
#include "policy.h"
#include "reasons.h"
#include "url.h"

#define NO_RULE		UINT32_MAX	/* no rule matched: the default */

enum replay_says {
	REPLAY_ALLOW,
	REPLAY_DENY,
	REPLAY_ASK
};

struct replay_verdict {
	enum replay_says	 rv_says;
	uint32_t	 rv_rule;
	int		 rv_asked;	/* a decider was, or would be, asked */
};

struct change {
	RB_ENTRY(change)	 ch_node;
	TAILQ_ENTRY(change)	 ch_entry;	/* in order of appearance */
	struct replay_verdict		 ch_was;
	struct replay_verdict		 ch_now;
	int			 ch_differs;
	uint64_t		 ch_count;
	enum url_scheme		 ch_scheme;
	uint16_t		 ch_port;
	const char		*ch_method;	/* in ch_text; and */
	const char		*ch_host;
	const char		*ch_path;
	char			 ch_text[];
};
RB_HEAD(change_tree, change);
TAILQ_HEAD(change_list, change);

struct changes {
	struct change_tree	 cs_tree;
	struct change_list	 cs_list;
	size_t			 cs_bytes;
	uint64_t		 cs_dropped;	/* requests, for lack of room */
};

/* change.c */
void	 changes_init(struct changes *);
void	 changes_add(struct changes *, const struct change *,
	    const char *method, const struct url *);
void	 changes_free(struct changes *);
cJSON	*change_json(const struct change *);
void	 replay_put(const cJSON *);

/* offline.c: NULL, or no policy, after saying why on standard error. */
struct config	*offline_conf(const struct invocation *);
const struct conf_policy *
		 offline_policy(const struct config *, const char *);

/* 1 if the connection would be forwarded unread. */
int		 offline_evaluate(const struct policy *, const struct url *,
		    const char *method, struct policy_verdict *);

/* A rule that would allow the request but for one reading of its path. */
const struct rule *
		 offline_missed(const struct policy *, const struct url *,
		    const char *method, const struct policy_verdict *);

#endif /* OFFLINE_H */
