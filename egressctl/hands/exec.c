/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a command in a sandbox that runs already.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hands.h"
#include "list.h"
#include "name.h"

static struct {
	const char	*session;
	struct order	 order;
	struct list	 argv;
	struct list	 env;
} options;

static void __attribute__((__noreturn__))
usage(void)
{
	fputs("usage: egressctl exec [-ijT] [-e name[=value]] [-s socket] "
	    "[-t time]\n\t[-w directory] session -- command "
	    "[argument ...]\n", stderr);
	exit(EXIT_NO_RUN);
}

/* The value may be a secret: it is never shown.  NAME alone is ours. */
static void
take_variable(const char *arg)
{
	size_t		 len = strcspn(arg, "=");
	char		*name, *whole;
	const char	*value, *why;

	if ((name = strndup(arg, len)) == NULL)
		err(EXIT_NO_RUN, NULL);
	if ((why = name_variable_error(name)) != NULL)
		errx(EXIT_NO_RUN, "-e %s: %s", name, why);
	value = arg[len] == '=' ? arg + len + 1 : getenv(name);
	if (value == NULL)
		errx(EXIT_NO_RUN, "-e %s: there is no such variable", name);
	if (asprintf(&whole, "%s=%s", name, value) == -1)
		err(EXIT_NO_RUN, NULL);
	free(name);
	list_add(&options.env, whole);
}

static void
take_options(struct invocation *in, int argc, char *argv[])
{
	int	ch;

	while ((ch = getopt(argc, argv, "+e:ijs:t:Tw:")) != -1)
		switch (ch) {
		case 'e':
			take_variable(optarg);
			break;
		case 'i':
			options.order.or_stdin = 1;
			break;
		case 'j':
			in->in_output = &output_json;
			break;
		case 's':
			in->in_socket = optarg;
			break;
		case 't':
			options.order.or_timeout = seconds_take(optarg,
			    EXIT_NO_RUN);
			break;
		case 'T':
			options.order.or_tty = 1;
			break;
		case 'w':
			options.order.or_cwd = optarg;
			break;
		default:
			usage();
		}
}

static void
exec_take(struct invocation *in, int argc, char *argv[])
{
	take_options(in, argc, argv);
	if (optind >= argc)
		usage();
	options.session = argv[optind++];
	take_options(in, argc, argv);
	if (optind >= argc || *options.session == '\0')
		usage();
	for (; optind < argc; optind++)
		list_add(&options.argv, argv[optind]);
	options.order.or_argv = options.argv.li_words;
	options.order.or_env = options.env.li_words;
}

static int
exec_run(const struct invocation *in)
{
	return process_run(in, options.session, &options.order);
}

const struct command command_exec = {
	.co_name = "exec",
	.co_synopsis = "exec [options] SESSION -- COMMAND ...",
	.co_help = "run a command in a sandbox that runs already",
	.co_run = exec_run,
	.co_op = "session.attach",
	.co_take = exec_take,
};
