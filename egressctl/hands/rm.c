/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a file or directory of a sandbox, removed.
 */

#include "hands.h"

static struct {
	const char	*session;
	const char	*path;
	int		 recursive;
} options;

static const struct token t_path[] = {
	{ WORD, "path", NULL, NULL, &options.path, NULL },
	{ 0 }
};

static const struct token t_rm[] = {
	{ SESSION_ID, "session ID", t_path, NULL, &options.session, NULL },
	{ 0 }
};

static void
rm_option(int ch, const char *arg)
{
	(void)ch;
	(void)arg;
	options.recursive = 1;
}

static int
rm_run(const struct invocation *in)
{
	struct jsonw	w;

	call_op(&w, "remove");
	put_str(&w, "path", options.path);
	if (options.recursive)
		put_bool(&w, "recursive", 1);
	return task_run(in, options.session, options.path, &w,
	    &task_ops);
}

const struct command command_rm = {
	.co_name = "rm",
	.co_synopsis = "rm [-r] SESSION PATH",
	.co_help = "remove a file or directory there",
	.co_tokens = t_rm,
	.co_run = rm_run,
	.co_op = "session.attach",
	.co_options = "r",
	.co_option = rm_option,
};
