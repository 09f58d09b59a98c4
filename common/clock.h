/* SPDX-License-Identifier: ISC */

/*
 * What time it is.  Deadlines go by the first two, which count from an unknown
 * beginning and are not to be mixed; records bear the third.
 */

#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

uint64_t	 clock_ms(void);
uint64_t	 clock_coarse_ms(void);	/* some milliseconds late, but cheap */
uint64_t	 clock_wall_ns(void);	/* since the epoch */

#endif /* CLOCK_H */
