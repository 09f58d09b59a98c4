/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: fields that follow a body, and the chunked bodies of HTTP/1 that
 * they end.
 */

#ifndef TRAILERS_H
#define TRAILERS_H

#include "h1.h"

struct io;

#define TRAILERS_MAX	H1_FIELDS_MAX

struct trailers {
	const struct h1_field	*tr_fields;
	size_t			 tr_n;
};

/* A chunked body begins.  Without memory its trailers are dropped. */
void			 chunks_begin(struct h1_chunk *);
void			 chunks_end(struct h1_chunk *);
/* Trailers of a complete body, or NULL; valid until the next call. */
const struct trailers	*chunks_trailers(const struct h1_chunk *);
void			 chunks_put_last(struct io *, const struct trailers *);

#endif /* TRAILERS_H */
