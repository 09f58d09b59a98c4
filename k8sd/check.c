/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: whether a cluster can be used: it is reached, of a version
 * that we know, and the account may do what pods need.  The API server judges
 * the last by itself (SelfSubjectAccessReview); what it says of a right is no
 * promise, so that a call which is refused later says so again.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "log.h"
#include "rights.h"

#define MINOR_MIN	20

/* What sessions need, in the order of their life. */
#define RIGHT_ROW(group, resource, subresource, verb)			\
	{ verb, group, resource, subresource },

static const struct right {
	const char	*ri_verb;
	const char	*ri_group;
	const char	*ri_resource;
	const char	*ri_subresource;
} rights[] = {
	KUBE_RIGHTS(RIGHT_ROW)
	KUBE_GATE_RIGHTS(RIGHT_ROW)
};

#define RIGHT_ONE(...)	+ 1
#define RIGHTS		(sizeof(rights) / sizeof(rights[0]))
#define RIGHTS_UNGATED	(0 KUBE_RIGHTS(RIGHT_ONE))

static void	 check_next(struct pods_job *);

static void
check_tell(struct pods_job *pj, const char *what, const char *state,
    const char *text)
{
	struct pods_item	 pi = {
		.pi_session = "",
		.pi_pod = what,
		.pi_text = text,
		.pi_state = state,
		.pi_owner = UINT32_MAX,
	};

	pj->pj_item(pj->pj_arg, &pi);
}

static void
check_reviewed(void *arg, const struct api_answer *aa)
{
	struct pods_job		*pj = arg;
	const struct right	*ri = &rights[pj->pj_check++];
	const cJSON		*allowed;
	char			 what[128], why[200];

	pj->pj_call = NULL;
	snprintf(what, sizeof(what), "%s %s%s%s", ri->ri_verb,
	    ri->ri_resource, ri->ri_subresource[0] != '\0' ? "/" : "",
	    ri->ri_subresource);
	allowed = kj_at(aa->aa_json, "status/allowed");
	kj_tame(kj_string(aa->aa_json, "status/reason"), SIZE_MAX, why,
	    sizeof(why));
	if (aa->aa_result != API_OK)
		check_tell(pj, what, "unknown", aa->aa_why);
	else
		check_tell(pj, what, cJSON_IsTrue(allowed) ? "ok" : "not",
		    why);
	check_next(pj);
}

static void
check_next(struct pods_job *pj)
{
	static const char	 path[] =
	    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
	const struct right	*ri = &rights[pj->pj_check];
	cJSON			*review, *of;
	char			*body;

	if (pj->pj_check == (pj->pj_gated ? RIGHTS : RIGHTS_UNGATED)) {
		job_over(pj, NULL, api_version(pj->pj_cluster));
		return;
	}
	review = kj_object(NULL, NULL);
	kj_put(review, "apiVersion", "authorization.k8s.io/v1");
	kj_put(review, "kind", "SelfSubjectAccessReview");
	of = kj_object(kj_object(review, "spec"), "resourceAttributes");
	kj_put(of, "namespace", pj->pj_namespace);
	kj_put(of, "verb", ri->ri_verb);
	kj_put(of, "group", ri->ri_group);
	kj_put(of, "resource", ri->ri_resource);
	if (ri->ri_subresource[0] != '\0')
		kj_put(of, "subresource", ri->ri_subresource);
	body = kj_print(review);
	job_call(pj, "POST", "create", "selfsubjectaccessreviews", path, body,
	    check_reviewed);
	cJSON_free(body);
	cJSON_Delete(review);
}

/* A minor version may have a "+" behind it. */
static void
check_version(void *arg, const struct api_answer *aa)
{
	struct pods_job	*pj = arg;
	const char	*minor;

	pj->pj_call = NULL;
	if (aa->aa_result != API_OK) {
		job_failed(pj, aa);
		return;
	}
	check_tell(pj, "reach", "ok", "");
	api_version_set(pj->pj_cluster, kj_string(aa->aa_json, "gitVersion"));
	minor = kj_string(aa->aa_json, "minor");
	if (strcmp(kj_string(aa->aa_json, "major"), "1") == 0 &&
	    strtoul(minor, NULL, 10) >= MINOR_MIN)
		check_tell(pj, "version", "ok", api_version(pj->pj_cluster));
	else
		check_tell(pj, "version", "unknown",
		    api_version(pj->pj_cluster));
	check_next(pj);
}

struct pods_job *
pods_check(const struct pods_ask *pa, pods_item *item, pods_done *done,
    void *arg)
{
	struct pods_job	*pj;
	int		 go;

	const struct pod_conf	*pc = pod_conf_find(pa->pa_sandbox);

	pj = job_new(pa, item, done, arg, &go);
	pj->pj_gated = pa->pa_cluster != NULL || pc == NULL ||
	    !pc->pc_ungated;
	if (go)
		job_call(pj, "GET", "get", "/version", "/version", NULL,
		    check_version);
	return pj;
}
