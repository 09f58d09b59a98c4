/* SPDX-License-Identifier: ISC */

/*
 * podd: what a gate is asked, as egressd.sock(5) has it, and its answers.
 * Records are followed whatever configuration it runs: they are evidence.  Its
 * questions are answered only while it runs the one that it was given.
 */

#include <string.h>

#include "clock.h"
#include "jsonput.h"
#include "podd.h"

#define REQUEST_LEN	4096

static struct jsonw	 request;

/* A request without its last bracket; more of it may be put there. */
struct jsonw *
gate_ask_begin(struct gate *ga, const char *op)
{
	if (request.jw_max == 0)
		jsonw_init(&request, REQUEST_LEN);
	jsonw_reset(&request);
	jsonw_object(&request);
	put_uint(&request, "id", ++ga->ga_last_id);
	put_str(&request, "op", op);
	return &request;
}

void
gate_ask_send(struct gate *ga, char letter)
{
	const char	*text;
	size_t		 len;

	jsonw_end(&request);
	if ((text = jsonw_finish(&request, &len)) == NULL)
		fatalx("%s: %s", __func__, jsonw_error(&request));
	gate_send(ga, letter, text, len);
}

/* ---- streams ------------------------------------------------------------- */

void
gate_begin(struct gate *ga)
{
	struct jsonw	*w;

	gate_status(ga);
	w = gate_ask_begin(ga, "events.follow");
	put_str(w, "from", "acknowledged");
	put_uint(w, "window", GATE_WINDOW);
	put_uint(w, "term", ga->ga_term);
	gate_ask_send(ga, 'b');
}

static void
gate_serve(struct gate *ga)
{
	struct jsonw	*w;

	if (ga->ga_asks)
		return;
	ga->ga_asks = 1;
	w = gate_ask_begin(ga, "questions.serve");
	put_uint(w, "term", ga->ga_term);
	gate_ask_send(ga, 'c');
}

/* Questions of this gate are heard by nobody from now on. */
static void
gate_unserve(struct gate *ga)
{
	if (!ga->ga_asks)
		return;
	ga->ga_asks = ga->ga_serves = 0;
	gate_drop_questions(ga);
	gate_send(ga, 'c', "", 0);
}

static void
gate_is_up(struct gate *ga)
{
	if (ga->ga_follows && ga->ga_serves)
		gate_tell(ga, PODD_UP, "");
}

/* A line that is no record and no question may be the stream's end. */
int
gate_nonsense_end(struct gate *ga, const char *line, size_t len,
    const char *why)
{
	struct said_answer	 sa;

	if (said_end(line, len, &sa))
		return gate_fail_end(ga, PODD_LOST, "the gate refuses: %s: %s",
		    sa.sa_code, sa.sa_text);
	return gate_fail_end(ga, PODD_HOSTILE, "%s", why);
}

/* The first line of a stream: it begins, or why not. */
static int
stream_end(struct gate *ga, const char *line, size_t len, int *begun)
{
	struct said_answer	 sa;
	const char		*why;

	if (said_answer(line, len, &sa, &why) == -1)
		return gate_nonsense_end(ga, line, len, why);
	if (!sa.sa_ok)
		return gate_fail_end(ga, PODD_LOST, "the gate refuses: %s: %s",
		    sa.sa_code, sa.sa_text);
	*begun = 1;
	gate_is_up(ga);
	return 0;
}

int
gate_follow_answered(struct gate *ga, const char *line, size_t len)
{
	return stream_end(ga, line, len, &ga->ga_follows);
}

/* A line of a stream that we have ended may be on its way. */
int
gate_serve_answered(struct gate *ga, const char *line, size_t len)
{
	return ga->ga_asks ? stream_end(ga, line, len, &ga->ga_serves) : 0;
}

/* ---- status and reload --------------------------------------------------- */

static void
gate_ask(struct gate *ga, enum gate_ask what)
{
	ga->ga_asked = what;
	gate_ask_begin(ga, what == ASK_RELOAD ? "reload" : "status");
	gate_ask_send(ga, 'a');
}

void
gate_status(struct gate *ga)
{
	if (ga->ga_asked == ASK_NOTHING)
		gate_ask(ga, ASK_STATUS);
}

static void
reloaded(struct gate *ga, int ok, const char *text)
{
	ga->ga_reloading = 0;
	event_del(&ga->ga_again);
	if (!ok)
		strlcpy(ga->ga_sha256, ga->ga_old_sha256,
		    sizeof(ga->ga_sha256));
	ipc_send(podd_controld, -1, PODD_RELOADED, podd_reloaded,
	    .channel = ga->ga_channel, .ok = ok, .text = text);
}

/* A second one while one runs takes its place, and is answered for both. */
void
gate_reload(struct gate *ga, const char *sha256)
{
	if (!ga->ga_reloading)
		strlcpy(ga->ga_old_sha256, ga->ga_sha256,
		    sizeof(ga->ga_old_sha256));
	strlcpy(ga->ga_sha256, sha256, sizeof(ga->ga_sha256));
	ga->ga_reloading = 1;
	ga->ga_reload_until = clock_ms() + RELOAD_LIMIT_MS;
	gate_reload_again(ga);
}

void
gate_reload_again(struct gate *ga)
{
	if (ga->ga_reloading && ga->ga_asked == ASK_NOTHING)
		gate_ask(ga, ASK_RELOAD);
}

/* The file is replaced some time after the cluster was told to. */
static void
reload_later(struct gate *ga)
{
	struct timeval	 tv = { .tv_usec = RELOAD_EVERY_MS * 1000 };

	if (clock_ms() >= ga->ga_reload_until)
		reloaded(ga, 0, "the gate has not got the configuration");
	else if (event_add(&ga->ga_again, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

static void
gate_has_status(struct gate *ga, const struct said_answer *sa)
{
	if (ga->ga_sha256[0] == '\0' ||
	    strcmp(ga->ga_sha256, sa->sa_sha256) == 0) {
		if (ga->ga_reloading)
			reloaded(ga, 1, "");
		gate_serve(ga);
		gate_is_up(ga);
	} else if (ga->ga_reloading)
		reload_later(ga);
	else {
		gate_unserve(ga);
		gate_tell(ga, PODD_OTHER_CONF, "the gate runs another "
		    "configuration than it was given");
	}
}

int
gate_answered(struct gate *ga, const char *line, size_t len)
{
	enum gate_ask		 asked = ga->ga_asked;
	struct said_answer	 sa;
	const char		*why;

	if (asked == ASK_NOTHING)
		return gate_fail_end(ga, PODD_HOSTILE,
		    "an answer to what was not asked");
	if (said_answer(line, len, &sa, &why) == -1)
		return gate_fail_end(ga, PODD_HOSTILE, "%s", why);
	ga->ga_asked = ASK_NOTHING;
	if (asked == ASK_STATUS && !sa.sa_ok)
		return gate_fail_end(ga, PODD_LOST, "the gate refuses: %s: %s",
		    sa.sa_code, sa.sa_text);
	if (asked == ASK_STATUS)
		gate_has_status(ga, &sa);
	else if (sa.sa_ok || strcmp(sa.sa_code, CODE_BUSY) == 0)
		gate_status(ga);
	else if (ga->ga_reloading)
		reloaded(ga, 0, sa.sa_text);
	if (ga->ga_reloading && ga->ga_asked == ASK_NOTHING &&
	    !event_pending(&ga->ga_again, EV_TIMEOUT, NULL))
		gate_reload_again(ga);
	return 0;
}
