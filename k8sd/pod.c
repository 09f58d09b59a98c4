/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: what a session has of a pod.  It waits for the pod (kpod.c)
 * and for what is to be in it (source.c), and then hands each of the session's
 * clients to hands of its own in the workspace, unread.
 */

#include <sys/queue.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "child.h"
#include "codes.h"
#include "exec.h"
#include "hand.h"
#include "kpod.h"
#include "log.h"
#include "pod_parts.h"
#include "source.h"

#define ATTACHES_MAX	64	/* of a session, at a time */

/* ---- ends ---- */

static void
attach_free(struct attach *at)
{
	TAILQ_REMOVE(&at->at_pod->po_attaches, at, at_entry);
	at->at_pod->po_nattaches--;
	exec_cancel(at->at_exec);
	event_del(&at->at_timer);
	if (at->at_fd != -1)
		exec_hang_up(at->at_fd);
	free(at);
}

static void
pod_hush(struct pod *po)
{
	struct attach	*at;

	source_cancel(po->po_source);
	po->po_source = NULL;
	exec_cancel(po->po_channel_exec);
	po->po_channel_exec = NULL;
	while ((at = TAILQ_FIRST(&po->po_attaches)) != NULL)
		attach_free(at);
}

static void
pod_free(struct pod *po)
{
	pod_hush(po);
	event_del(&po->po_event);
	api_cancel(po->po_call);
	gate_unref(po->po_gate);
	free(po->po_session);
	free(po->po_sandbox);
	free(po->po_variables);
	free(po->po_list);
	if (po->po_cluster != NULL)
		cluster_unref(po->po_cluster);
	free(po->po_namespace);
	free(po->po_cwd);
	free(po->po_git);
	free(po->po_ref);
	free(po);
}

void
pod_forget(struct pod *po)
{
	if (po->po_user.ku_kpod != NULL)
		kpod_leave(&po->po_user, 0);
	pod_free(po);
}

static void
pod_failed_end(struct pod *po, const char *code, const char *text)
{
	if (po->po_done)
		po->po_callbacks.pc_ended(po->po_arg, CAUSE_SANDBOX, text);
	else
		po->po_callbacks.pc_done(po->po_arg, code, po->po_name, text);
	pod_free(po);
}

/* Told from the event loop. */
void
pod_fail_later(struct pod *po, const char *code, const char *fmt, ...)
{
	va_list	 ap;

	va_start(ap, fmt);
	vsnprintf(po->po_text, sizeof(po->po_text), fmt, ap);
	va_end(ap);
	po->po_code = code;
	event_active(&po->po_event, EV_TIMEOUT, 0);
}

/* Unless something else comes before. */
void
pod_fail_after(struct pod *po, unsigned int ms, const char *code,
    const char *text)
{
	struct timeval	 tv = { ms / 1000, ms % 1000 * 1000 };

	strlcpy(po->po_text, text, sizeof(po->po_text));
	po->po_code = code;
	if (event_add(&po->po_event, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

void
pod_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct pod	*po = arg;

	(void)fd, (void)what;
	if (!po->po_stopping) {
		pod_failed_end(po, po->po_code, po->po_text);
		return;
	}
	po->po_callbacks.pc_ended(po->po_arg, CAUSE_REQUEST, "");
	pod_free(po);
}

/* ---- clients ---- */

static void
attach_ended(void *arg, const struct exec_end *ee)
{
	struct attach	*at = arg;

	at->at_exec = NULL;
	if (ee->how != EXEC_EXITED)
		log_info("pod %s: a client's hands: %s",
		    at->at_pod->po_name, ee->why);
	attach_free(at);
}

static void
attach_go(struct attach *at)
{
	struct pod		*po = at->at_pod;
	const char		*command[8] = {
		BOX_PROGRAM, "hands", "-k", "-d", po->po_cwd
	};
	struct exec_request	 er = {
		.namespace = po->po_namespace,
		.pod = po->po_name,
		.container = WORKSPACE,
		.command = command,
		.fd = at->at_fd,
	};
	size_t			 n = 5;

	if (!po->po_gated)
		command[n++] = "-u";
	if (po->po_forward)
		command[n++] = "-F";
	at->at_fd = -1;
	event_del(&at->at_timer);
	api_renew(&po->po_cluster);
	at->at_exec = exec_begin(po->po_cluster, &er, attach_ended, at);
}

/* Nothing was sent yet: what a client hears first may be that it is late. */
static void
attach_late(evutil_socket_t fd, short what, void *arg)
{
	struct attach	*at = arg;

	(void)fd, (void)what;
	log_warnx("pod %s: a client waited for the workspace, which does not "
	    "come back", at->at_pod->po_name);
	hand_refuse(at->at_fd, "the workspace does not run");
	attach_free(at);
}

/* As long as for a pod that is new. */
static void
attach_wait(struct attach *at)
{
	uint64_t	 ms = at->at_pod->po_user.ku_kpod->kp_terms.kt_ready_ms;
	struct timeval	 tv = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_usec = (suseconds_t)(ms % 1000 * 1000)
	};

	if (event_add(&at->at_timer, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

void
pod_attach(struct pod *po, int fd)
{
	struct attach	*at;

	if (!po->po_done || po->po_stopping ||
	    po->po_nattaches >= ATTACHES_MAX) {
		exec_hang_up(fd);
		return;
	}
	if ((at = calloc(1, sizeof(*at))) == NULL)
		fatal("%s", __func__);
	at->at_pod = po;
	at->at_fd = fd;
	TAILQ_INSERT_TAIL(&po->po_attaches, at, at_entry);
	po->po_nattaches++;
	event_assign(&at->at_timer, child_base, -1, 0, attach_late, at);
	if (po->po_user.ku_kpod->kp_runs)
		attach_go(at);
	else
		attach_wait(at);
}

/* ---- the gate ---- */

int
pod_is_gated(const struct pod *po)
{
	return po->po_gated;
}

/* Success may mean that the gate has died: every end is told alike. */
static void
channel_ended(void *arg, const struct exec_end *ee)
{
	struct pod	*po = arg;
	char		 text[POD_TEXT_LEN];

	po->po_channel_exec = NULL;
	if (ee->how != EXEC_EXITED)
		snprintf(text, sizeof(text), "%s", ee->why);
	else
		snprintf(text, sizeof(text), "egressctl pump ended with "
		    "status %d: %s", ee->code, ee->stderr_tail);
	po->po_callbacks.pc_channel_ended(po->po_arg, po->po_channel, text);
}

void
pod_channel(struct pod *po, uint32_t number, struct pod_channel *pn)
{
	static const char *const	 command[] = {
		PUMP_PROGRAM, "pump", NULL
	};
	struct exec_request		 er = {
		.namespace = po->po_namespace,
		.pod = po->po_name,
		.container = GATE,
		.command = command,
	};
	int				 fds[2];

	memset(pn, 0, sizeof(*pn));
	pn->pn_fd = -1;
	if (!po->po_done || po->po_stopping || po->po_user.ku_kpod == NULL ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
	    fds) == -1)
		return;
	if (po->po_channel_exec != NULL) {
		exec_cancel(po->po_channel_exec);
		po->po_callbacks.pc_channel_ended(po->po_arg, po->po_channel,
		    "another channel has taken its place");
	}
	er.fd = fds[1];
	po->po_channel = number;
	api_renew(&po->po_cluster);
	po->po_channel_exec = exec_begin(po->po_cluster, &er, channel_ended,
	    po);
	pn->pn_fd = fds[0];
	pn->pn_uid = po->po_user.ku_kpod->kp_uid;
	pn->pn_node = po->po_user.ku_kpod->kp_node;
	pn->pn_term = po->po_user.ku_kpod->kp_term;
	pn->pn_sha256 = po->po_gate != NULL ? po->po_gate->ga_sha256 : "";
}

/* ---- what the pod tells ---- */

static void
pod_heard_progress(void *arg, const char *text)
{
	struct pod	*po = arg;

	if (!po->po_done)
		po->po_callbacks.pc_progress(po->po_arg, text);
}

static void
pod_is_ready(struct pod *po)
{
	po->po_done = 1;
	po->po_callbacks.pc_done(po->po_arg, NULL, po->po_name, "");
}

static void
pod_sourced(void *arg, const char *code, const char *why)
{
	struct pod	*po = arg;
	char		 text[POD_TEXT_LEN];

	po->po_source = NULL;
	if (code == NULL) {
		pod_is_ready(po);
		return;
	}
	strlcpy(text, why, sizeof(text));
	kpod_leave(&po->po_user, 0);
	pod_failed_end(po, code, text);
}

static void
pod_heard_ready(void *arg)
{
	struct pod		*po = arg;
	struct source_wish	 sw = {
		.sw_namespace = po->po_namespace,
		.sw_pod = po->po_name,
		.sw_cwd = po->po_cwd,
		.sw_gated = po->po_gated,
		.sw_url = po->po_git,
		.sw_ref = po->po_ref,
		.sw_timeout_ms = po->po_git_ms,
	};

	if (po->po_git[0] == '\0') {
		pod_is_ready(po);
		return;
	}
	po->po_callbacks.pc_progress(po->po_arg, "clones the repository");
	po->po_source = source_begin(po->po_cluster, &sw, pod_sourced, po);
}

static void
pod_heard_runs(void *arg, int runs, const char *text)
{
	struct pod	*po = arg;
	struct attach	*at, *next;

	(void)text;
	if (!runs)
		return;
	TAILQ_FOREACH_SAFE(at, &po->po_attaches, at_entry, next)
		if (at->at_exec == NULL)
			attach_go(at);
}

static void
pod_heard_failed(void *arg, const char *code, const char *text)
{
	pod_failed_end(arg, code, text);
}

static void
pod_heard_ended(void *arg, enum session_cause cause, const char *text)
{
	struct pod	*po = arg;

	po->po_callbacks.pc_ended(po->po_arg, po->po_stopping ?
	    CAUSE_REQUEST : cause, text);
	pod_free(po);
}

const struct kpod_ops	 pod_ops = {
	.ko_progress = pod_heard_progress,
	.ko_ready = pod_heard_ready,
	.ko_runs = pod_heard_runs,
	.ko_failed = pod_heard_failed,
	.ko_ended = pod_heard_ended,
};

/* ---- stop ---- */

void
pod_stop(struct pod *po, enum pod_stop how)
{
	int	 delete = how == POD_AS_CONFIGURED ? po->po_delete :
	    how == POD_DELETE;

	if (po->po_stopping)
		return;
	po->po_stopping = po->po_done = 1;
	event_del(&po->po_event);
	api_cancel(po->po_call);
	po->po_call = NULL;
	pod_hush(po);
	if (po->po_user.ku_kpod == NULL ||
	    !kpod_leave(&po->po_user, delete))
		event_active(&po->po_event, EV_TIMEOUT, 0);
}

const char *
pod_name(const struct pod *po)
{
	return po->po_name;
}

const char *
pod_namespace(const struct pod *po)
{
	return po->po_namespace != NULL ? po->po_namespace : "";
}
