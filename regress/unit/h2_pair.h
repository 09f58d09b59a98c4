/* SPDX-License-Identifier: ISC */

/*
 * Our HTTP/2 and nghttp2's at the two ends of a wire that is memory, for
 * tests: what one says, the other must find nothing wrong with, and bodies
 * must arrive to the byte.
 */

#ifndef H2_PAIR_H
#define H2_PAIR_H

#include "../../common/child.h"
#include "h2_peer.h"

/* ---- ours ---------------------------------------------------------------- */

static inline void
finish(int32_t id)
{
	static const struct h1_field	 field = { "x-sum", 5, "1", 1, 0, 0 };
	static const struct trailers	 tr = { &field, 1 };
	struct end			*e = &mine[id];
	struct h2_stream		*hs = e->hs;

	e->sends = false;
	if (ours->h2_server) {
		e->hs = NULL;
		h2_done(hs);
	}
	h2_end(hs, trailing ? &tr : NULL);
}

static inline void
fill(int32_t id)
{
	struct end	*e = &mine[id];
	size_t		 room;
	void		*p;

	while (e->hs != NULL && e->left > 0 &&
	    (p = h2_reserve(e->hs, &room)) != NULL) {
		if (room > e->left)
			room = e->left;
		make_body(e, id, p, room);
		e->left -= room;
		h2_commit(e->hs, room);
	}
	if (e->hs != NULL && e->sends && e->left == 0 && !late_end)
		finish(id);
	h2_send(ours);
}

static inline void
answer(int32_t id)
{
	struct end		*e = &mine[id];
	struct h1_out_response	 os = { .os_status = 200,
	    .os_framing = H1_CHUNKED, .os_fields = fields,
	    .os_nfields = nfields };

	e->left = answer_len == ECHO ? e->got : answer_len;
	if (h2_nv_response(&nv, &os) == -1 ||
	    h2_respond(e->hs, &nv, false) == -1) {
		fail("no answer of ours");
		return;
	}
	e->sends = true;
	fill(id);
}

/* A request of ours. */
static inline int32_t
ask(bool body, size_t len)
{
	struct h1_out_request	 or = { .or_method = str("POST"),
	    .or_target = str("/"), .or_host = "a.test",
	    .or_framing = H1_CHUNKED, .or_fields = fields,
	    .or_nfields = nfields };
	struct h2_stream	*hs;
	int32_t			 id;

	CHECK_INT(h2_nv_request(&nv, &or, "https", 0), 0);
	if ((hs = h2_open(ours, &nv, !body)) == NULL)
		return -1;
	id = hs->hs_id;
	CHECK(id < IDS);
	mine[id].hs = hs;
	mine[id].left = len;
	mine[id].sends = body;
	hs->hs_ex = (struct exchange *)(void *)&mine[id];
	fill(id);
	h2_send(ours);
	return id;
}

static void
on_head(struct h2_stream *hs, struct h2_head *hh, bool end)
{
	static struct h1_head	 hd;
	struct end		*e = &mine[hs->hs_id];
	struct h1_error		 he = { 0, "" };
	size_t			 i;
	ssize_t			 n;

	hs->hs_headed = true;
	n = ours->h2_server ? h2_head_request(hh, end, &hd, &he) :
	    h2_head_response(hh, end, H1_GET, 0, &hd, &he);
	if (n == -1) {
		fail(he.he_reason);
		return;
	}
	e->heads++;
	e->status = hd.hd_status;
	for (i = 0; i < hd.hd_nfields; i++)
		e->head_bytes += hd.hd_fields[i].hf_nlen +
		    hd.hd_fields[i].hf_vlen;
	if (ours->h2_server) {
		e->hs = hs;
		hs->hs_ex = (struct exchange *)(void *)e;
		if (h2_keep_head(hs, hh, &hd) == -1)
			fail("no memory");
	}
}

static size_t
on_data(struct h2_stream *hs, const void *data, size_t len)
{
	if (mine[hs->hs_id].hs != hs)
		fail("data of a stream that is over");
	if (len > budget)
		len = budget;
	budget -= len;
	check_body(&mine[hs->hs_id], hs->hs_id, data, len);
	return len;
}

static void
on_end(struct h2_stream *hs)
{
	struct end		*e = &mine[hs->hs_id];
	const struct trailers	*tr = h2_trailers(hs);

	e->ended = true;
	e->trailers = tr != NULL ? (int)tr->tr_n : 0;
	if (ours->h2_server)
		answer(hs->hs_id);
	else {
		e->hs = NULL;
		h2_done(hs);
	}
}

static void
on_room(struct h2_stream *hs)
{
	fill(hs->hs_id);
}

static void
on_reset(struct h2_stream *hs, uint32_t code)
{
	mine[hs->hs_id].code = code;
	mine[hs->hs_id].hs = NULL;
	hs->hs_ex = NULL;
}

static void
on_refused(struct h2 *h2)
{
	(void)h2;
	refused++;
}

static void
on_news(struct h2 *h2)
{
	(void)h2;
}

static void
on_broken(struct h2 *h2, const char *why)
{
	broken = why;
	h2_close(h2);
}

static const struct h2_ops ops = {
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_room = on_room,
	.on_reset = on_reset,
	.on_refused = on_refused,
	.on_settings = on_news,
	.on_goaway = on_news,
	.on_broken = on_broken,
};

/* ---- both ---------------------------------------------------------------- */

static inline void
pump(void)
{
	int32_t	 id;

	for (id = 1; id < IDS && !ours->h2_dead; id += 2)
		if (mine[id].hs != NULL && !TAILQ_EMPTY(&mine[id].hs->hs_in))
			h2_pump(mine[id].hs);
}

/* All that the peer has to say now. */
static inline void
gather(void)
{
	const uint8_t	*data;
	ssize_t		 n;

	while ((n = nghttp2_session_mem_send(peer, &data)) > 0)
		inject(data, (size_t)n);
	if (n < 0)
		fail(nghttp2_strerror((int)n));
}

/* Whether anything has happened. */
static inline bool
turn(size_t takes)
{
	uint64_t	 before = io.io_out_total;
	bool		 news;

	gather();
	news = inlen > 0;
	budget = takes;
	if (ours->h2_dead)
		inlen = 0;
	else
		h2_read(ours);
	event_base_loop(child_base, EVLOOP_NONBLOCK);
	if (!ours->h2_dead)
		pump();
	event_base_loop(child_base, EVLOOP_NONBLOCK);
	wire_turn(ours);
	news = news || budget < takes || ours->h2_dirty ||
	    io.io_out_total != before;
	event_base_loop(child_base, EVLOOP_NONBLOCK);
	return news;
}

/* Until nothing happens any more. */
static inline void
settle_with(size_t takes)
{
	int	 n = 0;

	while (turn(takes) && ++n < TURNS_MAX)
		continue;
	CHECK(n < TURNS_MAX);
	CHECK_STR(fault, NULL);
}

static inline void
settle(void)
{
	settle_with(SIZE_MAX);
}

static inline void
begin(bool server)
{
	int	 i;

	if (child_base == NULL) {
		CHECK((child_base = event_base_new()) != NULL);
		CHECK_INT(event_base_priority_init(child_base, 2), 0);
	}
	memset(mine, 0, sizeof(mine));
	memset(theirs, 0, sizeof(theirs));
	for (i = 0; i < IDS; i++)
		mine[i].code = theirs[i].code = NO_CODE;
	fault = broken = NULL;
	refused = pongs = acks = 0;
	goaway = NO_CODE;
	answer_len = ECHO;
	chunk = frame_max = SIZE_MAX;
	padding = nfields = inpos = inlen = 0;
	trailing = late_end = false;
	wire_init(&io);
	peer_new(!server);
	CHECK((ours = h2_new(&io, server, &ops, NULL)) != NULL);
	CHECK_INT(nghttp2_submit_settings(peer, NGHTTP2_FLAG_NONE, NULL, 0),
	    0);
	h2_send(ours);
}

/* Neither is left with anything. */
static inline void
end(void)
{
	CHECK_STR(fault, NULL);
	CHECK_STR(broken, NULL);
	CHECK_INT(ours->h2_nstreams, 0);
	CHECK_INT(ours->h2_queuelen, 0);
	CHECK(ours->h2_dead ||
	    ours->h2_in_window + ours->h2_in_done == ours->h2_window);
	h2_free(ours);
	nghttp2_session_del(peer);
}

/* A body has gone there, and one has come back. */
static inline void
check_exchange(int32_t id, size_t there, size_t back)
{
	const struct end	*asks = ours->h2_server ? theirs : mine;
	const struct end	*answers = ours->h2_server ? mine : theirs;

	CHECK_INT(answers[id].got, there);
	CHECK(answers[id].ended);
	CHECK_INT(asks[id].status, 200);
	CHECK_INT(asks[id].got, back);
	CHECK(asks[id].ended);
	CHECK_INT(mine[id].code, NO_CODE);
	CHECK_INT(theirs[id].code, NO_CODE);
}

#endif /* H2_PAIR_H */
