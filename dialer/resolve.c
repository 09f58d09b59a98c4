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
 * The dialer runs this: questions to name servers, by way of c-ares.  Its
 * answers are bytes of a stranger's; only addresses are taken from them.
 *
 * ares_query() asks for exactly the name that it is given, and nothing else:
 * no search list, no hosts file, no aliases.  The sockets come out of our
 * stock; a datagram socket is connected, so that the kernel drops what comes
 * from elsewhere.
 */

#include <sys/types.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <netinet/in.h>

#include <stdlib.h>
#include <string.h>

#define CARES_NO_DEPRECATED	/* 1.18 has no newer calls */
#include <ares.h>
#include <arpa/nameser.h>

#include "dialer.h"
#include "log.h"

#define ASK_TIMEOUT_MS	1500	/* doubled with each try */
#define ASK_TRIES	3
#define EDNS_SIZE	1232	/* fits every path unfragmented */

/* A socket that c-ares listens to. */
struct watch {
	TAILQ_ENTRY(watch)	 wa_entry;
	struct event		 wa_event;
	int			 wa_fd;
};

static TAILQ_HEAD(, watch)	 watches = TAILQ_HEAD_INITIALIZER(watches);
static ares_channel		 channel;
static struct event		 on_timeout;
static bool			 has_family[FAMILY_MAX];	/* servers of */

/* ---- sockets ---- */

static ares_socket_t
sock_new(int af, int type, int protocol, void *arg)
{
	(void)protocol, (void)arg;
	if (type == SOCK_STREAM)
		return stock_take_reserved(af == AF_INET6 ? SOCKET_TCP6 :
		    SOCKET_TCP4);
	return stock_take_reserved(af == AF_INET6 ? SOCKET_UDP6 :
	    SOCKET_UDP4);
}

static int
sock_close(ares_socket_t fd, void *arg)
{
	(void)arg;
	stock_close(fd);
	return 0;
}

static int
sock_connect(ares_socket_t fd, const struct sockaddr *sa, ares_socklen_t len,
    void *arg)
{
	(void)arg;
	return connect(fd, sa, len);
}

static ares_ssize_t
sock_receive(ares_socket_t fd, void *buf, size_t len, int flags,
    struct sockaddr *from, ares_socklen_t *fromlen, void *arg)
{
	struct iovec	 iov = { .iov_base = buf, .iov_len = len };
	struct msghdr	 msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t		 n;

	(void)arg;
	if (from != NULL) {
		msg.msg_name = from;
		msg.msg_namelen = *fromlen;
	}
	n = recvmsg(fd, &msg, flags);
	if (from != NULL)
		*fromlen = msg.msg_namelen;
	return n;
}

static ares_ssize_t
sock_send(ares_socket_t fd, const struct iovec *iov, int n, void *arg)
{
	(void)arg;
	return writev(fd, iov, n);
}

static const struct ares_socket_functions sock_functions = {
	.asocket = sock_new,
	.aclose = sock_close,
	.aconnect = sock_connect,
	.arecvfrom = sock_receive,
	.asendv = sock_send,
};

/* ---- events ---- */

static void
resolve_rearm(void)
{
	struct timeval	 tv;

	if (ares_timeout(channel, NULL, &tv) == NULL)
		event_del(&on_timeout);
	else if (event_add(&on_timeout, &tv) == -1)
		fatalx("%s: event_add", __func__);
}

static void
resolve_on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	resolve_rearm();
}

static void
watch_ready(evutil_socket_t fd, short what, void *arg)
{
	(void)arg;
	ares_process_fd(channel, what & EV_READ ? fd : ARES_SOCKET_BAD,
	    what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	resolve_rearm();
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

/* ---- questions ---- */

/* c-ares 1.18 tells a server that fails from one that is down only at times. */
static const char *
fault_text(int status)
{
	switch (status) {
	case ARES_ETIMEOUT:
		return "no name server answers in time";
	case ARES_ECONNREFUSED:
	case ARES_ESERVFAIL:
	case ARES_ENOTIMP:
	case ARES_EFORMERR:
	case ARES_EREFUSED:
		return "no name server has an answer";
	default:
		return "the name server's answer is malformed";
	}
}

static void
take_address(struct query *qu, int af, const void *bytes, size_t len, int ttl)
{
	struct addr	*ad = &qu->qu_addr[qu->qu_count];
	uint32_t	 limit = ttl < 0 ? 0 : (uint32_t)ttl;

	memset(ad, 0, sizeof(*ad));
	ad->ad_af = (sa_family_t)af;
	memcpy(ad->ad_bytes, bytes, len);
	if (qu->qu_count++ == 0 || limit < qu->qu_ttl)
		qu->qu_ttl = limit;
}

static int
parse_v4(struct query *qu, const unsigned char *buf, int len)
{
	struct ares_addrttl	 at[ANSWER_MAX];
	int			 i, status, n = ANSWER_MAX;

	if ((status = ares_parse_a_reply(buf, len, NULL, at, &n)) !=
	    ARES_SUCCESS)
		return status;
	for (i = 0; i < n; i++)
		take_address(qu, AF_INET, &at[i].ipaddr, sizeof(at[i].ipaddr),
		    at[i].ttl);
	return status;
}

static int
parse_v6(struct query *qu, const unsigned char *buf, int len)
{
	struct ares_addr6ttl	 at[ANSWER_MAX];
	int			 i, status, n = ANSWER_MAX;

	if ((status = ares_parse_aaaa_reply(buf, len, NULL, at, &n)) !=
	    ARES_SUCCESS)
		return status;
	for (i = 0; i < n; i++)
		take_address(qu, AF_INET6, &at[i].ip6addr,
		    sizeof(at[i].ip6addr), at[i].ttl);
	return status;
}

static void
resolve_answer(void *arg, int status, int timeouts, unsigned char *buf,
    int len)
{
	struct query	*qu = arg;

	(void)timeouts;
	if (status == ARES_ECANCELLED) {
		name_cancelled(qu);
		return;
	}
	if (status == ARES_SUCCESS)
		status = qu->qu_family == FAMILY_V6 ? parse_v6(qu, buf, len) :
		    parse_v4(qu, buf, len);
	if (status == ARES_ENOTFOUND)
		qu->qu_no_name = true;
	else if (status != ARES_SUCCESS && status != ARES_ENODATA)
		qu->qu_error = fault_text(status);
	name_answered(qu);
}

void
resolve_ask(const char *host, struct query *qu)
{
	if (!resolve_possible()) {
		qu->qu_error = "no name server is configured";
		name_answered(qu);
		return;
	}
	ares_query(channel, host, ns_c_in,
	    qu->qu_family == FAMILY_V6 ? ns_t_aaaa : ns_t_a, resolve_answer,
	    qu);
	resolve_rearm();
}

bool
resolve_possible(void)
{
	return has_family[FAMILY_V6] || has_family[FAMILY_V4];
}

/* What c-ares would take for a server that is out of reach. */
bool
resolve_lacks(enum socket_kind *kind)
{
	*kind = SOCKET_UDP6;
	if (has_family[FAMILY_V6] && !stock_has(*kind) && !stock_absent(*kind))
		return true;
	*kind = SOCKET_UDP4;
	return has_family[FAMILY_V4] && !stock_has(*kind) &&
	    !stock_absent(*kind);
}

/* ---- servers ---- */

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
make_nodes(const struct resolvers *servers)
{
	struct ares_addr_port_node	*nodes, *no;
	const struct resolver		*rs;
	size_t				 n = 0;

	TAILQ_FOREACH(rs, servers, rs_entry)
		n++;
	if ((nodes = calloc(n, sizeof(*nodes))) == NULL)
		fatal("%s", __func__);
	no = nodes;
	TAILQ_FOREACH(rs, servers, rs_entry) {
		no->family = rs->rs_addr.ad_af;
		memcpy(&no->addr, rs->rs_addr.ad_bytes,
		    no->family == AF_INET6 ? 16 : 4);
		no->udp_port = no->tcp_port = rs->rs_port;
		has_family[no->family == AF_INET6 ? FAMILY_V6 : FAMILY_V4] =
		    true;
		no->next = --n > 0 ? no + 1 : NULL;
		no++;
	}
	return nodes;
}

/*
 * c-ares takes new servers only while it waits for none, so what is out is
 * cancelled and asked of the new ones.
 */
void
resolve_servers(const struct resolvers *servers, const struct resolvers *old)
{
	struct ares_addr_port_node	*nodes;
	int				 status;

	if (old != NULL && same_servers(servers, old))
		return;
	ares_cancel(channel);
	memset(has_family, 0, sizeof(has_family));
	if (!TAILQ_EMPTY(servers)) {
		nodes = make_nodes(servers);
		status = ares_set_servers_ports(channel, nodes);
		free(nodes);
		if (status != ARES_SUCCESS)
			fatalx("name servers: %s", ares_strerror(status));
	}
	names_ask_again();
	resolve_rearm();
}

/*
 * Before confinement: c-ares wants the system's source of chance.  With all
 * of this set it looks at nothing else, not even at resolv.conf.
 */
void
resolve_warm(void)
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
	    (status = ares_init_options(&channel, &ao, ARES_OPT_FLAGS |
	    ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
	    ARES_OPT_SERVERS | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS |
	    ARES_OPT_SORTLIST | ARES_OPT_EDNSPSZ |
	    ARES_OPT_SOCK_STATE_CB)) != ARES_SUCCESS)
		fatalx("c-ares: %s", ares_strerror(status));
	ares_set_socket_functions(channel, &sock_functions, NULL);
	event_assign(&on_timeout, child_base, -1, 0, resolve_on_timeout, NULL);
}
