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
 * egressd-deciderd: the process that asks the deciders, for policyd and for
 * nobody else.
 */

#include "deciderd.h"

static const ipc_handler parent_handlers[MSG_MAX] = {
	CHILD_HANDLERS,
	[MSG_CONF_DECIDER] = deciderd_parent_conf_decider,
	[MSG_CONF_FILE] = deciderd_parent_conf_file,
	[MSG_CONF_HEADER] = deciderd_parent_conf_header,
	[MSG_CONF_RESOLVER] = deciderd_parent_conf_resolver,
	[MSG_HELPER] = deciderd_parent_helper,
	[MSG_HELPER_FAILED] = deciderd_parent_helper_failed,
	[MSG_HELPER_EXITED] = deciderd_parent_helper_exited,
};

static const ipc_handler policyd_handlers[MSG_MAX] = {
	[MSG_QUESTION] = deciderd_policyd_question,
	[MSG_QUESTION_DROP] = deciderd_policyd_question_drop,
};

static void
deciderd_warm(void)
{
	http_warm();
	resolver_warm(NULL);
}

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
		.ch_warm = deciderd_warm,
		.ch_channel = deciderd_channel,
		.ch_begin = slice_begin,
		.ch_weigh = slice_weigh,
		.ch_commit = slice_commit,
		.ch_abort = slice_abort,
	};

	return child_main(&deciderd, argc, argv);
}
