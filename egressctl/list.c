/* SPDX-License-Identifier: ISC */

/*
 * egressctl: lists of words that grow.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "egressctl.h"
#include "list.h"

/* Takes ownership of the word, which words_free frees. */
void
words_add(struct words *ws, char *word)
{
	char	**words;

	if (word == NULL || (words = reallocarray(ws->ws_words,
	    ws->ws_count + 2, sizeof(*words))) == NULL)
		err(EXIT_NO_RUN, NULL);
	ws->ws_words = words;
	words[ws->ws_count++] = word;
	words[ws->ws_count] = NULL;
}

int
words_have(const struct words *ws, const char *word)
{
	size_t	 i;

	for (i = 0; i < ws->ws_count; i++)
		if (strcmp(ws->ws_words[i], word) == 0)
			return 1;
	return 0;
}

void
words_free(struct words *ws)
{
	size_t	 i;

	for (i = 0; i < ws->ws_count; i++)
		free(ws->ws_words[i]);
	free(ws->ws_words);
	ws->ws_words = NULL;
	ws->ws_count = 0;
}

void
list_add(struct list *li, const char *word)
{
	const char	**words;

	if ((words = reallocarray(li->li_words, li->li_count + 2,
	    sizeof(*words))) == NULL)
		err(EXIT_NO_RUN, NULL);
	li->li_words = words;
	words[li->li_count++] = word;
	words[li->li_count] = NULL;
}
