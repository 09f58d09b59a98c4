/* SPDX-License-Identifier: ISC */

/*
 * What policyd may do beyond being a process with channels: nothing.  It
 * accepts no connection, makes no socket and opens no file.
 */

#include "policyd.h"

static const struct sandbox_group policyd_groups[] = {
	{ NULL, NULL }
};

/* Descriptors: a channel for each session, and some spare. */
const struct sandbox policyd_sandbox = {
	.sb_groups = policyd_groups,
	.sb_pledge = "stdio recvfd",
	.sb_files = 8192,
};
