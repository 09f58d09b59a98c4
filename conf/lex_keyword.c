/* SPDX-License-Identifier: ISC */

/*
 * The keywords of egressd.conf(5), and the one that a misspelt word was
 * probably meant to be.
 */

#include <stdlib.h>
#include <string.h>

#include "confparse.h"
#include "parse.h"
#include "typos.h"

#define KEYWORD_LEN_MAX		24
#define WORDS_MAX		384

struct keyword {
	char	 kw_name[KEYWORD_LEN_MAX + 1];
	int	 kw_token;
};

/* Keywords that parse.y names; words of options come from their tables. */
static const struct keyword keywords[] = {
	{ "address",		ADDRESS },
	{ "after",		AFTER },
	{ "allow",		ALLOW },
	{ "below",		BELOW },
	{ "ca",			CA },
	{ "capture",		CAPTURE },
	{ "certificate",	CERTIFICATE },
	{ "cluster",		CLUSTER },
	{ "command",		COMMAND },
	{ "control",		CONTROL },
	{ "custom",		CUSTOM },
	{ "decide",		DECIDE },
	{ "decider",		DECIDER },
	{ "default",		DEFAULT },
	{ "denials",		DENIALS },
	{ "deny",		DENY },
	{ "dns",		DNS },
	{ "environment",	ENVIRONMENT },
	{ "exec",		EXEC },
	{ "expose",		EXPOSE },
	{ "field",		FIELD },
	{ "for",		FOR },
	{ "group",		GROUP },
	{ "hash",		HASH },
	{ "header",		HEADER },
	{ "hosts",		HOSTS },
	{ "in",			IN },
	{ "include",		INCLUDE },
	{ "key",		KEY },
	{ "kubernetes",		KUBERNETES },
	{ "limit",		LIMIT },
	{ "listen",		LISTEN },
	{ "local",		LOCAL },
	{ "mode",		MODE },
	{ "mount",		MOUNT },
	{ "narrow",		NARROW },
	{ "nocase",		NOCASE },
	{ "on",			ON },
	{ "optional",		OPTIONAL },
	{ "own-container",	OWNCONTAINER },
	{ "owner",		OWNER },
	{ "pass",		PASS },
	{ "pause",		PAUSE },
	{ "policy",		POLICY },
	{ "port",		PORT },
	{ "query",		QUERY },
	{ "read-only",		READONLY },
	{ "read-write",		READWRITE },
	{ "redact",		REDACT },
	{ "resolver",		RESOLVER },
	{ "sandbox",		SANDBOX },
	{ "session",		SESSION },
	{ "show",		SHOW },
	{ "socket",		SOCKET },
	{ "stale",		STALE },
	{ "tcp",		TCP },
	{ "timeout",		TIMEOUT },
	{ "transparent",	TRANSPARENT },
	{ "uids",		UIDS },
	{ "user",		USER },
	{ "virtual",		VIRTUAL },
};

/*
 * All words that mean something: these, those of the tables, and the kinds of
 * decider, in the order of strcmp(3).  The grammar's own come first among
 * equals, then those of rules.
 */
static struct keyword	 words[WORDS_MAX];
static size_t		 nwords;

static int
word_cmp(const void *a, const void *b)
{
	return strcmp(((const struct keyword *)a)->kw_name,
	    ((const struct keyword *)b)->kw_name);
}

static void
word_add(const char *name, size_t len, int token)
{
	size_t	 i;

	for (i = 0; i < nwords; i++)
		if (strncmp(words[i].kw_name, name, len) == 0 &&
		    words[i].kw_name[len] == '\0')
			return;
	if (nwords == WORDS_MAX || len > KEYWORD_LEN_MAX)
		fatalx("%s: %.*s", __func__, (int)len, name);
	memcpy(words[nwords].kw_name, name, len);
	words[nwords++].kw_token = token;
}

/* The token of an option's last word, by what follows it. */
static int
option_token(const struct option *op, bool rule)
{
	switch (op->op_type) {
	case OPTION_ENUM:
	case OPTION_LOWER:
	case OPTION_MILLI:
		return rule ? C_RAW : O_RAW;
	case OPTION_MS:
		return rule ? C_MS : O_MS;
	case OPTION_BYTES:
		return rule ? C_SIZE : O_SIZE;
	case OPTION_COUNT:
		return rule ? C_COUNT : O_COUNT;
	case OPTION_FLAG:
		return rule ? C_FLAG : O_FLAG;
	case OPTION_PAIRS:
		return O_PAIRS;
	case OPTION_NAMES:
		return O_NAMES;
	case OPTION_CONDITION:
		return op->op_condition == COND_PATH ? C_PATHS :
		    op->op_condition == COND_METADATA ? C_PAIRS : C_WORDS;
	default:
		return rule ? C_TEXT : O_TEXT;
	}
}

/* Whether parse.y reads an option by itself: its first word is a keyword. */
static bool
by_hand(const struct option *op)
{
	size_t	 i, len;

	if (op->op_word == NULL || op->op_type == OPTION_HAND)
		return true;
	if (op->op_word[len = strcspn(op->op_word, " ")] == '\0')
		return false;
	for (i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (strncmp(keywords[i].kw_name, op->op_word, len) == 0 &&
		    keywords[i].kw_name[len] == '\0')
			return true;
	return false;
}

/* The last word of each row, or with prefixes those that come before it. */
static void
words_of(const struct option *table, bool prefixes)
{
	const struct option	*op;
	const char		*p;
	size_t			 len;

	for (op = table; op->op_type != OPTION_END; op++) {
		if (by_hand(op))
			continue;
		for (p = op->op_word; p[len = strcspn(p, " ")] != '\0';
		    p += len + 1)
			if (prefixes)
				word_add(p, len, O_PREFIX);
		if (!prefixes)
			word_add(p, len, option_token(op,
			    table == rule_table));
	}
}

static void
words_make(void)
{
	static const struct option *const	 tables[] = {
		rule_table, policy_table, decider_table, cluster_table,
		sandbox_table, session_table, global_table
	};
	size_t					 i;

	for (i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		word_add(keywords[i].kw_name, strlen(keywords[i].kw_name),
		    keywords[i].kw_token);
	for (i = 0; decider_kind_words[i] != NULL; i++)
		word_add(decider_kind_words[i], strlen(decider_kind_words[i]),
		    KIND);
	for (i = 0; i < 2 * sizeof(tables) / sizeof(tables[0]); i++)
		words_of(tables[i / 2], i % 2);
	qsort(words, nwords, sizeof(words[0]), word_cmp);
}

/* Whether a word is the first, or one after the first, of a row. */
static bool
has_word(const struct option *table, const char *word, bool first)
{
	const struct option	*op;
	const char		*p;
	size_t			 n, len = strlen(word);

	for (op = table; op->op_type != OPTION_END; op++)
		for (p = op->op_word; p != NULL; p = p[n] == ' ' ? p + n + 1 :
		    NULL) {
			n = strcspn(p, " ");
			if (n == len && strncmp(p, word, n) == 0 &&
			    (p == op->op_word) == first)
				return true;
		}
	return false;
}

/* Whether an option of this word can stand in a block; 0 is outside any. */
static bool
belongs(int block, const char *word, bool first)
{
	switch (block) {
	case POLICY:
		return has_word(policy_table, word, first) ||
		    has_word(rule_table, word, first);
	case DECIDER:
		return has_word(decider_table, word, first);
	case CLUSTER:
		return has_word(cluster_table, word, first);
	case SANDBOX:
		return has_word(sandbox_table, word, first);
	case SESSION:
		return has_word(session_table, word, first);
	default:
		return has_word(global_table, word, first);
	}
}

static bool
is_option(int token)
{
	switch (token) {
	case C_COUNT:
	case C_FLAG:
	case C_MS:
	case C_PAIRS:
	case C_PATHS:
	case C_RAW:
	case C_SIZE:
	case C_TEXT:
	case C_WORDS:
	case O_COUNT:
	case O_FLAG:
	case O_MS:
	case O_NAMES:
	case O_PAIRS:
	case O_PREFIX:
	case O_RAW:
	case O_SIZE:
	case O_TEXT:
	case USER:
		return true;
	default:
		return false;
	}
}

static bool
is_prefix(int token)
{
	return token == O_PREFIX || token == KEY || token == CA ||
	    token == CERTIFICATE || token == ON || token == CAPTURE;
}

/* The token of a keyword, or STRING. */
static int
keyword_find(const char *word)
{
	struct keyword		 key = { .kw_token = STRING };
	const struct keyword	*kw;

	if (nwords == 0)
		words_make();
	if (strlcpy(key.kw_name, word, sizeof(key.kw_name)) >=
	    sizeof(key.kw_name))
		return STRING;
	kw = bsearch(&key, words, nwords, sizeof(words[0]), word_cmp);
	return kw == NULL ? STRING : kw->kw_token;
}

/*
 * `limit memory 1G file 1M' of a sandbox, where other options have a file, and
 * `timeout dial 5s', where `dial mark' begins with that word.
 */
static bool
is_limited(int block, int before, const char *word)
{
	if (block == 0 && before == TIMEOUT)
		return true;
	return block == SANDBOX && strcmp(word, "file") == 0 &&
	    (before == LIMIT || before == NUMBER || before == SIZE ||
	    before == DURATION);
}

/* The token of a word in a block, after another one; STRING if it is none. */
int
lex_keyword(int block, int before, const char *word)
{
	int	 token = keyword_find(word);

	if (is_limited(block, before, word))
		return STRING;
	if (is_option(token) && !belongs(block, word, !is_prefix(before)))
		return MISPLACED;
	return token;
}

/* NULL if no keyword is near: a wrong guess is worse than none. */
const char *
lex_nearest(const char *word)
{
	const char	*best = NULL;
	size_t		 i, len = strlen(word);
	int		 d, bound;

	if (len < 2 || len > KEYWORD_LEN_MAX)
		return NULL;
	bound = len < 6 ? 2 : 3;
	for (i = 0; i < nwords; i++) {
		d = typos_between(word, words[i].kw_name);
		if (d != -1 && d < bound) {
			bound = d;
			best = words[i].kw_name;
		}
	}
	return best;
}
