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
 * The path of a URL and the patterns of policy.  The engine makes every path
 * canonical before it asks for a verdict and sends the canonical form to the
 * origin; policyd matches patterns against it.  The input is a stranger's.
 *
 * The canonical form (RFC 3986, 6.2.2): escapes of unreserved characters are
 * undone, others are in upper case, and bytes that may not stand in a path
 * (such as a quote, a bracket, UTF-8) are escaped.
 *
 * Refused, since origins disagree about what is meant:
 *  - dot segments, in any spelling: after `/', %2F or before `;', with %2E, or
 *    under any number of further escapings (%252E).  Most clients resolve them
 *    before they send; resolving them here would let an origin that sees one
 *    more level than we do walk out of what was allowed;
 *  - the backslash, raw or escaped to any depth: a slash to some, data to
 *    others, and no client sends it;
 *  - control characters, raw or escaped to any depth, an escape that is none,
 *    UTF-8 that is longer than need be (%C0%AE, a dot to some), and `#', which
 *    is the client's own business.
 *
 * Kept, since clients need them: `//' (as in /https://example.com/), %2F (as in
 * /@scope%2Fname), `;' and %25.  Some origins see other segments there than we
 * do.  For them urlpath_match() looks at a path in several readings.
 *
 * The query is kept as it is, but for controls, space and `#', which are
 * refused: no rule looks at it.
 */

#ifndef URLPATH_H
#define URLPATH_H

#include <stddef.h>

/* Room for a canonical path and query with its NUL (RFC 9110, 4.1: 8000). */
#define URLPATH_MAX	8193

/*
 * in is a path and query, `/a/b?c'; an empty path becomes `/'.  Returns the
 * length of the path in out, where the query with its `?' or the NUL follows;
 * or -1 with *why (unless NULL) a constant text and out empty.  The output is
 * its own canonical form.
 */
int	 urlpath_canon(const char *in, size_t len, char *out, size_t outsz,
	    const char **why);

/*
 * In a pattern `*' stands for any part of one segment (a segment that is only
 * `*' is any one that is not empty), and a segment that is `**' for any number
 * of whole segments, also none: with it after `/v1/', /v1, /v1/ and all below
 * match.
 *
 * The path must be canonical and ends at its NUL or `?'.  An origin may decode
 * escapes, also %2F, merge slashes, or cut parameters after `;'.
 * urlpath_match() is 1 if the pattern matches in each of these readings, and is
 * meant for what a match opens (allow); urlpath_may_match() is 1 if it matches
 * in any, and is meant for what a match closes (deny, decide).  Where neither
 * has a %, // or ; the two are the same.
 *
 * Time is at most |pattern| times |path|, whatever the two contain.
 */
int	 urlpath_match(const char *pattern, const char *path);
int	 urlpath_may_match(const char *pattern, const char *path);

#endif /* URLPATH_H */
