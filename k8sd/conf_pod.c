/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: sandboxes of the kind kubernetes, as the parent has read and
 * judged them.  Only what is in a file, the manifest to be merged, is judged
 * here, in confinement.
 */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "credential.h"
#include "k8sd.h"
#include "log.h"
#include "manifest.h"

#define MERGE_LEN	(64 * 1024)

TAILQ_HEAD(pod_confs, pod_conf);

static struct pod_confs	 running = TAILQ_HEAD_INITIALIZER(running);
static struct pod_confs	 candidate = TAILQ_HEAD_INITIALIZER(candidate);

/* Where a text belongs. */
static const size_t places[POD_TEXT_MAX] = {
	[POD_TEXT_NAMESPACE] = offsetof(struct pod_conf, pc_namespace),
	[POD_TEXT_IMAGE] = offsetof(struct pod_conf, pc_image),
	[POD_TEXT_BOX_IMAGE] = offsetof(struct pod_conf, pc_box_image),
	[POD_TEXT_CWD] = offsetof(struct pod_conf, pc_cwd),
	[POD_TEXT_ID] = offsetof(struct pod_conf, pc_id),
	[POD_TEXT_SIZE] = offsetof(struct pod_conf, pc_workspace_size),
	[POD_TEXT_CLAIM] = offsetof(struct pod_conf, pc_claim),
	[POD_TEXT_GIT] = offsetof(struct pod_conf, pc_git),
	[POD_TEXT_GIT_REF] = offsetof(struct pod_conf, pc_git_ref),
	[POD_TEXT_ACCOUNT] = offsetof(struct pod_conf, pc_service_account),
	[POD_TEXT_PULL_POLICY] = offsetof(struct pod_conf, pc_pull_policy),
	[POD_TEXT_RUNTIME_CLASS] = offsetof(struct pod_conf,
	    pc_runtime_class),
	[POD_TEXT_ENVIRONMENT] = offsetof(struct pod_conf, pc_env),
	[POD_TEXT_LABEL] = offsetof(struct pod_conf, pc_labels),
	[POD_TEXT_ANNOTATION] = offsetof(struct pod_conf, pc_annotations),
	[POD_TEXT_REQUEST] = offsetof(struct pod_conf, pc_requests),
	[POD_TEXT_LIMIT] = offsetof(struct pod_conf, pc_limits),
	[POD_TEXT_GATE_REQUEST] = offsetof(struct pod_conf,
	    pc_gate_requests),
	[POD_TEXT_GATE_LIMIT] = offsetof(struct pod_conf, pc_gate_limits),
	[POD_TEXT_NODE_SELECTOR] = offsetof(struct pod_conf,
	    pc_node_selector),
	[POD_TEXT_PULL_SECRET] = offsetof(struct pod_conf, pc_pull_secrets),
	[POD_TEXT_TOLERATION] = offsetof(struct pod_conf, pc_tolerations),
};

static void *
place(struct pod_conf *pc, unsigned int what)
{
	return (char *)pc + places[what];
}

static char *
copy(const char *text)
{
	char	*new;

	if ((new = strdup(text)) == NULL)
		fatal("%s", __func__);
	return new;
}

static void
tolerations_free(struct tolerations *list)
{
	struct toleration	*to;

	while ((to = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, to, to_entry);
		free(to->to_key);
		free(to->to_value);
		free(to->to_effect);
		free(to);
	}
}

static void
pairs_free(struct pairs *list)
{
	struct pair	*pa;

	while ((pa = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, pa, pa_entry);
		free(pa->pa_key);
		free(pa->pa_value);
		free(pa);
	}
}

static void
pods_clear(struct pod_confs *list)
{
	struct pod_conf	*pc;
	unsigned int	 i;

	while ((pc = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, pc, pc_entry);
		for (i = 0; i < POD_TEXT_PAIRS; i++)
			free(*(char **)place(pc, i));
		for (; i < POD_TEXT_TOLERATION; i++)
			pairs_free(place(pc, i));
		tolerations_free(&pc->pc_tolerations);
		free(pc->pc_name);
		free(pc->pc_cluster);
		free(pc->pc_policy);
		free(pc->pc_merge);
		free(pc);
	}
}

void
pods_commit(void)
{
	pods_clear(&running);
	TAILQ_CONCAT(&running, &candidate, pc_entry);
}

void
pods_abort(void)
{
	pods_clear(&candidate);
}

const struct pod_conf *
pod_conf_find(const char *sandbox)
{
	const struct pod_conf	*pc;

	TAILQ_FOREACH(pc, &running, pc_entry)
		if (strcmp(pc->pc_name, sandbox) == 0)
			return pc;
	return NULL;
}

const struct pod_conf *
pod_conf_first(void)
{
	return TAILQ_FIRST(&running);
}

const struct pod_conf *
pod_conf_next(const struct pod_conf *pc)
{
	return TAILQ_NEXT(pc, pc_entry);
}

int
pods_weigh(char *why, size_t len)
{
	const struct pod_conf	*pc;
	char			 what[128];

	TAILQ_FOREACH(pc, &candidate, pc_entry)
		if (pc->pc_merge != NULL && manifest_merge_check(pc->pc_merge,
		    !pc->pc_ungated, what, sizeof(what)) == -1)
			return child_refuse(why, len, "manifest merge file of "
			    "\"%s\": %s", pc->pc_name, what);
	return 0;
}

static int64_t
said(uint32_t id)
{
	return id == UINT32_MAX ? -1 : (int64_t)id;
}

int
pod_conf_add(struct ipc *ip, const struct msg_conf_pod *mp)
{
	struct pod_conf	*pc;
	unsigned int	 i;

	if (mp->recreate > POD_STALE_RECREATE || mp->delete > POD_DELETE_YES)
		return ipc_bad(ip, "pod with recreate %u, delete %u",
		    mp->recreate, mp->delete);
	pc = child_alloc(sizeof(*pc));
	pc->pc_name = copy(mp->name);
	pc->pc_cluster = copy(mp->cluster);
	pc->pc_policy = copy(mp->policy);
	for (i = 0; i < POD_TEXT_PAIRS; i++)
		*(char **)place(pc, i) = copy("");
	for (; i < POD_TEXT_TOLERATION; i++)
		TAILQ_INIT((struct pairs *)place(pc, i));
	TAILQ_INIT(&pc->pc_tolerations);
	pc->pc_git_timeout_ms = mp->git_timeout_ms;
	pc->pc_deadline_ms = mp->deadline_ms;
	pc->pc_heartbeat_ms = mp->heartbeat_ms;
	pc->pc_ready_timeout_ms = mp->ready_timeout_ms;
	pc->pc_run_as_user = said(mp->run_as_user);
	pc->pc_run_as_group = said(mp->run_as_group);
	pc->pc_fs_group = said(mp->fs_group);
	pc->pc_account_token = mp->account_token;
	pc->pc_read_only_root = mp->read_only_root;
	pc->pc_on_stale = mp->recreate;
	pc->pc_delete_on_stop = mp->delete;
	pc->pc_forward = mp->forward;
	pc->pc_ungated = mp->ungated;
	pc->pc_overlay = mp->overlay;
	pc->pc_network_policy = mp->network_policy;
	TAILQ_INSERT_TAIL(&candidate, pc, pc_entry);
	return 0;
}

int
k8sd_parent_conf_pod_text(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_pod_text	*mt = &m->conf_pod_text;
	struct pod_conf			*pc;
	struct pair			*pa;
	char				**text;

	pc = TAILQ_LAST(&candidate, pod_confs);
	if (pc == NULL || mt->what >= POD_TEXT_MAX)
		return ipc_bad(ip, "text %u out of place", mt->what);
	if (mt->what < POD_TEXT_PAIRS) {
		text = place(pc, mt->what);
		free(*text);
		*text = copy(mt->value);
	} else if (mt->what == POD_TEXT_TOLERATION)
		toleration_add(&pc->pc_tolerations, mt->key);
	else {
		pa = child_alloc(sizeof(*pa));
		pa->pa_key = copy(mt->key);
		pa->pa_value = copy(mt->value);
		TAILQ_INSERT_TAIL((struct pairs *)place(pc, mt->what), pa,
		    pa_entry);
	}
	return 0;
}

int
pod_conf_file(struct ipc *ip, const union msg *m, char *why, size_t size)
{
	struct pod_conf	*pc = TAILQ_LAST(&candidate, pod_confs);
	struct text	 merge = { 0 };
	int		 rv;

	if (pc == NULL || pc->pc_merge != NULL)
		return ipc_bad(ip, "a manifest out of place");
	rv = child_read_text(ip, m, &merge, MERGE_LEN, pc->pc_name, why, size);
	pc->pc_merge = merge.tx_data;
	return rv;
}
