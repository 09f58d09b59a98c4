/* SPDX-License-Identifier: ISC */

/*
 * egressctl: files between here and a sandbox, in either direction.  Our
 * caller's files are trusted, those in the sandbox and their names are not.
 */

#include <err.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cp.h"
#include "name.h"
#include "show.h"

static struct {
	const char	*from;
	const char	*to;
	const char	*session;	/* of -n, or NULL */
	int		 recursive;
} options;

static const struct token t_to[] = {
	{ WORD, "where to", NULL, NULL, &options.to, NULL },
	{ 0 }
};

static const struct token t_cp[] = {
	{ WORD, "what", t_to, NULL, &options.from, NULL },
	{ 0 }
};

static void
cp_option(int ch, const char *arg)
{
	if (ch == 'n')
		options.session = arg;
	else
		options.recursive = 1;
}

/* ---- for both directions ------------------------------------------------- */

/* Something here went wrong with one file; the others are still copied. */
void
copy_fail(struct copy *cp, const char *path, const char *why)
{
	progress_end(&cp->cp_progress);
	fputs("egressctl: cp: ", stderr);
	visible_put(stderr, path, VISIBLE_TEXT);
	fprintf(stderr, ": %s\n", why);
	cp->cp_task.ta_status = EXIT_NO_DAEMON;
}

void
copy_skip(struct copy *cp, const char *path)
{
	progress_end(&cp->cp_progress);
	fputs("egressctl: cp: ", stderr);
	visible_put(stderr, path, VISIBLE_TEXT);
	fputs(": neither file nor directory, left out\n", stderr);
	cp->cp_skipped++;
}

/* 0: the sandbox is gone, or does not keep to the protocol. */
int
copy_goes_on(const struct copy *cp)
{
	return link_error(cp->cp_task.ta_link) == NULL;
}

/* The last part of a path, without slashes; "." of one that has no name. */
const char *
path_last(const char *path, size_t *len)
{
	const char	*end = path + strlen(path), *start;

	while (end > path && end[-1] == '/')
		end--;
	for (start = end; start > path && start[-1] != '/'; start--)
		;
	*len = (size_t)(end - start);
	if (*len == 0 || (*len == 2 && strncmp(start, "..", 2) == 0)) {
		*len = 1;
		return ".";
	}
	return start;
}

/* 0, or -1 if it is too long. */
int
path_join(char *to, size_t size, const char *dir, const char *name, size_t len)
{
	size_t	n = strlen(dir);
	int	slash = n > 0 && dir[n - 1] != '/';

	if (len == 1 && *name == '.')
		return strlcpy(to, dir, size) >= size ? -1 : 0;
	return (size_t)snprintf(to, size, "%s%s%.*s", dir, slash ? "/" : "",
	    (int)len, name) >= size ? -1 : 0;
}

/* ---- the command --------------------------------------------------------- */

/*
 * The path in "SESSION:path", and the session, which is to be freed; NULL if
 * this is a path here.  An id may have colons and slashes itself: then -n has
 * it, and none stands before the colon.
 */
static const char *
split(const char *operand, char **session)
{
	size_t	len = strcspn(operand, ":/");

	if (operand[len] != ':' || (len == 0) != (options.session != NULL))
		return NULL;
	if (len == 0)
		*session = strdup(options.session);
	else
		*session = strndup(operand, len);
	if (*session == NULL)
		err(EXIT_NO_DAEMON, NULL);
	if (name_session_error(*session) == NULL)
		return operand[len + 1] == '\0' ? "." : operand + len + 1;
	free(*session);
	*session = NULL;
	return NULL;
}

static int
cp_finish(struct copy *cp)
{
	const struct invocation	*in = cp->cp_task.ta_in;
	cJSON			*sum;

	progress_end(&cp->cp_progress);
	if (cp->cp_task.ta_status == 0) {
		sum = output_object();
		cJSON_AddNumberToObject(sum, "files", (double)cp->cp_files);
		cJSON_AddNumberToObject(sum, "bytes", (double)cp->cp_bytes);
		cJSON_AddNumberToObject(sum, "skipped",
		    (double)cp->cp_skipped);
		output_show(in, sum);
	}
	return task_close(&cp->cp_task);
}

static int
cp_run(const struct invocation *in)
{
	struct copy	 cp = { .cp_recursive = options.recursive };
	char		*session = NULL, *other = NULL;
	const char	*from = split(options.from, &session);
	const char	*to = split(options.to, &other);

	if ((from == NULL) == (to == NULL)) {
		warnx("cp: %s of the two is in a sandbox, as %s:PATH",
		    from == NULL ? "neither" : "not one but each",
		    options.session == NULL ? "SESSION" : "-n SESSION");
		free(session);
		free(other);
		return EXIT_USAGE;
	}
	if (session == NULL)
		session = other;
	if (task_open(&cp.cp_task, in, session) == 0) {
		cp.cp_progress.pr_shown = isatty(STDERR_FILENO);
		if (from != NULL)
			copy_get(&cp, from, options.to);
		else
			copy_put(&cp, options.from, to);
		cp_finish(&cp);
	}
	free(session);
	return cp.cp_task.ta_status;
}

const struct command command_cp = {
	.co_name = "cp",
	.co_synopsis = "cp [-r] [-n SESSION] FROM TO",
	.co_help = "copy files; one is SESSION:PATH, or :PATH",
	.co_tokens = t_cp,
	.co_run = cp_run,
	.co_op = "session.attach",
	.co_options = "n:r",
	.co_option = cp_option,
};
