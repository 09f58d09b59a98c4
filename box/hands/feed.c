/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: what a client sends to a command's standard input or to
 * a port, kept until it is taken.  The credit of the request bounds it; credit
 * is given again for what was taken, or cannot be any more.
 */

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../box.h"
#include "op.h"

static short
feed_wants(void *arg)
{
	const struct feed	*fe = arg;

	return fe->fe_len > 0 && !fe->fe_request->rq_over ? POLLOUT : 0;
}

/* Nobody takes any more; what comes later is dropped. */
static void
feed_close(struct feed *fe)
{
	fe->fe_fd = -1;
	fe->fe_closed = 1;
	watch_free(fe->fe_watch);
	fe->fe_watch = NULL;
	free(fe->fe_buf);
	fe->fe_buf = NULL;
	fe->fe_len = fe->fe_off = fe->fe_size = 0;
	if (fe->fe_done != NULL)
		fe->fe_done(fe->fe_request);
}

static void
feed_ready(void *arg)
{
	struct feed	*fe = arg;
	ssize_t		 n;

	if (fe->fe_len == 0)
		return;
	n = write(fe->fe_fd, fe->fe_buf + fe->fe_off, fe->fe_len);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == -1) {
		request_eat(fe->fe_request, fe->fe_len);
		feed_close(fe);
		return;
	}
	fe->fe_off += (size_t)n;
	fe->fe_len -= (size_t)n;
	fe->fe_total += (uint64_t)n;
	if (fe->fe_len == 0)
		fe->fe_off = 0;
	request_eat(fe->fe_request, (size_t)n);
	if (fe->fe_len == 0 && fe->fe_ended)
		feed_close(fe);
}

/*
 * Until feed_start() says where it goes, what comes is kept.  done is called
 * when the descriptor is of no use any more, and closes it.
 */
void
feed_start(struct feed *fe, struct request *rq, int fd,
    void (*done)(struct request *))
{
	fe->fe_request = rq;
	fe->fe_fd = fd;
	fe->fe_done = done;
	fe->fe_watch = watch_new(fd, feed_wants, feed_ready, fe);
	if (fe->fe_len > 0)
		feed_ready(fe);
	else if (fe->fe_ended)
		feed_close(fe);
}

static void
feed_grow(struct feed *fe, size_t len)
{
	if (fe->fe_len > 0)
		memmove(fe->fe_buf, fe->fe_buf + fe->fe_off, fe->fe_len);
	fe->fe_off = 0;
	if (fe->fe_len + len <= fe->fe_size)
		return;
	fe->fe_size = fe->fe_len + len;
	if ((fe->fe_buf = realloc(fe->fe_buf, fe->fe_size)) == NULL)
		err(BOX_FAILED, NULL);
}

void
feed_put(struct feed *fe, const uint8_t *data, size_t len)
{
	if (len == 0)
		return;
	if (fe->fe_closed) {
		request_eat(fe->fe_request, len);
		return;
	}
	if (fe->fe_off + fe->fe_len + len > fe->fe_size)
		feed_grow(fe, len);
	memcpy(fe->fe_buf + fe->fe_off + fe->fe_len, data, len);
	fe->fe_len += len;
	if (fe->fe_fd != -1)
		feed_ready(fe);
}

/* No more will come. */
void
feed_end(struct feed *fe)
{
	fe->fe_ended = 1;
	if (fe->fe_fd != -1 && fe->fe_len == 0)
		feed_close(fe);
}

void
feed_free(struct feed *fe)
{
	watch_free(fe->fe_watch);
	fe->fe_watch = NULL;
	free(fe->fe_buf);
	fe->fe_buf = NULL;
	fe->fe_fd = -1;
}
