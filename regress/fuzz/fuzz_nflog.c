/* SPDX-License-Identifier: ISC */

/*
 * Fuzzes tlsengine/nflog.c.  The input is a datagram; it ends, and each
 * packet found in it makes a sound record.
 */

#include <stdlib.h>
#include <string.h>

#include "tlsengine/nflog.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

static void
require_sound(const struct nflog_packet *np)
{
	char	 text[ADDR_STRLEN];

	REQUIRE(np->np_protocol == PROTOCOL_TCP ||
	    np->np_protocol == PROTOCOL_UDP ||
	    np->np_protocol == PROTOCOL_ICMP ||
	    np->np_protocol == PROTOCOL_OTHER);
	REQUIRE(np->np_dest.ad_af == AF_INET ||
	    np->np_dest.ad_af == AF_INET6);
	REQUIRE(np->np_protocol != PROTOCOL_ICMP || np->np_port == 0);
	REQUIRE(*addr_format(&np->np_dest, text, sizeof(text)) != '\0');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nflog_packet	 np;
	const uint8_t		*p = data;
	size_t			 left = size, before;

	for (before = left; nflog_next(&p, &left, &np); before = left) {
		REQUIRE(left < before && (size_t)(p - data) + left <= size);
		require_sound(&np);
	}
	return 0;
}
