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
 * egressctl: the command line, word by word along the tables of tokens.c, and
 * what is said of a word that is in none of them.
 */

#include <string.h>

#include "egressctl.h"

#define WORD_MAX	64	/* longest word that a typo is sought for */
#define TYPOS_MAX	2

static int
smallest(int a, int b, int c)
{
	int	least = a < b ? a : b;

	return least < c ? least : c;
}

/* Edits between two short words; exchanged neighbours count as one. */
static int
distance(const char *a, const char *b)
{
	int	d[WORD_MAX + 1][WORD_MAX + 1];
	int	alen = (int)strlen(a), blen = (int)strlen(b), i, j, differ;

	for (i = 0; i <= alen; i++)
		d[i][0] = i;
	for (j = 0; j <= blen; j++)
		d[0][j] = j;
	for (i = 1; i <= alen; i++)
		for (j = 1; j <= blen; j++) {
			differ = a[i - 1] != b[j - 1];
			d[i][j] = smallest(d[i - 1][j] + 1, d[i][j - 1] + 1,
			    d[i - 1][j - 1] + differ);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	return d[alen][blen];
}

/* How many typos make `word` of the one that is known; -1: too many. */
int
parser_typos(const char *word, const char *known)
{
	int	d;

	if (strlen(word) > WORD_MAX || strlen(known) > WORD_MAX)
		return -1;
	d = distance(word, known);
	/* Half of a word wrong is another word, not a typo. */
	return d > TYPOS_MAX || 2 * (size_t)d >= strlen(word) ? -1 : d;
}

static const struct token *
nearest(const struct token *table, const char *word)
{
	const struct token	*t, *best = NULL;
	int			 d, least = TYPOS_MAX + 1;

	for (t = table; t->tk_type != LAST; t++) {
		if (t->tk_type != KEYWORD)
			continue;
		d = command_has_name(t->tk_command, word) ? 0 :
		    parser_typos(word, t->tk_word);
		if (d != -1 && d < least) {
			least = d;
			best = t;
		}
	}
	return best;
}

/* Lists the words of a table, all or those that begin like `prefix`. */
static void
put_words(const struct token *table, const char *prefix)
{
	const struct token	*t;
	const char		*comma = "";

	for (t = table; t->tk_type != LAST; t++) {
		if (t->tk_type == END ||
		    strncmp(t->tk_word, prefix, strlen(prefix)) != 0)
			continue;
		fprintf(stderr, "%s%s", comma, t->tk_word);
		comma = ", ";
	}
	fputc('\n', stderr);
}

static void
explain_unknown(const struct parser *pa, const char *word)
{
	const struct token	*near;

	fprintf(stderr, "egressctl: unknown %s \"",
	    pa->pa_after == NULL ? "command" : "argument");
	visible_put(stderr, word, VISIBLE_TEXT);
	if (pa->pa_table == NULL) {
		fprintf(stderr, "\": nothing follows \"%s\"\n", pa->pa_after);
	} else if ((near = nearest(pa->pa_table, word)) != NULL) {
		fprintf(stderr, "\", did you mean \"%s\"?\n", near->tk_word);
	} else {
		fputs("\", known are: ", stderr);
		put_words(pa->pa_table, "");
	}
}

static void
explain_ambiguous(const struct parser *pa, const char *word)
{
	fprintf(stderr, "egressctl: ambiguous %s \"%s\", it may be: ",
	    pa->pa_after == NULL ? "command" : "argument", word);
	put_words(pa->pa_table, word);
}

/* Returns the token for a word, or NULL after saying why there is none. */
static const struct token *
match(const struct parser *pa, const char *word)
{
	const struct token	*t, *found = NULL;
	size_t			 len = strlen(word);
	int			 n = 0;

	for (t = pa->pa_table; t != NULL && t->tk_type != LAST; t++) {
		if (t->tk_type == WORD)
			return t;
		if (t->tk_type != KEYWORD || len == 0 ||
		    strncmp(t->tk_word, word, len) != 0)
			continue;
		if (t->tk_word[len] == '\0')
			return t;
		found = t;
		n++;
	}
	if (n == 1)
		return found;
	if (n > 1)
		explain_ambiguous(pa, word);
	else
		explain_unknown(pa, word);
	return NULL;
}

void
parser_init(struct parser *pa)
{
	pa->pa_table = tokens_main;
	pa->pa_after = NULL;
}

/* Takes one word of the command. */
int
parser_word(struct parser *pa, struct invocation *in, const char *word)
{
	const struct token	*t;

	if ((t = match(pa, word)) == NULL)
		return -1;
	if (t->tk_type == KEYWORD)
		word = t->tk_word;
	if (t->tk_command != NULL)
		in->in_command = t->tk_command;
	if (t->tk_set != NULL && t->tk_set(in, word) == -1)
		return -1;
	pa->pa_table = t->tk_next;
	pa->pa_after = word;
	return 0;
}

/* Returns the command if it may end here, or NULL after saying why not. */
const struct command *
parser_end(const struct parser *pa, const struct invocation *in)
{
	const struct token	*t;

	for (t = pa->pa_table; t != NULL && t->tk_type != END; t++)
		if (t->tk_type == LAST)
			break;
	if (t == NULL || t->tk_type == END)
		return in->in_command;

	if (pa->pa_after == NULL) {
		fputs("egressctl: no command given, known are: ", stderr);
	} else {
		fprintf(stderr, "egressctl: something is missing after "
		    "\"%s\": ", pa->pa_after);
	}
	put_words(pa->pa_table, "");
	if (in->in_command != NULL)
		fprintf(stderr, "usage: egressctl %s\n",
		    in->in_command->co_synopsis);
	return NULL;
}

static void
list_table(FILE *fp, const struct token *table)
{
	const struct token	*t;

	for (t = table; t->tk_type != LAST; t++) {
		if (t->tk_command != NULL)
			fprintf(fp, "  %-37s %s\n", t->tk_command->co_synopsis,
			    t->tk_command->co_help);
		else if (t->tk_next != NULL)
			list_table(fp, t->tk_next);
	}
}

void
parser_list_commands(FILE *fp)
{
	fputs("commands:\n", fp);
	list_table(fp, tokens_main);
	fputs("\nWords may be abbreviated. See egressctl(8).\n", fp);
}
