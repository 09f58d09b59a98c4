/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: a job's call in the sandbox: what goes there, what comes back,
 * and what the client is told in between.  What comes back is hostile.
 */

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "mcp.h"
#include "show.h"

#define PROGRESS_LEAST_MS	200	/* between two notifications */
#define PROGRESS_MOST_MS	5000	/* while a command says nothing */

/* Code and message are words of ours; the job is over. */
static void
work_fail(struct job *job, const char *code, const char *message)
{
	if (job->jo_tool != NULL)
		result_fail(job, code, message);
	else
		job_error(job, RPC_INTERNAL, message, NULL);
}

/* ---- progress ------------------------------------------------------------ */

static int
is_command(const struct job *job)
{
	return job->jo_tool != NULL && (job->jo_tool->to_flags & TOOL_WORLD);
}

/*
 * How far a job is: of a command the seconds, of anything else the bytes.  The
 * total is 0 where nobody knows it.
 */
static double
how_far(const struct job *job, double *total, char *text, size_t size)
{
	double	 value;

	if (is_command(job)) {
		value = (double)(clock_ms() - job->jo_started) / 1000;
		*total = (double)args_number(job->jo_args, "timeout_ms",
		    EXEC_DEFAULT_MS) / 1000;
		snprintf(text, size, "%.0f s, %llu bytes of output", value,
		    (unsigned long long)(job->jo_out.co_total +
		    job->jo_err.co_total));
		return value;
	}
	*total = (double)job->jo_in_len;
	value = job->jo_in != NULL ? (double)job->jo_in_sent :
	    (double)job->jo_out.co_total + (double)job->jo_items_bytes;
	snprintf(text, size, "%.0f bytes", value);
	return value;
}

static void
tell_progress(struct job *job, uint64_t least)
{
	cJSON	*notice, *params;
	char	 text[80];
	double	 total, value;

	if (job->jo_token == NULL || job->jo_silent ||
	    clock_ms() - job->jo_told < least)
		return;
	value = how_far(job, &total, text, sizeof(text));
	if (value <= job->jo_progress || stdio_full(job->jo_server))
		return;
	job->jo_progress = value;
	job->jo_told = clock_ms();
	notice = must(cJSON_CreateObject());
	cJSON_AddStringToObject(notice, "jsonrpc", "2.0");
	cJSON_AddStringToObject(notice, "method", "notifications/progress");
	params = must(cJSON_AddObjectToObject(notice, "params"));
	cJSON_AddItemToObject(params, "progressToken",
	    exact_copy(job->jo_token));
	cJSON_AddNumberToObject(params, "progress", value);
	if (total > 0)
		cJSON_AddNumberToObject(params, "total", total);
	if (job->jo_version >= VERSION_2025_03_26)
		cJSON_AddStringToObject(params, "message", text);
	stdio_line(job->jo_server, notice);
	cJSON_Delete(notice);
}

/* ---- what comes ---------------------------------------------------------- */

static void
on_data(struct call *call, const char *data, size_t len)
{
	struct job	*job = call_arg(call);

	collect_add(&job->jo_out, data, len);
	tell_progress(job, PROGRESS_LEAST_MS);
}

static void
on_errors(struct call *call, const char *data, size_t len)
{
	struct job	*job = call_arg(call);

	collect_add(&job->jo_err, data, len);
	tell_progress(job, PROGRESS_LEAST_MS);
}

/* A line of a file is text of its own, not spelt as names are. */
static void
respell_line(cJSON *item, const cJSON *bytes)
{
	const char	*line = json_string(bytes, "line");
	char		*text;

	if (line == NULL)
		return;
	text = text_of(line, strlen(line));
	cJSON_ReplaceItemInObjectCaseSensitive(item, "line",
	    must(cJSON_CreateString(text)));
	free(text);
}

static void
on_item(struct call *call, const cJSON *bytes, const char *text)
{
	struct job	*job = call_arg(call);
	size_t		 len = strlen(text);
	cJSON		*item;

	if (job->jo_full || job->jo_silent)
		return;
	if (job->jo_items_bytes + len > ITEMS_BYTES_MAX) {
		job->jo_full = 1;
		call_cancel(call);
		return;
	}
	job->jo_items_bytes += len;
	if ((item = cJSON_Parse(text)) == NULL)
		return;
	respell_line(item, bytes);
	cJSON_AddItemToArray(job->jo_items, item);
	tell_progress(job, PROGRESS_LEAST_MS);
}

static void
keep_ending(struct job *job, const struct outcome *oc)
{
	struct ending	*en = &job->jo_ending;

	if (oc->oc_body != NULL)
		en->en_body = must(cJSON_Duplicate(oc->oc_body, 1));
	/* What we have cut short ourselves went well, as far as it went. */
	if (oc->oc_code == NULL ||
	    (job->jo_full && strcmp(oc->oc_code, "cancelled") == 0))
		return;
	en->en_code = must(strdup(oc->oc_code));
	en->en_message = must(strdup(oc->oc_message == NULL ? "" :
	    oc->oc_message));
}

static void
on_done(struct call *call, const struct outcome *oc)
{
	struct job	*job = call_arg(call);

	job->jo_call = NULL;
	keep_ending(job, oc);
	if (job->jo_silent) {
		job_cancel(job);
		return;
	}
	/* Why the sandbox is gone, the control socket knows better. */
	if (oc->oc_code != NULL && strcmp(oc->oc_code, "gone") == 0)
		return;
	if (!is_command(job) || refusals_ask(job) == -1)
		job->jo_show(job);
}

const struct call_ops work_plain = {
	.op_done = on_done,
};

const struct call_ops work_bytes = {
	.op_data = on_data,
	.op_done = on_done,
};

const struct call_ops work_streams = {
	.op_data = on_data,
	.op_errors = on_errors,
	.op_done = on_done,
};

const struct call_ops work_items = {
	.op_item = on_item,
	.op_done = on_done,
};

/* ---- what goes ----------------------------------------------------------- */

static void
push_input(struct job *job)
{
	size_t	n = job->jo_in_len - job->jo_in_sent, room;

	if (job->jo_call == NULL || job->jo_in == NULL || job->jo_in_ended)
		return;
	if ((room = call_room(job->jo_call)) < n)
		n = room;
	if (n > 0)
		call_send(job->jo_call, job->jo_in + job->jo_in_sent, n);
	job->jo_in_sent += n;
	if (n > 0 && !is_command(job))
		tell_progress(job, PROGRESS_LEAST_MS);
	if (job->jo_in_sent == job->jo_in_len) {
		call_end(job->jo_call);
		job->jo_in_ended = 1;
	}
}

static unsigned int
calls_now(const struct server *sv)
{
	const struct job	*job;
	unsigned int		 n = 0;

	TAILQ_FOREACH(job, &sv->sv_jobs, jo_entry)
		n += job->jo_call != NULL;
	return n;
}

/* Sends a request, which is used up by it. */
void
work_begin(struct job *job, struct jsonw *w, const struct call_ops *ops)
{
	const char	*why;

	/* jobs_lost() answers, when it is known why. */
	if (link_error(job->jo_server->sv_link) != NULL) {
		jsonw_free(w);
		return;
	}
	if (calls_now(job->jo_server) >= CALLS_MAX) {
		jsonw_free(w);
		work_fail(job, "too_many", "64 calls are under way already; "
		    "wait for one of them");
		return;
	}
	job->jo_started = clock_ms();
	job->jo_told = job->jo_started - PROGRESS_LEAST_MS;
	job->jo_call = link_call(job->jo_server->sv_link, w, ops, job, &why);
	if (job->jo_call == NULL)
		work_fail(job, "failed", why);
	else
		push_input(job);
}

/* The control socket has answered what a job had asked it; NULL: nothing. */
void
work_refusals(struct job *job, const cJSON *answer)
{
	struct jsonw	w;

	job->jo_asked = 0;
	if (job->jo_silent) {
		job_cancel(job);
		return;
	}
	if (job->jo_started != 0) {
		refusals_take(&job->jo_after, answer);
		job->jo_show(job);
		return;
	}
	refusals_take(&job->jo_before, answer);
	call_op(&w, job->jo_tool->to_name);
	args_put(&w, job->jo_tool, job->jo_args);
	if (job->jo_tool->to_members != NULL)
		job->jo_tool->to_members(job, &w);
	work_begin(job, &w, job->jo_tool->to_ops);
}

/* Sends what there is room for now, and a word where all is quiet. */
void
work_turn(struct server *sv)
{
	struct job	*job;

	TAILQ_FOREACH(job, &sv->sv_jobs, jo_entry) {
		push_input(job);
		if (job->jo_call != NULL && is_command(job))
			tell_progress(job, PROGRESS_MOST_MS);
	}
}

/* Whether a turn is due without anything having come. */
int
work_ticks(const struct server *sv)
{
	const struct job	*job;

	TAILQ_FOREACH(job, &sv->sv_jobs, jo_entry)
		if (job->jo_call != NULL && job->jo_token != NULL &&
		    is_command(job))
			return 1;
	return 0;
}
