/* SPDX-License-Identifier: ISC */

/*
 * The hands run the last part of this, and a process that they fork for it the
 * rest (worker.c): the operation grep.  An expression may take any time and
 * memory, and the files are whatever commands have put there.
 */

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "op.h"
#include "utf8.h"

#define LINE_MAX_SHOWN	4096
#define BUFFER		(1024 * 1024)	/* no longer line is looked at whole */
#define BINARY_LOOK	8192

struct op_grep {
	const char	*gr_text;
	const char	*gr_path;
	const char	*gr_glob;
	int		 gr_case;
	int64_t		 gr_limit;
	struct worker	 gr_worker;
	/* In the worker. */
	regex_t		 gr_regex;
	int		 gr_literal;	/* it is no more than its text */
	struct pattern	*gr_pattern;
	char		 gr_name[PATH_MAX];	/* of the file */
	size_t		 gr_below;	/* where it begins below path */
	int64_t		 gr_count;
	uint64_t	 gr_binary;
	uint64_t	 gr_unreadable;
};

static const struct member grep_members[] = {
	MUST_STRING(op_grep, "pattern", gr_text),
	MAY_STRING(op_grep, "path", gr_path),
	MAY_STRING(op_grep, "glob", gr_glob),
	MAY_BOOL(op_grep, "case_sensitive", gr_case, 1),
	MAY_INTEGER(op_grep, "limit", gr_limit, 0, JSONR_INTEGER_MAX, 10000),
	MEMBERS_END
};

static void __attribute__((__noreturn__))
grep_done(const struct op_grep *gr, int truncated)
{
	struct jsonw	*w = request_writer();

	jsonw_object(w);
	jsonw_lit(w, "count");
	jsonw_int(w, gr->gr_count);
	jsonw_lit(w, "truncated");
	jsonw_bool(w, truncated);
	jsonw_lit(w, "binary_skipped");
	jsonw_uint(w, gr->gr_binary);
	jsonw_lit(w, "unreadable");
	jsonw_uint(w, gr->gr_unreadable);
	jsonw_end(w);
	worker_result(w);
}

static void
grep_item(struct op_grep *gr, int64_t number, const char *line, size_t len)
{
	struct jsonw	*w;
	size_t		 shown = utf8_cut(line, len, LINE_MAX_SHOWN);

	if (gr->gr_count == gr->gr_limit)
		grep_done(gr, 1);
	gr->gr_count++;
	w = request_writer();
	jsonw_object(w);
	jsonw_lit(w, "path");
	jsonw_str(w, gr->gr_name);
	jsonw_lit(w, "line_number");
	jsonw_int(w, number);
	jsonw_lit(w, "line");
	jsonw_string(w, line, shown);
	if (shown < len) {
		jsonw_lit(w, "cut");
		jsonw_bool(w, 1);
	}
	jsonw_end(w);
	worker_item(w);
}

static int
grep_matches(const struct op_grep *gr, const char *line, size_t len)
{
	regmatch_t	 whole = { 0, (regoff_t)len };

	if (gr->gr_literal)
		return memmem(line, len, gr->gr_text,
		    strlen(gr->gr_text)) != NULL;
	return regexec(&gr->gr_regex, line, 1, &whole, REG_STARTEND) == 0;
}

/* Where a file has got to. */
struct lines {
	char		 ln_buf[BUFFER];
	size_t		 ln_len;
	int64_t		 ln_number;
	int		 ln_rest;	/* of a line that was too long */
};

static void
lines_look(struct op_grep *gr, struct lines *ln, const char *line, size_t len)
{
	if (!ln->ln_rest) {
		ln->ln_number++;
		if (grep_matches(gr, line, len))
			grep_item(gr, ln->ln_number, line, len);
	}
}

/* All lines of the buffer that have an end. */
static void
lines_whole(struct op_grep *gr, struct lines *ln)
{
	char	*at = ln->ln_buf, *end = at + ln->ln_len, *newline;

	while ((newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		lines_look(gr, ln, at, (size_t)(newline - at));
		ln->ln_rest = 0;
		at = newline + 1;
	}
	ln->ln_len = (size_t)(end - at);
	memmove(ln->ln_buf, at, ln->ln_len);
	if (ln->ln_len == BUFFER) {
		lines_look(gr, ln, ln->ln_buf, ln->ln_len);
		ln->ln_rest = 1;
		ln->ln_len = 0;
	}
}

static void
grep_fd(struct op_grep *gr, int fd)
{
	static struct lines	 ln;
	ssize_t			 n;
	int			 first = 1;

	ln.ln_len = 0;
	ln.ln_number = 0;
	ln.ln_rest = 0;
	while ((n = read(fd, ln.ln_buf + ln.ln_len, BUFFER - ln.ln_len)) > 0) {
		if (first && memchr(ln.ln_buf, '\0', n > BINARY_LOOK ?
		    BINARY_LOOK : (size_t)n) != NULL) {
			gr->gr_binary++;
			return;
		}
		first = 0;
		ln.ln_len += (size_t)n;
		lines_whole(gr, &ln);
	}
	if (n == -1)
		gr->gr_unreadable++;
	if (ln.ln_len > 0)
		lines_look(gr, &ln, ln.ln_buf, ln.ln_len);
}

static void
grep_file(struct op_grep *gr)
{
	struct stat	 st;
	int		 fd;

	if (gr->gr_pattern != NULL && !pattern_match(gr->gr_pattern,
	    gr->gr_name + gr->gr_below))
		return;
	if ((fd = file_open(gr->gr_name, &st)) == -1) {
		gr->gr_unreadable++;
		return;
	}
	grep_fd(gr, fd);
	(void)close(fd);
}

static void	 grep_names(struct op_grep *, struct names *);

/* gr_name is a directory. */
static void
grep_directory(struct op_grep *gr, int flags)
{
	struct names	*nm = names_new();
	int		 more = 1;

	if (names_open(nm, AT_FDCWD, gr->gr_name, flags) == -1)
		more = -1;
	while (more == 1)
		more = names_read(nm);
	if (more == -1)
		gr->gr_unreadable++;
	else
		grep_names(gr, nm);
	names_free(nm);
}

static unsigned char
grep_type(const char *path, unsigned char type)
{
	struct stat	 st;

	if (type == DT_UNKNOWN && lstat(path, &st) == 0)
		type = IFTODT(st.st_mode);
	return type;
}

/* As deep as a path can be long. */
static void
grep_names(struct op_grep *gr, struct names *nm)
{
	const char	*name;
	size_t		 len = strlen(gr->gr_name);
	unsigned char	 type;

	while ((name = names_next(nm, &type)) != NULL) {
		gr->gr_name[len] = '\0';
		if ((len > 0 && gr->gr_name[len - 1] != '/' &&
		    strlcat(gr->gr_name, "/", PATH_MAX) >= PATH_MAX) ||
		    strlcat(gr->gr_name, name, PATH_MAX) >= PATH_MAX) {
			gr->gr_unreadable++;
			continue;
		}
		type = grep_type(gr->gr_name, type);
		if (type == DT_REG)
			grep_file(gr);
		else if (type == DT_DIR)
			grep_directory(gr, O_NOFOLLOW);
	}
	gr->gr_name[len] = '\0';
}

static void
grep_compile(struct op_grep *gr)
{
	char	 why[200];
	int	 error;

	gr->gr_literal = gr->gr_case && *gr->gr_text != '\0' &&
	    strpbrk(gr->gr_text, "\\^$.[]|()*+?{}") == NULL;
	if (gr->gr_literal)
		return;
	error = regcomp(&gr->gr_regex, gr->gr_text, REG_EXTENDED | REG_NOSUB |
	    (gr->gr_case ? 0 : REG_ICASE));
	if (error == 0)
		return;
	regerror(error, &gr->gr_regex, why, sizeof(why));
	worker_error("bad_request", "pattern: %s", why);
}

/* A path of . is not told: what is below has no ./ before it. */
static void
grep_work(struct request *rq)
{
	struct op_grep	*gr = rq->rq_state;
	const char	*path = gr->gr_path == NULL ? "." : gr->gr_path, *slash;
	struct stat	 st;

	grep_compile(gr);
	if (stat(path, &st) == -1)
		worker_error(error_code(errno), "%s: %s", path,
		    strerror(errno));
	if (strlcpy(gr->gr_name, strcmp(path, ".") == 0 ? "" : path,
	    PATH_MAX) >= PATH_MAX)
		worker_error("failed", "path: too long");
	if (S_ISDIR(st.st_mode)) {
		gr->gr_below = strlen(gr->gr_name);
		if (gr->gr_below > 0 && gr->gr_name[gr->gr_below - 1] != '/')
			gr->gr_below++;
		grep_directory(gr, 0);
	} else if (S_ISREG(st.st_mode)) {
		slash = strrchr(gr->gr_name, '/');
		gr->gr_below = slash == NULL ? 0 :
		    (size_t)(slash + 1 - gr->gr_name);
		grep_file(gr);
	} else
		worker_error("wrong_type", "%s: Not a regular file", path);
	grep_done(gr, 0);
}

static void
grep_start(struct request *rq)
{
	struct op_grep	*gr = rq->rq_state;
	const char	*why;

	gr->gr_worker.wo_fd = -1;
	if (gr->gr_glob != NULL && (gr->gr_pattern =
	    pattern_new(gr->gr_glob, &why)) == NULL) {
		request_error(rq, "bad_request", "glob: %s", why);
		return;
	}
	worker_start(&gr->gr_worker, rq, grep_work);
}

static void
grep_step(struct request *rq)
{
	struct op_grep	*gr = rq->rq_state;

	worker_step(&gr->gr_worker);
}

static void
grep_free(struct request *rq)
{
	struct op_grep	*gr = rq->rq_state;

	worker_free(&gr->gr_worker);
	pattern_free(gr->gr_pattern);
}

const struct op op_grep = {
	.op_name = "grep", .op_members = grep_members,
	.op_size = sizeof(struct op_grep),
	.op_start = grep_start, .op_step = grep_step, .op_free = grep_free,
};
