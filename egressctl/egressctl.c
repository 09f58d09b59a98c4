/* SPDX-License-Identifier: ISC */

/*
 * egressctl: reads the command line and runs one command.  Options may
 * stand before, between and after the words of the command.
 */

#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egressctl.h"

static const char *
default_socket(void)
{
	const char	*path = getenv(SOCKET_VARIABLE);

	return path != NULL && *path != '\0' ? path : path_socket;
}

static void
usage(FILE *fp)
{
	fputs("usage: egressctl [-hjV] [-f file] [-s socket] command "
	    "[argument ...]\n\n", fp);
	parser_list_commands(fp);
}

static void __attribute__((__noreturn__))
usage_short(const struct command *command)
{
	if (command != NULL && command->co_synopsis != NULL)
		fprintf(stderr, "usage: egressctl %s\n",
		    command->co_synopsis);
	else
		fputs("usage: egressctl [-hjV] [-f file] [-s socket] command "
		    "[argument ...]\n", stderr);
	exit(EXIT_USAGE);
}

/* An option of all commands. */
static void
take_option(struct invocation *in, int ch)
{
	switch (ch) {
	case 'f':
		in->in_conf = optarg;
		break;
	case 'h':
		usage(stdout);
		exit(output_finish(0));
	case 'j':
		in->in_output = &output_json;
		break;
	case 's':
		in->in_socket = optarg;
		break;
	case 'V':
		puts("egressctl " EGRESSD_VERSION);
		exit(output_finish(0));
	case '?':
		usage_short(in->in_command);
	}
}

static const char *
command_options(const struct invocation *in)
{
	return in->in_command != NULL && in->in_command->co_options != NULL ?
	    in->in_command->co_options : "";
}

/*
 * Takes the options at optind, up to the next word of the command.  1 if only
 * words follow, after a "--"; getopt(3) is never shown one, as some then go to
 * the end of the line at once.
 */
static int
parse_options(struct invocation *in, int argc, char *argv[])
{
	char	set[32];
	int	ch;

	/* getopt(3) takes the first: a command's own stand before ours. */
	snprintf(set, sizeof(set), "+%sf:hjs:V", command_options(in));
	while (optind < argc && strcmp(argv[optind], "--") != 0) {
		if (strncmp(argv[optind], "--", 2) == 0) {
			fprintf(stderr, "egressctl: unknown option %s\n",
			    argv[optind]);
			usage_short(in->in_command);
		}
		if ((ch = getopt(argc, argv, set)) == -1)
			break;
		if (ch != '?' && strchr(command_options(in), ch) != NULL)
			in->in_command->co_option(ch, optarg);
		else
			take_option(in, ch);
	}
	if (optind == argc || strcmp(argv[optind], "--") != 0)
		return 0;
	optind++;
	return 1;
}

int
main(int argc, char *argv[])
{
	struct invocation	 in = {
		.in_output = &output_text,
		.in_conf = path_conf,
	};
	const struct command	*command;
	struct parser		 parser;
	int			 only_words = 0;

	/* A reader that leaves ends egressctl quietly, even under SIG_IGN. */
	signal(SIGPIPE, SIG_DFL);
	setlocale(LC_CTYPE, "");
	paths_init();
	in.in_socket = default_socket();
	parser_init(&parser);

	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	for (;;) {
		if (!only_words)
			only_words = parse_options(&in, argc, argv);
		if (optind >= argc)
			break;
		if (parser_word(&parser, &in, argv[optind++]) == -1)
			return EXIT_USAGE;
		if (in.in_command != NULL && in.in_command->co_take != NULL) {
			in.in_command->co_take(&in, argc, argv);
			break;
		}
	}
	if ((command = parser_end(&parser, &in)) == NULL)
		return EXIT_USAGE;

	return output_finish(command->co_run(&in));
}
