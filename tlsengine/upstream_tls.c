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
 * tlsengine runs this: TLS towards origins, which are verified against the
 * session's bundle and by the one name.
 */

#include <string.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "hostname.h"
#include "log.h"
#include "tlsengine.h"

#define SESSIONS	256	/* places whose TLS session is kept */

static SSL_CTX		*client_ctx;

/* Sessions to resume.  All were verified under the one trust we have. */
static struct {
	struct place	 place;
	SSL_SESSION	*session;
} sessions[SESSIONS];

/* TLS 1.3 hands out tickets after the handshake, whenever it likes. */
static int
keep_session(SSL *ssl, SSL_SESSION *session)
{
	struct upstream	*up = SSL_get_app_data(ssl);
	unsigned int	 i = place_bucket(&up->up_place) % SESSIONS;

	SSL_SESSION_free(sessions[i].session);
	sessions[i].session = session;
	sessions[i].place = up->up_place;
	return 1;
}

static int
load_trust(X509_STORE *store, const void *pem, size_t len)
{
	BIO	*bio;
	X509	*x;
	int	 n = 0;

	if ((bio = BIO_new_mem_buf(pem, len)) == NULL)
		return 0;
	while ((x = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		n += X509_STORE_add_cert(store, x) == 1;
		X509_free(x);
	}
	ERR_clear_error();
	BIO_free(bio);
	return n;
}

static SSL_CTX *
make_client_ctx(void)
{
	static const unsigned char	 alpn[] = "\x08http/1.1";
	const struct secret		*pem = trust_bundle();
	SSL_CTX				*ctx;

	if ((ctx = SSL_CTX_new(TLS_client_method())) == NULL)
		return NULL;
	if (load_trust(SSL_CTX_get_cert_store(ctx), pem->sc_data,
	    pem->sc_len) == 0) {
		log_warnx("upstream trust: no certificate can be read");
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx),
	    X509_V_FLAG_PARTIAL_CHAIN);
	SSL_CTX_set_alpn_protos(ctx, alpn, sizeof(alpn) - 1);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT |
	    SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, keep_session);
	return ctx;
}

/*
 * Origins are verified against a bundle of a hundred roots and more, which
 * takes longer to read than all else at a start: it is read with the first
 * request that needs it.
 */
static SSL_CTX *
up_ctx(void)
{
	if (client_ctx == NULL)
		client_ctx = make_client_ctx();
	return client_ctx;
}

/* Another bundle: what was verified under the old one counts no more. */
void
upstream_trust_changed(void)
{
	unsigned int	 i;

	SSL_CTX_free(client_ctx);
	client_ctx = NULL;
	for (i = 0; i < SESSIONS; i++) {
		SSL_SESSION_free(sessions[i].session);
		sessions[i].session = NULL;
	}
}

int
upstream_secure(struct upstream *up)
{
	char		*host = up->up_place.pc_host;
	unsigned int	 i = place_bucket(&up->up_place) % SESSIONS;
	SSL		*ssl;

	if (up_ctx() == NULL || (ssl = SSL_new(client_ctx)) == NULL)
		return -1;
	SSL_set_app_data(ssl, up);
	SSL_set_connect_state(ssl);
	if (hostname_is_addr(host)) {
		if (!X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host))
			goto fail;
	} else {
		SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
		if (!SSL_set1_host(ssl, host) ||
		    !SSL_set_tlsext_host_name(ssl, host))
			goto fail;
	}
	if (sessions[i].session != NULL &&
	    place_same(&sessions[i].place, &up->up_place))
		SSL_set_session(ssl, sessions[i].session);
	up->up_state = UP_HANDSHAKE;
	ERR_clear_error();
	return io_secure(&up->up_io, ssl, NULL, 0);
fail:
	SSL_free(ssl);
	return -1;
}
