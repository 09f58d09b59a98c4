/* SPDX-License-Identifier: ISC */

/*
 * Tests of the session layer of HTTP/2 with nghttp2 as its peer: bodies both
 * ways, whatever the windows, the pieces in which they come and the room that
 * there is to send.
 */

#include "h2_pair.h"

static const size_t	 sizes[] = { 0, 1, 100, 16383, 16384, 16385, 65535,
    65536, 200000, 1000000 };
#define NSIZES	(sizeof(sizes) / sizeof(sizes[0]))

static int32_t
request(bool body, size_t len)
{
	return ours->h2_server ? peer_request(body, len) : ask(body, len);
}

/* Both roles; the first exchange finds the settings not yet known. */
static void
exchange_all(bool server, uint32_t window, size_t max)
{
	size_t	 i;
	int32_t	 id;

	begin(server);
	peer_set(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window);
	for (i = 0; i < NSIZES && sizes[i] <= max; i++) {
		CHECK((id = request(true, sizes[i])) > 0);
		settle();
		check_exchange(id, sizes[i], sizes[i]);
	}
	end();
}

TEST(get)
{
	int32_t	 id;
	int	 server;

	for (server = 0; server < 2; server++) {
		begin(server);
		answer_len = 5;
		CHECK((id = request(false, 0)) > 0);
		settle();
		check_exchange(id, 0, 5);
		end();
	}
}

TEST(bodies)
{
	static const struct {
		uint32_t	 window;
		size_t		 max;
	} cases[] = { { 1, 100 }, { 100, 16385 }, { 5000, SIZE_MAX },
	    { 65535, SIZE_MAX }, { 1 << 20, SIZE_MAX },
	    { INT32_MAX, SIZE_MAX } };
	size_t	 i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		exchange_all(true, cases[i].window, cases[i].max);
		exchange_all(false, cases[i].window, cases[i].max);
	}
}

/* Many at once, each with its turn. */
TEST(bodies_at_once)
{
	int32_t	 ids[20];
	int	 i, server;

	for (server = 0; server < 2; server++) {
		begin(server);
		for (i = 0; i < 20; i++)
			CHECK((ids[i] = request(true, i * 7000)) > 0);
		settle();
		for (i = 0; i < 20; i++)
			check_exchange(ids[i], i * 7000, i * 7000);
		end();
	}
}

/* Frames come in pieces, of any length. */
TEST(pieces)
{
	static const size_t	 chunks[] = { 1, 2, 3, 8, 9, 10, 17, 1000 };
	size_t			 i;
	int32_t			 id;
	int			 server;

	for (i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++)
		for (server = 0; server < 2; server++) {
			begin(server);
			chunk = chunks[i];
			padding = 7 * i;
			CHECK((id = request(true, 20000)) > 0);
			settle();
			check_exchange(id, 20000, 20000);
			end();
		}
}

TEST(padding)
{
	size_t	 pads[] = { 1, 2, 100, 255 }, i;
	int32_t	 id;
	int	 server;

	for (i = 0; i < sizeof(pads) / sizeof(pads[0]); i++)
		for (server = 0; server < 2; server++) {
			begin(server);
			padding = pads[i];
			CHECK((id = request(true, 600000)) > 0);
			settle();
			check_exchange(id, 600000, 600000);
			/* It counts, and more than fits into the window. */
			frame_max = 10;
			CHECK((id = request(true, 30000)) > 0);
			settle();
			check_exchange(id, 30000, 30000);
			end();
		}
}

TEST(trailers)
{
	int32_t	 id;
	size_t	 i;
	int	 server;

	for (i = 0; i < NSIZES; i++)
		for (server = 0; server < 2; server++) {
			begin(server);
			trailing = true;
			CHECK((id = request(true, sizes[i])) > 0);
			settle();
			check_exchange(id, sizes[i], sizes[i]);
			CHECK_INT(mine[id].trailers, 1);
			CHECK_INT(theirs[id].trailers, 1);
			end();
		}
}

/* We pass on less than comes: the peer must stop, and go on. */
TEST(slow_reader)
{
	int32_t	 id;
	int	 server;

	for (server = 0; server < 2; server++) {
		begin(server);
		CHECK((id = request(true, 3000000)) > 0);
		if (!server)
			answer_len = 3000000;
		settle_with(0);
		if (server)
			CHECK_INT(h2_stream_waiting(mine[id].hs), 256 * 1024);
		settle_with(7777);
		check_exchange(id, 3000000, 3000000);
		end();
	}
}

/* One that is not read holds up no other. */
TEST(slow_stream_alone)
{
	struct h2_stream	*hs;
	int32_t			 slow, id;
	int			 i;

	begin(true);
	slow = peer_request(true, 1000000);
	settle_with(0);
	hs = mine[slow].hs;
	CHECK_INT(h2_stream_waiting(hs), 256 * 1024);
	mine[slow].hs = NULL;
	hs->hs_ex = NULL;
	for (i = 0; i < 3; i++) {
		id = peer_request(true, 300000);
		settle();
		check_exchange(id, 300000, 300000);
	}
	CHECK_INT(h2_stream_waiting(hs), 256 * 1024);
	h2_reset(hs, H2_CANCEL);
	settle();
	CHECK_INT(theirs[slow].code, H2_CANCEL);
	end();
}

/* The socket takes little at a time, and the io has little room. */
static void
send_slowly(bool server, bool narrow, size_t room, bool late)
{
	size_t	 n = 0;
	int32_t	 id;

	begin(server);
	if (narrow)
		wire_narrow();
	late_end = late;
	trailing = narrow;
	CHECK((id = request(true, 100000)) > 0);
	do {
		wire_room = n % 3 == 0 ? room : 0;
		turn(SIZE_MAX);
		if (mine[id].sends && mine[id].left == 0)
			finish(id);
		CHECK(++n < TURNS_MAX);
	} while (!theirs[id].ended || !mine[id].ended);
	wire_room = SIZE_MAX;
	settle();
	check_exchange(id, 100000, 100000);
	end();
}

TEST(slow_socket)
{
	int	 i;

	for (i = 0; i < 8; i++) {
		send_slowly(i & 1, i & 2, 1, i & 4);
		send_slowly(i & 1, i & 2, 5000, i & 4);
	}
}

/* The end comes when the last bytes are with TLS already. */
TEST(end_after_the_socket_is_full)
{
	int32_t	 id;
	int	 server, turns;

	for (server = 0; server < 2; server++) {
		begin(server);
		answer_len = 10;
		late_end = true;
		settle();
		CHECK((id = request(true, 10)) > 0);
		wire_room = 0;
		for (turns = 0; turns < 3; turns++)
			turn(SIZE_MAX);
		CHECK(mine[id].sends && mine[id].left == 0);
		finish(id);
		for (turns = 0; turns < 3; turns++)
			turn(SIZE_MAX);
		wire_room = SIZE_MAX;
		settle();
		check_exchange(id, 10, 10);
		end();
	}
}

/* Nor when it is not the last in the buffer. */
TEST(end_behind_another)
{
	int32_t	 ids[3];
	int	 i;

	begin(true);
	late_end = true;
	answer_len = 10;
	settle();
	for (i = 0; i < 3; i++)
		ids[i] = peer_request(false, 0);
	gather();
	h2_read(ours);
	nghttp2_submit_ping(peer, NGHTTP2_FLAG_NONE, NULL);
	gather();
	h2_read(ours);
	for (i = 0; i < 3; i++)
		finish(ids[i]);
	settle();
	for (i = 0; i < 3; i++)
		check_exchange(ids[i], 0, 10);
	end();
}

/* ---- windows that change ------------------------------------------------- */

static void
change_windows(bool server, uint32_t to)
{
	size_t	 before;
	int32_t	 id;

	begin(server);
	answer_len = server ? 1000000 : 0;
	nghttp2_session_set_local_window_size(peer, NGHTTP2_FLAG_NONE, 0,
	    INT32_MAX);
	CHECK((id = request(!server, 1000000)) > 0);
	while (theirs[id].got < 30000)
		turn(SIZE_MAX);
	peer_set(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
	while (acks < 2)
		turn(SIZE_MAX);
	before = theirs[id].got;
	settle();
	CHECK(theirs[id].got <= before + H2_WINDOW && !theirs[id].ended);
	before = theirs[id].got;
	settle();
	CHECK_INT(theirs[id].got, before);
	peer_set(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, to);
	settle();
	check_exchange(id, server ? 0 : 1000000, server ? 1000000 : 0);
	end();
}

TEST(windows_to_zero_and_back)
{
	static const uint32_t	 windows[] = { 1000, 65535, 1 << 20,
	    INT32_MAX };
	size_t			 i;

	for (i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		change_windows(true, windows[i]);
		change_windows(false, windows[i]);
	}
}

/* Zero from the beginning; then nghttp2 opens it byte by byte. */
TEST(window_of_nothing)
{
	int32_t	 id;
	int	 server;

	for (server = 0; server < 2; server++) {
		begin(server);
		peer_set(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
		settle();
		answer_len = server ? 10 : 0;
		CHECK((id = request(!server, 10)) > 0);
		settle();
		CHECK_INT(theirs[id].got, 0);
		nghttp2_submit_window_update(peer, NGHTTP2_FLAG_NONE, id, 1);
		settle();
		check_exchange(id, server ? 0 : 10, server ? 10 : 0);
		end();
	}
}

/* One that only waits for its reader has no window any more. */
TEST(window_of_closed_stream)
{
	int32_t	 id;

	begin(false);
	settle();
	answer_len = 100;
	id = ask(false, 0);
	raw(4, H2_WINDOW_UPDATE, 0, id, "\x7f\xff\0\0", 4);
	settle_with(0);
	CHECK(mine[id].hs != NULL && mine[id].hs->hs_closed);
	peer_set(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_WINDOW + 1);
	settle_with(0);
	CHECK_STR(broken, NULL);
	settle();
	check_exchange(id, 0, 100);
	end();
}

/* The window of the connection is for all, and nobody is forgotten. */
TEST(connection_window)
{
	int32_t	 ids[10];
	int	 i, server;

	for (server = 0; server < 2; server++) {
		begin(server);
		peer_set(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20);
		answer_len = server ? 50000 : 0;
		for (i = 0; i < 10; i++)
			CHECK((ids[i] = request(!server, 50000)) > 0);
		settle();
		for (i = 0; i < 10; i++)
			check_exchange(ids[i], server ? 0 : 50000,
			    server ? 50000 : 0);
		end();
	}
}

TEST_MAIN("h2")
