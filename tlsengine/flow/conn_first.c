/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: the first bytes of a client, which tell TLS from HTTP
 * and give the connection its name.
 */

#include <errno.h>
#include <string.h>

#include <openssl/err.h>

#include "conn.h"
#include "dns/names.h"
#include "hostname.h"
#include "policy.h"
#include "refuse_raw.h"
#include "tlsengine.h"

#define ASKED_TLS_MAX	2	/* as psql does, and GSS */

_Static_assert(HELLO_MAX <= IN_SIZE, "a hello ends before its buffer");

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
	if (cn->cn_inlen == IN_SIZE)
		return 0;
	n = io_read(&cn->cn_io, cn->cn_in + cn->cn_inlen,
	    IN_SIZE - cn->cn_inlen);
	if (n > 0) {
		cn->cn_inlen += n;
		return 1;
	}
	if (n == -1 && errno == EAGAIN)
		return 0;
	if (n == 0 && cn->cn_ex == NULL && cn->cn_raw == NULL &&
	    !io_empty(&cn->cn_io)) {
		/* No more requests; the client still reads the answer. */
		conn_last(cn);
		return -1;
	}
	if (cn->cn_state == CONN_FIRST && cn->cn_raw == NULL &&
	    raw_refuse_ends(cn, REASON_STREAM_BROKEN))
		return -1;
	if (cn->cn_io.io_ssl != NULL && cn->cn_requests == 0) {
		/* Some clients check our leaf only after the handshake. */
		raw_gave_up_end(cn, REASON_STREAM_BROKEN);
		return -1;
	}
	conn_gone(cn);
	conn_free(cn);
	return -1;
}

/* Refuse in the client's own protocol if we know it, else by a reset. */
void
conn_refuse_end(struct conn *cn, const char *text)
{
	unsigned char	 out[REFUSE_RAW_MAX];
	size_t		 len = 0;

	if (settings.st_options.po_refuse == REFUSE_403 &&
	    cn->cn_io.io_ssl == NULL && cn->cn_in != NULL)
		len = refuse_raw(spoken_of(cn->cn_in, cn->cn_inlen), text, out);
	if (len == 0) {
		conn_reset_end(cn);
		return;
	}
	io_put(&cn->cn_io, out, len);
	io_flush(&cn->cn_io);
	conn_last(cn);
}

void
conn_not_http_end(struct conn *cn, const char *reason)
{
	if (raw_refuse_ends(cn, reason))
		return;
	conn_report(cn, RECORD_CONNECTION_REFUSED, PROTOCOL_TCP, reason);
	conn_refuse_end(cn, "Egress gate: what is not HTTP needs a tcp rule");
}

/* No name is known: use the address as the name. */
void
name_by_address(struct conn *cn)
{
	addr_format(&cn->cn_dest, cn->cn_place.pc_host,
	    sizeof(cn->cn_place.pc_host));
	cn->cn_named = true;
}

/*
 * Settle the connection on a name that the client sent.  A name that does not
 * belong to the address dialled is kept, so that the refusal can tell it.
 */
void
name_by_client(struct conn *cn, const char *name)
{
	bool	 same = strcmp(cn->cn_place.pc_host, name) == 0;

	if (cn->cn_named && !same)
		cn->cn_mismatch = REASON_NAME_MISMATCH;
	if (!cn->cn_named && names_enabled() && cn->cn_transparent) {
		/* Only addresses of our DNS have another name. */
		name_by_address(cn);
		if (strcmp(cn->cn_place.pc_host, name) != 0)
			cn->cn_mismatch = REASON_NAME_MISMATCH;
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
	if (cn->cn_denied && settings.st_options.po_refuse == REFUSE_ALERT) {
		conn_not_http_end(cn, REASON_BAD_REQUEST);
		return;
	}
	if (he->he_sni == HELLO_SNI_NAME) {
		if (hostname_canon(he->he_name, he->he_namelen, name,
		    sizeof(name), NULL) == -1) {
			conn_not_http_end(cn, REASON_BAD_REQUEST);
			return;
		}
		name_by_client(cn, name);
		if (!io_takes_name(he->he_name, he->he_namelen)) {
			conn_not_http_end(cn, REASON_TLS_NAME_UNSUPPORTED);
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

/* No leaf can be minted; an expired CA is the operator's to replace. */
static void
conn_no_leaf_end(struct conn *cn)
{
	if (!mint_expired(mint)) {
		conn_not_http_end(cn, REASON_BAD_REQUEST);
		return;
	}
	if (raw_refuse_ends(cn, REASON_CA_EXPIRED))
		return;
	conn_report(cn, RECORD_REQUEST_FAILED, PROTOCOL_TLS, REASON_CA_EXPIRED);
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
		conn_no_leaf_end(cn);
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
	/* Bytes behind the hello may have paused the io. */
	io_resume(&cn->cn_io);
}

/*
 * Whether the client speaks another protocol, and is answered.  A PostgreSQL
 * client that would like to be encrypted has to hear that it may not, before it
 * can be told anything.
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
		if (settings.st_options.po_refuse == REFUSE_403 &&
		    cn->cn_raw == NULL &&
		    cn->cn_inlen == POSTGRES_TLS_LEN &&
		    cn->cn_asked_tls++ < ASKED_TLS_MAX) {
			cn->cn_inlen = 0;
			io_put(&cn->cn_io, "N", 1);
			io_flush(&cn->cn_io);
			return true;
		}
		break;
	default:
		break;
	}
	conn_not_http_end(cn, REASON_BAD_REQUEST);
	return true;
}

void
conn_first(struct conn *cn)
{
	struct hello	 he;

	if (conn_fill(cn) != 1 || conn_spoken(cn))
		return;
	if (cn->cn_in[0] != HELLO_FIRST && cn->cn_raw != NULL) {
		conn_not_http_end(cn, REASON_BAD_REQUEST);
		return;
	}
	if (cn->cn_in[0] != HELLO_FIRST) {
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
			if (cn->cn_raw != NULL)
				raw_hello(cn, &he);
			else
				conn_secure(cn, &he);
			break;
		}
		/* FALLTHROUGH */
	case HELLO_BAD:
		conn_not_http_end(cn, REASON_BAD_REQUEST);
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
		raw_gave_up_end(cn, rejected_ca(io->io_alert) ?
		    REASON_TLS_CLIENT_REJECTED_CA : REASON_STREAM_BROKEN);
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
