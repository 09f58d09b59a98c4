/* SPDX-License-Identifier: ISC */

/*
 * Tests of common/ipc.c: what happens when a peer does not read, how a channel
 * ends, and reading before there is a loop.
 */

#include "ipc_pair.h"

/* ---- a peer that does not read ------------------------------------------- */

/* A record of about a kilobyte. */
static void
record(struct ipc *ip, uint64_t number)
{
	static char	 reason[PATH_LEN + 1];

	memset(reason, 'r', PATH_LEN);
	ipc_send(ip, -1, RECORD_SESSION, record_session, .at = number,
	    .session = "s", .policy = "p", .reason = reason);
}

TEST(water_marks)
{
	struct ipc	*ips[2];
	size_t		 n;

	start();
	channels(ROLE_POLICYD, ROLE_RECORDER, S_OPEN, ips);
	event_del(&ips[1]->ip_rev);
	for (n = 0; !ips[0]->ip_congested; n++) {
		CHECK(imsgbuf_queuelen(&ips[0]->ip_buf) <= IPC_HIGH_WATER);
		record(ips[0], n);
	}
	CHECK(imsgbuf_queuelen(&ips[0]->ip_buf) > IPC_HIGH_WATER);
	/* The socket takes some: not enough. */
	for (; imsgbuf_queuelen(&ips[0]->ip_buf) <= 2 * IPC_HIGH_WATER; n++)
		record(ips[0], n);
	settle();
	CHECK_INT(ndrained, 0);
	CHECK(ips[0]->ip_congested);

	event_add(&ips[1]->ip_rev, NULL);
	while (ndrained == 0)
		CHECK(event_base_loop(base, EVLOOP_ONCE) != -1);
	CHECK(!ips[0]->ip_congested);
	CHECK(imsgbuf_queuelen(&ips[0]->ip_buf) <= IPC_LOW_WATER);
	settle();
	CHECK_INT(nseen, n);
	CHECK_INT(seen[n - 1].number, n - 1);
	CHECK_INT(ndrained, 1);
	stop();
}

/* Below the high mark there is nothing to drain. */
TEST(no_false_drain)
{
	struct ipc	*ips[2];
	size_t		 n;

	start();
	channels(ROLE_POLICYD, ROLE_RECORDER, S_OPEN, ips);
	for (n = 0; imsgbuf_queuelen(&ips[0]->ip_buf) <= IPC_LOW_WATER * 2; n++)
		record(ips[0], n);
	settle();
	CHECK_INT(nseen, n);
	CHECK_INT(ndrained, 0);
	stop();
}

TEST(freed_when_drained)
{
	struct ipc	*ips[2];
	size_t		 n;

	start();
	channels(ROLE_POLICYD, ROLE_RECORDER, S_OPEN, ips);
	ips[0]->ip_drained = end;
	for (n = 0; !ips[0]->ip_congested; n++)
		record(ips[0], n);
	settle();
	CHECK_INT(ngone, 1);
	CHECK(gone == ips[1]);
	CHECK(nseen > 0 && nseen <= n);
}

TEST(stuck)
{
	struct ipc	*ips[2];
	ino_t		 inode;
	size_t		 n;
	int		 i, before;

	start();
	before = count_fds();
	channels(ROLE_PARENT, ROLE_RECORDER, S_RUN, ips);
	event_del(&ips[1]->ip_rev);
	for (n = 0; !ips[0]->ip_stuck; n++) {
		CHECK(imsgbuf_queuelen(&ips[0]->ip_buf) <= IPC_QUEUE_MAX);
		ipc_send(ips[0], -1, CONF_BEGIN, generation, n);
	}
	/* Not while the sender is at it, and what comes now goes nowhere. */
	CHECK_INT(ngone, 0);
	n = imsgbuf_queuelen(&ips[0]->ip_buf);
	CHECK(n > IPC_QUEUE_MAX && n <= IPC_QUEUE_MAX + IMSG_MAX_SIZE);
	for (i = 0; i < 10; i++)
		ipc_send(ips[0], new_file(&inode), FOLLOW, follow, .kinds = 1);
	CHECK_INT(imsgbuf_queuelen(&ips[0]->ip_buf), n);
	CHECK(event_base_loop(base, EVLOOP_NONBLOCK) != -1);
	CHECK_INT(ngone, 1);
	CHECK(gone == ips[0]);
	CHECK_STR(gone_why, "it does not read");
	stop();
	CHECK_INT(count_fds(), before);
}

/* ---- the end of a channel ------------------------------------------------ */

TEST(freed_in_handler)
{
	struct ipc	*ips[2];
	ino_t		 inode;
	int		 i, before;

	start();
	before = count_fds();
	channels(ROLE_PARENT, ROLE_RECORDER, S_RUN, ips);
	for (i = 0; i < 5; i++)
		ipc_send(ips[0], new_file(&inode), FOLLOW, follow, .kinds = 2);
	CHECK_INT(ipc_flush(ips[0]), 0);
	act = end;
	settle();
	CHECK_INT(nseen, 1);
	CHECK_INT(ngone, 1);
	CHECK(gone == ips[0]);
	CHECK_INT(count_fds(), before);
}

static struct ipc	*victim;

static void
free_victim(struct ipc *ip)
{
	(void)ip;
	end(victim);
}

/* One channel's handler ends another that is as far as itself. */
TEST(freed_in_handler_of_other)
{
	struct ipc	*a[2], *b[2];
	size_t		 i;

	start();
	channels(ROLE_ENGINE, ROLE_POLICYD, S_OPEN, a);
	channels(ROLE_ENGINE, ROLE_POLICYD, S_OPEN, b);
	flood(a[0], 3 * IPC_BATCH);
	flood(b[0], 3 * IPC_BATCH);
	CHECK(event_base_loop(base, EVLOOP_ONCE) != -1);
	CHECK_INT(nseen, 2 * IPC_BATCH);
	victim = seen[0].ip == a[1] ? b[1] : a[1];
	act = free_victim;
	settle();
	CHECK_INT(nseen, 4 * IPC_BATCH);
	for (i = 2 * IPC_BATCH; i < nseen; i++)
		CHECK(seen[i].ip != victim);
	CHECK_INT(ngone, 1);
	CHECK_STR(gone_why, "");
	stop();
}

/* ---- before the loop ----------------------------------------------------- */

TEST(read_one)
{
	struct ipc	*ips[2];
	int		 i;

	start();
	channels(ROLE_ENGINE, ROLE_POLICYD, S_OPEN, ips);
	flood(ips[0], 3 * IPC_BATCH);
	CHECK_INT(ipc_read_one(ips[1]), 1);
	CHECK_INT(nseen, 1);
	CHECK_INT(ipc_read_one(ips[1]), 1);
	CHECK_INT(nseen, 2);
	/* The rest was read already: no byte will wake the loop for it. */
	settle();
	CHECK_INT(nseen, 3 * IPC_BATCH);
	for (i = 0; i < 3 * IPC_BATCH; i++)
		CHECK_INT(seen[i].number, i);
	stop();
}

TEST(read_one_waits)
{
	struct ipc	*ips[2];
	pid_t		 pid;
	int		 status;

	start();
	channels(ROLE_ENGINE, ROLE_POLICYD, S_OPEN, ips);
	CHECK((pid = fork()) != -1);
	if (pid == 0) {
		flood(ips[0], 1);
		_exit(0);
	}
	CHECK_INT(ipc_read_one(ips[1]), 1);
	CHECK_INT(nseen, 1);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	stop();
}

TEST(read_one_refused)
{
	struct ipc	*ips[2];

	start();
	channels(ROLE_PARENT, ROLE_DIALER, S_RUN, ips);
	ips[1]->ip_state = S_BOOT;
	ipc_send(ips[0], -1, LOG_LEVEL, log_level, .level = 1);
	CHECK_INT(ipc_flush(ips[0]), 0);
	CHECK_INT(ipc_read_one(ips[1]), -1);
	CHECK_INT(nseen, 0);
	CHECK(strstr(ips[1]->ip_why, "LOG_LEVEL in state") != NULL);
	stop();

	channels(ROLE_PARENT, ROLE_DIALER, S_RUN, ips);
	end(ips[0]);
	CHECK_INT(ipc_read_one(ips[1]), -1);
	CHECK_STR(ips[1]->ip_why, "end of file");
	stop();
}

TEST_MAIN("ipc_end")
