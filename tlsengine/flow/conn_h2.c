/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: a client that speaks HTTP/2.  Every stream is a request
 * with a verdict of its own, and every one must name the host that the
 * connection was settled on: another :authority is refused with 421, which
 * tells an honest client to open a connection for it (RFC 9110, 15.5.20).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "http/h2.h"
#include "log.h"
#include "tlsengine.h"

static struct h2_nv	 nv;

/* ---- the connection ------------------------------------------------------ */

/* A head must be complete in time; an idle connection ends. */
static void
conn_h2_timer(struct conn *cn)
{
	struct h2	*h2 = cn->cn_h2;

	if (h2_in_head(h2)) {
		if (!cn->cn_begun)
			timer_set(&cn->cn_timer, settings.st_head_ms);
		cn->cn_begun = true;
		return;
	}
	cn->cn_begun = false;
	timer_set(&cn->cn_timer, settings.st_idle_ms);
}

/* The client is silent: requests that lack their body are reset. */
void
conn_h2_late(struct conn *cn)
{
	struct h2		*h2 = cn->cn_h2;
	struct h2_stream	*hs, *next;

	if (h2_in_head(h2) || h2->h2_nstreams == 0) {
		h2_goodbye(h2, H2_NO_ERROR);
		conn_gone(cn);
		conn_last(cn);
		return;
	}
	h2->h2_inside = true;
	TAILQ_FOREACH_SAFE(hs, &h2->h2_streams, hs_entry, next)
		if (hs->hs_ex == NULL || (!hs->hs_in_end &&
		    !hs->hs_ex->ex_upgraded))
			h2_reset(hs, H2_CANCEL);
	h2->h2_inside = false;
	conn_h2_timer(cn);
	h2_send(h2);
}

void
conn_h2_read(struct conn *cn)
{
	if (h2_read(cn->cn_h2))
		conn_h2_timer(cn);
}

/* The client's side is gone, and all its requests with it. */
void
conn_h2_gone(struct conn *cn)
{
	struct h2		*h2 = cn->cn_h2;
	struct h2_stream	*hs;
	struct exchange		*ex;

	h2->h2_inside = true;
	for (;;) {
		/* Ending one may end others: start over. */
		TAILQ_FOREACH(hs, &h2->h2_streams, hs_entry)
			if (hs->hs_ex != NULL)
				break;
		if (hs == NULL)
			break;
		ex = hs->hs_ex;
		hs->hs_ex = NULL;
		exchange_client_gone_end(ex, REASON_STREAM_BROKEN);
	}
	h2_close(h2);
}

/* A new generation is in force: ask again for all streams. */
void
conn_h2_recheck(struct conn *cn)
{
	struct h2_stream	*hs, *next;

	TAILQ_FOREACH_SAFE(hs, &cn->cn_h2->h2_streams, hs_entry, next)
		if (hs->hs_ex != NULL)
			exchange_ask_again(&hs->hs_ex->ex_flow);
}

static void
on_broken(struct h2 *h2, const char *why)
{
	struct conn	*cn = h2->h2_owner;

	log_debug("client of %s: %s", cn->cn_place.pc_host, why);
	if (h2->h2_abused)
		conn_report(cn, RECORD_CONNECTION_REFUSED, PROTOCOL_H2,
		    REASON_QUOTA);
	else if (cn->cn_requests == 0)
		conn_report(cn, RECORD_REQUEST_FAILED, PROTOCOL_H2,
		    cn->cn_io.io_eof ? REASON_STREAM_BROKEN :
		    REASON_BAD_REQUEST);
	conn_gone(cn);
	conn_last(cn);
}

static void
on_settings(struct h2 *h2)
{
	(void)h2;
}

static void
on_goaway(struct h2 *h2)
{
	(void)h2;
}

/* A stream beyond the limit was not read, but is recorded. */
static void
on_refused(struct h2 *h2)
{
	conn_report(h2->h2_owner, RECORD_REQUEST_DENIED, PROTOCOL_H2,
	    REASON_QUOTA);
}

/* ---- requests ------------------------------------------------------------ */

/* An unreadable request costs its stream, not the connection. */
static void
stream_bad(struct h2_stream *hs, const struct h1_error *he)
{
	struct conn		*cn = hs->hs_h2->h2_owner;
	static const char	 decision[] = "refuse, bad_request";
	struct h1_field		 extra = { "egress-decision", 15, decision,
	    sizeof(decision) - 1, 0, 0 };
	struct h1_out_response	 os = {
		.os_status = he->he_status, .os_framing = H1_NONE,
		.os_extra = &extra, .os_nextra = 1
	};

	conn_report(cn, RECORD_REQUEST_DENIED, PROTOCOL_H2, REASON_BAD_REQUEST);
	h2_annoyed(hs->hs_h2);
	if (h2_nv_response(&nv, &os) == -1 ||
	    h2_respond(hs, &nv, true) == -1)
		h2_reset(hs, H2_PROTOCOL_ERROR);
}

/* :scheme must be that of the connection (RFC 9113, 8.3.1). */
static int
stream_head(struct h2_stream *hs, struct h2_head *hh, bool end,
    struct exchange *ex, struct h1_error *he)
{
	const struct conn	*cn = hs->hs_h2->h2_owner;

	if (h2_head_request(hh, end, &ex->ex_request, he) == -1)
		return -1;
	if (hh->hh_scheme == NULL || strcmp(hh->hh_scheme,
	    url_scheme_name(cn->cn_place.pc_scheme)) != 0) {
		he->he_status = hh->hh_scheme == NULL ? 405 : 400;
		return -1;
	}
	he->he_status = 503;
	return h2_keep_head(hs, hh, &ex->ex_request);
}

static void
on_head(struct h2_stream *hs, struct h2_head *hh, bool end)
{
	struct conn	*cn = hs->hs_h2->h2_owner;
	struct h1_error	 he = { 0, NULL };
	const char	*mismatch;
	struct exchange	*ex;

	cn->cn_requests++;
	hs->hs_headed = true;
	if ((ex = exchange_new(&client_h2, cn)) == NULL) {
		on_refused(hs->hs_h2);
		h2_reset(hs, H2_REFUSED_STREAM);
		return;
	}
	ex->ex_protocol = PROTOCOL_H2;
	if (stream_head(hs, hh, end, ex, &he) == -1 ||
	    conn_sane(cn, &ex->ex_request, &he) == -1 ||
	    conn_place(cn, &ex->ex_request, &ex->ex_place, &mismatch,
	    &he) == -1 || exchange_path(ex, &he) == -1) {
		exchange_free(ex);
		stream_bad(hs, &he);
		return;
	}
	if (ex->ex_request.hd_framing == H1_LENGTH)
		hs->hs_left = ex->ex_request.hd_length;
	hs->hs_ex = ex;
	ex->ex_asks = hs;
	exchange_open(ex, mismatch);
}

/*
 * Whether the origin is there and takes a body.  What is meant for a tunnel
 * waits until there is one: an origin that does not open it would read those
 * bytes as the next request, which nobody has judged.
 */
static bool
is_open(const struct exchange *ex)
{
	return ex->ex_origin != NULL &&
	    (ex->ex_request.hd_upgrade.s == NULL || ex->ex_upgraded);
}

/* Returns 0 while the origin is not there or full: bytes wait. */
static size_t
on_data(struct h2_stream *hs, const void *data, size_t len)
{
	struct exchange	*ex = hs->hs_ex;
	size_t		 room;
	void		*p;

	if (!is_open(ex) || (p = ex->ex_origin->reserve(ex, &room)) == NULL)
		return 0;
	if (len > room)
		len = room;
	if (!exchange_request_data(ex, data, len))
		return 0;
	memcpy(p, data, len);
	if (ex->ex_origin->commit(ex, len))
		ex->ex_origin->flush(ex);
	return len;
}

static void
on_end(struct h2_stream *hs)
{
	struct exchange	*ex = hs->hs_ex;

	if (!is_open(ex))
		hs->hs_in_told = false;
	else
		exchange_request_finish(ex, h2_trailers(hs));
}

static void
on_room(struct h2_stream *hs)
{
	exchange_client_room(hs->hs_ex);
}

static void
on_reset(struct h2_stream *hs, uint32_t code)
{
	struct exchange	*ex = hs->hs_ex;

	(void)code;
	hs->hs_ex = NULL;
	exchange_client_gone_end(ex, REASON_STREAM_BROKEN);
}

static const struct h2_ops conn_h2_ops = {
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_room = on_room,
	.on_reset = on_reset,
	.on_refused = on_refused,
	.on_settings = on_settings,
	.on_goaway = on_goaway,
	.on_broken = on_broken,
};

/* ---- the answer ---------------------------------------------------------- */

/* Whether the head is all of it (RFC 9110, 6.4.1). */
static bool
has_no_body(const struct exchange *ex, const struct h1_out_response *os)
{
	return os->os_status == 204 || os->os_status == 304 ||
	    ex->ex_request.hd_method == H1_HEAD ||
	    os->os_framing == H1_NONE ||
	    (os->os_framing == H1_LENGTH && os->os_length == 0);
}

static int
client_answer(struct exchange *ex, struct h1_out_response *os)
{
	struct h2_stream	*hs = ex->ex_asks;
	bool			 end;

	/* A 100 is useless once the body is complete. */
	if (os->os_status == 100 && hs->hs_in_end)
		return 0;
	/* Drop interim answers for a client that does not read. */
	if (os->os_status > 101 && os->os_status < 200 &&
	    hs->hs_h2->h2_queuelen > 0)
		return 0;
	/* A 2xx would mean that the tunnel is open (RFC 8441, 5). */
	if (ex->ex_request.hd_upgrade.s != NULL && os->os_status / 100 == 2)
		return -1;
	end = os->os_status != 101 && has_no_body(ex, os);
	if (h2_nv_response(&nv, os) == -1)
		return -1;
	if (os->os_status < 200 && os->os_status != 101) {
		if (h2_interim(hs, &nv) == -1)
			return -1;
		h2_send(hs->hs_h2);
	} else if (h2_respond(hs, &nv, end) == -1)
		return -1;
	return 0;
}

static void *
client_reserve(struct exchange *ex, size_t *room)
{
	return h2_reserve(ex->ex_asks, room);
}

/* A stream outlives its exchange until all calls are done. */
static bool
client_commit(struct exchange *ex, size_t len)
{
	struct h2_stream	*hs = ex->ex_asks;

	h2_commit(hs, len);
	return hs->hs_ex != NULL;
}

static void
client_flush(struct exchange *ex)
{
	h2_send(ex->ex_asks->hs_h2);
}

static void
client_finish(struct exchange *ex, const struct trailers *tr)
{
	struct h2_stream	*hs = ex->ex_asks;

	h2_done(hs);
	h2_end(hs, tr);
}

static void
client_cut(struct exchange *ex)
{
	struct h2_stream	*hs = ex->ex_asks;

	hs->hs_ex = NULL;
	h2_reset(hs, H2_INTERNAL_ERROR);
}

static bool
client_tunnel(struct exchange *ex)
{
	struct h2_stream	*hs = ex->ex_asks;

	h2_pump(hs);
	return hs->hs_ex != NULL;
}

static bool
client_go(struct exchange *ex)
{
	/* Send the head now: the body may be long in coming. */
	if (!ex->ex_asks->hs_in_end || ex->ex_request.hd_upgrade.s != NULL)
		ex->ex_origin->flush(ex);
	return client_tunnel(ex);
}

/* Frames that have come are passed on; the rest waits for the 100. */
static bool
client_expect(struct exchange *ex)
{
	ex->ex_origin->flush(ex);
	return client_tunnel(ex);
}

const struct client_ops client_h2 = {
	.answer = client_answer,
	.reserve = client_reserve,
	.commit = client_commit,
	.flush = client_flush,
	.finish = client_finish,
	.cut = client_cut,
	.go = client_go,
	.expect = client_expect,
	.tunnel = client_tunnel,
};

/* In the clear the preface was read as if it were a request's head. */
static bool
conn_h2_ahead(struct conn *cn)
{
	unsigned char	*in = cn->cn_in;
	size_t		 len = cn->cn_inlen;
	bool		 alive;

	cn->cn_in = NULL;
	cn->cn_inlen = 0;
	alive = h2_read_ahead(cn->cn_h2, in, len);
	blocks_put(&in_blocks, in);
	return alive;
}

/* The handshake, or the client's first bytes, have settled on HTTP/2. */
void
conn_h2_begin(struct conn *cn)
{
	if ((cn->cn_h2 = h2_new(&cn->cn_io, true, &conn_h2_ops, cn)) == NULL) {
		conn_free(cn);
		return;
	}
	cn->cn_state = CONN_H2;
	if (cn->cn_in != NULL && !conn_h2_ahead(cn))
		return;
	conn_h2_timer(cn);
	h2_send(cn->cn_h2);
	io_resume(&cn->cn_io);
}
