/* SPDX-License-Identifier: ISC */

/*
 * Children that ask name servers run this.  The servers are the operator's;
 * what they send is read by c-ares, in a process that is confined.
 */

#include <sys/types.h>
#include <sys/socket.h>

#include <netinet/in.h>

#include <stdlib.h>
#include <string.h>

#define CARES_NO_DEPRECATED	/* 1.18 has no newer calls */
#include <ares.h>

#include "child.h"
#include "log.h"
#include "resolver.h"

#define ASK_TIMEOUT_MS	1500	/* doubled with each try */
#define ASK_TRIES	3
#define EDNS_SIZE	1232	/* fits every path unfragmented */

/* A socket that c-ares listens to. */
struct watch {
	TAILQ_ENTRY(watch)	 wa_entry;
	struct event		 wa_event;
	int			 wa_fd;
};

ares_channel			 resolver_channel;

static TAILQ_HEAD(, watch)	 watches = TAILQ_HEAD_INITIALIZER(watches);
static struct resolvers		 servers = TAILQ_HEAD_INITIALIZER(servers);
static struct event		 on_timeout;

/* ---- events ---- */

void
resolver_rearm(void)
{
	struct timeval	 tv;

	if (ares_timeout(resolver_channel, NULL, &tv) == NULL)
		event_del(&on_timeout);
	else if (event_add(&on_timeout, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

static void
resolver_on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	ares_process_fd(resolver_channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	resolver_rearm();
}

static void
watch_ready(evutil_socket_t fd, short what, void *arg)
{
	(void)arg;
	ares_process_fd(resolver_channel, what & EV_READ ? fd : ARES_SOCKET_BAD,
	    what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	resolver_rearm();
}

static struct watch *
watch_get(int fd)
{
	struct watch	*wa;

	TAILQ_FOREACH(wa, &watches, wa_entry)
		if (wa->wa_fd == fd)
			return wa;
	if ((wa = calloc(1, sizeof(*wa))) == NULL)
		fatal("%s", __func__);
	wa->wa_fd = fd;
	event_assign(&wa->wa_event, child_base, fd, 0, watch_ready, wa);
	TAILQ_INSERT_TAIL(&watches, wa, wa_entry);
	return wa;
}

static void
watch_change(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct watch	*wa = watch_get(fd);
	short		 what = EV_PERSIST;

	(void)arg;
	event_del(&wa->wa_event);
	if (!readable && !writable) {
		TAILQ_REMOVE(&watches, wa, wa_entry);
		free(wa);
		return;
	}
	if (readable)
		what |= EV_READ;
	if (writable)
		what |= EV_WRITE;
	event_assign(&wa->wa_event, child_base, fd, what, watch_ready, wa);
	if (event_add(&wa->wa_event, NULL) == -1)
		fatalx("%s: event_add", __func__);
}

/* ---- servers ---- */

int
resolvers_add(struct resolvers *list, struct ipc *ip, const union msg *m)
{
	struct resolver	*rs;

	if ((rs = calloc(1, sizeof(*rs))) == NULL)
		fatal("%s", __func__);
	TAILQ_INSERT_TAIL(list, rs, rs_entry);
	if (addr_parse(m->conf_resolver.address, &rs->rs_addr) == -1)
		return ipc_bad(ip, "address %s", m->conf_resolver.address);
	rs->rs_port = m->conf_resolver.port;
	return 0;
}

void
resolvers_clear(struct resolvers *list)
{
	struct resolver	*rs;

	while ((rs = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, rs, rs_entry);
		free(rs);
	}
}

static bool
same_servers(const struct resolvers *a, const struct resolvers *b)
{
	const struct resolver	*ra = TAILQ_FIRST(a), *rb = TAILQ_FIRST(b);

	while (ra != NULL && rb != NULL && ra->rs_port == rb->rs_port &&
	    addr_cmp(&ra->rs_addr, &rb->rs_addr) == 0) {
		ra = TAILQ_NEXT(ra, rs_entry);
		rb = TAILQ_NEXT(rb, rs_entry);
	}
	return ra == NULL && rb == NULL;
}

static struct ares_addr_port_node *
make_nodes(void)
{
	struct ares_addr_port_node	*nodes, *no;
	const struct resolver		*rs;
	size_t				 n = 0;

	TAILQ_FOREACH(rs, &servers, rs_entry)
		n++;
	if ((nodes = calloc(n, sizeof(*nodes))) == NULL)
		fatal("%s", __func__);
	no = nodes;
	TAILQ_FOREACH(rs, &servers, rs_entry) {
		no->family = rs->rs_addr.ad_af;
		memcpy(&no->addr, rs->rs_addr.ad_bytes,
		    no->family == AF_INET6 ? 16 : 4);
		no->udp_port = no->tcp_port = rs->rs_port;
		no->next = --n > 0 ? no + 1 : NULL;
		no++;
	}
	return nodes;
}

static void
set_servers(void)
{
	struct ares_addr_port_node	*nodes = make_nodes();
	int				 status;

	status = ares_set_servers_ports(resolver_channel, nodes);
	free(nodes);
	if (status != ARES_SUCCESS)
		fatalx("name servers: %s", ares_strerror(status));
}

/* c-ares takes other servers only while it waits for none. */
bool
resolver_use(struct resolvers *list)
{
	if (same_servers(list, &servers))
		return false;
	ares_cancel(resolver_channel);
	resolvers_clear(&servers);
	TAILQ_CONCAT(&servers, list, rs_entry);
	if (!TAILQ_EMPTY(&servers))
		set_servers();
	resolver_rearm();
	return true;
}

bool
resolver_has(int af)
{
	const struct resolver	*rs;

	TAILQ_FOREACH(rs, &servers, rs_entry)
		if (af == AF_UNSPEC || rs->rs_addr.ad_af == af)
			return true;
	return false;
}

/*
 * Answers are kept by whoever asks for them, who knows for how long; newer
 * versions would keep them, too.
 */
#ifdef ARES_OPT_QUERY_CACHE
#define NO_CACHE	ARES_OPT_QUERY_CACHE	/* of qcache_max_ttl: 0 */
#else
#define NO_CACHE	0
#endif

/* With all of this set it looks at nothing else, not even at resolv.conf. */
void
resolver_warm(const struct ares_socket_functions *functions)
{
	struct ares_options	 ao;
	struct in_addr		 nobody = { .s_addr = INADDR_ANY };
	char			 lookups[] = "b";
	int			 status;

	memset(&ao, 0, sizeof(ao));
	ao.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_EDNS;
	ao.timeout = ASK_TIMEOUT_MS;
	ao.tries = ASK_TRIES;
	ao.ndots = 0;
	ao.servers = &nobody;
	ao.nservers = 1;
	ao.lookups = lookups;
	ao.ednspsz = EDNS_SIZE;
	ao.sock_state_cb = watch_change;
	if ((status = ares_library_init(ARES_LIB_INIT_ALL)) != ARES_SUCCESS ||
	    (status = ares_init_options(&resolver_channel, &ao, ARES_OPT_FLAGS |
	    ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
	    ARES_OPT_SERVERS | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS |
	    ARES_OPT_SORTLIST | ARES_OPT_EDNSPSZ | NO_CACHE |
	    ARES_OPT_SOCK_STATE_CB)) != ARES_SUCCESS)
		fatalx("c-ares: %s", ares_strerror(status));
	if (functions != NULL)
		ares_set_socket_functions(resolver_channel, functions, NULL);
	event_assign(&on_timeout, child_base, -1, 0, resolver_on_timeout,
	    NULL);
}
