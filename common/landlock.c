/* SPDX-License-Identifier: ISC */

/*
 * Every child runs this.  Landlock takes away what a seccomp filter cannot
 * tell apart: which path, which port, which process.  We give up everything
 * that the running kernel knows how to take, save to connect where that is a
 * role's duty; the first version, files, is the least that we accept.  Headers
 * in use know less than kernels in use, so the numbers stand here.
 */

#ifdef __linux__

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include <linux/seccomp.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "sandbox.h"

#define LL_SYS_CREATE		444
#define LL_SYS_RESTRICT		446
#define LL_ASK_VERSION		1U
#define LL_CONNECT_TCP		0x2

struct ll_ruleset {
	uint64_t	 fs;
	uint64_t	 net;
	uint64_t	 scoped;
};

/* What each version of the interface added: file, network, scope rights. */
static const struct ll_ruleset ll_added[] = {
	{ 0x1fff, 0, 0 },	/* 1: execute, read, write, make, remove */
	{ 1U << 13, 0, 0 },	/* 2: link and rename across directories */
	{ 1U << 14, 0, 0 },	/* 3: truncate */
	{ 0, 0x3, 0 },		/* 4: bind and connect TCP */
	{ 1U << 15, 0, 0 },	/* 5: ioctl on devices */
	{ 0, 0, 0x3 },		/* 6: abstract sockets, signals to others */
};

static long
ll_version(void)
{
	return syscall(LL_SYS_CREATE, NULL, 0, LL_ASK_VERSION);
}

/* Whether the kernel lists Landlock, or -1: it does not say, or not here. */
static int
ll_listed(void)
{
	char	 buf[512], *p = buf, *name;
	ssize_t	 n;
	int	 fd;

	if ((fd = open("/sys/kernel/security/lsm", O_RDONLY | O_CLOEXEC)) == -1)
		return -1;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	buf[n] = '\0';
	while ((name = strsep(&p, ",\n")) != NULL)
		if (strcmp(name, "landlock") == 0)
			return 1;
	return 0;
}

/* Landlock came with Linux 5.13. */
static bool
ll_expected(void)
{
	struct utsname	 un;
	unsigned int	 major, minor;

	return uname(&un) == 0 &&
	    sscanf(un.release, "%u.%u", &major, &minor) == 2 &&
	    (major > 5 || (major == 5 && minor >= 13));
}

/*
 * A filter of the container that we run in answers in the kernel's place, and
 * with any error it likes; EPERM is none of the kernel's.
 */
const char *
sandbox_missing(void)
{
	static const char	 lacks[] = "this kernel lacks Landlock "
	    "(CONFIG_SECURITY_LANDLOCK, lsm=landlock)";
	static const char	 refused[] = "this kernel has Landlock, but a "
	    "seccomp filter refuses it: let the container's profile permit "
	    "landlock_create_ruleset and landlock_restrict_self";
	static const char	 either[] = "Landlock is missing: a seccomp "
	    "filter such as a container's refuses it "
	    "(landlock_create_ruleset), or this kernel lacks it";
	int			 code, listed;

	if (ll_version() >= 1)
		return NULL;
	code = errno;
	if ((listed = ll_listed()) != -1)
		return listed ? refused : lacks;
	if (code == EPERM || code == EACCES)
		return refused;
	if (code == ENOSYS && ll_expected() &&
	    prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER)
		return either;
	return lacks;
}

void
landlock_enter(const struct sandbox *sb)
{
	struct ll_ruleset	 rs = { 0, 0, 0 };
	const char		*why;
	long			 version, i;
	int			 fd;

	if ((why = sandbox_missing()) != NULL)
		fatalx("%s", why);
	version = ll_version();
	for (i = 0; i < version &&
	    i < (long)(sizeof(ll_added) / sizeof(ll_added[0])); i++) {
		rs.fs |= ll_added[i].fs;
		rs.net |= ll_added[i].net;
		rs.scoped |= ll_added[i].scoped;
	}
	if (sb->sb_connect)
		rs.net &= ~(uint64_t)LL_CONNECT_TCP;
	/* A kernel takes a longer struct than its own if the rest is zero. */
	if ((fd = syscall(LL_SYS_CREATE, &rs, sizeof(rs), 0)) == -1)
		fatal("Landlock: cannot make a rule set");
	if (syscall(LL_SYS_RESTRICT, fd, 0) == -1)
		fatal("Landlock: cannot enter the rule set");
	close(fd);
}

#endif /* __linux__ */
