/* SPDX-License-Identifier: ISC */

/*
 * Every program runs this; it trusts the kernel.
 */

#include <time.h>

#include "clock.h"

#ifndef CLOCK_MONOTONIC_COARSE
#define CLOCK_MONOTONIC_COARSE	CLOCK_MONOTONIC
#endif

/* Of clocks that every system has: there is no failing. */
static uint64_t
read_ms(clockid_t id)
{
	struct timespec	 ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

uint64_t
clock_ms(void)
{
	return read_ms(CLOCK_MONOTONIC);
}

uint64_t
clock_coarse_ms(void)
{
	return read_ms(CLOCK_MONOTONIC_COARSE);
}

uint64_t
clock_wall_ns(void)
{
	struct timespec	 ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}
