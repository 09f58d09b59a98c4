/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: what the control socket knows: which requests the gate has
 * refused, before and after a command, and why the session has ended.  Answers
 * are egressd's and are believed; hosts and reasons in them are the sandbox's
 * and origins' words.
 */

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "mcp.h"
#include "show.h"

#define ID_WAIT		1	/* of the question when the session ends */

static cJSON *
request_of(const char *op)
{
	cJSON	*request = must(cJSON_CreateObject());

	cJSON_AddStringToObject(request, "op", op);
	return request;
}

/* The request, about our session, is used up. */
static int
ask(struct server *sv, cJSON *request, uint32_t id)
{
	int	 rv = -1;

	cJSON_AddNumberToObject(request, "id", id);
	cJSON_AddStringToObject(request, "session_id", sv->sv_session);
	if (sv->sv_control.cl_fd != -1)
		rv = client_send(&sv->sv_control, request, -1);
	cJSON_Delete(request);
	return rv;
}

/* The answer is for the function, or NULL if none comes; not after -1. */
int
control_ask(struct job *job, cJSON *request,
    void (*answer)(struct job *, const cJSON *))
{
	struct server	*sv = job->jo_server;

	if (sv->sv_next <= ID_WAIT)
		sv->sv_next = ID_WAIT + 1;
	if (ask(sv, request, sv->sv_next) == -1)
		return -1;
	job->jo_asked = sv->sv_next++;
	job->jo_answer = answer;
	return 0;
}

static void
answer_refusals(struct job *job, const cJSON *answer)
{
	work_refusals(job, cJSON_IsTrue(json_get(answer, "ok")) ? answer :
	    NULL);
}

/* work_refusals() follows, unless this is -1. */
int
refusals_ask(struct job *job)
{
	return control_ask(job, request_of("session.refusals"),
	    answer_refusals);
}

/* To be told when the session ends. */
void
refusals_watch(struct server *sv)
{
	ask(sv, request_of("session.wait"), ID_WAIT);
}

/* Without a control socket there is nothing to wait for. */
static void
control_lost(struct server *sv)
{
	struct job	*job, *next;

	client_close(&sv->sv_control);
	TAILQ_FOREACH_SAFE(job, &sv->sv_jobs, jo_entry, next)
		if (job->jo_asked != 0)
			job->jo_answer(job, NULL);
}

static void
session_over(struct server *sv, const cJSON *answer)
{
	const char	*reason = json_string(answer, "reason");

	if (!cJSON_IsTrue(json_get(answer, "ok")))
		return;
	sv->sv_over = 1;
	free(sv->sv_reason);
	sv->sv_reason = reason == NULL ? NULL : must(strdup(reason));
}

static void
take_answer(struct server *sv, const cJSON *answer)
{
	const cJSON	*id = json_get(answer, "id");
	struct job	*job;

	if (!cJSON_IsNumber(id))
		return;
	if (id->valuedouble == ID_WAIT) {
		session_over(sv, answer);
		return;
	}
	TAILQ_FOREACH(job, &sv->sv_jobs, jo_entry)
		if (job->jo_asked != 0 && id->valuedouble == job->jo_asked) {
			job->jo_answer(job, answer);
			return;
		}
}

/* Something has come, or the other side has gone. */
void
refusals_read(struct server *sv)
{
	char	*line;
	cJSON	*answer;
	size_t	 len;

	do {
		if (client_line(&sv->sv_control, &line, &len,
		    ANSWER_TIMEOUT_MS) != CLIENT_LINE) {
			control_lost(sv);
			return;
		}
		if ((answer = json_parse(line, len)) != NULL)
			take_answer(sv, answer);
		cJSON_Delete(answer);
	} while (sv->sv_control.cl_fd != -1 &&
	    client_has_line(&sv->sv_control));
}

/* ---- what was refused in between ----------------------------------------- */

void
refusals_take(struct refused *re, const cJSON *answer)
{
	const cJSON	*total = json_get(answer, "total");
	const cJSON	*list = json_get(answer, "refusals");

	if (!cJSON_IsNumber(total) || !cJSON_IsArray(list))
		return;
	re->re_total = total->valuedouble;
	re->re_list = must(cJSON_Duplicate(list, 1));
}

void
refusals_free(struct refused *re)
{
	cJSON_Delete(re->re_list);
}

static int
same_word(const cJSON *a, const cJSON *b, const char *name)
{
	const char	*x = json_string(a, name), *y = json_string(b, name);

	return x != NULL && y != NULL && strcmp(x, y) == 0;
}

static double
count_of(const cJSON *refusal)
{
	const cJSON	*count = json_get(refusal, "count");

	return cJSON_IsNumber(count) ? count->valuedouble : 0;
}

/* How often the same had been refused before. */
static double
count_before(const cJSON *list, const cJSON *refusal)
{
	const cJSON	*old;

	cJSON_ArrayForEach(old, list)
		if (same_word(old, refusal, "host") &&
		    same_word(old, refusal, "reason"))
			return count_of(old);
	return 0;
}

static void
add_refusal(cJSON *list, const cJSON *refusal, double count)
{
	const char	*host = json_string(refusal, "host");
	const char	*reason = json_string(refusal, "reason");
	cJSON		*one = must(cJSON_CreateObject());

	cJSON_AddStringToObject(one, "host", host == NULL ? "" : host);
	cJSON_AddStringToObject(one, "reason", reason == NULL ? "" : reason);
	cJSON_AddNumberToObject(one, "count", count);
	cJSON_AddItemToArray(list, one);
}

/*
 * How many requests were refused during a job, and which of them egressd has
 * kept: it remembers the first few that differ.
 */
double
refusals_between(const struct job *job, cJSON **list)
{
	const struct refused	*old = &job->jo_before, *new = &job->jo_after;
	const cJSON		*refusal;
	double			 n;

	*list = must(cJSON_CreateArray());
	if (old->re_list == NULL || new->re_list == NULL)
		return 0;
	cJSON_ArrayForEach(refusal, new->re_list) {
		n = count_of(refusal) - count_before(old->re_list, refusal);
		if (n > 0)
			add_refusal(*list, refusal, n);
	}
	return new->re_total > old->re_total ?
	    new->re_total - old->re_total : 0;
}
