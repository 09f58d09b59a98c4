/* SPDX-License-Identifier: ISC */

/*
 * egressctl: several sessions started by one command, at the same time: the
 * daemon is asked for more of them as it answers.  Ids are printed as their
 * sandboxes serve; what one of them is waiting for, or why there is none, is
 * said with its id.
 */

#include <err.h>
#include <stdlib.h>

#include "client.h"
#include "egressctl.h"
#include "several.h"
#include "show.h"

#define AT_ONCE		32	/* the daemon takes 64 of a client */

struct several {
	const struct invocation	*sv_in;
	struct client		 sv_client;
	const struct list	*sv_ids;
	several_ask		*sv_ask;
	several_warn		*sv_warn;
	size_t			 sv_asked;
	size_t			 sv_answered;
	int			 sv_status;
};

/* The number of a request is the place of its id in the list, from 1 on. */
static int
ask_next(struct several *sv)
{
	cJSON	*request = exchange_request(sv->sv_in->in_command->co_op);
	int	 rv;

	cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(request, "id"),
	    (double)(sv->sv_asked + 1));
	sv->sv_ask(request, sv->sv_ids->li_words[sv->sv_asked]);
	if (sv->sv_in->in_output == &output_text)
		cJSON_AddTrueToObject(request, "progress");
	rv = client_send(&sv->sv_client, request, -1);
	cJSON_Delete(request);
	sv->sv_asked++;
	return rv;
}

static void
say(const char *id, const char *text)
{
	fputs("egressctl: ", stderr);
	visible_put(stderr, id, VISIBLE_TEXT);
	fputs(": ", stderr);
	visible_put(stderr, text, VISIBLE_TEXT);
	fputc('\n', stderr);
}

/* -1: what came is no answer to anything that was asked. */
static int
take_line(struct several *sv, const char *line, const cJSON *answer)
{
	const struct output	*out = sv->sv_in->in_output;
	const cJSON		*number = json_get(answer, "id");
	const char		*text = json_string(answer, "progress"), *id;

	if (!cJSON_IsNumber(number) || number->valuedouble < 1 ||
	    number->valuedouble > (double)sv->sv_asked)
		return -1;
	id = sv->sv_ids->li_words[(size_t)number->valuedouble - 1];
	if (text != NULL) {
		say(id, text);
		return 0;
	}
	sv->sv_answered++;
	if (json_get(answer, "error") == NULL) {
		out->ou_answer(sv->sv_in->in_command, line, answer);
		sv->sv_warn(answer);
		return 0;
	}
	sv->sv_status = EXIT_REFUSED;
	text = json_string(json_get(answer, "error"), "message");
	if (out == &output_text)
		say(id, text != NULL ? text : "refused");
	else
		out->ou_refusal(sv->sv_in->in_command, line, answer);
	return 0;
}

static int
take_next(struct several *sv)
{
	cJSON	*answer;
	char	*line;
	int	 rv;

	if ((answer = exchange_line(&sv->sv_client, &line)) == NULL)
		return -1;
	if ((rv = take_line(sv, line, answer)) == -1)
		warnx("%s: the answer does not fit the request; do egressd "
		    "and egressctl have the same version?",
		    sv->sv_client.cl_path);
	cJSON_Delete(answer);
	return rv;
}

int
several_run(const struct invocation *in, const struct list *ids,
    several_ask *ask, several_warn *warn_of)
{
	struct several	 sv = { .sv_in = in, .sv_ids = ids, .sv_ask = ask,
	    .sv_warn = warn_of };

	if (client_open(&sv.sv_client, in->in_socket) == -1)
		return EXIT_NO_DAEMON;
	while (sv.sv_answered < ids->li_count)
		if (sv.sv_asked < ids->li_count &&
		    sv.sv_asked - sv.sv_answered < AT_ONCE) {
			if (ask_next(&sv) == -1)
				break;
		} else if (take_next(&sv) == -1)
			break;
	if (sv.sv_answered < ids->li_count)
		sv.sv_status = EXIT_NO_DAEMON;
	client_close(&sv.sv_client);
	return sv.sv_status;
}
