/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: the tool "mount", for what lies in directories that the user
 * has named.  A model chooses, and is not believed: a source is compared by its
 * real name, and whoever opens that follows no link.  Mounts in a virtual
 * sandbox are egressd's to make; in a custom one the program may.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "exposure.h"
#include "list.h"
#include "mcp.h"
#include "show.h"

/* Whether egressd can mount something in our session, for a start. */
void
mounts_look(struct server *sv)
{
	cJSON	*answer, *request;
	char	*line;

	if (sv->sv_mounts->li_count == 0 || link_can(sv->sv_link, "mount"))
		return;
	request = exchange_request("session.show");
	cJSON_AddStringToObject(request, "session_id", sv->sv_session);
	answer = exchange_ask(&sv->sv_control, request, -1, &line);
	sv->sv_mountable = cJSON_IsTrue(json_get(answer, "mountable"));
	if (!sv->sv_mountable)
		warnx("--allow-mount: the session %s takes no mounts, so there "
		    "is no tool for it", sv->sv_session);
	cJSON_Delete(answer);
}

/* Whether the tool is there. */
int
mounts_here(struct server *sv)
{
	return sv->sv_mounts->li_count > 0 &&
	    (sv->sv_mountable || link_can(sv->sv_link, "mount"));
}

/* The real name of what is to be mounted, if the user has permitted it. */
static char *
mount_source(struct job *job)
{
	const struct list	*dirs = job->jo_server->sv_mounts;
	char			*source, *real, *dir;
	size_t			 i;
	int			 fits = 0;

	source = text_bytes(json_string(job->jo_args, "source"));
	real = *source == '/' ? realpath(source, NULL) : NULL;
	free(source);
	if (real == NULL)
		return NULL;
	for (i = 0; i < dirs->li_count && !fits; i++) {
		if ((dir = realpath(dirs->li_words[i], NULL)) == NULL)
			continue;
		fits = exposure_beneath(real, dir);
		free(dir);
	}
	if (fits)
		return real;
	free(real);
	return NULL;
}

const char *
mount_prepare(struct job *job)
{
	char	*real = mount_source(job);

	if (real == NULL)
		return "argument source: not there, or not in a directory that "
		    "--allow-mount names";
	cJSON_ReplaceItemInObjectCaseSensitive(job->jo_args, "source",
	    must(cJSON_CreateString(real)));
	free(real);
	return NULL;
}

void
mount_members(struct job *job, struct jsonw *w)
{
	put_str(w, "source", json_string(job->jo_args, "source"));
}

/* ---- by egressd ---------------------------------------------------------- */

static void
mounts_answer(struct job *job, const cJSON *answer)
{
	const cJSON	*error = json_get(answer, "error");
	const char	*code = json_string(error, "code");
	const char	*message = json_string(error, "message");

	job->jo_asked = 0;
	if (job->jo_silent)
		job_cancel(job);
	else if (cJSON_IsTrue(json_get(answer, "ok")))
		job->jo_show(job);
	else if (code == NULL || message == NULL)
		result_fail(job, "failed", "egressd does not answer");
	else
		result_fail(job, code, message);
}

static char *
mounts_target(struct job *job)
{
	const char	*cwd = json_string(link_hello(job->jo_server->sv_link),
			    "cwd");
	char		*given, *target;

	given = text_bytes(json_string(job->jo_args, "path"));
	target = mount_path(cwd == NULL ? "/" : cwd, given);
	free(given);
	return target;
}

void
mounts_call(struct job *job)
{
	cJSON	*request;
	char	*target;

	if ((target = mounts_target(job)) == NULL) {
		result_fail(job, "bad_request", "argument path: too long");
		return;
	}
	request = must(cJSON_CreateObject());
	cJSON_AddStringToObject(request, "op", "session.mount");
	cJSON_AddStringToObject(request, "source",
	    json_string(job->jo_args, "source"));
	cJSON_AddStringToObject(request, "target", target);
	cJSON_AddBoolToObject(request, "write",
	    cJSON_IsTrue(json_get(job->jo_args, "write")));
	free(target);
	if (control_ask(job, request, mounts_answer) == -1)
		mounts_answer(job, NULL);
}
