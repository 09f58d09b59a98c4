/* SPDX-License-Identifier: ISC */

/*
 * egressctl: what deciders are told about a session besides its requests.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "list.h"
#include "questions.h"
#include "utf8.h"

static struct {
	const char	*session_id;
	const char	*role;
	const char	*text;
	struct list	 pairs;		/* of key=value */
} options;

/* Ends the program, and says where, if the text is not UTF-8. */
void
check_text(const char *what, const char *s)
{
	const char	*start = s;
	uint32_t	 code;
	size_t		 len;

	for (; *s != '\0'; s += len)
		if ((len = utf8_decode(s, UTF8_LEN_MAX, &code)) == 0)
			errx(EXIT_USAGE, "%s: not UTF-8 at byte %zu", what,
			    (size_t)(s - start) + 1);
}

/* ---- message ------------------------------------------------------------- */

/* The standard input without its last newline. */
static char *
read_input(void)
{
	char	*text;
	size_t	 len;

	if ((text = malloc(REQUEST_MAX + 1)) == NULL)
		err(EXIT_USAGE, NULL);
	len = fread(text, 1, REQUEST_MAX + 1, stdin);
	if (ferror(stdin))
		err(EXIT_USAGE, "standard input");
	if (len > REQUEST_MAX)
		errx(EXIT_USAGE, "standard input: too long, a request has at "
		    "most %d bytes", REQUEST_MAX);
	if (memchr(text, '\0', len) != NULL)
		errx(EXIT_USAGE, "standard input: there is a NUL in it");
	if (len > 0 && text[len - 1] == '\n')
		len--;
	text[len] = '\0';
	return text;
}

static void
message_ask(cJSON *request)
{
	char	*text = NULL;

	if (strcmp(options.text, "-") == 0)
		text = read_input();
	check_text("role", options.role);
	check_text("text", text != NULL ? text : options.text);
	cJSON_AddStringToObject(request, "session_id", options.session_id);
	cJSON_AddStringToObject(request, "role", options.role);
	cJSON_AddStringToObject(request, "content",
	    text != NULL ? text : options.text);
	free(text);
}

static const struct token t_text[] = {
	{ WORD,	   "text",	NULL,	  NULL, &options.text, NULL },
	{ 0 }
};

static const struct token t_role[] = {
	{ WORD,	   "role",	t_text,	  NULL, &options.role, NULL },
	{ 0 }
};

static const struct token t_message[] = {
	{ SESSION_ID, "session ID", t_role, NULL, &options.session_id, NULL },
	{ 0 }
};

const struct command command_message = {
	.co_name = "message",
	.co_synopsis = "message SESSION ROLE TEXT",
	.co_help = "tell deciders what was said in a session",
	.co_tokens = t_message,
	.co_run = exchange_run,
	.co_op = "session.message",
	.co_ask = message_ask,
};

/* ---- metadata ------------------------------------------------------------ */

static int
take_pair(const char *word)
{
	if (*word != '=' && strchr(word, '=') != NULL) {
		list_add(&options.pairs, word);
		return 0;
	}
	fputs("egressctl: \"", stderr);
	visible_put(stderr, word, VISIBLE_QUOTED);
	fputs("\" is not of the form key=value\n", stderr);
	return -1;
}

/* A key given twice is an error, as it is for the daemon. */
static void
add_pair(cJSON *metadata, const char *pair)
{
	const char	*value = strchr(pair, '=') + 1;
	char		*key;

	check_text("metadata", pair);
	if ((key = strndup(pair, (size_t)(value - pair) - 1)) == NULL)
		err(EXIT_USAGE, NULL);
	if (json_get(metadata, key) != NULL)
		errx(EXIT_USAGE, "metadata: a key is given twice");
	cJSON_AddStringToObject(metadata, key, value);
	free(key);
}

static void
metadata_ask(cJSON *request)
{
	cJSON	*metadata;
	size_t	 i;

	cJSON_AddStringToObject(request, "session_id", options.session_id);
	metadata = cJSON_AddObjectToObject(request, "metadata");
	for (i = 0; i < options.pairs.li_count; i++)
		add_pair(metadata, options.pairs.li_words[i]);
}

static const struct token t_pairs[] = {
	{ .tk_type = END },
	{ WORD,	   "key=value",	t_pairs,  NULL, NULL, take_pair },
	{ 0 }
};

static const struct token t_pair[] = {
	{ WORD,	   "key=value",	t_pairs,  NULL, NULL, take_pair },
	{ 0 }
};

static const struct token t_metadata[] = {
	{ SESSION_ID, "session ID", t_pair, NULL, &options.session_id, NULL },
	{ 0 }
};

const struct command command_metadata = {
	.co_name = "metadata",
	.co_synopsis = "metadata SESSION KEY=VALUE ...",
	.co_help = "tell deciders about a session",
	.co_tokens = t_metadata,
	.co_run = exchange_run,
	.co_op = "session.metadata",
	.co_ask = metadata_ask,
};
