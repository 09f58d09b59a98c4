/* SPDX-License-Identifier: ISC */

/*
 * egressd-deciderd: the process that asks the deciders, for policyd and for
 * nobody else.
 */

#include "deciderd.h"

static const ipc_handler parent_handlers[MSG_MAX] = {
	CHILD_HANDLERS,
	OPENING_HANDLERS,
	[MSG_CONF_DECIDER] = deciderd_parent_conf_decider,
	[MSG_CONF_FILE] = deciderd_parent_conf_file,
	[MSG_CONF_HEADER] = deciderd_parent_conf_header,
	[MSG_CONF_OPTION] = deciderd_parent_conf_option,
	[MSG_CONF_RESOLVER] = deciderd_parent_conf_resolver,
	[MSG_SERVE] = deciderd_parent_serve,
};

static const ipc_handler policyd_handlers[MSG_MAX] = {
	[MSG_QUESTION] = deciderd_policyd_question,
	[MSG_QUESTION_DROP] = deciderd_policyd_question_drop,
};

static int
deciderd_channel(const struct msg_channel *mc, int fd)
{
	if (mc->peer != ROLE_POLICYD)
		return -1;
	questions_open(child_peer(ROLE_POLICYD, fd, policyd_handlers));
	return 0;
}

int
main(int argc, char *argv[])
{
	static const struct child deciderd = {
		.ch_role = ROLE_DECIDERD,
		.ch_sandbox = &deciderd_sandbox,
		.ch_handlers = parent_handlers,
		.ch_warm = https_warm,
		.ch_channel = deciderd_channel,
		.ch_begin = slice_begin,
		.ch_weigh = slice_weigh,
		.ch_commit = slice_commit,
		.ch_abort = slice_abort,
	};

	return child_main(&deciderd, argc, argv);
}
