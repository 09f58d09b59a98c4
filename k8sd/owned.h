/* SPDX-License-Identifier: ISC */

/*
 * k8sd: what a pod with a gate has besides itself: a Secret with what its gate
 * is told, and a NetworkPolicy.  Both have the pod's name, and are owned by it,
 * so that the cluster collects them when it is gone.
 */

#ifndef OWNED_H
#define OWNED_H

#include "api.h"
#include "gate.h"
#include "kjson.h"

enum owned_kind {
	OWNED_SECRET,
	OWNED_NETWORK,
	OWNED_MAX
};

/* The object as the API takes it; the uid is the pod's, or "" for none. */
cJSON	*owned_object(enum owned_kind, const cJSON *, const char *,
	    const struct gate *);
void	 owned_path(enum owned_kind, const char *, const char *, char *,
	    size_t);
const char	*owned_resource(enum owned_kind);

/* Whether the pod of this uid is the owner of a live object. */
int	 owned_is(const cJSON *, const char *);

/*
 * Delete what a pod of this name and uid owned.  Without a done it is nobody's
 * affair: what goes wrong is logged, and the cluster collects it anyway.
 */
typedef void	 owned_done(void *);
struct owned;
struct owned	*owned_drop(struct cluster *, const char *, const char *,
		    const char *, owned_done *, void *);
void	 owned_cancel(struct owned *);

#endif /* OWNED_H */
