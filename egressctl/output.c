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
 * egressctl: the two forms of output.  JSON is what the daemon sent, byte
 * for byte unless it goes to a terminal.
 */

#include <err.h>
#include <unistd.h>

#include "egressctl.h"

static void
text_answer(const struct command *command, const char *line,
    const cJSON *json)
{
	(void)line;
	if (command->co_show != NULL)
		command->co_show(json);
}

static void
text_refusal(const struct command *command, const char *line,
    const cJSON *json)
{
	(void)line;
	explain_refusal(command, json);
}

static void
text_record(const char *line, const cJSON *json)
{
	(void)line;
	record_put(json);
}

static void
json_line(const char *line)
{
	if (isatty(STDOUT_FILENO))
		visible_put_json(stdout, line);
	else
		fputs(line, stdout);
	putchar('\n');
}

static void
json_answer(const struct command *command, const char *line,
    const cJSON *json)
{
	(void)command;
	(void)json;
	json_line(line);
}

static void
json_record(const char *line, const cJSON *json)
{
	(void)json;
	json_line(line);
}

const struct output output_text = {
	.ou_answer = text_answer,
	.ou_refusal = text_refusal,
	.ou_record = text_record,
};

const struct output output_json = {
	.ou_answer = json_answer,
	.ou_refusal = json_answer,
	.ou_record = json_record,
};

/* Output that did not arrive is a failure, whatever the daemon said. */
int
output_finish(int status)
{
	if (fflush(stdout) == EOF || ferror(stdout)) {
		warnx("standard output: write failed");
		return EXIT_NO_DAEMON;
	}
	return status;
}
