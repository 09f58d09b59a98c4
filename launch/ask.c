/* SPDX-License-Identifier: ISC */

/*
 * egressd-launch, as the parent starts it in place of a sandbox or program.
 * What it was given is the parent's word; of the launcher it hears a status.
 */

#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

#include "launch.h"
#include "packet.h"

extern char	**environ;

static const char	*path;
static union {
	struct packet	 head;
	char		 bytes[PACKET_MAX];
} packet;
static size_t		 length = sizeof(packet.head);

static void
put(const char *text)
{
	size_t	 size = strlen(text) + 1;

	if (size > sizeof(packet) - length)
		errx(EXIT_LAUNCH, "arguments and variables have more than "
		    "%d bytes", PACKET_MAX);
	memcpy(packet.bytes + length, text, size);
	length += size;
}

static uint64_t
number(const char *text)
{
	const char	*why;
	uint64_t	 value = strtonum(text, 1, INT64_MAX, &why);

	if (why != NULL)
		errx(EXIT_LAUNCH, "%s: %s", text, why);
	return value;
}

/* Fill in the packet. */
static void
take(int argc, char *argv[])
{
	const char	*user = NULL, *cwd = NULL;
	int		 ch, i;

	while ((ch = getopt(argc, argv, "D:d:m:p:s:u:")) != -1)
		switch (ch) {
		case 'D':
			packet.head.pk_data = number(optarg);
			break;
		case 'd':
			cwd = optarg;
			break;
		case 'm':
			packet.head.pk_memory = number(optarg);
			break;
		case 'p':
			packet.head.pk_processes = number(optarg);
			break;
		case 's':
			path = optarg;
			break;
		case 'u':
			user = optarg;
			break;
		default:
			exit(EXIT_LAUNCH);
		}
	if (path == NULL || user == NULL || cwd == NULL || argc - optind < 2)
		errx(EXIT_LAUNCH, "-s, -u, -d, a program and its words are "
		    "wanted");
	put(user);
	put(cwd);
	for (i = optind; i < argc; i++)
		put(argv[i]);
	packet.head.pk_words = argc - optind - 1;
	for (i = 0; environ[i] != NULL; i++)
		put(environ[i]);
	packet.head.pk_variables = i;
	packet.head.pk_umask = umask(0);
}

static int
dial(void)
{
	struct sockaddr_un	 sun = { .sun_family = AF_UNIX };
	int			 fd;

	if (strlcpy(sun.sun_path, path, sizeof(sun.sun_path)) >=
	    sizeof(sun.sun_path))
		errx(EXIT_LAUNCH, "%s: too long", path);
	if ((fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) == -1 ||
	    connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1)
		err(EXIT_LAUNCH, "launcher: %s", path);
	return fd;
}

/* With the descriptors that we were given, as many as there are. */
static void
send_packet(int fd)
{
	struct iovec	 iov = { packet.bytes, length };
	union {
		struct cmsghdr	 hdr;
		char		 buf[CMSG_SPACE(LAUNCH_FDS * sizeof(int))];
	} cmsg = { .buf = { 0 } };
	struct msghdr	 mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = cmsg.buf
	};
	int		 fds[LAUNCH_FDS] = { 0 }, n;

	for (n = 0; n < LAUNCH_FDS && n != fd && fcntl(n, F_GETFD) != -1; n++)
		fds[n] = n;
	cmsg.hdr.cmsg_level = SOL_SOCKET;
	cmsg.hdr.cmsg_type = SCM_RIGHTS;
	cmsg.hdr.cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(&cmsg.hdr), fds, n * sizeof(int));
	mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
	if (sendmsg(fd, &mh, MSG_NOSIGNAL) == -1)
		err(EXIT_LAUNCH, "launcher: %s", path);
	/* Whoever is at their other ends is to see when the others close. */
	while (--n >= 0)
		if (n != STDERR_FILENO)
			close(n);
}

/* End as it has ended. */
static int
end(int status)
{
	sigset_t	 set;

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(WTERMSIG(status));
	return EXIT_LAUNCH;
}

/*
 * How it has ended.  If the launcher has not read our word to end it, there is
 * an error first, once.
 */
static int
hear(int fd)
{
	int	 status;
	ssize_t	 n;

	do
		n = recv(fd, &status, sizeof(status), 0);
	while (n == -1 && errno == ECONNRESET);
	if (n != sizeof(status))
		errx(EXIT_LAUNCH, "launcher: it has gone");
	return status;
}

int
ask_run(int argc, char *argv[])
{
	struct signalfd_siginfo	 si;
	struct pollfd		 pfd[2] = {
		{ .events = POLLIN }, { .events = POLLIN }
	};
	sigset_t		 set;

	take(argc, argv);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* Not one of the numbers that are passed on. */
	if ((pfd[0].fd = fcntl(dial(), F_DUPFD_CLOEXEC, 10)) == -1)
		err(EXIT_LAUNCH, "descriptors");
	send_packet(pfd[0].fd);
	if ((pfd[1].fd = signalfd(-1, &set, SFD_CLOEXEC)) == -1)
		err(EXIT_LAUNCH, "signalfd");
	for (;;) {
		if (poll(pfd, 2, -1) == -1)
			err(EXIT_LAUNCH, "poll");
		if (pfd[1].revents != 0 &&
		    read(pfd[1].fd, &si, sizeof(si)) == sizeof(si))
			(void)!send(pfd[0].fd, &(char){ WORD_END }, 1,
			    MSG_NOSIGNAL);
		if (pfd[0].revents != 0)
			return end(hear(pfd[0].fd));
	}
}
