/* SPDX-License-Identifier: ISC */

/*
 * One call that the broker serves, see broker.c.
 */

#ifndef BROKER_H
#define BROKER_H

#include <sys/socket.h>

struct broker_call {
	pid_t			 bc_tid;	/* who calls */
	int			 bc_fd;		/* its socket */
	int			 bc_target;	/* the socket's file, or -1 */
	int			 bc_again;	/* made before */
	const char		*bc_home;	/* the sandbox's own, or NULL */
	struct sockaddr_storage	 bc_addr;
	socklen_t		 bc_len;
};

/* broker_unix.c */
int	 broker_unix(struct broker_call *);

#endif /* BROKER_H */
