/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this, to find where an audit file ends, or where in it a
 * record is.  The file may hold anything: the operator may have named the wrong
 * one, and a crash may have left half a line.  Nothing is changed here.
 *
 * What a spool has given back is a hole at its beginning, which reads as NULs.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"

#define BLOCK		4096
#define BEGIN_LEN	64	/* bytes that hold the number */

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

/* How many NULs a file begins with, where no record does. */
static int
find_begin(int fd, off_t size, off_t *begin, const char **why)
{
	char	 block[BLOCK];
	off_t	 at = 0;
	size_t	 n, i;

	*begin = 0;
	if (size == 0)
		return 0;
	if (read_at(fd, block, 1, 0) == 0 && block[0] != '\0')
		return 0;
	/* ENXIO: nothing but a hole.  Else the NULs are simply read. */
	if ((at = lseek(fd, 0, SEEK_DATA)) == -1)
		at = errno == ENXIO ? size : 0;
	for (; at < size; at += (off_t)n) {
		n = size - at > BLOCK ? BLOCK : (size_t)(size - at);
		if (read_at(fd, block, n, at) == -1) {
			*why = strerror(errno);
			return -1;
		}
		for (i = 0; i < n && block[i] == '\0'; i++)
			continue;
		*begin = at + (off_t)i;
		if (i < n)
			return 0;
	}
	*begin = size;
	return 0;
}

/*
 * Where the last newline before end is: *at, or the place before begin if the
 * lines begin first.  A line longer than we write is nothing that we can go on
 * from.
 */
static int
newline_before(int fd, off_t begin, off_t end, off_t *at, const char **why)
{
	char	 block[BLOCK], *nl;
	off_t	 from, stop = begin;
	size_t	 n;

	if (end - begin > LINE_LEN_MAX)
		stop = end - LINE_LEN_MAX;
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
	if (stop > begin) {
		*why = "its last line is longer than any record";
		return -1;
	}
	*at = begin - 1;
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
check_fragment(int fd, off_t begin, off_t size, const char **why)
{
	static const char	 first[] = "{\"seq\":";
	char			 text[sizeof(first) - 1];
	size_t			 len = sizeof(text);

	if (size - begin < (off_t)len)
		len = (size_t)(size - begin);
	if (read_at(fd, text, len, begin) == -1) {
		*why = strerror(errno);
		return -1;
	}
	if (memcmp(text, first, len) != 0) {
		*why = "it is not an audit file";
		return -1;
	}
	return 0;
}

/* A file that was a spool does not verify any more. */
static int
check_begin(int fd, const char **why)
{
	char	 first;

	if (read_at(fd, &first, 1, 0) == 0 && first != '\0')
		return 0;
	*why = "it was a spool, and its beginning is gone";
	return -1;
}

int
tail_read(int fd, bool spool, struct tail *ta, const char **why)
{
	off_t	 size, last, before;

	memset(ta, 0, sizeof(*ta));
	if ((size = lseek(fd, 0, SEEK_END)) == -1) {
		*why = strerror(errno);
		return -1;
	}
	if ((spool && find_begin(fd, size, &ta->ta_begin, why) == -1) ||
	    newline_before(fd, ta->ta_begin, size, &last, why) == -1)
		return -1;
	ta->ta_torn = size - (last + 1);
	if (last < ta->ta_begin) {
		ta->ta_empty = 1;
		return check_fragment(fd, ta->ta_begin, size, why);
	}
	if (newline_before(fd, ta->ta_begin, last, &before, why) == -1 ||
	    read_line(fd, before + 1, last, &ta->ta_end, why) == -1)
		return -1;
	return spool ? 0 : check_begin(fd, why);
}

/* The number of the line that begins at a place; 0 if it has none. */
uint64_t
tail_number(int fd, off_t at, off_t end)
{
	char	 text[BEGIN_LEN];
	size_t	 n = sizeof(text), len;

	if (end - at < (off_t)n)
		n = (size_t)(end - at);
	if (read_at(fd, text, n, at) == -1)
		return 0;
	return chain_number(text, n, &len);
}

/* Behind the newline that ends the line at a place; -1 if none does. */
static off_t
line_end(int fd, off_t at, off_t end)
{
	char	 block[BLOCK], *nl;
	size_t	 n;

	for (; at < end; at += (off_t)n) {
		n = end - at > BLOCK ? BLOCK : (size_t)(end - at);
		if (read_at(fd, block, n, at) == -1)
			return -1;
		if ((nl = memchr(block, '\n', n)) != NULL)
			return at + (nl - block) + 1;
	}
	return -1;
}

/*
 * Where, among whole lines from begin to end, the first is whose number is seq
 * or more; end if there is none, -1 if the lines are not ours.  Numbers only
 * rise, so that half of the rest falls away with each look.
 */
off_t
tail_find(int fd, off_t begin, off_t end, uint64_t seq)
{
	const char	*why;
	off_t		 middle, before, behind;
	uint64_t	 number;

	while (begin < end) {
		middle = begin + (end - begin) / 2;
		if (newline_before(fd, begin, middle, &before, &why) == -1 ||
		    (behind = line_end(fd, middle, end)) == -1 ||
		    (number = tail_number(fd, before + 1, end)) == 0)
			return -1;
		if (number >= seq)
			end = before + 1;
		else
			begin = behind;
	}
	return begin;
}
