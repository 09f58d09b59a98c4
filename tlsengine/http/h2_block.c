/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: heads that come by HTTP/2, from hostile agents and
 * hostile origins.  A block is decoded when all of it is here, and always, for
 * later ones refer to it; whether anybody wants it is another question.
 */

#include <string.h>

#include "blocks.h"
#include "h2.h"

static struct blocks	 block_blocks = {
	.bk_size = HPACK_BLOCK_MAX, .bk_keep = 4
};

/* The decoded block; not used after its frame. */
static struct h2_head	 head;
static char		 head_text[H1_HEAD_MAX];

static void
on_field(void *arg, const struct hpack_field *hp)
{
	struct h2_stream	*hs = arg;

	if (hs == NULL)
		return;
	hs->hs_bytes_in += hp->hp_nlen + hp->hp_vlen;
	h2_head_field(&head, hp);
}

static int
decode(struct h2 *h2, struct h2_stream *hs, enum h2_kind kind,
    const unsigned char *p, size_t len)
{
	h2_head_begin(&head, kind, head_text, sizeof(head_text));
	if (hpack_decode(&h2->h2_hpack, p, len, on_field, hs) == 0)
		return 0;
	h2_fail(h2, H2_COMPRESSION_ERROR, "not HPACK");
	return -1;
}

static void
ignore_block(struct h2 *h2, const unsigned char *p, size_t len)
{
	decode(h2, NULL, H2_TRAILERS, p, len);
}

static void
block_of_stream(struct h2_stream *hs, uint8_t flags, const unsigned char *p,
    size_t len)
{
	struct h2	*h2 = hs->hs_h2;
	bool		 end = flags & H2_F_END_STREAM;
	enum h2_kind	 kind;

	h2_calm_head(h2);
	kind = h2->h2_server ? H2_REQUEST : H2_RESPONSE;
	if (hs->hs_headed)
		kind = H2_TRAILERS;
	if (decode(h2, hs, kind, p, len) == -1)
		return;
	if (kind == H2_TRAILERS) {
		/* RFC 9113, 8.1: trailers end a stream, after its body. */
		if (!end || (hs->hs_left != 0 &&
		    hs->hs_left != H2_LEFT_OPEN)) {
			h2_stream_fail(hs, H2_PROTOCOL_ERROR);
			return;
		}
		h2_stream_trailers(hs, &head);
	} else {
		hs->hs_in_end = end;
		h2->h2_ops->on_head(hs, &head, end);
	}
	if (end && !h2->h2_dead && !hs->hs_closed)
		h2_stream_in_end(hs);
}

/* A client opens a stream. */
static void
block_of_new(struct h2 *h2, int32_t id, uint8_t flags, const unsigned char *p,
    size_t len)
{
	struct h2_stream	*hs = NULL;

	h2->h2_last = id;
	if (h2->h2_nopen < H2_STREAMS_MAX && !h2_crowded())
		hs = h2_stream_new(h2, id);
	if (hs != NULL) {
		block_of_stream(hs, flags, p, len);
		return;
	}
	ignore_block(h2, p, len);
	h2_put_reset(h2, id, H2_REFUSED_STREAM);
	h2_annoyed(h2);
	h2->h2_ops->on_refused(h2);
}

static void
take_block(struct h2 *h2, int32_t id, uint8_t flags, const unsigned char *p,
    size_t len)
{
	struct h2_stream	*hs = h2_stream_find(h2, id);

	if (hs != NULL && hs->hs_in_end) {
		ignore_block(h2, p, len);
		h2_stream_fail(hs, H2_STREAM_CLOSED);
	} else if (hs != NULL)
		block_of_stream(hs, flags, p, len);
	else if (h2->h2_server && id % 2 == 1 && id > h2->h2_last)
		block_of_new(h2, id, flags, p, len);
	else if (h2_is_idle(h2, id))
		h2_fail(h2, H2_PROTOCOL_ERROR, "head on a stream of nobody");
	else {
		/* A head that crossed our reset of its stream. */
		ignore_block(h2, p, len);
		h2_calm_spend(h2);
	}
}

static void
block_add(struct h2 *h2, const unsigned char *p, size_t len)
{
	if (h2->h2_block == NULL &&
	    (h2->h2_block = blocks_get(&block_blocks)) == NULL)
		h2_fail(h2, H2_INTERNAL_ERROR, "no memory");
	else if (len > HPACK_BLOCK_MAX - h2->h2_blocklen)
		h2_fail(h2, H2_ENHANCE_YOUR_CALM, "head too long");
	else {
		memcpy(h2->h2_block + h2->h2_blocklen, p, len);
		h2->h2_blocklen += len;
	}
}

/* Padding and a priority, which is not ours to keep, are left out. */
void
h2_on_headers(struct h2 *h2, const struct h2_frame *fr, const unsigned char *p)
{
	size_t	 len = fr->fr_len, skip = 0, pad = 0;

	if (fr->fr_flags & H2_F_PADDED && len > 0) {
		pad = p[0];
		skip++;
	}
	if (fr->fr_flags & H2_F_PRIORITY)
		skip += H2_PRIORITY_LEN;
	if (skip + pad > len ||
	    (fr->fr_flags & H2_F_PADDED && fr->fr_len == 0)) {
		h2_fail(h2, H2_PROTOCOL_ERROR, "more padding than frame");
		return;
	}
	p += skip;
	len -= skip + pad;
	if (fr->fr_flags & H2_F_END_HEADERS)
		take_block(h2, fr->fr_id, fr->fr_flags, p, len);
	else {
		h2->h2_block_of = *fr;
		block_add(h2, p, len);
	}
}

/* Frames that do not end a head count as abuse (CVE-2024-27316). */
void
h2_on_continuation(struct h2 *h2, const struct h2_frame *fr,
    const unsigned char *p)
{
	struct h2_frame	 first = h2->h2_block_of;
	unsigned char	*block;

	block_add(h2, p, fr->fr_len);
	if (h2->h2_why != NULL)
		return;
	if (!(fr->fr_flags & H2_F_END_HEADERS)) {
		h2_annoyed(h2);
		return;
	}
	block = h2->h2_block;
	h2->h2_block = NULL;
	h2->h2_block_of.fr_id = 0;
	take_block(h2, first.fr_id, first.fr_flags, block, h2->h2_blocklen);
	h2->h2_blocklen = 0;
	blocks_put(&block_blocks, block);
}

void
h2_block_free(struct h2 *h2)
{
	blocks_put(&block_blocks, h2->h2_block);
}
