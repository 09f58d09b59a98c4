/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: a connection that speaks HTTP/2, whichever end we are.
 * The peer is hostile either way.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "h2.h"

#define READ_SIZE	(16 * 1024)	/* bytes, about a record */
#define SHARE		(IO_SHARE * READ_SIZE)	/* bytes in one turn */
#define READS_MAX	(IO_SHARE * 16)	/* of records that may be short */

/* Bytes that a peer may send before we pass them on. */
#define SERVER_WINDOW	(256 * 1024)
#define CLIENT_WINDOW	(512 * 1024)
#define CLIENT_WINDOW_ALL (1024 * 1024)

#define NITEMS(a)	(sizeof(a) / sizeof((a)[0]))

/* h2_greet() opens the window of the connection by the difference. */
_Static_assert(SERVER_WINDOW > H2_WINDOW && CLIENT_WINDOW_ALL > H2_WINDOW,
    "windows that are larger than they are without a word");

const char		 h2_preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
_Static_assert(sizeof(h2_preface) - 1 == H2_PREFACE_LEN, "the preface");

static TAILQ_HEAD(, h2)	 dirty = TAILQ_HEAD_INITIALIZER(dirty);
static struct event	 turn;

/* ---- its end ------------------------------------------------------------- */

void
h2_break(struct h2 *h2, const char *why)
{
	if (h2->h2_why == NULL)
		h2->h2_why = why;
}

void
h2_fail(struct h2 *h2, uint32_t code, const char *why)
{
	if (h2->h2_why != NULL)
		return;
	h2_put_goaway(h2, code);
	h2_break(h2, why);
}

void
h2_goodbye(struct h2 *h2, uint32_t code)
{
	h2_put_goaway(h2, code);
	h2_push(h2);
}

/* ---- turns --------------------------------------------------------------- */

/* Write what waits; ends no stream, as an owner is calling. */
void
h2_push(struct h2 *h2)
{
	h2_send(h2);
	if (h2->h2_dead || h2->h2_inside)
		return;
	h2->h2_inside = true;
	h2_put_all(h2);
	h2->h2_inside = false;
}

/* Put all frames that are due into the io, then bury what ended. */
static void
h2_send_now(struct h2 *h2)
{
	if (h2->h2_inside)
		h2_send(h2);
	if (h2->h2_dead || h2->h2_inside)
		return;
	h2->h2_inside = true;
	h2_put_ends(h2);
	h2_put_all(h2);
	h2_put_ends(h2);
	h2->h2_inside = false;
	h2_streams_bury(h2);
	if (h2->h2_dead)
		return;
	/* A client that said goodbye has all its answers. */
	if (h2->h2_server && h2->h2_parting && h2->h2_nstreams == 0 &&
	    h2->h2_queuelen == 0)
		h2_break(h2, "finished");
	if (h2->h2_why != NULL)
		h2->h2_ops->on_broken(h2, h2->h2_why);
}

static void
h2_on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct h2	*h2;

	(void)fd, (void)what, (void)arg;
	while ((h2 = TAILQ_FIRST(&dirty)) != NULL) {
		TAILQ_REMOVE(&dirty, h2, h2_entry);
		h2->h2_dirty = false;
		h2_send_now(h2);
	}
}

/* Send once per turn: frames are cheaper together. */
void
h2_send(struct h2 *h2)
{
	if (h2->h2_dead || h2->h2_dirty)
		return;
	if (TAILQ_EMPTY(&dirty))
		event_active(&turn, EV_TIMEOUT, 1);
	h2->h2_dirty = true;
	TAILQ_INSERT_TAIL(&dirty, h2, h2_entry);
}

bool
h2_read(struct h2 *h2)
{
	static unsigned char	 buf[READ_SIZE];
	ssize_t			 n = 1;
	size_t			 all = 0;
	int			 i = 0;

	h2->h2_inside = true;
	for (; all < SHARE && i < READS_MAX && h2->h2_why == NULL; i++) {
		n = io_take(h2->h2_io, buf, sizeof(buf));
		if (n <= 0)
			break;
		all += n;
		h2_take(h2, buf, n);
		if (h2->h2_dead)
			return false;
	}
	h2->h2_inside = false;
	if (n == 0)
		h2_break(h2, "closed");
	else if (n == -1 && errno != EAGAIN)
		h2_break(h2, "connection reset");
	else if (all >= SHARE || i == READS_MAX)
		io_again(h2->h2_io);
	h2_send(h2);
	return true;
}

bool
h2_read_ahead(struct h2 *h2, const unsigned char *p, size_t len)
{
	h2->h2_inside = true;
	h2_take(h2, p, len);
	h2->h2_inside = false;
	h2_send(h2);
	return !h2->h2_dead;
}

/* ---- its beginning ------------------------------------------------------- */

static void
h2_greet(struct h2 *h2)
{
	static const uint32_t	 server[][2] = {
		{ H2_S_MAX_STREAMS, H2_STREAMS_MAX },
		{ H2_S_WINDOW, SERVER_WINDOW },
		{ H2_S_HEAD_SIZE, H1_HEAD_MAX },
		{ H2_S_CONNECT, 1 },
	};
	static const uint32_t	 client[][2] = {
		{ H2_S_ENABLE_PUSH, 0 },
		{ H2_S_WINDOW, CLIENT_WINDOW },
		{ H2_S_HEAD_SIZE, H1_HEAD_MAX },
	};

	if (h2->h2_server)
		h2_put_settings(h2, server, NITEMS(server));
	else
		h2_put_settings(h2, client, NITEMS(client));
	h2_put_window(h2, 0, h2->h2_window - H2_WINDOW);
}

struct h2 *
h2_new(struct io *io, bool server, const struct h2_ops *ops, void *owner)
{
	struct h2	*h2;

	if ((h2 = calloc(1, sizeof(*h2))) == NULL)
		return NULL;
	if (!event_initialized(&turn)) {
		event_assign(&turn, child_base, -1, 0, h2_on_turn, NULL);
		event_priority_set(&turn, 1);
	}
	h2->h2_io = io;
	h2->h2_server = server;
	h2->h2_ops = ops;
	h2->h2_owner = owner;
	TAILQ_INIT(&h2->h2_streams);
	TAILQ_INIT(&h2->h2_graves);
	TAILQ_INIT(&h2->h2_ready);
	TAILQ_INIT(&h2->h2_starved);
	TAILQ_INIT(&h2->h2_ending);
	timer_init(&h2->h2_timer, child_base, h2_on_deadline, h2);
	hpack_decoder_init(&h2->h2_hpack);
	h2->h2_out_window = h2->h2_peer_window = H2_WINDOW;
	h2->h2_peer_streams = H2_STREAMS_MAX;
	h2->h2_window = server ? SERVER_WINDOW : CLIENT_WINDOW_ALL;
	h2->h2_stream_window = server ? SERVER_WINDOW : CLIENT_WINDOW;
	h2->h2_in_window = h2->h2_window;
	h2_greet(h2);
	return h2;
}

void
h2_close(struct h2 *h2)
{
	struct h2_stream	*hs;

	if (h2->h2_dead)
		return;
	h2->h2_dead = true;
	timer_end(&h2->h2_timer);
	if (h2->h2_dirty)
		TAILQ_REMOVE(&dirty, h2, h2_entry);
	h2->h2_dirty = false;
	while ((hs = TAILQ_FIRST(&h2->h2_streams)) != NULL)
		h2_stream_gone(hs);
}

void
h2_free(struct h2 *h2)
{
	if (h2 == NULL)
		return;
	h2_close(h2);
	h2_streams_bury(h2);
	hpack_decoder_free(&h2->h2_hpack);
	h2_recv_free(h2);
	free(h2->h2_queue);
	free(h2);
}
