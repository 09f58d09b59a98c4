/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: the beginning and the end of jobs.  Who asked is controld,
 * which has seen to whether the client may; the answers are an API server's.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "child.h"
#include "codes.h"
#include "job.h"
#include "log.h"

static void
victims_clear(struct victims *list)
{
	struct victim	*vi;

	while ((vi = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, vi, vi_entry);
		free(vi->vi_session);
		free(vi);
	}
}

void
pods_cancel(struct pods_job *pj)
{
	if (pj == NULL)
		return;
	api_cancel(pj->pj_call);
	owned_cancel(pj->pj_owned);
	event_del(&pj->pj_event);
	if (event_initialized(&pj->pj_gone))
		event_del(&pj->pj_gone);
	victims_clear(&pj->pj_victims);
	if (pj->pj_cluster != NULL)
		cluster_unref(pj->pj_cluster);
	if (pj->pj_fd != -1)
		close(pj->pj_fd);
	free(pj->pj_log);
	free(pj->pj_continue);
	free(pj->pj_namespace);
	free(pj->pj_session);
	free(pj);
}

void
job_over(struct pods_job *pj, const char *code, const char *text)
{
	pj->pj_done(pj->pj_arg, code, text);
	pods_cancel(pj);
}

void
job_failed(struct pods_job *pj, const struct api_answer *aa)
{
	job_over(pj, kpod_code(aa), aa->aa_why);
}

static void
job_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct pods_job	*pj = arg;

	(void)fd, (void)what;
	job_over(pj, pj->pj_code, pj->pj_text);
}

static void
job_fail_later(struct pods_job *pj, const char *code, const char *what,
    const char *name)
{
	pj->pj_code = code;
	snprintf(pj->pj_text, sizeof(pj->pj_text),
	    "%s \"%.200s\" is not configured here", what, name);
	event_active(&pj->pj_event, EV_TIMEOUT, 0);
}

/* Who started the session of a pod; UINT32_MAX: it does not say. */
uint32_t
job_owner(const cJSON *pod)
{
	const char	*bad;
	uint32_t	 uid;

	uid = (uint32_t)strtonum(kj_annotation(pod, NOTE_UID), 0,
	    UINT32_MAX - 1, &bad);
	return bad == NULL ? uid : UINT32_MAX;
}

/* Whether the pod is of whoever asks. */
int
job_may(const struct pods_job *pj, const cJSON *pod)
{
	return pj->pj_owner == 0 || job_owner(pod) == pj->pj_owner;
}

/* Which cluster and which namespace; -1 if the end is on its way. */
static int
job_place(struct pods_job *pj, const struct pods_ask *pa)
{
	const struct pod_conf	*pc = NULL;
	const char		*name = pa->pa_cluster;
	struct cluster		*cl;

	if (name == NULL) {
		if ((pc = pod_conf_find(pa->pa_sandbox)) == NULL) {
			job_fail_later(pj, CODE_UNKNOWN_SANDBOX, "sandbox",
			    pa->pa_sandbox);
			return -1;
		}
		name = pc->pc_cluster;
		/* Its sessions share the pod of this id. */
		if (pc->pc_id[0] != '\0' && pj->pj_session[0] != '\0') {
			free(pj->pj_session);
			if ((pj->pj_session = strdup(pc->pc_id)) == NULL)
				fatal("%s", __func__);
		}
	}
	if ((cl = cluster_find(name)) == NULL) {
		job_fail_later(pj, CODE_UNKNOWN_CLUSTER, "cluster", name);
		return -1;
	}
	pj->pj_cluster = cluster_ref(cl);
	pj->pj_namespace = strdup(pc != NULL && pc->pc_namespace[0] != '\0' ?
	    pc->pc_namespace : cluster_namespace(cl));
	if (pj->pj_namespace == NULL)
		fatal("%s", __func__);
	return 0;
}

struct pods_job *
job_new(const struct pods_ask *pa, pods_item *item, pods_done *done,
    void *arg, int *go)
{
	struct pods_job	*pj;

	if ((pj = calloc(1, sizeof(*pj))) == NULL ||
	    (pj->pj_session = strdup(pa->pa_session)) == NULL)
		fatal("%s", __func__);
	pj->pj_item = item;
	pj->pj_done = done;
	pj->pj_arg = arg;
	pj->pj_owner = pa->pa_owner;
	pj->pj_age_s = pa->pa_age_s;
	pj->pj_dry_run = pa->pa_dry_run;
	pj->pj_fd = -1;
	TAILQ_INIT(&pj->pj_victims);
	event_assign(&pj->pj_event, child_base, -1, 0, job_on_event, pj);
	*go = job_place(pj, pa) == 0;
	names_pod(pj->pj_session, pj->pj_name);
	if (*go && !names_escape(pa->pa_selector, pj->pj_selector,
	    sizeof(pj->pj_selector))) {
		pj->pj_code = CODE_TOO_LONG;
		strlcpy(pj->pj_text, "the selector is too long",
		    sizeof(pj->pj_text));
		event_active(&pj->pj_event, EV_TIMEOUT, 0);
		*go = 0;
	}
	return pj;
}

void
job_call(struct pods_job *pj, const char *method, const char *verb,
    const char *resource, const char *path, const char *body, api_done *done)
{
	struct api_request	 ar = {
		.ar_method = method,
		.ar_path = path,
		.ar_type = strcmp(method, "PATCH") == 0 ?
		    "application/merge-patch+json" : NULL,
		.ar_body = body,
		.ar_verb = verb,
		.ar_resource = resource,
	};

	pj->pj_call = api_begin(pj->pj_cluster, &ar, done, pj);
}
