/* SPDX-License-Identifier: ISC */

/*
 * Tests of tlsengine/tls/io.c and io_tls.c: what is held between a socket, the
 * TLS library and an owner, in which order it comes out, and that it is let go
 * of.
 */

#include "io_peer.h"

/* ---- cases --------------------------------------------------------------- */

TEST(hello_given_back)
{
	start_with(TLS1_2_VERSION, 3);
	stop();
	start_with(TLS1_3_VERSION, 200);
	puts_some(10);
	io_flush(&io);
	settle();
	peer_reads();
	check_arrived();
	stop();
}

TEST(one_call_for_many_records)
{
	start();
	puts_some(4 * RECORD);
	io_push(&io);
	CHECK_INT(nsends, 1);
	check_holds_nothing();
	CHECK(!io.io_full);
	CHECK_INT(io.io_out_total, 4 * RECORD);
	peer_reads();
	check_arrived();
	stop();
}

/* With what TLS adds, all that may wait fits in no one buffer of records. */
TEST(more_than_a_buffer)
{
	start_with(TLS1_2_VERSION, 1);
	puts_some(IO_OUT_SIZE);
	io_push(&io);
	CHECK_INT(nsends, 2);
	check_holds_nothing();
	peer_reads();
	check_arrived();
	stop();
}

TEST(barrier_before_all)
{
	start();
	permitted = false;
	puts_some(RECORD);
	io_push(&io);
	settle();
	CHECK_INT(nsends, 0);
	CHECK(io.io_sealed == NULL);
	permitted = true;
	io_push(&io);
	CHECK_INT(nsends, 1);
	peer_reads();
	check_arrived();
	stop();
}

/* Also if all that waits is sealed; and it is not forgotten for that. */
TEST(barrier_before_the_rest)
{
	start();
	takes = RECORD / 2;
	puts_some(3 * RECORD);
	io_push(&io);
	CHECK_INT(io.io_outlen, 0);
	CHECK(!io_empty(&io));
	permitted = false;
	takes = ANY;
	settle();
	CHECK(!io_empty(&io));
	CHECK(io.io_dirty);
	permitted = true;
	while (!io_empty(&io))
		CHECK_INT(event_base_loop(base, EVLOOP_ONCE), 0);
	peer_reads();
	check_arrived();
	stop();
}

/* The socket takes half a record; the owner adds to it; then all goes. */
TEST(rest_then_more)
{
	start();
	takes = RECORD / 2;
	puts_some(3 * RECORD);
	io_push(&io);
	CHECK(!io_empty(&io));
	CHECK(io.io_full);
	CHECK(io.io_out == NULL);
	puts_some(1000);
	settle();
	CHECK_INT(io.io_outlen, 1000);
	CHECK_INT(ndrains, 0);
	peer_reads();
	CHECK_INT(ngot, 0);
	takes = ANY;
	settle();
	CHECK_INT(ndrains, 1);
	check_holds_nothing();
	peer_reads();
	check_arrived();
	stop();
}

/* The owner may go on before the last of the rest is out. */
TEST(drain_at_low_water)
{
	start();
	takes = RECORD;
	puts_some(4 * RECORD);
	io_push(&io);
	takes = 2 * RECORD + RECORD / 2;
	settle();
	CHECK_INT(ndrains, 1);
	CHECK(!io.io_full);
	CHECK(!io_empty(&io));
	/* The kernel has bounds, too. */
	peer_reads();
	takes = ANY;
	settle();
	CHECK_INT(ndrains, 1);
	check_holds_nothing();
	peer_reads();
	check_arrived();
	stop();
}

/* A body meets a socket that takes nothing: what waits is bounded. */
TEST(slow_reader)
{
	size_t	 room, sealed;
	void	*p;

	start();
	takes = 0;
	while ((p = io_reserve_body(&io, false, &room)) != NULL) {
		CHECK(room >= RECORD);
		memset(p, 'x', RECORD);
		memset(sent + nsent, 'x', RECORD);
		nsent += RECORD;
		io_commit_body(&io, false, RECORD);
	}
	CHECK_INT(nsent, 4 * RECORD);
	CHECK(io.io_out == NULL);
	sealed = io.io_sealedlen;
	puts_some(100);
	io_push(&io);
	CHECK_INT(io.io_sealedlen, sealed);
	takes = ANY;
	settle();
	CHECK_INT(ndrains, 1);
	CHECK(io_reserve_body(&io, true, &room) != NULL);
	puts_some(1);
	io_flush(&io);
	settle();
	check_holds_nothing();
	peer_reads();
	check_arrived();
	stop();
}

/* In the clear the last chunk finds room behind the fullest body. */
TEST(body_can_end)
{
	size_t	 room, len, after;
	void	*p;

	start_clear();
	takes = 0;
	while ((p = io_reserve_body(&io, true, &room)) != NULL) {
		len = io.io_outlen < IO_OUT_BATCH ? RECORD - 8 : room;
		memset(p, 'x', len);
		io_commit_body(&io, true, len);
	}
	CHECK(io_reserve(&io, &after) != NULL);
	CHECK_INT(after, RECORD);
	CHECK(!io.io_broken);
	stop();
}

TEST(clear_rest)
{
	start_clear();
	takes = 1000;
	puts_some(2 * RECORD);
	io_push(&io);
	CHECK_INT(io.io_outlen, 2 * RECORD - 1000);
	takes = ANY;
	settle();
	CHECK_INT(ndrains, 1);
	check_holds_nothing();
	ngot = recv(wire, got, sizeof(got), 0);
	check_arrived();
	stop();
}

/* What ends the connection comes behind the rest. */
TEST(close_after_rest)
{
	start();
	takes = 100;
	puts_some(RECORD);
	io.io_ending = true;
	io_push(&io);
	CHECK(!io_empty(&io));
	settle();
	CHECK_INT(ndrains, 0);
	takes = ANY;
	settle();
	CHECK_INT(ndrains, 1);
	CHECK(io_empty(&io));
	io_finish(&io);
	peer_reads();
	check_arrived();
	CHECK(SSL_get_shutdown(peer) & SSL_RECEIVED_SHUTDOWN);
	stop();
}

/* What the library says of its own accord keeps its place, too. */
TEST(notify_behind_rest)
{
	start();
	takes = 100;
	puts_some(RECORD);
	io_push(&io);
	SSL_shutdown(io.io_ssl);
	takes = ANY;
	settle();
	peer_reads();
	check_arrived();
	CHECK(SSL_get_shutdown(peer) & SSL_RECEIVED_SHUTDOWN);
	stop();
}

TEST(peer_breaks_with_rest)
{
	start();
	takes = 100;
	puts_some(2 * RECORD);
	io_push(&io);
	close(wire);
	wire = -1;
	takes = ANY;
	settle();
	CHECK_INT(nerrors, 1);
	CHECK(io.io_sealed == NULL);
	stop();
}

/* All that has come is read at once; the owner pauses in the middle. */
TEST(pause_with_records_at_hand)
{
	int	 left;

	start();
	peer_writes(4 * RECORD);
	deliver(ANY);
	CHECK_INT(io_read(&io, got, RECORD), RECORD);
	ngot = RECORD;
	CHECK_INT(ioctl(io.io_fd, FIONREAD, &left), 0);
	CHECK_INT(left, 0);
	CHECK(io_pending(&io));
	io_pause(&io);
	settle();
	CHECK_INT(nreads, 0);
	io_resume(&io);
	settle();
	CHECK_INT(nreads, 1);
	CHECK_INT(reads_all(), -1);
	CHECK_INT(errno, EAGAIN);
	check_arrived();
	CHECK(!io_pending(&io));
	check_holds_nothing();
	stop();
}

/* Nobody may read: no event comes in vain, and none is missed after it. */
TEST(held_with_records_at_hand)
{
	start();
	peer_writes(4 * RECORD);
	deliver(ANY);
	CHECK_INT(io_read(&io, got, RECORD), RECORD);
	ngot = RECORD;
	readable = false;
	CHECK_INT(io_take(&io, got + ngot, RECORD), -1);
	CHECK_INT(errno, EAGAIN);
	io_pause(&io);
	io_resume(&io);
	nreads = 0;
	settle();
	CHECK(nreads <= 1);
	peer_writes(RECORD);
	deliver(ANY);
	nreads = 0;
	settle();
	CHECK_INT(nreads, 0);
	readable = true;
	io_take_on();
	settle();
	CHECK(nreads > 0);
	CHECK_INT(reads_all(), -1);
	CHECK_INT(errno, EAGAIN);
	check_arrived();
	stop();
}

/* Of half a record the library has its copy; no buffer is held for it. */
TEST(half_a_record)
{
	start();
	peer_writes(RECORD + 100);
	deliver(RECORD);
	CHECK_INT(reads_all(), -1);
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(ngot, 0);
	CHECK(io_pending(&io));
	CHECK(io.io_ahead == NULL);
	deliver(ANY);
	CHECK_INT(reads_all(), -1);
	check_arrived();
	CHECK(!io_pending(&io));
	stop();
}

/* A record ends where its length says, however its bytes come. */
TEST(byte_by_byte)
{
	start();
	peer_writes(300);
	while (deliver(1) == 1) {
		CHECK_INT(reads_all(), -1);
		CHECK_INT(errno, EAGAIN);
		CHECK(io_pending(&io) == (ngot != nsent));
	}
	check_arrived();
	CHECK(!io_pending(&io));
	stop();
}

/* What a handshake has to say goes at once, or as the socket takes it. */
TEST(flight_in_one)
{
	int	 i;

	start_hello(TLS1_3_VERSION, 100);
	deliver(ANY);
	settle();
	CHECK_INT(nsends, 1);
	check_holds_nothing();
	stop();
	start_hello(TLS1_2_VERSION, 100);
	for (i = 0; i < 1000 && nsecure == 0; i++) {
		takes = 10;
		deliver(ANY);
		settle();
		collect();
		SSL_do_handshake(peer);
	}
	takes = ANY;
	settle();
	collect();
	SSL_do_handshake(peer);
	CHECK_INT(nsecure, 1);
	CHECK(SSL_is_init_finished(peer));
	check_holds_nothing();
	stop();
}

/* A client that rejects our CA says so in the clear, even in pieces. */
TEST(alert_in_pieces)
{
	static const unsigned char	 ccs[] = { 20, 3, 3, 0, 1, 1 },
	    alert[] = { 21, 3, 3, 0, 2, 2, 48 };
	size_t				 i;

	start_hello(TLS1_3_VERSION, 100);
	deliver(ANY);
	settle();
	refuses = true;
	CHECK_INT(write(wire, ccs, sizeof(ccs)), sizeof(ccs));
	for (i = 0; i < sizeof(alert); i++) {
		settle();
		CHECK_INT(nsecure, 0);
		CHECK_INT(io.io_alert, -1);
		CHECK_INT(write(wire, alert + i, 1), 1);
	}
	settle();
	CHECK_INT(nsecure, 1);
	CHECK_INT(io.io_alert, 48);
	stop();
}

TEST(end_behind_records)
{
	start();
	peer_writes(3 * RECORD);
	SSL_shutdown(peer);
	deliver(ANY);
	close(wire);
	wire = -1;
	CHECK_INT(io_read(&io, got, 10), 10);
	ngot = 10;
	io_pause(&io);
	io_resume(&io);
	settle();
	CHECK(nreads > 0);
	CHECK_INT(reads_all(), 0);
	check_arrived();
	CHECK(io.io_closed);
	stop();
}

/* Without close_notify it may have been cut. */
TEST(cut_behind_records)
{
	start();
	peer_writes(3 * RECORD);
	deliver(ANY);
	close(wire);
	wire = -1;
	CHECK_INT(reads_all(), -1);
	CHECK_INT(errno, EAGAIN);
	event_comes();
	CHECK_INT(reads_all(), 0);
	check_arrived();
	CHECK(!io.io_closed);
	stop();
}

TEST(closed_with_all_in_use)
{
	unsigned int	 kept;

	start();
	kept = blocks_kept();
	peer_writes(2 * RECORD);
	deliver(ANY);
	CHECK_INT(io_read(&io, got, 10), 10);
	takes = 0;
	puts_some(RECORD);
	io_push(&io);
	puts_some(RECORD);
	CHECK(io.io_ahead != NULL);
	CHECK(io.io_sealed != NULL);
	CHECK(io.io_out != NULL);
	stop();
	CHECK_INT(io_blocks.bk_kept, kept);
}

TEST_MAIN("io")
