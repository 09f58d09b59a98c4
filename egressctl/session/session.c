/* SPDX-License-Identifier: ISC */

/*
 * egressctl: sessions, and sandboxes that the daemon makes for them.  A session
 * without an id of its own lives as long as the connection that asked for it,
 * so its command stays until it is interrupted or the session is over.
 */

#include <err.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "egressctl.h"
#include "list.h"
#include "name.h"
#include "pods.h"
#include "several.h"
#include "show.h"

static struct {
	const char	*sandbox;	/* NULL: the default */
	const char	*session_id;	/* the one that is named */
	struct list	 ids;		/* -n */
	const char	*policy;	/* -p */
	const char	*cwd;		/* -w */
	unsigned int	 deadline;	/* -t: s, or 0 */
	struct list	 variables;	/* -e: NAME=value, or NAME */
	const char	*cluster;	/* -c of list: a sandbox, or NULL */
	int		 delete;	/* of stop: -d 1, -k -1 */
	cJSON		*mounts;	/* -m, -M: array, or NULL */
} options;

/* ---- start -------------------------------------------------------------- */

static void
start_option(int ch, const char *arg)
{
	switch (ch) {
	case 'e':
		list_add(&options.variables, arg);
		break;
	case 'm':
	case 'M':
		if (options.mounts == NULL)
			options.mounts = cJSON_CreateArray();
		cJSON_AddItemToArray(options.mounts,
		    mount_object(arg, ch == 'M'));
		break;
	case 'n':
		list_add(&options.ids, arg);
		break;
	case 'p':
		options.policy = arg;
		break;
	case 't':
		options.deadline = seconds_take(arg, EXIT_USAGE);
		break;
	case 'w':
		options.cwd = arg;
		break;
	}
}

/* NAME alone is the caller's value. */
static void
add_variable(cJSON *env, const char *arg)
{
	size_t		 len = strcspn(arg, "=");
	const char	*value, *why;
	char		*name;

	if ((name = strndup(arg, len)) == NULL)
		err(EXIT_USAGE, NULL);
	if ((why = name_variable_error(name)) != NULL)
		errx(EXIT_USAGE, "-e %s: %s", name, why);
	value = arg[len] == '=' ? arg + len + 1 : getenv(name);
	if (value == NULL)
		errx(EXIT_USAGE, "-e %s: there is no such variable", name);
	cJSON_DeleteItemFromObjectCaseSensitive(env, name);
	cJSON_AddStringToObject(env, name, value);
	free(name);
}

/* A name relative to here is made whole; the daemon stands elsewhere. */
static void
add_directory(cJSON *request)
{
	char	real[PATH_MAX];

	if (getcwd(real, sizeof(real)) != NULL && *real == '/')
		cJSON_AddStringToObject(request, "caller_cwd", real);
	if (options.cwd == NULL)
		return;
	if (*options.cwd == '/')
		cJSON_AddStringToObject(request, "cwd", options.cwd);
	else if (realpath(options.cwd, real) != NULL)
		cJSON_AddStringToObject(request, "cwd", real);
	else
		err(EXIT_USAGE, "-w %s", options.cwd);
}

static void
start_ask(cJSON *request, const char *id)
{
	cJSON	*env;
	size_t	 i;

	if (options.sandbox != NULL)
		cJSON_AddStringToObject(request, "sandbox", options.sandbox);
	if (id != NULL)
		cJSON_AddStringToObject(request, "session_id", id);
	if (options.policy != NULL)
		cJSON_AddStringToObject(request, "policy", options.policy);
	if (options.deadline != 0)
		cJSON_AddNumberToObject(request, "deadline", options.deadline);
	add_directory(request);
	if (options.mounts != NULL)
		cJSON_AddItemToObject(request, "mounts",
		    cJSON_Duplicate(options.mounts, 1));
	if (options.variables.li_count == 0)
		return;
	env = cJSON_AddObjectToObject(request, "env");
	for (i = 0; i < options.variables.li_count; i++)
		add_variable(env, options.variables.li_words[i]);
}

/* For scripts: an id is printable, and a backslash in it is not doubled. */
static void
start_put(const cJSON *answer)
{
	const char	*id = json_string(answer, "session_id");

	if (id != NULL && name_session_error(id) == NULL)
		fputs(id, stdout);
	else
		json_put(stdout, json_get(answer, "session_id"));
	putchar('\n');
	fflush(stdout);
}

/* Whoever asks for more than the session has must not think that it is so. */
static void
warn_existed(const cJSON *answer)
{
	const char	*id = json_string(answer, "session_id");
	char		 unheard[64] = "";

	if (!cJSON_IsTrue(json_get(answer, "existed")))
		return;
	if (options.variables.li_count != 0)
		strlcat(unheard, ", -e", sizeof(unheard));
	if (options.mounts != NULL)
		strlcat(unheard, ", -m or -M", sizeof(unheard));
	if (options.deadline != 0)
		strlcat(unheard, ", -t", sizeof(unheard));
	if (options.cwd != NULL)
		strlcat(unheard, ", -w", sizeof(unheard));
	if (*unheard == '\0')
		return;
	fputs("egressctl: session ", stderr);
	visible_put(stderr, id != NULL ? id : "-", VISIBLE_TEXT);
	fprintf(stderr, " was there already, and stays as it is: without "
	    "effect: %s\n", unheard + 2);
}

/* The session is over when we are; or the other way round. */
static int
wait_for_end(struct client *cl, const char *name)
{
	cJSON		*answer, *request = exchange_request("session.wait");
	const char	*reason;
	char		*line;

	cJSON_AddStringToObject(request, "session_id", name);
	if ((answer = exchange_await(cl, request, &line)) == NULL)
		return EXIT_NO_DAEMON;
	reason = json_string(answer, "reason");
	fputs("egressctl: the session has ended", stderr);
	if (reason != NULL) {
		fputs(": ", stderr);
		visible_put(stderr, reason, VISIBLE_TEXT);
	}
	fputc('\n', stderr);
	cJSON_Delete(answer);
	return 0;
}

static int
start_run(const struct invocation *in)
{
	struct client	 cl;
	const char	*name, *id = options.ids.li_count > 0 ?
	    options.ids.li_words[0] : NULL;
	cJSON		*answer, *request;
	char		*line;
	int		 status = EXIT_NO_DAEMON;

	if (options.ids.li_count > 1)
		return several_run(in, &options.ids, start_ask,
		    warn_existed);
	if (client_open(&cl, in->in_socket) == -1)
		return status;
	request = exchange_request(in->in_command->co_op);
	start_ask(request, id);
	if (in->in_output == &output_text)
		cJSON_AddTrueToObject(request, "progress");
	answer = exchange_await(&cl, request, &line);
	if (answer != NULL && json_get(answer, "error") != NULL) {
		in->in_output->ou_refusal(in->in_command, line, answer);
		status = EXIT_REFUSED;
	} else if (answer != NULL) {
		in->in_output->ou_answer(in->in_command, line, answer);
		fflush(stdout);
		warn_existed(answer);
		name = json_string(answer, "session_id");
		status = id != NULL || name == NULL ? 0 :
		    wait_for_end(&cl, name);
	}
	cJSON_Delete(answer);
	client_close(&cl);
	return status;
}

/* ---- list, show, stop --------------------------------------------------- */

static void
list_put(const cJSON *answer)
{
	static const struct column	 columns[] = {
		{ "SESSION",	"session_id",	NULL },
		{ "KIND",	"kind",		NULL },
		{ "STATE",	"state",	NULL },
		{ "POLICY",	"policy",	NULL },
		{ "SANDBOX",	"sandbox",	NULL },
		{ "BACKEND",	"backend",	NULL },
		{ "OWNER",	"owner",	NULL },
		{ "STARTED",	"started",	NULL },
	};
	const cJSON			*rows = json_get(answer, "sessions");

	if (table_is_empty(rows))
		puts("no sessions");
	else
		table_put(rows, columns, sizeof(columns) / sizeof(columns[0]));
	pods_put(answer);
}

static void
list_option(int ch, const char *arg)
{
	(void)ch;
	options.cluster = arg;
}

static void
list_ask(cJSON *request)
{
	if (options.cluster != NULL)
		cJSON_AddStringToObject(request, "sandbox", options.cluster);
}

static void
one_ask(cJSON *request)
{
	cJSON_AddStringToObject(request, "session_id", options.session_id);
}

static void
put_member(const cJSON *item)
{
	const cJSON	*limit;
	const char	*sep = "";

	printf("%-12s", item->string);
	if (cJSON_IsObject(item)) {
		cJSON_ArrayForEach(limit, item) {
			printf("%s%s ", sep, limit->string);
			json_put(stdout, limit);
			sep = ", ";
		}
	} else
		json_put(stdout, item);
	putchar('\n');
}

static void
show_put(const cJSON *answer)
{
	const cJSON	*item;

	cJSON_ArrayForEach(item, answer)
		if (strcmp(item->string, "id") != 0 &&
		    strcmp(item->string, "ok") != 0 && !cJSON_IsNull(item) &&
		    (!cJSON_IsObject(item) || item->child != NULL))
			put_member(item);
}

static void
stop_option(int ch, const char *arg)
{
	(void)arg;
	if (options.delete != 0)
		errx(EXIT_USAGE, "-d and -k exclude each other");
	options.delete = ch == 'd' ? 1 : -1;
}

static void
stop_ask(cJSON *request)
{
	one_ask(request);
	if (options.delete != 0)
		cJSON_AddBoolToObject(request, "delete", options.delete > 0);
}

static void
stop_put(const cJSON *answer)
{
	json_put(stdout, json_get(answer, "session_id"));
	puts(" stopped");
}

static const struct command command_start = {
	.co_synopsis = "session start [-n ID] [-p POLICY] [-t TIME] [-w "
	    "DIRECTORY] [-e NAME[=VALUE]] [-m SOURCE:TARGET] [-M "
	    "SOURCE:TARGET] [SANDBOX]",
	.co_help = "make a sandbox and its session; without -n they end with "
	    "the command",
	.co_run = start_run,
	.co_op = "session.start",
	.co_show = start_put,
	.co_options = "e:m:M:n:p:t:w:",
	.co_option = start_option,
};

static const struct command command_list = {
	.co_synopsis = "session list [-c SANDBOX]",
	.co_help = "list the sessions, and of a sandbox the pods that its "
	    "cluster has",
	.co_run = exchange_run,
	.co_op = "session.list",
	.co_ask = list_ask,
	.co_show = list_put,
	.co_slow = 1,
	.co_options = "c:",
	.co_option = list_option,
};

static const struct command command_show = {
	.co_synopsis = "session show ID",
	.co_help = "show one",
	.co_run = exchange_run,
	.co_op = "session.show",
	.co_ask = one_ask,
	.co_show = show_put,
};

static const struct command command_stop = {
	.co_synopsis = "session stop [-d | -k] ID",
	.co_help = "end a session, and all that runs in its sandbox",
	.co_run = exchange_run,
	.co_op = "session.stop",
	.co_ask = stop_ask,
	.co_show = stop_put,
	.co_slow = 1,
	.co_options = "dk",
	.co_option = stop_option,
};

static const struct token t_sandbox[] = {
	{ .tk_type = END },
	{ WORD, "sandbox", NULL, NULL, &options.sandbox, NULL },
	{ 0 }
};

static const struct token t_id[] = {
	{ SESSION_ID, "session ID", NULL, NULL, &options.session_id, NULL },
	{ 0 }
};

static const struct token t_session[] = {
	{ KEYWORD, "start",	t_sandbox,	&command_start, NULL, NULL },
	{ KEYWORD, "list",	NULL,		&command_list, NULL, NULL },
	{ KEYWORD, "show",	t_id,		&command_show, NULL, NULL },
	{ KEYWORD, "stop",	t_id,		&command_stop, NULL, NULL },
	{ 0 }
};

const struct command command_session = {
	.co_name = "session",
	.co_tokens = t_session,
};
