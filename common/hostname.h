/* SPDX-License-Identifier: ISC */

/*
 * Host names and host patterns.  Linked by every process that sees a name.
 * Names are normalised here and nowhere else, so that what policy decides,
 * DNS asks, SNI carries and the dialer resolves is the same sequence of bytes.
 * The input is a stranger's; the output is canonical: hostname_canon() of it
 * gives it back unchanged.
 */

#ifndef HOSTNAME_H
#define HOSTNAME_H

#include <stddef.h>

/* Room for any canonical name or pattern with its NUL (RFC 1035, 2.3.4). */
#define HOSTNAME_MAX		254
#define HOSTNAME_LABEL_MAX	63

/*
 * All of these return 0, or -1 with *why (unless why is NULL) pointing to a
 * constant text such as "label longer than 63 bytes"; out is then empty.
 *
 * A literal address is its own host name: IPv4 in dotted decimal, IPv6 without
 * brackets in any spelling that inet_pton(3) takes, written back canonically.
 */
int	 hostname_canon(const char *in, size_t len, char *out, size_t outsz,
	    const char **why);

/* Whether a name is spelt in its canonical form. */
int	 hostname_is_canon(const char *name);

/*
 * A pattern is a name in which `*' stands for any part of one label, possibly
 * none (a label that is only `*' is any one label), and a label that is `**'
 * for one or more whole labels.
 *
 * hostname_pattern_canon() checks the syntax and normalises.
 * hostname_pattern_check() also refuses what is wider than one could mean in
 * an `allow': a wildcard with fewer than two literal labels after it, such as
 * `*.com'.  A sole `**' is not refused: it is an explicit "every name".
 */
int	 hostname_pattern_canon(const char *in, size_t len, char *out,
	    size_t outsz, const char **why);
int	 hostname_pattern_check(const char *pattern, const char **why);

/*
 * Both must be canonical.  Returns 1 on a match.  Wildcards, `**' included,
 * match names and never a literal address: that wants its own rule.
 */
int	 hostname_match(const char *pattern, const char *name);

/* Whether a canonical name is a literal address. */
int	 hostname_is_addr(const char *name);

#endif /* HOSTNAME_H */
