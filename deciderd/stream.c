/* SPDX-License-Identifier: ISC */

/*
 * deciderd runs this: a program that is kept, or a server behind a Unix
 * socket.  Questions go out as lines with a number, answers come back in any
 * order.  A line that is no answer at all says that the other end has lost
 * its way: it is closed, with all that waits for it, and opened again after a
 * pause that grows.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "clock.h"
#include "deciderd.h"

#define OUTPUT_MAX	(4 * 1024 * 1024)	/* bytes unread there */
#define PAUSE_MIN_MS	100
#define PAUSE_MAX_MS	30000
#define SILENCE_MAX	3	/* late answers in a row: it hangs */

enum stream_state { STREAM_DOWN, STREAM_ASKED, STREAM_UP };

struct stream {
	struct decider		*sr_decider;
	enum stream_state	 sr_state;
	struct opening		 sr_opening;
	struct bufferevent	*sr_bev;
	struct questions	 sr_questions;
	uint64_t		 sr_number;	/* of the last question */
	unsigned int		 sr_silence;
	unsigned int		 sr_pause_ms;	/* 0: it has answered */
	uint64_t		 sr_not_before;
	struct event		 sr_retry;
};

static const struct opening_ops	 stream_ops;

static void	 stream_retry(evutil_socket_t, short, void *);

struct stream *
stream_new(struct decider *de)
{
	struct stream	*sr;

	if ((sr = calloc(1, sizeof(*sr))) == NULL)
		fatal("%s", __func__);
	sr->sr_decider = de;
	TAILQ_INIT(&sr->sr_questions);
	event_assign(&sr->sr_retry, child_base, -1, 0, stream_retry, sr);
	return sr;
}

static void
stream_close(struct stream *sr)
{
	opening_done(&sr->sr_opening);
	if (sr->sr_bev != NULL)
		bufferevent_free(sr->sr_bev);
	sr->sr_bev = NULL;
	sr->sr_state = STREAM_DOWN;
}

void
stream_free(struct stream *sr)
{
	if (sr == NULL)
		return;
	stream_close(sr);
	event_del(&sr->sr_retry);
	free(sr);
}

/* Questions hold the decider, which holds the stream: keep it for the loop. */
static void
stream_lost(struct stream *sr, enum answer_result result, const char *why)
{
	struct decider	*de = decider_ref(sr->sr_decider);
	struct question	*qu;

	stream_close(sr);
	sr->sr_silence = 0;
	sr->sr_pause_ms = sr->sr_pause_ms == 0 ? PAUSE_MIN_MS :
	    sr->sr_pause_ms * 2;
	if (sr->sr_pause_ms > PAUSE_MAX_MS)
		sr->sr_pause_ms = PAUSE_MAX_MS;
	sr->sr_not_before = clock_ms() + sr->sr_pause_ms;
	log_warnx("decider \"%s\": %s; not opened again for %u ms",
	    de->de_name, why, sr->sr_pause_ms);
	while ((qu = TAILQ_FIRST(&sr->sr_questions)) != NULL)
		question_finish(qu, result, "%s", why);
	decider_unref(de);
}

/* ---- lines out ---- */

static void
stream_write(struct stream *sr, struct question *qu)
{
	struct evbuffer	*out = bufferevent_get_output(sr->sr_bev);
	struct text	*doc = &qu->qu_document;

	if (evbuffer_get_length(out) + doc->tx_len > OUTPUT_MAX) {
		question_finish(qu, ANSWER_ERROR,
		    "it does not read its questions");
		return;
	}
	qu->qu_number = ++sr->sr_number;
	qu->qu_written = true;
	if (evbuffer_add_printf(out, "{\"id\":%llu,\"question\":",
	    (unsigned long long)qu->qu_number) == -1 ||
	    evbuffer_add(out, doc->tx_data, doc->tx_len) == -1 ||
	    evbuffer_add(out, "}\n", 2) == -1)
		fatalx("%s: no memory", __func__);
	question_drop_document(qu);
}

static void
stream_open(struct stream *sr)
{
	const struct decider	*de = sr->sr_decider;

	sr->sr_state = STREAM_ASKED;
	opening_ask(&sr->sr_opening, de->de_kind == DECIDER_SOCKET ?
	    OPEN_DECIDER_SOCKET : OPEN_DECIDER_PROGRAM, de->de_name,
	    &stream_ops, sr);
}

static void
stream_retry(evutil_socket_t fd, short what, void *arg)
{
	struct stream	*sr = arg;

	(void)fd, (void)what;
	if (sr->sr_state == STREAM_DOWN && !TAILQ_EMPTY(&sr->sr_questions))
		stream_open(sr);
}

/*
 * Open it now, or as soon as may be; a question that cannot wait so long is
 * told at once.
 */
static void
stream_rise(struct stream *sr, struct question *qu)
{
	uint64_t	 wait, now = clock_ms();
	struct timeval	 tv;

	if (now >= sr->sr_not_before) {
		stream_open(sr);
		return;
	}
	wait = sr->sr_not_before - now;
	if (wait >= qu->qu_timeout_ms) {
		question_finish(qu, ANSWER_ERROR, "it has failed before and "
		    "is not opened again for %llu ms",
		    (unsigned long long)wait);
		return;
	}
	tv.tv_sec = wait / 1000;
	tv.tv_usec = wait % 1000 * 1000;
	if (event_add(&sr->sr_retry, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

static void
stream_begin(struct question *qu)
{
	struct stream	*sr = qu->qu_decider->de_stream;

	TAILQ_INSERT_TAIL(&sr->sr_questions, qu, qu_stream);
	if (sr->sr_state == STREAM_UP)
		stream_write(sr, qu);
	else if (sr->sr_state == STREAM_DOWN)
		stream_rise(sr, qu);
}

static void
stream_forget(struct question *qu)
{
	TAILQ_REMOVE(&qu->qu_decider->de_stream->sr_questions, qu, qu_stream);
}

/* A mute stream is closed, and opened again for the next question. */
static void
stream_late(struct question *qu)
{
	struct stream	*sr = qu->qu_decider->de_stream;

	if (!qu->qu_written || ++sr->sr_silence < SILENCE_MAX)
		return;
	/* This question is answered as timeout, not as error. */
	TAILQ_REMOVE(&sr->sr_questions, qu, qu_stream);
	stream_lost(sr, ANSWER_ERROR, "it does not answer any more");
	TAILQ_INSERT_TAIL(&sr->sr_questions, qu, qu_stream);
}

/* ---- lines in ---- */

static struct question *
stream_find(struct stream *sr, uint64_t number)
{
	struct question	*qu;

	TAILQ_FOREACH(qu, &sr->sr_questions, qu_stream)
		if (qu->qu_written && qu->qu_number == number)
			return qu;
	return NULL;
}

/* -1 if the stream is lost with this line. */
static int
stream_line(struct stream *sr, const char *line, size_t len)
{
	struct question	*qu;
	struct reply	 rp;

	reply_text(line, len, true, &rp);
	if (rp.rp_id == 0) {
		stream_lost(sr, ANSWER_BAD_RETURN,
		    rp.rp_result == ANSWER_BAD_RETURN ? rp.rp_reason :
		    "an answer has no id");
		return -1;
	}
	if ((qu = stream_find(sr, rp.rp_id)) == NULL) {
		/* The question was probably answered as timeout before. */
		log_debug("decider \"%s\": an answer to question %llu, which "
		    "is not open", sr->sr_decider->de_name,
		    (unsigned long long)rp.rp_id);
		return 0;
	}
	sr->sr_silence = 0;
	sr->sr_pause_ms = 0;
	question_reply(qu, &rp);
	return 0;
}

static void
stream_read(struct bufferevent *bev, void *arg)
{
	struct stream	*sr = arg;
	struct decider	*de = decider_ref(sr->sr_decider);
	struct evbuffer	*in = bufferevent_get_input(bev);
	char		*line;
	size_t		 len;
	int		 rv = 0;

	while (rv == 0 && (line = evbuffer_readln(in, &len,
	    EVBUFFER_EOL_LF)) != NULL) {
		rv = stream_line(sr, line, len);
		free(line);
	}
	if (rv == 0 && evbuffer_get_length(in) > REPLY_LEN)
		stream_lost(sr, ANSWER_BAD_RETURN, "a line is too long");
	decider_unref(de);
}

static void
stream_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev, (void)what;
	stream_lost(arg, ANSWER_ERROR, "it has closed");
}

/* ---- how a stream opens and ends ---- */

static void
stream_opened(void *arg, int fd)
{
	struct stream	*sr = arg;
	struct decider	*de = decider_ref(sr->sr_decider);
	struct question	*qu, *next;

	if (evutil_make_socket_nonblocking(fd) == -1 ||
	    (sr->sr_bev = bufferevent_socket_new(child_base, fd,
	    BEV_OPT_CLOSE_ON_FREE)) == NULL)
		fatal("%s", __func__);
	bufferevent_setcb(sr->sr_bev, stream_read, NULL, stream_event, sr);
	bufferevent_setwatermark(sr->sr_bev, EV_READ, 0, REPLY_LEN + 1);
	if (bufferevent_enable(sr->sr_bev, EV_READ | EV_WRITE) == -1)
		fatalx("%s: bufferevent_enable", __func__);
	sr->sr_state = STREAM_UP;
	TAILQ_FOREACH_SAFE(qu, &sr->sr_questions, qu_stream, next)
		stream_write(sr, qu);
	decider_unref(de);
}

static void
stream_failed(void *arg, const char *why)
{
	stream_lost(arg, ANSWER_ERROR, why);
}

/* Its last lines may still be on the way: stream_event() tells their end. */
static void
stream_ended(void *arg, const char *why)
{
	struct stream	*sr = arg;

	log_warnx("decider \"%s\": %s", sr->sr_decider->de_name,
	    why != NULL ? why : "it has ended");
}

static const struct opening_ops stream_ops = {
	.oo_opened = stream_opened,
	.oo_failed = stream_failed,
	.oo_ended = stream_ended,
};

const struct asker stream_asker = {
	.as_begin = stream_begin,
	.as_late = stream_late,
	.as_forget = stream_forget,
};
