/* SPDX-License-Identifier: ISC */

/*
 * A spool: what is acknowledged goes and nothing else, in whatever order a
 * follower reads, acknowledges, is cut off, and the recorder is killed.  The
 * file system takes nothing back where a case wants it so.
 */

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>

#include "audit_files.h"

#define SPOOL	(1024 * 1024)
#define WINDOW	FOLLOW_WINDOW_MIN

static bool	 takes_back = true;
static char	 got[4 * 1024 * 1024];

int
fallocate(int fd, int mode, off_t at, off_t len)
{
	if ((mode & FALLOC_FL_PUNCH_HOLE) && !takes_back) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_fallocate, fd, mode, at, len);
}

static int
ack_file(void)
{
	int	 fd;

	CHECK((fd = open("a.ack", O_RDWR | O_CREAT | O_CLOEXEC, 0600)) != -1);
	return fd;
}

static void
use_spool(void)
{
	CHECK_INT(spool_offer(ack_file(), SPOOL), 0);
	CHECK_FOR(why, offer("a") == 0);
	audit_commit();
}

static void
begin(void)
{
	takes_back = true;
	setup();
	unlink("a.ack");
	use_spool();
}

/* As a kill leaves it. */
static void
killed(void)
{
	audit_flush();
	chain_init();
	audit_begin();
	CHECK_INT(tip_offer(-1), 0);
	tip_commit();
	audit_commit();
	chain_init();
}

static int
follow(enum follow_from from, uint64_t first, uint64_t term)
{
	struct msg_follow	 m = {
		.kinds = UINT32_MAX, .session = "", .from = (uint8_t)from,
		.first = first, .window = WINDOW, .term = term,
	};
	int			 pair[2], size = 4 * 1024 * 1024;

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	follower_new(pair[0], &m);
	return pair[1];
}

/* What has come; the numbers follow *last, which is moved on.  Bytes. */
static size_t
take(int fd, uint64_t *last)
{
	size_t		 len = 0;
	ssize_t		 n;
	char		*line, *nl;
	uint64_t	 seq;
	size_t		 end;
	int		 turn;

	for (turn = 0; turn < 1000; turn++) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		if ((n = recv(fd, got + len, sizeof(got) - len - 1,
		    MSG_DONTWAIT)) <= 0)
			break;
		len += (size_t)n;
	}
	got[len] = '\0';
	for (line = got; (nl = strchr(line, '\n')) != NULL; line = nl + 1) {
		if ((seq = chain_number(line, (size_t)(nl - line), &end)) == 0)
			continue;
		/* Only a gap leaves numbers out. */
		CHECK(seq == *last + 1 || (strncmp(line + end,
		    ",\"kind\":\"gap\"", 13) == 0 &&
		    seq == *last + 1 + number(line, "\"lost\":")));
		*last = seq;
	}
	return len;
}

static enum ack_result	 answered;

/* The recorder's answer to controld is read from the channel's end. */
static enum ack_result
ack_term(uint64_t seq, uint64_t term)
{
	const struct msg_ack_ask	 m = { .seq = seq, .term = term };

	answered = spool_take(&m);
	event_base_loop(base, EVLOOP_NONBLOCK);
	return answered;
}

static enum ack_result
ack(uint64_t seq)
{
	return ack_term(seq, UINT64_MAX);
}

static off_t
blocks(void)
{
	struct stat	 st;

	CHECK_INT(stat("a", &st), 0);
	return (off_t)st.st_blocks * 512;
}

static off_t
size_of(const char *path)
{
	struct stat	 st;

	CHECK_INT(stat(path, &st), 0);
	return st.st_size;
}

TEST(nothing_goes_that_was_not_acknowledged)
{
	uint64_t	 last = 0, acked;
	int		 fd, round;

	begin();
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	for (round = 0; round < 60; round++) {
		say(100);
		turn_loop();
		take(fd, &last);
		acked = spool_acknowledged();
		CHECK_INT(ack(acked + (last - acked) / 2), ACK_OK);
		CHECK(spool_waiting() > 0);
		CHECK_INT(tail_number(audit_fd(), spool_begin(), audit_end()),
		    spool_acknowledged() + 1);
	}
	close(fd);
	turn_loop();
	CHECK(blocks() < SPOOL + 8 * 1024 * 1024);
	acked = last = spool_acknowledged();
	killed();
	use_spool();
	CHECK_INT(spool_acknowledged(), acked);
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	take(fd, &last);
	CHECK(last > acked);
	close(fd);
}

TEST(begins_anew_when_all_is_acknowledged)
{
	uint64_t	 last = 0;
	int		 fd, round;

	begin();
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	for (round = 0; round < 40; round++) {
		say(100);
		turn_loop();
		take(fd, &last);
		CHECK_INT(last, chain_tip()->li_seq);
		CHECK_INT(ack(last), ACK_OK);
		CHECK(size_of("a") < SPOOL);
		CHECK_INT(spool_waiting(), 0);
		if (round % 10 == 9) {
			close(fd);
			killed();
			use_spool();
			fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
		}
	}
	close(fd);
}

/* More than a window ahead is not sent, and the rest when there is room. */
TEST(window)
{
	uint64_t	 last = 0;
	size_t		 len, sum = 0;
	int		 fd, round;

	begin();
	say(3500);
	turn_loop();
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	for (round = 0; round < 50 && last < 3500; round++) {
		sum += len = take(fd, &last);
		CHECK(len > 0 && len <= WINDOW);
		CHECK_INT(take(fd, &last), 0);
		CHECK_INT(ack(last), ACK_OK);
	}
	CHECK_INT(last, 3500);
	CHECK(round > 1 && sum > 2 * (size_t)WINDOW);
	close(fd);
}

TEST(lies)
{
	uint64_t	 last = 0;
	int		 fd;

	begin();
	say(10);
	turn_loop();
	CHECK_INT(ack(1), ACK_HIGH);
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 5);
	take(fd, &last);
	CHECK_INT(ack(11), ACK_HIGH);
	CHECK_INT(ack(UINT64_MAX), ACK_HIGH);
	CHECK_INT(ack(7), ACK_OK);
	CHECK_INT(ack(7), ACK_OK);
	CHECK_INT(ack(6), ACK_LOW);
	CHECK_INT(ack_term(8, 4), ACK_OLD_TERM);
	CHECK_INT(ack_term(8, 5), ACK_OK);
	/* What the one before was sent is not what this one was. */
	close(fd);
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 6);
	CHECK_INT(ack_term(10, 5), ACK_OLD_TERM);
	last = 8;
	take(fd, &last);
	CHECK_INT(last, 10);
	close(fd);
	restart();
	CHECK_INT(ack(0), ACK_NO_SPOOL);
}

TEST(takeover)
{
	uint64_t	 one = 0, two = 0;
	int		 a, b, c;

	begin();
	say(5);
	turn_loop();
	a = follow(FOLLOW_ACKNOWLEDGED, 0, 7);
	take(a, &one);
	CHECK_INT(ack(2), ACK_OK);
	c = follow(FOLLOW_ACKNOWLEDGED, 0, 6);
	take(c, &two);
	CHECK(strstr(got, "\"taken_over\"") != NULL);
	close(c);
	two = 2;
	b = follow(FOLLOW_ACKNOWLEDGED, 0, 7);
	take(b, &two);
	CHECK_INT(two, 5);
	take(a, &one);
	CHECK(strstr(got, "\"taken_over\"") != NULL);
	CHECK_INT(recv(a, got, 1, 0), 0);
	close(a);
	close(b);
	/* The term is known in the next life. */
	killed();
	use_spool();
	c = follow(FOLLOW_ACKNOWLEDGED, 0, 6);
	take(c, &two);
	CHECK(strstr(got, "\"taken_over\"") != NULL);
	close(c);
}

TEST(full_and_free_again)
{
	uint64_t	 last = 0;
	int		 fd, round;

	begin();
	say(6000);
	turn_loop();
	CHECK(audit_full());
	CHECK(spool_waiting() <= SPOOL);
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	for (round = 0; round < 100 && last < 6000; round++) {
		if (take(fd, &last) > 0)
			CHECK_INT(ack(last), ACK_OK);
	}
	CHECK(!audit_full());
	CHECK(strstr(got, "\"audit_full\"") != NULL);
	CHECK_INT(last, 6001);
	say(5);
	turn_loop();
	take(fd, &last);
	CHECK_INT(last, 6006);
	close(fd);
}

/* Then all of the file counts, until all of it is acknowledged. */
TEST(file_system_takes_nothing_back)
{
	uint64_t	 last = 0;
	int		 fd, round;

	begin();
	takes_back = false;
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	for (round = 0; round < 100; round++) {
		say(200);
		turn_loop();
		take(fd, &last);
		if (last > 0)
			CHECK_INT(ack(last), ACK_OK);
		CHECK(size_of("a") <= SPOOL + ROOM_GAP);
	}
	turn_loop();
	take(fd, &last);
	CHECK_INT(last, chain_tip()->li_seq);
	CHECK_INT(ack(last), ACK_OK);
	CHECK(!audit_full());
	close(fd);
}

TEST(torn_tail)
{
	uint64_t	 last = 0;
	int		 fd, file;

	begin();
	say(10);
	turn_loop();
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	take(fd, &last);
	CHECK_INT(ack(4), ACK_OK);
	close(fd);
	killed();
	CHECK_INT(verify_file("a"), 10);
	CHECK((file = open("a", O_WRONLY | O_APPEND)) != -1);
	CHECK_INT(write(file, "{\"seq\":11,\"ki", 13), 13);
	close(file);
	use_spool();
	last = 4;
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	take(fd, &last);
	CHECK_INT(last, 11);
	CHECK(strstr(got, "\"torn_line\"") != NULL);
	close(fd);
}

/* Without what was acknowledged, records come twice at worst. */
TEST(ack_file_lost)
{
	uint64_t	 last = 0;
	int		 fd;

	begin();
	say(2000);
	turn_loop();
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	take(fd, &last);
	CHECK_INT(ack(last), ACK_OK);
	close(fd);
	killed();
	put("a.ack", "nonsense\n", 9);
	use_spool();
	CHECK_INT(spool_acknowledged(), last);
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	take(fd, &last);
	CHECK_INT(last, 2000);
	close(fd);
}

/* The disk has lost what was written last, and we had it acknowledged. */
TEST(no_number_twice)
{
	uint64_t	 last = 0;
	int		 fd;

	begin();
	say(5);
	turn_loop();
	text_len = 0;
	load("a");
	say(5);
	turn_loop();
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	take(fd, &last);
	CHECK_INT(ack(10), ACK_OK);
	close(fd);
	killed();
	put("a", text, text_len);
	unlink("a.tip");
	use_spool();
	CHECK_INT(chain_tip()->li_seq, 11);
	last = 10;
	say(1);
	turn_loop();
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	take(fd, &last);
	CHECK(strstr(got, "{\"seq\":11,\"kind\":\"gap\"") != NULL);
	close(fd);
}

TEST(lost_all)
{
	uint64_t	 last = 0;
	int		 fd;

	begin();
	say(10);
	turn_loop();
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	take(fd, &last);
	CHECK_INT(ack(4), ACK_OK);
	close(fd);
	killed();
	CHECK_INT(truncate("a", 0), 0);
	use_spool();
	last = 4;
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	take(fd, &last);
	CHECK(strstr(got, "\"lost\":6,\"first_seq\":5,\"last_seq\":10,") !=
	    NULL);
	CHECK_INT(last, 11);
	close(fd);
}

TEST(from_a_number)
{
	uint64_t	 last, from, first;
	int		 fd;

	setup();
	use("a");
	say(1000);
	turn_loop();
	for (from = 1; from <= 1001; from += 50) {
		last = from - 1;
		fd = follow(FOLLOW_NUMBER, from, 0);
		take(fd, &last);
		CHECK_INT(last, chain_tip()->li_seq);
		say(2);
		turn_loop();
		take(fd, &last);
		CHECK_INT(last, chain_tip()->li_seq);
		close(fd);
	}
	fd = follow(FOLLOW_NUMBER, chain_tip()->li_seq + 2, 0);
	take(fd, &last);
	CHECK(strstr(got, "\"out_of_range\"") != NULL);
	close(fd);
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 0);
	take(fd, &last);
	CHECK(strstr(got, "\"not_supported\"") != NULL);
	close(fd);
	/* Where another file has the beginning. */
	first = chain_tip()->li_seq + 1;
	use("b");
	fd = follow(FOLLOW_NUMBER, first - 1, 0);
	take(fd, &last);
	CHECK(strstr(got, "\"out_of_range\"") != NULL);
	close(fd);
	last = first - 1;
	fd = follow(FOLLOW_NUMBER, first, 0);
	take(fd, &last);
	CHECK_INT(last, first);
	close(fd);
}

/* A reader that acknowledges nothing does not keep a spool from forgetting. */
TEST(overtaken)
{
	uint64_t	 last = 0, slow = 0;
	int		 a, b;

	begin();
	say(3000);
	turn_loop();
	a = follow(FOLLOW_NUMBER, 1, 0);
	b = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	while (last < 3000) {
		take(b, &last);
		CHECK_INT(ack(last), ACK_OK);
	}
	take(a, &slow);
	CHECK(slow == 3000 || strstr(got, "\"slow_follower\"") != NULL);
	close(a);
	close(b);
}

/* Without its beginning it would not verify. */
TEST(no_audit_file_again)
{
	uint64_t	 last = 0;
	int		 fd;

	begin();
	say(500);
	turn_loop();
	fd = follow(FOLLOW_ACKNOWLEDGED, 0, 1);
	take(fd, &last);
	CHECK_INT(ack(last), ACK_OK);
	say(2);
	turn_loop();
	close(fd);
	killed();
	CHECK_INT(offer("a"), -1);
	CHECK_STR(why, "a: it was a spool, and its beginning is gone");
	audit_abort();
}

/* Cut off twenty times while records come: none is missing, none is twice. */
TEST(twenty_cuts)
{
	uint64_t	 last = 0;
	int		 fd, cut;

	begin();
	for (cut = 0; cut < 20; cut++) {
		last = spool_acknowledged();
		fd = follow(FOLLOW_ACKNOWLEDGED, 0, (uint64_t)cut);
		say(70);
		take(fd, &last);
		say(7);
		turn_loop();
		take(fd, &last);
		if (cut % 3 != 2)
			CHECK_INT(ack(last - (uint64_t)cut % 7), ACK_OK);
		close(fd);
		if (cut % 5 == 4) {
			killed();
			use_spool();
		}
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	CHECK(spool_acknowledged() > 1000);
}

TEST_MAIN("spool")
