/* SPDX-License-Identifier: ISC */

/*
 * egressctl: standard input as a file of a sandbox.  It is there as a whole or
 * not at all.
 */

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "hands.h"

#define PIECE_LEN	65536

static struct {
	const char	*session;
	const char	*path;
	const char	*mode;		/* -m, or NULL */
} options;

static const struct token t_path[] = {
	{ WORD, "path", NULL, NULL, &options.path, NULL },
	{ 0 }
};

static const struct token t_write[] = {
	{ SESSION_ID, "session ID", t_path, NULL, &options.session, NULL },
	{ 0 }
};

static const struct call_ops write_ops = { .op_done = task_done };

static void
write_option(int ch, const char *arg)
{
	(void)ch;
	options.mode = arg;
}

/* A piece of standard input; 0 when it has ended. */
static int
send_piece(struct task *ta)
{
	char	piece[PIECE_LEN];
	size_t	room = call_room(ta->ta_call);
	ssize_t	n;

	n = read(STDIN_FILENO, piece, room < sizeof(piece) ? room :
	    sizeof(piece));
	if (n == -1 && (errno == EINTR || errno == EAGAIN))
		return 1;
	if (n == -1) {
		/* Without an END nothing is written. */
		warn("standard input");
		ta->ta_status = EXIT_NO_DAEMON;
		ta->ta_excused = "cancelled";
		call_cancel(ta->ta_call);
		return 0;
	}
	call_send(ta->ta_call, piece, (size_t)n);
	if (n == 0)
		call_end(ta->ta_call);
	return n > 0;
}

/* Sends until the end of standard input, unless box has answered before. */
static void
send_input(struct task *ta)
{
	struct pollfd	pfd[2] = {
		{ .fd = link_fd(ta->ta_link) },
		{ .events = POLLIN },
	};
	int		going = 1;

	while (going && ta->ta_call != NULL) {
		pfd[0].events = link_events(ta->ta_link);
		pfd[1].fd = call_room(ta->ta_call) > 0 ? STDIN_FILENO : -1;
		if (poll(pfd, 2, -1) == -1) {
			if (errno != EINTR)
				err(EXIT_NO_DAEMON, "poll");
			continue;
		}
		link_handle(ta->ta_link, pfd[0].revents);
		if (pfd[1].revents != 0 && ta->ta_call != NULL &&
		    call_room(ta->ta_call) > 0)
			going = send_piece(ta);
	}
}

static int
write_run(const struct invocation *in)
{
	struct task	ta;
	struct jsonw	w;

	call_op(&w, "write");
	put_str(&w, "path", options.path);
	if (options.mode != NULL)
		put_uint(&w, "mode", mode_take(options.mode));
	if (task_open(&ta, in, options.session) == -1) {
		jsonw_free(&w);
		return ta.ta_status;
	}
	ta.ta_subject = options.path;
	if (task_begin(&ta, &w, &write_ops) == 0) {
		send_input(&ta);
		task_wait(&ta);
	}
	return task_show_close(&ta);
}

const struct command command_write = {
	.co_name = "write",
	.co_synopsis = "write [-m MODE] SESSION PATH",
	.co_help = "make a file there of standard input",
	.co_tokens = t_write,
	.co_run = write_run,
	.co_op = "session.attach",
	.co_options = "m:",
	.co_option = write_option,
};
