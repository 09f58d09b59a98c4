/* SPDX-License-Identifier: ISC */

/*
 * egressctl: questions on the screen.  Lines are written once and scroll; only
 * the prompt, which is always the last line and never wider than the screen,
 * is written over, so that there is nothing to repair when the size changes.
 * All of a question is shown, over several lines if need be.  Its lines are
 * indented and ours are not.
 */

#include <err.h>
#include <stdlib.h>
#include <unistd.h>

#include "questions.h"

#define INDENT		2
#define CLEAR_LINE	"\r\033[K"

static int	prompted;	/* the last line is a prompt */

static cJSON *
new_event(const char *event)
{
	cJSON	*json = output_object();

	cJSON_AddStringToObject(json, "event", event);
	return json;
}

static int
is_text(const struct watch *wt)
{
	return wt->wt_in->in_output == &output_text;
}

/* The text is ASCII, as request_put_whole makes it: bytes are columns. */
static void
put_wrapped(const char *text, size_t len, size_t width)
{
	size_t	n;

	for (width -= INDENT; len > 0; text += n, len -= n) {
		n = len < width ? len : width;
		printf("%*s%.*s\n", INDENT, "", (int)n, text);
	}
}

static void
put_request(const cJSON *request)
{
	char	*text;
	size_t	 len;
	FILE	*fp;

	if ((fp = open_memstream(&text, &len)) == NULL)
		err(EXIT_NO_DAEMON, NULL);
	request_put_whole(fp, request);
	if (fclose(fp) == EOF)
		err(EXIT_NO_DAEMON, NULL);
	put_wrapped(text, len, tty_width());
	free(text);
}

void
show_question(const struct watch *wt)
{
	const cJSON	*question = wt->wt_shown;
	cJSON		*json;

	if (!is_text(wt)) {
		json = new_event("question");
		cJSON_AddItemToObject(json, "question",
		    cJSON_Duplicate(question, 1));
		output_show(wt->wt_in, json);
		return;
	}
	show_no_prompt();
	fputs("question ", stdout);
	visible_put(stdout, wt->wt_id, VISIBLE_WORD);
	fputs(": session ", stdout);
	json_put(stdout, json_get(question, "session_id"));
	fputs(", decider ", stdout);
	json_put(stdout, json_get(question, "decider"));
	fputs(", rule ", stdout);
	json_put(stdout, json_get(question, "rule"));
	fputs(", ", stdout);
	duration_put(stdout, json_get(question, "left_ms"));
	fputs(" left\n", stdout);
	put_request(json_get(question, "request"));
}

/* Tells what became of a question; the text may be NULL. */
void
show_event(const struct watch *wt, const char *id, const char *event,
    const char *text)
{
	cJSON	*json;

	if (!is_text(wt)) {
		json = new_event(event);
		cJSON_AddStringToObject(json, "id", id);
		if (text != NULL)
			cJSON_AddStringToObject(json, "message", text);
		output_show(wt->wt_in, json);
		return;
	}
	show_no_prompt();
	fputs("question ", stdout);
	visible_put(stdout, id, VISIBLE_WORD);
	printf(": %s", event);
	if (text != NULL) {
		fputs(": ", stdout);
		visible_put(stdout, text, VISIBLE_TEXT);
	}
	putchar('\n');
}

static void
format_prompt(const struct watch *wt, int64_t now, char *buf, size_t size)
{
	long long	left = (wt->wt_deadline - now + 999) / 1000;

	if (wt->wt_press != 0)
		snprintf(buf, size, "answering");
	else if (wt->wt_shown == NULL)
		snprintf(buf, size, "no question is waiting, q to quit");
	else if (wt->wt_deadline == 0)
		snprintf(buf, size, "a allow, d deny, s skip, q quit; A, D "
		    "also remember > ");
	else
		snprintf(buf, size, "%llds: a allow, d deny, s skip, q quit; "
		    "A, D also remember > ", left > 0 ? left : 0);
}

/* Only on a terminal; a program reads the lines of questions. */
void
show_prompt(const struct watch *wt, int64_t now)
{
	char	buf[128];

	if (wt->wt_keys.ky_tty && is_text(wt) && isatty(STDOUT_FILENO)) {
		format_prompt(wt, now, buf, sizeof(buf));
		/* In the last column some terminals go to the next line. */
		printf(CLEAR_LINE "%.*s", (int)tty_width() - 1, buf);
		prompted = 1;
	}
}

void
show_no_prompt(void)
{
	if (prompted)
		fputs(CLEAR_LINE, stdout);
	prompted = 0;
}
