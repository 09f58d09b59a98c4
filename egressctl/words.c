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
 * egressctl: lists of words that grow, and own their words.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "egressctl.h"

/* Takes the word, which free(3) ends; the list is NULL-terminated. */
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
