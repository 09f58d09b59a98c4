/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this.  Whatever is to be sent waits for the next turn of the
 * event loop, and for the barrier; a connection with much to read has its
 * share of each turn.
 */

#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>

#include "blocks.h"
#include "io.h"
#include "log.h"

#define BARRIER_MS	2	/* until the recorder is tried again */

static bool		(*io_barrier)(void);
static bool		(*io_may_take)(void);
static TAILQ_HEAD(, io)	 dirty = TAILQ_HEAD_INITIALIZER(dirty);
static struct event	 turn;
static TAILQ_HEAD(, io)	 later = TAILQ_HEAD_INITIALIZER(later);
static struct event	 next_turn;
static TAILQ_HEAD(, io)	 held = TAILQ_HEAD_INITIALIZER(held);

struct blocks	 io_blocks = { .bk_size = IO_BLOCK, .bk_keep = 64 };

static void	 io_on_read(evutil_socket_t, short, void *);
static void	 io_on_write(evutil_socket_t, short, void *);
static void	 io_on_turn(evutil_socket_t, short, void *);
static void	 io_on_next_turn(evutil_socket_t, short, void *);

void
io_init(struct io *io, struct event_base *base, int fd,
    const struct io_ops *ops, void *arg)
{
	memset(io, 0, sizeof(*io));
	io->io_fd = fd;
	io->io_ops = ops;
	io->io_arg = arg;
	io->io_alert = -1;
	event_assign(&io->io_rev, base, fd, EV_READ | EV_PERSIST, io_on_read,
	    io);
	event_assign(&io->io_wev, base, fd, EV_WRITE, io_on_write, io);
	event_priority_set(&io->io_rev, 1);
	event_priority_set(&io->io_wev, 1);
	event_add(&io->io_rev, NULL);
	if (!event_initialized(&turn)) {
		event_assign(&turn, base, -1, 0, io_on_turn, NULL);
		event_priority_set(&turn, 1);
		event_assign(&next_turn, base, -1, 0, io_on_next_turn, NULL);
		event_priority_set(&next_turn, 1);
	}
}

void
io_close(struct io *io)
{
	if (io->io_fd == -1)
		return;
	event_del(&io->io_rev);
	event_del(&io->io_wev);
	if (io->io_dirty)
		TAILQ_REMOVE(&dirty, io, io_entry);
	io->io_dirty = false;
	if (io->io_more)
		TAILQ_REMOVE(&later, io, io_later);
	io->io_more = false;
	if (io->io_held)
		TAILQ_REMOVE(&held, io, io_next_held);
	io->io_held = false;
	if (io->io_ssl != NULL) {
		/* Only a session that seems to have ended well is kept. */
		SSL_set_shutdown(io->io_ssl, io->io_broken ? 0 :
		    SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
		SSL_free(io->io_ssl);
	}
	close(io->io_fd);
	blocks_put(&io_blocks, io->io_ahead);
	blocks_put(&io_blocks, io->io_out);
	blocks_put(&io_blocks, io->io_sealed);
	io->io_fd = -1;
	io->io_ssl = NULL;
	io->io_ahead = io->io_out = io->io_sealed = NULL;
}

/* An idle event costs a system call, so reading stops only on demand. */
void
io_pause(struct io *io)
{
	if (io->io_paused)
		return;
	io->io_paused = true;
	event_del(&io->io_rev);
}

/* Bytes that were read ahead do not make the descriptor readable. */
bool
io_pending(const struct io *io)
{
	return io->io_ssl != NULL && (io->io_ahead != NULL ||
	    io_within_record(io) || SSL_pending(io->io_ssl) > 0);
}

void
io_resume(struct io *io)
{
	if (io->io_broken)
		return;
	if (io->io_paused && !io->io_held)
		event_add(&io->io_rev, NULL);
	io->io_paused = false;
	if (io->io_eof || io_pending(io))
		event_active(&io->io_rev, EV_READ, 1);
}

/* on_error comes in a turn of its own, never inside a call. */
void
io_break(struct io *io, const char *why)
{
	if (io->io_broken)
		return;
	io->io_broken = true;
	io->io_why = why;
	event_del(&io->io_rev);
	event_del(&io->io_wev);
	event_active(&io->io_wev, EV_WRITE, 1);
}

static void
io_tell(struct io *io)
{
	if (io->io_handshake) {
		io->io_handshake = false;
		io->io_ops->on_secure(io, io->io_why);
	} else
		io->io_ops->on_error(io, io->io_why);
}

int
io_library_init(bool (*barrier)(void), bool (*may_take)(void))
{
	io_barrier = barrier;
	io_may_take = may_take;
	return io_tls_init();
}

/* ---- reading ------------------------------------------------------------- */

/* Remove the event: unserved, it would fire again at once. */
static void
io_hold(struct io *io)
{
	if (io->io_held)
		return;
	io->io_held = true;
	event_del(&io->io_rev);
	TAILQ_INSERT_TAIL(&held, io, io_next_held);
}

void
io_take_on(void)
{
	struct io	*io;

	while ((io = TAILQ_FIRST(&held)) != NULL) {
		TAILQ_REMOVE(&held, io, io_next_held);
		io->io_held = false;
		if (io->io_paused || io->io_broken)
			continue;
		event_add(&io->io_rev, NULL);
		if (io_pending(io))
			event_active(&io->io_rev, EV_READ, 1);
	}
}

ssize_t
io_read(struct io *io, void *buf, size_t len)
{
	ssize_t	 n;

	if (io->io_eof)
		return 0;
	if (io->io_broken) {
		errno = ECONNRESET;
		return -1;
	}
	if (io->io_ssl != NULL)
		n = io_read_tls(io, buf, len);
	else
		n = recv(io->io_fd, buf, len, 0);
	if (n > 0)
		io->io_in_total += n;
	else if (n == 0) {
		io->io_eof = true;
		io->io_closed = io->io_ssl == NULL ||
		    SSL_get_shutdown(io->io_ssl) & SSL_RECEIVED_SHUTDOWN;
	}
	else if (errno == EINTR)
		errno = EAGAIN;
	return n;
}

ssize_t
io_take(struct io *io, void *buf, size_t len)
{
	if (io->io_eof || io_may_take())
		return io_read(io, buf, len);
	io_hold(io);
	errno = EAGAIN;
	return -1;
}

static void
io_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct io	*io = arg;

	(void)fd, (void)what;
	if (io->io_broken)
		return;
	io->io_drained = false;
	if (io->io_handshake)
		io_shake_hands(io);
	else
		io->io_ops->on_read(io);
}

static void
io_on_next_turn(evutil_socket_t fd, short what, void *arg)
{
	struct io	*io;

	(void)fd, (void)what, (void)arg;
	while ((io = TAILQ_FIRST(&later)) != NULL) {
		TAILQ_REMOVE(&later, io, io_later);
		io->io_more = false;
		if (!io->io_paused)
			event_active(&io->io_rev, EV_READ, 1);
	}
}

/* A timer, as what is made active now would come before any other event. */
void
io_again(struct io *io)
{
	static const struct timeval	 at_once;

	if (io->io_more || io->io_broken)
		return;
	if (TAILQ_EMPTY(&later))
		event_add(&next_turn, &at_once);
	io->io_more = true;
	TAILQ_INSERT_TAIL(&later, io, io_later);
}

/* ---- writing ------------------------------------------------------------- */

size_t
io_room(const struct io *io)
{
	return IO_OUT_SIZE - io->io_outlen;
}

size_t
io_waiting(const struct io *io)
{
	return io->io_outlen + io->io_sealedlen;
}

bool
io_empty(const struct io *io)
{
	return io_waiting(io) == 0;
}

/* One allocation while there is something to send, none while idle. */
void *
io_reserve(struct io *io, size_t *len)
{
	if (io->io_out == NULL &&
	    (io->io_out = blocks_get(&io_blocks)) == NULL) {
		*len = 0;
		return NULL;
	}
	if (io->io_outpos > 0 &&
	    IO_OUT_SIZE - io->io_outpos - io->io_outlen < IO_OUT_SIZE / 2) {
		memmove(io->io_out, io->io_out + io->io_outpos, io->io_outlen);
		io->io_outpos = 0;
	}
	*len = IO_OUT_SIZE - io->io_outpos - io->io_outlen;
	return io->io_out + io->io_outpos + io->io_outlen;
}

void
io_commit(struct io *io, size_t len)
{
	io->io_outlen += len;
	if (io_waiting(io) > IO_OUT_LOW)
		io->io_full = true;
}

void *
io_tail(struct io *io, size_t len)
{
	/* After a record did not fit, waiting bytes are already sealed. */
	if (io->io_sealed != NULL || len > io->io_outlen)
		return NULL;
	return io->io_out + io->io_outpos + io->io_outlen - len;
}

#define CHUNK_HEAD	6	/* "4000\r\n" */
#define CHUNK_ROOM	(CHUNK_HEAD + 2)
#define CHUNK_LEN_MAX	0xffff

void *
io_reserve_chunk(struct io *io, size_t *len)
{
	unsigned char	*p;

	if ((p = io_reserve(io, len)) == NULL || *len <= CHUNK_ROOM) {
		*len = 0;
		return NULL;
	}
	*len -= CHUNK_ROOM;
	if (*len > CHUNK_LEN_MAX)
		*len = CHUNK_LEN_MAX;
	return p + CHUNK_HEAD;
}

void
io_commit_chunk(struct io *io, size_t len)
{
	unsigned char	*p;
	char		 head[CHUNK_HEAD + 1];
	size_t		 room;

	p = io_reserve(io, &room);
	snprintf(head, sizeof(head), "%04zx\r\n", len);
	memcpy(p, head, CHUNK_HEAD);
	memcpy(p + CHUNK_HEAD + len, "\r\n", 2);
	io_commit(io, len + CHUNK_ROOM);
}

/* io_reserve() leaves half of the buffer, or all that does not wait. */
_Static_assert(IO_END_ROOM < IO_OUT_SIZE / 2 &&
    IO_END_ROOM < IO_OUT_SIZE - IO_OUT_BATCH, "room for the end of a body");

void *
io_reserve_body(struct io *io, bool chunked, size_t *len)
{
	void	*p;

	if (io_waiting(io) > IO_OUT_BATCH)
		return NULL;
	p = chunked ? io_reserve_chunk(io, len) : io_reserve(io, len);
	if (p != NULL)
		*len -= IO_END_ROOM;
	return p;
}

void
io_commit_body(struct io *io, bool chunked, size_t len)
{
	if (chunked)
		io_commit_chunk(io, len);
	else
		io_commit(io, len);
	if (io->io_outlen > IO_OUT_BATCH)
		io_push(io);
}

void
io_put(struct io *io, const void *data, size_t len)
{
	size_t	 room;
	void	*p;

	if ((p = io_reserve(io, &room)) == NULL || room < len) {
		io_break(io, "more to send than fits");
		return;
	}
	memcpy(p, data, len);
	io_commit(io, len);
}

void
io_sent(struct io *io, size_t len)
{
	io->io_outpos += len;
	io->io_outlen -= len;
	io->io_out_total += len;
}

/* 1: all went, 0: the socket is full, -1: broken. */
static int
io_send_clear(struct io *io)
{
	ssize_t	 n;

	while (io->io_outlen > 0) {
		n = send(io->io_fd, io->io_out + io->io_outpos, io->io_outlen,
		    MSG_NOSIGNAL);
		if (n == -1)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		io_sent(io, n);
	}
	return 1;
}

/* Write as much as the socket takes. */
static void
io_send(struct io *io)
{
	if (io->io_broken || io->io_handshake)
		return;
	switch (io->io_ssl != NULL ? io_send_tls(io) : io_send_clear(io)) {
	case -1:
		io_break(io, "connection reset");
		return;
	case 0:
		event_add(&io->io_wev, NULL);
		break;
	default:
		io->io_full = false;
	}
	if (io->io_outlen == 0) {
		blocks_put(&io_blocks, io->io_out);
		io->io_out = NULL;
		io->io_outpos = 0;
	}
}

/* Send, then tell an owner that waits for room. */
static void
io_send_and_tell(struct io *io)
{
	bool	 full = io->io_full;

	io_send(io);
	if (io->io_broken)
		return;
	if (io_waiting(io) <= IO_OUT_LOW)
		io->io_full = false;
	if ((full && !io->io_full) || (io->io_ending && io_empty(io)))
		io->io_ops->on_drain(io);
}

/*
 * Everything that was readable has been read.  What the recorder must know
 * goes out before any byte that it is about: whatever happens to us after
 * that, no request has left that is not in its hands (promise P6).
 */
static void
io_on_turn(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval	 again = { 0, BARRIER_MS * 1000 };
	struct io			*io;

	(void)fd, (void)what, (void)arg;
	if (!io_barrier()) {
		event_add(&turn, &again);
		return;
	}
	while ((io = TAILQ_FIRST(&dirty)) != NULL) {
		TAILQ_REMOVE(&dirty, io, io_entry);
		io->io_dirty = false;
		io_send_and_tell(io);
	}
}

/*
 * A timer, so that what has come meanwhile is read first: what is to be sent
 * for that goes with this, and a peer is woken once for many.
 */
void
io_flush(struct io *io)
{
	static const struct timeval	 at_once;

	if (io->io_dirty || io->io_broken || io_empty(io))
		return;
	if (TAILQ_EMPTY(&dirty))
		event_add(&turn, &at_once);
	io->io_dirty = true;
	TAILQ_INSERT_TAIL(&dirty, io, io_entry);
}

void
io_push(struct io *io)
{
	if (io_barrier())
		io_send(io);
	else
		io_flush(io);
}

static void
io_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct io	*io = arg;

	(void)fd, (void)what;
	if (io->io_broken)
		io_tell(io);
	else if (io->io_handshake)
		io_shake_hands(io);
	else if (io_barrier())
		io_send_and_tell(io);
	else
		io_flush(io);
}

void
io_finish(struct io *io)
{
	if (io->io_broken)
		return;
	if (io->io_ssl != NULL && !io->io_handshake) {
		SSL_shutdown(io->io_ssl);
		ERR_clear_error();
	}
	shutdown(io->io_fd, SHUT_WR);
}
