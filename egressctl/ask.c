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
 * egressctl: a question that an operator makes up for a decider, to see what
 * it is asked, what it says and how long that takes.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "egressctl.h"

/* -m, any number of times: what was said in the session. */
void
decider_option(struct invocation *in, int ch, const char *arg)
{
	(void)ch;
	check_text("message", arg);
	in->in_words = reallocarray(in->in_words, in->in_nwords + 1,
	    sizeof(*in->in_words));
	if (in->in_words == NULL)
		err(EXIT_USAGE, NULL);
	in->in_words[in->in_nwords++] = arg;
}

void
decider_ask(const struct invocation *in, cJSON *request)
{
	struct url	 ur;
	cJSON		*messages;
	size_t		 i;

	if (test_request(in, &ur) == -1)
		exit(EXIT_USAGE);
	if (ur.ur_scheme == URL_TCP)
		errx(EXIT_USAGE, "URL: it must begin with https:// or http://");
	cJSON_AddStringToObject(request, "decider", in->in_decider);
	cJSON_AddStringToObject(request, "scheme",
	    url_scheme_name(ur.ur_scheme));
	cJSON_AddStringToObject(request, "host", ur.ur_host);
	cJSON_AddNumberToObject(request, "port", ur.ur_port);
	cJSON_AddStringToObject(request, "method", in->in_method);
	cJSON_AddStringToObject(request, "path", ur.ur_path);
	messages = cJSON_AddArrayToObject(request, "messages");
	for (i = 0; i < in->in_nwords; i++)
		cJSON_AddItemToArray(messages,
		    cJSON_CreateString(in->in_words[i]));
}

static void
put_line(const char *title, const cJSON *item)
{
	printf("%-10s", title);
	json_put(stdout, item);
	putchar('\n');
}

/* What the decider was told, then what it made of it. */
void
decider_put(const cJSON *answer)
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
