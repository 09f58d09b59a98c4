/* SPDX-License-Identifier: ISC */

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
