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
 * egressctl: the command line as tables of tokens.  A table says what may
 * stand next; a token names the table after it.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "egressctl.h"

#define WORD_MAX	64	/* longest word that a typo is sought for */
#define TYPOS_MAX	2

enum token_type {
	LAST = 0,	/* ends a table */
	END,		/* the command may end here */
	KEYWORD,
	WORD		/* any word; tk_word says what it stands for */
};

struct token {
	enum token_type		  tk_type;
	const char		 *tk_word;
	const struct token	 *tk_next;	/* NULL: nothing follows */
	const struct command	 *tk_command;
	int			(*tk_set)(struct invocation *, const char *);
};

static int	set_level(struct invocation *, const char *);
static int	set_session(struct invocation *, const char *);
static int	set_kind(struct invocation *, const char *);
static int	set_policy(struct invocation *, const char *);
static int	set_method(struct invocation *, const char *);
static int	set_url(struct invocation *, const char *);
static int	set_word(struct invocation *, const char *);
static int	set_pair(struct invocation *, const char *);
static int	set_question(struct invocation *, const char *);
static int	set_decision(struct invocation *, const char *);
static int	set_reason(struct invocation *, const char *);
static int	set_sessions(struct invocation *, const char *);
static int	set_host(struct invocation *, const char *);
static int	set_role(struct invocation *, const char *);
static int	set_text(struct invocation *, const char *);

static const struct token t_log[];
static const struct token t_level[];
static const struct token t_events[];
static const struct token t_session[];
static const struct token t_kind[];
static const struct token t_kinds[];
static const struct token t_policy[];
static const struct token t_method[];
static const struct token t_url[];
static const struct token t_file[];
static const struct token t_files[];
static const struct token t_record_file[];
static const struct token t_replay[];
static const struct token t_replay_session[];
static const struct token t_question[];
static const struct token t_decision[];
static const struct token t_reason[];
static const struct token t_cache[];
static const struct token t_cache_show[];
static const struct token t_cache_clear[];
static const struct token t_cache_host[];
static const struct token t_message[];
static const struct token t_role[];
static const struct token t_text[];
static const struct token t_metadata[];
static const struct token t_pair[];
static const struct token t_pairs[];
static const struct token t_cases[];

static const struct token t_main[] = {
	{ KEYWORD, "status",	NULL,	   &command_status,	NULL },
	{ KEYWORD, "reload",	NULL,	   &command_reload,	NULL },
	{ KEYWORD, "log",	t_log,	   NULL,		NULL },
	{ KEYWORD, "events",	t_events,  &command_events,	NULL },
	{ KEYWORD, "pending",	NULL,	   &command_pending,	NULL },
	{ KEYWORD, "answer",	t_question, &command_answer,	NULL },
	{ KEYWORD, "watch",	NULL,	   &command_watch,	NULL },
	{ KEYWORD, "cache",	t_cache,   NULL,		NULL },
	{ KEYWORD, "message",	t_message, &command_message,	NULL },
	{ KEYWORD, "metadata",	t_metadata, &command_metadata,	NULL },
	{ KEYWORD, "run",	NULL,	   &command_run,	NULL },
	{ KEYWORD, "test",	t_policy,  &command_test,	NULL },
	{ KEYWORD, "replay",	t_record_file, &command_replay,	NULL },
	{ KEYWORD, "verify",	t_file,	   &command_verify,	NULL },
	{ KEYWORD, "attack",	t_cases,   &command_attack,	NULL },
	{ KEYWORD, "help",	NULL,	   &command_help,	NULL },
	{ 0 }
};

static const struct token t_log[] = {
	{ KEYWORD, "level",	t_level,   &command_log_level,	NULL },
	{ 0 }
};

static const struct token t_level[] = {
	{ KEYWORD, "error",	NULL,	   NULL,		set_level },
	{ KEYWORD, "warn",	NULL,	   NULL,		set_level },
	{ KEYWORD, "info",	NULL,	   NULL,		set_level },
	{ KEYWORD, "debug",	NULL,	   NULL,		set_level },
	{ 0 }
};

static const struct token t_events[] = {
	{ END,	   NULL,	NULL,	   NULL,		NULL },
	{ KEYWORD, "session",	t_session, NULL,		NULL },
	{ KEYWORD, "kind",	t_kind,	   NULL,		NULL },
	{ 0 }
};

static const struct token t_session[] = {
	{ WORD,	   "session ID", t_events, NULL,		set_session },
	{ 0 }
};

#define KIND_TOKEN(name, word, colour)					\
	{ KEYWORD, name,	t_kinds,   NULL,		set_kind },

static const struct token t_kind[] = {
	RECORD_KINDS(KIND_TOKEN)
	{ 0 }
};

static const struct token t_kinds[] = {
	{ END,	   NULL,	NULL,	   NULL,		NULL },
	{ KEYWORD, "session",	t_session, NULL,		NULL },
	RECORD_KINDS(KIND_TOKEN)
	{ 0 }
};

static const struct token t_policy[] = {
	{ WORD,	   "policy",	t_method,  NULL,		set_policy },
	{ 0 }
};

static const struct token t_method[] = {
	{ WORD,	   "method",	t_url,	   NULL,		set_method },
	{ 0 }
};

static const struct token t_url[] = {
	{ WORD,	   "URL",	NULL,	   NULL,		set_url },
	{ 0 }
};

static const struct token t_file[] = {
	{ WORD,	   "file",	t_files,   NULL,		set_word },
	{ 0 }
};

static const struct token t_files[] = {
	{ END,	   NULL,	NULL,	   NULL,		NULL },
	{ WORD,	   "file",	t_files,   NULL,		set_word },
	{ 0 }
};

static const struct token t_record_file[] = {
	{ WORD,	   "file",	t_replay,  NULL,		set_word },
	{ 0 }
};

static const struct token t_replay[] = {
	{ END,	   NULL,	NULL,	   NULL,		NULL },
	{ KEYWORD, "session",	t_replay_session, NULL,		NULL },
	{ 0 }
};

static const struct token t_replay_session[] = {
	{ WORD,	   "session ID", NULL,	   NULL,		set_session },
	{ 0 }
};

static const struct token t_question[] = {
	{ WORD,	   "question ID", t_decision, NULL,		set_question },
	{ 0 }
};

static const struct token t_decision[] = {
	{ KEYWORD, "allow",	t_reason,  NULL,		set_decision },
	{ KEYWORD, "deny",	t_reason,  NULL,		set_decision },
	{ 0 }
};

static const struct token t_reason[] = {
	{ END,	   NULL,	NULL,	   NULL,		NULL },
	{ WORD,	   "reason",	NULL,	   NULL,		set_reason },
	{ 0 }
};

static const struct token t_cache[] = {
	{ KEYWORD, "show",	t_cache_show, &command_cache_show, NULL },
	{ KEYWORD, "clear",	t_cache_clear, &command_cache_clear, NULL },
	{ 0 }
};

static const struct token t_cache_show[] = {
	{ END,	   NULL,	NULL,	   NULL,		NULL },
	{ WORD,	   "session ID", NULL,	   NULL,		set_sessions },
	{ 0 }
};

static const struct token t_cache_clear[] = {
	{ END,	   NULL,	NULL,	   NULL,		NULL },
	{ WORD,	   "session ID", t_cache_host, NULL,		set_sessions },
	{ 0 }
};

static const struct token t_cache_host[] = {
	{ END,	   NULL,	NULL,	   NULL,		NULL },
	{ WORD,	   "host",	NULL,	   NULL,		set_host },
	{ 0 }
};

static const struct token t_message[] = {
	{ WORD,	   "session ID", t_role,   NULL,		set_session },
	{ 0 }
};

static const struct token t_role[] = {
	{ WORD,	   "role",	t_text,	   NULL,		set_role },
	{ 0 }
};

static const struct token t_text[] = {
	{ WORD,	   "text",	NULL,	   NULL,		set_text },
	{ 0 }
};

static const struct token t_metadata[] = {
	{ WORD,	   "session ID", t_pair,   NULL,		set_session },
	{ 0 }
};

static const struct token t_pair[] = {
	{ WORD,	   "key=value",	t_pairs,   NULL,		set_pair },
	{ 0 }
};

static const struct token t_pairs[] = {
	{ END,	   NULL,	NULL,	   NULL,		NULL },
	{ WORD,	   "key=value",	t_pairs,   NULL,		set_pair },
	{ 0 }
};

static const struct token t_cases[] = {
	{ END,	   NULL,	NULL,	   NULL,		NULL },
	{ WORD,	   "case",	t_cases,   NULL,		set_word },
	{ 0 }
};

static int
set_level(struct invocation *in, const char *word)
{
	in->in_level = word;
	return 0;
}

static int
set_session(struct invocation *in, const char *word)
{
	if (in->in_session != NULL || *word == '\0') {
		fprintf(stderr, "egressctl: %s\n", *word == '\0' ?
		    "the session ID is empty" : "more than one session");
		return -1;
	}
	in->in_session = word;
	return 0;
}

static int
set_kind(struct invocation *in, const char *word)
{
	size_t	i;

	for (i = 0; i < in->in_nkinds; i++)
		if (strcmp(in->in_kinds[i], word) == 0)
			return 0;
	in->in_kinds[in->in_nkinds++] = word;
	return 0;
}

static int
set_policy(struct invocation *in, const char *word)
{
	in->in_policy = word;
	return 0;
}

static int
set_method(struct invocation *in, const char *word)
{
	in->in_method = word;
	return 0;
}

static int
set_url(struct invocation *in, const char *word)
{
	in->in_url = word;
	return 0;
}

static int
set_word(struct invocation *in, const char *word)
{
	in->in_words = reallocarray(in->in_words, in->in_nwords + 1,
	    sizeof(*in->in_words));
	if (in->in_words == NULL)
		err(EXIT_USAGE, NULL);
	in->in_words[in->in_nwords++] = word;
	return 0;
}

static int
set_pair(struct invocation *in, const char *word)
{
	if (*word != '=' && strchr(word, '=') != NULL)
		return set_word(in, word);
	fputs("egressctl: \"", stderr);
	visible_put(stderr, word, VISIBLE_QUOTED);
	fputs("\" is not of the form key=value\n", stderr);
	return -1;
}

static int
set_question(struct invocation *in, const char *word)
{
	in->in_question = word;
	return 0;
}

static int
set_decision(struct invocation *in, const char *word)
{
	in->in_decision = word;
	return 0;
}

static int
set_reason(struct invocation *in, const char *word)
{
	in->in_reason = word;
	return 0;
}

static int
set_sessions(struct invocation *in, const char *word)
{
	return strcmp(word, "-") == 0 ? 0 : set_session(in, word);
}

static int
set_host(struct invocation *in, const char *word)
{
	in->in_host = word;
	return 0;
}

static int
set_role(struct invocation *in, const char *word)
{
	in->in_role = word;
	return 0;
}

static int
set_text(struct invocation *in, const char *word)
{
	in->in_text = word;
	return 0;
}

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
	pa->pa_table = t_main;
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
	list_table(fp, t_main);
	fputs("\nWords may be abbreviated. See egressctl(8).\n", fp);
}
