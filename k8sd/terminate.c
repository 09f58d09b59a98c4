/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: one pod by the id of its session, which is deleted or gets a
 * heartbeat, whether this daemon has the session or not.
 */

#include <stdio.h>
#include <string.h>

#include "codes.h"
#include "job.h"
#include "log.h"

#define ROUNDS_MAX	5

static void	 job_look(struct pods_job *);

static void
job_acted_end(struct pods_job *pj)
{
	struct pods_item	 pi = {
		.pi_session = pj->pj_session,
		.pi_pod = pj->pj_name,
		.pi_text = pj->pj_heartbeat ? "heartbeat" : "deleted",
		.pi_state = "",
		.pi_owner = pj->pj_owns,
	};

	pj->pj_item(pj->pj_arg, &pi);
	job_over(pj, NULL, "");
}

static void
job_dropped(void *arg)
{
	struct pods_job	*pj = arg;

	pj->pj_owned = NULL;
	job_acted_end(pj);
}

/* Deleted by somebody else is deleted; what changes is looked at again. */
static void
job_acted(void *arg, const struct api_answer *aa)
{
	struct pods_job		*pj = arg;

	pj->pj_call = NULL;
	if (aa->aa_result == API_OK ||
	    (aa->aa_status == 404 && !pj->pj_heartbeat)) {
		if (pj->pj_heartbeat || !pj->pj_gated)
			job_acted_end(pj);
		else
			pj->pj_owned = owned_drop(pj->pj_cluster,
			    pj->pj_namespace, pj->pj_name, pj->pj_uid,
			    job_dropped, pj);
	} else if (aa->aa_status == 409 && pj->pj_rounds++ < ROUNDS_MAX)
		job_look(pj);
	else
		job_failed(pj, aa);
}

static void
job_act(struct pods_job *pj, const cJSON *pod)
{
	const char	*uid = kj_string(pod, "metadata/uid");
	char		 path[API_PATH_LEN], *body;

	pj->pj_gated = kj_annotation(pod, NOTE_CONF)[0] != '\0';
	strlcpy(pj->pj_uid, uid, sizeof(pj->pj_uid));
	kpod_path(pj->pj_namespace, pj->pj_name, "", path, sizeof(path));
	if (pj->pj_heartbeat) {
		body = kpod_beat_body(pj->pj_cluster, uid);
		job_call(pj, "PATCH", "patch", "pods", path, body, job_acted);
	} else {
		body = kpod_delete_body(uid,
		    kj_string(pod, "metadata/resourceVersion"));
		job_call(pj, "DELETE", "delete", "pods", path, body,
		    job_acted);
	}
	cJSON_free(body);
}

/* A pod that has ended, or goes, is not kept alive by a mark. */
static int
is_past_help(const struct pods_job *pj, const cJSON *pod, char *text,
    size_t size)
{
	struct pod_status	 ps;

	if (!pj->pj_heartbeat)
		return 0;
	status_read(pod, &ps);
	if (ps.ps_state != POD_HAS_ENDED && ps.ps_state != POD_LEAVES)
		return 0;
	snprintf(text, size, "pod %s: %.500s", pj->pj_name, ps.ps_text);
	return 1;
}

static void
job_looked(void *arg, const struct api_answer *aa)
{
	struct pods_job	*pj = arg;
	const cJSON	*pod = aa->aa_json;
	char		 text[POD_TEXT_LEN];

	pj->pj_call = NULL;
	pj->pj_owns = job_owner(pod);
	if (aa->aa_status == 404) {
		snprintf(text, sizeof(text), "there is no pod %s",
		    pj->pj_name);
		job_over(pj, CODE_UNKNOWN_SESSION, text);
	} else if (aa->aa_result != API_OK)
		job_failed(pj, aa);
	else if (strcmp(kj_label(pod, MARK_MANAGED), MARK_MANAGER) != 0 ||
	    strcmp(kj_label(pod, MARK_OWNER), names_installation()) != 0 ||
	    strcmp(kj_annotation(pod, NOTE_ID), pj->pj_session) != 0) {
		snprintf(text, sizeof(text), "pod %s is not ours",
		    pj->pj_name);
		job_over(pj, POD_CODE_FOREIGN, text);
	} else if (!job_may(pj, pod)) {
		snprintf(text, sizeof(text), "pod %s is another user's",
		    pj->pj_name);
		job_over(pj, CODE_NOT_PERMITTED, text);
	} else if (is_past_help(pj, pod, text, sizeof(text)))
		job_over(pj, CODE_BAD_HEARTBEAT, text);
	else
		job_act(pj, pod);
}

static void
job_look(struct pods_job *pj)
{
	char	 path[API_PATH_LEN];

	kpod_path(pj->pj_namespace, pj->pj_name, "", path, sizeof(path));
	job_call(pj, "GET", "get", "pods", path, NULL, job_looked);
}

struct pods_job *
pods_terminate(const struct pods_ask *pa, pods_item *item, pods_done *done,
    void *arg)
{
	struct pods_job	*pj;
	int		 go;

	pj = job_new(pa, item, done, arg, &go);
	if (go)
		job_look(pj);
	return pj;
}

struct pods_job *
pods_heartbeat(const struct pods_ask *pa, pods_item *item, pods_done *done,
    void *arg)
{
	struct pods_job	*pj;
	int		 go;

	pj = job_new(pa, item, done, arg, &go);
	pj->pj_heartbeat = 1;
	if (go)
		job_look(pj);
	return pj;
}
