/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: an origin that speaks HTTP/1 and serves one exchange at
 * a time.
 */

#include <string.h>

#include "tlsengine.h"
#include "upstream.h"

static void
h1_begin(struct exchange *ex)
{
	struct upstream	*up = ex->ex_up;

	up->up_ex = ex;
	ex->ex_in_before = up->up_io.io_in_total;
	ex->ex_out_before = up->up_io.io_out_total;
	io_resume(&up->up_io);
	timer_set(&up->up_timer, settings.st_response_ms);
}

/* A WebSocket that was asked for by HTTP/2 has no key yet. */
static ssize_t
h1_websocket(struct exchange *ex, char *p, size_t room,
    const struct h1_out_request *or)
{
	static struct h1_field	 fields[H1_FIELDS_MAX];
	struct h1_out_request	 with = *or;
	struct h1_field		 key;

	websocket_key(ex->ex_key);
	key = websocket_key_field(ex->ex_key);
	with.or_nfields = websocket_without_key(fields, or->or_fields,
	    or->or_nfields);
	with.or_fields = fields;
	with.or_extra = &key;
	with.or_nextra = 1;
	return h1_format_request(p, room, &with);
}

static int
h1_request(struct exchange *ex, const struct h1_out_request *or)
{
	struct upstream	*up = ex->ex_up;
	size_t		 room;
	ssize_t		 len;
	char		*p;

	h1_begin(ex);
	up->up_chunked_out = or->or_framing == H1_CHUNKED;
	if ((p = io_reserve(&up->up_io, &room)) == NULL)
		return -1;
	len = ex->ex_asks != NULL && or->or_upgrade.s != NULL ?
	    h1_websocket(ex, p, room, or) : h1_format_request(p, room, or);
	if (len == -1)
		return -1;
	io_commit(&up->up_io, len);
	return 0;
}

static void *
h1_reserve(struct exchange *ex, size_t *room)
{
	struct upstream	*up = ex->ex_up;

	return io_reserve_body(&up->up_io, up->up_chunked_out, room);
}

static bool
h1_commit(struct exchange *ex, size_t len)
{
	struct upstream	*up = ex->ex_up;

	io_commit_body(&up->up_io, up->up_chunked_out, len);
	return true;
}

/* The time for the answer runs from the last byte of the request. */
static void
h1_flush(struct exchange *ex)
{
	struct upstream	*up = ex->ex_up;

	if (ex->ex_upgraded)
		timer_set(&up->up_timer, settings.st_tunnel_ms);
	else if (!up->up_in_body)
		timer_set(&up->up_timer, settings.st_response_ms);
	io_flush(&up->up_io);
}

static void
h1_finish(struct exchange *ex, const struct trailers *tr)
{
	struct upstream	*up = ex->ex_up;

	if (up->up_chunked_out)
		chunks_put_last(&up->up_io, tr);
	h1_flush(ex);
	if (!ex->ex_upgraded)
		return;
	if (io_empty(&up->up_io))
		io_finish(&up->up_io);
	else
		up->up_io.io_ending = true;
}

/* The client has room again. */
static bool
h1_go(struct exchange *ex)
{
	struct upstream	*up = ex->ex_up;

	io_resume(&up->up_io);
	/* No event will come for bytes that are buffered. */
	if (up->up_inlen > up->up_inpos)
		event_active(&up->up_io.io_rev, EV_READ, 1);
	return true;
}

static void
h1_tally(struct exchange *ex)
{
	const struct io	*io = &ex->ex_up->up_io;

	ex->ex_bytes_in += io->io_in_total - ex->ex_in_before;
	ex->ex_bytes_out += io->io_out_total + io->io_outlen -
	    ex->ex_out_before;
	ex->ex_in_before = io->io_in_total;
	ex->ex_out_before = io->io_out_total + io->io_outlen;
}

static void
h1_leave(struct exchange *ex, struct upstream *up, bool fit)
{
	(void)ex;
	up->up_ex = NULL;
	if (!fit || !up->up_keep || up->up_io.io_broken ||
	    up->up_io.io_eof || up->up_inpos != up->up_inlen ||
	    io_pending(&up->up_io) || !io_empty(&up->up_io)) {
		upstream_free(up);
		return;
	}
	blocks_put(&in_blocks, up->up_in);
	up->up_in = NULL;
	up->up_inlen = up->up_inpos = 0;
	up->up_in_body = false;
	up->up_interim = 0;
	memset(&up->up_scan, 0, sizeof(up->up_scan));
	upstream_keep(up);
}

const struct origin_ops origin_h1 = {
	.request = h1_request,
	.reserve = h1_reserve,
	.commit = h1_commit,
	.flush = h1_flush,
	.finish = h1_finish,
	.go = h1_go,
	.tally = h1_tally,
	.leave = h1_leave,
};
