/* SPDX-License-Identifier: ISC */

/*
 * The hands run this: what a command of the operation exec begins with, its
 * words, environment and standard streams; and what it is told later.
 */

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../box.h"
#include "exec.h"

struct size_note {
	int64_t		 sn_rows;
	int64_t		 sn_columns;
	const char	*sn_signal;
};

static const struct member tty_members[] = {
	MAY_INTEGER(size_note, "rows", sn_rows, 1, 65535, 24),
	MAY_INTEGER(size_note, "columns", sn_columns, 1, 65535, 80),
	MEMBERS_END
};

static const struct member note_members[] = {
	MAY_INTEGER(size_note, "rows", sn_rows, 1, 65535, 0),
	MAY_INTEGER(size_note, "columns", sn_columns, 1, 65535, 0),
	MAY_STRING(size_note, "signal", sn_signal),
	MEMBERS_END
};

int
exec_check_tty(struct request *rq)
{
	struct op_exec		*ex = rq->rq_state;
	struct size_note	 sn = { 0, 0, NULL };
	char			 why[200];

	if (ex->ex_tty == NULL)
		return 0;
	if (members_take(tty_members, ex->ex_tty, &sn, why,
	    sizeof(why)) == -1) {
		request_error(rq, "bad_request", "tty: %s", why);
		return -1;
	}
	ex->ex_rows = sn.sn_rows;
	ex->ex_columns = sn.sn_columns;
	return 0;
}

/* The words point into the call. */
static void
exec_words(struct op_exec *ex)
{
	const struct jsonr	*jr;
	const char		**words;
	size_t			 n = 0;

	words = calloc(ex->ex_argv == NULL ? 4 : ex->ex_argv->jr_len + 1,
	    sizeof(*words));
	if (words == NULL)
		err(BOX_FAILED, NULL);
	if (ex->ex_argv == NULL) {
		words[n++] = "/bin/sh";
		words[n++] = "-c";
		words[n++] = ex->ex_command;
	} else
		for (jr = ex->ex_argv->jr_first; jr != NULL; jr = jr->jr_next)
			words[n++] = jr->jr_text;
	ex->ex_words = (char **)(uintptr_t)words;
}

static int
is_overridden(const struct jsonr *env, const char *entry)
{
	const struct jsonr	*jr;
	size_t			 len = strcspn(entry, "=");

	for (jr = env == NULL ? NULL : env->jr_first; jr != NULL;
	    jr = jr->jr_next)
		if (strncmp(jr->jr_name, entry, len) == 0 &&
		    jr->jr_name[len] == '\0')
			return 1;
	return 0;
}

/* Ours, and on top of it the call's; a text for each of those, as one. */
static void
exec_environ(struct op_exec *ex)
{
	const struct jsonr	*jr, *first;
	size_t			 n = 0, size = 1, text = 0;
	char			**p, *to;

	first = ex->ex_env == NULL ? NULL : ex->ex_env->jr_first;
	for (p = environ; *p != NULL; p++)
		size++;
	for (jr = first; jr != NULL; jr = jr->jr_next, size++)
		text += strlen(jr->jr_name) + jr->jr_len + 2;
	if ((ex->ex_environ = calloc(1, size * sizeof(*ex->ex_environ) +
	    text)) == NULL)
		err(BOX_FAILED, NULL);
	for (p = environ; *p != NULL; p++)
		if (!is_overridden(ex->ex_env, *p))
			ex->ex_environ[n++] = *p;
	to = (char *)(ex->ex_environ + size);
	for (jr = first; jr != NULL; jr = jr->jr_next) {
		ex->ex_environ[n++] = to;
		to = stpcpy(to, jr->jr_name);
		*to++ = '=';
		to = stpcpy(to, jr->jr_text) + 1;
	}
}

/* Only our end: the command's has flags of its own. */
static int
pipe_ours(int ends[2], int ours)
{
	if (pipe2(ends, O_CLOEXEC) == -1)
		return -1;
	return fcntl(ends[ours], F_SETFL, O_NONBLOCK);
}

static void
input_done(struct request *rq)
{
	struct op_exec	*ex = rq->rq_state;

	(void)close(ex->ex_input);
	ex->ex_input = -1;
}

/* No /dev/null in an image: a pipe that nobody writes to. */
static int
input_none(void)
{
	int	 ends[2], fd;

	if ((fd = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY)) != -1)
		return fd;
	if (pipe2(ends, O_CLOEXEC) == -1)
		return -1;
	(void)close(ends[1]);
	return ends[0];
}

static int
open_input(struct request *rq, int *theirs)
{
	struct op_exec	*ex = rq->rq_state;
	int		 ends[2];

	if (!ex->ex_stdin) {
		*theirs = input_none();
		return *theirs == -1 ? -1 : 0;
	}
	if (pipe_ours(ends, 1) == -1)
		return -1;
	*theirs = ends[0];
	ex->ex_input = ends[1];
	feed_start(&ex->ex_feed, rq, ends[1], input_done);
	return 0;
}

static int
open_output(struct request *rq, struct stream *sm, enum frame_kind kind,
    int *theirs)
{
	int	 ends[2];

	if (pipe_ours(ends, 0) == -1)
		return -1;
	stream_open(sm, rq, kind, ends[0]);
	*theirs = ends[1];
	return 0;
}

static int
open_pipes(struct request *rq, int theirs[3])
{
	struct op_exec	*ex = rq->rq_state;

	if (open_input(rq, &theirs[0]) == -1 ||
	    open_output(rq, &ex->ex_out, FRAME_DATA, &theirs[1]) == -1)
		return -1;
	if (!ex->ex_merge)
		return open_output(rq, &ex->ex_err, FRAME_DATA_ERR,
		    &theirs[2]);
	theirs[2] = fcntl(theirs[1], F_DUPFD_CLOEXEC, 3);
	return theirs[2] == -1 ? -1 : 0;
}

/* A terminal, by the number that its master side has: no path is needed. */
static int
open_terminal(struct request *rq, int theirs[3])
{
	struct op_exec	*ex = rq->rq_state;
	struct winsize	 ws = {
		.ws_row = (unsigned short)ex->ex_rows,
		.ws_col = (unsigned short)ex->ex_columns
	};
	int		 master;

	if ((master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC |
	    O_NONBLOCK)) == -1)
		return -1;
	stream_open(&ex->ex_out, rq, FRAME_DATA, master);
	ex->ex_master = 1;
	ex->ex_input = master;
	feed_start(&ex->ex_feed, rq, master, NULL);
	if (unlockpt(master) == -1 || ioctl(master, TIOCSWINSZ, &ws) == -1 ||
	    (theirs[0] = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY |
	    O_CLOEXEC)) == -1)
		return -1;
	theirs[1] = fcntl(theirs[0], F_DUPFD_CLOEXEC, 3);
	theirs[2] = fcntl(theirs[0], F_DUPFD_CLOEXEC, 3);
	return theirs[1] == -1 || theirs[2] == -1 ? -1 : 0;
}

/* Start the command; what was opened is the request's to close. */
int
exec_spawn(struct request *rq, int channel)
{
	struct op_exec	*ex = rq->rq_state;
	struct command	 co = {
		.co_cwd = ex->ex_cwd, .co_tty = ex->ex_tty != NULL,
		.co_stdio = { -1, -1, -1 }, .co_files = hands_files()
	};
	int		 error, i;

	exec_words(ex);
	exec_environ(ex);
	co.co_argv = ex->ex_words;
	co.co_env = ex->ex_environ;
	error = co.co_tty ? open_terminal(rq, co.co_stdio) :
	    open_pipes(rq, co.co_stdio);
	if (error == 0 && supervise(&co, channel) == -1)
		error = -1;
	if (error == -1)
		error = errno;
	for (i = 0; i < 3; i++)
		if (co.co_stdio[i] != -1)
			(void)close(co.co_stdio[i]);
	errno = error;
	return error == 0 ? 0 : -1;
}

/* The number of a signal by its name, without SIG; 0 if there is none. */
static int
signal_number(const char *name)
{
	const char	*known;
	int		 i;

	for (i = 1; i < NSIG; i++)
		if ((known = sigabbrev_np(i)) != NULL &&
		    strcmp(known, name) == 0)
			return i;
	return 0;
}

/* A note has no answer: what makes no sense is dropped. */
void
exec_note(struct request *rq, const struct jsonr *note)
{
	struct op_exec		*ex = rq->rq_state;
	struct word_message	 wm = { WORD_SIGNAL, 0 };
	struct size_note	 sn = { 0, 0, NULL };
	struct winsize		 ws = { 0, 0, 0, 0 };
	char			 why[200];

	if (members_take(note_members, note, &sn, why, sizeof(why)) == -1)
		return;
	if (ex->ex_master && sn.sn_rows > 0 && sn.sn_columns > 0) {
		ws.ws_row = (unsigned short)sn.sn_rows;
		ws.ws_col = (unsigned short)sn.sn_columns;
		(void)ioctl(ex->ex_out.sm_fd, TIOCSWINSZ, &ws);
	}
	if (sn.sn_signal != NULL && ex->ex_channel != -1 &&
	    (wm.wm_value = signal_number(sn.sn_signal)) != 0)
		(void)!send(ex->ex_channel, &wm, sizeof(wm),
		    MSG_NOSIGNAL | MSG_DONTWAIT);
}
