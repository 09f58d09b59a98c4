/* SPDX-License-Identifier: ISC */

/*
 * The program egressd-policyd: what it hears from the parent, and where.
 */

#include "policyd.h"

static const ipc_handler policyd_handlers[MSG_MAX] = {
	CHILD_HANDLERS,
	[MSG_CONF_PENDING] = policyd_parent_conf_pending,
	[MSG_CONF_SESSION] = policyd_parent_conf_session,
	[MSG_CONF_POLICY] = policyd_parent_conf_policy,
	[MSG_CONF_REDACT] = policyd_parent_conf_redact,
	[MSG_CONF_RULE] = policyd_parent_conf_rule,
	[MSG_CONF_OPTION] = policyd_parent_conf_option,
	[MSG_CONF_COND] = policyd_parent_conf_cond,
	[MSG_CONF_DECIDER_NAME] = policyd_parent_conf_decider_name,
	[MSG_SESSION_OPEN] = policyd_parent_session_open,
	[MSG_SESSION_CLOSE] = policyd_parent_session_close,
};

static const struct child policyd = {
	.ch_role = ROLE_POLICYD,
	.ch_sandbox = &policyd_sandbox,
	.ch_handlers = policyd_handlers,
	.ch_warm = policyd_warm,
	.ch_channel = policyd_channel,
	.ch_begin = policyd_begin,
	.ch_weigh = policyd_weigh,
	.ch_commit = policyd_commit,
	.ch_abort = policyd_abort,
	.ch_stop = session_stop,
};

int
main(int argc, char *argv[])
{
	return child_main(&policyd, argc, argv);
}
