/* SPDX-License-Identifier: ISC */

/*
 * controld: the control sockets.  Whoever connects is first shown to the
 * parent, which knows users and namespaces; until it has answered nothing is
 * read, and a peer that is not welcome is hung up on without a word.
 */

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "controld.h"

#define ACCEPT_BATCH	16	/* connections per turn of the loop */
#define PEERS_MAX	64	/* of which the parent is asked at a time */
#define PAUSE_MS	250

static const char	 too_many[] = "{\"id\":null,\"error\":{\"code\":\""
    CODE_TOO_MANY_CLIENTS "\",\"message\":\"all connections that 'limit "
    "clients' permits are in use\"}}\n";

static unsigned int	 peers;		/* the parent is being asked */
static struct event	 pause_timer;
static int		 paused;
static int		 starved;	/* and the log says so */

static void	 control_on_accept(evutil_socket_t, short, void *);

/* A listener that is ready and cannot be served would spin the loop. */
static void
control_pause(void)
{
	struct timeval	 tv = { .tv_usec = PAUSE_MS * 1000 };
	struct listener	*li;

	if (evtimer_add(&pause_timer, &tv) == -1)
		return;
	paused = 1;
	TAILQ_FOREACH(li, &conf_running->sl_listeners, li_entry)
		event_del(&li->li_ev);
}

static void
control_on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	struct listener	*li;

	(void)fd, (void)what, (void)arg;
	paused = 0;
	TAILQ_FOREACH(li, &conf_running->sl_listeners, li_entry)
		if (event_add(&li->li_ev, NULL) == -1) {
			control_pause();
			return;
		}
}

/* Out of descriptors or memory: logged once, not at every attempt. */
static int
control_starve(void)
{
	if (!starved)
		log_warn("control socket: clients have to wait");
	starved = 1;
	return -1;
}

/* A generation is committed; the listeners of the last one are closed. */
void
control_listen(struct listeners *listeners)
{
	struct listener	*li;

	if (!evtimer_initialized(&pause_timer)) {
		evtimer_assign(&pause_timer, child_base, control_on_pause_over,
		    NULL);
		child_parent->ip_drained = client_resume;
	}
	TAILQ_FOREACH(li, listeners, li_entry) {
		event_assign(&li->li_ev, child_base, li->li_fd,
		    EV_READ | EV_PERSIST, control_on_accept, li);
		event_priority_set(&li->li_ev, 1);
		if (!paused && event_add(&li->li_ev, NULL) == -1)
			fatalx("control socket: event_add");
	}
}

void
control_close(struct listener *li)
{
	if (event_initialized(&li->li_ev))
		event_del(&li->li_ev);
	close(li->li_fd);
}

/* Show the connection to the parent; it gets a descriptor of its own. */
static int
control_ask_peer(int fd, int read_only)
{
	struct client	*cl;
	struct waiter	*wt;
	int		 copy;

	if ((copy = dup(fd)) == -1) {
		control_starve();
		close(fd);
		return -1;
	}
	if ((cl = client_new(fd, read_only)) == NULL ||
	    (wt = waiter_new(cl, WAIT_PEER, NULL)) == NULL) {
		control_starve();
		close(copy);
		return -1;
	}
	starved = 0;
	peers++;
	ipc_send(child_parent, copy, PEER_ASK, cookie, wt->wt_cookie);
	return 1;
}

/* Who may only look leaves half of the places to those who may act. */
static int
control_crowded(const struct listener *li)
{
	uint32_t	 max = conf_running->sl_clients;

	return client_count >= max ||
	    (li->li_read_only && client_readers >= max / 2);
}

/* 1: there may be more, 0: there are none, -1: we cannot take more now. */
static int
control_accept(const struct listener *li)
{
	int	 fd, slot;

	if (peers >= PEERS_MAX || child_parent->ip_congested)
		return -1;
	/* A client takes two descriptors: do not accept with only one. */
	if ((slot = dup(li->li_fd)) == -1)
		return control_starve();
	fd = accept4(li->li_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	close(slot);
	if (fd == -1) {
		if (errno == EAGAIN)
			return 0;
		if (errno == EINTR || errno == ECONNABORTED)
			return 1;
		return control_starve();
	}
	if (control_crowded(li)) {
		/* A fresh socket has room for a line. */
		if (write(fd, too_many, sizeof(too_many) - 1) == -1)
			log_debug("control client: gone at once");
		close(fd);
		return 1;
	}
	return control_ask_peer(fd, li->li_read_only);
}

static void
control_on_accept(evutil_socket_t fd, short what, void *arg)
{
	const struct listener	*li = arg;
	int			 i, n = 1;

	(void)fd, (void)what;
	for (i = 0; i < ACCEPT_BATCH && n == 1; i++)
		n = control_accept(li);
	if (n == -1)
		control_pause();
}

int
controld_parent_peer_answer(struct ipc *ip, const union msg *m)
{
	struct waiter	*wt;
	struct client	*cl;

	if (m->peer_answer.welcome > 1 || peers == 0)
		return ipc_bad(ip, "welcome %u for %u peers",
		    m->peer_answer.welcome, peers);
	peers--;
	if ((wt = waiter_find(m->peer_answer.cookie, WAIT_PEER)) == NULL)
		return 0;
	cl = wt->wt_client;
	waiter_free(wt);
	if (m->peer_answer.welcome)
		client_open(cl, m->peer_answer.uid, m->peer_answer.gid);
	else
		client_drop(cl);
	return 0;
}

/* The only client of a private daemon: the connection of its starter. */
int
controld_parent_client(struct ipc *ip, const union msg *m)
{
	struct client	*cl;
	int		 fd = ipc_take_fd(ip), flags;

	if (fd == -1)
		return 0;
	if ((flags = fcntl(fd, F_GETFL)) == -1 ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1)
		fatal("control client: fcntl");
	if ((cl = client_new(fd, 0)) != NULL)
		client_open(cl, m->client.uid, m->client.gid);
	return 0;
}
