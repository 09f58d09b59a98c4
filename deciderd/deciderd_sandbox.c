/* SPDX-License-Identifier: ISC */

/*
 * What deciderd may ask of the kernel, besides what its HTTPS client needs
 * (common/https/https_sandbox.c): that one makes sockets of the internet
 * families only, and programs and Unix sockets are the parent's to open.
 */

#include "deciderd.h"

static const struct sandbox_group deciderd_groups[] = {
	/* A kernel may refuse to lock; then the pages are still not dumped. */
	{ "keep keys out of swap", SANDBOX_CALLS(SCMP_SYS(mlock)) },
	{ "end the input of a program", SANDBOX_CALLS(SCMP_SYS(shutdown)) },
	{ NULL, NULL }
};

const struct sandbox deciderd_sandbox = {
	.sb_groups = deciderd_groups,
	.sb_library = &https_sandbox,
	.sb_connect = true,
	.sb_pledge = "stdio inet recvfd",
	.sb_files = 4096,
};
