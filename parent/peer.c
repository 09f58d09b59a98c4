/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: does a control client live outside every sandbox?
 * controld cannot look, so it sends us the client's socket, of which we read
 * nothing.  A sandbox has user and network namespaces of its own, so a peer
 * with ours is outside.  In a pod the sandbox shares both with us: there a
 * socket is for those of our own container, who have our pid and mount
 * namespaces too.  Whatever cannot be told is a no.
 */

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD	77	/* Linux 6.5; the headers are older */
#endif

static const char *const	 ns_names[] = { "user", "net", "pid", "mnt" };
#define NS_COUNT	(sizeof(ns_names) / sizeof(ns_names[0]))
#define NS_SANDBOX	2	/* of these every sandbox has its own */
static struct stat		 ns_ours[NS_COUNT];

static int
ns_stat(const char *pid, size_t i, struct stat *st)
{
	char	 path[64];

	snprintf(path, sizeof(path), "/proc/%s/ns/%s", pid, ns_names[i]);
	return stat(path, st);
}

void
peer_init(void)
{
	size_t	 i;

	for (i = 0; i < NS_COUNT; i++)
		if (ns_stat("self", i, &ns_ours[i]) == -1)
			fatal("/proc/self/ns/%s: cannot tell sandboxes apart",
			    ns_names[i]);
}

/* NULL if it has the first of our namespaces, or what there is to say. */
static const char *
stranger(pid_t pid, size_t count)
{
	struct stat	 st;
	char		 text[16];
	size_t		 i;

	snprintf(text, sizeof(text), "%d", (int)pid);
	for (i = 0; i < count; i++) {
		if (ns_stat(text, i, &st) == -1)
			return errno == EACCES ? "its namespaces are not "
			    "for us to see, as it is another user's" :
			    strerror(errno);
		if (st.st_dev != ns_ours[i].st_dev ||
		    st.st_ino != ns_ours[i].st_ino)
			return i < NS_SANDBOX ? "not outside every sandbox" :
			    "not in our container";
	}
	return NULL;
}

/*
 * Hold the process that connected, so that what we read under its number is
 * about it.  Kernels before 6.5 can only open the number.
 */
static int
peer_hold(int fd, pid_t pid)
{
	socklen_t	 len = sizeof(int);
	int		 pidfd;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
		return pidfd;
	if (errno != ENOPROTOOPT)
		return -1;
	return syscall(SYS_pidfd_open, pid, 0);
}

/*
 * A process that has ended may have left its number to another.  A signal, as
 * for a child that dies just then, also ends a poll that does not wait.
 */
static bool
peer_ended(int pidfd)
{
	struct pollfd	 pfd = { .fd = pidfd, .events = POLLIN };
	int		 n;

	do
		n = poll(&pfd, 1, 0);
	while (n == -1 && errno == EINTR);
	return n != 0;
}

/* NULL if it is welcome, or what there is against it. */
static const char *
peer_doubt(int fd, const struct ucred *cred, bool own)
{
	const char	*why;
	int		 pidfd;

	if (cred->pid <= 0)
		return "its process is not for us to see";
	if ((pidfd = peer_hold(fd, cred->pid)) == -1)
		return strerror(errno);
	why = stranger(cred->pid, own ? NS_COUNT : NS_SANDBOX);
	if (why == NULL && proc_owns_uid(cred->uid))
		why = "one of our own processes";
	if (why == NULL && peer_ended(pidfd))
		why = "it has ended";
	close(pidfd);
	return why;
}

/* The groups that it had when it connected; none of too many. */
static void
peer_groups(int fd, struct peer *pe)
{
	socklen_t	 len = sizeof(pe->pe_groups);

	pe->pe_ngroups = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, pe->pe_groups,
	    &len) == 0)
		pe->pe_ngroups = len / sizeof(pe->pe_groups[0]);
}

/* Whose connection it is, by the kernel's word; nobody's if that is false. */
bool
peer_who(int fd, struct peer *pe)
{
	struct ucred	 cred;
	socklen_t	 len = sizeof(cred);

	pe->pe_uid = (uid_t)-1;
	pe->pe_gid = (gid_t)-1;
	pe->pe_pid = 0;
	pe->pe_ngroups = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1 ||
	    cred.pid <= 0)
		return false;
	pe->pe_uid = cred.uid;
	pe->pe_gid = cred.gid;
	pe->pe_pid = cred.pid;
	peer_groups(fd, pe);
	return true;
}

/* Who it is, if it is welcome; with own, in our container only. */
bool
peer_welcome(int fd, struct peer *pe, bool own)
{
	struct ucred	 cred;
	socklen_t	 len = sizeof(cred);
	const char	*why;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1) {
		log_warn("control client: who it is cannot be told, hung up");
		return false;
	}
	pe->pe_uid = cred.uid;
	pe->pe_gid = cred.gid;
	pe->pe_pid = cred.pid;
	if ((why = peer_doubt(fd, &cred, own)) != NULL)
		log_info("control client pid %d uid %u: %s, hung up",
		    (int)cred.pid, cred.uid, why);
	return why == NULL;
}

/* What the process calls itself, by its own word; "" of one that has ended. */
void
peer_program(int fd, const struct peer *pe, char name[PROGRAM_LEN + 1])
{
	char	 path[64];
	ssize_t	 n = -1;
	int	 pidfd, file;

	name[0] = '\0';
	if (pe->pe_pid <= 0 || (pidfd = peer_hold(fd, pe->pe_pid)) == -1)
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pe->pe_pid);
	if ((file = open(path, O_RDONLY | O_CLOEXEC)) != -1) {
		n = read(file, name, PROGRAM_LEN);
		close(file);
	}
	if (n < 0 || peer_ended(pidfd))
		n = 0;
	name[n] = '\0';
	name[strcspn(name, "\n")] = '\0';
	close(pidfd);
}
