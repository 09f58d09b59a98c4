/* SPDX-License-Identifier: ISC */

/*
 * Addresses, prefixes and the classes on which the dialer's address policy
 * rests.  Linked by every process; addresses come from resolvers, peers and
 * configuration alike, and none of them is believed.
 */

#ifndef ADDR_H
#define ADDR_H

#include <sys/socket.h>

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#define ADDR_STRLEN	INET6_ADDRSTRLEN
#define PREFIX_STRLEN	(INET6_ADDRSTRLEN + 4)

/*
 * An address without port or scope: link-local is never dialled, so a scope
 * would only be one more thing to forge.  IPv4 uses the first four bytes and
 * the rest are zero.
 */
struct addr {
	sa_family_t	 ad_af;		/* AF_INET or AF_INET6 */
	uint8_t		 ad_bytes[16];
};

struct prefix {
	struct addr	 pf_addr;	/* host bits are zero */
	uint8_t		 pf_len;
};

/*
 * Ordered by how firmly an address is refused: of an address and the IPv4
 * addresses that it embeds, the highest class counts.
 */
enum addr_class {
	ADDR_GLOBAL,
	ADDR_PRIVATE,		/* RFC 1918, ULA: a rule may open these */
	ADDR_CGNAT,		/* 100.64.0.0/10: and this */
	ADDR_RESERVED,		/* documentation, protocol use, unallocated */
	ADDR_BENCHMARK,		/* 198.18.0.0/15: our synthetic addresses */
	ADDR_THISNET,		/* 0.0.0.0/8 and :: */
	ADDR_MULTICAST,
	ADDR_LINKLOCAL,
	ADDR_LOOPBACK,
	ADDR_METADATA,		/* a cloud's instance metadata service */
	ADDR_NCLASSES
};

/* An address embeds at most this many others: Teredo's two and ISATAP's. */
#define ADDR_EMBED_MAX	3

/* 0 or -1.  Strict: four decimals without leading zeros, no scope id. */
int	 addr_parse(const char *text, struct addr *);
/* Writes the canonical spelling and returns buf. */
const char *addr_format(const struct addr *, char *buf, size_t bufsz);
int	 addr_cmp(const struct addr *, const struct addr *);

/* 0 or -1 if the family is neither or the length is short; port may be NULL. */
int	 addr_from_sockaddr(const struct sockaddr *, socklen_t, struct addr *,
	    uint16_t *port);
/* Returns the length of what it wrote; port in host order. */
socklen_t addr_to_sockaddr(const struct addr *, uint16_t port,
	    struct sockaddr_storage *);

/*
 * The IPv4 addresses that a translator or tunnel would make of this IPv6
 * address; returns how many.  Whoever compares against a list of forbidden
 * addresses compares these as well.
 */
size_t	 addr_embedded(const struct addr *, struct addr[ADDR_EMBED_MAX]);

enum addr_class	 addr_classify(const struct addr *);
const char	*addr_class_name(enum addr_class);
/* Whether `to private' or a prefix on a rule may permit this class. */
int		 addr_class_openable(enum addr_class);

/*
 * `10.0.0.0/8', or an address alone for the prefix that holds just it.
 * 0, or -1 with *why (unless why is NULL) a constant text.
 */
int	 prefix_parse(const char *text, struct prefix *, const char **why);
const char *prefix_format(const struct prefix *, char *buf, size_t bufsz);
/* For one that came from a peer: length in range, host bits zero. */
int	 prefix_valid(const struct prefix *);
/* Families differ: no match, also for an IPv6 address that embeds IPv4. */
int	 prefix_match(const struct prefix *, const struct addr *);

/* Not to be met on the Internet: our own machine, network or site. */
int	 addr_is_private(const struct addr *);

#endif /* ADDR_H */
