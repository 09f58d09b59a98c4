/* SPDX-License-Identifier: ISC */

/*
 * egressctl: something from outside, in a sandbox that runs.  The daemon opens
 * it with our own rights and follows no link, so a name is made whole here and
 * nothing of it is resolved.  What makes a custom sandbox is asked itself.
 */

#include <err.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../hands/hands.h"
#include "client.h"
#include "codes.h"
#include "egressctl.h"
#include "show.h"

static struct {
	const char	*session;
	const char	*source;
	const char	*target;
	int		 write;		/* -w */
} options;

/* The path gets one name longer; -1 if that is too long. */
static int
path_add(char *path, const char *name, size_t len)
{
	size_t	 at = strlen(path);

	if (len == 0 || (len == 1 && *name == '.'))
		return 0;
	if (len == 2 && strncmp(name, "..", 2) == 0) {
		*(at == 0 ? path : strrchr(path, '/')) = '\0';
		return 0;
	}
	if (at + len + 2 > PATH_MAX)
		return -1;
	path[at] = '/';
	memcpy(path + at + 1, name, len);
	path[at + 1 + len] = '\0';
	return 0;
}

static int
path_add_all(char *path, const char *names)
{
	size_t	 len;

	for (; *names != '\0'; names += len + (names[len] == '/')) {
		len = strcspn(names, "/");
		if (path_add(path, names, len) == -1)
			return -1;
	}
	return 0;
}

/*
 * Absolute and without detours, by the names alone; to be freed.  What is
 * relative is so to base.  NULL if it is too long.
 */
char *
mount_path(const char *base, const char *given)
{
	char	 path[PATH_MAX] = "", *whole;

	if ((*given != '/' && path_add_all(path, base) == -1) ||
	    path_add_all(path, given) == -1)
		return NULL;
	if ((whole = strdup(*path == '\0' ? "/" : path)) == NULL)
		err(EXIT_USAGE, NULL);
	return whole;
}

static char *
mount_source(const char *given)
{
	char	 cwd[PATH_MAX], *whole;

	if (getcwd(cwd, sizeof(cwd)) == NULL)
		err(EXIT_USAGE, "working directory");
	if ((whole = mount_path(cwd, given)) == NULL)
		errx(EXIT_USAGE, "%s: name too long", given);
	return whole;
}

/* source:target, as an object; -m is for reading and -M for writing, too. */
cJSON *
mount_object(const char *arg, int write)
{
	const char	*colon = strrchr(arg, ':');
	char		*source, *path;
	cJSON		*mount;

	if (colon == NULL || colon == arg || colon[1] != '/')
		errx(EXIT_USAGE, "-%c %s: wanted a path, a colon and an "
		    "absolute path in the sandbox; -m is read-only and -M "
		    "read-write", write ? 'M' : 'm', arg);
	if ((source = strndup(arg, colon - arg)) == NULL ||
	    (mount = cJSON_CreateObject()) == NULL)
		err(EXIT_USAGE, NULL);
	path = mount_source(source);
	cJSON_AddStringToObject(mount, "source", path);
	cJSON_AddStringToObject(mount, "target", colon + 1);
	cJSON_AddBoolToObject(mount, "write", write);
	free(source);
	free(path);
	return mount;
}

static void
mount_option(int ch, const char *arg)
{
	(void)ch, (void)arg;
	options.write = 1;
}

static void
mount_put(const cJSON *answer)
{
	(void)answer;
	printf("%s is at %s, %s\n", options.source, options.target,
	    options.write ? "read-write" : "read-only");
}

static int
mount_by_hands(const struct invocation *in, const char *source)
{
	struct jsonw	 w;

	call_op(&w, "mount");
	put_str(&w, "source", source);
	put_str(&w, "path", options.target);
	put_bool(&w, "write", options.write);
	return task_run(in, options.session, options.target, &w, &task_ops);
}

/* Where the daemon cannot, what serves in the sandbox may. */
static int
is_not_supported(const cJSON *answer)
{
	const char	*code = json_string(json_get(answer, "error"), "code");

	return code != NULL && strcmp(code, CODE_NOT_SUPPORTED) == 0;
}

static int
mount_run(const struct invocation *in)
{
	char		*line, *source = mount_source(options.source);
	struct client	 cl;
	cJSON		*answer, *request;
	int		 status = EXIT_NO_DAEMON;

	if (client_open(&cl, in->in_socket) == -1)
		return status;
	request = exchange_request(in->in_command->co_op);
	cJSON_AddStringToObject(request, "session_id", options.session);
	cJSON_AddStringToObject(request, "source", source);
	cJSON_AddStringToObject(request, "target", options.target);
	cJSON_AddBoolToObject(request, "write", options.write);
	answer = exchange_await(&cl, request, &line);
	if (answer != NULL && is_not_supported(answer))
		status = mount_by_hands(in, source);
	else if (answer != NULL && json_get(answer, "error") != NULL) {
		in->in_output->ou_refusal(in->in_command, line, answer);
		status = EXIT_REFUSED;
	} else if (answer != NULL) {
		in->in_output->ou_answer(in->in_command, line, answer);
		status = 0;
	}
	cJSON_Delete(answer);
	client_close(&cl);
	free(source);
	return status;
}

static const struct token t_target[] = {
	{ WORD, "target", NULL, NULL, &options.target, NULL },
	{ 0 }
};

static const struct token t_source[] = {
	{ WORD, "source", t_target, NULL, &options.source, NULL },
	{ 0 }
};

static const struct token t_mount[] = {
	{ SESSION_ID, "session ID", t_source, NULL, &options.session, NULL },
	{ 0 }
};

const struct command command_mount = {
	.co_name = "mount",
	.co_synopsis = "mount [-w] SESSION SOURCE TARGET",
	.co_help = "show something from outside there, -w: to be changed, too",
	.co_tokens = t_mount,
	.co_run = mount_run,
	.co_op = "session.mount",
	.co_show = mount_put,
	.co_options = "w",
	.co_option = mount_option,
};
