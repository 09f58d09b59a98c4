/* SPDX-License-Identifier: ISC */

/*
 * egressctl: one operation for several sessions.
 */

#ifndef SEVERAL_H
#define SEVERAL_H

#include <cjson/cJSON.h>

#include "list.h"

struct invocation;

/* Adds to a request what is asked for this id. */
typedef void	 several_ask(cJSON *, const char *);
/* Says what is to be said of an answer besides. */
typedef void	 several_warn(const cJSON *);

int	 several_run(const struct invocation *, const struct list *,
	    several_ask *, several_warn *);

#endif /* SEVERAL_H */
