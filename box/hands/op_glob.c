/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: the operation glob.  A level is a directory on the way
 * down, with what is still to be looked at in it; no level keeps a descriptor.
 */

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "op.h"

#define LOOKS		64			/* at names, in a turn */
#define BYTES_MAX	(64 * 1024 * 1024)	/* of names, in all levels */

struct level {
	SLIST_ENTRY(level)	 le_entry;
	struct names		*le_names;
	int			 le_read;	/* all of them */
	struct pattern_state	*le_state;
	size_t			 le_pathlen;
};

struct op_glob {
	const char		*gl_text;
	const char		*gl_cwd;
	int64_t			 gl_limit;
	struct pattern		*gl_pattern;
	int			 gl_base;
	SLIST_HEAD(, level)	 gl_levels;
	char			 gl_path[PATH_MAX];
	int64_t			 gl_count;
	size_t			 gl_bytes;
};

static const struct member glob_members[] = {
	MUST_STRING(op_glob, "pattern", gl_text),
	MAY_STRING(op_glob, "cwd", gl_cwd),
	MAY_INTEGER(op_glob, "limit", gl_limit, 0, JSONR_INTEGER_MAX, 10000),
	MEMBERS_END
};

static void
glob_done(struct request *rq, int truncated)
{
	struct op_glob	*gl = rq->rq_state;
	struct jsonw	*w = request_writer();

	jsonw_object(w);
	jsonw_lit(w, "count");
	jsonw_int(w, gl->gl_count);
	jsonw_lit(w, "truncated");
	jsonw_bool(w, truncated);
	jsonw_end(w);
	request_result(rq, w);
}

static void
level_free(struct level *le)
{
	names_free(le->le_names);
	free(le->le_state);
	free(le);
}

static int
is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/*
 * Literal names are looked up, not looked for: who may enter a directory need
 * not be able to read it.  It is read if any segment is not literal; . and ..
 * are in no directory.  1 if it has to be read.
 */
static int
level_literals(const struct pattern *pt, struct level *le)
{
	const char	*name;
	size_t		 i;
	int		 reads = 0;

	for (i = 0; (name = pattern_literal(pt, le->le_state, i)) != NULL; i++)
		reads |= *name == '\0';
	for (i = 0; (name = pattern_literal(pt, le->le_state, i)) != NULL; i++)
		if (*name != '\0' && (!reads || is_dots(name)))
			(void)names_add(le->le_names, name, DT_UNKNOWN);
	return reads;
}

/* The directory at gl_path is next; its state is now the level's. */
static void
glob_descend(struct op_glob *gl, struct pattern_state *state, int is_link)
{
	struct level	*le;

	if ((le = calloc(1, sizeof(*le))) == NULL) {
		free(state);
		return;
	}
	le->le_names = names_new();
	le->le_state = state;
	le->le_pathlen = strlen(gl->gl_path);
	if (level_literals(gl->gl_pattern, le) && names_open(le->le_names,
	    gl->gl_base, gl->gl_path, is_link ? 0 : O_NOFOLLOW) == -1) {
		level_free(le);
		return;
	}
	SLIST_INSERT_HEAD(&gl->gl_levels, le, le_entry);
}

static void
glob_start(struct request *rq)
{
	struct op_glob	*gl = rq->rq_state;
	const char	*cwd, *why;

	gl->gl_base = -1;
	if ((gl->gl_pattern = pattern_new(gl->gl_text, &why)) == NULL) {
		request_error(rq, "bad_request", "pattern: %s", why);
		return;
	}
	cwd = pattern_absolute(gl->gl_pattern) ? "/" : gl->gl_cwd == NULL ?
	    "." : gl->gl_cwd;
	if ((gl->gl_base = open(cwd, O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1) {
		request_failed(rq, errno, cwd);
		return;
	}
	glob_descend(gl, pattern_start(gl->gl_pattern), 1);
	rq->rq_busy = 1;
}

static void
glob_item(struct request *rq, int is_dir)
{
	struct op_glob	*gl = rq->rq_state;
	struct jsonw	*w;
	char		 path[PATH_MAX + 2];

	if (gl->gl_count == gl->gl_limit) {
		glob_done(rq, 1);
		return;
	}
	gl->gl_count++;
	snprintf(path, sizeof(path), "%s%s%s",
	    pattern_absolute(gl->gl_pattern) ? "/" : "", gl->gl_path,
	    is_dir ? "/" : "");
	w = request_writer();
	jsonw_object(w);
	jsonw_lit(w, "path");
	jsonw_str(w, path);
	jsonw_end(w);
	request_item(rq, w);
}

/* Type of a name, links not followed; DT_UNKNOWN if it is missing. */
static unsigned char
glob_type(const struct op_glob *gl, unsigned char type)
{
	struct stat	 st;

	if (type != DT_UNKNOWN)
		return type;
	if (fstatat(gl->gl_base, gl->gl_path, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return DT_UNKNOWN;
	return IFTODT(st.st_mode);
}

static int
glob_is_dir(const struct op_glob *gl, unsigned char type)
{
	struct stat	 st;

	return type == DT_DIR || (type == DT_LNK && fstatat(gl->gl_base,
	    gl->gl_path, &st, 0) == 0 && S_ISDIR(st.st_mode));
}

static void
glob_look(struct request *rq, const struct level *le, const char *name,
    unsigned char type)
{
	struct op_glob		*gl = rq->rq_state;
	struct pattern_state	*state;
	size_t			 len = le->le_pathlen;
	int			 hit, is_dir = 0;

	gl->gl_path[len] = '\0';
	if ((len > 0 && strlcat(gl->gl_path, "/", PATH_MAX) >= PATH_MAX) ||
	    strlcat(gl->gl_path, name, PATH_MAX) >= PATH_MAX ||
	    (type = glob_type(gl, type)) == DT_UNKNOWN)
		return;
	state = pattern_step(gl->gl_pattern, le->le_state, name,
	    type == DT_LNK, &hit);
	if (state != NULL || hit & PATTERN_HIT_DIR)
		is_dir = glob_is_dir(gl, type);
	if (hit & PATTERN_HIT)
		glob_item(rq, 0);
	else if (hit & PATTERN_HIT_DIR && is_dir)
		glob_item(rq, 1);
	if (state != NULL && is_dir)
		glob_descend(gl, state, type == DT_LNK || is_dots(name));
	else
		free(state);
}

/* A step within the uppermost level; 0 if there is nothing more to do. */
static int
glob_once(struct request *rq)
{
	struct op_glob	*gl = rq->rq_state;
	struct level	*le = SLIST_FIRST(&gl->gl_levels);
	const char	*name;
	unsigned char	 type;
	int		 more;

	if (le == NULL)
		return 0;
	if (!le->le_read) {
		/* A directory that cannot be read to its end has one. */
		if ((more = names_read(le->le_names)) == 1)
			return 1;
		le->le_read = 1;
		gl->gl_bytes += names_bytes(le->le_names);
		if (gl->gl_bytes > BYTES_MAX || (more == -1 &&
		    errno == EFBIG)) {
			gl->gl_path[le->le_pathlen] = '\0';
			request_failed(rq, EFBIG, gl->gl_path);
		}
	} else if ((name = names_next(le->le_names, &type)) != NULL)
		glob_look(rq, le, name, type);
	else {
		gl->gl_bytes -= names_bytes(le->le_names);
		SLIST_REMOVE_HEAD(&gl->gl_levels, le_entry);
		level_free(le);
	}
	return 1;
}

static void
glob_step(struct request *rq)
{
	int	 i, more = 1;

	for (i = 0; i < LOOKS && more && !rq->rq_over && rq->rq_item == NULL;
	    i++)
		more = glob_once(rq);
	if (!more)
		glob_done(rq, 0);
}

static void
glob_free(struct request *rq)
{
	struct op_glob	*gl = rq->rq_state;
	struct level	*le;

	while ((le = SLIST_FIRST(&gl->gl_levels)) != NULL) {
		SLIST_REMOVE_HEAD(&gl->gl_levels, le_entry);
		level_free(le);
	}
	pattern_free(gl->gl_pattern);
	if (gl->gl_base != -1)
		(void)close(gl->gl_base);
}

const struct op op_glob = {
	.op_name = "glob", .op_members = glob_members,
	.op_size = sizeof(struct op_glob),
	.op_start = glob_start, .op_step = glob_step, .op_free = glob_free,
};
