/* SPDX-License-Identifier: ISC */

/*
 * One end of a connection as tlsengine/tls/io.c has it, and its peer: the same
 * TLS library with its wire in memory, so that a test says which bytes arrive;
 * and send(2) is ours, so that it says how many go.
 */

#ifndef IO_PEER_H
#define IO_PEER_H

#include "test.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>

#include "tlsengine/blocks.h"
#include "tlsengine/tls/io.h"
#include "tlsengine/tls/mint.h"

#define NAME		"io.test"
#define RECORD		16384
#define ANY		SIZE_MAX

static struct event_base	*base;
static struct mint		*mint;
static SSL_CTX			*sctx, *cctx;

static struct io	 io;
static SSL		*peer;
static BIO		*from_peer, *to_peer;
static int		 wire;		/* the peer's end */
static size_t		 takes;		/* bytes that the socket still does */
static bool		 permitted;	/* by the barrier */
static int		 nsends, nreads, ndrains, nsecure, nerrors;
static bool		 refuses;	/* the peer, in the handshake */
static unsigned char	 sent[256 * 1024], got[256 * 1024];
static size_t		 nsent, ngot;

/* ---- what io calls ------------------------------------------------------- */

ssize_t
send(int fd, const void *data, size_t len, int flags)
{
	if (fd == io.io_fd) {
		nsends++;
		if (takes == 0) {
			errno = EAGAIN;
			return -1;
		}
		if (len > takes)
			len = takes;
		if (takes != ANY)
			takes -= len;
	}
	return sendto(fd, data, len, flags, NULL, 0);
}

static bool	 readable = true;

static bool
may_take(void)
{
	return readable;
}

static bool
barrier(void)
{
	return permitted;
}

static void
on_read(struct io *i)
{
	(void)i;
	nreads++;
}

static void
on_drain(struct io *i)
{
	(void)i;
	ndrains++;
}

static void
on_secure(struct io *i, const char *why)
{
	(void)i;
	CHECK((why != NULL) == refuses);
	nsecure++;
}

static void
on_error(struct io *i, const char *why)
{
	CHECK(why != NULL);
	nerrors++;
	io_close(i);
}

static const struct io_ops	 ops = {
	on_read, on_drain, on_secure, on_error
};

static void
settle(void)
{
	int	 i;

	for (i = 0; i < 8; i++)
		CHECK(event_base_loop(base, EVLOOP_ONCE |
		    EVLOOP_NONBLOCK) != -1);
}

/* ---- the peer ------------------------------------------------------------ */

static void
collect(void)
{
	unsigned char	 buf[4096];
	ssize_t		 n;

	while ((n = recv(wire, buf, sizeof(buf), 0)) > 0)
		CHECK_INT(BIO_write(to_peer, buf, n), n);
}

/* It may be that there is more to read, and only an event tells. */
static void
event_comes(void)
{
	io.io_drained = false;
}

/* So many bytes of what the peer has said, or all; how many they were. */
static size_t
deliver(size_t max)
{
	unsigned char	 buf[4096];
	size_t		 total = 0;
	int		 n;

	while (total < max && BIO_ctrl_pending(from_peer) > 0) {
		n = BIO_read(from_peer, buf, max - total < sizeof(buf) ?
		    (int)(max - total) : (int)sizeof(buf));
		CHECK_INT(write(wire, buf, n), n);
		total += n;
	}
	event_comes();
	return total;
}

static void
peer_reads(void)
{
	int	 n;

	collect();
	while ((n = SSL_read(peer, got + ngot, sizeof(got) - ngot)) > 0)
		ngot += n;
	ERR_clear_error();
}

static void
peer_writes(size_t len)
{
	size_t	 i;

	for (i = 0; i < len; i++)
		sent[nsent + i] = (nsent + i) * 7 >> 3;
	CHECK_INT(SSL_write(peer, sent + nsent, len), len);
	nsent += len;
}

/* ---- the owner ----------------------------------------------------------- */

static void
puts_some(size_t len)
{
	size_t	 i;

	for (i = 0; i < len; i++)
		sent[nsent + i] = (nsent + i) * 7 >> 3;
	io_put(&io, sent + nsent, len);
	nsent += len;
}

/* Until there is no more; what io_read() said at last. */
static ssize_t
reads_all(void)
{
	ssize_t	 n;

	while ((n = io_read(&io, got + ngot, sizeof(got) - ngot)) > 0)
		ngot += n;
	return n;
}

static void
check_arrived(void)
{
	CHECK_INT(ngot, nsent);
	CHECK(memcmp(got, sent, ngot) == 0);
}

static void
check_holds_nothing(void)
{
	CHECK(io_empty(&io));
	CHECK(io.io_ahead == NULL);
	CHECK(io.io_out == NULL);
	CHECK(io.io_sealed == NULL);
}

/* ---- a connection -------------------------------------------------------- */

static void
start_library(void)
{
	const char	*why;

	CHECK((base = event_base_new()) != NULL);
	CHECK_INT(event_base_priority_init(base, 2), 0);
	CHECK_INT(io_library_init(barrier, may_take), 0);
	CHECK((mint = mint_new("io", &why)) != NULL);
	CHECK((sctx = mint_server_ctx(mint)) != NULL);
	CHECK((cctx = SSL_CTX_new(TLS_client_method())) != NULL);
}

static void
start_clear(void)
{
	int	 fds[2];

	if (base == NULL)
		start_library();
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	CHECK_INT(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	CHECK_INT(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	wire = fds[1];
	takes = ANY;
	permitted = true;
	nsends = nreads = ndrains = nsecure = nerrors = 0;
	nsent = ngot = 0;
	refuses = false;
	peer = NULL;
	io_init(&io, base, fds[0], &ops, NULL);
}

/* The first `pre' bytes of the hello were read before TLS began. */
static void
start_hello(int version, size_t pre)
{
	unsigned char	 hello[4096];
	SSL		*ssl;

	start_clear();
	CHECK((peer = SSL_new(cctx)) != NULL);
	CHECK(SSL_set_max_proto_version(peer, version));
	CHECK((from_peer = BIO_new(BIO_s_mem())) != NULL);
	CHECK((to_peer = BIO_new(BIO_s_mem())) != NULL);
	BIO_set_mem_eof_return(to_peer, -1);
	SSL_set_bio(peer, to_peer, from_peer);
	SSL_set_connect_state(peer);
	CHECK((ssl = SSL_new(sctx)) != NULL);
	CHECK_INT(mint_use(mint, ssl, NAME), 0);
	SSL_set_accept_state(ssl);
	SSL_do_handshake(peer);
	CHECK_INT(BIO_read(from_peer, hello, pre), pre);
	CHECK_INT(io_secure(&io, ssl, hello, pre), 0);
}

static void
start_with(int version, size_t pre)
{
	int	 i;

	start_hello(version, pre);
	for (i = 0; i < 4; i++) {
		deliver(ANY);
		settle();
		collect();
		SSL_do_handshake(peer);
	}
	CHECK(SSL_is_init_finished(peer));
	CHECK_INT(nsecure, 1);
	/* Tickets. */
	peer_reads();
	check_holds_nothing();
	nsends = nreads = 0;
}

static void
start(void)
{
	start_with(TLS1_3_VERSION, 100);
}

static void
stop(void)
{
	io_close(&io);
	if (wire != -1)
		close(wire);
	SSL_free(peer);
	ERR_clear_error();
}

/* How many blocks wait for their next user, of three at least. */
static unsigned int
blocks_kept(void)
{
	void	*p[3];
	int	 i;

	for (i = 0; i < 3; i++)
		CHECK((p[i] = blocks_get(&io_blocks)) != NULL);
	for (i = 0; i < 3; i++)
		blocks_put(&io_blocks, p[i]);
	return io_blocks.bk_kept;
}

#endif /* IO_PEER_H */
