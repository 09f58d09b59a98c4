/* SPDX-License-Identifier: ISC */

/*
 * egressctl: records as they are made.
 */

#include <string.h>

#include "egressctl.h"
#include "records.h"

static struct {
	const char	*session_id;	/* NULL: all */
	const char	*kinds[RECORD_KIND_MAX];
	size_t		 nkinds;	/* 0: all */
} options;

static const struct token t_events[];
static const struct token t_kinds[];

static int
take_kind(const char *word)
{
	size_t	i;

	for (i = 0; i < options.nkinds; i++)
		if (strcmp(options.kinds[i], word) == 0)
			return 0;
	options.kinds[options.nkinds++] = word;
	return 0;
}

static const struct token t_session[] = {
	{ SESSION_ID, "session ID", t_events, NULL, &options.session_id, NULL },
	{ 0 }
};

#define KIND_TOKEN(constant, word)					\
	{ KEYWORD, word,	t_kinds,  NULL, NULL, take_kind },

static const struct token t_kind[] = {
	RECORD_KINDS(KIND_TOKEN)
	{ 0 }
};

static const struct token t_kinds[] = {
	{ .tk_type = END },
	{ KEYWORD, "session",	t_session, NULL, NULL, NULL },
	RECORD_KINDS(KIND_TOKEN)
	{ 0 }
};

static const struct token t_events[] = {
	{ .tk_type = END },
	{ KEYWORD, "session",	t_session, NULL, NULL, NULL },
	{ KEYWORD, "kind",	t_kind,	  NULL, NULL, NULL },
	{ 0 }
};

static void
events_ask(cJSON *request)
{
	cJSON	*kinds;
	size_t	 i;

	if (options.session_id != NULL)
		cJSON_AddStringToObject(request, "session_id",
		    options.session_id);
	if (options.nkinds == 0)
		return;
	kinds = cJSON_AddArrayToObject(request, "kinds");
	for (i = 0; i < options.nkinds; i++)
		cJSON_AddItemToArray(kinds,
		    cJSON_CreateString(options.kinds[i]));
}

const struct command command_events = {
	.co_name = "events",
	.co_synopsis = "events [session ID] [kind KIND ...]",
	.co_help = "follow the records as they are made",
	.co_tokens = t_events,
	.co_run = exchange_follow,
	.co_op = "events.follow",
	.co_ask = events_ask,
	.co_show = record_put,
};
