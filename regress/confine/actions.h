/* SPDX-License-Identifier: ISC */

/*
 * What t_try.c attempts: each forbidden thing is a call with its arguments,
 * or a function where one call does not say it.  Arguments are chosen so that
 * without confinement nothing worse than an error comes of it.
 */

#ifndef ACTIONS_H
#define ACTIONS_H

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <linux/capability.h>
#include <linux/sched.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { POLICYD = 1, RECORDER = 2, DIALER = 4, DECIDERD = 8, K8SD = 16,
    ENGINE = 32, CONTROLD = 64, PODD = 128 };

#ifdef SANITIZE
#define SANITIZERS	(POLICYD | RECORDER | DIALER | DECIDERD | K8SD | \
			ENGINE | CONTROLD | PODD)
#else
#define SANITIZERS	0
#endif

/* Descriptors have fixed numbers, so that a table can name them. */
enum {
	FD_DIR = 40,	/* the world: a directory that holds "file" */
	FD_FILE,	/* that file */
	FD_EXE,		/* this program */
	FD_LISTEN,	/* of TCP, on loopback */
	FD_ABSTRACT,	/* the same, an abstract Unix socket */
	FD_MARKS,	/* a pipe: what was not stopped writes here */
	FD_MARK,
	FD_TCP,		/* from here on new for each attempt */
	FD_UDP,
	FD_UNIX,
	FD_PAIR,
	FD_PAIR2,
	FD_EPOLL,
	FD_PIDFD,
	FD_REPORT,
};

#define ARG_TEST	-770001	/* the pid of the test */
#define ARG_SLEEPER	-770002	/* of a process with the role's uid */

#define LEAVES_MARK	0x01	/* if it is not stopped */
#define WITH_SLEEPER	0x02
#define MAY_FAULT	0x04	/* kernels differ in how they refuse it */
#define DIES_MUTE	0x08	/* perhaps: the signal may be blocked */

struct action {
	const char	 *ac_name;
	long		  ac_call;
	long		  ac_args[6];
	long		(*ac_do)(void);		/* if more than one call */
	unsigned int	  ac_may;		/* roles that may */
	unsigned int	  ac_flags;
	int		  ac_landlock;		/* its version that stops it */
};

static struct sockaddr_in	 addr_tcp;	/* of FD_LISTEN */
static struct sockaddr_un	 addr_abstract;	/* of FD_ABSTRACT */
static pid_t			 test_pid, sleeper;
static char			 page[8192] __attribute__((__aligned__(4096)));

/* ---- what a single call cannot say ---- */

static void
mark(void)
{
	if (write(FD_MARK, "!", 1) != 1)
		_exit(1);
}

/* Both returns of a call that makes a process come here. */
static long
made_process(long pid)
{
	if (pid == 0) {
		mark();
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return pid;
}

static long
do_fork(void)
{
	return made_process(fork());
}

static long
do_vfork(void)
{
	return made_process(vfork());
}

static long
do_clone(void)
{
	return made_process(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

static long
do_clone3(void)
{
	struct clone_args	 ca = { .exit_signal = SIGCHLD };

	return made_process(syscall(SYS_clone3, &ca, sizeof(ca)));
}

static const char	*exec_argv[] = { "t_try", "mark", NULL };
static const char	*exec_envp[] = { NULL };

static long
do_execveat(void)
{
	return syscall(SYS_execveat, FD_EXE, "", exec_argv, exec_envp,
	    AT_EMPTY_PATH);
}

/* Data in the first packet: sendmsg that connects. */
static long
do_fastopen(void)
{
	struct iovec	 iov = { .iov_base = page, .iov_len = 1 };
	struct msghdr	 msg = { .msg_name = &addr_tcp,
	    .msg_namelen = sizeof(addr_tcp), .msg_iov = &iov,
	    .msg_iovlen = 1 };

	return sendmsg(FD_TCP, &msg, MSG_FASTOPEN | MSG_DONTWAIT);
}

static long
do_vm_readv(void)
{
	char		 buf[16];
	struct iovec	 here = { .iov_base = buf, .iov_len = sizeof(buf) };
	struct iovec	 there = { .iov_base = page, .iov_len = sizeof(buf) };

	return syscall(SYS_process_vm_readv, test_pid, &here, 1, &there, 1, 0);
}

static long
do_capset(void)
{
	struct __user_cap_header_struct	 hdr = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct	 none[2] = { { 0, 0, 0 } };

	return syscall(SYS_capset, &hdr, none);
}

/* Whoever blocks the signal dies of it all the same. */
static long
do_blocked_trap(void)
{
	sigset_t	 all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	return syscall(SYS_setsid);
}

#ifdef __x86_64__
/* getpid of another machine, whose number is a permitted call of ours. */
static long
do_int80(void)
{
	long	 rv;

	__asm__ volatile ("int $0x80" : "=a" (rv) : "a" (20L) : "memory");
	return rv < 0 ? -1 : rv;
}
#endif

/* ---- the table ---- */

#define P(x)	((long)(x))
#define CALL(name, call, ...)						\
	.ac_name = name, .ac_call = SYS_##call, .ac_args = { __VA_ARGS__ }
#define DO(name, fn)	.ac_name = name, .ac_do = fn
#define MARKS		.ac_flags = LEAVES_MARK
#define LANDLOCK(n)	.ac_landlock = n
#define MAY(x)		.ac_may = x

static struct iovec			 no_iov;
static struct timespec			 no_time;
static struct rlimit			 limit_none = { 0, 0 };
static struct f_owner_ex		 no_owner;
static siginfo_t			 queued = { .si_code = SI_QUEUE };

static const struct action actions[] = {
	/* files, through a directory that is open */
	{ CALL("open_read", openat, FD_DIR, P("file"), O_RDONLY),
	    LANDLOCK(1) },
	{ CALL("open_write", openat, FD_DIR, P("file"), O_WRONLY),
	    LANDLOCK(1) },
	{ CALL("open_truncate", openat, FD_DIR, P("file"), O_RDONLY |
	    O_TRUNC), MARKS, LANDLOCK(1) },
	{ CALL("open_create", openat, FD_DIR, P("new"), O_WRONLY | O_CREAT,
	    0600), MARKS, LANDLOCK(1) },
	{ CALL("open_tmpfile", openat, FD_DIR, P("."), O_RDWR | O_TMPFILE,
	    0600), LANDLOCK(1) },
	{ CALL("open_directory", openat, FD_DIR, P("."), O_RDONLY |
	    O_DIRECTORY), LANDLOCK(1) },
	{ CALL("open_absolute", openat, AT_FDCWD, P("/etc/passwd"), O_RDONLY),
	    LANDLOCK(1) },
	{ CALL("openat2", openat2, FD_DIR, P("file"), P(page), 24),
	    LANDLOCK(1) },
	{ CALL("stat", newfstatat, FD_DIR, P("file"), P(page), 0) },
	{ CALL("statx", statx, FD_DIR, P("file"), 0, 0xfff, P(page)) },
	{ CALL("access", faccessat, FD_DIR, P("file"), R_OK) },
	{ CALL("getdents", getdents64, FD_DIR, P(page), sizeof(page)) },
	{ CALL("unlink", unlinkat, FD_DIR, P("file"), 0), MARKS, LANDLOCK(1) },
	{ CALL("mkdir", mkdirat, FD_DIR, P("new"), 0700), MARKS, LANDLOCK(1) },
	{ CALL("mknod", mknodat, FD_DIR, P("new"), S_IFIFO | 0600, 0), MARKS,
	    LANDLOCK(1) },
	{ CALL("rename", renameat2, FD_DIR, P("file"), FD_DIR, P("new"), 0),
	    MARKS, LANDLOCK(1) },
	{ CALL("link", linkat, FD_DIR, P("file"), FD_DIR, P("new"), 0), MARKS,
	    LANDLOCK(1) },
	{ CALL("symlink", symlinkat, P("file"), FD_DIR, P("new")), MARKS,
	    LANDLOCK(1) },
	{ CALL("chmod", fchmodat, FD_DIR, P("file"), 0777), MARKS },
	{ CALL("fchmod", fchmod, FD_FILE, 0777), MARKS },
	{ CALL("chown", fchownat, FD_DIR, P("file"), 1, 1, 0), MARKS },
	{ CALL("utimes", utimensat, FD_DIR, P("file"), 0, 0), MARKS },
	{ CALL("setxattr", fsetxattr, FD_FILE, P("user.x"), P("x"), 1, 0) },
	{ CALL("chdir", chdir, P("/")) },
	{ CALL("fchdir", fchdir, FD_DIR) },
	{ CALL("open_by_handle_at", open_by_handle_at, FD_DIR, 0, 0) },
	{ CALL("name_to_handle_at", name_to_handle_at, FD_DIR, P("file"), 0, 0,
	    0) },
	{ CALL("inotify", inotify_init1, 0) },
	{ CALL("fanotify", fanotify_init, ~0, 0) },
	{ CALL("flock", flock, FD_FILE, 8) },
	{ CALL("fallocate", fallocate, FD_FILE, 0, 0, 4096), MARKS },
	{ CALL("pwrite", pwrite64, FD_FILE, P("evil"), 4, 0), MARKS,
	    MAY(RECORDER) },
	{ CALL("fallocate.aside", fallocate, FD_FILE, 1, 0, 4096),
	    MAY(RECORDER) },
	{ CALL("fallocate.hole", fallocate, FD_FILE, 3, 0, 4096), MARKS,
	    MAY(RECORDER) },
	{ CALL("fallocate.collapse", fallocate, FD_FILE, 8, 0, 4096), MARKS },
	{ CALL("fstatfs", fstatfs, FD_FILE, P(page)), MAY(RECORDER) },
	{ CALL("sendfile", sendfile, FD_MARK, FD_FILE, 0, 1), MARKS },
	{ CALL("splice", splice, FD_FILE, 0, FD_MARK, 0, 1, 0), MARKS },
	{ CALL("pread", pread64, FD_FILE, P(page), 4, 0), MAY(RECORDER) },
	{ CALL("lseek", lseek, FD_FILE, 0, SEEK_END), MAY(RECORDER) },
	{ CALL("ftruncate", ftruncate, FD_FILE, 4), MAY(RECORDER) },
	{ CALL("fdatasync", fdatasync, FD_FILE), MAY(RECORDER) },
	/* file systems and namespaces */
	{ CALL("mount", mount, 0, 0, P("none"), MS_BIND, 0) },
	{ CALL("umount", umount2, 0, 0) },
	{ CALL("fsopen", fsopen, P("none"), 0) },
	{ CALL("pivot_root", pivot_root, 0, 0) },
	{ CALL("chroot", chroot, P("/")) },
	{ CALL("unshare", unshare, CLONE_NEWUSER) },
	{ CALL("setns", setns, FD_FILE, 0) },
	/* sockets, and what can be done with one that is there */
	{ CALL("socket_inet", socket, AF_INET, SOCK_STREAM, 0),
	    MAY(DECIDERD | K8SD) },
	{ CALL("socket_inet6", socket, AF_INET6, SOCK_STREAM, 0),
	    MAY(DECIDERD | K8SD) },
	{ CALL("socket_udp", socket, AF_INET, SOCK_DGRAM, 0),
	    MAY(DECIDERD | K8SD) },
	{ CALL("socket_modes", socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0), MAY(DECIDERD | K8SD) },
	{ CALL("socket_udp_modes", socket, AF_INET6, SOCK_DGRAM |
	    SOCK_CLOEXEC, 0), MAY(DECIDERD | K8SD) },
	{ CALL("socket_raw", socket, AF_INET, SOCK_RAW, 1) },
	{ CALL("socket_raw_modes", socket, AF_INET, SOCK_RAW | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 1) },
	{ CALL("socket_high_bits", socket, AF_INET, SOCK_STREAM | 1L << 32,
	    0) },
	{ CALL("socket_unix", socket, AF_UNIX, SOCK_STREAM, 0) },
	{ CALL("socket_netlink", socket, AF_NETLINK, SOCK_RAW, 0) },
	{ CALL("socket_packet", socket, AF_PACKET, SOCK_RAW, 0) },
	{ CALL("socket_vsock", socket, 40, SOCK_STREAM, 0) },
	{ CALL("socketpair", socketpair, AF_UNIX, SOCK_STREAM, 0, P(page)),
	    MAY(K8SD) },
	{ CALL("socketpair_tipc", socketpair, AF_TIPC, SOCK_STREAM, 0,
	    P(page)) },
	{ CALL("connect_tcp", connect, FD_TCP, P(&addr_tcp),
	    sizeof(addr_tcp)), MARKS, LANDLOCK(4),
	    MAY(DIALER | DECIDERD | K8SD) },
	{ DO("connect_sendmsg", do_fastopen), MARKS },
	{ CALL("connect_sendto", sendto, FD_TCP, P(page), 1, MSG_FASTOPEN |
	    MSG_DONTWAIT, P(&addr_tcp), sizeof(addr_tcp)), MARKS },
	{ CALL("connect_udp", connect, FD_UDP, P(&addr_tcp),
	    sizeof(addr_tcp)), MAY(DIALER | DECIDERD | K8SD) },
	{ CALL("connect_abstract", connect, FD_UNIX, P(&addr_abstract),
	    sizeof(addr_abstract)), MARKS, LANDLOCK(6) },
	{ CALL("bind", bind, FD_TCP, P(&addr_tcp), sizeof(addr_tcp)),
	    LANDLOCK(4) },
	{ CALL("listen", listen, FD_TCP, 1) },
	{ CALL("accept", accept4, FD_LISTEN, 0, 0, SOCK_NONBLOCK),
	    MAY(CONTROLD | ENGINE) },
	{ CALL("sendto", sendto, FD_UDP, P(page), 1, MSG_DONTWAIT,
	    P(&addr_tcp), sizeof(addr_tcp)), MAY(DECIDERD | K8SD | ENGINE) },
	{ CALL("sendmmsg", sendmmsg, FD_UDP, 0, 0, 0) },
	{ CALL("recvfrom", recvfrom, FD_PAIR, P(page), 1, MSG_DONTWAIT, 0, 0),
	    MAY(DECIDERD | K8SD | ENGINE) },
	{ CALL("shutdown", shutdown, FD_PAIR, SHUT_RDWR),
	    MAY(DECIDERD | K8SD | ENGINE) },
	{ CALL("getsockname", getsockname, FD_TCP, 0, 0),
	    MAY(DECIDERD | K8SD | ENGINE) },
	{ CALL("getpeername", getpeername, FD_PAIR, 0, 0),
	    MAY(DECIDERD | K8SD) },
	{ CALL("setsockopt", setsockopt, FD_TCP, SOL_SOCKET, SO_MARK, 0, 0),
	    MAY(ENGINE) },
	{ CALL("getsockopt_error", getsockopt, FD_PAIR, SOL_SOCKET, SO_ERROR,
	    0, 0), MAY(DIALER | DECIDERD | K8SD | ENGINE) },
	{ CALL("getsockopt_peer", getsockopt, FD_PAIR, SOL_SOCKET,
	    SO_PEERCRED, 0, 0), MAY(ENGINE) },
	{ CALL("dup", dup, FD_PAIR), MAY(CONTROLD) },
	{ CALL("dup3", dup3, FD_PAIR, FD_EPOLL, 0) },
	{ CALL("fcntl_dup", fcntl, FD_PAIR, F_DUPFD, 0) },
	{ CALL("fcntl_owner", fcntl, FD_PAIR, F_SETOWN_EX, P(&no_owner)) },
	{ CALL("fcntl_lease", fcntl, FD_FILE, F_GETLEASE) },
	{ CALL("ioctl_tty", ioctl, FD_FILE, TIOCSTI, P(page)) },
	/* processes */
	{ CALL("execve", execve, P("/proc/self/exe"), P(exec_argv),
	    P(exec_envp)), MARKS, LANDLOCK(1) },
	{ DO("execveat", do_execveat), MARKS, LANDLOCK(1) },
	{ DO("fork", do_fork), .ac_flags = LEAVES_MARK | DIES_MUTE },
	{ DO("vfork", do_vfork), MARKS },
	{ DO("clone", do_clone), MARKS },
	{ DO("clone3", do_clone3), MARKS },
	{ CALL("ptrace_test", ptrace, PTRACE_SEIZE, ARG_TEST, 0, 0) },
	{ CALL("ptrace_me", ptrace, PTRACE_TRACEME, 0, 0, 0) },
	{ DO("process_vm_readv", do_vm_readv) },
	{ CALL("process_vm_writev", process_vm_writev, ARG_TEST, P(&no_iov), 1,
	    P(&no_iov), 1, 0) },
	{ CALL("kill_test", kill, ARG_TEST, 0), LANDLOCK(6) },
	{ CALL("kill_all", kill, -1, 0) },
	{ CALL("kill_sleeper", kill, ARG_SLEEPER, SIGKILL), LANDLOCK(6),
	    .ac_flags = LEAVES_MARK | WITH_SLEEPER },
	{ CALL("tkill_test", tkill, ARG_TEST, 0), LANDLOCK(6) },
	{ CALL("tgkill_test", tgkill, ARG_TEST, ARG_TEST, 0), LANDLOCK(6) },
	{ CALL("sigqueue_test", rt_sigqueueinfo, ARG_TEST, 0, P(&queued)) },
	{ CALL("pidfd_signal_test", pidfd_send_signal, FD_PIDFD, 0, 0, 0),
	    LANDLOCK(6) },
	{ CALL("pidfd_open", pidfd_open, ARG_TEST, 0) },
	{ CALL("pidfd_getfd", pidfd_getfd, FD_PIDFD, 0, 0) },
	{ CALL("kcmp", kcmp, ARG_TEST, ARG_TEST, 0, 0, 1) },
	{ CALL("wait4", wait4, -1, 0, WNOHANG, 0) },
	{ CALL("setsid", setsid) },
	{ CALL("setpriority", setpriority, 0, 0, 0) },
	/* who we are and what binds us */
	{ CALL("sigaction_trap", rt_sigaction, SIGSYS, P(page), 0, 8) },
	{ CALL("sigaction_trap_high", rt_sigaction, SIGSYS | 1L << 32, P(page),
	    0, 8) },
	{ DO("blocked_trap", do_blocked_trap), .ac_flags = DIES_MUTE },
	{ CALL("setuid", setuid, 0) },
	{ CALL("setgid", setgid, 0) },
	{ CALL("setresuid", setresuid, 0, 0, 0) },
	{ CALL("setgroups", setgroups, 0, 0) },
	{ CALL("setfsuid", setfsuid, 0) },
	{ DO("capset", do_capset) },
	{ CALL("prctl_dumpable", prctl, PR_SET_DUMPABLE, 1, 0, 0, 0),
	    MAY(SANITIZERS) },
	{ CALL("prctl_parent_death", prctl, PR_SET_PDEATHSIG, 0, 0, 0, 0),
	    MAY(SANITIZERS) },
	{ CALL("prctl_name", prctl, PR_SET_NAME, P("x"), 0, 0, 0),
	    MAY(SANITIZERS) },
	{ CALL("seccomp", seccomp, 2, 0, P(page)) },
	{ CALL("setrlimit", setrlimit, RLIMIT_CORE, P(&limit_none)) },
	{ CALL("prlimit", prlimit64, 0, RLIMIT_NOFILE, 0, P(page)) },
	{ CALL("umask", umask, 0) },
	{ CALL("personality", personality, 0xffffffff) },
	/* memory that runs, or that others see */
	{ CALL("mmap_exec", mmap, 0, 4096, PROT_READ | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) },
	{ CALL("mmap_write_exec", mmap, 0, 4096, PROT_WRITE | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) },
	{ CALL("mprotect_exec", mprotect, P(page), 4096, PROT_EXEC |
	    PROT_READ) },
	{ CALL("pkey_mprotect", pkey_mprotect, P(page), 4096, PROT_EXEC |
	    PROT_READ, -1) },
	{ CALL("memfd_create", memfd_create, P("x"), 0), MAY(ENGINE) },
	{ CALL("shmget", shmget, 0x65677265, 4096, 0) },
	{ CALL("userfaultfd", userfaultfd, O_CLOEXEC) },
	{ CALL("mlock", mlock, P(page), 4096), MAY(DECIDERD | K8SD |
	    ENGINE) },
	{ CALL("mlockall", mlockall, 0) },
	/* the machine */
	{ CALL("bpf", bpf, 0, 0, 0) },
	{ CALL("io_uring", io_uring_setup, 1, 0) },
	{ CALL("perf_event", perf_event_open, 0, 0, -1, -1, 0) },
	{ CALL("add_key", add_key, P("user"), P("x"), P("x"), 1, -2) },
	{ CALL("keyctl", keyctl, 0, -2, 1) },
	{ CALL("kexec", kexec_load, 0, 99999, 0, 0) },
	{ CALL("init_module", init_module, 0, 0, 0) },
	{ CALL("sethostname", sethostname, 0, -1) },
	{ CALL("settimeofday", settimeofday, 0, 0) },
	{ CALL("clock_settime", clock_settime, 999, P(&no_time)) },
	{ CALL("adjtimex", adjtimex, 0) },
	{ CALL("syslog", syslog, 10, 0, 0) },
	{ CALL("swapon", swapon, 0, 0) },
	{ CALL("quotactl", quotactl, -1, 0, 0, 0) },
#ifdef __x86_64__
	{ CALL("open_old", open, P("/etc/passwd"), O_RDONLY), LANDLOCK(1) },
	{ CALL("creat_old", creat, P("/nowhere/file"), 0600) },
	{ CALL("arch_prctl", arch_prctl, 0x1003, P(page)) },
	{ CALL("iopl", iopl, 0) },
	{ .ac_name = "open_x32", .ac_call = 0x40000000 | SYS_open,
	    .ac_args = { P("/etc/passwd"), O_RDONLY }, .ac_flags = DIES_MUTE },
	{ DO("getpid_i386", do_int80), .ac_flags = MAY_FAULT | DIES_MUTE },
#endif
	{ .ac_name = NULL }
};

#endif /* ACTIONS_H */
