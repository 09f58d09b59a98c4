/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * One call that the broker serves, see broker.c.
 */

#ifndef BROKER_H
#define BROKER_H

#include <sys/socket.h>

struct broker_call {
	pid_t			 bc_tid;	/* who calls */
	int			 bc_fd;		/* its socket */
	int			 bc_target;	/* what it names, or -1 */
	int			 bc_again;	/* it was asked for the same */
	const char		*bc_home;	/* the sandbox's own, or NULL */
	struct sockaddr_storage	 bc_addr;
	socklen_t		 bc_len;
};

/* broker_unix.c */
int	 broker_unix(struct broker_call *);

#endif /* BROKER_H */
