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
 * Every child runs this.  Landlock takes away what a seccomp filter cannot
 * tell apart: which path, which port, which process.  We give up everything
 * that the running kernel knows how to take, save to connect where that is a
 * role's duty; the first version, files, is the least that we accept.  Headers
 * in use know less than kernels in use, so the numbers stand here.
 */

#ifdef __linux__

#include <sys/syscall.h>

#include <errno.h>
#include <stdint.h>
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

void
landlock_enter(const struct sandbox *sb)
{
	struct ll_ruleset	 rs = { 0, 0, 0 };
	long			 version, i;
	int			 fd;

	version = syscall(LL_SYS_CREATE, NULL, 0, LL_ASK_VERSION);
	if (version < 1)
		fatal("this kernel lacks Landlock (CONFIG_SECURITY_LANDLOCK, "
		    "lsm=landlock)");
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
