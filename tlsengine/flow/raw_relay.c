/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: the bytes of a connection that is forwarded unread, and
 * its end.  Client and origin end their halves each on their own; what one of
 * them has said before it ended reaches the other.
 */

#include <sys/socket.h>

#include <errno.h>

#include "conn.h"
#include "tlsengine.h"
#include "upstream.h"

#define GOODBYE_MAX	64	/* bytes, of an alert in TLS */
#define PART_MS		1000	/* for a client to end whose origin has reset */

static struct io *
client_io(const struct raw *rw)
{
	return &rw->rw_flow.fl_conn->cn_io;
}

static struct io *
origin_io(const struct raw *rw)
{
	return &rw->rw_flow.fl_up->up_io;
}

static void
origin_flush(struct raw *rw)
{
	timer_set(&rw->rw_flow.fl_up->up_timer, settings.st_tunnel_ms);
	io_flush(origin_io(rw));
}

bool
raw_connected(struct flow *fl, struct upstream *up)
{
	static const struct h1_str	 none = { NULL, 0 };
	struct conn			*cn = fl->fl_conn;

	fl->fl_up = up;
	fl->fl_state = FLOW_FORWARD;
	up->up_state = UP_RAW;
	up->up_raw = cn->cn_raw;
	timer_set(&up->up_timer, settings.st_tunnel_ms);
	report_answer(fl, 0, &none);
	conn_relay_begin(cn, CONN_RAW);
	return true;
}

/* End if both sides have ended and the origin has all; else true. */
static bool
raw_goes_on(struct raw *rw)
{
	if (!rw->rw_client_end || !rw->rw_origin_end ||
	    !io_empty(origin_io(rw)))
		return true;
	return raw_end(rw, RAW_CLOSED, NULL);
}

/* ---- a side that is gone ------------------------------------------------- */

/*
 * Each end of TLS has an alert for the other, which many close without reading;
 * that makes a reset, which overtakes what is under way.  So do PostgreSQL and
 * its clients.  Bytes of that length are no loss to a peer that is gone.
 */
static bool
is_goodbye(size_t len)
{
	return len <= GOODBYE_MAX;
}

/*
 * A client whose origin was lost has ended, has more to say or is late; false
 * if that is the end.
 */
static bool
raw_parted(struct raw *rw, bool late)
{
	char	 last[GOODBYE_MAX + 1];
	ssize_t	 n;

	while ((n = conn_take(rw->rw_flow.fl_conn, last, sizeof(last))) > 0 &&
	    is_goodbye(rw->rw_untold += n))
		continue;
	if (n == 0 || (n == -1 && errno != EAGAIN))
		return raw_end(rw, RAW_CLOSED, NULL);
	if (n > 0 || late)
		return raw_end(rw, rw->rw_lost, NULL);
	return true;
}

/*
 * The origin's side is gone.  Whoever has ended and had all passed on has lost
 * nothing.  The reset may overtake the client's own end, which is therefore
 * waited for.  Once broken, the origin is not read again.
 */
bool
raw_origin_lost(struct raw *rw, enum raw_cause how)
{
	struct io	*io = origin_io(rw);

	if (rw->rw_lost != RAW_UNDER_WAY)
		return true;
	rw->rw_lost = how;
	rw->rw_untold = io_waiting(io);
	if (rw->rw_origin_end ||
	    (rw->rw_client_end && is_goodbye(rw->rw_untold)))
		return raw_end(rw, RAW_CLOSED, NULL);
	if (!is_goodbye(rw->rw_untold) || rw->rw_flow.fl_request_body == 0)
		return raw_end(rw, how, NULL);
	if (!raw_parted(rw, false))
		return false;
	io_break(io, "lost");
	timer_clear(&rw->rw_flow.fl_up->up_timer);
	timer_set(&rw->rw_flow.fl_conn->cn_timer, PART_MS);
	io_resume(client_io(rw));
	return true;
}

/* A client that resets when all was passed on has lost nothing. */
bool
raw_nothing_left(const struct raw *rw)
{
	char	 last[GOODBYE_MAX + 1];
	size_t	 left;
	ssize_t	 n = 0;

	if (rw->rw_flow.fl_state != FLOW_FORWARD)
		return false;
	if (!rw->rw_origin_end)
		n = recv(origin_io(rw)->io_fd, last, sizeof(last),
		    MSG_PEEK | MSG_DONTWAIT);
	left = io_waiting(client_io(rw)) + (n > 0 ? n : 0);
	return is_goodbye(left) && is_goodbye(io_waiting(origin_io(rw)));
}

/* ---- from the client ----------------------------------------------------- */

/* The client will say no more; the origin still may. */
static bool
client_ended(struct raw *rw)
{
	struct io	*io = origin_io(rw);

	io_pause(client_io(rw));
	rw->rw_client_end = true;
	if (io_empty(io))
		io_finish(io);
	else
		io->io_ending = true;
	return raw_goes_on(rw);
}

/* Relay one turn's share; false if the connection has ended. */
static bool
client_relay(struct raw *rw)
{
	struct conn	*cn = rw->rw_flow.fl_conn;
	size_t		 room;
	ssize_t		 n = 1;
	bool		 reset;
	void		*p;
	int		 i;

	timer_set(&cn->cn_timer, settings.st_tunnel_ms);
	for (i = 0; i < IO_SHARE; i++) {
		p = io_reserve_body(origin_io(rw), false, &room);
		if (p == NULL) {
			io_pause(&cn->cn_io);
			break;
		}
		if ((n = conn_take(cn, p, room)) <= 0)
			break;
		if (!flow_send(&rw->rw_flow, n))
			return raw_end(rw, RAW_QUOTA, NULL);
		io_commit_body(origin_io(rw), false, n);
	}
	reset = n == -1 && errno != EAGAIN;
	if (i == IO_SHARE)
		io_again(&cn->cn_io);
	conn_unbuffer(cn);
	if (reset) {
		raw_client_gone_end(rw, RAW_CLIENT_RESET);
		conn_free(cn);
		return false;
	}
	origin_flush(rw);
	return n != 0 || client_ended(rw);
}

bool
raw_read_client(struct raw *rw)
{
	return rw->rw_lost != RAW_UNDER_WAY ? raw_parted(rw, false) :
	    client_relay(rw);
}

void
raw_client_late_end(struct raw *rw)
{
	struct conn	*cn = rw->rw_flow.fl_conn;

	if (rw->rw_lost != RAW_UNDER_WAY) {
		raw_parted(rw, true);
		return;
	}
	raw_client_gone_end(rw, RAW_CLIENT_IDLE);
	conn_free(cn);
}

/* The origin has taken what waited for it. */
bool
raw_origin_drained(struct raw *rw)
{
	if (!rw->rw_client_end) {
		io_resume(client_io(rw));
		return true;
	}
	if (io_empty(origin_io(rw)))
		io_finish(origin_io(rw));
	return raw_goes_on(rw);
}

/*
 * The session ends.  If the client has ended and the origin has all that it
 * sent, nothing is lost.
 */
bool
raw_finish(struct raw *rw)
{
	if (rw->rw_lost != RAW_UNDER_WAY ? !raw_parted(rw, true) :
	    !rw->rw_client_end && !client_relay(rw))
		return false;
	io_push(origin_io(rw));
	if (rw->rw_client_end && io_empty(origin_io(rw)))
		return raw_end(rw, RAW_CLOSED, NULL);
	return true;
}

/* ---- from the origin ----------------------------------------------------- */

/* The origin will say no more; the client still may. */
static bool
origin_ended(struct raw *rw)
{
	struct io	*io = client_io(rw);

	rw->rw_origin_end = true;
	io_pause(origin_io(rw));
	io->io_ending = true;
	io_flush(io);
	if (io_empty(io))
		io_finish(io);
	return raw_goes_on(rw);
}

bool
raw_read_origin(struct raw *rw)
{
	struct io	*from = origin_io(rw), *to = client_io(rw);
	size_t		 room;
	ssize_t		 n = 1;
	void		*p;
	int		 i;

	for (i = 0; i < IO_SHARE; i++) {
		if (to->io_full || (p = io_reserve(to, &room)) == NULL) {
			io_pause(from);
			break;
		}
		if ((n = io_take(from, p, room)) <= 0)
			break;
		rw->rw_flow.fl_answer_body += n;
		io_commit(to, n);
		if (to->io_full)
			io_push(to);
	}
	if (n == 0)
		return origin_ended(rw);
	if (n == -1 && errno != EAGAIN)
		return raw_origin_lost(rw, RAW_ORIGIN_RESET);
	if (i == IO_SHARE)
		io_again(from);
	timer_set(&rw->rw_flow.fl_up->up_timer, settings.st_tunnel_ms);
	timer_set(&rw->rw_flow.fl_conn->cn_timer, settings.st_tunnel_ms);
	io_flush(to);
	return true;
}

/* The client has taken what waited for it. */
void
raw_client_drained(struct raw *rw)
{
	if (!rw->rw_origin_end)
		io_resume(origin_io(rw));
	else if (io_empty(client_io(rw)))
		io_finish(client_io(rw));
}
