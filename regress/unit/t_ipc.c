/* SPDX-License-Identifier: ISC */

/*
 * Tests of common/ipc.c: messages, and who has a turn when.  t_ipc_end.c has
 * peers that do not read and the end of channels, regress/ipc the refusals.
 */

#include "ipc_pair.h"

/* ---- messages ------------------------------------------------------------ */

TEST(descriptors_in_order)
{
	enum { COUNT = 100 };
	struct ipc	*ips[2];
	struct stat	 st;
	ino_t		 inodes[COUNT];
	int		 i, fd, before;

	start();
	before = count_fds();
	channels(ROLE_PARENT, ROLE_RECORDER, S_RUN, ips);
	for (i = 0; i < COUNT; i++) {
		fd = new_file(&inodes[i]);
		ipc_send(ips[0], fd, FOLLOW, follow, .kinds = i,
		    .session = "s");
		ipc_send(ips[0], -1, LOG_LEVEL, log_level, .level = 1);
	}
	settle();
	CHECK_INT(nseen, 2 * COUNT);
	for (i = 0; i < COUNT; i++) {
		CHECK_INT(seen[2 * i].number, i);
		CHECK_INT(seen[2 * i + 1].number, 1);
		fd = seen[2 * i].fd;
		CHECK_INT(fd != -1, i % 2);
		if (fd == -1)
			continue;
		CHECK_INT(fstat(fd, &st), 0);
		CHECK_INT(st.st_ino, inodes[i]);
		close(fd);
	}
	stop();
	/* What a handler did not take was closed behind it. */
	CHECK_INT(count_fds(), before);
}

/* A peer that trickles gets nothing for it, and nothing breaks. */
TEST(byte_by_byte)
{
	struct ipc	*ips[2];
	struct ibuf	*b;
	size_t		 i;

	start();
	channels(ROLE_ENGINE, ROLE_POLICYD, S_OPEN, ips);
	CHECK((b = ibuf_dynamic(1, IMSG_MAX_SIZE)) != NULL);
	CHECK_INT(ibuf_add_n32(b, MSG_ENGINE_HELLO), 0);
	CHECK_INT(ibuf_add_n32(b, IMSG_HEADER_SIZE + 8), 0);
	CHECK_INT(ibuf_add_n32(b, 0), 0);
	CHECK_INT(ibuf_add_n64(b, 77), 0);
	for (i = 0; i < b->wpos; i++) {
		CHECK_INT(nseen, 0);
		CHECK_INT(write(ips[0]->ip_buf.fd, b->buf + i, 1), 1);
		CHECK(event_base_loop(base, EVLOOP_NONBLOCK) != -1);
	}
	CHECK_INT(nseen, 1);
	CHECK_INT(seen[0].number, 77);
	ibuf_free(b);
	stop();
}

/*
 * A peer with a pace is heard at once; what it says in the same breath waits,
 * unless there is much of it; and it is heard at once again after a silence.
 */
TEST(pace)
{
	struct ipc	*ips[2];
	int		 i, turn;

	start();
	channels(ROLE_ENGINE, ROLE_POLICYD, S_OPEN, ips);
	ips[1]->ip_pace_ms = 100;
	for (i = 0; i < 2; i++) {
		for (turn = 0; turn < 2; turn++) {
			ipc_send(ips[0], -1, ENGINE_HELLO, generation, turn);
			CHECK_INT(ipc_flush(ips[0]), 0);
			CHECK(event_base_loop(base, EVLOOP_NONBLOCK) != -1);
		}
		CHECK_INT(nseen, 2 * i + 1);
		CHECK(!event_pending(&ips[1]->ip_rev, EV_READ, NULL));
		while (!event_pending(&ips[1]->ip_rev, EV_READ, NULL))
			CHECK(event_base_loop(base, EVLOOP_ONCE) != -1);
		CHECK_INT(nseen, 2 * i + 2);
	}
	stop();
}

TEST(pace_is_not_for_floods)
{
	enum { COUNT = 1000 };
	struct ipc	*ips[2];
	char		 reason[1000];
	int		 i;

	start();
	channels(ROLE_POLICYD, ROLE_RECORDER, S_OPEN, ips);
	ips[1]->ip_pace_ms = 900;
	memset(reason, 'x', sizeof(reason) - 1);
	reason[sizeof(reason) - 1] = '\0';
	for (i = 0; i < COUNT; i++)
		ipc_send(ips[0], -1, RECORD_SESSION, record_session, .at = i,
		    .reason = reason);
	settle();
	/* What comes last may be little and wait. */
	CHECK(nseen >= COUNT - IPC_MUCH / sizeof(reason));
	stop();
}

/* A channel that rests ends like any other. */
TEST(pace_and_end_of_file)
{
	struct ipc	*ips[2];

	start();
	channels(ROLE_ENGINE, ROLE_POLICYD, S_OPEN, ips);
	ips[1]->ip_pace_ms = 1;
	ipc_send(ips[0], -1, ENGINE_HELLO, generation, 1);
	CHECK_INT(ipc_flush(ips[0]), 0);
	CHECK(event_base_loop(base, EVLOOP_NONBLOCK) != -1);
	ipc_send(ips[0], -1, ENGINE_HELLO, generation, 2);
	CHECK_INT(ipc_flush(ips[0]), 0);
	end(ips[0]);
	while (ngone == 0)
		CHECK(event_base_loop(base, EVLOOP_ONCE) != -1);
	CHECK_INT(nseen, 2);
	CHECK(gone == ips[1]);
	CHECK_STR(gone_why, "");
	stop();
}

TEST(refused_by_handler)
{
	struct ipc	*ips[2];

	start();
	channels(ROLE_PARENT, ROLE_DIALER, S_RUN, ips);
	ipc_send(ips[0], -1, LOG_LEVEL, log_level, .level = 1);
	ipc_send(ips[0], -1, LOG_LEVEL, log_level, .level = 99);
	ipc_send(ips[0], -1, LOG_LEVEL, log_level, .level = 2);
	CHECK_INT(ipc_flush(ips[0]), 0);
	CHECK_INT(shutdown(ips[0]->ip_buf.fd, SHUT_WR), 0);
	CHECK(event_base_loop(base, EVLOOP_NONBLOCK) != -1);
	CHECK_INT(nseen, 1);
	CHECK(gone == ips[1]);
	CHECK_STR(gone_why, "LOG_LEVEL: level 99");
	stop();
}

/* What was said before the end is heard before the end. */
TEST(end_of_file)
{
	struct ipc	*ips[2];
	int		 i;

	start();
	channels(ROLE_ENGINE, ROLE_POLICYD, S_OPEN, ips);
	for (i = 0; i < FLOOD; i++)
		ipc_send(ips[0], -1, ENGINE_HELLO, generation, i);
	CHECK_INT(ipc_flush(ips[0]), 0);
	end(ips[0]);
	settle();
	CHECK_INT(nseen, FLOOD);
	CHECK_INT(seen[FLOOD - 1].number, FLOOD - 1);
	CHECK_INT(ngone, 1);
	CHECK(gone == ips[1]);
	CHECK_STR(gone_why, "");
}

/* ---- turns --------------------------------------------------------------- */

/* How long the other one waited, at most, while it had something to say. */
static size_t
longest_wait(const struct ipc *a, const struct ipc *b)
{
	size_t	 i, last[2] = { 0, 0 }, run = 0, longest = 0;

	for (i = 0; i < nseen; i++) {
		if (seen[i].ip == a)
			last[0] = i;
		if (seen[i].ip == b)
			last[1] = i;
	}
	for (i = 0; i <= last[0] && i <= last[1]; i++) {
		run = i > 0 && seen[i].ip == seen[i - 1].ip ? run + 1 : 1;
		if (run > longest)
			longest = run;
	}
	return longest;
}

TEST(two_floods)
{
	struct ipc	*a[2], *b[2];

	start();
	channels(ROLE_ENGINE, ROLE_POLICYD, S_OPEN, a);
	channels(ROLE_ENGINE, ROLE_POLICYD, S_OPEN, b);
	flood(a[0], FLOOD);
	flood(b[0], FLOOD);
	settle();
	CHECK_INT(nseen, 2 * FLOOD);
	CHECK(longest_wait(a[1], b[1]) <= IPC_BATCH);
	stop();
}

static struct ipc	*latecomer;

static void
come_late(struct ipc *ip)
{
	(void)ip;
	if (latecomer->ip_me == ROLE_PARENT)
		ipc_send(latecomer, -1, LOG_LEVEL, log_level, .level = 1);
	else
		ipc_send(latecomer, -1, ENGINE_HELLO, generation, 1);
	if (ipc_flush(latecomer) == -1)
		gone = latecomer;
}

/* One speaks up while a whole buffer of another is being handled. */
static size_t
wait_behind_flood(enum role who, uint32_t state)
{
	struct ipc	*a[2], *b[2];
	size_t		 i;

	start();
	channels(ROLE_ENGINE, ROLE_POLICYD, S_OPEN, a);
	channels(who, ROLE_POLICYD, state, b);
	flood(a[0], FLOOD);
	latecomer = b[0];
	act = come_late;
	settle();
	CHECK_INT(nseen, FLOOD + 1);
	for (i = 0; i < nseen && seen[i].ip != b[1]; i++)
		continue;
	stop();
	return i;
}

TEST(engine_behind_flood)
{
	CHECK(wait_behind_flood(ROLE_ENGINE, S_OPEN) <= 2 * IPC_BATCH);
}

TEST(parent_behind_flood)
{
	CHECK(wait_behind_flood(ROLE_PARENT, S_RUN) <= IPC_BATCH);
}

/* More than any buffer holds, and nothing is lost or overtaken. */
TEST(long_flood)
{
	struct ipc	*ips[2];
	size_t		 i;

	start();
	channels(ROLE_ENGINE, ROLE_POLICYD, S_OPEN, ips);
	for (i = 0; i < SEEN_MAX; i++)
		ipc_send(ips[0], -1, ENGINE_HELLO, generation, i);
	settle();
	CHECK_INT(nseen, SEEN_MAX);
	for (i = 0; i < nseen && seen[i].number == i; i++)
		continue;
	CHECK_INT(i, SEEN_MAX);
	CHECK_INT(ngone, 0);
	stop();
}

TEST_MAIN("ipc")
