/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: frames of HTTP/2 that we send.  Heads and what is said
 * about the connection go to the io at once, or to a queue while that has no
 * room; DATA goes stream by stream in turns, as both windows and the io allow.
 * Streams end here and not where their end was ordered, so that no owner finds
 * its stream gone in the middle of a call.
 */

#include <stdlib.h>
#include <string.h>

#include "h2.h"

#define QUEUE_MIN	1024	/* bytes */
#define QUEUE_MAX	(256 * 1024)	/* for one that does not read */
#define ACKS_MAX	64	/* in it, for one that goes on asking */
#define DIRECT_MIN	1024	/* bytes, of a frame that is worth it */
#define FLAGS_AT	4	/* in the head of a frame */

/* ---- bytes --------------------------------------------------------------- */

static int
queue_grow(struct h2 *h2, size_t len)
{
	size_t		 size = h2->h2_queuesize;
	unsigned char	*p;

	if (h2->h2_queuepos > 0)
		memmove(h2->h2_queue, h2->h2_queue + h2->h2_queuepos,
		    h2->h2_queuelen);
	h2->h2_queuepos = 0;
	if (len <= size - h2->h2_queuelen)
		return 0;
	if (size == 0)
		size = QUEUE_MIN;
	while (len > size - h2->h2_queuelen)
		size *= 2;
	if ((p = realloc(h2->h2_queue, size)) == NULL)
		return -1;
	h2->h2_queue = p;
	h2->h2_queuesize = size;
	return 0;
}

/* Write a frame to the io, or queue it behind what waits. */
static void
put(struct h2 *h2, const void *head, size_t headlen, const void *data,
    size_t len)
{
	unsigned char	*p;
	size_t		 room, all = headlen + len;
	bool		 direct;

	h2->h2_tail = NULL;
	p = io_reserve(h2->h2_io, &room);
	direct = p != NULL && h2->h2_queuelen == 0 && room >= all;
	if (!direct) {
		if (h2->h2_queuelen + all > QUEUE_MAX ||
		    queue_grow(h2, all) == -1) {
			h2_break(h2, "does not read");
			return;
		}
		p = h2->h2_queue + h2->h2_queuelen;
	}
	memcpy(p, head, headlen);
	if (len > 0)
		memcpy(p + headlen, data, len);
	if (direct)
		io_commit(h2->h2_io, all);
	else
		h2->h2_queuelen += all;
}

static void
put_queue(struct h2 *h2)
{
	size_t	 room;
	void	*p;

	while (h2->h2_queuelen > 0 && !h2->h2_io->io_full) {
		if ((p = io_reserve(h2->h2_io, &room)) == NULL || room == 0)
			return;
		if (room > h2->h2_queuelen)
			room = h2->h2_queuelen;
		memcpy(p, h2->h2_queue + h2->h2_queuepos, room);
		io_commit(h2->h2_io, room);
		h2->h2_queuepos += room;
		h2->h2_queuelen -= room;
	}
	if (h2->h2_queuelen > 0 || h2->h2_queue == NULL)
		return;
	free(h2->h2_queue);
	h2->h2_queue = NULL;
	h2->h2_queuepos = h2->h2_queuesize = 0;
	h2->h2_nacks = 0;
}

static unsigned char *
put32(unsigned char *p, uint32_t n)
{
	*p++ = n >> 24;
	*p++ = n >> 16;
	*p++ = n >> 8;
	*p++ = n;
	return p;
}

static void
frame_head(unsigned char *p, size_t len, enum h2_type type, uint8_t flags,
    int32_t id)
{
	put32(p, len << 8 | type);
	p[FLAGS_AT] = flags;
	put32(p + 5, id);
}

static void
put_frame(struct h2 *h2, enum h2_type type, uint8_t flags, int32_t id,
    const void *data, size_t len)
{
	unsigned char	 head[H2_FRAME_HEAD];

	frame_head(head, len, type, flags, id);
	put(h2, head, sizeof(head), data, len);
}

/* ---- about the connection ------------------------------------------------ */

void
h2_put_settings(struct h2 *h2, const uint32_t (*set)[2], size_t n)
{
	unsigned char	 data[64], *p = data;

	if (!h2->h2_server)
		put(h2, h2_preface, H2_PREFACE_LEN, NULL, 0);
	for (; n > 0; n--, set++) {
		*p++ = (*set)[0] >> 8;
		*p++ = (*set)[0];
		p = put32(p, (*set)[1]);
	}
	put_frame(h2, H2_SETTINGS, 0, 0, data, p - data);
}

static void
put_ack(struct h2 *h2, enum h2_type type, const void *data, size_t len)
{
	if (h2->h2_queuelen > 0 && ++h2->h2_nacks > ACKS_MAX)
		h2_break(h2, "asks and does not read");
	else
		put_frame(h2, type, H2_F_ACK, 0, data, len);
}

void
h2_put_settings_ack(struct h2 *h2)
{
	put_ack(h2, H2_SETTINGS, NULL, 0);
}

void
h2_put_ping_ack(struct h2 *h2, const unsigned char *data)
{
	put_ack(h2, H2_PING, data, 8);
}

/* Last stream: the client's highest; origins open none. */
void
h2_put_goaway(struct h2 *h2, uint32_t code)
{
	unsigned char	 data[8];

	put32(data, h2->h2_server ? h2->h2_last : 0);
	put32(data + 4, code);
	h2->h2_leaving = true;
	put_frame(h2, H2_GOAWAY, 0, 0, data, sizeof(data));
}

void
h2_put_window(struct h2 *h2, int32_t id, uint32_t more)
{
	unsigned char	 data[4];

	put32(data, more);
	put_frame(h2, H2_WINDOW_UPDATE, 0, id, data, sizeof(data));
}

void
h2_put_reset(struct h2 *h2, int32_t id, uint32_t code)
{
	unsigned char	 data[4];

	put32(data, code);
	put_frame(h2, H2_RST_STREAM, 0, id, data, sizeof(data));
}

/* ---- heads --------------------------------------------------------------- */

/* The first tells the peer that its table stays empty; see hpack.h. */
int
h2_put_head(struct h2_stream *hs, const struct h2_nv *nv, bool end)
{
	struct h2		*h2 = hs->hs_h2;
	const unsigned char	*p = nv->hn_block;
	size_t			 len = nv->hn_len, n;
	enum h2_type		 type = H2_HEADERS;
	uint8_t			 flags = end ? H2_F_END_STREAM : 0;

	if (h2->h2_head_sent) {
		p++;
		len--;
	}
	h2->h2_head_sent = true;
	do {
		n = len < H2_FRAME_MAX ? len : H2_FRAME_MAX;
		if (n == len)
			flags |= H2_F_END_HEADERS;
		put_frame(h2, type, flags, hs->hs_id, p, n);
		type = H2_CONTINUATION;
		flags = 0;
		p += n;
		len -= n;
	} while (len > 0);
	hs->hs_ended = end;
	return h2->h2_why == NULL ? 0 : -1;
}

/* ---- bodies -------------------------------------------------------------- */

static void
stream_wait(struct h2_stream *hs, struct h2_streams *list)
{
	if (hs->hs_waits != NULL)
		TAILQ_REMOVE(hs->hs_waits, hs, hs_turn);
	hs->hs_waits = list;
	if (list != NULL)
		TAILQ_INSERT_TAIL(list, hs, hs_turn);
}

void
h2_stream_idle(struct h2_stream *hs)
{
	stream_wait(hs, NULL);
}

/* Put the stream on the list for what it has to do, if anything. */
void
h2_stream_ready(struct h2_stream *hs)
{
	struct h2	*h2 = hs->hs_h2;

	if (hs->hs_closed)
		return;
	if (hs->hs_doomed || (hs->hs_ended && hs->hs_in_end)) {
		if (hs->hs_waits != &h2->h2_ending)
			stream_wait(hs, &h2->h2_ending);
	} else if (hs->hs_waits == NULL && !hs->hs_ended &&
	    (hs->hs_outlen > 0 ? hs->hs_out_window > 0 : hs->hs_out_end))
		stream_wait(hs, &h2->h2_ready);
}

void
h2_window_opens(struct h2 *h2)
{
	struct h2_stream	*hs;

	while ((hs = TAILQ_FIRST(&h2->h2_starved)) != NULL)
		stream_wait(hs, &h2->h2_ready);
}

static bool
put_trailers(struct h2_stream *hs)
{
	static struct h2_nv	 nv;

	if (hs->hs_out_nfields == 0 || h2_nv_trailers(&nv, hs->hs_out_fields,
	    hs->hs_out_nfields) == -1 || nv.hn_bytes == 0)
		return false;
	hs->hs_bytes_out += nv.hn_bytes;
	h2_put_head(hs, &nv, true);
	return true;
}

/* Bytes that may go in one frame now. */
static size_t
sendable(const struct h2_stream *hs)
{
	int64_t	 len = hs->hs_outlen;

	if (len > H2_FRAME_MAX)
		len = H2_FRAME_MAX;
	if (len > hs->hs_out_window)
		len = hs->hs_out_window;
	if (len > hs->hs_h2->h2_out_window)
		len = hs->hs_h2->h2_out_window;
	return len > 0 ? len : 0;
}

static void
data_sent(struct h2_stream *hs, size_t len)
{
	hs->hs_out_window -= len;
	hs->hs_h2->h2_out_window -= len;
	hs->hs_bytes_out += len;
	h2_calm_sent(hs->hs_h2, len);
}

/*
 * Room for data in its frame already, where nothing waits and the windows are
 * open.  Most answers are short: they are never copied to a buffer of their
 * stream.
 */
void *
h2_data_reserve(struct h2_stream *hs, size_t *room)
{
	struct h2	*h2 = hs->hs_h2;
	unsigned char	*p;
	int64_t		 max = H2_FRAME_MAX;

	if (max > hs->hs_out_window)
		max = hs->hs_out_window;
	if (max > h2->h2_out_window)
		max = h2->h2_out_window;
	if (max < DIRECT_MIN || hs->hs_outlen > 0 || h2->h2_queuelen > 0 ||
	    h2->h2_nkept > 0 || h2->h2_io->io_full ||
	    (p = io_reserve(h2->h2_io, room)) == NULL ||
	    *room < H2_FRAME_HEAD + DIRECT_MIN)
		return NULL;
	*room -= H2_FRAME_HEAD;
	if (*room > (size_t)max)
		*room = max;
	return p + H2_FRAME_HEAD;
}

void
h2_data_commit(struct h2_stream *hs, size_t len)
{
	struct h2	*h2 = hs->hs_h2;
	size_t		 room;

	frame_head(io_reserve(h2->h2_io, &room), len, H2_DATA, 0, hs->hs_id);
	io_commit(h2->h2_io, H2_FRAME_HEAD + len);
	data_sent(hs, len);
	h2->h2_tail = hs;
	h2->h2_taillen = H2_FRAME_HEAD + len;
}

/* Set END_STREAM on the last DATA frame if it is still in the io. */
void
h2_data_end(struct h2_stream *hs)
{
	struct h2	*h2 = hs->hs_h2;
	unsigned char	*p;

	if (h2->h2_tail != hs || hs->hs_outlen > 0 ||
	    hs->hs_out_nfields > 0 ||
	    (p = io_tail(h2->h2_io, h2->h2_taillen)) == NULL)
		return;
	p[FLAGS_AT] |= H2_F_END_STREAM;
	hs->hs_ended = true;
}

/* Send one frame, then queue the stream again. */
static void
put_data(struct h2_stream *hs)
{
	struct h2	*h2 = hs->hs_h2;
	size_t		 len = sendable(hs);
	bool		 last = hs->hs_out_end && len == hs->hs_outlen;
	bool		 plain = last && hs->hs_out_nfields == 0;

	if (len == 0 && !last) {
		if (hs->hs_outlen > 0 && hs->hs_out_window > 0)
			stream_wait(hs, &h2->h2_starved);
		return;
	}
	if (len > 0 || plain) {
		put_frame(h2, H2_DATA, plain ? H2_F_END_STREAM : 0, hs->hs_id,
		    len > 0 ? hs->hs_out + hs->hs_outpos : NULL, len);
		data_sent(hs, len);
	}
	if (last && !plain && !put_trailers(hs))
		put_frame(h2, H2_DATA, H2_F_END_STREAM, hs->hs_id, NULL, 0);
	hs->hs_ended = last;
	h2_stream_sent(hs, len);
	h2_stream_ready(hs);
}

static void
put_streams(struct h2 *h2)
{
	struct h2_stream	*hs;

	while (!h2->h2_dead && !h2->h2_io->io_full && h2->h2_queuelen == 0 &&
	    (hs = TAILQ_FIRST(&h2->h2_ready)) != NULL) {
		stream_wait(hs, NULL);
		put_data(hs);
	}
}

/*
 * A stream whose answer is queued counts as open until the queue is out:
 * otherwise a client that reads nothing could have us queue any number of them.
 */
static struct h2_stream *
next_ending(struct h2 *h2)
{
	struct h2_stream	*hs;

	TAILQ_FOREACH(hs, &h2->h2_ending, hs_turn)
		if (hs->hs_doomed || h2->h2_queuelen == 0 || !h2->h2_server)
			break;
	return hs;
}

void
h2_put_ends(struct h2 *h2)
{
	struct h2_stream	*hs;

	/* Ending one may end others: start over. */
	while (!h2->h2_dead && (hs = next_ending(h2)) != NULL) {
		if (hs->hs_doomed)
			h2_put_reset(h2, hs->hs_id, hs->hs_code);
		h2_stream_close(hs, hs->hs_doomed ? hs->hs_code : H2_NO_ERROR);
	}
}

/* Write until the socket is full or the windows are closed. */
void
h2_put_all(struct h2 *h2)
{
	struct io	*io = h2->h2_io;
	bool		 full;

	do {
		put_queue(h2);
		put_streams(h2);
		if (h2->h2_dead || io->io_broken)
			return;
		/* An io that is emptied here does not call on_drain. */
		if ((full = io->io_full))
			io_push(io);
	} while (full && !io->io_full &&
	    (h2->h2_queuelen > 0 || !TAILQ_EMPTY(&h2->h2_ready)));
	io_flush(io);
}
