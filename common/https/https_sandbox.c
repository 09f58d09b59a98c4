/* SPDX-License-Identifier: ISC */

/*
 * What libcurl and c-ares ask of the kernel: sockets of the internet families
 * and nothing else.
 */

#include <sys/socket.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "https/https.h"
#include "sandbox.h"

static const struct sandbox_group https_groups[] = {
	{ "talk to servers and name servers",
	    SANDBOX_CALLS(SCMP_SYS(sendto), SCMP_SYS(recvfrom)) },
	{ "which addresses a connection has, for libcurl",
	    SANDBOX_CALLS(SCMP_SYS(getsockname), SCMP_SYS(getpeername)) },
	{ NULL, NULL }
};

static const struct sandbox_narrow https_narrow[] = {
	{ "connections to servers, and to name servers for long answers",
	    SCMP_SYS(socket), 2, { { 0, AF_INET }, { 1, SOCK_STREAM } } },
	{ "likewise over IPv6", SCMP_SYS(socket),
	    2, { { 0, AF_INET6 }, { 1, SOCK_STREAM } } },
	{ "questions to name servers", SCMP_SYS(socket),
	    2, { { 0, AF_INET }, { 1, SOCK_DGRAM } } },
	{ "likewise, and to see whether there is IPv6", SCMP_SYS(socket),
	    2, { { 0, AF_INET6 }, { 1, SOCK_DGRAM } } },
	{ "connect to IPv4, by the length of the address", SCMP_SYS(connect),
	    1, { { 2, sizeof(struct sockaddr_in) } } },
	{ "connect to IPv6, likewise", SCMP_SYS(connect),
	    1, { { 2, sizeof(struct sockaddr_in6) } } },
	{ "send small requests at once", SCMP_SYS(setsockopt),
	    2, { { 1, IPPROTO_TCP }, { 2, TCP_NODELAY } } },
	{ "how an attempt has ended", SCMP_SYS(getsockopt),
	    2, { { 1, SOL_SOCKET }, { 2, SO_ERROR } } },
	{ NULL, 0, 0, { { 0, 0 } } }
};

const struct sandbox https_sandbox = {
	.sb_groups = https_groups,
	.sb_narrow = https_narrow,
};
