/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: what several operations do with files.  Commands of the
 * sandbox may change every name at any time, and have the same rights as we;
 * so all that matters is that nothing blocks and no device is opened.
 */

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "op.h"

/* Open a regular file for reading; ENODEV for what is none. */
int
file_open(const char *path, struct stat *st)
{
	int	 fd;

	if (stat(path, st) == -1)
		return -1;
	if (S_ISREG(st->st_mode)) {
		if ((fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC |
		    O_NOCTTY)) == -1)
			return -1;
		if (fstat(fd, st) == 0 && S_ISREG(st->st_mode))
			return fd;
		(void)close(fd);
	}
	errno = S_ISDIR(st->st_mode) ? EISDIR : ENODEV;
	return -1;
}

/* Make the directories above the last component, as mkdir -p does. */
static int
file_parents(const char *path)
{
	char	*copy, *p;
	int	 error = 0;

	if ((copy = strdup(path)) == NULL)
		return -1;
	for (p = copy + 1; *p != '\0' && error == 0; p++) {
		if (*p != '/' || p[1] == '\0' || p[1] == '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0755) == -1 && errno != EEXIST)
			error = errno;
		*p = '/';
	}
	free(copy);
	errno = error;
	return error == 0 ? 0 : -1;
}

/* A directory and what is missing above it; whether it was made. */
int
file_mkdirs(const char *path, mode_t mode, int *created)
{
	struct stat	 st;

	*created = 0;
	if (mkdir(path, mode) == 0) {
		*created = 1;
		return 0;
	}
	if (errno == ENOENT && *path != '\0') {
		if (file_parents(path) == -1)
			return -1;
		if (mkdir(path, mode) == 0) {
			*created = 1;
			return 0;
		}
	}
	if (errno != EEXIST)
		return -1;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	errno = EEXIST;
	return -1;
}

const char *
file_type(mode_t mode)
{
	return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" :
	    S_ISLNK(mode) ? "link" : "other";
}

/* Members that list and stat have in common. */
void
file_members(struct jsonw *w, const struct stat *st)
{
	jsonw_lit(w, "type");
	jsonw_str(w, file_type(st->st_mode));
	jsonw_lit(w, "size");
	jsonw_int(w, st->st_size);
	jsonw_lit(w, "mode");
	jsonw_uint(w, st->st_mode & 07777);
	jsonw_lit(w, "mtime");
	jsonw_time(w, st->st_mtim.tv_sec, (uint32_t)st->st_mtim.tv_nsec);
}
