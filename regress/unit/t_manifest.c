/* SPDX-License-Identifier: ISC */

/*
 * Tests of k8sd's names and manifests, of what may be merged into them and of
 * which pods are adopted.  Whole manifests are in regress/unit/manifest; with
 * GOLDEN=1 in the environment they are written anew.
 */

#include "k8sd/manifest.h"
#include "test.h"

#define GOLDEN	"regress/unit/manifest/"

static char	 empty[] = "";

/* ---- names ---- */

TEST(names_are_labels)
{
	static const char *const	 ids[] = {
		"a.b", "a-b", "A.B", "team/x:1", "---", "-x-", "1", "a_b",
		"EgreSSd", "\xc3\xa4", "a b", "x................x", NULL
	};
	char	 names[16][POD_NAME_LEN + 1], longest[201];
	size_t	 i, j, n;

	for (n = 0; ids[n] != NULL; n++)
		names_pod(ids[n], names[n]);
	memset(longest, 'Z', 200);
	longest[200] = '\0';
	names_pod(longest, names[n++]);
	longest[199] = 'Y';
	names_pod(longest, names[n++]);
	for (i = 0; i < n; i++) {
		CHECK(strlen(names[i]) <= POD_NAME_LEN);
		CHECK_INT(strspn(names[i], "abcdefghijklmnopqrstuvwxyz"
		    "0123456789-"), strlen(names[i]));
		CHECK(names[i][0] != '-');
		CHECK(names[i][strlen(names[i]) - 1] != '-');
		for (j = 0; j < i; j++)
			CHECK_FOR(names[i], strcmp(names[i], names[j]) != 0);
	}
}

/* Another release finds what this one has made. */
TEST(names_stay)
{
	char	 name[POD_NAME_LEN + 1];

	names_pod("Team/x:1", name);
	CHECK_STR(name, "egressd-team-x-1-b9474b68bd");
	names_pod("...", name);
	CHECK_STR(name, "egressd-ab5df625bc");
}

TEST(selector_names_the_installation)
{
	pods_installation("My Lab_");
	CHECK_STR(names_installation(), "my-lab");
	CHECK_STR(names_selector(), "app.kubernetes.io%2Fmanaged-by%3Degressd"
	    "%2Cegressd.io%2Fowner%3Dmy-lab");
	pods_installation("egressd");
}

TEST(queries_are_escaped)
{
	char	 out[32], few[6];

	CHECK_INT(names_escape("a=b,c d&", out, sizeof(out)), 1);
	CHECK_STR(out, "a%3Db%2Cc%20d%26");
	CHECK_INT(names_escape("abcd", few, sizeof(few)), 0);
}

TEST(times)
{
	char	 text[KJ_TIME_LEN + 1];

	CHECK_INT(kj_time("2026-11-18T10:00:00Z"), 1795341600 - 345600);
	CHECK_INT(kj_time("2026-11-18T10:00:00.123456Z"),
	    kj_time("2026-11-18T10:00:00Z"));
	CHECK_INT(kj_time("yesterday"), 0);
	CHECK_INT(kj_time("2026-11-18T10:00:00+01:00"), 0);
	kj_time_print(kj_time("2026-11-18T10:00:00Z"), text);
	CHECK_STR(text, "2026-11-18T10:00:00Z");
}

TEST(words_are_tamed)
{
	char	 out[8];

	kj_tame("a\n\tb\x1b", 5, out, sizeof(out));
	CHECK_STR(out, "a b");
	kj_tame("abcdef\xc3\xa4", 8, out, sizeof(out));
	CHECK_STR(out, "abcdef");
	kj_tame("abcde\xc3\xa4", 7, out, sizeof(out));
	CHECK_STR(out, "abcde\xc3\xa4");
}

/* ---- manifests ---- */

static void
conf_init(struct pod_conf *pc)
{
	static char	 name[] = "pods", image[] = "debian:bookworm-slim";
	static char	 cwd[] = "/workspace", policy[] = "coding";

	memset(pc, 0, sizeof(*pc));
	pc->pc_name = name;
	pc->pc_image = image;
	pc->pc_cwd = cwd;
	pc->pc_policy = policy;
	pc->pc_cluster = pc->pc_namespace = pc->pc_box_image = pc->pc_id =
	    pc->pc_workspace_size = pc->pc_claim = pc->pc_git =
	    pc->pc_git_ref = pc->pc_service_account = pc->pc_pull_policy =
	    pc->pc_runtime_class = empty;
	TAILQ_INIT(&pc->pc_env);
	TAILQ_INIT(&pc->pc_labels);
	TAILQ_INIT(&pc->pc_annotations);
	TAILQ_INIT(&pc->pc_requests);
	TAILQ_INIT(&pc->pc_limits);
	TAILQ_INIT(&pc->pc_node_selector);
	TAILQ_INIT(&pc->pc_pull_secrets);
	TAILQ_INIT(&pc->pc_tolerations);
	TAILQ_INIT(&pc->pc_gate_requests);
	TAILQ_INIT(&pc->pc_gate_limits);
	pc->pc_ungated = true;
	pc->pc_run_as_user = pc->pc_run_as_group = pc->pc_fs_group = -1;
	pc->pc_deadline_ms = 8 * 3600 * 1000;
}

static void
add_pair(struct pairs *pairs, const char *key, const char *value)
{
	struct pair	*pa = calloc(1, sizeof(*pa));

	pa->pa_key = strdup(key);
	pa->pa_value = strdup(value);
	TAILQ_INSERT_TAIL(pairs, pa, pa_entry);
}

static void
pairs_free(struct pairs *pairs)
{
	struct pair	*pa;

	while ((pa = TAILQ_FIRST(pairs)) != NULL) {
		TAILQ_REMOVE(pairs, pa, pa_entry);
		free(pa->pa_key);
		free(pa->pa_value);
		free(pa);
	}
}

static void
conf_free(struct pod_conf *pc)
{
	pairs_free(&pc->pc_env);
	pairs_free(&pc->pc_labels);
	pairs_free(&pc->pc_annotations);
	pairs_free(&pc->pc_requests);
	pairs_free(&pc->pc_limits);
	pairs_free(&pc->pc_node_selector);
	pairs_free(&pc->pc_pull_secrets);
	pairs_free(&pc->pc_gate_requests);
	pairs_free(&pc->pc_gate_limits);
}

static void
conf_full(struct pod_conf *pc)
{
	static char		 size[] = "2Gi", box[] = "example.com/box:9";
	static char		 account[] = "robot", pull[] = "IfNotPresent";
	static char		 class[] = "gvisor";
	static char		 key[] = "dedicated", value[] = "agents";
	static char		 effect[] = "NoSchedule";
	static struct toleration one, all;

	pc->pc_workspace_size = size;
	pc->pc_box_image = box;
	pc->pc_service_account = account;
	pc->pc_pull_policy = pull;
	pc->pc_runtime_class = class;
	pc->pc_account_token = true;
	pc->pc_read_only_root = true;
	pc->pc_run_as_user = 1000;
	pc->pc_run_as_group = 1001;
	pc->pc_fs_group = 1002;
	add_pair(&pc->pc_env, "LANG", "C.UTF-8");
	add_pair(&pc->pc_env, "EMPTY", "");
	add_pair(&pc->pc_labels, "team", "red");
	add_pair(&pc->pc_labels, MARK_MANAGED, "me");
	add_pair(&pc->pc_annotations, "note", "a \"quoted\" one");
	add_pair(&pc->pc_requests, "cpu", "500m");
	add_pair(&pc->pc_limits, "memory", "1024Mi");
	add_pair(&pc->pc_node_selector, "disk", "ssd");
	add_pair(&pc->pc_pull_secrets, "registry", "");
	one.to_key = key;
	one.to_value = value;
	one.to_effect = effect;
	one.to_seconds = -1;
	all.to_key = all.to_effect = empty;
	all.to_seconds = 60;
	TAILQ_INSERT_TAIL(&pc->pc_tolerations, &one, to_entry);
	TAILQ_INSERT_TAIL(&pc->pc_tolerations, &all, to_entry);
}

static int	 native;	/* does the cluster know sidecars? */

static cJSON *
make(const struct pod_conf *pc, char *why, size_t len)
{
	static const char *const	 variables[] = {
		"LANG=de_DE.UTF-8", "TASK=a=b", NULL
	};
	struct manifest			 mf = {
		.mf_conf = pc,
		.mf_id = "team/x:1",
		.mf_namespace = "agents",
		.mf_cwd = pc->pc_cwd,
		.mf_owner = 1000,
		.mf_deadline_ms = pc->pc_deadline_ms,
		.mf_variables = TAILQ_EMPTY(&pc->pc_env) ? NULL : variables,
		.mf_sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c"
		    "d15d6c15b0f00a08",
		.mf_native = native,
	};

	return manifest_new(&mf, why, len);
}

static char *
file_read(const char *name)
{
	FILE	*f = fopen(name, "r");
	char	*text = calloc(1, 65536);

	if (f == NULL)
		test_end(TEST_FAILED, "%s is not there", name);
	CHECK(fread(text, 1, 65535, f) > 0);
	fclose(f);
	return text;
}

static void
check_golden(const cJSON *pod, const char *name)
{
	char	 path[128], *text = cJSON_Print(pod), *want;
	cJSON	*golden;
	FILE	*f;

	snprintf(path, sizeof(path), GOLDEN "%s.json", name);
	if (getenv("GOLDEN") != NULL) {
		CHECK((f = fopen(path, "w")) != NULL);
		fprintf(f, "%s\n", text);
		fclose(f);
	}
	want = file_read(path);
	CHECK((golden = kj_parse(want, strlen(want))) != NULL);
	if (!cJSON_Compare(golden, pod, 1))
		test_end(TEST_FAILED, "not as in %s: %s", path, text);
	cJSON_Delete(golden);
	free(want);
	cJSON_free(text);
}

TEST(plain_manifest)
{
	struct pod_conf	 pc;
	char		 why[256];
	cJSON		*pod;

	conf_init(&pc);
	CHECK((pod = make(&pc, why, sizeof(why))) != NULL);
	manifest_date(pod, kj_time("2026-11-18T10:00:00Z"));
	check_golden(pod, "plain");
	cJSON_Delete(pod);
}

TEST(full_manifest)
{
	struct pod_conf	 pc;
	char		 why[256];
	char		 merge[] = "{\"metadata\":{\"labels\":{\"x\":\"y\"}},"
	    "\"spec\":{\"priorityClassName\":\"low\",\"affinity\":"
	    "{\"nodeAffinity\":{\"a\":null}},\"nodeSelector\":"
	    "{\"disk\":null,\"zone\":\"b\"}}}";
	cJSON		*pod;

	conf_init(&pc);
	conf_full(&pc);
	pc.pc_merge = merge;
	CHECK((pod = make(&pc, why, sizeof(why))) != NULL);
	check_golden(pod, "full");
	cJSON_Delete(pod);
	conf_free(&pc);
}

TEST(claim_manifest)
{
	static char	 claim[] = "project";
	struct pod_conf	 pc;
	char		 why[256];
	cJSON		*pod;

	conf_init(&pc);
	pc.pc_claim = claim;
	CHECK((pod = make(&pc, why, sizeof(why))) != NULL);
	check_golden(pod, "claim");
	cJSON_Delete(pod);
}

/* ---- with a gate ---- */

static cJSON *
make_gated(struct pod_conf *pc, int sidecars)
{
	char	 why[256];
	cJSON	*pod;

	pc->pc_ungated = false;
	native = sidecars;
	CHECK((pod = make(pc, why, sizeof(why))) != NULL);
	native = 0;
	return pod;
}

TEST(gated_manifest_of_1_20)
{
	struct pod_conf	 pc;
	cJSON		*pod;

	conf_init(&pc);
	pod = make_gated(&pc, 0);
	check_golden(pod, "gated-1.20");
	cJSON_Delete(pod);
}

/* As it is from 1.29 on, with all that a block can say of it. */
TEST(gated_manifest_of_1_29)
{
	struct pod_conf	 pc;
	cJSON		*pod;

	conf_init(&pc);
	conf_full(&pc);
	pc.pc_overlay = true;
	add_pair(&pc.pc_gate_requests, "cpu", "10m");
	add_pair(&pc.pc_gate_limits, "memory", "128Mi");
	add_pair(&pc.pc_env, "SSL_CERT_FILE", "/mine");
	add_pair(&pc.pc_env, "JAVA_TOOL_OPTIONS", "-Xmx1g");
	pod = make_gated(&pc, 1);
	check_golden(pod, "gated-1.29");
	cJSON_Delete(pod);
	conf_free(&pc);
}

/* Merges that would take from the workspace what the gate needs. */
TEST(gate_is_kept_in_a_merge)
{
	static char	 dns[] = "{\"spec\":{\"dnsConfig\":{}}}";
	struct pod_conf	 pc;
	char		 why[256];
	cJSON		*pod;

	conf_init(&pc);
	pc.pc_merge = dns;
	CHECK((pod = make(&pc, why, sizeof(why))) != NULL);
	cJSON_Delete(pod);
	CHECK_INT(manifest_merge_check(dns, 0, why, sizeof(why)), 0);
	pc.pc_ungated = false;
	CHECK(make(&pc, why, sizeof(why)) == NULL);
	CHECK_STR(why, "manifest merge: spec.dnsConfig is the gate's");
	CHECK_INT(manifest_merge_check(dns, 1, why, sizeof(why)), -1);
}

/* A pod with our marks whose gate is another, or has other words. */
TEST(gated_pods_are_compared)
{
	static const char *const	 lists[] = { "containers",
	    "initContainers" };
	struct pod_conf	 pc;
	char		 why[256], want[64];
	cJSON		*ours, *live, *co;
	int		 i;

	conf_init(&pc);
	for (i = 0; i < 2; i++) {
		ours = make_gated(&pc, i);
		live = kj_copy(ours);
		CHECK_INT(adopt_judge(live, ours, why, sizeof(why)),
		    ADOPT_OURS);
		co = cJSON_GetArrayItem(cJSON_GetObjectItem(
		    cJSON_GetObjectItem(live, "spec"), lists[i]), i);
		CHECK_STR(kj_string(co, "name"), "gate");
		kj_put(co, "image", "evil");
		CHECK_INT(adopt_judge(live, ours, why, sizeof(why)),
		    ADOPT_DIFFERS);
		snprintf(want, sizeof(want), "spec.%s[%d].image is \"evil\"",
		    lists[i], i);
		CHECK(strncmp(why, want, strlen(want)) == 0);
		cJSON_Delete(live);
		live = kj_copy(ours);
		kj_put(cJSON_GetObjectItem(cJSON_GetObjectItem(live,
		    "metadata"), "annotations"), NOTE_CONF, "0");
		CHECK_INT(adopt_judge(live, ours, why, sizeof(why)),
		    ADOPT_DIFFERS);
		CHECK(strstr(why, "egressd.io/configuration is \"0\"") !=
		    NULL);
		cJSON_Delete(live);
		cJSON_Delete(ours);
	}
}

/* ---- merging ---- */

static const struct {
	const char	*text;
	const char	*why;
} bad_merges[] = {
	{ "[]", "it is no JSON object" },
	{ "{\"spec\":{}} x", "it is no JSON object" },
	{ "{\"kind\":\"Job\"}", "kind is not permitted" },
	{ "{\"spec\":null}", "spec is no object" },
	{ "{\"metadata\":{\"name\":\"x\"}}",
	    "metadata.name is not permitted" },
	{ "{\"metadata\":{\"labels\":{\"egressd.io/session\":\"x\"}}}",
	    "metadata.labels.egressd.io/session is egressd's own" },
	{ "{\"metadata\":{\"labels\":"
	    "{\"app.kubernetes.io/managed-by\":null}}}",
	    "metadata.labels.app.kubernetes.io/managed-by is egressd's own" },
	{ "{\"metadata\":{\"annotations\":null}}",
	    "metadata.annotations. is no object" },
	{ "{\"metadata\":{\"annotations\":{\"a\":1}}}",
	    "metadata.annotations.a is no text" },
	{ "{\"spec\":{\"hostNetwork\":true}}",
	    "spec.hostNetwork is not permitted" },
	{ "{\"spec\":{\"containers\":[]}}",
	    "spec.containers is not permitted" },
	{ "{\"spec\":{\"volumes\":[{\"hostPath\":{}}]}}",
	    "spec.volumes is not permitted" },
	{ "{\"spec\":{\"securityContext\":{}}}",
	    "spec.securityContext is not permitted" },
	{ "{\"spec\":{\"ephemeralContainers\":[]}}",
	    "spec.ephemeralContainers is not permitted" },
};

TEST(bad_merges_are_refused)
{
	struct pod_conf	 pc;
	char		 why[256], want[256], *merge;
	size_t		 i;

	conf_init(&pc);
	for (i = 0; i < sizeof(bad_merges) / sizeof(bad_merges[0]); i++) {
		merge = strdup(bad_merges[i].text);
		pc.pc_merge = merge;
		why[0] = '\0';
		CHECK_FOR(merge, make(&pc, why, sizeof(why)) == NULL);
		snprintf(want, sizeof(want), "manifest merge: %s",
		    bad_merges[i].why);
		CHECK_STR(why, want);
		CHECK_INT(manifest_merge_check(merge, 0, why, sizeof(why)),
		    -1);
		CHECK_STR(why, want);
		free(merge);
	}
}

/* ---- adoption ---- */

/* As an API server gives the plain one back. */
static cJSON *
live_pod(const char *text)
{
	cJSON	*pod = kj_parse(text, strlen(text));

	CHECK(pod != NULL);
	return pod;
}

static cJSON *
live_plain(void)
{
	char	*text = file_read(GOLDEN "live.json");
	cJSON	*pod = live_pod(text);

	free(text);
	return pod;
}

static enum adopt
judge(const cJSON *live, char *why, size_t len)
{
	struct pod_conf	 pc;
	enum adopt	 ad;
	cJSON		*want;

	conf_init(&pc);
	CHECK((want = make(&pc, why, len)) != NULL);
	why[0] = '\0';
	ad = adopt_judge(live, want, why, len);
	cJSON_Delete(want);
	return ad;
}

TEST(adopts_its_own)
{
	char	 why[256];
	cJSON	*live = live_plain();
	enum adopt ad = judge(live, why, sizeof(why));

	CHECK_STR(why, "");
	CHECK_INT(ad, ADOPT_OURS);
	cJSON_Delete(live);
}

/* Quantities that a server writes in another way, defaults it adds. */
TEST(adopts_what_the_server_wrote)
{
	struct pod_conf	 pc;
	char		 why[256];
	cJSON		*want, *live, *co;

	conf_init(&pc);
	conf_full(&pc);
	CHECK((want = make(&pc, why, sizeof(why))) != NULL);
	live = kj_copy(want);
	co = cJSON_GetArrayItem(kj_at(live, "spec/containers"), 0);
	kj_put(cJSON_GetObjectItem(cJSON_GetObjectItem(co, "resources"),
	    "requests"), "cpu", "0.5");
	kj_put(cJSON_GetObjectItem(cJSON_GetObjectItem(co, "resources"),
	    "limits"), "memory", "1Gi");
	kj_put(co, "terminationMessagePath", "/dev/termination-log");
	why[0] = '\0';
	CHECK_INT(adopt_judge(live, want, why, sizeof(why)), ADOPT_OURS);
	kj_put(cJSON_GetObjectItem(cJSON_GetObjectItem(co, "resources"),
	    "limits"), "memory", "2Gi");
	CHECK_INT(adopt_judge(live, want, why, sizeof(why)), ADOPT_DIFFERS);
	CHECK_STR(why, "spec.containers[0].resources.limits.memory is "
	    "\"2Gi\", not \"1024Mi\"");
	cJSON_Delete(live);
	cJSON_Delete(want);
	conf_free(&pc);
}

/* A merge patch that makes of the pod what another would have planted. */
static const struct {
	const char	*path;
	const char	*member;
	const char	*value;
	enum adopt	 judged;
	const char	*why;
} planted[] = {
	{ "metadata/labels", MARK_MANAGED, "\"me\"", ADOPT_FOREIGN,
	    "label app.kubernetes.io/managed-by" },
	{ "metadata/labels", MARK_OWNER, "\"other\"", ADOPT_FOREIGN,
	    "label egressd.io/owner" },
	{ "metadata/annotations", NOTE_ID, "\"team/x:2\"", ADOPT_FOREIGN,
	    "annotation egressd.io/session-id" },
	{ "metadata/annotations", NOTE_UID, "\"0\"", ADOPT_DIFFERS,
	    "annotation egressd.io/owner-uid is \"0\", not \"1000\"" },
	{ "metadata/annotations", NOTE_POLICY, "\"open\"", ADOPT_DIFFERS,
	    "annotation egressd.io/policy is \"open\", not \"coding\"" },
	{ "spec", "hostNetwork", "true", ADOPT_DIFFERS,
	    "spec.hostNetwork is not ours" },
	{ "spec", "ephemeralContainers", "[{\"name\":\"x\"}]", ADOPT_DIFFERS,
	    "spec.ephemeralContainers is not ours" },
	{ "spec", "dnsPolicy", "\"None\"", ADOPT_DIFFERS,
	    "spec.dnsPolicy is not ours" },
	{ "spec", "serviceAccountName", "\"admin\"", ADOPT_DIFFERS,
	    "spec.serviceAccountName is not ours" },
	{ "spec", "automountServiceAccountToken", "true", ADOPT_DIFFERS,
	    "spec.automountServiceAccountToken is true, not false" },
	{ "spec", "containers", "[]", ADOPT_DIFFERS,
	    "spec.containers[0] is missing" },
	{ "spec", "securityContext", "{\"sysctls\":[]}", ADOPT_DIFFERS,
	    "spec.securityContext is not ours" },
	{ "spec", "restartPolicy", "\"Never\"", ADOPT_DIFFERS,
	    "spec.restartPolicy is \"Never\", not \"Always\"" },
	{ "spec", "volumes", "[{\"name\":\"workspace\",\"hostPath\":"
	    "{\"path\":\"/\"}}]", ADOPT_DIFFERS,
	    "spec.volumes[0].emptyDir is missing" },
	{ "spec/containers/0", "image", "\"evil\"", ADOPT_DIFFERS,
	    "spec.containers[0].image is \"evil\", not "
	    "\"debian:bookworm-slim\"" },
	{ "spec/containers/0", "lifecycle", "{}", ADOPT_DIFFERS,
	    "spec.containers[0].lifecycle is not ours" },
	{ "spec/containers/0", "command", "[\"sh\"]", ADOPT_DIFFERS,
	    "spec.containers[0].command[0] is \"sh\", not "
	    "\"/egressd/bin/egressd-box\"" },
	{ "spec/containers/0/securityContext", "privileged", "true",
	    ADOPT_DIFFERS,
	    "spec.containers[0].securityContext.privileged is not ours" },
	{ "spec/containers/0/securityContext/capabilities", "drop", "[]",
	    ADOPT_DIFFERS, "spec.containers[0].securityContext.capabilities."
	    "drop[0] is missing" },
	{ "spec/containers/0", "terminationMessagePath", "\"/etc/passwd\"",
	    ADOPT_DIFFERS,
	    "spec.containers[0].terminationMessagePath is not ours" },
};

static cJSON *
walk_to(cJSON *pod, const char *path)
{
	char	 copy[128], *p = copy, *key;

	strlcpy(copy, path, sizeof(copy));
	while ((key = strsep(&p, "/")) != NULL)
		pod = strcmp(key, "0") == 0 ? cJSON_GetArrayItem(pod, 0) :
		    cJSON_GetObjectItemCaseSensitive(pod, key);
	CHECK(pod != NULL);
	return pod;
}

TEST(planted_pods_are_told)
{
	char	 why[256];
	cJSON	*live, *in;
	size_t	 i;

	for (i = 0; i < sizeof(planted) / sizeof(planted[0]); i++) {
		live = live_plain();
		in = walk_to(live, planted[i].path);
		cJSON_DeleteItemFromObjectCaseSensitive(in,
		    planted[i].member);
		cJSON_AddItemToObject(in, planted[i].member,
		    cJSON_Parse(planted[i].value));
		CHECK_INT(judge(live, why, sizeof(why)), planted[i].judged);
		CHECK_STR(why, planted[i].why);
		cJSON_Delete(live);
	}
}

/* The second of two members is what another parser would take. */
TEST(twice_is_not_ours)
{
	char	 why[256];
	cJSON	*live = live_plain();

	cJSON_AddStringToObject(walk_to(live, "spec/containers/0"), "image",
	    "evil");
	CHECK_INT(judge(live, why, sizeof(why)), ADOPT_DIFFERS);
	CHECK_STR(why, "spec.containers[0].image is not ours");
	cJSON_Delete(live);
}

TEST_MAIN("manifest")
