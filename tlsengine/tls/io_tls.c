/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this.  TLS reads and writes its records through a BIO of our
 * own, for three reasons: the ClientHello has been read by then and must be
 * given back; a client's refusal of our CA arrives in TLS 1.3 as a plaintext
 * alert which the library reports as a bad record, so we look for it here; and
 * a system call for each record would cost about as much as its cipher, so we
 * make one for several.
 */

#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "blocks.h"
#include "io.h"

#define TLS_ALERT	21
#define RECORD_HEADER	5	/* kind, version, length */
#define RECORD_LENGTH	3	/* where it is in the header */
#define ALERT_BODY	2	/* level, description */

static BIO_METHOD	*io_method;

/*
 * Where records begin and end among the bytes that the library takes, which
 * does not say in every version whether it has part of one.  The alert of a
 * client may come alone, or behind what is there to please middleboxes.
 */
static void
io_follow(struct io *io, const unsigned char *p, size_t len)
{
	size_t	 n;

	while (len > 0) {
		if (io->io_headlen == 0 && io->io_bodyleft > 0) {
			n = len < io->io_bodyleft ? len : io->io_bodyleft;
			if (n == io->io_bodyleft && io->io_maybe_alert)
				io->io_alert = p[n - 1];
			io->io_bodyleft -= n;
		} else {
			n = 1;
			if (io->io_headlen == 0)
				io->io_maybe_alert = io->io_handshake &&
				    *p == TLS_ALERT;
			else if (io->io_headlen >= RECORD_LENGTH)
				io->io_bodyleft = io->io_bodyleft << 8 | *p;
			if (++io->io_headlen == RECORD_HEADER) {
				io->io_headlen = 0;
				io->io_maybe_alert &=
				    io->io_bodyleft == ALERT_BODY;
			}
		}
		p += n;
		len -= n;
	}
}

/* The library has part of a record, and no event will tell of it. */
bool
io_within_record(const struct io *io)
{
	return io->io_headlen > 0 || io->io_bodyleft > 0;
}

/* Read all that has come, perhaps many records. */
static ssize_t
io_fetch(struct io *io)
{
	ssize_t	 n;

	/* The last read was short: nothing more is there. */
	if (io->io_drained) {
		errno = EAGAIN;
		return -1;
	}
	if ((io->io_ahead = blocks_get(&io_blocks)) == NULL)
		return -1;
	n = recv(io->io_fd, io->io_ahead, IO_BLOCK, 0);
	if (n <= 0) {
		blocks_put(&io_blocks, io->io_ahead);
		io->io_ahead = NULL;
		return n;
	}
	io->io_aheadlen = n;
	io->io_drained = n < IO_BLOCK;
	return n;
}

static int
io_bio_read(BIO *bio, char *buf, int len)
{
	struct io	*io = BIO_get_data(bio);
	ssize_t		 n;

	BIO_clear_retry_flags(bio);
	if (io->io_ahead == NULL && (n = io_fetch(io)) <= 0) {
		io->io_cut = n == 0;
		if (n == -1 && (errno == EAGAIN || errno == EINTR))
			BIO_set_retry_read(bio);
		return n;
	}
	n = (size_t)len < io->io_aheadlen ? (size_t)len : io->io_aheadlen;
	memcpy(buf, io->io_ahead + io->io_aheadpos, n);
	io_follow(io, io->io_ahead + io->io_aheadpos, n);
	io->io_aheadpos += n;
	io->io_aheadlen -= n;
	if (io->io_aheadlen == 0) {
		blocks_put(&io_blocks, io->io_ahead);
		io->io_ahead = NULL;
		io->io_aheadpos = 0;
	}
	return n;
}

/* Behind what is sealed already: records keep their order. */
static ssize_t
io_bio_append(struct io *io, const char *buf, size_t len)
{
	size_t	 used = io->io_sealedpos + io->io_sealedlen;

	if (used == IO_BLOCK) {
		errno = EAGAIN;
		return -1;
	}
	if (len > IO_BLOCK - used)
		len = IO_BLOCK - used;
	memcpy(io->io_sealed + used, buf, len);
	io->io_sealedlen += len;
	return len;
}

static int
io_bio_write(BIO *bio, const char *buf, int len)
{
	struct io	*io = BIO_get_data(bio);
	ssize_t		 n;

	BIO_clear_retry_flags(bio);
	if (io->io_sealed != NULL)
		n = io_bio_append(io, buf, len);
	else
		n = send(io->io_fd, buf, len, MSG_NOSIGNAL);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(bio);
	return n;
}

static long
io_bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	(void)bio, (void)num, (void)ptr;
	return cmd == BIO_CTRL_FLUSH;
}

static int
io_bio_create(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

int
io_tls_init(void)
{
	io_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK,
	    "egressd io");
	return io_method != NULL &&
	    BIO_meth_set_read(io_method, io_bio_read) &&
	    BIO_meth_set_write(io_method, io_bio_write) &&
	    BIO_meth_set_ctrl(io_method, io_bio_ctrl) &&
	    BIO_meth_set_create(io_method, io_bio_create) ? 0 : -1;
}

/* ---- what is sealed ------------------------------------------------------ */

static void
io_forget_sealed(struct io *io)
{
	blocks_put(&io_blocks, io->io_sealed);
	io->io_sealed = NULL;
	io->io_sealedpos = io->io_sealedlen = 0;
}

/* 1: all went, 0: the socket is full, -1: broken. */
static int
io_send_sealed(struct io *io)
{
	ssize_t	 n;

	n = send(io->io_fd, io->io_sealed + io->io_sealedpos,
	    io->io_sealedlen, MSG_NOSIGNAL);
	if (n == -1)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	io->io_sealedpos += n;
	io->io_sealedlen -= n;
	if (io->io_sealedlen > 0)
		return 0;
	io_forget_sealed(io);
	return 1;
}

/* ---- the handshake ------------------------------------------------------- */

bool
io_takes_name(const char *name, size_t len)
{
#ifdef LIBRESSL_VERSION_NUMBER
	return memchr(name, '_', len) == NULL &&
	    (len == 0 || name[len - 1] != '.');
#else
	(void)name, (void)len;
	return true;
#endif
}

static const char *
tls_reason(void)
{
	unsigned long	 code = ERR_peek_last_error();
	const char	*text = code != 0 ? ERR_reason_error_string(code) :
			    NULL;

	return text != NULL ? text : "connection closed";
}

/*
 * An alert that was encrypted, as the library saw it.  LibreSSL reports those
 * that it sends in the same way; the first one is what the other side said.
 */
static void
io_alert_of_library(struct io *io)
{
	int	 reason = ERR_GET_REASON(ERR_peek_error());

	if (io->io_alert == -1 && reason > SSL_AD_REASON_OFFSET &&
	    reason <= SSL_AD_REASON_OFFSET + UINT8_MAX)
		io->io_alert = reason - SSL_AD_REASON_OFFSET;
}

/*
 * One step of a handshake, and all that it has to send in one piece.  LibreSSL
 * writes message by message; a client that rejects our CA may then close with
 * the rest unread, and the reset overtakes the alert that says why.
 */
static int
io_shake_hands_once(struct io *io)
{
	int	 n;

	if (io->io_sealed == NULL)
		io->io_sealed = blocks_get(&io_blocks);
	n = SSL_do_handshake(io->io_ssl);
	if (io->io_sealedlen == 0)
		io_forget_sealed(io);
	else if (io_send_sealed(io) == 0)
		event_add(&io->io_wev, NULL);
	return n;
}

void
io_shake_hands(struct io *io)
{
	int	 n;

	ERR_clear_error();
	n = io_shake_hands_once(io);
	if (n == 1) {
		io->io_handshake = false;
		io->io_ops->on_secure(io, NULL);
		return;
	}
	switch (SSL_get_error(io->io_ssl, n)) {
	case SSL_ERROR_WANT_READ:
		break;
	case SSL_ERROR_WANT_WRITE:
		event_add(&io->io_wev, NULL);
		break;
	default:
		io_alert_of_library(io);
		io_break(io, tls_reason());
		ERR_clear_error();
	}
}

/* Takes the SSL in any case; on_secure tells how it went, never from here. */
int
io_secure(struct io *io, SSL *ssl, void *pre, size_t len)
{
	BIO	*bio;

	io->io_ssl = ssl;
	if (len > 0) {
		if (len > IO_BLOCK ||
		    (io->io_ahead = blocks_get(&io_blocks)) == NULL)
			return -1;
		memcpy(io->io_ahead, pre, len);
		io->io_aheadlen = len;
	}
	if ((bio = BIO_new(io_method)) == NULL)
		return -1;
	BIO_set_data(bio, io);
	SSL_set_bio(ssl, bio, bio);
	SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE |
	    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
	io->io_handshake = true;
	event_active(&io->io_rev, EV_READ, 1);
	return 0;
}

/* ---- records ------------------------------------------------------------- */

/*
 * Whether the library only waits for the socket.  SSL_get_error() would look
 * at its list of errors first, so that one had to be emptied before each call;
 * we empty it after what has failed.
 */
static bool
io_waits(const struct io *io)
{
	return SSL_want(io->io_ssl) != SSL_NOTHING &&
	    BIO_should_retry(SSL_get_rbio(io->io_ssl));
}

ssize_t
io_read_tls(struct io *io, void *buf, size_t len)
{
	int	 n;

	/* LibreSSL wants to be asked again after an empty record. */
	do
		n = SSL_read(io->io_ssl, buf, len > INT32_MAX ? INT32_MAX :
		    (int)len);
	while (n <= 0 && io->io_ahead != NULL &&
	    SSL_want(io->io_ssl) == SSL_READING);
	if (n > 0)
		return n;
	if (io_waits(io)) {
		errno = EAGAIN;
		return -1;
	}
	switch (SSL_get_error(io->io_ssl, n)) {
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		ERR_clear_error();
		/* No close_notify: framing tells if bytes are missing. */
		if (io->io_cut)
			return 0;
		if (errno == 0 || errno == EAGAIN)
			errno = ECONNRESET;
		return -1;
	default:
		ERR_clear_error();
		errno = EPROTO;
		return -1;
	}
}

/* 1: all that waits, or as much as fits, is in records; 0: it is not yet. */
static int
io_seal(struct io *io)
{
	int	 n;

	if ((io->io_sealed = blocks_get(&io_blocks)) == NULL)
		return -1;
	while (io->io_outlen > 0) {
		n = SSL_write(io->io_ssl, io->io_out + io->io_outpos,
		    io->io_outlen);
		if (n <= 0 && io_waits(io))
			break;
		if (n <= 0) {
			ERR_clear_error();
			return -1;
		}
		io_sent(io, n);
	}
	if (io->io_sealedlen > 0)
		return 1;
	/* The library wants to hear from the peer first. */
	io_forget_sealed(io);
	return 0;
}

/*
 * What the socket does not take is kept, and nothing more is sealed until that
 * is out: a slow reader has one buffer of records at most.
 */
int
io_send_tls(struct io *io)
{
	int	 rv = 1;

	if (io->io_sealed != NULL)
		rv = io_send_sealed(io);
	while (rv == 1 && io->io_outlen > 0)
		if ((rv = io_seal(io)) == 1)
			rv = io_send_sealed(io);
	return rv;
}
