/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this, to find where an audit file ends.  The file may
 * hold anything: the operator may have named the wrong one, and a crash may
 * have left half a line.  Nothing is changed here.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"

#define BLOCK		4096

/* Read exactly len bytes, or -1. */
static int
read_at(int fd, char *buf, size_t len, off_t at)
{
	ssize_t	 n;

	for (; len > 0; buf += n, at += n, len -= (size_t)n) {
		if ((n = pread(fd, buf, len, at)) > 0)
			continue;
		if (n == 0) {
			errno = EIO;	/* it shrank under us */
			return -1;
		}
		if (errno != EINTR)
			return -1;
		n = 0;
	}
	return 0;
}

/*
 * Where the last newline before end is: *at, or -1 if the file begins first.
 * A line longer than we write is nothing that we can go on from.
 */
static int
newline_before(int fd, off_t end, off_t *at, const char **why)
{
	char	 block[BLOCK], *nl;
	off_t	 from, stop = end > LINE_LEN_MAX ? end - LINE_LEN_MAX : 0;
	size_t	 n;

	while (end > stop) {
		from = end - stop > BLOCK ? end - BLOCK : stop;
		n = (size_t)(end - from);
		if (read_at(fd, block, n, from) == -1) {
			*why = strerror(errno);
			return -1;
		}
		if ((nl = memrchr(block, '\n', n)) != NULL) {
			*at = from + (nl - block);
			return 0;
		}
		end = from;
	}
	if (stop > 0) {
		*why = "its last line is longer than any record";
		return -1;
	}
	*at = -1;
	return 0;
}

static int
read_line(int fd, off_t from, off_t to, struct link *li, const char **why)
{
	size_t	 len = (size_t)(to - from);
	char	*text;
	int	 rv = -1;

	/* One byte more, since malloc(0) may return NULL. */
	if ((text = malloc(len + 1)) == NULL ||
	    read_at(fd, text, len, from) == -1)
		*why = strerror(errno);
	else if ((rv = chain_parse(li, text, len)) == -1)
		*why = "its last line is not a record";
	free(text);
	return rv;
}

/*
 * A file with no whole line: it will be cut to nothing, which must not be
 * the fate of anything but our own first line.
 */
static int
check_fragment(int fd, off_t size, const char **why)
{
	static const char	 first[] = "{\"seq\":";
	char			 text[sizeof(first) - 1];
	size_t			 len = sizeof(text);

	if (size < (off_t)len)
		len = (size_t)size;
	if (read_at(fd, text, len, 0) == -1) {
		*why = strerror(errno);
		return -1;
	}
	if (memcmp(text, first, len) != 0) {
		*why = "it is not an audit file";
		return -1;
	}
	return 0;
}

int
tail_read(int fd, struct tail *ta, const char **why)
{
	off_t	 size, last, before;

	memset(ta, 0, sizeof(*ta));
	if ((size = lseek(fd, 0, SEEK_END)) == -1) {
		*why = strerror(errno);
		return -1;
	}
	if (newline_before(fd, size, &last, why) == -1)
		return -1;
	ta->ta_torn = size - (last + 1);
	if (last == -1) {
		ta->ta_empty = 1;
		return check_fragment(fd, size, why);
	}
	if (newline_before(fd, last, &before, why) == -1)
		return -1;
	return read_line(fd, before + 1, last, &ta->ta_end, why);
}
