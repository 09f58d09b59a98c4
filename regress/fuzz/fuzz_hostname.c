/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for common/hostname.c.  The input is a name and, after a
 * newline, a pattern.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/addr.h"
#include "../../common/hostname.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

/* What every name that leaves the module looks like. */
static void
require_sane(const char *name, const char *extra)
{
	struct addr	 ad;
	size_t		 label;

	REQUIRE(name[0] != '\0' && strlen(name) < HOSTNAME_MAX);
	REQUIRE(hostname_is_addr(name) == (addr_parse(name, &ad) == 0));
	if (hostname_is_addr(name))
		return;
	for (;; name++) {
		label = strcspn(name, ".");
		REQUIRE(label >= 1 && label <= HOSTNAME_LABEL_MAX);
		REQUIRE(name[0] != '-' && name[label - 1] != '-');
		for (; label > 0; label--, name++)
			REQUIRE(strchr("abcdefghijklmnopqrstuvwxyz0123456789"
			    "-_", *name) != NULL || strchr(extra, *name));
		if (*name == '\0')
			break;
	}
}

static int
fuzz_name(const char *in, size_t len, char *out)
{
	char		 again[HOSTNAME_MAX];
	const char	*why = NULL;

	if (hostname_canon(in, len, out, HOSTNAME_MAX, &why) == -1) {
		REQUIRE(why != NULL && out[0] == '\0');
		return 0;
	}
	REQUIRE(why == NULL);
	require_sane(out, "");
	REQUIRE(hostname_canon(out, strlen(out), again, sizeof(again),
	    NULL) == 0);
	REQUIRE(strcmp(out, again) == 0);
	/* A name without a wildcard is a pattern that matches just itself. */
	REQUIRE(hostname_pattern_check(out, NULL) == 0);
	REQUIRE(hostname_match(out, out) == 1);
	REQUIRE(hostname_match("**", out) == !hostname_is_addr(out));
	return 1;
}

static int
fuzz_pattern(const char *in, size_t len, char *out)
{
	char		 again[HOSTNAME_MAX];
	const char	*why = NULL;

	if (hostname_pattern_canon(in, len, out, HOSTNAME_MAX, &why) == -1) {
		REQUIRE(why != NULL && out[0] == '\0');
		return 0;
	}
	REQUIRE(why == NULL);
	require_sane(out, "*");
	REQUIRE(hostname_pattern_canon(out, strlen(out), again, sizeof(again),
	    NULL) == 0);
	REQUIRE(strcmp(out, again) == 0);
	return 1;
}

/* The last two labels of a name, or NULL. */
static const char *
last_two(const char *name)
{
	const char	*p, *last = strrchr(name, '.');

	if (last == NULL)
		return NULL;
	for (p = last; p > name && p[-1] != '.'; p--)
		;
	return p;
}

/* A pattern that passed the check cannot leave its last two labels. */
static void
fuzz_match(const char *pattern, const char *name)
{
	int	 match = hostname_match(pattern, name);

	if (strchr(pattern, '*') == NULL)
		REQUIRE(match == (strcmp(pattern, name) == 0));
	else if (match)
		REQUIRE(!hostname_is_addr(name));
	if (match && strchr(pattern, '*') != NULL &&
	    strcmp(pattern, "**") != 0 &&
	    hostname_pattern_check(pattern, NULL) == 0)
		REQUIRE(last_two(name) != NULL &&
		    strcmp(last_two(pattern), last_two(name)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char	*in = (const char *)data, *newline;
	char		 name[HOSTNAME_MAX], pattern[HOSTNAME_MAX];
	size_t		 len = size;
	int		 named;

	if (size > 0 && (newline = memchr(in, '\n', size)) != NULL)
		len = (size_t)(newline - in);
	named = fuzz_name(in, len, name);
	if (len == size)
		return 0;
	if (fuzz_pattern(in + len + 1, size - len - 1, pattern) && named)
		fuzz_match(pattern, name);
	return 0;
}
