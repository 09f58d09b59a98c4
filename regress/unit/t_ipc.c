/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * Tests of common/ipc.c: who has a turn when, what happens when a peer does
 * not read, and how a channel ends.  regress/ipc has the refusals.
 */

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "ipc.h"
#include "test.h"

#define PASSES		2000	/* of the loop, until nothing is left */
#define FLOOD		2500	/* messages that fill a good part of a buffer */
#define SEEN_MAX	(4 * FLOOD)

static struct event_base	*base;

/* What the handlers saw, in order. */
static struct {
	struct ipc	*ip;
	uint64_t	 number;
	int		 fd;
} seen[SEEN_MAX];
static size_t		 nseen;
static struct ipc	*gone;
static char		 gone_why[256];
static int		 ngone, ndrained;
static struct ipc	*live[4];		/* what stop() frees */
static void		(*act)(struct ipc *);	/* within the next handler */

static void
note(struct ipc *ip, uint64_t number, int fd)
{
	void	(*now)(struct ipc *) = act;

	if (nseen < SEEN_MAX) {
		seen[nseen].ip = ip;
		seen[nseen].number = number;
		seen[nseen++].fd = fd;
	}
	act = NULL;
	if (now != NULL)
		now(ip);
}

static int
on_number(struct ipc *ip, const union msg *m)
{
	note(ip, m->generation.generation, -1);
	return 0;
}

static int
on_level(struct ipc *ip, const union msg *m)
{
	if (m->log_level.level == 99)
		return ipc_bad(ip, "level %u", m->log_level.level);
	note(ip, m->log_level.level, -1);
	return 0;
}

static int
on_follow(struct ipc *ip, const union msg *m)
{
	/* One in two takes its descriptor. */
	note(ip, m->follow.kinds, m->follow.kinds % 2 ? ipc_take_fd(ip) : -1);
	return 0;
}

static int
on_record(struct ipc *ip, const union msg *m)
{
	note(ip, m->record_session.at, -1);
	return 0;
}

static const ipc_handler handlers[MSG_MAX] = {
	[MSG_ENGINE_HELLO] = on_number,
	[MSG_LOG_LEVEL] = on_level,
	[MSG_FOLLOW] = on_follow,
	[MSG_RECORD_SESSION] = on_record,
};

static void
end(struct ipc *ip)
{
	size_t	 i;

	for (i = 0; i < 4; i++)
		if (live[i] == ip)
			live[i] = NULL;
	ipc_free(ip);
}

/* The first to go is the one of interest; the other end follows it. */
static void
on_gone(struct ipc *ip, const char *why)
{
	if (ngone++ == 0) {
		gone = ip;
		strlcpy(gone_why, why == NULL ? "" : why, sizeof(gone_why));
	}
	end(ip);
}

static void
on_drained(struct ipc *ip)
{
	(void)ip;
	ndrained++;
}

static void
stop(void)
{
	size_t	 i;

	for (i = 0; i < 4; i++) {
		ipc_free(live[i]);
		live[i] = NULL;
	}
}

static void
start(void)
{
	if (base == NULL) {
		CHECK((base = event_base_new()) != NULL);
		CHECK_INT(event_base_priority_init(base, 2), 0);
	}
	stop();
	nseen = 0;
	gone = NULL;
	gone_why[0] = '\0';
	ngone = ndrained = 0;
	act = NULL;
}

static struct ipc *
channel(int fd, enum role me, enum role peer, uint32_t state)
{
	struct ipc	*ip = ipc_new(base, fd, me, peer, "peer", handlers);
	size_t		 i;

	for (i = 0; live[i] != NULL; i++)
		continue;
	live[i] = ip;
	ip->ip_state = state;
	ip->ip_gone = on_gone;
	ip->ip_drained = on_drained;
	return ip;
}

static void
channels(enum role from, enum role to, uint32_t state, struct ipc *ips[2])
{
	int	 sv[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	ips[0] = channel(sv[0], from, to, state);
	ips[1] = channel(sv[1], to, from, state);
}

static void
settle(void)
{
	int	 i;

	for (i = 0; i < PASSES; i++)
		CHECK(event_base_loop(base, EVLOOP_NONBLOCK) != -1);
}

static int
count_fds(void)
{
	int	 fd, n = 0;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static int
new_file(ino_t *inode)
{
	struct stat	 st;
	int		 fds[2];

	CHECK_INT(pipe(fds), 0);
	close(fds[1]);
	CHECK_INT(fstat(fds[0], &st), 0);
	*inode = st.st_ino;
	return fds[0];
}

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

static void
flood(struct ipc *ip, int count)
{
	int	 i;

	for (i = 0; i < count; i++)
		ipc_send(ip, -1, ENGINE_HELLO, generation, i);
	CHECK_INT(ipc_flush(ip), 0);
}

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

TEST_MAIN("ipc")
