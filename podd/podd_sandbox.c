/* SPDX-License-Identifier: ISC */

/*
 * What podd may do beyond being a process with channels: nothing.  The
 * descriptors of gates come to it ready to be read and written.
 */

#include "podd.h"

static const struct sandbox_group podd_groups[] = {
	{ NULL, NULL }
};

/* Descriptors: a channel for each session that has a pod. */
const struct sandbox podd_sandbox = {
	.sb_groups = podd_groups,
	.sb_pledge = "stdio recvfd",
	.sb_files = 8192,
};
