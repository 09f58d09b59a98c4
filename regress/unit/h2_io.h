/* SPDX-License-Identifier: ISC */

/*
 * An io that is memory, for tests and fuzzers of HTTP/2: it takes the place of
 * io.c.  What is sent goes to wire_got() as a socket would have room for it.
 * As in TLS, a record that the socket had no room for is sealed: what is
 * written over its bytes later does not go out.
 */

#ifndef H2_IO_H
#define H2_IO_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../tlsengine/http/h2.h"

#define WIRE_RECORD	16384	/* bytes, of TLS */
#define WIRE_REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

static unsigned char	 wire_out[IO_OUT_SIZE];
static unsigned char	 wire_record[WIRE_RECORD];
static size_t		 wire_sealed;		/* bytes of wire_record */
static size_t		 wire_low = IO_OUT_LOW;
static size_t		 wire_spare = IO_OUT_SIZE;	/* room while full */
static size_t		 wire_room = SIZE_MAX;	/* of the socket */
static bool		 wire_dirty;

/* Bytes to be read: how many of so many, 0 at the end, -1 if none yet. */
static ssize_t	 wire_give(void *, size_t);
/* Bytes that were sent. */
static void	 wire_got(const unsigned char *, size_t);

static inline void
wire_init(struct io *io)
{
	memset(io, 0, sizeof(*io));
	io->io_out = wire_out;
	wire_sealed = 0;
	wire_low = IO_OUT_LOW;
	wire_spare = IO_OUT_SIZE;
	wire_room = SIZE_MAX;
	wire_dirty = false;
}

/* Full as soon as there is anything, and then without room for a frame. */
static inline void
wire_narrow(void)
{
	wire_low = 0;
	wire_spare = 4;
}

static inline void
wire_seal(struct io *io)
{
	if (wire_sealed > 0)
		return;
	wire_sealed = io->io_outlen < WIRE_RECORD ? io->io_outlen :
	    WIRE_RECORD;
	memcpy(wire_record, io->io_out + io->io_outpos, wire_sealed);
}

static inline void
wire_send(struct io *io)
{
	while (io->io_outlen > 0) {
		wire_seal(io);
		if (wire_room == 0)
			return;
		wire_room -= wire_room < wire_sealed ? wire_room : wire_sealed;
		io->io_outpos += wire_sealed;
		io->io_outlen -= wire_sealed;
		io->io_out_total += wire_sealed;
		wire_got(wire_record, wire_sealed);
		wire_sealed = 0;
	}
	io->io_outpos = 0;
	io->io_full = false;
}

/* The end of a turn, or the socket has room again. */
static inline void
wire_turn(struct h2 *h2)
{
	struct io	*io = h2->h2_io;
	bool		 full = io->io_full;

	wire_dirty = false;
	wire_send(io);
	if (io->io_outlen <= wire_low)
		io->io_full = false;
	if (full && !io->io_full)
		h2_send(h2);
}

/* ---- io.h ---------------------------------------------------------------- */

ssize_t
io_take(struct io *io, void *buf, size_t len)
{
	ssize_t	 n = wire_give(buf, len);

	WIRE_REQUIRE(n <= (ssize_t)len);
	if (n == 0)
		io->io_eof = true;
	if (n == -1)
		errno = EAGAIN;
	return n;
}

void *
io_reserve(struct io *io, size_t *len)
{
	if (io->io_outpos > 0 &&
	    IO_OUT_SIZE - io->io_outpos - io->io_outlen < IO_OUT_SIZE / 2) {
		memmove(io->io_out, io->io_out + io->io_outpos, io->io_outlen);
		io->io_outpos = 0;
	}
	*len = IO_OUT_SIZE - io->io_outpos - io->io_outlen;
	if (io->io_full && *len > wire_spare)
		*len = wire_spare;
	return io->io_out + io->io_outpos + io->io_outlen;
}

void
io_commit(struct io *io, size_t len)
{
	io->io_outlen += len;
	WIRE_REQUIRE(io->io_outpos + io->io_outlen <= IO_OUT_SIZE);
	if (io->io_outlen > wire_low)
		io->io_full = true;
}

void *
io_tail(struct io *io, size_t len)
{
	if (wire_sealed > 0 || len > io->io_outlen)
		return NULL;
	return io->io_out + io->io_outpos + io->io_outlen - len;
}

void
io_push(struct io *io)
{
	wire_send(io);
}

void
io_flush(struct io *io)
{
	wire_dirty = io->io_outlen > 0;
}

void
io_again(struct io *io)
{
	(void)io;
}

#endif /* H2_IO_H */
