/* SPDX-License-Identifier: ISC */

/*
 * The name servers of the configuration, and c-ares in the event loop of a
 * child that asks them.  Their answers are bytes of a stranger's: whoever
 * asks takes from them what he needs and trusts no more than that.
 *
 * What is asked for is asked of these servers and of nothing else: no search
 * list, no hosts file, no resolv.conf.
 */

#ifndef RESOLVER_H
#define RESOLVER_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include "addr.h"
#include "ipc.h"

struct resolver {
	TAILQ_ENTRY(resolver)	 rs_entry;
	struct addr		 rs_addr;
	uint16_t		 rs_port;
};
TAILQ_HEAD(resolvers, resolver);

/* CONF_RESOLVER: one more for the list. */
int	 resolvers_add(struct resolvers *, struct ipc *, const union msg *);
void	 resolvers_clear(struct resolvers *);

/* c-ares' own names for these types, which need no <ares.h> here. */
struct ares_channeldata;
struct ares_socket_functions;

extern struct ares_channeldata	*resolver_channel;

/*
 * Before confinement: c-ares wants the system's source of chance.  NULL for
 * sockets that it opens by itself.
 */
void	 resolver_warm(const struct ares_socket_functions *);

/*
 * Takes the list, unless it is the one that is in use: then false.  Whatever
 * was asked of others ends with ARES_ECANCELLED.
 */
bool	 resolver_use(struct resolvers *);

/* Is there a server to ask; of this family, or AF_UNSPEC for any? */
bool	 resolver_has(int);

/* After each question that is put to resolver_channel. */
void	 resolver_rearm(void);

#endif /* RESOLVER_H */
