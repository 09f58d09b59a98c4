/* SPDX-License-Identifier: ISC */

/*
 * What k8sd may ask of the kernel.
 */

#include "k8sd.h"

static const struct sandbox_group k8sd_groups[] = {
	/* A kernel may refuse to lock; then the pages are still not dumped. */
	{ "keep keys out of swap", SANDBOX_CALLS(SCMP_SYS(mlock)) },
	{ NULL, NULL }
};

const struct sandbox k8sd_sandbox = {
	.sb_groups = k8sd_groups,
	.sb_pledge = "stdio recvfd",
	.sb_files = 1024,
};
