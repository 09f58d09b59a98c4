/* SPDX-License-Identifier: ISC */

/*
 * The making of certificates, without memory of any: keys, the CA, leaves.
 * For the mint only.  Names are canonical, session ids the parent's.
 */

#ifndef CERT_H
#define CERT_H

#include <time.h>

#include <openssl/evp.h>
#include <openssl/x509.h>

/* Extensions that all leaves of an issuer share. */
#define CERT_LEAF_EXTS	5

struct cert_issuer {
	EVP_PKEY	*ci_key;
	X509		*ci_cert;
	EVP_PKEY	*ci_leafkey;
	X509_EXTENSION	*ci_exts[CERT_LEAF_EXTS];
};

EVP_PKEY	*cert_key(void);
X509		*cert_ca(EVP_PKEY *, const char *session_id, time_t from,
		    time_t to);
/* Makes ci_leafkey and ci_exts to go with ci_key and ci_cert.  0 or -1. */
int		 cert_issuer_ready(struct cert_issuer *);
void		 cert_issuer_clear(struct cert_issuer *);
X509		*cert_leaf(struct cert_issuer *, const char *name, time_t from,
		    time_t to);

#endif /* CERT_H */
