/* SPDX-License-Identifier: ISC */

/*
 * controld: the life of sessions whose sandbox is a pod.  The parent says
 * whether the client may have it, k8sd makes it and tells when it is gone, and
 * policyd records both ends:
 *
 *	asked		the parent is; nobody has been asked for a pod
 *	starting	k8sd finds or makes the pod
 *	running
 *	stopping	k8sd was told to, and says when it is over
 *	over		the parent was told, and policyd's word is the last
 *
 * k8sd speaks to servers of others: what it sends is typed and bounded, and a
 * session that it names has to be one that it was told of.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controld.h"
#include "reasons.h"

/* A session of a pod, for which the parent is about to be asked. */
void
pod_new(struct session *se, int named, const char *cwd, uint64_t deadline_s,
    const void *variables, size_t len)
{
	struct pod	*po;

	if ((po = calloc(1, sizeof(*po))) == NULL ||
	    (po->po_variables = malloc(len + 1)) == NULL)
		fatal("%s", __func__);
	memcpy(po->po_variables, variables, len);
	po->po_variableslen = len;
	po->po_named = named;
	po->po_deadline_ms = deadline_s * 1000;
	po->po_cause = CAUSE_REQUEST;
	strlcpy(po->po_cwd, cwd, sizeof(po->po_cwd));
	se->se_pod = po;
}

void
pod_free(struct pod *po)
{
	if (po == NULL)
		return;
	link_end(po);
	freezero(po->po_variables, po->po_variableslen);
	free(po->po_text);
	free(po->po_reason);
	free(po);
}

char *
pod_copy(const char *text)
{
	char	*p;

	if ((p = strdup(text)) == NULL)
		fatal("%s", __func__);
	return p;
}

/* The client may have it: the parent has opened the session. */
void
pod_begin(struct session *se)
{
	struct pod	*po = se->se_pod;

	if (se->se_stopped) {
		po->po_life = POD_OVER;
		/* k8sd may have been told of it by the parent. */
		ipc_send(channel_k8sd, -1, POD_STOP, pod_stop,
		    .number = se->se_number, .fate = POD_FATE_KEEP);
		return;
	}
	po->po_life = POD_STARTING;
	ipc_send(channel_k8sd, -1, POD_START, pod_start,
	    .number = se->se_number, .session = se->se_name,
	    .sandbox = se->se_boxed.bx_name, .policy = se->se_policy,
	    .owner = se->se_uid, .named = po->po_named, .cwd = po->po_cwd,
	    .deadline_ms = po->po_deadline_ms,
	    .variables = { po->po_variables, po->po_variableslen });
	/* They may be secrets, and nobody asks for them again. */
	freezero(po->po_variables, po->po_variableslen);
	po->po_variables = NULL;
	po->po_variableslen = 0;
}

int
pod_is_starting(const struct session *se)
{
	return se->se_pod != NULL && se->se_pod->po_life <= POD_STARTING;
}

/* Whether k8sd is told, who answers; else it is the parent's to end it. */
int
pod_stop(struct session *se, enum session_cause cause)
{
	struct pod	*po = se->se_pod;

	if (po->po_life == POD_ASKED)
		return 0;
	if (po->po_life >= POD_STOPPING)
		return 1;
	po->po_life = POD_STOPPING;
	po->po_cause = cause;
	link_end(po);
	/* What is left when its time is over only takes up room. */
	if (cause == CAUSE_DEADLINE)
		po->po_fate = POD_FATE_DELETE;
	ipc_send(channel_k8sd, -1, POD_STOP, pod_stop,
	    .number = se->se_number, .fate = po->po_fate);
	return 1;
}

/*
 * policyd has seen the session end.  Whether that is not all: a pod of a
 * policy that is gone has to be stopped yet.
 */
int
pod_outlives(struct session *se, const char *reason)
{
	struct pod	*po = se->se_pod;

	if (po == NULL || po->po_life == POD_ASKED || po->po_life == POD_OVER)
		return 0;
	free(po->po_reason);
	po->po_reason = pod_copy(reason);
	se->se_stopped = 1;
	pod_stop(se, po->po_cause);
	return 1;
}

/* There is no pod of the session's any more. */
static void
pod_over(struct session *se, enum session_cause cause, const char *text)
{
	struct pod	*po = se->se_pod;

	po->po_life = POD_OVER;
	link_end(po);
	se->se_stopped = 1;
	if (po->po_reason != NULL)
		run_end(se, po->po_reason);
	else
		ipc_send(child_parent, -1, SESSION_STOP, session_stop,
		    .number = se->se_number, .cause = cause, .text = text);
}

/* Why those who wait for its beginning wait in vain. */
void
pod_refuse(const struct session *se)
{
	static const char	 stopped[] = "it was stopped before it began";
	const struct pod	*po = se->se_pod;
	const char		*code = CODE_START_FAILED, *text = stopped;

	if (po != NULL && po->po_text != NULL) {
		code = pod_error_name(po->po_error);
		text = po->po_text;
	}
	answer_error(code, text, strlen(text));
}

/*
 * A client's connection, which k8sd serves, and hangs up on if it comes too
 * late.  The parent has a copy, for the record of who was attached.
 */
int
pod_attach(const struct session *se, int fd)
{
	int	 copy;

	if (se == NULL || se->se_pod == NULL)
		return 0;
	if ((copy = dup(fd)) == -1) {
		log_warn("session %s: a client cannot be attached",
		    se->se_name);
		close(fd);
		return 1;
	}
	ipc_send(child_parent, copy, SESSION_ATTACH, session_attach,
	    .number = se->se_number);
	ipc_send(channel_k8sd, fd, POD_ATTACH, pod_attach,
	    .number = se->se_number);
	return 1;
}

void
pod_put(struct jsonw *w, const struct session *se)
{
	if (se->se_pod != NULL)
		put_str(w, "pod", se->se_pod->po_name[0] != '\0' ?
		    se->se_pod->po_name : NULL);
}

/* ---- from k8sd ---------------------------------------------------------- */

/* NULL if it was never told of one, or is done with it. */
static struct session *
find_pod(uint32_t number, enum pod_life from, enum pod_life to)
{
	struct session	*se = session_by_number(number);

	if (se == NULL || se->se_pod == NULL || se->se_pod->po_life < from ||
	    se->se_pod->po_life > to)
		return NULL;
	return se;
}

int
controld_k8sd_pod_progress(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_progress	*mp = &m->pod_progress;
	struct session			*se;
	struct waiter			*wt;
	const char			*body;
	size_t				 len;

	if ((se = find_pod(mp->number, POD_STARTING, POD_STOPPING)) == NULL)
		return ipc_bad(ip, "progress of %u", mp->number);
	answer_progress(mp->text);
	body = answer_end(&len);
	TAILQ_FOREACH(wt, &se->se_starters, wt_queued)
		if (wt->wt_progress)
			client_send(wt->wt_client, &wt->wt_id, body, len);
	return 0;
}

static void
pod_runs(struct session *se, const struct msg_pod_done *md)
{
	se->se_pod->po_life = POD_RUNS;
	se->se_pod->po_gated = md->gated;
	strlcpy(se->se_pod->po_name, md->pod, sizeof(se->se_pod->po_name));
	if (md->gated)
		link_begin(se);
	run_began(se);
}

static void
pod_failed(struct session *se, enum pod_error error, const char *text)
{
	struct pod	*po = se->se_pod;

	po->po_error = error;
	po->po_text = pod_copy(text);
	log_info("session %s: %s: %s", se->se_name, pod_error_name(error),
	    text);
	pod_over(se, CAUSE_SANDBOX, text);
}

int
controld_k8sd_pod_done(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_done	*md = &m->pod_done;
	struct session			*se;

	se = find_pod(md->number, POD_STARTING, POD_STOPPING);
	if (se == NULL || se->se_pod->po_life == POD_RUNS || md->ok > 1 ||
	    md->gated > 1 ||
	    md->code >= POD_ERROR_MAX || (md->code == POD_ERROR_NONE) != md->ok)
		return ipc_bad(ip, "pod %u done: %u, code %u", md->number,
		    md->ok, md->code);
	if (se->se_pod->po_life == POD_STOPPING) {
		/* What stopped it was on its way; POD_ENDED follows if ok. */
		if (!md->ok)
			pod_over(se, se->se_pod->po_cause, "");
	} else if (md->ok)
		pod_runs(se, md);
	else
		pod_failed(se, md->code, md->text);
	return 0;
}

/* Its own end, or the answer to POD_STOP. */
int
controld_k8sd_pod_ended(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_ended	*me = &m->pod_ended;
	struct session			*se;

	se = find_pod(me->number, POD_RUNS, POD_STOPPING);
	if (se == NULL || (me->cause != CAUSE_NONE &&
	    me->cause != CAUSE_DEADLINE && me->cause != CAUSE_SANDBOX))
		return ipc_bad(ip, "pod %u ended, cause %u", me->number,
		    me->cause);
	if (se->se_pod->po_life == POD_STOPPING) {
		if (*me->text != '\0')
			log_warnx("session %s: its pod: %s", se->se_name,
			    me->text);
		pod_over(se, se->se_pod->po_cause, "");
		return 0;
	}
	log_info("session %s: its pod has ended: %s", se->se_name, me->text);
	pod_over(se, me->cause != CAUSE_NONE ? me->cause : CAUSE_SANDBOX,
	    me->text);
	return 0;
}
