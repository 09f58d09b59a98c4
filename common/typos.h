/* SPDX-License-Identifier: ISC */

/*
 * How far two words are apart, for "did you mean".
 */

#ifndef TYPOS_H
#define TYPOS_H

#define TYPOS_WORD_MAX	64	/* longer words are not compared */

/*
 * Letters to insert, delete, replace or swap with a neighbour to get from one
 * word to the other; -1 if one of them is too long.
 */
int	 typos_between(const char *, const char *);

#endif /* TYPOS_H */
