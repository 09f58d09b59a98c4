/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: what is asked of an API server about a pod, and its
 * heartbeat.  Answers are a stranger's; which of them is believed is up to
 * kpod.c.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "child.h"
#include "kpod.h"
#include "log.h"

#define ROUNDS_MAX	20

void
kpod_path(const char *namespace, const char *name, const char *tail,
    char *out, size_t size)
{
	snprintf(out, size, "/api/v1/namespaces/%s/pods%s%s%s", namespace,
	    name[0] != '\0' ? "/" : "", name, tail);
}

static void
kpod_call(struct kpod *kp, const char *method, const char *verb,
    const char *name, const char *body, api_done *done)
{
	char			 path[API_PATH_LEN];
	struct api_request	 ar = {
		.ar_method = method,
		.ar_path = path,
		.ar_body = body,
		.ar_verb = verb,
		.ar_resource = "pods",
	};

	kpod_path(kp->kp_namespace, name, "", path, sizeof(path));
	api_renew(&kp->kp_cluster);
	kp->kp_dirty = 0;
	kp->kp_call = api_begin(kp->kp_cluster, &ar, done, kp);
}

/* ---- look ---- */

static void
kpod_looked(void *arg, const struct api_answer *aa)
{
	struct kpod	*kp = arg;

	kp->kp_call = NULL;
	if ((kp->kp_dirty & KPOD_CHANGED || (kp->kp_dirty &&
	    aa->aa_result == API_OK)) && kp->kp_rounds++ < ROUNDS_MAX)
		kpod_look(kp);
	else if (aa->aa_result == API_OK)
		kpod_judge_end(kp, aa->aa_json);
	else if (aa->aa_status == 404)
		kpod_gone_end(kp);
	else
		kpod_fail_end(kp, kpod_code(aa), "%s", aa->aa_why);
}

void
kpod_look(struct kpod *kp)
{
	kp->kp_state = KPOD_LOOK;
	event_del(&kp->kp_timer);
	kpod_call(kp, "GET", "get", kp->kp_name, NULL, kpod_looked);
}

/* ---- create ---- */

/*
 * Another start of the same id may have been faster, and of an answer that is
 * lost nobody knows: whatever is there now is looked at.
 */
static void
kpod_made(void *arg, const struct api_answer *aa)
{
	struct kpod	*kp = arg;

	kp->kp_call = NULL;
	if (aa->aa_result == API_OK) {
		kp->kp_created = 1;
		if (kp->kp_dirty & KPOD_CHANGED)
			kpod_look(kp);
		else
			kpod_judge_end(kp, aa->aa_json);
	} else if ((strcmp(aa->aa_reason, "AlreadyExists") == 0 ||
	    aa->aa_status == 0) && kp->kp_rounds++ < ROUNDS_MAX)
		kpod_look(kp);
	else
		kpod_fail_end(kp, kpod_code(aa), "%s", aa->aa_why);
}

void
kpod_create(struct kpod *kp)
{
	cJSON	*pod = kj_copy(kp->kp_want), *notes;
	char	*body;

	kp->kp_state = KPOD_CREATE;
	event_del(&kp->kp_timer);
	manifest_date(pod, api_now(kp->kp_cluster));
	notes = cJSON_GetObjectItemCaseSensitive(
	    cJSON_GetObjectItemCaseSensitive(pod, "metadata"), "annotations");
	/* None at all, rather than one that grows old. */
	if (kp->kp_terms.kt_heartbeat_ms == 0)
		cJSON_DeleteItemFromObjectCaseSensitive(notes,
		    NOTE_HEARTBEAT);
	kj_put(notes, NOTE_FOLLOWER, follow_me());
	kj_put(notes, NOTE_TERM, "1");
	body = kj_print(pod);
	kpod_call(kp, "POST", "create", "", body, kpod_made);
	cJSON_free(body);
	cJSON_Delete(pod);
}

/* ---- delete ---- */

/* Only the pod that was seen, and as it was seen. */
char *
kpod_delete_body(const char *uid, const char *version)
{
	cJSON	*options = kj_object(NULL, NULL), *only;
	char	*body;

	kj_put(options, "apiVersion", "v1");
	kj_put(options, "kind", "DeleteOptions");
	only = kj_object(options, "preconditions");
	kj_put(only, "uid", uid);
	if (version[0] != '\0')
		kj_put(only, "resourceVersion", version);
	body = kj_print(options);
	cJSON_Delete(options);
	return body;
}

static void
kpod_deleted(void *arg, const struct api_answer *aa)
{
	struct kpod	*kp = arg;

	kp->kp_call = NULL;
	if (aa->aa_result == API_OK && kp->kp_terms.kt_gate != NULL)
		owned_drop(kp->kp_cluster, kp->kp_namespace, kp->kp_name,
		    kp->kp_uid, NULL, NULL);
	if (aa->aa_status == 404)
		kpod_gone_end(kp);
	else if (aa->aa_result == API_OK && !kp->kp_dirty) {
		kp->kp_state = KPOD_LEAVING;
		kpod_timer(kp, 90000);
	} else if ((aa->aa_result == API_OK || aa->aa_status == 409) &&
	    kp->kp_rounds++ < ROUNDS_MAX)
		kpod_look(kp);
	else
		kpod_fail_end(kp, kpod_code(aa), "%s", aa->aa_why);
}

void
kpod_delete(struct kpod *kp)
{
	char	*body = kpod_delete_body(kp->kp_uid, kp->kp_version);

	kp->kp_state = KPOD_DELETE;
	event_del(&kp->kp_timer);
	kpod_call(kp, "DELETE", "delete", kp->kp_name, body, kpod_deleted);
	cJSON_free(body);
}

/* ---- heartbeat ---- */

/* Of this pod and no other that has taken its name. */
char *
kpod_beat_body(struct cluster *cl, const char *uid)
{
	cJSON	*patch = kj_object(NULL, NULL), *meta;
	char	 now[KJ_TIME_LEN + 1], *body;

	kj_time_print(api_now(cl), now);
	meta = kj_object(patch, "metadata");
	kj_put(meta, "uid", uid);
	kj_put(kj_object(meta, "annotations"), NOTE_HEARTBEAT, now);
	body = kj_print(patch);
	cJSON_Delete(patch);
	return body;
}

/* Somewhat early, and not in step with other pods. */
static void
beat_arm(struct kpod *kp)
{
	uint64_t	 ms = kp->kp_terms.kt_heartbeat_ms;
	struct timeval	 tv;

	ms -= arc4random_uniform((uint32_t)(ms / 8) + 1);
	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	if (event_add(&kp->kp_beat, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

static void
beat_done(void *arg, const struct api_answer *aa)
{
	struct kpod	*kp = arg;

	kp->kp_beat_call = NULL;
	if (aa->aa_result != API_OK)
		log_warnx("pod %s: heartbeat: %s", kp->kp_name, aa->aa_why);
	if (kp->kp_terms.kt_heartbeat_ms != 0)
		beat_arm(kp);
}

void
kpod_beat_now(struct kpod *kp)
{
	char			 path[API_PATH_LEN], *body;
	struct api_request	 ar = {
		.ar_method = "PATCH",
		.ar_path = path,
		.ar_type = "application/merge-patch+json",
		.ar_verb = "patch",
		.ar_resource = "pods",
	};

	if (kp->kp_beat_call != NULL)
		return;
	kpod_path(kp->kp_namespace, kp->kp_name, "", path, sizeof(path));
	api_renew(&kp->kp_cluster);
	ar.ar_body = body = kpod_beat_body(kp->kp_cluster, kp->kp_uid);
	kp->kp_beat_call = api_begin(kp->kp_cluster, &ar, beat_done, kp);
	cJSON_free(body);
}

static void
beat_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	kpod_beat_now(arg);
}

/* The first at once, if the pod may be an old one. */
void
kpod_beat_begin(struct kpod *kp)
{
	kpod_beat_end(kp);
	event_assign(&kp->kp_beat, child_base, -1, 0, beat_on_timer, kp);
	if (kp->kp_terms.kt_heartbeat_ms == 0)
		return;
	if (kp->kp_created)
		beat_arm(kp);
	else
		kpod_beat_now(kp);
}

void
kpod_beat_end(struct kpod *kp)
{
	api_cancel(kp->kp_beat_call);
	kp->kp_beat_call = NULL;
	if (event_initialized(&kp->kp_beat))
		event_del(&kp->kp_beat);
}
