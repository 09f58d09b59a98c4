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
 * egressd-dialer: the process that resolves, vets and connects, for grants of
 * policyd and for nothing else.
 */

#include "dialer.h"

static const ipc_handler parent_handlers[MSG_MAX] = {
	CHILD_HANDLERS,
	[MSG_CONF_DIAL] = dialer_parent_conf_dial,
	[MSG_CONF_HOST] = dialer_parent_conf_host,
	[MSG_CONF_RESOLVER] = dialer_parent_conf_resolver,
	[MSG_CONF_DENY_NET] = dialer_parent_conf_deny_net,
	[MSG_SOCKET] = dialer_parent_socket,
};

static const ipc_handler policyd_handlers[MSG_MAX] = {
	[MSG_GRANT] = dialer_policyd_grant,
};

static void
dialer_warm(void)
{
	stock_warm();
	resolve_warm();
}

static int
dialer_channel(const struct msg_channel *mc, int fd)
{
	switch (mc->peer) {
	case ROLE_POLICYD:
		child_peer(ROLE_POLICYD, fd, policyd_handlers);
		return 0;
	case ROLE_ENGINE:
		return engine_new(mc, fd);
	default:
		return -1;
	}
}

int
main(int argc, char *argv[])
{
	static const struct child dialer = {
		.ch_role = ROLE_DIALER,
		.ch_sandbox = &dialer_sandbox,
		.ch_handlers = parent_handlers,
		.ch_warm = dialer_warm,
		.ch_channel = dialer_channel,
		.ch_begin = slice_begin,
		.ch_weigh = slice_weigh,
		.ch_commit = slice_commit,
		.ch_abort = slice_abort,
	};

	return child_main(&dialer, argc, argv);
}
