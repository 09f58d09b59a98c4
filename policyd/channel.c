/* SPDX-License-Identifier: ISC */

/*
 * policyd: the channels to the other processes.  Those that the whole daemon
 * shares cannot be missed: when one ends or talks nonsense, so do we, and the
 * daemon with us.  An engine is only its session's loss; see session.c.
 */

#include <stdlib.h>

#include "policyd.h"

struct ipc	*channel_controld;
struct ipc	*channel_recorder;
struct ipc	*channel_dialer;
struct ipc	*channel_deciderd;
struct ipc	*channel_podd;

static struct ipc	*channels[ROLE_MAX];

static const ipc_handler controld_handlers[MSG_MAX] = {
	[MSG_STATE_ASK] = policyd_controld_state_ask,
	[MSG_PENDING_WATCH] = policyd_controld_pending_watch,
	[MSG_LIST_ASK] = policyd_controld_list_ask,
	[MSG_PENDING_ANSWER] = policyd_controld_pending_answer,
	[MSG_CACHE_CLEAR] = policyd_controld_cache_clear,
	[MSG_CONTEXT_MESSAGE] = policyd_controld_context_message,
	[MSG_CONTEXT_METADATA] = policyd_controld_context_metadata,
	[MSG_INQUIRY_MESSAGE] = policyd_controld_inquiry_message,
	[MSG_INQUIRY_ASK] = policyd_controld_inquiry_ask,
	[MSG_INQUIRY_DROP] = policyd_controld_inquiry_drop,
};
static const ipc_handler deciderd_handlers[MSG_MAX] = {
	[MSG_ANSWER] = policyd_deciderd_answer,
	[MSG_SERVED] = policyd_deciderd_served,
};
static const ipc_handler podd_handlers[MSG_MAX] = {
	[MSG_POD_QUESTION] = policyd_podd_question,
	[MSG_POD_QUESTION_DROP] = policyd_podd_question_drop,
};
static const ipc_handler silent_handlers[MSG_MAX];

/*
 * All ends, and the recorder goes last: unless the recorder is the one that is
 * gone, the end of each session goes on record.
 */
static void
policyd_peer_gone(struct ipc *ip, const char *why)
{
	if (why != NULL)
		fatalx("bad message from %s: %s", ip->ip_name, why);
	log_debug("%s has closed", ip->ip_name);
	if (ip == channel_controld)
		channel_controld = NULL;
	if (ip != channel_recorder)
		session_stop();
	exit(0);
}

static int
channel_open(enum role peer, int fd, const ipc_handler *handlers)
{
	if (channels[peer] != NULL)
		return -1;
	channels[peer] = child_peer(peer, fd, handlers);
	channels[peer]->ip_gone = policyd_peer_gone;
	channel_controld = channels[ROLE_CONTROLD];
	channel_recorder = channels[ROLE_RECORDER];
	channel_dialer = channels[ROLE_DIALER];
	channel_deciderd = channels[ROLE_DECIDERD];
	channel_podd = channels[ROLE_PODD];
	if (peer == ROLE_DECIDERD)
		channel_deciderd->ip_drained = deciders_drained;
	return 0;
}

int
policyd_channel(const struct msg_channel *mc, int fd)
{
	switch (mc->peer) {
	case ROLE_CONTROLD:
		return channel_open(ROLE_CONTROLD, fd, controld_handlers);
	case ROLE_DECIDERD:
		return channel_open(ROLE_DECIDERD, fd, deciderd_handlers);
	case ROLE_PODD:
		return channel_open(ROLE_PODD, fd, podd_handlers);
	case ROLE_RECORDER:
	case ROLE_DIALER:
		return channel_open(mc->peer, fd, silent_handlers);
	case ROLE_ENGINE:
		return session_attach(mc, fd);
	default:
		return -1;
	}
}
