/* SPDX-License-Identifier: ISC */

/* Tests of common/addr.c. */

#include "test.h"

#include "../../common/addr.h"

#define NITEMS(a)	(sizeof(a) / sizeof((a)[0]))

static struct addr
addr(const char *text)
{
	struct addr	 ad;

	CHECK_FOR(text, addr_parse(text, &ad) == 0);
	return ad;
}

TEST(parse_and_format)
{
	static const struct {
		const char	*in, *out;
	} good[] = {
		{ "127.0.0.1", "127.0.0.1" },
		{ "0.0.0.0", "0.0.0.0" },
		{ "255.255.255.255", "255.255.255.255" },
		{ "::", "::" },
		{ "0:0:0:0:0:0:0:1", "::1" },
		{ "2001:DB8::A", "2001:db8::a" },
		{ "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
		{ "2001:0:0:1:0:0:0:1", "2001:0:0:1::1" },
		{ "::ffff:7f00:1", "::ffff:127.0.0.1" },
		{ "64:ff9b::1.2.3.4", "64:ff9b::102:304" },
	};
	char		 buf[ADDR_STRLEN];
	struct addr	 ad;
	size_t		 i;

	for (i = 0; i < NITEMS(good); i++) {
		ad = addr(good[i].in);
		CHECK_STR(addr_format(&ad, buf, sizeof(buf)), good[i].out);
	}
	memset(&ad, 0, sizeof(ad));
	CHECK_STR(addr_format(&ad, buf, sizeof(buf)), "invalid");
}

TEST(parse_refuses)
{
	static const char *const	 bad[] = {
		"", " 127.0.0.1", "127.0.0.1 ", "127.1", "0x7f.1", "0x7f.0.0.1",
		"2130706433", "0177.0.0.1", "127.0.0.01", "1.2.3.256",
		"1.2.3.4.", "1.2.3.4.5", "1.2.3", "+1.2.3.4", "1..2.3",
		"[::1]", "::1%lo", "fe80::1%1", ":::", "1::2::3", "12345::",
		"::1/128", "1.2.3.4/32", "::ffff:1.2.3.04", "1:2:3:4:5:6:7",
		"1:2:3:4:5:6:7:8:9", "::g", "1.2.3.4:80", "localhost",
		"\xef\xbc\x91.0.0.1"
	};
	static const struct addr	 zero;
	struct addr			 ad;
	size_t				 i;

	for (i = 0; i < NITEMS(bad); i++) {
		CHECK_FOR(bad[i], addr_parse(bad[i], &ad) == -1);
		CHECK_FOR(bad[i], addr_cmp(&ad, &zero) == 0);
	}
}

TEST(cmp)
{
	struct addr	 a = addr("10.0.0.1"), b = addr("10.0.0.2");
	struct addr	 c = addr("a00:1::"), a2 = addr("10.0.0.1");

	CHECK_INT(addr_cmp(&a, &a2), 0);
	CHECK(addr_cmp(&a, &b) < 0 && addr_cmp(&b, &a) > 0);
	CHECK(addr_cmp(&a, &c) != 0);
	CHECK((addr_cmp(&a, &c) < 0) == (addr_cmp(&c, &a) > 0));
}

TEST(sockaddr)
{
	static const char *const	 texts[] = {
		"192.0.2.7", "2001:db8::7"
	};
	struct sockaddr_storage		 ss;
	struct addr			 ad, back;
	socklen_t			 len;
	uint16_t			 port;
	size_t				 i;

	for (i = 0; i < NITEMS(texts); i++) {
		ad = addr(texts[i]);
		len = addr_to_sockaddr(&ad, 8443, &ss);
		CHECK_INT(ss.ss_family, ad.ad_af);
		port = 0;
		CHECK_INT(addr_from_sockaddr((struct sockaddr *)&ss, len, &back,
		    &port), 0);
		CHECK_INT(addr_cmp(&ad, &back), 0);
		CHECK_INT(port, 8443);
		CHECK_INT(addr_from_sockaddr((struct sockaddr *)&ss, len, &back,
		    NULL), 0);
		CHECK_INT(addr_from_sockaddr((struct sockaddr *)&ss, len - 1,
		    &back, NULL), -1);
	}
	ss.ss_family = AF_UNIX;
	CHECK_INT(addr_from_sockaddr((struct sockaddr *)&ss, sizeof(ss), &back,
	    NULL), -1);
	CHECK_INT(addr_from_sockaddr((struct sockaddr *)&ss, 0, &back, NULL),
	    -1);
	CHECK_INT(ntohs(((struct sockaddr_in6 *)&ss)->sin6_port), 8443);
}

/* Both edges of each range, and the neighbours just outside. */
static const struct {
	const char	*text;
	enum addr_class	 class;
} classes[] = {
	{ "1.1.1.1", ADDR_GLOBAL },
	{ "140.82.121.6", ADDR_GLOBAL },
	{ "0.0.0.0", ADDR_THISNET },
	{ "0.255.255.255", ADDR_THISNET },
	{ "1.0.0.0", ADDR_GLOBAL },
	{ "9.255.255.255", ADDR_GLOBAL },
	{ "10.0.0.0", ADDR_PRIVATE },
	{ "10.255.255.255", ADDR_PRIVATE },
	{ "11.0.0.0", ADDR_GLOBAL },
	{ "100.63.255.255", ADDR_GLOBAL },
	{ "100.64.0.0", ADDR_CGNAT },
	{ "100.100.100.199", ADDR_CGNAT },
	{ "100.100.100.200", ADDR_METADATA },
	{ "100.127.255.255", ADDR_CGNAT },
	{ "100.128.0.0", ADDR_GLOBAL },
	{ "126.255.255.255", ADDR_GLOBAL },
	{ "127.0.0.1", ADDR_LOOPBACK },
	{ "127.255.255.255", ADDR_LOOPBACK },
	{ "128.0.0.0", ADDR_GLOBAL },
	{ "168.63.129.16", ADDR_METADATA },
	{ "168.63.129.17", ADDR_GLOBAL },
	{ "169.253.255.255", ADDR_GLOBAL },
	{ "169.254.0.0", ADDR_LINKLOCAL },
	{ "169.254.169.254", ADDR_METADATA },
	{ "169.254.170.2", ADDR_LINKLOCAL },
	{ "169.254.255.255", ADDR_LINKLOCAL },
	{ "169.255.0.0", ADDR_GLOBAL },
	{ "172.15.255.255", ADDR_GLOBAL },
	{ "172.16.0.0", ADDR_PRIVATE },
	{ "172.31.255.255", ADDR_PRIVATE },
	{ "172.32.0.0", ADDR_GLOBAL },
	{ "192.0.0.0", ADDR_RESERVED },
	{ "192.0.0.192", ADDR_METADATA },
	{ "192.0.0.255", ADDR_RESERVED },
	{ "192.0.1.0", ADDR_GLOBAL },
	{ "192.0.2.1", ADDR_RESERVED },
	{ "192.0.3.0", ADDR_GLOBAL },
	{ "192.88.99.1", ADDR_RESERVED },
	{ "192.167.255.255", ADDR_GLOBAL },
	{ "192.168.0.0", ADDR_PRIVATE },
	{ "192.168.255.255", ADDR_PRIVATE },
	{ "192.169.0.0", ADDR_GLOBAL },
	{ "198.17.255.255", ADDR_GLOBAL },
	{ "198.18.0.0", ADDR_BENCHMARK },
	{ "198.19.255.255", ADDR_BENCHMARK },
	{ "198.20.0.0", ADDR_GLOBAL },
	{ "198.51.100.1", ADDR_RESERVED },
	{ "203.0.113.1", ADDR_RESERVED },
	{ "223.255.255.255", ADDR_GLOBAL },
	{ "224.0.0.1", ADDR_MULTICAST },
	{ "239.255.255.255", ADDR_MULTICAST },
	{ "240.0.0.0", ADDR_RESERVED },
	{ "255.255.255.255", ADDR_RESERVED },

	{ "2606:4700:4700::1111", ADDR_GLOBAL },
	{ "2000::", ADDR_GLOBAL },
	{ "3ffe:ffff::1", ADDR_GLOBAL },
	{ "::", ADDR_THISNET },
	{ "::1", ADDR_LOOPBACK },
	{ "::2", ADDR_THISNET },
	{ "1::1", ADDR_RESERVED },
	{ "100::1", ADDR_RESERVED },
	{ "100:0:0:1::1", ADDR_RESERVED },
	{ "1fff:ffff::", ADDR_RESERVED },
	{ "2001:1::1", ADDR_RESERVED },
	{ "2001:2::1", ADDR_BENCHMARK },
	{ "2001:2:1::1", ADDR_RESERVED },
	{ "2001:20::1", ADDR_RESERVED },
	{ "2001:1ff:ffff::1", ADDR_RESERVED },
	{ "2001:200::1", ADDR_GLOBAL },
	{ "2001:db7:ffff::1", ADDR_GLOBAL },
	{ "2001:db8::1", ADDR_RESERVED },
	{ "2001:db8:ffff::1", ADDR_RESERVED },
	{ "2001:db9::1", ADDR_GLOBAL },
	{ "3fff::1", ADDR_RESERVED },
	{ "3fff:fff::1", ADDR_RESERVED },
	{ "3fff:1000::1", ADDR_GLOBAL },
	{ "4000::1", ADDR_RESERVED },
	{ "5f00::1", ADDR_RESERVED },
	{ "fbff::1", ADDR_RESERVED },
	{ "fc00::1", ADDR_PRIVATE },
	{ "fdff:ffff::1", ADDR_PRIVATE },
	{ "fe00::1", ADDR_RESERVED },
	{ "fe80::1", ADDR_LINKLOCAL },
	{ "fe80::a9fe:a9fe", ADDR_LINKLOCAL },
	{ "febf:ffff::1", ADDR_LINKLOCAL },
	{ "fec0::1", ADDR_RESERVED },
	{ "feff::1", ADDR_RESERVED },
	{ "ff02::1", ADDR_MULTICAST },
	{ "ffff::1", ADDR_MULTICAST },
	{ "fd00:ec2::254", ADDR_METADATA },
	{ "fd00:ec2::23", ADDR_METADATA },
	{ "fd00:ec3::254", ADDR_PRIVATE },
	{ "fd20:ce::254", ADDR_METADATA },
	{ "fd00:c1::a9fe:a9fe", ADDR_METADATA },
	{ "fd00:42::42", ADDR_METADATA },
	{ "fd00:a9fe:a9fe::1", ADDR_METADATA },
	{ "fd00:100::100:200", ADDR_METADATA },
};

TEST(classify)
{
	struct addr	 ad;
	char		 text[128];
	size_t		 i;

	for (i = 0; i < NITEMS(classes); i++) {
		ad = addr(classes[i].text);
		snprintf(text, sizeof(text), "%s (%s)", classes[i].text,
		    addr_class_name(addr_classify(&ad)));
		CHECK_FOR(text, addr_classify(&ad) == classes[i].class);
	}
	memset(&ad, 0, sizeof(ad));
	CHECK_INT(addr_classify(&ad), ADDR_RESERVED);
	ad.ad_af = AF_UNIX;
	CHECK_INT(addr_classify(&ad), ADDR_RESERVED);
}

static const struct {
	const char	*text;
	enum addr_class	 class;
} embeddings[] = {
	{ "::ffff:8.8.8.8", ADDR_GLOBAL },
	{ "::ffff:127.0.0.1", ADDR_LOOPBACK },
	{ "::ffff:7f00:1", ADDR_LOOPBACK },
	{ "::ffff:169.254.169.254", ADDR_METADATA },
	{ "::ffff:10.0.0.1", ADDR_PRIVATE },
	{ "::ffff:0.0.0.0", ADDR_THISNET },
	{ "::8.8.8.8", ADDR_RESERVED },
	{ "::127.0.0.1", ADDR_LOOPBACK },
	{ "::169.254.169.254", ADDR_METADATA },
	{ "::10.0.0.1", ADDR_RESERVED },
	{ "::ffff:0:8.8.8.8", ADDR_RESERVED },
	{ "::ffff:0:127.0.0.1", ADDR_LOOPBACK },
	{ "64:ff9b::8.8.8.8", ADDR_GLOBAL },
	{ "64:ff9b::127.0.0.1", ADDR_LOOPBACK },
	{ "64:ff9b::169.254.169.254", ADDR_METADATA },
	{ "64:ff9b::100.100.100.200", ADDR_METADATA },
	{ "64:ff9b::192.168.1.1", ADDR_PRIVATE },
	{ "64:ff9b::100.64.0.1", ADDR_CGNAT },
	{ "64:ff9b:0:0:0:1::", ADDR_RESERVED },
	{ "64:ff9b:1::8.8.8.8", ADDR_RESERVED },
	{ "64:ff9b:1::169.254.169.254", ADDR_METADATA },
	{ "64:ff9b:1::10.0.0.1", ADDR_RESERVED },
	{ "64:ff9b:1:a9fe:a9:fe00:808:808", ADDR_RESERVED },
	{ "64:ff9b:2::8.8.8.8", ADDR_RESERVED },
	{ "2002:808:808::1", ADDR_GLOBAL },
	{ "2002:7f00:1::1", ADDR_LOOPBACK },
	{ "2002:a9fe:a9fe::", ADDR_METADATA },
	{ "2002:6464:64c8::1", ADDR_METADATA },
	{ "2002:a00:1::1", ADDR_PRIVATE },
	{ "2002:c612:1::1", ADDR_BENCHMARK },
	/* Teredo: server, then client inverted. */
	{ "2001:0:4136:e378:8000:63bf:3fff:fdd2", ADDR_RESERVED },
	{ "2001:0:4136:e378:8000:63bf:f7f7:f7f7", ADDR_GLOBAL },
	{ "2001:0:4136:e378:8000:63bf:5601:5601", ADDR_METADATA },
	{ "2001:0:4136:e378:8000:63bf:80ff:fffe", ADDR_LOOPBACK },
	{ "2001:0:7f00:1:8000:63bf:f7f7:f7f7", ADDR_LOOPBACK },
	{ "2001:0:a00:1:8000:63bf:f7f7:f7f7", ADDR_PRIVATE },
	/* ISATAP, universal bit clear and set; and one that is not. */
	{ "2606:4700::5efe:8.8.8.8", ADDR_GLOBAL },
	{ "2606:4700::5efe:127.0.0.1", ADDR_LOOPBACK },
	{ "2606:4700::200:5efe:169.254.169.254", ADDR_METADATA },
	{ "2606:4700::5efe:10.0.0.1", ADDR_PRIVATE },
	{ "2606:4700::100:5efe:10.0.0.1", ADDR_GLOBAL },
	{ "fd00::5efe:8.8.8.8", ADDR_PRIVATE },
	{ "fd00::5efe:127.0.0.1", ADDR_LOOPBACK },
	{ "fe80::5efe:10.0.0.1", ADDR_LINKLOCAL },
	/* Two layers of one address. */
	{ "2002:808:808::5efe:127.0.0.1", ADDR_LOOPBACK },
	{ "2001:0:4136:e378:0:5efe:80ff:fffe", ADDR_LOOPBACK },
	{ "2001:0:4136:e378:0:5efe:a9fe:a9fe", ADDR_METADATA },
};

TEST(classify_embedded)
{
	struct addr	 ad;
	char		 text[128];
	size_t		 i;

	for (i = 0; i < NITEMS(embeddings); i++) {
		ad = addr(embeddings[i].text);
		snprintf(text, sizeof(text), "%s (%s)", embeddings[i].text,
		    addr_class_name(addr_classify(&ad)));
		CHECK_FOR(text, addr_classify(&ad) == embeddings[i].class);
	}
}

TEST(embedded_lists_all)
{
	struct addr	 v4[ADDR_EMBED_MAX], ad;
	char		 buf[ADDR_STRLEN];

	ad = addr("2001:0:102:304:0:5efe:506:708");
	CHECK_INT(addr_embedded(&ad, v4), 3);
	CHECK_STR(addr_format(&v4[0], buf, sizeof(buf)), "1.2.3.4");
	CHECK_STR(addr_format(&v4[1], buf, sizeof(buf)), "250.249.248.247");
	CHECK_STR(addr_format(&v4[2], buf, sizeof(buf)), "5.6.7.8");
	ad = addr("1.2.3.4");
	CHECK_INT(addr_embedded(&ad, v4), 0);
	ad = addr("2606:4700::1");
	CHECK_INT(addr_embedded(&ad, v4), 0);
}

TEST(openable)
{
	int	 class;

	for (class = 0; class < ADDR_NCLASSES; class++)
		CHECK_FOR(addr_class_name((enum addr_class)class),
		    addr_class_openable((enum addr_class)class) ==
		    (class == ADDR_PRIVATE || class == ADDR_CGNAT));
	CHECK_STR(addr_class_name(ADDR_METADATA), "metadata");
	CHECK_STR(addr_class_name(ADDR_NCLASSES), "invalid");
}

TEST(prefix_parse)
{
	static const struct {
		const char	*in, *out;
	} good[] = {
		{ "10.0.0.0/8", "10.0.0.0/8" },
		{ "0.0.0.0/0", "0.0.0.0/0" },
		{ "10.1.2.3", "10.1.2.3/32" },
		{ "10.1.2.3/32", "10.1.2.3/32" },
		{ "10.1.2.2/31", "10.1.2.2/31" },
		{ "172.16.0.0/12", "172.16.0.0/12" },
		{ "::/0", "::/0" },
		{ "FD00::/8", "fd00::/8" },
		{ "2001:db8::1", "2001:db8::1/128" },
		{ "2001:db8::/33", "2001:db8::/33" },
	};
	struct prefix	 pf;
	const char	*why = NULL;
	char		 buf[PREFIX_STRLEN];
	size_t		 i;

	for (i = 0; i < NITEMS(good); i++) {
		CHECK_FOR(good[i].in, prefix_parse(good[i].in, &pf,
		    &why) == 0);
		CHECK_FOR(good[i].in, prefix_valid(&pf));
		CHECK_STR(prefix_format(&pf, buf, sizeof(buf)), good[i].out);
	}
	CHECK_STR(why, NULL);
}

TEST(prefix_refuses)
{
	static const struct {
		const char	*in, *why;
	} bad[] = {
		{ "", "bad address" },
		{ "/8", "bad address" },
		{ "10.0.0.0/", "0 to 32" },
		{ "10.0.0.0/33", "0 to 32" },
		{ "10.0.0.0/08", "0 to 32" },
		{ "10.0.0.0/-1", "0 to 32" },
		{ "10.0.0.0/+8", "0 to 32" },
		{ "10.0.0.0/ 8", "0 to 32" },
		{ "10.0.0.0/8 ", "0 to 32" },
		{ "10.0.0.0/8/8", "0 to 32" },
		{ "10.0.0.0/4294967304", "0 to 32" },
		{ "10.0.0.0/255.0.0.0", "0 to 32" },
		{ "::/129", "0 to 128" },
		{ "10/8", "bad address" },
		{ "10.0.0.1/8", "bits set" },
		{ "10.0.0.1/31", "bits set" },
		{ "10.128.0.0/8", "bits set" },
		{ "0.0.0.1/0", "bits set" },
		{ "2001:db8::1/127", "bits set" },
		{ "2001:db8:8000::/32", "bits set" },
	};
	struct prefix	 pf;
	const char	*why;
	size_t		 i;

	for (i = 0; i < NITEMS(bad); i++) {
		why = NULL;
		CHECK_FOR(bad[i].in, prefix_parse(bad[i].in, &pf, &why) == -1);
		CHECK_FOR(bad[i].in, why != NULL &&
		    strstr(why, bad[i].why) != NULL);
		CHECK_FOR(bad[i].in, !prefix_valid(&pf));
	}
	CHECK_INT(prefix_parse("x", &pf, NULL), -1);
}

TEST(prefix_match)
{
	static const struct {
		const char	*prefix, *addr;
		int		 match;
	} cases[] = {
		{ "10.0.0.0/8", "10.255.0.1", 1 },
		{ "10.0.0.0/8", "11.0.0.1", 0 },
		{ "10.0.0.0/9", "10.127.255.255", 1 },
		{ "10.0.0.0/9", "10.128.0.0", 0 },
		{ "10.0.0.2/31", "10.0.0.3", 1 },
		{ "10.0.0.2/31", "10.0.0.4", 0 },
		{ "10.0.0.2", "10.0.0.2", 1 },
		{ "10.0.0.2", "10.0.0.3", 0 },
		{ "0.0.0.0/0", "255.255.255.255", 1 },
		{ "0.0.0.0/0", "::", 0 },
		{ "::/0", "0.0.0.0", 0 },
		{ "10.0.0.0/8", "::ffff:10.0.0.1", 0 },
		{ "a00::/8", "10.0.0.0", 0 },
		{ "fd00::/8", "fdff::1", 1 },
		{ "fd00::/8", "fc00::1", 0 },
	};
	struct prefix	 pf;
	struct addr	 ad;
	size_t		 i;

	for (i = 0; i < NITEMS(cases); i++) {
		CHECK_INT(prefix_parse(cases[i].prefix, &pf, NULL), 0);
		ad = addr(cases[i].addr);
		CHECK_FOR(cases[i].addr,
		    prefix_match(&pf, &ad) == cases[i].match);
	}
}

/* As a careless decoder might leave it. */
TEST(prefix_from_a_peer)
{
	struct prefix	 pf;
	struct addr	 ad = addr("::");

	memset(&pf, 0, sizeof(pf));
	CHECK(!prefix_valid(&pf) && !prefix_match(&pf, &pf.pf_addr));
	pf.pf_addr.ad_af = AF_INET6;
	CHECK(prefix_valid(&pf) && prefix_match(&pf, &ad));
	pf.pf_len = 255;
	CHECK(!prefix_valid(&pf) && !prefix_match(&pf, &ad));
	pf.pf_addr.ad_af = AF_INET;
	pf.pf_len = 33;
	CHECK(!prefix_valid(&pf));
}

TEST_MAIN("addr")
