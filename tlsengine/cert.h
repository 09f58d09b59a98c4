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
 * The making of certificates, without memory of any: keys, the CA, leaves.
 * For the mint only.  Names are canonical, session ids the parent's.
 */

#ifndef CERT_H
#define CERT_H

#include <time.h>

#include <openssl/evp.h>
#include <openssl/x509.h>

/* What all leaves of an issuer have in common. */
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
