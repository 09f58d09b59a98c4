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
 * tlsengine: what both ends of HTTP/2 share.  An h2 is nghttp2's session upon
 * an io; a stream carries one exchange, whose other side may be slower than
 * this one: received bytes wait here, bounded by the window that we opened for
 * them, and the window opens again only as they are passed on.
 *
 * conn_h2.c owns the streams that clients open, upstream_h2.c those that we
 * open at origins; each gives an h2_ops.
 */

#ifndef H2_H
#define H2_H

#include <nghttp2/nghttp2.h>

#include "h2_head.h"
#include "tlsengine.h"

#define H2_STREAMS_MAX	100	/* at once, of one connection */
#define H2_STREAMS_ALL	4096	/* and of all */
#define H2_OUT_SIZE	(64 * 1024)	/* bytes of a stream that may wait */
#define H2_OUT_LOW	(16 * 1024)

struct h2_piece;

struct h2_stream {
	TAILQ_ENTRY(h2_stream)	 hs_entry;
	struct h2		*hs_h2;
	int32_t			 hs_id;
	struct exchange		*hs_ex;		/* NULL: over, drains */
	char			*hs_text;	/* of the head, as HTTP/1 */
	bool			 hs_headed;	/* its final head has come */
	uint64_t		 hs_due;	/* ms; 0: nothing is */

	/* Received, to be passed on. */
	TAILQ_HEAD(h2_pieces, h2_piece) hs_in;
	uint64_t		 hs_wasted;	/* after the answer */
	bool			 hs_in_end;	/* END_STREAM has come */
	bool			 hs_in_told;	/* and the owner knows */
	char			*hs_in_text;	/* trailers, as HTTP/1 */
	struct h1_field		*hs_in_fields;
	size_t			 hs_in_nfields;

	/* To be sent. */
	unsigned char		*hs_out;	/* NULL while empty */
	size_t			 hs_outpos;
	size_t			 hs_outlen;
	bool			 hs_out_full;	/* the source waits for room */
	bool			 hs_out_end;	/* nothing will be added */
	bool			 hs_out_asleep;	/* nghttp2 waits for data */
	struct h1_field		*hs_out_fields;	/* trailers */
	size_t			 hs_out_nfields;

	bool			 hs_closed;	/* nghttp2 knows it no more */
	uint64_t		 hs_left;	/* of an answer, bytes to come */
	unsigned int		 hs_interim;	/* 1xx answers so far */
	uint64_t		 hs_bytes_in;	/* for the records */
	uint64_t		 hs_bytes_out;
};
TAILQ_HEAD(h2_streams, h2_stream);

struct h2_ops {
	/* A head is complete; not for trailers, which the stream keeps. */
	void	 (*on_head)(struct h2_stream *, struct h2_head *, bool end);
	/* As much as can be passed on now; what it leaves is offered again. */
	size_t	 (*on_data)(struct h2_stream *, const void *, size_t);
	/* All was passed on and no more will come; trailers are in hs_in_*. */
	void	 (*on_end)(struct h2_stream *);
	/* Of what waited to be sent so much is out that there is room again. */
	void	 (*on_room)(struct h2_stream *);
	/* Its deadline has passed. */
	void	 (*on_late)(struct h2_stream *);
	/* Reset, or refused, before its end; hs_ex is still set. */
	void	 (*on_reset)(struct h2_stream *, uint32_t code);
	/* The peer's settings have come or changed, or it says goodbye. */
	void	 (*on_settings)(struct h2 *);
	void	 (*on_goaway)(struct h2 *, int32_t last);
	/* The session is beyond repair, or the peer abuses it; constant text. */
	void	 (*on_broken)(struct h2 *, const char *why);
};

struct h2 {
	TAILQ_ENTRY(h2)		 h2_entry;	/* of those with news */
	nghttp2_session		*h2_session;
	struct io		*h2_io;
	const struct h2_ops	*h2_ops;
	void			*h2_owner;
	bool			 h2_server;
	bool			 h2_inside;	/* nghttp2 runs: do not enter */
	bool			 h2_dead;
	bool			 h2_dirty;	/* to be sent this turn */
	bool			 h2_in_head;	/* between two frames of one */
	bool			 h2_abused;	/* that is why */
	const char		*h2_why;	/* on_broken is due */
	struct h2_streams	 h2_streams;
	struct h2_streams	 h2_graves;
	unsigned int		 h2_nstreams;
	struct h2_head		 h2_head;	/* of the block that comes */
	struct h2_stream	*h2_head_of;
	char			*h2_head_text;	/* from in_blocks */
	struct timer		 h2_timer;	/* of the first deadline */
	uint64_t		 h2_nuisance;	/* see h2_annoyed() */
	uint64_t		 h2_nuisance_ms;
	uint64_t		 h2_updates;	/* of windows, that may come */
	uint64_t		 h2_unknown;	/* and frames of no known type */
};

/* NULL if memory is short.  The io must be secured or plain and ready. */
struct h2	*h2_new(struct io *, bool server, const struct h2_ops *,
		    void *owner);
/* No callback comes any more; streams are freed, their exchanges not told. */
void		 h2_close(struct h2 *);
/* After h2_close(), outside of all callbacks. */
void		 h2_free(struct h2 *);

/* From io_ops: bytes are there; there is room to send. */
void		 h2_read(struct h2 *);
void		 h2_send(struct h2 *);
void		 h2_send_now(struct h2 *);
/* No new streams, please. */
void		 h2_goodbye(struct h2 *, uint32_t code);

/* A stream of ours (clients): NULL if there can be none. */
struct h2_stream *h2_open(struct h2 *, const struct h2_nv *, bool end);
/* A head on a stream that is open: interim, or final with or without body. */
int		 h2_interim(struct h2_stream *, const struct h2_nv *);
int		 h2_respond(struct h2_stream *, const struct h2_nv *, bool end);
/* The head of the request stays with its stream. */
int		 h2_keep_head(struct h2_stream *, size_t, struct h1_head *);
/* The body. */
void		*h2_reserve(struct h2_stream *, size_t *);
void		 h2_commit(struct h2_stream *, size_t);
void		 h2_end(struct h2_stream *, const struct trailers *);
void		 h2_reset(struct h2_stream *, uint32_t code);
/* The exchange is over; what it left to be sent still is. */
void		 h2_done(struct h2_stream *);
/* Something is to happen on it within so many milliseconds; 0: whenever. */
void		 h2_deadline(struct h2_stream *, uint64_t);
/* The other side can take more of what was received. */
void		 h2_pump(struct h2_stream *);
/* Bytes that were received and not passed on. */
size_t		 h2_stream_waiting(const struct h2_stream *);
const struct trailers	*h2_trailers(const struct h2_stream *);

/* h2_mem.c */
extern nghttp2_mem	 h2_mem;
void		*h2_malloc(size_t, void *);
void		 h2_release(void *, void *);

/* Between h2.c and h2_stream.c. */
bool		 h2_crowded(void);
struct h2_stream *h2_stream_new(struct h2 *, int32_t);
void		 h2_stream_gone(struct h2_stream *);
void		 h2_streams_bury(struct h2 *);
void		 h2_stream_pass(struct h2_stream *);
void		 h2_on_deadline(void *);
void		 h2_break(struct h2 *, const char *);

/* h2_calm.c */
void		 h2_annoyed(struct h2 *);
void		 h2_calm_begin(struct h2 *, const nghttp2_frame_hd *);
void		 h2_calm_sent(struct h2 *, size_t);
int		 h2_stream_keep(struct h2_stream *, const unsigned char *,
		    size_t);
void		 h2_stream_sent(struct h2_stream *, size_t);

#endif /* H2_H */
