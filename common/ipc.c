/* SPDX-License-Identifier: ISC */

/*
 * Every process runs this, but not box.  The peer is trusted with nothing: a
 * message reaches its handler only if msg_take() finds no fault with it.
 */

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ipc.h"
#include "log.h"

static void	 ipc_on_read(evutil_socket_t, short, void *);
static void	 ipc_on_write(evutil_socket_t, short, void *);
static void	 ipc_on_more(evutil_socket_t, short, void *);

struct ipc *
ipc_new(struct event_base *base, int fd, enum role me, enum role peer,
    const char *name, const ipc_handler *handlers)
{
	struct ipc	*ip;
	int		 flags;

	if ((ip = calloc(1, sizeof(*ip))) == NULL ||
	    imsgbuf_init(&ip->ip_buf, fd) == -1)
		fatal("%s", __func__);
	if ((flags = fcntl(fd, F_GETFL)) == -1 ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1)
		fatal("%s: fcntl", __func__);
	ip->ip_me = me;
	ip->ip_peer = peer;
	ip->ip_state = S_OPEN;
	ip->ip_handlers = handlers;
	ip->ip_imsg.fd = IMSG_FD_NONE;
	strlcpy(ip->ip_name, name, sizeof(ip->ip_name));
	event_assign(&ip->ip_rev, base, fd, EV_READ | EV_PERSIST,
	    ipc_on_read, ip);
	event_assign(&ip->ip_wev, base, fd, EV_WRITE, ipc_on_write, ip);
	event_assign(&ip->ip_more, base, -1, 0, ipc_on_more, ip);
	/* The parent's channel has priority over all others. */
	event_priority_set(&ip->ip_rev, peer == ROLE_PARENT ? 0 : 1);
	event_priority_set(&ip->ip_wev, peer == ROLE_PARENT ? 0 : 1);
	event_priority_set(&ip->ip_more, peer == ROLE_PARENT ? 0 : 1);
	if (event_add(&ip->ip_rev, NULL) == -1)
		fatalx("%s: event_add", __func__);
	return ip;
}

/* Within a handler of the same channel, freed when the handler returns. */
void
ipc_free(struct ipc *ip)
{
	if (ip == NULL)
		return;
	ip->ip_closed = 1;
	if (ip->ip_busy)
		return;
	event_del(&ip->ip_rev);
	event_del(&ip->ip_wev);
	event_del(&ip->ip_more);
	imsg_free(&ip->ip_imsg);
	imsgbuf_clear(&ip->ip_buf);
	close(ip->ip_buf.fd);
	free(ip);
}

int
ipc_bad(struct ipc *ip, const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	vsnprintf(ip->ip_why, sizeof(ip->ip_why), fmt, ap);
	va_end(ap);
	return -1;
}

/* The descriptor of the message being handled; -1 if the kernel lost it. */
int
ipc_take_fd(struct ipc *ip)
{
	int	 fd = imsg_get_fd(&ip->ip_imsg);

	return fd >= 0 ? fd : -1;
}

/* Only what its header and the table say: fields may hold secrets. */
static void
ipc_trace(const struct ipc *ip, const char *way, const struct msg_desc *md,
    size_t len, bool fd)
{
	if (log_get_level() >= LOG_LVL_TRACE)
		log_trace("%s %s: %s, %zu bytes%s", way, ip->ip_name,
		    md->md_name, len, fd ? ", a descriptor" : "");
}

/* The handler has said what is wrong; say with which message. */
static int
ipc_refused(struct ipc *ip, const struct msg_desc *md)
{
	char	 why[sizeof(ip->ip_why)];

	strlcpy(why, ip->ip_why, sizeof(why));
	return ipc_bad(ip, "%s: %s", md->md_name, why);
}

/* Check, decode and handle the message in ip_imsg. */
static int
ipc_dispatch(struct ipc *ip)
{
	const struct msg_way	 mw = { ip->ip_peer, ip->ip_me, ip->ip_state,
	    ip->ip_why, sizeof(ip->ip_why) };
	const struct msg_desc	*md;
	size_t			 len = ibuf_size(&ip->ip_imsg.data);
	union msg		 m;
	int			 rv;

	if ((md = msg_take(&mw, &ip->ip_imsg, &m)) == NULL)
		return -1;
	ipc_trace(ip, "from", md, len, ip->ip_imsg.fd >= 0);
	if (ip->ip_handlers[md->md_type] == NULL)
		return ipc_bad(ip, "%s is not served here", md->md_name);
	ip->ip_busy = 1;
	rv = ip->ip_handlers[md->md_type](ip, &m);
	ip->ip_busy = 0;
	return rv == -1 ? ipc_refused(ip, md) : rv;
}

/* 1: handled one, 0: none is complete, -1: the peer is at fault. */
static int
ipc_next(struct ipc *ip)
{
	int	 n, rv;

	if ((n = imsgbuf_get(&ip->ip_buf, &ip->ip_imsg)) == -1)
		return ipc_bad(ip, "broken framing");
	if (n == 0)
		return 0;
	rv = ipc_dispatch(ip);
	imsg_free(&ip->ip_imsg);
	return rv == -1 ? -1 : 1;
}

/*
 * A timer, as event_active() would have us called again before the loop looks
 * at any other channel, the parent's included.
 */
static void
ipc_ask_turn(struct ipc *ip)
{
	static const struct timeval	 at_once;

	if (event_add(&ip->ip_more, &at_once) == -1)
		fatalx("%s: event_add", __func__);
}

/*
 * All that came is handled.  On a channel with a pace nobody waits for more:
 * it collects in the socket, whose writer has nobody to wake meanwhile.  If
 * that was much already, the socket may be full and the writer waits for us.
 */
static void
ipc_rest(struct ipc *ip)
{
	struct timeval	 tv = { .tv_usec = ip->ip_pace_ms * 1000 };

	if (ip->ip_pace_ms == 0)
		return;
	if (ip->ip_buf.rlen >= IPC_MUCH)
		tv.tv_usec = 0;
	event_del(&ip->ip_rev);
	ip->ip_resting = 1;
	if (event_add(&ip->ip_more, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

/* Up to IPC_BATCH messages, then the other channels have their turn. */
static void
ipc_drain(struct ipc *ip)
{
	int	 i, n;

	for (i = 0; i < IPC_BATCH; i++) {
		n = ipc_next(ip);
		if (ip->ip_closed) {
			ipc_free(ip);
			return;
		}
		if (n == -1) {
			ip->ip_gone(ip, ip->ip_why);
			return;
		}
		if (n == 0) {
			ipc_rest(ip);
			return;
		}
	}
	ipc_ask_turn(ip);
}

static void
ipc_read(struct ipc *ip)
{
	int	 n;

	n = imsgbuf_read(&ip->ip_buf);
	if (n == -1 && errno == EAGAIN) {
		if (event_add(&ip->ip_rev, NULL) == -1)
			fatalx("%s: event_add", __func__);
	} else if (n == -1 && errno == EBADMSG)
		ip->ip_gone(ip, "too many descriptors");
	else if (n <= 0)
		ip->ip_gone(ip, NULL);
	else
		ipc_drain(ip);
}

static void
ipc_on_more(evutil_socket_t fd, short what, void *arg)
{
	struct ipc	*ip = arg;
	int		 rested = ip->ip_resting;

	(void)fd, (void)what;
	ip->ip_resting = 0;
	if (ip->ip_stuck)
		ip->ip_gone(ip, "it does not read");
	else if (rested)
		ipc_read(ip);
	else
		ipc_drain(ip);
}

/*
 * What was read before is handled before more is read, so the buffer never
 * needs to grow.
 */
static void
ipc_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct ipc	*ip = arg;

	(void)fd, (void)what;
	if (!event_pending(&ip->ip_more, EV_TIMEOUT, NULL))
		ipc_read(ip);
}

static void
ipc_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct ipc	*ip = arg;

	(void)fd, (void)what;
	ip->ip_write_due = 0;
	/* A failed write is a closed peer: the read side will tell. */
	if (imsgbuf_write(&ip->ip_buf) == -1)
		return;
	if (imsgbuf_queuelen(&ip->ip_buf) > 0) {
		ip->ip_write_due = 1;
		event_add(&ip->ip_wev, NULL);
	}
	/* Last, as ip_drained may free the channel. */
	if (ip->ip_congested &&
	    imsgbuf_queuelen(&ip->ip_buf) <= IPC_LOW_WATER) {
		ip->ip_congested = 0;
		if (ip->ip_drained != NULL)
			ip->ip_drained(ip);
	}
}

void
ipc_compose(struct ipc *ip, uint32_t type, int fd, const union msg *m)
{
	const struct msg_desc	*md = msg_find(type);
	struct ibuf		*b;
	size_t			 queued;

	if (ip->ip_stuck) {
		if (fd != -1)
			close(fd);
		return;
	}
	if (!(md->md_from & (1U << ip->ip_me)) ||
	    !(md->md_to & (1U << ip->ip_peer)) ||
	    (md->md_fd == FD_MUST) != (fd != -1))
		fatalx("%s is not for %s to send to %s", md->md_name,
		    role_name(ip->ip_me), role_name(ip->ip_peer));
	if ((b = imsg_open(&ip->ip_buf, type, 0)) == NULL ||
	    md->md_put(b, m) == -1 || imsg_close(&ip->ip_buf, fd) == -1)
		fatal("%s: %s", __func__, md->md_name);
	ipc_trace(ip, "to", md, ip->ip_buf.out.wpos - ip->ip_buf.begin -
	    IMSG_HEADER_SIZE, fd != -1);

	queued = imsgbuf_queuelen(&ip->ip_buf);
	if (queued > IPC_QUEUE_MAX) {
		/* ip_gone is called from the loop, not from here. */
		ip->ip_stuck = 1;
		ipc_ask_turn(ip);
	}
	if (queued > IPC_HIGH_WATER)
		ip->ip_congested = 1;
	/* Written at the end of this turn, with what is queued till then. */
	if (!ip->ip_write_due) {
		ip->ip_write_due = 1;
		event_active(&ip->ip_wev, EV_WRITE, 1);
	}
}

/* Write now, not at the end of the turn.  1: all is out, 0: not yet. */
int
ipc_push(struct ipc *ip)
{
	if (imsgbuf_queuelen(&ip->ip_buf) > 0)
		imsgbuf_write(&ip->ip_buf);
	return imsgbuf_queuelen(&ip->ip_buf) == 0;
}

int
ipc_flush(struct ipc *ip)
{
	return imsgbuf_flush(&ip->ip_buf);
}

/* Before there is an event loop: wait for one message and handle it. */
int
ipc_read_one(struct ipc *ip)
{
	struct pollfd	 pfd = { .fd = ip->ip_buf.fd, .events = POLLIN };
	int		 n;

	while ((n = ipc_next(ip)) == 0) {
		if (poll(&pfd, 1, -1) == -1 && errno != EINTR)
			return ipc_bad(ip, "poll: %s", strerror(errno));
		n = imsgbuf_read(&ip->ip_buf);
		if (n == -1 && errno == EBADMSG)
			return ipc_bad(ip, "too many descriptors");
		if (n == 0 || (n == -1 && errno != EAGAIN))
			return ipc_bad(ip, "end of file");
	}
	/* Messages read along with this one wait for the loop. */
	ipc_ask_turn(ip);
	return n;
}

/*
 * Handle what a peer has sent, as much as its socket can hold, should it still
 * be there and talk on: when there is no event loop any more, or when somebody
 * asks about it now.  -1: the peer is at fault.  The channel stays for its
 * owner to free.
 */
int
ipc_read_rest(struct ipc *ip)
{
	int	 i, n = 0;

	for (i = 0; i < IPC_REST_READS; i++) {
		while ((n = ipc_next(ip)) == 1 && !ip->ip_closed)
			continue;
		if (n != 0 || imsgbuf_read(&ip->ip_buf) != 1)
			break;
	}
	return n == -1 ? -1 : 0;
}
