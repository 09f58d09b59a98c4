/* SPDX-License-Identifier: ISC */

/*
 * controld: the channels to gates in pods.  k8sd makes one end of each, podd
 * gets the other; we read nothing of what goes through them.  A channel that
 * ends, however it does, is dialled again, later and later, for so long; then
 * it is given up, which is recorded, until somebody starts or attaches to the
 * session.  The gate of one that podd has cut off as hostile is not dialled
 * before that either.  What happens to one channel concerns no other.
 *
 *	dialling	k8sd is asked
 *	opening		podd speaks with the gate
 *	up
 *	other_configuration	likewise, but its questions are not answered
 *	waiting		until it is dialled again
 *	given_up, hostile
 */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "controld.h"

static const char *const	 link_words[] = {
	[LINK_NONE] = "none", [LINK_DIALLING] = "dialling",
	[LINK_OPENING] = "opening", [LINK_UP] = "up",
	[LINK_OTHER] = "other_configuration", [LINK_WAITING] = "waiting",
	[LINK_GIVEN_UP] = "given_up", [LINK_HOSTILE] = "hostile",
};

static void	 link_on_timer(evutil_socket_t, short, void *);

/* NULL is nothing unusual: the channel may be another's by now. */
static struct session *
link_find(uint32_t number)
{
	struct session	*se;

	RB_FOREACH(se, sessions, &sessions)
		if (se->se_pod != NULL && number != 0 &&
		    se->se_pod->po_link.lk_number == number)
			return se;
	return NULL;
}

static void
link_state(struct link *lk, enum link_state state, const char *text)
{
	if (lk->lk_state != state)
		lk->lk_since = clock_wall_ns();
	lk->lk_state = state;
	strlcpy(lk->lk_text, text, sizeof(lk->lk_text));
}

static void
link_record(const struct session *se, enum record_kind kind)
{
	const struct link	*lk = &se->se_pod->po_link;
	char			 reason[PATH_LEN + 1];

	snprintf(reason, sizeof(reason), "%s: %s",
	    kind == RECORD_POD_HOSTILE ? REASON_GATE_HOSTILE :
	    REASON_GATE_LOST, lk->lk_text);
	log_warnx("session %s: pod %s: its channel is %s: %s", se->se_name,
	    se->se_pod->po_name, link_words[lk->lk_state], lk->lk_text);
	ipc_send(channel_recorder, -1, RECORD_POD, record_pod, .kind = kind,
	    .at = clock_wall_ns(), .session = se->se_name,
	    .pod = se->se_pod->po_name, .uid = lk->lk_uid,
	    .node = lk->lk_node, .reason = reason);
}

static void
link_dial(struct session *se)
{
	static uint32_t	 last;
	struct link	*lk = &se->se_pod->po_link;

	do
		last++;
	while (last == 0 || link_find(last) != NULL);
	lk->lk_number = last;
	lk->lk_ended[0] = '\0';
	link_state(lk, LINK_DIALLING, lk->lk_text);
	ipc_send(channel_k8sd, -1, POD_CHANNEL, pod_channel,
	    .number = se->se_number, .channel = lk->lk_number);
}

static void
link_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	link_dial(arg);
}

/* The pod runs, and has a gate. */
void
link_begin(struct session *se)
{
	evtimer_assign(&se->se_pod->po_link.lk_timer, child_base,
	    link_on_timer, se);
	link_dial(se);
}

/* Somebody cares for the session: what was given up is tried again. */
void
link_again(struct session *se)
{
	struct link	*lk;

	if (se->se_pod == NULL)
		return;
	lk = &se->se_pod->po_link;
	if (lk->lk_state != LINK_GIVEN_UP && lk->lk_state != LINK_HOSTILE)
		return;
	backoff_reset(&lk->lk_backoff);
	link_dial(se);
}

/* The session's part in its pod is over. */
void
link_end(struct pod *po)
{
	struct link	*lk = &po->po_link;

	if (lk->lk_state == LINK_NONE)
		return;
	evtimer_del(&lk->lk_timer);
	if (lk->lk_state >= LINK_OPENING && lk->lk_state <= LINK_OTHER)
		ipc_send(channel_podd, -1, PODD_CLOSE, podd_close,
		    .channel = lk->lk_number);
	lk->lk_state = LINK_NONE;
	lk->lk_number = 0;
}

static void
link_lost(struct session *se, const char *text)
{
	struct link	*lk = &se->se_pod->po_link;
	int		 delay = backoff_failed(&lk->lk_backoff, clock_ms());
	struct timeval	 tv = { delay / 1000, delay % 1000 * 1000 };

	/* k8sd knows better why than podd, who sees it end. */
	if (lk->lk_ended[0] != '\0')
		text = lk->lk_ended;
	if (delay == -1) {
		link_state(lk, LINK_GIVEN_UP, text);
		link_record(se, RECORD_POD_LOST);
		return;
	}
	if (lk->lk_state != LINK_DIALLING || lk->lk_text[0] == '\0')
		log_info("session %s: pod %s: the channel to its gate is "
		    "lost: %s", se->se_name, se->se_pod->po_name, text);
	link_state(lk, LINK_WAITING, text);
	if (evtimer_add(&lk->lk_timer, &tv) == -1)
		fatalx("session %s: no timer", se->se_name);
}

void
link_put(struct jsonw *w, const struct session *se)
{
	const struct link	*lk;

	if (se->se_pod == NULL || !se->se_pod->po_gated)
		return;
	lk = &se->se_pod->po_link;
	jsonw_key(w, "channel");
	jsonw_object(w);
	put_str(w, "state", link_words[lk->lk_state]);
	put_time(w, "since", lk->lk_since);
	put_str(w, "node", lk->lk_node[0] != '\0' ? lk->lk_node : NULL);
	put_str(w, "reason", lk->lk_text[0] != '\0' ? lk->lk_text : NULL);
	jsonw_end(w);
}

/* ---- from k8sd ---------------------------------------------------------- */

int
controld_k8sd_pod_channel_opened(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_channel_opened	*mo = &m->pod_channel_opened;
	struct session	*se = link_find(mo->channel);
	int		 fd = ipc_take_fd(ip);
	struct link	*lk;

	if (*mo->uid == '\0')
		return ipc_bad(ip, "channel %u to no pod", mo->channel);
	if (se == NULL || se->se_pod->po_link.lk_state != LINK_DIALLING) {
		/* The session has ended: with this end the other one does. */
		if (fd != -1)
			close(fd);
		return 0;
	}
	lk = &se->se_pod->po_link;
	strlcpy(lk->lk_uid, mo->uid, sizeof(lk->lk_uid));
	strlcpy(lk->lk_node, mo->node, sizeof(lk->lk_node));
	if (fd == -1) {
		link_lost(se, "no free descriptor");
		return 0;
	}
	link_state(lk, LINK_OPENING, lk->lk_text);
	ipc_send(channel_podd, fd, PODD_OPEN, podd_open,
	    .channel = lk->lk_number, .session = se->se_name,
	    .pod = se->se_pod->po_name, .uid = lk->lk_uid,
	    .node = lk->lk_node, .term = mo->term, .sha256 = mo->sha256);
	return 0;
}

int
controld_k8sd_pod_channel_ended(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_channel_ended	*me = &m->pod_channel_ended;
	struct session	*se = link_find(me->channel);
	struct link	*lk;

	(void)ip;
	if (se == NULL)
		return 0;
	lk = &se->se_pod->po_link;
	strlcpy(lk->lk_ended, me->text, sizeof(lk->lk_ended));
	if (lk->lk_state == LINK_DIALLING)
		link_lost(se, me->text);
	else if (lk->lk_state == LINK_WAITING)
		link_state(lk, LINK_WAITING, me->text);
	/* Otherwise podd reads to the end, and says so. */
	return 0;
}

/* ---- from podd ---------------------------------------------------------- */

int
controld_podd_podd_state(struct ipc *ip, const union msg *m)
{
	const struct msg_podd_state	*ms = &m->podd_state;
	struct session			*se = link_find(ms->channel);
	struct link			*lk;

	if (ms->state >= PODD_STATE_MAX)
		return ipc_bad(ip, "state %u", ms->state);
	if (se == NULL)
		return 0;
	lk = &se->se_pod->po_link;
	if (lk->lk_state < LINK_OPENING || lk->lk_state > LINK_OTHER)
		return ipc_bad(ip, "channel %u, which it does not have",
		    ms->channel);
	if (ms->state == PODD_UP) {
		backoff_up(&lk->lk_backoff, clock_ms());
		link_state(lk, LINK_UP, "");
	} else if (ms->state == PODD_OTHER_CONF) {
		backoff_up(&lk->lk_backoff, clock_ms());
		link_state(lk, LINK_OTHER, ms->text);
	} else if (ms->state == PODD_HOSTILE) {
		link_state(lk, LINK_HOSTILE, ms->text);
		link_record(se, RECORD_POD_HOSTILE);
	} else
		link_lost(se, ms->text);
	return 0;
}
