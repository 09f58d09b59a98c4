/* SPDX-License-Identifier: ISC */

/*
 * Every child runs this, as root for the first part if the daemon was
 * started so, and before it has read a byte from anyone but the parent.
 * Denied calls come in two kinds: those that libc or a library merely tries
 * get an error, the rest kill.  There is no third kind and no way to go
 * without: a kernel that lacks a part of this ends the process.
 *
 * A build with SANDBOX_TRACE logs what it would have killed for (see the
 * audit log or dmesg), to find out what a role needs.
 */

#ifdef __linux__

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "caps.h"
#include "log.h"
#include "sandbox.h"

#ifdef SANDBOX_TRACE
#define SANDBOX_DEFAULT	SCMP_ACT_LOG
#else
#define SANDBOX_DEFAULT	SCMP_ACT_TRAP	/* and sandbox_trap.c kills */
#endif

/* What every role needs to be a process at all. */
static const struct sandbox_group common_groups[] = {
	{ "memory", SANDBOX_CALLS(SCMP_SYS(brk), SCMP_SYS(munmap),
	    SCMP_SYS(mremap), SCMP_SYS(madvise)) },
	{ "time and chance", SANDBOX_CALLS(SCMP_SYS(clock_gettime),
	    SCMP_SYS(gettimeofday), SCMP_SYS(getrandom)) },
	{ "the event loop", SANDBOX_CALLS(SCMP_SYS(epoll_wait),
	    SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_ctl), SCMP_SYS(poll),
	    SCMP_SYS(ppoll)) },
	{ "channels, which bring and take descriptors",
	    SANDBOX_CALLS(SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(write),
	    SCMP_SYS(writev), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg),
	    SCMP_SYS(close)) },
	{ "an end in order, also by abort", SANDBOX_CALLS(SCMP_SYS(exit),
	    SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn),
	    SCMP_SYS(rt_sigprocmask), SCMP_SYS(restart_syscall),
	    SCMP_SYS(futex), SCMP_SYS(getpid), SCMP_SYS(gettid)) },
#ifdef SANITIZE
	{ "the sanitizers' own needs", SANDBOX_CALLS(SCMP_SYS(sigaltstack),
	    SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity),
	    SCMP_SYS(prctl), SCMP_SYS(getrusage)) },
#endif
	{ NULL, NULL }
};

/* What libraries try and can do without. */
static const int soft_calls[] = {
	SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(access),
	SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(stat),
	SCMP_SYS(lstat), SCMP_SYS(newfstatat), SCMP_SYS(statx),
	SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(ioctl),
	SCMP_SYS(sysinfo), SCMP_SYS(uname), SANDBOX_END
};

/* From root to an identity that can do nothing; the order matters. */
static void
become(const struct identity *id)
{
	const char	*what;

	if ((what = caps_bound()) != NULL)
		fatal("%s: cannot clear it", what);
	if (chroot(id->id_root) == -1 || chdir("/") == -1)
		fatal("chroot %s", id->id_root);
	if (setgroups(1, &id->id_gid) == -1 ||
	    setresgid(id->id_gid, id->id_gid, id->id_gid) == -1 ||
	    setresuid(id->id_uid, id->id_uid, id->id_uid) == -1)
		fatal("uid %u gid %u: cannot change to it", id->id_uid,
		    id->id_gid);
}

void
sandbox_drop(const struct identity *id)
{
	const char	*what;

	if (id->id_uid != 0)
		become(id);
	if ((what = caps_drop()) != NULL)
		fatal("%s: cannot clear them", what);
	/* The uid change clears these, so they come after it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1)
		fatal("parent-death signal");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		fatal("dumpable flag");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		fatal("no_new_privs");
}

static void
limit(int what, const char *name, rlim_t value)
{
	struct rlimit	 rl = { .rlim_cur = value, .rlim_max = value };

	if (setrlimit(what, &rl) == -1)
		fatal("limit %s to %llu", name, (unsigned long long)value);
}

void
sandbox_limit(const struct sandbox *sb)
{
	struct rlimit	 rl;
	rlim_t		 files = sb->sb_files;

	limit(RLIMIT_CORE, "core", 0);
	limit(RLIMIT_NPROC, "processes", 0);
	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("limit of descriptors");
	limit(RLIMIT_NOFILE, "descriptors",
	    files < rl.rlim_max ? files : rl.rlim_max);
}

/* MSG_FASTOPEN connects, past connect(2) and past Landlock. */
static int
allow_send(scmp_filter_ctx ctx, int call, unsigned int flags)
{
	return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, call, 1,
	    SCMP_CMP(flags, SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0));
}

static void
allow(scmp_filter_ctx ctx, int call)
{
	int	 rv;

	/* libseccomp's numbers below zero are calls this machine lacks. */
	if (call < 0)
		return;
	if (call == SCMP_SYS(sendmsg))
		rv = allow_send(ctx, call, 2);
	else if (call == SCMP_SYS(sendto) || call == SCMP_SYS(sendmmsg))
		rv = allow_send(ctx, call, 3);
	else
		rv = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, call, 0);
	if (rv != 0)
		fatalx("seccomp: call %d: %s", call, strerror(-rv));
}

static void
allow_groups(scmp_filter_ctx ctx, const struct sandbox_group *sg)
{
	const int	*call;

	for (; sg->sg_why != NULL; sg++)
		for (call = sg->sg_calls; *call != SANDBOX_END; call++)
			allow(ctx, *call);
}

/*
 * What SIGSYS does stays as it is (sandbox_trap.c).  Its number is the highest
 * of five bits, and the kernel ignores the upper half of the argument: so each
 * other signal has one of these bits clear.  SIGRTMAX - 1 shares its fate.
 */
static int
allow_sigaction(scmp_filter_ctx ctx)
{
	scmp_datum_t	 bit;
	int		 rv = 0;

	_Static_assert(SIGSYS == 31, "SIGSYS is five bits");
	for (bit = 1; bit < SIGSYS; bit <<= 1)
		rv |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
		    SCMP_SYS(rt_sigaction), 1,
		    SCMP_A0(SCMP_CMP_MASKED_EQ, bit, 0));
	return rv;
}

/* Calls that are harmless only with certain arguments. */
static void
allow_narrowly(scmp_filter_ctx ctx)
{
	static const int	 flags[] = { F_GETFL, F_SETFL, F_GETFD, F_SETFD,
	    F_ADD_SEALS };
	size_t			 i;
	int			 rv;

	rv = allow_sigaction(ctx);
	rv |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
	    SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	rv |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
	    SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	rv |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
	    SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		rv |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
		    SCMP_A1(SCMP_CMP_EQ, flags[i], 0));
	if (rv != 0)
		fatalx("seccomp: cannot narrow a call");
}

/* A socket's kind matters; how it waits and who inherits it do not. */
static scmp_datum_t
what_matters(int call, unsigned int arg)
{
	scmp_datum_t	 all = ~(scmp_datum_t)0;

	if (call == SCMP_SYS(socket) && arg == 1)
		return all & ~(scmp_datum_t)(SOCK_NONBLOCK | SOCK_CLOEXEC);
	return all;
}

static void
allow_role_narrowly(scmp_filter_ctx ctx, const struct sandbox_narrow *sn)
{
	struct scmp_arg_cmp	 cmp[2];
	unsigned int		 i;
	int			 rv;

	for (; sn != NULL && sn->sn_why != NULL; sn++) {
		for (i = 0; i < sn->sn_count; i++)
			cmp[i] = SCMP_CMP(sn->sn_args[i].arg,
			    SCMP_CMP_MASKED_EQ, what_matters(sn->sn_call,
			    sn->sn_args[i].arg), sn->sn_args[i].value);
		if ((rv = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW,
		    sn->sn_call, sn->sn_count, cmp)) != 0)
			fatalx("seccomp: %s: %s", sn->sn_why, strerror(-rv));
	}
}

static void
deny_softly(scmp_filter_ctx ctx)
{
	const int	*call;
	int		 rv;

	for (call = soft_calls; *call != SANDBOX_END; call++) {
		if (*call < 0)
			continue;
		rv = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EACCES), *call, 0);
		if (rv != 0)
			fatalx("seccomp: call %d: %s", *call, strerror(-rv));
	}
}

void
sandbox_enter(const struct sandbox *sb)
{
	scmp_filter_ctx	 ctx;
	int		 rv;

	landlock_enter(sb);
	sandbox_trap();
	if ((ctx = seccomp_init(SANDBOX_DEFAULT)) == NULL)
		fatalx("seccomp: cannot begin a filter");
	/* Calls of another machine's numbers; their names would mislead. */
	if ((rv = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH,
	    SCMP_ACT_KILL_PROCESS)) != 0)
		fatalx("seccomp: cannot kill: %s", strerror(-rv));
	allow_groups(ctx, common_groups);
	allow_narrowly(ctx);
	for (; sb != NULL; sb = sb->sb_library) {
		allow_groups(ctx, sb->sb_groups);
		allow_role_narrowly(ctx, sb->sb_narrow);
	}
	deny_softly(ctx);
	if ((rv = seccomp_load(ctx)) != 0)
		fatalx("seccomp: %s", strerror(-rv));
	seccomp_release(ctx);
}

#endif /* __linux__ */
