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
 * The program egressd-policyd: what it hears from the parent, and where.
 */

#include "policyd.h"

static const ipc_handler policyd_handlers[MSG_MAX] = {
	CHILD_HANDLERS,
	[MSG_CONF_CONTROL] = policyd_parent_conf_control,
	[MSG_CONF_LIMITS] = policyd_parent_conf_limits,
	[MSG_CONF_SESSION] = policyd_parent_conf_session,
	[MSG_CONF_POLICY] = policyd_parent_conf_policy,
	[MSG_CONF_REDACT] = policyd_parent_conf_redact,
	[MSG_CONF_RULE] = policyd_parent_conf_rule,
	[MSG_CONF_COND] = policyd_parent_conf_cond,
	[MSG_CONF_ENVIRONMENT] = policyd_parent_conf_environment,
	[MSG_CONF_JUDGE] = policyd_parent_conf_judge,
	[MSG_STATUS_PROC] = policyd_parent_status_proc,
	[MSG_STATUS_END] = policyd_parent_status_end,
	[MSG_RELOAD_DONE] = policyd_parent_reload_done,
	[MSG_PEER_ANSWER] = policyd_parent_peer_answer,
	[MSG_SESSION_DONE] = policyd_parent_session_done,
	[MSG_CLIENT] = policyd_parent_client,
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
