/* SPDX-License-Identifier: ISC */

/*
 * Random paths and patterns, of what readers disagree about, against the slow
 * oracle; and what a path costs that nobody disagrees about.
 */

#include "test.h"

#include "urlpath_oracle.h"

#define ROUNDS	60000

static const char *const path_parts[] = {
	"/", "/", "/", "a", "b", "A", ".", "+", ";", "%20", "%2F", "%252F",
	"%25252f", "%3B", "%3F", "%23", "%252E", "%2A", "*", "%2561", "%25",
	"%25%2532", "%41",
};
static const char *const pattern_parts[] = {
	"/", "/", "/a", "/b", "a", "B", "*", "/*", "/**", ".", "+", ";",
	"%20", "%2F", "%2A", "%252F", "%3F",
};

static struct urlpath_readings	 ur;
static uint64_t			 seed;

static size_t
random_below(size_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(seed >> 33) % n;
}

static void
random_text(char *out, size_t size, const char *const *parts, size_t nparts)
{
	size_t	 n;

	strlcpy(out, "/", size);
	for (n = random_below(7); n > 0; n--)
		strlcat(out, parts[random_below(nparts)], size);
}

/* As the configuration wants patterns. */
static int
random_pattern(char *out, size_t size)
{
	char		 canon[URLPATH_MAX];
	const char	*p;

	random_text(out, size, pattern_parts,
	    sizeof(pattern_parts) / sizeof(pattern_parts[0]));
	for (p = out; (p = strstr(p, "**")) != NULL; p += 2)
		if (p[-1] != '/' || (p[2] != '/' && p[2] != '\0'))
			return 0;
	return strstr(out, "//") == NULL && urlpath_canon(out, strlen(out),
	    canon, sizeof(canon), NULL) != -1;
}

static int
random_path(char *out, size_t size)
{
	char	 raw[ORACLE_LEN];

	random_text(raw, sizeof(raw), path_parts,
	    sizeof(path_parts) / sizeof(path_parts[0]));
	return urlpath_canon(raw, strlen(raw), out, size, NULL) != -1;
}

TEST(oracle)
{
	char	 path[ORACLE_LEN], pattern[ORACLE_LEN];
	char	 text[2 * ORACLE_LEN + 8], want;
	int	 round, nocase, n[128] = { 0 };

	for (round = 0; round < ROUNDS; round++) {
		seed = (uint64_t)round;
		if (!random_pattern(pattern, sizeof(pattern)) ||
		    !random_path(path, sizeof(path)))
			continue;
		nocase = (int)random_below(2);
		want = oracle_match(pattern, path, nocase);
		n[(int)want]++;
		snprintf(text, sizeof(text), "%s %s %d %c", pattern, path,
		    nocase, want);
		CHECK_INT(urlpath_read(&ur, path), 0);
		CHECK_FOR(text, (urlpath_miss(pattern, nocase, &ur) == NULL) ==
		    (want == 'Y'));
		CHECK_FOR(text, (urlpath_hit(pattern, nocase, &ur) != NULL) ==
		    (want != 'n'));
	}
	/* Or the above would say nothing. */
	CHECK(n['Y'] > ROUNDS / 100 && n['y'] > ROUNDS / 100 &&
	    n['n'] > ROUNDS / 100);
}

/* Whoever denies a path denies all that can be made of it. */
TEST(readings_of_a_denied_path)
{
	static struct urlpath_readings	 other;
	char				 path[ORACLE_LEN], pattern[ORACLE_LEN];
	int				 round, i, seen = 0;

	for (round = 0; round < ROUNDS; round++) {
		seed = (uint64_t)round;
		if (!random_path(path, sizeof(path)))
			continue;
		CHECK_INT(urlpath_read(&ur, path), 0);
		for (i = 0; i < ur.ur_n; i++) {
			/* A reading that is a pattern, and canonical. */
			if (strpbrk(ur.ur_text[i], "%*?# ") != NULL ||
			    strstr(ur.ur_text[i], "//") != NULL)
				continue;
			strlcpy(pattern, ur.ur_text[i], sizeof(pattern));
			CHECK_FOR(path, urlpath_hit(pattern, 0, &ur) != NULL);
			CHECK_INT(urlpath_read(&other, pattern), 0);
			CHECK_FOR(path, urlpath_hit(pattern, 0, &other) !=
			    NULL);
			seen += i > 0;
		}
	}
	CHECK(seen > ROUNDS / 10);
}

/* Most paths are read in one way, and copied once. */
TEST(plain_paths_have_one_reading)
{
	static const char *const	 plain[] = {
		"/", "/a", "/a/", "/v1/chat/completions?x=%20;y", "/a.b/c",
		"/@scope/name", "/a//b", "/.well-known/x", "/~a!$&'()*,=:",
	};
	size_t				 i;

	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		CHECK_INT(urlpath_read(&ur, plain[i]), 0);
		CHECK_INT(ur.ur_n, 1);
	}
	CHECK_INT(urlpath_read(&ur, "/a%20b"), 0);
	CHECK_INT(ur.ur_n, 2);
}

TEST_MAIN("urlpath_random")
