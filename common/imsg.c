/* SPDX-License-Identifier: ISC */

/*
 * Every process runs this.  What arrives here has not been checked by
 * anyone: the peer may be compromised.  A message is
 *
 *	type (4)  length with the descriptor mark (4)  peerid (4)  data
 *
 * with the length counting the header.  At most one descriptor belongs to a
 * message, and the mark says so; a descriptor without a marked message and a
 * mark without a descriptor are both protocol errors.
 */

#include <sys/socket.h>
#include <sys/uio.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "imsg.h"

#define IMSG_FD_MARK	0x80000000U
#define IMSG_OUT_KEEP	(256 * 1024)	/* bytes of storage, when all is sent */

int
imsgbuf_init(struct imsgbuf *ib, int fd)
{
	memset(ib, 0, sizeof(*ib));
	ib->fd = fd;
	ib->out.max = SIZE_MAX;
	TAILQ_INIT(&ib->outfds);
	return (ib->rbuf = malloc(IMSG_READ_SIZE)) == NULL ? -1 : 0;
}

static void
imsgbuf_pop_fd(struct imsgbuf *ib, struct imsg_fd *mf)
{
	TAILQ_REMOVE(&ib->outfds, mf, entry);
	close(mf->fd);
	free(mf);
}

static void
imsgbuf_drop_out(struct imsgbuf *ib)
{
	freezero(ib->out.buf, ib->out.size);
	ib->out.buf = NULL;
	ib->out.size = ib->out.wpos = ib->out.rpos = 0;
}

void
imsgbuf_clear(struct imsgbuf *ib)
{
	struct imsg_fd	*mf;
	size_t		 i;

	while ((mf = TAILQ_FIRST(&ib->outfds)) != NULL)
		imsgbuf_pop_fd(ib, mf);
	imsgbuf_drop_out(ib);
	for (i = 0; i < ib->nfds; i++)
		if (ib->fds[i] >= 0)
			close(ib->fds[i]);
	freezero(ib->rbuf, IMSG_READ_SIZE);
	ib->rbuf = NULL;
	ib->nfds = 0;
	ib->rlen = ib->rpos = 0;
}

size_t
imsgbuf_queuelen(const struct imsgbuf *ib)
{
	return ibuf_size(&ib->out);
}

/* Remember a descriptor, or that one was lost, in order of arrival. */
static int
imsgbuf_keep_fd(struct imsgbuf *ib, int fd)
{
	if (ib->nfds == sizeof(ib->fds) / sizeof(ib->fds[0])) {
		if (fd >= 0)
			close(fd);
		errno = EBADMSG;
		return -1;
	}
	ib->fdend[ib->nfds] = ib->rlen;
	ib->fds[ib->nfds++] = fd;
	return 0;
}

static int
imsgbuf_take_cmsg(struct imsgbuf *ib, struct msghdr *msg)
{
	struct cmsghdr	*cmsg;
	size_t		 i, n;
	int		 fd, seen = 0, rv = 0;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg != NULL;
	    cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET ||
		    cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++, seen++) {
			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int),
			    sizeof(fd));
			if (imsgbuf_keep_fd(ib, fd) == -1)
				rv = -1;
		}
	}
	if (rv == -1 || !(msg->msg_flags & MSG_CTRUNC))
		return rv;
	/* Truncated although one arrived: the sender sent several at once. */
	if (seen > 0) {
		errno = EBADMSG;
		return -1;
	}
	return imsgbuf_keep_fd(ib, IMSG_FD_LOST);
}

static void
imsgbuf_compact(struct imsgbuf *ib)
{
	size_t	 i;

	if (ib->rpos == 0)
		return;
	memmove(ib->rbuf, ib->rbuf + ib->rpos, ib->rlen - ib->rpos);
	for (i = 0; i < ib->nfds; i++)
		ib->fdend[i] -= ib->rpos;
	ib->rlen -= ib->rpos;
	ib->rpos = 0;
}

/* 1: something came, 0: end of file, -1: error or EAGAIN. */
int
imsgbuf_read(struct imsgbuf *ib)
{
	union {
		struct cmsghdr	hdr;
		char		buf[CMSG_SPACE(sizeof(int) * 2)];
	} ctl;
	struct msghdr	 msg = { 0 };
	struct iovec	 iov;
	ssize_t		 n;

	imsgbuf_compact(ib);
	iov.iov_base = ib->rbuf + ib->rlen;
	iov.iov_len = IMSG_READ_SIZE - ib->rlen;
	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_control = &ctl;
	msg.msg_controllen = sizeof(ctl);

	do
		n = recvmsg(ib->fd, &msg, MSG_CMSG_CLOEXEC);
	while (n == -1 && errno == EINTR);
	if (n <= 0)
		return n;
	ib->rlen += n;
	return imsgbuf_take_cmsg(ib, &msg) == -1 ? -1 : 1;
}

/*
 * Pair a message with its descriptor, if it is marked.  Another one that came
 * with bytes up to the end of this message and no further is nobody's: the
 * message is refused before it is seen.
 */
static int
imsgbuf_take_fd(struct imsgbuf *ib, struct imsg *im, int marked)
{
	size_t	 next = marked ? 1 : 0;

	if (ib->nfds < next ||
	    (ib->nfds > next && ib->fdend[next] <= ib->rpos)) {
		errno = EBADMSG;
		return -1;
	}
	if (marked) {
		im->fd = ib->fds[0];
		ib->fds[0] = ib->fds[1];
		ib->fdend[0] = ib->fdend[1];
		ib->nfds--;
	}
	return 0;
}

/*
 * 1: a message, 0: none is complete, -1: the peer broke the protocol.  The
 * data stays in the read buffer and is valid until the next imsgbuf_read().
 */
int
imsgbuf_get(struct imsgbuf *ib, struct imsg *im)
{
	struct ibuf	 b;
	uint32_t	 len;
	int		 marked;

	im->fd = IMSG_FD_NONE;
	ibuf_from_buffer(&b, ib->rbuf + ib->rpos, ib->rlen - ib->rpos);
	if (ibuf_get_n32(&b, &im->type) == -1 ||
	    ibuf_get_n32(&b, &len) == -1 ||
	    ibuf_get_n32(&b, &im->peerid) == -1)
		return 0;
	marked = (len & IMSG_FD_MARK) != 0;
	len &= ~IMSG_FD_MARK;
	if (len < IMSG_HEADER_SIZE || len > IMSG_MAX_SIZE) {
		errno = EBADMSG;
		return -1;
	}
	len -= IMSG_HEADER_SIZE;
	if (ibuf_size(&b) < len)
		return 0;
	ibuf_from_buffer(&im->data, ibuf_data(&b), len);
	ib->rpos += IMSG_HEADER_SIZE + len;
	return imsgbuf_take_fd(ib, im, marked) == -1 ? -1 : 1;
}

/*
 * A message begins at the end of what is to be sent; its data is to be added
 * to the buffer that this returns, and imsg_close() ends it.
 */
struct ibuf *
imsg_open(struct imsgbuf *ib, uint32_t type, uint32_t peerid)
{
	struct ibuf	*b = &ib->out;

	/* Seldom enough that no byte is moved more than once, on average. */
	if (b->rpos > 0 && b->rpos >= ibuf_size(b))
		ibuf_slide(b);
	ib->begin = b->wpos;
	if (ibuf_add_n32(b, type) == -1 || ibuf_add_n32(b, 0) == -1 ||
	    ibuf_add_n32(b, peerid) == -1) {
		b->wpos = ib->begin;
		return NULL;
	}
	return b;
}

static int
imsg_keep_fd(struct imsgbuf *ib, int fd)
{
	struct imsg_fd	*mf;

	if ((mf = calloc(1, sizeof(*mf))) == NULL)
		return -1;
	mf->fd = fd;
	mf->at = ib->sent + (ib->begin - ib->out.rpos);
	TAILQ_INSERT_TAIL(&ib->outfds, mf, entry);
	return 0;
}

/*
 * The message is complete and goes with a descriptor, unless that is -1.  On
 * failure there is no such message, and the descriptor stays the caller's.
 */
int
imsg_close(struct imsgbuf *ib, int fd)
{
	uint32_t	 mark = fd != -1 ? IMSG_FD_MARK : 0;
	size_t		 len = ib->out.wpos - ib->begin;

	if (len > IMSG_MAX_SIZE)
		errno = ERANGE;
	else if (fd == -1 || imsg_keep_fd(ib, fd) == 0)
		return ibuf_set_n32(&ib->out, ib->begin + sizeof(uint32_t),
		    (uint32_t)len | mark);
	ib->out.wpos = ib->begin;
	return -1;
}

/*
 * How much goes in one call, and with which descriptor.  One goes with the
 * first byte of its message, so a message that carries one starts a new call.
 */
static size_t
imsgbuf_next(const struct imsgbuf *ib, struct imsg_fd **with)
{
	struct imsg_fd	*mf = TAILQ_FIRST(&ib->outfds);

	*with = NULL;
	if (mf != NULL && mf->at == ib->sent) {
		*with = mf;
		mf = TAILQ_NEXT(mf, entry);
	}
	return mf != NULL ? mf->at - ib->sent : ibuf_size(&ib->out);
}

static ssize_t
imsgbuf_send(const struct imsgbuf *ib, size_t len, const struct imsg_fd *mf)
{
	union {
		struct cmsghdr	hdr;
		char		buf[CMSG_SPACE(sizeof(int))];
	} ctl = { 0 };
	struct iovec	 iov = { ibuf_data(&ib->out), len };
	struct msghdr	 msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (mf != NULL) {
		msg.msg_control = &ctl;
		msg.msg_controllen = sizeof(ctl);
		ctl.hdr.cmsg_len = CMSG_LEN(sizeof(int));
		ctl.hdr.cmsg_level = SOL_SOCKET;
		ctl.hdr.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&ctl.hdr), &mf->fd, sizeof(mf->fd));
	}
	return sendmsg(ib->fd, &msg, MSG_NOSIGNAL);
}

static void
imsgbuf_sent(struct imsgbuf *ib, size_t n, struct imsg_fd *mf)
{
	if (mf != NULL)
		imsgbuf_pop_fd(ib, mf);
	ib->sent += n;
	ib->out.rpos += n;
	if (ibuf_size(&ib->out) > 0)
		return;
	if (ib->out.size > IMSG_OUT_KEEP)
		imsgbuf_drop_out(ib);
	else
		ibuf_slide(&ib->out);
}

/* 0: sent all or as much as the socket takes (see queuelen), -1: error. */
int
imsgbuf_write(struct imsgbuf *ib)
{
	struct imsg_fd	*mf;
	size_t		 len;
	ssize_t		 n;

	while (ibuf_size(&ib->out) > 0) {
		len = imsgbuf_next(ib, &mf);
		n = imsgbuf_send(ib, len, mf);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return errno == EAGAIN || errno == ENOBUFS ? 0 : -1;
		imsgbuf_sent(ib, n, mf);
	}
	return 0;
}

/* Last words: wait until everything is out. */
int
imsgbuf_flush(struct imsgbuf *ib)
{
	struct pollfd	 pfd = { .fd = ib->fd, .events = POLLOUT };

	while (imsgbuf_queuelen(ib) > 0) {
		if (imsgbuf_write(ib) == -1)
			return -1;
		if (imsgbuf_queuelen(ib) > 0 && poll(&pfd, 1, 1000) <= 0)
			return -1;
	}
	return 0;
}

/* Hand the descriptor to the caller, who owns it from now on. */
int
imsg_get_fd(struct imsg *im)
{
	int	 fd = im->fd;

	im->fd = IMSG_FD_NONE;
	return fd;
}

void
imsg_free(struct imsg *im)
{
	if (im->fd >= 0)
		close(im->fd);
	im->fd = IMSG_FD_NONE;
}
