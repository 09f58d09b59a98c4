/* SPDX-License-Identifier: ISC */

/*
 * egressctl: paths of a sandbox that match a pattern.  Names in there are
 * hostile.
 */

#include "hands.h"
#include "show.h"

static struct {
	const char	*session;
	const char	*pattern;
	const char	*directory;	/* -w, or NULL */
} options;

static const struct token t_pattern[] = {
	{ WORD, "pattern", NULL, NULL, &options.pattern, NULL },
	{ 0 }
};

static const struct token t_glob[] = {
	{ SESSION_ID, "session ID", t_pattern, NULL, &options.session, NULL },
	{ 0 }
};

static void
glob_option(int ch, const char *arg)
{
	(void)ch;
	options.directory = arg;
}

/* A path, or the result. */
static void
glob_put(const cJSON *json)
{
	const char	*path = json_string(json, "path");

	if (path == NULL)
		truncated_put(json);
	else {
		visible_put(stdout, path, VISIBLE_LINE);
		putchar('\n');
	}
}

static int
glob_run(const struct invocation *in)
{
	struct jsonw	w;

	call_op(&w, "glob");
	put_str(&w, "pattern", options.pattern);
	if (options.directory != NULL)
		put_str(&w, "cwd", options.directory);
	return task_run(in, options.session, options.pattern, &w,
	    &task_item_ops);
}

const struct command command_glob = {
	.co_name = "glob",
	.co_synopsis = "glob [-w DIRECTORY] SESSION PATTERN",
	.co_help = "list paths there that match",
	.co_tokens = t_glob,
	.co_run = glob_run,
	.co_op = "session.attach",
	.co_show = glob_put,
	.co_options = "w:",
	.co_option = glob_option,
};
