/* SPDX-License-Identifier: ISC */

/*
 * k8sd: how a pod is, from what the kubelet and the scheduler say of it.
 */

#ifndef POD_STATUS_H
#define POD_STATUS_H

#include "kjson.h"

enum pod_life {
	POD_WAITS,		/* for a node, an image, a container */
	POD_RUNS,		/* the workspace does, and the gate */
	POD_HOPELESS,		/* it waits for what will not come */
	POD_LEAVES,		/* is being deleted */
	POD_HAS_ENDED,		/* Succeeded or Failed */
	POD_IS_ODD		/* a phase that nobody knows */
};

#define STATUS_LEN	900

struct pod_status {
	enum pod_life	 ps_state;
	int		 ps_runs;		/* the workspace, if not all */
	int		 ps_deadline;		/* ended by its deadline */
	uint64_t	 ps_restarts;		/* of the workspace */
	char		 ps_text[STATUS_LEN];	/* what it does, or why not */
	char		 ps_fault[STATUS_LEN];	/* what is wrong, or "" */
};

void	 status_read(const cJSON *, struct pod_status *);

#endif /* POD_STATUS_H */
