/* SPDX-License-Identifier: ISC */

#ifndef TREE_H
#define TREE_H

/*
 * A path below the directory that this program is in, or, without /proc, where
 * it was built; kept for good.
 */
const char	*tree_path(const char *, const char *);

#endif /* TREE_H */
