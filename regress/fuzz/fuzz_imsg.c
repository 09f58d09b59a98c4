/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for common/imsg.c: framing and descriptors, over a real pair of
 * sockets.  The input is a row of chunks, each
 *
 *	descriptors (2 bits) and length (14 bits)  that many bytes
 *
 * Whatever the chunks, the messages have to be those that a plain reading of
 * all bytes gives, and no descriptor may be left behind.
 */

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/imsg.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)
#define FD_MARK		0x80000000U
#define STREAM_MAX	(256 * 1024)

/* All that was sent, and how much of it has come as messages. */
static struct {
	uint8_t	 bytes[STREAM_MAX];
	size_t	 len;
	size_t	 done;
	int	 fds;		/* descriptors sent */
	int	 marks;		/* messages that had one */
} stream;

static uint32_t
number(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

/* Those that are open, of the numbers that would be given out first. */
static uint32_t
open_fds(void)
{
	uint32_t	 set = 0;
	int		 fd;

	for (fd = 0; fd < 32; fd++)
		if (fcntl(fd, F_GETFD) != -1)
			set |= 1U << fd;
	return set;
}

static void
send_chunk(int fd, const uint8_t *data, size_t len, int nfds)
{
	union {
		struct cmsghdr	hdr;
		char		buf[CMSG_SPACE(sizeof(int) * 3)];
	} ctl = { 0 };
	struct iovec	 iov = { .iov_len = len };
	struct msghdr	 msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int		 fds[3] = { fd, fd, fd };

	memcpy(&iov.iov_base, &data, sizeof(data));
	if (nfds > 0) {
		msg.msg_control = &ctl;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		ctl.hdr.cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		ctl.hdr.cmsg_level = SOL_SOCKET;
		ctl.hdr.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&ctl.hdr), fds, sizeof(int) * nfds);
	}
	REQUIRE(sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)len);
	memcpy(stream.bytes + stream.len, data, len);
	stream.len += len;
	stream.fds += nfds;
}

/* The message that the plain reading has next is this one. */
static void
require_message(struct imsg *im)
{
	const uint8_t	*p = stream.bytes + stream.done;
	size_t		 size = ibuf_size(&im->data);
	uint32_t	 len;

	REQUIRE(stream.len - stream.done >= IMSG_HEADER_SIZE + size);
	len = number(p + 4);
	REQUIRE(im->type == number(p));
	REQUIRE((len & ~FD_MARK) == IMSG_HEADER_SIZE + size);
	REQUIRE(im->peerid == number(p + 8));
	REQUIRE(size == 0 || memcmp(ibuf_data(&im->data),
	    p + IMSG_HEADER_SIZE, size) == 0);
	REQUIRE((im->fd != IMSG_FD_NONE) == ((len & FD_MARK) != 0));
	if (im->fd != IMSG_FD_NONE) {
		REQUIRE(fcntl(im->fd, F_GETFD) == FD_CLOEXEC);
		stream.marks++;
	}
	REQUIRE(stream.marks <= stream.fds);
	stream.done += IMSG_HEADER_SIZE + size;
	/* None is kept for a message that has not begun. */
	REQUIRE(stream.done < stream.len || stream.marks == stream.fds);
}

/* Nothing complete is there, or something is wrong with what is next. */
static void
require_none(int bad)
{
	const uint8_t	*p = stream.bytes + stream.done;
	size_t		 left = stream.len - stream.done;
	uint32_t	 len;

	if (left < IMSG_HEADER_SIZE) {
		REQUIRE(!bad);
		return;
	}
	len = number(p + 4);
	if ((len & ~FD_MARK) < IMSG_HEADER_SIZE ||
	    (len & ~FD_MARK) > IMSG_MAX_SIZE) {
		REQUIRE(bad);
		return;
	}
	if (bad)
		/* Its descriptor is missing, or it has one too many. */
		REQUIRE((len & FD_MARK) || stream.fds > stream.marks);
	else
		REQUIRE(left < (len & ~FD_MARK));
}

/* 0: go on, -1: the channel is at its end. */
static int
receive(struct imsgbuf *ib)
{
	struct imsg	 im;
	int		 n;

	while ((n = imsgbuf_read(ib)) == 1) {
		while ((n = imsgbuf_get(ib, &im)) == 1) {
			require_message(&im);
			imsg_free(&im);
		}
		require_none(n == -1);
		if (n == -1)
			return -1;
	}
	if (n == -1 && errno == EAGAIN)
		return 0;
	/* Too many descriptors. */
	REQUIRE(n == -1 && errno == EBADMSG && stream.fds > stream.marks + 1);
	return -1;
}

static void
feed(struct imsgbuf *ib, int fd, const uint8_t *data, size_t size)
{
	size_t	 len;
	int	 nfds;

	while (size >= 2) {
		nfds = data[0] >> 6;
		len = (data[0] & 0x3f) << 8 | data[1];
		data += 2;
		size -= 2;
		if (len > size)
			len = size;
		if (len == 0)
			continue;
		if (len > STREAM_MAX - stream.len)
			return;
		send_chunk(fd, data, len, nfds);
		if (receive(ib) == -1)
			return;
		data += len;
		size -= len;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct imsgbuf	 ib;
	uint32_t	 before = open_fds();
	int		 sv[2];

	stream.len = stream.done = 0;
	stream.fds = stream.marks = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
	    sv) == -1)
		return 0;
	if (imsgbuf_init(&ib, sv[0]) == 0)
		feed(&ib, sv[1], data, size);
	imsgbuf_clear(&ib);
	close(sv[0]);
	close(sv[1]);
	REQUIRE(open_fds() == before);
	return 0;
}
