/* SPDX-License-Identifier: ISC */

/*
 * The hands of a sandbox run this: a process without rights of its own beside
 * the commands that it starts.
 */

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../box.h"
#include "hands.h"

void
hands_serve_channel(int channel, const struct hands_options *ho)
{
	(void)ho;
	(void)close(channel);
	_exit(BOX_FAILED);
}

int
hands_serve_pair(int in, int out, const struct hands_options *ho)
{
	(void)ho;
	(void)close(in);
	(void)close(out);
	return BOX_FAILED;
}

static void __attribute__((__noreturn__))
usage(void)
{
	fprintf(stderr, "usage: egressd-box hands [-F] [-d directory]\n");
	exit(BOX_FAILED);
}

int
hands_main(int argc, char **argv)
{
	struct hands_options	 ho = { 0, NULL };
	const char		*directory = NULL;
	int			 ch;

	while ((ch = getopt(argc, argv, "+Fd:")) != -1) {
		switch (ch) {
		case 'F':
			ho.ho_forward = 1;
			break;
		case 'd':
			directory = optarg;
			break;
		default:
			usage();
		}
	}
	if (argc != optind)
		usage();
	if (directory != NULL && chdir(directory) == -1)
		err(BOX_FAILED, "%s", directory);
	if ((ho.ho_cwd = getcwd(NULL, 0)) == NULL)
		err(BOX_FAILED, "working directory");
	return hands_serve_pair(STDIN_FILENO, STDOUT_FILENO, &ho);
}
