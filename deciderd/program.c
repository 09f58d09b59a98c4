/* SPDX-License-Identifier: ISC */

/*
 * deciderd runs this: a program per question.  The parent has started it; the
 * question is its standard input, its standard output the answer, to the end
 * of both.  It counts only if the program also ends well.
 */

#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "deciderd.h"

struct program {
	struct question		*pg_question;
	struct opening		 pg_opening;
	struct bufferevent	*pg_bev;
	bool			 pg_silent;	/* its output is closed */
	bool			 pg_ended;	/* with status 0 */
};

static void
program_weigh(struct program *pg)
{
	struct evbuffer	*in = bufferevent_get_input(pg->pg_bev);
	struct question	*qu = pg->pg_question;
	size_t		 len = evbuffer_get_length(in);
	struct reply	 rp;

	if (len > REPLY_LEN) {
		question_finish(qu, ANSWER_BAD_RETURN,
		    "it wrote more than %d bytes", REPLY_LEN);
		return;
	}
	if (!pg->pg_silent || !pg->pg_ended)
		return;
	if (len == 0)
		reply_bad(&rp, "it wrote nothing");
	else
		reply_text((const char *)evbuffer_pullup(in, -1), len, false,
		    &rp);
	question_reply(qu, &rp);
}

static void
program_read(struct bufferevent *bev, void *arg)
{
	(void)bev;
	program_weigh(arg);
}

/* The question is written: let the program see the end of its input. */
static void
program_written(struct bufferevent *bev, void *arg)
{
	(void)arg;
	shutdown(bufferevent_getfd(bev), SHUT_WR);
	bufferevent_disable(bev, EV_WRITE);
}

/*
 * A program may answer without having read the question.  Writing then fails,
 * and the end of its output reads as a reset.
 */
static void
program_event(struct bufferevent *bev, short what, void *arg)
{
	struct program	*pg = arg;

	if (what & BEV_EVENT_WRITING) {
		bufferevent_disable(bev, EV_WRITE);
		return;
	}
	bufferevent_disable(bev, EV_READ);
	if (what & BEV_EVENT_ERROR && errno != ECONNRESET) {
		question_finish(pg->pg_question, ANSWER_ERROR,
		    "it cannot be read");
		return;
	}
	pg->pg_silent = true;
	program_weigh(pg);
}

static void
program_opened(void *arg, int fd)
{
	struct program	*pg = arg;
	struct text	*doc = &pg->pg_question->qu_document;

	if (evutil_make_socket_nonblocking(fd) == -1 ||
	    (pg->pg_bev = bufferevent_socket_new(child_base, fd,
	    BEV_OPT_CLOSE_ON_FREE)) == NULL)
		fatal("%s", __func__);
	bufferevent_setcb(pg->pg_bev, program_read, program_written,
	    program_event, pg);
	bufferevent_setwatermark(pg->pg_bev, EV_READ, 0, REPLY_LEN + 1);
	if (bufferevent_write(pg->pg_bev, doc->tx_data, doc->tx_len) == -1 ||
	    bufferevent_write(pg->pg_bev, "\n", 1) == -1 ||
	    bufferevent_enable(pg->pg_bev, EV_READ | EV_WRITE) == -1)
		fatalx("%s: no memory", __func__);
	question_drop_document(pg->pg_question);
}

static void
program_failed(void *arg, const char *why)
{
	struct program	*pg = arg;

	question_finish(pg->pg_question, ANSWER_ERROR, "%s", why);
}

static void
program_ended(void *arg, const char *why)
{
	struct program	*pg = arg;

	if (why != NULL || pg->pg_bev == NULL) {
		program_failed(pg, why != NULL ? why : "it never ran");
		return;
	}
	pg->pg_ended = true;
	program_weigh(pg);
}

static const struct opening_ops program_ops = {
	.oo_opened = program_opened,
	.oo_failed = program_failed,
	.oo_ended = program_ended,
};

static void
program_begin(struct question *qu)
{
	struct program	*pg;

	if ((pg = calloc(1, sizeof(*pg))) == NULL)
		fatal("%s", __func__);
	pg->pg_question = qu;
	qu->qu_program = pg;
	opening_ask(&pg->pg_opening, OPEN_DECIDER_PROGRAM,
	    qu->qu_decider->de_name, &program_ops, pg);
}

static void
program_forget(struct question *qu)
{
	struct program	*pg = qu->qu_program;

	opening_done(&pg->pg_opening);
	if (pg->pg_bev != NULL)
		bufferevent_free(pg->pg_bev);
	free(pg);
}

const struct asker program_asker = {
	.as_begin = program_begin,
	.as_forget = program_forget,
};
