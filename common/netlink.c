/* SPDX-License-Identifier: ISC */

/*
 * egressd-box runs this before there is a command, and the parent for a fixed
 * session: requests to the kernel about their network namespace.  Nobody but
 * the kernel is asked.
 */

#ifdef __linux__

#include <sys/socket.h>

#include <netinet/in.h>

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "netlink.h"

#define LOG_BYTES	256	/* of a refused packet */

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
	if (NLMSG_ALIGN(len) > sizeof(nl->nl_buf) - nl->nl_len) {
		nl->nl_full = true;
		return;
	}
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
	nl->nl_full = false;
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

	if (nl->nl_full) {
		errno = EMSGSIZE;
		return -1;
	}
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

int
netlink_log(uint16_t group)
{
	struct nfgenmsg			 nf = { .version = NFNETLINK_V0 };
	struct nfulnl_msg_config_cmd	 cmd = { NFULNL_CFG_CMD_BIND };
	struct nfulnl_msg_config_mode	 mode = { 0 };
	uint16_t			 flags = htons(NFULNL_CFG_F_SEQ);
	struct netlink			 nl;
	int				 error;

	if (netlink_open(&nl, NETLINK_NETFILTER) == -1)
		return -1;
	nf.res_id = htons(group);
	mode.copy_range = htonl(LOG_BYTES);
	mode.copy_mode = NFULNL_COPY_PACKET;
	netlink_begin(&nl, (NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_CONFIG, 0,
	    &nf, sizeof(nf));
	netlink_attr(&nl, NFULA_CFG_CMD, &cmd, sizeof(cmd));
	netlink_attr(&nl, NFULA_CFG_MODE, &mode, sizeof(mode));
	netlink_attr(&nl, NFULA_CFG_FLAGS, &flags, sizeof(flags));
	if (netlink_talk(&nl) == -1 ||
	    fcntl(nl.nl_fd, F_SETFL, O_NONBLOCK) == -1) {
		error = errno;
		close(nl.nl_fd);
		errno = error;
		return -1;
	}
	return nl.nl_fd;
}

#endif /* __linux__ */
