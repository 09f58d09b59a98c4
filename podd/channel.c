/* SPDX-License-Identifier: ISC */

/*
 * podd: the channels to the other processes.  All of them are trusted more
 * than we are: when one ends or talks nonsense, so do we, and the daemon with
 * us.  What they know of a channel may have ended on the way: then what they
 * say of it is no fault.
 */

#include <string.h>

#include "podd.h"

struct ipc	*podd_controld;
struct ipc	*podd_policyd;
struct ipc	*podd_recorder;

/* Whether somebody takes less than gates say. */
int
podd_congested(void)
{
	return podd_recorder->ip_congested || podd_policyd->ip_congested ||
	    podd_controld->ip_congested;
}

static int
podd_controld_open(struct ipc *ip, const union msg *m)
{
	const struct msg_podd_open	*mo = &m->podd_open;
	int				 fd = ipc_take_fd(ip);

	if (mo->channel == 0 || gate_find(mo->channel) != NULL ||
	    *mo->session == '\0' || podd_policyd == NULL ||
	    podd_recorder == NULL)
		return ipc_bad(ip, "channel %u", mo->channel);
	if (fd == -1)
		ipc_send(ip, -1, PODD_STATE, podd_state,
		    .channel = mo->channel, .state = PODD_LOST,
		    .text = "no free descriptor");
	else
		gate_open(mo, fd);
	return 0;
}

static int
podd_controld_close(struct ipc *ip, const union msg *m)
{
	struct gate	*ga = gate_find(m->podd_close.channel);

	(void)ip;
	if (ga != NULL)
		gate_free(ga);
	return 0;
}

static int
podd_controld_reload(struct ipc *ip, const union msg *m)
{
	const struct msg_podd_reload	*mr = &m->podd_reload;
	struct gate			*ga = gate_find(mr->channel);

	if (strspn(mr->sha256, "0123456789abcdef") != FINGERPRINT_LEN)
		return ipc_bad(ip, "a configuration without a hash");
	if (ga != NULL)
		gate_reload(ga, mr->sha256);
	return 0;
}

static int
podd_recorder_recorded(struct ipc *ip, const union msg *m)
{
	struct gate	*ga = gate_find(m->pod_recorded.channel);

	if (ga == NULL)
		return 0;
	if (m->pod_recorded.origin_seq > ga->ga_seq)
		return ipc_bad(ip, "record %llu of a pod was not sent",
		    (unsigned long long)m->pod_recorded.origin_seq);
	gate_ack(ga, m->pod_recorded.origin_seq);
	return 0;
}

/* Another channel will bring them again. */
static int
podd_recorder_unrecorded(struct ipc *ip, const union msg *m)
{
	struct gate	*ga = gate_find(m->pod_unrecorded.channel);

	(void)ip;
	if (ga != NULL)
		gate_fail_end(ga, PODD_LOST,
		    "its records cannot be written down here");
	return 0;
}

static int
podd_policyd_answer(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_question_answer *ma = &m->pod_question_answer;
	struct gate	*ga = gate_find(ma->channel);

	if (ma->result >= ANSWER_RESULT_MAX || ma->hostile > 1 ||
	    ma->keep > 1)
		return ipc_bad(ip, "answer %u, hostile %u, keep %u",
		    ma->result, ma->hostile, ma->keep);
	if (ga != NULL)
		gate_answer(ga, ma);
	return 0;
}

static const ipc_handler controld_handlers[MSG_MAX] = {
	[MSG_PODD_OPEN] = podd_controld_open,
	[MSG_PODD_CLOSE] = podd_controld_close,
	[MSG_PODD_RELOAD] = podd_controld_reload,
};
static const ipc_handler recorder_handlers[MSG_MAX] = {
	[MSG_POD_RECORDED] = podd_recorder_recorded,
	[MSG_POD_UNRECORDED] = podd_recorder_unrecorded,
};
static const ipc_handler policyd_handlers[MSG_MAX] = {
	[MSG_POD_QUESTION_ANSWER] = podd_policyd_answer,
};

int
podd_channel(const struct msg_channel *mc, int fd)
{
	static const struct {
		struct ipc		**ip;
		const ipc_handler	 *handlers;
	} peers[ROLE_MAX] = {
		[ROLE_CONTROLD] = { &podd_controld, controld_handlers },
		[ROLE_POLICYD] = { &podd_policyd, policyd_handlers },
		[ROLE_RECORDER] = { &podd_recorder, recorder_handlers },
	};

	if (mc->peer >= ROLE_MAX || peers[mc->peer].ip == NULL ||
	    *peers[mc->peer].ip != NULL)
		return -1;
	*peers[mc->peer].ip = child_peer(mc->peer, fd,
	    peers[mc->peer].handlers);
	(*peers[mc->peer].ip)->ip_drained = gates_resume;
	return 0;
}
