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
 * tlsengine: packets that the sandbox's fence refused, as the kernel reports
 * them (nfnetlink_log).  The reports are the kernel's, the packets in them
 * are the agent's.
 */

#ifndef NFLOG_H
#define NFLOG_H

#include <stddef.h>
#include <stdint.h>

#include "addr.h"
#include "msgtab.h"

/* Where it was to go; port 0 if it has none or it cannot be told. */
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
