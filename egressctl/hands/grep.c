/* SPDX-License-Identifier: ISC */

/*
 * egressctl: lines of files in a sandbox that match an expression.  Names and
 * lines are hostile.
 */

#include <string.h>

#include "hands.h"
#include "show.h"

static struct {
	const char	*session;
	const char	*pattern;
	const char	*path;		/* or NULL */
	const char	*glob;		/* -g, or NULL */
	int		 any_case;
} options;

static const struct token t_path[] = {
	{ .tk_type = END },
	{ WORD, "path", NULL, NULL, &options.path, NULL },
	{ 0 }
};

static const struct token t_pattern[] = {
	{ WORD, "pattern", t_path, NULL, &options.pattern, NULL },
	{ 0 }
};

static const struct token t_grep[] = {
	{ SESSION_ID, "session ID", t_pattern, NULL, &options.session, NULL },
	{ 0 }
};

static void
grep_option(int ch, const char *arg)
{
	if (ch == 'i')
		options.any_case = 1;
	else
		options.glob = arg;
}

/* A line that holds others would be lines of ours. */
static void
put_text(const char *text)
{
	size_t	len, taken;

	for (;;) {
		len = strcspn(text, "\n");
		taken = visible_put_content(stdout, text, len);
		for (text += taken, len -= taken; len > 0; text++, len--)
			printf("\\%03o", (unsigned char)*text);
		if (*text == '\0')
			break;
		fputs("\\n", stdout);
		text++;
	}
}

static void
put_line(const cJSON *item)
{
	const char	*line = json_string(item, "line");
	const char	*path = json_string(item, "path");

	visible_put(stdout, path != NULL ? path : "-", VISIBLE_LINE);
	putchar(':');
	json_put(stdout, json_get(item, "line_number"));
	putchar(':');
	put_text(line != NULL ? line : "");
	puts(cJSON_IsTrue(json_get(item, "cut")) ? " [...]" : "");
}

static void
put_count(const cJSON *result, const char *member, const char *text)
{
	uint64_t	n;

	if (body_number(result, member, &n) == 0 && n > 0)
		fprintf(stderr, "egressctl: %llu %s\n", (unsigned long long)n,
		    text);
}

/* A line, or the result. */
static void
grep_put(const cJSON *json)
{
	if (json_get(json, "line") != NULL) {
		put_line(json);
		return;
	}
	truncated_put(json);
	put_count(json, "binary_skipped", "binary, not searched");
	put_count(json, "unreadable", "cannot be read");
}

static int
grep_run(const struct invocation *in)
{
	struct jsonw	w;

	call_op(&w, "grep");
	put_str(&w, "pattern", options.pattern);
	if (options.path != NULL)
		put_str(&w, "path", options.path);
	if (options.glob != NULL)
		put_str(&w, "glob", options.glob);
	if (options.any_case)
		put_bool(&w, "case_sensitive", 0);
	return task_run(in, options.session, options.path != NULL ?
	    options.path : options.pattern, &w, &task_item_ops);
}

const struct command command_grep = {
	.co_name = "grep",
	.co_synopsis = "grep [-i] SESSION PATTERN [PATH]",
	.co_help = "list lines there that match",
	.co_tokens = t_grep,
	.co_run = grep_run,
	.co_op = "session.attach",
	.co_show = grep_put,
	.co_options = "g:i",
	.co_option = grep_option,
};
