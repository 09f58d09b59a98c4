/* SPDX-License-Identifier: ISC */

/*
 * egressctl: lists of words that grow.
 */

#ifndef LIST_H
#define LIST_H

#include <stddef.h>

/* Words that the list owns. */
struct words {
	char		**ws_words;	/* NULL after the last */
	size_t		  ws_count;
};

/* Words of somebody else, such as the command line's. */
struct list {
	const char	**li_words;	/* NULL after the last */
	size_t		  li_count;
};

void	 words_add(struct words *, char *);
int	 words_have(const struct words *, const char *);
void	 words_free(struct words *);
void	 list_add(struct list *, const char *);

#endif /* LIST_H */
