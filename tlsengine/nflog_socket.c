/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: the socket on which the kernel reports what the fence
 * of a local sandbox or of a pod refused.  The agent may send as fast as it
 * can; what it can cause is a bounded number of records, the rest is counted.
 */

#include <sys/socket.h>

#include <linux/netlink.h>

#include <errno.h>
#include <stdio.h>

#include "dns/names.h"
#include "flow/flow.h"
#include "nflog.h"
#include "rate.h"
#include "tlsengine.h"

#define BATCH		32	/* datagrams per turn */
#define DATAGRAM_MAX	65536

#define BURST		128	/* records */
#define RATE		16	/* per second, when the burst is spent */
#define LATE_MS		1000

static struct rate		 records = {
	.rt_full = RATE_FULL(BURST), .rt_per_s = RATE,
	.rt_left = RATE_FULL(BURST)
};
static uint64_t			 more;		/* not recorded so far */
static struct nflog_packet	 latest;	/* not recorded */
static struct event		 late;

static void
report_packet(const struct nflog_packet *np, const char *reason)
{
	char		 text[ADDRESS_LEN];
	const char	*host = names_find(&np->np_dest);

	if (host == NULL)
		host = addr_format(&np->np_dest, text, sizeof(text));
	report_other(RECORD_CONNECTION_REFUSED, np->np_protocol, host,
	    np->np_port, reason);
}

static void
report_more(evutil_socket_t fd, short what, void *arg)
{
	char	 reason[64];

	(void)fd, (void)what, (void)arg;
	snprintf(reason, sizeof(reason), REASON_PROTOCOL_REFUSED ": %llu more",
	    (unsigned long long)more);
	report_packet(&latest, reason);
	more = 0;
}

static bool
room_for_record(void)
{
	if (!rate_allows(&records) || recorder->ip_congested)
		return false;
	rate_spend(&records);
	return true;
}

static void
refused(const struct nflog_packet *np)
{
	if (more == 0 && room_for_record()) {
		report_packet(np, REASON_PROTOCOL_REFUSED);
		return;
	}
	latest = *np;
	if (more++ > 0)
		return;
	if (!event_initialized(&late)) {
		event_assign(&late, child_base, -1, 0, report_more, NULL);
		event_priority_set(&late, 1);
	}
	set_timer(&late, LATE_MS);
}

/* Read one datagram, if there is one; only the kernel's count. */
static bool
read_one(int fd)
{
	static uint8_t		 buf[DATAGRAM_MAX];
	struct sockaddr_nl	 from;
	struct iovec		 iov = { buf, sizeof(buf) };
	struct msghdr		 msg = { .msg_name = &from,
	    .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1 };
	struct nflog_packet	 np;
	const uint8_t		*data = buf;
	size_t			 len;
	ssize_t			 n;

	if ((n = recvmsg(fd, &msg, MSG_DONTWAIT)) == -1) {
		/* ENOBUFS: the kernel dropped reports, more may follow. */
		return errno == ENOBUFS;
	}
	if (msg.msg_namelen != sizeof(from) || from.nl_pid != 0)
		return true;
	for (len = (size_t)n; nflog_next(&data, &len, &np); )
		refused(&np);
	return true;
}

void
nflog_read(evutil_socket_t fd, short what, void *arg)
{
	int	 i;

	(void)what, (void)arg;
	for (i = 0; i < BATCH && read_one(fd); i++)
		;
}
