/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: the command: which session, and a loop over what the client,
 * the sandbox and egressd say.  A session that we start ends with us: its
 * owner is the control connection, which we keep.
 */

#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "list.h"
#include "mcp.h"
#include "show.h"

#define START_TIMEOUT_MS	120000	/* for a sandbox to be made */
#define GRACE_MS		1000	/* for jobs, after the last line */
#define REASON_MS	5000	/* a sandbox has as long to end */
#define FLUSH_MS		5000	/* for the client to read the rest */
#define TICK_MS			1000

static struct {
	const char	*session;
	const char	*sandbox;
	const char	*policy;
	const char	*directory;
	struct list	 mounts;
} options;

static void __attribute__((__noreturn__))
usage(void)
{
	fputs("usage: egressctl mcp [-s socket] [--allow-mount directory] "
	    "session\n       egressctl mcp [-s socket] [-p policy] "
	    "[-w directory]\n\t[--allow-mount directory] --sandbox name\n",
	    stderr);
	exit(EXIT_USAGE);
}

static void
take_option(struct invocation *in, int ch)
{
	switch (ch) {
	case 'm':
		if (access(optarg, F_OK) == -1)
			err(EXIT_USAGE, "--allow-mount %s", optarg);
		list_add(&options.mounts, optarg);
		break;
	case 'p':
		options.policy = optarg;
		break;
	case 's':
		in->in_socket = optarg;
		break;
	case 'S':
		options.sandbox = optarg;
		break;
	case 'w':
		options.directory = optarg;
		break;
	default:
		usage();
	}
}

static void
mcp_take(struct invocation *in, int argc, char *argv[])
{
	static const struct option	longs[] = {
		{ "allow-mount", required_argument,	NULL, 'm' },
		{ "sandbox",	required_argument,	NULL, 'S' },
		{ NULL,		0,			NULL, 0 }
	};
	int				ch;

	while ((ch = getopt_long(argc, argv, "+p:s:w:", longs, NULL)) != -1)
		take_option(in, ch);
	if (optind < argc)
		options.session = argv[optind++];
	/* An option may follow the session, too. */
	while ((ch = getopt_long(argc, argv, "+p:s:w:", longs, NULL)) != -1)
		take_option(in, ch);
	if (optind < argc ||
	    (options.session == NULL) == (options.sandbox == NULL) ||
	    (options.session != NULL && (*options.session == '\0' ||
	    options.policy != NULL || options.directory != NULL)))
		usage();
}

/* ---- the session --------------------------------------------------------- */

static cJSON *
start_request(void)
{
	cJSON	*request = exchange_request("session.start");
	char	 cwd[PATH_MAX];

	/* In memory there are directories that this machine has not. */
	if (options.directory != NULL && *options.directory == '/')
		strlcpy(cwd, options.directory, sizeof(cwd));
	else if (realpath(options.directory == NULL ? "." : options.directory,
	    cwd) == NULL)
		err(EXIT_NO_DAEMON, "%s", options.directory == NULL ?
		    "working directory" : options.directory);
	cJSON_AddStringToObject(request, "sandbox", options.sandbox);
	/* Where we stand counts if the sandbox says nothing of its own. */
	cJSON_AddStringToObject(request, options.directory == NULL ?
	    "caller_cwd" : "cwd", cwd);
	if (options.policy != NULL)
		cJSON_AddStringToObject(request, "policy", options.policy);
	return request;
}

/* A sandbox may take its time, so the usual limit is not for it. */
static cJSON *
start_answer(struct server *sv, char **line)
{
	cJSON	*request = start_request(), *answer = NULL;
	size_t	 len;

	if (client_send(&sv->sv_control, request, -1) == 0 &&
	    client_line(&sv->sv_control, line, &len, START_TIMEOUT_MS) ==
	    CLIENT_LINE && (answer = json_parse(*line, len)) == NULL)
		warnx("%s: the answer is not JSON", sv->sv_control.cl_path);
	cJSON_Delete(request);
	return answer;
}

/* Has a session made; 0, or an exit status after saying why not. */
static int
session_start(struct server *sv, const struct invocation *in)
{
	struct command	 start = *in->in_command;
	cJSON		*answer;
	const char	*id;
	char		*line;
	int		 status = EXIT_NO_DAEMON;

	start.co_op = "session.start";
	if ((answer = start_answer(sv, &line)) == NULL)
		return status;
	if (json_get(json_get(answer, "error"), "message") != NULL) {
		in->in_output->ou_refusal(&start, line, answer);
		status = EXIT_REFUSED;
	} else if ((id = json_string(answer, "session_id")) == NULL)
		warnx("%s: the answer has no session_id",
		    sv->sv_control.cl_path);
	else {
		sv->sv_session = must(strdup(id));
		status = 0;
	}
	cJSON_Delete(answer);
	return status;
}

static int
session_open(struct server *sv, const struct invocation *in)
{
	int	status;

	if (client_open(&sv->sv_control, in->in_socket) == -1)
		return EXIT_NO_DAEMON;
	sv->sv_session = options.session;
	if (options.sandbox != NULL &&
	    (status = session_start(sv, in)) != 0)
		return status;
	sv->sv_link = link_open(in, sv->sv_session, &status);
	if (sv->sv_link == NULL)
		return status;
	mounts_look(sv);
	refusals_watch(sv);
	return 0;
}

/* ---- the loop ------------------------------------------------------------ */

enum { IN, OUT, LINK, CONTROL, NFDS };

static int
has_work(const struct server *sv)
{
	const struct job	*job;

	TAILQ_FOREACH(job, &sv->sv_jobs, jo_entry)
		if (job->jo_show != NULL)
			return 1;
	return 0;
}

static void
fill(struct server *sv, struct pollfd *pfd)
{
	pfd[IN].fd = sv->sv_eof || stdio_full(sv) ? -1 : STDIN_FILENO;
	pfd[IN].events = POLLIN;
	pfd[OUT].fd = STDOUT_FILENO;
	pfd[OUT].events = stdio_waits(sv) ? POLLOUT : 0;
	pfd[LINK].fd = link_fd(sv->sv_link);
	pfd[LINK].events = link_events(sv->sv_link);
	pfd[CONTROL].fd = sv->sv_control.cl_fd;
	pfd[CONTROL].events = POLLIN;
}

/* One turn; -1 if nobody reads our answers any more. */
static int
turn(struct server *sv, int timeout)
{
	struct pollfd	pfd[NFDS] = { 0 };

	fill(sv, pfd);
	if (poll(pfd, NFDS, timeout) == -1)
		return 0;
	if (pfd[OUT].revents & (POLLERR | POLLHUP | POLLNVAL))
		return -1;
	if ((pfd[OUT].revents & POLLOUT) && stdio_write(sv) == -1)
		return -1;
	if (pfd[CONTROL].revents != 0)
		refusals_read(sv);
	if (pfd[LINK].revents != 0 &&
	    link_handle(sv->sv_link, pfd[LINK].revents) == -1)
		return 0;
	if (pfd[IN].revents != 0)
		stdio_read(sv);
	work_turn(sv);
	return 0;
}

/* Until the client has nothing more to say, or the sandbox is gone. */
static void
serve(struct server *sv)
{
	uint64_t	end = 0, now;
	int		timeout;

	while (link_error(sv->sv_link) == NULL) {
		now = clock_ms();
		if (sv->sv_eof && end == 0)
			end = now + GRACE_MS;
		if (end != 0 && (now >= end || !has_work(sv)))
			break;
		timeout = work_ticks(sv) ? TICK_MS : -1;
		if (end != 0)
			timeout = (int)(end - now);
		if (turn(sv, timeout) == -1)
			break;
	}
}

/* Gives egressd a moment to say why the session is over. */
static void
await_reason(struct server *sv)
{
	uint64_t	end = clock_ms() + REASON_MS, now;
	struct pollfd	pfd = { .events = POLLIN };

	while (!sv->sv_over && sv->sv_control.cl_fd != -1 &&
	    (now = clock_ms()) < end) {
		pfd.fd = sv->sv_control.cl_fd;
		if (poll(&pfd, 1, (int)(end - now)) > 0)
			refusals_read(sv);
	}
}

/* Why the sandbox is gone, for the caller to free. */
static char *
why_gone(struct server *sv)
{
	const char	*error = link_error(sv->sv_link);
	char		*words = text_of(error, strlen(error)), *why;
	int		 rv;

	await_reason(sv);
	if (sv->sv_over)
		rv = asprintf(&why, "the sandbox is gone: the session %s has "
		    "ended%s%s%s", sv->sv_session, sv->sv_reason == NULL ? "" :
		    " (", sv->sv_reason == NULL ? "" : sv->sv_reason,
		    sv->sv_reason == NULL ? "" : ")");
	else
		rv = asprintf(&why, "the sandbox of the session %s is gone: %s",
		    sv->sv_session, words);
	if (rv == -1)
		must(NULL);
	free(words);
	return why;
}

/* Writes what is queued, as long as it is read. */
static void
flush(struct server *sv)
{
	uint64_t	end = clock_ms() + FLUSH_MS, now;
	struct pollfd	pfd = { .fd = STDOUT_FILENO, .events = POLLOUT };

	while (stdio_waits(sv) && (now = clock_ms()) < end)
		if (poll(&pfd, 1, (int)(end - now)) > 0 &&
		    ((pfd.revents & POLLOUT) == 0 || stdio_write(sv) == -1))
			return;
}

/* What has been asked by now is answered, too. */
static int
finish(struct server *sv)
{
	struct pollfd	pfd = { .fd = STDIN_FILENO, .events = POLLIN };
	char		*why;

	if (link_error(sv->sv_link) == NULL) {
		jobs_lost(sv, "standard input has ended");
		flush(sv);
		return sv->sv_broken ? EXIT_REFUSED : 0;
	}
	why = why_gone(sv);
	if (!sv->sv_eof && poll(&pfd, 1, 0) > 0)
		stdio_read(sv);
	jobs_lost(sv, why);
	flush(sv);
	fputs("egressctl: ", stderr);
	visible_put(stderr, why, VISIBLE_TEXT);
	fputc('\n', stderr);
	free(why);
	return EXIT_REFUSED;
}

static int
mcp_run(const struct invocation *given)
{
	struct invocation	in = *given;
	struct server		sv = { .sv_mounts = &options.mounts };
	int			status;

	/* Standard output is the client's, whatever -j would have there. */
	in.in_output = &output_text;
	TAILQ_INIT(&sv.sv_jobs);
	if ((status = session_open(&sv, &in)) == 0) {
		serve(&sv);
		status = finish(&sv);
		link_close(sv.sv_link);
	}
	client_close(&sv.sv_control);
	if (options.session == NULL)
		free((char *)(uintptr_t)sv.sv_session);
	free(sv.sv_reason);
	free(sv.sv_in);
	free(sv.sv_out);
	return status;
}

const struct command command_mcp = {
	.co_name = "mcp",
	.co_synopsis = "mcp SESSION | mcp --sandbox NAME",
	.co_help = "serve a sandbox to an agent by the Model Context Protocol",
	.co_run = mcp_run,
	.co_op = "session.attach",
	.co_take = mcp_take,
};
