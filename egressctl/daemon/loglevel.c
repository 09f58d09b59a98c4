/* SPDX-License-Identifier: ISC */

/*
 * egressctl: how much the daemon logs.
 */

#include "egressctl.h"
#include "show.h"
#include "words.h"

static struct {
	const char	*level;
} options;

#define LEVEL_TOKEN(constant, word)					\
	{ KEYWORD, word, NULL, NULL, &options.level, NULL },

static const struct token t_level[] = {
	LOG_LEVELS(LEVEL_TOKEN)
	{ 0 }
};

static void
log_level_ask(cJSON *request)
{
	cJSON_AddStringToObject(request, "level", options.level);
}

static void
log_level_put(const cJSON *answer)
{
	fputs("log level ", stdout);
	json_put(stdout, json_get(answer, "log_level"));
	putchar('\n');
}

static const struct command command_log_level = {
	.co_synopsis = "log level error|warn|info|debug|trace",
	.co_help = "set how much the daemon logs",
	.co_run = exchange_run,
	.co_op = "log.level",
	.co_ask = log_level_ask,
	.co_show = log_level_put,
};

static const struct token t_log[] = {
	{ KEYWORD, "level",	t_level,  &command_log_level, NULL, NULL },
	{ 0 }
};

const struct command command_log = {
	.co_name = "log",
	.co_tokens = t_log,
};
