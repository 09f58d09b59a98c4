/* SPDX-License-Identifier: ISC */

/*
 * controld: the channels to the other processes.  The whole daemon shares
 * them: when one ends or talks nonsense, so do we, and the daemon with us.
 */

#include "controld.h"

struct ipc	*channel_policyd;
struct ipc	*channel_recorder;
struct ipc	*channel_k8sd;
struct ipc	*channel_podd;

static struct ipc	*channels[ROLE_MAX];

static const ipc_handler policyd_handlers[MSG_MAX] = {
	[MSG_SESSION_ENDED] = controld_policyd_session_ended,
	[MSG_STATE_SESSION] = controld_policyd_state_session,
	[MSG_STATE_DECIDER] = controld_policyd_state_decider,
	[MSG_STATE_END] = controld_policyd_state_end,
	[MSG_PENDING_CHANGED] = controld_policyd_pending_changed,
	[MSG_LISTED_PENDING] = controld_policyd_listed_pending,
	[MSG_LISTED_ANSWER] = controld_policyd_listed_answer,
	[MSG_LIST_END] = controld_policyd_list_end,
	[MSG_CONTROL_DONE] = controld_policyd_control_done,
	[MSG_INQUIRY_ASKED] = controld_policyd_inquiry_asked,
	[MSG_INQUIRY_ANSWER] = controld_policyd_inquiry_answer,
};
static const ipc_handler recorder_handlers[MSG_MAX] = {
	[MSG_AUDIT_STATUS] = controld_recorder_audit_status,
	[MSG_ACK_DONE] = controld_recorder_ack_done,
	[MSG_REFUSAL] = controld_recorder_refusal,
	[MSG_REFUSALS] = controld_recorder_refusals,
};
static const ipc_handler k8sd_handlers[MSG_MAX] = {
	[MSG_POD_PROGRESS] = controld_k8sd_pod_progress,
	[MSG_POD_DONE] = controld_k8sd_pod_done,
	[MSG_POD_ENDED] = controld_k8sd_pod_ended,
	[MSG_POD_ITEM] = controld_k8sd_pod_item,
	[MSG_POD_ANSWER] = controld_k8sd_pod_answer,
	[MSG_POD_CHANNEL_OPENED] = controld_k8sd_pod_channel_opened,
	[MSG_POD_CHANNEL_ENDED] = controld_k8sd_pod_channel_ended,
};
static const ipc_handler podd_handlers[MSG_MAX] = {
	[MSG_PODD_STATE] = controld_podd_podd_state,
};

static int
channel_open(enum role peer, int fd, const ipc_handler *handlers)
{
	if (channels[peer] != NULL)
		return -1;
	channels[peer] = child_peer(peer, fd, handlers);
	channel_policyd = channels[ROLE_POLICYD];
	channel_recorder = channels[ROLE_RECORDER];
	channel_k8sd = channels[ROLE_K8SD];
	channel_podd = channels[ROLE_PODD];
	return 0;
}

int
controld_channel(const struct msg_channel *mc, int fd)
{
	switch (mc->peer) {
	case ROLE_POLICYD:
		return channel_open(ROLE_POLICYD, fd, policyd_handlers);
	case ROLE_RECORDER:
		return channel_open(ROLE_RECORDER, fd, recorder_handlers);
	case ROLE_K8SD:
		return channel_open(ROLE_K8SD, fd, k8sd_handlers);
	case ROLE_PODD:
		return channel_open(ROLE_PODD, fd, podd_handlers);
	default:
		return -1;
	}
}
