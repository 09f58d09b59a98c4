/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: frames of HTTP/2 as they come, from hostile agents and
 * hostile origins.  DATA is passed on as it comes; of other frames none is
 * looked at before it is whole, nor a head before all of its block is here.
 * What offends against RFC 9113 costs its stream or the connection, as that
 * says; where it leaves a choice, the connection.
 */

#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "h2.h"

#define ID_MASK		0x7fffffff
#define SETTING_LEN	6	/* bytes of one */
#define SETTINGS_MAX	(32 * SETTING_LEN)

static struct blocks	 frame_blocks = {
	.bk_size = H2_FRAME_HEAD + H2_FRAME_MAX, .bk_keep = 16
};

static uint32_t
get32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	    (uint32_t)p[2] << 8 | p[3];
}

static void
get_head(struct h2_frame *fr, const unsigned char *p)
{
	fr->fr_len = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
	fr->fr_type = p[3];
	fr->fr_flags = p[4];
	fr->fr_id = get32(p + 5) & ID_MASK;
}

/* ---- about streams and the connection ------------------------------------ */

static void
on_priority(struct h2 *h2, const struct h2_frame *fr, const unsigned char *p)
{
	(void)fr, (void)p;
	h2_calm_spend(h2);
}

static void
on_rst_stream(struct h2 *h2, const struct h2_frame *fr, const unsigned char *p)
{
	struct h2_stream	*hs = h2_stream_find(h2, fr->fr_id);

	if (h2_is_idle(h2, fr->fr_id)) {
		h2_fail(h2, H2_PROTOCOL_ERROR, "reset of no stream");
		return;
	}
	/*
	 * Origins may do it to each stream, after an early answer; of a
	 * request that is not over h2_stream_close() counts it.
	 */
	if (!h2->h2_server)
		h2_calm_spend(h2);
	else if (hs == NULL || hs->hs_ex == NULL)
		h2_annoyed(h2);
	if (hs == NULL)
		return;
	/* Whatever its code, a client's reset is a cancellation. */
	h2_stream_close(hs, h2->h2_server ? H2_CANCEL : get32(p));
}

/* A smaller setting may leave windows below zero. */
static int
set_window(struct h2 *h2, uint32_t value)
{
	struct h2_stream	*hs;
	int64_t			 more = (int64_t)value - h2->h2_peer_window;

	h2->h2_peer_window = value;
	TAILQ_FOREACH(hs, &h2->h2_streams, hs_entry) {
		if (hs->hs_closed)
			continue;
		hs->hs_out_window += more;
		if (hs->hs_out_window > H2_WINDOW_MAX)
			return -1;
		h2_stream_ready(hs);
	}
	return 0;
}

/* Apply a setting; returns H2_NO_ERROR or its error. */
static uint32_t
setting(struct h2 *h2, uint16_t id, uint32_t value)
{
	switch (id) {
	case H2_S_ENABLE_PUSH:
		return value > (h2->h2_server ? 1 : 0) ? H2_PROTOCOL_ERROR :
		    H2_NO_ERROR;
	case H2_S_MAX_STREAMS:
		h2->h2_peer_streams = value;
		break;
	case H2_S_WINDOW:
		if (value > H2_WINDOW_MAX || set_window(h2, value) == -1)
			return H2_FLOW_CONTROL_ERROR;
		break;
	case H2_S_FRAME_SIZE:
		/* Checked only: our frames never exceed the minimum. */
		return value < H2_FRAME_MAX || value > 0xffffff ?
		    H2_PROTOCOL_ERROR : H2_NO_ERROR;
	case H2_S_CONNECT:
		if (value > 1)
			return H2_PROTOCOL_ERROR;
		h2->h2_peer_connect = value;
		break;
	}
	return H2_NO_ERROR;
}

static void
on_settings(struct h2 *h2, const struct h2_frame *fr, const unsigned char *p)
{
	const unsigned char	*end = p + fr->fr_len;
	uint32_t		 code;

	h2_annoyed(h2);
	if (fr->fr_flags & H2_F_ACK ? fr->fr_len != 0 :
	    fr->fr_len % SETTING_LEN != 0) {
		h2_fail(h2, H2_FRAME_SIZE_ERROR, "settings of odd length");
		return;
	}
	if (fr->fr_flags & H2_F_ACK)
		return;
	for (; p < end; p += SETTING_LEN) {
		code = setting(h2, p[0] << 8 | p[1], get32(p + 2));
		if (code != H2_NO_ERROR) {
			h2_fail(h2, code, "setting out of range");
			return;
		}
	}
	h2->h2_settled = true;
	h2_put_settings_ack(h2);
	h2->h2_ops->on_settings(h2);
}

static void
on_push_promise(struct h2 *h2, const struct h2_frame *fr,
    const unsigned char *p)
{
	(void)fr, (void)p;
	h2_fail(h2, H2_PROTOCOL_ERROR, "push, which nobody wanted");
}

static void
on_ping(struct h2 *h2, const struct h2_frame *fr, const unsigned char *p)
{
	h2_calm_spend(h2);
	if (!(fr->fr_flags & H2_F_ACK))
		h2_put_ping_ack(h2, p);
}

/* Streams behind the last one named were not processed (6.8). */
static void
on_goaway(struct h2 *h2, const struct h2_frame *fr, const unsigned char *p)
{
	int32_t			 last = get32(p) & ID_MASK;
	struct h2_stream	*hs;

	(void)fr;
	h2_annoyed(h2);
	h2->h2_parting = true;
	h2->h2_ops->on_goaway(h2);
	while (!h2->h2_server && !h2->h2_dead) {
		/* Ending one may end others: start over. */
		TAILQ_FOREACH(hs, &h2->h2_streams, hs_entry)
			if (!hs->hs_closed && hs->hs_id > last)
				break;
		if (hs == NULL)
			break;
		h2_stream_close(hs, H2_REFUSED_STREAM);
	}
}

static void
on_window_update(struct h2 *h2, const struct h2_frame *fr,
    const unsigned char *p)
{
	struct h2_stream	*hs = h2_stream_find(h2, fr->fr_id);
	int64_t			 more = get32(p) & ID_MASK;

	h2_calm_update(h2);
	if (fr->fr_id == 0) {
		h2->h2_out_window += more;
		if (more == 0 || h2->h2_out_window > H2_WINDOW_MAX)
			h2_fail(h2, more == 0 ? H2_PROTOCOL_ERROR :
			    H2_FLOW_CONTROL_ERROR, "window out of range");
		else
			h2_window_opens(h2);
	} else if (hs != NULL) {
		hs->hs_out_window += more;
		if (more == 0 || hs->hs_out_window > H2_WINDOW_MAX)
			h2_stream_fail(hs, more == 0 ? H2_PROTOCOL_ERROR :
			    H2_FLOW_CONTROL_ERROR);
		else
			h2_stream_ready(hs);
	} else if (h2_is_idle(h2, fr->fr_id))
		h2_fail(h2, H2_PROTOCOL_ERROR, "window of no stream");
}

/* ---- DATA ---------------------------------------------------------------- */

/* All of a frame counts, with its padding, whatever becomes of it. */
static int
data_fits(struct h2 *h2, const struct h2_frame *fr, struct h2_stream *hs)
{
	h2->h2_in_window -= fr->fr_len;
	if (h2->h2_in_window < 0) {
		h2_fail(h2, H2_FLOW_CONTROL_ERROR, "more than its window");
		return -1;
	}
	if (h2_is_idle(h2, fr->fr_id)) {
		h2_fail(h2, H2_PROTOCOL_ERROR, "data on a stream of nobody");
		return -1;
	}
	if (hs == NULL)
		return 0;
	hs->hs_in_window -= fr->fr_len;
	if (hs->hs_in_window < 0)
		h2_stream_fail(hs, H2_FLOW_CONTROL_ERROR);
	else if (hs->hs_in_end)
		h2_stream_fail(hs, H2_STREAM_CLOSED);
	return 0;
}

/* More or less than the head has declared (RFC 9113, 8.1.1). */
static bool
data_lies(const struct h2_stream *hs, const struct h2_frame *fr, uint32_t len)
{
	return hs->hs_left != H2_LEFT_OPEN && (len > hs->hs_left ||
	    (fr->fr_flags & H2_F_END_STREAM && len != hs->hs_left));
}

static void
data_end(struct h2 *h2)
{
	struct h2_stream	*hs = h2->h2_data_of;

	h2_consumed(h2, h2->h2_padding);
	if (hs == NULL)
		return;
	h2_stream_consumed(hs, h2->h2_padding);
	if (h2->h2_frame.fr_flags & H2_F_END_STREAM)
		h2_stream_in_end(hs);
}

/* The frame's head is here: check it before the payload comes. */
static void
data_begin(struct h2 *h2, const struct h2_frame *fr, uint32_t pad)
{
	struct h2_stream	*hs = h2_stream_find(h2, fr->fr_id);
	uint32_t		 len;

	h2->h2_padding = fr->fr_flags & H2_F_PADDED ? pad + 1 : 0;
	if (h2->h2_padding > fr->fr_len) {
		h2_fail(h2, H2_PROTOCOL_ERROR, "more padding than frame");
		return;
	}
	len = fr->fr_len - h2->h2_padding;
	if (data_fits(h2, fr, hs) == -1)
		return;
	/* A frame without data spends the allowance unless it is the end. */
	if (len == 0 && (hs == NULL || !(fr->fr_flags & H2_F_END_STREAM)))
		h2_calm_spend(h2);
	else
		h2_calm_paid(h2, 1);
	if (hs != NULL && !hs->hs_closed) {
		if (data_lies(hs, fr, len))
			h2_stream_fail(hs, H2_PROTOCOL_ERROR);
		else if (hs->hs_left != H2_LEFT_OPEN)
			hs->hs_left -= len;
	}
	h2->h2_frame = *fr;
	h2->h2_data_of = hs != NULL && !hs->hs_closed ? hs : NULL;
	h2->h2_left = len + (h2->h2_padding > 0 ? pad : 0);
	if (h2->h2_left == 0 && !h2->h2_dead)
		data_end(h2);
}

/* Take part of a DATA frame, or of a frame that is skipped. */
static size_t
take_rest(struct h2 *h2, const unsigned char *p, size_t len)
{
	uint32_t		 pad = h2->h2_padding > 0 ? h2->h2_padding - 1 :
				    0;
	size_t			 n = len < h2->h2_left ? len : h2->h2_left;
	size_t			 data = h2->h2_left > pad ?
				    h2->h2_left - pad : 0;

	h2->h2_left -= n;
	if (h2->h2_frame.fr_type != H2_DATA)
		return n;
	if (data > n)
		data = n;
	if (data > 0 && h2->h2_data_of != NULL)
		h2_stream_data(h2->h2_data_of, p, data);
	else
		h2_consumed(h2, data);
	if (h2->h2_left == 0 && !h2->h2_dead)
		data_end(h2);
	return n;
}

/* ---- frames -------------------------------------------------------------- */

enum where { NOWHERE, ON_STREAM, ANYWHERE };

static const struct {
	void		(*fn)(struct h2 *, const struct h2_frame *,
			    const unsigned char *);
	enum where	 where;		/* NOWHERE: on stream 0 */
	uint32_t	 min;
	uint32_t	 max;
} types[H2_NTYPES] = {
	[H2_DATA] = { NULL, ON_STREAM, 0, H2_FRAME_MAX },
	[H2_HEADERS] = { h2_on_headers, ON_STREAM, 0, H2_FRAME_MAX },
	[H2_PRIORITY] = { on_priority, ON_STREAM, H2_PRIORITY_LEN,
	    H2_PRIORITY_LEN },
	[H2_RST_STREAM] = { on_rst_stream, ON_STREAM, 4, 4 },
	[H2_SETTINGS] = { on_settings, NOWHERE, 0, SETTINGS_MAX },
	[H2_PUSH_PROMISE] = { on_push_promise, ON_STREAM, 4, H2_FRAME_MAX },
	[H2_PING] = { on_ping, NOWHERE, 8, 8 },
	[H2_GOAWAY] = { on_goaway, NOWHERE, 8, H2_FRAME_MAX },
	[H2_WINDOW_UPDATE] = { on_window_update, ANYWHERE, 4, 4 },
	[H2_CONTINUATION] = { h2_on_continuation, ON_STREAM, 0, H2_FRAME_MAX },
};

/* Nothing may come between the frames of a head (RFC 9113, 4.3). */
static bool
is_in_order(const struct h2 *h2, const struct h2_frame *fr)
{
	if (!h2->h2_settled)
		return fr->fr_type == H2_SETTINGS &&
		    !(fr->fr_flags & H2_F_ACK);
	if (h2->h2_block_of.fr_id == 0)
		return fr->fr_type != H2_CONTINUATION;
	return fr->fr_type == H2_CONTINUATION &&
	    fr->fr_id == h2->h2_block_of.fr_id;
}

static int
check_frame(struct h2 *h2, const struct h2_frame *fr)
{
	if (fr->fr_len > H2_FRAME_MAX)
		h2_fail(h2, H2_FRAME_SIZE_ERROR, "frame too long");
	else if (!is_in_order(h2, fr))
		h2_fail(h2, H2_PROTOCOL_ERROR, "frame out of order");
	else if (fr->fr_type >= H2_NTYPES)
		return 0;
	else if (fr->fr_len < types[fr->fr_type].min ||
	    fr->fr_len > types[fr->fr_type].max)
		h2_fail(h2, H2_FRAME_SIZE_ERROR, "frame of a wrong length");
	else if (types[fr->fr_type].where != ANYWHERE &&
	    (types[fr->fr_type].where == ON_STREAM) != (fr->fr_id != 0))
		h2_fail(h2, H2_PROTOCOL_ERROR, "frame on a wrong stream");
	return h2->h2_why != NULL ? -1 : 0;
}

/* How much of a frame, as far as is known, must be there at once. */
static size_t
wanted(const unsigned char *p, size_t len)
{
	struct h2_frame	 fr;

	if (len < H2_FRAME_HEAD)
		return H2_FRAME_HEAD;
	get_head(&fr, p);
	if (fr.fr_len > H2_FRAME_MAX || fr.fr_type >= H2_NTYPES)
		return H2_FRAME_HEAD;
	if (fr.fr_type == H2_DATA)
		return H2_FRAME_HEAD + (fr.fr_flags & H2_F_PADDED &&
		    fr.fr_len > 0);
	return H2_FRAME_HEAD + fr.fr_len;
}

/* Take a frame of which wanted() bytes are here. */
static void
take_frame(struct h2 *h2, const unsigned char *p)
{
	struct h2_frame	 fr;

	get_head(&fr, p);
	if (h2->h2_why != NULL || check_frame(h2, &fr) == -1)
		return;
	p += H2_FRAME_HEAD;
	if (fr.fr_type >= H2_NTYPES) {
		h2_calm_spend(h2);
		h2->h2_frame = fr;
		h2->h2_left = fr.fr_len;
	} else if (fr.fr_type == H2_DATA)
		data_begin(h2, &fr, fr.fr_flags & H2_F_PADDED &&
		    fr.fr_len > 0 ? p[0] : 0);
	else
		types[fr.fr_type].fn(h2, &fr, p);
}

static size_t
take_preface(struct h2 *h2, const unsigned char *p, size_t len)
{
	size_t	 n = H2_PREFACE_LEN - h2->h2_preface;

	if (n > len)
		n = len;
	if (memcmp(p, h2_preface + h2->h2_preface, n) != 0)
		h2_fail(h2, H2_PROTOCOL_ERROR, "not HTTP/2");
	h2->h2_preface += n;
	return n;
}

/* Collect a frame that came in parts until it is complete. */
static size_t
take_more(struct h2 *h2, const unsigned char *p, size_t len)
{
	unsigned char	*held;
	size_t		 n;

	if (h2->h2_held == NULL &&
	    (h2->h2_held = blocks_get(&frame_blocks)) == NULL) {
		h2_fail(h2, H2_INTERNAL_ERROR, "no memory");
		return len;
	}
	n = wanted(h2->h2_held, h2->h2_heldlen) - h2->h2_heldlen;
	if (n > len)
		n = len;
	memcpy(h2->h2_held + h2->h2_heldlen, p, n);
	h2->h2_heldlen += n;
	if (h2->h2_heldlen == wanted(h2->h2_held, h2->h2_heldlen)) {
		held = h2->h2_held;
		h2->h2_held = NULL;
		h2->h2_heldlen = 0;
		take_frame(h2, held);
		blocks_put(&frame_blocks, held);
	}
	return n;
}

void
h2_take(struct h2 *h2, const unsigned char *p, size_t len)
{
	size_t	 n;

	for (; len > 0 && h2->h2_why == NULL && !h2->h2_dead; p += n, len -= n)
		if (h2->h2_server && h2->h2_preface < H2_PREFACE_LEN)
			n = take_preface(h2, p, len);
		else if (h2->h2_left > 0)
			n = take_rest(h2, p, len);
		else if (h2->h2_heldlen > 0 || len < H2_FRAME_HEAD ||
		    len < wanted(p, len))
			n = take_more(h2, p, len);
		else {
			n = wanted(p, len);
			take_frame(h2, p);
		}
}

bool
h2_in_head(const struct h2 *h2)
{
	return h2->h2_heldlen > 0 || h2->h2_block_of.fr_id != 0;
}

void
h2_recv_free(struct h2 *h2)
{
	blocks_put(&frame_blocks, h2->h2_held);
	h2_block_free(h2);
}
