/* SPDX-License-Identifier: ISC */

/*
 * The program egressd-controld: what it hears from the parent, and where.
 */

#include "controld.h"

static const ipc_handler controld_handlers[MSG_MAX] = {
	CHILD_HANDLERS,
	[MSG_CONF_CONTROL] = controld_parent_conf_control,
	[MSG_CONF_LIMITS] = controld_parent_conf_limits,
	[MSG_CONF_SESSION] = controld_parent_conf_session,
	[MSG_CONF_POLICY_NAME] = controld_parent_conf_policy_name,
	[MSG_SESSION_MOUNTED] = controld_parent_session_mounted,
	[MSG_CONF_SANDBOX] = controld_parent_conf_sandbox,
	[MSG_CONF_ENVIRONMENT] = controld_parent_conf_environment,
	[MSG_STATUS_PROC] = controld_parent_status_proc,
	[MSG_STATUS_END] = controld_parent_status_end,
	[MSG_RELOAD_DONE] = controld_parent_reload_done,
	[MSG_PEER_ANSWER] = controld_parent_peer_answer,
	[MSG_SESSION_DONE] = controld_parent_session_done,
	[MSG_CLIENT] = controld_parent_client,
};

static const struct child controld = {
	.ch_role = ROLE_CONTROLD,
	.ch_sandbox = &controld_sandbox,
	.ch_handlers = controld_handlers,
	.ch_warm = controld_warm,
	.ch_channel = controld_channel,
	.ch_begin = controld_begin,
	.ch_weigh = controld_weigh,
	.ch_commit = controld_commit,
	.ch_abort = controld_abort,
};

int
main(int argc, char *argv[])
{
	return child_main(&controld, argc, argv);
}
