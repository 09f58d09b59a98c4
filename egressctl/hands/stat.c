/* SPDX-License-Identifier: ISC */

/*
 * egressctl: what a file of a sandbox is.
 */

#include "hands.h"
#include "show.h"

static struct {
	const char	*session;
	const char	*path;
	int		 link;		/* -l: of a link itself */
} options;

static const struct token t_path[] = {
	{ WORD, "path", NULL, NULL, &options.path, NULL },
	{ 0 }
};

static const struct token t_stat[] = {
	{ SESSION_ID, "session ID", t_path, NULL, &options.session, NULL },
	{ 0 }
};

static void
stat_option(int ch, const char *arg)
{
	(void)ch;
	(void)arg;
	options.link = 1;
}

static void
put_member(const cJSON *json, const char *name)
{
	const cJSON	*item = json_get(json, name);

	if (item == NULL)
		return;
	printf("%-10s", name);
	if (cJSON_IsString(item))
		visible_put(stdout, item->valuestring, VISIBLE_LINE);
	else
		json_put(stdout, item);
	putchar('\n');
}

static void
stat_put(const cJSON *json)
{
	uint64_t	mode;

	put_member(json, "type");
	put_member(json, "size");
	if (body_number(json, "mode", &mode) == 0)
		printf("%-10s%04llo\n", "mode", (unsigned long long)mode);
	fputs("mtime     ", stdout);
	mtime_put(json_get(json, "mtime"));
	putchar('\n');
	put_member(json, "uid");
	put_member(json, "gid");
	put_member(json, "target");
}

static int
stat_run(const struct invocation *in)
{
	struct jsonw	w;

	call_op(&w, "stat");
	put_str(&w, "path", options.path);
	if (options.link)
		put_bool(&w, "follow", 0);
	return task_run(in, options.session, options.path, &w, &task_ops);
}

const struct command command_stat = {
	.co_name = "stat",
	.co_synopsis = "stat [-l] SESSION PATH",
	.co_help = "show what a file there is",
	.co_tokens = t_stat,
	.co_run = stat_run,
	.co_op = "session.attach",
	.co_show = stat_put,
	.co_options = "l",
	.co_option = stat_option,
};
