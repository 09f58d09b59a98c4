/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: output of what commands left behind.  Nobody wants it,
 * but closing the pipe would kill who writes to it.
 */

#include <sys/queue.h>

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "../box.h"
#include "op.h"

#define DRAINS_MAX	128

struct drain {
	TAILQ_ENTRY(drain)	 dr_entry;
	int			 dr_fd;
	struct watch		*dr_watch;
};

static TAILQ_HEAD(, drain)	 drains = TAILQ_HEAD_INITIALIZER(drains);
static size_t			 ndrains;

static void
drain_free(struct drain *dr)
{
	TAILQ_REMOVE(&drains, dr, dr_entry);
	ndrains--;
	watch_free(dr->dr_watch);
	(void)close(dr->dr_fd);
	free(dr);
}

static short
drain_wants(void *arg)
{
	(void)arg;
	return POLLIN;
}

static void
drain_ready(void *arg)
{
	static uint8_t	 dropped[SLICE];
	struct drain	*dr = arg;
	ssize_t		 n;

	n = read(dr->dr_fd, dropped, sizeof(dropped));
	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
		drain_free(dr);
}

/* The descriptor does not block, and is ours from now on. */
void
drain_add(int fd)
{
	struct drain	*dr;

	if (ndrains == DRAINS_MAX)
		drain_free(TAILQ_FIRST(&drains));
	if ((dr = calloc(1, sizeof(*dr))) == NULL)
		err(BOX_FAILED, NULL);
	dr->dr_fd = fd;
	dr->dr_watch = watch_new(fd, drain_wants, drain_ready, dr);
	TAILQ_INSERT_TAIL(&drains, dr, dr_entry);
	ndrains++;
}

int
drain_wanted(void)
{
	return ndrains > 0;
}
