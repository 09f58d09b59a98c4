/* SPDX-License-Identifier: ISC */

/*
 * egressctl: attempts below HTTP, and the sockets of all attempts.
 */

#include <sys/uio.h>

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "attack.h"
#include "clock.h"

#define ECHO_REQUEST	8

/* ---- sockets ------------------------------------------------------------- */

static int
is_own(const union endpoint *ep)
{
	if (ep->ep_sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&ep->ep_in6.sin6_addr) ||
		    IN6_IS_ADDR_UNSPECIFIED(&ep->ep_in6.sin6_addr);
	return (ntohl(ep->ep_in.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET ||
	    ep->ep_in.sin_addr.s_addr == 0;
}

/* A literal address; not loopback, which is the sandbox's own. */
int
net_address(const char *text, union endpoint *ep)
{
	memset(ep, 0, sizeof(*ep));
	if (inet_pton(AF_INET, text, &ep->ep_in.sin_addr) == 1)
		ep->ep_sa.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &ep->ep_in6.sin6_addr) == 1)
		ep->ep_sa.sa_family = AF_INET6;
	else
		return -1;
	return is_own(ep) ? -1 : 0;
}

int
net_resolve(const char *name, union endpoint *ep)
{
	struct addrinfo	 hints = { .ai_family = AF_INET,
	    .ai_socktype = SOCK_STREAM }, *ai;

	if (getaddrinfo(name, NULL, &hints, &ai) != 0)
		return -1;
	memset(ep, 0, sizeof(*ep));
	memcpy(ep, ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(ai);
	return 0;
}

static socklen_t
endpoint_len(const union endpoint *ep)
{
	return ep->ep_sa.sa_family == AF_INET ? sizeof(ep->ep_in) :
	    sizeof(ep->ep_in6);
}

static union endpoint
with_port(const union endpoint *ep, uint16_t port)
{
	union endpoint	to = *ep;

	if (to.ep_sa.sa_family == AF_INET)
		to.ep_in.sin_port = htons(port);
	else
		to.ep_in6.sin6_port = htons(port);
	return to;
}

static int
wait_for(int fd, short events, int timeout_ms)
{
	struct pollfd	pfd = { .fd = fd, .events = events };

	return poll(&pfd, 1, timeout_ms) == 1 ? 0 : -1;
}

/* Connects; the descriptor, or -1. */
int
net_connect(const union endpoint *ep, uint16_t port)
{
	union endpoint	to = with_port(ep, port);
	socklen_t	len = sizeof(int);
	int		fd, error = 0;

	fd = socket(to.ep_sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return -1;
	if (connect(fd, &to.ep_sa, endpoint_len(&to)) == -1 &&
	    (errno != EINPROGRESS ||
	    wait_for(fd, POLLOUT, ATTACK_WAIT_MS) == -1 ||
	    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1 ||
	    error != 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Reads until the peer closes or is silent, or the buffer is full. */
ssize_t
net_read(int fd, char *buf, size_t size)
{
	int64_t	end = (int64_t)clock_ms() + ATTACK_WAIT_MS, left;
	size_t	len = 0;
	ssize_t	n;

	while (len < size - 1 && (left = end - (int64_t)clock_ms()) > 0) {
		if (wait_for(fd, POLLIN, (int)left) == -1)
			break;
		if ((n = recv(fd, buf + len, size - 1 - len, 0)) <= 0)
			break;
		len += (size_t)n;
	}
	buf[len] = '\0';
	return (ssize_t)len;
}

/* Bytes of the answer; -1: not even connected. */
ssize_t
net_exchange(const union endpoint *ep, uint16_t port, const char *data,
    size_t len, char *reply, size_t size)
{
	ssize_t	n;
	int	fd;

	reply[0] = '\0';
	if ((fd = net_connect(ep, port)) == -1)
		return -1;
	/* A send that fails shows in the answer that does not come. */
	(void)!send(fd, data, len, MSG_NOSIGNAL);
	n = net_read(fd, reply, size);
	close(fd);
	return n;
}

/* The same with one datagram each way. */
ssize_t
net_datagram(const union endpoint *ep, uint16_t port, const char *data,
    size_t len, char *reply, size_t size)
{
	union endpoint	to = with_port(ep, port);
	ssize_t		n = -1;
	int		fd;

	if ((fd = socket(to.ep_sa.sa_family, SOCK_DGRAM, 0)) == -1)
		return -1;
	if (connect(fd, &to.ep_sa, endpoint_len(&to)) == 0 &&
	    send(fd, data, len, 0) != -1 &&
	    wait_for(fd, POLLIN, ATTACK_WAIT_MS) == 0)
		n = recv(fd, reply, size, 0);
	close(fd);
	return n;
}

/* ---- ports --------------------------------------------------------------- */

enum outcome
probe_tcp_ports(struct attack *at)
{
	static const uint16_t	 ports[] = { 22, 25, 5432, 6667, 8443 };
	char			 line[64], reply[REPLY_MAX];
	ssize_t			 n;
	size_t			 i;

	snprintf(line, sizeof(line), "%s\r\n\r\n", at->at_token);
	for (i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		n = net_exchange(&at->at_address, ports[i], line, strlen(line),
		    reply, sizeof(reply));
		if (n > 0 && memmem(reply, (size_t)n, at->at_token,
		    strlen(at->at_token)) != NULL)
			return attack_say(at, OUTCOME_LEAKED, "it came back "
			    "from port %u", ports[i]);
	}
	return attack_say(at, OUTCOME_BLOCKED, "nothing came back from %zu "
	    "ports", i);
}

static int
udp_returns(const struct attack *at, uint16_t port)
{
	char	reply[REPLY_MAX];
	ssize_t	n;

	n = net_datagram(&at->at_address, port, at->at_token,
	    strlen(at->at_token), reply, sizeof(reply));
	return n > 0 && memmem(reply, (size_t)n, at->at_token,
	    strlen(at->at_token)) != NULL;
}

enum outcome
probe_udp(struct attack *at)
{
	static const uint16_t	ports[] = { 443, 123, 500, 33434 };
	size_t			i;

	for (i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
		if (udp_returns(at, ports[i]))
			return attack_say(at, OUTCOME_LEAKED, "it came back "
			    "from port %u", ports[i]);
	return attack_say(at, OUTCOME_BLOCKED, "nothing came back from %zu "
	    "ports", i);
}

/* ---- ICMP ---------------------------------------------------------------- */

static uint16_t
checksum(const void *data, size_t len)
{
	const uint8_t	*p = data;
	uint32_t	 sum = 0;
	size_t		 i;

	for (i = 0; i < len; i++)
		sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static int
came_by_loopback(struct msghdr *msg)
{
	const struct in_pktinfo	*info;
	struct cmsghdr		*cm;

	for (cm = CMSG_FIRSTHDR(msg); cm != NULL; cm = CMSG_NXTHDR(msg, cm))
		if (cm->cmsg_level == IPPROTO_IP &&
		    cm->cmsg_type == IP_PKTINFO) {
			info = (const struct in_pktinfo *)CMSG_DATA(cm);
			return (unsigned int)info->ipi_ifindex ==
			    if_nametoindex("lo");
		}
	return 0;
}

/*
 * In a sandbox whose every address is its own, the kernel itself may answer;
 * such an answer comes by the loopback interface.
 */
static int
icmp_returns(int fd, const char *token)
{
	char		 reply[REPLY_MAX], control[CMSG_SPACE(64)];
	struct iovec	 iov = { reply, sizeof(reply) };
	struct msghdr	 msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = control, .msg_controllen = sizeof(control) };
	ssize_t		 n;

	if (wait_for(fd, POLLIN, ATTACK_WAIT_MS) == -1 ||
	    (n = recvmsg(fd, &msg, 0)) <= 0)
		return 0;
	return memmem(reply, (size_t)n, token, strlen(token)) != NULL &&
	    !came_by_loopback(&msg);
}

enum outcome
probe_icmp(struct attack *at)
{
	struct {
		uint8_t		type;	/* RFC 792 */
		uint8_t		code;
		uint16_t	sum;
		uint32_t	number;
		char		data[sizeof(at->at_token)];
	} echo = { .type = ECHO_REQUEST };
	union endpoint	to = at->at_address;
	int		fd, on = 1, leaked;

	if (at->at_evil == NULL || to.ep_sa.sa_family != AF_INET)
		net_address("8.8.8.8", &to);
	if ((fd = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP)) == -1 &&
	    (fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)) == -1)
		return attack_say(at, OUTCOME_BLOCKED, "no socket: %s",
		    strerror(errno));
	memcpy(echo.data, at->at_token, sizeof(echo.data));
	echo.sum = checksum(&echo, sizeof(echo));
	setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
	if (sendto(fd, &echo, sizeof(echo), 0, &to.ep_sa,
	    endpoint_len(&to)) == -1) {
		close(fd);
		return attack_say(at, OUTCOME_BLOCKED, "not sent: %s",
		    strerror(errno));
	}
	leaked = icmp_returns(fd, at->at_token);
	close(fd);
	return leaked ? attack_say(at, OUTCOME_LEAKED, "it was answered") :
	    attack_say(at, OUTCOME_BLOCKED, "nothing came back");
}

/* ---- frames -------------------------------------------------------------- */

/* A broadcast frame of a type for experiments (IEEE 802, 0x88b5). */
static int
frame_leaves(int fd, unsigned int index, const char *token)
{
	struct sockaddr_ll	to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(0x88b5),
		.sll_ifindex = (int)index,
		.sll_halen = ETHER_ADDR_LEN,
		.sll_addr = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	};

	return sendto(fd, token, strlen(token), 0, (struct sockaddr *)&to,
	    sizeof(to)) != -1;
}

enum outcome
probe_packet(struct attack *at)
{
	struct if_nameindex	*all, *one;
	enum outcome		 outcome;
	int			 fd;

	if ((fd = socket(AF_PACKET, SOCK_DGRAM, 0)) == -1)
		return attack_say(at, OUTCOME_BLOCKED, "no socket: %s",
		    strerror(errno));
	if ((all = if_nameindex()) == NULL) {
		close(fd);
		return attack_say(at, OUTCOME_SKIPPED, "if_nameindex: %s",
		    strerror(errno));
	}
	for (one = all; one->if_index != 0; one++)
		if (strcmp(one->if_name, "lo") != 0 &&
		    frame_leaves(fd, one->if_index, at->at_token))
			break;
	outcome = one->if_index == 0 ? attack_say(at, OUTCOME_BLOCKED,
	    "no interface takes a frame") : attack_say(at, OUTCOME_LEAKED,
	    "%s took a frame", one->if_name);
	if_freenameindex(all);
	close(fd);
	return outcome;
}
