/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: what a cluster's parts say of a pod that does not start.  A
 * volume that cannot be mounted is told in Events alone, and not in the pod's
 * status.  They are asked for while a pod waits, ever more rarely, and once
 * before it is given up.
 */

#include <stdio.h>
#include <string.h>

#include "child.h"
#include "clock.h"
#include "kpod.h"

#define FIRST_MS	10000
#define CALL_MS		5000

static int64_t
event_time(const cJSON *event)
{
	const char	*when = kj_string(event, "lastTimestamp");

	if (when[0] == '\0')
		when = kj_string(event, "eventTime");
	if (when[0] == '\0')
		when = kj_string(event, "metadata/creationTimestamp");
	return kj_time(when);
}

static int
is_warning(const cJSON *event)
{
	return strcmp(kj_string(event, "type"), "Warning") == 0;
}

/* The last that was said; of one second, rather a warning. */
static const cJSON *
event_last(const cJSON *list, const char *uid)
{
	const cJSON	*event, *last = NULL;
	int64_t		 t, newest = 0;

	cJSON_ArrayForEach(event, list) {
		if (strcmp(kj_string(event, "involvedObject/uid"), uid) != 0)
			continue;
		t = event_time(event);
		if (last == NULL || t > newest || (t == newest &&
		    (is_warning(event) || !is_warning(last)))) {
			last = event;
			newest = t;
		}
	}
	return last;
}

static void
kpod_take_event(struct kpod *kp, const cJSON *event)
{
	char	 reason[64], message[STATUS_LEN - 80], text[STATUS_LEN];

	kj_tame(kj_string(event, "reason"), SIZE_MAX, reason, sizeof(reason));
	kj_tame(kj_string(event, "message"), SIZE_MAX, message,
	    sizeof(message));
	snprintf(text, sizeof(text), "%s: %s", reason, message);
	kp->kp_event[0] = '\0';
	if (is_warning(event))
		strlcpy(kp->kp_event, text, sizeof(kp->kp_event));
	kpod_progress(kp, "%s", text);
}

/* Until Events are worth a look, or the time is over. */
static void
kpod_events_arm(struct kpod *kp)
{
	uint64_t	 now = clock_ms(), left;

	left = kp->kp_wait_until_ms > now ? kp->kp_wait_until_ms - now : 0;
	kpod_timer(kp, left < kp->kp_events_ms ? left : kp->kp_events_ms);
	kp->kp_events_ms *= 2;
}

/* Without the right to read Events there is only the pod's status. */
static void
kpod_events_heard(void *arg, const struct api_answer *aa)
{
	struct kpod	*kp = arg;
	const cJSON	*event = NULL;

	kp->kp_events_call = NULL;
	if (kp->kp_state != KPOD_WAIT)
		return;
	if (aa->aa_result == API_OK)
		event = event_last(kj_at(aa->aa_json, "items"), kp->kp_uid);
	if (event != NULL)
		kpod_take_event(kp, event);
	if (clock_ms() >= kp->kp_wait_until_ms)
		kpod_late_end(kp);
	else
		kpod_events_arm(kp);
}

void
kpod_events_ask(struct kpod *kp)
{
	char			 path[API_PATH_LEN];
	struct api_request	 ar = {
		.ar_method = "GET",
		.ar_path = path,
		.ar_timeout_ms = CALL_MS,
		.ar_verb = "list",
		.ar_resource = "events",
	};

	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events?"
	    "fieldSelector=involvedObject.name%%3D%s&limit=%d",
	    kp->kp_namespace, kp->kp_name, API_PAGE);
	api_cancel(kp->kp_events_call);
	kp->kp_events_call = api_begin(kp->kp_cluster, &ar, kpod_events_heard,
	    kp);
}

/* The time to wait begins. */
void
kpod_events_begin(struct kpod *kp)
{
	kp->kp_wait_until_ms = clock_ms() + kp->kp_terms.kt_ready_ms;
	kp->kp_events_ms = FIRST_MS;
	kp->kp_event[0] = '\0';
	kpod_events_arm(kp);
}
