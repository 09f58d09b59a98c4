/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: the state of a pod from its status, which others write.
 * Image that cannot be pulled, no node, out of memory, evicted, deadline: the
 * words of whoever knows are the reason of the error that a user gets, where
 * a mere timeout would say nothing.
 */

#include <stdio.h>
#include <string.h>

#include "manifest.h"
#include "pod_status.h"

/* Reasons of a waiting container that time does not mend. */
static const char *const	 hopeless[] = {
	"CrashLoopBackOff", "CreateContainerConfigError",
	"CreateContainerError", "ErrImageNeverPull", "ImageInspectError",
	"ImagePullBackOff", "InvalidImageName", "RunContainerError", NULL
};

static int
is_hopeless(const char *reason)
{
	size_t	 i;

	for (i = 0; hopeless[i] != NULL; i++)
		if (strcmp(hopeless[i], reason) == 0)
			return 1;
	return 0;
}

/* "Reason: message", as far as there are any. */
static void
tell(const cJSON *from, char *out, size_t size)
{
	char	 reason[64], message[STATUS_LEN];

	kj_tame(kj_string(from, "reason"), SIZE_MAX, reason, sizeof(reason));
	kj_tame(kj_string(from, "message"), SIZE_MAX, message,
	    sizeof(message));
	snprintf(out, size, "%s%s%.*s", reason,
	    reason[0] != '\0' && message[0] != '\0' ? ": " : "",
	    (int)(size / 2 + 100), message);
}

/* How a container has ended, the last time. */
static void
tell_end(const cJSON *end, char *out, size_t size)
{
	char	 said[STATUS_LEN / 2 - 80];

	tell(end, said, sizeof(said));
	if (kj_number(end, "signal") != 0)
		snprintf(out, size, "%s, signal %u", said,
		    (unsigned int)kj_number(end, "signal"));
	else
		snprintf(out, size, "%s, exit code %u", said,
		    (unsigned int)kj_number(end, "exitCode"));
}

/* ---- containers ---- */

static void
container_waits(const cJSON *co, const cJSON *waiting, struct pod_status *ps)
{
	const cJSON	*last = kj_at(co, "lastState/terminated");
	const char	*reason = kj_string(waiting, "reason");
	char		 said[STATUS_LEN / 2 - 48], name[64];
	char		 end[STATUS_LEN / 2 - 48];

	kj_tame(kj_string(co, "name"), SIZE_MAX, name, sizeof(name));
	if (strcmp(reason, "ContainerCreating") == 0 ||
	    strcmp(reason, "PodInitializing") == 0 || reason[0] == '\0') {
		snprintf(ps->ps_text, sizeof(ps->ps_text),
		    "container %s is made, its image may be pulled", name);
		return;
	}
	tell(waiting, said, sizeof(said));
	end[0] = '\0';
	if (last != NULL)
		tell_end(last, end, sizeof(end));
	snprintf(ps->ps_fault, sizeof(ps->ps_fault),
	    "container %s: %s%s%s%s", name, said, end[0] != '\0' ? " (" : "",
	    end, end[0] != '\0' ? ")" : "");
	strlcpy(ps->ps_text, ps->ps_fault, sizeof(ps->ps_text));
	if (is_hopeless(reason))
		ps->ps_state = POD_HOPELESS;
}

/* 1 if there is something to wait for. */
static int
container_read(const cJSON *co, int init, struct pod_status *ps)
{
	const cJSON	*state = kj_at(co, "state"), *end;
	char		 said[STATUS_LEN / 2], name[64];

	end = kj_at(state, "terminated");
	if (init && end != NULL && kj_number(end, "exitCode") == 0)
		return 0;
	if (!init && kj_at(state, "running") != NULL)
		return 0;
	kj_tame(kj_string(co, "name"), SIZE_MAX, name, sizeof(name));
	if (end != NULL) {
		tell_end(end, said, sizeof(said));
		snprintf(ps->ps_fault, sizeof(ps->ps_fault),
		    "container %s: %s", name, said);
		strlcpy(ps->ps_text, ps->ps_fault, sizeof(ps->ps_text));
	} else if (kj_at(state, "running") != NULL)
		snprintf(ps->ps_text, sizeof(ps->ps_text),
		    "container %s runs", name);
	else
		container_waits(co, kj_at(state, "waiting"), ps);
	return 1;
}

/* A sidecar among them stays: it is done with when it has started. */
static int
init_is_done(const cJSON *co)
{
	return strcmp(kj_string(co, "name"), GATE) == 0 &&
	    kj_at(co, "state/running") != NULL &&
	    cJSON_IsTrue(kj_at(co, "started"));
}

/* The first that is not done is what the others wait for. */
static const cJSON *
init_read(const cJSON *pod, struct pod_status *ps)
{
	const cJSON	*co;

	cJSON_ArrayForEach(co, kj_at(pod, "status/initContainerStatuses"))
		if (!init_is_done(co) && container_read(co, 1, ps))
			return co;
	return NULL;
}

static void
containers_read(const cJSON *pod, struct pod_status *ps)
{
	const cJSON	*list = kj_at(pod, "status/containerStatuses");
	const cJSON	*workspace = kj_named(list, WORKSPACE);
	const cJSON	*waits = init_read(pod, ps), *gate;

	if (waits == NULL && (gate = kj_named(list, GATE)) != NULL &&
	    container_read(gate, 0, ps))
		waits = gate;
	ps->ps_restarts = kj_number(workspace, "restartCount");
	ps->ps_runs = kj_at(workspace, "state/running") != NULL &&
	    (waits == NULL || strcmp(kj_string(waits, "name"), GATE) == 0);
	if (waits != NULL || workspace == NULL)
		return;
	if (!container_read(workspace, 0, ps)) {
		ps->ps_state = POD_RUNS;
		ps->ps_text[0] = '\0';
	}
}

/* ---- the pod ---- */

/* What the scheduler says, before there is a container. */
static void
schedule_read(const cJSON *pod, struct pod_status *ps)
{
	const cJSON	*v;
	char		 node[64];

	kj_tame(kj_string(pod, "spec/nodeName"), SIZE_MAX, node,
	    sizeof(node));
	if (node[0] != '\0') {
		snprintf(ps->ps_text, sizeof(ps->ps_text), "scheduled on %s",
		    node);
		return;
	}
	strlcpy(ps->ps_text, "waits for a node", sizeof(ps->ps_text));
	cJSON_ArrayForEach(v, kj_at(pod, "status/conditions")) {
		if (strcmp(kj_string(v, "type"), "PodScheduled") != 0 ||
		    strcmp(kj_string(v, "status"), "False") != 0)
			continue;
		tell(v, ps->ps_fault, sizeof(ps->ps_fault));
		strlcpy(ps->ps_text, ps->ps_fault, sizeof(ps->ps_text));
	}
}

static void
end_read(const cJSON *pod, const char *phase, struct pod_status *ps)
{
	char	 said[STATUS_LEN - 64];

	ps->ps_state = POD_HAS_ENDED;
	tell(kj_at(pod, "status"), said, sizeof(said));
	ps->ps_deadline = strcmp(kj_string(pod, "status/reason"),
	    "DeadlineExceeded") == 0;
	snprintf(ps->ps_fault, sizeof(ps->ps_fault), "%s%s%s", phase,
	    said[0] != '\0' ? ": " : "", said);
	strlcpy(ps->ps_text, ps->ps_fault, sizeof(ps->ps_text));
}

void
status_read(const cJSON *pod, struct pod_status *ps)
{
	const char	*phase = kj_string(pod, "status/phase");

	memset(ps, 0, sizeof(*ps));
	ps->ps_state = POD_WAITS;
	if (kj_string(pod, "metadata/deletionTimestamp")[0] != '\0') {
		ps->ps_state = POD_LEAVES;
		strlcpy(ps->ps_text, "is being deleted", sizeof(ps->ps_text));
	} else if (strcmp(phase, "Succeeded") == 0)
		end_read(pod, "Succeeded", ps);
	else if (strcmp(phase, "Failed") == 0)
		end_read(pod, "Failed", ps);
	else if (strcmp(phase, "Pending") == 0 ||
	    strcmp(phase, "Running") == 0 || phase[0] == '\0') {
		schedule_read(pod, ps);
		containers_read(pod, ps);
	} else {
		ps->ps_state = POD_IS_ODD;
		kj_tame(phase, SIZE_MAX, ps->ps_fault, sizeof(ps->ps_fault));
	}
}
