/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * Fuzz target for common/urlpath.c.  The input is a path and, after a newline,
 * a pattern.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/urlpath.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

static int
hex(char c)
{
	static const char	 digits[] = "0123456789abcdef0123456789ABCDEF";
	const char		*p = c == '\0' ? NULL : strchr(digits, c);

	return p == NULL ? -1 : (int)(p - digits) % 16;
}

/* One decoding, in place; returns whether anything changed. */
static int
decode(char *s)
{
	char	*out = s;
	int	 changed = 0;

	for (; *s != '\0'; s++) {
		if (*s == '%' && hex(s[1]) != -1 && hex(s[2]) != -1) {
			*out++ = (char)(hex(s[1]) * 16 + hex(s[2]));
			s += 2;
			changed = 1;
		} else
			*out++ = *s;
	}
	*out = '\0';
	return changed;
}

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
	} while (decode(copy));
}

/* The definition, exponential and obvious. */
static int
naive(const char *p, const char *s)
{
	if (strncmp(p, "/**", 3) == 0 && (p[3] == '/' || p[3] == '\0')) {
		if (naive(p + 3, s))
			return 1;
		return *s == '/' && naive(p, s + 1 + strcspn(s + 1, "/"));
	}
	if (p[0] == '/' && p[1] == '*' && (p[2] == '/' || p[2] == '\0') &&
	    s[0] == '/' && (s[1] == '/' || s[1] == '\0'))
		return 0;
	if (*p == '*')
		return naive(p + 1, s) || (*s != '/' && *s != '\0' &&
		    naive(p, s + 1));
	if (*p != *s)
		return 0;
	return *p == '\0' || naive(p + 1, s + 1);
}

static void
fuzz_match(const char *pattern, char *path)
{
	int	 all, some;

	all = urlpath_match(pattern, path);
	some = urlpath_may_match(pattern, path);
	REQUIRE(!all || some);
	REQUIRE(urlpath_match("/**", path));
	path[strcspn(path, "?")] = '\0';
	REQUIRE(urlpath_match(pattern, path) == all);
	if (pattern[0] != '/' || strlen(pattern) > 20 || strlen(path) > 20 ||
	    strpbrk(pattern, ";%?") != NULL || strpbrk(path, ";%") != NULL ||
	    strstr(pattern, "//") != NULL || strstr(path, "//") != NULL)
		return;
	REQUIRE(naive(pattern, path) == all && all == some);
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
