/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: DNS over UDP and TCP (RFC 7766).  The agent may ask as
 * fast as it can, in any shape, and need not read the answers; all that is
 * kept for it is bounded, and so are the records that it can cause.
 */

#include <sys/socket.h>

#include <netinet/in.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dns.h"
#include "flow/flow.h"
#include "log.h"
#include "rate.h"
#include "tlsengine.h"

#define DNS_PORT	53	/* in records, whatever we listen on */
#define UDP_BATCH	64	/* questions per turn */
#define CLIENTS_MAX	32	/* over TCP */
#define CLIENT_IDLE_MS	5000	/* for one whole question, or one read answer */
#define CLIENT_OUT_SIZE	8192

/* A build fetches from some hundred hosts; a tunnel asks without end. */
#define NEW_NAMES_BURST	2048
#define NEW_NAMES_RATE	256	/* per second, when the burst is spent */
#define THROTTLE_MS	1000

struct client {
	int		 cl_fd;
	struct event	 cl_rev;
	struct event	 cl_wev;
	struct event	 cl_timer;
	uint8_t		 cl_in[2 + DNS_QUERY_MAX];
	size_t		 cl_inlen;
	uint8_t		 cl_out[CLIENT_OUT_SIZE];
	size_t		 cl_outlen;
	bool		 cl_eof;
};

/* A record that a flood would multiply: one a second, the rest is counted. */
struct throttle {
	enum record_kind	 th_kind;
	const char		*th_reason;
	struct event		 th_timer;
	uint64_t		 th_more;	/* since the last record */
	enum protocol		 th_protocol;	/* the latest of these */
	char			 th_name[HOSTNAME_MAX];
};

static struct throttle	 no_room = {
	.th_kind = RECORD_NAME_ASKED, .th_reason = REASON_QUOTA
};
static struct throttle	 bad_name = {
	.th_kind = RECORD_NAME_ASKED, .th_reason = REASON_BAD_REQUEST
};
static struct throttle	 no_client = {
	.th_kind = RECORD_CONNECTION_REFUSED, .th_reason = REASON_QUOTA
};
static struct rate	 new_names = {
	.rt_full = RATE_FULL(NEW_NAMES_BURST), .rt_per_s = NEW_NAMES_RATE,
	.rt_left = RATE_FULL(NEW_NAMES_BURST)
};
static unsigned int	 nclients;

/* ---- records ------------------------------------------------------------- */

static void
throttle_timer(evutil_socket_t fd, short what, void *arg)
{
	struct throttle	*th = arg;
	char		 reason[64];

	(void)fd, (void)what;
	if (th->th_more == 0)
		return;
	snprintf(reason, sizeof(reason), "%s: %llu more", th->th_reason,
	    (unsigned long long)th->th_more);
	report_other(th->th_kind, th->th_protocol, th->th_name, DNS_PORT,
	    reason);
	th->th_more = 0;
	set_timer(&th->th_timer, THROTTLE_MS);
}

static void
throttle_report(struct throttle *th, enum protocol protocol, const char *name)
{
	if (!event_initialized(&th->th_timer)) {
		event_assign(&th->th_timer, child_base, -1, 0, throttle_timer,
		    th);
		event_priority_set(&th->th_timer, 1);
	}
	if (event_pending(&th->th_timer, EV_TIMEOUT, NULL)) {
		th->th_more++;
		th->th_protocol = protocol;
		strlcpy(th->th_name, name, sizeof(th->th_name));
		return;
	}
	report_other(th->th_kind, protocol, name, DNS_PORT, th->th_reason);
	set_timer(&th->th_timer, THROTTLE_MS);
}

/* Each new name is recorded, so new names come no faster than records. */
static bool
room_for_name(void)
{
	return rate_allows(&new_names) && !recorder->ip_congested;
}

static size_t
serve(const uint8_t *in, size_t len, enum protocol protocol,
    uint8_t out[DNS_ANSWER_MAX])
{
	struct dns_asked	 asked;
	size_t			 n;

	n = dns_answer(in, len, room_for_name(), out, &asked);
	switch (asked.da_news) {
	case DNS_NO_NEWS:
		break;
	case DNS_NEW_NAME:
		rate_spend(&new_names);
		report_other(RECORD_NAME_ASKED, protocol, asked.da_name,
		    DNS_PORT, NULL);
		break;
	case DNS_NO_ROOM:
		throttle_report(&no_room, protocol, asked.da_name);
		break;
	case DNS_BAD_NAME:
		throttle_report(&bad_name, protocol, asked.da_name);
		break;
	}
	return n;
}

/* ---- UDP ----------------------------------------------------------------- */

/*
 * An answer comes from the address that was asked, or the client does not take
 * it.  In a sandbox every address is ours by a route alone, which for IPv6 is
 * not enough unless we insist.
 */
void
dns_prepare(int fd)
{
	struct sockaddr_storage	 ss;
	socklen_t		 len = sizeof(ss);
	int			 on = 1, failed;

	if (getsockname(fd, (struct sockaddr *)&ss, &len) == -1)
		fatal("session %s: DNS socket", child_session);
	if (ss.ss_family == AF_INET6)
		failed = setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on,
		    sizeof(on)) == -1 || setsockopt(fd, IPPROTO_IPV6,
		    IPV6_FREEBIND, &on, sizeof(on)) == -1;
	else
		failed = setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on,
		    sizeof(on)) == -1;
	if (failed)
		fatal("session %s: DNS socket", child_session);
}

/*
 * Make of the address that was asked the one that answers.  The interface is
 * left to the routes, except where an address means nothing without it.
 */
static void
turn_round(struct msghdr *msg)
{
	struct cmsghdr		*cm = CMSG_FIRSTHDR(msg);
	struct in_pktinfo	 v4;
	struct in6_pktinfo	 v6;

	if (cm != NULL && cm->cmsg_level == IPPROTO_IP &&
	    cm->cmsg_type == IP_PKTINFO &&
	    cm->cmsg_len == CMSG_LEN(sizeof(v4))) {
		memcpy(&v4, CMSG_DATA(cm), sizeof(v4));
		v4.ipi_ifindex = 0;
		memcpy(CMSG_DATA(cm), &v4, sizeof(v4));
		msg->msg_controllen = CMSG_SPACE(sizeof(v4));
	} else if (cm != NULL && cm->cmsg_level == IPPROTO_IPV6 &&
	    cm->cmsg_type == IPV6_PKTINFO &&
	    cm->cmsg_len == CMSG_LEN(sizeof(v6))) {
		memcpy(&v6, CMSG_DATA(cm), sizeof(v6));
		if (!IN6_IS_ADDR_LINKLOCAL(&v6.ipi6_addr))
			v6.ipi6_ifindex = 0;
		memcpy(CMSG_DATA(cm), &v6, sizeof(v6));
		msg->msg_controllen = CMSG_SPACE(sizeof(v6));
	} else {
		msg->msg_control = NULL;
		msg->msg_controllen = 0;
	}
}

/* Answer one question, if there is one; a lost answer is not repeated. */
static bool
udp_one(int fd)
{
	union {
		struct cmsghdr	hdr;
		char		buf[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control;
	uint8_t			 in[DNS_QUERY_MAX], out[DNS_ANSWER_MAX];
	struct sockaddr_storage	 from;
	struct iovec		 iov = { in, sizeof(in) };
	struct msghdr		 msg = { .msg_name = &from,
	    .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t			 n;

	if ((n = recvmsg(fd, &msg, MSG_DONTWAIT)) == -1)
		return false;
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return true;
	iov.iov_base = out;
	iov.iov_len = serve(in, (size_t)n, PROTOCOL_UDP, out);
	if (iov.iov_len > 0) {
		turn_round(&msg);
		msg.msg_flags = 0;
		sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	return true;
}

void
dns_read(evutil_socket_t fd, short what, void *arg)
{
	int	 i;

	(void)what, (void)arg;
	for (i = 0; i < UDP_BATCH && udp_one(fd); i++)
		;
}

/* ---- TCP ----------------------------------------------------------------- */

static void
client_free(struct client *cl)
{
	event_del(&cl->cl_rev);
	event_del(&cl->cl_wev);
	event_del(&cl->cl_timer);
	close(cl->cl_fd);
	free(cl);
	nclients--;
}

static void
client_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	client_free(arg);
}

/*
 * Answer the first question in the buffer: 1, or 0 if it is not whole or its
 * answer has no room, or -1 if this is no talk of DNS.
 */
static int
client_serve(struct client *cl)
{
	size_t	 len, n;
	uint8_t	*out = cl->cl_out + cl->cl_outlen;

	if (cl->cl_inlen < 2)
		return 0;
	len = (size_t)cl->cl_in[0] << 8 | cl->cl_in[1];
	if (len > DNS_QUERY_MAX)
		return -1;
	if (cl->cl_inlen < 2 + len ||
	    sizeof(cl->cl_out) - cl->cl_outlen < 2 + DNS_ANSWER_MAX)
		return 0;
	if ((n = serve(cl->cl_in + 2, len, PROTOCOL_TCP, out + 2)) == 0)
		return -1;
	out[0] = (uint8_t)(n >> 8);
	out[1] = (uint8_t)n;
	cl->cl_outlen += 2 + n;
	cl->cl_inlen -= 2 + len;
	memmove(cl->cl_in, cl->cl_in + 2 + len, cl->cl_inlen);
	set_timer(&cl->cl_timer, CLIENT_IDLE_MS);
	return 1;
}

static int
client_flush(struct client *cl)
{
	ssize_t	 n;

	if (cl->cl_outlen == 0)
		return 0;
	n = send(cl->cl_fd, cl->cl_out, cl->cl_outlen,
	    MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n == -1)
		return errno == EAGAIN ? 0 : -1;
	cl->cl_outlen -= (size_t)n;
	memmove(cl->cl_out, cl->cl_out + n, cl->cl_outlen);
	return 0;
}

/*
 * Whatever can go on goes on.  One turn answers what the input buffer holds,
 * some sixty questions, and no more is read from a client that does not read.
 * Returns whether the client is still there.
 */
static bool
client_go(struct client *cl)
{
	int	 served, n;

	do {
		for (n = 0; (served = client_serve(cl)) == 1; n++)
			;
		if (client_flush(cl) == -1 || served == -1) {
			client_free(cl);
			return false;
		}
	} while (n > 0 && cl->cl_outlen == 0);
	if (cl->cl_eof && cl->cl_outlen == 0) {
		client_free(cl);
		return false;
	}
	if (cl->cl_eof || cl->cl_inlen == sizeof(cl->cl_in))
		event_del(&cl->cl_rev);
	else
		event_add(&cl->cl_rev, NULL);
	if (cl->cl_outlen > 0)
		event_add(&cl->cl_wev, NULL);
	return true;
}

static void
client_read(evutil_socket_t fd, short what, void *arg)
{
	struct client	*cl = arg;
	ssize_t		 n;

	(void)what;
	n = recv(fd, cl->cl_in + cl->cl_inlen,
	    sizeof(cl->cl_in) - cl->cl_inlen, MSG_DONTWAIT);
	if (n == -1 && errno == EAGAIN)
		return;
	if (n == -1) {
		client_free(cl);
		return;
	}
	cl->cl_eof = n == 0;
	cl->cl_inlen += (size_t)n;
	client_go(cl);
}

static void
client_write(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	client_go(arg);
}

void
dns_accept(int fd)
{
	struct client	*cl;

	if (nclients == CLIENTS_MAX ||
	    (cl = calloc(1, sizeof(*cl))) == NULL) {
		throttle_report(&no_client, PROTOCOL_TCP, "");
		close(fd);
		return;
	}
	nclients++;
	cl->cl_fd = fd;
	event_assign(&cl->cl_rev, child_base, fd, EV_READ | EV_PERSIST,
	    client_read, cl);
	event_assign(&cl->cl_wev, child_base, fd, EV_WRITE, client_write, cl);
	event_assign(&cl->cl_timer, child_base, -1, 0, client_timer, cl);
	event_priority_set(&cl->cl_rev, 1);
	event_priority_set(&cl->cl_wev, 1);
	event_priority_set(&cl->cl_timer, 1);
	event_add(&cl->cl_rev, NULL);
	set_timer(&cl->cl_timer, CLIENT_IDLE_MS);
}
