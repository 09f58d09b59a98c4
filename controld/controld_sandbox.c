/* SPDX-License-Identifier: ISC */

/*
 * What controld may do beyond being a process with channels.  It makes no
 * socket, opens no file and looks at nobody's credentials: the parent hands
 * it listeners and says who is at the other end.
 */

#include "controld.h"

static const struct sandbox_group controld_groups[] = {
	{ "control clients, on listeners of the parent",
	    SANDBOX_CALLS(SCMP_SYS(accept4)) },
	{ "the parent looks at a client's socket while we keep it",
	    SANDBOX_CALLS(SCMP_SYS(dup)) },
	{ NULL, NULL }
};

/* Descriptors: the largest limits of clients and sessions, and some spare. */
const struct sandbox controld_sandbox = {
	.sb_groups = controld_groups,
	.sb_pledge = "stdio recvfd sendfd unix",
	.sb_files = 8192,
};
