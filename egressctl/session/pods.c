/* SPDX-License-Identifier: ISC */

/*
 * egressctl: pods of sessions, and what the cluster knows of them.  What
 * containers print and what API servers say is not to be trusted: a terminal
 * is shown it escaped.
 */

#include <sys/socket.h>

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "egressctl.h"
#include "pods.h"
#include "show.h"

static struct {
	const char	*session_id;
	const char	*sandbox;	/* NULL: the session's own */
	const char	*container;	/* NULL: workspace */
	const char	*selector;	/* -l, or NULL */
	unsigned int	 age;		/* -t: s; 0: as the daemon has it */
	unsigned int	 lines;		/* -n: 0: all */
	int		 follow;	/* -f */
	int		 dry_run;	/* -n of reap */
} options;

/* ---- lists -------------------------------------------------------------- */

void
pods_put(const cJSON *answer)
{
	static const struct column	 columns[] = {
		{ "SESSION",	"session_id",	NULL },
		{ "POD",	"pod",		NULL },
		{ "STATE",	"state",	NULL },
		{ "AGE",	"age",		NULL },
		{ "",		"text",		NULL },
	};
	const cJSON			*rows = json_get(answer, "pods");

	if (rows == NULL)
		return;
	if (table_is_empty(rows))
		puts("no pods");
	else
		table_put(rows, columns, sizeof(columns) / sizeof(columns[0]));
	if (cJSON_IsTrue(json_get(answer, "truncated")))
		puts("and more");
}

static void
reap_option(int ch, const char *arg)
{
	switch (ch) {
	case 'l':
		options.selector = arg;
		break;
	case 'n':
		options.dry_run = 1;
		break;
	case 't':
		options.age = seconds_take(arg, EXIT_USAGE);
		break;
	}
}

static void
reap_ask(cJSON *request)
{
	cJSON_AddStringToObject(request, "sandbox", options.sandbox);
	if (options.age != 0)
		cJSON_AddNumberToObject(request, "age", options.age);
	if (options.selector != NULL)
		cJSON_AddStringToObject(request, "selector", options.selector);
	if (options.dry_run)
		cJSON_AddTrueToObject(request, "dry_run");
}

/* ---- one session -------------------------------------------------------- */

static void
session_ask(cJSON *request)
{
	cJSON_AddStringToObject(request, "session_id", options.session_id);
	if (options.sandbox != NULL)
		cJSON_AddStringToObject(request, "sandbox", options.sandbox);
}

/* Of a session that ran here it is told how it ended, of others their pod. */
static void
terminate_put(const cJSON *answer)
{
	if (json_get(answer, "pods") != NULL) {
		pods_put(answer);
		return;
	}
	json_put(stdout, json_get(answer, "session_id"));
	puts(" terminated");
}

/* ---- logs --------------------------------------------------------------- */

static void
logs_option(int ch, const char *arg)
{
	char	*end;

	if (ch == 'f') {
		options.follow = 1;
		return;
	}
	errno = 0;
	options.lines = (unsigned int)strtoul(arg, &end, 10);
	if (*arg < '0' || *arg > '9' || *end != '\0' || errno != 0 ||
	    options.lines == 0 || options.lines > 1000000)
		errx(EXIT_USAGE, "-n %s: wanted 1 to 1000000 lines", arg);
}

static cJSON *
logs_request(const struct invocation *in)
{
	cJSON	*request = exchange_request(in->in_command->co_op);

	session_ask(request);
	if (options.container != NULL)
		cJSON_AddStringToObject(request, "container",
		    options.container);
	if (options.lines != 0)
		cJSON_AddNumberToObject(request, "tail", options.lines);
	if (options.follow)
		cJSON_AddTrueToObject(request, "follow");
	return request;
}

/* Until the daemon has closed its end. */
static void
logs_copy(int fd)
{
	char	 buf[16384];
	ssize_t	 n;
	int	 tty = isatty(STDOUT_FILENO);

	while ((n = read(fd, buf, sizeof(buf))) > 0 ||
	    (n == -1 && errno == EINTR)) {
		if (n > 0 && tty)
			visible_put_content(stdout, buf, (size_t)n);
		else if (n > 0)
			fwrite(buf, 1, (size_t)n, stdout);
		if (fflush(stdout) == EOF)
			return;
	}
}

static int
logs_run(const struct invocation *in)
{
	struct client	 cl;
	cJSON		*answer = NULL, *request = logs_request(in);
	char		*line;
	int		 fd[2], status = EXIT_NO_DAEMON;

	if (client_open(&cl, in->in_socket) == -1) {
		cJSON_Delete(request);
		return status;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == -1)
		err(EXIT_NO_DAEMON, "socketpair");
	if (client_send(&cl, request, fd[1]) == 0) {
		close(fd[1]);
		logs_copy(fd[0]);
		answer = exchange_answer(&cl, &line);
	}
	cJSON_Delete(request);
	if (answer != NULL && json_get(answer, "error") != NULL) {
		in->in_output->ou_refusal(in->in_command, line, answer);
		status = EXIT_REFUSED;
	} else if (answer != NULL)
		status = 0;
	cJSON_Delete(answer);
	client_close(&cl);
	return status;
}

/* ---- commands ----------------------------------------------------------- */

static const struct token t_sandbox[] = {
	{ WORD, "sandbox", NULL, NULL, &options.sandbox, NULL },
	{ 0 }
};

static const struct token t_maybe_sandbox[] = {
	{ .tk_type = END },
	{ WORD, "sandbox", NULL, NULL, &options.sandbox, NULL },
	{ 0 }
};

static const struct token t_session[] = {
	{ SESSION_ID, "session ID", t_maybe_sandbox, NULL,
	    &options.session_id, NULL },
	{ 0 }
};

static const struct token t_container[] = {
	{ .tk_type = END },
	{ KEYWORD, "workspace", NULL, NULL, &options.container, NULL },
	{ KEYWORD, "gate", NULL, NULL, &options.container, NULL },
	{ 0 }
};

static const struct token t_logs[] = {
	{ SESSION_ID, "session ID", t_container, NULL, &options.session_id,
	    NULL },
	{ 0 }
};

const struct command command_reap = {
	.co_name = "reap",
	.co_synopsis = "reap [-n] [-l SELECTOR] [-t AGE] SANDBOX",
	.co_help = "delete pods that nobody has kept alive",
	.co_tokens = t_sandbox,
	.co_run = exchange_run,
	.co_op = "pods.reap",
	.co_ask = reap_ask,
	.co_show = pods_put,
	.co_slow = 1,
	.co_options = "l:nt:",
	.co_option = reap_option,
};

const struct command command_terminate = {
	.co_name = "terminate",
	.co_synopsis = "terminate SESSION [SANDBOX]",
	.co_help = "end a session and delete its pod",
	.co_tokens = t_session,
	.co_run = exchange_run,
	.co_op = "pods.terminate",
	.co_ask = session_ask,
	.co_show = terminate_put,
	.co_slow = 1,
};

const struct command command_heartbeat = {
	.co_name = "heartbeat",
	.co_synopsis = "heartbeat SESSION [SANDBOX]",
	.co_help = "keep the pod of a session from being reaped",
	.co_tokens = t_session,
	.co_run = exchange_run,
	.co_op = "session.heartbeat",
	.co_ask = session_ask,
	.co_slow = 1,
};

const struct command command_logs = {
	.co_name = "logs",
	.co_synopsis = "logs [-f] [-n LINES] SESSION [workspace | gate]",
	.co_help = "show what the containers of a session's pod have printed",
	.co_tokens = t_logs,
	.co_run = logs_run,
	.co_op = "session.logs",
	.co_options = "fn:",
	.co_option = logs_option,
};
