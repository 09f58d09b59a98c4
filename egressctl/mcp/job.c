/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: a request of the client's, until it is answered or cancelled.
 */

#include <stdlib.h>
#include <string.h>

#include "mcp.h"
#include "show.h"

/* A request of this id; NULL if there are too many. */
struct job *
job_new(struct server *sv, const cJSON *id, struct batch *ba)
{
	struct job	*job;
	size_t		 n = 0;

	TAILQ_FOREACH(job, &sv->sv_jobs, jo_entry)
		n++;
	if (n >= JOBS_MAX)
		return NULL;
	job = must(calloc(1, sizeof(*job)));
	job->jo_server = sv;
	job->jo_batch = ba;
	job->jo_progress = -1;
	job->jo_id = must(cJSON_Duplicate(id, 1));
	TAILQ_INSERT_TAIL(&sv->sv_jobs, job, jo_entry);
	return job;
}

/* A cancelled one has no id any more. */
struct job *
job_find(struct server *sv, const cJSON *id)
{
	struct job	*job;

	TAILQ_FOREACH(job, &sv->sv_jobs, jo_entry)
		if (!job->jo_silent && cJSON_Compare(job->jo_id, id, 1))
			return job;
	return NULL;
}

static void
job_free(struct job *job)
{
	TAILQ_REMOVE(&job->jo_server->sv_jobs, job, jo_entry);
	cJSON_Delete(job->jo_id);
	cJSON_Delete(job->jo_token);
	cJSON_Delete(job->jo_args);
	cJSON_Delete(job->jo_items);
	free(job->jo_ending.en_code);
	free(job->jo_ending.en_message);
	cJSON_Delete(job->jo_ending.en_body);
	collect_free(&job->jo_out);
	collect_free(&job->jo_err);
	refusals_free(&job->jo_before);
	refusals_free(&job->jo_after);
	free(job->jo_in);
	free(job);
}

/* Answers, unless the client does not want to know, and frees the job. */
static void
job_answer(struct job *job, cJSON *answer)
{
	if (job->jo_silent) {
		cJSON_Delete(answer);
		answer = NULL;
	}
	rpc_answer(job->jo_server, job->jo_batch, answer);
	job_free(job);
}

/* What every result has since there is no handshake. */
static void
add_modern(struct job *job, cJSON *result)
{
	cJSON	*meta = cJSON_GetObjectItemCaseSensitive(result, "_meta");

	if (job->jo_version < VERSION_MODERN)
		return;
	cJSON_AddStringToObject(result, "resultType", "complete");
	if (meta == NULL)
		meta = must(cJSON_AddObjectToObject(result, "_meta"));
	cJSON_AddItemToObject(meta, "io.modelcontextprotocol/serverInfo",
	    version_server(job->jo_version));
}

/* Takes the result; the job is over. */
void
job_result(struct job *job, cJSON *result)
{
	cJSON	*answer = must(cJSON_CreateObject());

	add_modern(job, result);
	cJSON_AddStringToObject(answer, "jsonrpc", "2.0");
	cJSON_AddItemToObject(answer, "id", exact_copy(job->jo_id));
	cJSON_AddItemToObject(answer, "result", result);
	job_answer(job, answer);
}

/* Takes the data; the job is over. */
void
job_error(struct job *job, int code, const char *message, cJSON *data)
{
	job_answer(job, rpc_error(job->jo_id, code, message, data));
}

/*
 * The client wants no answer.  A call in the sandbox is over when box says so:
 * until then its place among CALLS_MAX is taken.
 */
void
job_cancel(struct job *job)
{
	job->jo_silent = 1;
	if (job->jo_call != NULL)
		call_cancel(job->jo_call);
	else if (job->jo_asked == 0)
		job_answer(job, NULL);
}

/* The sandbox is gone, and `why' is a text of ours. */
void
jobs_lost(struct server *sv, const char *why)
{
	struct job	*job, *next;

	TAILQ_FOREACH_SAFE(job, &sv->sv_jobs, jo_entry, next) {
		if (job->jo_tool != NULL)
			result_fail(job, "gone", why);
		else if (job->jo_show != NULL)
			job_error(job, RPC_INTERNAL, why, NULL);
		else
			methods_unlisten(job);
	}
}
