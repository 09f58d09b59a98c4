/* SPDX-License-Identifier: ISC */

/*
 * The hands, and a process that they fork, run this: an operation of which
 * nobody knows how long a step takes, because a client's expression decides.
 * It has a process and memory of its own; cancelling it is killing it.
 *
 * Over the pipe come records: length of the text, kind of frame, text.
 */

#include <sys/prctl.h>
#include <sys/resource.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../box.h"
#include "op.h"

#define WORKER_FD	(STDERR_FILENO + 1)
#define MEMORY_MAX	(512UL * 1024 * 1024)

struct record {
	uint32_t	 re_len;
	uint32_t	 re_kind;
};

#define RECORD_MAX	(sizeof(struct record) + FRAME_MAX)

static TAILQ_HEAD(, worker)	 workers = TAILQ_HEAD_INITIALIZER(workers);

/* In the worker. */
static void
worker_send(enum frame_kind kind, struct jsonw *w)
{
	static uint8_t	 buf[RECORD_MAX];
	struct record	 re = { 0, kind };
	const char	*text;
	size_t		 done, len;
	ssize_t		 n;

	if ((text = jsonw_finish(w, &len)) == NULL)
		return;
	re.re_len = (uint32_t)len;
	memcpy(buf, &re, sizeof(re));
	memcpy(buf + sizeof(re), text, len);
	len += sizeof(re);
	for (done = 0; done < len; done += (size_t)n)
		if ((n = write(WORKER_FD, buf + done, len - done)) == -1) {
			if (errno != EINTR)
				_exit(BOX_FAILED);
			n = 0;
		}
}

void
worker_item(struct jsonw *w)
{
	worker_send(FRAME_ITEM, w);
}

void
worker_result(struct jsonw *w)
{
	worker_send(FRAME_RESULT, w);
	_exit(0);
}

void
worker_error(const char *code, const char *fmt, ...)
{
	struct jsonw	*w = request_writer();
	char		 text[8192];
	va_list		 ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	jsonw_object(w);
	jsonw_lit(w, "code");
	jsonw_str(w, code);
	jsonw_lit(w, "message");
	jsonw_str(w, text);
	jsonw_end(w);
	worker_send(FRAME_ERROR, w);
	_exit(0);
}

/* No descriptor of the hands, no more memory than this, and no survival. */
static void
worker_confine(int fd)
{
	struct rlimit	 rl = { MEMORY_MAX, MEMORY_MAX };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
	    dup2(fd, WORKER_FD) == -1)
		_exit(BOX_FAILED);
	(void)close_range(WORKER_FD + 1, UINT_MAX, 0);
	signal(SIGPIPE, SIG_DFL);
#ifndef SANITIZE
	(void)setrlimit(RLIMIT_AS, &rl);
#else
	(void)rl;
#endif
}

/* In the hands. */
static void
worker_close(struct worker *wo)
{
	watch_free(wo->wo_watch);
	wo->wo_watch = NULL;
	if (wo->wo_fd != -1)
		(void)close(wo->wo_fd);
	wo->wo_fd = -1;
}

/* The next record is one frame; what is not one is a worker gone wrong. */
static size_t
worker_take(struct worker *wo, const uint8_t *p, size_t len)
{
	struct request	*rq = wo->wo_request;
	struct record	 re;

	if (len < sizeof(re))
		return 0;
	memcpy(&re, p, sizeof(re));
	if (re.re_len > FRAME_MAX || (re.re_kind != FRAME_ITEM &&
	    re.re_kind != FRAME_RESULT && re.re_kind != FRAME_ERROR)) {
		request_error(rq, "failed", "the operation's process failed");
		return 0;
	}
	if (len - sizeof(re) < re.re_len)
		return 0;
	if (re.re_kind == FRAME_ITEM)
		request_item_text(rq, (const char *)p + sizeof(re), re.re_len);
	else
		request_answer(rq, re.re_kind, (const char *)p + sizeof(re),
		    re.re_len);
	return sizeof(re) + re.re_len;
}

/* A turn of the request: what records there are, as there is room. */
void
worker_step(struct worker *wo)
{
	struct request	*rq = wo->wo_request;
	size_t		 n = 1, off = 0;

	while (!rq->rq_over && rq->rq_item == NULL && n > 0) {
		n = worker_take(wo, wo->wo_buf + off, wo->wo_len - off);
		off += n;
	}
	wo->wo_len -= off;
	memmove(wo->wo_buf, wo->wo_buf + off, wo->wo_len);
	rq->rq_busy = n > 0;
	if (n == 0 && wo->wo_ended && !rq->rq_over)
		request_error(rq, "failed", "the operation's process died");
}

static short
worker_wants(void *arg)
{
	const struct worker	*wo = arg;

	return wo->wo_request->rq_over || wo->wo_request->rq_busy ? 0 : POLLIN;
}

static void
worker_ready(void *arg)
{
	struct worker	*wo = arg;
	ssize_t		 n;

	if (wo->wo_request->rq_over)
		return;
	n = read(wo->wo_fd, wo->wo_buf + wo->wo_len, RECORD_MAX - wo->wo_len);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		wo->wo_len += (size_t)n;
	else {
		wo->wo_ended = 1;
		worker_close(wo);
	}
	wo->wo_request->rq_busy = 1;
}

/* Fork; the function gets the request, and answers it. */
void
worker_start(struct worker *wo, struct request *rq,
    void (*work)(struct request *))
{
	int	 ends[2];

	wo->wo_request = rq;
	wo->wo_fd = -1;
	if (pipe2(ends, O_CLOEXEC) == -1 ||
	    (wo->wo_buf = malloc(RECORD_MAX)) == NULL ||
	    (wo->wo_pid = fork()) == -1) {
		wo->wo_pid = 0;
		request_failed(rq, errno, rq->rq_op->op_name);
		return;
	}
	if (wo->wo_pid == 0) {
		worker_confine(ends[1]);
		work(rq);
		_exit(BOX_FAILED);
	}
	(void)close(ends[1]);
	wo->wo_fd = ends[0];
	(void)fcntl(wo->wo_fd, F_SETFL, O_NONBLOCK);
	wo->wo_watch = watch_new(wo->wo_fd, worker_wants, worker_ready, wo);
	wo->wo_listed = 1;
	TAILQ_INSERT_TAIL(&workers, wo, wo_entry);
}

/* A pid that was waited for is nobody's, or somebody else's. */
void
worker_reaped(pid_t pid)
{
	struct worker	*wo;

	TAILQ_FOREACH(wo, &workers, wo_entry)
		if (wo->wo_pid == pid)
			wo->wo_pid = 0;
}

void
worker_free(struct worker *wo)
{
	if (wo->wo_listed)
		TAILQ_REMOVE(&workers, wo, wo_entry);
	worker_close(wo);
	if (wo->wo_pid > 0)
		(void)kill(wo->wo_pid, SIGKILL);
	free(wo->wo_buf);
}
