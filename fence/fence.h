/* SPDX-License-Identifier: ISC */

/*
 * The packet filter of one local sandbox: what its rules are made of.
 */

#ifndef FENCE_H
#define FENCE_H

#include <stddef.h>
#include <stdint.h>

#include "role.h"

#define FENCE_TABLE	"egressd"
#define FENCE_STEPS	5

/* A step of a rule: what it looks at, or what it does. */
enum fence_op {
	OP_END,
	OP_LOOPBACK4,		/* to 127.0.0.0/8 */
	OP_LOOPBACK6,		/* to ::1 */
	OP_PROTOCOL,
	OP_PORT,		/* the destination's, of what has ports */
	OP_STATE,		/* any of these conntrack states */
	OP_STATUS,		/* any of these conntrack status bits */
	OP_COUNT,
	OP_LOG,			/* to this group */
	OP_REDIRECT,		/* to this port of loopback */
	OP_RESET,
	OP_UNREACHABLE,		/* with this code */
	OP_ACCEPT
};

struct fence_step {
	enum fence_op	 fs_op;
	uint32_t	 fs_value;
};

struct fence_rule {
	const char		*fr_chain;
	const char		*fr_what;
	struct fence_step	 fr_steps[FENCE_STEPS];
};

struct fence_chain {
	const char	*fc_name;
	const char	*fc_type;
	int32_t		 fc_priority;
	uint32_t	 fc_policy;
};

/* What is wanted in one table of the inet family. */
struct fence {
	const char		 *fe_table;
	const struct fence_chain *fe_chains;
	size_t			  fe_nchains;
	const struct fence_rule	 *fe_rules;
	size_t			  fe_nrules;
};

struct nftnl_chain;
struct nftnl_rule;

/* rules.c */
struct nftnl_chain	*rules_chain(const struct fence *,
			    const struct fence_chain *);
struct nftnl_rule	*rules_rule(const struct fence *,
			    const struct fence_rule *);
int			 rules_same_chain(struct nftnl_chain *,
			    struct nftnl_chain *);
int			 rules_same(struct nftnl_rule *, struct nftnl_rule *);

/* kernel.c */
void			 kernel_open(void);
const char		*kernel_load(const struct fence *);
void			 kernel_unload(const struct fence *);
void			 kernel_verify(const struct fence *);

#endif /* FENCE_H */
