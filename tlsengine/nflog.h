/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: packets that the sandbox's fence refused, as the kernel reports
 * them (nfnetlink_log).  The reports are the kernel's, the packets in them
 * are the agent's.
 */

#ifndef NFLOG_H
#define NFLOG_H

#include <stddef.h>
#include <stdint.h>

#include "addr.h"
#include "words.h"

/* Where a packet was to go; port 0: none, or not to be told. */
struct nflog_packet {
	enum protocol	 np_protocol;
	struct addr	 np_dest;
	uint16_t	 np_port;
};

/*
 * The next packet of a netlink datagram, of which *data and *len are what is
 * left.  1, or 0 when there is none.
 */
int	 nflog_next(const uint8_t **data, size_t *len, struct nflog_packet *);

#endif /* NFLOG_H */
