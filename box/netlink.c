/* SPDX-License-Identifier: ISC */

/*
 * egressd-box runs this before there is a command: requests to the kernel
 * about its own network namespace, answered one at a time.
 */

#include <sys/socket.h>

#include <linux/netlink.h>

#include <err.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "box.h"

int
netlink_open(struct netlink *nl, int protocol)
{
	memset(nl, 0, sizeof(*nl));
	nl->nl_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	return nl->nl_fd == -1 ? -1 : 0;
}

static void
netlink_add(struct netlink *nl, const void *data, size_t len)
{
	if (NLMSG_ALIGN(len) > sizeof(nl->nl_buf) - nl->nl_len)
		errx(BOX_FAILED, "netlink: request too long");
	memcpy((char *)nl->nl_buf + nl->nl_len, data, len);
	nl->nl_len += NLMSG_ALIGN(len);
}

void
netlink_begin(struct netlink *nl, uint16_t type, uint16_t flags,
    const void *body, size_t len)
{
	struct nlmsghdr	 nh = { 0 };

	memset(nl->nl_buf, 0, sizeof(nl->nl_buf));
	nl->nl_len = 0;
	nh.nlmsg_type = type;
	nh.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	nh.nlmsg_seq = ++nl->nl_seq;
	netlink_add(nl, &nh, sizeof(nh));
	netlink_add(nl, body, len);
}

void
netlink_attr(struct netlink *nl, uint16_t type, const void *data, size_t len)
{
	struct nlattr	 na = { .nla_type = type };

	na.nla_len = NLA_HDRLEN + len;
	netlink_add(nl, &na, sizeof(na));
	netlink_add(nl, data, len);
}

/* 0, or -1 with the kernel's reason as errno. */
int
netlink_talk(struct netlink *nl)
{
	uint32_t		 buf[256];
	struct nlmsghdr		 nh;
	struct nlmsgerr		 answer;
	ssize_t			 n;

	memcpy(&nh, nl->nl_buf, sizeof(nh));
	nh.nlmsg_len = nl->nl_len;
	memcpy(nl->nl_buf, &nh, sizeof(nh));
	if (send(nl->nl_fd, nl->nl_buf, nl->nl_len, 0) == -1 ||
	    (n = recv(nl->nl_fd, buf, sizeof(buf), 0)) == -1)
		return -1;
	memcpy(&nh, buf, sizeof(nh));
	if ((size_t)n < NLMSG_LENGTH(sizeof(answer)) ||
	    nh.nlmsg_type != NLMSG_ERROR || nh.nlmsg_seq != nl->nl_seq) {
		errno = EBADMSG;
		return -1;
	}
	memcpy(&answer, (char *)buf + NLMSG_HDRLEN, sizeof(answer));
	errno = -answer.error;
	return answer.error == 0 ? 0 : -1;
}
