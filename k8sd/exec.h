/* SPDX-License-Identifier: ISC */

/*
 * A command in a container of a pod, and bytes between its standard streams
 * and a descriptor, which nobody here reads.
 */

#ifndef EXEC_H
#define EXEC_H

#include <sys/socket.h>

#include <unistd.h>

struct cluster;
struct exec;

struct exec_request {
	const char		*namespace;
	const char		*pod;
	const char		*container;
	/* Up to a NULL.  All of it is in the API server's audit log. */
	const char *const	*command;
	int			 fd;	/* taken: closed at the end */
};

enum exec_how {
	EXEC_EXITED,		/* with code; 128 and more: by a signal */
	EXEC_LOST,		/* the connection; what became of it is open */
	EXEC_REFUSED		/* by the API; it has not begun */
};

struct exec_end {
	enum exec_how	 how;
	int		 code;
	const char	*why;		/* unless it exited */
	const char	*stderr_tail;	/* printable */
};

/* The end is told from the event loop, when all output is in the descriptor. */
typedef void	 exec_ended(void *, const struct exec_end *);

struct exec	*exec_begin(struct cluster *, const struct exec_request *,
		    exec_ended *, void *);
/*
 * Close a client's connection, for all who have it: the parent has a copy, and
 * sees the end of an attachment by this.
 */
static inline void
exec_hang_up(int fd)
{
	shutdown(fd, SHUT_RDWR);
	close(fd);
}

/* Ends it before, and nothing is told. */
void	 exec_cancel(struct exec *);

#endif /* EXEC_H */
