/* SPDX-License-Identifier: ISC */

/*
 * egressd-fence runs this in the first init container of a pod, with nothing
 * but NET_ADMIN, or again while the pod runs.  The pod's network leads out, and
 * the workspace, whoever it is in there, shares it with the gate: these rules
 * are all that keeps it in.
 *
 *	workspace -- TCP, DNS --> redirect -- 127.0.0.1, ::1 --> gate
 *	gate's own sockets, by their mark  -------------------> out
 *	anything else                      --> counted, logged, refused
 *
 * A mark takes NET_ADMIN, or NET_RAW, which the workspace has not.  What is
 * established is not let out for that: a workspace could go on where the
 * gate's UDP has been.  Multicast listeners' reports are refused with all
 * else: they name groups, and a workspace chooses those.
 */

#include <sys/stat.h>

#include <netinet/icmp6.h>
#include <netinet/in.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fence.h"

/* A setting that the first namespace of a kernel has, and no other. */
#define FIRST_ONLY	"/proc/sys/net/core/netdev_max_backlog"
#define ALL_HAVE	"/proc/sys/net/core/somaxconn"

#define STATE_LISTEN	0x0a		/* in /proc/net/tcp */

static const struct fence_chain chains[] = {
	{ FENCE_NAT, "nat", NF_INET_LOCAL_OUT, PRIORITY_NAT, NF_ACCEPT },
	{ FENCE_OUT, "filter", NF_INET_LOCAL_OUT, PRIORITY_FILTER, NF_DROP },
	{ FENCE_IN, "filter", NF_INET_LOCAL_IN, PRIORITY_FILTER, NF_DROP },
};

/* An address as /proc/net has it: words as they are in memory, printed. */
static int
pod_is_loopback(const uint32_t *words, size_t n)
{
	struct in6_addr	 a6;

	if (n == 1)
		return ntohl(words[0]) >> 24 == IN_LOOPBACKNET;
	memcpy(&a6, words, sizeof(a6));
	return IN6_IS_ADDR_LOOPBACK(&a6) || (IN6_IS_ADDR_V4MAPPED(&a6) &&
	    a6.s6_addr[12] == IN_LOOPBACKNET);
}

/* The port of a server that others could reach, or 0. */
static unsigned int
pod_find_server(const char *path, const char *format, size_t n)
{
	char		 line[512];
	uint32_t	 a[4];
	unsigned int	 port, state, found = 0;
	FILE		*f;

	if ((f = fopen(path, "re")) == NULL) {
		if (errno == ENOENT)
			return 0;
		err(1, "%s", path);
	}
	while (found == 0 && fgets(line, sizeof(line), f) != NULL) {
		if (n == 1 ? sscanf(line, format, &a[0], &port, &state) != 3 :
		    sscanf(line, format, &a[0], &a[1], &a[2], &a[3], &port,
		    &state) != 6)
			continue;
		if (state == STATE_LISTEN && !pod_is_loopback(a, n))
			found = port;
	}
	fclose(f);
	return found;
}

/*
 * On a machine's own namespace, which a pod has that says hostNetwork, these
 * rules would cut it off.  The kernel's first namespace is told by a setting.
 * A machine may also be a container itself, in a namespace like any other; but
 * somebody serves there, and in a new pod nobody does yet.
 */
static void
pod_check_namespace(const struct fence *fe)
{
	unsigned int	 port;

	if (access(ALL_HAVE, F_OK) == -1)
		err(1, "%s", ALL_HAVE);
	if (access(FIRST_ONLY, F_OK) == 0)
		errx(1, "this is the machine's network, not that of a pod");
	if (kernel_has(fe))
		return;
	if ((port = pod_find_server("/proc/self/net/tcp",
	    "%*d: %8x:%4x %*8x:%*4x %2x", 1)) != 0 ||
	    (port = pod_find_server("/proc/self/net/tcp6",
	    "%*d: %8x%8x%8x%8x:%4x %*32[0-9A-F]:%*4x %2x", 4)) != 0)
		errx(1, "somebody serves port %u: not the network of a new pod",
		    port);
}

void
pod_set(const struct fence_options *fo)
{
	const uint32_t		 tcp = fo->fo_tcp, dns = fo->fo_dns;
	const uint32_t		 group = fo->fo_group;
	const struct fence_rule	 rules[] = {
		{ FENCE_NAT, "the gate's own", {
		    { OP_MARK, fo->fo_mark }, { OP_ACCEPT, 0 } } },
		/* Loopback belongs to the workspace: its own servers. */
		{ FENCE_NAT, "IPv4 loopback", { { OP_LOOPBACK4, 0 },
		    { OP_ACCEPT, 0 } } },
		{ FENCE_NAT, "IPv6 loopback", { { OP_LOOPBACK6, 0 },
		    { OP_ACCEPT, 0 } } },
		{ FENCE_NAT, "redirection of DNS", {
		    { OP_PROTOCOL, IPPROTO_UDP }, { OP_PORT, PORT_DNS },
		    { OP_REDIRECT, dns } } },
		{ FENCE_NAT, "redirection of DNS over TCP", {
		    { OP_PROTOCOL, IPPROTO_TCP }, { OP_PORT, PORT_DNS },
		    { OP_REDIRECT, dns } } },
		{ FENCE_NAT, "redirection of TCP", {
		    { OP_PROTOCOL, IPPROTO_TCP }, { OP_REDIRECT, tcp } } },

		{ FENCE_OUT, "redirected connections", {
		    { OP_STATUS, IPS_DST_NAT }, { OP_ACCEPT, 0 } } },
		{ FENCE_OUT, "the gate's own, out", {
		    { OP_MARK, fo->fo_mark }, { OP_ACCEPT, 0 } } },
		/* Sent to the gate's own ports on purpose. */
		{ FENCE_OUT, "the gate's TCP port", {
		    { OP_PROTOCOL, IPPROTO_TCP }, { OP_PORT, tcp },
		    { OP_COUNT, 0 }, { OP_LOG, group }, { OP_RESET, 0 } } },
		{ FENCE_OUT, "the gate's DNS port over TCP", {
		    { OP_PROTOCOL, IPPROTO_TCP }, { OP_PORT, dns },
		    { OP_COUNT, 0 }, { OP_LOG, group }, { OP_RESET, 0 } } },
		{ FENCE_OUT, "the gate's DNS port", {
		    { OP_PROTOCOL, IPPROTO_UDP }, { OP_PORT, dns },
		    { OP_COUNT, 0 }, { OP_LOG, group },
		    { OP_UNREACHABLE, NFT_REJECT_ICMPX_PORT_UNREACH } } },
		/* By address: a redirected packet still has its old device. */
		{ FENCE_OUT, "IPv4 loopback", { { OP_LOOPBACK4, 0 },
		    { OP_ACCEPT, 0 } } },
		{ FENCE_OUT, "IPv6 loopback", { { OP_LOOPBACK6, 0 },
		    { OP_ACCEPT, 0 } } },
		/* The kernel's; without them no IPv6 address is found. */
		{ FENCE_OUT, "neighbour solicitations", {
		    { OP_NEIGHBOUR, ND_NEIGHBOR_SOLICIT }, { OP_ACCEPT, 0 } } },
		{ FENCE_OUT, "neighbour advertisements", {
		    { OP_NEIGHBOUR, ND_NEIGHBOR_ADVERT }, { OP_ACCEPT, 0 } } },
		{ FENCE_OUT, "router solicitations", {
		    { OP_NEIGHBOUR, ND_ROUTER_SOLICIT }, { OP_ACCEPT, 0 } } },
		{ FENCE_OUT, "everything else", { { OP_COUNT, 0 },
		    { OP_LOG, group },
		    { OP_UNREACHABLE, NFT_REJECT_ICMPX_ADMIN_PROHIBITED } } },

		{ FENCE_IN, "what comes from inside", {
		    { OP_FROM_LOOPBACK, 0 }, { OP_ACCEPT, 0 } } },
		{ FENCE_IN, "answers", {
		    { OP_STATE, STATE_KNOWN }, { OP_ACCEPT, 0 } } },
		{ FENCE_IN, "neighbours' solicitations", {
		    { OP_NEIGHBOUR, ND_NEIGHBOR_SOLICIT }, { OP_ACCEPT, 0 } } },
		{ FENCE_IN, "neighbours' advertisements", {
		    { OP_NEIGHBOUR, ND_NEIGHBOR_ADVERT }, { OP_ACCEPT, 0 } } },
		{ FENCE_IN, "router advertisements", {
		    { OP_NEIGHBOUR, ND_ROUTER_ADVERT }, { OP_ACCEPT, 0 } } },
		{ FENCE_IN, "what nobody asked for", { { OP_COUNT, 0 } } },
	};
	const struct fence	 fence = {
		FENCE_TABLE, chains, NITEMS(chains), rules, NITEMS(rules), 1
	};

	pod_check_namespace(&fence);
	fence_put(&fence, fo->fo_look);
}
