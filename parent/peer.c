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
 * The parent runs this: does a control client live outside every sandbox?
 * policyd cannot look, so it sends us the client's socket, of which we read
 * nothing.  A sandbox has user and network namespaces of its own, so a peer
 * with ours is outside.  Whatever cannot be told is a no.
 */

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD	77	/* Linux 6.5; the headers are older */
#endif

static const char *const	 ns_names[] = { "user", "net" };
#define NS_COUNT	(sizeof(ns_names) / sizeof(ns_names[0]))
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

/* NULL if it has our namespaces, or what there is to say. */
static const char *
stranger(pid_t pid)
{
	struct stat	 st;
	char		 text[16];
	size_t		 i;

	snprintf(text, sizeof(text), "%d", (int)pid);
	for (i = 0; i < NS_COUNT; i++) {
		if (ns_stat(text, i, &st) == -1)
			return errno == EACCES ? "its namespaces are not "
			    "for us to see, as it is another user's" :
			    strerror(errno);
		if (st.st_dev != ns_ours[i].st_dev ||
		    st.st_ino != ns_ours[i].st_ino)
			return "not outside every sandbox";
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

bool
peer_welcome(int fd)
{
	struct ucred	 cred;
	struct pollfd	 pfd = { .events = POLLIN };
	socklen_t	 len = sizeof(cred);
	const char	*why;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1 ||
	    cred.pid <= 0 || (pfd.fd = peer_hold(fd, cred.pid)) == -1)
		return false;
	why = stranger(cred.pid);
	if (why == NULL && proc_owns_uid(cred.uid))
		why = "one of our own processes";
	/* A process that has ended meanwhile may have left its number. */
	if (why == NULL && poll(&pfd, 1, 0) != 0)
		why = "it has ended";
	close(pfd.fd);
	if (why != NULL)
		log_info("control client pid %d uid %u: %s, hung up",
		    (int)cred.pid, cred.uid, why);
	return why == NULL;
}
