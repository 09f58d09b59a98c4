/* SPDX-License-Identifier: ISC */

/*
 * Capabilities of Linux, given up for good.  Both return NULL, or what could
 * not be given up, with errno.
 */

#ifndef CAPS_H
#define CAPS_H

const char	*caps_bound(void);	/* of programs that will be run */
const char	*caps_drop(void);	/* of this process */

#endif /* CAPS_H */
