/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: its slice of the configuration.  Kubeconfigs, tokens and
 * keys come as descriptors and are read here, in confinement; a file that
 * cannot be read refuses the generation.
 */

#include <stdlib.h>
#include <string.h>

#include "k8sd.h"
#include "log.h"

static struct clusters	 running = TAILQ_HEAD_INITIALIZER(running);
static struct clusters	 candidate = TAILQ_HEAD_INITIALIZER(candidate);
static char		 refusal[PATH_LEN];

static void
clusters_clear(struct clusters *list)
{
	struct cluster	*kc;
	size_t		 i;

	while ((kc = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, kc, kc_entry);
		for (i = 0; i < FILE_KIND_MAX; i++)
			secret_free(kc->kc_files[i]);
		free(kc);
	}
}

void
slice_begin(uint64_t generation)
{
	(void)generation;
	clusters_clear(&candidate);
	refusal[0] = '\0';
}

int
slice_weigh(char *why, size_t len)
{
	strlcpy(why, refusal, len);
	return refusal[0] == '\0' ? 0 : -1;
}

void
slice_commit(void)
{
	clusters_clear(&running);
	TAILQ_CONCAT(&running, &candidate, kc_entry);
}

void
slice_abort(void)
{
	clusters_clear(&candidate);
}

int
k8sd_parent_conf_cluster(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_cluster	*mc = &m->conf_cluster;
	struct cluster			*kc;

	(void)ip;
	if ((kc = calloc(1, sizeof(*kc))) == NULL)
		fatal("%s", __func__);
	strlcpy(kc->kc_name, mc->name, sizeof(kc->kc_name));
	strlcpy(kc->kc_context, mc->context, sizeof(kc->kc_context));
	strlcpy(kc->kc_server, mc->server, sizeof(kc->kc_server));
	strlcpy(kc->kc_user, mc->user, sizeof(kc->kc_user));
	kc->kc_in_cluster = mc->in_cluster;
	TAILQ_INSERT_TAIL(&candidate, kc, kc_entry);
	return 0;
}

int
k8sd_parent_conf_file(struct ipc *ip, const union msg *m)
{
	struct cluster	*kc = TAILQ_LAST(&candidate, clusters);

	if (kc == NULL)
		return ipc_bad(ip, "a file before any cluster");
	return child_read_file(ip, m, kc->kc_files, kc->kc_name, refusal,
	    sizeof(refusal));
}
