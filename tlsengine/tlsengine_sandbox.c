/* SPDX-License-Identifier: ISC */

/*
 * What an engine may ask of the kernel.  It neither opens files nor makes or
 * connects sockets: they are handed to it.
 */

#include "tlsengine.h"

static const struct sandbox_group tlsengine_groups[] = {
	{ "accept clients, on sockets of the right kind, and see where they "
	    "wanted to go",
	    SANDBOX_CALLS(SCMP_SYS(accept4), SCMP_SYS(getsockname),
	    SCMP_SYS(getsockopt)) },
	{ "bytes of clients and origins, and DNS over TCP",
	    SANDBOX_CALLS(SCMP_SYS(recvfrom), SCMP_SYS(sendto),
	    SCMP_SYS(shutdown)) },
	{ "no delay, a reset where the policy wants one, answers from the "
	    "address that was asked",
	    SANDBOX_CALLS(SCMP_SYS(setsockopt)) },
	{ "trust files for a local sandbox", SANDBOX_CALLS(
	    SCMP_SYS(memfd_create)) },
	{ "keep keys out of swap", SANDBOX_CALLS(SCMP_SYS(mlock)) },
	{ NULL, NULL }
};

const struct sandbox tlsengine_sandbox = {
	.sb_groups = tlsengine_groups,
	.sb_pledge = "stdio recvfd inet",
	.sb_files = 16384,
};
