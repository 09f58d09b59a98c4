/* SPDX-License-Identifier: ISC */

/* Tests of controld/backoff.c. */

#include "test.h"

#include "../../controld/controld.h"

static struct backoff	 bo;

/* A delay around this one, and the time after it. */
static uint64_t
fails(uint64_t now, int around)
{
	int	 delay = backoff_failed(&bo, now);

	CHECK(delay >= around - around / 4 && delay <= around + around / 4);
	return now + (uint64_t)delay;
}

TEST(later_and_later)
{
	static const int	 delays[] = { 500, 1000, 2000, 4000, 8000,
	    15000, 15000, 15000 };
	uint64_t		 now = 1000;
	size_t			 i;

	backoff_reset(&bo);
	for (i = 0; i < sizeof(delays) / sizeof(delays[0]); i++)
		now = fails(now, delays[i]);
}

TEST(given_up)
{
	uint64_t	 now = 1000;
	int		 delay, n;

	backoff_reset(&bo);
	for (n = 0; n < 1000; n++) {
		if ((delay = backoff_failed(&bo, now)) == -1)
			break;
		now += (uint64_t)delay;
	}
	CHECK(n > 30 && n < 100);
	CHECK(now >= 1000 + BACKOFF_BUDGET_MS &&
	    now <= 1000 + BACKOFF_BUDGET_MS + 2 * BACKOFF_MOST_MS);
	CHECK_INT(backoff_failed(&bo, now + 1), -1);
	backoff_reset(&bo);
	fails(now, BACKOFF_FIRST_MS);
}

/* Only who was up for a while begins anew. */
TEST(up)
{
	uint64_t	 now = 1000;

	backoff_reset(&bo);
	now = fails(now, 500);
	backoff_up(&bo, now);
	now = fails(now + 100, 1000);
	backoff_up(&bo, now);
	fails(now + BACKOFF_WELL_MS, 500);
}

TEST_MAIN("backoff")
