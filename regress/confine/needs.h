/* SPDX-License-Identifier: ISC */

/*
 * What every role needs and t_try.c therefore expects to work in confinement:
 * each returns 0, or ends the process the way its name says.
 */

#ifndef NEEDS_H
#define NEEDS_H

#include <sys/epoll.h>
#include <sys/socket.h>

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "actions.h"
#include "common/log.h"

static struct event_base	*need_base;

static long
need_channel(void)
{
	char	 c = 0;

	return write(FD_PAIR, "x", 1) == 1 && read(FD_PAIR2, &c, 1) == 1 &&
	    c == 'x' ? 0 : -1;
}

/* Send a descriptor to ourselves; use and close what arrives. */
static long
need_descriptor(void)
{
	union {
		struct cmsghdr	hdr;
		char		buf[CMSG_SPACE(sizeof(int))];
	} ctl = { .hdr = { .cmsg_len = CMSG_LEN(sizeof(int)),
	    .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec	 iov = { .iov_base = page, .iov_len = 1 };
	struct msghdr	 msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &ctl, .msg_controllen = sizeof(ctl) };
	int		 fd = FD_PAIR;
	char		 c;

	memcpy(CMSG_DATA(&ctl.hdr), &fd, sizeof(fd));
	if (sendmsg(FD_PAIR, &msg, MSG_NOSIGNAL) != 1)
		return -1;
	memset(&ctl, 0, sizeof(ctl));
	msg.msg_controllen = sizeof(ctl);
	if (recvmsg(FD_PAIR2, &msg, MSG_CMSG_CLOEXEC) != 1 ||
	    ctl.hdr.cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(&ctl.hdr), sizeof(fd));
	return write(fd, "y", 1) == 1 && read(FD_PAIR2, &c, 1) == 1 &&
	    close(fd) == 0 ? 0 : -1;
}

static long
need_memory(void)
{
	char	*block[64];
	size_t	 i, size;

	for (i = 0; i < 64; i++) {
		size = (size_t)1 << (i % 20 + 4);
		if ((block[i] = malloc(size)) == NULL ||
		    (block[i] = realloc(block[i], size * 3)) == NULL)
			return -1;
		memset(block[i], 1, size * 3);
	}
	for (i = 0; i < 64; i++)
		free(block[i]);
	return 0;
}

static long
need_time_and_chance(void)
{
	struct timespec	 ts;

	return clock_gettime(CLOCK_REALTIME, &ts) == 0 &&
	    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts) == 0 &&
	    syscall(SYS_getrandom, page, 16, 0) == 16 &&
	    arc4random_uniform(2) < 2 ? 0 : -1;
}

static long
need_epoll(void)
{
	struct epoll_event	 ev = { .events = EPOLLIN };

	return epoll_ctl(FD_EPOLL, EPOLL_CTL_ADD, FD_PAIR2, &ev) == 0 &&
	    write(FD_PAIR, "x", 1) == 1 &&
	    epoll_wait(FD_EPOLL, &ev, 1, 1000) == 1 ? 0 : -1;
}

static long
need_poll(void)
{
	struct pollfd	 pfd = { .fd = FD_PAIR, .events = POLLOUT };

	return poll(&pfd, 1, 1000) == 1 &&
	    fcntl(FD_PAIR, F_SETFL, O_NONBLOCK) == 0 &&
	    fcntl(FD_PAIR, F_GETFL) != -1 &&
	    fcntl(FD_PAIR, F_SETFD, FD_CLOEXEC) == 0 ? 0 : -1;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	*(int *)arg = 1;
}

static long
need_event_loop(void)
{
	struct timeval	 tv = { .tv_usec = 1000 };
	int		 fired = 0;

	if (event_base_once(need_base, -1, EV_TIMEOUT, on_timer, &fired,
	    &tv) == -1)
		return -1;
	event_base_dispatch(need_base);
	return fired ? 0 : -1;
}

static long
need_log(void)
{
	log_warnx("one line of %s", __func__);
	return 0;
}

static long
need_abort(void)
{
	abort();
}

static long
need_exit(void)
{
	exit(7);
}

static const struct action needs[] = {
	{ DO("need_channel", need_channel) },
	{ DO("need_descriptor", need_descriptor) },
	{ DO("need_memory", need_memory) },
	{ DO("need_time_and_chance", need_time_and_chance) },
	{ DO("need_epoll", need_epoll) },
	{ DO("need_poll", need_poll) },
	{ DO("need_event_loop", need_event_loop) },
	{ DO("need_log", need_log) },
	{ DO("need_abort", need_abort) },
	{ DO("need_exit", need_exit) },
	{ .ac_name = NULL }
};

#endif /* NEEDS_H */
