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
 * policyd: the channels to the other processes.  Those that the whole daemon
 * shares cannot be missed: when one ends or talks nonsense, so do we, and the
 * daemon with us.  An engine is only its session's loss; see session.c.
 */

#include "policyd.h"

struct ipc	*channel_recorder;
struct ipc	*channel_dialer;
struct ipc	*channel_deciderd;

static struct ipc	*channels[ROLE_MAX];

static const ipc_handler recorder_handlers[MSG_MAX] = {
	[MSG_AUDIT_STATUS] = policyd_recorder_audit_status,
	[MSG_REFUSAL] = policyd_recorder_refusal,
	[MSG_REFUSALS] = policyd_recorder_refusals,
};
static const ipc_handler deciderd_handlers[MSG_MAX] = {
	[MSG_ANSWER] = policyd_deciderd_answer,
};
static const ipc_handler silent_handlers[MSG_MAX];

static int
channel_open(enum role peer, int fd, const ipc_handler *handlers)
{
	if (channels[peer] != NULL)
		return -1;
	channels[peer] = child_peer(peer, fd, handlers);
	channel_recorder = channels[ROLE_RECORDER];
	channel_dialer = channels[ROLE_DIALER];
	channel_deciderd = channels[ROLE_DECIDERD];
	if (peer == ROLE_DECIDERD)
		channel_deciderd->ip_drained = judges_drained;
	return 0;
}

int
policyd_channel(const struct msg_channel *mc, int fd)
{
	switch (mc->peer) {
	case ROLE_RECORDER:
		return channel_open(ROLE_RECORDER, fd, recorder_handlers);
	case ROLE_DECIDERD:
		return channel_open(ROLE_DECIDERD, fd, deciderd_handlers);
	case ROLE_DIALER:
	case ROLE_K8SD:
		return channel_open(mc->peer, fd, silent_handlers);
	case ROLE_ENGINE:
		return session_attach(mc, fd);
	default:
		return -1;
	}
}
