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

int	 several_run(const struct invocation *, const struct list *,
	    several_ask *);

#endif /* SEVERAL_H */
