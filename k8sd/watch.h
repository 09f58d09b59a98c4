/* SPDX-License-Identifier: ISC */

/*
 * k8sd: one watch for each cluster and namespace, on the pods of this
 * installation, whoever of us wants to know.
 */

#ifndef WATCH_H
#define WATCH_H

#include "cluster.h"
#include "kjson.h"

struct watcher;

enum watch_kind {
	WATCH_IS,		/* so it is now */
	WATCH_GONE,		/* so it was last, or NULL: nobody knows */
	WATCH_REFUSED		/* nothing will be heard; the text says why */
};

typedef void	 watch_heard(void *, enum watch_kind, const cJSON *,
		    const char *);

/*
 * Changes of the pod of this name from now on; how it is at present is for
 * the caller to ask.  There is one watcher for a name.
 */
struct watcher	*watch_begin(struct cluster *, const char *, const char *,
		    watch_heard *, void *);
void	 watch_end(struct watcher *);

#endif /* WATCH_H */
