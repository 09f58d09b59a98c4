/* SPDX-License-Identifier: ISC */

/*
 * Blocks read by our HPACK and by nghttp2's, of which the tests want that they
 * agree.
 */

#ifndef HPACK_PEER_H
#define HPACK_PEER_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../tlsengine/http/hpack.h"

/* A few bytes may stand for megabytes of text; that much is looked at. */
#define SEEN_MAX	(256 * 1024)

/* What a block said; the same fields in the same order are the same. */
struct seen {
	uint64_t	 s_hash;
	size_t		 s_bytes;
	size_t		 s_fields;
};

struct peers {
	struct hpack_decoder	 pe_ours;
	nghttp2_hd_inflater	*pe_theirs;
};

static inline void
seen_bytes(struct seen *s, const void *data, size_t len)
{
	const uint8_t	*p = data;
	size_t		 i;

	s->s_hash = (s->s_hash ^ len) * 0x9e3779b97f4a7c15;
	if (s->s_bytes < SEEN_MAX)
		for (i = 0; i < len; i++)
			s->s_hash = (s->s_hash ^ p[i]) * 0x100000001b3;
	s->s_bytes += len;
}

static inline void
seen_field(struct seen *s, const void *name, size_t nlen, const void *value,
    size_t vlen)
{
	seen_bytes(s, name, nlen);
	seen_bytes(s, value, vlen);
	s->s_fields++;
}

static inline void
seen_ours(void *arg, const struct hpack_field *hp)
{
	seen_field(arg, hp->hp_name, hp->hp_nlen, hp->hp_value, hp->hp_vlen);
}

static inline bool
seen_same(const struct seen *a, const struct seen *b)
{
	return a->s_hash == b->s_hash && a->s_bytes == b->s_bytes &&
	    a->s_fields == b->s_fields;
}

static inline void
peers_init(struct peers *pe)
{
	hpack_decoder_init(&pe->pe_ours);
	if (nghttp2_hd_inflate_new(&pe->pe_theirs) != 0)
		abort();
}

static inline void
peers_free(struct peers *pe)
{
	hpack_decoder_free(&pe->pe_ours);
	nghttp2_hd_inflate_del(pe->pe_theirs);
}

/* From memory of its own, so that a read beyond it is seen. */
static inline int
peers_ours(struct peers *pe, const uint8_t *block, size_t len, struct seen *s)
{
	uint8_t	*copy;
	int	 r;

	if ((copy = malloc(len)) == NULL && len != 0)
		abort();
	if (len != 0)
		memcpy(copy, block, len);
	*s = (struct seen){ 0 };
	r = hpack_decode(&pe->pe_ours, copy, len, seen_ours, s);
	free(copy);
	return r;
}

static inline int
peers_theirs(struct peers *pe, const uint8_t *block, size_t len,
    struct seen *s)
{
	nghttp2_nv	 nv;
	ssize_t		 n;
	int		 flags = 0;

	*s = (struct seen){ 0 };
	while ((flags & NGHTTP2_HD_INFLATE_FINAL) == 0) {
		flags = 0;
		n = nghttp2_hd_inflate_hd2(pe->pe_theirs, &nv, &flags, block,
		    len, 1);
		if (n < 0)
			return -1;
		block += n;
		len -= (size_t)n;
		if (flags & NGHTTP2_HD_INFLATE_EMIT)
			seen_field(s, nv.name, nv.namelen, nv.value,
			    nv.valuelen);
	}
	nghttp2_hd_inflate_end_headers(pe->pe_theirs);
	return 0;
}

#endif /* HPACK_PEER_H */
