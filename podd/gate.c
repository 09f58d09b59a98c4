/* SPDX-License-Identifier: ISC */

/*
 * podd: the channel to the gate of a pod.  At its other end is `egressctl
 * pump', and behind it the gate's own control socket, by several connections:
 *
 *	a	what is asked now and then: its status, to reload
 *	b	its records, from the first that is not acknowledged
 *	c	its questions to deciders
 *	d	acknowledgements of records
 *
 * A line is the letter of a connection and a line of that one, or the letter
 * alone when that has ended; an empty one is an echo.  Whoever is there is
 * hostile: what it may say, and how much of it, has limits, and who exceeds
 * them is cut off.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "clock.h"
#include "podd.h"

static struct gates	 gates = RB_INITIALIZER(&gates);

static int
gate_cmp(const struct gate *a, const struct gate *b)
{
	return a->ga_channel < b->ga_channel ? -1 :
	    a->ga_channel > b->ga_channel;
}

RB_PROTOTYPE(gates, gate, ga_entry, gate_cmp);
RB_GENERATE(gates, gate, ga_entry, gate_cmp);

struct gate *
gate_find(uint32_t channel)
{
	struct gate	 key = { .ga_channel = channel };

	return RB_FIND(gates, &gates, &key);
}

void
gate_free(struct gate *ga)
{
	gate_drop_questions(ga);
	gate_forget_records(ga);
	RB_REMOVE(gates, &gates, ga);
	event_del(&ga->ga_rev);
	event_del(&ga->ga_wev);
	event_del(&ga->ga_echo);
	event_del(&ga->ga_again);
	evbuffer_free(ga->ga_out);
	feed_free(&ga->ga_feed);
	close(ga->ga_fd);
	free(ga);
}

/* controld hears of each state once. */
void
gate_tell(struct gate *ga, enum podd_state state, const char *text)
{
	if (state == ga->ga_told)
		return;
	ga->ga_told = state;
	ipc_send(podd_controld, -1, PODD_STATE, podd_state,
	    .channel = ga->ga_channel, .state = state, .text = text);
}

/* The channel is over; -1, for whoever would go on with it. */
int
gate_fail_end(struct gate *ga, enum podd_state state, const char *fmt, ...)
{
	char	 text[SAID_TEXT_LEN * 2];
	va_list	 ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (state == PODD_HOSTILE)
		log_warnx("session %s: the gate in pod %s is cut off: %s",
		    ga->ga_session, ga->ga_pod, text);
	gate_tell(ga, state, text);
	gate_free(ga);
	return -1;
}

/* ---- what it is sent ----------------------------------------------------- */

static void
gate_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct gate	*ga = arg;

	(void)what;
	if (evbuffer_write(ga->ga_out, fd) == -1 && errno != EAGAIN &&
	    errno != EINTR)
		/* The gate's end is read, with its words before. */
		evbuffer_drain(ga->ga_out, evbuffer_get_length(ga->ga_out));
	if (evbuffer_get_length(ga->ga_out) > 0 &&
	    event_add(&ga->ga_wev, NULL) == -1)
		fatalx("%s: event_add", __func__);
}

/* A line for a connection; what is too much is found by gate_on_echo(). */
void
gate_send(struct gate *ga, char letter, const char *line, size_t len)
{
	if (evbuffer_get_length(ga->ga_out) > GATE_OUT_MAX)
		return;
	if ((letter != '\0' && evbuffer_add(ga->ga_out, &letter, 1) == -1) ||
	    evbuffer_add(ga->ga_out, line, len) == -1 ||
	    evbuffer_add(ga->ga_out, "\n", 1) == -1 ||
	    event_add(&ga->ga_wev, NULL) == -1)
		fatalx("%s", __func__);
}

/* ---- what it says -------------------------------------------------------- */

/* A connection of the gate's has ended: it stops, or another took over. */
static int
gate_closed_end(struct gate *ga, char letter)
{
	static const char	*what[] = { "connection", "records",
	    "questions", "acknowledgements" };

	/* The gate was told to end this one. */
	if (letter == 'c' && !ga->ga_asks)
		return 0;
	return gate_fail_end(ga, PODD_LOST, "the gate has ended its %s",
	    what[letter - 'a']);
}

static int
gate_line_end(struct gate *ga, const char *line, size_t len)
{
	if (len == 0)
		return 0;
	if (*line < 'a' || *line > 'd')
		return gate_fail_end(ga, PODD_HOSTILE,
		    "a line of a connection that there is not");
	if (len == 1)
		return gate_closed_end(ga, *line);
	switch (*line) {
	case 'a':
		return gate_answered(ga, line + 1, len - 1);
	case 'b':
		return ga->ga_follows ? gate_record(ga, line + 1, len - 1) :
		    gate_follow_answered(ga, line + 1, len - 1);
	case 'c':
		return ga->ga_serves ? gate_question(ga, line + 1, len - 1) :
		    gate_serve_answered(ga, line + 1, len - 1);
	default:
		return gate_acked(ga, line + 1, len - 1);
	}
}

static int
gate_lines_end(struct gate *ga)
{
	const char	*line;
	size_t		 len;
	int		 n, rv;

	for (n = 0; n < GATE_BATCH; n++) {
		if (podd_congested()) {
			ga->ga_paused = 1;
			event_del(&ga->ga_rev);
			return 0;
		}
		if ((rv = feed_next(&ga->ga_feed, &line, &len)) == 0)
			return 0;
		if (rv == -1)
			return gate_fail_end(ga, PODD_HOSTILE,
			    "a line of more than %d bytes", FEED_LEN);
		if (gate_line_end(ga, line, len) == -1)
			return -1;
	}
	/* Others first; what was read is not read again. */
	event_active(&ga->ga_rev, EV_TIMEOUT, 0);
	return 0;
}

static void
gate_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct gate	*ga = arg;
	size_t		 room;
	ssize_t		 n;
	char		*to;

	if (what & EV_READ) {
		to = feed_room(&ga->ga_feed, &room);
		n = read(fd, to, room);
		if (n == -1 && errno != EAGAIN && errno != EINTR) {
			gate_fail_end(ga, PODD_LOST, "%s", strerror(errno));
			return;
		}
		if (n == 0) {
			gate_fail_end(ga, PODD_LOST,
			    "the connection to the gate has ended");
			return;
		}
		if (n > 0) {
			feed_got(&ga->ga_feed, (size_t)n);
			ga->ga_heard = clock_ms();
		}
	}
	gate_lines_end(ga);
}

/* Somebody has room again. */
void
gates_resume(struct ipc *ip)
{
	struct gate	*ga;

	(void)ip;
	if (podd_recorder == NULL || podd_policyd == NULL ||
	    podd_controld == NULL || podd_congested())
		return;
	RB_FOREACH(ga, gates, &gates) {
		if (!ga->ga_paused)
			continue;
		ga->ga_paused = 0;
		ga->ga_heard = clock_ms();
		if (event_add(&ga->ga_rev, NULL) == -1)
			fatalx("%s: event_add", __func__);
		event_active(&ga->ga_rev, EV_TIMEOUT, 0);
	}
}

/* ---- time ---------------------------------------------------------------- */

static void
echo_later(struct gate *ga)
{
	struct timeval	 tv = { .tv_sec = GATE_ECHO_S };

	if (event_add(&ga->ga_echo, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

/* An exec that says nothing is cut by others, and its pump ends by itself. */
static void
gate_on_echo(evutil_socket_t fd, short what, void *arg)
{
	struct gate	*ga = arg;

	(void)fd, (void)what;
	if (!ga->ga_paused && clock_ms() - ga->ga_heard > GATE_SILENCE_MS) {
		gate_fail_end(ga, PODD_LOST, "the gate is silent");
		return;
	}
	if (evbuffer_get_length(ga->ga_out) > GATE_OUT_MAX) {
		gate_fail_end(ga, PODD_LOST,
		    "the gate does not take what it is told");
		return;
	}
	gate_send(ga, '\0', "", 0);
	if (++ga->ga_echoes % GATE_STATUS == 0)
		gate_status(ga);
	echo_later(ga);
}

static void
gate_on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	gate_reload_again(arg);
}

/* ---- begin --------------------------------------------------------------- */

void
gate_open(const struct msg_podd_open *mo, int fd)
{
	struct gate	*ga;

	if ((ga = calloc(1, sizeof(*ga))) == NULL ||
	    (ga->ga_out = evbuffer_new()) == NULL)
		fatal("%s", __func__);
	ga->ga_channel = mo->channel;
	strlcpy(ga->ga_session, mo->session, sizeof(ga->ga_session));
	strlcpy(ga->ga_pod, mo->pod, sizeof(ga->ga_pod));
	strlcpy(ga->ga_uid, mo->uid, sizeof(ga->ga_uid));
	strlcpy(ga->ga_node, mo->node, sizeof(ga->ga_node));
	strlcpy(ga->ga_sha256, mo->sha256, sizeof(ga->ga_sha256));
	ga->ga_term = mo->term;
	ga->ga_fd = fd;
	ga->ga_heard = clock_ms();
	ga->ga_told = PODD_STATE_MAX;
	TAILQ_INIT(&ga->ga_kept);
	feed_init(&ga->ga_feed);
	event_assign(&ga->ga_rev, child_base, fd, EV_READ | EV_PERSIST,
	    gate_on_read, ga);
	event_assign(&ga->ga_wev, child_base, fd, EV_WRITE, gate_on_write, ga);
	event_assign(&ga->ga_echo, child_base, -1, 0, gate_on_echo, ga);
	event_assign(&ga->ga_again, child_base, -1, 0, gate_on_again, ga);
	RB_INSERT(gates, &gates, ga);
	if (event_add(&ga->ga_rev, NULL) == -1)
		fatalx("%s: event_add", __func__);
	echo_later(ga);
	gate_begin(ga);
}
