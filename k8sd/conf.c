/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: its slice of the configuration.  What credentials consist of
 * comes as descriptors and is read here, in confinement; a file that cannot be
 * used refuses the generation.  The parent sends the clusters that a sandbox
 * uses, and each file behind the cluster or the pod that it belongs to.
 */

#include <string.h>

#include "credential.h"
#include "k8sd.h"
#include "log.h"
#include "resolver.h"

#define TRUST_LEN	(1024 * 1024)

static struct clusters	 running = TAILQ_HEAD_INITIALIZER(running);
static struct clusters	 candidate = TAILQ_HEAD_INITIALIZER(candidate);
static struct resolvers	 servers = TAILQ_HEAD_INITIALIZER(servers);
static char		 refusal[PATH_LEN];
static bool		 in_pods;	/* files are a pod's from here */

static void
clusters_clear(struct clusters *list)
{
	struct cluster	*kc;

	while ((kc = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, kc, kc_entry);
		cluster_unref(kc);
	}
}

struct cluster *
cluster_find(const char *name)
{
	struct cluster	*kc;

	TAILQ_FOREACH(kc, &running, kc_entry)
		if (strcmp(kc->kc_name, name) == 0)
			return kc;
	return NULL;
}

void
slice_begin(uint64_t generation)
{
	(void)generation;
	slice_abort();
	refusal[0] = '\0';
	in_pods = false;
}

int
slice_weigh(char *why, size_t len)
{
	struct cluster	*kc;

	TAILQ_FOREACH(kc, &candidate, kc_entry)
		if (refusal[0] == '\0')
			cluster_prepare(kc, refusal, sizeof(refusal));
	if (refusal[0] == '\0')
		pods_weigh(refusal, sizeof(refusal));
	strlcpy(why, refusal, len);
	return refusal[0] == '\0' ? 0 : -1;
}

/* Calls that are out keep their clusters until they have ended. */
void
slice_commit(void)
{
	clusters_clear(&running);
	TAILQ_CONCAT(&running, &candidate, kc_entry);
	pods_commit();
	resolver_use(&servers);
	resolvers_clear(&servers);
}

void
slice_abort(void)
{
	clusters_clear(&candidate);
	pods_abort();
	resolvers_clear(&servers);
}

int
k8sd_parent_conf_resolver(struct ipc *ip, const union msg *m)
{
	return resolvers_add(&servers, ip, m);
}

int
k8sd_parent_conf_cluster(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_cluster	*mc = &m->conf_cluster;
	struct cluster			*kc;

	if (mc->auth >= CLUSTER_AUTH_MAX)
		return ipc_bad(ip, "cluster with auth %u", mc->auth);
	kc = cluster_new(mc);
	TAILQ_INSERT_TAIL(&candidate, kc, kc_entry);
	in_pods = false;
	return 0;
}

int
k8sd_parent_conf_file(struct ipc *ip, const union msg *m)
{
	struct cluster	*kc = TAILQ_LAST(&candidate, clusters);

	if (in_pods)
		return m->conf_file.what == FILE_MERGE ?
		    pod_conf_file(ip, m, refusal, sizeof(refusal)) :
		    ipc_bad(ip, "file %u of a pod", m->conf_file.what);
	if (kc == NULL)
		return ipc_bad(ip, "a file before any cluster");
	if (m->conf_file.what == FILE_TRUST)
		return child_read_text(ip, m, &kc->kc_bundle, TRUST_LEN,
		    kc->kc_name, refusal, sizeof(refusal));
	return child_read_file(ip, m, kc->kc_files, kc->kc_name, refusal,
	    sizeof(refusal));
}

int
k8sd_parent_conf_pod(struct ipc *ip, const union msg *m)
{
	in_pods = true;
	return pod_conf_add(ip, &m->conf_pod);
}
