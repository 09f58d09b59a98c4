/* SPDX-License-Identifier: ISC */

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

#include <errno.h>
#include <string.h>

#define CARES_NO_DEPRECATED	/* 1.18 has no newer calls */
#include <ares.h>
#include <arpa/nameser.h>

#include "dialer.h"
#include "resolver.h"

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
	/* An empty datagram, which c-ares 1.34 takes for the end of all. */
	if (n == 0 && from != NULL) {
		errno = EAGAIN;
		return -1;
	}
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
	ares_query(resolver_channel, host, ns_c_in,
	    qu->qu_family == FAMILY_V6 ? ns_t_aaaa : ns_t_a, resolve_answer,
	    qu);
	resolver_rearm();
}

bool
resolve_possible(void)
{
	return resolver_has(AF_UNSPEC);
}

/* Whether sockets are lacking, which c-ares takes for a dead server. */
bool
resolve_lacks(enum socket_kind *kind)
{
	*kind = SOCKET_UDP6;
	if (resolver_has(AF_INET6) && !stock_has(*kind) && !stock_absent(*kind))
		return true;
	*kind = SOCKET_UDP4;
	return resolver_has(AF_INET) && !stock_has(*kind) &&
	    !stock_absent(*kind);
}

/* ---- servers ---- */

/* Questions that were out are asked of the new servers. */
void
resolve_servers(struct resolvers *list)
{
	if (resolver_use(list))
		names_ask_again();
}

void
resolve_warm(void)
{
	resolver_warm(&sock_functions);
}
