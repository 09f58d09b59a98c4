/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a text in a file of a sandbox, replaced by another.
 */

#include "hands.h"

static struct {
	const char	*session;
	const char	*path;
	const char	*old_text;
	const char	*new_text;
} options;

static const struct token t_new[] = {
	{ WORD, "new text", NULL, NULL, &options.new_text, NULL },
	{ 0 }
};

static const struct token t_old[] = {
	{ WORD, "old text", t_new, NULL, &options.old_text, NULL },
	{ 0 }
};

static const struct token t_path[] = {
	{ WORD, "path", t_old, NULL, &options.path, NULL },
	{ 0 }
};

static const struct token t_edit[] = {
	{ SESSION_ID, "session ID", t_path, NULL, &options.session, NULL },
	{ 0 }
};

/* What the file holds now nobody has asked for. */
static void
edit_data(struct call *ca, const char *data, size_t len)
{
	(void)ca;
	(void)data;
	(void)len;
}

static const struct call_ops edit_ops = {
	.op_data = edit_data,
	.op_done = task_done,
};

static int
edit_run(const struct invocation *in)
{
	struct task	ta;
	struct jsonw	w;

	if (task_open(&ta, in, options.session) == -1)
		return ta.ta_status;
	ta.ta_subject = options.path;
	call_op(&w, "edit");
	put_str(&w, "path", options.path);
	put_str(&w, "old", options.old_text);
	put_str(&w, "new", options.new_text);
	task_ask(&ta, &w, &edit_ops);
	return task_show_close(&ta);
}

const struct command command_edit = {
	.co_name = "edit",
	.co_synopsis = "edit SESSION PATH OLD NEW",
	.co_help = "replace a text that is there once",
	.co_tokens = t_edit,
	.co_run = edit_run,
	.co_op = "session.attach",
};
