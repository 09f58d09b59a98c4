/* SPDX-License-Identifier: ISC */

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
#include "upstream.h"

#define KNOWN	256	/* places of which something is known */

static SSL_CTX			*client_ctx;
static const unsigned char	 alpn[] = "\x02h2\x08http/1.1";
static const unsigned char	 alpn_h1[] = "\x08http/1.1";

/*
 * A session to resume, verified under the one trust we have, and whether the
 * last connection chose HTTP/2.
 */
static struct known {
	struct place	 kn_place;
	SSL_SESSION	*kn_session;
	bool		 kn_h2;
} known[KNOWN];

static struct known *
known_of(const struct place *pc)
{
	struct known	*kn = &known[place_hash(pc) % KNOWN];

	return place_same(&kn->kn_place, pc) ? kn : NULL;
}

/* A newer place displaces an older. */
static struct known *
known_make(const struct place *pc)
{
	struct known	*kn = &known[place_hash(pc) % KNOWN];

	if (place_same(&kn->kn_place, pc))
		return kn;
	SSL_SESSION_free(kn->kn_session);
	memset(kn, 0, sizeof(*kn));
	kn->kn_place = *pc;
	return kn;
}

/* TLS 1.3 hands out tickets after the handshake, whenever it likes. */
static int
keep_session(SSL *ssl, SSL_SESSION *session)
{
	struct upstream	*up = SSL_get_app_data(ssl);
	struct known	*kn;

	/* The session was verified under an older bundle. */
	if (SSL_get_SSL_CTX(ssl) != client_ctx)
		return 0;
	kn = known_make(&up->up_place);
	SSL_SESSION_free(kn->kn_session);
	kn->kn_session = session;
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
	const struct secret	*pem = trust_bundle();
	SSL_CTX			*ctx;

	if ((ctx = SSL_CTX_new(TLS_client_method())) == NULL)
		return NULL;
	if (load_trust(SSL_CTX_get_cert_store(ctx), pem->sc_data,
	    pem->sc_len) == 0) {
		log_warnx("upstream trust: no certificate can be read");
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION |
	    SSL_OP_NO_RENEGOTIATION);
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
	for (i = 0; i < KNOWN; i++) {
		SSL_SESSION_free(known[i].kn_session);
		known[i].kn_session = NULL;
	}
}

int
upstream_secure(struct upstream *up)
{
	char			*host = up->up_place.pc_host;
	const struct known	*kn = known_of(&up->up_place);
	SSL			*ssl;

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
	if (up->up_h1_only &&
	    SSL_set_alpn_protos(ssl, alpn_h1, sizeof(alpn_h1) - 1) != 0)
		goto fail;
	if (kn != NULL && kn->kn_session != NULL)
		up->up_offered = SSL_set_session(ssl, kn->kn_session) == 1;
	up->up_state = UP_HANDSHAKE;
	ERR_clear_error();
	return io_secure(&up->up_io, ssl, NULL, 0);
fail:
	SSL_free(ssl);
	return -1;
}

/*
 * Whether a handshake that failed may succeed without the session that was
 * offered: LibreSSL insists on its version, and the origin may have another
 * by now; some origins fail on what they do not know.
 */
bool
upstream_forget_session(struct upstream *up)
{
	struct known	*kn = known_of(&up->up_place);

	if (kn != NULL && up->up_offered) {
		SSL_SESSION_free(kn->kn_session);
		kn->kn_session = NULL;
	}
	return up->up_offered;
}

/* True also if nothing is known of the place yet. */
bool
place_may_speak_h2(const struct place *pc)
{
	const struct known	*kn = known_of(pc);

	return pc->pc_scheme == URL_HTTPS && (kn == NULL || kn->kn_h2);
}

bool
place_speaks_h2(const struct place *pc)
{
	const struct known	*kn = known_of(pc);

	return kn != NULL && kn->kn_h2;
}

/* Whether TLS settled on HTTP/2; without TLS, whether the client did. */
bool
upstream_chose_h2(struct upstream *up)
{
	const unsigned char	*name;
	unsigned int		 len;
	bool			 h2;

	if (up->up_io.io_ssl == NULL || up->up_h1_only)
		return up->up_prior;
	SSL_get0_alpn_selected(up->up_io.io_ssl, &name, &len);
	h2 = len == 2 && memcmp(name, "h2", 2) == 0;
	known_make(&up->up_place)->kn_h2 = h2;
	return h2;
}
