/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: what a session wants of a pod, until there is a manifest of
 * it.  One with a gate waits for what its gate is to be told, which comes from
 * the parent, and for the version of the cluster, by which its shape is.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "child.h"
#include "codes.h"
#include "log.h"
#include "pod_parts.h"

#define GATE_MS		20000	/* until its files are here */

static void	 pod_go(struct pod *);

static char *
copy(const char *text)
{
	char	*p;

	if ((p = strdup(text)) == NULL)
		fatal("%s", __func__);
	return p;
}

static void
pod_take_conf(struct pod *po, const struct pod_conf *pc)
{
	names_pod(pc->pc_id[0] != '\0' ? pc->pc_id : po->po_session,
	    po->po_name);
	po->po_namespace = copy(pc->pc_namespace[0] != '\0' ?
	    pc->pc_namespace : cluster_namespace(po->po_cluster));
	if (po->po_cwd[0] == '\0') {
		free(po->po_cwd);
		po->po_cwd = copy(pc->pc_cwd);
	}
	po->po_git = copy(pc->pc_git);
	po->po_ref = copy(pc->pc_git_ref);
	po->po_git_ms = pc->pc_git_timeout_ms;
	po->po_forward = pc->pc_forward;
	po->po_gated = !pc->pc_ungated;
	po->po_delete = pc->pc_delete_on_stop == POD_DELETE_UNSET ?
	    !po->po_named && pc->pc_id[0] == '\0' :
	    pc->pc_delete_on_stop == POD_DELETE_YES;
}

/* Sidecars are known from 1.29 on: v1.29.3+k3s1 */
static int
is_native(const char *version)
{
	unsigned int	 major, minor;

	return sscanf(version, "v%u.%u", &major, &minor) == 2 &&
	    (major > 1 || minor >= 29);
}

static void
pod_join(struct pod *po, const struct pod_conf *pc)
{
	struct manifest		 mf = {
		.mf_conf = pc,
		.mf_id = pc->pc_id[0] != '\0' ? pc->pc_id : po->po_session,
		.mf_namespace = po->po_namespace,
		.mf_cwd = pc->pc_cwd,
		.mf_owner = po->po_owner,
		.mf_deadline_ms = po->po_deadline_ms != 0 ?
		    po->po_deadline_ms : pc->pc_deadline_ms,
		.mf_variables = po->po_list,
		.mf_sha256 = po->po_gate != NULL ? po->po_gate->ga_sha256 : "",
		.mf_native = is_native(api_version(po->po_cluster)),
	};
	struct kpod_terms	 kt = {
		.kt_heartbeat_ms = pc->pc_heartbeat_ms,
		.kt_ready_ms = pc->pc_ready_timeout_ms,
		.kt_recreate = pc->pc_on_stale == POD_STALE_RECREATE,
		.kt_gate = po->po_gate,
		.kt_network = pc->pc_network_policy,
	};
	char			 why[POD_TEXT_LEN - 256];
	cJSON			*want;

	if ((want = manifest_new(&mf, why, sizeof(why))) == NULL)
		pod_fail_later(po, CODE_BAD_CONFIGURATION, "%s", why);
	else if (kpod_join(&po->po_user, po->po_cluster, want, &kt, why,
	    sizeof(why)) == NULL)
		pod_fail_later(po, POD_CODE_DIFFERS,
		    "pod %s, which others share: %s", po->po_name, why);
}

/* ---- before a pod with a gate ---- */

static void
pod_versioned(void *arg, const struct api_answer *aa)
{
	struct pod	*po = arg;
	const char	*version = kj_string(aa->aa_json, "gitVersion");

	po->po_call = NULL;
	if (aa->aa_result == API_OK && version[0] != '\0') {
		api_version_set(po->po_cluster, version);
		pod_go(po);
	} else
		pod_fail_later(po, kpod_code(aa), "its version: %s",
		    aa->aa_why);
}

static void
pod_ask_version(struct pod *po)
{
	static const struct api_request	 ar = {
		.ar_method = "GET",
		.ar_path = "/version",
		.ar_verb = "get",
		.ar_resource = "/version",
	};

	api_renew(&po->po_cluster);
	po->po_call = api_begin(po->po_cluster, &ar, pod_versioned, po);
}

/* The block may have changed since whoever asked has read it. */
static void
pod_go(struct pod *po)
{
	const struct pod_conf	*pc = pod_conf_find(po->po_sandbox);

	if (pc == NULL || (pc->pc_ungated && po->po_gate != NULL))
		pod_fail_later(po, CODE_BAD_CONFIGURATION,
		    "the configuration has changed meanwhile");
	else if (pc->pc_ungated)
		pod_join(po, pc);
	else if (po->po_gate == NULL) {
		po->po_waits = 1;
		pod_fail_after(po, GATE_MS, POD_CODE_FAILED,
		    "nobody says what its gate is to be told");
	} else if (api_version(po->po_cluster)[0] == '\0')
		pod_ask_version(po);
	else
		pod_join(po, pc);
}

void
pod_gate(struct pod *po, struct gate *ga)
{
	if (po->po_stopping || !po->po_waits) {
		gate_unref(ga);
		return;
	}
	po->po_waits = 0;
	event_del(&po->po_event);
	po->po_gate = ga;
	pod_go(po);
}

/* All of it is copied: the API may have to be asked before it is used. */
static void
pod_take_wish(struct pod *po, const struct pod_wish *pw)
{
	size_t	 i, n = 0, len = 0;
	char	*p;

	po->po_session = copy(pw->pw_session);
	po->po_sandbox = copy(pw->pw_sandbox);
	po->po_cwd = copy(pw->pw_cwd);
	po->po_owner = pw->pw_owner;
	po->po_named = pw->pw_named;
	po->po_deadline_ms = pw->pw_deadline_ms;
	po->po_gate = pw->pw_gate;
	for (; pw->pw_variables != NULL && pw->pw_variables[n] != NULL; n++)
		len += strlen(pw->pw_variables[n]) + 1;
	if ((po->po_variables = p = malloc(len + 1)) == NULL ||
	    (po->po_list = calloc(n + 1, sizeof(*po->po_list))) == NULL)
		fatal("%s", __func__);
	for (i = 0; i < n; i++) {
		po->po_list[i] = p;
		p = stpcpy(p, pw->pw_variables[i]) + 1;
	}
}

struct pod *
pod_start(const struct pod_wish *pw, const struct pod_callbacks *callbacks,
    void *arg)
{
	const struct pod_conf	*pc = pod_conf_find(pw->pw_sandbox);
	struct cluster		*cl;
	struct pod		*po;

	if ((po = calloc(1, sizeof(*po))) == NULL)
		fatal("%s", __func__);
	po->po_user.ku_ops = &pod_ops;
	po->po_user.ku_arg = po;
	po->po_callbacks = *callbacks;
	po->po_arg = arg;
	TAILQ_INIT(&po->po_attaches);
	event_assign(&po->po_event, child_base, -1, 0, pod_on_event, po);
	pod_take_wish(po, pw);
	if (pc == NULL)
		pod_fail_later(po, CODE_UNKNOWN_SANDBOX,
		    "sandbox %s is not configured here", pw->pw_sandbox);
	else if ((cl = cluster_find(pc->pc_cluster)) == NULL)
		pod_fail_later(po, POD_CODE_CLUSTER,
		    "cluster \"%s\" is not configured here", pc->pc_cluster);
	else {
		po->po_cluster = cluster_ref(cl);
		pod_take_conf(po, pc);
		pod_go(po);
	}
	return po;
}
