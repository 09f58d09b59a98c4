/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: Leases of control hosts that died, which nobody else would
 * delete.  A host looks once for each namespace where it has pods, and takes
 * away what was not renewed for long; a pod whose follower has no Lease is
 * anybody's to follow, as is one whose Lease has run out.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kpod.h"
#include "log.h"

#define DEAD_S		600
#define LEASES		"/apis/coordination.k8s.io/v1/namespaces/%s/leases"

struct dead {
	TAILQ_ENTRY(dead)	 de_entry;
	char			 de_name[POD_NAME_LEN + 1];
	char			 de_uid[UID_LEN + 1];
	char			 de_version[VERSION_LEN + 1];
};

struct sweep {
	struct cluster		*sw_cluster;
	char			*sw_namespace;
	struct api_call		*sw_call;
	TAILQ_HEAD(, dead)	 sw_dead;
};

static void	 sweep_next(struct sweep *);

void
sweep_cancel(struct sweep *sw)
{
	struct dead	*de;

	if (sw == NULL)
		return;
	api_cancel(sw->sw_call);
	while ((de = TAILQ_FIRST(&sw->sw_dead)) != NULL) {
		TAILQ_REMOVE(&sw->sw_dead, de, de_entry);
		free(de);
	}
	cluster_unref(sw->sw_cluster);
	free(sw->sw_namespace);
	free(sw);
}

/* One of our names, so that it can stand in a path. */
static void
sweep_take(struct sweep *sw, const cJSON *lease)
{
	const char	*name = kj_string(lease, "metadata/name");
	int64_t		 renewed = kj_time(kj_string(lease, "spec/renewTime"));
	char		 escaped[3 * POD_NAME_LEN + 4];
	struct dead	*de;

	if (renewed == 0 || api_now(sw->sw_cluster) - renewed < DEAD_S ||
	    strcmp(name, follow_me()) == 0 || strlen(name) > POD_NAME_LEN ||
	    !names_escape(name, escaped, sizeof(escaped)) ||
	    strcmp(name, escaped) != 0)
		return;
	if ((de = calloc(1, sizeof(*de))) == NULL)
		fatal("%s", __func__);
	strlcpy(de->de_name, name, sizeof(de->de_name));
	strlcpy(de->de_uid, kj_string(lease, "metadata/uid"),
	    sizeof(de->de_uid));
	strlcpy(de->de_version, kj_string(lease, "metadata/resourceVersion"),
	    sizeof(de->de_version));
	TAILQ_INSERT_TAIL(&sw->sw_dead, de, de_entry);
}

static void
sweep_ask(struct sweep *sw, const char *method, const char *verb,
    const char *tail, const char *body, api_done *done)
{
	char			 path[API_PATH_LEN];
	struct api_request	 ar = {
		.ar_method = method,
		.ar_path = path,
		.ar_body = body,
		.ar_verb = verb,
		.ar_resource = "leases",
	};

	snprintf(path, sizeof(path), LEASES "%s", sw->sw_namespace, tail);
	sw->sw_call = api_begin(sw->sw_cluster, &ar, done, sw);
}

/* One that was renewed after all has another version by now, and stays. */
static void
sweep_deleted(void *arg, const struct api_answer *aa)
{
	struct sweep	*sw = arg;

	(void)aa;
	sw->sw_call = NULL;
	sweep_next(sw);
}

static void
sweep_next(struct sweep *sw)
{
	struct dead	*de = TAILQ_FIRST(&sw->sw_dead);
	char		 tail[POD_NAME_LEN + 2], *body;

	if (de == NULL)
		return;
	TAILQ_REMOVE(&sw->sw_dead, de, de_entry);
	snprintf(tail, sizeof(tail), "/%s", de->de_name);
	body = kpod_delete_body(de->de_uid, de->de_version);
	sweep_ask(sw, "DELETE", "delete", tail, body, sweep_deleted);
	cJSON_free(body);
	free(de);
}

static void
sweep_listed(void *arg, const struct api_answer *aa)
{
	struct sweep	*sw = arg;
	const cJSON	*lease;

	sw->sw_call = NULL;
	cJSON_ArrayForEach(lease, kj_at(aa->aa_json, "items")) {
		sweep_take(sw, lease);
	}
	sweep_next(sw);
}

struct sweep *
sweep_begin(struct cluster *cl, const char *namespace)
{
	struct sweep	*sw;
	char		 query[API_PATH_LEN / 2];

	if ((sw = calloc(1, sizeof(*sw))) == NULL ||
	    (sw->sw_namespace = strdup(namespace)) == NULL)
		fatal("%s", __func__);
	sw->sw_cluster = cluster_ref(cl);
	TAILQ_INIT(&sw->sw_dead);
	snprintf(query, sizeof(query), "?labelSelector=%s&limit=%d",
	    names_selector(), API_PAGE);
	sweep_ask(sw, "GET", "list", query, NULL, sweep_listed);
	return sw;
}
