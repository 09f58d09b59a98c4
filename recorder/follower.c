/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this.  A follower is a control client whose connection
 * came through policyd and the parent.  It is trusted with nothing: what it
 * sends is thrown away, and one that reads too slowly is hung up on before it
 * costs more than its queue.  One that is served from the audit file may take
 * its time: see history.c.
 */

#include <sys/queue.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "clock.h"
#include "codes.h"
#include "log.h"
#include "recorder.h"

#define ERROR_LEN	256	/* bytes of a line with an error */

TAILQ_HEAD(followers, follower);

static struct followers		 followers = TAILQ_HEAD_INITIALIZER(followers);
static struct event_base	*base;
static uint32_t			 open_count;	/* connections */
static uint32_t			 live_count;	/* of these, not ending */

static void	 follower_on_read(evutil_socket_t, short, void *);
static void	 follower_on_write(evutil_socket_t, short, void *);

void
follower_init(struct event_base *eb)
{
	base = eb;
}

uint32_t
follower_count(void)
{
	return live_count;
}

static void
follower_free(struct follower *fo)
{
	if (fo == NULL)
		return;
	TAILQ_REMOVE(&followers, fo, fo_entry);
	open_count--;
	if (!fo->fo_ending)
		live_count--;
	event_del(&fo->fo_rev);
	event_del(&fo->fo_wev);
	evbuffer_free(fo->fo_queue);
	close(fo->fo_fd);
	free(fo);
}

/* A follower that is ending has this long to read the rest. */
static void
follower_wait(struct follower *fo)
{
	struct timeval	 linger = { .tv_sec = FOLLOWER_LINGER_S };

	event_add(&fo->fo_wev, fo->fo_ending ? &linger : NULL);
}

static int
set_nonblock(int fd)
{
	int	 flags;

	if ((flags = fcntl(fd, F_GETFL)) == -1)
		return -1;
	return fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* An error on the way of records: the last line of a connection. */
static int
error_line(char *line, size_t size, const char *code, const char *why)
{
	return snprintf(line, size, "{\"error\":{\"code\":\"%s\","
	    "\"message\":\"%s\"}}\n", code, why);
}

static void
follower_refuse(int fd, const char *code, const char *why)
{
	char	 line[ERROR_LEN];
	int	 len = error_line(line, sizeof(line), code, why);

	log_info("follower refused: %s", why);
	/* Whether or not the line arrives, the end of file does. */
	if (write(fd, line, (size_t)len) == -1)
		log_debug("follower: %s", strerror(errno));
	close(fd);
}

static void
follower_stop(struct follower *fo)
{
	fo->fo_ending = 1;
	live_count--;
	follower_wait(fo);
}

/* One follower at a time acknowledges. */
static void
follower_take_over(void)
{
	struct follower	*fo, *tmp;
	char		 line[ERROR_LEN];

	TAILQ_FOREACH_SAFE(fo, &followers, fo_entry, tmp) {
		if (fo->fo_window == 0 || fo->fo_ending)
			continue;
		log_info("follower of all sessions: another takes over");
		error_line(line, sizeof(line), CODE_TAKEN_OVER,
		    "another follower acknowledges records now");
		evbuffer_add_printf(fo->fo_queue, "%s", line);
		follower_stop(fo);
	}
}

/* Where a follower begins; false after saying why it cannot. */
static bool
follower_place(struct follower *fo, const struct msg_follow *m)
{
	char		 why[ERROR_LEN - 64];
	const char	*code = "too_many_followers";

	if (open_count >= FOLLOWERS_MAX)
		snprintf(why, sizeof(why), "%d followers are served, no more",
		    FOLLOWERS_MAX);
	else if (m->from == FOLLOW_LIVE ||
	    (code = history_begin(fo, m, why, sizeof(why))) == NULL)
		return true;
	follower_refuse(fo->fo_fd, code, why);
	return false;
}

void
follower_new(int fd, const struct msg_follow *m)
{
	struct follower	*fo;

	if (fd == -1 || set_nonblock(fd) == -1) {
		log_warnx("follower: its connection was lost");
		if (fd != -1)
			close(fd);
		return;
	}
	if ((fo = calloc(1, sizeof(*fo))) == NULL)
		fatal("%s", __func__);
	fo->fo_fd = fd;
	fo->fo_kinds = m->kinds;
	if (!follower_place(fo, m)) {
		free(fo);
		return;
	}
	if (fo->fo_window > 0)
		follower_take_over();
	if ((fo->fo_queue = evbuffer_new()) == NULL)
		fatal("%s", __func__);
	strlcpy(fo->fo_session, m->session, sizeof(fo->fo_session));
	event_assign(&fo->fo_rev, base, fd, EV_READ | EV_PERSIST,
	    follower_on_read, fo);
	event_assign(&fo->fo_wev, base, fd, EV_WRITE, follower_on_write, fo);
	TAILQ_INSERT_TAIL(&followers, fo, fo_entry);
	open_count++;
	live_count++;
	/* Fails if the descriptor is no socket, whatever the sender claims. */
	if (event_add(&fo->fo_rev, NULL) == -1) {
		log_warnx("follower: its connection is none");
		follower_free(fo);
		return;
	}
	if (fo->fo_history)
		follower_wait(fo);
}

static void
follower_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct follower	*fo = arg;
	char		 discard[4096];
	ssize_t		 n;

	(void)what;
	n = read(fd, discard, sizeof(discard));
	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
		follower_free(fo);
}

/* Write as much as the socket takes; -1: the connection is broken. */
static int
follower_write(struct follower *fo)
{
	if (evbuffer_get_length(fo->fo_queue) == 0 ||
	    evbuffer_write(fo->fo_queue, fo->fo_fd) != -1 ||
	    errno == EAGAIN || errno == EINTR)
		return 0;
	return -1;
}

/*
 * Its last line, for which room was kept, is none of the chain: it has
 * neither number nor hash, and only this follower sees it.
 */
static void
follower_end(struct follower *fo, uint64_t seq)
{
	log_info("follower of %s: too slow, hung up on at record %llu",
	    *fo->fo_session == '\0' ? "all sessions" : fo->fo_session,
	    (unsigned long long)seq);
	evbuffer_add_printf(fo->fo_queue, "{\"kind\":\"gap\",\"at\":\"%s\","
	    "\"session_id\":null,\"reason\":\"" REASON_SLOW_FOLLOWER "\","
	    "\"first_seq\":%llu}\n", chain_time(clock_wall_ns()),
	    (unsigned long long)seq);
	follower_stop(fo);
}

/* More from the file for one that is served from there. */
static void
follower_read_on(struct follower *fo)
{
	if (fo->fo_history && !fo->fo_ending && history_fill(fo) == -1)
		follower_end(fo, fo->fo_seq + 1);
}

static void
follower_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct follower	*fo = arg;

	(void)fd;
	if ((what & EV_TIMEOUT) || follower_write(fo) == -1) {
		follower_free(fo);
		return;
	}
	follower_read_on(fo);
	if (evbuffer_get_length(fo->fo_queue) > 0)
		follower_wait(fo);
	else if (fo->fo_ending)
		follower_free(fo);
}

static int
follower_wants(const struct follower *fo, const struct line *ln)
{
	if (fo->fo_ending || fo->fo_history ||
	    !(fo->fo_kinds & (1U << ln->ln_kind)))
		return 0;
	return *fo->fo_session == '\0' || ln->ln_session == NULL ||
	    strcmp(fo->fo_session, ln->ln_session) == 0;
}

/* An empty queue takes any line, however long. */
static int
follower_is_full(const struct follower *fo, size_t len)
{
	size_t	 queued = evbuffer_get_length(fo->fo_queue);

	return queued > 0 &&
	    queued + len > FOLLOWER_QUEUE_MAX - FOLLOWER_RESERVE;
}

static void
follower_queue(struct follower *fo, const struct line *ln)
{
	/* A burst within one turn: try the socket before giving up. */
	if (follower_is_full(fo, ln->ln_len + 1) && follower_write(fo) == -1) {
		follower_free(fo);
		return;
	}
	if (follower_is_full(fo, ln->ln_len + 1)) {
		follower_end(fo, ln->ln_link.li_seq);
		return;
	}
	if (evbuffer_add(fo->fo_queue, ln->ln_text, ln->ln_len + 1) == -1)
		fatal("%s", __func__);
	follower_wait(fo);
}

void
follower_send(const struct line *ln)
{
	struct follower	*fo, *tmp;

	TAILQ_FOREACH_SAFE(fo, &followers, fo_entry, tmp)
		if (follower_wants(fo, ln))
			follower_queue(fo, ln);
}

/* The audit file has grown, or records were acknowledged. */
void
follower_wake(void)
{
	struct follower	*fo;

	TAILQ_FOREACH(fo, &followers, fo_entry) {
		if (!fo->fo_history || fo->fo_ending)
			continue;
		follower_read_on(fo);
		if (evbuffer_get_length(fo->fo_queue) > 0)
			follower_wait(fo);
	}
}

/* A spool that ended there begins anew; any other place in it is lost. */
void
follower_begin_anew(off_t end)
{
	struct follower	*fo;

	TAILQ_FOREACH(fo, &followers, fo_entry) {
		if (!fo->fo_history || fo->fo_ending)
			continue;
		if (fo->fo_at == end)
			fo->fo_at = 0;
		else
			follower_end(fo, fo->fo_seq + 1);
	}
}

/* The audit file is another one: who was served from it may ask again. */
void
follower_file_gone(void)
{
	struct follower	*fo;

	TAILQ_FOREACH(fo, &followers, fo_entry)
		if (fo->fo_history && !fo->fo_ending)
			follower_stop(fo);
}

/* The process ends: whoever reads gets what is there. */
void
follower_flush(void)
{
	struct follower	*fo, *tmp;

	TAILQ_FOREACH_SAFE(fo, &followers, fo_entry, tmp)
		if (follower_write(fo) == -1)
			follower_free(fo);
}
