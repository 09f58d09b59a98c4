/* SPDX-License-Identifier: ISC */

/*
 * Children with an HTTPS client run this: where servers are.  Names are put to
 * the configured name servers by way of c-ares, and what they answer goes to
 * libcurl ready made, which therefore never looks a name up by itself: it
 * would take a thread and files, and a confined child has neither.
 */

#include <sys/socket.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ares.h>

#include "addr.h"
#include "clock.h"
#include "hostname.h"
#include "https/private.h"
#include "log.h"
#include "resolver.h"
#include "secret.h"

#define ADDRESSES_MAX	8
#define KNOWN_MIN_S	5	/* how long an answer is good for */
#define KNOWN_MAX_S	300

/* ---- what is known ---- */

static void
server_known(struct https_server *sv, const char *addresses,
    uint64_t until_ms)
{
	free(sv->sv_known);
	if (asprintf(&sv->sv_known, "%s:%u:%s", sv->sv_dial, sv->sv_dial_port,
	    addresses) == -1)
		fatal("%s", __func__);
	sv->sv_until_ms = until_ms;
}

/* Another peer is dialled from now on. */
void
server_dial(struct https_server *sv, const char *host, uint16_t port)
{
	strlcpy(sv->sv_dial, host, sizeof(sv->sv_dial));
	sv->sv_dial_port = port;
	free(sv->sv_known);
	sv->sv_known = NULL;
	if (strcmp(host, "localhost") == 0)
		server_known(sv, "127.0.0.1,[::1]", UINT64_MAX);
}

/* A part that fits into size bytes. */
int
server_part(CURLU *cu, CURLUPart part, char *out, size_t size)
{
	char	*text;
	int	 fits;

	if (curl_url_get(cu, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK)
		return -1;
	fits = strlcpy(out, text, size) < size;
	curl_free(text);
	return fits ? 0 : -1;
}

/*
 * The host of a URL, in its one spelling, which the URL gets too; and whether
 * it is a name.  An IPv6 address stands in brackets in a URL.
 */
int
server_host(CURLU *cu, char out[HOST_LEN + 1], bool *named)
{
	char		 host[HOST_LEN + 3];
	size_t		 len;

	*named = false;
	if (server_part(cu, CURLUPART_HOST, host, sizeof(host)) == -1)
		return -1;
	len = strlen(host);
	if (len > 2 && host[0] == '[' && host[len - 1] == ']')
		return hostname_canon(host + 1, len - 2, out, HOST_LEN + 1,
		    NULL);
	if (hostname_canon(host, len, out, HOST_LEN + 1, NULL) == -1 ||
	    curl_url_set(cu, CURLUPART_HOST, out, 0) != CURLUE_OK)
		return -1;
	*named = !hostname_is_addr(out);
	return 0;
}

static int
take_url(CURLU *cu, char **out)
{
	char	*text;

	if (curl_url_get(cu, CURLUPART_URL, &text, CURLU_DEFAULT_PORT) !=
	    CURLUE_OK)
		return -1;
	free(*out);
	if ((*out = strdup(text)) == NULL)
		fatal("%s", __func__);
	curl_free(text);
	return 0;
}

/*
 * The whole URL, and the URL up to its path without the slash that begins one;
 * the path is gone from cu then.
 */
int
server_urls(struct https_server *sv, CURLU *cu)
{
	size_t	 len;

	if (take_url(cu, &sv->sv_url) == -1 ||
	    curl_url_set(cu, CURLUPART_PATH, NULL, 0) != CURLUE_OK ||
	    curl_url_set(cu, CURLUPART_QUERY, NULL, 0) != CURLUE_OK ||
	    curl_url_set(cu, CURLUPART_FRAGMENT, NULL, 0) != CURLUE_OK ||
	    take_url(cu, &sv->sv_origin) == -1)
		return -1;
	len = strlen(sv->sv_origin);
	if (len > 0 && sv->sv_origin[len - 1] == '/')
		sv->sv_origin[len - 1] = '\0';
	return 0;
}

/*
 * The URL is written anew with the host in its one spelling: libcurl must find
 * it among the addresses that it is given, or it would look for itself.
 */
static int
server_parse(struct https_server *sv, CURLU *cu, const char *url)
{
	char		 scheme[8], port[8];
	const char	*why;

	if (curl_url_set(cu, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    server_part(cu, CURLUPART_SCHEME, scheme, sizeof(scheme)) == -1 ||
	    server_part(cu, CURLUPART_PORT, port, sizeof(port)) == -1 ||
	    server_host(cu, sv->sv_host, &sv->sv_named) == -1)
		return -1;
	sv->sv_tls = strcmp(scheme, "https") == 0;
	sv->sv_port = (uint16_t)strtonum(port, 1, UINT16_MAX, &why);
	if (why != NULL)
		return -1;
	server_dial(sv, sv->sv_host, sv->sv_port);
	return server_urls(sv, cu);
}

struct https_server *
https_server_new(const char *url)
{
	struct https_server	*sv;
	CURLU			*cu;
	int			 rv;

	if ((sv = calloc(1, sizeof(*sv))) == NULL || (cu = curl_url()) == NULL)
		fatal("%s", __func__);
	sv->sv_refs = 1;
	TAILQ_INIT(&sv->sv_waiting);
	rv = server_parse(sv, cu, url);
	curl_url_cleanup(cu);
	if (rv == -1) {
		https_server_unref(sv);
		return NULL;
	}
	return sv;
}

int
https_server_tls(const struct https_server *sv)
{
	return sv->sv_tls;
}

/* Takes the caller's reference; once, before the first call. */
void
https_server_trust(struct https_server *sv, struct https_trust *tr)
{
	sv->sv_trust = tr;
}

void
https_server_unref(struct https_server *sv)
{
	if (sv == NULL || --sv->sv_refs > 0)
		return;
	https_trust_unref(sv->sv_trust);
	secret_free(sv->sv_key);
	free(sv->sv_cert);
	curl_slist_free_all(sv->sv_connect_to);
	free(sv->sv_host_line);
	if (sv->sv_proxy != NULL)
		freezero(sv->sv_proxy, strlen(sv->sv_proxy));
	free(sv->sv_known);
	free(sv->sv_origin);
	free(sv->sv_url);
	free(sv);
}

/* ---- questions to name servers ---- */

/* Every waiting call hears; a why that is NULL: the address is known. */
static void
server_tell(struct https_server *sv, const char *why)
{
	struct https_call	*ca;

	while ((ca = TAILQ_FIRST(&sv->sv_waiting)) != NULL) {
		server_forget(ca);
		if (why == NULL)
			call_send(ca);
		else
			call_fail(ca, "%s: %s", sv->sv_dial, why);
	}
}

void
server_forget(struct https_call *ca)
{
	if (!ca->ca_waiting)
		return;
	ca->ca_waiting = false;
	TAILQ_REMOVE(&ca->ca_server->sv_waiting, ca, ca_entry);
}

/* Without TLS, nothing but addresses of one's own network. */
static int
format_node(const struct ares_addrinfo_node *no, bool tls, char *out,
    size_t size)
{
	struct addr	 ad;
	char		 text[ADDR_STRLEN];

	if (addr_from_sockaddr(no->ai_addr, no->ai_addrlen, &ad, NULL) == -1 ||
	    (!tls && !addr_is_private(&ad)))
		return 0;
	addr_format(&ad, text, sizeof(text));
	return snprintf(out, size, ad.ad_af == AF_INET6 ? "[%s]," : "%s,",
	    text);
}

/* Their addresses in a list; how long it holds, or 0 if there are none. */
static int
format_answer(const struct ares_addrinfo *ai, bool tls, char *out,
    size_t size)
{
	const struct ares_addrinfo_node	*no;
	size_t				 len = 0;
	int				 n = 0, ttl = KNOWN_MAX_S;

	for (no = ai->nodes; no != NULL && n < ADDRESSES_MAX;
	    no = no->ai_next, n++) {
		len += (size_t)format_node(no, tls, out + len, size - len);
		if (no->ai_ttl < ttl)
			ttl = no->ai_ttl;
	}
	if (len == 0)
		return 0;
	out[len - 1] = '\0';
	return ttl < KNOWN_MIN_S ? KNOWN_MIN_S : ttl;
}

static void
server_answer(void *arg, int status, int timeouts, struct ares_addrinfo *ai)
{
	struct https_server	*sv = arg;
	char			 list[ADDRESSES_MAX * (ADDR_STRLEN + 3) + 1];
	int			 ttl = 0;

	(void)timeouts;
	sv->sv_asking = false;
	if (status == ARES_SUCCESS)
		ttl = format_answer(ai, sv->sv_tls, list, sizeof(list));
	if (ai != NULL)
		ares_freeaddrinfo(ai);
	if (ttl > 0) {
		server_known(sv, list, clock_ms() + (uint64_t)ttl * 1000);
		server_tell(sv, NULL);
	} else
		server_tell(sv, status != ARES_SUCCESS ?
		    ares_strerror(status) : sv->sv_tls ? "it has no address" :
		    "it has no private address, and http goes to no other");
	https_server_unref(sv);
}

/* call_send() or call_fail(), now or later. */
void
server_find(struct https_call *ca)
{
	struct ares_addrinfo_hints	 hints;
	struct https_server		*sv = ca->ca_server;

	if (!sv->sv_named ||
	    (sv->sv_known != NULL && clock_ms() < sv->sv_until_ms)) {
		call_send(ca);
		return;
	}
	if (!resolver_has(AF_UNSPEC)) {
		call_fail(ca, "%s: no name server is configured", sv->sv_dial);
		return;
	}
	ca->ca_waiting = true;
	TAILQ_INSERT_TAIL(&sv->sv_waiting, ca, ca_entry);
	if (sv->sv_asking)
		return;
	sv->sv_asking = true;
	sv->sv_refs++;
	memset(&hints, 0, sizeof(hints));
	hints.ai_family = AF_UNSPEC;
	hints.ai_flags = ARES_AI_NOSORT;
	ares_getaddrinfo(resolver_channel, sv->sv_dial, NULL, &hints,
	    server_answer, sv);
	resolver_rearm();
}
