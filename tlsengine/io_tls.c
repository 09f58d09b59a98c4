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
 * tlsengine runs this.  TLS reads its ciphertext through a BIO of our own,
 * for two reasons: the ClientHello has been read by then and must be given
 * back, and a client's refusal of our CA arrives in TLS 1.3 as a plaintext
 * alert which the library reports as a bad record, so we look for it here.
 */

#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "io.h"

#define TLS_ALERT	21
#define RECORD_HEADER	5
#define ALERT_RECORD	7	/* header, level, description */

static BIO_METHOD	*io_method;

/* It may come alone, or behind what is there to please middleboxes. */
static void
io_look_for_alert(struct io *io, const unsigned char *p, size_t len)
{
	size_t	 record;

	while (io->io_handshake && len >= ALERT_RECORD) {
		record = RECORD_HEADER + (p[3] << 8 | p[4]);
		if (p[0] == TLS_ALERT && record == ALERT_RECORD)
			io->io_alert = p[6];
		if (record > len)
			break;
		p += record;
		len -= record;
	}
}

static int
io_bio_read(BIO *bio, char *buf, int len)
{
	struct io	*io = BIO_get_data(bio);
	ssize_t		 n;
	size_t		 pre = io->io_prelen - io->io_prepos;

	BIO_clear_retry_flags(bio);
	if (pre > 0) {
		if (pre > (size_t)len)
			pre = len;
		memcpy(buf, io->io_pre + io->io_prepos, pre);
		io->io_prepos += pre;
		if (io->io_prepos == io->io_prelen) {
			free(io->io_pre);
			io->io_pre = NULL;
			io->io_prelen = io->io_prepos = 0;
		}
		return pre;
	}
	n = recv(io->io_fd, buf, len, 0);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(bio);
	else if (n > 0)
		io_look_for_alert(io, (unsigned char *)buf, n);
	return n;
}

static int
io_bio_write(BIO *bio, const char *buf, int len)
{
	struct io	*io = BIO_get_data(bio);
	ssize_t		 n;

	BIO_clear_retry_flags(bio);
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

/* ---- the handshake ------------------------------------------------------- */

static const char *
tls_reason(void)
{
	unsigned long	 code = ERR_peek_last_error();
	const char	*text = code != 0 ? ERR_reason_error_string(code) : NULL;

	return text != NULL ? text : "connection closed";
}

/* An alert that was encrypted, as the library saw it. */
static void
io_alert_of_library(struct io *io)
{
	int	 reason = ERR_GET_REASON(ERR_peek_error());

	if (reason > SSL_AD_REASON_OFFSET &&
	    reason <= SSL_AD_REASON_OFFSET + UINT8_MAX)
		io->io_alert = reason - SSL_AD_REASON_OFFSET;
}

void
io_shake_hands(struct io *io)
{
	int	 n;

	ERR_clear_error();
	n = SSL_do_handshake(io->io_ssl);
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
		if ((io->io_pre = malloc(len)) == NULL)
			return -1;
		memcpy(io->io_pre, pre, len);
		io->io_prelen = len;
	}
	if ((bio = BIO_new(io_method)) == NULL)
		return -1;
	BIO_set_data(bio, io);
	SSL_set_bio(ssl, bio, bio);
	/* One system call for a record, not one for its header as well. */
	SSL_set_read_ahead(ssl, 1);
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

	n = SSL_read(io->io_ssl, buf, len > INT32_MAX ? INT32_MAX : (int)len);
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
		/* Closed without close_notify: the framing tells if it hurts. */
		if (n == 0)
			return 0;
		if (errno == 0 || errno == EAGAIN)
			errno = ECONNRESET;
		ERR_clear_error();
		return -1;
	default:
		ERR_clear_error();
		errno = EPROTO;
		return -1;
	}
}

/* > 0 bytes went, 0: the socket is full, -1: broken. */
ssize_t
io_write_tls(struct io *io, const void *data, size_t len)
{
	int	 n;

	n = SSL_write(io->io_ssl, data, len > INT32_MAX ? INT32_MAX : (int)len);
	if (n > 0)
		return n;
	if (io_waits(io))
		return 0;
	ERR_clear_error();
	return -1;
}
