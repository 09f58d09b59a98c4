/* SPDX-License-Identifier: ISC */

/*
 * k8sd: clusters and the sandboxes in them, as the configuration in force has
 * them.  The values were checked by the parent before they were sent; who uses
 * one here need not look at its form again.
 *
 * A cluster is counted: a call keeps its own over a reload, and the name of a
 * cluster that is gone finds none.  Credentials stay in here and leave as the
 * one line that a call needs, or in the TLS handshake.
 */

#ifndef CLUSTER_H
#define CLUSTER_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include "words.h"

struct cluster;
struct https_server;

/*
 * NULL if there is none of this name, or if no sandbox uses it: then nothing
 * of it was loaded.  "" is the one that is found by itself: in-cluster, else
 * kubeconfig.
 */
struct cluster	*cluster_find(const char *name);
struct cluster	*cluster_ref(struct cluster *);
void	 cluster_unref(struct cluster *);

const char	*cluster_name(const struct cluster *);
/* Where its API is, verified and dialled as its block says. */
struct https_server	*cluster_server(struct cluster *);
/* What comes before the paths of its API; "" for most. */
const char	*cluster_path(const struct cluster *);
/* Of the context or of the service account, or "default". */
const char	*cluster_namespace(const struct cluster *);

/*
 * The whole "Authorization: ..." line for the next call, good until the event
 * loop runs again; "" if the cluster wants none or a certificate does it.
 * NULL: it is not there yet, or is being replaced.  Whoever gets NULL may ask
 * to be called when it is there, with why NULL, or cannot be had, with why.
 */
const char	*cluster_authorization(struct cluster *);
typedef void	 cluster_ready(void *, const char *why);
void	 cluster_wait(struct cluster *, cluster_ready *, void *);
/* The call of this function with this argument is no longer to be made. */
void	 cluster_wait_cancel(struct cluster *, cluster_ready *, void *);

/*
 * The server said 401 to a call with the line above: what it was made of is
 * read, or the plugin run, again.  Once per call, the caller sees to that.
 */
void	 cluster_refused(struct cluster *);

/* Names and values, in the order of the file. */
struct pair {
	TAILQ_ENTRY(pair)	 pa_entry;
	char			*pa_key;
	char			*pa_value;	/* "": none */
};
TAILQ_HEAD(pairs, pair);

struct toleration {
	TAILQ_ENTRY(toleration)	 to_entry;
	char			*to_key;	/* "": every taint */
	char			*to_value;	/* NULL: Exists */
	char			*to_effect;	/* "": every effect */
	int64_t			 to_seconds;	/* -1: for ever */
};
TAILQ_HEAD(tolerations, toleration);

void	 toleration_add(struct tolerations *, const char *);

/* A sandbox of the kind kubernetes; texts that were not given are "". */
struct pod_conf {
	TAILQ_ENTRY(pod_conf)	 pc_entry;
	char			*pc_name;
	char			*pc_cluster;	/* "": found by itself */
	char			*pc_namespace;	/* "": cluster_namespace() */
	char			*pc_image;
	char			*pc_box_image;	/* "": of our version */
	char			*pc_cwd;
	char			*pc_id;		/* "": the session's */
	char			*pc_policy;
	char			*pc_workspace_size;	/* a quantity, or "" */
	char			*pc_claim;	/* instead of an emptyDir */
	char			*pc_git;
	char			*pc_git_ref;
	uint64_t		 pc_git_timeout_ms;
	struct pairs		 pc_env;
	struct pairs		 pc_labels;
	struct pairs		 pc_annotations;
	struct pairs		 pc_requests;	/* resource, quantity */
	struct pairs		 pc_limits;
	struct pairs		 pc_node_selector;
	struct pairs		 pc_pull_secrets;	/* keys only */
	struct tolerations	 pc_tolerations;
	char			*pc_service_account;
	bool			 pc_account_token;
	char			*pc_pull_policy; /* Always ... or "" */
	char			*pc_runtime_class;
	int64_t			 pc_run_as_user;	/* -1: not said */
	int64_t			 pc_run_as_group;
	int64_t			 pc_fs_group;
	bool			 pc_read_only_root;
	char			*pc_merge;	/* a JSON object, or NULL */
	uint64_t		 pc_deadline_ms;
	uint64_t		 pc_heartbeat_ms;	/* 0: off */
	uint64_t		 pc_ready_timeout_ms;
	enum pod_stale		 pc_on_stale;
	enum pod_delete		 pc_delete_on_stop;
	bool			 pc_forward;
	bool			 pc_ungated;	/* all below is the gate's */
	struct pairs		 pc_gate_requests;
	struct pairs		 pc_gate_limits;
	bool			 pc_overlay;	/* of the image's bundles */
	bool			 pc_network_policy;
};

/* Of the configuration in force; what it points to goes with that. */
const struct pod_conf	*pod_conf_find(const char *sandbox);
const struct pod_conf	*pod_conf_first(void);
const struct pod_conf	*pod_conf_next(const struct pod_conf *);

#endif /* CLUSTER_H */
