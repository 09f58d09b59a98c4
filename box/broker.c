/* SPDX-License-Identifier: ISC */

/*
 * A process beside box runs this while the command does: connect(2) of all
 * processes of the sandbox.
 *
 *	command: connect ---> seccomp ---> broker: looks, connects, answers
 *
 * A Unix socket that has a name in the file system belongs to no network: one
 * of the host's in an exposed directory, an agent's or an editor's, would be
 * within reach, also one that is made long after the start, also on a
 * read-only mount, and who listens there could pass descriptors in.  No mount
 * and no filter tells a name of theirs from a name of the sandbox's own; so
 * each connection is made here, to a socket that was looked at (broker_unix.c).
 *
 * The filter cannot see what kind of socket a descriptor is, so those of TCP
 * come by, too.  Letting the kernel go on with them after a look would let a
 * second thread put a Unix socket into the place of what was looked at.
 *
 * The broker has the caller's uid and no capability; a process of the sandbox
 * is one that it may look into because it owns the user namespace above.  It
 * is in the sandbox's network and the host's file system.  If it dies, connect
 * fails.
 */

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <linux/seccomp.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "broker.h"

#define BROKER_FD	(STDERR_FILENO + 1)
#define WORKERS_MAX	64		/* connections that block at once */
#define STACK_SIZE	(256 * 1024)
#define MADE_MAX	256		/* connections that we remember */
#define MADE_ADDR	128		/* bytes of an address */

/* Headers in use do not have them: Linux 6.9 and 6.6. */
#define THREAD_OF		O_EXCL		/* PIDFD_THREAD */
#define NOTIF_SET_FLAGS		SECCOMP_IOW(4, __u64)
#define NOTIF_SYNC_WAKE_UP	1UL

static int		broker_listener;
static atomic_int	broker_idle;
static const char	*broker_home;

/* 0 if the call still waits for its answer, so its pid was not reused. */
static int
broker_check(uint64_t id)
{
	return ioctl(broker_listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id);
}

/*
 * The last connections that were made, by socket and address.  A signal may
 * interrupt a call while it is answered, and the kernel repeats it: the second
 * is told what the first one did, and not that there is a connection already.
 */
struct made {
	ino_t		 md_socket;
	socklen_t	 md_len;
	char		 md_addr[MADE_ADDR];
};

static pthread_mutex_t	made_lock = PTHREAD_MUTEX_INITIALIZER;
static struct made	made[MADE_MAX];
static unsigned int	made_next;

/* Remember a connection; 1 if the same was made before. */
static int
made_add(const struct broker_call *bc)
{
	struct made	 md;
	struct stat	 st;
	size_t		 i;
	int		 found = 0;

	if (fstat(bc->bc_fd, &st) == -1 || bc->bc_len > sizeof(md.md_addr))
		return 0;
	/* memcmp(3) compares the padding, too. */
	memset(&md, 0, sizeof(md));
	md.md_socket = st.st_ino;
	md.md_len = bc->bc_len;
	memcpy(md.md_addr, &bc->bc_addr, bc->bc_len);
	pthread_mutex_lock(&made_lock);
	for (i = 0; i < MADE_MAX && !found; i++)
		found = memcmp(&made[i], &md, sizeof(md)) == 0;
	if (!found)
		made[made_next++ % MADE_MAX] = md;
	pthread_mutex_unlock(&made_lock);
	return found;
}

static void
broker_answer(uint64_t id, int error)
{
	struct seccomp_notif_resp	 resp = { .id = id, .error = -error };

	/* Fails if the call was interrupted meanwhile. */
	(void)ioctl(broker_listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

/* The pid of the process that a thread is in. */
static pid_t
broker_process(pid_t tid)
{
	char	 path[64], line[256];
	FILE	*fp;
	pid_t	 pid = -1;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	if ((fp = fopen(path, "re")) == NULL)
		return -1;
	while (pid == -1 && fgets(line, sizeof(line), fp) != NULL)
		if (sscanf(line, "Tgid: %d", &pid) != 1)
			pid = -1;
	fclose(fp);
	return pid;
}

/* A duplicate of a descriptor of that thread's, or -1. */
static int
broker_take(pid_t tid, int number)
{
	int	 error, fd, pidfd;

	if ((pidfd = syscall(SYS_pidfd_open, tid, THREAD_OF)) == -1 &&
	    (pidfd = syscall(SYS_pidfd_open, tid, 0)) == -1 &&
	    (pidfd = syscall(SYS_pidfd_open, broker_process(tid), 0)) == -1)
		return -1;
	fd = syscall(SYS_pidfd_getfd, pidfd, number, 0);
	error = errno;
	close(pidfd);
	errno = error;
	return fd;
}

static int
broker_read(pid_t tid, uint64_t from, void *to, size_t len)
{
	struct iovec	 local = { to, len };
	struct iovec	 remote = { (void *)(uintptr_t)from, len };

	if (process_vm_readv(tid, &local, 1, &remote, 1, 0) !=
	    (ssize_t)len) {
		errno = EFAULT;
		return -1;
	}
	return 0;
}

/* The address, from memory that others may be writing to: once. */
static int
broker_address(struct broker_call *bc, const struct seccomp_data *data)
{
	int	 domain, len = (int)data->args[2];

	if (len < 0 || (size_t)len > sizeof(bc->bc_addr)) {
		errno = EINVAL;
		return -1;
	}
	bc->bc_len = len;
	if (broker_read(bc->bc_tid, data->args[1], &bc->bc_addr, len) == -1)
		return -1;
	bc->bc_again = made_add(bc);
	len = sizeof(domain);
	if (getsockopt(bc->bc_fd, SOL_SOCKET, SO_DOMAIN, &domain,
	    (socklen_t *)&len) == -1)
		return -1;
	return domain == AF_UNIX ? broker_unix(bc) : 0;
}

/* Make the connection for the caller; 0 or an errno. */
static int
broker_connect(const struct seccomp_notif *req)
{
	struct broker_call	 bc = {
		.bc_tid = req->pid, .bc_target = -1, .bc_home = broker_home
	};
	int			 error = 0;

	if ((bc.bc_fd = broker_take(req->pid, (int)req->data.args[0])) == -1)
		return errno;
	if (broker_address(&bc, &req->data) == -1 ||
	    broker_check(req->id) == -1 || connect(bc.bc_fd,
	    (struct sockaddr *)&bc.bc_addr, bc.bc_len) == -1)
		error = errno;
	if (bc.bc_again && error == EISCONN)
		error = 0;
	else if (bc.bc_again && error == EALREADY)
		error = EINPROGRESS;
	if (bc.bc_target != -1)
		close(bc.bc_target);
	close(bc.bc_fd);
	return error;
}

/* The listener of the filter, sent by the process that installed it. */
static int
broker_receive(void)
{
	union {
		struct cmsghdr	 hdr;
		char		 buf[CMSG_SPACE(sizeof(int))];
	}		 control;
	char		 byte;
	struct iovec	 iov = { &byte, 1 };
	struct msghdr	 msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr	*cmsg;
	int		 fd;

	if (recvmsg(BROKER_FD, &msg, MSG_CMSG_CLOEXEC) != 1 ||
	    (cmsg = CMSG_FIRSTHDR(&msg)) == NULL ||
	    cmsg->cmsg_type != SCM_RIGHTS)
		_exit(0);
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	return fd;
}

static void	 broker_hire(void);

/* A worker: a connection may block, so there is always another that waits. */
static void *
broker_work(void *arg)
{
	union {
		struct seccomp_notif	 req;
		char			 room[256];	/* for later kernels */
	}	 buf;

	(void)arg;
	for (;;) {
		memset(&buf, 0, sizeof(buf));
		if (ioctl(broker_listener, SECCOMP_IOCTL_NOTIF_RECV,
		    &buf.req) == -1) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			_exit(0);
		}
		if (atomic_fetch_sub(&broker_idle, 1) == 1)
			broker_hire();
		broker_answer(buf.req.id, broker_connect(&buf.req));
		atomic_fetch_add(&broker_idle, 1);
	}
}

/* Start another worker, up to a number that only abuse reaches. */
static void
broker_hire(void)
{
	static atomic_int	 hired;
	pthread_attr_t		 attr;
	pthread_t		 thread;

	if (atomic_fetch_add(&hired, 1) >= WORKERS_MAX)
		return;
	atomic_fetch_add(&broker_idle, 1);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	if (pthread_create(&thread, &attr, broker_work, NULL) != 0)
		atomic_fetch_sub(&broker_idle, 1);
	pthread_attr_destroy(&attr);
}

static void __attribute__((__noreturn__))
broker_run(void)
{
	broker_listener = broker_receive();
	close(BROKER_FD);
	/* Optional: the kernel wakes us on the caller's processor. */
	(void)ioctl(broker_listener, NOTIF_SET_FLAGS, NOTIF_SYNC_WAKE_UP);
	broker_idle = 1;
	broker_work(NULL);
	_exit(0);
}

/*
 * To be called before box makes the sandbox's set of process numbers.  The
 * terminal's signals are not the broker's, and of our descriptors it has none.
 */
void
broker_start(struct box *bx)
{
	pid_t	 box = getpid();
	int	 null, pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1)
		err(BOX_FAILED, "socketpair");
	if ((bx->bx_broker = fork()) == -1)
		err(BOX_FAILED, "fork");
	if (bx->bx_broker != 0) {
		bx->bx_brokerfd = pair[0];
		close(pair[1]);
		return;
	}
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 || setsid() == -1 ||
	    (null = open("/dev/null", O_RDWR)) == -1 ||
	    dup2(null, STDIN_FILENO) == -1 || dup2(null, STDOUT_FILENO) == -1)
		err(BOX_FAILED, "broker");
	ns_drop();
	if (dup2(null, STDERR_FILENO) == -1 ||
	    dup2(pair[1], BROKER_FD) == -1 ||
	    close_range(BROKER_FD + 1, UINT_MAX, 0) == -1 || getppid() != box)
		_exit(BOX_FAILED);
	broker_home = bx->bx_home;
	broker_run();
}

/* In the command's process: the broker has to answer before it is needed. */
void
broker_attend(const struct box *bx, int listener)
{
	union {
		struct cmsghdr	 hdr;
		char		 buf[CMSG_SPACE(sizeof(int))];
	}		 control = { 0 };
	struct iovec	 iov = { "", 1 };
	struct msghdr	 msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control)
	};

	control.hdr.cmsg_len = CMSG_LEN(sizeof(int));
	control.hdr.cmsg_level = SOL_SOCKET;
	control.hdr.cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(&control.hdr), &listener, sizeof(listener));
	if (sendmsg(bx->bx_brokerfd, &msg, MSG_NOSIGNAL) != 1)
		err(BOX_FAILED, "broker");
	close(listener);
	close(bx->bx_brokerfd);
	/* The broker may look into what exec(2) runs; we came by fork(2). */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == -1)
		err(BOX_FAILED, "broker");
	if (connect(-1, NULL, 0) != -1 || errno != EBADF)
		err(BOX_FAILED, "connections cannot be looked at "
		    "(see kernel.yama.ptrace_scope, egressctl run -U)");
}

/* The broker must not outlive box. */
void
broker_stop(struct box *bx)
{
	if (bx->bx_broker == 0)
		return;
	(void)kill(bx->bx_broker, SIGKILL);
	while (waitpid(bx->bx_broker, NULL, 0) == -1 && errno == EINTR)
		;
}
