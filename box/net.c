/* SPDX-License-Identifier: ISC */

/*
 * egressd-box runs this before there is a command, in the sandbox's network
 * namespace, which has loopback and nothing else.
 *
 * The routes "local default dev lo" make every address of the world one of
 * this namespace: a connection arrives at whoever listens here, or nowhere.
 * That alone is the enforcement.  The fence then brings all ports to one
 * listener; on a kernel without it the well-known ports are listened on.
 */

#include <sys/socket.h>
#include <sys/wait.h>

#include <net/if.h>
#include <netinet/in.h>

#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "netlink.h"

#define PORT_DNS		53
#define BACKLOG			1024

/* Without redirection these arrive, and no others. */
static const uint16_t	well_known[] = { 22, 80, 443, 8443 };
#define WELL_KNOWN_TEXT	"22, 80, 443 and 8443"

/* An address of the sandbox, in the form that the kernel wants. */
struct net_address {
	int	 na_family;
	size_t	 na_len;
	uint8_t	 na_bytes[16];
};

static void
net_parse(struct net_address *na, int family, const char *text)
{
	na->na_family = family;
	na->na_len = family == AF_INET ? sizeof(struct in_addr) :
	    sizeof(struct in6_addr);
	if (inet_pton(family, text, na->na_bytes) != 1)
		errx(BOX_FAILED, "address %s", text);
}

static void
net_link_up(struct netlink *nl)
{
	struct ifinfomsg	 ifi = { 0 };

	ifi.ifi_index = if_nametoindex("lo");
	ifi.ifi_flags = ifi.ifi_change = IFF_UP;
	netlink_begin(nl, RTM_NEWLINK, 0, &ifi, sizeof(ifi));
	if (netlink_talk(nl) == -1)
		err(BOX_FAILED, "no rights in a user namespace ("
		    BOX_USERNS_HINT "): interface lo");
}

static int
net_address(struct netlink *nl, const struct net_address *na)
{
	struct ifaddrmsg	 ifa = { 0 };

	ifa.ifa_family = na->na_family;
	ifa.ifa_prefixlen = na->na_len * 8;
	/* Else IPv6 would look for another owner first, and not be ready. */
	ifa.ifa_flags = IFA_F_NODAD;
	ifa.ifa_index = if_nametoindex("lo");
	netlink_begin(nl, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &ifa,
	    sizeof(ifa));
	netlink_attr(nl, IFA_LOCAL, na->na_bytes, na->na_len);
	netlink_attr(nl, IFA_ADDRESS, na->na_bytes, na->na_len);
	return netlink_talk(nl);
}

/* A preferred source, or each packet would come from its destination. */
static int
net_route(struct netlink *nl, const struct net_address *na)
{
	struct rtmsg	 rtm = { 0 };
	uint32_t	 lo = if_nametoindex("lo");

	rtm.rtm_family = na->na_family;
	rtm.rtm_table = RT_TABLE_LOCAL;
	rtm.rtm_protocol = RTPROT_STATIC;
	rtm.rtm_scope = RT_SCOPE_HOST;
	rtm.rtm_type = RTN_LOCAL;
	netlink_begin(nl, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &rtm,
	    sizeof(rtm));
	netlink_attr(nl, RTA_OIF, &lo, sizeof(lo));
	netlink_attr(nl, RTA_PREFSRC, na->na_bytes, na->na_len);
	return netlink_talk(nl);
}

/* A setting that may fail: the sandbox is as tight without. */
static void
net_sysctl(const char *path, const char *value)
{
	int	 fd;

	if ((fd = open(path, O_WRONLY | O_CLOEXEC)) == -1)
		return;
	(void)!write(fd, value, strlen(value));
	close(fd);
}

static int
net_has_ipv6(void)
{
	int	 fd;

	if ((fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)) == -1)
		return 0;
	close(fd);
	return 1;
}

void
net_up(void)
{
	struct net_address	 na;
	struct netlink		 nl;

	if (netlink_open(&nl, NETLINK_ROUTE) == -1)
		err(BOX_FAILED, "rtnetlink");
	net_link_up(&nl);
	net_parse(&na, AF_INET, BOX_ADDRESS4);
	if (net_address(&nl, &na) == -1 || net_route(&nl, &na) == -1)
		err(BOX_FAILED, "address and route of the sandbox");
	net_sysctl("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "0");
	net_parse(&na, AF_INET6, BOX_ADDRESS6);
	if (net_has_ipv6() &&
	    (net_address(&nl, &na) == -1 || net_route(&nl, &na) == -1))
		err(BOX_FAILED, "IPv6 address and route of the sandbox");
	close(nl.nl_fd);

	/* A ping that can be sent is one that is refused and recorded. */
	net_sysctl("/proc/sys/net/ipv4/ping_group_range", "0 0");
	net_sysctl("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
}

/*
 * UDP answers must leave from the address that was asked: the engine learns
 * it with each packet, and may use it although no interface carries it.
 */
static int
net_datagrams(int fd, int family)
{
	int	 on = 1;

	if (family == AF_INET)
		return setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on,
	    sizeof(on)) == -1)
		return -1;
	return setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
}

/*
 * With redirection the listeners stand on loopback, where it leads; without
 * it on the wildcard address, where everything local arrives.
 */
static int
net_socket(int family, int type, uint16_t port, int loopback)
{
	struct sockaddr_in	 sin = { .sin_family = AF_INET };
	struct sockaddr_in6	 sin6 = { .sin6_family = AF_INET6 };
	int			 fd, on = 1, rv;

	if ((fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) == -1)
		err(BOX_FAILED, "socket");
	sin.sin_port = sin6.sin6_port = htons(port);
	if (family == AF_INET) {
		sin.sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK :
		    INADDR_ANY);
		rv = bind(fd, (struct sockaddr *)&sin, sizeof(sin));
	} else {
		sin6.sin6_addr = loopback ? in6addr_loopback : in6addr_any;
		rv = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on,
		    sizeof(on));
		if (rv == 0)
			rv = bind(fd, (struct sockaddr *)&sin6, sizeof(sin6));
	}
	if (rv == 0 && type == SOCK_STREAM)
		rv = listen(fd, BACKLOG);
	else if (rv == 0)
		rv = net_datagrams(fd, family);
	if (rv == -1)
		err(BOX_FAILED, "port %u of the sandbox", port);
	return fd;
}

static void
net_keep(struct box *bx, enum listen_kind kind, int fd)
{
	struct box_listener	*bl;

	if (bx->bx_nlisteners == BOX_LISTENERS)
		errx(BOX_FAILED, "more than %d listeners", BOX_LISTENERS);
	bl = &bx->bx_listeners[bx->bx_nlisteners++];
	bl->bl_kind = kind;
	bl->bl_fd = fd;
}

static void
net_listen(struct box *bx, const uint16_t *ports, size_t nports,
    uint16_t dns, int loopback)
{
	int	 families[] = { AF_INET, AF_INET6 };
	size_t	 i, k, n = net_has_ipv6() ? 2 : 1;

	for (i = 0; i < n; i++) {
		for (k = 0; k < nports; k++)
			net_keep(bx, LISTEN_TCP, net_socket(families[i],
			    SOCK_STREAM, ports[k], loopback));
		net_keep(bx, LISTEN_DNS_UDP, net_socket(families[i],
		    SOCK_DGRAM, dns, loopback));
		net_keep(bx, LISTEN_DNS_TCP, net_socket(families[i],
		    SOCK_STREAM, dns, loopback));
	}
}

static void
net_unlisten(struct box *bx)
{
	while (bx->bx_nlisteners > 0)
		close(bx->bx_listeners[--bx->bx_nlisteners].bl_fd);
}

/* The fence has our rights here, but no descriptor or variable of ours. */
static int
net_fence(const struct box *bx)
{
	char	 tcp[8], dns[8], group[8], arg0[] = "egressd-fence";
	char	 t[] = "-t", d[] = "-d", g[] = "-g";
	char	*argv[] = { arg0, t, tcp, d, dns, g, group, NULL };
	char	*envp[] = { NULL };
	pid_t	 pid;
	int	 status;

	snprintf(tcp, sizeof(tcp), "%d", BOX_PORT_TCP);
	snprintf(dns, sizeof(dns), "%d", BOX_PORT_DNS);
	snprintf(group, sizeof(group), "%d", BOX_LOG_GROUP);
	if ((pid = vfork()) == -1)
		err(BOX_FAILED, "fork");
	if (pid == 0) {
		execve(bx->bx_fence, argv, envp);
		warn("%s", bx->bx_fence);
		_exit(1);
	}
	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			err(BOX_FAILED, "wait for the fence");
	if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 &&
	    WEXITSTATUS(status) != FENCE_LACKING))
		errx(BOX_FAILED, "the fence failed, no sandbox");
	return WEXITSTATUS(status) == 0;
}

/* Everything that the engine gets.  1 if all ports arrive. */
int
net_gate(struct box *bx)
{
	static const uint16_t	 gate[] = { BOX_PORT_TCP };
	int			 fd;

	if ((fd = netlink_log(BOX_LOG_GROUP)) != -1) {
		net_listen(bx, gate, NITEMS(gate), BOX_PORT_DNS, 1);
		if (net_fence(bx)) {
			net_keep(bx, LISTEN_NFLOG, fd);
			return 1;
		}
		net_unlisten(bx);
		close(fd);
	} else
		warn("this kernel lacks nfnetlink_log");
	box_notice(bx, "no redirection on this kernel: ports "
	    WELL_KNOWN_TEXT " and DNS arrive at the gate, others are refused "
	    "without a record");
	net_listen(bx, well_known, NITEMS(well_known), PORT_DNS, 0);
	return 0;
}
