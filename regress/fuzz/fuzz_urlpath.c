/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for common/urlpath.c.  The input is a path and, after a newline,
 * a pattern.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/urlpath_oracle.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

/* As an origin sees it that decodes n times and then splits. */
static void
require_no_way_up(const char *s)
{
	size_t	 len;

	for (;; s += len + 1) {
		len = strcspn(s, "/");
		REQUIRE(memchr(s, '\\', len) == NULL);
		if (strcspn(s, "/;") <= 2 && strcspn(s, "/;") > 0)
			REQUIRE(s[0] != '.' || (strcspn(s, "/;") == 2 &&
			    s[1] != '.'));
		if (s[len] == '\0')
			return;
	}
}

static void
fuzz_canon(const char *in, size_t len, char out[URLPATH_MAX])
{
	char		 copy[URLPATH_MAX], small[16];
	const char	*why = NULL;
	int		 n;

	n = urlpath_canon(in, len, out, URLPATH_MAX, &why);
	(void)urlpath_canon(in, len, small, sizeof(small), NULL);
	REQUIRE((n == -1) == (why != NULL));
	if (n == -1) {
		REQUIRE(out[0] == '\0');
		return;
	}
	REQUIRE(out[0] == '/' && (out[n] == '?' || out[n] == '\0'));
	REQUIRE(urlpath_canon(out, strlen(out), copy, sizeof(copy), NULL) == n);
	REQUIRE(strcmp(out, copy) == 0);
	copy[n] = '\0';
	REQUIRE(strspn(copy, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
	    "WXYZ0123456789-._~/:@!$&'()*+,;=%") == (size_t)n);
	do {
		require_no_way_up(copy);
	} while (oracle_decode(copy, 0, '*'));
}

/* As the configuration wants them. */
static int
is_pattern(const char *pattern)
{
	char		 canon[URLPATH_MAX];
	const char	*p;

	for (p = pattern; (p = strstr(p, "**")) != NULL; p += 2)
		if (p == pattern || p[-1] != '/' ||
		    (p[2] != '/' && p[2] != '\0'))
			return 0;
	return strchr(pattern, '?') == NULL && strstr(pattern, "//") == NULL &&
	    urlpath_canon(pattern, strlen(pattern), canon, sizeof(canon),
	    NULL) != -1 && strcmp(canon, pattern) == 0;
}

/* No path escapes a pattern for all of them. */
static void
fuzz_match(const char *pattern, char *path)
{
	static struct urlpath_readings	 ur;
	int				 all, some;
	char				 want;

	REQUIRE(urlpath_read(&ur, path) == 0);
	REQUIRE(urlpath_miss("/**", 0, &ur) == NULL);
	all = urlpath_miss(pattern, 0, &ur) == NULL;
	some = urlpath_hit(pattern, 0, &ur) != NULL;
	if (!is_pattern(pattern))
		return;
	REQUIRE(!all || some);
	REQUIRE(!all || urlpath_miss(pattern, 1, &ur) == NULL);
	REQUIRE(!some || urlpath_hit(pattern, 1, &ur) != NULL);
	path[strcspn(path, "?")] = '\0';
	if (strlen(path) > 24 || strlen(pattern) > 24)
		return;
	want = oracle_match(pattern, path, 0);
	REQUIRE(all == (want == 'Y') && some == (want != 'n'));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char	 path[URLPATH_MAX];
	char		*copy, *nl, pattern[128];
	size_t		 len;

	if ((copy = malloc(size + 1)) == NULL)
		return 0;
	memcpy(copy, data, size);
	copy[size] = '\0';
	nl = memchr(copy, '\n', size);
	len = nl == NULL ? size : (size_t)(nl - copy);
	fuzz_canon(copy, len, path);
	if (nl != NULL && path[0] != '\0') {
		strlcpy(pattern, nl + 1, sizeof(pattern));
		fuzz_match(pattern, path);
	}
	free(copy);
	return 0;
}
