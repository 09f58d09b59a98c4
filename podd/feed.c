/* SPDX-License-Identifier: ISC */

/*
 * podd: lines out of what a gate sends, which is hostile.  The buffer grows
 * with a line that is long, up to a limit, and is given back after it: most
 * gates say little, and there are many.
 */

#include <stdlib.h>
#include <string.h>

#include "podd.h"

#define FEED_FIRST	4096

void
feed_init(struct feed *fe)
{
	memset(fe, 0, sizeof(*fe));
}

void
feed_free(struct feed *fe)
{
	free(fe->fe_buf);
	feed_init(fe);
}

static void
feed_resize(struct feed *fe, size_t size)
{
	char	*buf;

	if ((buf = realloc(fe->fe_buf, size)) == NULL)
		fatal("%s", __func__);
	fe->fe_buf = buf;
	fe->fe_size = size;
}

/* Where the next bytes go, and how many; all lines were taken before. */
char *
feed_room(struct feed *fe, size_t *len)
{
	if (fe->fe_start > 0) {
		memmove(fe->fe_buf, fe->fe_buf + fe->fe_start,
		    fe->fe_end - fe->fe_start);
		fe->fe_end -= fe->fe_start;
		fe->fe_seen -= fe->fe_start;
		fe->fe_start = 0;
	}
	if (fe->fe_end == 0 && fe->fe_size > FEED_READ)
		feed_free(fe);
	if (fe->fe_size == 0)
		feed_resize(fe, FEED_FIRST);
	else if (fe->fe_end == fe->fe_size)
		feed_resize(fe, fe->fe_size * 2);
	*len = fe->fe_size - fe->fe_end;
	if (*len > FEED_READ)
		*len = FEED_READ;
	return fe->fe_buf + fe->fe_end;
}

void
feed_got(struct feed *fe, size_t len)
{
	fe->fe_end += len;
}

/* 1: a line, valid until feed_room(); 0: none is whole; -1: it is too long. */
int
feed_next(struct feed *fe, const char **line, size_t *len)
{
	char	*nl = NULL;

	if (fe->fe_end > fe->fe_seen)
		nl = memchr(fe->fe_buf + fe->fe_seen, '\n',
		    fe->fe_end - fe->fe_seen);
	if (nl == NULL) {
		fe->fe_seen = fe->fe_end;
		return fe->fe_end - fe->fe_start > FEED_LEN ? -1 : 0;
	}
	*line = fe->fe_buf + fe->fe_start;
	*len = (size_t)(nl - *line);
	fe->fe_start = fe->fe_seen = (size_t)(nl - fe->fe_buf) + 1;
	return *len > FEED_LEN ? -1 : 1;
}
