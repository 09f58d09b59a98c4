/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * tlsengine runs this: a client that speaks HTTP/2.  Every stream is a request
 * with a verdict of its own, and every one must name the host that the
 * connection was settled on: another :authority is refused with 421, which
 * tells an honest client to open a connection for it (RFC 9110, 15.5.20).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h2.h"
#include "log.h"

static struct h2_nv	 nv;

/* ---- the connection ------------------------------------------------------ */

/* While a head is on its way it is due; without requests there is an end. */
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

/* Nothing has come for so long: what still waits for a body waits in vain. */
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
	h2_read(cn->cn_h2);
	if (!cn->cn_dead && cn->cn_state == CONN_H2)
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
		/* Each may take others along: look from the beginning. */
		TAILQ_FOREACH(hs, &h2->h2_streams, hs_entry)
			if (hs->hs_ex != NULL)
				break;
		if (hs == NULL)
			break;
		ex = hs->hs_ex;
		hs->hs_ex = NULL;
		exchange_client_gone(ex, "stream_broken");
	}
	h2_close(h2);
}

/* A new generation is in force. */
void
conn_h2_recheck(struct conn *cn)
{
	struct h2_stream	*hs, *next;

	TAILQ_FOREACH_SAFE(hs, &cn->cn_h2->h2_streams, hs_entry, next)
		if (hs->hs_ex != NULL)
			exchange_ask_again(hs->hs_ex);
}

static void
on_broken(struct h2 *h2, const char *why)
{
	struct conn	*cn = h2->h2_owner;

	log_debug("client of %s: %s", cn->cn_place.pc_host, why);
	if (h2->h2_abused)
		conn_report(cn, RECORD_CONNECTION_REFUSED, PROTOCOL_H2,
		    "quota");
	else if (cn->cn_requests == 0)
		conn_report(cn, RECORD_REQUEST_FAILED, PROTOCOL_H2,
		    cn->cn_io.io_eof ? "stream_broken" : "bad_request");
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

/* It has not been looked at, but it was there. */
static void
on_refused(struct h2 *h2)
{
	conn_report(h2->h2_owner, RECORD_REQUEST_DENIED, PROTOCOL_H2, "quota");
}

/* ---- requests ------------------------------------------------------------ */

/* What cannot be read costs its stream, not the connection. */
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

	conn_report(cn, RECORD_REQUEST_DENIED, PROTOCOL_H2, "bad_request");
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
	    cn->cn_place.pc_scheme == URL_HTTPS ? "https" : "http") != 0) {
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

/* A commit may have found the origin gone. */
static void
origin_flush(struct h2_stream *hs)
{
	struct exchange	*ex = hs->hs_ex;

	if (ex != NULL && ex->ex_origin != NULL)
		ex->ex_origin->flush(ex);
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

/* Until then, and while it is full, bytes wait. */
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
	if (exchange_request_data(ex, data, len) == -1)
		return 0;
	memcpy(p, data, len);
	ex->ex_origin->commit(ex, len);
	origin_flush(hs);
	return len;
}

static void
on_end(struct h2_stream *hs)
{
	struct exchange	*ex = hs->hs_ex;

	if (!is_open(ex))
		hs->hs_in_told = false;
	else
		exchange_request_end(ex, h2_trailers(hs));
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
	exchange_client_gone(ex, "stream_broken");
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

	/* To be told that the body may be sent is of no use any more. */
	if (os->os_status == 100 && hs->hs_in_end)
		return 0;
	/* Hints are not worth keeping for one that does not read. */
	if (os->os_status > 101 && os->os_status < 200 &&
	    hs->hs_h2->h2_queuelen > 0)
		return 0;
	/* It would take the answer for its tunnel (RFC 8441, 5). */
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

static void
client_commit(struct exchange *ex, size_t len)
{
	h2_commit(ex->ex_asks, len);
}

static void
client_flush(struct exchange *ex)
{
	h2_send(ex->ex_asks->hs_h2);
}

static void
client_end(struct exchange *ex, const struct trailers *tr)
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

static void
client_go(struct exchange *ex)
{
	/* A head does not wait for a body that may be long in coming. */
	if (!ex->ex_asks->hs_in_end || ex->ex_request.hd_upgrade.s != NULL)
		ex->ex_origin->flush(ex);
	h2_pump(ex->ex_asks);
}

/* Frames that have come are passed on; the rest waits for the 100. */
static void
client_expect(struct exchange *ex)
{
	ex->ex_origin->flush(ex);
	h2_pump(ex->ex_asks);
}

static void
client_tunnel(struct exchange *ex)
{
	h2_pump(ex->ex_asks);
}

const struct client_ops client_h2 = {
	.answer = client_answer,
	.reserve = client_reserve,
	.commit = client_commit,
	.flush = client_flush,
	.end = client_end,
	.cut = client_cut,
	.go = client_go,
	.expect = client_expect,
	.tunnel = client_tunnel,
};

/* In the clear the preface was read as if it were a request's head. */
static void
conn_h2_ahead(struct conn *cn)
{
	unsigned char	*in = cn->cn_in;
	size_t		 len = cn->cn_inlen;

	cn->cn_in = NULL;
	cn->cn_inlen = 0;
	h2_read_ahead(cn->cn_h2, in, len);
	blocks_put(&in_blocks, in);
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
	if (cn->cn_in != NULL)
		conn_h2_ahead(cn);
	if (cn->cn_dead)
		return;
	conn_h2_timer(cn);
	h2_send(cn->cn_h2);
	io_resume(&cn->cn_io);
}
