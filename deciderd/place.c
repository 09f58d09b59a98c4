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
 * deciderd runs this: where the servers of deciders are.  Names are put to
 * the configured name servers by way of c-ares, and what they answer goes to
 * libcurl ready made, which therefore never looks a name up by itself: it
 * would take a thread and files, and we have neither.
 */

#include <sys/socket.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ares.h>

#include "clock.h"
#include "deciderd.h"
#include "hostname.h"

#define ADDRESSES_MAX	8
#define KNOWN_MIN_S	5	/* how long an answer is good for */
#define KNOWN_MAX_S	300

/* ---- what is known ---- */

static void
place_known(struct place *pc, const char *addresses, uint64_t until_ms)
{
	free(pc->pc_known);
	if (asprintf(&pc->pc_known, "%s:%u:%s", pc->pc_host, pc->pc_port,
	    addresses) == -1)
		fatal("%s", __func__);
	pc->pc_until_ms = until_ms;
}

static int
take_url_part(CURLU *cu, CURLUPart part, char *out, size_t size)
{
	char	*text;
	int	 fits;

	if (curl_url_get(cu, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK)
		return -1;
	fits = strlcpy(out, text, size) < size;
	curl_free(text);
	return fits ? 0 : -1;
}

/* An IPv6 address stands in brackets in a URL. */
static int
take_host(struct place *pc, CURLU *cu)
{
	char		 host[HOST_LEN + 3];
	size_t		 len;

	if (take_url_part(cu, CURLUPART_HOST, host, sizeof(host)) == -1)
		return -1;
	len = strlen(host);
	if (len > 2 && host[0] == '[' && host[len - 1] == ']')
		return hostname_canon(host + 1, len - 2, pc->pc_host,
		    sizeof(pc->pc_host), NULL);
	if (hostname_canon(host, len, pc->pc_host, sizeof(pc->pc_host),
	    NULL) == -1 || curl_url_set(cu, CURLUPART_HOST, pc->pc_host, 0) !=
	    CURLUE_OK)
		return -1;
	pc->pc_named = !hostname_is_addr(pc->pc_host);
	return 0;
}

static int
place_take(struct place *pc, CURLU *cu, char *url, size_t size)
{
	char		 scheme[8], port[8];
	const char	*why;

	if (curl_url_set(cu, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    take_url_part(cu, CURLUPART_SCHEME, scheme, sizeof(scheme)) == -1 ||
	    take_url_part(cu, CURLUPART_PORT, port, sizeof(port)) == -1 ||
	    take_host(pc, cu) == -1)
		return -1;
	pc->pc_tls = strcmp(scheme, "https") == 0;
	pc->pc_port = (uint16_t)strtonum(port, 1, UINT16_MAX, &why);
	if (why != NULL)
		return -1;
	return take_url_part(cu, CURLUPART_URL, url, size);
}

/*
 * The URL is rewritten with the host in its one spelling: libcurl must find
 * it among the addresses that we give, or it would look for itself.
 */
int
place_parse(struct place *pc, char *url, size_t size)
{
	CURLU	*cu;
	int	 rv;

	if ((cu = curl_url()) == NULL)
		fatal("%s", __func__);
	rv = place_take(pc, cu, url, size);
	curl_url_cleanup(cu);
	if (rv == 0 && strcmp(pc->pc_host, "localhost") == 0)
		place_known(pc, "127.0.0.1,[::1]", UINT64_MAX);
	return rv;
}

void
place_free(struct place *pc)
{
	free(pc->pc_known);
}

/* ---- questions to name servers ---- */

static void
place_unknown(struct question *qu, const char *why)
{
	question_finish(qu, ANSWER_ERROR, "%s: %s",
	    qu->qu_decider->de_place.pc_host, why);
}

/* Everybody who waits hears; NULL for a text means that it is known. */
static void
place_tell(struct place *pc, const char *why)
{
	struct question	*qu;

	while ((qu = TAILQ_FIRST(&pc->pc_waiting)) != NULL) {
		place_forget(qu);
		if (why == NULL)
			http_found(qu);
		else
			place_unknown(qu, why);
	}
}

void
place_forget(struct question *qu)
{
	if (!qu->qu_placeless)
		return;
	qu->qu_placeless = false;
	TAILQ_REMOVE(&qu->qu_decider->de_place.pc_waiting, qu, qu_place);
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
place_answer(void *arg, int status, int timeouts, struct ares_addrinfo *ai)
{
	struct decider	*de = arg;
	struct place	*pc = &de->de_place;
	char		 list[ADDRESSES_MAX * (ADDR_STRLEN + 3) + 1];
	int		 ttl = 0;

	(void)timeouts;
	pc->pc_asking = false;
	if (status == ARES_SUCCESS)
		ttl = format_answer(ai, pc->pc_tls, list, sizeof(list));
	if (ai != NULL)
		ares_freeaddrinfo(ai);
	if (ttl > 0) {
		place_known(pc, list, clock_ms() + (uint64_t)ttl * 1000);
		place_tell(pc, NULL);
	} else
		place_tell(pc, status != ARES_SUCCESS ?
		    ares_strerror(status) : pc->pc_tls ? "it has no address" :
		    "it has no private address, and http goes to no other");
	decider_unref(de);
}

/* http.c is told of a question, now or later, whose server is found. */
void
place_want(struct question *qu)
{
	struct ares_addrinfo_hints	 hints;
	struct place			*pc = &qu->qu_decider->de_place;

	if (!pc->pc_named ||
	    (pc->pc_known != NULL && clock_ms() < pc->pc_until_ms)) {
		http_found(qu);
		return;
	}
	if (!resolver_has(AF_UNSPEC)) {
		place_unknown(qu, "no name server is configured");
		return;
	}
	qu->qu_placeless = true;
	TAILQ_INSERT_TAIL(&pc->pc_waiting, qu, qu_place);
	if (pc->pc_asking)
		return;
	pc->pc_asking = true;
	memset(&hints, 0, sizeof(hints));
	hints.ai_family = AF_UNSPEC;
	hints.ai_flags = ARES_AI_NOSORT;
	ares_getaddrinfo(resolver_channel, pc->pc_host, NULL, &hints,
	    place_answer, decider_ref(qu->qu_decider));
	resolver_rearm();
}
