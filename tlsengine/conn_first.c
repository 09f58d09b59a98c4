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
 * tlsengine runs this: the first bytes of a client, which tell TLS from HTTP
 * and give the connection its name.
 */

#include <errno.h>
#include <string.h>

#include <openssl/err.h>

#include "hostname.h"
#include "names.h"
#include "policy.h"
#include "refuse_raw.h"
#include "tlsengine.h"

#define TLS_HANDSHAKE	0x16	/* first byte of a TLS connection */
#define ASKED_TLS_MAX	2	/* as psql does, and GSS */

/* 1: more came, 0: nothing now, -1: the connection is over (and freed). */
int
conn_fill(struct conn *cn)
{
	ssize_t	 n;

	if (cn->cn_in == NULL &&
	    (cn->cn_in = blocks_get(&in_blocks)) == NULL) {
		conn_gone(cn);
		conn_free(cn);
		return -1;
	}
	if (cn->cn_inlen == CONN_IN_SIZE)
		return 0;
	n = io_read(&cn->cn_io, cn->cn_in + cn->cn_inlen,
	    CONN_IN_SIZE - cn->cn_inlen);
	if (n > 0) {
		cn->cn_inlen += n;
		return 1;
	}
	if (n == -1 && errno == EAGAIN)
		return 0;
	if (n == 0 && cn->cn_ex == NULL && !io_empty(&cn->cn_io)) {
		/* It asks for no more and still reads the last answer. */
		conn_last(cn);
		return -1;
	}
	if (cn->cn_state == CONN_FIRST && cn->cn_ex == NULL &&
	    raw_refuse(cn, "stream_broken"))
		return -1;
	if (cn->cn_io.io_ssl != NULL && cn->cn_requests == 0) {
		/* Some clients look at the certificate only now. */
		raw_gave_up(cn, "stream_broken");
		return -1;
	}
	conn_gone(cn);
	conn_free(cn);
	return -1;
}

/* In words if they can be had, and else by a reset. */
void
conn_say_no(struct conn *cn, const char *text)
{
	unsigned char	 out[REFUSE_RAW_MAX];
	size_t		 len = 0;

	if (settings.st_refuse == REFUSE_403 && cn->cn_io.io_ssl == NULL &&
	    cn->cn_in != NULL)
		len = refuse_raw(spoken_of(cn->cn_in, cn->cn_inlen), text, out);
	if (len == 0) {
		conn_reset(cn);
		return;
	}
	io_put(&cn->cn_io, out, len);
	io_flush(&cn->cn_io);
	conn_last(cn);
}

void
conn_not_http(struct conn *cn, const char *reason)
{
	if (raw_refuse(cn, reason))
		return;
	conn_report(cn, RECORD_CONNECTION_REFUSED, PROTOCOL_TCP, reason);
	conn_say_no(cn, "Egress gate: what is not HTTP needs a tcp rule");
}

/* Without a name of any kind the address is its own name. */
void
name_by_address(struct conn *cn)
{
	addr_format(&cn->cn_dest, cn->cn_place.pc_host,
	    sizeof(cn->cn_place.pc_host));
	cn->cn_named = true;
}

/*
 * Settle the connection on a name that the client sent.  One that contradicts
 * the address it dialled is kept, so that the refusal can name it.
 */
void
name_by_client(struct conn *cn, const char *name)
{
	bool	 same = strcmp(cn->cn_place.pc_host, name) == 0;

	if (cn->cn_named && !same)
		cn->cn_mismatch = "name_mismatch";
	if (!cn->cn_named && names_enabled() && cn->cn_transparent) {
		/* Only addresses that we gave out stand for names. */
		name_by_address(cn);
		if (strcmp(cn->cn_place.pc_host, name) != 0)
			cn->cn_mismatch = "name_mismatch";
	}
	strlcpy(cn->cn_place.pc_host, name, sizeof(cn->cn_place.pc_host));
	cn->cn_named = true;
}

static void
conn_secure(struct conn *cn, const struct hello *he)
{
	char	 name[HOSTNAME_MAX];
	bool	 asked = conn_settled(cn);

	cn->cn_place.pc_scheme = URL_HTTPS;
	if (cn->cn_denied && settings.st_refuse == REFUSE_ALERT) {
		conn_not_http(cn, "bad_request");
		return;
	}
	if (he->he_sni == HELLO_SNI_NAME) {
		if (hostname_canon(he->he_name, he->he_namelen, name,
		    sizeof(name), NULL) == -1) {
			conn_not_http(cn, "bad_request");
			return;
		}
		name_by_client(cn, name);
		if (!io_takes_name(he->he_name, he->he_namelen)) {
			conn_not_http(cn, "tls_name_unsupported");
			return;
		}
	} else if (!cn->cn_named)
		name_by_address(cn);
	if (!settings.st_asks || asked || !conn_ask(cn))
		conn_handshake(cn);
}

/* Before the handshake an alert is plain (RFC 8446, 5.1). */
void
conn_alert(struct conn *cn, unsigned char description)
{
	const unsigned char	 alert[] = {
		0x15, 0x03, 0x03, 0, 2, SSL3_AL_FATAL, description
	};

	io_put(&cn->cn_io, alert, sizeof(alert));
	io_flush(&cn->cn_io);
	conn_last(cn);
}

/* No leaf could be had.  An end of the CA is for the operator to mend. */
static void
conn_no_leaf(struct conn *cn)
{
	if (!mint_expired(mint)) {
		conn_not_http(cn, "bad_request");
		return;
	}
	if (raw_refuse(cn, "ca_expired"))
		return;
	conn_report(cn, RECORD_REQUEST_FAILED, PROTOCOL_TLS, "ca_expired");
	conn_alert(cn, SSL_AD_CERTIFICATE_EXPIRED);
}

void
conn_handshake(struct conn *cn)
{
	SSL	*ssl;

	if ((ssl = SSL_new(server_ctx)) == NULL ||
	    mint_use(mint, ssl, cn->cn_place.pc_host) == -1) {
		SSL_free(ssl);
		ERR_clear_error();
		conn_no_leaf(cn);
		return;
	}
	ERR_clear_error();
	SSL_set_accept_state(ssl);
	cn->cn_state = CONN_HANDSHAKE;
	timer_set(&cn->cn_timer, settings.st_handshake_ms);
	if (io_secure(&cn->cn_io, ssl, cn->cn_in, cn->cn_inlen) == -1) {
		conn_free(cn);
		return;
	}
	blocks_put(&in_blocks, cn->cn_in);
	cn->cn_in = NULL;
	cn->cn_inlen = 0;
	/* What came behind the hello may have stopped it. */
	io_resume(&cn->cn_io);
}

/*
 * Whether it speaks another protocol.  A PostgreSQL client that would like to
 * be encrypted has to hear that it may not, before it can be told anything.
 */
static bool
conn_spoken(struct conn *cn)
{
	switch (spoken_of(cn->cn_in, cn->cn_inlen)) {
	case SPOKEN_UNKNOWN:
		return false;
	case SPOKEN_MORE:
		return true;
	case SPOKEN_POSTGRES_TLS:
		if (settings.st_refuse == REFUSE_403 && cn->cn_ex == NULL &&
		    cn->cn_inlen == 8 && cn->cn_asked_tls++ < ASKED_TLS_MAX) {
			cn->cn_inlen = 0;
			io_put(&cn->cn_io, "N", 1);
			io_flush(&cn->cn_io);
			return true;
		}
		break;
	default:
		break;
	}
	conn_not_http(cn, "bad_request");
	return true;
}

void
conn_first(struct conn *cn)
{
	struct hello	 he;

	if (conn_fill(cn) != 1 || conn_spoken(cn))
		return;
	if (cn->cn_in[0] != TLS_HANDSHAKE && cn->cn_ex != NULL) {
		conn_not_http(cn, "bad_request");
		return;
	}
	if (cn->cn_in[0] != TLS_HANDSHAKE) {
		cn->cn_place.pc_scheme = URL_HTTP;
		cn->cn_state = CONN_HEAD;
		cn->cn_begun = true;
		timer_set(&cn->cn_timer, settings.st_head_ms);
		conn_head(cn);
		return;
	}
	switch (hello_parse(cn->cn_in, cn->cn_inlen, &he)) {
	case HELLO_MORE:
		break;
	case HELLO_DONE:
		if (he.he_sni != HELLO_SNI_MALFORMED) {
			if (cn->cn_ex != NULL)
				raw_hello(cn, &he);
			else
				conn_secure(cn, &he);
			break;
		}
		/* FALLTHROUGH */
	case HELLO_BAD:
		conn_not_http(cn, "bad_request");
	}
}

static bool
rejected_ca(int alert)
{
	return alert == SSL_AD_BAD_CERTIFICATE ||
	    alert == SSL_AD_CERTIFICATE_EXPIRED ||
	    alert == SSL_AD_CERTIFICATE_UNKNOWN || alert == SSL_AD_UNKNOWN_CA;
}

void
conn_on_secure(struct io *io, const char *why)
{
	struct conn		*cn = io->io_arg;
	const unsigned char	*alpn;
	unsigned int		 len;

	if (why != NULL) {
		raw_gave_up(cn, rejected_ca(io->io_alert) ?
		    "tls_client_rejected_ca" : "stream_broken");
		return;
	}
	SSL_get0_alpn_selected(io->io_ssl, &alpn, &len);
	if (len == 2 && memcmp(alpn, "h2", 2) == 0) {
		conn_h2_begin(cn);
		return;
	}
	cn->cn_state = CONN_HEAD;
	timer_set(&cn->cn_timer, settings.st_idle_ms);
	io_resume(&cn->cn_io);
}
