/* SPDX-License-Identifier: ISC */


/*
 * The order in which addresses are tried.
 */

#include "dialer/dialer.h"
#include "test.h"

static struct plan	 plan;

static int
add(const char *text)
{
	struct addr	 ad;

	CHECK_FOR(text, addr_parse(text, &ad) == 0);
	return plan_add(&plan, &ad);
}

static const char *
next(void)
{
	static char	 text[ADDR_STRLEN];
	struct addr	 ad;

	return plan_next(&plan, &ad) ? addr_format(&ad, text, sizeof(text)) :
	    NULL;
}

TEST(empty)
{
	plan_init(&plan);
	CHECK_STR(next(), NULL);
}

TEST(families_take_turns)
{
	plan_init(&plan);
	CHECK_INT(add("11.0.0.1"), 0);
	CHECK_INT(add("11.0.0.2"), 0);
	CHECK_INT(add("2a00::1"), 0);
	CHECK_INT(add("2a00::2"), 0);
	CHECK_STR(next(), "2a00::1");
	CHECK_STR(next(), "11.0.0.1");
	CHECK_STR(next(), "2a00::2");
	CHECK_STR(next(), "11.0.0.2");
	CHECK_STR(next(), NULL);
	CHECK_STR(next(), NULL);
}

TEST(one_family)
{
	plan_init(&plan);
	CHECK_INT(add("11.0.0.2"), 0);
	CHECK_INT(add("11.0.0.1"), 0);
	CHECK_STR(next(), "11.0.0.2");
	CHECK_STR(next(), "11.0.0.1");
	CHECK_STR(next(), NULL);
}

TEST(unequal)
{
	plan_init(&plan);
	CHECK_INT(add("2a00::1"), 0);
	CHECK_INT(add("11.0.0.1"), 0);
	CHECK_INT(add("11.0.0.2"), 0);
	CHECK_INT(add("11.0.0.3"), 0);
	CHECK_STR(next(), "2a00::1");
	CHECK_STR(next(), "11.0.0.1");
	CHECK_STR(next(), "11.0.0.2");
	CHECK_STR(next(), "11.0.0.3");
	CHECK_STR(next(), NULL);
}

/* The other family's answer comes when the first has been used up. */
TEST(late)
{
	plan_init(&plan);
	CHECK_INT(add("11.0.0.1"), 0);
	CHECK_STR(next(), "11.0.0.1");
	CHECK_STR(next(), NULL);
	CHECK_INT(add("2a00::1"), 0);
	CHECK_INT(add("11.0.0.2"), 0);
	CHECK_STR(next(), "2a00::1");
	CHECK_STR(next(), "11.0.0.2");
	CHECK_STR(next(), NULL);
}

TEST(twice)
{
	plan_init(&plan);
	CHECK_INT(add("11.0.0.1"), 0);
	CHECK_INT(add("11.0.0.1"), -1);
	CHECK_STR(next(), "11.0.0.1");
	CHECK_INT(add("11.0.0.1"), -1);
	CHECK_STR(next(), NULL);
}

TEST(enough)
{
	char	 text[32];
	int	 i;

	plan_init(&plan);
	for (i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "11.0.0.%d", i);
		CHECK_INT(add(text), i < PLAN_MAX ? 0 : -1);
	}
	CHECK_INT(add("2a00::1"), 0);
	CHECK_STR(next(), "2a00::1");
	for (i = 0; i < PLAN_MAX; i++)
		CHECK(next() != NULL);
	CHECK_STR(next(), NULL);
}

TEST_MAIN("dialer_plan")
