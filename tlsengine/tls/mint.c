/* SPDX-License-Identifier: ISC */

/*
 * The certificate authority of one session; see mint.h.  Runs in the engine,
 * the only process that ever holds these keys.  It trusts the parent, which
 * names the session and may hand over a CA; host names come from the agent.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "cert.h"
#include "hostname.h"
#include "leafcache.h"
#include "mint.h"
#include "role.h"

/*
 * A CA made here dies with its engine and is loaded by clients once: an end of
 * its own would protect nobody and cut off a session that lives longer.  Both
 * dates leave room for a clock that is set right while the session runs.
 *
 * Leaves are minted anew long before they end, and the slack on both sides is
 * for clients on machines whose clocks are wrong.
 */
#define DAY_S			(24L * 60 * 60)
#define MINT_CA_BEFORE_S	(365 * DAY_S)
#define MINT_CA_AFTER_S		(3650 * DAY_S)
#define MINT_LEAF_BEFORE_S	DAY_S
#define MINT_LEAF_AFTER_S	(7 * DAY_S)
#define MINT_LEAF_RENEW_S	DAY_S
#define MINT_PEM_MAX		(256 * 1024)
#define MINT_CHAIN_MAX		8
#define MINT_SECURITY_BITS	112

/*
 * This hop seldom leaves the machine: the cheapest good cipher comes first,
 * whatever the client prefers.
 */
#define MINT_CIPHERS_TLS12	"ECDHE-ECDSA-AES128-GCM-SHA256:"	\
				"ECDHE-ECDSA-AES256-GCM-SHA384:"	\
				"ECDHE-ECDSA-CHACHA20-POLY1305"
#define MINT_CIPHERS_TLS13	"TLS_AES_128_GCM_SHA256:"		\
				"TLS_AES_256_GCM_SHA384:"		\
				"TLS_CHACHA20_POLY1305_SHA256"
#define MINT_GROUPS		"X25519:P-256:P-384"

struct mint {
	struct cert_issuer	 mt_issuer;
	/* The chain that came with the operator's CA, nearest first. */
	STACK_OF(X509)		*mt_chain;
	time_t			 mt_not_before;
	time_t			 mt_not_after;
	char			*mt_pem;
	size_t			 mt_pemlen;
	unsigned char		*mt_der;
	size_t			 mt_derlen;
	char			 mt_fingerprint[FINGERPRINT_LEN + 1];
	struct leafcache	 mt_leaves;
	uint64_t		 mt_hits;
	uint64_t		 mt_misses;
};

static int
is_self_issued(X509 *cert)
{
	return X509_NAME_cmp(X509_get_subject_name(cert),
	    X509_get_issuer_name(cert)) == 0;
}

/* ---- the certificate that clients are to trust -------------------------- */

static X509 *
anchor(const struct mint *mt)
{
	int	 n = sk_X509_num(mt->mt_chain);

	return n > 0 ? sk_X509_value(mt->mt_chain, n - 1) :
	    mt->mt_issuer.ci_cert;
}

static int
set_pem(struct mint *mt, X509 *cert)
{
	BIO	*bio;
	char	*data;
	long	 len;

	if ((bio = BIO_new(BIO_s_mem())) == NULL)
		return -1;
	if (PEM_write_bio_X509(bio, cert) &&
	    (len = BIO_get_mem_data(bio, &data)) > 0 &&
	    (mt->mt_pem = strndup(data, (size_t)len)) != NULL)
		mt->mt_pemlen = (size_t)len;
	BIO_free(bio);
	return mt->mt_pem == NULL ? -1 : 0;
}

static int
set_der(struct mint *mt, X509 *cert)
{
	int	 len = i2d_X509(cert, &mt->mt_der);

	if (len <= 0)
		return -1;
	mt->mt_derlen = (size_t)len;
	return 0;
}

static int
set_fingerprint(struct mint *mt, X509 *cert)
{
	unsigned char	 hash[EVP_MAX_MD_SIZE];
	unsigned int	 i, len;

	if (!X509_digest(cert, EVP_sha256(), hash, &len))
		return -1;
	for (i = 0; i < len; i++)
		snprintf(mt->mt_fingerprint + 2 * i, 3, "%02x", hash[i]);
	return 0;
}

/* Derive everything else from the CA, its key and its chain. */
static int
mint_ready(struct mint *mt)
{
	X509	*cert = anchor(mt);

	leafcache_init(&mt->mt_leaves, MINT_LEAVES_MAX);
	if (cert_issuer_ready(&mt->mt_issuer) == -1 ||
	    set_pem(mt, cert) == -1 || set_der(mt, cert) == -1 ||
	    set_fingerprint(mt, cert) == -1)
		return -1;
	return 0;
}

struct mint *
mint_new(const char *session_id, const char **why)
{
	struct mint		*mt;
	struct cert_issuer	*ci;
	time_t			 now = time(NULL);

	*why = "the CA could not be made";
	if ((mt = calloc(1, sizeof(*mt))) == NULL)
		return NULL;
	mt->mt_not_before = now - MINT_CA_BEFORE_S;
	mt->mt_not_after = now + MINT_CA_AFTER_S;
	ci = &mt->mt_issuer;
	if ((ci->ci_key = cert_key()) != NULL &&
	    (ci->ci_cert = cert_ca(ci->ci_key, session_id, mt->mt_not_before,
	    mt->mt_not_after)) != NULL && mint_ready(mt) == 0) {
		*why = NULL;
		return mt;
	}
	mint_free(mt);
	return NULL;
}

void
mint_free(struct mint *mt)
{
	if (mt == NULL)
		return;
	leafcache_clear(&mt->mt_leaves);
	cert_issuer_clear(&mt->mt_issuer);
	sk_X509_pop_free(mt->mt_chain, X509_free);
	OPENSSL_free(mt->mt_der);
	free(mt->mt_pem);
	freezero(mt, sizeof(*mt));
	ERR_clear_error();
}

/* ---- a CA of the operator's --------------------------------------------- */

/* OpenSSL's default would ask at the terminal. */
static int
no_passphrase(char *buf, int size, int writing, void *arg)
{
	(void)buf;
	(void)size;
	(void)writing;
	(void)arg;
	return -1;
}

static BIO *
pem_open(const void *pem, size_t len)
{
	return len <= MINT_PEM_MAX ? BIO_new_mem_buf(pem, (int)len) : NULL;
}

static EVP_PKEY *
read_key(const void *pem, size_t len)
{
	BIO		*bio;
	EVP_PKEY	*key;

	if ((bio = pem_open(pem, len)) == NULL)
		return NULL;
	key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
	BIO_free(bio);
	return key;
}

/* Up to the end of the text; a broken certificate among them is an error. */
static STACK_OF(X509) *
read_certs(const void *pem, size_t len)
{
	STACK_OF(X509)	*certs = NULL;
	X509		*cert;
	BIO		*bio;

	if ((bio = pem_open(pem, len)) == NULL ||
	    (certs = sk_X509_new_null()) == NULL)
		goto fail;
	ERR_clear_error();
	while ((cert = PEM_read_bio_X509(bio, NULL, no_passphrase,
	    NULL)) != NULL)
		if (sk_X509_num(certs) > MINT_CHAIN_MAX ||
		    sk_X509_push(certs, cert) <= 0) {
			X509_free(cert);
			goto fail;
		}
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE ||
	    sk_X509_num(certs) == 0)
		goto fail;
	BIO_free(bio);
	return certs;
 fail:
	sk_X509_pop_free(certs, X509_free);
	BIO_free(bio);
	return NULL;
}

static int
get_time(const ASN1_TIME *at, time_t *t)
{
	struct tm	 tm;

	memset(&tm, 0, sizeof(tm));
	if (!ASN1_TIME_to_tm(at, &tm))
		return -1;
	return (*t = timegm(&tm)) == -1 ? -1 : 0;
}

/* A client refuses a chain as soon as it refuses one certificate of it. */
static int
chain_dates(struct mint *mt)
{
	X509	*cert = mt->mt_issuer.ci_cert;
	time_t	 from, to;
	int	 i = 0;

	for (; cert != NULL; cert = sk_X509_value(mt->mt_chain, i++)) {
		if (get_time(X509_get0_notBefore(cert), &from) == -1 ||
		    get_time(X509_get0_notAfter(cert), &to) == -1)
			return -1;
		if (i == 0 || from > mt->mt_not_before)
			mt->mt_not_before = from;
		if (i == 0 || to < mt->mt_not_after)
			mt->mt_not_after = to;
	}
	return 0;
}

static const char *
dates_fault(struct mint *mt)
{
	if (chain_dates(mt) == -1)
		return "CA certificate has an unreadable date";
	if (mt->mt_not_before > time(NULL))
		return "CA certificate is not valid yet";
	return mint_expired(mt) ? "CA certificate has expired" : NULL;
}

static const char *
ca_fault(struct mint *mt)
{
	EVP_PKEY	*key = mt->mt_issuer.ci_key;
	X509		*ca = mt->mt_issuer.ci_cert, *cert = ca, *next;
	int		 i, type = EVP_PKEY_base_id(key);

	if (type != EVP_PKEY_RSA && type != EVP_PKEY_EC)
		return "CA key is neither RSA nor EC";
	if (EVP_PKEY_security_bits(key) < MINT_SECURITY_BITS)
		return "CA key is weaker than RSA with 2048 bits";
	if (!X509_check_private_key(ca, key))
		return "CA key does not belong to the CA certificate";
	/* Values above 1 stand for CAs that predate X.509v3. */
	if (X509_check_purpose(ca, X509_PURPOSE_SSL_SERVER, 1) != 1)
		return "certificate is not that of a CA for servers";
	for (i = 0; i < sk_X509_num(mt->mt_chain); i++, cert = next) {
		next = sk_X509_value(mt->mt_chain, i);
		if (X509_check_issued(next, cert) != X509_V_OK)
			return "CA certificate's chain is not in order";
	}
	return NULL;
}

static const char *
load(struct mint *mt, const void *cert, size_t certlen, const void *key,
    size_t keylen)
{
	struct cert_issuer	*ci = &mt->mt_issuer;
	const char		*fault;

	if ((mt->mt_chain = read_certs(cert, certlen)) == NULL)
		return "CA certificate is not valid PEM";
	ci->ci_cert = sk_X509_shift(mt->mt_chain);
	if ((ci->ci_key = read_key(key, keylen)) == NULL)
		return "CA key is not valid PEM without a passphrase";
	if ((fault = ca_fault(mt)) != NULL ||
	    (fault = dates_fault(mt)) != NULL)
		return fault;
	return mint_ready(mt) == -1 ? "the CA could not be used" : NULL;
}

struct mint *
mint_load(const void *cert, size_t certlen, const void *key, size_t keylen,
    const char **why)
{
	struct mint	*mt;

	if ((mt = calloc(1, sizeof(*mt))) == NULL) {
		*why = "out of memory";
		return NULL;
	}
	if ((*why = load(mt, cert, certlen, key, keylen)) == NULL) {
		ERR_clear_error();
		return mt;
	}
	mint_free(mt);
	return NULL;
}

/* ---- leaves ------------------------------------------------------------- */

static X509 *
new_cert(struct mint *mt, const char *name, time_t now)
{
	time_t	 from = now - MINT_LEAF_BEFORE_S, to = now + MINT_LEAF_AFTER_S;

	if (from < mt->mt_not_before)
		from = mt->mt_not_before;
	if (to > mt->mt_not_after)
		to = mt->mt_not_after;
	return cert_leaf(&mt->mt_issuer, name, from, to);
}

static struct leaf *
new_leaf(struct mint *mt, const char *name, time_t now)
{
	unsigned char	 hash[EVP_MAX_MD_SIZE];
	struct leaf	*leaf = NULL;
	X509		*cert;

	/* One spelling per name, or a host would have two leaves. */
	if (!hostname_is_canon(name))
		return NULL;
	if ((cert = new_cert(mt, name, now)) != NULL &&
	    EVP_Digest(name, strlen(name), hash, NULL, EVP_sha256(), NULL))
		leaf = leafcache_add(&mt->mt_leaves, name, cert);
	if (leaf == NULL) {
		X509_free(cert);
		ERR_clear_error();
		return NULL;
	}
	leaf->lf_made = now;
	memcpy(leaf->lf_context, hash, sizeof(leaf->lf_context));
	return leaf;
}

/* Fresh; not if the clock was set back since the leaf was made. */
static int
leaf_fresh(const struct leaf *leaf, time_t now)
{
	return now >= leaf->lf_made && now - leaf->lf_made < MINT_LEAF_RENEW_S;
}

static struct leaf *
get_leaf(struct mint *mt, const char *name)
{
	struct leaf	*leaf;
	time_t		 now = time(NULL);

	if (mint_expired(mt))
		return NULL;
	if ((leaf = leafcache_find(&mt->mt_leaves, name)) != NULL) {
		if (leaf_fresh(leaf, now)) {
			mt->mt_hits++;
			return leaf;
		}
		leafcache_remove(&mt->mt_leaves, leaf);
	}
	mt->mt_misses++;
	return new_leaf(mt, name, now);
}

int
mint_leaf(struct mint *mt, const char *name, X509 **cert)
{
	struct leaf	*leaf;

	*cert = NULL;
	if ((leaf = get_leaf(mt, name)) == NULL || !X509_up_ref(leaf->lf_cert))
		return -1;
	*cert = leaf->lf_cert;
	return 0;
}

/* ---- the server --------------------------------------------------------- */

/*
 * A CA that is its own issuer is in the client's store, so sending it would be
 * waste.  One below another has to be sent, with all but the top.
 */
static int
add_chain(struct mint *mt, SSL_CTX *ctx)
{
	X509	*cert = mt->mt_issuer.ci_cert;
	int	 i = 0;

	for (; cert != NULL && !is_self_issued(cert); i++) {
		if (!X509_up_ref(cert))
			return -1;
		if (!SSL_CTX_add_extra_chain_cert(ctx, cert)) {
			X509_free(cert);
			return -1;
		}
		cert = sk_X509_value(mt->mt_chain, i);
	}
	return 0;
}

static int
set_protocol(SSL_CTX *ctx)
{
	return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) &&
	    SSL_CTX_set_cipher_list(ctx, MINT_CIPHERS_TLS12) &&
	    SSL_CTX_set_ciphersuites(ctx, MINT_CIPHERS_TLS13) &&
	    SSL_CTX_set1_groups_list(ctx, MINT_GROUPS);
}

SSL_CTX *
mint_server_ctx(struct mint *mt)
{
	static const unsigned char	 context[] = "egressd";
	SSL_CTX				*ctx;

	if ((ctx = SSL_CTX_new(TLS_server_method())) == NULL)
		goto fail;
	SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE |
	    SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
	/* Otherwise the library builds the chain at each handshake. */
	SSL_CTX_set_mode(ctx, SSL_MODE_NO_AUTO_CHAIN |
	    SSL_MODE_RELEASE_BUFFERS);
	/*
	 * Sessions are kept by the clients, as tickets; nothing grows here.
	 * One ticket each, not OpenSSL's two: it costs a tenth of a handshake.
	 */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
#ifndef LIBRESSL_VERSION_NUMBER
	SSL_CTX_set_num_tickets(ctx, 1);
#endif
	if (set_protocol(ctx) && SSL_CTX_set_session_id_context(ctx, context,
	    sizeof(context) - 1) && add_chain(mt, ctx) == 0 &&
	    SSL_CTX_use_PrivateKey(ctx, mt->mt_issuer.ci_leafkey))
		return ctx;
 fail:
	SSL_CTX_free(ctx);
	ERR_clear_error();
	return NULL;
}

/*
 * A ticket carries the context it was made in, and both libraries compare that
 * before they resume.  The SNI they do not compare: with one context for all,
 * OpenSSL resumes under any name, in TLS 1.2 and in 1.3.
 */
int
mint_use(struct mint *mt, SSL *ssl, const char *name)
{
	struct leaf	*leaf;

	if ((leaf = get_leaf(mt, name)) == NULL)
		return -1;
	if (SSL_use_certificate(ssl, leaf->lf_cert) == 1 &&
	    SSL_set_session_id_context(ssl, leaf->lf_context,
	    sizeof(leaf->lf_context)) == 1)
		return 0;
	ERR_clear_error();
	return -1;
}

/* ---- what others may know ----------------------------------------------- */

const char *
mint_ca_pem(const struct mint *mt, size_t *len)
{
	*len = mt->mt_pemlen;
	return mt->mt_pem;
}

const unsigned char *
mint_ca_der(const struct mint *mt, size_t *len)
{
	*len = mt->mt_derlen;
	return mt->mt_der;
}

const char *
mint_ca_fingerprint(const struct mint *mt)
{
	return mt->mt_fingerprint;
}

time_t
mint_not_after(const struct mint *mt)
{
	return mt->mt_not_after;
}

int
mint_expired(const struct mint *mt)
{
	return time(NULL) >= mt->mt_not_after;
}

void
mint_stats(const struct mint *mt, struct mint_stats *ms)
{
	ms->ms_hits = mt->mt_hits;
	ms->ms_misses = mt->mt_misses;
	ms->ms_evictions = mt->mt_leaves.lc_evictions;
	ms->ms_leaves = mt->mt_leaves.lc_n;
}
