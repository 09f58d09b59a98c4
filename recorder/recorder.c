/* SPDX-License-Identifier: ISC */

/*
 * egressd-recorder: numbers, chains and writes the records, and serves those
 * who follow them.  It trusts the parent.  Messages of policyd and controld
 * are well formed but their values are checked; a bad one ends the process and
 * with it the daemon.  Engines are hostile; a bad message ends that engine
 * only.
 */

#include <poll.h>
#include <stdlib.h>

#include "child.h"
#include "log.h"
#include "recorder.h"

#define STOP_MS		1000	/* for policyd to end before us */

static struct ipc	*policyd;
static struct ipc	*controld;
static struct ipc	*podd;
static int		 running;	/* a generation is committed */

static int
recorder_policyd_record_session(struct ipc *ip, const union msg *m)
{
	const struct msg_record_session	*mr = &m->record_session;

	if (mr->kind != RECORD_SESSION_STARTED &&
	    mr->kind != RECORD_SESSION_ENDED)
		return ipc_bad(ip, "record of kind %u about a session",
		    mr->kind);
	if (mr->told > 1)
		return ipc_bad(ip, "environment told %u", mr->told);
	if (*mr->session == '\0')
		return ipc_bad(ip, "record about a session without a name");
	if (mr->kind == RECORD_SESSION_STARTED)
		refusals_forget(mr->session);
	chain_session(mr);
	return 0;
}

static int
recorder_parent_record_attached(struct ipc *ip, const union msg *m)
{
	const struct msg_record_attached	*mr = &m->record_attached;

	if (mr->kind != RECORD_SESSION_ATTACHED &&
	    mr->kind != RECORD_SESSION_DETACHED)
		return ipc_bad(ip, "record of kind %u about a connection",
		    mr->kind);
	chain_attached(mr);
	return 0;
}

/*
 * What policyd has sent before controld asks about it is written by then: they
 * have a channel each, which the loop hears in any order.
 */
static void
hear_policyd(void)
{
	if (policyd != NULL && running && ipc_read_rest(policyd) == -1)
		policyd->ip_gone(policyd, policyd->ip_why);
}

/* Records are written before they are counted in the answer. */
static int
recorder_controld_audit_ask(struct ipc *ip, const union msg *m)
{
	hear_policyd();
	audit_flush();
	ipc_send(ip, -1, AUDIT_STATUS, audit_status,
	    .cookie = m->cookie.cookie, .seq = chain_tip()->li_seq,
	    .followers = follower_count(),
	    .full = audit_full() || engines_held(), .path = audit_path(),
	    .spool = spool_max(), .waiting = spool_waiting(),
	    .acknowledged = spool_acknowledged());
	return 0;
}

/* A session of that name may just have begun; see refusals_forget(). */
static int
recorder_controld_refusals_ask(struct ipc *ip, const union msg *m)
{
	hear_policyd();
	refusals_tell(ip, &m->refusals_ask);
	return 0;
}

static int
recorder_parent_conf_audit(struct ipc *ip, const union msg *m)
{
	if (audit_offer(ipc_take_fd(ip), m->conf_audit.path) == -1)
		return ipc_bad(ip, "a second audit file in a generation");
	return 0;
}

static int
recorder_parent_conf_audit_same(struct ipc *ip, const union msg *m)
{
	(void)m;
	if (audit_keep() == -1)
		return ipc_bad(ip, "no audit file to keep");
	return 0;
}

static int
recorder_parent_conf_tip(struct ipc *ip, const union msg *m)
{
	(void)m;
	if (tip_offer(ipc_take_fd(ip)) == -1)
		return ipc_bad(ip, "a second tip in a generation");
	return 0;
}

static int
recorder_parent_conf_stdout(struct ipc *ip, const union msg *m)
{
	if (printer_offer(ipc_take_fd(ip), m->conf_stdout.plain) == -1)
		return ipc_bad(ip, "a second standard output in a generation");
	return 0;
}

static int
recorder_parent_conf_spool(struct ipc *ip, const union msg *m)
{
	if (m->conf_spool.size == 0 ||
	    m->conf_spool.size > (uint64_t)INT64_MAX / 2)
		return ipc_bad(ip, "a spool of %llu bytes",
		    (unsigned long long)m->conf_spool.size);
	if (spool_offer(ipc_take_fd(ip), m->conf_spool.size) == -1)
		return ipc_bad(ip, "a second spool in a generation");
	return 0;
}

static int
recorder_parent_follow(struct ipc *ip, const union msg *m)
{
	if (m->follow.from >= FOLLOW_FROM_MAX ||
	    (m->follow.from == FOLLOW_ACKNOWLEDGED &&
	    (m->follow.window < FOLLOW_WINDOW_MIN ||
	    m->follow.window > FOLLOW_WINDOW_MAX)))
		return ipc_bad(ip, "a follower from %u, window %llu",
		    m->follow.from, (unsigned long long)m->follow.window);
	follower_new(ipc_take_fd(ip), &m->follow);
	return 0;
}

static const ipc_handler parent_handlers[MSG_MAX] = {
	CHILD_HANDLERS,
	[MSG_CONF_AUDIT] = recorder_parent_conf_audit,
	[MSG_CONF_AUDIT_SAME] = recorder_parent_conf_audit_same,
	[MSG_CONF_GAP] = recorder_parent_conf_gap,
	[MSG_CONF_SPOOL] = recorder_parent_conf_spool,
	[MSG_CONF_TIP] = recorder_parent_conf_tip,
	[MSG_CONF_STDOUT] = recorder_parent_conf_stdout,
	[MSG_CONF_REDACT] = recorder_parent_conf_redact,
	[MSG_CONF_SESSION] = recorder_parent_conf_session,
	[MSG_FOLLOW] = recorder_parent_follow,
	[MSG_RECORD_ATTACHED] = recorder_parent_record_attached,
};

static const ipc_handler policyd_handlers[MSG_MAX] = {
	[MSG_RECORD_SESSION] = recorder_policyd_record_session,
	[MSG_RECORD_DECIDER] = recorder_policyd_record_decider,
};

static const ipc_handler controld_handlers[MSG_MAX] = {
	[MSG_AUDIT_ASK] = recorder_controld_audit_ask,
	[MSG_ACK_ASK] = recorder_controld_ack_ask,
	[MSG_REFUSALS_ASK] = recorder_controld_refusals_ask,
	[MSG_RECORD_POD] = recorder_controld_record_pod,
};

/*
 * All will end, and the parent sees to it in order.  Until the engines have
 * ended there are requests to account for.
 */
static void
recorder_peer_gone(struct ipc *ip, const char *why)
{
	if (why != NULL)
		fatalx("bad message from %s: %s", ip->ip_name, why);
	log_debug("%s has closed", ip->ip_name);
	if (ip == policyd)
		policyd = NULL;
	else if (ip == controld)
		controld = NULL;
	else
		pods_channel(NULL);
	ipc_free(ip);
}

/*
 * policyd is not heard before there is a generation: it may have its own
 * before we have ours, and its first records belong in the audit file.
 */
static int
recorder_channel(const struct msg_channel *m, int fd)
{
	if (m->peer == ROLE_ENGINE) {
		engine_new(m, fd);
		return 0;
	}
	if (m->peer == ROLE_CONTROLD && controld == NULL) {
		controld = child_peer(ROLE_CONTROLD, fd, controld_handlers);
		controld->ip_gone = recorder_peer_gone;
		return 0;
	}
	if (m->peer == ROLE_PODD && podd == NULL) {
		podd = child_peer(ROLE_PODD, fd, pods_handlers);
		podd->ip_gone = recorder_peer_gone;
		pods_channel(podd);
		return 0;
	}
	if (m->peer != ROLE_POLICYD || policyd != NULL)
		return -1;
	policyd = child_peer(ROLE_POLICYD, fd, policyd_handlers);
	policyd->ip_gone = recorder_peer_gone;
	if (!running)
		event_del(&policyd->ip_rev);
	return 0;
}

static void
recorder_begin(uint64_t generation)
{
	(void)generation;
	audit_begin();
	printer_begin();
	redact_begin();
}

static void
recorder_commit(void)
{
	printer_commit();
	audit_commit();
	redact_commit();
	engines_review();
	if (!running && policyd != NULL &&
	    event_add(&policyd->ip_rev, NULL) == -1)
		fatalx("%s: event_add", policyd->ip_name);
	running = 1;
}

/* Wait for policyd to end: its last messages become records. */
static void
recorder_stop(void)
{
	struct pollfd	 pfd = { .events = POLLIN };

	if (policyd != NULL && running) {
		pfd.fd = policyd->ip_buf.fd;
		while (poll(&pfd, 1, STOP_MS) == 1 &&
		    ipc_read_one(policyd) != -1)
			continue;
	}
	engines_finish();
}

/* However the process ends: write what was accepted. */
static void
recorder_exit(void)
{
	audit_finish();
	room_close();
	follower_flush();
	printer_flush();
}

static void
recorder_warm(void)
{
	chain_init();
	audit_init(child_base, engines_hold);
	follower_init(child_base);
	printer_init(child_base);
	/* Registered after libcrypto's handler, so that it runs first. */
	if (atexit(recorder_exit) != 0)
		fatalx("atexit");
}

int
main(int argc, char *argv[])
{
	static const struct child	 recorder = {
		.ch_role = ROLE_RECORDER,
		.ch_sandbox = &recorder_sandbox,
		.ch_handlers = parent_handlers,
		.ch_warm = recorder_warm,
		.ch_channel = recorder_channel,
		.ch_begin = recorder_begin,
		.ch_weigh = audit_weigh,
		.ch_commit = recorder_commit,
		.ch_abort = audit_abort,
		.ch_stop = recorder_stop,
	};

	return child_main(&recorder, argc, argv);
}
