/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: one end of a connection, with or without TLS, as bytes that are
 * read when the owner can use them and written when the peer takes them.
 * Nothing in it grows: an owner reads no more than it has room for, and what
 * waits to be written is bounded by the marks below.
 */

#ifndef IO_H
#define IO_H

#include <sys/queue.h>
#include <sys/types.h>

#include <openssl/ssl.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include <stdbool.h>
#include <stdint.h>

#define IO_BLOCK	(80 * 1024)	/* of each buffer of a connection */
#define IO_OUT_SIZE	IO_BLOCK	/* bytes that may wait */
#define IO_OUT_LOW	(16 * 1024)	/* below this the owner may go on */
#define IO_END_ROOM	(16 * 1024)	/* kept for the end of a body */
#define IO_OUT_BATCH	(48 * 1024)	/* and a record more are sent at once */

struct io;

struct io_ops {
	/* Bytes may be there; read until -1/EAGAIN or have no more room. */
	void	(*on_read)(struct io *);
	/* What waited has fallen below IO_OUT_LOW, or is out (io_ending). */
	void	(*on_drain)(struct io *);
	/* The handshake is done (why is NULL) or has failed. */
	void	(*on_secure)(struct io *, const char *why);
	/* The connection is broken; what was not written is lost. */
	void	(*on_error)(struct io *, const char *why);
};

struct io {
	TAILQ_ENTRY(io)		 io_entry;	/* ios with bytes to send */
	TAILQ_ENTRY(io)		 io_later;	/* ios with more to read */
	TAILQ_ENTRY(io)		 io_next_held;
	int			 io_fd;
	SSL			*io_ssl;	/* NULL: in the clear */
	const struct io_ops	*io_ops;
	void			*io_arg;
	struct event		 io_rev;
	struct event		 io_wev;
	bool			 io_handshake;	/* under way */
	bool			 io_paused;	/* the owner has no room */
	bool			 io_held;	/* see io_take() */
	bool			 io_eof;	/* the peer will send no more */
	bool			 io_closed;	/* io_eof was no cut */
	bool			 io_broken;
	const char		*io_why;	/* constant text */
	bool			 io_full;	/* passed IO_OUT_LOW upwards */
	bool			 io_dirty;	/* to be sent this turn */
	bool			 io_more;	/* to be read next turn */
	bool			 io_ending;	/* on_drain when all is out */
	int			 io_alert;	/* of the peer, or -1 */
	unsigned char		*io_ahead;	/* records not looked at yet */
	size_t			 io_aheadpos;
	size_t			 io_aheadlen;
	bool			 io_drained;	/* no more until an event */
	bool			 io_cut;	/* no more at all */
	uint8_t			 io_headlen;	/* of a record's header, read */
	uint16_t		 io_bodyleft;	/* of its body, not taken yet */
	bool			 io_maybe_alert;	/* in the clear */
	unsigned char		*io_out;	/* waits to be written */
	size_t			 io_outpos;
	size_t			 io_outlen;
	unsigned char		*io_sealed;	/* records the socket left */
	size_t			 io_sealedpos;
	size_t			 io_sealedlen;
	uint64_t		 io_in_total;	/* plaintext bytes */
	uint64_t		 io_out_total;
};

void	 io_init(struct io *, struct event_base *, int, const struct io_ops *,
	    void *);
void	 io_close(struct io *);
void	 io_pause(struct io *);
void	 io_resume(struct io *);

/* Begin TLS; bytes that were read in the clear are given back first. */
int	 io_secure(struct io *, SSL *, void *, size_t);

/*
 * Whether the TLS library takes a name, said by a client or to an origin:
 * LibreSSL wants no underscore and no dot at the end, and ends a handshake.
 */
bool	 io_takes_name(const char *, size_t);

/*
 * An io that has had its share of a turn goes on in the next: on_read is called
 * after all others were looked at.
 */
#define IO_SHARE	16	/* reads in one turn */
void	 io_again(struct io *);

/* Whether bytes have come that no event will tell of. */
bool	 io_pending(const struct io *);

/* > 0 bytes, 0 end of file, -1 with errno EAGAIN or else broken. */
ssize_t	 io_read(struct io *, void *, size_t);
/* io_read() for what becomes records: waits while the recorder is slow. */
ssize_t	 io_take(struct io *, void *, size_t);

/* Room for at least some bytes, or 0: then wait for on_drain. */
size_t	 io_room(const struct io *);
/* Append; the caller has asked for room. */
void	 io_put(struct io *, const void *, size_t);
/* Write in place: reserve room, fill it, say how much. */
void	*io_reserve(struct io *, size_t *);
void	 io_commit(struct io *, size_t);
/*
 * The same for a chunk of HTTP/1: the room is that of its data, and the size
 * before and the empty line after it are written by the commit.
 */
void	*io_reserve_chunk(struct io *, size_t *);
void	 io_commit_chunk(struct io *, size_t);
/*
 * Either of them for part of a body, chunked or not: it is sent once there is
 * enough, and room remains for what ends a body.  NULL: wait for on_drain.
 */
void	*io_reserve_body(struct io *, bool, size_t *);
void	 io_commit_body(struct io *, bool, size_t);
/* The last bytes that were written, if none of them has gone. */
void	*io_tail(struct io *, size_t);
/* Send when all that has come was read, or now. */
void	 io_flush(struct io *);
void	 io_push(struct io *);
/* Bytes to be sent, plain or sealed. */
size_t	 io_waiting(const struct io *);
/* Whether nothing waits to be sent: a connection may end now. */
bool	 io_empty(const struct io *);
/* Tell the peer that no more will come. */
void	 io_finish(struct io *);

/*
 * Before anything is sent the barrier is asked, before anything is taken
 * may_take; false: not yet.  Owners that came in vain are called again by
 * io_take_on().
 */
int	 io_library_init(bool (*barrier)(void), bool (*may_take)(void));
void	 io_take_on(void);

/* Between io.c and io_tls.c. */
extern struct blocks	 io_blocks;
int	 io_tls_init(void);
bool	 io_within_record(const struct io *);
void	 io_break(struct io *, const char *);
void	 io_shake_hands(struct io *);
ssize_t	 io_read_tls(struct io *, void *, size_t);
int	 io_send_tls(struct io *);
void	 io_sent(struct io *, size_t);

#endif /* IO_H */
