/* SPDX-License-Identifier: ISC */

/*
 * What the dialer may ask of the kernel.  It never makes a socket: the
 * parent does, with every option that it needs, so none is set here.  Name
 * servers are written to and read from with the calls of the channels.
 */

#include <sys/socket.h>

#include <netinet/in.h>

#include "dialer.h"

static const struct sandbox_group dialer_groups[] = {
	{ NULL, NULL }
};

static const struct sandbox_narrow dialer_narrow[] = {
	{ "connect to IPv4, by the length of the address", SCMP_SYS(connect),
	    1, { { 2, sizeof(struct sockaddr_in) } } },
	{ "connect to IPv6, likewise", SCMP_SYS(connect),
	    1, { { 2, sizeof(struct sockaddr_in6) } } },
	{ "how an attempt has ended", SCMP_SYS(getsockopt),
	    2, { { 1, SOL_SOCKET }, { 2, SO_ERROR } } },
	{ NULL, 0, 0, { { 0, 0 } } }
};

const struct sandbox dialer_sandbox = {
	.sb_groups = dialer_groups,
	.sb_narrow = dialer_narrow,
	.sb_connect = true,
	.sb_pledge = "stdio inet recvfd sendfd",
	.sb_files = 4096,
};
