/* SPDX-License-Identifier: ISC */

/*
 * Tests of the frames of HTTP/2 with nghttp2 as the peer: heads of all
 * lengths, ends before the end, what is said about the connection, and what
 * must not be said.
 */

#include "h2_pair.h"

/* ---- heads --------------------------------------------------------------- */

static size_t
use_fields(size_t n, size_t vlen)
{
	static char	 names[H1_FIELDS_MAX][24];
	static char	 value[H1_LINE_MAX];
	size_t		 i, bytes = 0;

	memset(value, 'v', sizeof(value));
	value[vlen] = '\0';
	for (i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "x-%zu", i);
		fields[i] = field(names[i], value);
		bytes += strlen(names[i]) + vlen;
	}
	nfields = n;
	return bytes;
}

/* In one frame, exactly in one, and in more. */
TEST(long_heads)
{
	static const struct {
		size_t	 n, vlen;
	} cases[] = { { 1, 0 }, { 100, 10 }, { 1, 16000 }, { 2, 8150 },
	    { 2, 8160 }, { 2, 8170 }, { 2, 8180 }, { 2, 15000 },
	    { 100, 300 }, { 120, 240 } };
	size_t	 bytes, i;
	int32_t	 id;
	int	 server, again;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (server = 0; server < 2; server++) {
			begin(server);
			for (again = 0; again < 3; again++) {
				bytes = use_fields(cases[i].n, cases[i].vlen);
				id = server ? peer_request(true, 10) :
				    ask(true, 10);
				CHECK(id > 0);
				settle();
				check_exchange(id, 10, 10);
				CHECK(mine[id].head_bytes >= bytes);
				CHECK(mine[id].head_bytes < bytes + 64);
				CHECK(theirs[id].head_bytes >= bytes);
				CHECK(theirs[id].head_bytes < bytes + 64);
			}
			end();
		}
}

/* They wait where nothing else does, and in their order. */
TEST(heads_wait)
{
	int32_t	 id;
	int	 i, n = 0;

	begin(true);
	settle();
	wire_narrow();
	wire_room = 0;
	for (id = 1; id < 160; id += 2) {
		nfields = 0;
		peer_request(true, 10);
		gather();
		use_fields(2, 4000 + 100 * id % 3000);
		for (i = 0; i < 3; i++)
			turn(SIZE_MAX);
		wire_room = n++ % 3;
	}
	wire_room = SIZE_MAX;
	settle();
	for (id = 1; id < 160; id += 2) {
		check_exchange(id, 10, 10);
		CHECK_INT(theirs[id].head_bytes, strlen(":status200x-0x-1") +
		    2 * (4000 + 100 * id % 3000));
	}
	end();
}

/* The table that the peer permits means nothing to us, but it may change. */
TEST(table_sizes)
{
	static const uint32_t	 table[] = { 0, 4096, 100, 65536, 0 };
	size_t			 i;
	int32_t			 id;
	int			 server;

	for (server = 0; server < 2; server++) {
		begin(server);
		use_fields(10, 20);
		for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
			peer_set(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, table[i]);
			id = server ? peer_request(true, 10) : ask(true, 10);
			CHECK(id > 0);
			settle();
			check_exchange(id, 10, 10);
		}
		end();
	}
}

TEST(interim)
{
	struct h1_out_response	 os = { .os_status = 103 };
	struct h2_stream	*hs;
	int32_t			 id;

	begin(true);
	id = peer_request(true, HELD);
	settle();
	CHECK((hs = mine[id].hs) != NULL);
	CHECK_INT(h2_nv_response(&nv, &os), 0);
	CHECK_INT(h2_interim(hs, &nv), 0);
	h2_send(ours);
	settle();
	CHECK_INT(theirs[id].status, 103);
	CHECK_INT(h2_interim(hs, &nv), 0);
	answer_len = 7;
	answer(id);
	settle();
	CHECK(theirs[id].ended);
	CHECK_INT(theirs[id].status, 200);
	CHECK_INT(theirs[id].heads, 3);
	CHECK_INT(theirs[id].got, 7);
	theirs[id].left = 0;
	nghttp2_session_resume_data(peer, id);
	settle();
	end();
}

/* ---- ends ---------------------------------------------------------------- */

TEST(peer_resets)
{
	int32_t	 id;
	int	 server;

	for (server = 0; server < 2; server++) {
		begin(server);
		answer_len = FOREVER;
		id = server ? peer_request(false, 0) : ask(true, 1000000);
		CHECK(id > 0);
		while (theirs[id].got < 20000)
			turn(SIZE_MAX);
		nghttp2_submit_rst_stream(peer, NGHTTP2_FLAG_NONE, id,
		    NGHTTP2_INTERNAL_ERROR);
		settle();
		/* Whatever a client says, it wants no more of it. */
		CHECK_INT(mine[id].code, server ? H2_CANCEL :
		    H2_INTERNAL_ERROR);
		/* Others go on. */
		answer_len = ECHO;
		id = server ? peer_request(true, 100000) : ask(true, 100000);
		settle();
		check_exchange(id, 100000, 100000);
		end();
	}
}

TEST(we_reset)
{
	struct h2_stream	*hs;
	int32_t			 id;
	int			 server;

	for (server = 0; server < 2; server++) {
		begin(server);
		id = server ? peer_request(true, FOREVER) : ask(false, 0);
		answer_len = FOREVER;
		CHECK(id > 0);
		while (mine[id].got < 20000)
			turn(SIZE_MAX);
		CHECK((hs = mine[id].hs) != NULL);
		mine[id].hs = NULL;
		hs->hs_ex = NULL;
		h2_reset(hs, H2_CANCEL);
		settle();
		CHECK_INT(theirs[id].code, H2_CANCEL);
		CHECK_INT(mine[id].code, NO_CODE);
		answer_len = ECHO;
		id = server ? peer_request(true, 100000) : ask(true, 100000);
		settle();
		check_exchange(id, 100000, 100000);
		end();
	}
}

/* An answer before the body was read: the rest is taken and dropped. */
TEST(early_answer)
{
	int32_t	 id;

	begin(true);
	id = peer_request(true, 2000000);
	while (mine[id].got == 0)
		turn(SIZE_MAX);
	answer_len = 100;
	answer(id);
	settle();
	CHECK(theirs[id].ended && theirs[id].got == 100);
	CHECK_INT(theirs[id].sent, 2000000);
	CHECK(mine[id].got < 2000000);
	CHECK_INT(theirs[id].code, NO_CODE);
	end();
}

TEST(hundred_streams)
{
	int32_t	 id;
	int	 i, n = 0;

	begin(true);
	/* Before it can know how many there may be. */
	wire_room = 0;
	for (i = 0; i < H2_STREAMS_MAX + 2; i++)
		peer_request(true, i + 1);
	answer_len = 50;
	for (i = 0; i < 3; i++)
		turn(0);
	CHECK_INT(ours->h2_nopen, H2_STREAMS_MAX);
	CHECK_INT(refused, 2);
	wire_room = SIZE_MAX;
	settle();
	for (id = 1; id < 2 * H2_STREAMS_MAX; id += 2, n++)
		check_exchange(id, n + 1, 50);
	for (; n < H2_STREAMS_MAX + 2; id += 2, n++)
		CHECK_INT(theirs[id].code, H2_REFUSED_STREAM);
	/* And then there is room again. */
	id = peer_request(true, 10);
	settle();
	check_exchange(id, 10, 50);
	end();
}

TEST(peer_streams)
{
	int	 i;

	begin(false);
	peer_set(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 3);
	settle();
	late_end = true;
	for (i = 0; i < 3; i++)
		CHECK(ask(true, 5) > 0);
	CHECK(!h2_has_room(ours));
	CHECK_INT(ask(false, 0), -1);
	peer_set(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 4);
	settle();
	CHECK_INT(ask(true, 5), 7);
	CHECK_INT(ask(true, 5), -1);
	for (i = 1; i < 9; i += 2)
		finish(i);
	settle();
	for (i = 1; i < 9; i += 2)
		check_exchange(i, 5, 5);
	end();
}

TEST(peer_leaves)
{
	int32_t	 id[3];
	int	 i;

	begin(false);
	late_end = true;
	for (i = 0; i < 3; i++)
		CHECK((id[i] = ask(true, 5)) > 0);
	settle();
	nghttp2_submit_goaway(peer, NGHTTP2_FLAG_NONE, id[1],
	    NGHTTP2_NO_ERROR, NULL, 0);
	settle();
	CHECK_INT(mine[id[0]].code, NO_CODE);
	CHECK_INT(mine[id[1]].code, NO_CODE);
	CHECK_INT(mine[id[2]].code, H2_REFUSED_STREAM);
	CHECK_INT(ask(false, 0), -1);
	for (i = 0; i < 2; i++)
		finish(id[i]);
	settle();
	for (i = 0; i < 2; i++)
		check_exchange(id[i], 5, 5);
	end();
}

TEST(client_leaves)
{
	int32_t	 id;

	begin(true);
	id = peer_request(true, 100000);
	turn(SIZE_MAX);
	nghttp2_submit_goaway(peer, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR,
	    NULL, 0);
	settle();
	check_exchange(id, 100000, 100000);
	CHECK_STR(broken, "finished");
	broken = NULL;
	end();
}

TEST(we_leave)
{
	int32_t	 id;
	int	 server;

	for (server = 0; server < 2; server++) {
		begin(server);
		id = server ? peer_request(true, 100000) : ask(true, 100000);
		turn(SIZE_MAX);
		h2_goodbye(ours, H2_NO_ERROR);
		settle();
		CHECK_INT(goaway, H2_NO_ERROR);
		CHECK_INT(goaway_last, server ? id : 0);
		check_exchange(id, 100000, 100000);
		CHECK(server || ask(false, 0) == -1);
		end();
	}
}

/* ---- what means nothing -------------------------------------------------- */

TEST(pings)
{
	int	 i, server;

	for (server = 0; server < 2; server++) {
		begin(server);
		for (i = 0; i < 50; i++)
			nghttp2_submit_ping(peer, NGHTTP2_FLAG_NONE,
			    (const uint8_t *)"01234567");
		settle();
		CHECK_INT(pongs, 50);
		CHECK_INT(acks, 1);
		end();
	}
}

TEST(ignored_frames)
{
	static const char	 junk[200] = "junk";
	nghttp2_priority_spec	 spec;
	int32_t			 id;
	int			 type, server;

	for (server = 0; server < 2; server++) {
		begin(server);
		settle();
		id = server ? peer_request(true, 1000) : ask(true, 1000);
		turn(0);
		for (type = H2_NTYPES; type < 256; type += 7)
			raw(type % 200, type, type, type % 5, junk,
			    type % 200);
		nghttp2_priority_spec_init(&spec, 0, 7, 1);
		nghttp2_submit_priority(peer, NGHTTP2_FLAG_NONE, 1, &spec);
		raw(5, H2_PRIORITY, 0, 101, "\0\0\0\1\7", 5);
		raw(5, H2_PRIORITY, 0, 102, "\0\0\0\1\7", 5);
		peer_set(0x7a7a, 1);
		/* Bits that have no meaning, and the one that is reserved. */
		raw(8, H2_PING, 0xfe, 0x80000000, junk, 8);
		settle();
		check_exchange(id, 1000, 1000);
		CHECK_INT(acks, 2);
		CHECK_INT(pongs, 1);
		end();
	}
}

/* No byte is looked at that has not come. */
TEST(exact_buffers)
{
	unsigned char	*copy;
	size_t		 len, n;
	int32_t		 id;

	for (len = 1; len < 80; len++) {
		begin(true);
		padding = len % 3;
		id = peer_request(true, 100);
		gather();
		budget = SIZE_MAX;
		for (; inlen > 0; inpos += n, inlen -= n) {
			n = len < inlen ? len : inlen;
			CHECK((copy = malloc(n)) != NULL);
			memcpy(copy, in + inpos, n);
			ours->h2_inside = true;
			h2_take(ours, copy, n);
			ours->h2_inside = false;
			free(copy);
		}
		h2_send(ours);
		settle();
		check_exchange(id, 100, 100);
		end();
	}
}

/* ---- what is wrong ------------------------------------------------------- */

/* Each after a request that is open, on stream 1. */
static const struct {
	const char	*what;
	size_t		 len;
	int		 type;
	int		 flags;
	int32_t		 id;
	const char	*data;
	uint32_t	 code;
	bool		 stream;	/* nothing but that is lost */
} wrong[] = {
	{ "data on stream 0", 1, H2_DATA, 0, 0, "x", H2_PROTOCOL_ERROR, 0 },
	{ "data on an idle stream", 1, H2_DATA, 0, 99, "x",
	    H2_PROTOCOL_ERROR, 0 },
	{ "padding as long as the frame", 1, H2_DATA, H2_F_PADDED, 1, "\1",
	    H2_PROTOCOL_ERROR, 0 },
	{ "padding without a frame", 0, H2_DATA, H2_F_PADDED, 1, "",
	    H2_PROTOCOL_ERROR, 0 },
	{ "a head on stream 0", 1, H2_HEADERS, H2_F_END_HEADERS, 0, "\x82",
	    H2_PROTOCOL_ERROR, 0 },
	{ "a head on an even stream", 1, H2_HEADERS, H2_F_END_HEADERS, 2,
	    "\x82", H2_PROTOCOL_ERROR, 0 },
	{ "a head that is not HPACK", 1, H2_HEADERS, H2_F_END_HEADERS, 3,
	    "\x80", H2_COMPRESSION_ERROR, 0 },
	{ "a head that is all padding", 2, H2_HEADERS, H2_F_END_HEADERS |
	    H2_F_PADDED, 3, "\2\0", H2_PROTOCOL_ERROR, 0 },
	{ "a priority cut short", 4, H2_HEADERS, H2_F_END_HEADERS |
	    H2_F_PRIORITY, 3, "\0\0\0\0", H2_PROTOCOL_ERROR, 0 },
	{ "a second head that is no end", 1, H2_HEADERS, H2_F_END_HEADERS, 1,
	    "\x90", H2_PROTOCOL_ERROR, 1 },
	{ "a priority of four bytes", 4, H2_PRIORITY, 0, 1, "\0\0\0\0",
	    H2_FRAME_SIZE_ERROR, 0 },
	{ "a priority on stream 0", 5, H2_PRIORITY, 0, 0, "\0\0\0\0\0",
	    H2_PROTOCOL_ERROR, 0 },
	{ "a reset of three bytes", 3, H2_RST_STREAM, 0, 1, "\0\0\0",
	    H2_FRAME_SIZE_ERROR, 0 },
	{ "a reset on stream 0", 4, H2_RST_STREAM, 0, 0, "\0\0\0\0",
	    H2_PROTOCOL_ERROR, 0 },
	{ "a reset of an idle stream", 4, H2_RST_STREAM, 0, 99, "\0\0\0\0",
	    H2_PROTOCOL_ERROR, 0 },
	{ "settings of odd length", 5, H2_SETTINGS, 0, 0, "\0\0\0\0\0",
	    H2_FRAME_SIZE_ERROR, 0 },
	{ "settings on a stream", 0, H2_SETTINGS, 0, 1, "",
	    H2_PROTOCOL_ERROR, 0 },
	{ "an answer that has settings", 6, H2_SETTINGS, H2_F_ACK, 0,
	    "\0\0\0\0\0\0", H2_FRAME_SIZE_ERROR, 0 },
	{ "push of 2", 6, H2_SETTINGS, 0, 0, "\0\2\0\0\0\2",
	    H2_PROTOCOL_ERROR, 0 },
	{ "a window of 2^31", 6, H2_SETTINGS, 0, 0, "\0\4\x80\0\0\0",
	    H2_FLOW_CONTROL_ERROR, 0 },
	{ "short frames", 6, H2_SETTINGS, 0, 0, "\0\5\0\0\x3f\xff",
	    H2_PROTOCOL_ERROR, 0 },
	{ "long frames", 6, H2_SETTINGS, 0, 0, "\0\5\1\0\0\0",
	    H2_PROTOCOL_ERROR, 0 },
	{ "a promise", 5, H2_PUSH_PROMISE, H2_F_END_HEADERS, 1,
	    "\0\0\0\2\x82", H2_PROTOCOL_ERROR, 0 },
	{ "a ping of seven bytes", 7, H2_PING, 0, 0, "\0\0\0\0\0\0\0",
	    H2_FRAME_SIZE_ERROR, 0 },
	{ "a ping on a stream", 8, H2_PING, 0, 1, "\0\0\0\0\0\0\0\0",
	    H2_PROTOCOL_ERROR, 0 },
	{ "a goodbye of seven bytes", 7, H2_GOAWAY, 0, 0, "\0\0\0\0\0\0\0",
	    H2_FRAME_SIZE_ERROR, 0 },
	{ "a goodbye on a stream", 8, H2_GOAWAY, 0, 1, "\0\0\0\0\0\0\0\0",
	    H2_PROTOCOL_ERROR, 0 },
	{ "an update by nothing", 4, H2_WINDOW_UPDATE, 0, 0, "\0\0\0\0",
	    H2_PROTOCOL_ERROR, 0 },
	{ "an update of a stream by nothing", 4, H2_WINDOW_UPDATE, 0, 1,
	    "\0\0\0\0", H2_PROTOCOL_ERROR, 1 },
	{ "an update beyond 2^31", 4, H2_WINDOW_UPDATE, 0, 0,
	    "\x7f\xff\xff\xff", H2_FLOW_CONTROL_ERROR, 0 },
	{ "an update of a stream beyond 2^31", 4, H2_WINDOW_UPDATE, 0, 1,
	    "\x7f\xff\xff\xff", H2_FLOW_CONTROL_ERROR, 1 },
	{ "an update of five bytes", 5, H2_WINDOW_UPDATE, 0, 0,
	    "\0\0\0\1\0", H2_FRAME_SIZE_ERROR, 0 },
	{ "an update of an idle stream", 4, H2_WINDOW_UPDATE, 0, 99,
	    "\0\0\0\1", H2_PROTOCOL_ERROR, 0 },
	{ "a continuation of nothing", 1, H2_CONTINUATION, 0, 1, "\x82",
	    H2_PROTOCOL_ERROR, 0 },
	{ "a frame that is too long", 16385, H2_DATA, 0, 1, "",
	    H2_FRAME_SIZE_ERROR, 0 },
	{ "an unknown one that is too long", 16385, 200, 0, 1, "",
	    H2_FRAME_SIZE_ERROR, 0 },
};

TEST(wrong_frames)
{
	size_t	 i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin(true);
		peer_request(true, HELD);
		settle();
		CHECK_FOR(wrong[i].what, mine[1].heads == 1);
		raw(wrong[i].len, wrong[i].type, wrong[i].flags, wrong[i].id,
		    wrong[i].data, wrong[i].len < 16 ? wrong[i].len : 0);
		settle();
		if (wrong[i].stream) {
			CHECK_FOR(wrong[i].what, broken == NULL);
			CHECK_FOR(wrong[i].what,
			    theirs[1].code == wrong[i].code);
			CHECK_FOR(wrong[i].what, mine[1].code == wrong[i].code);
		} else {
			CHECK_FOR(wrong[i].what, broken != NULL);
			CHECK_FOR(wrong[i].what, goaway == wrong[i].code);
			broken = NULL;
		}
		end();
	}
}

/* What may not come first, or between the frames of a head. */
TEST(wrong_order)
{
	int	 type;

	begin(true);
	inject("PRI * HTTP/1.1\r\n", 16);
	settle();
	CHECK_INT(goaway, H2_PROTOCOL_ERROR);
	broken = NULL;
	end();
	begin(false);
	raw(8, H2_PING, 0, 0, "\0\0\0\0\0\0\0\0", 8);
	turn(SIZE_MAX);
	CHECK_STR(broken, "frame out of order");
	broken = NULL;
	end();
	for (type = 0; type <= H2_NTYPES; type++) {
		begin(true);
		settle();
		raw(1, H2_HEADERS, 0, 1, "\x82", 1);
		raw(0, type, 0, type == H2_CONTINUATION ? 3 : 1, "", 0);
		settle();
		CHECK_INT(goaway, H2_PROTOCOL_ERROR);
		CHECK_STR(broken, "frame out of order");
		broken = NULL;
		end();
	}
}

/* More than the window that we have opened. */
TEST(beyond_the_window)
{
	static unsigned char	 data[H2_FRAME_MAX];
	int			 i;

	begin(true);
	peer_request(true, HELD);
	settle();
	for (i = 0; i < 16; i++) {
		raw(H2_FRAME_MAX, H2_DATA, 0, 1, "", 0);
		make_body(&theirs[1], 1, data, sizeof(data));
		inject(data, sizeof(data));
	}
	settle_with(0);
	CHECK_STR(broken, NULL);
	CHECK_INT(h2_stream_waiting(mine[1].hs), 256 * 1024);
	raw(1, H2_DATA, 0, 1, "x", 1);
	settle_with(0);
	CHECK_INT(theirs[1].code, H2_FLOW_CONTROL_ERROR);
	CHECK_INT(mine[1].code, H2_FLOW_CONTROL_ERROR);
	end();
}

TEST_MAIN("h2_frames")
