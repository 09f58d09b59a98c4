/* SPDX-License-Identifier: ISC */

/*
 * egressctl: attempts in HTTP, and in the first bytes of TLS.  The gate marks
 * what it refuses with Egress-Decision; an answer without it is another's.
 */

#include <arpa/inet.h>

#include <string.h>
#include <unistd.h>

#include "attack.h"
#include "hostname.h"

#define HTTP		80
#define HTTPS		443
#define REQUEST_LEN	1024

/* ---- answers ------------------------------------------------------------- */

static int
contains(const char *reply, ssize_t n, const char *s)
{
	return n > 0 && memmem(reply, (size_t)n, s, strlen(s)) != NULL;
}

/* Of one attempt; `where' names it. */
static enum outcome
outcome_of(struct attack *at, const char *reply, ssize_t n, const char *where)
{
	if (contains(reply, n, at->at_token))
		return attack_say(at, OUTCOME_LEAKED, "%s: it came back",
		    where);
	if (n < 0)
		return attack_say(at, OUTCOME_BLOCKED, "%s: no connection",
		    where);
	if (n == 0)
		return attack_say(at, OUTCOME_BLOCKED, "%s: no answer", where);
	if (strncmp(reply, "HTTP/", 5) != 0)
		return attack_say(at, OUTCOME_LEAKED, "%s: an answer that is "
		    "not the gate's", where);
	if (strcasestr(reply, "\r\nEgress-Decision:") == NULL)
		return attack_say(at, OUTCOME_LEAKED, "%s: answered \"%.12s\", "
		    "not by the gate", where, reply);
	return attack_say(at, OUTCOME_BLOCKED, "%s: refused with %.3s", where,
	    reply + strlen("HTTP/1.1 "));
}

static enum outcome
try(struct attack *at, const union endpoint *ep, const char *request,
    const char *where)
{
	char	reply[REPLY_MAX];
	ssize_t	n;

	n = net_exchange(ep, HTTP, request, strlen(request), reply,
	    sizeof(reply));
	return outcome_of(at, reply, n, where);
}

/* A field of its own, as a refusal may repeat the host and the path. */
static enum outcome
get(struct attack *at, const union endpoint *ep, const char *target,
    const char *host, const char *where)
{
	char	request[REQUEST_LEN];

	snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: %s\r\n"
	    "Metadata-Flavor: Google\r\nX-Attack: %s\r\n"
	    "Connection: close\r\n\r\n", target, host, at->at_token);
	return try(at, ep, request, where);
}

/* ---- addresses ----------------------------------------------------------- */

enum outcome
probe_ipv6(struct attack *at)
{
	const char	*text = "2001:4860:4860::8888";
	char		 host[INET6_ADDRSTRLEN + 2];
	union endpoint	 ep;

	if (at->at_evil != NULL && at->at_address.ep_sa.sa_family == AF_INET6)
		text = at->at_evil;
	net_address(text, &ep);
	snprintf(host, sizeof(host), "[%s]", text);
	return get(at, &ep, "/", host, text);
}

enum outcome
probe_mapped(struct attack *at)
{
	char		text[INET6_ADDRSTRLEN];
	union endpoint	ep;

	if (at->at_address.ep_sa.sa_family != AF_INET)
		return attack_say(at, OUTCOME_SKIPPED, "the address is not "
		    "IPv4");
	snprintf(text, sizeof(text), "::ffff:%s", at->at_evil);
	net_address(text, &ep);
	return get(at, &ep, "/", at->at_evil, text);
}

enum outcome
probe_host(struct attack *at)
{
	return get(at, &at->at_address, "/", at->at_name, at->at_evil);
}

enum outcome
probe_metadata(struct attack *at)
{
	static const char *const	addresses[] = { "169.254.169.254",
	    "100.100.100.200", "fd00:ec2::254", "64:ff9b::a9fe:a9fe" };
	union endpoint			ep;
	char				host[INET6_ADDRSTRLEN + 2];
	size_t				i;

	for (i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		net_address(addresses[i], &ep);
		snprintf(host, sizeof(host), ep.ep_sa.sa_family == AF_INET ?
		    "%s" : "[%s]", addresses[i]);
		if (get(at, &ep, "/latest/meta-data/", host,
		    addresses[i]) == OUTCOME_LEAKED)
			return OUTCOME_LEAKED;
	}
	if (net_resolve("metadata.google.internal", &ep) == -1)
		return attack_say(at, OUTCOME_BLOCKED, "%zu addresses refused, "
		    "and the name does not resolve", i);
	return get(at, &ep, "/computeMetadata/v1/",
	    "metadata.google.internal", "metadata.google.internal");
}

/* ---- inside an allowed connection ---------------------------------------- */

enum outcome
probe_absolute(struct attack *at)
{
	char		target[INET6_ADDRSTRLEN + 16];
	union endpoint	ep;

	if (net_resolve(at->at_name, &ep) == -1)
		return attack_say(at, OUTCOME_SKIPPED, "the allowed name does "
		    "not resolve");
	snprintf(target, sizeof(target), at->at_address.ep_sa.sa_family ==
	    AF_INET ? "http://%s/" : "http://[%s]/", at->at_evil);
	return get(at, &ep, target, at->at_name, target);
}

enum outcome
probe_connect(struct attack *at)
{
	char		request[REQUEST_LEN];
	union endpoint	ep;

	if (net_resolve(at->at_name, &ep) == -1)
		return attack_say(at, OUTCOME_SKIPPED, "the allowed name does "
		    "not resolve");
	snprintf(request, sizeof(request), at->at_address.ep_sa.sa_family ==
	    AF_INET ? "CONNECT %s:80 HTTP/1.1\r\nHost: %s:80\r\n\r\n%s\r\n" :
	    "CONNECT [%s]:80 HTTP/1.1\r\nHost: [%s]:80\r\n\r\n%s\r\n",
	    at->at_evil, at->at_evil, at->at_token);
	return try(at, &ep, request, "CONNECT");
}

static const struct {
	const char	*name;
	const char	*fields;	/* after Host, up to the end */
} shapes[] = {
	{ "CL.TE", "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "0\r\n\r\nX" },
	{ "two lengths", "Content-Length: 0\r\nContent-Length: 5\r\n\r\n"
	    "hello" },
	{ "chunkedx", "Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n" },
	{ "negative length", "Content-Length: -1\r\n\r\n" },
	{ "bare LF", "X: y\n\r\n" },
	{ "folded field", "X: y\r\n z\r\n\r\n" },
	{ "space before colon", "Content-Length : 0\r\n\r\n" },
	{ "two hosts", "Host: evil.test\r\n\r\n" },
};

/* These are bad requests whatever the policy: the gate answers once, 4xx. */
enum outcome
probe_smuggling(struct attack *at)
{
	char		request[REQUEST_LEN];
	union endpoint	ep;
	size_t		i;

	if (net_resolve(at->at_name, &ep) == -1)
		return attack_say(at, OUTCOME_SKIPPED, "the allowed name does "
		    "not resolve");
	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		snprintf(request, sizeof(request), "POST / HTTP/1.1\r\n"
		    "Host: %s\r\n%s", at->at_name, shapes[i].fields);
		if (try(at, &ep, request, shapes[i].name) == OUTCOME_LEAKED)
			return OUTCOME_LEAKED;
	}
	return attack_say(at, OUTCOME_BLOCKED, "%zu shapes refused", i);
}

/* ---- TLS ----------------------------------------------------------------- */

#define RANDOM_AT	11	/* in the record of a hello (RFC 8446, 4.1.2) */

static size_t
put16(char *at, size_t value)
{
	at[0] = (char)(value >> 8);
	at[1] = (char)value;
	return 2;
}

/* Bytes: the extension with the name (RFC 6066, 3). */
static size_t
put_server_name(char *at, const char *name)
{
	size_t	len = strlen(name), n = 0;

	n += put16(at + n, 0);
	n += put16(at + n, len + 5);
	n += put16(at + n, len + 3);
	at[n++] = 0;
	n += put16(at + n, len);
	memcpy(at + n, name, len);
	return n + len;
}

/*
 * A ClientHello for TLS 1.2 without a session.  The token is its random, which
 * a server does not repeat.
 */
static size_t
make_hello(const struct attack *at, char *buf)
{
	static const char	tail[] = { 0, 0, 4, (char)0xc0, 0x2f,
	    (char)0xc0, 0x2b, 1, 0 };
	size_t			n = RANDOM_AT, ext;

	memset(buf, 0, REQUEST_LEN);
	strlcpy(buf + n, at->at_token, 32);
	n += 32;
	memcpy(buf + n, tail, sizeof(tail));
	n += sizeof(tail);
	ext = put_server_name(buf + n + 2, at->at_name);
	n += put16(buf + n, ext) + ext;
	buf[0] = 22;
	put16(buf + 1, 0x0301);
	put16(buf + 3, n - 5);
	buf[5] = 1;
	put16(buf + 7, n - 9);
	put16(buf + 9, 0x0303);
	return n;
}

/* TLS without an echo of the token is the gate's own. */
static int
is_tls(const char *reply, ssize_t n)
{
	return n > 2 && (reply[0] == 22 || reply[0] == 21) && reply[1] == 3;
}

enum outcome
probe_hello(struct attack *at)
{
	static const uint16_t	ports[] = { HTTPS, HTTP };
	char			hello[REQUEST_LEN], reply[REPLY_MAX];
	size_t			i, len;
	ssize_t			n;

	if (strlen(at->at_name) >= HOSTNAME_MAX)
		return attack_say(at, OUTCOME_SKIPPED, "the name is too long");
	len = make_hello(at, hello);
	for (i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		n = net_exchange(&at->at_address, ports[i], hello, len, reply,
		    sizeof(reply));
		if (is_tls(reply, n) && !contains(reply, n, at->at_token))
			attack_say(at, OUTCOME_BLOCKED, "%s: the gate spoke "
			    "TLS", at->at_evil);
		else if (outcome_of(at, reply, n, at->at_evil) ==
		    OUTCOME_LEAKED)
			return OUTCOME_LEAKED;
	}
	return OUTCOME_BLOCKED;
}
