/* SPDX-License-Identifier: ISC */

/*
 * Host, method and path of a request, for whoever is handed what has to be in
 * canonical form already: two ways to write one thing would be two things.
 */

#ifndef CANON_H
#define CANON_H

/* What is wrong with one of them, or NULL. */
const char	*canon_fault(const char *, const char *, const char *);

#endif /* CANON_H */
