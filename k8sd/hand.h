/* SPDX-License-Identifier: ISC */

/*
 * k8sd: commands of our own in a pod, one after the other, by hands of their
 * own (egressd-box(5)).  What is run and with which arguments goes through the
 * stream and not into a URL, which API servers write to their logs.
 */

#ifndef HAND_H
#define HAND_H

#include <stdint.h>

#include "cluster.h"

struct hand;

/* Not an exit code: refused or out of time; or the hands themselves ended. */
enum { HAND_REFUSED = -1, HAND_LOST = -2 };

/* Exit code; the end of what it printed, or why it did not run. */
typedef void	 hand_done(void *, int, const char *);

struct hand	*hand_begin(struct cluster *, const char *, const char *,
		    const char *, int, hand_done *, void *);
				/* ...; whether the pod has a gate */
/* Not before the last one is done; hand_done() comes from the event loop. */
void	 hand_run(struct hand *, const char *const *, uint64_t);
void	 hand_end(struct hand *);
/* In place of a greeting, to a client that no hands will serve. */
void	 hand_refuse(int, const char *);

#endif /* HAND_H */
