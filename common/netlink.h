/* SPDX-License-Identifier: ISC */

/*
 * Requests to the kernel about the network namespace of this process, answered
 * one at a time.
 */

#ifndef NETLINK_H
#define NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct netlink {
	int		 nl_fd;
	uint32_t	 nl_seq;
	size_t		 nl_len;
	bool		 nl_full;	/* the request does not fit */
	uint32_t	 nl_buf[128];
};

int	 netlink_open(struct netlink *, int);
void	 netlink_begin(struct netlink *, uint16_t, uint16_t, const void *,
	    size_t);
void	 netlink_attr(struct netlink *, uint16_t, const void *, size_t);
int	 netlink_talk(struct netlink *);

/* A socket for packets that rules send to a group; -1 with errno. */
int	 netlink_log(uint16_t group);

#endif /* NETLINK_H */
