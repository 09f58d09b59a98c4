/* SPDX-License-Identifier: ISC */

/*
 * tlsengine/nflog.c: what is read of a packet that the fence refused, from
 * reports made up here as the kernel makes them.
 */

#include <sys/socket.h>

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

#include <netinet/in.h>

#include "common/addr.h"
#include "test.h"
#include "tlsengine/nflog.h"

#define PACKET	(NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET)

static uint8_t	 datagram[4096];
static size_t	 len;

static void
add(const void *data, size_t n)
{
	CHECK(len + n <= sizeof(datagram));
	memcpy(datagram + len, data, n);
	len += n;
}

static void
add_attribute(uint16_t type, const void *data, size_t n)
{
	struct nlattr	 na = { (uint16_t)(sizeof(na) + n), type };

	add(&na, sizeof(na));
	add(data, n);
	add("\0\0\0", NLA_ALIGN(n) - n);
}

/* A report with the attributes that come before and behind a packet. */
static void
add_report(uint16_t type, const void *packet, size_t n)
{
	struct nlmsghdr	 nh = { .nlmsg_type = type };
	struct nfgenmsg	 nf = { .nfgen_family = AF_INET };
	size_t		 start = len;

	add(&nh, sizeof(nh));
	add(&nf, sizeof(nf));
	add_attribute(NFULA_PACKET_HDR, "\x08\0\3\0", 4);
	add_attribute(NFULA_PREFIX, "", 1);
	add_attribute(NFULA_PAYLOAD, packet, n);
	add_attribute(NFULA_SEQ, "\0\0\0\1", 4);
	nh.nlmsg_len = (uint32_t)(len - start);
	memcpy(datagram + start, &nh, sizeof(nh));
}

static size_t
v4(uint8_t *p, uint8_t protocol, const char *dest, uint16_t port)
{
	struct addr	 ad;

	memset(p, 0, 28);
	p[0] = 0x45;
	p[9] = protocol;
	CHECK_FOR(dest, addr_parse(dest, &ad) == 0);
	memcpy(p + 16, ad.ad_bytes, 4);
	p[22] = (uint8_t)(port >> 8);
	p[23] = (uint8_t)port;
	return 28;
}

/* With room for extension headers between the two that it writes. */
static size_t
v6(uint8_t *p, uint8_t next, size_t gap, const char *dest, uint16_t port)
{
	struct addr	 ad;

	memset(p, 0, 48 + gap);
	p[0] = 0x60;
	p[6] = next;
	CHECK_FOR(dest, addr_parse(dest, &ad) == 0);
	memcpy(p + 24, ad.ad_bytes, 16);
	p[40 + gap + 2] = (uint8_t)(port >> 8);
	p[40 + gap + 3] = (uint8_t)port;
	return 48 + gap;
}

static void
check_packet(const uint8_t **data, size_t *left, enum protocol protocol,
    const char *dest, uint16_t port)
{
	struct nflog_packet	 np;
	char			 text[ADDR_STRLEN];

	CHECK_INT(nflog_next(data, left, &np), 1);
	CHECK_INT(np.np_protocol, protocol);
	CHECK_STR(addr_format(&np.np_dest, text, sizeof(text)), dest);
	CHECK_INT(np.np_port, port);
}

static void
check_only(enum protocol protocol, const char *dest, uint16_t port)
{
	struct nflog_packet	 np;
	const uint8_t		*data = datagram;
	size_t			 left = len;

	check_packet(&data, &left, protocol, dest, port);
	CHECK_INT(nflog_next(&data, &left, &np), 0);
}

static void
check_nothing(void)
{
	struct nflog_packet	 np;
	const uint8_t		*data = datagram;
	size_t			 left = len;

	CHECK_INT(nflog_next(&data, &left, &np), 0);
}

static void
one(const uint8_t *packet, size_t n)
{
	len = 0;
	add_report(PACKET, packet, n);
}

TEST(udp_and_tcp)
{
	uint8_t	 p[64];

	one(p, v4(p, IPPROTO_UDP, "192.0.2.7", 443));
	check_only(PROTOCOL_UDP, "192.0.2.7", 443);
	one(p, v4(p, IPPROTO_TCP, "198.18.0.9", 65001));
	check_only(PROTOCOL_TCP, "198.18.0.9", 65001);
	one(p, v6(p, IPPROTO_UDP, 0, "2001:db8::1", 53));
	check_only(PROTOCOL_UDP, "2001:db8::1", 53);
}

TEST(without_ports)
{
	uint8_t	 p[64];

	one(p, v4(p, IPPROTO_ICMP, "192.0.2.7", 9));
	check_only(PROTOCOL_ICMP, "192.0.2.7", 0);
	one(p, v6(p, IPPROTO_ICMPV6, 0, "2001:db8::1", 9));
	check_only(PROTOCOL_ICMP, "2001:db8::1", 0);
	one(p, v4(p, IPPROTO_GRE, "192.0.2.7", 9));
	check_only(PROTOCOL_OTHER, "192.0.2.7", 0);
	one(p, v4(p, IPPROTO_SCTP, "192.0.2.7", 9));
	check_only(PROTOCOL_OTHER, "192.0.2.7", 9);
}

TEST(options_and_fragments)
{
	uint8_t	 p[64];
	size_t	 n;

	n = v4(p, IPPROTO_UDP, "192.0.2.7", 0);
	memmove(p + 24, p + 20, n - 20);
	p[0] = 0x46;
	p[26] = 0x01, p[27] = 0xbb;
	one(p, n + 4);
	check_only(PROTOCOL_UDP, "192.0.2.7", 443);
	/* A later fragment has no header of its own. */
	n = v4(p, IPPROTO_UDP, "192.0.2.7", 443);
	p[7] = 1;
	one(p, n);
	check_only(PROTOCOL_UDP, "192.0.2.7", 0);
}

TEST(extension_headers)
{
	uint8_t	 p[128];
	size_t	 n;

	n = v6(p, IPPROTO_HOPOPTS, 24, "2001:db8::1", 443);
	p[40] = IPPROTO_FRAGMENT;
	p[48] = IPPROTO_DSTOPTS;
	p[56] = IPPROTO_UDP;
	one(p, n);
	check_only(PROTOCOL_UDP, "2001:db8::1", 443);
	p[51] = 8;
	one(p, n);
	check_only(PROTOCOL_OTHER, "2001:db8::1", 0);
	/* Longer than the packet. */
	n = v6(p, IPPROTO_HOPOPTS, 8, "2001:db8::1", 443);
	p[40] = IPPROTO_UDP;
	p[41] = 255;
	one(p, n);
	check_only(PROTOCOL_UDP, "2001:db8::1", 0);
}

TEST(several_in_one_datagram)
{
	struct nflog_packet	 np;
	const uint8_t		*data = datagram;
	uint8_t			 p[64];
	size_t			 left, n = v4(p, IPPROTO_UDP, "192.0.2.1", 1);

	len = 0;
	add_report(PACKET, p, n);
	add_report(NLMSG_DONE, p, n);
	add_report(PACKET, "", 0);
	n = v4(p, IPPROTO_UDP, "192.0.2.2", 2);
	add_report(PACKET, p, n);
	left = len;
	check_packet(&data, &left, PROTOCOL_UDP, "192.0.2.1", 1);
	check_packet(&data, &left, PROTOCOL_UDP, "192.0.2.2", 2);
	CHECK_INT(nflog_next(&data, &left, &np), 0);
	CHECK_INT(left, 0);
}

TEST(no_packet)
{
	uint8_t	 p[64] = { 0 };

	len = 0;
	check_nothing();
	one(p, 0);
	check_nothing();
	v4(p, IPPROTO_UDP, "192.0.2.1", 1);
	one(p, 19);
	check_nothing();
	p[0] = 0x44;
	one(p, 28);
	check_nothing();
	p[0] = 0x4f;
	one(p, 28);
	check_nothing();
	p[0] = 0x55;
	one(p, 28);
	check_nothing();
	v6(p, IPPROTO_UDP, 0, "2001:db8::1", 1);
	one(p, 39);
	check_nothing();
}

/* Whatever is cut off, nothing is made up. */
TEST(truncated)
{
	struct nflog_packet	 np;
	const uint8_t		*data;
	uint8_t			 p[64], *copy;
	size_t			 n, left;

	one(p, v4(p, IPPROTO_UDP, "192.0.2.7", 443));
	for (n = 0; n < len; n++) {
		/* Its own size, for a sanitizer to see what is behind. */
		CHECK((copy = malloc(n + 1)) != NULL);
		memcpy(copy, datagram, n);
		data = copy;
		left = n;
		CHECK_INT(nflog_next(&data, &left, &np), 0);
		free(copy);
	}
}

TEST_MAIN("nflog")
