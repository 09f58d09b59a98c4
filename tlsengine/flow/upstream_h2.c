/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: an origin that speaks HTTP/2, and serves many exchanges
 * over one connection.  It is as hostile as any other: what it says about the
 * length of an answer is held against it (hs_left), for the client may speak
 * HTTP/1, where a longer one would be taken for the next answer.
 */

#include <string.h>

#include "http/h2.h"
#include "log.h"
#include "tlsengine.h"
#include "upstream.h"

static struct h2_nv	 nv;

/* ---- the connection ------------------------------------------------------ */

static void	 on_head(struct h2_stream *, struct h2_head *, bool);
static size_t	 on_data(struct h2_stream *, const void *, size_t);
static void	 on_end(struct h2_stream *);
static void	 on_room(struct h2_stream *);
static void	 on_late(struct h2_stream *);
static void	 on_reset(struct h2_stream *, uint32_t);
static void	 on_settings(struct h2 *);
static void	 on_goaway(struct h2 *);
static void	 on_broken(struct h2 *, const char *);

static const struct h2_ops up_h2_ops = {
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_room = on_room,
	.on_late = on_late,
	.on_reset = on_reset,
	.on_settings = on_settings,
	.on_goaway = on_goaway,
	.on_broken = on_broken,
};

int
upstream_h2_new(struct upstream *up)
{
	if ((up->up_h2 = h2_new(&up->up_io, false, &up_h2_ops, up)) == NULL)
		return -1;
	up->up_ops = &origin_h2;
	upstream_opening(up);
	return 0;
}

/* HTTP/2 carries no upgrade but WebSocket (RFC 8441). */
bool
upstream_h2_serves(const struct upstream *up, const struct exchange *ex)
{
	const struct h1_str	*upgrade = &ex->ex_request.hd_upgrade;

	return h2_has_room(up->up_h2) && (upgrade->s == NULL ||
	    (websocket_wanted(upgrade) && up->up_h2->h2_peer_connect));
}

/* An exchange has left; without any the connection idles or ends. */
void
upstream_h2_rest(struct upstream *up)
{
	if (up->up_using > 0 || !TAILQ_EMPTY(&up->up_waiters))
		return;
	if (up->up_state == UP_SHARED)
		upstream_keep(up);
	else
		upstream_free(up);
}

static struct h2_stream *
next_to_lose(struct h2 *h2)
{
	struct h2_stream	*hs;

	TAILQ_FOREACH(hs, &h2->h2_streams, hs_entry)
		if (hs->hs_ex != NULL && !(hs->hs_ended && hs->hs_in_end))
			return hs;
	return NULL;
}

/* The connection is lost; only complete answers are still delivered. */
void
upstream_h2_lost(struct upstream *up, const char *why)
{
	struct h2_stream	*hs;

	upstream_retire(up);
	io_pause(&up->up_io);
	upstream_disband(up, NULL);
	/* Held, or the last exchange would free up inside the loop. */
	up->up_using++;
	while ((hs = next_to_lose(up->up_h2)) != NULL)
		exchange_up_lost(hs->hs_ex, why);
	up->up_using--;
	upstream_h2_rest(up);
}

/* A timeout, or on_broken() has found the connection lost. */
void
upstream_h2_late(struct upstream *up)
{
	upstream_h2_lost(up, up->up_why != NULL ? up->up_why :
	    REASON_UPSTREAM_UNREACHABLE ": no handshake in time");
}

/*
 * The connection is lost, perhaps noticed in the middle of a call by some
 * exchange, which must not end there: exchanges are told in another turn.
 */
static void
on_broken(struct h2 *h2, const char *why)
{
	struct upstream	*up = h2->h2_owner;

	if (up->up_why != NULL)
		return;
	log_debug("origin %s: %s", up->up_place.pc_host, why);
	up->up_why = REASON_STREAM_BROKEN;
	io_pause(&up->up_io);
	upstream_retire(up);
	timer_set(&up->up_timer, 0);
}

/* The settings say how many of the waiting flows may begin. */
static void
on_settings(struct h2 *h2)
{
	struct upstream	*up = h2->h2_owner;
	struct flow	*fl;

	if (up->up_settled)
		return;
	up->up_settled = true;
	timer_clear(&up->up_timer);
	if (up->up_list != NULL)
		upstream_share(up);
	/* Held, or the last exchange would free up inside the loop. */
	up->up_using++;
	while (up->up_state == UP_SHARED && h2_has_room(h2) &&
	    (fl = TAILQ_FIRST(&up->up_waiters)) != NULL &&
	    fl->fl_ruling.rl_rule == up->up_rule) {
		TAILQ_REMOVE(&up->up_waiters, fl, fl_waits);
		up->up_reused = true;
		fl->fl_ops->connected(fl, up);
	}
	upstream_disband(up, NULL);
	up->up_using--;
	upstream_h2_rest(up);
}

/* Streams the origin took are finished; the rest get on_reset(). */
static void
on_goaway(struct h2 *h2)
{
	struct upstream	*up = h2->h2_owner;

	upstream_retire(up);
	upstream_disband(up, NULL);
	upstream_h2_rest(up);
}

/* ---- the request --------------------------------------------------------- */

/* The next sign of life is due within this time. */
static void
set_deadline(struct exchange *ex)
{
	h2_deadline(ex->ex_answers, ex->ex_upgraded ?
	    settings.st_tunnel_ms : ex->ex_answered ? settings.st_idle_ms :
	    settings.st_response_ms);
}

/* An origin that leaves a request unanswered gets no others. */
static void
on_late(struct h2_stream *hs)
{
	struct exchange	*ex = hs->hs_ex;

	if (ex == NULL)
		return;
	if (!ex->ex_answered)
		upstream_retire(ex->ex_up);
	exchange_up_lost(ex, ex->ex_answered ? REASON_STREAM_BROKEN :
	    REASON_UPSTREAM_UNREACHABLE ": no answer in time");
}

static int
put_head(const struct h1_out_request *or, const char *scheme)
{
	static struct h1_field	 fields[H1_FIELDS_MAX];
	struct h1_out_request	 ws = *or;

	if (or->or_upgrade.s == NULL)
		return h2_nv_request(&nv, or, scheme, 0);
	ws.or_fields = fields;
	ws.or_nfields = websocket_without_key(fields, or->or_fields,
	    or->or_nfields);
	return h2_nv_request(&nv, &ws, scheme, 1);
}

static int
up_request(struct exchange *ex, const struct h1_out_request *or)
{
	struct upstream		*up = ex->ex_up;
	struct h2_stream	*hs;

	up->up_using++;
	if (put_head(or, url_scheme_name(ex->ex_place.pc_scheme)) == -1 ||
	    (hs = h2_open(up->up_h2, &nv, or->or_framing == H1_NONE &&
	    or->or_upgrade.s == NULL)) == NULL)
		return -1;
	hs->hs_ex = ex;
	ex->ex_answers = hs;
	ex->ex_in_before = ex->ex_out_before = 0;
	set_deadline(ex);
	return 0;
}

static void *
up_reserve(struct exchange *ex, size_t *room)
{
	return h2_reserve(ex->ex_answers, room);
}

/* A stream outlives its exchange until all calls are done. */
static bool
up_commit(struct exchange *ex, size_t len)
{
	struct h2_stream	*hs = ex->ex_answers;

	h2_commit(hs, len);
	return hs->hs_ex != NULL;
}

static void
up_flush(struct exchange *ex)
{
	set_deadline(ex);
	h2_send(ex->ex_answers->hs_h2);
}

/* A request for a tunnel is not the end of what is sent. */
static void
up_finish(struct exchange *ex, const struct trailers *tr)
{
	struct h2_stream	*hs = ex->ex_answers;

	if (!hs->hs_out_end &&
	    (ex->ex_request.hd_upgrade.s == NULL || ex->ex_upgraded))
		h2_end(hs, tr);
	up_flush(ex);
}

static bool
up_go(struct exchange *ex)
{
	struct h2_stream	*hs = ex->ex_answers;

	h2_pump(hs);
	return hs->hs_ex != NULL;
}

static void
up_tally(struct exchange *ex)
{
	const struct h2_stream	*hs = ex->ex_answers;

	if (hs == NULL)
		return;
	ex->ex_bytes_in += hs->hs_bytes_in - ex->ex_in_before;
	ex->ex_bytes_out += hs->hs_bytes_out - ex->ex_out_before;
	ex->ex_in_before = hs->hs_bytes_in;
	ex->ex_out_before = hs->hs_bytes_out;
}

/* Whether both directions are complete, and all of ours is sent. */
static bool
is_whole(const struct h2_stream *hs)
{
	return hs->hs_in_told && hs->hs_out_end && hs->hs_outlen == 0;
}

static void
up_leave(struct exchange *ex, struct upstream *up, bool fit)
{
	struct h2_stream	*hs = ex->ex_answers;

	(void)fit;
	ex->ex_answers = NULL;
	up->up_using--;
	if (hs != NULL) {
		hs->hs_ex = NULL;
		h2_deadline(hs, 0);
		if (is_whole(hs))
			h2_done(hs);
		else
			h2_reset(hs, H2_CANCEL);
	}
	upstream_h2_rest(up);
}

const struct origin_ops origin_h2 = {
	.request = up_request,
	.reserve = up_reserve,
	.commit = up_commit,
	.flush = up_flush,
	.finish = up_finish,
	.go = up_go,
	.tally = up_tally,
	.leave = up_leave,
};

/* ---- the answer ---------------------------------------------------------- */

/* Fields as the origin sent them, without those added for HTTP/1. */
static struct h1_str
fields_of(const struct h2_head *hh, size_t len, const struct h1_head *hd)
{
	const char	*end = hh->hh_buf + len;

	if (hd->hd_nfields == 0 || hd->hd_fields[0].hf_name >= end)
		return (struct h1_str){ NULL, 0 };
	return (struct h1_str){ hd->hd_fields[0].hf_name,
	    end - hd->hd_fields[0].hf_name - strlen("\r\n") };
}

static void
final_head(struct h2_stream *hs, struct h1_head *hd,
    const struct h1_str *fields)
{
	struct exchange	*ex = hs->hs_ex;
	char		 proof[WEBSOCKET_ACCEPT + 1];

	hs->hs_headed = true;
	hs->hs_left = hd->hd_status == 101 || hd->hd_framing == H1_CHUNKED ?
	    H2_LEFT_OPEN : hd->hd_framing == H1_LENGTH ? hd->hd_length : 0;
	if (hd->hd_status == 101 && ex->ex_asks == NULL &&
	    websocket_prove(hd, &ex->ex_request, proof) == -1) {
		exchange_up_lost(ex, REASON_STREAM_BROKEN);
		return;
	}
	if (!exchange_answer_head(ex, hd, fields))
		return;
	set_deadline(ex);
	ex->ex_client->flush(ex);
}

static void
on_head(struct h2_stream *hs, struct h2_head *hh, bool end)
{
	static struct h1_head	 head;
	struct exchange		*ex = hs->hs_ex;
	struct h1_str		 fields;
	struct h1_error		 he;
	size_t			 len = hh->hh_len;

	if (ex == NULL)
		return;
	ex->ex_heard = true;
	if (h2_head_response(hh, end, ex->ex_request.hd_method,
	    ex->ex_request.hd_upgrade.s != NULL, &head, &he) == -1) {
		exchange_up_lost(ex, REASON_STREAM_BROKEN);
		return;
	}
	if (head.hd_status >= 200 || head.hd_status == 101) {
		fields = fields_of(hh, len, &head);
		final_head(hs, &head, &fields);
	} else if (++hs->hs_interim > INTERIM_MAX)
		exchange_up_lost(ex, REASON_STREAM_BROKEN);
	else
		exchange_interim(ex, &head);
}

static size_t
on_data(struct h2_stream *hs, const void *data, size_t len)
{
	struct exchange	*ex = hs->hs_ex;
	size_t		 room;
	void		*p;

	if (!hs->hs_headed) {
		exchange_up_lost(ex, REASON_STREAM_BROKEN);
		return len;
	}
	if ((p = ex->ex_client->reserve(ex, &room)) == NULL)
		return 0;
	if (len > room)
		len = room;
	memcpy(p, data, len);
	exchange_answer_data(ex, p, len);
	set_deadline(ex);
	if (ex->ex_client->commit(ex, len))
		ex->ex_client->flush(ex);
	return len;
}

static void
on_end(struct h2_stream *hs)
{
	struct exchange	*ex = hs->hs_ex;

	if (!hs->hs_headed)
		exchange_up_lost(ex, REASON_STREAM_BROKEN);
	else
		exchange_answer_end(ex, h2_trailers(hs));
}

static void
on_room(struct h2_stream *hs)
{
	hs->hs_ex->ex_client->go(hs->hs_ex);
}

/* The origin reset the stream: send nothing more on it. */
static void
on_reset(struct h2_stream *hs, uint32_t code)
{
	struct exchange	*ex = hs->hs_ex;

	up_tally(ex);
	ex->ex_answers = NULL;
	hs->hs_ex = NULL;
	if (code == H2_REFUSED_STREAM) {
		exchange_up_refused(ex);
		return;
	}
	ex->ex_heard = true;
	exchange_up_lost(ex, REASON_STREAM_BROKEN);
}
