/* SPDX-License-Identifier: ISC */

/*
 * egressctl: what is in a directory of a sandbox.  Names are hostile.
 */

#include <string.h>
#include <time.h>

#include "hands.h"
#include "show.h"

static struct {
	const char	*session;
	const char	*path;		/* or NULL */
} options;

static const struct token t_path[] = {
	{ .tk_type = END },
	{ WORD, "path", NULL, NULL, &options.path, NULL },
	{ 0 }
};

static const struct token t_ls[] = {
	{ SESSION_ID, "session ID", t_path, NULL, &options.session, NULL },
	{ 0 }
};

/* As ls(1) has it. */
static void
put_mode(const char *type, uint64_t mode)
{
	static const char	bits[] = "rwxrwxrwx";
	int			i;

	if (type == NULL)
		type = "other";
	putchar(strcmp(type, "directory") == 0 ? 'd' :
	    strcmp(type, "link") == 0 ? 'l' :
	    strcmp(type, "file") == 0 ? '-' : '?');
	for (i = 0; i < 9; i++)
		putchar(mode & (0400U >> i) ? bits[i] : '-');
}

/* Seconds since the epoch, of which box may say anything. */
void
mtime_put(const cJSON *item)
{
	char		 buf[32] = "-";
	double		 value = cJSON_IsNumber(item) ? item->valuedouble : 0;
	time_t		 when;
	struct tm	 tm;

	if (cJSON_IsNumber(item) && value > -1e11 && value < 1e11) {
		when = (time_t)value;
		if (localtime_r(&when, &tm) != NULL)
			strftime(buf, sizeof(buf), "%Y-%m-%d %H:%M", &tm);
	}
	printf("%-16s", buf);
}

/* An entry, or the result. */
static void
ls_put(const cJSON *json)
{
	const char	*name = json_string(json, "name");
	uint64_t	 mode = 0, size = 0;

	if (name == NULL) {
		truncated_put(json);
		return;
	}
	body_number(json, "mode", &mode);
	body_number(json, "size", &size);
	put_mode(json_string(json, "type"), mode);
	printf(" %10llu ", (unsigned long long)size);
	mtime_put(json_get(json, "mtime"));
	putchar(' ');
	visible_put(stdout, name, VISIBLE_LINE);
	putchar('\n');
}

static int
ls_run(const struct invocation *in)
{
	struct jsonw	w;

	call_op(&w, "list");
	if (options.path != NULL)
		put_str(&w, "path", options.path);
	return task_run(in, options.session, options.path, &w,
	    &task_item_ops);
}

const struct command command_ls = {
	.co_name = "ls",
	.co_synopsis = "ls SESSION [PATH]",
	.co_help = "list a directory there",
	.co_tokens = t_ls,
	.co_run = ls_run,
	.co_op = "session.attach",
	.co_show = ls_put,
};
