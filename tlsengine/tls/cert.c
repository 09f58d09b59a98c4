/* SPDX-License-Identifier: ISC */

/*
 * Certificates of a session; see cert.h.  Runs in the engine, on the keys of
 * the mint.
 */

/*
 * EC_KEY is old in OpenSSL 3 and the way in LibreSSL.  With a key made
 * otherwise each leaf costs 400 us instead of 5 to fill in, as OpenSSL 3.0 then
 * encodes the key anew and decodes what it encoded.
 */
#define OPENSSL_API_COMPAT	0x10101000L

#include <stdio.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/x509v3.h>

#include "addr.h"
#include "cert.h"

#define CERT_V3			2
#define CERT_SERIAL_BITS	128
#define CERT_CN_MAX		64	/* RFC 5280, appendix A.1 */
#define CERT_ORGANISATION	"egressd"
#define CERT_CA_NAME		"egressd session "

EVP_PKEY *
cert_key(void)
{
	EC_KEY		*ec;
	EVP_PKEY	*key = NULL;

	if ((ec = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1)) == NULL)
		return NULL;
	EC_KEY_set_asn1_flag(ec, OPENSSL_EC_NAMED_CURVE);
	if (!EC_KEY_generate_key(ec) || (key = EVP_PKEY_new()) == NULL ||
	    !EVP_PKEY_set1_EC_KEY(key, ec)) {
		EVP_PKEY_free(key);
		key = NULL;
	}
	EC_KEY_free(ec);
	return key;
}

static int
set_serial(X509 *cert)
{
	BIGNUM	*bn;
	int	 ok;

	if ((bn = BN_new()) == NULL)
		return 0;
	ok = BN_rand(bn, CERT_SERIAL_BITS, -1, 0) &&
	    BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(cert)) != NULL;
	BN_free(bn);
	return ok;
}

static int
set_validity(X509 *cert, time_t from, time_t to)
{
	return ASN1_TIME_set(X509_getm_notBefore(cert), from) != NULL &&
	    ASN1_TIME_set(X509_getm_notAfter(cert), to) != NULL;
}

static int
add_name(X509 *cert, int nid, const char *text)
{
	/* The bytes are known to be ASCII, of which UTF-8 is a superset. */
	return X509_NAME_add_entry_by_NID(X509_get_subject_name(cert), nid,
	    V_ASN1_UTF8STRING, (const unsigned char *)text, -1, -1, 0);
}

static X509_EXTENSION *
ext_new(X509 *issuer, X509 *subject, int nid, const char *value)
{
	X509V3_CTX	 ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, subject, NULL, NULL, 0);
	return X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
}

static int
add_ext(X509 *cert, int nid, const char *value)
{
	X509_EXTENSION	*ext;
	int		 ok;

	if ((ext = ext_new(cert, cert, nid, value)) == NULL)
		return 0;
	ok = X509_add_ext(cert, ext, -1);
	X509_EXTENSION_free(ext);
	return ok;
}

/*
 * A session's id may be too long for a common name; the hash keeps two ids
 * with one beginning apart.
 */
static int
add_ca_name(X509 *cert, const char *id)
{
	char		 cn[CERT_CN_MAX + 1], hex[10 + 1];
	unsigned char	 hash[EVP_MAX_MD_SIZE];
	size_t		 i;

	if (strlen(CERT_CA_NAME) + strlen(id) <= CERT_CN_MAX)
		snprintf(cn, sizeof(cn), "%s%s", CERT_CA_NAME, id);
	else {
		if (!EVP_Digest(id, strlen(id), hash, NULL, EVP_sha256(), NULL))
			return 0;
		for (i = 0; i < sizeof(hex) / 2; i++)
			snprintf(hex + 2 * i, 3, "%02x", hash[i]);
		snprintf(cn, sizeof(cn), "%s%.*s-%s", CERT_CA_NAME,
		    (int)(CERT_CN_MAX - strlen(CERT_CA_NAME) - sizeof(hex)), id,
		    hex);
	}
	return add_name(cert, NID_organizationName, CERT_ORGANISATION) &&
	    add_name(cert, NID_commonName, cn);
}

X509 *
cert_ca(EVP_PKEY *key, const char *id, time_t from, time_t to)
{
	X509	*ca;

	if ((ca = X509_new()) == NULL)
		return NULL;
	if (X509_set_version(ca, CERT_V3) && set_serial(ca) &&
	    set_validity(ca, from, to) && add_ca_name(ca, id) &&
	    X509_set_issuer_name(ca, X509_get_subject_name(ca)) &&
	    X509_set_pubkey(ca, key) &&
	    add_ext(ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	    add_ext(ca, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	    add_ext(ca, NID_subject_key_identifier, "hash") &&
	    X509_sign(ca, key, EVP_sha256()))
		return ca;
	X509_free(ca);
	return NULL;
}

/*
 * The extensions that are the same for all leaves are made once.  The key
 * identifiers want a certificate with the leaves' key to look at.
 */
static int
make_exts(struct cert_issuer *ci, X509 *sample)
{
	static const struct {
		int		 nid;
		const char	*value;
	} common[] = {
		{ NID_basic_constraints,	"critical,CA:FALSE" },
		{ NID_key_usage,		"critical,digitalSignature" },
		{ NID_ext_key_usage,		"serverAuth" },
		{ NID_subject_key_identifier,	"hash" },
		{ NID_authority_key_identifier,	"keyid:always" },
	};
	size_t	 i, n = CERT_LEAF_EXTS;

	_Static_assert(sizeof(common) / sizeof(common[0]) == CERT_LEAF_EXTS,
	    "ci_exts has a place for each");
	/* The last one points to an identifier that a given CA may lack. */
	if (X509_get_ext_by_NID(ci->ci_cert, NID_subject_key_identifier,
	    -1) < 0)
		n--;
	for (i = 0; i < n; i++)
		if ((ci->ci_exts[i] = ext_new(ci->ci_cert, sample,
		    common[i].nid, common[i].value)) == NULL)
			return -1;
	return 0;
}

int
cert_issuer_ready(struct cert_issuer *ci)
{
	X509	*sample;
	int	 error = -1;

	if ((ci->ci_leafkey = cert_key()) == NULL ||
	    (sample = X509_new()) == NULL)
		return -1;
	if (X509_set_pubkey(sample, ci->ci_leafkey))
		error = make_exts(ci, sample);
	X509_free(sample);
	return error;
}

void
cert_issuer_clear(struct cert_issuer *ci)
{
	size_t	 i;

	EVP_PKEY_free(ci->ci_key);
	EVP_PKEY_free(ci->ci_leafkey);
	X509_free(ci->ci_cert);
	for (i = 0; i < CERT_LEAF_EXTS; i++)
		X509_EXTENSION_free(ci->ci_exts[i]);
	memset(ci, 0, sizeof(*ci));
}

static int
add_common_exts(X509 *leaf, struct cert_issuer *ci)
{
	size_t	 i;

	for (i = 0; i < CERT_LEAF_EXTS && ci->ci_exts[i] != NULL; i++)
		if (!X509_add_ext(leaf, ci->ci_exts[i], -1))
			return 0;
	return 1;
}

static GENERAL_NAME *
general_name(const char *name)
{
	struct addr	 ad;
	GENERAL_NAME	*gn;
	ASN1_STRING	*value;
	const void	*data = name;
	int		 isaddr, len = -1;

	if ((isaddr = addr_parse(name, &ad) == 0)) {
		data = ad.ad_bytes;
		len = ad.ad_af == AF_INET ? 4 : 16;
	}
	value = isaddr ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
	if (value == NULL || !ASN1_STRING_set(value, data, len) ||
	    (gn = GENERAL_NAME_new()) == NULL) {
		ASN1_STRING_free(value);
		return NULL;
	}
	GENERAL_NAME_set0_value(gn, isaddr ? GEN_IPADD : GEN_DNS, value);
	return gn;
}

static int
add_alt_name(X509 *leaf, const char *name, int critical)
{
	GENERAL_NAMES	*names;
	GENERAL_NAME	*gn;
	int		 ok = 0;

	if ((names = GENERAL_NAMES_new()) == NULL)
		return 0;
	if ((gn = general_name(name)) != NULL) {
		if (sk_GENERAL_NAME_push(names, gn) > 0)
			ok = X509_add1_ext_i2d(leaf, NID_subject_alt_name,
			    names, critical, X509V3_ADD_DEFAULT) == 1;
		else
			GENERAL_NAME_free(gn);
	}
	GENERAL_NAMES_free(names);
	return ok;
}

/*
 * The subject is the name too, where it fits: every client goes by the
 * alternative name, but people and some tools look at the common name, and a
 * few choke on an empty subject.  RFC 5280, 4.2.1.6: the alternative name is
 * critical if it stands alone.
 */
static int
add_leaf_name(X509 *leaf, const char *name)
{
	int	 fits = strlen(name) <= CERT_CN_MAX;

	if (fits && !add_name(leaf, NID_commonName, name))
		return 0;
	return add_alt_name(leaf, name, !fits);
}

X509 *
cert_leaf(struct cert_issuer *ci, const char *name, time_t from, time_t to)
{
	X509	*leaf;

	if ((leaf = X509_new()) == NULL)
		return NULL;
	if (X509_set_version(leaf, CERT_V3) && set_serial(leaf) &&
	    X509_set_issuer_name(leaf, X509_get_subject_name(ci->ci_cert)) &&
	    set_validity(leaf, from, to) &&
	    X509_set_pubkey(leaf, ci->ci_leafkey) &&
	    add_leaf_name(leaf, name) && add_common_exts(leaf, ci) &&
	    X509_sign(leaf, ci->ci_key, EVP_sha256()))
		return leaf;
	X509_free(leaf);
	return NULL;
}
