/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a file of a sandbox, on standard output.  What is in it is
 * hostile.
 */

#include <err.h>
#include <unistd.h>

#include "hands.h"

static struct {
	const char	*session;
	const char	*path;
} options;

static struct content	content;

static const struct token t_path[] = {
	{ WORD, "path", NULL, NULL, &options.path, NULL },
	{ 0 }
};

static const struct token t_read[] = {
	{ SESSION_ID, "session ID", t_path, NULL, &options.session, NULL },
	{ 0 }
};

static void
read_data(struct call *ca, const char *data, size_t len)
{
	struct task	*ta = call_arg(ca);

	if (content_put(&content, data, len) == 0 || ta->ta_status != 0)
		return;
	warn("standard output");
	ta->ta_status = EXIT_NO_DAEMON;
	ta->ta_excused = "cancelled";
	call_cancel(ca);
}

static const struct call_ops read_ops = {
	.op_data = read_data,
	.op_done = task_done,
};

static int
read_run(const struct invocation *in)
{
	struct task	ta;
	struct jsonw	w;

	if (task_open(&ta, in, options.session) == -1)
		return ta.ta_status;
	ta.ta_subject = options.path;
	content_init(&content, STDOUT_FILENO, in, "data");
	call_op(&w, "read");
	put_str(&w, "path", options.path);
	task_ask(&ta, &w, &read_ops);
	content_end(&content);
	return task_show_close(&ta);
}

const struct command command_read = {
	.co_name = "read",
	.co_synopsis = "read SESSION PATH",
	.co_help = "show a file of a sandbox",
	.co_tokens = t_read,
	.co_run = read_run,
	.co_op = "session.attach",
};
