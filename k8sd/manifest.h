/* SPDX-License-Identifier: ISC */

/*
 * k8sd: the pod that a session is to have, as the API takes it.
 */

#ifndef MANIFEST_H
#define MANIFEST_H

#include "cluster.h"
#include "kjson.h"
#include "names.h"

#define WORKSPACE	"workspace"		/* the user's container */
#define GATE		"gate"			/* ours, beside it */
#define PUMP_PROGRAM	"/usr/local/bin/egressctl"	/* in there */
#define BOX_BIN		"/egressd/bin"
#define BOX_PROGRAM	BOX_BIN "/egressd-box"
#define BOX_IMAGE	"localhost/egressd:" EGRESSD_VERSION

#define FENCE		"fence"
#define GATE		"gate"

/* What a session adds to its block. */
struct manifest {
	const struct pod_conf	*mf_conf;
	const char		*mf_id;		/* of the pod */
	const char		*mf_namespace;
	const char		*mf_cwd;
	uint32_t		 mf_owner;
	uint64_t		 mf_deadline_ms;
	const char *const	*mf_variables;	/* NAME=value, to a NULL */
	const char		*mf_sha256;	/* of the gate's, or "" */
	int			 mf_native;	/* sidecars, from 1.29 on */
};

/* NULL, and why, if what is to be merged cannot be. */
cJSON	*manifest_new(const struct manifest *, char *, size_t);

/* Annotations that say when: created-at and heartbeat. */
void	 manifest_date(cJSON *, int64_t);

/*
 * A JSON merge patch (RFC 7386) on a manifest, with members of a list only.
 * The list is no more than a courtesy: what has to hold is looked for in the
 * whole that comes of it.  -1 and why.
 */
int	 manifest_merge(cJSON *, const char *, char *, size_t);

/* A merge's text alone, when it is loaded, for a pod with a gate or not. */
int	 manifest_merge_check(const char *, int, char *, size_t);

/* ---- parts, for manifest.c and manifest_gate.c ---- */

void	 part_pairs(cJSON *, const struct pairs *);
void	 part_image(cJSON *, const struct pod_conf *);
void	 part_command(cJSON *, const char *, const char *const *);
void	 part_mount(cJSON *, const char *, const char *, const char *, int);
void	 part_context(cJSON *, const char *const *);
void	 part_resources(cJSON *, const struct pairs *, const struct pairs *);
cJSON	*part_volume(cJSON *, const char *, const char *);
void	 part_env(cJSON *, const char *, size_t, const char *);

void	 gate_fence(cJSON *, const struct pod_conf *);
void	 gate_container(cJSON *, const struct pod_conf *, int);
void	 gate_trust(cJSON *, const struct pod_conf *);	/* of a workspace */
void	 gate_volumes(cJSON *, const char *);
void	 gate_dns(cJSON *);

/* ---- pods that are there ---- */

enum adopt {
	ADOPT_OURS,
	ADOPT_FOREIGN,		/* without our marks, or another's */
	ADOPT_DIFFERS
};

/* A live pod against the manifest that we would create; why says which. */
enum adopt	 adopt_judge(const cJSON *, const cJSON *, char *, size_t);

#endif /* MANIFEST_H */
