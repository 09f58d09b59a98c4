/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: what both ends of HTTP/2 (RFC 9113) share.  An h2 speaks frames
 * upon an io; a stream carries one exchange, whose other side may be slower
 * than this one: received bytes wait here, bounded by the window that we opened
 * for them, and the window opens again only as they are passed on.
 *
 * The files, from below: h2_recv.c reads frames and h2_send.c writes them;
 * h2_block.c decodes heads and h2_nv.c encodes them; h2_in.c keeps what came
 * and waits, h2_stream.c what is to go; h2_calm.c counts what is legal and
 * still an attack; h2.c is the connection.  conn_h2.c owns the streams that
 * clients open, upstream_h2.c those that we open at origins; each gives an
 * h2_ops.
 */

#ifndef H2_H
#define H2_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include "h2_head.h"
#include "hpack.h"
#include "timer.h"
#include "tls/io.h"
#include "trailers.h"

struct exchange;	/* to an h2, no more than the mark of its stream */

#define H2_STREAMS_MAX	100	/* at once, of one connection */
#define H2_STREAMS_ALL	4096	/* and of all */
#define H2_OUT_SIZE	(64 * 1024)	/* bytes of a stream that may wait */
#define H2_OUT_LOW	(16 * 1024)
#define H2_QUEUE_MUCH	(64 * 1024)	/* bytes: nothing new for that peer */
#define H2_HEAD_USUAL	512	/* bytes of a head that stay with its stream */
#define H2_BUCKETS	64	/* of streams, by their number */

#define H2_PRIORITY_LEN	5	/* bytes, of what nobody reads */
#define H2_FRAME_HEAD	9	/* bytes before the payload of a frame */
#define H2_FRAME_MAX	16384	/* bytes of it, as both sides have to take */
#define H2_WINDOW	65535	/* bytes, before anybody says otherwise */
#define H2_WINDOW_MAX	INT32_MAX
#define H2_ID_MAX	INT32_MAX

enum h2_type {
	H2_DATA,
	H2_HEADERS,
	H2_PRIORITY,
	H2_RST_STREAM,
	H2_SETTINGS,
	H2_PUSH_PROMISE,
	H2_PING,
	H2_GOAWAY,
	H2_WINDOW_UPDATE,
	H2_CONTINUATION,
	H2_NTYPES
};

#define H2_F_ACK		0x01
#define H2_F_END_STREAM		0x01
#define H2_F_END_HEADERS	0x04
#define H2_F_PADDED		0x08
#define H2_F_PRIORITY		0x20

enum h2_setting {
	H2_S_ENABLE_PUSH = 2,
	H2_S_MAX_STREAMS = 3,
	H2_S_WINDOW = 4,
	H2_S_FRAME_SIZE = 5,
	H2_S_HEAD_SIZE = 6,
	H2_S_CONNECT = 8
};

enum h2_code {
	H2_NO_ERROR,
	H2_PROTOCOL_ERROR,
	H2_INTERNAL_ERROR,
	H2_FLOW_CONTROL_ERROR,
	H2_SETTINGS_TIMEOUT,
	H2_STREAM_CLOSED,
	H2_FRAME_SIZE_ERROR,
	H2_REFUSED_STREAM,
	H2_CANCEL,
	H2_COMPRESSION_ERROR,
	H2_CONNECT_ERROR,
	H2_ENHANCE_YOUR_CALM
};

struct h2_frame {
	uint32_t		 fr_len;
	uint8_t			 fr_type;
	uint8_t			 fr_flags;
	int32_t			 fr_id;
};

struct h2_piece;

struct h2_stream {
	TAILQ_ENTRY(h2_stream)	 hs_entry;
	LIST_ENTRY(h2_stream)	 hs_bucket;	/* while it is not closed */
	struct h2		*hs_h2;
	int32_t			 hs_id;
	struct exchange		*hs_ex;		/* NULL: over, drains */
	char			*hs_text;	/* of the head, as HTTP/1 */
	bool			 hs_headed;	/* the final head has come */
	uint64_t		 hs_due;	/* ms; 0: nothing is */

	/* Received, to be passed on. */
	TAILQ_HEAD(h2_pieces, h2_piece) hs_in;
	int64_t			 hs_in_window;	/* what may come, bytes */
	int64_t			 hs_in_done;	/* since the last update */
	uint64_t		 hs_left;	/* of a declared body length */
	uint64_t		 hs_wasted;	/* after the answer */
	bool			 hs_in_end;	/* END_STREAM has come */
	bool			 hs_in_told;	/* the owner knows of the end */
	struct h1_field		*hs_in_fields;	/* trailers */
	size_t			 hs_in_nfields;

	/* To be sent. */
	TAILQ_ENTRY(h2_stream)	 hs_turn;	/* ready, starved or ending */
	struct h2_streams	*hs_waits;	/* the list of hs_turn */
	int64_t			 hs_out_window;
	unsigned char		*hs_out;	/* NULL while empty */
	size_t			 hs_outpos;
	size_t			 hs_outlen;
	bool			 hs_out_full;	/* the source waits for room */
	bool			 hs_out_direct;	/* the room is the io's */
	bool			 hs_out_end;	/* nothing will be added */
	bool			 hs_ended;	/* END_STREAM is out */
	struct h1_field		*hs_out_fields;	/* trailers */
	size_t			 hs_out_nfields;

	bool			 hs_doomed;	/* to be reset, with hs_code */
	uint32_t		 hs_code;
	bool			 hs_closed;	/* the peer knows it no more */
	unsigned int		 hs_interim;	/* 1xx answers so far */
	uint64_t		 hs_bytes_in;	/* for the records */
	uint64_t		 hs_bytes_out;
	char			 hs_usual[H2_HEAD_USUAL];
};
TAILQ_HEAD(h2_streams, h2_stream);

/* Hs_left of a body of unknown length. */
#define H2_LEFT_OPEN	UINT64_MAX

struct h2_ops {
	/* A head is complete; not for trailers, which the stream keeps. */
	void	 (*on_head)(struct h2_stream *, struct h2_head *, bool end);
	/* Returns how much was passed on; the rest is offered again. */
	size_t	 (*on_data)(struct h2_stream *, const void *, size_t);
	/* All was passed on and no more will come; trailers are in hs_in_*. */
	void	 (*on_end)(struct h2_stream *);
	/* What waits to be sent has fallen below H2_OUT_LOW. */
	void	 (*on_room)(struct h2_stream *);
	/* The deadline of h2_deadline() has passed. */
	void	 (*on_late)(struct h2_stream *);
	/* The stream was reset or refused before its end; hs_ex is set. */
	void	 (*on_reset)(struct h2_stream *, uint32_t code);
	/* The peer has opened one too many, which is refused. */
	void	 (*on_refused)(struct h2 *);
	/* The peer's settings have come or changed, or it says goodbye. */
	void	 (*on_settings)(struct h2 *);
	void	 (*on_goaway)(struct h2 *);
	/* The connection is broken, or abused by the peer; constant text. */
	void	 (*on_broken)(struct h2 *, const char *why);
};

struct h2 {
	TAILQ_ENTRY(h2)		 h2_entry;	/* h2s to be sent this turn */
	struct io		*h2_io;
	const struct h2_ops	*h2_ops;
	void			*h2_owner;
	bool			 h2_server;
	bool			 h2_inside;	/* streams stay till we leave */
	bool			 h2_dead;
	bool			 h2_dirty;	/* to be sent this turn */
	bool			 h2_abused;	/* h2_why is abuse */
	const char		*h2_why;	/* on_broken is due */

	struct h2_streams	 h2_streams;
	struct h2_streams	 h2_graves;
	LIST_HEAD(, h2_stream)	 h2_table[H2_BUCKETS];
	unsigned int		 h2_nstreams;
	unsigned int		 h2_nopen;	/* streams the peer knows */
	int32_t			 h2_last;	/* stream a client opened */
	struct timer		 h2_timer;	/* of the first deadline */

	/* Receiving. */
	size_t			 h2_preface;	/* bytes of it so far */
	bool			 h2_settled;	/* the peer's settings came */
	bool			 h2_parting;	/* the peer's goodbye came */
	unsigned char		*h2_held;	/* of a frame, not whole */
	size_t			 h2_heldlen;
	struct h2_frame		 h2_frame;	/* DATA, or what is skipped */
	uint32_t		 h2_left;	/* bytes of h2_frame */
	uint32_t		 h2_padding;	/* behind it */
	struct h2_stream	*h2_data_of;	/* whose it is, if anybody's */
	unsigned char		*h2_block;	/* of a head in many frames */
	size_t			 h2_blocklen;
	struct h2_frame		 h2_block_of;	/* fr_id 0: none */
	struct hpack_decoder	 h2_hpack;
	int64_t			 h2_in_window;	/* what may come, bytes */
	int64_t			 h2_in_done;	/* since the last update */
	int64_t			 h2_window;	/* both, when nothing waits */
	int64_t			 h2_stream_window;

	/* Sending. */
	struct h2_streams	 h2_ready;	/* have something to send */
	struct h2_streams	 h2_starved;	/* wait for h2_out_window */
	struct h2_streams	 h2_ending;	/* are over, or to be reset */
	int64_t			 h2_out_window;
	unsigned int		 h2_nkept;	/* streams whose data waits */
	unsigned char		*h2_queue;	/* of frames that do not fit */
	size_t			 h2_queuepos;
	size_t			 h2_queuelen;
	size_t			 h2_queuesize;
	unsigned int		 h2_nacks;	/* in it */
	bool			 h2_head_sent;	/* first of the connection */
	struct h2_stream	*h2_tail;	/* whose DATA was put last */
	size_t			 h2_taillen;	/* with its head */
	bool			 h2_leaving;	/* we have said goodbye */

	/* Settings of the peer. */
	int64_t			 h2_peer_window;
	uint32_t		 h2_peer_streams;
	bool			 h2_peer_connect;

	uint64_t		 h2_nuisance;	/* see h2_annoyed() */
	uint64_t		 h2_nuisance_ms;
	uint64_t		 h2_paid;	/* frames that are allowed */
	uint64_t		 h2_updates;	/* of windows, allowed */
};

/* NULL if memory is short.  The io must be secured or plain and ready. */
struct h2	*h2_new(struct io *, bool server, const struct h2_ops *,
		    void *owner);
/* No callback comes any more; streams are freed, their exchanges not told. */
void		 h2_close(struct h2 *);
/* Frees what h2_close() has left; not inside a callback. */
void		 h2_free(struct h2 *);

/* From io_ops: bytes are there.  False: they ended the connection. */
bool		 h2_read(struct h2 *);
/* As h2_read(), of bytes that were read before HTTP/2 was known. */
bool		 h2_read_ahead(struct h2 *, const unsigned char *, size_t);
/* From io_ops: there is room to send. */
void		 h2_send(struct h2 *);
/* Bytes that wait go to the io now; nothing else happens. */
void		 h2_push(struct h2 *);
/* No new streams, please. */
void		 h2_goodbye(struct h2 *, uint32_t code);
/* Whether a frame or head has begun and is not complete. */
bool		 h2_in_head(const struct h2 *);

/* Whether the peer takes another stream of ours (clients). */
bool		 h2_has_room(const struct h2 *);
/* A stream of ours: NULL if there can be none. */
struct h2_stream *h2_open(struct h2 *, const struct h2_nv *, bool end);
/* A head on a stream that is open: interim, or final with or without body. */
int		 h2_interim(struct h2_stream *, const struct h2_nv *);
int		 h2_respond(struct h2_stream *, const struct h2_nv *, bool end);
/* The head of the request stays with its stream. */
int		 h2_keep_head(struct h2_stream *, const struct h2_head *,
		    struct h1_head *);
/* The body. */
void		*h2_reserve(struct h2_stream *, size_t *);
void		 h2_commit(struct h2_stream *, size_t);
void		 h2_end(struct h2_stream *, const struct trailers *);
void		 h2_reset(struct h2_stream *, uint32_t code);
/* The exchange is over; what it left to be sent still is. */
void		 h2_done(struct h2_stream *);
/* Call on_late unless renewed within so many ms; 0: no deadline. */
void		 h2_deadline(struct h2_stream *, uint64_t);
/* The other side can take more of what was received. */
void		 h2_pump(struct h2_stream *);
/* Bytes that were received and not passed on. */
size_t		 h2_stream_waiting(const struct h2_stream *);
const struct trailers	*h2_trailers(const struct h2_stream *);

/* Whether neither we nor the peer has opened this stream. */
static inline bool
h2_is_idle(const struct h2 *h2, int32_t id)
{
	return id % 2 == 0 || id > h2->h2_last;
}

/* ---- between the files of it --------------------------------------------- */

/* h2.c: what a client says first. */
#define H2_PREFACE_LEN	24
#define H2_PREFACE_HEAD	18	/* of these, a head to HTTP/1 */
extern const char	 h2_preface[];
/* on_broken is due; and the peer is told with a GOAWAY. */
void		 h2_break(struct h2 *, const char *);
void		 h2_fail(struct h2 *, uint32_t code, const char *);

/* h2_recv.c */
void		 h2_take(struct h2 *, const unsigned char *, size_t);
void		 h2_recv_free(struct h2 *);

/* h2_block.c */
void		 h2_on_headers(struct h2 *, const struct h2_frame *,
		    const unsigned char *);
void		 h2_on_continuation(struct h2 *, const struct h2_frame *,
		    const unsigned char *);
void		 h2_block_free(struct h2 *);

/* h2_send.c */
void		 h2_put_settings(struct h2 *, const uint32_t (*)[2], size_t);
void		 h2_put_settings_ack(struct h2 *);
void		 h2_put_ping_ack(struct h2 *, const unsigned char *);
void		 h2_put_goaway(struct h2 *, uint32_t code);
void		 h2_put_window(struct h2 *, int32_t id, uint32_t);
void		 h2_put_reset(struct h2 *, int32_t id, uint32_t code);
int		 h2_put_head(struct h2_stream *, const struct h2_nv *,
		    bool end);
void		 h2_put_all(struct h2 *);
void		 h2_put_ends(struct h2 *);
/* A DATA frame in the io; NULL if the bytes must be kept instead. */
void		*h2_data_reserve(struct h2_stream *, size_t *);
void		 h2_data_commit(struct h2_stream *, size_t);
void		 h2_data_end(struct h2_stream *);
/* Queue streams for sending: all starved, this one; or unqueue it. */
void		 h2_window_opens(struct h2 *);
void		 h2_stream_ready(struct h2_stream *);
void		 h2_stream_idle(struct h2_stream *);

/* h2_stream.c */
bool		 h2_crowded(void);
struct h2_stream *h2_stream_new(struct h2 *, int32_t);
struct h2_stream *h2_stream_find(struct h2 *, int32_t);
/* Close a stream: neither side says anything more on it. */
void		 h2_stream_close(struct h2_stream *, uint32_t code);
void		 h2_stream_fail(struct h2_stream *, uint32_t code);
void		 h2_stream_gone(struct h2_stream *);
void		 h2_streams_bury(struct h2 *);
void		 h2_stream_trailers(struct h2_stream *, struct h2_head *);
void		 h2_stream_sent(struct h2_stream *, size_t);
void		 h2_on_deadline(void *);

/* h2_in.c */
void		 h2_stream_data(struct h2_stream *, const unsigned char *,
		    size_t);
void		 h2_stream_in_end(struct h2_stream *);
/* Drop received bytes that wait. */
void		 h2_stream_drop(struct h2_stream *);
/* Received bytes were passed on or dropped: open the windows. */
void		 h2_consumed(struct h2 *, size_t);
void		 h2_stream_consumed(struct h2_stream *, size_t);

/* h2_calm.c */
void		 h2_annoyed(struct h2 *);
void		 h2_calm_spend(struct h2 *);
void		 h2_calm_update(struct h2 *);
void		 h2_calm_paid(struct h2 *, unsigned int);
void		 h2_calm_head(struct h2 *);
void		 h2_calm_sent(struct h2 *, size_t);

#endif /* H2_H */
