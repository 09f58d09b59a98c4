/* SPDX-License-Identifier: ISC */

/*
 * egressd-fence runs this: from the steps of a rule to nf_tables expressions,
 * and the comparison of a rule with what the kernel says it has.
 */

#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip6.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include <libnftnl/chain.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>

#include <arpa/inet.h>
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "fence.h"

/* Enough for the headers that make a record. */
#define LOG_BYTES	256

/* The kernel gives every namespace's loopback this number. */
#define LOOPBACK_INDEX	1

/* The hop limit of a packet of this link: no router has counted it down. */
#define NEIGHBOUR_HOPS	255

/* Expressions have no more attributes than fit in libnftnl's set. */
#define EXPR_ATTRS	32

static struct nftnl_expr *
rules_expr(struct nftnl_rule *r, const char *name)
{
	struct nftnl_expr	*e;

	if ((e = nftnl_expr_alloc(name)) == NULL)
		err(1, "expression %s", name);
	nftnl_rule_add_expr(r, e);
	return e;
}

static void
rules_meta(struct nftnl_rule *r, uint32_t key)
{
	struct nftnl_expr	*e = rules_expr(r, "meta");

	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
}

static void
rules_payload(struct nftnl_rule *r, uint32_t base, uint32_t offset,
    uint32_t len)
{
	struct nftnl_expr	*e = rules_expr(r, "payload");

	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, len);
}

static void
rules_cmp(struct nftnl_rule *r, uint32_t op, const void *data, uint32_t len)
{
	struct nftnl_expr	*e = rules_expr(r, "cmp");

	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, op);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, data, len);
}

/* The first byte of 127.0.0.0/8, all of ::1: where each header has it. */
static void
rules_loopback(struct nftnl_rule *r, uint8_t family)
{
	static const uint8_t	 net4[] = { 127 };
	static const uint8_t	 host6[16] = { [15] = 1 };

	rules_meta(r, NFT_META_NFPROTO);
	rules_cmp(r, NFT_CMP_EQ, &family, sizeof(family));
	if (family == NFPROTO_IPV4) {
		rules_payload(r, NFT_PAYLOAD_NETWORK_HEADER, 16, sizeof(net4));
		rules_cmp(r, NFT_CMP_EQ, net4, sizeof(net4));
	} else {
		rules_payload(r, NFT_PAYLOAD_NETWORK_HEADER, 24,
		    sizeof(host6));
		rules_cmp(r, NFT_CMP_EQ, host6, sizeof(host6));
	}
}

static void
rules_loopback4(struct nftnl_rule *r, uint32_t value)
{
	(void)value;
	rules_loopback(r, NFPROTO_IPV4);
}

static void
rules_loopback6(struct nftnl_rule *r, uint32_t value)
{
	(void)value;
	rules_loopback(r, NFPROTO_IPV6);
}

static void
rules_from_loopback(struct nftnl_rule *r, uint32_t value)
{
	static const uint32_t	 ifindex = LOOPBACK_INDEX;

	(void)value;
	rules_meta(r, NFT_META_IIF);
	rules_cmp(r, NFT_CMP_EQ, &ifindex, sizeof(ifindex));
}

static void
rules_mark(struct nftnl_rule *r, uint32_t value)
{
	rules_meta(r, NFT_META_MARK);
	rules_cmp(r, NFT_CMP_EQ, &value, sizeof(value));
}

static void
rules_protocol(struct nftnl_rule *r, uint32_t value)
{
	uint8_t	 protocol = value;

	rules_meta(r, NFT_META_L4PROTO);
	rules_cmp(r, NFT_CMP_EQ, &protocol, sizeof(protocol));
}

/* RFC 4861, 7.1: anything else is not to be believed. */
static void
rules_neighbour(struct nftnl_rule *r, uint32_t value)
{
	static const uint8_t	 family = NFPROTO_IPV6, hops = NEIGHBOUR_HOPS;
	uint8_t			 type = value;

	rules_meta(r, NFT_META_NFPROTO);
	rules_cmp(r, NFT_CMP_EQ, &family, sizeof(family));
	rules_protocol(r, IPPROTO_ICMPV6);
	rules_payload(r, NFT_PAYLOAD_NETWORK_HEADER,
	    offsetof(struct ip6_hdr, ip6_hlim), sizeof(hops));
	rules_cmp(r, NFT_CMP_EQ, &hops, sizeof(hops));
	rules_payload(r, NFT_PAYLOAD_TRANSPORT_HEADER,
	    offsetof(struct icmp6_hdr, icmp6_type), sizeof(type));
	rules_cmp(r, NFT_CMP_EQ, &type, sizeof(type));
}

static void
rules_port(struct nftnl_rule *r, uint32_t value)
{
	uint16_t	 port = htons(value);

	rules_payload(r, NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof(port));
	rules_cmp(r, NFT_CMP_EQ, &port, sizeof(port));
}

/* Conntrack's number for this packet has one of these bits. */
static void
rules_ct(struct nftnl_rule *r, uint32_t key, uint32_t bits)
{
	static const uint32_t	 none;
	struct nftnl_expr	*e;

	e = rules_expr(r, "ct");
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_DREG, NFT_REG_1);
	e = rules_expr(r, "bitwise");
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, sizeof(bits));
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_MASK, &bits, sizeof(bits));
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_XOR, &none, sizeof(none));
	rules_cmp(r, NFT_CMP_NEQ, &none, sizeof(none));
}

static void
rules_state(struct nftnl_rule *r, uint32_t value)
{
	rules_ct(r, NFT_CT_STATE, value);
}

static void
rules_status(struct nftnl_rule *r, uint32_t value)
{
	rules_ct(r, NFT_CT_STATUS, value);
}

static void
rules_count(struct nftnl_rule *r, uint32_t value)
{
	(void)value;
	rules_expr(r, "counter");
}

static void
rules_log(struct nftnl_rule *r, uint32_t group)
{
	struct nftnl_expr	*e = rules_expr(r, "log");

	nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_GROUP, group);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOG_SNAPLEN, LOG_BYTES);
	/* A refusal is worth a record now, not when a batch is full. */
	nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_QTHRESHOLD, 1);
}

static void
rules_redirect(struct nftnl_rule *r, uint32_t value)
{
	struct nftnl_expr	*e;
	uint16_t		 port = htons(value);

	e = rules_expr(r, "immediate");
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
	nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, &port, sizeof(port));
	e = rules_expr(r, "redir");
	nftnl_expr_set_u32(e, NFTNL_EXPR_REDIR_REG_PROTO_MIN, NFT_REG_1);
}

static void
rules_reset(struct nftnl_rule *r, uint32_t value)
{
	struct nftnl_expr	*e = rules_expr(r, "reject");

	(void)value;
	nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE, NFT_REJECT_TCP_RST);
}

static void
rules_unreachable(struct nftnl_rule *r, uint32_t code)
{
	struct nftnl_expr	*e = rules_expr(r, "reject");

	nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE,
	    NFT_REJECT_ICMPX_UNREACH);
	nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE, code);
}

static void
rules_accept(struct nftnl_rule *r, uint32_t value)
{
	struct nftnl_expr	*e = rules_expr(r, "immediate");

	(void)value;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, NF_ACCEPT);
}

static void (*const rules_ops[])(struct nftnl_rule *, uint32_t) = {
	[OP_LOOPBACK4] = rules_loopback4,
	[OP_LOOPBACK6] = rules_loopback6,
	[OP_FROM_LOOPBACK] = rules_from_loopback,
	[OP_MARK] = rules_mark,
	[OP_NEIGHBOUR] = rules_neighbour,
	[OP_PROTOCOL] = rules_protocol,
	[OP_PORT] = rules_port,
	[OP_STATE] = rules_state,
	[OP_STATUS] = rules_status,
	[OP_COUNT] = rules_count,
	[OP_LOG] = rules_log,
	[OP_REDIRECT] = rules_redirect,
	[OP_RESET] = rules_reset,
	[OP_UNREACHABLE] = rules_unreachable,
	[OP_ACCEPT] = rules_accept,
};

struct nftnl_rule *
rules_rule(const struct fence *fe, const struct fence_rule *fr)
{
	const struct fence_step	*fs = fr->fr_steps;
	struct nftnl_rule	*r;

	if ((r = nftnl_rule_alloc()) == NULL)
		err(1, NULL);
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, NFPROTO_INET);
	nftnl_rule_set_str(r, NFTNL_RULE_TABLE, fe->fe_table);
	nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, fr->fr_chain);
	for (; fs < fr->fr_steps + FENCE_STEPS && fs->fs_op != OP_END; fs++)
		rules_ops[fs->fs_op](r, fs->fs_value);
	return r;
}

struct nftnl_chain *
rules_chain(const struct fence *fe, const struct fence_chain *fc)
{
	struct nftnl_chain	*c;

	if ((c = nftnl_chain_alloc()) == NULL)
		err(1, NULL);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_FAMILY, NFPROTO_INET);
	nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, fe->fe_table);
	nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, fc->fc_name);
	nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, fc->fc_type);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, fc->fc_hook);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, fc->fc_priority);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, fc->fc_policy);
	return c;
}

int
rules_same_chain(struct nftnl_chain *ours, struct nftnl_chain *theirs)
{
	static const uint16_t	 words[] = {
		NFTNL_CHAIN_FAMILY, NFTNL_CHAIN_HOOKNUM, NFTNL_CHAIN_PRIO,
		NFTNL_CHAIN_POLICY
	};
	static const uint16_t	 names[] = {
		NFTNL_CHAIN_TABLE, NFTNL_CHAIN_NAME, NFTNL_CHAIN_TYPE
	};
	const char		*name;
	size_t			 i;

	for (i = 0; i < NITEMS(words); i++)
		if (nftnl_chain_get_u32(ours, words[i]) !=
		    nftnl_chain_get_u32(theirs, words[i]))
			return 0;
	for (i = 0; i < NITEMS(names); i++)
		if ((name = nftnl_chain_get_str(theirs, names[i])) == NULL ||
		    strcmp(nftnl_chain_get_str(ours, names[i]), name) != 0)
			return 0;
	return 1;
}

/* The kernel adds attributes; those that we gave must be unchanged. */
static int
rules_same_expr(struct nftnl_expr *ours, struct nftnl_expr *theirs)
{
	const void	*a, *b;
	uint32_t	 alen, blen;
	uint16_t	 attr;

	if (strcmp(nftnl_expr_get_str(ours, NFTNL_EXPR_NAME),
	    nftnl_expr_get_str(theirs, NFTNL_EXPR_NAME)) != 0)
		return 0;
	for (attr = NFTNL_EXPR_BASE; attr < EXPR_ATTRS; attr++) {
		if (!nftnl_expr_is_set(ours, attr))
			continue;
		if (!nftnl_expr_is_set(theirs, attr))
			return 0;
		a = nftnl_expr_get(ours, attr, &alen);
		b = nftnl_expr_get(theirs, attr, &blen);
		if (alen != blen || memcmp(a, b, alen) != 0)
			return 0;
	}
	return 1;
}

int
rules_same(struct nftnl_rule *ours, struct nftnl_rule *theirs)
{
	struct nftnl_expr_iter	*a, *b;
	struct nftnl_expr	*ea, *eb;
	int			 same;

	if (strcmp(nftnl_rule_get_str(ours, NFTNL_RULE_CHAIN),
	    nftnl_rule_get_str(theirs, NFTNL_RULE_CHAIN)) != 0)
		return 0;
	if ((a = nftnl_expr_iter_create(ours)) == NULL ||
	    (b = nftnl_expr_iter_create(theirs)) == NULL)
		err(1, NULL);
	do {
		ea = nftnl_expr_iter_next(a);
		eb = nftnl_expr_iter_next(b);
		same = ea != NULL && eb != NULL ? rules_same_expr(ea, eb) :
		    ea == eb;
	} while (same && ea != NULL);
	nftnl_expr_iter_destroy(a);
	nftnl_expr_iter_destroy(b);
	return same;
}
