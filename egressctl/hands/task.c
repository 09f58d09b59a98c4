/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a command that makes requests in a sandbox, one after the other,
 * and what is said when one fails.  What box answers is hostile.
 */

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hands.h"
#include "show.h"

/* 0, or -1 after saying why; ta_status has the status for exit(3). */
int
task_open(struct task *ta, const struct invocation *in, const char *session)
{
	memset(ta, 0, sizeof(*ta));
	ta->ta_in = in;
	ta->ta_link = link_open(in, session, &ta->ta_status);
	if (ta->ta_link == NULL)
		return -1;
	ta->ta_status = 0;
	return 0;
}

/* The subject stands before a message that does not begin with it. */
static void
put_message(const struct task *ta, const char *message)
{
	const char	*subject = ta->ta_subject;

	fprintf(stderr, "egressctl: %s: ", ta->ta_in->in_command->co_name);
	if (subject != NULL &&
	    strncmp(message, subject, strlen(subject)) != 0) {
		visible_put(stderr, subject, VISIBLE_TEXT);
		fputs(": ", stderr);
	}
	visible_put(stderr, message, VISIBLE_TEXT);
}

/* Says what is wrong, on our side of the link; returns -1. */
static int
task_fail(struct task *ta, const char *why, int status)
{
	put_message(ta, why);
	fputc('\n', stderr);
	ta->ta_status = status;
	return -1;
}

/* The same for an answer that is not what was asked for: it is the last. */
int
task_broken(struct task *ta, const char *what)
{
	char	text[128];

	snprintf(text, sizeof(text), "the sandbox does not keep to the "
	    "protocol: %s", what);
	link_fail(ta->ta_link, "%s", text);
	return task_fail(ta, text, EXIT_NO_DAEMON);
}

/* Box said no: as text, or as the daemon's own refusals are in JSON. */
static void
task_refused(struct task *ta, const struct outcome *oc)
{
	char	*line;

	if (ta->ta_excused != NULL &&
	    strcmp(ta->ta_excused, oc->oc_code) == 0) {
		ta->ta_was_excused = 1;
		return;
	}
	ta->ta_status = EXIT_REFUSED;
	if (ta->ta_in->in_output == &output_json) {
		if (asprintf(&line, "{\"error\":%s}", oc->oc_text) == -1)
			err(EXIT_NO_DAEMON, NULL);
		ta->ta_in->in_output->ou_refusal(ta->ta_in->in_command, line,
		    oc->oc_body);
		free(line);
	} else {
		put_message(ta, oc->oc_message);
		fprintf(stderr, " (%s)\n", oc->oc_code);
	}
}

/* The op_done of a task's calls. */
void
task_done(struct call *ca, const struct outcome *oc)
{
	struct task	*ta = call_arg(ca);

	ta->ta_call = NULL;
	if (oc->oc_text == NULL)
		task_fail(ta, oc->oc_message, EXIT_NO_DAEMON);
	else if (oc->oc_code != NULL)
		task_refused(ta, oc);
	else if ((ta->ta_result = cJSON_Duplicate(oc->oc_body, 1)) == NULL ||
	    (ta->ta_text = strdup(oc->oc_text)) == NULL)
		err(EXIT_NO_DAEMON, NULL);
}

/* The op_item of those that show each; co_show has the result as well. */
void
task_item(struct call *ca, const cJSON *json, const char *text)
{
	const struct task	*ta = call_arg(ca);

	ta->ta_in->in_output->ou_answer(ta->ta_in->in_command, text, json);
}

const struct call_ops task_ops = { .op_done = task_done };

const struct call_ops task_item_ops = {
	.op_item = task_item,
	.op_done = task_done,
};

/* Of a result: not all that there is was shown. */
void
truncated_put(const cJSON *result)
{
	if (!cJSON_IsTrue(json_get(result, "truncated")))
		return;
	fputs("egressctl: there is more than the first ", stderr);
	json_put(stderr, json_get(result, "count"));
	fputc('\n', stderr);
}

static void
task_forget(struct task *ta)
{
	cJSON_Delete(ta->ta_result);
	free(ta->ta_text);
	ta->ta_result = NULL;
	ta->ta_text = NULL;
	ta->ta_was_excused = 0;
}

/* Sends a request, whose writer it frees: 0, or -1 after saying why not. */
int
task_begin(struct task *ta, struct jsonw *w, const struct call_ops *ops)
{
	const char	*why;

	task_forget(ta);
	ta->ta_call = link_call(ta->ta_link, w, ops, ta, &why);
	return ta->ta_call != NULL ? 0 : task_fail(ta, why, EXIT_NO_DAEMON);
}

/* Waits for the result: 0, or -1 if there is none, which was said. */
int
task_wait(struct task *ta)
{
	while (ta->ta_call != NULL)
		link_wait(ta->ta_link, -1);
	return ta->ta_result != NULL ? 0 : -1;
}

int
task_ask(struct task *ta, struct jsonw *w, const struct call_ops *ops)
{
	return task_begin(ta, w, ops) == 0 ? task_wait(ta) : -1;
}

/*
 * Returns the status for exit(3).  An answer with something behind it that is
 * not in order is no answer.
 */
int
task_close(struct task *ta)
{
	if (ta->ta_status == 0 && link_error(ta->ta_link) != NULL)
		task_fail(ta, link_error(ta->ta_link), EXIT_NO_DAEMON);
	task_forget(ta);
	link_close(ta->ta_link);
	ta->ta_link = NULL;
	return ta->ta_status;
}

/* The same, after the result, if there is one, was shown. */
int
task_show_close(struct task *ta)
{
	if (ta->ta_result != NULL && link_error(ta->ta_link) == NULL)
		ta->ta_in->in_output->ou_answer(ta->ta_in->in_command,
		    ta->ta_text, ta->ta_result);
	return task_close(ta);
}

/* All of a command that is one request without DATA; frees the writer. */
int
task_run(const struct invocation *in, const char *session,
    const char *subject, struct jsonw *w, const struct call_ops *ops)
{
	struct task	ta;

	if (task_open(&ta, in, session) == -1) {
		jsonw_free(w);
		return ta.ta_status;
	}
	ta.ta_subject = subject;
	task_ask(&ta, w, ops);
	return task_show_close(&ta);
}

/* The argument of -m, in octal as chmod(1) has it. */
uint32_t
mode_take(const char *arg)
{
	char		*end;
	unsigned long	 mode;

	mode = strtoul(arg, &end, 8);
	if (*arg < '0' || *arg > '7' || *end != '\0' || mode > 0777)
		errx(EXIT_USAGE, "-m %s: wanted a mode in octal, such as 644 "
		    "or 755", arg);
	return (uint32_t)mode;
}
