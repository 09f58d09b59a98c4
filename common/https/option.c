/* SPDX-License-Identifier: ISC */

/*
 * Children with an HTTPS client run this: what a server may be given besides
 * its URL.  What is given comes from the configuration, or from a kubeconfig,
 * and is checked here, before anybody is asked: libcurl would say so late, and
 * would ask a terminal for the passphrase of a key.
 */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "hostname.h"
#include "https/private.h"
#include "log.h"
#include "secret.h"

/* ---- a certificate of our own ---- */

static int
no_passphrase(char *out, int size, int writing, void *arg)
{
	(void)out, (void)size, (void)writing, (void)arg;
	return -1;
}

static BIO *
bio_of(const void *data, size_t len)
{
	BIO	*bio;

	if (len > INT_MAX ||
	    (bio = BIO_new_mem_buf(data, (int)len)) == NULL)
		fatalx("%s: no memory", __func__);
	return bio;
}

/* Is it the key of the first certificate? */
static bool
is_pair(const void *cert, size_t certlen, const void *key, size_t keylen)
{
	BIO		*certs = bio_of(cert, certlen);
	BIO		*keys = bio_of(key, keylen);
	X509		*x = PEM_read_bio_X509(certs, NULL, no_passphrase,
	    NULL);
	EVP_PKEY	*pkey = PEM_read_bio_PrivateKey(keys, NULL,
	    no_passphrase, NULL);
	bool		 is;

	is = x != NULL && pkey != NULL && X509_check_private_key(x, pkey) == 1;
	ERR_clear_error();
	X509_free(x);
	EVP_PKEY_free(pkey);
	BIO_free(certs);
	BIO_free(keys);
	return is;
}

int
https_server_certificate(struct https_server *sv, const void *cert,
    size_t certlen, const void *key, size_t keylen)
{
	if (certlen == 0 || certlen > SECRET_MAX || keylen == 0 ||
	    keylen > SECRET_MAX || !is_pair(cert, certlen, key, keylen))
		return -1;
	if ((sv->sv_cert = malloc(certlen)) == NULL ||
	    (sv->sv_key = secret_alloc(keylen)) == NULL)
		fatal("%s", __func__);
	memcpy(sv->sv_cert, cert, certlen);
	sv->sv_cert_len = certlen;
	memcpy(sv->sv_key->sc_data, key, keylen);
	sv->sv_key->sc_len = keylen;
	return 0;
}

void
https_server_insecure(struct https_server *sv)
{
	sv->sv_insecure = true;
}

/* ---- another name than the host's ---- */

/* As it stands in a URL. */
static void
format_place(const char *fmt, const struct https_server *sv, char *out,
    size_t size)
{
	snprintf(out, size, fmt, strchr(sv->sv_host, ':') != NULL ? "[" : "",
	    sv->sv_host, strchr(sv->sv_host, ':') != NULL ? "]" : "",
	    sv->sv_port);
}

/*
 * libcurl takes the name from the URL; so the URL gets it, and libcurl is told
 * where to go instead and which Host to speak of.
 */
int
https_server_name(struct https_server *sv, const char *name)
{
	char	 canon[HOST_LEN + 1], place[HOST_LEN + 32];
	CURLU	*cu;
	int	 rv = -1;

	if (hostname_canon(name, strlen(name), canon, sizeof(canon), NULL) ==
	    -1 || strchr(canon, ':') != NULL)
		return -1;
	if ((cu = curl_url()) == NULL)
		fatalx("%s: no memory", __func__);
	if (curl_url_set(cu, CURLUPART_URL, sv->sv_url, 0) == CURLUE_OK &&
	    curl_url_set(cu, CURLUPART_HOST, canon, 0) == CURLUE_OK)
		rv = server_urls(sv, cu);
	curl_url_cleanup(cu);
	if (rv == -1)
		return -1;
	format_place("::%s%s%s:%u", sv, place, sizeof(place));
	sv->sv_connect_to = curl_slist_append(NULL, place);
	format_place("Host: %s%s%s:%u", sv, place, sizeof(place));
	if (sv->sv_connect_to == NULL ||
	    (sv->sv_host_line = strdup(place)) == NULL)
		fatalx("%s: no memory", __func__);
	return 0;
}

/* ---- a proxy ---- */

static int
proxy_parse(struct https_server *sv, CURLU *cu, const char *url)
{
	char		 scheme[8], port[8], host[HOST_LEN + 1], *whole;
	const char	*why;
	uint16_t	 number;
	bool		 named;

	if (curl_url_set(cu, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    server_part(cu, CURLUPART_SCHEME, scheme, sizeof(scheme)) == -1 ||
	    (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) ||
	    server_part(cu, CURLUPART_PORT, port, sizeof(port)) == -1 ||
	    server_host(cu, host, &named) == -1)
		return -1;
	number = (uint16_t)strtonum(port, 1, UINT16_MAX, &why);
	if (why != NULL || curl_url_get(cu, CURLUPART_URL, &whole,
	    CURLU_DEFAULT_PORT) != CURLUE_OK)
		return -1;
	if ((sv->sv_proxy = strdup(whole)) == NULL)
		fatal("%s", __func__);
	freezero(whole, strlen(whole));
	sv->sv_named = named;
	server_dial(sv, host, number);
	return 0;
}

int
https_server_proxy(struct https_server *sv, const char *url)
{
	CURLU	*cu;
	int	 rv;

	if ((cu = curl_url()) == NULL)
		fatalx("%s: no memory", __func__);
	rv = proxy_parse(sv, cu, url);
	curl_url_cleanup(cu);
	return rv;
}
