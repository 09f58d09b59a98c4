/* SPDX-License-Identifier: ISC */

/*
 * Capabilities of Linux: those that are there, and how to give them up for
 * good.  The latter return NULL, or what could not be given up, with errno.
 */

#ifndef CAPS_H
#define CAPS_H

#include <stdint.h>

uint64_t	 caps_lacking(uint64_t);	/* of these, as 1 << CAP_... */
const char	*caps_bound(void);	/* of programs that will be run */
const char	*caps_drop(void);	/* of this process */

#endif /* CAPS_H */
