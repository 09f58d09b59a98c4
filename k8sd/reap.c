/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: the pods of this installation in a namespace, listed page by
 * page, and the reaping of those that nobody keeps alive.  All that matters is
 * in the cluster, so that a daemon which has just started knows as much as the
 * one that made them.
 *
 * A pod is reaped that has ended, or whose heartbeat is old by the server's
 * clock.  One without a heartbeat has none by configuration, and stays until
 * its deadline.  Deletions are of the pod as it was listed: a heartbeat in
 * between saves it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "log.h"

#define CONTINUE_LEN	4096
#define ID_LEN		255

static void	 job_page(struct pods_job *);

/* ---- a pod of the list ---- */

static uint64_t
since(struct pods_job *pj, int64_t then)
{
	int64_t	 now = api_now(pj->pj_cluster);

	return then > 0 && now > then ? (uint64_t)(now - then) : 0;
}

static struct victim *
victim_new(struct pods_job *pj, const cJSON *pod, const struct pod_status *ps)
{
	const char	*beat = kj_annotation(pod, NOTE_HEARTBEAT);
	int64_t		 then = kj_time(beat);
	struct victim	*vi;
	char		 id[ID_LEN + 1];

	kj_tame(kj_annotation(pod, NOTE_ID), SIZE_MAX, id, sizeof(id));
	if ((vi = calloc(1, sizeof(*vi))) == NULL ||
	    (vi->vi_session = strdup(id)) == NULL)
		fatal("%s", __func__);
	strlcpy(vi->vi_name, kj_string(pod, "metadata/name"),
	    sizeof(vi->vi_name));
	strlcpy(vi->vi_uid, kj_string(pod, "metadata/uid"),
	    sizeof(vi->vi_uid));
	strlcpy(vi->vi_version, kj_string(pod, "metadata/resourceVersion"),
	    sizeof(vi->vi_version));
	kj_tame(ps->ps_state == POD_LEAVES ? "Terminating" :
	    kj_string(pod, "status/phase"), SIZE_MAX, vi->vi_state,
	    sizeof(vi->vi_state));
	strlcpy(vi->vi_text, beat[0] != '\0' && then == 0 ? "bad heartbeat" :
	    ps->ps_text, sizeof(vi->vi_text));
	vi->vi_owner = job_owner(pod);
	vi->vi_gated = kj_annotation(pod, NOTE_CONF)[0] != '\0';
	vi->vi_age_s = since(pj, then != 0 ? then :
	    kj_time(kj_string(pod, "metadata/creationTimestamp")));
	return vi;
}

/* The names of what others planted under our labels are not ours. */
static int
is_ours(const cJSON *pod)
{
	char	 name[POD_NAME_LEN + 1];

	names_pod(kj_annotation(pod, NOTE_ID), name);
	return strcmp(kj_label(pod, MARK_MANAGED), MARK_MANAGER) == 0 &&
	    strcmp(kj_label(pod, MARK_OWNER), names_installation()) == 0 &&
	    strcmp(kj_string(pod, "metadata/name"), name) == 0;
}

static int
is_stale(struct pods_job *pj, const cJSON *pod, const struct pod_status *ps,
    const struct victim *vi)
{
	struct kpod	*kp;

	if (ps->ps_state == POD_LEAVES)
		return 0;
	kp = kpod_find(pj->pj_cluster, pj->pj_namespace, vi->vi_name);
	if (kp != NULL && !TAILQ_EMPTY(&kp->kp_users))
		return 0;
	if (ps->ps_state != POD_HAS_ENDED &&
	    kj_time(kj_annotation(pod, NOTE_HEARTBEAT)) == 0)
		return 0;
	return vi->vi_age_s >= pj->pj_age_s;
}

static void
victim_tell(struct pods_job *pj, const struct victim *vi, const char *text)
{
	struct pods_item	 pi = {
		.pi_session = vi->vi_session,
		.pi_pod = vi->vi_name,
		.pi_text = text,
		.pi_state = vi->vi_state,
		.pi_owner = vi->vi_owner,
		.pi_age_s = vi->vi_age_s,
	};

	pj->pj_item(pj->pj_arg, &pi);
}

static void
victim_free(struct victim *vi)
{
	free(vi->vi_session);
	free(vi);
}

/* ---- what is deleted ---- */

static void	 job_next(struct pods_job *);

/* The first of them is deleted, and all that it owned. */
static void
job_reaped_all(void *arg)
{
	struct pods_job	*pj = arg;
	struct victim	*vi = TAILQ_FIRST(&pj->pj_victims);

	pj->pj_owned = NULL;
	TAILQ_REMOVE(&pj->pj_victims, vi, vi_entry);
	victim_tell(pj, vi, "deleted");
	victim_free(vi);
	job_next(pj);
}

static void
job_reaped(void *arg, const struct api_answer *aa)
{
	struct pods_job	*pj = arg;
	struct victim	*vi = TAILQ_FIRST(&pj->pj_victims);
	char		 text[API_WHY_LEN];

	pj->pj_call = NULL;
	if (aa->aa_result == API_OK || aa->aa_status == 404) {
		if (vi->vi_gated)
			pj->pj_owned = owned_drop(pj->pj_cluster,
			    pj->pj_namespace, vi->vi_name, vi->vi_uid,
			    job_reaped_all, pj);
		else
			job_reaped_all(pj);
		return;
	}
	snprintf(text, sizeof(text), "not deleted: %.500s", aa->aa_status ==
	    409 ? "it has changed meanwhile" : aa->aa_why);
	TAILQ_REMOVE(&pj->pj_victims, vi, vi_entry);
	victim_tell(pj, vi, text);
	victim_free(vi);
	job_next(pj);
}

/* The next deletion, or the next page, or the end. */
static void
job_next(struct pods_job *pj)
{
	struct victim	*vi = TAILQ_FIRST(&pj->pj_victims);
	char		 path[API_PATH_LEN], *body;

	if (vi != NULL) {
		kpod_path(pj->pj_namespace, vi->vi_name, "", path,
		    sizeof(path));
		body = kpod_delete_body(vi->vi_uid, vi->vi_version);
		job_call(pj, "DELETE", "delete", "pods", path, body,
		    job_reaped);
		cJSON_free(body);
	} else if (pj->pj_continue != NULL)
		job_page(pj);
	else
		job_over(pj, NULL, "");
}

/* ---- pages ---- */

static void
job_pod(struct pods_job *pj, const cJSON *pod)
{
	struct pod_status	 ps;
	struct victim		*vi;

	if (!is_ours(pod) || !job_may(pj, pod))
		return;
	status_read(pod, &ps);
	vi = victim_new(pj, pod, &ps);
	if (!pj->pj_reaps)
		victim_tell(pj, vi, vi->vi_text);
	else if (is_stale(pj, pod, &ps, vi)) {
		if (!pj->pj_dry_run) {
			TAILQ_INSERT_TAIL(&pj->pj_victims, vi, vi_entry);
			return;
		}
		victim_tell(pj, vi, "would be deleted");
	}
	victim_free(vi);
}

static void
job_listed(void *arg, const struct api_answer *aa)
{
	struct pods_job	*pj = arg;
	const cJSON	*pod;
	const char	*more;

	pj->pj_call = NULL;
	if (aa->aa_result != API_OK) {
		job_failed(pj, aa);
		return;
	}
	cJSON_ArrayForEach(pod, kj_at(aa->aa_json, "items")) {
		job_pod(pj, pod);
	}
	more = kj_string(aa->aa_json, "metadata/continue");
	free(pj->pj_continue);
	pj->pj_continue = NULL;
	if (more[0] != '\0' && strlen(more) <= CONTINUE_LEN &&
	    (pj->pj_continue = strdup(more)) == NULL)
		fatal("%s", __func__);
	job_next(pj);
}

static void
job_page(struct pods_job *pj)
{
	char	 more[3 * CONTINUE_LEN + 4] = "";
	char	 path[sizeof(more) + 3 * SELECTOR_LEN + API_PATH_LEN];

	if (pj->pj_continue != NULL)
		names_escape(pj->pj_continue, more, sizeof(more));
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods?"
	    "labelSelector=%s%s%s&limit=%d%s%s", pj->pj_namespace,
	    names_selector(), pj->pj_selector[0] != '\0' ? "%2C" : "",
	    pj->pj_selector, API_PAGE, more[0] != '\0' ? "&continue=" : "",
	    more);
	job_call(pj, "GET", "list", "pods", path, NULL, job_listed);
}

struct pods_job *
pods_list(const struct pods_ask *pa, pods_item *item, pods_done *done,
    void *arg)
{
	struct pods_job	*pj;
	int		 go;

	pj = job_new(pa, item, done, arg, &go);
	if (go)
		job_page(pj);
	return pj;
}

struct pods_job *
pods_reap(const struct pods_ask *pa, pods_item *item, pods_done *done,
    void *arg)
{
	struct pods_job	*pj;
	int		 go;

	pj = job_new(pa, item, done, arg, &go);
	pj->pj_reaps = 1;
	if (go)
		job_page(pj);
	return pj;
}
