/* SPDX-License-Identifier: ISC */

/*
 * egressctl: questions that wait for a person, and an answer to one.
 */

#include "questions.h"

/* The rows of an answer are bounded; `more' counts the others. */
void
more_put(const cJSON *answer)
{
	const cJSON	*more = json_get(answer, "more");

	if (more == NULL)
		return;
	fputs("and ", stdout);
	json_put(stdout, more);
	puts(" more");
}

/* ---- pending ------------------------------------------------------------- */

static void
pending_put(const cJSON *answer)
{
	static const struct column	 columns[] = {
		{ "ID",		"id",		NULL },
		{ "SESSION",	"session_id",	NULL },
		{ "DECIDER",	"decider",	NULL },
		{ "WAITED",	"waiting_ms",	duration_put },
		{ "LEFT",	"left_ms",	duration_put },
		{ "REQUEST",	"request",	request_put },
	};
	const cJSON			*rows = json_get(answer, "pending");

	if (table_is_empty(rows))
		puts("no question is waiting");
	else
		table_put(rows, columns, sizeof(columns) / sizeof(columns[0]));
	more_put(answer);
}

const struct command command_pending = {
	.co_name = "pending",
	.co_synopsis = "pending",
	.co_help = "show the questions that wait for an answer",
	.co_run = exchange_run,
	.co_op = "pending.list",
	.co_show = pending_put,
};

/* ---- answer -------------------------------------------------------------- */

static struct {
	const char	*question_id;
	const char	*decision;
	const char	*reason;	/* NULL: none given */
	int		 remember;
} options;

static const struct token t_reason[] = {
	{ .tk_type = END },
	{ WORD,	   "reason",	NULL,	  NULL, &options.reason, NULL },
	{ 0 }
};

static const struct token t_decision[] = {
	{ KEYWORD, "allow",	t_reason, NULL, &options.decision, NULL },
	{ KEYWORD, "deny",	t_reason, NULL, &options.decision, NULL },
	{ 0 }
};

static const struct token t_question[] = {
	{ WORD, "question ID", t_decision, NULL, &options.question_id, NULL },
	{ 0 }
};

static void
answer_option(int ch, const char *arg)
{
	(void)ch;
	(void)arg;
	options.remember = 1;
}

static void
answer_ask(cJSON *request)
{
	cJSON_AddStringToObject(request, "pending", options.question_id);
	cJSON_AddStringToObject(request, "decision", options.decision);
	if (options.reason != NULL)
		cJSON_AddStringToObject(request, "reason", options.reason);
	if (options.remember)
		cJSON_AddBoolToObject(request, "remember", 1);
}

static void
answer_put(const cJSON *answer)
{
	puts(cJSON_IsTrue(json_get(answer, "remembered")) ?
	    "answered, remembered" : "answered");
}

const struct command command_answer = {
	.co_name = "answer",
	.co_synopsis = "answer [-c] ID allow|deny [REASON]",
	.co_help = "answer one of them",
	.co_tokens = t_question,
	.co_run = exchange_run,
	.co_op = "pending.answer",
	.co_ask = answer_ask,
	.co_show = answer_put,
	.co_options = "c",
	.co_option = answer_option,
};
