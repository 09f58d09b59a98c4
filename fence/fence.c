/* SPDX-License-Identifier: ISC */

/*
 * egressd-fence runs this once, inside the network namespace of a sandbox
 * that holds no hostile process yet, and exits.  The namespace has no way
 * out, so these rules do not enforce: they bring every TCP port and all DNS
 * to the engine, and turn everything else into a prompt refusal and a packet
 * for the engine to record.
 *
 * Exit status: 0 the rules are in place and were read back, 2 the kernel
 * lacks something (standard error says what), 1 anything else.
 */

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <net/if.h>
#include <netinet/in.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fence.h"

#define PORT_DNS	53
#define PRIORITY_NAT	(-100)		/* of the destination, in nft's words */
#define PRIORITY_FILTER	0

/* As nft_ct_get_eval() spells them. */
#define STATE_BIT(s)	(1U << ((s) + 1))
#define STATE_KNOWN	(STATE_BIT(IP_CT_ESTABLISHED) | \
			STATE_BIT(IP_CT_RELATED))

#define CHAIN_NAT	"redirect"
#define CHAIN_FILTER	"refuse"

#define NITEMS(a)	(sizeof(a) / sizeof((a)[0]))

static const struct fence_chain chains[] = {
	{ CHAIN_NAT, "nat", PRIORITY_NAT, NF_ACCEPT },
	{ CHAIN_FILTER, "filter", PRIORITY_FILTER, NF_DROP },
};

static void __attribute__((__noreturn__))
usage(void)
{
	fprintf(stderr, "usage: egressd-fence -t port -d port -g group\n");
	exit(1);
}

/*
 * On a machine's own namespace these rules would cut it off: only one where
 * nothing but loopback is up will do.  (Tunnel drivers put an idle interface
 * into every new namespace.)
 */
static void
fence_check_namespace(void)
{
	struct if_nameindex	*ifs, *p;
	struct ifreq		 ifr;
	int			 fd;

	if ((fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) == -1 ||
	    (ifs = if_nameindex()) == NULL)
		err(1, "interfaces");
	for (p = ifs; p->if_index != 0; p++) {
		if (strcmp(p->if_name, "lo") == 0)
			continue;
		memset(&ifr, 0, sizeof(ifr));
		strlcpy(ifr.ifr_name, p->if_name, sizeof(ifr.ifr_name));
		if (ioctl(fd, SIOCGIFFLAGS, &ifr) == -1)
			err(1, "%s", p->if_name);
		if (ifr.ifr_flags & IFF_UP)
			errx(1, "%s is up: not the namespace of a sandbox",
			    p->if_name);
	}
	if_freenameindex(ifs);
	close(fd);
}

/* The first part of a fence that this kernel lacks, each tried by itself. */
static const char *
fence_find_lacking(void)
{
	static const struct fence_rule	 parts[] = {
		{ CHAIN_NAT, "nat chains", { { OP_ACCEPT, 0 } } },
		{ CHAIN_NAT, "redirect",
		    { { OP_PROTOCOL, IPPROTO_TCP }, { OP_REDIRECT, 1 } } },
		{ CHAIN_FILTER, "ct", { { OP_STATE, STATE_KNOWN } } },
		{ CHAIN_FILTER, "counter", { { OP_COUNT, 0 } } },
		{ CHAIN_FILTER, "log group", { { OP_LOG, 1 } } },
		{ CHAIN_FILTER, "reject", { { OP_UNREACHABLE, 0 } } },
	};
	struct fence	 probe = { "egressd_probe", NULL, 1, NULL, 1 };
	size_t		 i;

	for (i = 0; i < NITEMS(parts); i++) {
		probe.fe_rules = &parts[i];
		probe.fe_chains = parts[i].fr_chain == chains[0].fc_name ?
		    &chains[0] : &chains[1];
		if (kernel_load(&probe) != NULL)
			return parts[i].fr_what;
		kernel_unload(&probe);
	}
	return NULL;
}

static void
fence_set(uint32_t tcp, uint32_t dns, uint32_t group)
{
	const struct fence_rule	 rules[] = {
		/* Loopback belongs to the sandbox: its own servers. */
		{ CHAIN_NAT, "IPv4 loopback", { { OP_LOOPBACK4, 0 },
		    { OP_ACCEPT, 0 } } },
		{ CHAIN_NAT, "IPv6 loopback", { { OP_LOOPBACK6, 0 },
		    { OP_ACCEPT, 0 } } },
		{ CHAIN_NAT, "redirection of DNS", {
		    { OP_PROTOCOL, IPPROTO_UDP }, { OP_PORT, PORT_DNS },
		    { OP_REDIRECT, dns } } },
		{ CHAIN_NAT, "redirection of DNS over TCP", {
		    { OP_PROTOCOL, IPPROTO_TCP }, { OP_PORT, PORT_DNS },
		    { OP_REDIRECT, dns } } },
		{ CHAIN_NAT, "redirection of TCP", {
		    { OP_PROTOCOL, IPPROTO_TCP }, { OP_REDIRECT, tcp } } },

		{ CHAIN_FILTER, "known connections", {
		    { OP_STATE, STATE_KNOWN }, { OP_ACCEPT, 0 } } },
		{ CHAIN_FILTER, "redirected connections", {
		    { OP_STATUS, IPS_DST_NAT }, { OP_ACCEPT, 0 } } },
		/* Sent to the gate's own ports on purpose. */
		{ CHAIN_FILTER, "the gate's TCP port", {
		    { OP_PROTOCOL, IPPROTO_TCP }, { OP_PORT, tcp },
		    { OP_COUNT, 0 }, { OP_LOG, group }, { OP_RESET, 0 } } },
		{ CHAIN_FILTER, "the gate's DNS port over TCP", {
		    { OP_PROTOCOL, IPPROTO_TCP }, { OP_PORT, dns },
		    { OP_COUNT, 0 }, { OP_LOG, group }, { OP_RESET, 0 } } },
		{ CHAIN_FILTER, "the gate's DNS port", {
		    { OP_PROTOCOL, IPPROTO_UDP }, { OP_PORT, dns },
		    { OP_COUNT, 0 }, { OP_LOG, group },
		    { OP_UNREACHABLE, NFT_REJECT_ICMPX_PORT_UNREACH } } },
		{ CHAIN_FILTER, "IPv4 loopback", { { OP_LOOPBACK4, 0 },
		    { OP_ACCEPT, 0 } } },
		{ CHAIN_FILTER, "IPv6 loopback", { { OP_LOOPBACK6, 0 },
		    { OP_ACCEPT, 0 } } },
		{ CHAIN_FILTER, "everything else", { { OP_COUNT, 0 },
		    { OP_LOG, group },
		    { OP_UNREACHABLE, NFT_REJECT_ICMPX_ADMIN_PROHIBITED } } },
	};
	const struct fence	 fence = {
		FENCE_TABLE, chains, NITEMS(chains), rules, NITEMS(rules)
	};
	const char		*failed, *part;

	if ((failed = kernel_load(&fence)) != NULL) {
		warn("%s", failed);
		if ((part = fence_find_lacking()) == NULL)
			exit(1);
		warnx("this kernel's nf_tables lacks: %s", part);
		exit(FENCE_LACKING);
	}
	kernel_verify(&fence);
}

static uint32_t
fence_number(const char *s, const char *what)
{
	const char	*why;
	long long	 n;

	n = strtonum(s, 1, UINT16_MAX, &why);
	if (why != NULL)
		errx(1, "%s %s: %s", what, s, why);
	return n;
}

int
main(int argc, char **argv)
{
	uint32_t	 tcp = 0, dns = 0, group = 0;
	int		 ch;

	while ((ch = getopt(argc, argv, "d:g:t:")) != -1) {
		switch (ch) {
		case 'd':
			dns = fence_number(optarg, "DNS port");
			break;
		case 'g':
			group = fence_number(optarg, "log group");
			break;
		case 't':
			tcp = fence_number(optarg, "TCP port");
			break;
		default:
			usage();
		}
	}
	if (optind != argc || tcp == 0 || dns == 0 || group == 0)
		usage();

	fence_check_namespace();
	kernel_open();
	fence_set(tcp, dns, group);
	return 0;
}
