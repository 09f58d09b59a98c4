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
 * What policyd may do beyond being a process with channels.  It makes no
 * socket, opens no file and looks at nobody's credentials: the parent hands
 * it listeners and says who is at the other end.
 */

#include "policyd.h"

static const struct sandbox_group policyd_groups[] = {
	{ "control clients, on listeners of the parent",
	    SANDBOX_CALLS(SCMP_SYS(accept4)) },
	{ "the parent looks at a client's socket while we keep it",
	    SANDBOX_CALLS(SCMP_SYS(dup)) },
	{ NULL, NULL }
};

/* Descriptors: the largest limits of clients and sessions, and some spare. */
const struct sandbox policyd_sandbox = {
	.sb_groups = policyd_groups,
	.sb_pledge = "stdio recvfd sendfd unix",
	.sb_files = 8192,
};
