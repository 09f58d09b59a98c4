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

static int	set_level(struct invocation *, const char *);
static int	set_session(struct invocation *, const char *);
static int	set_kind(struct invocation *, const char *);
static int	set_decider(struct invocation *, const char *);
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
static const struct token t_decider[];
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
static const struct token t_profile[];

const struct token tokens_main[] = {
	{ KEYWORD, "status",	NULL,	   &command_status,	NULL },
	{ KEYWORD, "reload",	NULL,	   &command_reload,	NULL },
	{ KEYWORD, "log",	t_log,	   NULL,		NULL },
	{ KEYWORD, "events",	t_events,  &command_events,	NULL },
	{ KEYWORD, "pending",	NULL,	   &command_pending,	NULL },
	{ KEYWORD, "answer",	t_question, &command_answer,	NULL },
	{ KEYWORD, "watch",	NULL,	   &command_watch,	NULL },
	{ KEYWORD, "ask",	t_decider, &command_ask_decider, NULL },
	{ KEYWORD, "cache",	t_cache,   NULL,		NULL },
	{ KEYWORD, "message",	t_message, &command_message,	NULL },
	{ KEYWORD, "metadata",	t_metadata, &command_metadata,	NULL },
	{ KEYWORD, "run",	NULL,	   &command_run,	NULL },
	{ KEYWORD, "profile",	t_profile, &command_profile,	NULL },
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

static const struct token t_decider[] = {
	{ WORD,	   "decider",	t_method,  NULL,		set_decider },
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

static const struct token t_profile[] = {
	{ END,	   NULL,	NULL,	   NULL,		NULL },
	{ WORD,	   "profile",	NULL,	   NULL,		set_word },
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
set_decider(struct invocation *in, const char *word)
{
	in->in_decider = word;
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
