/* SPDX-License-Identifier: ISC */

/*
 * egressctl: the two forms of output.  JSON is what the daemon sent, byte
 * for byte unless it goes to a terminal.
 */

#include <err.h>
#include <unistd.h>

#include "client.h"
#include "egressctl.h"
#include "show.h"

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

const struct output output_text = {
	.ou_answer = text_answer,
	.ou_refusal = text_refusal,
};

const struct output output_json = {
	.ou_answer = json_answer,
	.ou_refusal = json_answer,
};

cJSON *
output_object(void)
{
	cJSON	*json;

	if ((json = cJSON_CreateObject()) == NULL)
		err(EXIT_USAGE, NULL);
	return json;
}

/* Shows, and frees, what a command found out without the daemon. */
void
output_show(const struct invocation *in, cJSON *json)
{
	char	*line;

	if ((line = cJSON_PrintUnformatted(json)) == NULL)
		err(EXIT_USAGE, NULL);
	in->in_output->ou_answer(in->in_command, line, json);
	cJSON_free(line);
	cJSON_Delete(json);
}

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
