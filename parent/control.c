/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: what controld cannot do for a control client itself.
 * controld is trusted more than an engine and less than we are, so that what
 * it sends is looked up and nothing of a client's socket is read here.
 */

#include <sys/socket.h>
#include <sys/un.h>

#include <string.h>
#include <unistd.h>

#include "parent.h"

int
parent_controld_status_ask(struct ipc *ip, const union msg *m)
{
	struct proc	*pr;

	ipc_send(ip, -1, STATUS_PROC, status_proc, .cookie = m->cookie.cookie,
	    .role = ROLE_PARENT, .pid = getpid());
	TAILQ_FOREACH(pr, &procs, pr_entry)
		ipc_send(ip, -1, STATUS_PROC, status_proc,
		    .cookie = m->cookie.cookie, .role = pr->pr_role,
		    .pid = pr->pr_pid, .session = pr->pr_session != NULL ?
		    pr->pr_session->se_name : "");
	ipc_send(ip, -1, STATUS_END, status_end, .cookie = m->cookie.cookie,
	    .generation = d.d_generation, .started = d.d_started,
	    .privileged = d.d_privileged, .log_level = log_get_level(),
	    .configuration = d.d_conf_path,
	    .sha256 = d.d_conf != NULL ? d.d_conf->cf_sha256 : "");
	return 0;
}

int
parent_controld_reload_ask(struct ipc *ip, const union msg *m)
{
	(void)ip;
	reload_ask(&m->cookie.cookie);
	return 0;
}

int
parent_controld_log_ask(struct ipc *ip, const union msg *m)
{
	if (log_level_name(m->log_level.level) == NULL)
		return ipc_bad(ip, "log level %u", m->log_level.level);
	procs_log_level(m->log_level.level);
	return 0;
}

/* Whether a connection is to a socket for our container only. */
static bool
is_own(int fd)
{
	const struct conf_control	*ct = d.d_conf->cf_control;
	const struct conf_control	*ro = d.d_conf->cf_control_ro;
	struct sockaddr_un		 sun = { .sun_family = AF_UNIX };
	socklen_t			 len = sizeof(sun) - 1;

	if (getsockname(fd, (struct sockaddr *)&sun, &len) == -1)
		return true;
	if (ro != NULL && strcmp(sun.sun_path, ro->ct_path) == 0)
		return ro->ct_own;
	return ct != NULL && ct->ct_own;
}

int
parent_controld_peer_ask(struct ipc *ip, const union msg *m)
{
	struct peer	 peer = { 0 };
	int		 fd = ipc_take_fd(ip);
	bool		 welcome = fd != -1 &&
	    peer_welcome(fd, &peer, is_own(fd));

	if (fd == -1)
		log_warnx("a control client is lost: no free descriptor");
	ipc_send(ip, -1, PEER_ANSWER, peer_answer, .cookie = m->cookie.cookie,
	    .welcome = welcome, .uid = peer.pe_uid, .gid = peer.pe_gid);
	if (fd != -1)
		close(fd);
	return 0;
}

int
parent_controld_follow_ask(struct ipc *ip, const union msg *m)
{
	struct proc	*recorder = proc_find(ROLE_RECORDER);
	int		 fd = ipc_take_fd(ip);

	if (fd == -1 || recorder == NULL || recorder->pr_ipc == NULL) {
		log_warnx("a follower is lost: no free descriptor");
		if (fd != -1)
			close(fd);
		return 0;
	}
	ipc_send(recorder->pr_ipc, fd, FOLLOW, follow,
	    .kinds = m->follow.kinds, .session = m->follow.session,
	    .from = m->follow.from, .first = m->follow.first,
	    .window = m->follow.window, .term = m->follow.term);
	return 0;
}

int
parent_controld_serve_ask(struct ipc *ip, const union msg *m)
{
	struct proc	*deciderd = proc_find(ROLE_DECIDERD);
	int		 fd = ipc_take_fd(ip);

	if (fd == -1 || deciderd == NULL || deciderd->pr_ipc == NULL) {
		log_warnx("who serves questions is lost: no free descriptor");
		if (fd != -1)
			close(fd);
		return 0;
	}
	ipc_send(deciderd->pr_ipc, fd, SERVE, serve, m->serve.term);
	return 0;
}

/* A child reports that an engine sent it a bad message. */
int
parent_child_engine_bad(struct ipc *ip, const union msg *m)
{
	struct proc	*pr;

	(void)ip;
	/* It may have died of itself meanwhile. */
	pr = proc_by_instance(m->engine_bad.instance);
	if (pr != NULL && pr->pr_role == ROLE_ENGINE)
		proc_kill(pr, m->engine_bad.why);
	return 0;
}

const ipc_handler parent_handlers[MSG_MAX] = {
	[MSG_CONF_ACK] = parent_child_conf_ack,
	[MSG_CONF_NAK] = parent_child_conf_nak,
	[MSG_CONF_DONE] = parent_child_conf_done,
	[MSG_STATUS_ASK] = parent_controld_status_ask,
	[MSG_RELOAD_ASK] = parent_controld_reload_ask,
	[MSG_LOG_ASK] = parent_controld_log_ask,
	[MSG_PEER_ASK] = parent_controld_peer_ask,
	[MSG_FOLLOW_ASK] = parent_controld_follow_ask,
	[MSG_SERVE_ASK] = parent_controld_serve_ask,
	[MSG_SESSION_ASK] = parent_controld_session_ask,
	[MSG_SANDBOX_ASK] = parent_controld_sandbox_ask,
	[MSG_SESSION_ATTACH] = parent_controld_session_attach,
	[MSG_SESSION_MOUNT] = parent_controld_session_mount,
	[MSG_SESSION_STOP] = parent_controld_session_stop,
	[MSG_ENGINE_BAD] = parent_child_engine_bad,
	[MSG_SOCKET_ASK] = parent_dialer_socket_ask,
	[MSG_ENGINE_TRUST] = parent_engine_trust,
	[MSG_OPEN_ASK] = parent_child_open_ask,
	[MSG_OPEN_DONE] = parent_child_open_done,
};
