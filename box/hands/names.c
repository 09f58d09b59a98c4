/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: the names in a directory, in the order of their bytes.
 * A directory may be as large as a command likes: it is read some names at a
 * time, each run of them is sorted, and the runs are merged as names are asked
 * for, so that no turn takes long.  A directory above the limits is EFBIG.
 */

#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../box.h"
#include "op.h"

#define READ_MAX	1024		/* names in a turn */
#define RUN_MAX		16384
#define RUNS_MAX	64
#define TEXT_MAX	(32 * 1024 * 1024)

struct name {
	uint32_t	 na_text;	/* offset */
	unsigned char	 na_type;	/* DT_... */
};

struct run {
	size_t	 ru_at;
	size_t	 ru_end;
};

struct names {
	DIR		*nm_dir;
	char		*nm_text;
	size_t		 nm_textlen;
	size_t		 nm_textsize;
	struct name	*nm_list;
	size_t		 nm_n;
	size_t		 nm_size;
	struct run	 nm_runs[RUNS_MAX];
	size_t		 nm_nruns;
	size_t		 nm_sorted;
	const char	*nm_last;	/* that was told */
};

struct names *
names_new(void)
{
	struct names	*nm;

	if ((nm = calloc(1, sizeof(*nm))) == NULL)
		err(BOX_FAILED, NULL);
	return nm;
}

/* Begin to read a directory below another; flags such as O_NOFOLLOW. */
int
names_open(struct names *nm, int at, const char *path, int flags)
{
	int	 fd;

	if ((fd = openat(at, *path == '\0' ? "." : path, O_RDONLY |
	    O_DIRECTORY | O_NONBLOCK | O_CLOEXEC | flags)) == -1)
		return -1;
	if ((nm->nm_dir = fdopendir(fd)) == NULL) {
		(void)close(fd);
		return -1;
	}
	return 0;
}

/* The directory while it is read, and -1 after that. */
int
names_fd(const struct names *nm)
{
	return nm->nm_dir == NULL ? -1 : dirfd(nm->nm_dir);
}

static int
names_compare(const void *a, const void *b, void *text)
{
	const struct name	*na = a, *nb = b;

	return strcmp((char *)text + na->na_text, (char *)text + nb->na_text);
}

static int
names_sort(struct names *nm)
{
	struct run	*ru = &nm->nm_runs[nm->nm_nruns];

	if (nm->nm_sorted == nm->nm_n)
		return 0;
	if (nm->nm_nruns++ == RUNS_MAX) {
		errno = EFBIG;
		return -1;
	}
	ru->ru_at = nm->nm_sorted;
	ru->ru_end = nm->nm_sorted = nm->nm_n;
	qsort_r(nm->nm_list + ru->ru_at, ru->ru_end - ru->ru_at,
	    sizeof(*nm->nm_list), names_compare, nm->nm_text);
	return 0;
}

int
names_add(struct names *nm, const char *name, unsigned char type)
{
	size_t	 len = strlen(name) + 1;

	if (len > TEXT_MAX - nm->nm_textlen) {
		errno = EFBIG;
		return -1;
	}
	if (nm->nm_textlen + len > nm->nm_textsize) {
		nm->nm_textsize = (nm->nm_textlen + len) * 2;
		if ((nm->nm_text = realloc(nm->nm_text,
		    nm->nm_textsize)) == NULL)
			err(BOX_FAILED, NULL);
	}
	if (nm->nm_n == nm->nm_size) {
		nm->nm_size = nm->nm_size * 2 + 64;
		if ((nm->nm_list = reallocarray(nm->nm_list, nm->nm_size,
		    sizeof(*nm->nm_list))) == NULL)
			err(BOX_FAILED, NULL);
	}
	memcpy(nm->nm_text + nm->nm_textlen, name, len);
	nm->nm_list[nm->nm_n].na_text = (uint32_t)nm->nm_textlen;
	nm->nm_list[nm->nm_n++].na_type = type;
	nm->nm_textlen += len;
	return nm->nm_n - nm->nm_sorted == RUN_MAX ? names_sort(nm) : 0;
}

static int
is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' ||
	    (name[1] == '.' && name[2] == '\0'));
}

/* Read some: 1 if there are more, 0 at the end, or -1 and errno. */
int
names_read(struct names *nm)
{
	struct dirent	*de;
	int		 i;

	for (i = 0; nm->nm_dir != NULL && i < READ_MAX; i++) {
		errno = 0;
		if ((de = readdir(nm->nm_dir)) == NULL) {
			if (errno != 0)
				return -1;
			(void)closedir(nm->nm_dir);
			nm->nm_dir = NULL;
		} else if (!is_dots(de->d_name) &&
		    names_add(nm, de->d_name, de->d_type) == -1)
			return -1;
	}
	if (nm->nm_dir != NULL)
		return 1;
	return names_sort(nm);
}

static const struct name *
names_least(struct names *nm)
{
	struct run	*ru, *least = NULL;
	size_t		 i;

	for (i = 0; i < nm->nm_nruns; i++) {
		ru = &nm->nm_runs[i];
		if (ru->ru_at < ru->ru_end && (least == NULL ||
		    names_compare(&nm->nm_list[ru->ru_at],
		    &nm->nm_list[least->ru_at], nm->nm_text) < 0))
			least = ru;
	}
	return least == NULL ? NULL : &nm->nm_list[least->ru_at++];
}

/* The next name and its DT_..., or NULL; what was added twice comes once. */
const char *
names_next(struct names *nm, unsigned char *type)
{
	const struct name	*na;
	const char		*text;

	while ((na = names_least(nm)) != NULL) {
		text = nm->nm_text + na->na_text;
		if (nm->nm_last != NULL && strcmp(text, nm->nm_last) == 0)
			continue;
		nm->nm_last = text;
		*type = na->na_type;
		return text;
	}
	return NULL;
}

size_t
names_bytes(const struct names *nm)
{
	return nm->nm_textsize + nm->nm_size * sizeof(*nm->nm_list);
}

void
names_free(struct names *nm)
{
	if (nm == NULL)
		return;
	if (nm->nm_dir != NULL)
		(void)closedir(nm->nm_dir);
	free(nm->nm_text);
	free(nm->nm_list);
	free(nm);
}
