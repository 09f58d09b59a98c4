/* SPDX-License-Identifier: ISC */

/*
 * The path of a URL and the patterns of policy.  The engine makes every path
 * canonical before it asks for a verdict and sends the canonical form to the
 * origin; policyd matches patterns against it.  The input is a stranger's.
 *
 * The canonical form (RFC 3986, 6.2.2): escapes of unreserved characters are
 * undone, others are in upper case, and bytes that may not stand in a path
 * (such as a quote, a bracket, UTF-8) are escaped.
 *
 * Refused, since origins disagree about what is meant:
 *  - dot segments, in any spelling: after `/', %2F or before `;', %3F, %23,
 *    with %2E or spaces (`.. '), or under further escapings (%252E).  Most
 *    clients resolve them before they send; resolving them here would let an
 *    origin that sees one more level than we do walk out of what was allowed;
 *  - the backslash, raw or escaped to any depth: a slash to some, data to
 *    others, and no client sends it;
 *  - control characters, raw or escaped to any depth, an escape that is none,
 *    UTF-8 that is longer than need be (%C0%AE, a dot to some), and `#', which
 *    is the client's own business;
 *  - more than URLPATH_DEPTH escapings of each other, which nobody needs and
 *    which would be so many readings more.
 *
 * Kept, since clients need them: `//' (as in /https://example.com/), %2F (as in
 * /@scope%2Fname), `;', %25, dots and spaces at an end.  Some origins see other
 * segments there than we do: a path has readings.
 *
 * The query is kept as it is, but for controls, space and `#', which are
 * refused: no rule looks at it.
 */

#ifndef URLPATH_H
#define URLPATH_H

#include <stddef.h>

/* Room for a canonical path and query with its NUL (RFC 9110, 4.1: 8000). */
#define URLPATH_MAX	8193

#define URLPATH_DEPTH	3	/* decodings after which none is left */

/*
 * in is a path and query, `/a/b?c'; an empty path becomes `/'.  Returns the
 * length of the path in out, where the query with its `?' or the NUL follows;
 * or -1 with *why (unless NULL) a constant text and out empty.  The output is
 * its own canonical form.
 */
int	 urlpath_canon(const char *in, size_t len, char *out, size_t outsz,
	    const char **why);

/*
 * Undoes every escape of text once, in place; %2F stays if keep_slash, and %2A
 * becomes star.  Returns the length; what became shorter has a NUL behind it.
 */
size_t	 urlpath_decode(char *text, size_t len, int keep_slash, char star);

/*
 * All that origins may take a path for.  They may decode up to URLPATH_DEPTH
 * times, with %2F a slash or not; cut what follows `;' in a segment, and `?' or
 * `#' once they are decoded; take `+' for a space, and leave out spaces around
 * a segment and dots after it; merge slashes, and ignore one at the end.
 */
#define URLPATH_FORMS		(1 + 2 * URLPATH_DEPTH)
#define URLPATH_WAYS		4
#define URLPATH_READINGS	(URLPATH_FORMS * URLPATH_WAYS)

struct urlpath_readings {
	int	 ur_n;		/* 1 for a path that all read alike */
	int	 ur_at[URLPATH_FORMS][URLPATH_WAYS];
	char	 ur_text[URLPATH_READINGS][URLPATH_MAX];	/* 0: as is */
};

/* The path is canonical, and ends at its NUL or `?'; -1: it is too long. */
int	 urlpath_read(struct urlpath_readings *, const char *path);

/*
 * In a pattern `*' stands for any part of one segment (a segment that is only
 * `*' is any one that is not empty), and a segment that is `**' for any number
 * of whole segments, also none: with it after `/v1/', /v1, /v1/ and all below
 * match.  The pattern is shorter than URLPATH_MAX, and read as the path is; but
 * one with a parameter or a slash at its end is for origins that see these.
 *
 * urlpath_miss() has a reading in which the pattern does not match, and is
 * meant for what a match opens (allow): NULL, or it does not.  urlpath_hit()
 * has a reading in which it matches, or NULL, and is meant for what a match
 * closes (deny, decide).  Both begin with the path as it is.
 *
 * Time is at most |pattern| times |path| for each reading.
 */
const char	*urlpath_miss(const char *pattern, int nocase,
		    const struct urlpath_readings *);
const char	*urlpath_hit(const char *pattern, int nocase,
		    const struct urlpath_readings *);

#endif /* URLPATH_H */
