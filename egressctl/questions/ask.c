/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a question that an operator makes up for a decider, to see what
 * it is asked, what it says and how long that takes.
 */

#include <err.h>
#include <stdlib.h>

#include "list.h"
#include "questions.h"
#include "url.h"

static struct {
	const char	*decider;
	const char	*method;
	const char	*url;
	struct list	 messages;	/* -m */
} options;

/* -m, any number of times: what was said in the session. */
static void
question_option(int ch, const char *arg)
{
	(void)ch;
	check_text("message", arg);
	list_add(&options.messages, arg);
}

static void
question_ask(cJSON *request)
{
	struct url	 ur;
	cJSON		*messages;
	size_t		 i;

	if (url_request(options.method, options.url, &ur) == -1)
		exit(EXIT_USAGE);
	if (ur.ur_scheme == URL_TCP)
		errx(EXIT_USAGE, "URL: it must begin with https:// or http://");
	cJSON_AddStringToObject(request, "decider", options.decider);
	cJSON_AddStringToObject(request, "scheme",
	    url_scheme_name(ur.ur_scheme));
	cJSON_AddStringToObject(request, "host", ur.ur_host);
	cJSON_AddNumberToObject(request, "port", ur.ur_port);
	cJSON_AddStringToObject(request, "method", options.method);
	cJSON_AddStringToObject(request, "path", ur.ur_path);
	messages = cJSON_AddArrayToObject(request, "messages");
	for (i = 0; i < options.messages.li_count; i++)
		cJSON_AddItemToArray(messages,
		    cJSON_CreateString(options.messages.li_words[i]));
}

static void
put_line(const char *title, const cJSON *item)
{
	printf("%-10s", title);
	json_put(stdout, item);
	putchar('\n');
}

/* The question as the decider got it, then its decision. */
static void
question_put(const cJSON *answer)
{
	const cJSON	*question = json_get(answer, "question"), *message;

	printf("%-10s", "question");
	request_put_whole(stdout, json_get(question, "request"));
	putchar('\n');
	cJSON_ArrayForEach(message, json_get(question, "recent_messages")) {
		put_line("message", json_get(message, "content"));
	}
	if (json_string(answer, "decision") != NULL)
		put_line("decision", json_get(answer, "decision"));
	else
		put_line("failure", json_get(answer, "failure"));
	put_line("reason", json_get(answer, "reason"));
	printf("%-10s", "time");
	duration_put(stdout, json_get(answer, "latency_ms"));
	putchar('\n');
}

static const struct token t_url[] = {
	{ WORD,	   "URL",	NULL,	  NULL, &options.url, NULL },
	{ 0 }
};

static const struct token t_method[] = {
	{ WORD,	   "method",	t_url,	  NULL, &options.method, NULL },
	{ 0 }
};

static const struct token t_decider[] = {
	{ WORD,	   "decider",	t_method, NULL, &options.decider, NULL },
	{ 0 }
};

const struct command command_ask = {
	.co_name = "ask",
	.co_synopsis = "ask [-m TEXT] DECIDER METHOD URL",
	.co_help = "put a question to a decider, and see",
	.co_tokens = t_decider,
	.co_run = exchange_run,
	.co_op = "decider.ask",
	.co_ask = question_ask,
	.co_show = question_put,
	.co_slow = 1,
	.co_options = "m:",
	.co_option = question_option,
};
