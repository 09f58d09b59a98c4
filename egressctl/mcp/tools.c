/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: the tools, one for each operation of a sandbox, and a call of
 * one.  There is none for "forward": a model has no use for a stream.
 */

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mcp.h"
#include "show.h"

#define BIG	INTEGER_MAX
#define PATH_ABOUT	"Absolute, or relative to the sandbox's working "   \
    "directory. U+EF80 to U+EFFF stand for bytes that are no UTF-8."
#define NONE	{ NULL, VALUE_NONE, 0, NULL, 0, 0, 0 }
#define STRING(n, k, f, a)	{ n, k, f, a, 0, 0, -1 }
#define NUMBER(n, f, a, min, max, preset)	\
    { n, VALUE_NUMBER, f, a, min, max, preset }
#define PATH	STRING("path", VALUE_PATH, VALUE_NEEDED, PATH_ABOUT)
#define LIMIT	NUMBER("limit", 0, "At most so many.", 1, 10000, 1000)
#define MODE	NUMBER("mode", 0, "Permissions of a new one, as a decimal " \
    "number: 493 is 0755.", 0, 4095, -1)
#define COUNT	NUMBER("count", VALUE_NEEDED, "How many these are.", 0, BIG, -1)
#define TRUNCATED	STRING("truncated", VALUE_BOOL, VALUE_NEEDED,	\
    "Whether there is more than this.")

/* ---- what the tools take and give ---------------------------------------- */

static const struct value read_args[] = {
	PATH,
	NUMBER("offset", 0, "Byte to begin at.", 0, BIG, 0),
	NUMBER("length", VALUE_OURS, "Bytes, at most.", 1, READ_MOST,
	    READ_DEFAULT),
	NONE
};

static const struct value read_gives[] = {
	STRING("content", VALUE_TEXT, VALUE_NEEDED, "What the file says."),
	STRING("encoding", VALUE_ENCODING, VALUE_NEEDED, "Of content."),
	NUMBER("offset", VALUE_NEEDED, "Where it begins.", 0, BIG, -1),
	NUMBER("bytes", VALUE_NEEDED, "How many bytes it is.", 0, BIG, -1),
	TRUNCATED,
	NUMBER("next_offset", 0, "Where the file goes on.", 0, BIG, -1),
	NONE
};

static const struct value write_args[] = {
	PATH,
	STRING("content", VALUE_TEXT, VALUE_NEEDED | VALUE_OURS,
	    "The whole new content."),
	STRING("encoding", VALUE_ENCODING, VALUE_OURS,
	    "Of content: utf-8, which is the default, or base64."),
	MODE,
	NONE
};

static const struct value write_gives[] = {
	NUMBER("bytes", VALUE_NEEDED, "The file's size now.", 0, BIG, -1),
	STRING("created", VALUE_BOOL, VALUE_NEEDED, "Whether it is new."),
	NONE
};

static const struct value edit_args[] = {
	PATH,
	STRING("old", VALUE_TEXT, VALUE_NEEDED,
	    "Text that is in the file exactly once."),
	STRING("new", VALUE_TEXT, VALUE_NEEDED, "Text to stand there instead."),
	NONE
};

static const struct value edit_gives[] = {
	NUMBER("occurrences", VALUE_NEEDED, "1", 0, BIG, -1),
	NUMBER("bytes", VALUE_NEEDED, "The file's size now.", 0, BIG, -1),
	NONE
};

static const struct value exec_args[] = {
	STRING("command", VALUE_TEXT, 0,
	    "For /bin/sh -c. Either this or argv."),
	STRING("argv", VALUE_WORDS, 0, "A program and its arguments, without "
	    "a shell."),
	STRING("cwd", VALUE_PATH, 0, PATH_ABOUT),
	STRING("env", VALUE_MAP, 0, "Variables on top of the sandbox's own."),
	NUMBER("timeout_ms", 0, "After so long the command and all that it "
	    "has started are killed.", 1, EXEC_MOST_MS, EXEC_DEFAULT_MS),
	STRING("stdin", VALUE_TEXT, VALUE_OURS, "Standard input; by default "
	    "there is none."),
	STRING("merge", VALUE_BOOL, 0, "Standard error into standard output, "
	    "in the order in which they were written."),
	NONE
};

static const struct value exec_gives[] = {
	NUMBER("exit_code", 0, "If the command ended by itself.", 0, BIG, -1),
	STRING("signal", VALUE_TEXT, 0, "If a signal ended it."),
	STRING("stdout", VALUE_TEXT, VALUE_NEEDED, "Standard output."),
	STRING("stderr", VALUE_TEXT, VALUE_NEEDED, "Standard error."),
	NUMBER("stdout_bytes", VALUE_NEEDED, "How much there was of it.", 0,
	    BIG, -1),
	NUMBER("stderr_bytes", VALUE_NEEDED, "How much there was of it.", 0,
	    BIG, -1),
	STRING("truncated", VALUE_BOOL, VALUE_NEEDED, "Whether the middle of "
	    "an output is left out: more than 256 KiB are not shown."),
	NUMBER("refused", VALUE_NEEDED, "Requests that the gate refused "
	    "during the call.", 0, BIG, -1),
	STRING("refusals", VALUE_REFUSALS, VALUE_NEEDED, "Which these were."),
	STRING("error", VALUE_TEXT, 0, "Why there is neither an exit code nor "
	    "a signal, such as timeout."),
	NONE
};

static const struct value glob_args[] = {
	STRING("pattern", VALUE_PATH, VALUE_NEEDED, "** crosses directories; "
	    "*, ?, [...] and {a,b} do not. A leading dot has to be written."),
	STRING("cwd", VALUE_PATH, 0, "Where to begin. " PATH_ABOUT),
	LIMIT,
	NONE
};

static const struct value glob_gives[] = {
	STRING("paths", VALUE_WORDS, VALUE_NEEDED, "What matches."),
	COUNT,
	TRUNCATED,
	NONE
};

static const struct value grep_args[] = {
	STRING("pattern", VALUE_TEXT, VALUE_NEEDED, "A POSIX extended regular "
	    "expression."),
	STRING("path", VALUE_PATH, 0, "A file, or a directory with all that "
	    "is in it. By default the working directory."),
	STRING("glob", VALUE_PATH, 0, "Only files that match this."),
	STRING("case_sensitive", VALUE_BOOL, 0, "By default true."),
	LIMIT,
	NONE
};

const struct value match_values[] = {
	STRING("path", VALUE_TEXT, VALUE_NEEDED, "The file."),
	NUMBER("line_number", VALUE_NEEDED, "From 1.", 0, BIG, -1),
	STRING("line", VALUE_TEXT, VALUE_NEEDED, "The line."),
	STRING("cut", VALUE_BOOL, VALUE_NEEDED, "Whether the line is longer."),
	NONE
};

static const struct value grep_gives[] = {
	STRING("matches", VALUE_MATCHES, VALUE_NEEDED, "Lines that match."),
	COUNT,
	TRUNCATED,
	NONE
};

static const struct value list_args[] = {
	STRING("path", VALUE_PATH, 0, PATH_ABOUT " By default that directory."),
	LIMIT,
	NONE
};

const struct value entry_values[] = {
	STRING("name", VALUE_TEXT, VALUE_NEEDED, "Without the directory."),
	STRING("type", VALUE_TEXT, VALUE_NEEDED,
	    "file, directory, link or other"),
	NUMBER("size", VALUE_NEEDED, "Bytes.", 0, BIG, -1),
	NUMBER("mode", VALUE_NEEDED, "Permissions.", 0, BIG, -1),
	{ "mtime", VALUE_FRACTION, VALUE_NEEDED, "Seconds since 1970.", 0, 0,
	    -1 },
	NONE
};

static const struct value list_gives[] = {
	STRING("entries", VALUE_ENTRIES, VALUE_NEEDED, "What is in there."),
	COUNT,
	TRUNCATED,
	NONE
};

static const struct value stat_args[] = {
	PATH,
	STRING("follow", VALUE_BOOL, 0, "Whether a symbolic link stands for "
	    "where it leads; by default true."),
	NONE
};

static const struct value stat_gives[] = {
	STRING("type", VALUE_TEXT, VALUE_NEEDED,
	    "file, directory, link or other"),
	NUMBER("size", VALUE_NEEDED, "Bytes.", 0, BIG, -1),
	NUMBER("mode", VALUE_NEEDED, "Permissions.", 0, BIG, -1),
	{ "mtime", VALUE_FRACTION, VALUE_NEEDED, "Seconds since 1970.", 0, 0,
	    -1 },
	NUMBER("uid", VALUE_NEEDED, "Owner.", 0, BIG, -1),
	NUMBER("gid", VALUE_NEEDED, "Group.", 0, BIG, -1),
	STRING("target", VALUE_TEXT, 0, "Where a link leads."),
	NONE
};

static const struct value mkdir_args[] = {
	PATH,
	MODE,
	NONE
};

static const struct value mkdir_gives[] = {
	STRING("created", VALUE_BOOL, VALUE_NEEDED, "Whether it is new."),
	NONE
};

static const struct value remove_args[] = {
	PATH,
	STRING("recursive", VALUE_BOOL, 0, "With all that is in it; by "
	    "default false."),
	NONE
};

static const struct value remove_gives[] = {
	NUMBER("removed", VALUE_NEEDED, "How many.", 0, BIG, -1),
	NONE
};

const struct value mount_args[] = {
	STRING("source", VALUE_PATH, VALUE_NEEDED | VALUE_OURS,
	    "Absolute path outside of the sandbox, in one of the directories "
	    "that the user has permitted."),
	PATH,
	STRING("write", VALUE_BOOL, 0, "Whether it may be changed in there; "
	    "by default false."),
	NONE
};

static const struct value mount_gives[] = {
	NONE
};

const struct value refusal_values[] = {
	STRING("host", VALUE_TEXT, VALUE_NEEDED, "Whom it was for."),
	STRING("reason", VALUE_TEXT, VALUE_NEEDED, "See egressd.sock(5)."),
	NUMBER("count", VALUE_NEEDED, "How many.", 0, BIG, -1),
	NONE
};

/* ---- what a tool does before its call ------------------------------------ */

/* One byte more than is wanted shows whether the file goes on. */
static void
read_members(struct job *job, struct jsonw *w)
{
	put_uint(w, "length", args_number(job->jo_args, "length",
	    READ_DEFAULT) + 1);
}

static const char *
read_prepare(struct job *job)
{
	collect_init(&job->jo_out, (size_t)args_number(job->jo_args, "length",
	    READ_DEFAULT) + 1, 0);
	return NULL;
}

static void
give_input(struct job *job, const char *text)
{
	job->jo_in = must(strdup(text));
	job->jo_in_len = strlen(text);
}

static const char *
write_prepare(struct job *job)
{
	const char	*content = json_string(job->jo_args, "content");
	const char	*encoding = json_string(job->jo_args, "encoding");

	if (encoding == NULL || strcmp(encoding, "base64") != 0) {
		give_input(job, content);
		return NULL;
	}
	job->jo_in = text_unbase64(content, &job->jo_in_len);
	return job->jo_in == NULL ? "argument content: not base64" : NULL;
}

static const char *
exec_prepare(struct job *job)
{
	const char	*input = json_string(job->jo_args, "stdin");

	if ((json_get(job->jo_args, "command") == NULL) ==
	    (json_get(job->jo_args, "argv") == NULL))
		return "wanted either command or argv";
	if (input != NULL)
		give_input(job, input);
	collect_init(&job->jo_out, OUTPUT_MAX / 2, OUTPUT_MAX / 2);
	collect_init(&job->jo_err, OUTPUT_MAX / 2, OUTPUT_MAX / 2);
	return NULL;
}

static void
exec_members(struct job *job, struct jsonw *w)
{
	if (job->jo_in != NULL)
		put_bool(w, "stdin", 1);
}

static const char *
items_prepare(struct job *job)
{
	job->jo_items = must(cJSON_CreateArray());
	return NULL;
}

/* ---- the tools ----------------------------------------------------------- */

const struct tool tools[] = {
	{ "read", "Read a file", "Read a file in the sandbox, 256 KiB at most "
	    "unless length says otherwise; the result tells where to go on.",
	    TOOL_READS | TOOL_AGAIN, read_args, read_gives, &work_bytes,
	    read_prepare, read_members, show_read },
	{ "write", "Write a file", "Write a file in the sandbox, in place of "
	    "what was there. Directories on the way are made.",
	    TOOL_DESTROYS | TOOL_AGAIN, write_args, write_gives, &work_plain,
	    write_prepare, NULL, show_values },
	{ "edit", "Edit a file", "Replace text that is in a file in the "
	    "sandbox exactly once; else nothing is changed and the number of "
	    "occurrences is told.",
	    TOOL_DESTROYS, edit_args, edit_gives, &work_bytes, NULL, NULL,
	    show_values },
	{ "exec", "Run a command", "Run a command in the sandbox and wait for "
	    "it. Its network leads through a gate; what the gate refuses is "
	    "told with the result. Of each output 256 KiB are shown, the "
	    "beginning and the end.",
	    TOOL_DESTROYS | TOOL_WORLD, exec_args, exec_gives, &work_streams,
	    exec_prepare, exec_members, show_exec },
	{ "glob", "Find files by name", "Find files in the sandbox by a "
	    "pattern of their paths.",
	    TOOL_READS | TOOL_AGAIN, glob_args, glob_gives, &work_items,
	    items_prepare, NULL, show_glob },
	{ "grep", "Search in files", "Find lines of files in the sandbox by a "
	    "regular expression.",
	    TOOL_READS | TOOL_AGAIN, grep_args, grep_gives, &work_items,
	    items_prepare, NULL, show_grep },
	{ "list", "List a directory", "List a directory in the sandbox.",
	    TOOL_READS | TOOL_AGAIN, list_args, list_gives, &work_items,
	    items_prepare, NULL, show_list },
	{ "stat", "Look at a file", "Tell type, size, mode, owner and time of "
	    "a file in the sandbox.",
	    TOOL_READS | TOOL_AGAIN, stat_args, stat_gives, &work_plain, NULL,
	    NULL, show_values },
	{ "mkdir", "Make a directory", "Make a directory in the sandbox, and "
	    "those on the way.",
	    TOOL_AGAIN, mkdir_args, mkdir_gives, &work_plain, NULL, NULL,
	    show_values },
	{ "remove", "Remove a file", "Remove a file or directory in the "
	    "sandbox. Links are not followed.",
	    TOOL_DESTROYS, remove_args, remove_gives, &work_plain, NULL, NULL,
	    show_values },
	{ "mount", "Mount a directory", "Show a directory from outside in the "
	    "sandbox.",
	    0, mount_args, mount_gives, &work_plain, mount_prepare,
	    mount_members, show_values },
	{ NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL }
};

/* Whether a sandbox can do it, and the user lets it. */
int
tool_here(struct server *sv, const struct tool *tool)
{
	if (tool->to_args == mount_args)
		return mounts_here(sv);
	return link_can(sv->sv_link, tool->to_name);
}

static const struct tool *
tool_find(struct server *sv, const char *name)
{
	const struct tool	*tool;

	for (tool = tools; name != NULL && tool->to_name != NULL; tool++)
		if (strcmp(tool->to_name, name) == 0 && tool_here(sv, tool))
			return tool;
	return NULL;
}

/* Wrong arguments: a model is told so, in versions that know that. */
static void
say_wrong(struct job *job, const char *wrong)
{
	if (job->jo_version >= VERSION_2025_11_25)
		result_fail(job, "bad_request", wrong);
	else
		job_error(job, RPC_PARAMS, wrong, NULL);
}

/* tools/call. */
void
tool_call(struct job *job, const cJSON *params)
{
	const struct tool	*tool;
	const cJSON		*args = json_get(params, "arguments");
	const char		*wrong;
	char			*text;

	tool = tool_find(job->jo_server, json_string(params, "name"));
	if (tool == NULL || (args != NULL && !cJSON_IsObject(args))) {
		job_error(job, RPC_PARAMS, tool == NULL ? "no such tool" :
		    "arguments is not an object", NULL);
		return;
	}
	job->jo_tool = tool;
	job->jo_show = tool->to_show;
	job->jo_args = must(args == NULL ? cJSON_CreateObject() :
	    cJSON_Duplicate(args, 1));
	if ((text = args_check(tool, job->jo_args)) != NULL) {
		say_wrong(job, text);
		free(text);
	} else if (tool->to_prepare != NULL &&
	    (wrong = tool->to_prepare(job)) != NULL)
		say_wrong(job, wrong);
	else if (tool->to_args == mount_args && job->jo_server->sv_mountable)
		mounts_call(job);
	else if (!(tool->to_flags & TOOL_WORLD) || refusals_ask(job) == -1)
		work_refusals(job, NULL);
}
