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
 * What deciderd may ask of the kernel.  It makes and connects sockets of its
 * own, of the internet families only; programs and Unix sockets are the
 * parent's to open.
 */

#include <sys/socket.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "deciderd.h"

static const struct sandbox_group deciderd_groups[] = {
	/* A kernel may refuse to lock; then the pages are still not dumped. */
	{ "keep keys out of swap", SANDBOX_CALLS(SCMP_SYS(mlock)) },
	{ "talk to servers, name servers and programs",
	    SANDBOX_CALLS(SCMP_SYS(sendto), SCMP_SYS(recvfrom),
	    SCMP_SYS(shutdown)) },
	{ "which addresses a connection has, for libcurl",
	    SANDBOX_CALLS(SCMP_SYS(getsockname), SCMP_SYS(getpeername)) },
	{ NULL, NULL }
};

static const struct sandbox_narrow deciderd_narrow[] = {
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

const struct sandbox deciderd_sandbox = {
	.sb_groups = deciderd_groups,
	.sb_narrow = deciderd_narrow,
	.sb_connect = true,
	.sb_pledge = "stdio inet recvfd",
	.sb_files = 4096,
};
