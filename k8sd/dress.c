/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: what a pod owns is made when the pod is there, as it names
 * the pod's uid, and goes with it.  Before that the kubelet waits for the
 * Secret.  Of one that is there already nobody knows who made it: ours is
 * replaced, that of the last pod of this name deleted, another's left alone.
 */

#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "kpod.h"
#include "log.h"
#include "owned.h"

#define ROUNDS_MAX	20

/* ---- their beginning ---- */

static void	 dress_make(struct kpod *);

static void
dress_call(struct kpod *kp, const char *method, const char *verb,
    const char *name, const char *body, api_done *done)
{
	char			 path[API_PATH_LEN];
	struct api_request	 ar = {
		.ar_method = method,
		.ar_path = path,
		.ar_body = body,
		.ar_verb = verb,
		.ar_resource = owned_resource(kp->kp_dress),
	};

	owned_path(kp->kp_dress, kp->kp_namespace, name, path, sizeof(path));
	api_renew(&kp->kp_cluster);
	kp->kp_call = api_begin(kp->kp_cluster, &ar, done, kp);
}

static void
dress_failed_end(struct kpod *kp, const struct api_answer *aa)
{
	kpod_fail_end(kp, kpod_code(aa), "%s of pod %s: %s",
	    owned_resource(kp->kp_dress), kp->kp_name, aa->aa_why);
}

static void
dress_next_end(struct kpod *kp)
{
	kp->kp_dress++;
	if (kp->kp_dress == OWNED_NETWORK && !kp->kp_terms.kt_network)
		kp->kp_dress++;
	if (kp->kp_dress < OWNED_MAX)
		dress_make(kp);
	else {
		kp->kp_dressed = 1;
		kpod_look(kp);
	}
}

static void
dress_replaced(void *arg, const struct api_answer *aa)
{
	struct kpod	*kp = arg;

	kp->kp_call = NULL;
	if (aa->aa_result == API_OK)
		dress_next_end(kp);
	else if ((aa->aa_status == 409 || aa->aa_status == 404) &&
	    kp->kp_rounds++ < ROUNDS_MAX)
		dress_make(kp);
	else
		dress_failed_end(kp, aa);
}

/* A deletion: after it, and after a lost race, it is made again. */
static void
dress_deleted(void *arg, const struct api_answer *aa)
{
	struct kpod	*kp = arg;

	kp->kp_call = NULL;
	if ((aa->aa_result == API_OK || aa->aa_status == 404 ||
	    aa->aa_status == 409) && kp->kp_rounds++ < ROUNDS_MAX)
		dress_make(kp);
	else
		dress_failed_end(kp, aa);
}

static int
is_marked(const struct kpod *kp, const cJSON *object)
{
	static const char *const	 labels[] = {
		MARK_MANAGED, MARK_SESSION, MARK_OWNER
	};
	size_t				 i;

	for (i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		if (strcmp(kj_label(object, labels[i]),
		    kj_label(kp->kp_want, labels[i])) != 0)
			return 0;
	return 1;
}

static char *
dress_body(struct kpod *kp, const char *version)
{
	cJSON	*object = owned_object(kp->kp_dress, kp->kp_want, kp->kp_uid,
	    kp->kp_terms.kt_gate);
	char	*body;

	if (version[0] != '\0')
		kj_put(cJSON_GetObjectItemCaseSensitive(object, "metadata"),
		    "resourceVersion", version);
	body = kj_print(object);
	cJSON_Delete(object);
	return body;
}

static void
dress_looked(void *arg, const struct api_answer *aa)
{
	struct kpod	*kp = arg;
	char		*body;

	kp->kp_call = NULL;
	if (aa->aa_status == 404 && kp->kp_rounds++ < ROUNDS_MAX)
		dress_make(kp);
	else if (aa->aa_result != API_OK)
		dress_failed_end(kp, aa);
	else if (!is_marked(kp, aa->aa_json))
		kpod_fail_end(kp, POD_CODE_FOREIGN,
		    "%s %s is there and not ours", owned_resource(kp->kp_dress),
		    kp->kp_name);
	else if (owned_is(aa->aa_json, kp->kp_uid)) {
		body = dress_body(kp, kj_string(aa->aa_json,
		    "metadata/resourceVersion"));
		dress_call(kp, "PUT", "update", kp->kp_name, body,
		    dress_replaced);
		cJSON_free(body);
	} else {
		body = kpod_delete_body(kj_string(aa->aa_json, "metadata/uid"),
		    "");
		dress_call(kp, "DELETE", "delete", kp->kp_name, body,
		    dress_deleted);
		cJSON_free(body);
	}
}

static void
dress_made(void *arg, const struct api_answer *aa)
{
	struct kpod	*kp = arg;

	kp->kp_call = NULL;
	if (aa->aa_result == API_OK)
		dress_next_end(kp);
	else if (strcmp(aa->aa_reason, "AlreadyExists") == 0 ||
	    (aa->aa_status == 0 && kp->kp_rounds++ < ROUNDS_MAX))
		dress_call(kp, "GET", "get", kp->kp_name, NULL, dress_looked);
	else
		dress_failed_end(kp, aa);
}

static void
dress_make(struct kpod *kp)
{
	char	*body = dress_body(kp, "");

	dress_call(kp, "POST", "create", "", body, dress_made);
	cJSON_free(body);
}

void
kpod_dress(struct kpod *kp)
{
	kp->kp_state = KPOD_DRESS;
	event_del(&kp->kp_timer);
	kp->kp_dress = OWNED_SECRET;
	dress_make(kp);
}

/* ---- their end ---- */

struct owned {
	struct cluster	*ow_cluster;
	char		*ow_namespace;
	char		 ow_name[POD_NAME_LEN + 1];
	char		 ow_uid[UID_LEN + 1];	/* the pod's */
	enum owned_kind	 ow_kind;
	struct api_call	*ow_call;
	owned_done	*ow_done;
	void		*ow_arg;
};

static void	 owned_look(struct owned *);

void
owned_cancel(struct owned *ow)
{
	if (ow == NULL)
		return;
	api_cancel(ow->ow_call);
	cluster_unref(ow->ow_cluster);
	free(ow->ow_namespace);
	free(ow);
}

static void
owned_call(struct owned *ow, const char *method, const char *verb,
    const char *body, api_done *done)
{
	char			 path[API_PATH_LEN];
	struct api_request	 ar = {
		.ar_method = method,
		.ar_path = path,
		.ar_body = body,
		.ar_verb = verb,
		.ar_resource = owned_resource(ow->ow_kind),
	};

	owned_path(ow->ow_kind, ow->ow_namespace, ow->ow_name, path,
	    sizeof(path));
	api_renew(&ow->ow_cluster);
	ow->ow_call = api_begin(ow->ow_cluster, &ar, done, ow);
}

static void
owned_next(struct owned *ow)
{
	owned_done	*done = ow->ow_done;
	void		*arg = ow->ow_arg;

	if (++ow->ow_kind < OWNED_MAX) {
		owned_look(ow);
		return;
	}
	owned_cancel(ow);
	if (done != NULL)
		done(arg);
}

static void
owned_failed(const struct owned *ow, const struct api_answer *aa)
{
	if (aa->aa_status != 404 && aa->aa_status != 409)
		log_warnx("pod %s: its %s: %s", ow->ow_name,
		    owned_resource(ow->ow_kind), aa->aa_why);
}

static void
owned_deleted(void *arg, const struct api_answer *aa)
{
	struct owned	*ow = arg;

	ow->ow_call = NULL;
	if (aa->aa_result != API_OK)
		owned_failed(ow, aa);
	owned_next(ow);
}

/* The next pod of this name may have its own by now. */
static void
owned_looked(void *arg, const struct api_answer *aa)
{
	struct owned	*ow = arg;
	char		*body;

	ow->ow_call = NULL;
	if (aa->aa_result != API_OK || !owned_is(aa->aa_json, ow->ow_uid)) {
		if (aa->aa_result != API_OK)
			owned_failed(ow, aa);
		owned_next(ow);
		return;
	}
	body = kpod_delete_body(kj_string(aa->aa_json, "metadata/uid"), "");
	owned_call(ow, "DELETE", "delete", body, owned_deleted);
	cJSON_free(body);
}

static void
owned_look(struct owned *ow)
{
	owned_call(ow, "GET", "get", NULL, owned_looked);
}

struct owned *
owned_drop(struct cluster *cl, const char *namespace, const char *name,
    const char *uid, owned_done *done, void *arg)
{
	struct owned	*ow;

	if ((ow = calloc(1, sizeof(*ow))) == NULL ||
	    (ow->ow_namespace = strdup(namespace)) == NULL)
		fatal("%s", __func__);
	ow->ow_cluster = cluster_ref(cl);
	strlcpy(ow->ow_name, name, sizeof(ow->ow_name));
	strlcpy(ow->ow_uid, uid, sizeof(ow->ow_uid));
	ow->ow_done = done;
	ow->ow_arg = arg;
	owned_look(ow);
	return ow;
}
