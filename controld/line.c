/* SPDX-License-Identifier: ISC */

/*
 * controld: lines from a control client, who may be anyone that can open the
 * socket.  The buffer grows to one line of the greatest length and no
 * further, every byte is looked at once, and a client between two requests
 * holds little.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controld.h"

#define LINE_SIZE_MIN	4096
#define LINE_SIZE_MAX	(LINE_LEN + 1)	/* with the newline */

void
line_init(struct line *ln)
{
	memset(ln, 0, sizeof(*ln));
}

void
line_free(struct line *ln)
{
	free(ln->ln_buf);
	line_init(ln);
}

/* Room behind what is there: by moving it to the front, then by growing. */
static int
line_make_room(struct line *ln)
{
	size_t	 size;
	char	*buf;

	if (ln->ln_start > 0) {
		memmove(ln->ln_buf, ln->ln_buf + ln->ln_start,
		    ln->ln_end - ln->ln_start);
		ln->ln_seen -= ln->ln_start;
		ln->ln_end -= ln->ln_start;
		ln->ln_start = 0;
	}
	if (ln->ln_end < ln->ln_size)
		return 0;
	size = ln->ln_size == 0 ? LINE_SIZE_MIN : ln->ln_size * 2;
	if (size > LINE_SIZE_MAX)
		size = LINE_SIZE_MAX;
	if (size == ln->ln_size) {
		errno = EMSGSIZE;
		return -1;
	}
	if ((buf = realloc(ln->ln_buf, size)) == NULL)
		return -1;
	ln->ln_buf = buf;
	ln->ln_size = size;
	return 0;
}

/* As read(2).  It is the turn of line_next() until that returns 0. */
ssize_t
line_read(struct line *ln, int fd, struct passed *ps)
{
	ssize_t	 n;

	if (line_make_room(ln) == -1)
		return -1;
	do
		n = passed_read(ps, fd, ln->ln_buf + ln->ln_end,
		    ln->ln_size - ln->ln_end);
	while (n == -1 && errno == EINTR);
	if (n > 0)
		ln->ln_end += n;
	return n;
}

/*
 * 1: a line, with a NUL in place of its newline, valid until the next call
 * here; 0: none is complete; -1: it is longer than LINE_LEN.
 */
int
line_next(struct line *ln, char **line, size_t *len)
{
	char	*nl = NULL;

	if (ln->ln_start == ln->ln_end) {
		ln->ln_start = ln->ln_seen = ln->ln_end = 0;
		if (ln->ln_size > LINE_SIZE_MIN)
			line_free(ln);
		return 0;
	}
	if (ln->ln_seen < ln->ln_end)
		nl = memchr(ln->ln_buf + ln->ln_seen, '\n',
		    ln->ln_end - ln->ln_seen);
	if (nl == NULL) {
		ln->ln_seen = ln->ln_end;
		return ln->ln_end - ln->ln_start > LINE_LEN ? -1 : 0;
	}
	*nl = '\0';
	*line = ln->ln_buf + ln->ln_start;
	*len = nl - *line;
	ln->ln_start = ln->ln_seen = nl - ln->ln_buf + 1;
	return 1;
}

/* The line that line_next() has just given comes again the next time. */
void
line_back(struct line *ln, char *line, size_t len)
{
	line[len] = '\n';
	ln->ln_start = ln->ln_seen = line - ln->ln_buf;
}
