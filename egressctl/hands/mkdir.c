/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a directory in a sandbox, made with its parents.
 */

#include "hands.h"

static struct {
	const char	*session;
	const char	*path;
	const char	*mode;		/* -m, or NULL */
} options;

static const struct token t_path[] = {
	{ WORD, "path", NULL, NULL, &options.path, NULL },
	{ 0 }
};

static const struct token t_mkdir[] = {
	{ SESSION_ID, "session ID", t_path, NULL, &options.session, NULL },
	{ 0 }
};

static void
mkdir_option(int ch, const char *arg)
{
	(void)ch;
	options.mode = arg;
}

static int
mkdir_run(const struct invocation *in)
{
	struct jsonw	w;

	call_op(&w, "mkdir");
	put_str(&w, "path", options.path);
	if (options.mode != NULL)
		put_uint(&w, "mode", mode_take(options.mode));
	return task_run(in, options.session, options.path, &w,
	    &task_ops);
}

const struct command command_mkdir = {
	.co_name = "mkdir",
	.co_synopsis = "mkdir [-m MODE] SESSION PATH",
	.co_help = "make a directory there, with its parents",
	.co_tokens = t_mkdir,
	.co_run = mkdir_run,
	.co_op = "session.attach",
	.co_options = "m:",
	.co_option = mkdir_option,
};
