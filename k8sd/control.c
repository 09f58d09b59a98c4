/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: what controld asks for (common/msg_pod.h), and what it is
 * told.  controld is trusted more than we are; texts that come from API
 * servers are cut to what its messages hold, and are its to escape.
 */

#include <sys/queue.h>
#include <sys/socket.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "k8sd.h"
#include "cluster.h"
#include "exec.h"
#include "gate.h"
#include "log.h"
#include "pod.h"

/* A session's pod; the number is controld's. */
struct held {
	LIST_ENTRY(held)	 he_entry;
	uint32_t		 he_number;
	struct pod		*he_pod;
};

/* A question; pods.h calls back in any case. */
struct asked {
	uint32_t		 aq_ticket;
	enum pod_ask		 aq_what;
};

static LIST_HEAD(, held) all = LIST_HEAD_INITIALIZER(all);
static struct ipc	*controld;

static struct held *
held_find(uint32_t number)
{
	struct held	*he;

	LIST_FOREACH(he, &all, he_entry)
		if (he->he_number == number)
			return he;
	return NULL;
}

static void
held_free(struct held *he)
{
	LIST_REMOVE(he, he_entry);
	free(he);
}

/* A text that fits; good until the third one after it. */
static const char *
cut(const char *text, size_t most)
{
	static char	 bufs[3][PATH_LEN + 1];
	static int	 next;
	char		*buf = bufs[next = (next + 1) % 3];

	strlcpy(buf, text, most + 1);
	return buf;
}

/* A code that is none of controld's is a start that failed, with its text. */
static uint8_t
error_of(const char *code)
{
	int	 n = code != NULL ? pod_error_find(code) : POD_ERROR_NONE;

	return n == -1 ? POD_ERROR_START : n;
}

/* ---- sessions ---- */

static void
control_progress(void *arg, const char *text)
{
	struct held	*he = arg;

	ipc_send(controld, -1, POD_PROGRESS, pod_progress,
	    .number = he->he_number, .text = cut(text, PATH_LEN));
}

static void
control_done(void *arg, const char *code, const char *name, const char *text)
{
	struct held	*he = arg;

	ipc_send(controld, -1, POD_DONE, pod_done, .number = he->he_number,
	    .ok = code == NULL, .code = error_of(code),
	    .gated = code == NULL && pod_is_gated(he->he_pod),
	    .pod = cut(name, HOST_LEN), .text = cut(text, PATH_LEN));
	if (code != NULL)
		held_free(he);
}

static void
control_ended(void *arg, enum session_cause cause, const char *text)
{
	struct held	*he = arg;

	if (cause != CAUSE_DEADLINE && cause != CAUSE_SANDBOX)
		cause = CAUSE_NONE;
	ipc_send(controld, -1, POD_ENDED, pod_ended, .number = he->he_number,
	    .cause = cause, .text = cut(text, PATH_LEN));
	held_free(he);
}

static void
control_channel_ended(void *arg, uint32_t channel, const char *text)
{
	(void)arg;
	ipc_send(controld, -1, POD_CHANNEL_ENDED, pod_channel_ended,
	    .channel = channel, .text = cut(text, PATH_LEN));
}

/* The variables, one after another, to a NULL; NULL: they are not sound. */
static const char **
variables_list(const struct msg_bytes *variables)
{
	const char	*p = variables->data, *end = p + variables->len;
	const char	**list;
	size_t		 n = 0;

	if (variables->len > 0 && end[-1] != '\0')
		return NULL;
	if ((list = calloc(variables->len / 2 + 2, sizeof(*list))) == NULL)
		fatal("%s", __func__);
	for (; p < end; p += strlen(p) + 1) {
		if (strchr(p, '=') == NULL) {
			free(list);
			return NULL;
		}
		list[n++] = p;
	}
	return list;
}

static int
k8sd_controld_pod_start(struct ipc *ip, const union msg *m)
{
	static const struct pod_callbacks callbacks = {
		control_progress, control_done, control_ended,
		control_channel_ended
	};
	const struct msg_pod_start	*ms = &m->pod_start;
	struct pod_wish			 pw = {
		.pw_session = ms->session, .pw_sandbox = ms->sandbox,
		.pw_owner = ms->owner, .pw_named = ms->named,
		.pw_cwd = ms->cwd, .pw_deadline_ms = ms->deadline_ms,
	};
	const char			**variables;
	struct held			*he;

	if (ms->number == 0 || held_find(ms->number) != NULL || ms->named > 1 ||
	    (variables = variables_list(&ms->variables)) == NULL)
		return ipc_bad(ip, "pod %u, named %u", ms->number, ms->named);
	if ((he = calloc(1, sizeof(*he))) == NULL)
		fatal("%s", __func__);
	he->he_number = ms->number;
	LIST_INSERT_HEAD(&all, he, he_entry);
	pw.pw_variables = variables;
	pw.pw_gate = gate_take(ms->number);
	he->he_pod = pod_start(&pw, &callbacks, he);
	free(variables);
	return 0;
}

/* The gate's text has come after the session was asked for. */
void
control_gate(uint32_t number)
{
	struct held	*he = held_find(number);

	if (he != NULL)
		pod_gate(he->he_pod, gate_take(number));
}

/* A session that is over has crossed the message: the client is hung up on. */
static int
k8sd_controld_pod_attach(struct ipc *ip, const union msg *m)
{
	struct held	*he = held_find(m->pod_attach.number);
	int		 fd = ipc_take_fd(ip);

	if (fd == -1)
		return 0;
	if (he != NULL)
		pod_attach(he->he_pod, fd);
	else
		exec_hang_up(fd);
	return 0;
}

/* The same, where a session that is over has crossed it: it just ends. */
static int
k8sd_controld_pod_channel(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_channel	*mc = &m->pod_channel;
	struct held			*he = held_find(mc->number);
	struct pod_channel		 pn = { .pn_fd = -1 };

	if (mc->channel == 0)
		return ipc_bad(ip, "channel 0");
	if (he != NULL)
		pod_channel(he->he_pod, mc->channel, &pn);
	if (pn.pn_fd == -1)
		control_channel_ended(NULL, mc->channel, "there is no pod, or "
		    "no free descriptor");
	else
		ipc_send(ip, pn.pn_fd, POD_CHANNEL_OPENED, pod_channel_opened,
		    .channel = mc->channel, .uid = pn.pn_uid,
		    .node = pn.pn_node, .term = pn.pn_term,
		    .sha256 = pn.pn_sha256);
	return 0;
}

static int
k8sd_controld_pod_stop(struct ipc *ip, const union msg *m)
{
	static const enum pod_stop	 hows[POD_FATE_MAX] = {
		[POD_FATE_RULE] = POD_AS_CONFIGURED,
		[POD_FATE_KEEP] = POD_KEEP,
		[POD_FATE_DELETE] = POD_DELETE,
	};
	struct held			*he = held_find(m->pod_stop.number);

	if (m->pod_stop.fate >= POD_FATE_MAX)
		return ipc_bad(ip, "fate %u", m->pod_stop.fate);
	gate_drop(m->pod_stop.number);
	if (he != NULL)
		pod_stop(he->he_pod, hows[m->pod_stop.fate]);
	return 0;
}

/* ---- questions ---- */

/* The word of a phase is Kubernetes' own, with a capital. */
static enum pod_state
state_of(enum pod_ask what, const struct pods_item *pi)
{
	char	 word[16];
	size_t	 i;
	int	 n;

	if (what == POD_ASK_TERMINATE)
		return POD_DELETED;
	if (what == POD_ASK_REAP)
		return strcmp(pi->pi_text, "deleted") == 0 ? POD_DELETED :
		    POD_KEPT;
	strlcpy(word, pi->pi_state, sizeof(word));
	for (i = 0; word[i] != '\0'; i++)
		word[i] = tolower((unsigned char)word[i]);
	return (n = pod_state_find(word)) == -1 ? POD_UNKNOWN : n;
}

static void
control_item(void *arg, const struct pods_item *pi)
{
	const struct asked	*aq = arg;

	ipc_send(controld, -1, POD_ITEM, pod_item, .ticket = aq->aq_ticket,
	    .session = cut(pi->pi_session, SESSION_LEN),
	    .pod = cut(pi->pi_pod, HOST_LEN), .owner = pi->pi_owner,
	    .state = state_of(aq->aq_what, pi), .age_s = pi->pi_age_s,
	    .text = cut(pi->pi_text, PATH_LEN));
}

static void
control_answer(uint32_t ticket, const char *code, const char *text)
{
	ipc_send(controld, -1, POD_ANSWER, pod_answer, .ticket = ticket,
	    .ok = code == NULL, .code = error_of(code),
	    .text = cut(text, PATH_LEN));
}

static void
control_over(void *arg, const char *code, const char *text)
{
	struct asked	*aq = arg;

	control_answer(aq->aq_ticket, code, text);
	free(aq);
}

static struct asked *
asked_new(uint32_t ticket, enum pod_ask what)
{
	struct asked	*aq;

	if ((aq = calloc(1, sizeof(*aq))) == NULL)
		fatal("%s", __func__);
	aq->aq_ticket = ticket;
	aq->aq_what = what;
	return aq;
}

static int
k8sd_controld_pod_ask(struct ipc *ip, const union msg *m)
{
	static struct pods_job	*(*const begin[POD_ASK_MAX])(
	    const struct pods_ask *, pods_item *, pods_done *, void *) = {
		[POD_ASK_LIST] = pods_list,
		[POD_ASK_REAP] = pods_reap,
		[POD_ASK_TERMINATE] = pods_terminate,
		[POD_ASK_HEARTBEAT] = pods_heartbeat,
		[POD_ASK_CHECK] = pods_check,
	};
	const struct msg_pod_ask	*ma = &m->pod_ask;
	struct pods_ask			 pa = {
		.pa_sandbox = ma->sandbox, .pa_session = ma->session,
		.pa_selector = ma->selector, .pa_container = "",
		.pa_owner = ma->uid == UINT32_MAX ? 0 : ma->uid,
		.pa_age_s = ma->age_s, .pa_dry_run = ma->dry_run, .pa_fd = -1,
	};

	if (ma->what >= POD_ASK_MAX || ma->dry_run > 1)
		return ipc_bad(ip, "question %u, dry run %u", ma->what,
		    ma->dry_run);
	if (ma->what == POD_ASK_CHECK && pod_conf_find(ma->sandbox) == NULL)
		pa.pa_cluster = ma->sandbox;
	begin[ma->what](&pa, control_item, control_over,
	    asked_new(ma->ticket, ma->what));
	return 0;
}

/* A descriptor of another kind may hold us up, whatever we ask of it. */
static int
is_socket(int fd)
{
	socklen_t	 len = sizeof(int);
	int		 error;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0;
}

static int
k8sd_controld_pod_logs(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_logs	*ml = &m->pod_logs;
	struct pods_ask			 pa = {
		.pa_sandbox = ml->sandbox, .pa_session = ml->session,
		.pa_selector = "",
		.pa_container = pod_container_name(ml->container),
		.pa_tail = ml->tail, .pa_follow = ml->follow,
		.pa_fd = ipc_take_fd(ip),
	};
	const char			*why = NULL;

	if (ml->container >= POD_CONTAINER_MAX || ml->follow > 1) {
		if (pa.pa_fd != -1)
			close(pa.pa_fd);
		return ipc_bad(ip, "container %u, follow %u", ml->container,
		    ml->follow);
	}
	if (!is_socket(pa.pa_fd))
		why = "the descriptor is no socket";
	if (why == NULL) {
		pods_logs(&pa, control_item, control_over,
		    asked_new(ml->ticket, POD_ASK_MAX));
		return 0;
	}
	if (pa.pa_fd != -1)
		close(pa.pa_fd);
	control_answer(ml->ticket, CODE_NOT_SUPPORTED, why);
	return 0;
}

static const ipc_handler control_handlers[MSG_MAX] = {
	[MSG_POD_START] = k8sd_controld_pod_start,
	[MSG_POD_ATTACH] = k8sd_controld_pod_attach,
	[MSG_POD_CHANNEL] = k8sd_controld_pod_channel,
	[MSG_POD_STOP] = k8sd_controld_pod_stop,
	[MSG_POD_ASK] = k8sd_controld_pod_ask,
	[MSG_POD_LOGS] = k8sd_controld_pod_logs,
};

void
control_open(int fd)
{
	controld = child_peer(ROLE_CONTROLD, fd, control_handlers);
}
