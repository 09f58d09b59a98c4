/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a command in a sandbox, with our standard streams and, if it is
 * to have a terminal, ours.  What it writes is hostile.  With a terminal it
 * drives ours, as it has to; else content.c sees to it that it does not.
 */

#include <sys/ioctl.h>

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "hands.h"
#include "show.h"
#include "tty.h"

#define ROWS_DEFAULT	24
#define COLUMNS_DEFAULT	80
#define INPUT_LEN	16384
#define SIGNAL_MAX	64	/* number of the highest */

static const struct {
	int		 number;
	const char	*name;
} passed_on[] = {
	{ SIGHUP, "HUP" }, { SIGINT, "INT" }, { SIGQUIT, "QUIT" },
	{ SIGTERM, "TERM" }, { SIGUSR1, "USR1" }, { SIGUSR2, "USR2" },
};

/* What was typed at the beginning of a line: "~." leaves, as in ssh(1). */
enum escape { ESCAPE_LINE, ESCAPE_TILDE, ESCAPE_NONE };

static struct {
	struct task	 task;
	struct content	 out;
	struct content	 errors;
	int		 input;		/* standard input is passed on */
	int		 raw;		/* our terminal is the command's */
	int		 left;		/* "~." was typed */
	enum escape	 escape;
	int		 timeout;	/* it was ended by -t */
} ps;

/* ---- the command's output ------------------------------------------------ */

static void
put(struct call *ca, struct content *ct, const char *data, size_t len)
{
	if (content_put(ct, data, len) == 0 || ps.task.ta_status != 0)
		return;
	warn("standard %s", ct == &ps.out ? "output" : "error");
	ps.task.ta_status = EXIT_NO_RUN;
	call_cancel(ca);
}

static void
process_data(struct call *ca, const char *data, size_t len)
{
	put(ca, &ps.out, data, len);
}

static void
process_errors(struct call *ca, const char *data, size_t len)
{
	put(ca, &ps.errors, data, len);
}

static void
process_done(struct call *ca, const struct outcome *oc)
{
	/* Half a line of the shell's is no place for a message. */
	if (ps.raw && oc->oc_code != NULL)
		fputs("\r\n", stderr);
	tty_restore();
	content_end(&ps.out);
	content_end(&ps.errors);
	ps.timeout = oc->oc_code != NULL &&
	    strcmp(oc->oc_code, "timeout") == 0;
	task_done(ca, oc);
}

static const struct call_ops process_ops = {
	.op_data = process_data,
	.op_errors = process_errors,
	.op_done = process_done,
};

/* ---- the command's input ------------------------------------------------- */

/*
 * Takes the escapes out of what was typed; returns what is left of it, which
 * may be one byte more: a '~' that was held back.
 */
static size_t
take_escapes(const char *typed, size_t len, char *to)
{
	size_t	i, n = 0;

	for (i = 0; i < len && !ps.left; i++) {
		if (ps.escape == ESCAPE_TILDE) {
			ps.left = typed[i] == '.';
			ps.escape = ESCAPE_NONE;
			if (typed[i] != '~')
				to[n++] = '~';
		} else if (ps.escape == ESCAPE_LINE && typed[i] == '~') {
			ps.escape = ESCAPE_TILDE;
			continue;
		}
		to[n++] = typed[i];
		ps.escape = typed[i] == '\r' || typed[i] == '\n' ?
		    ESCAPE_LINE : ESCAPE_NONE;
	}
	return n;
}

/* So much may be read now that, escapes included, it can be sent. */
static size_t
input_room(void)
{
	size_t	room;

	if (!ps.input || ps.task.ta_call == NULL)
		return 0;
	room = call_room(ps.task.ta_call);
	return room > INPUT_LEN ? INPUT_LEN : room > 1 ? room - 1 : 0;
}

static void
take_input(void)
{
	char	typed[INPUT_LEN], sent[INPUT_LEN + 1];
	size_t	room = input_room();
	ssize_t	n;

	if (room == 0)
		return;
	n = read(STDIN_FILENO, typed, room);
	if (n == -1 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		ps.input = 0;
		call_end(ps.task.ta_call);
	} else if (ps.raw) {
		n = (ssize_t)take_escapes(typed, (size_t)n, sent);
		call_send(ps.task.ta_call, sent, (size_t)n);
	} else
		call_send(ps.task.ta_call, typed, (size_t)n);
}

/* ---- signals and the terminal -------------------------------------------- */

static void
put_size(struct jsonw *w)
{
	struct winsize	ws;

	if ((ioctl(STDIN_FILENO, TIOCGWINSZ, &ws) == -1 &&
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == -1) ||
	    ws.ws_row == 0 || ws.ws_col == 0) {
		ws.ws_row = ROWS_DEFAULT;
		ws.ws_col = COLUMNS_DEFAULT;
	}
	put_uint(w, "rows", ws.ws_row);
	put_uint(w, "columns", ws.ws_col);
}

static void
note_begin(struct jsonw *w)
{
	jsonw_init(w, FRAME_BODY_MAX);
	jsonw_object(w);
}

/* The terminal is not ours while we are stopped. */
static void
stop(void)
{
	tty_restore();
	raise(SIGSTOP);
	if (ps.raw)
		tty_raw(TTY_ALL);
}

static void
take_signal(int sig)
{
	struct jsonw	w;
	size_t		i;

	if (sig == SIGTSTP)
		stop();
	if (ps.raw && sig == SIGCONT)
		tty_raw(TTY_ALL);
	if (ps.task.ta_call == NULL)
		return;
	if (ps.raw && sig != SIGTSTP) {
		note_begin(&w);
		put_size(&w);
		call_note(ps.task.ta_call, &w);
	}
	for (i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		if (passed_on[i].number == sig) {
			note_begin(&w);
			put_str(&w, "signal", passed_on[i].name);
			call_note(ps.task.ta_call, &w);
		}
}

/* The descriptor at which signals are heard. */
static int
catch_signals(int tty)
{
	int	signals[16];
	size_t	i, n = 0;

	for (i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		signals[n++] = passed_on[i].number;
	if (tty) {
		signals[n++] = SIGWINCH;
		signals[n++] = SIGTSTP;
		signals[n++] = SIGCONT;
	}
	return signals_catch(signals, n);
}

/* ---- the request --------------------------------------------------------- */

static void
put_env(struct jsonw *w, const struct order *or)
{
	const char *const	*env = or->or_env;
	const char		*term = getenv("TERM");
	size_t			 len;

	jsonw_key(w, "env");
	jsonw_object(w);
	for (; env != NULL && *env != NULL; env++) {
		len = strcspn(*env, "=");
		if (len == 4 && strncmp(*env, "TERM", len) == 0)
			term = NULL;
		jsonw_keyn(w, *env, len);
		jsonw_str(w, *env + len + 1);
	}
	if (or->or_tty && term != NULL)
		put_str(w, "TERM", term);
	jsonw_end(w);
}

static void
put_order(struct jsonw *w, const struct order *or)
{
	const char *const	*arg;

	call_op(w, "exec");
	if (or->or_command != NULL)
		put_str(w, "command", or->or_command);
	else {
		jsonw_key(w, "argv");
		jsonw_array(w);
		for (arg = or->or_argv; *arg != NULL; arg++)
			jsonw_str(w, *arg);
		jsonw_end(w);
	}
	if (or->or_cwd != NULL)
		put_str(w, "cwd", or->or_cwd);
	put_env(w, or);
	if (or->or_timeout != 0)
		put_uint(w, "timeout_ms", 1000 * (uint64_t)or->or_timeout);
	if (or->or_stdin && !or->or_tty)
		put_bool(w, "stdin", 1);
	if (or->or_tty) {
		jsonw_key(w, "tty");
		jsonw_object(w);
		put_size(w);
		jsonw_end(w);
	}
}

/* ---- the whole ----------------------------------------------------------- */

static void
process_wait(int signals)
{
	struct pollfd	pfd[3] = {
		{ .fd = link_fd(ps.task.ta_link) },
		{ .fd = signals, .events = POLLIN },
		{ .events = POLLIN },
	};
	int		sig;

	pfd[0].events = link_events(ps.task.ta_link);
	pfd[2].fd = input_room() > 0 ? STDIN_FILENO : -1;
	if (poll(pfd, 3, -1) == -1) {
		if (errno != EINTR)
			err(EXIT_NO_RUN, "poll");
		return;
	}
	while (pfd[1].revents != 0 && (sig = signals_next()) != 0)
		take_signal(sig);
	if (pfd[2].revents != 0)
		take_input();
	link_handle(ps.task.ta_link, pfd[0].revents);
}

/* As the command ended, for exit(3). */
static int
process_status(void)
{
	const cJSON	*result = ps.task.ta_result;
	uint64_t	 n;

	if (ps.task.ta_status != 0 || ps.left)
		return EXIT_NO_RUN;
	if (body_number(result, "exit_code", &n) == 0 && n <= UINT8_MAX)
		return (int)n;
	if (body_number(result, "signal_number", &n) == 0 && n > 0 &&
	    n <= SIGNAL_MAX)
		return 128 + (int)n;
	task_broken(&ps.task, "no status of the command");
	return EXIT_NO_RUN;
}

static int
process_finish(void)
{
	int	rv, status = ps.timeout ? EXIT_LATE : process_status();

	if (ps.left)
		warnx("left; the command is ended");
	if (ps.out.ct_json != NULL)
		rv = task_show_close(&ps.task);
	else
		rv = task_close(&ps.task);
	return rv == 0 || ps.timeout ? status : EXIT_NO_RUN;
}

/* Runs it; returns the status for exit(3). */
int
process_run(const struct invocation *in, const char *session,
    const struct order *or)
{
	struct jsonw	w;
	int		signals;

	if (task_open(&ps.task, in, session) == -1)
		return EXIT_NO_RUN;
	content_init(&ps.out, STDOUT_FILENO, in, "stdout");
	content_init(&ps.errors, STDERR_FILENO, in, "stderr");
	ps.input = or->or_stdin || or->or_tty;
	put_order(&w, or);
	if (task_begin(&ps.task, &w, &process_ops) == -1)
		return process_finish();
	signals = catch_signals(or->or_tty);
	if (or->or_tty) {
		ps.out.ct_seen = 0;
		ps.raw = tty_raw(TTY_ALL) == 0;
	}
	while (ps.task.ta_call != NULL && !ps.left)
		process_wait(signals);
	tty_restore();
	return process_finish();
}
