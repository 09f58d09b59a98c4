/* SPDX-License-Identifier: ISC */

/*
 * The packet filter of one sandbox, local or a pod: what its rules are made of.
 */

#ifndef FENCE_H
#define FENCE_H

#include <stddef.h>
#include <stdint.h>

#include "role.h"

#define FENCE_TABLE	"egressd"
#define FENCE_STEPS	5

#define FENCE_VOLUMES	16

#define FENCE_NAT	"redirect"	/* its chains */
#define FENCE_OUT	"refuse"
#define FENCE_IN	"receive"

#define NITEMS(a)	(sizeof(a) / sizeof((a)[0]))

/* A step of a rule: what it looks at, or what it does. */
enum fence_op {
	OP_END,
	OP_LOOPBACK4,		/* to 127.0.0.0/8 */
	OP_LOOPBACK6,		/* to ::1 */
	OP_FROM_LOOPBACK,	/* received on that interface */
	OP_MARK,		/* of the socket */
	OP_NEIGHBOUR,		/* ICMPv6 of this type, from the same link */
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
	uint32_t	 fc_hook;
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
	int			  fe_replace;	/* what has its name */
};

/* The words of the command line. */
struct fence_options {
	uint32_t	 fo_tcp;	/* port of the gate */
	uint32_t	 fo_dns;
	uint32_t	 fo_group;	/* of nflog */
	uint32_t	 fo_mark;	/* of the gate's own sockets */
	int		 fo_pod;
	int		 fo_look;	/* compare, and change nothing */
	const char	*fo_volumes[FENCE_VOLUMES];
	size_t		 fo_nvolumes;
	const char	*fo_trust;	/* further ones, or NULL */
	const char	*fo_bin;
};

#define PORT_DNS	53
#define PRIORITY_NAT	(-100)		/* of the destination, in nft's words */
#define PRIORITY_FILTER	0

/* As nft_ct_get_eval() spells them. */
#define STATE_BIT(s)	(1U << ((s) + 1))
#define STATE_KNOWN	(STATE_BIT(IP_CT_ESTABLISHED) | \
			STATE_BIT(IP_CT_RELATED))

struct nftnl_chain;
struct nftnl_rule;

/* fence.c */
void			 fence_put(const struct fence *, int);

/* pod.c */
void			 pod_set(const struct fence_options *);

/* volume.c */
void			 volume_close(const char *);
void			 volume_trust(const char *);
void			 volume_install(const char *)
			    __attribute__((__noreturn__));

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
int			 kernel_has(const struct fence *);
const char		*kernel_load(const struct fence *);
void			 kernel_unload(const struct fence *);
void			 kernel_verify(const struct fence *);

#endif /* FENCE_H */
