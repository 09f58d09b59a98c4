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
 * tlsengine: one per session.  It holds that session's keys and reads what
 * the agent and the origins send.  It trusts the parent.
 */

#ifndef TLSENGINE_H
#define TLSENGINE_H

#include <stdint.h>

#include "child.h"

struct settings {
	char		 st_policy[NAME_LEN + 1];
	uint8_t		 st_refuse;
	uint8_t		 st_capture_hash;
	uint32_t	 st_capture;
	uint32_t	 st_connections;
	uint64_t	 st_handshake_ms;
	uint64_t	 st_head_ms;
	uint64_t	 st_response_ms;
	uint64_t	 st_idle_ms;
	uint64_t	 st_tunnel_ms;
};

extern const struct sandbox	 tlsengine_sandbox;

#endif /* TLSENGINE_H */
