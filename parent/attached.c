/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: connections of clients that a sandbox serves, for the
 * record of who was attached, and from when to when.  The frames are between
 * the two; we keep a descriptor of the same socket, read nothing and see when
 * either side has ended it.  Nobody counts bytes: a Unix socket has no
 * counters, and the sandbox's own would be no evidence.
 */

#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "parent.h"

#define ATTACHED_MAX	64	/* of one session; the hands take fewer */

struct attached {
	TAILQ_ENTRY(attached)	 at_entry;
	struct attached_list	*at_list;
	const struct session	*at_session;
	struct event		 at_ev;
	uint32_t		 at_number;
	uint64_t		 at_since;
	struct peer		 at_peer;
	char			 at_program[PROGRAM_LEN + 1];
};

static void
attached_record(const struct attached *at, enum record_kind kind)
{
	struct proc	*recorder = proc_find(ROLE_RECORDER);

	if (recorder == NULL || recorder->pr_ipc == NULL)
		return;
	ipc_send(recorder->pr_ipc, -1, RECORD_ATTACHED, record_attached,
	    .kind = (uint8_t)kind, .at = kind == RECORD_SESSION_ATTACHED ?
	    at->at_since : clock_wall_ns(), .since = at->at_since,
	    .session = at->at_session->se_name, .number = at->at_number,
	    .uid = at->at_peer.pe_uid, .pid = (uint32_t)at->at_peer.pe_pid,
	    .program = at->at_program);
}

/* It is over for both sides, whoever else has the socket open. */
static void
attached_free(struct attached *at)
{
	int	 fd = event_get_fd(&at->at_ev);

	attached_record(at, RECORD_SESSION_DETACHED);
	TAILQ_REMOVE(&at->at_list->al_head, at, at_entry);
	at->at_list->al_count--;
	event_del(&at->at_ev);
	shutdown(fd, SHUT_RDWR);
	close(fd);
	free(at);
}

/* A client that only sends no more is still attached. */
static void
attached_on_end(evutil_socket_t fd, short what, void *arg)
{
	struct pollfd	 pfd = { .fd = fd };
	int		 n;

	(void)what;
	do
		n = poll(&pfd, 1, 0);
	while (n == -1 && errno == EINTR);
	if (n == 1 && pfd.revents & (POLLHUP | POLLERR))
		attached_free(arg);
}

/*
 * A client's connection, before a sandbox gets it.  Takes the descriptor; the
 * number of the attachment, or 0 if there cannot be another.
 */
uint32_t
attached_add(struct attached_list *al, const struct session *se, int fd)
{
	static uint32_t	 last;
	struct attached	*at;

	if (al->al_count == ATTACHED_MAX ||
	    (at = calloc(1, sizeof(*at))) == NULL) {
		log_info("session %s: more than %d connections at once",
		    se->se_name, ATTACHED_MAX);
		close(fd);
		return 0;
	}
	at->at_list = al;
	at->at_session = se;
	if (++last == 0)
		last++;
	at->at_number = last;
	at->at_since = clock_wall_ns();
	peer_who(fd, &at->at_peer);
	peer_program(fd, &at->at_peer, at->at_program);
	TAILQ_INSERT_TAIL(&al->al_head, at, at_entry);
	al->al_count++;
	/* By edges: what the client sends is not ours, and is no event. */
	event_assign(&at->at_ev, d.d_base, fd, EV_CLOSED | EV_ET | EV_PERSIST,
	    attached_on_end, at);
	event_priority_set(&at->at_ev, 1);
	if (event_add(&at->at_ev, NULL) == -1)
		log_warnx("session %s: the end of an attachment will not be "
		    "seen", se->se_name);
	attached_record(at, RECORD_SESSION_ATTACHED);
	return at->at_number;
}

/* Who served it has ended; the client may have left before. */
void
attached_end(struct attached_list *al, uint32_t number)
{
	struct attached	*at;

	TAILQ_FOREACH(at, &al->al_head, at_entry)
		if (at->at_number == number) {
			attached_free(at);
			return;
		}
}

/* The session is over. */
void
attached_end_all(struct attached_list *al)
{
	struct attached	*at;

	while ((at = TAILQ_FIRST(&al->al_head)) != NULL)
		attached_free(at);
}
