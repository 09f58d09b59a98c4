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
 * Fuzz target for the session layer of HTTP/2, frames and all.  The first byte
 * says who we are and how the other side of the exchanges behaves: whether it
 * takes bytes, how it answers, when it gives up.  What must hold is what h2.h
 * promises: no callback about a stream that is gone, bytes in their order and
 * no more of them than the window that we opened, and nothing left at the end.
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../tlsengine/h2.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

#define AS_CLIENT	0x01	/* we opened the streams */
#define TAKES_NOTHING	0x02	/* bytes wait */
#define TAKES_LITTLE	0x04
#define ANSWERS		0x08	/* as soon as there is a head */
#define GIVES_UP	0x10	/* in the middle of a body */
#define SHORT_READS	0x20
#define CLOSES		0x40	/* the whole session, in a callback */

#define CLIENT_STREAMS	5

static const uint8_t	*input;
static size_t		 inputlen;
static uint8_t		 how;
static struct exchange	*exchange;	/* only its address is of use */
static unsigned char	 sink[IO_OUT_SIZE];
static struct h2_nv	 nv;

/* ---- an io that is memory ------------------------------------------------ */

ssize_t
io_read(struct io *io, void *buf, size_t len)
{
	if (inputlen == 0) {
		io->io_eof = true;
		return 0;
	}
	if (how & SHORT_READS)
		len = 1 + inputlen % 7;
	if (len > inputlen)
		len = inputlen;
	memcpy(buf, input, len);
	input += len;
	inputlen -= len;
	return len;
}

void *
io_reserve(struct io *io, size_t *len)
{
	*len = sizeof(sink) - io->io_outlen;
	return sink + io->io_outlen;
}

void
io_commit(struct io *io, size_t len)
{
	io->io_outlen += len;
	REQUIRE(io->io_outlen <= sizeof(sink));
	if (io->io_outlen > IO_OUT_LOW)
		io->io_full = true;
}

void
io_push(struct io *io)
{
	io->io_out_total += io->io_outlen;
	io->io_outlen = 0;
	io->io_full = false;
}

void
io_flush(struct io *io)
{
	io_push(io);
}

void
io_again(struct io *io)
{
	(void)io;
}

/* ---- the owner ----------------------------------------------------------- */

static void
answer(struct h2_stream *hs)
{
	struct h1_out_response	 os = {
		.os_status = 200, .os_framing = H1_LENGTH, .os_length = 5
	};
	size_t			 room;
	void			*p;

	REQUIRE(h2_nv_response(&nv, &os) == 0);
	if (h2_respond(hs, &nv, false) == -1)
		return;
	if ((p = h2_reserve(hs, &room)) != NULL && room >= 5) {
		memcpy(p, "hello", 5);
		h2_commit(hs, 5);
	}
	h2_done(hs);
	h2_end(hs, NULL);
}

static void
on_head(struct h2_stream *hs, struct h2_head *hh, bool end)
{
	static struct h1_head	 hd;
	struct h1_error		 he;
	ssize_t			 len;

	REQUIRE(!hs->hs_h2->h2_dead && !hs->hs_closed);
	if (how & AS_CLIENT) {
		len = h2_head_response(hh, end, H1_GET, 0, &hd, &he);
		if (len != -1 && hd.hd_status < 200)
			return;
		hs->hs_headed = true;
		if (len == -1) {
			hs->hs_ex = NULL;
			h2_reset(hs, NGHTTP2_PROTOCOL_ERROR);
		}
		return;
	}
	hs->hs_headed = true;
	len = h2_head_request(hh, end, &hd, &he);
	if (len == -1) {
		h2_reset(hs, NGHTTP2_PROTOCOL_ERROR);
		return;
	}
	REQUIRE(h2_keep_head(hs, len, &hd) == 0);
	REQUIRE(hd.hd_method_text.s >= hs->hs_text &&
	    hd.hd_method_text.s < hs->hs_text + len);
	hs->hs_ex = exchange;
	if (how & ANSWERS)
		answer(hs);
}

static size_t
on_data(struct h2_stream *hs, const void *data, size_t len)
{
	volatile unsigned char	 byte;

	REQUIRE(hs->hs_ex != NULL && len > 0);
	byte = ((const unsigned char *)data)[len - 1];
	(void)byte;
	if (how & CLOSES) {
		h2_close(hs->hs_h2);
		return 0;
	}
	if (how & GIVES_UP) {
		hs->hs_ex = NULL;
		h2_reset(hs, NGHTTP2_CANCEL);
		return 0;
	}
	if (how & TAKES_NOTHING)
		return 0;
	return how & TAKES_LITTLE ? 1 + len / 3 : len;
}

static void
on_end(struct h2_stream *hs)
{
	REQUIRE(hs->hs_ex != NULL && TAILQ_EMPTY(&hs->hs_in));
	h2_trailers(hs);
	if (how & AS_CLIENT)
		h2_done(hs);
	else
		answer(hs);
}

static void
on_room(struct h2_stream *hs)
{
	REQUIRE(hs->hs_ex != NULL);
}

static void
on_reset(struct h2_stream *hs, uint32_t code)
{
	(void)code;
	hs->hs_ex = NULL;
}

static void
on_settings(struct h2 *h2)
{
	REQUIRE(!h2->h2_dead);
}

static void
on_goaway(struct h2 *h2, int32_t last)
{
	(void)last;
	REQUIRE(!h2->h2_dead);
}

static void
on_broken(struct h2 *h2, const char *why)
{
	REQUIRE(why != NULL);
	h2_close(h2);
}

static const struct h2_ops ops = {
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_room = on_room,
	.on_reset = on_reset,
	.on_settings = on_settings,
	.on_goaway = on_goaway,
	.on_broken = on_broken,
};

/* ---- a run --------------------------------------------------------------- */

static void
open_streams(struct h2 *h2)
{
	static const char	 method[] = "GET", target[] = "/";
	struct h1_out_request	 or = {
		.or_method = { method, 3 }, .or_target = { target, 1 },
		.or_host = "a.test"
	};
	struct h2_stream	*hs;
	int			 i;

	for (i = 0; i < CLIENT_STREAMS; i++) {
		REQUIRE(h2_nv_request(&nv, &or, "https", 0) == 0);
		if ((hs = h2_open(h2, &nv, i % 2)) == NULL)
			return;
		hs->hs_ex = exchange;
	}
}

/* Bytes that wait are bounded by the window. */
static size_t
waiting(const struct h2 *h2)
{
	const struct h2_stream	*hs;
	size_t			 n = 0;

	TAILQ_FOREACH(hs, &h2->h2_streams, hs_entry)
		n += h2_stream_waiting(hs);
	return n;
}

static void
pump_all(struct h2 *h2)
{
	struct h2_stream	*hs, *next;

	TAILQ_FOREACH_SAFE(hs, &h2->h2_streams, hs_entry, next)
		if (hs->hs_ex != NULL) {
			h2_pump(hs);
			return;
		}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct event_base	*base;
	static char			 an_exchange;
	struct io			 io;
	struct h2			*h2;

	if (len == 0)
		return 0;
	if (base == NULL)
		REQUIRE((base = child_base = event_base_new()) != NULL &&
		    event_base_priority_init(base, 2) == 0);
	exchange = (struct exchange *)(void *)&an_exchange;
	how = data[0];
	input = data + 1;
	inputlen = len - 1;
	memset(&io, 0, sizeof(io));
	h2 = h2_new(&io, !(how & AS_CLIENT), &ops, NULL);
	REQUIRE(h2 != NULL);
	if (how & AS_CLIENT)
		open_streams(h2);
	h2_send_now(h2);
	while (!h2->h2_dead && !io.io_eof) {
		h2_read(h2);
		event_base_loop(base, EVLOOP_NONBLOCK);
		REQUIRE(h2->h2_dead || waiting(h2) <= 1024 * 1024);
		if (!h2->h2_dead)
			pump_all(h2);
	}
	h2_free(h2);
	return 0;
}
