/* SPDX-License-Identifier: ISC */

/*
 * The command's process runs this just before it becomes the command: what
 * namespaces leave open, because the command shares the caller's process
 * group and terminal, or because they do not cover it.  In a pod the first
 * process and the hands take the same filter of system calls (pod.c).
 */

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <err.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "box.h"

/* Headers in use know less of Landlock than kernels in use. */
#define LL_SYS_CREATE		444
#define LL_SYS_RESTRICT		446
#define LL_SCOPE_SIGNAL		(1U << 1)
#define LL_VERSION_SCOPE	6

struct ll_ruleset {
	uint64_t	 fs;
	uint64_t	 net;
	uint64_t	 scoped;
};

/*
 * kill(0, ...) reaches the whole process group, the caller's shell script or
 * orchestrator among it, whatever the namespaces say; so does a signal that
 * is made to come from the terminal.  Landlock keeps them in the sandbox, if
 * this kernel can (6.12).
 */
void
confine_signals(void)
{
	struct ll_ruleset	 rs = { 0, 0, LL_SCOPE_SIGNAL };
	int			 fd;

	if (syscall(LL_SYS_CREATE, NULL, 0, 1U) < LL_VERSION_SCOPE)
		return;
	if ((fd = syscall(LL_SYS_CREATE, &rs, sizeof(rs), 0)) == -1 ||
	    syscall(LL_SYS_RESTRICT, fd, 0) == -1)
		err(BOX_FAILED, "Landlock");
	close(fd);
}

/*
 * Numbers of calls; those from 424 on are the same everywhere.  A machine
 * also runs programs of its predecessor, with other numbers.  One that is not
 * here does not compile.
 */
#define NO_CALL			0xffffffffU
#if defined(__x86_64__)
#define NATIVE_ARCH		AUDIT_ARCH_X86_64
#define COMPAT_ARCH		AUDIT_ARCH_I386
#define COMPAT_IOCTL		54
#define COMPAT_SOCKET		359
#define COMPAT_SOCKETPAIR	360
#define COMPAT_SOCKETCALL	102
#define COMPAT_ADD_KEY		286
#define COMPAT_REQUEST_KEY	287
#define COMPAT_KEYCTL		288
#define COMPAT_CONNECT		362
#define COMPAT_SETPRIORITY	97
#define COMPAT_IOPRIO_SET	289
#elif defined(__aarch64__)
#define NATIVE_ARCH		AUDIT_ARCH_AARCH64
#define COMPAT_ARCH		AUDIT_ARCH_ARM
#define COMPAT_IOCTL		54
#define COMPAT_SOCKET		281
#define COMPAT_SOCKETPAIR	288
#define COMPAT_SOCKETCALL	NO_CALL
#define COMPAT_ADD_KEY		309
#define COMPAT_REQUEST_KEY	310
#define COMPAT_KEYCTL		311
#define COMPAT_CONNECT		283
#define COMPAT_SETPRIORITY	97
#define COMPAT_IOPRIO_SET	314
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE_ARCH		AUDIT_ARCH_RISCV64
#define COMPAT_ARCH		AUDIT_ARCH_RISCV32
#define COMPAT_IOCTL		SYS_ioctl
#define COMPAT_SOCKET		SYS_socket
#define COMPAT_SOCKETPAIR	SYS_socketpair
#define COMPAT_SOCKETCALL	NO_CALL
#define COMPAT_ADD_KEY		SYS_add_key
#define COMPAT_REQUEST_KEY	SYS_request_key
#define COMPAT_KEYCTL		SYS_keyctl
#define COMPAT_CONNECT		SYS_connect
#define COMPAT_SETPRIORITY	SYS_setpriority
#define COMPAT_IOPRIO_SET	SYS_ioprio_set
#endif
#define IO_URING_SETUP		425

/* A third set of numbers on x86, which nobody uses. */
#define X32_BIT			0x40000000U

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the filter reads the low half of an argument, as the kernel does"
#endif

#define CODE_MAX	256
#define LOAD(field)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, \
			    offsetof(struct seccomp_data, field))
#define IS(v, yes, no)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, v, yes, no)
#define AT_LEAST(v, yes, no) \
			BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, v, yes, no)
#define ALLOW		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define DENY(e)		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (e))

/*
 * A process that has the caller's terminal could type into it (TIOCSTI), and
 * the caller's shell would run that when the sandbox has ended; TIOCLINUX
 * pastes on a console.
 */
#define NO_TYPING(call)	\
	IS(call, 0, 5), LOAD(args[1]), IS(TIOCSTI, 1, 0), \
	IS(TIOCLINUX, 0, 1), DENY(EPERM), ALLOW

/*
 * Not every kind of socket knows of network namespaces: AF_VSOCK reaches the
 * hypervisor of a virtual machine from within any of them.
 */
#define FAMILIES(call)	\
	IS(call, 0, 7), LOAD(args[0]), IS(AF_UNIX, 3, 0), IS(AF_INET, 2, 0), \
	IS(AF_INET6, 1, 0), IS(AF_NETLINK, 0, 1), ALLOW, DENY(EAFNOSUPPORT)

/*
 * Priorities are set by pid, group or user, and the caller's group, that of 0,
 * has processes outside, whatever the namespaces say.
 */
#define IOPRIO_WHO_PGRP	2
#define NOT_OUR_GROUP(call, group) \
	IS(call, 0, 6), LOAD(args[0]), IS(group, 0, 3), LOAD(args[1]), \
	IS(0, 0, 1), DENY(EPERM), ALLOW

/*
 * It makes sockets behind the filter's back, or from arguments in memory; or
 * it finds the caller's keys, which belong to a uid in any user namespace.
 */
#define NO_SUCH_CALL(call) \
	IS(call, 0, 1), DENY(ENOSYS)

static const struct sock_filter compat_calls[] = {
	LOAD(nr),
	NO_TYPING(COMPAT_IOCTL),
	FAMILIES(COMPAT_SOCKET),
	FAMILIES(COMPAT_SOCKETPAIR),
	NOT_OUR_GROUP(COMPAT_SETPRIORITY, PRIO_PGRP),
	NOT_OUR_GROUP(COMPAT_IOPRIO_SET, IOPRIO_WHO_PGRP),
	NO_SUCH_CALL(COMPAT_SOCKETCALL),
	NO_SUCH_CALL(COMPAT_ADD_KEY),
	NO_SUCH_CALL(COMPAT_REQUEST_KEY),
	NO_SUCH_CALL(COMPAT_KEYCTL),
	NO_SUCH_CALL(IO_URING_SETUP),
	ALLOW,
};

static const struct sock_filter native_calls[] = {
	LOAD(nr),
	AT_LEAST(X32_BIT, 0, 1),
	DENY(ENOSYS),
	NO_TYPING(SYS_ioctl),
	FAMILIES(SYS_socket),
	FAMILIES(SYS_socketpair),
	NOT_OUR_GROUP(SYS_setpriority, PRIO_PGRP),
	NOT_OUR_GROUP(SYS_ioprio_set, IOPRIO_WHO_PGRP),
	NO_SUCH_CALL(SYS_add_key),
	NO_SUCH_CALL(SYS_request_key),
	NO_SUCH_CALL(SYS_keyctl),
	NO_SUCH_CALL(IO_URING_SETUP),
	ALLOW,
};

/*
 * Connections are the broker's to make.  A Unix datagram finds its way without
 * one, by the address of each call, in memory: the filter can tell neither
 * such calls nor such sockets from others, so there are none.
 */
#define TYPE_MASK	0xf
#define NO_DATAGRAMS(call) \
	IS(call, 0, 8), LOAD(args[0]), IS(AF_UNIX, 0, 5), LOAD(args[1]), \
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TYPE_MASK), \
	IS(SOCK_DGRAM, 1, 0), IS(SOCK_RAW, 0, 1), DENY(EACCES), ALLOW
#define ASK(call)	\
	IS(call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)

static const struct sock_filter compat_sockets[] = {
	LOAD(nr),
	ASK(COMPAT_CONNECT),
	NO_DATAGRAMS(COMPAT_SOCKET),
	NO_DATAGRAMS(COMPAT_SOCKETPAIR),
	ALLOW,
};

static const struct sock_filter native_sockets[] = {
	LOAD(nr),
	ASK(SYS_connect),
	NO_DATAGRAMS(SYS_socket),
	NO_DATAGRAMS(SYS_socketpair),
	ALLOW,
};

/* Install a filter: native system call numbers, and 32-bit ones. */
static int
confine_filter(const struct sock_filter *native, size_t nnative,
    const struct sock_filter *compat, size_t ncompat, unsigned int flags)
{
	const struct sock_filter which[] = {
		LOAD(arch),
		IS(NATIVE_ARCH, 2, 0),
		IS(COMPAT_ARCH, 1 + nnative, 0),
		DENY(ENOSYS),
	};
	struct sock_filter	 code[CODE_MAX];
	struct sock_fprog	 prog = { 0, code };
	int			 fd;

	if (NITEMS(which) + nnative + ncompat > CODE_MAX)
		errx(BOX_FAILED, "seccomp: filter too long");
	memcpy(code, which, sizeof(which));
	prog.len = NITEMS(which);
	memcpy(code + prog.len, native, nnative * sizeof(*native));
	prog.len += nnative;
	memcpy(code + prog.len, compat, ncompat * sizeof(*compat));
	prog.len += ncompat;
	if ((fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags,
	    &prog)) == -1)
		err(BOX_FAILED, "seccomp");
	return fd;
}

void
confine_calls(void)
{
	(void)confine_filter(native_calls, NITEMS(native_calls), compat_calls,
	    NITEMS(compat_calls), 0);
}

/* The descriptor where connect(2) arrives. */
int
confine_connect(void)
{
	return confine_filter(native_sockets, NITEMS(native_sockets),
	    compat_sockets, NITEMS(compat_sockets),
	    SECCOMP_FILTER_FLAG_NEW_LISTENER);
}
