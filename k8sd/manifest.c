/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: from the block of a sandbox to the manifest of a pod.  The
 * block is the operator's and was checked by the parent; id, directory and
 * variables are a client's.
 *
 *	init   install	 our image: copies box into a volume; of a pod with a
 *			 gate, fence does that (manifest_gate.c)
 *	       workspace the user's image, with box as its first process
 *
 * The workspace has neither NET_RAW nor NET_ADMIN: with either of them it
 * could mark its packets as the gate does.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manifest.h"
#include "msg.h"

#define GRACE_S		5	/* box ends what runs, and leaves */

/* ---- metadata ---- */

void
part_pairs(cJSON *in, const struct pairs *pairs)
{
	const struct pair	*pa;

	TAILQ_FOREACH(pa, pairs, pa_entry)
		kj_put(in, pa->pa_key, pa->pa_value);
}

/* Ours last: the operator's do not take their place. */
static void
put_labels(cJSON *meta, const struct manifest *mf)
{
	cJSON	*labels = kj_object(meta, "labels");
	char	 hash[HASH_LEN + 1];

	names_hash(mf->mf_id, hash);
	part_pairs(labels, &mf->mf_conf->pc_labels);
	kj_put(labels, MARK_MANAGED, MARK_MANAGER);
	kj_put(labels, MARK_SESSION, hash);
	kj_put(labels, MARK_OWNER, names_installation());
}

static void
put_annotations(cJSON *meta, const struct manifest *mf)
{
	cJSON	*notes = kj_object(meta, "annotations");
	char	 uid[16];

	snprintf(uid, sizeof(uid), "%u", mf->mf_owner);
	part_pairs(notes, &mf->mf_conf->pc_annotations);
	kj_put(notes, NOTE_ID, mf->mf_id);
	kj_put(notes, NOTE_SANDBOX, mf->mf_conf->pc_name);
	kj_put(notes, NOTE_UID, uid);
	kj_put(notes, NOTE_POLICY, mf->mf_conf->pc_policy);
	if (!mf->mf_conf->pc_ungated)
		kj_put(notes, NOTE_CONF, mf->mf_sha256);
}

static void
put_metadata(cJSON *pod, const struct manifest *mf)
{
	cJSON	*meta = kj_object(pod, "metadata");
	char	 name[POD_NAME_LEN + 1];

	names_pod(mf->mf_id, name);
	kj_put(meta, "name", name);
	kj_put(meta, "namespace", mf->mf_namespace);
	put_labels(meta, mf);
	put_annotations(meta, mf);
}

/* ---- containers ---- */

void
part_mount(cJSON *mounts, const char *volume, const char *path,
    const char *file, int read_only)
{
	cJSON	*mount = kj_item(mounts);

	kj_put(mount, "name", volume);
	kj_put(mount, "mountPath", path);
	if (file != NULL)
		kj_put(mount, "subPath", file);
	if (read_only)
		kj_put_bool(mount, "readOnly", 1);
}

static void
put_seccomp(cJSON *context)
{
	kj_put(kj_object(context, "seccompProfile"), "type",
	    "RuntimeDefault");
}

static void
put_pull_policy(cJSON *container, const struct pod_conf *pc)
{
	if (pc->pc_pull_policy[0] != '\0')
		kj_put(container, "imagePullPolicy", pc->pc_pull_policy);
}

/* Ours, which has all programs. */
void
part_image(cJSON *co, const struct pod_conf *pc)
{
	kj_put(co, "image", pc->pc_box_image[0] != '\0' ? pc->pc_box_image :
	    BOX_IMAGE);
	put_pull_policy(co, pc);
}

void
part_command(cJSON *in, const char *member, const char *const *words)
{
	cJSON	*list = kj_array(in, member);

	for (; *words != NULL; words++)
		kj_put_item(list, *words);
}

/* Rights of a container of ours: the least, and those added by name. */
void
part_context(cJSON *co, const char *const *add)
{
	cJSON	*context = kj_object(co, "securityContext"), *capabilities;

	kj_put_bool(context, "allowPrivilegeEscalation", 0);
	kj_put_bool(context, "readOnlyRootFilesystem", 1);
	capabilities = kj_object(context, "capabilities");
	kj_put_item(kj_array(capabilities, "drop"), "ALL");
	if (add != NULL) {
		part_command(capabilities, "add", add);
		kj_put_number(context, "runAsUser", 0);
		kj_put_number(context, "runAsGroup", 0);
	}
	put_seccomp(context);
}

/* The volume is open to everybody: the image may run as whom it likes. */
static void
put_install(cJSON *containers, const struct pod_conf *pc)
{
	static const char *const	 command[] = { "egressd-box",
	    "install", BOX_BIN, NULL };
	cJSON				*co = kj_item(containers);

	kj_put(co, "name", "install");
	part_image(co, pc);
	part_command(co, "command", command);
	part_mount(kj_array(co, "volumeMounts"), "egressd-bin", BOX_BIN, NULL,
	    0);
	part_context(co, NULL);
}

/* A client's variable takes the place of the block's. */
void
part_env(cJSON *env, const char *name, size_t len, const char *value)
{
	cJSON	*v;
	char	 key[NAME_LEN + 1];

	if (len >= sizeof(key))
		return;
	memcpy(key, name, len);
	key[len] = '\0';
	cJSON_ArrayForEach(v, env)
		if (strcmp(kj_string(v, "name"), key) == 0)
			break;
	if (v == NULL) {
		v = kj_item(env);
		kj_put(v, "name", key);
	}
	/* The API leaves an empty value out of what it gives back. */
	cJSON_DeleteItemFromObjectCaseSensitive(v, "value");
	if (*value != '\0')
		kj_put(v, "value", value);
}

static void
put_variables(cJSON *co, const struct manifest *mf)
{
	const char *const	*line = mf->mf_variables;
	const struct pair	*pa;
	const char		*equal;
	cJSON			*env;

	if (TAILQ_EMPTY(&mf->mf_conf->pc_env) &&
	    (line == NULL || *line == NULL))
		return;
	env = kj_array(co, "env");
	TAILQ_FOREACH(pa, &mf->mf_conf->pc_env, pa_entry)
		part_env(env, pa->pa_key, strlen(pa->pa_key), pa->pa_value);
	for (; line != NULL && *line != NULL; line++)
		if ((equal = strchr(*line, '=')) != NULL)
			part_env(env, *line, (size_t)(equal - *line),
			    equal + 1);
}

void
part_resources(cJSON *co, const struct pairs *requests,
    const struct pairs *limits)
{
	cJSON	*resources;

	if (TAILQ_EMPTY(requests) && TAILQ_EMPTY(limits))
		return;
	resources = kj_object(co, "resources");
	if (!TAILQ_EMPTY(requests))
		part_pairs(kj_object(resources, "requests"), requests);
	if (!TAILQ_EMPTY(limits))
		part_pairs(kj_object(resources, "limits"), limits);
}

static void
put_context(cJSON *co, const struct pod_conf *pc)
{
	cJSON	*context = kj_object(co, "securityContext"), *drop;

	drop = kj_array(kj_object(context, "capabilities"), "drop");
	kj_put_item(drop, "NET_RAW");
	kj_put_item(drop, "NET_ADMIN");
	if (!pc->pc_ungated)
		kj_put_item(drop, "MKNOD");
	put_seccomp(context);
	if (pc->pc_run_as_user >= 0)
		kj_put_number(context, "runAsUser", pc->pc_run_as_user);
	if (pc->pc_run_as_group >= 0)
		kj_put_number(context, "runAsGroup", pc->pc_run_as_group);
	if (pc->pc_read_only_root)
		kj_put_bool(context, "readOnlyRootFilesystem", 1);
}

static void
put_workspace(cJSON *containers, const struct manifest *mf)
{
	const struct pod_conf		*pc = mf->mf_conf;
	const char *const		 command[] = { BOX_PROGRAM, "keep",
	    pc->pc_ungated ? "-u" : NULL, NULL };
	cJSON				*co = kj_item(containers), *mounts;

	kj_put(co, "name", WORKSPACE);
	kj_put(co, "image", pc->pc_image);
	put_pull_policy(co, pc);
	part_command(co, "command", command);
	kj_put(co, "workingDir", mf->mf_cwd);
	put_variables(co, mf);
	part_resources(co, &pc->pc_requests, &pc->pc_limits);
	mounts = kj_array(co, "volumeMounts");
	part_mount(mounts, "workspace", mf->mf_cwd, NULL, 0);
	part_mount(mounts, "egressd-bin", BOX_BIN, NULL, 1);
	if (pc->pc_read_only_root)
		part_mount(mounts, "tmp", "/tmp", NULL, 0);
	if (!pc->pc_ungated)
		gate_trust(co, pc);
	put_context(co, pc);
}

/* ---- the rest of the pod ---- */

cJSON *
part_volume(cJSON *volumes, const char *name, const char *kind)
{
	cJSON	*volume = kj_item(volumes);

	kj_put(volume, "name", name);
	return kj_object(volume, kind);
}

static void
put_volumes(cJSON *spec, const struct pod_conf *pc, const char *secret)
{
	cJSON	*volumes = kj_array(spec, "volumes"), *of;

	if (pc->pc_claim[0] != '\0') {
		of = part_volume(volumes, "workspace",
		    "persistentVolumeClaim");
		kj_put(of, "claimName", pc->pc_claim);
	} else {
		of = part_volume(volumes, "workspace", "emptyDir");
		if (pc->pc_workspace_size[0] != '\0')
			kj_put(of, "sizeLimit", pc->pc_workspace_size);
	}
	part_volume(volumes, "egressd-bin", "emptyDir");
	if (pc->pc_read_only_root)
		part_volume(volumes, "tmp", "emptyDir");
	if (!pc->pc_ungated)
		gate_volumes(volumes, secret);
}

static void
put_tolerations(cJSON *spec, const struct pod_conf *pc)
{
	const struct toleration	*to;
	cJSON			*list, *v;

	if (TAILQ_EMPTY(&pc->pc_tolerations))
		return;
	list = kj_array(spec, "tolerations");
	TAILQ_FOREACH(to, &pc->pc_tolerations, to_entry) {
		v = kj_item(list);
		if (to->to_key[0] != '\0')
			kj_put(v, "key", to->to_key);
		kj_put(v, "operator", to->to_value == NULL ? "Exists" :
		    "Equal");
		if (to->to_value != NULL && to->to_value[0] != '\0')
			kj_put(v, "value", to->to_value);
		if (to->to_effect[0] != '\0')
			kj_put(v, "effect", to->to_effect);
		if (to->to_seconds >= 0)
			kj_put_number(v, "tolerationSeconds", to->to_seconds);
	}
}

static void
put_placement(cJSON *spec, const struct pod_conf *pc)
{
	const struct pair	*pa;
	cJSON			*list;

	if (!TAILQ_EMPTY(&pc->pc_node_selector))
		part_pairs(kj_object(spec, "nodeSelector"),
		    &pc->pc_node_selector);
	put_tolerations(spec, pc);
	if (pc->pc_runtime_class[0] != '\0')
		kj_put(spec, "runtimeClassName", pc->pc_runtime_class);
	if (TAILQ_EMPTY(&pc->pc_pull_secrets))
		return;
	list = kj_array(spec, "imagePullSecrets");
	TAILQ_FOREACH(pa, &pc->pc_pull_secrets, pa_entry)
		kj_put(kj_item(list), "name", pa->pa_key);
}

/* The gate comes before the workspace, one way or the other. */
static void
put_containers(cJSON *spec, const struct manifest *mf)
{
	const struct pod_conf	*pc = mf->mf_conf;
	cJSON			*init = kj_array(spec, "initContainers");
	cJSON			*containers = kj_array(spec, "containers");

	if (pc->pc_ungated)
		put_install(init, pc);
	else {
		gate_fence(init, pc);
		gate_container(mf->mf_native ? init : containers, pc,
		    mf->mf_native);
	}
	put_workspace(containers, mf);
}

static void
put_spec(cJSON *pod, const struct manifest *mf)
{
	const struct pod_conf	*pc = mf->mf_conf;
	cJSON			*spec = kj_object(pod, "spec");
	int64_t			 s = (int64_t)(mf->mf_deadline_ms / 1000);

	put_containers(spec, mf);
	put_volumes(spec, pc, kj_string(pod, "metadata/name"));
	if (!pc->pc_ungated)
		gate_dns(spec);
	kj_put(spec, "restartPolicy", "Always");
	kj_put_number(spec, "activeDeadlineSeconds", s > 0 ? s : 1);
	kj_put_number(spec, "terminationGracePeriodSeconds", GRACE_S);
	kj_put_bool(spec, "automountServiceAccountToken",
	    pc->pc_account_token);
	kj_put_bool(spec, "enableServiceLinks", 0);
	if (pc->pc_service_account[0] != '\0')
		kj_put(spec, "serviceAccountName", pc->pc_service_account);
	if (pc->pc_fs_group >= 0)
		kj_put_number(kj_object(spec, "securityContext"), "fsGroup",
		    pc->pc_fs_group);
	put_placement(spec, pc);
}

cJSON *
manifest_new(const struct manifest *mf, char *why, size_t len)
{
	cJSON	*pod = kj_object(NULL, NULL), *notes;
	char	*text, digest[DIGEST_LEN + 1];

	kj_put(pod, "apiVersion", "v1");
	kj_put(pod, "kind", "Pod");
	put_metadata(pod, mf);
	put_spec(pod, mf);
	if (mf->mf_conf->pc_merge != NULL &&
	    manifest_merge(pod, mf->mf_conf->pc_merge, why, len) == -1) {
		cJSON_Delete(pod);
		return NULL;
	}
	text = kj_print(cJSON_GetObjectItemCaseSensitive(pod, "spec"));
	names_digest(text, digest);
	cJSON_free(text);
	notes = cJSON_GetObjectItemCaseSensitive(
	    cJSON_GetObjectItemCaseSensitive(pod, "metadata"), "annotations");
	kj_put(notes, NOTE_SPEC, digest);
	return pod;
}

void
manifest_date(cJSON *pod, int64_t now)
{
	cJSON	*notes = cJSON_GetObjectItemCaseSensitive(
	    cJSON_GetObjectItemCaseSensitive(pod, "metadata"), "annotations");
	char	 text[KJ_TIME_LEN + 1];

	kj_time_print(now, text);
	kj_put(notes, NOTE_CREATED, text);
	kj_put(notes, NOTE_HEARTBEAT, text);
}
