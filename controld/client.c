/* SPDX-License-Identifier: ISC */

/*
 * controld: one control client.  It may be slow, silent, flooding or gone at
 * any moment; each of these ends in client_drop() at the worst.  The struct
 * goes in a turn of its own, so that nobody up the stack holds a stale one.
 */

#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "controld.h"

TAILQ_HEAD(clients, client);

uint32_t	 client_count;
uint32_t	 client_readers;

static struct clients	 clients = TAILQ_HEAD_INITIALIZER(clients);

static void	 client_on_read(evutil_socket_t, short, void *);
static void	 client_on_write(evutil_socket_t, short, void *);
static void	 client_on_timer(evutil_socket_t, short, void *);
static void	 client_on_look(evutil_socket_t, short, void *);

/* Takes the descriptor; NULL if memory is short. */
struct client *
client_new(int fd, int read_only)
{
	struct client	*cl;

	if ((cl = calloc(1, sizeof(*cl))) == NULL ||
	    (cl->cl_out = evbuffer_new()) == NULL) {
		free(cl);
		close(fd);
		return NULL;
	}
	cl->cl_state = CLIENT_PEER;
	cl->cl_fd = fd;
	cl->cl_read_only = read_only;
	line_init(&cl->cl_line);
	passed_init(&cl->cl_passed);
	TAILQ_INIT(&cl->cl_waiters);
	event_assign(&cl->cl_rev, child_base, fd, EV_READ | EV_PERSIST,
	    client_on_read, cl);
	event_assign(&cl->cl_wev, child_base, fd, EV_WRITE, client_on_write,
	    cl);
	evtimer_assign(&cl->cl_timer, child_base, client_on_timer, cl);
	evtimer_assign(&cl->cl_look, child_base, client_on_look, cl);
	event_priority_set(&cl->cl_rev, 1);
	event_priority_set(&cl->cl_wev, 1);
	event_priority_set(&cl->cl_timer, 1);
	event_priority_set(&cl->cl_look, 1);
	TAILQ_INSERT_TAIL(&clients, cl, cl_entry);
	client_count++;
	client_readers += cl->cl_read_only;
	return cl;
}

static void
client_free(struct client *cl)
{
	struct waiter	*wt;

	session_owner_gone(cl);
	while ((wt = TAILQ_FIRST(&cl->cl_waiters)) != NULL)
		waiter_free(wt);
	event_del(&cl->cl_rev);
	event_del(&cl->cl_wev);
	event_del(&cl->cl_timer);
	event_del(&cl->cl_look);
	line_free(&cl->cl_line);
	passed_clear(&cl->cl_passed);
	evbuffer_free(cl->cl_out);
	if (cl->cl_fd != -1)
		close(cl->cl_fd);
	TAILQ_REMOVE(&clients, cl, cl_entry);
	client_count--;
	client_readers -= cl->cl_read_only;
	free(cl);
}

/* The client's time is up, or it was dropped. */
static void
client_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	client_free(arg);
}

void
client_drop(struct client *cl)
{
	if (cl->cl_state == CLIENT_DEAD)
		return;
	cl->cl_state = CLIENT_DEAD;
	event_del(&cl->cl_rev);
	event_del(&cl->cl_wev);
	event_del(&cl->cl_look);
	event_active(&cl->cl_timer, EV_TIMEOUT, 1);
}

static void
client_add_event(struct client *cl, struct event *ev, time_t seconds)
{
	struct timeval	 tv = { .tv_sec = seconds };

	if (event_add(ev, seconds > 0 ? &tv : NULL) == -1)
		client_drop(cl);
}

/* The id goes into the body, in place of its first brace. */
void
client_send(struct client *cl, const struct request_id *id, const char *body,
    size_t len)
{
	char	 head[sizeof("{\"id\":-9223372036854775808,")];
	int	 n;

	if (cl->cl_state == CLIENT_DEAD)
		return;
	if (evbuffer_get_length(cl->cl_out) + sizeof(head) + len >
	    CLIENT_QUEUE) {
		log_debug("client: it does not read its answers");
		client_drop(cl);
		return;
	}
	if (id->ri_given)
		n = snprintf(head, sizeof(head), "{\"id\":%lld,",
		    (long long)id->ri_value);
	else
		n = snprintf(head, sizeof(head), "{\"id\":null,");
	if (evbuffer_add(cl->cl_out, head, n) == -1 ||
	    evbuffer_add(cl->cl_out, body + 1, len - 1) == -1 ||
	    evbuffer_add(cl->cl_out, "\n", 1) == -1) {
		client_drop(cl);
		return;
	}
	client_add_event(cl, &cl->cl_wev, 0);
}

/* The answer that was just written. */
void
client_answer(struct client *cl, const struct request *rq)
{
	const char	*body;
	size_t		 len;

	body = answer_end(&len);
	client_send(cl, &rq->rq_id, body, len);
}

/* All is answered: the socket goes to who serves it now, by the parent. */
static void
client_hand_over(struct client *cl)
{
	const struct msg_follow	*mf = &cl->cl_follow;

	if (cl->cl_state == CLIENT_FOLLOW)
		ipc_send(child_parent, cl->cl_fd, FOLLOW_ASK, follow,
		    .kinds = mf->kinds, .session = cl->cl_session,
		    .from = mf->from, .first = mf->first,
		    .window = mf->window, .term = mf->term);
	else if (cl->cl_state == CLIENT_SERVE)
		ipc_send(child_parent, cl->cl_fd, SERVE_ASK, serve, mf->term);
	else if (!pod_attach(session_by_number(cl->cl_number), cl->cl_fd))
		ipc_send(child_parent, cl->cl_fd, SESSION_ATTACH,
		    session_attach, .number = cl->cl_number);
	cl->cl_fd = -1;
	client_drop(cl);
}

/*
 * Nothing is read from it any more, and what it waits for may never come: one
 * that has gone is not to keep its place.
 */
static void
client_look(struct client *cl)
{
	struct pollfd	 pfd = { .fd = cl->cl_fd };

	if (poll(&pfd, 1, 0) == 1 && pfd.revents & (POLLHUP | POLLERR))
		client_drop(cl);
	else
		client_add_event(cl, &cl->cl_look, CLIENT_LOOK_S);
}

static void
client_on_look(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	client_settle(arg);
}

/* See whether a client that makes no more requests has all its answers. */
void
client_settle(struct client *cl)
{
	if (cl->cl_state != CLIENT_FOLLOW && cl->cl_state != CLIENT_SERVE &&
	    cl->cl_state != CLIENT_ATTACH && cl->cl_state != CLIENT_END)
		return;
	if (cl->cl_nwaiters > 0) {
		client_look(cl);
		return;
	}
	if (evbuffer_get_length(cl->cl_out) > 0) {
		if (!evtimer_pending(&cl->cl_timer, NULL))
			client_add_event(cl, &cl->cl_timer, CLIENT_LINGER_S);
		return;
	}
	if (cl->cl_state == CLIENT_END)
		client_drop(cl);
	else
		client_hand_over(cl);
}

static void
client_finish(struct client *cl, enum client_state state)
{
	if (cl->cl_state != CLIENT_OPEN)
		return;
	cl->cl_state = state;
	event_del(&cl->cl_rev);
	event_del(&cl->cl_timer);
	client_settle(cl);
}

void
client_follow(struct client *cl, const struct msg_follow *mf)
{
	cl->cl_follow = *mf;
	strlcpy(cl->cl_session, mf->session, sizeof(cl->cl_session));
	cl->cl_follow.session = cl->cl_session;
	client_finish(cl, CLIENT_FOLLOW);
}

/* The client answers questions from now on. */
void
client_answers(struct client *cl, uint64_t term)
{
	cl->cl_follow.term = term;
	client_finish(cl, CLIENT_SERVE);
}

/* Whether something has come behind the request that is being served. */
int
client_said_more(const struct client *cl)
{
	return cl->cl_eof || cl->cl_line.ln_end > cl->cl_line.ln_start;
}

void
client_attach(struct client *cl, uint32_t number)
{
	cl->cl_number = number;
	client_finish(cl, CLIENT_ATTACH);
}

/* A client that broke the protocol: no other answer, hang up. */
void
client_hang_up(struct client *cl)
{
	struct waiter	*wt;

	while ((wt = TAILQ_FIRST(&cl->cl_waiters)) != NULL)
		waiter_free(wt);
	client_finish(cl, CLIENT_END);
}

/* A client's last answer, to no request. */
static void
client_dismiss(struct client *cl, const char *code, const char *why)
{
	static const struct request_id	 none;
	const char			*body;
	size_t				 len;

	answer_error(code, why, strlen(why));
	body = answer_end(&len);
	client_send(cl, &none, body, len);
	client_hang_up(cl);
}

static uint32_t
client_count_of(uid_t uid)
{
	const struct client	*cl;
	uint32_t		 n = 0;

	TAILQ_FOREACH(cl, &clients, cl_entry)
		n += cl->cl_state != CLIENT_PEER && cl->cl_uid == uid;
	return n;
}

/* The parent has nothing against this peer. */
void
client_open(struct client *cl, uid_t uid, gid_t gid)
{
	cl->cl_uid = uid;
	cl->cl_gid = gid;
	cl->cl_state = CLIENT_OPEN;
	client_add_event(cl, &cl->cl_timer, CLIENT_FIRST_S);
	if (client_count_of(uid) <= conf_share(uid, conf_running->sl_clients))
		client_add_event(cl, &cl->cl_rev, 0);
	else
		client_dismiss(cl, CODE_TOO_MANY_CLIENTS, "all connections "
		    "that one user may have of 'limit clients' are in use");
}

/* policyd has enough to do: the request waits, and what is behind it. */
static void
client_park(struct client *cl, char *line, size_t len)
{
	line_back(&cl->cl_line, line, len);
	event_del(&cl->cl_rev);
	cl->cl_parked = 1;
}

static void
client_go_on(struct client *cl)
{
	cl->cl_parked = 0;
	if (!cl->cl_eof)
		client_add_event(cl, &cl->cl_rev, 0);
	if (cl->cl_state == CLIENT_OPEN)
		event_active(&cl->cl_rev, EV_TIMEOUT, 1);
}

/* Up to CLIENT_BATCH requests, then the others have their turn. */
static void
client_serve(struct client *cl)
{
	char	*line;
	size_t	 len;
	int	 i, n;

	for (i = 0; i < CLIENT_BATCH; i++) {
		if (child_parent->ip_congested) {
			event_del(&cl->cl_rev);
			return;
		}
		if ((n = line_next(&cl->cl_line, &line, &len)) == -1)
			client_dismiss(cl, CODE_TOO_LONG, "a request has "
			    "at most 65536 bytes");
		else if (n == 0 && cl->cl_eof)
			client_finish(cl, CLIENT_END);
		if (n != 1)
			return;
		event_del(&cl->cl_timer);
		if (!op_serve(cl, line, len)) {
			client_park(cl, line, len);
			return;
		}
		if (cl->cl_state != CLIENT_OPEN)
			return;
	}
	event_active(&cl->cl_rev, EV_TIMEOUT, 1);
}

/* The parent reads again: so do we.  See client_serve(). */
void
client_resume(struct ipc *ip)
{
	struct client	*cl;

	(void)ip;
	TAILQ_FOREACH(cl, &clients, cl_entry)
		if (cl->cl_state == CLIENT_OPEN)
			client_go_on(cl);
}

/* There is credit again; see client_park(). */
void
client_unpark(void)
{
	struct client	*cl;

	TAILQ_FOREACH(cl, &clients, cl_entry)
		if (cl->cl_state == CLIENT_OPEN && cl->cl_parked)
			client_go_on(cl);
}

/* EV_TIMEOUT marks a turn for what was read before; see ipc_on_read(). */
static void
client_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct client	*cl = arg;
	ssize_t		 n;

	if (!(what & EV_TIMEOUT)) {
		n = line_read(&cl->cl_line, fd, &cl->cl_passed);
		if (n == -1 && errno == EAGAIN)
			return;
		if (n == -1) {
			client_drop(cl);
			return;
		}
		if (n == 0) {
			/* Perhaps only its sending side is closed. */
			cl->cl_eof = 1;
			event_del(&cl->cl_rev);
		}
	}
	client_serve(cl);
}

static void
client_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct client	*cl = arg;

	(void)what;
	if (evbuffer_write(cl->cl_out, fd) == -1 && errno != EAGAIN &&
	    errno != EINTR) {
		client_drop(cl);
		return;
	}
	if (evbuffer_get_length(cl->cl_out) > 0)
		client_add_event(cl, &cl->cl_wev, 0);
	else
		client_settle(cl);
}
