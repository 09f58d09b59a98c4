/* SPDX-License-Identifier: ISC */

/*
 * A session's certificate authority: its key, its certificate, the one leaf
 * key and the leaves.  Keys live in the engine's memory, are handed to nobody
 * and are wiped by mint_free().  Names come from the sandbox by way of
 * hostname_canon(); what is not canonical is refused here once more.
 */

#ifndef MINT_H
#define MINT_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <openssl/ssl.h>
#include <openssl/x509.h>

struct mint;

/* LibreSSL has another name for it. */
#ifndef SSL_OP_NO_RENEGOTIATION
#define SSL_OP_NO_RENEGOTIATION	SSL_OP_NO_CLIENT_RENEGOTIATION
#endif

/* Leaves kept; one costs about 4 KiB. */
#define MINT_LEAVES_MAX		1024

struct mint_stats {
	uint64_t	 ms_hits;
	uint64_t	 ms_misses;
	uint64_t	 ms_evictions;
	size_t		 ms_leaves;
};

/*
 * Once, before confinement: makes libcrypto, libssl and libc open, read and
 * fetch all that they otherwise would at first use, by minting and shaking
 * hands in memory with each protocol version.  Reads no openssl.cnf.  0, or
 * -1 if the libraries cannot do what the engine needs.
 */
int		 mint_warm(void);

/*
 * Both return NULL with *why pointing to a constant text.  A CA made here ends
 * later than any session; no leaf outlives its CA.
 *
 * mint_load() takes the CA from PEM: the first certificate is the CA, others
 * after it are its chain.  The key is not encrypted.  The bytes remain the
 * caller's, to wipe.
 */
struct mint	*mint_new(const char *session_id, const char **why);
struct mint	*mint_load(const void *cert, size_t certlen, const void *key,
		    size_t keylen, const char **why);
void		 mint_free(struct mint *);

/*
 * The leaf for one canonical name or literal address, from the cache or new;
 * the caller has a reference to free.  0, or -1 if the name is not canonical,
 * the CA has expired, or memory is short.
 */
int		 mint_leaf(struct mint *, const char *name, X509 **leaf);

/*
 * The server side of the session.  TLS 1.2 and 1.3; tickets whose keys exist
 * in this context only; no renegotiation, compression or early data.  The
 * caller sets its ALPN callback and write modes, may make as many SSL as it
 * wants, and frees it (before or after the mint).  NULL if memory is short.
 */
SSL_CTX		*mint_server_ctx(struct mint *);

/*
 * Makes an SSL of that context the server of one name, before the handshake
 * begins: leaf, and a session id context that is the hash of the name, so that
 * a session resumes under the name it was made for or not at all.  0 or -1 as
 * mint_leaf().
 */
int		 mint_use(struct mint *, SSL *, const char *name);

/*
 * The certificate that clients must trust: the CA, or the last of the chain
 * that was loaded with it.  Never a key.  They live as long as the mint.
 */
const char	*mint_ca_pem(const struct mint *, size_t *len);
const unsigned char *mint_ca_der(const struct mint *, size_t *len);
const char	*mint_ca_fingerprint(const struct mint *);

/* The end of the CA, or of the first of its chain to end. */
time_t		 mint_not_after(const struct mint *);
int		 mint_expired(const struct mint *);

void		 mint_stats(const struct mint *, struct mint_stats *);

#endif /* MINT_H */
