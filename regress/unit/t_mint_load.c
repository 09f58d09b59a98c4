/* SPDX-License-Identifier: ISC */

/* Tests of tlsengine/tls/mint.c: a CA of the operator's. */

#include "test.h"

#include <time.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include "tlsengine/tls/cert.h"
#include "tlsengine/tls/mint.h"

#define HOUR	3600L
#define DAY	(24 * HOUR)

struct text {
	char	 data[16384];
	size_t	 len;
};

static void
take(BIO *bio, struct text *out)
{
	char	*data;
	long	 len = BIO_get_mem_data(bio, &data);

	CHECK(len > 0 && out->len + (size_t)len < sizeof(out->data));
	memcpy(out->data + out->len, data, (size_t)len);
	out->len += (size_t)len;
	BIO_free(bio);
}

static void
add_cert(struct text *out, X509 *cert)
{
	BIO	*bio = BIO_new(BIO_s_mem());

	CHECK(PEM_write_bio_X509(bio, cert));
	take(bio, out);
}

static void
add_key(struct text *out, EVP_PKEY *key, char *passphrase)
{
	BIO	*bio = BIO_new(BIO_s_mem());

	CHECK(PEM_write_bio_PKCS8PrivateKey(bio, key,
	    passphrase == NULL ? NULL : EVP_aes_128_cbc(), passphrase,
	    passphrase == NULL ? 0 : (int)strlen(passphrase), NULL, NULL));
	take(bio, out);
}

static EVP_PKEY *
rsa_key(int bits)
{
	EVP_PKEY_CTX	*ctx = EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, NULL);
	EVP_PKEY	*key = NULL;

	CHECK(EVP_PKEY_keygen_init(ctx) == 1 &&
	    EVP_PKEY_CTX_set_rsa_keygen_bits(ctx, bits) == 1 &&
	    EVP_PKEY_keygen(ctx, &key) == 1);
	EVP_PKEY_CTX_free(ctx);
	return key;
}

static void
replace_basic(X509 *cert, const char *value)
{
	X509_EXTENSION	*ext;
	int		 at;

	if ((at = X509_get_ext_by_NID(cert, NID_basic_constraints, -1)) >= 0)
		X509_EXTENSION_free(X509_delete_ext(cert, at));
	ext = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, value);
	CHECK(ext != NULL && X509_add_ext(cert, ext, at));
	X509_EXTENSION_free(ext);
}

static X509 *
ca_below(X509 *root, EVP_PKEY *rootkey, EVP_PKEY *key)
{
	time_t	 now = time(NULL);
	X509	*ca = cert_ca(key, "below", now - HOUR, now + HOUR);

	CHECK(X509_set_issuer_name(ca, X509_get_subject_name(root)) &&
	    X509_sign(ca, rootkey, EVP_sha256()));
	return ca;
}

static X509 *
root_of(EVP_PKEY *key)
{
	time_t	 now = time(NULL);
	X509	*root = cert_ca(key, "root", now - HOUR, now + 2 * HOUR);

	replace_basic(root, "critical,CA:TRUE");
	CHECK(X509_sign(root, key, EVP_sha256()));
	return root;
}

static struct mint *
load_pair(const struct text *cert, const struct text *key, const char **why)
{
	struct mint	*mt;

	*why = "unset";
	mt = mint_load(cert->data, cert->len, key->data, key->len, why);
	CHECK((mt == NULL) == (*why != NULL));
	return mt;
}

/* The reason why a pair is refused, or NULL if it is not. */
static const char *
fault(X509 *ca, EVP_PKEY *key)
{
	struct text	 cert = { "", 0 }, secret = { "", 0 };
	const char	*why;

	add_cert(&cert, ca);
	add_key(&secret, key, NULL);
	mint_free(load_pair(&cert, &secret, &why));
	return why;
}

static void
check_serves(struct mint *mt, X509 *root, STACK_OF(X509) *between)
{
	X509_STORE	*store = X509_STORE_new();
	X509_STORE_CTX	*ctx = X509_STORE_CTX_new();
	X509		*leaf;

	CHECK(mint_leaf(mt, "a.test", &leaf) == 0);
	X509_STORE_add_cert(store, root);
	X509_STORE_CTX_init(ctx, store, leaf, between);
	X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
	CHECK(X509_verify_cert(ctx) == 1);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	X509_free(leaf);
}

TEST(ec)
{
	EVP_PKEY	*key = cert_key();
	X509		*ca = root_of(key);
	struct text	 cert = { "", 0 }, secret = { "", 0 };
	struct mint	*mt;
	const char	*why;

	add_cert(&cert, ca);
	add_key(&secret, key, NULL);
	mt = load_pair(&cert, &secret, &why);
	CHECK_STR(why, NULL);
	check_serves(mt, ca, NULL);
	CHECK(mint_not_after(mt) <= time(NULL) + 2 * HOUR);
	mint_free(mt);
	X509_free(ca);
	EVP_PKEY_free(key);
}

TEST(rsa)
{
	EVP_PKEY	*key = rsa_key(2048);
	X509		*ca = root_of(key);
	struct text	 cert = { "", 0 }, secret = { "", 0 };
	struct mint	*mt;
	const char	*why;

	add_cert(&cert, ca);
	add_key(&secret, key, NULL);
	mt = load_pair(&cert, &secret, &why);
	CHECK_STR(why, NULL);
	check_serves(mt, ca, NULL);
	mint_free(mt);
	X509_free(ca);
	EVP_PKEY_free(key);
}

TEST(chain)
{
	EVP_PKEY	*rootkey = cert_key(), *key = cert_key();
	X509		*root = root_of(rootkey);
	X509		*ca = ca_below(root, rootkey, key);
	STACK_OF(X509)	*between = sk_X509_new_null(), *sent = NULL;
	SSL_CTX		*ctx;
	struct text	 cert = { "", 0 }, secret = { "", 0 }, anchor;
	struct mint	*mt;
	const char	*why, *pem;
	size_t		 len;

	add_cert(&cert, ca);
	add_cert(&cert, root);
	add_key(&secret, key, NULL);
	mt = load_pair(&cert, &secret, &why);
	CHECK_STR(why, NULL);
	sk_X509_push(between, ca);
	check_serves(mt, root, between);
	pem = mint_ca_pem(mt, &len);
	memset(&anchor, 0, sizeof(anchor));
	add_cert(&anchor, root);
	CHECK_MEM(pem, len, anchor.data, anchor.len);
	/* Sent with each leaf: all but the root. */
	CHECK((ctx = mint_server_ctx(mt)) != NULL);
	SSL_CTX_get_extra_chain_certs(ctx, &sent);
	CHECK_INT(sk_X509_num(sent), 1);
	CHECK_INT(X509_cmp(sk_X509_value(sent, 0), ca), 0);
	SSL_CTX_free(ctx);
	mint_free(mt);
	sk_X509_free(between);
	X509_free(ca);
	X509_free(root);
	EVP_PKEY_free(key);
	EVP_PKEY_free(rootkey);
}

TEST(chain_out_of_order)
{
	EVP_PKEY	*rootkey = cert_key(), *key = cert_key();
	X509		*root = root_of(rootkey), *other = root_of(key);
	X509		*ca = ca_below(root, rootkey, key);
	struct text	 cert = { "", 0 }, secret = { "", 0 };
	const char	*why;

	add_cert(&cert, other);
	add_cert(&cert, ca);
	add_key(&secret, key, NULL);
	CHECK(load_pair(&cert, &secret, &why) == NULL);
	CHECK_STR(why, "CA certificate's chain is not in order");
	X509_free(ca);
	X509_free(other);
	X509_free(root);
	EVP_PKEY_free(key);
	EVP_PKEY_free(rootkey);
}

TEST(wrong_key)
{
	EVP_PKEY	*key = cert_key(), *other = cert_key();
	X509		*ca = root_of(key);

	CHECK_STR(fault(ca, key), NULL);
	CHECK_STR(fault(ca, other),
	    "CA key does not belong to the CA certificate");
	X509_free(ca);
	EVP_PKEY_free(key);
	EVP_PKEY_free(other);
}

TEST(weak_key)
{
	EVP_PKEY	*key = rsa_key(1024);
	X509		*ca = root_of(key);

	CHECK_STR(fault(ca, key), "CA key is weaker than RSA with 2048 bits");
	X509_free(ca);
	EVP_PKEY_free(key);
}

TEST(not_a_ca)
{
	struct cert_issuer	 ci;
	EVP_PKEY		*key;
	X509			*ca, *leaf;
	time_t			 now = time(NULL);

	memset(&ci, 0, sizeof(ci));
	ci.ci_key = cert_key();
	ci.ci_cert = root_of(ci.ci_key);
	CHECK(cert_issuer_ready(&ci) == 0);
	leaf = cert_leaf(&ci, "a.test", now - HOUR, now + HOUR);
	CHECK_STR(fault(leaf, ci.ci_leafkey),
	    "certificate is not that of a CA for servers");
	X509_free(leaf);
	key = cert_key();
	ca = root_of(key);
	replace_basic(ca, "CA:FALSE");
	CHECK(X509_sign(ca, key, EVP_sha256()));
	CHECK_STR(fault(ca, key),
	    "certificate is not that of a CA for servers");
	X509_free(ca);
	EVP_PKEY_free(key);
	cert_issuer_clear(&ci);
}

TEST(dates)
{
	EVP_PKEY	*key = cert_key();
	time_t		 now = time(NULL);
	X509		*ca;

	ca = cert_ca(key, "past", now - 2 * HOUR, now - HOUR);
	CHECK_STR(fault(ca, key), "CA certificate has expired");
	X509_free(ca);
	ca = cert_ca(key, "future", now + HOUR, now + 2 * HOUR);
	CHECK_STR(fault(ca, key), "CA certificate is not valid yet");
	X509_free(ca);
	EVP_PKEY_free(key);
}

/* The first of a chain to end ends it, and no leaf goes on without. */
TEST(dates_of_a_chain)
{
	EVP_PKEY	*rootkey = cert_key(), *key = cert_key();
	time_t		 now = time(NULL), end;
	X509		*root = cert_ca(rootkey, "root", now - HOUR, now + DAY);
	X509		*ca, *leaf;
	struct text	 cert = { "", 0 }, secret = { "", 0 };
	struct mint	*mt;
	const char	*why;
	struct tm	 tm;

	ca = cert_ca(key, "below", now - 2 * HOUR, now + 100 * DAY);
	CHECK(X509_set_issuer_name(ca, X509_get_subject_name(root)) &&
	    X509_sign(ca, rootkey, EVP_sha256()));
	add_cert(&cert, ca);
	add_cert(&cert, root);
	add_key(&secret, key, NULL);
	CHECK((mt = load_pair(&cert, &secret, &why)) != NULL);
	CHECK_INT(mint_not_after(mt), now + DAY);
	CHECK_INT(mint_leaf(mt, "a.test", &leaf), 0);
	CHECK(ASN1_TIME_to_tm(X509_get0_notAfter(leaf), &tm));
	end = timegm(&tm);
	CHECK_INT(end, now + DAY);
	CHECK(ASN1_TIME_to_tm(X509_get0_notBefore(leaf), &tm));
	CHECK_INT(timegm(&tm), now - HOUR);
	X509_free(leaf);
	mint_free(mt);
	X509_free(ca);
	X509_free(root);
	EVP_PKEY_free(key);
	EVP_PKEY_free(rootkey);
}

/* It must not ask for a passphrase at the terminal either. */
TEST(encrypted_key)
{
	EVP_PKEY	*key = cert_key();
	X509		*ca = root_of(key);
	struct text	 cert = { "", 0 }, secret = { "", 0 };
	const char	*why;

	add_cert(&cert, ca);
	add_key(&secret, key, "open sesame");
	CHECK(load_pair(&cert, &secret, &why) == NULL);
	CHECK_STR(why, "CA key is not valid PEM without a passphrase");
	X509_free(ca);
	EVP_PKEY_free(key);
}

TEST(broken_pem)
{
	EVP_PKEY	*key = cert_key();
	X509		*ca = root_of(key);
	struct text	 cert = { "", 0 }, secret = { "", 0 }, bad;
	const char	*why, *want = "CA certificate is not valid PEM";

	add_cert(&cert, ca);
	add_key(&secret, key, NULL);
	memset(&bad, 0, sizeof(bad));
	CHECK(load_pair(&bad, &secret, &why) == NULL);
	CHECK_STR(why, want);
	CHECK(load_pair(&secret, &secret, &why) == NULL);
	CHECK_STR(why, want);
	CHECK(load_pair(&cert, &cert, &why) == NULL);
	CHECK_STR(why, "CA key is not valid PEM without a passphrase");
	bad = cert;
	bad.data[bad.len / 2] = '!';
	CHECK(load_pair(&bad, &secret, &why) == NULL);
	CHECK_STR(why, want);
	/* The second of two. */
	add_cert(&cert, ca);
	cert.data[cert.len - cert.len / 4] = '!';
	CHECK(load_pair(&cert, &secret, &why) == NULL);
	CHECK_STR(why, want);
	X509_free(ca);
	EVP_PKEY_free(key);
}

TEST_MAIN("mint_load")
