/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: what k8sd is told of the configuration.  These are the
 * clusters that sandboxes use, as kube.c has found them, and those sandboxes.
 */

#include <stdio.h>

#include "kube.h"
#include "parent.h"

static void
send_cluster(struct ipc *ip, struct kube *kb)
{
	static const enum file_kind	 files[] = { FILE_TRUST, FILE_TOKEN,
	    FILE_CERTIFICATE, FILE_KEY, FILE_PASSWORD };
	size_t				 i;

	ipc_send(ip, -1, CONF_CLUSTER, conf_cluster, .name = kb->kb_name,
	    .server = kb->kb_server, .space = kb->kb_space,
	    .tls_name = kb->kb_tls_name, .proxy = kb->kb_proxy,
	    .user = kb->kb_user, .auth = kb->kb_auth,
	    .insecure = kb->kb_insecure);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (kb->kb_files[files[i]] == -1)
			continue;
		ipc_send(ip, kb->kb_files[files[i]], CONF_FILE, conf_file,
		    .what = files[i]);
		kb->kb_files[files[i]] = -1;
	}
}

static void
send_text(struct ipc *ip, enum pod_text what, const char *value)
{
	if (value != NULL)
		ipc_send(ip, -1, CONF_POD_TEXT, conf_pod_text, .what = what,
		    .key = "", .value = value);
}

static void
send_pairs(struct ipc *ip, enum pod_text what, const struct conf_pairs *list)
{
	const struct conf_pair	*pr;

	TAILQ_FOREACH(pr, list, pr_entry)
		ipc_send(ip, -1, CONF_POD_TEXT, conf_pod_text, .what = what,
		    .key = pr->pr_key, .value = pr->pr_value);
}

static void
send_names(struct ipc *ip, enum pod_text what, const struct conf_words *list)
{
	const struct conf_word	*wd;

	TAILQ_FOREACH(wd, list, wd_entry)
		ipc_send(ip, -1, CONF_POD_TEXT, conf_pod_text, .what = what,
		    .key = wd->wd_text, .value = "");
}

/* As the API spells it. */
static const char *
pull_policy(const struct conf_pod *pd)
{
	static const char *const	 names[] = { "Always", "IfNotPresent",
	    "Never" };

	return pd->pd_pull_said ? names[pd->pd_pull_policy] : NULL;
}

/* Bytes as a quantity: in the largest unit that says it exactly. */
static void
send_size(struct ipc *ip, uint64_t size)
{
	static const char *const	 units[] = { "", "Ki", "Mi", "Gi" };
	char				 text[32];
	size_t				 i = 0;

	if (size == 0)
		return;
	for (; i < 3 && size % 1024 == 0; i++)
		size /= 1024;
	snprintf(text, sizeof(text), "%llu%s", (unsigned long long)size,
	    units[i]);
	send_text(ip, POD_TEXT_SIZE, text);
}

static void
send_pod_lists(struct ipc *ip, const struct conf_sandbox *sb)
{
	const struct conf_pod	*pd = &sb->sb_pod;

	send_pairs(ip, POD_TEXT_ENVIRONMENT, &sb->sb_environment);
	send_pairs(ip, POD_TEXT_LABEL, &pd->pd_labels);
	send_pairs(ip, POD_TEXT_ANNOTATION, &pd->pd_annotations);
	send_pairs(ip, POD_TEXT_REQUEST, &pd->pd_requests);
	send_pairs(ip, POD_TEXT_LIMIT, &pd->pd_limits);
	send_pairs(ip, POD_TEXT_GATE_REQUEST, &pd->pd_gate_requests);
	send_pairs(ip, POD_TEXT_GATE_LIMIT, &pd->pd_gate_limits);
	send_pairs(ip, POD_TEXT_NODE_SELECTOR, &pd->pd_node_selector);
	send_names(ip, POD_TEXT_PULL_SECRET, &pd->pd_pull_secrets);
	send_names(ip, POD_TEXT_TOLERATION, &pd->pd_tolerations);
}

static void
send_pod_texts(struct ipc *ip, const struct conf_sandbox *sb)
{
	const struct conf_pod	*pd = &sb->sb_pod;

	send_text(ip, POD_TEXT_NAMESPACE, sb->sb_namespace);
	send_text(ip, POD_TEXT_IMAGE, pd->pd_image);
	send_text(ip, POD_TEXT_BOX_IMAGE, pd->pd_box_image);
	send_text(ip, POD_TEXT_CWD, sb->sb_cwd != NULL ? sb->sb_cwd :
	    CONF_POD_CWD);
	send_text(ip, POD_TEXT_ID, pd->pd_id);
	send_size(ip, pd->pd_size);
	send_text(ip, POD_TEXT_CLAIM, pd->pd_claim);
	send_text(ip, POD_TEXT_GIT, pd->pd_git);
	send_text(ip, POD_TEXT_GIT_REF, pd->pd_git_ref);
	send_text(ip, POD_TEXT_ACCOUNT, pd->pd_account);
	send_text(ip, POD_TEXT_PULL_POLICY, pull_policy(pd));
	send_text(ip, POD_TEXT_RUNTIME_CLASS, pd->pd_runtime_class);
}

static void
send_pod(struct ipc *ip, const struct conf_sandbox *sb)
{
	const struct conf_pod	*pd = &sb->sb_pod;

	ipc_send(ip, -1, CONF_POD, conf_pod, .name = sb->sb_name,
	    .cluster = sb->sb_cluster_name, .policy = sb->sb_policy_name,
	    .git_timeout_ms = pd->pd_git_timeout,
	    .deadline_ms = sb->sb_deadline, .heartbeat_ms = pd->pd_heartbeat,
	    .ready_timeout_ms = pd->pd_ready_timeout,
	    .run_as_user = pd->pd_run_as_user,
	    .run_as_group = pd->pd_run_as_group, .fs_group = pd->pd_fs_group,
	    .account_token = pd->pd_account_token,
	    .read_only_root = pd->pd_read_only_root,
	    .recreate = pd->pd_on_stale, .delete = !pd->pd_delete_said ?
	    POD_DELETE_UNSET : pd->pd_delete_on_stop ? POD_DELETE_YES :
	    POD_DELETE_NO, .forward = sb->sb_forward,
	    .ungated = sb->sb_ungated, .overlay = pd->pd_overlay,
	    .network_policy = pd->pd_network_policy);
	send_pod_texts(ip, sb);
	send_pod_lists(ip, sb);
}

void
slice_k8sd(struct proc *pr, const struct config *conf, struct runtime *rt)
{
	const struct conf_sandbox	*sb;
	struct kube			*kb;
	int				 fd;

	if (!TAILQ_EMPTY(runtime_kubes(rt)))
		send_resolvers(pr->pr_ipc, conf);
	TAILQ_FOREACH(kb, runtime_kubes(rt), kb_entry)
		send_cluster(pr->pr_ipc, kb);
	TAILQ_FOREACH(sb, &conf->cf_sandboxes, sb_entry) {
		if (sb->sb_kind != SANDBOX_KUBERNETES)
			continue;
		send_pod(pr->pr_ipc, sb);
		if (sb->sb_pod.pd_merge_file != NULL && (fd =
		    runtime_take_file(rt, sb->sb_pod.pd_merge_file)) != -1)
			ipc_send(pr->pr_ipc, fd, CONF_FILE, conf_file,
			    .what = FILE_MERGE);
	}
}
