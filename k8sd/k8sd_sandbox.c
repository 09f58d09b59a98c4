/* SPDX-License-Identifier: ISC */

/*
 * What k8sd may ask of the kernel, besides what its HTTPS client needs
 * (common/https/https_sandbox.c).  Files, and credential plugins, are the
 * parent's to open.
 */

#include <sys/socket.h>

#include "https/https.h"
#include "k8sd.h"

static const struct sandbox_group k8sd_groups[] = {
	/* A kernel may refuse to lock; then the pages are still not dumped. */
	{ "keep keys out of swap", SANDBOX_CALLS(SCMP_SYS(mlock)) },
	{ "end the input of a plugin", SANDBOX_CALLS(SCMP_SYS(shutdown)) },
	{ NULL, NULL }
};

static const struct sandbox_narrow k8sd_narrow[] = {
	{ "hands of our own in a pod", SCMP_SYS(socketpair),
	    1, { { 0, AF_UNIX } } },
	{ NULL, 0, 0, { { 0, 0 } } }
};

const struct sandbox k8sd_sandbox = {
	.sb_groups = k8sd_groups,
	.sb_narrow = k8sd_narrow,
	.sb_library = &https_sandbox,
	.sb_connect = true,
	.sb_pledge = "stdio inet recvfd sendfd",
	/* A session that somebody is attached to has two. */
	.sb_files = 16384,
};
