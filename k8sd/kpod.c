/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: the life of a pod, from what an API server says of it.  It
 * is asked once how things are; after that the watch tells.
 *
 *	look --------- 404 ------------> create --> wait --> ready
 *	 ^ |                     |                    ^
 *	 | |-- runs, waits ------+--------------------'
 *	 | |   (with a gate: dress, and look again)
 *	 | |-- being deleted ----+--> leaving
 *	 | `-- has ended --------+--> delete --> leaving (or an error)
 *	 `------------- it is gone ---------------'
 *
 * Functions whose name ends in _end may free the pod.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "child.h"
#include "kpod.h"
#include "log.h"

#define LEAVE_MS	90000	/* until it is deleted */
#define ROUNDS_MAX	20	/* looks; somebody works against us */

static LIST_HEAD(, kpod)	 kpods = LIST_HEAD_INITIALIZER(kpods);

/* ---- begin and end ---- */

static void
kpod_free(struct kpod *kp)
{
	LIST_REMOVE(kp, kp_entry);
	api_cancel(kp->kp_call);
	api_cancel(kp->kp_events_call);
	kpod_beat_end(kp);
	watch_end(kp->kp_watcher);
	keeper_leave(kp->kp_keeper);
	event_del(&kp->kp_timer);
	cJSON_Delete(kp->kp_want);
	gate_unref(kp->kp_terms.kt_gate);
	cluster_unref(kp->kp_cluster);
	free(kp->kp_namespace);
	free(kp);
}

void
kpod_timer(struct kpod *kp, uint64_t ms)
{
	struct timeval	 tv = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_usec = (suseconds_t)(ms % 1000 * 1000)
	};

	if (event_add(&kp->kp_timer, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

const char *
kpod_code(const struct api_answer *aa)
{
	return aa->aa_result == API_REFUSED ? POD_CODE_REFUSED :
	    POD_CODE_CLUSTER;
}

/* ---- telling ---- */

static void
tell_leavers(struct kpod *kp, const char *text)
{
	struct kpod_user	*ku;

	while ((ku = TAILQ_FIRST(&kp->kp_leavers)) != NULL) {
		TAILQ_REMOVE(&kp->kp_leavers, ku, ku_entry);
		ku->ku_kpod = NULL;
		ku->ku_ops->ko_ended(ku->ku_arg, CAUSE_REQUEST, text);
	}
}

void
kpod_progress(struct kpod *kp, const char *fmt, ...)
{
	struct kpod_user	*ku, *next;
	char			 text[STATUS_LEN];
	va_list			 ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (text[0] == '\0' || strcmp(text, kp->kp_said) == 0)
		return;
	strlcpy(kp->kp_said, text, sizeof(kp->kp_said));
	TAILQ_FOREACH_SAFE(ku, &kp->kp_users, ku_entry, next)
		ku->ku_ops->ko_progress(ku->ku_arg, kp->kp_said);
}

/* What we have just made and cannot use does not stay behind. */
void
kpod_fail_end(struct kpod *kp, const char *code, const char *fmt, ...)
{
	struct kpod_user	*ku;
	char			 text[POD_TEXT_LEN];
	va_list			 ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	while ((ku = TAILQ_FIRST(&kp->kp_users)) != NULL) {
		TAILQ_REMOVE(&kp->kp_users, ku, ku_entry);
		ku->ku_kpod = NULL;
		ku->ku_ops->ko_failed(ku->ku_arg, code, text);
	}
	tell_leavers(kp, text);
	if (kp->kp_created && kp->kp_state != KPOD_DELETE &&
	    kp->kp_state != KPOD_LEAVING)
		kpod_delete(kp);
	else
		kpod_free(kp);
}

static void
kpod_lost_end(struct kpod *kp, enum session_cause cause, const char *text)
{
	struct kpod_user	*ku;

	while ((ku = TAILQ_FIRST(&kp->kp_users)) != NULL) {
		TAILQ_REMOVE(&kp->kp_users, ku, ku_entry);
		ku->ku_kpod = NULL;
		ku->ku_ops->ko_ended(ku->ku_arg, cause, text);
	}
	tell_leavers(kp, text);
	kpod_free(kp);
}

/* One of them in each turn of the loop: whoever is told may leave. */
static void
tell_ready_end(struct kpod *kp)
{
	struct kpod_user	*ku;

	TAILQ_FOREACH(ku, &kp->kp_users, ku_entry)
		if (!ku->ku_told)
			break;
	if (ku == NULL)
		return;
	kpod_timer(kp, 0);
	ku->ku_told = 1;
	ku->ku_ops->ko_ready(ku->ku_arg);
}

/* Told by the timer: whoever made the pod ready goes on with it. */
void
kpod_ready(struct kpod *kp)
{
	kp->kp_state = KPOD_READY;
	kp->kp_runs = kp->kp_was_ready = 1;
	kpod_beat_begin(kp);
	kp->kp_created = 0;
	kp->kp_rounds = 0;
	kp->kp_renewed_s = 0;
	kp->kp_claim_until_ms = 0;
	kpod_timer(kp, 0);
}

static void
tell_runs(struct kpod *kp, int runs, const char *text)
{
	struct kpod_user	*ku, *next;

	if (kp->kp_runs == runs)
		return;
	kp->kp_runs = runs;
	log_info("pod %s: %s", kp->kp_name, runs ? "runs again" : text);
	TAILQ_FOREACH_SAFE(ku, &kp->kp_users, ku_entry, next)
		if (ku->ku_told)
			ku->ku_ops->ko_runs(ku->ku_arg, runs, text);
}

/* ---- what is seen ---- */

static void
kpod_take(struct kpod *kp, const cJSON *pod)
{
	strlcpy(kp->kp_uid, kj_string(pod, "metadata/uid"),
	    sizeof(kp->kp_uid));
	strlcpy(kp->kp_version, kj_string(pod, "metadata/resourceVersion"),
	    sizeof(kp->kp_version));
	kj_tame(kj_string(pod, "spec/nodeName"), SIZE_MAX, kp->kp_node,
	    sizeof(kp->kp_node));
}

static void
kpod_wait_gone(struct kpod *kp)
{
	kp->kp_state = KPOD_LEAVING;
	kpod_timer(kp, LEAVE_MS);
	kpod_progress(kp, "waits until the last pod of this name is gone");
}

/* The API says first why an image is not pulled, then only that it waits. */
static void
kpod_hopeless_end(struct kpod *kp, const struct pod_status *ps)
{
	if (strstr(ps->ps_fault, "ImagePullBackOff") != NULL &&
	    strstr(kp->kp_fault, "ErrImagePull") != NULL)
		kpod_fail_end(kp, POD_CODE_FAILED, "%s", kp->kp_fault);
	else
		kpod_fail_end(kp, POD_CODE_FAILED, "%s", ps->ps_fault);
}

static void
kpod_waits_end(struct kpod *kp, const cJSON *pod, const struct pod_status *ps)
{
	switch (ps->ps_state) {
	case POD_RUNS:
		kp->kp_restarts = ps->ps_restarts;
		kpod_claim(kp, pod);
		break;
	case POD_WAITS:
		kpod_progress(kp, "%s", ps->ps_text);
		strlcpy(kp->kp_fault, ps->ps_fault, sizeof(kp->kp_fault));
		break;
	case POD_HOPELESS:
		kpod_hopeless_end(kp, ps);
		break;
	case POD_LEAVES:
		kpod_wait_gone(kp);
		break;
	case POD_HAS_ENDED:
		kpod_fail_end(kp, POD_CODE_FAILED, "%s", ps->ps_fault);
		break;
	case POD_IS_ODD:
		kpod_fail_end(kp, POD_CODE_PHASE, "phase %s", ps->ps_fault);
		break;
	}
}

static void
kpod_lives_end(struct kpod *kp, const cJSON *pod, const struct pod_status *ps)
{
	if (!kpod_is_followed(pod)) {
		kpod_lost_end(kp, CAUSE_SANDBOX,
		    "another control host follows the pod now");
		return;
	}
	/* Of a gate that is down nothing gets out, and clients may come in. */
	if (ps->ps_runs && ps->ps_state != POD_RUNS && kp->kp_runs)
		log_warnx("pod %s: %s", kp->kp_name, ps->ps_text);
	switch (ps->ps_runs ? POD_RUNS : ps->ps_state) {
	case POD_RUNS:
		/* It may have been too short for anybody to see. */
		if (ps->ps_restarts != kp->kp_restarts)
			tell_runs(kp, 0, "the workspace was restarted");
		kp->kp_restarts = ps->ps_restarts;
		tell_runs(kp, 1, "");
		break;
	case POD_WAITS:
	case POD_HOPELESS:
	case POD_IS_ODD:
		tell_runs(kp, 0, ps->ps_text);
		break;
	case POD_LEAVES:
		kpod_lost_end(kp, CAUSE_SANDBOX, "the pod was deleted");
		break;
	case POD_HAS_ENDED:
		kpod_lost_end(kp, ps->ps_deadline ? CAUSE_DEADLINE :
		    CAUSE_SANDBOX, ps->ps_fault);
		break;
	}
}

/* The pod that we have, as it is now. */
void
kpod_see_end(struct kpod *kp, const cJSON *pod)
{
	struct pod_status	 ps;

	kpod_take(kp, pod);
	status_read(pod, &ps);
	if (kp->kp_state == KPOD_READY)
		kpod_lives_end(kp, pod, &ps);
	else if (kp->kp_state == KPOD_WAIT)
		kpod_waits_end(kp, pod, &ps);
}

/* One that has ended is deleted if it is ours and the block says so. */
static void
kpod_stale_end(struct kpod *kp, const struct pod_status *ps)
{
	if (kp->kp_terms.kt_recreate) {
		kpod_progress(kp, "replaces a pod that has ended");
		kpod_delete(kp);
	} else
		kpod_fail_end(kp, POD_CODE_STALE, "pod %s has ended: %s",
		    kp->kp_name, ps->ps_fault);
}

/* Sessions go on in the pod that they were in, and in no other. */
static void
kpod_again_end(struct kpod *kp, const cJSON *pod)
{
	if (strcmp(kj_string(pod, "metadata/uid"), kp->kp_uid) != 0) {
		kpod_lost_end(kp, CAUSE_SANDBOX, "the pod was replaced");
		return;
	}
	kp->kp_state = KPOD_READY;
	kpod_see_end(kp, pod);
}

/* A pod that is there: whose is it, and how is it? */
void
kpod_judge_end(struct kpod *kp, const cJSON *pod)
{
	struct pod_status	 ps;
	enum adopt		 judged;
	char			 why[STATUS_LEN];

	judged = adopt_judge(pod, kp->kp_want, why, sizeof(why));
	if (judged == ADOPT_FOREIGN) {
		kp->kp_created = 0;
		kpod_fail_end(kp, POD_CODE_FOREIGN,
		    "pod %s is there and not ours: %s", kp->kp_name, why);
		return;
	}
	if (kp->kp_was_ready) {
		kpod_again_end(kp, pod);
		return;
	}
	kpod_take(kp, pod);
	status_read(pod, &ps);
	if (ps.ps_state == POD_LEAVES)
		kpod_wait_gone(kp);
	else if (TAILQ_EMPTY(&kp->kp_users) || !TAILQ_EMPTY(&kp->kp_leavers))
		kpod_delete(kp);
	else if (ps.ps_state == POD_HAS_ENDED)
		kpod_stale_end(kp, &ps);
	else if (judged == ADOPT_DIFFERS)
		kpod_fail_end(kp, POD_CODE_DIFFERS, "pod %s: %s", kp->kp_name,
		    why);
	else if (kp->kp_terms.kt_gate != NULL && !kp->kp_dressed)
		kpod_dress(kp);
	else {
		kp->kp_state = KPOD_WAIT;
		kpod_events_begin(kp);
		kpod_waits_end(kp, pod, &ps);
	}
}

void
kpod_gone_end(struct kpod *kp)
{
	if (kp->kp_was_ready) {
		kpod_lost_end(kp, CAUSE_SANDBOX, "the pod was deleted");
		return;
	}
	tell_leavers(kp, "");
	kp->kp_created = kp->kp_dressed = 0;
	kp->kp_uid[0] = kp->kp_version[0] = kp->kp_fault[0] = '\0';
	if (TAILQ_EMPTY(&kp->kp_users))
		kpod_free(kp);
	else if (kp->kp_rounds++ >= ROUNDS_MAX)
		kpod_fail_end(kp, POD_CODE_FAILED,
		    "pod %s is deleted again and again", kp->kp_name);
	else
		kpod_create(kp);
}

/* ---- the watch and the clock ---- */

/*
 * The watch may lag behind what a call has said.  Versions are the server's
 * own affair, but all that we know of are numbers which grow.
 */
static int
kpod_knows(const struct kpod *kp, const cJSON *pod)
{
	const char	*one, *other;
	long long	 heard, known;

	heard = strtonum(kj_string(pod, "metadata/resourceVersion"), 1,
	    INT64_MAX, &one);
	known = strtonum(kp->kp_version, 1, INT64_MAX, &other);
	return one == NULL && other == NULL && heard <= known;
}

/* An object of another uid is the next pod of this name, or the last one. */
static void
kpod_heard_end(struct kpod *kp, enum watch_kind kind, const cJSON *pod)
{
	int	 ours = pod != NULL && strcmp(kj_string(pod, "metadata/uid"),
	    kp->kp_uid) == 0;

	switch (kp->kp_state) {
	case KPOD_WAIT:
	case KPOD_READY:
		if (kind == WATCH_IS && ours && !kpod_knows(kp, pod))
			kpod_see_end(kp, pod);
		else if (kind == WATCH_GONE && pod == NULL)
			kpod_look(kp);
		else if (kind == WATCH_GONE && ours &&
		    kp->kp_state == KPOD_READY)
			kpod_lost_end(kp, CAUSE_SANDBOX,
			    "the pod was deleted");
		else if (kind == WATCH_GONE && ours)
			kpod_gone_end(kp);
		break;
	case KPOD_LEAVING:
		if (kind == WATCH_GONE && ours)
			kpod_gone_end(kp);
		else if (pod == NULL || !ours)
			kpod_look(kp);
		break;
	default:
		kp->kp_dirty |= pod != NULL ? KPOD_CHANGED : KPOD_MISSING;
		break;
	}
}

static void
kpod_heard(void *arg, enum watch_kind kind, const cJSON *pod,
    const char *why)
{
	struct kpod	*kp = arg;

	if (kind != WATCH_REFUSED)
		kpod_heard_end(kp, kind, pod);
	else if (kp->kp_state == KPOD_WAIT || kp->kp_state == KPOD_LEAVING)
		kpod_fail_end(kp, POD_CODE_REFUSED, "%s", why);
}

/* The pod's status is newer than any Event. */
void
kpod_late_end(struct kpod *kp)
{
	const char	*why = kp->kp_fault[0] != '\0' ? kp->kp_fault :
	    kp->kp_event;

	if (kp->kp_state == KPOD_LEAVING)
		kpod_fail_end(kp, POD_CODE_DELETE_LATE,
		    "pod %s is still there after %d s", kp->kp_name,
		    LEAVE_MS / 1000);
	else
		kpod_fail_end(kp, why[0] != '\0' ? POD_CODE_FAILED :
		    POD_CODE_READY_LATE, "pod %s is not ready after %llu s: "
		    "%s", kp->kp_name,
		    (unsigned long long)kp->kp_terms.kt_ready_ms / 1000,
		    why[0] != '\0' ? why : kp->kp_said);
}

static void
kpod_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct kpod	*kp = arg;

	(void)fd, (void)what;
	if (kp->kp_state == KPOD_READY)
		tell_ready_end(kp);
	else if (kp->kp_state == KPOD_CLAIM)
		kpod_look(kp);
	else if (kp->kp_state == KPOD_WAIT)
		kpod_events_ask(kp);
	else if (kp->kp_state == KPOD_LEAVING)
		kpod_late_end(kp);
}

/* ---- who uses it ---- */

struct kpod *
kpod_find(const struct cluster *cl, const char *namespace, const char *name)
{
	struct kpod	*kp;

	LIST_FOREACH(kp, &kpods, kp_entry)
		if (strcmp(kp->kp_name, name) == 0 &&
		    strcmp(kp->kp_namespace, namespace) == 0 &&
		    strcmp(cluster_name(kp->kp_cluster), cluster_name(cl)) ==
		    0)
			return kp;
	return NULL;
}

static void
terms_take(struct kpod *kp, const struct kpod_terms *kt)
{
	gate_unref(kp->kp_terms.kt_gate);
	kp->kp_terms = *kt;
	if (kt->kt_gate != NULL)
		gate_ref(kt->kt_gate);
}

static struct kpod *
kpod_new(struct cluster *cl, cJSON *want, const struct kpod_terms *kt)
{
	struct kpod	*kp;

	if ((kp = calloc(1, sizeof(*kp))) == NULL || (kp->kp_namespace =
	    strdup(kj_string(want, "metadata/namespace"))) == NULL)
		fatal("%s", __func__);
	kp->kp_cluster = cluster_ref(cl);
	strlcpy(kp->kp_name, kj_string(want, "metadata/name"),
	    sizeof(kp->kp_name));
	kp->kp_want = want;
	terms_take(kp, kt);
	TAILQ_INIT(&kp->kp_users);
	TAILQ_INIT(&kp->kp_leavers);
	event_assign(&kp->kp_timer, child_base, -1, 0, kpod_on_timer, kp);
	LIST_INSERT_HEAD(&kpods, kp, kp_entry);
	kp->kp_watcher = watch_begin(cl, kp->kp_namespace, kp->kp_name,
	    kpod_heard, kp);
	kp->kp_keeper = keeper_join(cl, kp->kp_namespace);
	kpod_look(kp);
	return kp;
}

/* Whoever shares a pod means the same one, deadline and dates apart. */
static int
same_wish(const struct kpod *kp, const cJSON *want, char *why, size_t len)
{
	return adopt_judge(kp->kp_want, want, why, len) == ADOPT_OURS;
}

struct kpod *
kpod_join(struct kpod_user *ku, struct cluster *cl, cJSON *want,
    const struct kpod_terms *kt, char *why, size_t len)
{
	struct kpod	*kp;

	kp = kpod_find(cl, kj_string(want, "metadata/namespace"),
	    kj_string(want, "metadata/name"));
	if (kp == NULL)
		kp = kpod_new(cl, want, kt);
	else if (TAILQ_EMPTY(&kp->kp_users)) {
		cJSON_Delete(kp->kp_want);
		kp->kp_want = want;
		terms_take(kp, kt);
	} else {
		if (!same_wish(kp, want, why, len)) {
			cJSON_Delete(want);
			return NULL;
		}
		cJSON_Delete(want);
	}
	ku->ku_kpod = kp;
	ku->ku_told = 0;
	TAILQ_INSERT_TAIL(&kp->kp_users, ku, ku_entry);
	if (kp->kp_state == KPOD_READY)
		kpod_timer(kp, 0);
	return kp;
}

/* What a call under way will find is deleted when it answers. */
int
kpod_leave(struct kpod_user *ku, int delete)
{
	struct kpod	*kp = ku->ku_kpod;

	TAILQ_REMOVE(&kp->kp_users, ku, ku_entry);
	ku->ku_kpod = NULL;
	if (!TAILQ_EMPTY(&kp->kp_users))
		return 0;
	if (!delete) {
		if (TAILQ_EMPTY(&kp->kp_leavers))
			kpod_free(kp);
		return 0;
	}
	TAILQ_INSERT_TAIL(&kp->kp_leavers, ku, ku_entry);
	ku->ku_kpod = kp;
	kp->kp_was_ready = 0;
	kpod_beat_end(kp);
	if (kp->kp_state == KPOD_WAIT || kp->kp_state == KPOD_READY)
		kpod_delete(kp);
	else if (kp->kp_state == KPOD_CLAIM || kp->kp_state == KPOD_DRESS) {
		api_cancel(kp->kp_call);
		kp->kp_call = NULL;
		kpod_delete(kp);
	}
	return 1;
}
