/* SPDX-License-Identifier: ISC */

/*
 * egressctl: files from a sandbox to here.  Box is hostile, and would write
 * elsewhere than it was told to: a name in a directory must be one name, no
 * link is made here nor followed below the directory that was named, and a
 * file takes its name only when it is whole.
 */

#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cp.h"
#include "show.h"

/* What is in a directory over there. */
struct entry {
	char		*en_name;
	char		 en_type;	/* first letter of the type */
	uint64_t	 en_mode;
	uint64_t	 en_size;
};

struct entries {
	struct entry	*es_list;
	size_t		 es_count;
	size_t		 es_bytes;	/* of names and entries */
};

/* The file or directory that is being received. */
static struct {
	struct copy	*copy;
	int		 fd;
	uint64_t	 bytes;
	int		 error;		/* errno of a write, or 0 */
	struct entries	*entries;
	size_t		 names;		/* es_bytes of all that are open */
} get;

/* ---- one file ------------------------------------------------------------ */

static void
get_data(struct call *ca, const char *data, size_t len)
{
	if (get.error != 0)
		return;
	if (write_all(get.fd, data, len) == -1) {
		get.error = errno;
		get.copy->cp_task.ta_excused = "cancelled";
		call_cancel(ca);
		return;
	}
	get.bytes += len;
	progress_add(&get.copy->cp_progress, len);
}

static const struct call_ops get_ops = {
	.op_data = get_data,
	.op_done = task_done,
};

/* 0 if all of the remote file was written to the descriptor. */
static int
receive(struct copy *cp, int fd, const char *path, uint64_t size)
{
	struct jsonw	w;
	uint64_t	n;
	int		rv;

	get.copy = cp;
	get.fd = fd;
	get.bytes = 0;
	get.error = 0;
	cp->cp_task.ta_subject = path;
	progress_begin(&cp->cp_progress, path, size);
	call_op(&w, "read");
	put_str(&w, "path", path);
	rv = task_ask(&cp->cp_task, &w, &get_ops);
	progress_end(&cp->cp_progress);
	cp->cp_task.ta_excused = NULL;
	if (get.error != 0)
		return -1;
	if (rv == 0 && (body_number(cp->cp_task.ta_result, "bytes", &n) ==
	    -1 || n != get.bytes))
		rv = task_broken(&cp->cp_task, "not the bytes that it counts");
	cp->cp_bytes += get.bytes;
	return rv;
}

static mode_t
mode_here(uint64_t mode)
{
	mode_t	mask = umask(0);

	umask(mask);
	return (mode_t)(mode & 0777 & ~mask);
}

/* Under another name until it is whole. */
static void
get_file(struct copy *cp, int dir, const char *name, const char *path,
    const struct entry *en)
{
	static unsigned int	count;
	char			temporary[64];
	int			fd, rv;

	snprintf(temporary, sizeof(temporary), ".egressctl-cp.%d.%u",
	    (int)getpid(), count++);
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
	    O_CLOEXEC, 0600);
	if (fd == -1) {
		copy_fail(cp, name, strerror(errno));
		return;
	}
	rv = receive(cp, fd, path, en->en_size);
	if (rv == 0 && (fchmod(fd, mode_here(en->en_mode)) == -1 ||
	    renameat(dir, temporary, dir, name) == -1))
		get.error = errno;
	if (close(fd) == -1 && get.error == 0)
		get.error = errno;
	if (get.error != 0)
		copy_fail(cp, name, strerror(get.error));
	if (rv == -1 || get.error != 0)
		unlinkat(dir, temporary, 0);
	else
		cp->cp_files++;
}

/* ---- directories --------------------------------------------------------- */

static int
is_name(const char *name)
{
	size_t	len = strlen(name);

	return len > 0 && len <= NAME_MAX && strchr(name, '/') == NULL &&
	    strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static void
entries_free(struct entries *es)
{
	size_t	i;

	for (i = 0; i < es->es_count; i++)
		free(es->es_list[i].en_name);
	free(es->es_list);
	get.names -= es->es_bytes;
}

/* Makes room for one more, in steps. */
static void
entries_grow(struct entries *es)
{
	if (es->es_count % 32 == 0 && (es->es_list = reallocarray(es->es_list,
	    es->es_count + 32, sizeof(*es->es_list))) == NULL)
		err(EXIT_NO_DAEMON, NULL);
}

static void
entries_item(struct call *ca, const cJSON *item, const char *text)
{
	struct entries	*es = get.entries;
	struct task	*ta = call_arg(ca);
	const char	*name = json_string(item, "name");
	const char	*type = json_string(item, "type");
	struct entry	*en;
	size_t		 bytes;

	(void)text;
	if (get.error != 0)
		return;
	if (name == NULL || type == NULL || !is_name(name)) {
		get.error = EBADMSG;
		ta->ta_excused = "cancelled";
		call_cancel(ca);
		return;
	}
	bytes = sizeof(*en) + strlen(name) + 1;
	if (get.names + bytes > CP_NAMES_MAX) {
		get.error = E2BIG;
		ta->ta_excused = "cancelled";
		call_cancel(ca);
		return;
	}
	get.names += bytes;
	es->es_bytes += bytes;
	entries_grow(es);
	en = &es->es_list[es->es_count];
	memset(en, 0, sizeof(*en));
	if ((en->en_name = strdup(name)) == NULL)
		err(EXIT_NO_DAEMON, NULL);
	en->en_type = *type;
	body_number(item, "mode", &en->en_mode);
	body_number(item, "size", &en->en_size);
	es->es_count++;
}

static const struct call_ops list_ops = {
	.op_item = entries_item,
	.op_done = task_done,
};

/* 0, or -1 after saying why there is no list. */
static int
get_entries(struct copy *cp, const char *path, struct entries *es)
{
	struct task	*ta = &cp->cp_task;
	struct jsonw	 w;
	int		 rv;

	memset(es, 0, sizeof(*es));
	get.entries = es;
	get.error = 0;
	ta->ta_subject = path;
	call_op(&w, "list");
	put_str(&w, "path", path);
	rv = task_ask(ta, &w, &list_ops);
	ta->ta_excused = NULL;
	if (get.error == EBADMSG)
		return task_broken(ta, "an entry that is no name");
	if (get.error == E2BIG || (rv == 0 &&
	    cJSON_IsTrue(json_get(ta->ta_result, "truncated")))) {
		copy_fail(cp, path, "too many files");
		return -1;
	}
	return rv;
}

/* A directory of ours, made if it is not there; never by way of a link. */
static int
open_dir(struct copy *cp, int dir, const char *name, uint64_t mode)
{
	int	fd;

	if (mkdirat(dir, name, (mode_t)(mode & 0777) | 0700) == -1 &&
	    errno != EEXIST) {
		copy_fail(cp, name, strerror(errno));
		return -1;
	}
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
	if (fd == -1)
		copy_fail(cp, name, strerror(errno));
	return fd;
}

static void	get_dir(struct copy *, int, const char *, int);

static void
get_entry(struct copy *cp, int dir, const char *path, const struct entry *en,
    int depth)
{
	char	below[PATH_MAX];
	int	fd;

	if (path_join(below, sizeof(below), path, en->en_name,
	    strlen(en->en_name)) == -1)
		copy_fail(cp, en->en_name, strerror(ENAMETOOLONG));
	else if (en->en_type == 'f')
		get_file(cp, dir, en->en_name, below, en);
	else if (en->en_type != 'd')
		copy_skip(cp, below);
	else if (depth == CP_DEPTH_MAX)
		copy_fail(cp, below, "too many directories in each other");
	else if ((fd = open_dir(cp, dir, en->en_name, en->en_mode)) != -1) {
		get_dir(cp, fd, below, depth + 1);
		close(fd);
	}
}

/* All that is in the remote directory, into the one here. */
static void
get_dir(struct copy *cp, int dir, const char *path, int depth)
{
	struct entries	es;
	size_t		i;

	if (get_entries(cp, path, &es) == 0)
		for (i = 0; i < es.es_count && copy_goes_on(cp); i++)
			get_entry(cp, dir, path, &es.es_list[i], depth);
	entries_free(&es);
}

/* ---- the whole ----------------------------------------------------------- */

/* What is a device or a pipe here is written to, not replaced. */
static void
get_into(struct copy *cp, const char *local, const char *path)
{
	int	fd;

	if ((fd = open(local, O_WRONLY | O_CLOEXEC)) == -1) {
		copy_fail(cp, local, strerror(errno));
		return;
	}
	if (receive(cp, fd, path, 0) == 0)
		cp->cp_files++;
	else if (get.error != 0)
		copy_fail(cp, local, strerror(get.error));
	close(fd);
}

/* Where the local path leads: the directory of its last part, opened. */
static int
open_parent(struct copy *cp, const char *local, char *name, size_t size)
{
	char		 real[PATH_MAX], *slash;
	const char	*dir = real;
	int		 fd;

	/* A link that our caller names is followed. */
	if (realpath(local, real) == NULL)
		strlcpy(real, local, sizeof(real));
	while ((slash = strrchr(real, '/')) != NULL && slash != real &&
	    slash[1] == '\0')
		*slash = '\0';
	if (strlcpy(name, slash != NULL ? slash + 1 : real, size) >= size) {
		copy_fail(cp, local, strerror(ENAMETOOLONG));
		return -1;
	}
	if (slash == NULL)
		dir = ".";
	else if (slash == real)
		dir = "/";
	else
		*slash = '\0';
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		copy_fail(cp, dir, strerror(errno));
	return fd;
}

static void
get_to(struct copy *cp, const char *path, const char *local,
    const struct entry *en)
{
	char	name[NAME_MAX + 1];
	int	dir, fd;

	if ((dir = open_parent(cp, local, name, sizeof(name))) == -1)
		return;
	if (en->en_type == 'f')
		get_file(cp, dir, name, path, en);
	else if (*name == '\0')
		get_dir(cp, dir, path, 0);
	else if ((fd = open_dir(cp, dir, name, en->en_mode)) != -1) {
		get_dir(cp, fd, path, 0);
		close(fd);
	}
	close(dir);
}

/* What the remote path is: 0, or -1 if it cannot be copied, which was said. */
static int
get_stat(struct copy *cp, const char *path, struct entry *en)
{
	const char	*type;
	struct jsonw	 w;

	cp->cp_task.ta_subject = path;
	call_op(&w, "stat");
	put_str(&w, "path", path);
	if (task_ask(&cp->cp_task, &w, &task_ops) == -1)
		return -1;
	type = json_string(cp->cp_task.ta_result, "type");
	if (type == NULL)
		return task_broken(&cp->cp_task, "a file without a type");
	memset(en, 0, sizeof(*en));
	en->en_type = *type;
	body_number(cp->cp_task.ta_result, "mode", &en->en_mode);
	body_number(cp->cp_task.ta_result, "size", &en->en_size);
	if (en->en_type == 'd' && !cp->cp_recursive)
		copy_fail(cp, path, "a directory; copy it with -r");
	else if (en->en_type != 'd' && en->en_type != 'f')
		copy_fail(cp, path, "neither file nor directory");
	else
		return 0;
	return -1;
}

void
copy_get(struct copy *cp, const char *path, const char *local)
{
	char		 to[PATH_MAX];
	const char	*name;
	size_t		 len;
	struct entry	 en;
	struct stat	 st;
	int		 there = stat(local, &st) == 0;

	if (get_stat(cp, path, &en) == -1)
		return;
	name = path_last(path, &len);
	if (!there || !S_ISDIR(st.st_mode))
		len = 1, name = ".";
	if (path_join(to, sizeof(to), local, name, len) == -1)
		copy_fail(cp, local, strerror(ENAMETOOLONG));
	else if (there && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) &&
	    en.en_type == 'f')
		get_into(cp, local, path);
	else
		get_to(cp, path, to, &en);
}
