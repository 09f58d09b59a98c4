/* SPDX-License-Identifier: ISC */

/*
 * Children with an HTTPS client run this: how a connection to a server is
 * made, by options of libcurl.  Nothing comes from the environment, from files
 * or from libcurl's own idea of what is usual; and whatever keeps two servers
 * apart is an option, since libcurl hands a connection on to whoever asks for
 * the same host with the same options.
 */

#include <string.h>

#include "https/private.h"
#include "secret.h"

#define SET(option, value)						\
	if ((rv = curl_easy_setopt(ca->ca_easy, CURLOPT_##option,	\
	    value)) != CURLE_OK)					\
		return rv

/* The key is not copied: the server outlives the call. */
static CURLcode
set_certificate(struct https_call *ca, struct https_server *sv)
{
	struct curl_blob	 cert = {
		.data = sv->sv_cert,
		.len = sv->sv_cert_len,
		.flags = CURL_BLOB_NOCOPY
	};
	struct curl_blob	 key = {
		.data = sv->sv_key->sc_data,
		.len = sv->sv_key->sc_len,
		.flags = CURL_BLOB_NOCOPY
	};
	CURLcode		 rv;

	SET(SSLCERTTYPE, "PEM");
	SET(SSLCERT_BLOB, &cert);
	SET(SSLKEYTYPE, "PEM");
	SET(SSLKEY_BLOB, &key);
	/* Or OpenSSL would ask a terminal. */
	SET(KEYPASSWD, "");
	return CURLE_OK;
}

static CURLcode
set_tls(struct https_call *ca, struct https_server *sv)
{
	CURLcode	 rv;
	long		 verify = sv->sv_insecure ? 0L : 1L;

	SET(CAPATH, NULL);
	SET(CAINFO, NULL);
	SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(SSL_VERIFYPEER, verify);
	SET(SSL_VERIFYHOST, 2 * verify);
	if (sv->sv_proxy != NULL) {
		SET(PROXY_CAPATH, NULL);
		SET(PROXY_CAINFO, NULL);
		SET(PROXY_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
		SET(PROXY_SSL_VERIFYPEER, verify);
		SET(PROXY_SSL_VERIFYHOST, 2 * verify);
	}
	if (sv->sv_tls && sv->sv_trust != NULL &&
	    (rv = trust_set(sv->sv_trust, ca->ca_easy,
	    sv->sv_proxy != NULL)) != CURLE_OK)
		return rv;
	return sv->sv_key != NULL ? set_certificate(ca, sv) : CURLE_OK;
}

/* A secret that is for the server is no header of a CONNECT. */
static CURLcode
set_proxy(struct https_call *ca, struct https_server *sv)
{
	CURLcode	 rv;

	if (sv->sv_proxy == NULL) {
		SET(PROXY, "");
		SET(NOPROXY, "*");
		return CURLE_OK;
	}
	SET(PROXY, sv->sv_proxy);
	SET(NOPROXY, "");
	SET(PROXYAUTH, (long)CURLAUTH_BASIC);
	SET(HTTPPROXYTUNNEL, 1L);
	SET(HEADEROPT, (long)CURLHEADER_SEPARATE);
	SET(SUPPRESS_CONNECT_HEADERS, 1L);
	return CURLE_OK;
}

/* A call that wants only a connection speaks HTTP/1.1 on it at first. */
static CURLcode
set_version(struct https_call *ca, struct https_server *sv)
{
	CURLcode	 rv;

	if (ca->ca_connected != NULL) {
		SET(CONNECT_ONLY, 1L);
		SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
		SET(FRESH_CONNECT, 1L);
		return CURLE_OK;
	}
	SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	/* In libcurl 8.14 those that wait for HTTP/1 wait until it is over. */
	SET(PIPEWAIT, sv->sv_shares ? 1L : 0L);
	SET(FRESH_CONNECT, sv->sv_afresh ? 1L : 0L);
	sv->sv_afresh = false;
	return CURLE_OK;
}

/* Nothing from the environment, and no other place that an answer names. */
CURLcode
transport_set(struct https_call *ca)
{
	struct https_server	*sv = ca->ca_server;
	CURLcode		 rv;

	SET(NOSIGNAL, 1L);
	SET(PROTOCOLS_STR, "http,https");
	SET(FOLLOWLOCATION, 0L);
	SET(NETRC, (long)CURL_NETRC_IGNORED);
	if ((rv = set_version(ca, sv)) != CURLE_OK ||
	    (rv = set_proxy(ca, sv)) != CURLE_OK ||
	    (rv = set_tls(ca, sv)) != CURLE_OK)
		return rv;
	if (sv->sv_connect_to != NULL)
		SET(CONNECT_TO, sv->sv_connect_to);
	if (sv->sv_known != NULL) {
		ca->ca_resolve = curl_slist_append(NULL, sv->sv_known);
		SET(RESOLVE, ca->ca_resolve);
	}
	return CURLE_OK;
}
