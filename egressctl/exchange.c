/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a question to the daemon and what comes back.
 */

#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "egressctl.h"
#include "reasons.h"
#include "show.h"

#define REQUEST_ID	1

/* A request without fields; the caller adds those of the operation. */
cJSON *
exchange_request(const char *op)
{
	cJSON	*request;

	if ((request = cJSON_CreateObject()) == NULL)
		err(EXIT_NO_DAEMON, NULL);
	cJSON_AddNumberToObject(request, "id", REQUEST_ID);
	cJSON_AddStringToObject(request, "op", op);
	return request;
}

/* An error about a line that was no request has no id. */
static int
answer_is_ours(const cJSON *answer)
{
	const cJSON	*id = json_get(answer, "id");

	if (id == NULL)
		return json_get(answer, "error") != NULL;
	return cJSON_IsNumber(id) && id->valuedouble == REQUEST_ID;
}

static int
answer_is_whole(const cJSON *answer)
{
	const cJSON	*error = json_get(answer, "error");

	if (error == NULL)
		return cJSON_IsTrue(json_get(answer, "ok"));
	return json_string(error, "code") != NULL &&
	    json_string(error, "message") != NULL;
}

/* A line on the way to the answer, for who has asked for such lines. */
static int
show_progress(const cJSON *line)
{
	const char	*text = json_string(line, "progress");

	if (text == NULL || !answer_is_ours(line))
		return 0;
	fputs("egressctl: ", stderr);
	visible_put(stderr, text, VISIBLE_TEXT);
	fputc('\n', stderr);
	return 1;
}

/* The next line; NULL after saying why there is none. */
static cJSON *
receive_line(struct client *cl, char **line, int timeout)
{
	cJSON	*answer;
	size_t	 len;

	switch (client_line(cl, line, &len, timeout)) {
	case CLIENT_LINE:
		cl->cl_answered = 1;
		break;
	case CLIENT_HUNG_UP:
		explain_hung_up(cl);
		return NULL;
	case CLIENT_NO_READER:
	case CLIENT_FAILED:
		return NULL;
	}
	if ((answer = json_parse(*line, len)) == NULL) {
		warnx("%s: the answer is not JSON; is this egressd's socket?",
		    cl->cl_path);
		return NULL;
	}
	return answer;
}

/* Returns the answer, checked, or NULL after saying why there is none. */
static cJSON *
receive_answer(struct client *cl, char **line, int timeout)
{
	cJSON	*answer = receive_line(cl, line, timeout);

	while (answer != NULL && show_progress(answer)) {
		cJSON_Delete(answer);
		answer = receive_line(cl, line, timeout);
	}
	if (answer == NULL)
		return NULL;
	if (!answer_is_ours(answer) || !answer_is_whole(answer)) {
		warnx("%s: the answer does not fit the request; do egressd "
		    "and egressctl have the same version?", cl->cl_path);
		cJSON_Delete(answer);
		return NULL;
	}
	return answer;
}

static cJSON *
exchange_wait(struct client *cl, cJSON *request, int fd, char **line,
    int timeout)
{
	int	 rv = client_send(cl, request, fd);

	cJSON_Delete(request);
	return rv == -1 ? NULL : receive_answer(cl, line, timeout);
}

/* Frees the request.  The answer, or NULL after saying why there is none. */
cJSON *
exchange_ask(struct client *cl, cJSON *request, int fd, char **line)
{
	return exchange_wait(cl, request, fd, line, ANSWER_TIMEOUT_MS);
}

/* The same; the answer may take any time. */
cJSON *
exchange_await(struct client *cl, cJSON *request, char **line)
{
	return exchange_wait(cl, request, -1, line, FOREVER);
}

/* To what was sent before. */
cJSON *
exchange_answer(struct client *cl, char **line)
{
	return receive_answer(cl, line, ANSWER_TIMEOUT_MS);
}

/* Whatever comes next, for who has asked for several things. */
cJSON *
exchange_line(struct client *cl, char **line)
{
	return receive_line(cl, line, FOREVER);
}

/* Asks and shows a refusal; returns the exit status, 0 with an answer. */
static int
exchange(struct client *cl, const struct invocation *in, char **line,
    cJSON **answer)
{
	cJSON	*request;

	/* Made before connecting: co_ask may wait for what people type. */
	request = exchange_request(in->in_command->co_op);
	if (in->in_command->co_ask != NULL)
		in->in_command->co_ask(request);
	if (client_open(cl, in->in_socket) == -1) {
		cJSON_Delete(request);
		return EXIT_NO_DAEMON;
	}
	if ((*answer = exchange_wait(cl, request, -1, line,
	    in->in_command->co_slow ? FOREVER : ANSWER_TIMEOUT_MS)) == NULL)
		return EXIT_NO_DAEMON;
	if (json_get(*answer, "error") == NULL)
		return 0;
	in->in_output->ou_refusal(in->in_command, *line, *answer);
	return EXIT_REFUSED;
}

int
exchange_run(const struct invocation *in)
{
	struct client	 cl;
	cJSON		*answer = NULL;
	char		*line;
	int		 status;

	if ((status = exchange(&cl, in, &line, &answer)) == 0)
		in->in_output->ou_answer(in->in_command, line, answer);
	cJSON_Delete(answer);
	client_close(&cl);
	return status;
}

/* A line that is no record must not end the watch: it may be bait. */
static void
show_record(const struct invocation *in, const char *line, size_t len,
    int *slow)
{
	const char	*reason;
	cJSON		*record;

	if ((record = json_parse(line, len)) == NULL) {
		fputs("egressctl: not a record: ", stderr);
		visible_put(stderr, line, VISIBLE_TEXT);
		fputc('\n', stderr);
		return;
	}
	in->in_output->ou_answer(in->in_command, line, record);
	reason = json_string(record, "reason");
	*slow = reason != NULL && strcmp(reason, REASON_SLOW_FOLLOWER) == 0;
	cJSON_Delete(record);
}

static void
explain_end(int slow)
{
	if (slow)
		warnx("egressd hung up: the records were not read as fast as "
		    "they came");
	else
		explain_stopped();
}

static int
follow(struct client *cl, const struct invocation *in)
{
	char	*line;
	size_t	 len;
	int	 slow = 0;

	for (;;) {
		if (!client_has_line(cl) && fflush(stdout) == EOF)
			return 0;
		switch (client_line(cl, &line, &len, FOREVER)) {
		case CLIENT_LINE:
			show_record(in, line, len, &slow);
			break;
		case CLIENT_HUNG_UP:
			explain_end(slow);
			return EXIT_NO_DAEMON;
		case CLIENT_NO_READER:
			raise(SIGPIPE);
			return 0;
		case CLIENT_FAILED:
			return EXIT_NO_DAEMON;
		}
	}
}

int
exchange_follow(const struct invocation *in)
{
	struct client	 cl;
	cJSON		*answer = NULL;
	char		*line;
	int		 status;

	if ((status = exchange(&cl, in, &line, &answer)) == 0)
		status = follow(&cl, in);
	cJSON_Delete(answer);
	client_close(&cl);
	return status;
}
