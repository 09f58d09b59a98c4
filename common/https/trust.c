/* SPDX-License-Identifier: ISC */

/*
 * Children with an HTTPS client run this: the certificates by which servers
 * are verified.  The system's bundle takes tens of milliseconds to parse, and
 * nobody is answered meanwhile; so it is parsed when the configuration comes,
 * once for all who have the same, and libcurl is given the result for each
 * connection.
 *
 * libcurl hands a connection on to whoever asks for the same server with the
 * same options, and a store that is set behind its back is no option.  The
 * mark is one, and keeps bundles apart: a blob with a number that no other has,
 * and a certificate, without which libcurl would not accept it.  That is one
 * of the bundle's own, as some versions put it into the store once more.
 */

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include "https/private.h"
#include "log.h"

struct https_trust {
	LIST_ENTRY(https_trust)	 tr_entry;
	unsigned int		 tr_refs;
	char			*tr_pem;
	size_t			 tr_len;
	X509_STORE		*tr_store;
	BIO			*tr_mark;
};

static LIST_HEAD(, https_trust)	 trusts = LIST_HEAD_INITIALIZER(trusts);

static struct https_trust *
trust_find(const char *pem, size_t len)
{
	struct https_trust	*tr;

	LIST_FOREACH(tr, &trusts, tr_entry)
		if (tr->tr_len == len && memcmp(tr->tr_pem, pem, len) == 0)
			return tr;
	return NULL;
}

static void
trust_free(struct https_trust *tr)
{
	free(tr->tr_pem);
	X509_STORE_free(tr->tr_store);
	BIO_free(tr->tr_mark);
	free(tr);
}

/* As libcurl has it: an anchor need not be a root. */
static struct https_trust *
trust_empty(void)
{
	static uint64_t		 last;
	struct https_trust	*tr;

	if ((tr = calloc(1, sizeof(*tr))) == NULL ||
	    (tr->tr_store = X509_STORE_new()) == NULL ||
	    (tr->tr_mark = BIO_new(BIO_s_mem())) == NULL ||
	    !X509_STORE_set_flags(tr->tr_store, X509_V_FLAG_PARTIAL_CHAIN) ||
	    BIO_printf(tr->tr_mark, "bundle %llu\n",
	    (unsigned long long)++last) <= 0)
		fatalx("%s: no memory", __func__);
	tr->tr_refs = 1;
	return tr;
}

static void
trust_add(struct https_trust *tr, X509 *x, bool first)
{
	if (!X509_STORE_add_cert(tr->tr_store, x) ||
	    (first && !PEM_write_bio_X509(tr->tr_mark, x)))
		fatalx("%s: no memory", __func__);
}

/* At least one certificate, and none that cannot be read. */
static bool
trust_parse(struct https_trust *tr, const char *pem, size_t len)
{
	BIO	*bio;
	X509	*x;
	bool	 some = false, ended;

	if (len > INT_MAX)
		return false;
	if ((bio = BIO_new_mem_buf(pem, (int)len)) == NULL)
		fatalx("%s: no memory", __func__);
	ERR_clear_error();
	while ((x = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		trust_add(tr, x, !some);
		X509_free(x);
		some = true;
	}
	ended = ERR_GET_REASON(ERR_peek_last_error()) ==
	    PEM_R_NO_START_LINE;
	ERR_clear_error();
	BIO_free(bio);
	return some && ended;
}

struct https_trust *
https_trust_new(const char *pem, size_t len)
{
	struct https_trust	*tr;

	if ((tr = trust_find(pem, len)) != NULL) {
		tr->tr_refs++;
		return tr;
	}
	tr = trust_empty();
	if (!trust_parse(tr, pem, len)) {
		trust_free(tr);
		return NULL;
	}
	if ((tr->tr_pem = malloc(len)) == NULL)
		fatal("%s", __func__);
	memcpy(tr->tr_pem, pem, len);
	tr->tr_len = len;
	LIST_INSERT_HEAD(&trusts, tr, tr_entry);
	return tr;
}

void
https_trust_unref(struct https_trust *tr)
{
	if (tr == NULL || --tr->tr_refs > 0)
		return;
	LIST_REMOVE(tr, tr_entry);
	trust_free(tr);
}

static CURLcode
trust_give(CURL *easy, void *ctx, void *arg)
{
	struct https_trust	*tr = arg;

	(void)easy;
	SSL_CTX_set1_cert_store(ctx, tr->tr_store);
	return CURLE_OK;
}

/*
 * By what a request's connection is verified, and the one to its proxy; the
 * trust has to outlive it.
 */
CURLcode
trust_set(struct https_trust *tr, CURL *easy, bool proxy)
{
	struct curl_blob	 mark = { .flags = CURL_BLOB_NOCOPY };
	char			*text;
	CURLcode		 rv;

	mark.len = (size_t)BIO_get_mem_data(tr->tr_mark, &text);
	mark.data = text;
	if ((rv = curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &mark)) !=
	    CURLE_OK || (rv = curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION,
	    trust_give)) != CURLE_OK)
		return rv;
	if (proxy && (rv = curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO_BLOB,
	    &mark)) != CURLE_OK)
		return rv;
	return curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, tr);
}
