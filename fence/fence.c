/* SPDX-License-Identifier: ISC */

/*
 * egressd-fence runs this once, inside the network namespace of a sandbox
 * that holds no hostile process yet, and exits.  The namespace of a local
 * sandbox has no way out, so these rules do not enforce: they bring every TCP
 * port and all DNS to the engine, and turn everything else into a prompt
 * refusal and a packet for the engine to record.  In a pod the rules are the
 * fence (pod.c).
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

#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fence.h"

static const struct fence_chain chains[] = {
	{ FENCE_NAT, "nat", NF_INET_LOCAL_OUT, PRIORITY_NAT, NF_ACCEPT },
	{ FENCE_OUT, "filter", NF_INET_LOCAL_OUT, PRIORITY_FILTER, NF_DROP },
};

static void __attribute__((__noreturn__))
usage(void)
{
	fprintf(stderr, "usage: egressd-fence [-n] -t port -d port -g group\n"
	    "       egressd-fence -p [-n] -t port -d port -g group -m mark "
	    "[-T directory]\n"
	    "           [-v directory] ... [-b directory]\n");
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
		{ FENCE_NAT, "nat chains", { { OP_ACCEPT, 0 } } },
		{ FENCE_NAT, "redirect",
		    { { OP_PROTOCOL, IPPROTO_TCP }, { OP_REDIRECT, 1 } } },
		{ FENCE_OUT, "ct", { { OP_STATE, STATE_KNOWN } } },
		{ FENCE_OUT, "counter", { { OP_COUNT, 0 } } },
		{ FENCE_OUT, "log group", { { OP_LOG, 1 } } },
		{ FENCE_OUT, "reject", { { OP_UNREACHABLE, 0 } } },
	};
	struct fence	 probe = { "egressd_probe", NULL, 1, NULL, 1, 0 };
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

/* Set the rules, unless it is only asked whether they are there. */
void
fence_put(const struct fence *fe, int look)
{
	const char	*failed, *part;

	if (!look && (failed = kernel_load(fe)) != NULL) {
		warn("%s", failed);
		if ((part = fence_find_lacking()) == NULL)
			exit(1);
		warnx("this kernel's nf_tables lacks: %s", part);
		exit(FENCE_LACKING);
	}
	kernel_verify(fe);
}

static void
fence_set(const struct fence_options *fo)
{
	const uint32_t		 tcp = fo->fo_tcp, dns = fo->fo_dns;
	const uint32_t		 group = fo->fo_group;
	const struct fence_rule	 rules[] = {
		/* Loopback belongs to the sandbox: its own servers. */
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

		{ FENCE_OUT, "known connections", {
		    { OP_STATE, STATE_KNOWN }, { OP_ACCEPT, 0 } } },
		{ FENCE_OUT, "redirected connections", {
		    { OP_STATUS, IPS_DST_NAT }, { OP_ACCEPT, 0 } } },
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
		{ FENCE_OUT, "IPv4 loopback", { { OP_LOOPBACK4, 0 },
		    { OP_ACCEPT, 0 } } },
		{ FENCE_OUT, "IPv6 loopback", { { OP_LOOPBACK6, 0 },
		    { OP_ACCEPT, 0 } } },
		{ FENCE_OUT, "everything else", { { OP_COUNT, 0 },
		    { OP_LOG, group },
		    { OP_UNREACHABLE, NFT_REJECT_ICMPX_ADMIN_PROHIBITED } } },
	};
	const struct fence	 fence = {
		FENCE_TABLE, chains, NITEMS(chains), rules, NITEMS(rules), 0
	};

	fence_put(&fence, fo->fo_look);
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

/* As others print marks: also in hexadecimal. */
static uint32_t
fence_mark(const char *s)
{
	unsigned long long	 n;
	char			*end;

	errno = 0;
	n = strtoull(s, &end, 0);
	if (!isdigit((unsigned char)*s) || *end != '\0' || errno != 0 ||
	    n == 0 || n > UINT32_MAX)
		errx(1, "mark %s: not a number of 32 bits, or 0", s);
	return n;
}

static void
fence_options(struct fence_options *fo, int argc, char **argv)
{
	int	 ch;

	while ((ch = getopt(argc, argv, "T:b:d:g:m:npt:v:")) != -1) {
		switch (ch) {
		case 'T':
			fo->fo_trust = optarg;
			break;
		case 'b':
			fo->fo_bin = optarg;
			break;
		case 'd':
			fo->fo_dns = fence_number(optarg, "DNS port");
			break;
		case 'g':
			fo->fo_group = fence_number(optarg, "log group");
			break;
		case 'm':
			fo->fo_mark = fence_mark(optarg);
			break;
		case 'n':
			fo->fo_look = 1;
			break;
		case 'p':
			fo->fo_pod = 1;
			break;
		case 't':
			fo->fo_tcp = fence_number(optarg, "TCP port");
			break;
		case 'v':
			if (fo->fo_nvolumes == FENCE_VOLUMES)
				errx(1, "%s: too many volumes", optarg);
			fo->fo_volumes[fo->fo_nvolumes++] = optarg;
			break;
		default:
			usage();
		}
	}
	if (optind != argc || fo->fo_tcp == 0 || fo->fo_dns == 0 ||
	    fo->fo_group == 0 || fo->fo_pod != (fo->fo_mark != 0))
		usage();
	if ((fo->fo_nvolumes > 0 || fo->fo_trust != NULL ||
	    fo->fo_bin != NULL) && (!fo->fo_pod || fo->fo_look))
		usage();
}

int
main(int argc, char **argv)
{
	struct fence_options	 fo = { 0 };
	size_t			 i;

	fence_options(&fo, argc, argv);
	if (!fo.fo_pod) {
		fence_check_namespace();
		kernel_open();
		fence_set(&fo);
		return 0;
	}
	kernel_open();
	pod_set(&fo);
	/* The rules come first: what fails now leaves a pod that is closed. */
	for (i = 0; i < fo.fo_nvolumes; i++)
		volume_close(fo.fo_volumes[i]);
	if (fo.fo_trust != NULL)
		volume_trust(fo.fo_trust);
	if (fo.fo_bin != NULL)
		volume_install(fo.fo_bin);
	return 0;
}
