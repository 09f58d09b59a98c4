/* SPDX-License-Identifier: ISC */

/* Tests of controld/line.c and controld/passed.c. */

#include <sys/socket.h>

#include <errno.h>
#include <unistd.h>

#include "test.h"

#include "../../controld/controld.h"

static struct line	 line;
static struct passed	 passed;
static int		 fds[2];	/* read here, write there */

static void
start(void)
{
	int	 size = 1024 * 1024;

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	CHECK_INT(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size,
	    sizeof(size)), 0);
	line_init(&line);
	passed_init(&passed);
}

static void
stop(void)
{
	line_free(&line);
	passed_clear(&passed);
	close(fds[0]);
	close(fds[1]);
}

static void
feed(const char *bytes, size_t len)
{
	CHECK_INT(write(fds[1], bytes, len), (ssize_t)len);
}

static void
feed_run(char c, size_t len)
{
	char	 block[1024];
	size_t	 n;

	memset(block, c, sizeof(block));
	for (; len > 0; len -= n) {
		n = len < sizeof(block) ? len : sizeof(block);
		feed(block, n);
	}
}

/* Read until a line is there, or the line is too long, or nothing comes. */
static int
next(char **text, size_t *len)
{
	int	 n;

	while ((n = line_next(&line, text, len)) == 0)
		if (line_read(&line, fds[0], &passed) <= 0)
			return 0;
	return n;
}

static void
check_next(const char *want)
{
	char	*text;
	size_t	 len;

	CHECK_INT(next(&text, &len), 1);
	CHECK_MEM(text, len, want, strlen(want));
	CHECK_INT(text[len], '\0');
}

static void
check_none(void)
{
	char	*text;
	size_t	 len;

	CHECK_INT(next(&text, &len), 0);
}

TEST(one_line)
{
	start();
	feed("abc\n", 4);
	check_next("abc");
	check_none();
	stop();
}

TEST(several_in_one_read)
{
	start();
	feed("a\n\nbc\nrest", 10);
	check_next("a");
	check_next("");
	check_next("bc");
	check_none();
	feed("!\n", 2);
	check_next("rest!");
	stop();
}

TEST(byte_by_byte)
{
	const char	*p;

	start();
	for (p = "slow"; *p != '\0'; p++) {
		feed(p, 1);
		check_none();
	}
	feed("\n", 1);
	check_next("slow");
	stop();
}

TEST(nul_inside)
{
	char	*text;
	size_t	 len;

	start();
	feed("a\0b\n", 4);
	CHECK_INT(next(&text, &len), 1);
	CHECK_MEM(text, len, "a\0b", 3);
	stop();
}

TEST(longest)
{
	char	*text;
	size_t	 len;

	start();
	feed_run('x', LINE_LEN);
	check_none();
	feed("\ny\n", 3);
	CHECK_INT(next(&text, &len), 1);
	CHECK_INT(len, LINE_LEN);
	CHECK(text[0] == 'x' && text[LINE_LEN - 1] == 'x');
	check_next("y");
	stop();
}

TEST(too_long)
{
	char	*text;
	size_t	 len;

	start();
	feed_run('x', LINE_LEN + 1);
	CHECK_INT(next(&text, &len), -1);
	/* It stays so, and nothing more is taken in. */
	CHECK_INT(line_next(&line, &text, &len), -1);
	CHECK_INT(line_read(&line, fds[0], &passed), -1);
	CHECK_INT(errno, EMSGSIZE);
	CHECK_INT(line.ln_size, LINE_LEN + 1);
	stop();
}

TEST(too_long_behind_another)
{
	char	*text;
	size_t	 len;

	start();
	feed("first\n", 6);
	feed_run('x', LINE_LEN + 1);
	check_next("first");
	CHECK_INT(next(&text, &len), -1);
	stop();
}

/* A client that once sent much and is idle now holds little. */
TEST(memory_goes_back)
{
	char	*text;
	size_t	 len;

	start();
	feed_run('x', LINE_LEN);
	feed("\n", 1);
	CHECK_INT(next(&text, &len), 1);
	CHECK(line.ln_size > LINE_LEN);
	CHECK_INT(line_next(&line, &text, &len), 0);
	CHECK(line.ln_size < LINE_LEN);
	feed("again\n", 6);
	check_next("again");
	stop();
}

TEST(end_of_file)
{
	char	*text;
	size_t	 len;

	start();
	feed("last\npart", 9);
	shutdown(fds[1], SHUT_WR);
	check_next("last");
	CHECK_INT(line_next(&line, &text, &len), 0);
	CHECK_INT(line_read(&line, fds[0], &passed), 0);
	stop();
}

/* With as many descriptors beside the bytes; they are copies of the socket. */
static void
feed_passing(const char *text, size_t count)
{
	union {
		struct cmsghdr	hdr;
		char		buf[CMSG_SPACE(16 * sizeof(int))];
	} control;
	char		 copy[64];
	struct iovec	 iov = { copy, strlen(text) };
	struct msghdr	 msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control,
	    .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	size_t		 i;

	CHECK(count <= 16 && strlcpy(copy, text, sizeof(copy)) < sizeof(copy));
	memset(&control, 0, sizeof(control));
	control.hdr.cmsg_len = CMSG_LEN(count * sizeof(int));
	control.hdr.cmsg_level = SOL_SOCKET;
	control.hdr.cmsg_type = SCM_RIGHTS;
	for (i = 0; i < count; i++)
		memcpy(CMSG_DATA(&control.hdr) + i * sizeof(int), &fds[1],
		    sizeof(int));
	CHECK_INT(sendmsg(fds[1], &msg, 0), (ssize_t)strlen(text));
}

/* The lowest number that is free tells whether one was left open. */
static int
lowest(void)
{
	int	 fd = dup(fds[0]);

	close(fd);
	return fd;
}

TEST(passed_none)
{
	start();
	feed("abc\n", 4);
	check_next("abc");
	CHECK(!passed_any(&passed));
	CHECK_INT(passed_take(&passed), -1);
	stop();
}

TEST(passed_one)
{
	int	 fd, free_before;

	start();
	free_before = lowest();
	feed_passing("abc\n", 1);
	check_next("abc");
	CHECK(passed_any(&passed));
	CHECK((fd = passed_take(&passed)) >= 0);
	CHECK(!passed_any(&passed));
	close(fd);
	CHECK_INT(lowest(), free_before);
	stop();
}

TEST(passed_in_the_middle_of_a_line)
{
	int	 fd;

	start();
	feed("ab", 2);
	check_none();
	feed_passing("c", 1);
	check_none();
	CHECK(passed_any(&passed));
	feed("d\n", 2);
	check_next("abcd");
	CHECK((fd = passed_take(&passed)) >= 0);
	close(fd);
	stop();
}

/* More than one spoils all, however they come. */
TEST(passed_too_many)
{
	static const size_t	 counts[] = { 2, 8, 16 };
	size_t			 i;
	int			 free_before;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		start();
		free_before = lowest();
		feed_passing("abc\n", counts[i]);
		check_next("abc");
		CHECK(passed_any(&passed));
		CHECK_INT(passed_take(&passed), -1);
		CHECK_INT(lowest(), free_before);
		passed_clear(&passed);
		CHECK(!passed_any(&passed));
		stop();
	}
}

TEST(passed_twice)
{
	int	 free_before;

	start();
	free_before = lowest();
	feed_passing("ab", 1);
	check_none();
	feed_passing("cd", 1);
	check_none();
	feed_passing("ef", 1);
	feed("\n", 1);
	check_next("abcdef");
	CHECK_INT(passed_take(&passed), -1);
	CHECK_INT(lowest(), free_before);
	stop();
}

TEST_MAIN("line")
