/* SPDX-License-Identifier: ISC */

/*
 * Files of the configuration, opened by the parent before it gives up its
 * privileges and again at a reload.  A file that someone other than root or
 * ourselves could have written is somebody else's policy and is refused.
 */

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confparse.h"

#define SOURCE_SIZE_MAX		(1024 * 1024)
#define SOURCE_DEPTH_MAX	16
#define SOURCE_FILES_MAX	256	/* includes of includes multiply */

static struct lex_source *
lex_push(struct parse *ps, const char *name)
{
	struct lex_source	*sr;

	if ((sr = calloc(1, sizeof(*sr))) == NULL)
		fatal("configuration");
	sr->sr_name = conf_strndup(ps->ps_conf, name, strlen(name));
	sr->sr_line = 1;
	sr->sr_outer = ps->ps_lex.lx_source;
	ps->ps_lex.lx_source = sr;
	ps->ps_lex.lx_nfiles++;
	return sr;
}

void
lex_pop(struct parse *ps)
{
	struct lex_source	*sr = ps->ps_lex.lx_source;

	ps->ps_lex.lx_source = sr->sr_outer;
	free(sr->sr_buf);
	free(sr);
}

static const char *
lex_file_distrust(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "not a regular file";
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return "owned by neither root nor the user running egressd";
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return "writable by group or others";
	if (st->st_size > SOURCE_SIZE_MAX)
		return "larger than 1M";
	return NULL;
}

/* The file may grow while we read it, hence one byte more than permitted. */
static const char *
lex_read(int fd, struct lex_source *sr)
{
	ssize_t		 n;

	if ((sr->sr_buf = malloc(SOURCE_SIZE_MAX + 1)) == NULL)
		fatal("configuration");
	while (sr->sr_len <= SOURCE_SIZE_MAX) {
		n = read(fd, sr->sr_buf + sr->sr_len,
		    SOURCE_SIZE_MAX + 1 - sr->sr_len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return strerror(errno);
		if (n == 0)
			return NULL;
		sr->sr_len += (size_t)n;
	}
	return "larger than 1M";
}

/* Returns what is wrong, or NULL with the file as the innermost source. */
static const char *
lex_push_file(struct parse *ps, const char *path)
{
	struct lex_source	*sr;
	struct stat		 st;
	const char		*why;
	int			 fd;

	/* Nonblocking, or opening a fifo would wait for its writer. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd == -1)
		return strerror(errno);
	if (fstat(fd, &st) == -1) {
		why = strerror(errno);
		goto done;
	}
	if ((why = lex_file_distrust(&st)) != NULL)
		goto done;
	for (sr = ps->ps_lex.lx_source; sr != NULL; sr = sr->sr_outer)
		if (sr->sr_dev == st.st_dev && sr->sr_ino == st.st_ino) {
			why = "file includes itself";
			goto done;
		}
	sr = lex_push(ps, path);
	sr->sr_dev = st.st_dev;
	sr->sr_ino = st.st_ino;
	if ((why = lex_read(fd, sr)) != NULL)
		lex_pop(ps);
	else
		SHA256Update(&ps->ps_sha256, (const uint8_t *)sr->sr_buf,
		    sr->sr_len);
done:
	close(fd);
	return why;
}

bool
lex_open(struct parse *ps, const char *path)
{
	struct conf_pos	 nowhere = { NULL, 0 };
	const char	*why;

	if ((why = lex_push_file(ps, path)) == NULL)
		return true;
	conf_error(ps, nowhere, "%s: %s", path, why);
	return false;
}

void
lex_open_buffer(struct parse *ps, const char *name, const void *buf,
    size_t len)
{
	struct lex_source	*sr;

	sr = lex_push(ps, name);
	if ((sr->sr_buf = malloc(len + 1)) == NULL)
		fatal("configuration");
	memcpy(sr->sr_buf, buf, len);
	sr->sr_len = len;
}

static const char *
lex_include_refusal(const struct parse *ps)
{
	const struct lex_source	*sr;
	unsigned int		 depth = 0;

	if (ps->ps_lex.lx_source->sr_ino == 0)
		return "include is only permitted in a file";
	for (sr = ps->ps_lex.lx_source; sr != NULL; sr = sr->sr_outer)
		depth++;
	if (depth > SOURCE_DEPTH_MAX)
		return "more than 16 files deep";
	if (ps->ps_lex.lx_nfiles >= SOURCE_FILES_MAX)
		return "more than 256 files in all";
	return NULL;
}

/* A relative name starts at the file that includes it. */
void
lex_include(struct parse *ps, struct conf_pos pos, const char *path)
{
	const char	*outer, *slash, *why;
	char		*full;
	size_t		 dirlen;

	if ((why = lex_include_refusal(ps)) != NULL) {
		ps->ps_lex.lx_lost = true;
		conf_error(ps, pos, "include \"%s\": %s", path, why);
		return;
	}
	outer = ps->ps_lex.lx_source->sr_name;
	slash = strrchr(outer, '/');
	dirlen = path[0] == '/' || slash == NULL ? 0 :
	    (size_t)(slash - outer) + 1;
	full = conf_alloc(ps->ps_conf, dirlen + strlen(path) + 1);
	memcpy(full, outer, dirlen);
	strlcpy(full + dirlen, path, strlen(path) + 1);
	if ((why = lex_push_file(ps, full)) != NULL) {
		ps->ps_lex.lx_lost = true;
		conf_error(ps, pos, "include \"%s\": %s", full, why);
	}
}
