/* SPDX-License-Identifier: ISC */

/*
 * egressd-fence runs this: one transaction with nf_tables, and the reading
 * back of what came of it.  The kernel is the only peer.
 */

#include <sys/socket.h>

#include <netinet/in.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fence.h"

#define BATCH_BYTES	65536		/* our rules take a tenth of it */
#define SEQ_TABLE	1
#define DUMP_TRIES	16		/* another may change rules meanwhile */
#define NEW		(NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK)
#define THERE		(NLM_F_CREATE | NLM_F_ACK)
#define APPEND		(NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK)

static struct mnl_socket	*nl;

/* A transaction in the making; a message's number tells what it was about. */
struct batch {
	struct mnl_nlmsg_batch	*ba_msgs;
	char			*ba_buf;
	uint32_t		 ba_seq;
};

/* Where a dump is compared with the fence. */
struct reading {
	const struct fence	*re_fence;
	size_t			 re_next;
};

void
kernel_open(void)
{
	if ((nl = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC)) == NULL) {
		warn("nfnetlink");
		exit(FENCE_LACKING);
	}
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) == -1)
		err(1, "nfnetlink: bind");
}

static void
batch_begin(struct batch *ba)
{
	/* libmnl wants room for one message beyond the limit. */
	if ((ba->ba_buf = calloc(2, BATCH_BYTES)) == NULL ||
	    (ba->ba_msgs = mnl_nlmsg_batch_start(ba->ba_buf,
	    BATCH_BYTES)) == NULL)
		err(1, NULL);
	ba->ba_seq = SEQ_TABLE;
	nftnl_batch_begin(mnl_nlmsg_batch_current(ba->ba_msgs), 0);
	mnl_nlmsg_batch_next(ba->ba_msgs);
}

static struct nlmsghdr *
batch_message(struct batch *ba, uint16_t type, uint16_t flags)
{
	return nftnl_nlmsg_build_hdr(mnl_nlmsg_batch_current(ba->ba_msgs),
	    type, NFPROTO_INET, flags, ba->ba_seq++);
}

static void
batch_next(struct batch *ba)
{
	if (!mnl_nlmsg_batch_next(ba->ba_msgs))
		errx(1, "rules do not fit in one transaction");
}

/*
 * The kernel has put its answers in our queue when send returns: the first
 * refusal names the message by its number, 0 is success.
 */
static uint32_t
batch_answers(void)
{
	char			 buf[MNL_SOCKET_BUFFER_SIZE];
	const struct nlmsghdr	*nh;
	const struct nlmsgerr	*e;
	uint32_t		 failed = 0;
	int			 len, why = 0;

	while ((len = recv(mnl_socket_get_fd(nl), buf, sizeof(buf),
	    MSG_DONTWAIT)) > 0) {
		for (nh = (const struct nlmsghdr *)(const void *)buf;
		    mnl_nlmsg_ok(nh, len); nh = mnl_nlmsg_next(nh, &len)) {
			e = mnl_nlmsg_get_payload(nh);
			if (nh->nlmsg_type != NLMSG_ERROR || e->error == 0 ||
			    why != 0)
				continue;
			why = -e->error;
			/* The batch's own error is its first message's. */
			failed = nh->nlmsg_seq < SEQ_TABLE ? SEQ_TABLE :
			    nh->nlmsg_seq;
		}
	}
	errno = why;
	return failed;
}

static uint32_t
batch_commit(struct batch *ba)
{
	nftnl_batch_end(mnl_nlmsg_batch_current(ba->ba_msgs), ba->ba_seq);
	batch_next(ba);
	if (mnl_socket_sendto(nl, mnl_nlmsg_batch_head(ba->ba_msgs),
	    mnl_nlmsg_batch_size(ba->ba_msgs)) == -1)
		err(1, "nfnetlink: send");
	mnl_nlmsg_batch_stop(ba->ba_msgs);
	free(ba->ba_buf);
	return batch_answers();
}

static void
batch_table(struct batch *ba, const struct fence *fe, uint16_t type,
    uint16_t flags)
{
	struct nftnl_table	*t;

	if ((t = nftnl_table_alloc()) == NULL)
		err(1, NULL);
	nftnl_table_set_u32(t, NFTNL_TABLE_FAMILY, NFPROTO_INET);
	nftnl_table_set_str(t, NFTNL_TABLE_NAME, fe->fe_table);
	nftnl_table_nlmsg_build_payload(batch_message(ba, type, flags), t);
	batch_next(ba);
	nftnl_table_free(t);
}

static void
batch_chain(struct batch *ba, const struct fence *fe,
    const struct fence_chain *fc)
{
	struct nftnl_chain	*c = rules_chain(fe, fc);

	nftnl_chain_nlmsg_build_payload(batch_message(ba, NFT_MSG_NEWCHAIN,
	    NEW), c);
	batch_next(ba);
	nftnl_chain_free(c);
}

static void
batch_rule(struct batch *ba, const struct fence *fe,
    const struct fence_rule *fr)
{
	struct nftnl_rule	*r = rules_rule(fe, fr);

	nftnl_rule_nlmsg_build_payload(batch_message(ba, NFT_MSG_NEWRULE,
	    APPEND), r);
	batch_next(ba);
	nftnl_rule_free(r);
}

/*
 * All or nothing.  NULL, or what the kernel did not take and errno.  A table
 * that may be there or not is made sure of first, so that it can be deleted.
 */
const char *
kernel_load(const struct fence *fe)
{
	struct batch	 ba;
	uint32_t	 failed, tables;
	size_t		 i;

	batch_begin(&ba);
	if (fe->fe_replace) {
		batch_table(&ba, fe, NFT_MSG_NEWTABLE, THERE);
		batch_table(&ba, fe, NFT_MSG_DELTABLE, NLM_F_ACK);
	}
	batch_table(&ba, fe, NFT_MSG_NEWTABLE, NEW);
	tables = ba.ba_seq;
	for (i = 0; i < fe->fe_nchains; i++)
		batch_chain(&ba, fe, &fe->fe_chains[i]);
	for (i = 0; i < fe->fe_nrules; i++)
		batch_rule(&ba, fe, &fe->fe_rules[i]);
	if ((failed = batch_commit(&ba)) == 0)
		return NULL;
	if (failed < tables)
		return "table";
	failed -= tables;
	if (failed < fe->fe_nchains)
		return fe->fe_chains[failed].fc_name;
	failed -= fe->fe_nchains;
	return failed < fe->fe_nrules ? fe->fe_rules[failed].fr_what : "commit";
}

void
kernel_unload(const struct fence *fe)
{
	struct batch	 ba;

	batch_begin(&ba);
	batch_table(&ba, fe, NFT_MSG_DELTABLE, NLM_F_ACK);
	if (batch_commit(&ba) != 0)
		err(1, "table %s: delete", fe->fe_table);
}

/* 1 if an object is of our table: whose others are, the caller names. */
static int
verify_is_ours(const struct fence *fe, uint32_t family, const char *table)
{
	return family == NFPROTO_INET && table != NULL &&
	    strcmp(table, fe->fe_table) == 0;
}

static struct nftnl_table *
read_table(const struct nlmsghdr *nh)
{
	struct nftnl_table	*t;

	if ((t = nftnl_table_alloc()) == NULL ||
	    nftnl_table_nlmsg_parse(nh, t) == -1)
		err(1, "table as read back");
	return t;
}

static int
find_table(const struct nlmsghdr *nh, void *arg)
{
	struct reading		*re = arg;
	struct nftnl_table	*t = read_table(nh);

	if (verify_is_ours(re->re_fence,
	    nftnl_table_get_u32(t, NFTNL_TABLE_FAMILY),
	    nftnl_table_get_str(t, NFTNL_TABLE_NAME)))
		re->re_next = 1;
	nftnl_table_free(t);
	return MNL_CB_OK;
}

/* Rules of others may mark packets, or redirect them, before ours look. */
static int
verify_table(const struct nlmsghdr *nh, void *arg)
{
	struct reading		*re = arg;
	struct nftnl_table	*t = read_table(nh);
	const char		*name = nftnl_table_get_str(t,
				    NFTNL_TABLE_NAME);

	if (!verify_is_ours(re->re_fence,
	    nftnl_table_get_u32(t, NFTNL_TABLE_FAMILY), name))
		errx(1, "table %s: another's rules are in this namespace",
		    name == NULL ? "" : name);
	if (nftnl_table_get_u32(t, NFTNL_TABLE_FLAGS) != 0)
		errx(1, "table %s: read back as another", name);
	re->re_next++;
	nftnl_table_free(t);
	return MNL_CB_OK;
}

static int
verify_chain(const struct nlmsghdr *nh, void *arg)
{
	struct reading		*re = arg;
	const struct fence	*fe = re->re_fence;
	struct nftnl_chain	*ours, *theirs;

	if ((theirs = nftnl_chain_alloc()) == NULL ||
	    nftnl_chain_nlmsg_parse(nh, theirs) == -1)
		err(1, "chain as read back");
	if (re->re_next == fe->fe_nchains)
		errx(1, "one chain too many");
	ours = rules_chain(fe, &fe->fe_chains[re->re_next]);
	if (!rules_same_chain(ours, theirs))
		errx(1, "chain %s: read back as another",
		    fe->fe_chains[re->re_next].fc_name);
	re->re_next++;
	nftnl_chain_free(ours);
	nftnl_chain_free(theirs);
	return MNL_CB_OK;
}

static int
verify_rule(const struct nlmsghdr *nh, void *arg)
{
	struct reading		*re = arg;
	const struct fence	*fe = re->re_fence;
	struct nftnl_rule	*ours, *theirs;

	if ((theirs = nftnl_rule_alloc()) == NULL ||
	    nftnl_rule_nlmsg_parse(nh, theirs) == -1)
		err(1, "rule as read back");
	if (re->re_next == fe->fe_nrules)
		errx(1, "one rule too many");
	ours = rules_rule(fe, &fe->fe_rules[re->re_next]);
	if (!rules_same(ours, theirs))
		errx(1, "%s: rule read back as another",
		    fe->fe_rules[re->re_next].fr_what);
	re->re_next++;
	nftnl_rule_free(ours);
	nftnl_rule_free(theirs);
	return MNL_CB_OK;
}

/* One dump; -1 if it has to be tried again. */
static int
dump_once(uint16_t type, mnl_cb_t cb, struct reading *re, const char *what)
{
	char		 buf[MNL_SOCKET_BUFFER_SIZE];
	struct nlmsghdr	*nh;
	int		 n, more;

	nh = nftnl_nlmsg_build_hdr(buf, type, NFPROTO_UNSPEC, NLM_F_DUMP, type);
	if (mnl_socket_sendto(nl, nh, nh->nlmsg_len) == -1)
		err(1, "nfnetlink: send");
	do {
		if ((n = mnl_socket_recvfrom(nl, buf, sizeof(buf))) == -1)
			err(1, "nfnetlink: receive");
		more = mnl_cb_run(buf, n, type, mnl_socket_get_portid(nl), cb,
		    re);
		if (more == -1 && errno == EINTR)
			return -1;
		if (more == -1)
			err(1, "%s: read back", what);
	} while (more > MNL_CB_STOP);
	return 0;
}

/*
 * All objects of a kind, in every table: how many the callback has taken.  Of
 * a dump that was overtaken by a change the rest is thrown away.
 */
static size_t
dump(const struct fence *fe, uint16_t type, mnl_cb_t cb, const char *what)
{
	struct reading	 re;
	int		 i;

	for (i = 0; i < DUMP_TRIES; i++) {
		re = (struct reading){ fe, 0 };
		if (dump_once(type, cb, &re, what) == 0)
			return re.re_next;
		mnl_socket_close(nl);
		kernel_open();
	}
	errx(1, "%s: somebody changes them all the time", what);
}

int
kernel_has(const struct fence *fe)
{
	return dump(fe, NFT_MSG_GETTABLE, find_table, "tables") != 0;
}

static void
verify_all(const struct fence *fe, uint16_t type, mnl_cb_t cb, size_t count,
    const char *what)
{
	size_t	 n = dump(fe, type, cb, what);

	if (n != count)
		errx(1, "%zu %s, read back %zu", count, what, n);
}

/* Ours, whole, and no others. */
void
kernel_verify(const struct fence *fe)
{
	verify_all(fe, NFT_MSG_GETTABLE, verify_table, 1, "table");
	verify_all(fe, NFT_MSG_GETCHAIN, verify_chain, fe->fe_nchains,
	    "chains");
	verify_all(fe, NFT_MSG_GETRULE, verify_rule, fe->fe_nrules, "rules");
}
