/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: which control host follows a pod.  Each has a Lease in every
 * namespace where it has pods, and renews it; a pod's annotations name the
 * Lease of its follower and a term.  Whoever finds the Lease of a follower
 * expired may take its place, with the next term, if the pod is still as it
 * was seen: the API server lets only one of several succeed.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "child.h"
#include "clock.h"
#include "kpod.h"
#include "log.h"

#define LEASE_S		30
#define RENEW_MS	10000
#define RENEW_SLACK_MS	3000	/* of a follower on a busy machine */
#define LINGER_MS	5000
#define LEASES		"/apis/coordination.k8s.io/v1/namespaces/%s/leases"

struct keeper {
	LIST_ENTRY(keeper)	 ke_entry;
	struct cluster		*ke_cluster;
	char			*ke_namespace;
	unsigned int		 ke_refs;
	struct api_call		*ke_call;
	struct sweep		*ke_sweep;	/* or NULL: not yet */
	struct event		 ke_timer;
	int			 ke_made;
	int			 ke_leaves;	/* the Lease is deleted */
	int			 ke_said;	/* what is wrong */
};

static LIST_HEAD(, keeper)	 keepers = LIST_HEAD_INITIALIZER(keepers);
static char			 me[POD_NAME_LEN + 1];

/* ---- who we are ---- */

/* Another life of the daemon is another host: the old one's Lease expires. */
void
pods_warm(void)
{
	char	 host[256] = "host", id[300];

	(void)gethostname(host, sizeof(host) - 1);
	snprintf(id, sizeof(id), "%.30s.%08x%08x", host, arc4random(),
	    arc4random());
	names_pod(id, me);
}

const char *
follow_me(void)
{
	if (me[0] == '\0')
		pods_warm();
	return me;
}

/* ---- our Lease ---- */

static void
keeper_arm(struct keeper *ke, uint64_t ms)
{
	struct timeval	 tv = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_usec = (suseconds_t)(ms % 1000 * 1000)
	};

	if (event_add(&ke->ke_timer, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

static void
keeper_free(struct keeper *ke)
{
	LIST_REMOVE(ke, ke_entry);
	api_cancel(ke->ke_call);
	sweep_cancel(ke->ke_sweep);
	event_del(&ke->ke_timer);
	cluster_unref(ke->ke_cluster);
	free(ke->ke_namespace);
	free(ke);
}

/* Pods are of use without a Lease; another host may then take them over. */
static void
keeper_asked(void *arg, const struct api_answer *aa)
{
	struct keeper	*ke = arg;

	ke->ke_call = NULL;
	if (ke->ke_leaves) {
		keeper_free(ke);
		return;
	}
	if (aa->aa_result == API_OK || strcmp(aa->aa_reason,
	    "AlreadyExists") == 0) {
		ke->ke_made = 1;
		ke->ke_said = 0;
		if (ke->ke_sweep == NULL)
			ke->ke_sweep = sweep_begin(ke->ke_cluster,
			    ke->ke_namespace);
	} else if (aa->aa_status == 404)
		ke->ke_made = 0;
	else if (ke->ke_said++ == 0)
		log_warnx("cluster %s: lease in %s: %s",
		    cluster_name(ke->ke_cluster), ke->ke_namespace,
		    aa->aa_why);
	keeper_arm(ke, RENEW_MS - arc4random_uniform(RENEW_MS / 8));
}

static cJSON *
lease_new(struct keeper *ke)
{
	cJSON	*lease = kj_object(NULL, NULL), *meta, *labels, *spec;
	char	 now[KJ_TIME_LEN + 1], micro[KJ_TIME_LEN + 16];

	meta = kj_object(lease, "metadata");
	if (!ke->ke_made) {
		kj_put(lease, "apiVersion", "coordination.k8s.io/v1");
		kj_put(lease, "kind", "Lease");
		kj_put(meta, "name", follow_me());
		labels = kj_object(meta, "labels");
		kj_put(labels, MARK_MANAGED, MARK_MANAGER);
		kj_put(labels, MARK_OWNER, names_installation());
	}
	spec = kj_object(lease, "spec");
	kj_put(spec, "holderIdentity", follow_me());
	kj_put_number(spec, "leaseDurationSeconds", LEASE_S);
	kj_time_print(api_now(ke->ke_cluster), now);
	now[KJ_TIME_LEN - 1] = '\0';
	snprintf(micro, sizeof(micro), "%s.000000Z", now);
	kj_put(spec, "renewTime", micro);
	return lease;
}

static void
keeper_ask(struct keeper *ke)
{
	char			 path[API_PATH_LEN], *body = NULL;
	cJSON			*lease;
	struct api_request	 ar = {
		.ar_path = path,
		.ar_resource = "leases",
		.ar_urgent = 1,		/* or another host believes us dead */
	};

	snprintf(path, sizeof(path), LEASES "%s%s", ke->ke_namespace,
	    ke->ke_made ? "/" : "", ke->ke_made ? follow_me() : "");
	api_renew(&ke->ke_cluster);
	if (ke->ke_refs == 0) {
		ke->ke_leaves = 1;
		ar.ar_method = "DELETE";
		ar.ar_verb = "delete";
	} else {
		ar.ar_method = ke->ke_made ? "PATCH" : "POST";
		ar.ar_verb = ke->ke_made ? "patch" : "create";
		ar.ar_type = ke->ke_made ? "application/merge-patch+json" :
		    NULL;
		lease = lease_new(ke);
		ar.ar_body = body = kj_print(lease);
		cJSON_Delete(lease);
	}
	ke->ke_call = api_begin(ke->ke_cluster, &ar, keeper_asked, ke);
	cJSON_free(body);
}

static void
keeper_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct keeper	*ke = arg;

	(void)fd, (void)what;
	if (ke->ke_refs == 0 && !ke->ke_made)
		keeper_free(ke);
	else if (ke->ke_call == NULL)
		keeper_ask(ke);
}

struct keeper *
keeper_join(struct cluster *cl, const char *namespace)
{
	struct keeper	*ke;

	LIST_FOREACH(ke, &keepers, ke_entry)
		if (!ke->ke_leaves && strcmp(ke->ke_namespace, namespace) ==
		    0 && strcmp(cluster_name(ke->ke_cluster),
		    cluster_name(cl)) == 0) {
			ke->ke_refs++;
			return ke;
		}
	if ((ke = calloc(1, sizeof(*ke))) == NULL ||
	    (ke->ke_namespace = strdup(namespace)) == NULL)
		fatal("%s", __func__);
	ke->ke_cluster = cluster_ref(cl);
	ke->ke_refs = 1;
	event_assign(&ke->ke_timer, child_base, -1, 0, keeper_on_timer, ke);
	LIST_INSERT_HEAD(&keepers, ke, ke_entry);
	keeper_ask(ke);
	return ke;
}

void
keeper_leave(struct keeper *ke)
{
	if (ke == NULL || --ke->ke_refs > 0)
		return;
	/* The next session may come at once. */
	keeper_arm(ke, LINGER_MS);
}

/* ---- a pod's follower ---- */

int
kpod_is_followed(const cJSON *pod)
{
	const char	*who = kj_annotation(pod, NOTE_FOLLOWER);

	return who[0] == '\0' || strcmp(who, follow_me()) == 0;
}

static void
kpod_claimed(void *arg, const struct api_answer *aa)
{
	struct kpod	*kp = arg;

	kp->kp_call = NULL;
	if (aa->aa_status == 409 || aa->aa_status == 404 ||
	    (aa->aa_result == API_OK && kp->kp_dirty))
		kpod_look(kp);
	else if (aa->aa_result == API_OK) {
		kp->kp_term++;
		kpod_ready(kp);
	} else
		kpod_fail_end(kp, kpod_code(aa), "%s", aa->aa_why);
}

/* By its version, so that of two hosts one is refused. */
static void
kpod_take_over(struct kpod *kp)
{
	cJSON			*patch = kj_object(NULL, NULL), *meta, *notes;
	char			 path[API_PATH_LEN], term[24], *body;
	struct api_request	 ar = {
		.ar_method = "PATCH",
		.ar_path = path,
		.ar_type = "application/merge-patch+json",
		.ar_verb = "patch",
		.ar_resource = "pods",
	};

	kpod_path(kp->kp_namespace, kp->kp_name, "", path, sizeof(path));
	snprintf(term, sizeof(term), "%llu",
	    (unsigned long long)kp->kp_term + 1);
	meta = kj_object(patch, "metadata");
	kj_put(meta, "uid", kp->kp_uid);
	kj_put(meta, "resourceVersion", kp->kp_version);
	notes = kj_object(meta, "annotations");
	kj_put(notes, NOTE_FOLLOWER, follow_me());
	kj_put(notes, NOTE_TERM, term);
	ar.ar_body = body = kj_print(patch);
	kp->kp_dirty = 0;
	kp->kp_call = api_begin(kp->kp_cluster, &ar, kpod_claimed, kp);
	cJSON_free(body);
	cJSON_Delete(patch);
}

/* For how many seconds more, if nobody renews it; less than 0: it is over. */
static int64_t
lease_left(struct kpod *kp, const cJSON *lease)
{
	int64_t	 renewed = kj_time(kj_string(lease, "spec/renewTime"));
	int64_t	 s = (int64_t)kj_number(lease, "spec/leaseDurationSeconds");

	/* A Lease of days would be somebody's mistake, or worse. */
	if (s > 10 * LEASE_S)
		s = 10 * LEASE_S;
	return renewed + s - api_now(kp->kp_cluster);
}

/* A follower that lives has renewed the Lease since it was seen first. */
static int
follower_lives(struct kpod *kp, const cJSON *lease)
{
	int64_t	 renewed = kj_time(kj_string(lease, "spec/renewTime"));
	int64_t	 seen = kp->kp_renewed_s;

	if (seen == 0)
		kp->kp_renewed_s = renewed;
	return seen != 0 && renewed != seen;
}

static void
kpod_refuse_end(struct kpod *kp, const cJSON *lease, int64_t left)
{
	kp->kp_created = 0;
	kpod_fail_end(kp, POD_CODE_FOLLOWED, "pod %s is followed by %.63s; "
	    "if that one is no more, try again in %lld s", kp->kp_name,
	    kj_string(lease, "metadata/name"), (long long)left + 1);
}

/*
 * The Lease of a follower that has died runs out, so it is looked at again:
 * after the time in which one that lives renews its own, and at the end.
 */
static void
kpod_wait_follower_end(struct kpod *kp, const cJSON *lease, int64_t left)
{
	uint64_t	 now = clock_ms(), ms = (uint64_t)left * 1000 + 1000;

	if (kp->kp_claim_until_ms == 0) {
		kp->kp_claim_until_ms = now + kp->kp_terms.kt_ready_ms;
		if (ms > RENEW_MS + RENEW_SLACK_MS)
			ms = RENEW_MS + RENEW_SLACK_MS;
	}
	if (follower_lives(kp, lease) || now + ms > kp->kp_claim_until_ms) {
		kpod_refuse_end(kp, lease, left);
		return;
	}
	kpod_progress(kp, "waits whether %.63s lives, which follows the pod",
	    kj_string(lease, "metadata/name"));
	kpod_timer(kp, ms);
}

static void
kpod_lease_seen(void *arg, const struct api_answer *aa)
{
	struct kpod	*kp = arg;
	int64_t		 left = -1;

	kp->kp_call = NULL;
	if (aa->aa_result == API_OK)
		left = lease_left(kp, aa->aa_json);
	if (left >= 0)
		kpod_wait_follower_end(kp, aa->aa_json, left);
	else if (aa->aa_result == API_OK || aa->aa_status == 404)
		kpod_take_over(kp);
	else
		kpod_fail_end(kp, kpod_code(aa), "%s", aa->aa_why);
}

void
kpod_claim(struct kpod *kp, const cJSON *pod)
{
	const char		*who = kj_annotation(pod, NOTE_FOLLOWER), *end;
	char			 path[API_PATH_LEN], name[3 * POD_NAME_LEN + 4];
	struct api_request	 ar = {
		.ar_method = "GET",
		.ar_path = path,
		.ar_verb = "get",
		.ar_resource = "leases",
	};

	kp->kp_term = (uint64_t)strtonum(kj_annotation(pod, NOTE_TERM), 0,
	    INT64_MAX / 2, &end);
	event_del(&kp->kp_timer);
	if (strcmp(who, follow_me()) == 0) {
		kpod_ready(kp);
		return;
	}
	kp->kp_state = KPOD_CLAIM;
	if (who[0] == '\0' || strlen(who) > POD_NAME_LEN ||
	    !names_escape(who, name, sizeof(name))) {
		kpod_take_over(kp);
		return;
	}
	snprintf(path, sizeof(path), LEASES "/%s", kp->kp_namespace, name);
	kp->kp_dirty = 0;
	kp->kp_call = api_begin(kp->kp_cluster, &ar, kpod_lease_seen, kp);
}
