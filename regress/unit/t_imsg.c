/* SPDX-License-Identifier: ISC */

/*
 * Tests of common/ibuf.c and common/imsg.c: bytes and descriptors over a real
 * pair of sockets, in pieces of every size.
 */

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "imsg.h"
#include "test.h"

#define FD_MARK		0x80000000U

/* ---- ibuf ---------------------------------------------------------------- */

TEST(ibuf_numbers)
{
	static const unsigned char	 want[] = { 0x01, 0x02, 0x03, 0x04,
	    0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f };
	struct ibuf			*b = ibuf_dynamic(1, 64);
	uint64_t			 n64;
	uint32_t			 n32;
	uint16_t			 n16;
	uint8_t				 n8;

	CHECK(b != NULL);
	CHECK_INT(ibuf_add_n8(b, 0x01), 0);
	CHECK_INT(ibuf_add_n16(b, 0x0203), 0);
	CHECK_INT(ibuf_add_n32(b, 0x04050607), 0);
	CHECK_INT(ibuf_add_n64(b, 0x08090a0b0c0d0e0f), 0);
	CHECK_MEM(ibuf_data(b), ibuf_size(b), want, sizeof(want));
	CHECK_INT(ibuf_get_n8(b, &n8), 0);
	CHECK_INT(ibuf_get_n16(b, &n16), 0);
	CHECK_INT(ibuf_get_n32(b, &n32), 0);
	CHECK_INT(ibuf_get_n64(b, &n64), 0);
	CHECK(n8 == 0x01 && n16 == 0x0203 && n32 == 0x04050607 &&
	    n64 == 0x08090a0b0c0d0e0f);
	CHECK_INT(ibuf_size(b), 0);
	ibuf_free(b);
}

/* A reader that runs out of bytes consumes nothing. */
TEST(ibuf_short)
{
	unsigned char	 bytes[] = { 1, 2, 3 };
	struct ibuf	 b;
	uint64_t	 n64;
	uint32_t	 n32;
	uint16_t	 n16;
	uint8_t		 n8;

	ibuf_from_buffer(&b, bytes, sizeof(bytes));
	CHECK_INT(ibuf_get_n64(&b, &n64), -1);
	CHECK_INT(errno, EBADMSG);
	CHECK_INT(ibuf_get_n32(&b, &n32), -1);
	CHECK_INT(ibuf_skip(&b, 4), -1);
	CHECK_INT(ibuf_skip(&b, SIZE_MAX), -1);
	CHECK_INT(ibuf_size(&b), 3);
	CHECK_INT(ibuf_get_n16(&b, &n16), 0);
	CHECK_INT(ibuf_get_n16(&b, &n16), -1);
	CHECK_INT(ibuf_get_n8(&b, &n8), 0);
	CHECK_INT(n8, 3);
	CHECK_INT(ibuf_get_n8(&b, &n8), -1);
	CHECK_INT(ibuf_skip(&b, 0), 0);
}

TEST(ibuf_limits)
{
	unsigned char	 bytes[100] = { 0 };
	struct ibuf	*b;

	CHECK(ibuf_dynamic(0, 10) == NULL);
	CHECK(ibuf_dynamic(11, 10) == NULL);
	CHECK((b = ibuf_dynamic(3, 100)) != NULL);
	CHECK(ibuf_room(b, 101) == NULL);
	CHECK(ibuf_room(b, SIZE_MAX) == NULL);
	CHECK_INT(ibuf_size(b), 0);
	CHECK_INT(ibuf_add(b, bytes, 60), 0);
	CHECK_INT(ibuf_add(b, bytes, 41), -1);
	CHECK_INT(errno, ERANGE);
	CHECK_INT(ibuf_add(b, bytes, 40), 0);
	CHECK_INT(ibuf_add_n8(b, 0), -1);
	CHECK_INT(ibuf_size(b), 100);
	ibuf_free(b);
	ibuf_free(NULL);
}

TEST(ibuf_set)
{
	struct ibuf	*b = ibuf_dynamic(8, 8);
	uint32_t	 n;

	CHECK(b != NULL);
	CHECK_INT(ibuf_set_n32(b, 0, 1), -1);
	CHECK_INT(ibuf_add_n32(b, 0), 0);
	CHECK_INT(ibuf_set_n32(b, 1, 1), -1);
	CHECK_INT(ibuf_set_n32(b, SIZE_MAX, 1), -1);
	CHECK_INT(ibuf_set_n32(b, 0, 0x01020304), 0);
	CHECK_INT(ibuf_get_n32(b, &n), 0);
	CHECK_INT(n, 0x01020304);
	ibuf_free(b);
}

/* ---- imsg ---------------------------------------------------------------- */

static struct imsgbuf	 left, right;

/* Both ends do not block; the kernel keeps as little as it can. */
static void
pair_open(void)
{
	int	 sv[2], size = 1;

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0, sv), 0);
	CHECK_INT(setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &size,
	    sizeof(size)), 0);
	CHECK_INT(imsgbuf_init(&left, sv[0]), 0);
	CHECK_INT(imsgbuf_init(&right, sv[1]), 0);
}

static void
pair_close(void)
{
	imsgbuf_clear(&left);
	imsgbuf_clear(&right);
	close(left.fd);
	close(right.fd);
}

static int
count_fds(void)
{
	int	 fd, n = 0;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static ino_t
inode(int fd)
{
	struct stat	 st;

	return fstat(fd, &st) == -1 ? 0 : st.st_ino;
}

/* A file of its own, told from others by its inode. */
static int
new_file(void)
{
	int	 fds[2];

	CHECK_INT(pipe(fds), 0);
	close(fds[1]);
	return fds[0];
}

static void
queue(uint32_t type, size_t len, int fd)
{
	struct ibuf	*b = imsg_open(&left, type, ~type);
	size_t		 i;

	CHECK(b != NULL);
	for (i = 0; i < len; i++)
		CHECK_INT(ibuf_add_n8(b, type + i), 0);
	CHECK_INT(imsg_close(&left, fd), 0);
}

static void
check_message(struct imsg *im, uint32_t type, size_t len)
{
	unsigned char	*data = ibuf_data(&im->data);
	size_t		 i;

	CHECK_INT(im->type, type);
	CHECK_INT(im->peerid, ~type);
	CHECK_INT(ibuf_size(&im->data), len);
	for (i = 0; i < len && data[i] == (unsigned char)(type + i); i++)
		continue;
	CHECK_INT(i, len);
}

/* Bytes as no sender of ours would write them, with up to three files. */
static void
raw_send(const void *data, size_t len, int nfds)
{
	union {
		struct cmsghdr	hdr;
		char		buf[CMSG_SPACE(sizeof(int) * 3)];
	} ctl = { 0 };
	struct iovec	 iov = { .iov_len = len };
	struct msghdr	 msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int		 fds[3] = { left.fd, left.fd, left.fd };

	memcpy(&iov.iov_base, &data, sizeof(data));
	if (nfds > 0) {
		msg.msg_control = &ctl;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		ctl.hdr.cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		ctl.hdr.cmsg_level = SOL_SOCKET;
		ctl.hdr.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&ctl.hdr), fds, sizeof(int) * nfds);
	}
	CHECK_INT(sendmsg(left.fd, &msg, MSG_NOSIGNAL), len);
}

static size_t
raw_header(unsigned char *p, uint32_t type, uint32_t len)
{
	struct ibuf	*b = ibuf_dynamic(12, 12);

	CHECK(b != NULL);
	ibuf_add_n32(b, type);
	ibuf_add_n32(b, len);
	ibuf_add_n32(b, 0);
	memcpy(p, ibuf_data(b), 12);
	ibuf_free(b);
	return 12;
}

static void
raw_message(uint32_t len, int nfds)
{
	unsigned char	 header[12];

	raw_header(header, 1, len);
	raw_send(header, sizeof(header), nfds);
}

/* As IMSG_MAX_SIZE allows it: the largest message and one byte more. */
TEST(largest)
{
	static unsigned char	 zero[IMSG_MAX_SIZE];
	struct imsg		 im;
	struct ibuf		*b;

	pair_open();
	CHECK((b = imsg_open(&left, 6, 0)) != NULL);
	CHECK_INT(ibuf_add(b, zero, IMSG_MAX_SIZE - IMSG_HEADER_SIZE + 1), 0);
	CHECK_INT(imsg_close(&left, -1), -1);
	CHECK_INT(errno, ERANGE);
	CHECK_INT(imsgbuf_queuelen(&left), 0);
	queue(7, IMSG_MAX_SIZE - IMSG_HEADER_SIZE, -1);
	CHECK_INT(imsgbuf_queuelen(&left), IMSG_MAX_SIZE);
	while (imsgbuf_queuelen(&left) > 0) {
		CHECK_INT(imsgbuf_write(&left), 0);
		CHECK_INT(imsgbuf_read(&right), 1);
	}
	CHECK_INT(imsgbuf_get(&right, &im), 1);
	check_message(&im, 7, IMSG_MAX_SIZE - IMSG_HEADER_SIZE);
	pair_close();
}

/* Whatever the pieces in which it comes, a message is complete only whole. */
TEST(byte_by_byte)
{
	unsigned char	 bytes[3 * 12 + 5];
	struct imsg	 im;
	size_t		 i, n = 0, got = 0;

	pair_open();
	n += raw_header(bytes + n, 1, 12);
	n += raw_header(bytes + n, 2, 12 + 5);
	memset(bytes + n, 'x', 5);
	n += 5;
	n += raw_header(bytes + n, 3, 12);
	for (i = 0; i < n; i++) {
		CHECK_INT(imsgbuf_get(&right, &im), 0);
		raw_send(bytes + i, 1, 0);
		CHECK_INT(imsgbuf_read(&right), 1);
		if (i + 1 != 12 && i + 1 != 29 && i + 1 != 41)
			continue;
		CHECK_INT(imsgbuf_get(&right, &im), 1);
		CHECK_INT(im.type, ++got);
		CHECK_INT(ibuf_size(&im.data), got == 2 ? 5 : 0);
	}
	CHECK_INT(imsgbuf_get(&right, &im), 0);
	CHECK_INT(got, 3);
	pair_close();
}

/* Every way to cut two messages in two, the descriptor with the second. */
TEST(every_cut)
{
	unsigned char	 bytes[2 * 12 + 2 * 9];
	struct imsg	 im;
	size_t		 cut;
	int		 fd, n, before = count_fds();

	for (cut = 13 + 8; cut < sizeof(bytes); cut++) {
		pair_open();
		raw_header(bytes, 1, 12 + 9);
		memset(bytes + 12, 'x', 9);
		raw_header(bytes + 21, 2, FD_MARK | (12 + 9));
		memset(bytes + 33, 'y', 9);
		raw_send(bytes, 21, 0);
		if (cut > 21)
			raw_send(bytes + 21, cut - 21, 1);
		CHECK_INT(imsgbuf_read(&right), 1);
		CHECK_INT(imsgbuf_get(&right, &im), 1);
		CHECK_INT(im.type, 1);
		CHECK_INT(imsg_get_fd(&im), IMSG_FD_NONE);
		CHECK_INT(imsgbuf_get(&right, &im), 0);
		raw_send(bytes + cut, sizeof(bytes) - cut, cut == 21);
		CHECK_INT(imsgbuf_read(&right), 1);
		CHECK_INT(imsgbuf_get(&right, &im), 1);
		CHECK_INT(im.type, 2);
		CHECK((fd = imsg_get_fd(&im)) >= 0);
		CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		close(fd);
		n = imsgbuf_get(&right, &im);
		CHECK_INT(n, 0);
		pair_close();
	}
	CHECK_INT(count_fds(), before);
}

/*
 * A queue much larger than what the socket takes: partial writes, partial
 * reads, and each descriptor with the message it was sent with.
 */
TEST(order)
{
	enum { COUNT = 600 };
	static ino_t	 inodes[COUNT];
	struct imsg	 im;
	size_t		 i = 0;
	int		 fd, n, before = count_fds();

	pair_open();
	for (i = 0; i < COUNT; i++) {
		fd = i % 3 == 0 ? new_file() : -1;
		inodes[i] = fd == -1 ? 0 : inode(fd);
		queue(i, i * 37 % 1500, fd);
	}
	for (i = 0; i < COUNT; ) {
		CHECK_INT(imsgbuf_write(&left), 0);
		CHECK_INT(imsgbuf_read(&right), 1);
		while ((n = imsgbuf_get(&right, &im)) == 1) {
			check_message(&im, i, i * 37 % 1500);
			fd = imsg_get_fd(&im);
			CHECK_INT(fd >= 0, i % 3 == 0);
			if (fd >= 0) {
				CHECK_INT(inode(fd), inodes[i]);
				close(fd);
			}
			i++;
		}
		CHECK_INT(n, 0);
	}
	CHECK_INT(imsgbuf_queuelen(&left), 0);
	CHECK_INT(imsgbuf_read(&right), -1);
	CHECK_INT(errno, EAGAIN);
	pair_close();
	CHECK_INT(count_fds(), before);
}

/* What is never sent and what is never taken is closed all the same. */
TEST(nothing_leaks)
{
	struct imsg	 im;
	int		 before = count_fds();

	pair_open();
	queue(1, 10, new_file());
	queue(2, 10, new_file());
	CHECK_INT(imsgbuf_write(&left), 0);
	queue(3, 10, new_file());
	queue(4, 10, new_file());
	CHECK_INT(imsgbuf_read(&right), 1);
	CHECK_INT(imsgbuf_get(&right, &im), 1);
	imsg_free(&im);
	imsg_free(&im);
	CHECK_INT(imsgbuf_read(&right), 1);
	pair_close();
	CHECK_INT(count_fds(), before);
}

TEST(end_of_file)
{
	struct imsg	 im;

	pair_open();
	queue(1, 10, -1);
	CHECK_INT(imsgbuf_flush(&left), 0);
	raw_send("half", 4, 0);
	CHECK_INT(shutdown(left.fd, SHUT_WR), 0);
	CHECK_INT(imsgbuf_read(&right), 1);
	CHECK_INT(imsgbuf_get(&right, &im), 1);
	CHECK_INT(imsgbuf_get(&right, &im), 0);
	CHECK_INT(imsgbuf_read(&right), 0);
	queue(2, 10, -1);
	CHECK_INT(imsgbuf_write(&left), -1);
	CHECK_INT(imsgbuf_flush(&left), -1);
	pair_close();
}

static void
check_refused(void)
{
	struct imsg	 im;

	CHECK_INT(imsgbuf_read(&right), 1);
	errno = 0;
	CHECK_INT(imsgbuf_get(&right, &im), -1);
	CHECK_INT(errno, EBADMSG);
	pair_close();
}

TEST(bad_length)
{
	static const uint32_t	 lens[] = { 0, 1, 11, IMSG_MAX_SIZE + 1,
	    0x7fffffff, FD_MARK, FD_MARK | 11, FD_MARK | (IMSG_MAX_SIZE + 1),
	    0xffffffff };
	size_t			 i;
	int			 before = count_fds();

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		pair_open();
		raw_message(lens[i], lens[i] & FD_MARK ? 1 : 0);
		check_refused();
	}
	CHECK_INT(count_fds(), before);
}

TEST(mark_without_descriptor)
{
	pair_open();
	raw_message(FD_MARK | 12, 0);
	check_refused();
}

/* It is not handed out first and complained about later. */
TEST(descriptor_without_mark)
{
	int	 before = count_fds();

	pair_open();
	raw_message(12, 1);
	check_refused();
	CHECK_INT(count_fds(), before);
}

TEST(two_descriptors)
{
	int	 before = count_fds();

	pair_open();
	raw_message(FD_MARK | 12, 2);
	check_refused();
	CHECK_INT(count_fds(), before);
}

/* The kernel drops what has no room in the control message. */
TEST(three_descriptors)
{
	int	 before = count_fds();

	pair_open();
	raw_message(FD_MARK | 12, 3);
	CHECK_INT(imsgbuf_read(&right), -1);
	CHECK_INT(errno, EBADMSG);
	pair_close();
	CHECK_INT(count_fds(), before);
}

/* A message that never ends does not collect descriptors. */
TEST(descriptors_with_a_fragment)
{
	unsigned char	 header[12];
	int		 before = count_fds();

	pair_open();
	raw_header(header, 1, FD_MARK | 12);
	raw_send(header, 1, 1);
	raw_send(header + 1, 1, 1);
	raw_send(header + 2, 1, 1);
	CHECK_INT(imsgbuf_read(&right), 1);
	CHECK_INT(imsgbuf_read(&right), 1);
	CHECK_INT(imsgbuf_read(&right), -1);
	CHECK_INT(errno, EBADMSG);
	pair_close();
	CHECK_INT(count_fds(), before);
}

/* Too late: the message that it came with has passed. */
TEST(descriptor_kept_for_later)
{
	unsigned char	 bytes[2 * 12];

	pair_open();
	raw_header(bytes, 1, 12);
	raw_header(bytes + 12, 2, FD_MARK | 12);
	raw_send(bytes, 12, 1);
	raw_send(bytes + 12, 12, 0);
	check_refused();
}

/* It came with the end of one message and the beginning of another. */
TEST(descriptor_across_reads)
{
	unsigned char	 bytes[2 * 12];
	struct imsg	 im;

	pair_open();
	raw_header(bytes, 1, 12);
	raw_header(bytes + 12, 2, 12);
	raw_send(bytes, 17, 1);
	CHECK_INT(imsgbuf_read(&right), 1);
	CHECK_INT(imsgbuf_get(&right, &im), 1);
	CHECK_INT(im.fd, IMSG_FD_NONE);
	CHECK_INT(imsgbuf_get(&right, &im), 0);
	raw_send(bytes + 17, 7, 0);
	check_refused();
}

/* With no slot free the message comes without what it carried. */
TEST(lost_descriptor)
{
	struct rlimit	 rl, full;
	struct imsg	 im;
	int		 n, before = count_fds();

	pair_open();
	queue(1, 5, new_file());
	queue(2, 5, -1);
	queue(3, 5, new_file());
	CHECK_INT(imsgbuf_flush(&left), 0);

	CHECK_INT(getrlimit(RLIMIT_NOFILE, &rl), 0);
	full = rl;
	CHECK((n = dup(STDERR_FILENO)) != -1);
	full.rlim_cur = n;
	close(n);
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &full), 0);
	n = imsgbuf_read(&right);
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &rl), 0);

	CHECK_INT(n, 1);
	CHECK_INT(imsgbuf_get(&right, &im), 1);
	check_message(&im, 1, 5);
	CHECK_INT(imsg_get_fd(&im), IMSG_FD_LOST);
	imsg_free(&im);
	CHECK_INT(imsgbuf_read(&right), 1);
	CHECK_INT(imsgbuf_get(&right, &im), 1);
	check_message(&im, 2, 5);
	CHECK_INT(imsg_get_fd(&im), IMSG_FD_NONE);
	CHECK_INT(imsgbuf_get(&right, &im), 1);
	check_message(&im, 3, 5);
	CHECK(im.fd >= 0);
	imsg_free(&im);
	pair_close();
	CHECK_INT(count_fds(), before);
}

TEST_MAIN("imsg")
