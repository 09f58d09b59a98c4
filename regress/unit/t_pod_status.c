/* SPDX-License-Identifier: ISC */

/*
 * Tests of k8sd: the words for how a pod is, and for what an API server says
 * instead of what it was asked for.
 */

#include "k8sd/api.h"
#include "k8sd/pod_status.h"
#include "test.h"

#define RUNS	"{\"name\":\"workspace\",\"restartCount\":2," \
		"\"state\":{\"running\":{}}}"
#define WAITS(reason, message)						\
	"{\"name\":\"workspace\",\"state\":{\"waiting\":{\"reason\":\""	\
	reason "\",\"message\":\"" message "\"}}}"
#define GATE_IS(more, state)						\
	"{\"name\":\"gate\"," more "\"state\":" state "}"
#define GATE_UP	GATE_IS("\"started\":true,", "{\"running\":{}}")
#define GATE_DOWN	GATE_IS("", "{\"waiting\":{\"reason\":"		\
	"\"CrashLoopBackOff\"}}")
#define POD(phase, init, containers)					\
	"{\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\""	\
	phase "\",\"initContainerStatuses\":[" init			\
	"],\"containerStatuses\":[" containers "]}}"

static const struct {
	const char	*pod;
	enum pod_life	 state;
	const char	*text;
	const char	*fault;
} states[] = {
	{ "{}", POD_WAITS, "waits for a node", "" },
	{ "{\"status\":7}", POD_WAITS, "waits for a node", "" },
	{ POD("Running", "", RUNS), POD_RUNS, "", "" },
	{ POD("Pending", "", ""), POD_WAITS, "scheduled on n1", "" },
	{ POD("Pending", "", WAITS("ContainerCreating", "")), POD_WAITS,
	    "container workspace is made, its image may be pulled", "" },
	{ POD("Pending", "{\"name\":\"install\",\"state\":{\"running\":{}}}",
	    WAITS("PodInitializing", "")), POD_WAITS,
	    "container install runs", "" },
	{ POD("Pending", "{\"name\":\"install\",\"state\":{\"terminated\":"
	    "{\"exitCode\":0}}}", RUNS), POD_RUNS, "", "" },
	{ POD("Pending", "{\"name\":\"install\",\"state\":{\"terminated\":"
	    "{\"exitCode\":1,\"reason\":\"Error\"}}}",
	    WAITS("PodInitializing", "")), POD_WAITS,
	    "container install: Error, exit code 1",
	    "container install: Error, exit code 1" },
	{ POD("Pending", "", WAITS("ErrImagePull", "a\\nb")), POD_WAITS,
	    "container workspace: ErrImagePull: a b",
	    "container workspace: ErrImagePull: a b" },
	{ POD("Pending", "", WAITS("ImagePullBackOff", "x")), POD_HOPELESS,
	    "container workspace: ImagePullBackOff: x",
	    "container workspace: ImagePullBackOff: x" },
	{ POD("Running", "", "{\"name\":\"workspace\",\"state\":{\"waiting\":"
	    "{\"reason\":\"CrashLoopBackOff\"}},\"lastState\":{\"terminated\":"
	    "{\"reason\":\"OOMKilled\",\"exitCode\":137}}}"), POD_HOPELESS,
	    "container workspace: CrashLoopBackOff (OOMKilled, exit code 137)",
	    "container workspace: CrashLoopBackOff (OOMKilled, exit code 137)"
	},
	/* A gate before sidecars, and one that is a sidecar. */
	{ POD("Pending", "", GATE_IS("", "{\"running\":{}}") ","
	    WAITS("PodInitializing", "")), POD_WAITS,
	    "container workspace is made, its image may be pulled", "" },
	{ POD("Running", "", GATE_UP "," RUNS), POD_RUNS, "", "" },
	{ POD("Running", "", GATE_DOWN "," RUNS), POD_HOPELESS,
	    "container gate: CrashLoopBackOff",
	    "container gate: CrashLoopBackOff" },
	{ POD("Pending", GATE_IS("\"started\":false,", "{\"running\":{}}"),
	    WAITS("PodInitializing", "")), POD_WAITS, "container gate runs",
	    "" },
	{ POD("Running", GATE_UP, RUNS), POD_RUNS, "", "" },
	{ POD("Running", GATE_DOWN, RUNS), POD_HOPELESS,
	    "container gate: CrashLoopBackOff",
	    "container gate: CrashLoopBackOff" },
	{ "{\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\","
	    "\"message\":\"low on memory\"}}", POD_HAS_ENDED,
	    "Failed: Evicted: low on memory",
	    "Failed: Evicted: low on memory" },
	{ "{\"status\":{\"phase\":\"Succeeded\"}}", POD_HAS_ENDED,
	    "Succeeded", "Succeeded" },
	{ "{\"status\":{\"phase\":\"Unknown\"}}", POD_IS_ODD, "", "Unknown" },
	{ "{\"metadata\":{\"deletionTimestamp\":\"x\"},\"status\":{\"phase\":"
	    "\"Running\"}}", POD_LEAVES, "is being deleted", "" },
	{ "{\"status\":{\"phase\":\"Pending\",\"conditions\":[{\"type\":"
	    "\"PodScheduled\",\"status\":\"False\",\"reason\":"
	    "\"Unschedulable\",\"message\":\"0/1 nodes\"}]}}", POD_WAITS,
	    "Unschedulable: 0/1 nodes", "Unschedulable: 0/1 nodes" },
};

TEST(states)
{
	struct pod_status	 ps;
	cJSON			*pod;
	size_t			 i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		pod = kj_parse(states[i].pod, strlen(states[i].pod));
		CHECK_FOR(states[i].pod, pod != NULL);
		status_read(pod, &ps);
		CHECK_FOR(states[i].pod, ps.ps_state == states[i].state);
		CHECK_STR(ps.ps_text, states[i].text);
		CHECK_STR(ps.ps_fault, states[i].fault);
		cJSON_Delete(pod);
	}
}

/* However much a kubelet says. */
TEST(long_words)
{
	struct pod_status	 ps;
	cJSON			*pod = cJSON_CreateObject(), *status;
	char			*words = malloc(100001);

	memset(words, 'w', 100000);
	words[100000] = '\0';
	status = cJSON_AddObjectToObject(pod, "status");
	cJSON_AddStringToObject(status, "phase", "Failed");
	cJSON_AddStringToObject(status, "reason", words);
	cJSON_AddStringToObject(status, "message", words);
	status_read(pod, &ps);
	CHECK_INT(ps.ps_state, POD_HAS_ENDED);
	CHECK(strlen(ps.ps_fault) > 100);
	cJSON_Delete(pod);
	free(words);
}

static const struct {
	long		 status;
	const char	*body;
	const char	*why;
} refusals[] = {
	{ 403, "{\"reason\":\"Forbidden\",\"message\":\"User x cannot\"}",
	    "the account may not create pods: User x cannot" },
	{ 403, "nginx\r\nsays no", "the account may not create pods: "
	    "nginx says no" },
	{ 401, "{\"reason\":\"Unauthorized\",\"message\":\"Unauthorized\"}",
	    "the credential is not accepted: Unauthorized" },
	{ 403, "{\"message\":\"pods \\\"x\\\" is forbidden: violates "
	    "PodSecurity \\\"baseline:latest\\\": hostPorts\"}",
	    "the namespace's Pod Security level forbids it (a gate needs "
	    "privileged): pods \"x\" is forbidden: violates PodSecurity "
	    "\"baseline:latest\": hostPorts" },
	{ 422, "{\"reason\":\"Invalid\",\"message\":\"spec: required\"}",
	    "Invalid: spec: required" },
	{ 502, "<html>", "status 502: <html>" },
	{ 500, "", "status 500" },
	{ 500, "{\"reason\":7}", "status 500" },
};

TEST(refusals_in_words)
{
	struct api_request	 ar = {
		.ar_verb = "create",
		.ar_resource = "pods",
	};
	struct https_answer	 ha = { 0 };
	char			 why[API_WHY_LEN];
	cJSON			*json;
	size_t			 i;

	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		ha.ha_status = refusals[i].status;
		ha.ha_body = refusals[i].body;
		ha.ha_body_len = strlen(refusals[i].body);
		json = kj_parse(ha.ha_body, ha.ha_body_len);
		api_explain(&ar, &ha, json, why, sizeof(why));
		CHECK_STR(why, refusals[i].why);
		cJSON_Delete(json);
	}
}

/* Clients can come in while the gate is down, but not while fence runs. */
TEST(workspace_runs_without_its_gate)
{
	static const struct {
		const char	*pod;
		int		 runs;
	} pods[] = {
		{ POD("Running", "", RUNS), 1 },
		{ POD("Running", "", GATE_DOWN "," RUNS), 1 },
		{ POD("Running", GATE_DOWN, RUNS), 1 },
		{ POD("Running", "{\"name\":\"fence\",\"state\":{\"running\":"
		    "{}}}", GATE_UP "," RUNS), 0 },
		{ POD("Running", "", GATE_UP "," WAITS("Error", "")), 0 },
	};
	struct pod_status	 ps;
	cJSON			*json;
	size_t			 i;

	for (i = 0; i < sizeof(pods) / sizeof(pods[0]); i++) {
		json = kj_parse(pods[i].pod, strlen(pods[i].pod));
		status_read(json, &ps);
		CHECK_FOR(pods[i].pod, ps.ps_runs == pods[i].runs);
		if (ps.ps_runs)
			CHECK_INT(ps.ps_restarts, 2);
		cJSON_Delete(json);
	}
}

TEST_MAIN("pod_status")
