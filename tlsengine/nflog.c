/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: what a report of nfnetlink_log says.  No length in it
 * is believed beyond the bytes that are there; what makes no sense is passed
 * over.
 */

#include <sys/socket.h>

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

#include <netinet/in.h>

#include <string.h>

#include "nflog.h"

#define IPV4_MIN	20
#define IPV6_LEN	40
#define FRAGMENT_V4	0x1fff	/* offset, in the flags' word */
#define FRAGMENT_V6	0xfff8
#define EXTENSIONS_MAX	8
#define PORTS_LEN	4	/* source and destination come first */

/* Bytes not yet read. */
struct view {
	const uint8_t	*vw_data;
	size_t		 vw_len;
};

static uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* 0, or -1 if there are fewer. */
static int
skip(struct view *vw, size_t n)
{
	if (n > vw->vw_len)
		return -1;
	vw->vw_data += n;
	vw->vw_len -= n;
	return 0;
}

/* Read protocol and port from the transport header, if it has ports. */
static void
read_transport(struct view vw, uint8_t number, struct nflog_packet *np)
{
	int	 has_ports = 1;

	switch (number) {
	case IPPROTO_TCP:
		np->np_protocol = PROTOCOL_TCP;
		break;
	case IPPROTO_UDP:
		np->np_protocol = PROTOCOL_UDP;
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		np->np_protocol = PROTOCOL_ICMP;
		has_ports = 0;
		break;
	case IPPROTO_DCCP:
	case IPPROTO_SCTP:
	case IPPROTO_UDPLITE:
		np->np_protocol = PROTOCOL_OTHER;
		break;
	default:
		np->np_protocol = PROTOCOL_OTHER;
		has_ports = 0;
	}
	if (has_ports && vw.vw_len >= PORTS_LEN)
		np->np_port = get16(vw.vw_data + 2);
}

/* RFC 791, 3.1. */
static int
read_v4(struct view vw, struct nflog_packet *np)
{
	const uint8_t	*p = vw.vw_data;
	size_t		 len;

	if (vw.vw_len < IPV4_MIN || (len = (p[0] & 15) * 4) < IPV4_MIN ||
	    skip(&vw, len) == -1)
		return -1;
	np->np_dest.ad_af = AF_INET;
	memcpy(np->np_dest.ad_bytes, p + 16, 4);
	if (get16(p + 6) & FRAGMENT_V4)
		vw.vw_len = 0;
	read_transport(vw, p[9], np);
	return 0;
}

/* RFC 8200, 4.  Extension headers hide what is behind them, for a while. */
static int
read_v6(struct view vw, struct nflog_packet *np)
{
	const uint8_t	*p = vw.vw_data;
	size_t		 len;
	uint8_t		 next;
	int		 i;

	if (skip(&vw, IPV6_LEN) == -1)
		return -1;
	np->np_dest.ad_af = AF_INET6;
	memcpy(np->np_dest.ad_bytes, p + 24, 16);
	next = p[6];
	for (i = 0; i < EXTENSIONS_MAX && vw.vw_len >= 8; i++) {
		p = vw.vw_data;
		if (next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING ||
		    next == IPPROTO_DSTOPTS)
			len = (p[1] + 1) * 8;
		else if (next == IPPROTO_AH)
			len = (p[1] + 2) * 4;
		else if (next == IPPROTO_FRAGMENT)
			len = 8;
		else
			break;
		if (next == IPPROTO_FRAGMENT && (get16(p + 2) & FRAGMENT_V6))
			len = vw.vw_len;
		next = p[0];
		if (skip(&vw, len) == -1)
			vw.vw_len = 0;
	}
	read_transport(vw, next, np);
	return 0;
}

static int
read_packet(struct view vw, struct nflog_packet *np)
{
	memset(np, 0, sizeof(*np));
	if (vw.vw_len == 0)
		return -1;
	switch (vw.vw_data[0] >> 4) {
	case 4:
		return read_v4(vw, np);
	case 6:
		return read_v6(vw, np);
	default:
		return -1;
	}
}

/* The packet among the attributes of a report. */
static int
read_report(struct view vw, struct nflog_packet *np)
{
	struct nlattr	 na;
	struct view	 packet;

	if (skip(&vw, sizeof(struct nfgenmsg)) == -1)
		return -1;
	while (vw.vw_len >= sizeof(na)) {
		memcpy(&na, vw.vw_data, sizeof(na));
		if (na.nla_len < sizeof(na) || na.nla_len > vw.vw_len)
			return -1;
		if ((na.nla_type & NLA_TYPE_MASK) == NFULA_PAYLOAD) {
			packet.vw_data = vw.vw_data + sizeof(na);
			packet.vw_len = na.nla_len - sizeof(na);
			return read_packet(packet, np);
		}
		if (skip(&vw, NLA_ALIGN(na.nla_len)) == -1)
			return -1;
	}
	return -1;
}

int
nflog_next(const uint8_t **data, size_t *len, struct nflog_packet *np)
{
	struct view	 vw = { *data, *len }, report;
	struct nlmsghdr	 nh;
	int		 found = 0;

	while (!found && vw.vw_len >= sizeof(nh)) {
		memcpy(&nh, vw.vw_data, sizeof(nh));
		if (nh.nlmsg_len < sizeof(nh) || nh.nlmsg_len > vw.vw_len)
			break;
		report.vw_data = vw.vw_data + sizeof(nh);
		report.vw_len = nh.nlmsg_len - sizeof(nh);
		found = nh.nlmsg_type ==
		    (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET) &&
		    read_report(report, np) == 0;
		if (skip(&vw, NLMSG_ALIGN(nh.nlmsg_len)) == -1)
			vw.vw_len = 0;
	}
	*data = vw.vw_data;
	*len = vw.vw_len;
	return found;
}
