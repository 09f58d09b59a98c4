/* SPDX-License-Identifier: ISC */

/*
 * egressctl: the command line, word by word along the tables of the commands,
 * and what is said of a word that is in none of them.
 */

#include <string.h>

#include "egressctl.h"
#include "show.h"
#include "typos.h"

#define TYPOS_MAX	2

#define COMMAND_ADDRESS(name)	&command_##name,

static const struct command *const commands[] = {
	COMMANDS(COMMAND_ADDRESS)
};

#define NCOMMANDS	(sizeof(commands) / sizeof(commands[0]))

static struct token	first_words[NCOMMANDS + 1];

/* Edits from a word to a known one, or -1 if too many for a typo. */
int
parser_typos(const char *word, const char *known)
{
	int	d = typos_between(word, known);

	/* If half of its letters differ, it is another word. */
	return d == -1 || d > TYPOS_MAX || 2 * (size_t)d >= strlen(word) ?
	    -1 : d;
}

/* Whether people look for the command under this name; NULL: no command. */
static int
has_other_name(const struct command *command, const char *name)
{
	return command != NULL && command->co_other_name != NULL &&
	    strcmp(command->co_other_name, name) == 0;
}

static const struct token *
nearest(const struct token *table, const char *word)
{
	const struct token	*t, *best = NULL;
	int			 d, least = TYPOS_MAX + 1;

	for (t = table; t->tk_type != LAST; t++) {
		if (t->tk_type != KEYWORD)
			continue;
		d = has_other_name(t->tk_command, word) ? 0 :
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
		if (t->tk_type == WORD || t->tk_type == SESSION_ID)
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
	size_t	i;

	for (i = 0; i < NCOMMANDS; i++)
		first_words[i] = (struct token){
			.tk_type = KEYWORD,
			.tk_word = commands[i]->co_name,
			.tk_next = commands[i]->co_tokens,
			.tk_command = commands[i]->co_run != NULL ?
			    commands[i] : NULL,
		};
	pa->pa_table = first_words;
	pa->pa_after = NULL;
}

static int
check_session_id(const struct token *t, const char *word)
{
	if (*t->tk_value == NULL && *word != '\0')
		return 0;
	fprintf(stderr, "egressctl: %s\n", *word == '\0' ?
	    "the session ID is empty" : "more than one session");
	return -1;
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
	if (t->tk_type == SESSION_ID && check_session_id(t, word) == -1)
		return -1;
	if (t->tk_take != NULL && t->tk_take(word) == -1)
		return -1;
	if (t->tk_value != NULL)
		*t->tk_value = word;
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
	list_table(fp, first_words);
	fputs("\nWords may be abbreviated. See egressctl(8).\n", fp);
}

static int
help_run(const struct invocation *in)
{
	(void)in;
	parser_list_commands(stdout);
	return 0;
}

const struct command command_help = {
	.co_name = "help",
	.co_synopsis = "help",
	.co_help = "list the commands",
	.co_run = help_run,
};
