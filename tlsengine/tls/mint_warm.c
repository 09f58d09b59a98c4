/* SPDX-License-Identifier: ISC */

/*
 * Rehearsal of the engine before it is confined; see mint_warm() in mint.h.
 *
 * The libraries open things at first use: the time zone when a date is
 * written, the random device where there is no getrandom(2), openssl.cnf if
 * they may.  To know the list is to know one version of them, so instead
 * everything that will be done later is done once now, and has to succeed.
 */


#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "mint.h"

#define WARM_NAME	"warm.invalid"
#define WARM_ROUNDS	8

/* The engine as the client of an origin that the mint's CA vouches for. */
static SSL_CTX *
client_ctx(struct mint *mt)
{
	SSL_CTX			*ctx;
	X509			*ca;
	const unsigned char	*der;
	size_t			 len;
	int			 ok;

	der = mint_ca_der(mt, &len);
	if ((ctx = SSL_CTX_new(TLS_client_method())) == NULL)
		return NULL;
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	ca = d2i_X509(NULL, &der, (long)len);
	ok = ca != NULL &&
	    X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca);
	X509_free(ca);
	if (ok)
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

static int
connect_pair(SSL *server, SSL *client)
{
	BIO	*a, *b;

	if (!BIO_new_bio_pair(&a, 0, &b, 0))
		return -1;
	SSL_set_bio(server, a, a);
	SSL_set_bio(client, b, b);
	SSL_set_accept_state(server);
	SSL_set_connect_state(client);
	return 0;
}

static int
shake_hands(SSL *server, SSL *client)
{
	int	 i, c = 0, s = 0;

	for (i = 0; i < WARM_ROUNDS && (c != 1 || s != 1); i++) {
		c = SSL_do_handshake(client);
		s = SSL_do_handshake(server);
	}
	return c == 1 && s == 1 ? 0 : -1;
}

static int
rehearse(struct mint *mt, SSL_CTX *sctx, SSL_CTX *cctx, int version)
{
	SSL	*server, *client;
	int	 error = -1;

	server = SSL_new(sctx);
	client = SSL_new(cctx);
	if (server != NULL && client != NULL &&
	    SSL_set_max_proto_version(client, version) &&
	    SSL_set1_host(client, WARM_NAME) &&
	    mint_use(mt, server, WARM_NAME) == 0 &&
	    connect_pair(server, client) == 0)
		error = shake_hands(server, client);
	SSL_free(server);
	SSL_free(client);
	return error;
}

int
mint_warm(void)
{
	struct mint	*mt;
	SSL_CTX		*sctx = NULL, *cctx = NULL;
	const char	*why;
	int		 error = -1;

	/* No openssl.cnf: nobody named it, and it changes what we accept. */
	if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL))
		return -1;
	if ((mt = mint_new("warm", &why)) != NULL &&
	    (sctx = mint_server_ctx(mt)) != NULL &&
	    (cctx = client_ctx(mt)) != NULL &&
	    rehearse(mt, sctx, cctx, TLS1_2_VERSION) == 0 &&
	    rehearse(mt, sctx, cctx, TLS1_3_VERSION) == 0)
		error = 0;
	SSL_CTX_free(sctx);
	SSL_CTX_free(cctx);
	mint_free(mt);
	ERR_clear_error();
	return error;
}
