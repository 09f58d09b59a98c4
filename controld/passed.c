/* SPDX-License-Identifier: ISC */

/*
 * controld: descriptors that a control client passes beside its bytes.  One
 * is kept for the request that it came with; it is never read from or written
 * to here, only handed on or closed.
 */

#include <sys/socket.h>

#include <string.h>
#include <unistd.h>

#include "controld.h"

#define PASSED_MAX	8	/* that we see; the kernel drops the rest */

void
passed_init(struct passed *ps)
{
	ps->ps_fd = -1;
	ps->ps_spoilt = 0;
}

void
passed_clear(struct passed *ps)
{
	if (ps->ps_fd != -1)
		close(ps->ps_fd);
	passed_init(ps);
}

int
passed_any(const struct passed *ps)
{
	return ps->ps_fd != -1 || ps->ps_spoilt;
}

/* -1 unless there was exactly one. */
int
passed_take(struct passed *ps)
{
	int	 fd = ps->ps_fd;

	if (ps->ps_spoilt)
		return -1;
	ps->ps_fd = -1;
	return fd;
}

static void
passed_keep(struct passed *ps, int fd)
{
	if (ps->ps_fd == -1 && !ps->ps_spoilt) {
		ps->ps_fd = fd;
		return;
	}
	close(fd);
	passed_clear(ps);
	ps->ps_spoilt = 1;
}

static void
passed_collect(struct passed *ps, struct msghdr *msg)
{
	struct cmsghdr	*cm;
	size_t		 i, n;
	int		 fd;

	for (cm = CMSG_FIRSTHDR(msg); cm != NULL; cm = CMSG_NXTHDR(msg, cm)) {
		if (cm->cmsg_level != SOL_SOCKET ||
		    cm->cmsg_type != SCM_RIGHTS)
			continue;
		n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(cm) + i * sizeof(fd),
			    sizeof(fd));
			passed_keep(ps, fd);
		}
	}
	if (msg->msg_flags & MSG_CTRUNC) {
		passed_clear(ps);
		ps->ps_spoilt = 1;
	}
}

/* As read(2). */
ssize_t
passed_read(struct passed *ps, int fd, void *buf, size_t len)
{
	union {
		struct cmsghdr	hdr;
		char		buf[CMSG_SPACE(PASSED_MAX * sizeof(int))];
	} control;
	struct iovec		 iov = { buf, len };
	struct msghdr		 msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t			 n;

	if ((n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC)) != -1)
		passed_collect(ps, &msg);
	return n;
}
