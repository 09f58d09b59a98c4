/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: bodies that come by HTTP/2, and wait here for whoever
 * they are for.  What waits is bounded by the windows, which open again as it
 * is passed on.
 */

#include <string.h>

#include "blocks.h"
#include "h2.h"

/*
 * A body whose answer is out already.  RFC 9113, 8.1 would have us reset the
 * stream with NO_ERROR; to curl that is an error, and the answer is lost.  So
 * it is read and forgotten, up to a point.
 */
#define WASTE_MAX	(64 * 1024 * 1024)	/* bytes */

#define PIECE_SIZE	(16 * 1024)
#define PIECES_FREE	512	/* that hold up no other stream */

/*
 * A stream whose reader is slow should hold up itself and no other.  So as
 * long as all that waits anywhere is little, the window of the connection
 * opens at once, and only that of the stream as the bytes are passed on.
 */
struct h2_piece {
	TAILQ_ENTRY(h2_piece)	 hp_entry;
	bool			 hp_free;	/* for the connection */
	size_t			 hp_pos;
	size_t			 hp_len;
	unsigned char		 hp_data[PIECE_SIZE];
};

static struct blocks	 pieces = {
	.bk_size = sizeof(struct h2_piece), .bk_keep = 32
};
static unsigned int	 npieces;

/* ---- windows ------------------------------------------------------------- */

/* The window opens by halves: often enough, and few frames. */
void
h2_consumed(struct h2 *h2, size_t n)
{
	h2->h2_in_done += n;
	if (h2->h2_in_done < h2->h2_window / 2)
		return;
	h2_put_window(h2, 0, h2->h2_in_done);
	h2->h2_in_window += h2->h2_in_done;
	h2->h2_in_done = 0;
	h2_send(h2);
}

void
h2_stream_consumed(struct h2_stream *hs, size_t n)
{
	struct h2	*h2 = hs->hs_h2;

	hs->hs_in_done += n;
	if (hs->hs_in_done < h2->h2_stream_window / 2 || hs->hs_in_end ||
	    hs->hs_closed)
		return;
	h2_put_window(h2, hs->hs_id, hs->hs_in_done);
	hs->hs_in_window += hs->hs_in_done;
	hs->hs_in_done = 0;
	h2_send(h2);
}

/* ---- pieces -------------------------------------------------------------- */

static void
piece_drop(struct h2_stream *hs, struct h2_piece *hp)
{
	TAILQ_REMOVE(&hs->hs_in, hp, hp_entry);
	blocks_put(&pieces, hp);
	npieces--;
}

static void
piece_consume(struct h2_stream *hs, const struct h2_piece *hp, size_t n)
{
	if (!hp->hp_free)
		h2_consumed(hs->hs_h2, n);
	h2_stream_consumed(hs, n);
}

/* Drop what waits; windows stay open for what still comes. */
void
h2_stream_drop(struct h2_stream *hs)
{
	struct h2_piece	*hp;

	while ((hp = TAILQ_FIRST(&hs->hs_in)) != NULL) {
		if (!hs->hs_h2->h2_dead)
			piece_consume(hs, hp, hp->hp_len - hp->hp_pos);
		piece_drop(hs, hp);
	}
}

/* 1: all of it was passed on. */
static int
piece_pass(struct h2_stream *hs, struct h2_piece *hp)
{
	struct h2	*h2 = hs->hs_h2;
	size_t		 n;

	while (hp->hp_pos < hp->hp_len) {
		n = h2->h2_ops->on_data(hs, hp->hp_data + hp->hp_pos,
		    hp->hp_len - hp->hp_pos);
		if (h2->h2_dead || hs->hs_ex == NULL || n == 0)
			return 0;
		hp->hp_pos += n;
		piece_consume(hs, hp, n);
	}
	piece_drop(hs, hp);
	return 1;
}

size_t
h2_stream_waiting(const struct h2_stream *hs)
{
	const struct h2_piece	*hp;
	size_t			 n = 0;

	TAILQ_FOREACH(hp, &hs->hs_in, hp_entry)
		n += hp->hp_len - hp->hp_pos;
	return n;
}

/* Pass on what waits, as far as the other side takes it. */
static void
stream_pass(struct h2_stream *hs)
{
	struct h2	*h2 = hs->hs_h2;
	struct h2_piece	*hp;

	while ((hp = TAILQ_FIRST(&hs->hs_in)) != NULL)
		if (!piece_pass(hs, hp))
			return;
	if (hs->hs_in_end && !hs->hs_in_told && hs->hs_ex != NULL) {
		hs->hs_in_told = true;
		h2->h2_ops->on_end(hs);
	}
}

void
h2_pump(struct h2_stream *hs)
{
	struct h2	*h2 = hs->hs_h2;
	bool		 inside = h2->h2_inside;

	/* Keeps this stream's memory until the call returns. */
	h2->h2_inside = true;
	stream_pass(hs);
	h2->h2_inside = inside;
	h2_send(h2);
}

static struct h2_piece *
piece_new(struct h2_stream *hs)
{
	struct h2_piece	*hp;

	if ((hp = blocks_get(&pieces)) == NULL)
		return NULL;
	hp->hp_pos = hp->hp_len = 0;
	hp->hp_free = npieces++ < PIECES_FREE;
	TAILQ_INSERT_TAIL(&hs->hs_in, hp, hp_entry);
	return hp;
}

static int
stream_keep(struct h2_stream *hs, const unsigned char *data, size_t len)
{
	struct h2_piece	*hp = TAILQ_LAST(&hs->hs_in, h2_pieces);
	size_t		 n;

	for (; len > 0; data += n, len -= n) {
		if ((hp == NULL || hp->hp_len == PIECE_SIZE) &&
		    (hp = piece_new(hs)) == NULL)
			return -1;
		n = PIECE_SIZE - hp->hp_len;
		if (n > len)
			n = len;
		memcpy(hp->hp_data + hp->hp_len, data, n);
		hp->hp_len += n;
		if (hp->hp_free)
			h2_consumed(hs->hs_h2, n);
	}
	return 0;
}

/* Straight to the other side if nothing waits before it. */
void
h2_stream_data(struct h2_stream *hs, const unsigned char *data, size_t len)
{
	struct h2	*h2 = hs->hs_h2;
	size_t		 n;

	hs->hs_bytes_in += len;
	while (hs->hs_ex != NULL && TAILQ_EMPTY(&hs->hs_in) && len > 0) {
		n = h2->h2_ops->on_data(hs, data, len);
		if (h2->h2_dead)
			return;
		if (n == 0)
			break;
		h2_consumed(h2, n);
		h2_stream_consumed(hs, n);
		data += n;
		len -= n;
	}
	if (hs->hs_ex == NULL) {
		h2_consumed(h2, len);
		h2_stream_consumed(hs, len);
		if (!hs->hs_closed && (hs->hs_wasted += len) > WASTE_MAX)
			h2_reset(hs, H2_NO_ERROR);
	} else if (len > 0 && stream_keep(hs, data, len) == -1)
		h2_reset(hs, H2_INTERNAL_ERROR);
}

void
h2_stream_in_end(struct h2_stream *hs)
{
	hs->hs_in_end = true;
	stream_pass(hs);
	if (!hs->hs_h2->h2_dead)
		h2_stream_ready(hs);
}
