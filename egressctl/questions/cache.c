/* SPDX-License-Identifier: ISC */

/*
 * egressctl: answers of deciders that are remembered.  The sandbox chose host,
 * method and path of what was asked about, so they stand last in their line.
 */

#include <string.h>

#include "questions.h"

static struct {
	const char	*session_id;	/* NULL: all */
	const char	*host;		/* NULL: all */
} options;

/* A dash means every session, as no session ID does. */
static void
show_ask(cJSON *request)
{
	if (options.session_id != NULL && strcmp(options.session_id, "-") != 0)
		cJSON_AddStringToObject(request, "session_id",
		    options.session_id);
}

/* An answer for a whole host has neither method nor path. */
static size_t
put_entry(FILE *fp, const cJSON *row)
{
	const cJSON	*reason = json_get(row, "reason");
	size_t		 columns = request_put(fp, row);

	if (!cJSON_IsString(reason) || *reason->valuestring == '\0')
		return columns;
	columns += visible_put(fp, " (", VISIBLE_TEXT);
	columns += json_put(fp, reason);
	return columns + visible_put(fp, ")", VISIBLE_TEXT);
}

static void
show_put(const cJSON *answer)
{
	static const struct column	 columns[] = {
		{ "SESSION",	"session_id",	NULL },
		{ "DECIDER",	"decider",	NULL },
		{ "AGE",	"age_ms",	duration_put },
		{ "DECISION",	"decision",	NULL },
		{ "REQUEST",	NULL,		put_entry },
	};
	const cJSON			*rows = json_get(answer, "cache");

	if (table_is_empty(rows))
		puts("nothing is remembered");
	else
		table_put(rows, columns, sizeof(columns) / sizeof(columns[0]));
	more_put(answer);
}

static void
clear_ask(cJSON *request)
{
	show_ask(request);
	if (options.host != NULL)
		cJSON_AddStringToObject(request, "host", options.host);
}

static void
clear_put(const cJSON *answer)
{
	json_put(stdout, json_get(answer, "cleared"));
	puts(" forgotten");
}

static const struct command command_show = {
	.co_synopsis = "cache show [SESSION]",
	.co_help = "show the answers that are remembered",
	.co_run = exchange_run,
	.co_op = "cache.list",
	.co_ask = show_ask,
	.co_show = show_put,
};

static const struct command command_clear = {
	.co_synopsis = "cache clear [SESSION [HOST]]",
	.co_help = "forget them",
	.co_run = exchange_run,
	.co_op = "cache.clear",
	.co_ask = clear_ask,
	.co_show = clear_put,
};

static const struct token t_host[] = {
	{ .tk_type = END },
	{ WORD,	   "host",	NULL,	  NULL, &options.host, NULL },
	{ 0 }
};

static const struct token t_clear[] = {
	{ .tk_type = END },
	{ SESSION_ID, "session ID", t_host, NULL, &options.session_id, NULL },
	{ 0 }
};

static const struct token t_show[] = {
	{ .tk_type = END },
	{ SESSION_ID, "session ID", NULL, NULL, &options.session_id, NULL },
	{ 0 }
};

static const struct token t_cache[] = {
	{ KEYWORD, "show",	t_show,	  &command_show, NULL, NULL },
	{ KEYWORD, "clear",	t_clear,  &command_clear, NULL, NULL },
	{ 0 }
};

const struct command command_cache = {
	.co_name = "cache",
	.co_tokens = t_cache,
};
