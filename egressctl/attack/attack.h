/* SPDX-License-Identifier: ISC */

/*
 * egressctl: attempts to get out of a sandbox.
 */

#ifndef ATTACK_H
#define ATTACK_H

#include <sys/types.h>
#include <sys/socket.h>

#include <netinet/in.h>

#include "egressctl.h"
#include "show.h"

#define ATTACK_WAIT_MS	2000	/* for one answer */
#define DETAIL_MAX	160
#define REPLY_MAX	8192

/* An address; each probe puts its port in. */
union endpoint {
	struct sockaddr		ep_sa;
	struct sockaddr_in	ep_in;
	struct sockaddr_in6	ep_in6;
};

enum outcome {
	OUTCOME_BLOCKED,
	OUTCOME_LEAKED,
	OUTCOME_SKIPPED
};

/*
 * The token is what must not leave.  EVIL sends back what it gets, so that a
 * token in an answer has been there.
 */
struct attack {
	const char	*at_evil;	/* NULL: there is none */
	union endpoint	 at_address;	/* of at_evil */
	const char	*at_name;	/* of an allowed host, perhaps */
	char		 at_token[sizeof("egress-attack-") + 16];
	char		 at_detail[DETAIL_MAX];
};

struct probe {
	const char	 *pb_name;
	const char	 *pb_after;	/* what it is after */
	int		  pb_evil;	/* 1: needs an at_evil */
	enum outcome	(*pb_run)(struct attack *);
};

/* attack.c */
enum outcome	 attack_say(struct attack *, enum outcome, const char *, ...)
		    __attribute__((__format__(printf, 3, 4)));

/* attack_net.c */
int		 net_address(const char *, union endpoint *);
int		 net_resolve(const char *, union endpoint *);
int		 net_connect(const union endpoint *, uint16_t);
ssize_t		 net_read(int, char *, size_t);
ssize_t		 net_exchange(const union endpoint *, uint16_t, const char *,
		    size_t, char *, size_t);
ssize_t		 net_datagram(const union endpoint *, uint16_t, const char *,
		    size_t, char *, size_t);
enum outcome	 probe_tcp_ports(struct attack *);
enum outcome	 probe_udp(struct attack *);
enum outcome	 probe_icmp(struct attack *);
enum outcome	 probe_packet(struct attack *);

/* attack_dns.c */
enum outcome	 probe_dns_udp(struct attack *);
enum outcome	 probe_dns_tcp(struct attack *);
enum outcome	 probe_dns_types(struct attack *);

/* attack_http.c */
enum outcome	 probe_ipv6(struct attack *);
enum outcome	 probe_mapped(struct attack *);
enum outcome	 probe_host(struct attack *);
enum outcome	 probe_absolute(struct attack *);
enum outcome	 probe_connect(struct attack *);
enum outcome	 probe_hello(struct attack *);
enum outcome	 probe_metadata(struct attack *);
enum outcome	 probe_smuggling(struct attack *);

/* attack_local.c */
enum outcome	 probe_control(struct attack *);
enum outcome	 probe_neighbours(struct attack *);
enum outcome	 probe_policy(struct attack *);

#endif /* ATTACK_H */
