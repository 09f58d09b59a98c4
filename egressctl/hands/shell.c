/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a shell in a sandbox, on this terminal.
 */

#include <unistd.h>

#include "hands.h"

static struct {
	const char	*session;
} options;

static const struct token t_shell[] = {
	{ SESSION_ID, "session ID", NULL, NULL, &options.session, NULL },
	{ 0 }
};

/*
 * The one that the sandbox names, if it has that.  Input that ends is no
 * terminal: a shell on one that nobody types at would wait for ever.
 */
static int
shell_run(const struct invocation *in)
{
	struct order	order = {
		.or_command = "for s in \"$SHELL\" /bin/bash /bin/sh; do "
		    "test -x \"$s\" && exec \"$s\"; done",
		.or_stdin = 1,
		.or_tty = isatty(STDIN_FILENO),
	};

	return process_run(in, options.session, &order);
}

const struct command command_shell = {
	.co_name = "shell",
	.co_synopsis = "shell SESSION",
	.co_help = "run a shell there, on this terminal",
	.co_tokens = t_shell,
	.co_run = shell_run,
	.co_op = "session.attach",
};
