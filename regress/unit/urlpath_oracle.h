/* SPDX-License-Identifier: ISC */

/*
 * What urlpath.h says of readings and patterns, word by word and slowly: every
 * combination of what an origin may do, and the definition of a match.  For
 * short texts: time is exponential.
 */

#ifndef URLPATH_ORACLE_H
#define URLPATH_ORACLE_H

#include <stdio.h>
#include <string.h>

#include "../../common/urlpath.h"

#define ORACLE_LEN	64

static int
oracle_hex(char c)
{
	static const char	 digits[] = "0123456789abcdef0123456789ABCDEF";
	const char		*p = c == '\0' ? NULL : strchr(digits, c);

	return p == NULL ? -1 : (int)(p - digits) % 16;
}

/* One decoding, in place; returns whether anything changed. */
static int
oracle_decode(char *s, int keep_slash, char star)
{
	char	*out = s;
	int	 changed = 0, c;

	for (; *s != '\0'; s++) {
		if (*s != '%' || oracle_hex(s[1]) == -1 ||
		    oracle_hex(s[2]) == -1) {
			*out++ = *s;
			continue;
		}
		c = oracle_hex(s[1]) * 16 + oracle_hex(s[2]);
		s += 2;
		if (c == '/' && keep_slash) {
			memcpy(out, "%2F", 3);
			out += 3;
		} else {
			*out++ = c == '*' ? star : (char)c;
			changed = 1;
		}
	}
	*out = '\0';
	return changed;
}

static void
oracle_delete(char *s, size_t n)
{
	memmove(s, s + n, strlen(s + n) + 1);
}

static void
oracle_cut(char *s)
{
	char	*p;

	s[strcspn(s, "?#")] = '\0';
	while ((p = strchr(s, ';')) != NULL)
		oracle_delete(p, strcspn(p, "/"));
}

static void
oracle_trim(char *s)
{
	size_t	 i;

	for (i = 0; s[i] != '\0'; i++)
		if (s[i] == '+')
			s[i] = ' ';
	for (i = 0; s[i] != '\0';)
		if ((s[i] == ' ' && (i == 0 || s[i - 1] == '/')) ||
		    ((s[i] == ' ' || s[i] == '.') && (s[i + 1] == '/' ||
		    s[i + 1] == '\0'))) {
			oracle_delete(s + i, 1);
			i = 0;
		} else
			i++;
}

static void
oracle_merge(char *s)
{
	char	*p;

	while ((p = strstr(s, "//")) != NULL)
		oracle_delete(p, 1);
}

static char
oracle_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* The definition of a match; \1 is a star that is no wildcard. */
static int
oracle_naive(const char *p, const char *s, int nocase)
{
	if (strncmp(p, "/**", 3) == 0 && (p[3] == '/' || p[3] == '\0')) {
		if (oracle_naive(p + 3, s, nocase))
			return 1;
		return *s == '/' && oracle_naive(p, s + 1 +
		    strcspn(s + 1, "/"), nocase);
	}
	if (p[0] == '/' && p[1] == '*' && (p[2] == '/' || p[2] == '\0') &&
	    s[0] == '/' && (s[1] == '/' || s[1] == '\0'))
		return 0;
	if (*p == '*')
		return oracle_naive(p + 1, s, nocase) || (*s != '/' &&
		    *s != '\0' && oracle_naive(p, s + 1, nocase));
	if (*s == '\0' || *p == '\0')
		return *s == *p;
	if ((*p == '\1' ? '*' : *p) != *s && (!nocase ||
	    oracle_lower(*p) != oracle_lower(*s)))
		return 0;
	return oracle_naive(p + 1, s + 1, nocase);
}

struct oracle_origin {
	int	 decodes;
	int	 keeps_slash;
	int	 cuts;
	int	 trims;
	int	 merges;
	int	 strips;
};

static void
oracle_read(char *s, const struct oracle_origin *oo, char star)
{
	int	 i;

	for (i = 0; i < oo->decodes; i++)
		oracle_decode(s, oo->keeps_slash, star);
	if (oo->cuts)
		oracle_cut(s);
	if (oo->trims)
		oracle_trim(s);
	if (oo->merges)
		oracle_merge(s);
}

/* Whether it matches for this origin; -1: the pattern is not for it. */
static int
oracle_one(const char *pattern, const char *path, int nocase,
    const struct oracle_origin *oo)
{
	struct oracle_origin	 other = *oo;
	char			 p[ORACLE_LEN], s[ORACLE_LEN];
	size_t			 len;

	snprintf(p, sizeof(p), "%s", pattern);
	other.cuts = other.merges = 0;
	oracle_read(p, &other, '\1');
	if (strstr(p, "//") != NULL ||
	    (oo->cuts && strpbrk(p, ";?#") != NULL))
		return -1;
	snprintf(s, sizeof(s), "%.*s", (int)strcspn(path, "?"), path);
	oracle_read(s, oo, '*');
	if (oo->strips && *p != '\0' && p[strlen(p) - 1] == '/')
		return -1;
	len = strlen(s);
	if (oo->strips && len > 0 && s[len - 1] == '/')
		s[len - 1] = '\0';
	return oracle_naive(p, s, nocase);
}

/* How a pattern fares: Y for all origins, y for some, n for none. */
static char
oracle_match(const char *pattern, const char *path, int nocase)
{
	struct oracle_origin	 oo;
	unsigned int		 bits;
	int			 all = 1, some = 0, one;

	for (bits = 0; bits < 32 * (URLPATH_DEPTH + 1); bits++) {
		oo = (struct oracle_origin){ .keeps_slash = bits & 1,
		    .cuts = bits >> 1 & 1, .trims = bits >> 2 & 1,
		    .merges = bits >> 3 & 1, .strips = bits >> 4 & 1,
		    .decodes = (int)(bits >> 5) };
		if ((one = oracle_one(pattern, path, nocase, &oo)) == -1)
			continue;
		all &= one;
		some |= one;
	}
	return all ? 'Y' : some ? 'y' : 'n';
}

#endif /* URLPATH_ORACLE_H */
