/* SPDX-License-Identifier: ISC */

/*
 * k8sd: the repository that a workspace is to hold, cloned inside the pod.
 */

#ifndef SOURCE_H
#define SOURCE_H

#include <stdint.h>

#include "cluster.h"

struct source;

/* Code NULL: it is there; else why not. */
typedef void	 source_done(void *, const char *, const char *);

struct source_wish {
	const char	*sw_namespace;
	const char	*sw_pod;
	const char	*sw_cwd;
	int		 sw_gated;
	const char	*sw_url;
	const char	*sw_ref;	/* "": as the repository says */
	uint64_t	 sw_timeout_ms;
};

struct source	*source_begin(struct cluster *, const struct source_wish *,
		    source_done *, void *);
void	 source_cancel(struct source *);

#endif /* SOURCE_H */
