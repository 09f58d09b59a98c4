/* SPDX-License-Identifier: ISC */

/*
 * egressctl: what a project in a sandbox tells agents, from its working
 * directory on.  Whoever lives there may have written it.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hands.h"
#include "list.h"
#include "show.h"

#define PATTERN		"{AGENTS.md,CLAUDE.md,.agents/skills/*/SKILL.md}"
#define FILES_MAX	256
#define FILE_MAX	(1024 * 1024)	/* bytes */

static struct {
	const char	*session;
} options;

static struct {
	struct task	 task;
	struct words	 paths;
	char		*text;
	size_t		 len;
	size_t		 size;
} it;

static const struct token t_instructions[] = {
	{ SESSION_ID, "session ID", NULL, NULL, &options.session, NULL },
	{ 0 }
};

static void
take_path(struct call *ca, const cJSON *item, const char *text)
{
	const char	*path = json_string(item, "path");

	(void)ca;
	(void)text;
	if (path != NULL && it.paths.ws_count < FILES_MAX)
		words_add(&it.paths, strdup(path));
}

static const struct call_ops glob_ops = {
	.op_item = take_path,
	.op_done = task_done,
};

/* What is beyond the limit is left out. */
static void
take_text(struct call *ca, const char *data, size_t len)
{
	char	*text;

	if (len > FILE_MAX - it.len) {
		len = FILE_MAX - it.len;
		it.task.ta_excused = "cancelled";
		call_cancel(ca);
	}
	if (it.len + len > it.size) {
		it.size = it.len + len + FRAME_BODY_MAX;
		if ((text = realloc(it.text, it.size)) == NULL)
			err(EXIT_NO_DAEMON, NULL);
		it.text = text;
	}
	if (len > 0)
		memcpy(it.text + it.len, data, len);
	it.len += len;
}

static const struct call_ops read_ops = {
	.op_data = take_text,
	.op_done = task_done,
};

static void
put_json(const struct invocation *in, const char *path)
{
	struct jsonw	 w;
	const char	*line;
	char		*copy;
	size_t		 len;

	jsonw_init(&w, JSONW_ESCAPED(FILE_MAX + FRAME_BODY_MAX));
	jsonw_object(&w);
	put_str(&w, "path", path);
	jsonw_key(&w, "text");
	jsonw_string(&w, it.len > 0 ? it.text : "", it.len);
	jsonw_end(&w);
	if ((line = jsonw_finish(&w, &len)) == NULL ||
	    (copy = strndup(line, len)) == NULL)
		errx(EXIT_NO_DAEMON, "out of memory");
	in->in_output->ou_answer(in->in_command, copy, NULL);
	free(copy);
	jsonw_free(&w);
}

static void
put_text(const struct invocation *in, const char *path)
{
	static int	count;
	struct content	ct;

	if (count++ > 0)
		putchar('\n');
	fputs("==> ", stdout);
	visible_put(stdout, path, VISIBLE_LINE);
	puts(" <==");
	fflush(stdout);
	content_init(&ct, STDOUT_FILENO, in, NULL);
	if (content_put(&ct, it.text, it.len) == -1)
		err(EXIT_NO_DAEMON, "standard output");
	content_end(&ct);
	if (it.len > 0 && it.text[it.len - 1] != '\n')
		putchar('\n');
}

static void
show_file(const struct invocation *in, const char *path)
{
	struct jsonw	w;

	it.len = 0;
	it.task.ta_subject = path;
	it.task.ta_excused = NULL;
	call_op(&w, "read");
	put_str(&w, "path", path);
	if (task_ask(&it.task, &w, &read_ops) == -1 &&
	    !it.task.ta_was_excused)
		return;
	if (in->in_output == &output_json)
		put_json(in, path);
	else
		put_text(in, path);
	if (it.task.ta_was_excused || it.len == FILE_MAX)
		warnx("instructions: the beginning of a long file");
}

static int
instructions_run(const struct invocation *in)
{
	struct jsonw	w;
	size_t		i;

	if (task_open(&it.task, in, options.session) == -1)
		return it.task.ta_status;
	call_op(&w, "glob");
	put_str(&w, "pattern", PATTERN);
	put_uint(&w, "limit", FILES_MAX);
	if (task_ask(&it.task, &w, &glob_ops) == 0)
		for (i = 0; i < it.paths.ws_count &&
		    link_error(it.task.ta_link) == NULL; i++)
			show_file(in, it.paths.ws_words[i]);
	words_free(&it.paths);
	free(it.text);
	return task_close(&it.task);
}

const struct command command_instructions = {
	.co_name = "instructions",
	.co_synopsis = "instructions SESSION",
	.co_help = "show what a project there tells agents",
	.co_tokens = t_instructions,
	.co_run = instructions_run,
	.co_op = "session.attach",
};
