/* SPDX-License-Identifier: ISC */

/*
 * egressctl: answers questions as they come.  One request to the daemon waits
 * for a change of the list of questions, and at most one more carries an
 * answer.  One question is shown at a time, and a key is for the question that
 * is on the screen: what was typed before it came is thrown away, or a second
 * press would allow what nobody has seen.
 */

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "questions.h"

#define LIST_ID		1
#define ANSWER_ID	2
#define TICK_MS		1000
#define LATE_MS		500	/* gone this near its end: timed out */

static volatile sig_atomic_t	got_end;	/* its number */
static volatile sig_atomic_t	got_stop;
static volatile sig_atomic_t	got_cont;

/* ---- signals ------------------------------------------------------------- */

static void
on_signal(int sig)
{
	if (sig == SIGTSTP)
		got_stop = 1;
	else if (sig == SIGCONT)
		got_cont = 1;
	else if (sig != SIGWINCH)
		got_end = sig;
}

/* Signals arrive only in ppoll(2); ignored ones stay ignored. */
static void
catch_signals(sigset_t *open)
{
	static const int	signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM,
	    SIGTSTP, SIGCONT, SIGWINCH };
	struct sigaction	sa = { .sa_handler = on_signal }, old;
	sigset_t		set;
	size_t			i;

	sigemptyset(&set);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (sigaction(signals[i], NULL, &old) == 0 &&
		    old.sa_handler == SIG_IGN)
			continue;
		sigaction(signals[i], &sa, NULL);
		sigaddset(&set, signals[i]);
	}
	sigprocmask(SIG_BLOCK, &set, open);
	/* A reader that leaves, as head(1) does: restore the terminal first. */
	signal(SIGPIPE, SIG_IGN);
}

/* Lets the signal act as by default; returns only after a stop. */
static void
raise_as(int sig)
{
	struct sigaction	sa = { .sa_handler = SIG_DFL }, old;
	sigset_t		set;

	show_no_prompt();
	fflush(stdout);
	tty_restore();
	sigaction(sig, &sa, &old);
	sigemptyset(&set);
	sigaddset(&set, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(sig, &old, NULL);
}

static void
handle_signals(struct watch *wt)
{
	if (got_end != 0)
		raise_as(got_end);
	if (got_stop) {
		got_stop = 0;
		raise_as(SIGTSTP);
		got_cont = 1;
	}
	if (got_cont) {
		got_cont = 0;
		if (wt->wt_keys.ky_tty)
			tty_raw(TTY_KEYS);
	}
}

/* ---- the daemon ---------------------------------------------------------- */

static void
finish(struct watch *wt, int status)
{
	wt->wt_done = 1;
	wt->wt_status = status;
}

static void
send_request(struct watch *wt, cJSON *request, int id)
{
	cJSON_ReplaceItemInObjectCaseSensitive(request, "id",
	    cJSON_CreateNumber(id));
	if (client_send(&wt->wt_client, request, -1) == -1)
		finish(wt, EXIT_NO_DAEMON);
	cJSON_Delete(request);
}

static void
ask_for_change(struct watch *wt)
{
	cJSON	*request = exchange_request("pending.wait");

	cJSON_AddItemToObject(request, "version",
	    cJSON_Duplicate(json_get(wt->wt_list, "version"), 1));
	send_request(wt, request, LIST_ID);
}

static void
send_answer(struct watch *wt, char key)
{
	cJSON	*request = exchange_request("pending.answer");

	cJSON_AddStringToObject(request, "pending", wt->wt_id);
	cJSON_AddStringToObject(request, "decision",
	    key == 'a' || key == 'A' ? "allow" : "deny");
	if (key == 'A' || key == 'D')
		cJSON_AddBoolToObject(request, "remember", 1);
	wt->wt_press = key;
	send_request(wt, request, ANSWER_ID);
}

/* ---- which question ------------------------------------------------------ */

static const cJSON *
find_question(const struct watch *wt, const char *id)
{
	const cJSON	*question;
	const char	*other;

	cJSON_ArrayForEach(question, json_get(wt->wt_list, "pending"))
		if ((other = json_string(question, "id")) != NULL &&
		    strcmp(id, other) == 0)
			return question;
	return NULL;
}

static int
is_skipped(const struct watch *wt, const char *id)
{
	const cJSON	*item;

	cJSON_ArrayForEach(item, wt->wt_skipped)
		if (strcmp(item->valuestring, id) == 0)
			return 1;
	return 0;
}

static void
skip(struct watch *wt)
{
	cJSON_AddItemToArray(wt->wt_skipped, cJSON_CreateString(wt->wt_id));
	show_event(wt, wt->wt_id, "skipped", NULL);
	wt->wt_shown = NULL;
	wt->wt_id[0] = '\0';
}

/* Forgets skipped questions that no longer wait. */
static void
prune_skipped(struct watch *wt)
{
	cJSON	*item, *next;

	for (item = wt->wt_skipped->child; item != NULL; item = next) {
		next = item->next;
		if (find_question(wt, item->valuestring) == NULL)
			cJSON_Delete(cJSON_DetachItemViaPointer(
			    wt->wt_skipped, item));
	}
}

/* Shows the first question that was not skipped, if none is shown. */
static void
show_next(struct watch *wt)
{
	const cJSON	*question, *left;
	const char	*id;

	if (wt->wt_id[0] != '\0')
		return;
	cJSON_ArrayForEach(question, json_get(wt->wt_list, "pending")) {
		id = json_string(question, "id");
		if (id == NULL || is_skipped(wt, id) || strlcpy(wt->wt_id, id,
		    sizeof(wt->wt_id)) >= sizeof(wt->wt_id)) {
			wt->wt_id[0] = '\0';
			continue;
		}
		wt->wt_shown = question;
		left = json_get(question, "left_ms");
		wt->wt_deadline = !cJSON_IsNumber(left) ? 0 :
		    (int64_t)clock_ms() + (int64_t)left->valuedouble;
		show_question(wt);
		if (wt->wt_keys.ky_tty) {
			tty_forget_input();
			wt->wt_keys.ky_len = 0;
		}
		return;
	}
}

/* Drops the question on the screen if it no longer waits. */
static void
check_shown(struct watch *wt)
{
	int	late = wt->wt_deadline != 0 &&
	    (int64_t)clock_ms() > wt->wt_deadline - LATE_MS;

	if (wt->wt_id[0] == '\0')
		return;
	wt->wt_shown = find_question(wt, wt->wt_id);
	/* Our answer is under way: take_outcome will tell. */
	if (wt->wt_shown != NULL || wt->wt_press != 0)
		return;
	show_event(wt, wt->wt_id, "gone", late ? "it has timed out" :
	    "it was answered elsewhere, or its session is over");
	wt->wt_id[0] = '\0';
}

/* ---- what arrives -------------------------------------------------------- */

static void
take_list(struct watch *wt, cJSON *answer)
{
	cJSON_Delete(wt->wt_list);
	wt->wt_list = answer;
	prune_skipped(wt);
	check_shown(wt);
	ask_for_change(wt);
}

static void
take_outcome(struct watch *wt, const cJSON *answer)
{
	const cJSON	*error = json_get(answer, "error");
	int		 allows = wt->wt_press == 'a' || wt->wt_press == 'A';
	int		 wished = wt->wt_press == 'A' || wt->wt_press == 'D';
	int		 kept = cJSON_IsTrue(json_get(answer, "remembered"));

	if (error != NULL)
		show_event(wt, wt->wt_id, "not answered",
		    json_string(error, "message"));
	else
		show_event(wt, wt->wt_id, allows ? "allowed" : "denied",
		    kept ? "remembered" : wished ? "the rule says not to "
		    "remember" : NULL);
	/* A list made before the answer may still have the question. */
	cJSON_AddItemToArray(wt->wt_skipped, cJSON_CreateString(wt->wt_id));
	wt->wt_press = 0;
	wt->wt_shown = NULL;
	wt->wt_id[0] = '\0';
}

/* Takes and frees an answer; a list is kept as wt_list. */
static void
take_answer(struct watch *wt, const char *line, cJSON *answer)
{
	const cJSON	*id = json_get(answer, "id");
	const cJSON	*error = json_get(answer, "error");
	double		 number = cJSON_IsNumber(id) ? id->valuedouble : 0;

	if (error != NULL && (json_string(error, "code") == NULL ||
	    json_string(error, "message") == NULL))
		number = -1;
	if (number == ANSWER_ID && wt->wt_press != 0)
		take_outcome(wt, answer);
	else if (error != NULL && number != -1) {
		show_no_prompt();
		wt->wt_in->in_output->ou_refusal(wt->wt_in->in_command, line,
		    answer);
		finish(wt, EXIT_REFUSED);
	} else if (number == LIST_ID && json_get(answer, "version") != NULL) {
		take_list(wt, answer);
		return;
	} else {
		show_no_prompt();
		warnx("%s: the answer does not fit the request; do egressd "
		    "and egressctl have the same version?",
		    wt->wt_client.cl_path);
		finish(wt, EXIT_NO_DAEMON);
	}
	cJSON_Delete(answer);
}

static void
take_line(struct watch *wt)
{
	cJSON	*answer;
	char	*line;
	size_t	 len;

	switch (client_line(&wt->wt_client, &line, &len, ANSWER_TIMEOUT_MS)) {
	case CLIENT_LINE:
		break;
	case CLIENT_HUNG_UP:
		show_no_prompt();
		if (wt->wt_list == NULL)
			explain_hung_up(&wt->wt_client);
		else
			explain_stopped();
		/* FALLTHROUGH */
	default:
		finish(wt, EXIT_NO_DAEMON);
		return;
	}
	if ((answer = json_parse(line, len)) != NULL) {
		take_answer(wt, line, answer);
		return;
	}
	show_no_prompt();
	warnx("%s: the answer is not JSON; is this egressd's socket?",
	    wt->wt_client.cl_path);
	finish(wt, EXIT_NO_DAEMON);
}

static void
take_press(struct watch *wt, const struct press *pr)
{
	if (*pr->pr_id != '\0' && strcmp(pr->pr_id, wt->wt_id) != 0) {
		show_event(wt, pr->pr_id, "not answered",
		    "it is not the one that was shown");
		return;
	}
	if (strchr("aAdD", pr->pr_key) != NULL)
		send_answer(wt, pr->pr_key);
	else if (pr->pr_key == 's')
		skip(wt);
	else if (!wt->wt_keys.ky_tty)
		warnx("standard input: a line is one of a, d, A, D, s and q, "
		    "and may name the question");
}

/* A line waits until its question is shown; a key, but for q, is dropped. */
static void
take_presses(struct watch *wt)
{
	struct keys	*ky = &wt->wt_keys;
	struct press	 pr;
	int		 ready;

	while (!wt->wt_done) {
		show_next(wt);
		ready = wt->wt_shown != NULL && wt->wt_press == 0;
		if (!ready && !ky->ky_tty && !(ky->ky_len > 0 &&
		    ky->ky_buf[0] == 'q' && wt->wt_press == 0))
			break;
		keys_next(ky, &pr);
		if (pr.pr_key == '\0')
			break;
		if (pr.pr_key == 'q')
			finish(wt, 0);
		else if (ready)
			take_press(wt, &pr);
	}
	if (ky->ky_ended && ky->ky_len == 0 && wt->wt_press == 0)
		finish(wt, wt->wt_done ? wt->wt_status : 0);
}

/* ---- the loop ------------------------------------------------------------ */

/* Waits for an answer, a key or a signal, and takes it. */
static void
watch_turn(struct watch *wt, const sigset_t *open)
{
	struct timespec	 tick = { TICK_MS / 1000, 0 };
	struct pollfd	 pfd[3] = {
		{ .fd = wt->wt_client.cl_fd, .events = POLLIN },
		{ .fd = keys_full(&wt->wt_keys) ? -1 : STDIN_FILENO,
		    .events = POLLIN },
		{ .fd = STDOUT_FILENO },
	};
	int		 n;

	show_prompt(wt, (int64_t)clock_ms());
	if (fflush(stdout) == EOF)
		raise_as(SIGPIPE);
	n = ppoll(pfd, 3, wt->wt_keys.ky_tty && wt->wt_shown != NULL ? &tick :
	    NULL, open);
	if (n == -1 && errno != EINTR)
		err(EXIT_NO_DAEMON, "ppoll");
	handle_signals(wt);
	if (n <= 0)
		return;
	if (pfd[2].revents & (POLLERR | POLLHUP))
		raise_as(SIGPIPE);
	if (pfd[0].revents != 0)
		do
			take_line(wt);
		while (!wt->wt_done && client_has_line(&wt->wt_client));
	if (pfd[1].revents != 0)
		keys_read(&wt->wt_keys);
	take_presses(wt);
}

static int
watch_run(const struct invocation *in)
{
	struct watch	wt = { .wt_in = in };
	sigset_t	open;

	if (client_open(&wt.wt_client, in->in_socket) == -1)
		return EXIT_NO_DAEMON;
	if ((wt.wt_skipped = cJSON_CreateArray()) == NULL)
		err(EXIT_NO_DAEMON, NULL);
	catch_signals(&open);
	keys_init(&wt.wt_keys);
	send_request(&wt, exchange_request("pending.list"), LIST_ID);
	while (!wt.wt_done)
		watch_turn(&wt, &open);
	show_no_prompt();
	fflush(stdout);
	tty_restore();
	cJSON_Delete(wt.wt_list);
	cJSON_Delete(wt.wt_skipped);
	client_close(&wt.wt_client);
	return wt.wt_status;
}

const struct command command_watch = {
	.co_name = "watch",
	.co_synopsis = "watch",
	.co_help = "answer questions as they come",
	.co_run = watch_run,
	.co_op = "pending.wait",
};
