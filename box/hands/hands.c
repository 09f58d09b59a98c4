/* SPDX-License-Identifier: ISC */

/*
 * The hands of a sandbox run this: files and processes for clients outside, in
 * a process beside the commands and with their rights.  Clients are trusted
 * with the sandbox and nothing more, commands with nothing.
 *
 *	client --- connection --- hands ---+--- files
 *	client --- connection ---'         +--- supervisor --- command
 *
 * One process, one poll(2) (loop.c).  A connection (conn.c) takes frames apart;
 * a CALL becomes a request (request.c), its members the state of an operation
 * (member.c), which has a table of functions in an op_*.c.  An operation does
 * what does not block at once, and what is long in slices, one in each turn
 * and only while its client has given credit; so many go on side by side, each
 * can be cancelled, and a slow reader holds up its own request only.
 *
 * Commands have our uid.  We cannot be traced, and leave no descriptor to them;
 * killing us is the end of their own sandbox.
 */

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../box.h"
#include "op.h"

#define FILES_WANTED	8192	/* descriptors */
#define KILL_MS		2000	/* for the processes, at the end */
#define DROP_MS		5000	/* for what a refused client still sends */
#define DROP_QUIET_MS	500	/* then it has sent all */

static struct conn_list	 conns = TAILQ_HEAD_INITIALIZER(conns);
static size_t		 nconns;
static struct rlimit	 files;
static int		 signals = -1;
static int		 stopped;
static int		 channel = -1;
static const struct hands_options *options;

/* The limit of descriptors that commands get. */
const struct rlimit *
hands_files(void)
{
	return &files;
}

static short
always_in(void *arg)
{
	(void)arg;
	return POLLIN;
}

/* Orphans are ours too, where there is no first process to take them. */
static void
hands_signal(void *arg)
{
	struct signalfd_siginfo	 si;
	pid_t			 pid;

	(void)arg;
	while (read(signals, &si, sizeof(si)) == sizeof(si))
		if (si.ssi_signo != SIGCHLD)
			stopped = 1;
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		worker_reaped(pid);
}

static void
hands_prepare(const struct hands_options *ho)
{
	struct rlimit	 more;
	sigset_t	 set;

	options = ho;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		err(BOX_FAILED, "not to be traced");
	if (getrlimit(RLIMIT_NOFILE, &files) == -1)
		err(BOX_FAILED, "limit of descriptors");
	more = files;
	if (more.rlim_cur < FILES_WANTED)
		more.rlim_cur = more.rlim_max < FILES_WANTED ? more.rlim_max :
		    FILES_WANTED;
	(void)setrlimit(RLIMIT_NOFILE, &more);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_SETMASK, &set, NULL) == -1 ||
	    (signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) == -1)
		err(BOX_FAILED, "signalfd");
	watch_new(signals, always_in, hands_signal, NULL);
}

static void
hands_add(int in, int out)
{
	struct conn	*cn = conn_new(in, out, options);

	TAILQ_INSERT_TAIL(&conns, cn, cn_entry);
	nconns++;
}

/*
 * Whoever passed a connection through the channel has it open, too: the client
 * sees the end by shutdown(2), and so does that.
 */
static void
hands_drop(struct conn *cn)
{
	TAILQ_REMOVE(&conns, cn, cn_entry);
	nconns--;
	if (channel != -1)
		(void)shutdown(cn->cn_in, SHUT_RDWR);
	conn_free(cn);
}

static int
hands_wait(void)
{
	struct conn	*cn;
	int64_t		 now = loop_clock();
	int		 ms, least = -1;

	TAILQ_FOREACH(cn, &conns, cn_entry) {
		ms = conn_wait(cn, now);
		if (ms != -1 && (least == -1 || ms < least))
			least = ms;
	}
	return least;
}

/* Serve every connection once; 1 if a client was refused. */
static int
hands_turn(void)
{
	struct conn	*cn, *next;
	int		 refused = 0;

	(void)loop_turn(hands_wait());
	TAILQ_FOREACH_SAFE(cn, &conns, cn_entry, next) {
		if (conn_serve(cn))
			continue;
		refused |= cn->cn_refused;
		hands_drop(cn);
	}
	return refused;
}

static void
hands_end(void)
{
	struct conn	*cn;

	while ((cn = TAILQ_FIRST(&conns)) != NULL)
		hands_drop(cn);
}

static int
set_nonblock(int fd)
{
	int	 flags = fcntl(fd, F_GETFL);

	return flags == -1 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* A descriptor that came with a byte, or -1. */
static int
channel_descriptor(struct msghdr *msg)
{
	struct cmsghdr	*cmsg = CMSG_FIRSTHDR(msg);
	int		 fd;

	if (cmsg == NULL || cmsg->cmsg_level != SOL_SOCKET ||
	    cmsg->cmsg_type != SCM_RIGHTS ||
	    cmsg->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -1;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	return fd;
}

/* A connection to serve, from who made the sandbox; the end is the end. */
static void
channel_ready(void *arg)
{
	union {
		struct cmsghdr	 hdr;
		char		 buf[CMSG_SPACE(sizeof(int))];
	}		 control;
	char		 byte = 0;
	struct iovec	 iov = { &byte, 1 };
	struct msghdr	 msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t		 n;
	int		 fd;

	(void)arg;
	n = recvmsg(channel, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		stopped = 1;
		return;
	}
	if ((fd = channel_descriptor(&msg)) == -1)
		return;
	if (byte == 'A' && nconns < CONNS_MAX && set_nonblock(fd) == 0)
		hands_add(fd, fd);
	else {
		(void)shutdown(fd, SHUT_RDWR);
		(void)close(fd);
	}
}

void
hands_serve_channel(int fd, const struct hands_options *ho)
{
	hands_prepare(ho);
	channel = fd;
	if (fcntl(channel, F_SETFD, FD_CLOEXEC) == -1)
		err(BOX_FAILED, "channel");
	watch_new(channel, always_in, channel_ready, NULL);
	if (send(channel, "R", 1, MSG_NOSIGNAL) != 1)
		err(BOX_FAILED, "channel");
	while (!stopped)
		(void)hands_turn();
	hands_end();
	_exit(0);
}

static int
dup_cloexec(int fd)
{
	int	 copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (copy == -1)
		err(BOX_FAILED, "descriptor %d", fd);
	return copy;
}

/* Move one of the standard streams to where no child has it. */
static int
stdio_take(int fd)
{
	int	 copy = dup_cloexec(fd), ends[2], none;

	if ((none = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1) {
		if (pipe2(ends, O_CLOEXEC) == -1)
			err(BOX_FAILED, "pipe");
		(void)close(ends[1]);
		none = ends[0];
	}
	if (dup2(none, fd) == -1)
		err(BOX_FAILED, "descriptor %d", fd);
	(void)close(none);
	return copy;
}

/*
 * An exec whose input nobody takes may never be said to have ended.  So what a
 * client that was refused had sent already is thrown away.
 */
static void
hands_discard(int in)
{
	static char	 buf[64 * 1024];
	struct pollfd	 pfd = { .fd = in, .events = POLLIN };
	int64_t		 end = loop_clock() + DROP_MS;

	while (loop_clock() < end && poll(&pfd, 1, DROP_QUIET_MS) == 1)
		if (read(in, buf, sizeof(buf)) <= 0)
			return;
}

/*
 * What commands have left behind stays when the client goes; so somebody has to
 * take their output, who holds none of the client's streams.  A command that
 * still runs is ended by its supervisor, with or without us.
 */
static void
hands_leave(int in, int out)
{
	if (!drain_wanted() || fork() != 0)
		return;
	(void)close(in);
	(void)close(out);
	(void)dup2(STDIN_FILENO, STDERR_FILENO);
	while (drain_wanted() && !stopped)
		(void)loop_turn(-1);
	_exit(0);
}

/*
 * What commands leave behind is ours, and ends with us: there may be no first
 * process here that would see to it.  In a pod there is.
 */
int
hands_serve_pair(int in, int out, const struct hands_options *ho)
{
	int	 flags[2], refused = 0;

	if (!ho->ho_leave && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == -1)
		err(BOX_FAILED, "orphans");
	hands_prepare(ho);
	/* Others may use the same pipes when we are gone. */
	if ((flags[0] = fcntl(in, F_GETFL)) == -1 ||
	    (flags[1] = fcntl(out, F_GETFL)) == -1 ||
	    set_nonblock(in) == -1 || set_nonblock(out) == -1)
		err(BOX_FAILED, "connection");
	hands_add(dup_cloexec(in), dup_cloexec(out));
	while (!stopped && nconns > 0)
		refused |= hands_turn();
	hands_end();
	(void)fcntl(in, F_SETFL, flags[0]);
	(void)fcntl(out, F_SETFL, flags[1]);
	if (ho->ho_leave && refused)
		hands_discard(in);
	if (ho->ho_leave)
		hands_leave(in, out);
	else
		tree_kill(KILL_MS);
	return refused ? 1 : 0;
}

static void __attribute__((__noreturn__))
usage(void)
{
	fprintf(stderr, "usage: egressd-box hands [-Fku] [-d directory]\n");
	exit(BOX_FAILED);
}

int
hands_main(int argc, char **argv)
{
	struct hands_options	 ho = { 0, 0, NULL };
	const char		*directory = NULL;
	int			 ch, ungated = 0;

	while ((ch = getopt(argc, argv, "+Fd:ku")) != -1) {
		switch (ch) {
		case 'F':
			ho.ho_forward = 1;
			break;
		case 'd':
			directory = optarg;
			break;
		case 'k':
			ho.ho_leave = 1;
			break;
		case 'u':
			ungated = 1;
			break;
		default:
			usage();
		}
	}
	if (argc != optind)
		usage();
	if (ho.ho_leave && !ungated)
		pod_confine();
	if (directory != NULL && chdir(directory) == -1)
		err(BOX_FAILED, "%s", directory);
	if ((ho.ho_cwd = getcwd(NULL, 0)) == NULL)
		err(BOX_FAILED, "working directory");
	return hands_serve_pair(stdio_take(STDIN_FILENO),
	    stdio_take(STDOUT_FILENO), &ho);
}
