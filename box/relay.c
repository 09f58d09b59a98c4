/* SPDX-License-Identifier: ISC */

/*
 * egressd-box runs this from the command's start to its end: bytes between a
 * socket of the caller's and a pipe of the command's (stdio.c).  Bytes only:
 * descriptors that a peer has sent along are dropped by the kernel, because
 * nobody asks for them.
 *
 * The socket is shared with whoever gave it to us.  So it stays blocking, and
 * is not shut down when the command closes its end: a script may go on using
 * it.  Its end is the last close, as without us.
 */

#include <sys/socket.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "box.h"

#define RELAY_SIZE	(64 * 1024)	/* the longest datagram fits */

struct relay {
	int	 rl_from;		/* -1 when it has ended */
	int	 rl_to;
	int	 rl_socket;		/* from or to, not ours to close */
	size_t	 rl_off;
	size_t	 rl_len;
	char	 rl_buf[RELAY_SIZE];
};

struct relay *
relay_new(int from, int to, int sock)
{
	struct relay	*rl;

	if ((rl = calloc(1, sizeof(*rl))) == NULL)
		err(BOX_FAILED, NULL);
	rl->rl_from = from;
	rl->rl_to = to;
	rl->rl_socket = sock;
	/* Only our end of the pipe: the command's has flags of its own. */
	if (fcntl(from == sock ? to : from, F_SETFL, O_NONBLOCK) == -1)
		err(BOX_FAILED, "pipe");
	return rl;
}

/*
 * Close our end of the pipe, when the relay has ended, and in the sandbox: a
 * copy that stays there would keep the command from seeing the end of it.
 */
void
relay_forget(struct relay *rl)
{
	if (rl->rl_from != -1)
		(void)close(rl->rl_from == rl->rl_socket ? rl->rl_to :
		    rl->rl_from);
	rl->rl_from = -1;
}

/* The next event to wait for; poll(2) ignores a descriptor of -1. */
void
relay_wants(const struct relay *rl, struct pollfd *pfd)
{
	pfd->revents = 0;
	pfd->fd = rl->rl_from == -1 || rl->rl_len == 0 ? rl->rl_from :
	    rl->rl_to;
	pfd->events = rl->rl_len == 0 ? POLLIN : POLLOUT;
}

static ssize_t
relay_read(struct relay *rl)
{
	if (rl->rl_from == rl->rl_socket)
		return recv(rl->rl_from, rl->rl_buf, sizeof(rl->rl_buf),
		    MSG_DONTWAIT);
	return read(rl->rl_from, rl->rl_buf, sizeof(rl->rl_buf));
}

static ssize_t
relay_write(struct relay *rl)
{
	if (rl->rl_to == rl->rl_socket)
		return send(rl->rl_to, rl->rl_buf + rl->rl_off, rl->rl_len,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
	return write(rl->rl_to, rl->rl_buf + rl->rl_off, rl->rl_len);
}

static int
relay_may_wait(ssize_t n)
{
	return n == -1 && (errno == EAGAIN || errno == EINTR ||
	    errno == ENOBUFS);
}

/* When one side has ended, the other learns of it by our closing the pipe. */
void
relay_serve(struct relay *rl)
{
	ssize_t	 n;

	if (rl->rl_from == -1)
		return;
	if (rl->rl_len == 0) {
		if (relay_may_wait(n = relay_read(rl)))
			return;
		if (n <= 0) {
			relay_forget(rl);
			return;
		}
		rl->rl_off = 0;
		rl->rl_len = n;
	}
	if (relay_may_wait(n = relay_write(rl)))
		return;
	if (n == -1) {
		relay_forget(rl);
		return;
	}
	rl->rl_off += n;
	rl->rl_len -= n;
}

/*
 * The command has ended, and what it wrote last may still be with us; a
 * signal, to be read from this descriptor, is a wish not to wait for it.
 */
void
relay_finish(struct box *bx, int signals)
{
	struct pollfd	 pfd[BOX_STDIO + 1];
	size_t		 i, left;

	for (i = 0; i < bx->bx_nrelays; i++)
		if (bx->bx_relays[i]->rl_from == bx->bx_relays[i]->rl_socket)
			relay_forget(bx->bx_relays[i]);
	for (;;) {
		for (i = left = 0; i < bx->bx_nrelays; i++) {
			relay_serve(bx->bx_relays[i]);
			relay_wants(bx->bx_relays[i], &pfd[i]);
			left += pfd[i].fd != -1;
		}
		pfd[i] = (struct pollfd){ .fd = signals, .events = POLLIN };
		if (left == 0 || (poll(pfd, i + 1, -1) == -1 &&
		    errno != EINTR) || pfd[i].revents != 0)
			return;
	}
}
