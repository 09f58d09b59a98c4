/* SPDX-License-Identifier: ISC */

/* Tests of parent/peer.c: the control client is this process. */

#include <sys/socket.h>
#include <sys/time.h>

#include <signal.h>
#include <unistd.h>

#include "test.h"

#include "../../parent/parent.h"

#define LOOKS		20000
#define EVERY_US	30

static int	 fds[2];
static bool	 ours;
static struct peer who;

/* In place of proc.c, which would bring the whole parent along. */
bool
proc_owns_uid(uid_t uid)
{
	(void)uid;
	return ours;
}

static void
start(void)
{
	static bool	 begun;

	if (!begun)
		peer_init();
	begun = true;
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	log_init("t_peer", LOG_LVL_ERROR, 0);
	ours = false;
}

static void
stop(void)
{
	close(fds[0]);
	close(fds[1]);
}

static void
on_alarm(int sig)
{
	(void)sig;
}

static void
alarms(suseconds_t every)
{
	struct itimerval	 it = { .it_interval.tv_usec = every,
	    .it_value.tv_usec = every };

	CHECK_INT(setitimer(ITIMER_REAL, &it, NULL), 0);
}

TEST(welcome)
{
	start();
	CHECK(peer_welcome(fds[0], &who, false));
	CHECK_INT(who.pe_uid, geteuid());
	ours = true;
	CHECK(!peer_welcome(fds[0], &who, false));
	stop();
}

TEST(no_socket)
{
	CHECK(!peer_welcome(STDIN_FILENO, &who, false));
}

/* Children die while a client is looked at: that is nothing against it. */
TEST(signals)
{
	struct sigaction	 sa = { .sa_handler = on_alarm,
	    .sa_flags = SA_RESTART };
	int			 i, welcome = 0;

	start();
	CHECK_INT(sigaction(SIGALRM, &sa, NULL), 0);
	alarms(EVERY_US);
	for (i = 0; i < LOOKS; i++)
		welcome += peer_welcome(fds[0], &who, false);
	alarms(0);
	CHECK_INT(welcome, LOOKS);
	stop();
}

TEST_MAIN("peer")
