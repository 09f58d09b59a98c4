/* SPDX-License-Identifier: ISC */

/*
 * A channel whose other end is ours, to send what no encoder would, and what
 * became of it.
 */

#ifndef WIRE_H
#define WIRE_H

#include <sys/socket.h>

#include <unistd.h>

#include "ipc.h"
#include "sample.h"

#define FD_MARK		0x80000000U

static struct event_base	*base;
static struct sample		 sent;

/* What became of a message. */
static struct {
	int		 handled;
	int		 agreed;
	int		 fds;
	int		 gone;
	char		 why[256];
} seen;

static int
on_message(struct ipc *ip, const union msg *m)
{
	int	 fd = ipc_take_fd(ip);

	seen.handled++;
	seen.agreed += ip->ip_imsg.type == row->type &&
	    row->agrees(m, sent.data);
	if (fd != -1) {
		seen.fds++;
		close(fd);
	}
	return 0;
}

static const ipc_handler handlers[MSG_MAX] = {
#define MSG(type, ...) [MSG_##type] = on_message,
#include "msg_rows.h"
};
static const ipc_handler no_handlers[MSG_MAX];

static void
on_gone(struct ipc *ip, const char *why)
{
	seen.gone++;
	strlcpy(seen.why, why == NULL ? "closed" : why, sizeof(seen.why));
	event_del(&ip->ip_rev);
}

static struct ipc *
channel(int fd, enum role me, enum role peer, uint32_t state,
    const ipc_handler *served)
{
	struct ipc	*ip = ipc_new(base, fd, me, peer, "peer", served);

	ip->ip_state = state;
	ip->ip_gone = on_gone;
	return ip;
}

/* One end is a channel, the other is ours to write what we want. */
struct wire {
	struct ipc	*ip;
	int		 fd;
};

static void
wire_open(struct wire *wi, enum role from, enum role to, uint32_t state,
    const ipc_handler *served)
{
	int	 sv[2];

	memset(&seen, 0, sizeof(seen));
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	wi->ip = channel(sv[0], to, from, state, served);
	wi->fd = sv[1];
}

/* With up to two descriptors, whatever the header says of them. */
static void
wire_send(struct wire *wi, const void *data, size_t len, int nfds)
{
	union {
		struct cmsghdr	hdr;
		char		buf[CMSG_SPACE(sizeof(int) * 2)];
	} ctl = { 0 };
	struct iovec	 iov = { .iov_len = len };
	struct msghdr	 msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int		 fds[2] = { STDERR_FILENO, STDERR_FILENO };

	memcpy(&iov.iov_base, &data, sizeof(data));
	if (nfds > 0) {
		msg.msg_control = &ctl;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		ctl.hdr.cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		ctl.hdr.cmsg_level = SOL_SOCKET;
		ctl.hdr.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&ctl.hdr), fds, sizeof(int) * nfds);
	}
	CHECK_INT(sendmsg(wi->fd, &msg, MSG_NOSIGNAL), len);
}

/* A header, with any length and mark, and the bytes of the sample. */
static void
wire_send_sample(struct wire *wi, uint32_t type, uint32_t len, int nfds)
{
	static struct sample	 out;

	out.len = 0;
	sample_number(&out, type, 4);
	sample_number(&out, len, 4);
	sample_number(&out, 0, 4);
	CHECK(sent.len <= sizeof(out.data) - out.len);
	memcpy(out.data + out.len, sent.data, sent.len);
	wire_send(wi, out.data, out.len + sent.len, nfds);
}

static void
wire_turn(void)
{
	int	 i;

	for (i = 0; i < 4; i++)
		CHECK(event_base_loop(base, EVLOOP_NONBLOCK) != -1);
}

static void
wire_close(struct wire *wi)
{
	ipc_free(wi->ip);
	close(wi->fd);
}

/* Who sends to whom, and what the receiver thinks of the channel. */
struct way {
	enum role	 from;
	enum role	 to;
	uint32_t	 state;
};

/* The next way that is legal or not in each respect; 0 after the last. */
static int
way_next(struct way *wy, int from, int to, int state)
{
	do {
		wy->state = wy->state == 0 ? S_BOOT : wy->state << 1;
		if (wy->state > S_OPEN) {
			wy->state = S_BOOT;
			wy->to++;
		}
		if (wy->to == ROLE_MAX) {
			wy->to = 0;
			wy->from++;
		}
		if (wy->from == ROLE_MAX)
			return 0;
	} while (((row->from & 1U << wy->from) != 0) != from ||
	    ((row->to & 1U << wy->to) != 0) != to ||
	    ((row->states & wy->state) != 0) != state);
	return 1;
}

#endif /* WIRE_H */
