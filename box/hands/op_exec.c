/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: the operation exec.  The command is under a supervisor
 * (supervise.c), its output in pipes or a terminal that are read as the client
 * gives credit.
 *
 *	running --- command ends ---------------> draining --> RESULT
 *	   |                                         ^  |
 *	   +--- timeout: killing -- all are dead ----+  +----> ERROR timeout
 *	   +--- cancel:  killing -- all are dead ------------> ERROR cancelled
 *
 * Draining takes what was in the pipes when the command ended, and no more: who
 * was left behind may write for ever.
 */

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../box.h"
#include "exec.h"

#define KILL_MS		1000	/* for the supervisor, before we answer */

static const struct member exec_members[] = {
	MAY_STRING(op_exec, "command", ex_command),
	MAY_OTHER(op_exec, "argv", MEMBER_STRINGS, ex_argv),
	MAY_STRING(op_exec, "cwd", ex_cwd),
	MAY_OTHER(op_exec, "env", MEMBER_MAP, ex_env),
	MAY_INTEGER(op_exec, "timeout_ms", ex_timeout, 1, JSONR_INTEGER_MAX,
	    0),
	MAY_BOOL(op_exec, "stdin", ex_stdin, 0),
	MAY_OTHER(op_exec, "tty", MEMBER_OBJECT, ex_tty),
	MAY_BOOL(op_exec, "merge", ex_merge, 0),
	MEMBERS_END
};

static void	 exec_settle(struct request *);

static void
exec_say(struct op_exec *ex, enum word word, int value)
{
	struct word_message	 wm = { word, value };

	if (ex->ex_channel != -1)
		(void)!send(ex->ex_channel, &wm, sizeof(wm),
		    MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
exec_hang_up(struct op_exec *ex)
{
	watch_free(ex->ex_watch);
	ex->ex_watch = NULL;
	if (ex->ex_channel != -1)
		(void)close(ex->ex_channel);
	ex->ex_channel = -1;
}

static short
stream_wants(void *arg)
{
	const struct stream	*sm = arg;

	return sm->sm_done || request_room(sm->sm_request) == 0 ? 0 : POLLIN;
}

static void
stream_ready(void *arg)
{
	struct stream	*sm = arg;
	struct op_exec	*ex = sm->sm_request->rq_state;
	ssize_t		 n;

	/* Somebody else may have used up the room in this turn. */
	if (sm->sm_done || request_room(sm->sm_request) == 0)
		return;
	n = request_read(sm->sm_request, sm->sm_kind, sm->sm_fd, sm->sm_left);
	if (n == -1 && (errno == EINTR || (errno == EAGAIN && !ex->ex_ended)))
		return;
	if (n <= 0) {
		sm->sm_done = 1;
		sm->sm_closed = n == 0 || errno != EAGAIN;
	} else if (ex->ex_ended && !ex->ex_master)
		sm->sm_done = (sm->sm_left -= (size_t)n) == 0;
	exec_settle(sm->sm_request);
}

void
stream_open(struct stream *sm, struct request *rq, enum frame_kind kind, int fd)
{
	sm->sm_request = rq;
	sm->sm_kind = kind;
	sm->sm_fd = fd;
	sm->sm_left = SIZE_MAX;
	sm->sm_done = 0;
	sm->sm_watch = watch_new(fd, stream_wants, stream_ready, sm);
}

/* A terminal tells when it is empty; a pipe may be filled by others. */
static void
stream_last(struct stream *sm, int is_pipe)
{
	int	 left = 0;

	if (sm->sm_done || !is_pipe)
		return;
	if (ioctl(sm->sm_fd, FIONREAD, &left) == -1 || left < 0)
		left = 0;
	sm->sm_left = (size_t)left;
	sm->sm_done = left == 0;
}

/* A pipe that somebody left behind may still write to is not closed. */
static void
stream_free(struct stream *sm, int keep)
{
	watch_free(sm->sm_watch);
	if (sm->sm_fd == -1)
		return;
	if (keep && !sm->sm_closed)
		drain_add(sm->sm_fd);
	else
		(void)close(sm->sm_fd);
	sm->sm_fd = -1;
}

static void
exec_result(struct request *rq)
{
	struct op_exec	*ex = rq->rq_state;
	struct jsonw	*w = request_writer();
	const char	*name;
	int		 number;

	jsonw_object(w);
	if (WIFSIGNALED(ex->ex_status)) {
		number = WTERMSIG(ex->ex_status);
		name = sigabbrev_np(number);
		jsonw_lit(w, "signal");
		jsonw_str(w, name == NULL ? "unknown" : name);
		jsonw_lit(w, "signal_number");
		jsonw_int(w, number);
	} else {
		jsonw_lit(w, "exit_code");
		jsonw_int(w, WEXITSTATUS(ex->ex_status));
	}
	jsonw_end(w);
	request_result(rq, w);
}

/* Answer, once the command has ended and what it wrote is sent. */
static void
exec_settle(struct request *rq)
{
	struct op_exec	*ex = rq->rq_state;

	if (!ex->ex_ended || rq->rq_over)
		return;
	if (ex->ex_why != NULL && strcmp(ex->ex_why, "cancelled") == 0)
		request_error(rq, ex->ex_why, "cancelled by the client");
	else if (!ex->ex_out.sm_done || !ex->ex_err.sm_done)
		return;
	else if (ex->ex_why != NULL)
		request_error(rq, ex->ex_why, "killed after %lld ms",
		    (long long)ex->ex_timeout);
	else
		exec_result(rq);
	exec_say(ex, WORD_LEAVE, 0);
}

static void
exec_ended(struct request *rq)
{
	struct op_exec	*ex = rq->rq_state;

	rq->rq_deadline = 0;
	ex->ex_ended = 1;
	stream_last(&ex->ex_out, !ex->ex_master);
	stream_last(&ex->ex_err, 1);
	/* A terminal that is empty and not closed would not be ready. */
	if (ex->ex_master)
		stream_ready(&ex->ex_out);
	exec_settle(rq);
}

/* The command was not run. */
static void
exec_failed(struct request *rq, const struct word_message *wm)
{
	struct op_exec	*ex = rq->rq_state;

	if (wm->wm_word == WORD_CWD)
		request_failed(rq, wm->wm_value, ex->ex_cwd);
	else if (ex->ex_command != NULL && wm->wm_value == ENOENT)
		request_error(rq, "not_found",
		    "there is no /bin/sh here: use argv");
	else
		request_failed(rq, wm->wm_value, ex->ex_words[0]);
}

static void
exec_hear(struct request *rq, const struct word_message *wm)
{
	struct op_exec	*ex = rq->rq_state;

	switch (wm->wm_word) {
	case WORD_FAILED:
	case WORD_CWD:
		exec_failed(rq, wm);
		break;
	case WORD_ENDED:
		ex->ex_status = wm->wm_value;
		if (ex->ex_why == NULL)
			exec_ended(rq);
		break;
	case WORD_DONE:
		exec_ended(rq);
		break;
	}
}

static short
exec_wants(void *arg)
{
	const struct request	*rq = arg;

	return rq->rq_over ? 0 : POLLIN;
}

static void
exec_ready(void *arg)
{
	struct request		*rq = arg;
	struct op_exec		*ex = rq->rq_state;
	struct word_message	 wm;
	ssize_t			 n;

	if (rq->rq_over)
		return;
	n = recv(ex->ex_channel, &wm, sizeof(wm), MSG_DONTWAIT);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == sizeof(wm)) {
		exec_hear(rq, &wm);
		return;
	}
	/* The supervisor was killed by its command. */
	exec_hang_up(ex);
	if (ex->ex_why != NULL)
		exec_ended(rq);
	else if (!ex->ex_ended)
		request_error(rq, "failed", "the command's supervisor died");
}

static int
exec_check(struct request *rq)
{
	struct op_exec		*ex = rq->rq_state;
	const struct jsonr	*jr;

	if ((ex->ex_command == NULL) == (ex->ex_argv == NULL)) {
		request_error(rq, "bad_request", "command or argv: give one");
		return -1;
	}
	if (ex->ex_argv != NULL && ex->ex_argv->jr_len == 0) {
		request_error(rq, "bad_request", "argv: empty");
		return -1;
	}
	for (jr = ex->ex_env == NULL ? NULL : ex->ex_env->jr_first; jr != NULL;
	    jr = jr->jr_next)
		if (*jr->jr_name == '\0' || strchr(jr->jr_name, '=') != NULL) {
			request_error(rq, "bad_request", "env: %.100s: no name",
			    jr->jr_name);
			return -1;
		}
	return exec_check_tty(rq);
}

static void
exec_start(struct request *rq)
{
	struct op_exec	*ex = rq->rq_state;
	int		 pair[2];

	ex->ex_channel = ex->ex_out.sm_fd = ex->ex_err.sm_fd = -1;
	ex->ex_input = ex->ex_feed.fe_fd = -1;
	ex->ex_out.sm_done = ex->ex_err.sm_done = 1;
	if (exec_check(rq) == -1)
		return;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1) {
		request_failed(rq, errno, "exec");
		return;
	}
	ex->ex_channel = pair[0];
	if (exec_spawn(rq, pair[1]) == -1)
		request_failed(rq, errno, "exec");
	(void)close(pair[1]);
	if (rq->rq_over)
		return;
	ex->ex_watch = watch_new(pair[0], exec_wants, exec_ready, rq);
	if (ex->ex_timeout > 0)
		rq->rq_deadline = loop_clock() + ex->ex_timeout;
}

static void
exec_kill(struct request *rq, const char *why)
{
	struct op_exec	*ex = rq->rq_state;

	ex->ex_why = why;
	exec_say(ex, WORD_KILL, 0);
	rq->rq_deadline = loop_clock() + KILL_MS;
}

/* The time is up, for the command or for who has to kill it. */
static void
exec_late(struct request *rq)
{
	struct op_exec	*ex = rq->rq_state;

	if (ex->ex_why == NULL)
		exec_kill(rq, "timeout");
	else
		exec_ended(rq);
}

static void
exec_cancel(struct request *rq)
{
	struct op_exec	*ex = rq->rq_state;

	if (ex->ex_ended) {
		ex->ex_why = "cancelled";
		exec_settle(rq);
	} else if (ex->ex_why == NULL)
		exec_kill(rq, "cancelled");
	else
		ex->ex_why = "cancelled";
}

static void
exec_data(struct request *rq, const uint8_t *data, size_t len)
{
	struct op_exec	*ex = rq->rq_state;

	/* Input of a command that takes none is dropped. */
	if (ex->ex_input == -1)
		request_eat(rq, len);
	else
		feed_put(&ex->ex_feed, data, len);
}

static void
exec_end(struct request *rq)
{
	static const uint8_t	 end_of_file = 4;
	struct op_exec		*ex = rq->rq_state;

	if (ex->ex_input == -1)
		return;
	if (ex->ex_master)
		feed_put(&ex->ex_feed, &end_of_file, 1);
	else
		feed_end(&ex->ex_feed);
}

/* Closing the channel ends the tree, if it is not over. */
static void
exec_free(struct request *rq)
{
	struct op_exec	*ex = rq->rq_state;
	int		 left = ex->ex_ended && ex->ex_why == NULL;

	exec_hang_up(ex);
	feed_free(&ex->ex_feed);
	if (ex->ex_input != -1 && !ex->ex_master)
		(void)close(ex->ex_input);
	stream_free(&ex->ex_out, left && !ex->ex_master);
	stream_free(&ex->ex_err, left);
	free(ex->ex_words);
	free(ex->ex_environ);
}

const struct op op_exec = {
	.op_name = "exec", .op_members = exec_members,
	.op_size = sizeof(struct op_exec),
	.op_start = exec_start, .op_data = exec_data, .op_end = exec_end,
	.op_note = exec_note, .op_cancel = exec_cancel, .op_late = exec_late,
	.op_free = exec_free,
};
