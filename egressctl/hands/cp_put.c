/* SPDX-License-Identifier: ISC */

/*
 * egressctl: files from here to a sandbox.  Links are left out: they would
 * mean another file in there.
 */

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cp.h"
#include "show.h"

#define PIECE_LEN	65536

/* A piece of the file; 0 when it has ended. */
static int
put_piece(struct copy *cp, int fd)
{
	struct task	*ta = &cp->cp_task;
	char		 piece[PIECE_LEN];
	size_t		 room = call_room(ta->ta_call);
	ssize_t		 n;

	if (room == 0)
		return 1;
	n = read(fd, piece, room < sizeof(piece) ? room : sizeof(piece));
	if (n == -1 && errno == EINTR)
		return 1;
	if (n == -1) {
		/* Without an END nothing is written. */
		copy_fail(cp, ta->ta_subject, strerror(errno));
		ta->ta_excused = "cancelled";
		call_cancel(ta->ta_call);
		return 0;
	}
	call_send(ta->ta_call, piece, (size_t)n);
	if (n == 0)
		call_end(ta->ta_call);
	progress_add(&cp->cp_progress, (size_t)n);
	cp->cp_bytes += (uint64_t)n;
	return n > 0;
}

/* Takes the descriptor. */
static void
put_file(struct copy *cp, int fd, const char *path, const struct stat *st)
{
	struct task	*ta = &cp->cp_task;
	struct jsonw	 w;
	int		 going = 1;

	ta->ta_subject = path;
	call_op(&w, "write");
	put_str(&w, "path", path);
	put_uint(&w, "mode", st->st_mode & 0777);
	progress_begin(&cp->cp_progress, path, (uint64_t)st->st_size);
	if (task_begin(ta, &w, &task_ops) == 0) {
		while (going && ta->ta_call != NULL)
			if (link_wait(ta->ta_link,
			    call_room(ta->ta_call) > 0 ? 0 : -1) != -1 &&
			    ta->ta_call != NULL)
				going = put_piece(cp, fd);
		if (task_wait(ta) == 0)
			cp->cp_files++;
	}
	progress_end(&cp->cp_progress);
	ta->ta_excused = NULL;
	close(fd);
}

static void	put_dir(struct copy *, int, const char *, const struct stat *,
		    int);

/* One thing of a directory; `below' is its path over there. */
static void
put_entry(struct copy *cp, int dir, const char *name, const char *below,
    int depth)
{
	struct stat	st;
	int		fd;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		copy_fail(cp, name, strerror(errno));
	else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		copy_skip(cp, name);
	else if (S_ISDIR(st.st_mode) && depth == CP_DEPTH_MAX)
		copy_fail(cp, name, "too many directories in each other");
	else if ((fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
	    O_CLOEXEC)) == -1 || fstat(fd, &st) == -1)
		copy_fail(cp, name, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		put_dir(cp, fd, below, &st, depth + 1);
	else
		put_file(cp, fd, below, &st);
}

static void
put_entries(struct copy *cp, DIR *dirp, const char *path, int depth)
{
	const struct dirent	*de;
	char			 below[PATH_MAX];

	while (copy_goes_on(cp) && (de = readdir(dirp)) != NULL) {
		if (strcmp(de->d_name, ".") == 0 ||
		    strcmp(de->d_name, "..") == 0)
			continue;
		if (path_join(below, sizeof(below), path, de->d_name,
		    strlen(de->d_name)) == -1)
			copy_fail(cp, de->d_name, strerror(ENAMETOOLONG));
		else
			put_entry(cp, dirfd(dirp), de->d_name, below, depth);
	}
}

/* Takes the descriptor. */
static void
put_dir(struct copy *cp, int fd, const char *path, const struct stat *st,
    int depth)
{
	struct jsonw	 w;
	DIR		*dirp;

	cp->cp_task.ta_subject = path;
	call_op(&w, "mkdir");
	put_str(&w, "path", path);
	put_uint(&w, "mode", st->st_mode & 0777);
	if (task_ask(&cp->cp_task, &w, &task_ops) == -1) {
		close(fd);
		return;
	}
	if ((dirp = fdopendir(fd)) == NULL) {
		copy_fail(cp, path, strerror(errno));
		close(fd);
		return;
	}
	put_entries(cp, dirp, path, depth);
	closedir(dirp);
}

/* 1 if the remote path is a directory, 0 if not, -1 if nobody knows. */
static int
is_remote_dir(struct copy *cp, const char *path)
{
	struct task	*ta = &cp->cp_task;
	const char	*type;
	struct jsonw	 w;
	int		 rv;

	ta->ta_subject = path;
	ta->ta_excused = "not_found";
	call_op(&w, "stat");
	put_str(&w, "path", path);
	rv = task_ask(ta, &w, &task_ops);
	ta->ta_excused = NULL;
	if (rv == -1)
		return ta->ta_was_excused ? 0 : -1;
	type = json_string(ta->ta_result, "type");
	return type != NULL && strcmp(type, "directory") == 0;
}

void
copy_put(struct copy *cp, const char *local, const char *path)
{
	char		 to[PATH_MAX];
	const char	*name;
	size_t		 len;
	struct stat	 st;
	int		 fd, in_dir;

	if ((fd = open(local, O_RDONLY | O_CLOEXEC)) == -1 ||
	    fstat(fd, &st) == -1) {
		copy_fail(cp, local, strerror(errno));
		return;
	}
	name = path_last(local, &len);
	if ((in_dir = is_remote_dir(cp, path)) == 0)
		len = 1, name = ".";
	if (in_dir == -1)
		close(fd);
	else if (path_join(to, sizeof(to), path, name, len) == -1) {
		copy_fail(cp, path, strerror(ENAMETOOLONG));
		close(fd);
	} else if (!S_ISDIR(st.st_mode))
		put_file(cp, fd, to, &st);
	else if (cp->cp_recursive)
		put_dir(cp, fd, to, &st, 0);
	else {
		copy_fail(cp, local, "a directory; copy it with -r");
		close(fd);
	}
}
