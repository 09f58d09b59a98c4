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
#include "source.h"

#define ATTACHES_MAX	64	/* of a session, at a time */
#define GATE_MS		20000	/* until its files are here */

/* A client; its descriptor waits while the workspace does not run. */
struct attach {
	TAILQ_ENTRY(attach)	 at_entry;
	struct pod		*at_pod;
	struct exec		*at_exec;	/* NULL: waits */
	int			 at_fd;		/* or -1 */
	struct event		 at_timer;	/* while it waits */
};

struct pod {
	struct kpod_user	 po_user;
	struct cluster		*po_cluster;
	char			*po_namespace;
	char			 po_name[POD_NAME_LEN + 1];
	char			*po_session;
	char			*po_sandbox;
	char			*po_variables;	/* a NUL behind each */
	const char		**po_list;	/* of them, to a NULL */
	uint32_t		 po_owner;
	int			 po_named;
	uint64_t		 po_deadline_ms;
	struct gate		*po_gate;
	int			 po_waits;	/* for that */
	struct api_call		*po_call;	/* for the version */
	char			*po_cwd;
	char			*po_git;
	char			*po_ref;
	uint64_t		 po_git_ms;
	int			 po_forward;
	int			 po_gated;
	int			 po_delete;	/* when it is stopped */
	int			 po_done;	/* told that it is ready */
	int			 po_stopping;
	struct source		*po_source;
	struct exec		*po_channel_exec;
	uint32_t		 po_channel;	/* its number */
	TAILQ_HEAD(, attach)	 po_attaches;
	size_t			 po_nattaches;
	struct event		 po_event;	/* what is to be told */
	const char		*po_code;
	char			 po_text[POD_TEXT_LEN];
	struct pod_callbacks	 po_callbacks;
	void			*po_arg;
};

static void	 pod_go(struct pod *);

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
static void
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
static void
pod_fail_after(struct pod *po, unsigned int ms, const char *code,
    const char *text)
{
	struct timeval	 tv = { ms / 1000, ms % 1000 * 1000 };

	strlcpy(po->po_text, text, sizeof(po->po_text));
	po->po_code = code;
	if (event_add(&po->po_event, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

static void
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
	const char		*command[] = {
		BOX_PROGRAM, "hands", "-k", "-d", po->po_cwd, NULL, NULL
	};
	struct exec_request	 er = {
		.namespace = po->po_namespace,
		.pod = po->po_name,
		.container = WORKSPACE,
		.command = command,
		.fd = at->at_fd,
	};

	if (po->po_forward)
		command[5] = "-F";
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
	pn->pn_sha256 = "";
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

static const struct kpod_ops	 pod_ops = {
	.ko_progress = pod_heard_progress,
	.ko_ready = pod_heard_ready,
	.ko_runs = pod_heard_runs,
	.ko_failed = pod_heard_failed,
	.ko_ended = pod_heard_ended,
};

/* ---- begin and stop ---- */

static char *
copy(const char *text)
{
	char	*p;

	if ((p = strdup(text)) == NULL)
		fatal("%s", __func__);
	return p;
}

static void
pod_take_conf(struct pod *po, const struct pod_conf *pc)
{
	names_pod(pc->pc_id[0] != '\0' ? pc->pc_id : po->po_session,
	    po->po_name);
	po->po_namespace = copy(pc->pc_namespace[0] != '\0' ?
	    pc->pc_namespace : cluster_namespace(po->po_cluster));
	if (po->po_cwd[0] == '\0') {
		free(po->po_cwd);
		po->po_cwd = copy(pc->pc_cwd);
	}
	po->po_git = copy(pc->pc_git);
	po->po_ref = copy(pc->pc_git_ref);
	po->po_git_ms = pc->pc_git_timeout_ms;
	po->po_forward = pc->pc_forward;
	po->po_gated = !pc->pc_ungated;
	po->po_delete = pc->pc_delete_on_stop == POD_DELETE_UNSET ?
	    !po->po_named && pc->pc_id[0] == '\0' :
	    pc->pc_delete_on_stop == POD_DELETE_YES;
}

/* Sidecars are known from 1.29 on: v1.29.3+k3s1 */
static int
is_native(const char *version)
{
	unsigned int	 major, minor;

	return sscanf(version, "v%u.%u", &major, &minor) == 2 &&
	    (major > 1 || minor >= 29);
}

static void
pod_join(struct pod *po, const struct pod_conf *pc)
{
	struct manifest		 mf = {
		.mf_conf = pc,
		.mf_id = pc->pc_id[0] != '\0' ? pc->pc_id : po->po_session,
		.mf_namespace = po->po_namespace,
		.mf_cwd = pc->pc_cwd,
		.mf_owner = po->po_owner,
		.mf_deadline_ms = po->po_deadline_ms != 0 ?
		    po->po_deadline_ms : pc->pc_deadline_ms,
		.mf_variables = po->po_list,
		.mf_sha256 = po->po_gate != NULL ? po->po_gate->ga_sha256 : "",
		.mf_native = is_native(api_version(po->po_cluster)),
	};
	struct kpod_terms	 kt = {
		.kt_heartbeat_ms = pc->pc_heartbeat_ms,
		.kt_ready_ms = pc->pc_ready_timeout_ms,
		.kt_recreate = pc->pc_on_stale == POD_STALE_RECREATE,
		.kt_gate = po->po_gate,
		.kt_network = pc->pc_network_policy,
	};
	char			 why[POD_TEXT_LEN - 256];
	cJSON			*want;

	if ((want = manifest_new(&mf, why, sizeof(why))) == NULL)
		pod_fail_later(po, CODE_BAD_CONFIGURATION, "%s", why);
	else if (kpod_join(&po->po_user, po->po_cluster, want, &kt, why,
	    sizeof(why)) == NULL)
		pod_fail_later(po, POD_CODE_DIFFERS,
		    "pod %s, which others share: %s", po->po_name, why);
}

/* ---- before a pod with a gate ---- */

static void
pod_versioned(void *arg, const struct api_answer *aa)
{
	struct pod	*po = arg;
	const char	*version = kj_string(aa->aa_json, "gitVersion");

	po->po_call = NULL;
	if (aa->aa_result == API_OK && version[0] != '\0') {
		api_version_set(po->po_cluster, version);
		pod_go(po);
	} else
		pod_fail_later(po, kpod_code(aa), "its version: %s",
		    aa->aa_why);
}

static void
pod_ask_version(struct pod *po)
{
	static const struct api_request	 ar = {
		.ar_method = "GET",
		.ar_path = "/version",
		.ar_verb = "get",
		.ar_resource = "/version",
	};

	api_renew(&po->po_cluster);
	po->po_call = api_begin(po->po_cluster, &ar, pod_versioned, po);
}

/* The block may have changed since whoever asked has read it. */
static void
pod_go(struct pod *po)
{
	const struct pod_conf	*pc = pod_conf_find(po->po_sandbox);

	if (pc == NULL || (pc->pc_ungated && po->po_gate != NULL))
		pod_fail_later(po, CODE_BAD_CONFIGURATION,
		    "the configuration has changed meanwhile");
	else if (pc->pc_ungated)
		pod_join(po, pc);
	else if (po->po_gate == NULL) {
		po->po_waits = 1;
		pod_fail_after(po, GATE_MS, POD_CODE_FAILED,
		    "nobody says what its gate is to be told");
	} else if (api_version(po->po_cluster)[0] == '\0')
		pod_ask_version(po);
	else
		pod_join(po, pc);
}

void
pod_gate(struct pod *po, struct gate *ga)
{
	if (po->po_stopping || !po->po_waits) {
		gate_unref(ga);
		return;
	}
	po->po_waits = 0;
	event_del(&po->po_event);
	po->po_gate = ga;
	pod_go(po);
}

/* All of it is copied: the API may have to be asked before it is used. */
static void
pod_take_wish(struct pod *po, const struct pod_wish *pw)
{
	size_t	 i, n = 0, len = 0;
	char	*p;

	po->po_session = copy(pw->pw_session);
	po->po_sandbox = copy(pw->pw_sandbox);
	po->po_cwd = copy(pw->pw_cwd);
	po->po_owner = pw->pw_owner;
	po->po_named = pw->pw_named;
	po->po_deadline_ms = pw->pw_deadline_ms;
	po->po_gate = pw->pw_gate;
	for (; pw->pw_variables != NULL && pw->pw_variables[n] != NULL; n++)
		len += strlen(pw->pw_variables[n]) + 1;
	if ((po->po_variables = p = malloc(len + 1)) == NULL ||
	    (po->po_list = calloc(n + 1, sizeof(*po->po_list))) == NULL)
		fatal("%s", __func__);
	for (i = 0; i < n; i++) {
		po->po_list[i] = p;
		p = stpcpy(p, pw->pw_variables[i]) + 1;
	}
}

struct pod *
pod_start(const struct pod_wish *pw, const struct pod_callbacks *callbacks,
    void *arg)
{
	const struct pod_conf	*pc = pod_conf_find(pw->pw_sandbox);
	struct cluster		*cl;
	struct pod		*po;

	if ((po = calloc(1, sizeof(*po))) == NULL)
		fatal("%s", __func__);
	po->po_user.ku_ops = &pod_ops;
	po->po_user.ku_arg = po;
	po->po_callbacks = *callbacks;
	po->po_arg = arg;
	TAILQ_INIT(&po->po_attaches);
	event_assign(&po->po_event, child_base, -1, 0, pod_on_event, po);
	pod_take_wish(po, pw);
	if (pc == NULL)
		pod_fail_later(po, CODE_UNKNOWN_SANDBOX,
		    "sandbox %s is not configured here", pw->pw_sandbox);
	else if ((cl = cluster_find(pc->pc_cluster)) == NULL)
		pod_fail_later(po, POD_CODE_CLUSTER,
		    "cluster \"%s\" is not configured here", pc->pc_cluster);
	else {
		po->po_cluster = cluster_ref(cl);
		pod_take_conf(po, pc);
		pod_go(po);
	}
	return po;
}

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
