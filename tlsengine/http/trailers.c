/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: the end of chunked bodies, with the fields that may
 * stand there.  They come after the verdict, so what could change the meaning
 * of what was judged is not passed on; h1_parse_trailers() knows what.
 */

#include <string.h>

#include "blocks.h"
#include "tls/io.h"
#include "trailers.h"

/* Written out, a field gets a space that it may not have had. */
_Static_assert(sizeof(H1_CHUNK_LAST) + H1_TRAILER_MAX + TRAILERS_MAX <=
    IO_END_ROOM, "io_reserve_body() leaves room for trailers");

static struct blocks	 sections = {
	.bk_size = H1_TRAILER_MAX, .bk_keep = 16
};

void
chunks_begin(struct h1_chunk *ck)
{
	chunks_end(ck);
	if ((ck->hc_keep = blocks_get(&sections)) != NULL)
		ck->hc_keepsz = H1_TRAILER_MAX;
}

void
chunks_end(struct h1_chunk *ck)
{
	blocks_put(&sections, ck->hc_keep);
	memset(ck, 0, sizeof(*ck));
}

const struct trailers *
chunks_trailers(const struct h1_chunk *ck)
{
	static struct h1_field	 fields[TRAILERS_MAX];
	static struct trailers	 tr = { fields, 0 };
	struct h1_error		 he;
	ssize_t			 n;

	if (ck->hc_keep == NULL || ck->hc_trailer <= 2)
		return NULL;
	n = h1_parse_trailers(ck->hc_keep, ck->hc_trailer, fields,
	    TRAILERS_MAX, &he);
	if (n <= 0)
		return NULL;
	tr.tr_n = n;
	return &tr;
}

void
chunks_put_last(struct io *io, const struct trailers *tr)
{
	size_t	 room;
	ssize_t	 len;
	char	*p;

	if (tr != NULL && (p = io_reserve(io, &room)) != NULL &&
	    (len = h1_format_trailers(p, room, tr->tr_fields,
	    tr->tr_n)) != -1)
		io_commit(io, len);
	else
		io_put(io, H1_CHUNK_LAST, sizeof(H1_CHUNK_LAST) - 1);
}
