/* SPDX-License-Identifier: ISC */


/* Tests of policyd/breaker.c, cache.c and storm.c. */

#include "test.h"

#include "../../policyd/policyd.h"

#define COUNT(x)	(sizeof(x) / sizeof((x)[0]))

static struct subject
subject(const char *host, const char *path)
{
	return (struct subject){ .sj_scheme = URL_HTTPS, .sj_port = 443,
	    .sj_host = host, .sj_method = "GET", .sj_path = path };
}

/* ---- breaker ------------------------------------------------------------- */

static struct breaker	 br;

/* One is asked and fails. */
static int
fail(const char *session, uint64_t now)
{
	return breaker_bad(&br, session, breaker_ask(&br, session), now);
}

/* Until it opens; the time is that of the last failure. */
static void
open_breaker(uint64_t now)
{
	int	 i;

	memset(&br, 0, sizeof(br));
	for (i = 1; i < BREAKER_FAILURES; i++) {
		CHECK_INT(fail("a", now), 0);
		CHECK(breaker_permits(&br, "a", now));
	}
	CHECK_INT(fail("a", now), 1);
	CHECK_INT(breaker_state(&br), BREAKER_OPEN);
}

TEST(breaker_opens)
{
	open_breaker(1000);
	CHECK(!breaker_permits(&br, "a", 1000));
	CHECK(!breaker_permits(&br, "a", 1999));
	CHECK(breaker_permits(&br, "a", 2000));
}

/* Only failures in a row count. */
TEST(breaker_good_counts_anew)
{
	int	 i;

	memset(&br, 0, sizeof(br));
	for (i = 0; i < 10 * BREAKER_FAILURES; i++) {
		if (i % BREAKER_FAILURES == 0)
			breaker_good(&br);
		else
			CHECK_INT(breaker_bad(&br, "a", 0, 1), 0);
	}
}

TEST(breaker_one_probe)
{
	open_breaker(1000);
	CHECK_INT(breaker_ask(&br, "a"), 1);
	CHECK_INT(breaker_state(&br), BREAKER_PROBING);
	CHECK(!breaker_permits(&br, "a", 2000));
	CHECK(!breaker_permits(&br, "a", 1 << 30));
	breaker_unask(&br);
	CHECK(breaker_permits(&br, "a", 2000));
	CHECK_INT(breaker_ask(&br, "a"), 1);
	breaker_good(&br);
	CHECK_INT(breaker_state(&br), BREAKER_CLOSED);
	CHECK(breaker_permits(&br, "a", 2000));
	CHECK_INT(breaker_ask(&br, "a"), 0);
}

TEST(breaker_doubles)
{
	static const uint64_t	 waits[] = { 2000, 4000, 8000, 16000, 32000,
	    60000, 60000 };
	uint64_t		 now = 1000 + BREAKER_WAIT_MS;
	size_t			 i;

	open_breaker(1000);
	for (i = 0; i < COUNT(waits); i++) {
		CHECK(breaker_permits(&br, "a", now));
		CHECK_INT(fail("a", now), 1);
		CHECK(!breaker_permits(&br, "a", now + waits[i] - 1));
		now += waits[i];
	}
	breaker_good(&br);
	open_breaker(now);
	CHECK(breaker_permits(&br, "a", now + BREAKER_WAIT_MS));
}

/* Those asked before it opened tell nothing new when they fail. */
TEST(breaker_stragglers)
{
	open_breaker(1000);
	CHECK_INT(breaker_bad(&br, "a", 0, 1500), 0);
	CHECK(breaker_permits(&br, "a", 2000));
	CHECK_INT(breaker_ask(&br, "a"), 1);
	CHECK_INT(breaker_bad(&br, "a", 0, 2500), 0);
	CHECK_INT(breaker_state(&br), BREAKER_PROBING);
}

/* One session's failures are its own, until another fails as well. */
TEST(breaker_sessions)
{
	open_breaker(1000);
	CHECK(breaker_permits(&br, "b", 1000));
	CHECK_INT(breaker_ask(&br, "b"), 0);
	CHECK_INT(fail("b", 1500), 1);
	CHECK(!breaker_permits(&br, "a", 2499));
	CHECK(!breaker_permits(&br, "b", 2499));
	CHECK(!breaker_permits(&br, "c", 2499));
	CHECK(breaker_permits(&br, "b", 2500));
	CHECK_INT(fail("b", 2500), 1);
	CHECK(!breaker_permits(&br, "b", 4499));
	CHECK(breaker_permits(&br, "a", 2500));
}

TEST(breaker_failures_of_two)
{
	int	 i;

	memset(&br, 0, sizeof(br));
	for (i = 1; i < BREAKER_FAILURES; i++)
		CHECK_INT(fail("a", 1000), 0);
	CHECK_INT(fail("b", 1000), 1);
	CHECK(!breaker_permits(&br, "a", 1999));
	CHECK(!breaker_permits(&br, "b", 1999));
	CHECK(!breaker_permits(&br, "c", 1999));
}

/* A probe that fails when another answer has closed it is one failure. */
TEST(breaker_probe_outlived)
{
	open_breaker(1000);
	CHECK_INT(breaker_ask(&br, "a"), 1);
	breaker_good(&br);
	CHECK_INT(breaker_bad(&br, "a", 1, 2000), 0);
	CHECK_INT(breaker_state(&br), BREAKER_CLOSED);
}

/* ---- cache --------------------------------------------------------------- */

static struct cache	 ca;
static struct rule	 rules[3];
static struct decision	 decision = {
	.dn_allow = 1, .dn_reason = "decider: x"
};

static void
cache_begin(void)
{
	uint32_t	 i;

	cache_clear(&ca, NULL);
	cache_init(&ca);
	memset(rules, 0, sizeof(rules));
	for (i = 0; i < COUNT(rules); i++)
		rules[i].ru_index = i;
	rules[1].ru_cache = CACHE_REQUEST;
	rules[2].ru_cache = CACHE_OFF;
}

static int
known(const struct rule *ru, const struct subject *sj)
{
	struct decision	 dn;

	return cache_get(&ca, ru, sj, 0, &dn);
}

TEST(cache_keys)
{
	struct subject	 a = subject("a.com", "/"), b;

	cache_begin();
	cache_put(&ca, &rules[0], &a, 0, &decision);
	b = a;
	b.sj_method = "POST";
	b.sj_path = "/x";
	b.sj_length = 7;
	CHECK(known(&rules[0], &b));
	CHECK(!known(&rules[1], &a));
	b.sj_port = 444;
	CHECK(!known(&rules[0], &b));
	b = a;
	b.sj_scheme = URL_HTTP;
	CHECK(!known(&rules[0], &b));
	b = a;
	b.sj_host = "b.com";
	CHECK(!known(&rules[0], &b));
	cache_put(&ca, &rules[2], &a, 0, &decision);
	CHECK(!known(&rules[2], &a));
}

TEST(cache_keys_of_requests)
{
	static const struct {
		uint64_t	 length;
		int		 size;
	} lengths[] = {
		{ 0, 0 }, { 1, 1 }, { 1024, 1 }, { 1025, 2 }, { 65536, 2 },
		{ 65537, 3 }, { 1048576, 3 }, { 1048577, 4 },
		{ UINT64_MAX - 1, 4 }, { UINT64_MAX, 5 },
	};
	struct subject	 a = subject("a.com", "/"), b;
	size_t		 i, j;

	b = a;
	for (i = 0; i < COUNT(lengths); i++) {
		cache_begin();
		a.sj_length = lengths[i].length;
		cache_put(&ca, &rules[1], &a, 0, &decision);
		for (j = 0; j < COUNT(lengths); j++) {
			b.sj_length = lengths[j].length;
			CHECK_INT(known(&rules[1], &b),
			    lengths[i].size == lengths[j].size);
		}
	}
	b = a;
	b.sj_path = "/?";
	CHECK(!known(&rules[1], &b));
	b = a;
	b.sj_method = "HEAD";
	CHECK(!known(&rules[1], &b));
}

TEST(cache_ends)
{
	struct subject	 a = subject("a.com", "/");
	struct decision	 dn;

	cache_begin();
	rules[0].ru_ttl_ms = 100;
	cache_put(&ca, &rules[0], &a, 1000, &decision);
	CHECK(cache_get(&ca, &rules[0], &a, 1099, &dn));
	CHECK_STR(dn.dn_reason, "decider: x");
	CHECK(!cache_get(&ca, &rules[0], &a, 1100, &dn));
	CHECK_INT(ca.ca_count, 0);
	rules[0].ru_ttl_ms = 0;
	rules[0].ru_uses = 2;
	cache_put(&ca, &rules[0], &a, 0, &decision);
	CHECK(known(&rules[0], &a));
	CHECK(known(&rules[0], &a));
	CHECK(!known(&rules[0], &a));
	CHECK_INT(ca.ca_bytes, 0);
}

/* The last decision counts. */
TEST(cache_replaces)
{
	struct subject	 a = subject("a.com", "/");
	struct decision	 dn, no = { .dn_reason = "decider: no" };

	cache_begin();
	cache_put(&ca, &rules[0], &a, 0, &decision);
	cache_put(&ca, &rules[0], &a, 0, &no);
	CHECK(cache_get(&ca, &rules[0], &a, 0, &dn));
	CHECK_INT(dn.dn_allow, 0);
	CHECK_INT(ca.ca_count, 1);
}

/* What was used last stays. */
TEST(cache_makes_room)
{
	struct subject	 a;
	char		 host[16];
	int		 i;

	cache_begin();
	for (i = 0; i <= CACHE_ENTRIES; i++) {
		snprintf(host, sizeof(host), "%d.com", i);
		a = subject(host, "/");
		cache_put(&ca, &rules[0], &a, 0, &decision);
		a = subject("0.com", "/");
		CHECK(known(&rules[0], &a));
	}
	CHECK_INT(ca.ca_count, CACHE_ENTRIES);
	a = subject("1.com", "/");
	CHECK(!known(&rules[0], &a));
	a = subject("2.com", "/");
	CHECK(known(&rules[0], &a));
	CHECK_INT(cache_clear(&ca, "2.com"), 1);
	CHECK_INT(cache_clear(&ca, NULL), CACHE_ENTRIES - 1);
}

TEST(cache_bytes)
{
	static char	 path[16000];
	struct subject	 a;
	int		 i;

	cache_begin();
	memset(path, 'x', sizeof(path) - 1);
	for (i = 0; i < 200; i++) {
		a = subject("a.com", path + i);
		cache_put(&ca, &rules[1], &a, 0, &decision);
		CHECK(ca.ca_bytes <= CACHE_BYTES);
	}
	CHECK(ca.ca_count > 50 && ca.ca_count < 70);
	CHECK(known(&rules[1], &a));
}

/* ---- storm --------------------------------------------------------------- */

static struct policy	 policy;
static struct storm	 st;

static void
storm_begin(uint32_t denials, uint64_t ms)
{
	memset(&st, 0, sizeof(st));
	policy.pl_options.po_pause_denials = denials;
	policy.pl_options.po_pause_ms = ms;
}

TEST(storm_pauses)
{
	storm_begin(3, 1600);
	CHECK_INT(storm_denied(&st, &policy, 5000), 0);
	CHECK_INT(storm_denied(&st, &policy, 5500), 0);
	CHECK(!storm_paused(&st, 5500));
	CHECK_INT(storm_denied(&st, &policy, 6000), 1);
	CHECK(storm_paused(&st, 6000));
	/* What is denied meanwhile does not make it longer. */
	CHECK_INT(storm_denied(&st, &policy, 7000), 0);
	CHECK(storm_paused(&st, 7599));
	CHECK(!storm_paused(&st, 7600));
	CHECK_INT(storm_denied(&st, &policy, 7600), 0);
	CHECK_INT(storm_denied(&st, &policy, 7600), 0);
	CHECK_INT(storm_denied(&st, &policy, 7600), 1);
}

/* A window that slides: a storm across any mark is one. */
TEST(storm_slides)
{
	uint64_t	 at;

	for (at = 100000; at < 101600; at += 50) {
		storm_begin(2, 1600);
		CHECK_INT(storm_denied(&st, &policy, at), 0);
		CHECK_INT(storm_denied(&st, &policy, at + 1400), 1);
	}
}

TEST(storm_forgets)
{
	int	 i;

	storm_begin(2, 1600);
	for (i = 1; i < 50; i++)
		CHECK_INT(storm_denied(&st, &policy, i * UINT64_C(1600)), 0);
	storm_begin(2, 1600);
	CHECK_INT(storm_denied(&st, &policy, 1600), 0);
	CHECK_INT(storm_denied(&st, &policy, UINT64_C(1) << 50), 0);
}

TEST(storm_off)
{
	int	 i;

	storm_begin(0, 0);
	for (i = 0; i < 1000; i++)
		CHECK_INT(storm_denied(&st, &policy, 1), 0);
}

TEST_MAIN("decide")
