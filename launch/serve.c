/* SPDX-License-Identifier: ISC */

/*
 * egressd-launch, as systemd starts it for each connection: with rights to
 * become another user, in a control group of its own.  Whoever is connected is
 * the parent's child, and as root; that is looked at, and then believed.  The
 * sandbox that is started here gets nothing of the connection.
 */

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"
#include "launch.h"
#include "packet.h"

#define FD_FREE		10	/* from here on none is passed */

static union {
	struct packet	 head;
	char		 bytes[PACKET_MAX];
} packet;
static size_t		 length, place = sizeof(packet.head);
static int		 fds[LAUNCH_FDS], nfds;
static struct launch	 la;
static bool		 limited;	/* by a control group */

/* ---- what is wanted ---- */

static void
check_peer(int fd)
{
	struct ucred	 uc;
	socklen_t	 len = sizeof(uc);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &uc, &len) == -1)
		err(EXIT_LAUNCH, "who is connected");
	if (uc.uid != geteuid())
		errx(EXIT_LAUNCH, "user %u is connected", uc.uid);
}

static char *
take(void)
{
	char	*text = packet.bytes + place;

	if (place >= length)
		errx(EXIT_LAUNCH, "a packet ends early");
	place += strlen(text) + 1;
	return text;
}

static char **
take_list(uint32_t n, size_t room)
{
	char		**list;
	uint32_t	  i;

	if (n > length || (list = calloc(n + room + 1, sizeof(*list))) == NULL)
		errx(EXIT_LAUNCH, "%u words", n);
	for (i = 0; i < n; i++)
		list[room + i] = take();
	return list;
}

static void
take_packet(int fd)
{
	struct iovec	 iov = { packet.bytes, sizeof(packet) };
	union {
		struct cmsghdr	 hdr;
		char		 buf[CMSG_SPACE(sizeof(fds))];
	} cmsg;
	struct msghdr	 mh = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = cmsg.buf, .msg_controllen = sizeof(cmsg.buf)
	};
	ssize_t		 n;

	if ((n = recvmsg(fd, &mh, MSG_CMSG_CLOEXEC)) == -1)
		err(EXIT_LAUNCH, "recvmsg");
	if (n == 0)
		exit(0);
	length = n;
	if (length <= sizeof(packet.head) || packet.bytes[length - 1] != '\0' ||
	    mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
	    CMSG_FIRSTHDR(&mh) == NULL)
		errx(EXIT_LAUNCH, "a packet of %zu bytes is not whole", length);
	nfds = (cmsg.hdr.cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(&cmsg.hdr), nfds * sizeof(int));
	if (nfds <= STDERR_FILENO)
		errx(EXIT_LAUNCH, "%d descriptors", nfds);
	/* From here on errors are what the client is told. */
	if (dup2(fds[STDERR_FILENO], STDERR_FILENO) == -1)
		err(EXIT_LAUNCH, "standard error");
	la.la_data = packet.head.pk_data;
	la.la_memory = packet.head.pk_memory;
	la.la_processes = packet.head.pk_processes;
	la.la_user = take();
	la.la_cwd = take();
	la.la_program = take();
	la.la_argv = take_list(packet.head.pk_words, 1);
	la.la_envp = take_list(packet.head.pk_variables, 0);
}

/* ---- the new process ---- */

static void
take_descriptors(void)
{
	int	 i, null;

	for (i = 0; i < nfds; i++)
		if ((fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_FREE)) == -1)
			err(EXIT_LAUNCH, "descriptors");
	for (i = 0; i < nfds; i++)
		if (dup2(fds[i], i) == -1)
			err(EXIT_LAUNCH, "descriptors");
	/* That of a sandbox was for our word. */
	if (nfds == LAUNCH_FDS && ((null = open("/dev/null",
	    O_RDWR | O_CLOEXEC)) == -1 || dup2(null, STDOUT_FILENO) == -1))
		err(EXIT_LAUNCH, "/dev/null");
	if (close_range(nfds, UINT_MAX, 0) == -1)
		err(EXIT_LAUNCH, "close_range");
}

static void
take_signals(void)
{
	sigset_t	 none;
	int		 sig;

	for (sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void
become(const char *user)
{
	const struct passwd	*pw;

	errno = 0;
	if ((pw = getpwnam(user)) == NULL)
		errx(EXIT_LAUNCH, "%s: no such user", user);
	if (geteuid() != 0 && pw->pw_uid == geteuid())
		return;
	if (pw->pw_uid == 0)
		errx(EXIT_LAUNCH, "%s is root", user);
	if (initgroups(pw->pw_name, pw->pw_gid) == -1 ||
	    setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) == -1 ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) == -1)
		err(EXIT_LAUNCH, "%s", user);
}

/* Without a control group each process has a limit of its own. */
static char **
words(void)
{
	char	**argv = la.la_argv;	/* the first is free */

	if (limited || la.la_data == 0)
		return argv + 1;
	argv[0] = argv[1];
	if (asprintf(&argv[1], "-lmemory=%llu",
	    (unsigned long long)la.la_data) == -1)
		err(EXIT_LAUNCH, "arguments");
	return argv;
}

static void __attribute__((__noreturn__))
start(void)
{
	setsid();
	take_signals();
	take_descriptors();
	umask(packet.head.pk_umask);
	become(la.la_user);
	if (chdir(la.la_cwd) == -1)
		err(EXIT_LAUNCH, "%s", la.la_cwd);
	/* After the change of user, which clears the first. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		err(EXIT_LAUNCH, "prctl");
	execve(la.la_program, words(), la.la_envp);
	err(EXIT_LAUNCH, "%s", la.la_program);
}

/* ---- its life ---- */

static void
tell(int fd, int status)
{
	(void)!send(fd, &status, sizeof(status), MSG_NOSIGNAL);
}

/* Into a control group, if one is delegated; -1 if that cannot be. */
static pid_t
fork_limited(void)
{
	enum cgroup_use	 use = cgroup_begin();
	struct cgroup	*cg = NULL;
	char		 word;

	limited = use == CGROUP_LIMIT;
	if (use != CGROUP_NONE && (cg = cgroup_new(limited ? la.la_memory : 0,
	    limited ? la.la_processes : 0)) == NULL)
		return -1;
	word = limited ? LAUNCH_CGROUP : LAUNCH_RLIMIT;
	if (nfds == LAUNCH_FDS)
		(void)!write(fds[STDOUT_FILENO], &word, 1);
	return cgroup_fork(cg);
}

/* Whether whoever is connected has hung up. */
static bool
hear(int fd, pid_t pid)
{
	char	 word;

	if (recv(fd, &word, 1, 0) != 1)
		return true;
	if (word == WORD_END)
		kill(pid, SIGTERM);
	return false;
}

/* True when the process has ended, how is in *status. */
static bool
reap(int signals, pid_t pid, int *status)
{
	struct signalfd_siginfo	 si;

	if (read(signals, &si, sizeof(si)) == -1)
		err(EXIT_LAUNCH, "signalfd");
	return waitpid(pid, status, WNOHANG) == pid;
}

static void
stay(int fd, int signals, pid_t pid)
{
	struct pollfd	 pfd[2] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = signals, .events = POLLIN }
	};
	int		 status;

	for (;;) {
		if (poll(pfd, 2, -1) == -1)
			err(EXIT_LAUNCH, "poll");
		if (pfd[1].revents != 0 && reap(signals, pid, &status)) {
			/* Who hears of it may rely on that all are gone. */
			cgroup_end();
			tell(fd, status);
			return;
		}
		if (pfd[0].revents != 0 && hear(fd, pid)) {
			kill(pid, SIGKILL);
			cgroup_end();
			return;
		}
	}
}

int
serve_run(int fd)
{
	sigset_t	 set;
	pid_t		 pid;
	int		 signals;

	/* Away from the numbers that a sandbox has. */
	if ((fd = fcntl(fd, F_DUPFD_CLOEXEC, FD_FREE)) == -1)
		err(EXIT_LAUNCH, "descriptors");
	check_peer(fd);
	take_packet(fd);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if ((signals = signalfd(-1, &set, SFD_CLOEXEC)) == -1)
		err(EXIT_LAUNCH, "signalfd");
	if ((pid = fork_limited()) == -1) {
		warn("control group and process");
		tell(fd, W_EXITCODE(EXIT_LAUNCH, 0));
		return EXIT_LAUNCH;
	}
	if (pid == 0)
		start();
	while (--nfds >= 0)
		close(fds[nfds]);
	/* The log ends when the sandbox has, and not when we do. */
	close(STDERR_FILENO);
	stay(fd, signals, pid);
	return 0;
}
