/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a command in a sandbox.
 *
 *	egressctl ---- control socket ---- egressd
 *	    |                                 |
 *	    +-- box --------- pair -------- engine
 *
 * One end of the pair goes to the daemon, which starts an engine for it, the
 * other is inherited by box, which makes the sandbox.  From then on we only
 * wait: the terminal, its signals and the working directory are box's and the
 * command's as if we were not there.
 */

#include <sys/socket.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "name.h"
#include "run.h"

#define VIRTUAL_SIZE	(256LL << 20)	/* bytes */
#define VIRTUAL_MIN	(1LL << 20)
#define VIRTUAL_MAX	(1LL << 40)

static struct {
	const char	*name;		/* -n: of the session, or NULL */
	const char	*policy;	/* -p, or NULL */
	const char	*directory;	/* for a private daemon's socket */
	int		 verbose;
	int		 quiet;
	const char	*cwd;		/* -w, or NULL */
	int		 is_virtual;
	int		 as_root;
	unsigned int	 deadline;	/* -t: s, or 0 */
	int		 kept_home;	/* -H: one of the sandbox's own */
	const char	*home;		/* by the user database, or NULL */
	struct list	 argv;		/* of box */
	size_t		 command;	/* where that begins, in argv */
	const char	*profile_name;	/* -P */
	struct profile	 profile;
	char		 engine[16];	/* box's end of the pair, for argv */
	struct client	 client;
	struct private	 private;
	char		 session[SESSION_LEN + 1];
} run;

static void __attribute__((__noreturn__))
usage(void)
{
	fputs("usage: egressctl run [-EqrUv] [-e name[=value]] [-f file | "
	    "-s socket]\n\t[-H directory] [-m path:inside[:rw]] [-n name] "
	    "[-p policy]\n\t[-P profile] [-S directory] [-t time] "
	    "[--virtual[=size]]\n\t[-w directory] [-x path] [-X path] "
	    "-- command [argument ...]\n", stderr);
	exit(EXIT_NO_RUN);
}

static void
box_arg(const char *arg)
{
	list_add(&run.argv, arg);
}

static void
box_option(const char *option, const char *value)
{
	box_arg(option);
	if (value != NULL)
		box_arg(value);
}

static void
expose(const char *path, int writable)
{
	box_option(writable ? "-X" : "-x", path);
	shown_path(path, writable);
}

static char *
part(const char *text, size_t len)
{
	char	*copy;

	if ((copy = strndup(text, len)) == NULL)
		err(EXIT_NO_RUN, NULL);
	return copy;
}

/* A path of the host, a colon, its name in there, and perhaps :rw or :ro. */
static void
take_mount(const char *arg)
{
	size_t		 len = strlen(arg);
	const char	*end = arg + (len > 3 ? len - 3 : 0), *colon, *both;
	int		 writable = strcmp(end, ":rw") == 0;

	if (!writable && strcmp(end, ":ro") != 0)
		end = arg + len;
	both = part(arg, (size_t)(end - arg));
	if ((colon = strrchr(both, ':')) == NULL || colon == both ||
	    colon[1] != '/')
		errx(EXIT_NO_RUN, "-m %s: wanted a path, a colon and an "
		    "absolute path in the sandbox, and :rw if it may be "
		    "written to", arg);
	box_option(writable ? "-M" : "-m", both);
	shown_mount(colon + 1);
	shown_path(part(both, (size_t)(colon - both)), writable);
}

/* For box, in bytes. */
static void
take_virtual(const char *arg)
{
	static char	 bytes[24];
	const char	*unit, *fault = NULL;
	size_t		 len;
	long long	 n = VIRTUAL_SIZE;
	int		 shift = 0;

	if (arg != NULL) {
		len = strspn(arg, "0123456789");
		unit = strchr("KMG", arg[len]);
		if (unit != NULL && *unit != '\0')
			shift = *unit == 'K' ? 10 : *unit == 'M' ? 20 : 30;
		n = strtonum(part(arg, len), 1, VIRTUAL_MAX >> shift, &fault);
		n <<= shift;
		if (fault != NULL || n < VIRTUAL_MIN || unit == NULL ||
		    (*unit != '\0' && arg[len + 1] != '\0'))
			errx(EXIT_NO_RUN, "--virtual=%s: wanted a size from "
			    "1M to 1024G, such as 512M", arg);
	}
	snprintf(bytes, sizeof(bytes), "%lld", n);
	run.is_virtual = 1;
	box_option("-V", bytes);
}

/* Takes an option; those of box are handed on. */
static void
take_option(struct invocation *in, int ch)
{
	const char	*why;

	switch (ch) {
	case 'e':
		environment_option(optarg);
		break;
	case 'E':
		environment_clean();
		break;
	case 'f':
		in->in_conf = optarg;
		break;
	case 'H':
		run.kept_home = 1;
		shown_path(optarg, 1);
		box_option("-k", optarg);
		break;
	case 'm':
		take_mount(optarg);
		break;
	case 'n':
		if ((why = name_session_error(optarg)) != NULL)
			errx(EXIT_NO_RUN, "-n %s: %s", optarg, why);
		run.name = optarg;
		break;
	case 'p':
		run.policy = optarg;
		break;
	case 'P':
		run.profile_name = optarg;
		break;
	case 's':
		in->in_socket = optarg;
		break;
	case 'S':
		run.directory = optarg;
		break;
	case 'v':
		run.verbose = 1;
		break;
	case 'q':
		run.quiet = 1;
		run.private.pv_quiet = 1;
		box_option("-q", NULL);
		break;
	case 'r':
		run.as_root = 1;
		box_option("-r", NULL);
		break;
	case 't':
		run.deadline = seconds_take(optarg, EXIT_NO_RUN);
		break;
	case 'U':
		box_option("-U", NULL);
		break;
	case 'V':
		take_virtual(optarg);
		break;
	case 'w':
		run.cwd = optarg;
		box_option("-w", optarg);
		break;
	case 'x':
	case 'X':
		expose(optarg, ch == 'X');
		break;
	default:
		usage();
	}
}

/* The profile of -P, or one that names the command. */
static void
take_profile(const char *command)
{
	const char	*home = getenv("HOME") != NULL ? getenv("HOME") :
			    run.home;
	struct profile	*pf = &run.profile;
	size_t		 i;
	int		 found;

	if (run.profile_name == NULL)
		found = profile_choose(pf, command, home);
	else if (strcmp(run.profile_name, "none") == 0)
		found = 0;
	else
		found = profile_load(pf, run.profile_name, home) == -1 ? -1 : 1;
	if (found == -1)
		exit(EXIT_NO_RUN);
	if (!found)
		return;
	/* With -H all of the home is kept, and in memory nothing is. */
	if (run.kept_home || run.is_virtual)
		words_free(&pf->pf_write);
	profile_drop_links(pf);
	if (profile_make(pf) == -1)
		exit(EXIT_NO_RUN);
	for (i = 0; i < pf->pf_read.ws_count; i++)
		if (access(pf->pf_read.ws_words[i], F_OK) == 0)
			expose(pf->pf_read.ws_words[i], 0);
	for (i = 0; i < pf->pf_write.ws_count; i++)
		expose(pf->pf_write.ws_words[i], 1);
	for (i = 0; i < pf->pf_pass.ws_count; i++)
		environment_pass(pf->pf_pass.ws_words[i]);
	if (!run.quiet)
		profile_say(pf);
}

static void
run_take(struct invocation *in, int argc, char *argv[])
{
	static const struct option	options[] = {
		{ "deadline",	required_argument,	NULL, 't' },
		{ "home",	required_argument,	NULL, 'H' },
		{ "mount",	required_argument,	NULL, 'm' },
		{ "profile",	required_argument,	NULL, 'P' },
		{ "virtual",	optional_argument,	NULL, 'V' },
		{ NULL,		0,			NULL, 0 }
	};
	int				ch;

	box_arg("egressd-box");
	box_option("-e", run.engine);
	if ((run.home = user_home()) != NULL)
		box_option("-h", run.home);
	while ((ch = getopt_long(argc, argv,
	    "+e:Ef:H:m:n:p:P:qrs:S:t:Uvw:x:X:", options, NULL)) != -1)
		take_option(in, ch);
	if (optind >= argc || (in->in_conf != path_conf &&
	    in->in_socket != path_socket &&
	    in->in_socket != getenv(SOCKET_VARIABLE)))
		usage();
	shown_user(run.home, run.as_root);
	if (run.cwd != NULL || run.is_virtual)
		shown_elsewhere();
	/* In memory this is no directory of the host. */
	if (run.cwd != NULL && !run.is_virtual)
		shown_path(run.cwd, 1);
	take_profile(argv[optind]);
	box_arg("--");
	run.command = run.argv.li_count;
	for (; optind < argc; optind++)
		box_arg(argv[optind]);
}

/* ---- the daemon ---------------------------------------------------------- */

/*
 * The one that runs here, or one of our own: if a configuration is named, or
 * if nobody listens where a daemon is expected without anybody's saying so.
 */
static int
find_daemon(const struct invocation *in)
{
	const char	*conf;
	int		 error;

	if (in->in_conf == path_conf && run.directory == NULL) {
		if ((error = client_try(&run.client, in->in_socket)) == 0)
			return 0;
		client_close(&run.client);
		if (in->in_socket != path_socket ||
		    (error != ENOENT && error != ECONNREFUSED)) {
			if (error > 0)
				explain_connect(in->in_socket, error);
			return -1;
		}
	}
	if ((conf = private_conf(in, &run.profile)) == NULL ||
	    secrets_check(conf, shown_is) == -1)
		return -1;
	return private_start(&run.private, &run.client, conf, run.directory,
	    run.verbose);
}

/* The answer, or NULL after showing the refusal. */
static cJSON *
ask(const struct invocation *in, cJSON *request, int fd)
{
	cJSON	*answer;
	char	*line;

	answer = exchange_ask(&run.client, request, fd, &line);
	if (answer == NULL || json_get(answer, "error") == NULL)
		return answer;
	explain_refusal(in->in_command, answer);
	cJSON_Delete(answer);
	return NULL;
}

/* The daemon is ready when it has answered. */
static int
greet_daemon(const struct invocation *in)
{
	const cJSON	*file;
	cJSON		*answer, *request;

	if ((answer = ask(in, exchange_request("status"), -1)) == NULL)
		return -1;
	if (run.private.pv_pid != 0 && !run.verbose) {
		request = exchange_request("log.level");
		cJSON_AddStringToObject(request, "level", "warn");
		cJSON_Delete(ask(in, request, -1));
	}
	file = json_get(json_get(answer, "audit"), "file");
	if (!run.quiet) {
		shown_warn(json_get(answer, "configuration"));
		shown_warn(file);
	}
	if (run.verbose) {
		fputs("egressctl: records: ", stderr);
		json_put(stderr, file);
		fputs(file == NULL ? " (no audit file)\n" : "\n", stderr);
	}
	cJSON_Delete(answer);
	return 0;
}

/* Chooses variables; their names, or NULL after saying why not. */
static cJSON *
choose_environment(const struct invocation *in)
{
	cJSON	*request = exchange_request("session.environment");
	cJSON	*answer, *names = cJSON_CreateArray();

	if (run.policy != NULL)
		cJSON_AddStringToObject(request, "policy", run.policy);
	if ((answer = ask(in, request, -1)) == NULL) {
		cJSON_Delete(names);
		return NULL;
	}
	environment_choose(json_get(answer, "environment"));
	cJSON_Delete(answer);
	if (environment_names(names) == -1) {
		cJSON_Delete(names);
		return NULL;
	}
	if (!run.quiet)
		environment_explain();
	return names;
}

/* Starts the session; closes the descriptor, the engine's end. */
static int
start_session(const struct invocation *in, int fd)
{
	cJSON		*answer, *names, *request;
	const char	*name;

	if ((names = choose_environment(in)) == NULL) {
		close(fd);
		return -1;
	}
	request = exchange_request(in->in_command->co_op);
	cJSON_AddItemToObject(request, "environment", names);
	if (run.name != NULL)
		cJSON_AddStringToObject(request, "session_id", run.name);
	if (run.policy != NULL)
		cJSON_AddStringToObject(request, "policy", run.policy);
	if (run.deadline != 0)
		cJSON_AddNumberToObject(request, "deadline", run.deadline);
	answer = ask(in, request, fd);
	close(fd);
	if (answer == NULL)
		return -1;
	if ((name = json_string(answer, "session_id")) != NULL)
		strlcpy(run.session, name, sizeof(run.session));
	if (run.verbose) {
		fputs("egressctl: session ", stderr);
		json_put(stderr, json_get(answer, "session_id"));
		fputs(", policy ", stderr);
		json_put(stderr, json_get(answer, "policy"));
		fputc('\n', stderr);
	}
	cJSON_Delete(answer);
	return 0;
}

/*
 * When the session is over its records are complete and its name is free
 * again.  A daemon that cannot tell any more is no reason to fail.
 */
static void
await_end(void)
{
	cJSON	*request;
	char	*line;
	size_t	 len;

	request = exchange_request("session.wait");
	cJSON_AddStringToObject(request, "session_id", run.session);
	if (client_send(&run.client, request, -1) == 0)
		client_line(&run.client, &line, &len, ANSWER_TIMEOUT_MS);
	cJSON_Delete(request);
}

/* One line of refusals, for who wonders why something did not work. */
static void
say_refusals(void)
{
	cJSON		*request = exchange_request("session.refusals");
	cJSON		*answer = NULL;
	const cJSON	*row, *rows;
	char		*line;
	size_t		 len;
	double		 total, told = 0, count;

	cJSON_AddStringToObject(request, "session_id", run.session);
	/* If the daemon is gone, there is nothing to say here. */
	if (client_send(&run.client, request, -1) == 0 && client_line(
	    &run.client, &line, &len, ANSWER_TIMEOUT_MS) == CLIENT_LINE)
		answer = json_parse(line, len);
	cJSON_Delete(request);
	total = cJSON_GetNumberValue(json_get(answer, "total"));
	rows = json_get(answer, "refusals");
	if (total > 0) {
		fprintf(stderr, "egressctl: %.0f request%s refused:", total,
		    total == 1 ? "" : "s");
		cJSON_ArrayForEach(row, rows) {
			count = cJSON_GetNumberValue(json_get(row, "count"));
			fputs(told > 0 ? ", " : " ", stderr);
			json_put(stderr, json_get(row, "host"));
			fputc(' ', stderr);
			json_put(stderr, json_get(row, "reason"));
			if (count > 1)
				fprintf(stderr, " (%.0f)", count);
			told += count;
		}
		fputs(told < total ? ", ...\n" : "\n", stderr);
	}
	cJSON_Delete(answer);
}

/* With -w a relative path is box's to find: it starts elsewhere. */
static int
seek(void)
{
	const char	*name = run.argv.li_words[run.command];

	return (run.cwd != NULL && *name != '/' && strchr(name, '/') != NULL) ||
	    seek_command(name, shown_by_name) == 0;
}

static int
run_run(const struct invocation *in)
{
	int	late, sv[2], status;

	client_adopt(&run.client, -1, NULL);
	run.private.pv_log = -1;
	if (!seek())
		return EXIT_NOT_FOUND;
	if (shown_check_directory(run.directory) == -1 ||
	    find_daemon(in) == -1 || greet_daemon(in) == -1)
		goto fail;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == -1) {
		warn("socketpair");
		goto fail;
	}
	if (start_session(in, sv[0]) == -1)
		goto fail;
	snprintf(run.engine, sizeof(run.engine), "%d", sv[1]);
	/* execve(2) does not change them. */
	late = box_run((char **)(uintptr_t)run.argv.li_words, sv[1],
	    run.deadline, &run.private, &status);
	await_end();
	if (!run.quiet)
		say_refusals();
	client_close(&run.client);
	private_stop(&run.private, WIFEXITED(status) &&
	    WEXITSTATUS(status) == EXIT_NO_RUN);
	if (late) {
		warnx("the deadline of %u s has passed: the sandbox was ended",
		    run.deadline);
		return EXIT_LATE;
	}
	return box_end_as(status);
fail:
	client_close(&run.client);
	private_stop(&run.private, 1);
	return EXIT_NO_RUN;
}

const struct command command_run = {
	.co_name = "run",
	.co_synopsis = "run [options] -- COMMAND ...",
	.co_help = "run a command in a sandbox, behind the gate",
	.co_run = run_run,
	.co_op = "session.start",
	.co_take = run_take,
};
