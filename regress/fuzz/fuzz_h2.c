/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for the session layer of HTTP/2, frames and all.  The first byte
 * says who we are and how the other side of the exchanges behaves: whether it
 * takes bytes, how it answers, when it gives up; the second, how much there is
 * to send and how slowly it goes.  What must hold is what h2.h promises: no
 * callback about a stream that is gone, no more bytes than the window that we
 * opened, each window accounted for to the byte, nothing forgotten that could
 * be sent, and nothing left at the end.  What is sent must be frames, each
 * where it may be, with the body in its order.
 */

#include <stdint.h>

#include "../../common/child.h"
#include "../unit/h2_io.h"
#include "h2_sent.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

/* The first byte. */
#define AS_CLIENT	0x01	/* we opened the streams */
#define TAKES_NOTHING	0x02	/* bytes wait */
#define TAKES_LITTLE	0x04
#define ANSWERS		0x08	/* as soon as there is a head */
#define GIVES_UP	0x10	/* in the middle of a body */
#define SHORT_READS	0x20
#define CLOSES		0x40	/* the whole session, in a callback */
#define SLOW		0x80	/* the socket takes little */

/* The second. */
#define BIG		0x01	/* bodies, beyond all windows */
#define WITH_TRAILERS	0x02
#define NARROW		0x04	/* the io has little room */
#define STUCK		0x08	/* and the socket takes nothing for long */
#define GIVES_UP_LATE	0x10	/* when there is room again */
#define CLOSES_LATE	0x20
#define PIECEMEAL	0x40	/* the body comes as we are pumped */
#define FEW		0x80	/* bytes of the body in each piece */

#define CLIENT_STREAMS	5
#define SLOW_ROOM	100
#define STUCK_TURNS	8
#define BIG_BODY	200000
#define BODY		5
#define EXCHANGES	256

/* Of a stream; its address stands for a struct exchange. */
struct asker {
	struct h2_stream	*as_hs;		/* NULL: over */
	int32_t			 as_id;
	size_t			 as_left;	/* of the body we send */
	size_t			 as_pos;
	bool			 as_sends;	/* the head is out */
	bool			 as_filling;
};

static const uint8_t	*input;
static size_t		 inputlen;
static uint8_t		 how;
static uint8_t		 more;
static int		 turns;
static bool		 given;		/* bytes, this turn */
static struct asker	 askers[EXCHANGES];
static size_t		 naskers;
static struct h2_nv	 nv;

static struct asker *
asker(const struct h2_stream *hs)
{
	return (struct asker *)(void *)hs->hs_ex;
}

/* ---- the wire ------------------------------------------------------------ */

/* One piece in each turn, so that what follows from it is seen. */
static ssize_t
wire_give(void *buf, size_t len)
{
	if (given || (inputlen == 0 && turns > 0))
		return -1;
	given = true;
	if (how & SHORT_READS)
		len = 1 + inputlen % 7;
	if (len > inputlen)
		len = inputlen;
	memcpy(buf, input, len);
	input += len;
	inputlen -= len;
	return len;
}

/* ---- the owner ----------------------------------------------------------- */

static void
give_up(struct h2_stream *hs)
{
	asker(hs)->as_hs = NULL;
	hs->hs_ex = NULL;
	h2_reset(hs, H2_CANCEL);
}

static void
finish(struct asker *as)
{
	static const struct h1_field	 field = { "x-sum", 5, "1", 1, 0, 0 };
	static const struct trailers	 tr = { &field, 1 };
	struct h2_stream		*hs = as->as_hs;

	as->as_sends = false;
	if (!(how & AS_CLIENT)) {
		as->as_hs = NULL;
		h2_done(hs);
	}
	h2_end(hs, more & WITH_TRAILERS ? &tr : NULL);
}

static bool
fill_some(struct asker *as)
{
	unsigned char	*p;
	size_t		 i, room;

	if ((p = h2_reserve(as->as_hs, &room)) == NULL)
		return false;
	REQUIRE(room > 0);
	if (more & FEW)
		room = 1 + room % 700;
	if (room > as->as_left)
		room = as->as_left;
	for (i = 0; i < room; i++)
		p[i] = as->as_id + as->as_pos++;
	as->as_left -= room;
	h2_commit(as->as_hs, room);
	return !(more & PIECEMEAL);
}

/* A commit may find the stream gone, or ask for more itself. */
static void
fill(struct asker *as)
{
	bool	 later = more & PIECEMEAL && as->as_left > 0;

	if (!as->as_sends || as->as_filling)
		return;
	as->as_filling = true;
	while (as->as_hs != NULL && as->as_left > 0 && fill_some(as))
		continue;
	as->as_filling = false;
	if (as->as_hs == NULL)
		return;
	if (as->as_left == 0 && !later)
		finish(as);
	else
		h2_send(as->as_hs->hs_h2);
}

static void
answer(struct asker *as)
{
	struct h1_out_response	 os = {
		.os_status = 200, .os_framing = H1_CHUNKED
	};

	if (as->as_sends)
		return;
	REQUIRE(h2_nv_response(&nv, &os) == 0);
	if (h2_respond(as->as_hs, &nv, false) == -1)
		return;
	as->as_sends = true;
	as->as_left = more & BIG ? BIG_BODY : BODY;
	fill(as);
}

static struct asker *
begin(struct h2_stream *hs)
{
	struct asker	*as;

	if (naskers == EXCHANGES)
		return NULL;
	as = &askers[naskers++];
	*as = (struct asker){ .as_hs = hs, .as_id = hs->hs_id };
	hs->hs_ex = (struct exchange *)(void *)as;
	return as;
}

static void
on_response(struct h2_stream *hs, struct h2_head *hh, bool end)
{
	static struct h1_head	 hd;
	struct h1_error		 he;
	ssize_t			 len;

	if (hs->hs_ex == NULL)
		return;
	len = h2_head_response(hh, end, H1_GET, 0, &hd, &he);
	if (len == -1)
		give_up(hs);
	else if (hd.hd_status >= 200) {
		hs->hs_headed = true;
		hs->hs_left = hd.hd_framing == H1_CHUNKED ? H2_LEFT_OPEN :
		    hd.hd_framing == H1_LENGTH ? hd.hd_length : 0;
	}
}

static void
on_head(struct h2_stream *hs, struct h2_head *hh, bool end)
{
	static struct h1_head	 hd;
	struct h1_error		 he;
	struct asker		*as;
	ssize_t			 len;

	REQUIRE(!hs->hs_h2->h2_dead && !hs->hs_closed);
	if (how & AS_CLIENT) {
		on_response(hs, hh, end);
		return;
	}
	hs->hs_headed = true;
	if ((len = h2_head_request(hh, end, &hd, &he)) == -1 ||
	    (as = begin(hs)) == NULL) {
		h2_reset(hs, H2_PROTOCOL_ERROR);
		return;
	}
	REQUIRE(h2_keep_head(hs, hh, &hd) == 0);
	REQUIRE(hd.hd_method_text.s >= hs->hs_text &&
	    hd.hd_method_text.s < hs->hs_text + len);
	if (hd.hd_framing == H1_LENGTH)
		hs->hs_left = hd.hd_length;
	if (how & ANSWERS)
		answer(as);
}

static size_t
on_data(struct h2_stream *hs, const void *data, size_t len)
{
	volatile unsigned char	 byte;

	REQUIRE(hs->hs_ex != NULL && asker(hs)->as_hs == hs && len > 0);
	byte = ((const unsigned char *)data)[len - 1];
	(void)byte;
	if (how & CLOSES) {
		h2_close(hs->hs_h2);
		return 0;
	}
	if (how & GIVES_UP) {
		give_up(hs);
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
	if (!(how & AS_CLIENT))
		answer(asker(hs));
	else if (hs->hs_out_end && hs->hs_outlen == 0) {
		asker(hs)->as_hs = NULL;
		h2_done(hs);
	} else
		give_up(hs);
}

static void
on_room(struct h2_stream *hs)
{
	REQUIRE(hs->hs_ex != NULL && asker(hs)->as_hs == hs);
	if (more & CLOSES_LATE)
		h2_close(hs->hs_h2);
	else if (more & GIVES_UP_LATE)
		give_up(hs);
	else
		fill(asker(hs));
}

static void
on_reset(struct h2_stream *hs, uint32_t code)
{
	(void)code;
	REQUIRE(hs->hs_ex != NULL && asker(hs)->as_hs == hs);
	asker(hs)->as_hs = NULL;
	hs->hs_ex = NULL;
}

static void
on_late(struct h2_stream *hs)
{
	(void)hs;
	abort();
}

static void
on_news(struct h2 *h2)
{
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
	.on_late = on_late,
	.on_reset = on_reset,
	.on_refused = on_news,
	.on_settings = on_news,
	.on_goaway = on_news,
	.on_broken = on_broken,
};

/* ---- what must hold ------------------------------------------------------ */

/*
 * Of a DATA frame that has begun, what is still to be accounted for: its
 * padding is at its end, all at once.
 */
static int64_t
pending(const struct h2 *h2)
{
	if (h2->h2_left == 0 || h2->h2_frame.fr_type != H2_DATA)
		return 0;
	if (h2->h2_padding == 0)
		return h2->h2_left;
	return h2->h2_left < h2->h2_padding ? h2->h2_padding :
	    h2->h2_left + 1;
}

static void
check_stream(const struct h2 *h2, const struct h2_stream *hs)
{
	int64_t	 all;

	REQUIRE(hs->hs_h2 == h2 && (hs->hs_ex == NULL ||
	    asker(hs)->as_hs == hs));
	REQUIRE(hs->hs_waits == NULL || hs->hs_waits == &h2->h2_ready ||
	    hs->hs_waits == &h2->h2_starved ||
	    hs->hs_waits == &h2->h2_ending);
	if (hs->hs_closed) {
		REQUIRE(hs->hs_waits == NULL);
		return;
	}
	all = hs->hs_in_window + hs->hs_in_done + h2_stream_waiting(hs);
	if (h2->h2_frame.fr_id == hs->hs_id)
		all += pending(h2);
	REQUIRE(all == h2->h2_stream_window && hs->hs_in_window >= 0);
	REQUIRE(hs->hs_out_window <= H2_WINDOW_MAX);
	REQUIRE(hs->hs_outpos + hs->hs_outlen <= H2_OUT_SIZE);
}

static size_t
count(const struct h2_streams *list)
{
	const struct h2_stream	*hs;
	size_t			 n = 0;

	TAILQ_FOREACH(hs, list, hs_turn) {
		REQUIRE(hs->hs_waits == list);
		n++;
	}
	return n;
}

static void
check_table(const struct h2 *h2)
{
	const struct h2_stream	*hs;
	unsigned int		 i, n = 0;

	for (i = 0; i < H2_BUCKETS; i++)
		LIST_FOREACH(hs, &h2->h2_table[i], hs_bucket) {
			REQUIRE(!hs->hs_closed);
			n++;
		}
	REQUIRE(n == h2->h2_nopen);
	TAILQ_FOREACH(hs, &h2->h2_graves, hs_entry)
		REQUIRE(hs->hs_closed && hs->hs_waits == NULL);
}

static void
check(const struct h2 *h2)
{
	const struct h2_stream	*hs;
	size_t			 n = 0, open = 0, listed = 0, kept = 0;
	int64_t			 waiting = 0, all;

	if (h2->h2_dead || h2->h2_why != NULL)
		return;
	TAILQ_FOREACH(hs, &h2->h2_streams, hs_entry) {
		check_stream(h2, hs);
		waiting += h2_stream_waiting(hs);
		n++;
		open += !hs->hs_closed;
		listed += hs->hs_waits != NULL;
		kept += hs->hs_outlen > 0;
	}
	REQUIRE(n == h2->h2_nstreams && open == h2->h2_nopen);
	REQUIRE(listed == count(&h2->h2_ready) + count(&h2->h2_starved) +
	    count(&h2->h2_ending));
	TAILQ_FOREACH(hs, &h2->h2_graves, hs_entry)
		kept += hs->hs_outlen > 0;
	REQUIRE(kept == h2->h2_nkept);
	check_table(h2);
	/* Some of what waits has its place in the window back already. */
	all = h2->h2_in_window + h2->h2_in_done + pending(h2);
	REQUIRE(all <= h2->h2_window && all + waiting >= h2->h2_window);
	REQUIRE(h2->h2_in_window >= 0 && h2->h2_out_window >= 0);
	REQUIRE(h2->h2_queuepos + h2->h2_queuelen <= h2->h2_queuesize);
}

/* Nothing but a window keeps anything back. */
static void
check_idle(const struct h2 *h2)
{
	const struct h2_stream	*hs;

	if (h2->h2_dead || h2->h2_why != NULL || h2->h2_io->io_outlen > 0)
		return;
	REQUIRE(h2->h2_queuelen == 0 && TAILQ_EMPTY(&h2->h2_ready) &&
	    TAILQ_EMPTY(&h2->h2_ending));
	REQUIRE(sent.left == 0 && sent.headlen == 0);
	TAILQ_FOREACH(hs, &h2->h2_streams, hs_entry) {
		if (hs->hs_closed)
			continue;
		REQUIRE(!hs->hs_doomed);
		if (hs->hs_outlen > 0)
			REQUIRE(hs->hs_out_window <= 0 ||
			    h2->h2_out_window == 0);
		else
			REQUIRE(hs->hs_ended == hs->hs_out_end);
		if (hs->hs_id < IDS)
			REQUIRE((sent.state[hs->hs_id] == ENDED) ==
			    hs->hs_ended);
	}
}

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
	struct asker		*as;
	int			 i;

	for (i = 0; i < CLIENT_STREAMS; i++) {
		REQUIRE(h2_nv_request(&nv, &or, "https", 0) == 0);
		if ((hs = h2_open(h2, &nv, i % 2)) == NULL)
			return;
		REQUIRE((as = begin(hs)) != NULL);
		if (i % 2 == 0) {
			as->as_sends = true;
			as->as_left = more & BIG ? BIG_BODY : BODY;
			fill(as);
		}
	}
}

/* The one that has waited longest, and all that have something to give. */
static void
pump(struct h2 *h2)
{
	struct h2_stream	*hs;
	size_t			 i;

	TAILQ_FOREACH(hs, &h2->h2_streams, hs_entry)
		if (hs->hs_ex != NULL && !TAILQ_EMPTY(&hs->hs_in))
			break;
	if (hs != NULL)
		h2_pump(hs);
	for (i = 0; more & PIECEMEAL && i < naskers && !h2->h2_dead; i++)
		if (askers[i].as_hs != NULL)
			fill(&askers[i]);
}

static void
turn(struct h2 *h2)
{
	given = false;
	h2_read(h2);
	check(h2);
	event_base_loop(child_base, EVLOOP_NONBLOCK);
	check(h2);
	if (h2->h2_dead)
		return;
	pump(h2);
	event_base_loop(child_base, EVLOOP_NONBLOCK);
	check(h2);
	if (how & SLOW)
		wire_room = more & STUCK && turns % STUCK_TURNS != 0 ? 0 :
		    SLOW_ROOM;
	if (!h2->h2_dead)
		wire_turn(h2);
	event_base_loop(child_base, EVLOOP_NONBLOCK);
	check(h2);
	if (!wire_dirty && !h2->h2_dirty)
		check_idle(h2);
}

static void
run(struct io *io)
{
	struct h2	*h2;

	h2 = h2_new(io, !(how & AS_CLIENT), &ops, NULL);
	REQUIRE(h2 != NULL);
	if (how & AS_CLIENT)
		open_streams(h2);
	h2_send(h2);
	for (turns = 1; !h2->h2_dead && inputlen > 0; turns++)
		turn(h2);
	/* What is left goes out, or does not; then the peer is gone. */
	for (; !h2->h2_dead && turns % (2 * STUCK_TURNS) != 0; turns++)
		turn(h2);
	turns = 0;
	if (!h2->h2_dead)
		turn(h2);
	REQUIRE(h2->h2_dead);
	h2_free(h2);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct io	 io;

	if (len < 2)
		return 0;
	if (child_base == NULL)
		REQUIRE((child_base = event_base_new()) != NULL &&
		    event_base_priority_init(child_base, 2) == 0);
	how = data[0];
	more = data[1];
	input = data + 2;
	inputlen = len - 2;
	naskers = 0;
	memset(&sent, 0, sizeof(sent));
	sent.skip = how & AS_CLIENT ? 24 : 0;
	wire_init(&io);
	if (more & NARROW)
		wire_narrow();
	run(&io);
	return 0;
}
