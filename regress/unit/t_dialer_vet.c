/* SPDX-License-Identifier: ISC */


/*
 * The address policy, as a table: each class of address, alone and with
 * everything that a rule can open, and against what the operator closes.
 */

#include "dialer/dialer.h"
#include "test.h"

static struct slice	 slice;
static struct closed	 closed[2];

static void
close_nets(const char *a, const char *b)
{
	TAILQ_INIT(&slice.sl_closed);
	CHECK(a == NULL || prefix_parse(a, &closed[0].cl_prefix, NULL) == 0);
	CHECK(b == NULL || prefix_parse(b, &closed[1].cl_prefix, NULL) == 0);
	if (a != NULL)
		TAILQ_INSERT_TAIL(&slice.sl_closed, &closed[0], cl_entry);
	if (b != NULL)
		TAILQ_INSERT_TAIL(&slice.sl_closed, &closed[1], cl_entry);
}

/* net may be NULL. */
static const char *
judge(const char *text, bool private, const char *net)
{
	struct permit	 pm = { .pm_private = private };
	struct prefix	 pf;
	struct addr	 ad;

	CHECK_FOR(text, addr_parse(text, &ad) == 0);
	if (net != NULL) {
		CHECK_FOR(net, prefix_parse(net, &pf, NULL) == 0);
		pm.pm_nets = &pf;
		pm.pm_nnets = 1;
	}
	return vet(&slice, &pm, &ad);
}

/* What a rule can do for an address: nothing needed, something, nothing. */
enum { ALWAYS, BY_RULE, NEVER };

static const struct {
	const char	*address;
	const char	*word;		/* of the refusal */
	int		 when;
} rows[] = {
	{ "8.8.8.8", NULL, ALWAYS },
	{ "11.0.0.1", NULL, ALWAYS },
	{ "2a00::1", NULL, ALWAYS },
	{ "64:ff9b::808:808", NULL, ALWAYS },
	{ "10.1.2.3", "private", BY_RULE },
	{ "172.16.0.1", "private", BY_RULE },
	{ "192.168.0.1", "private", BY_RULE },
	{ "100.64.0.1", "cgnat", BY_RULE },
	{ "fd12::1", "private", BY_RULE },
	{ "::ffff:10.1.2.3", "private", BY_RULE },
	{ "64:ff9b::a01:203", "private", BY_RULE },
	{ "2002:a01:203::1", "private", BY_RULE },
	{ "0.0.0.0", "this-network", NEVER },
	{ "0.1.2.3", "this-network", NEVER },
	{ "127.0.0.1", "loopback", NEVER },
	{ "127.255.0.1", "loopback", NEVER },
	{ "169.254.0.1", "link-local", NEVER },
	{ "169.254.169.254", "metadata", NEVER },
	{ "100.100.100.200", "metadata", NEVER },
	{ "168.63.129.16", "metadata", NEVER },
	{ "192.0.0.192", "metadata", NEVER },
	{ "192.0.2.1", "reserved", NEVER },
	{ "198.18.0.1", "benchmark", NEVER },
	{ "198.19.255.255", "benchmark", NEVER },
	{ "203.0.113.9", "reserved", NEVER },
	{ "224.0.0.1", "multicast", NEVER },
	{ "240.0.0.1", "reserved", NEVER },
	{ "255.255.255.255", "reserved", NEVER },
	{ "::", "this-network", NEVER },
	{ "::1", "loopback", NEVER },
	{ "fe80::1", "link-local", NEVER },
	{ "ff02::1", "multicast", NEVER },
	{ "fd00:ec2::254", "metadata", NEVER },
	{ "fd20:ce::254", "metadata", NEVER },
	{ "2001:db8::1", "reserved", NEVER },
	{ "::ffff:127.0.0.1", "loopback", NEVER },
	{ "::ffff:169.254.169.254", "metadata", NEVER },
	{ "64:ff9b::7f00:1", "loopback", NEVER },
	{ "64:ff9b::a9fe:a9fe", "metadata", NEVER },
	{ "2002:7f00:1::1", "loopback", NEVER },
	{ "2002:a9fe:a9fe::", "metadata", NEVER },
	{ "2001:0:a9fe:a9fe::", "metadata", NEVER },
};

#define NROWS	(sizeof(rows) / sizeof(rows[0]))

static bool
is_v6(const char *address)
{
	return strchr(address, ':') != NULL;
}

TEST(without_permission)
{
	const char	*got;
	size_t		 i;

	close_nets(NULL, NULL);
	for (i = 0; i < NROWS; i++) {
		got = judge(rows[i].address, false, NULL);
		CHECK_FOR(rows[i].address, (got == NULL) ==
		    (rows[i].when == ALWAYS));
		if (got != NULL)
			CHECK_STR(got, rows[i].word);
	}
}

TEST(to_private)
{
	size_t	 i;

	close_nets(NULL, NULL);
	for (i = 0; i < NROWS; i++)
		CHECK_FOR(rows[i].address,
		    (judge(rows[i].address, true, NULL) == NULL) ==
		    (rows[i].when != NEVER));
}

/* The widest prefix opens no more than `to private' does. */
TEST(everything)
{
	const char	*net;
	size_t		 i;

	close_nets(NULL, NULL);
	for (i = 0; i < NROWS; i++) {
		net = is_v6(rows[i].address) ? "::/0" : "0.0.0.0/0";
		CHECK_FOR(rows[i].address,
		    (judge(rows[i].address, false, net) == NULL) ==
		    (rows[i].when != NEVER));
		CHECK_FOR(rows[i].address,
		    (judge(rows[i].address, true, net) == NULL) ==
		    (rows[i].when != NEVER));
	}
}

/* A prefix that holds just the address, and one beside it. */
TEST(own_prefix)
{
	size_t	 i;

	close_nets(NULL, NULL);
	for (i = 0; i < NROWS; i++) {
		CHECK_FOR(rows[i].address,
		    (judge(rows[i].address, false, rows[i].address) == NULL) ==
		    (rows[i].when != NEVER));
		CHECK_FOR(rows[i].address, (judge(rows[i].address, false,
		    is_v6(rows[i].address) ? "fd99::/16" : "10.99.0.0/16") ==
		    NULL) == (rows[i].when == ALWAYS));
	}
}

/* A rule for IPv4 does not open the IPv6 spelling of the same place. */
TEST(other_family)
{
	close_nets(NULL, NULL);
	CHECK_STR(judge("::ffff:10.1.2.3", false, "10.0.0.0/8"), "private");
	CHECK_STR(judge("64:ff9b::a01:203", false, "10.0.0.0/8"), "private");
	CHECK_STR(judge("10.1.2.3", false, "::/0"), "private");
}

TEST(closed)
{
	close_nets("8.8.0.0/16", "10.0.0.0/8");
	CHECK_STR(judge("8.8.8.8", false, NULL), "closed");
	CHECK_STR(judge("8.8.8.8", true, "8.8.8.8"), "closed");
	CHECK(judge("8.9.8.8", false, NULL) == NULL);
	CHECK_STR(judge("10.1.2.3", false, NULL), "private");
	CHECK_STR(judge("10.1.2.3", true, NULL), "closed");
	CHECK_STR(judge("10.1.2.3", false, "10.1.2.3"), "closed");
	CHECK(judge("192.168.0.1", true, NULL) == NULL);
}

TEST(closed_when_embedded)
{
	close_nets("8.8.0.0/16", NULL);
	CHECK_STR(judge("::ffff:8.8.8.8", false, NULL), "closed");
	CHECK_STR(judge("64:ff9b::808:808", false, NULL), "closed");
	CHECK_STR(judge("2002:808:808::1", false, NULL), "closed");
	CHECK_STR(judge("2001:0:808:808::f6f6:f6f6", true, "::/0"), "closed");
	CHECK(judge("2a00::808:808", false, NULL) == NULL);
}

TEST(closed_v6)
{
	close_nets("2a00:1::/32", NULL);
	CHECK_STR(judge("2a00:1::5", false, NULL), "closed");
	CHECK(judge("2a00:2::5", false, NULL) == NULL);
	CHECK(judge("8.8.8.8", false, NULL) == NULL);
}

TEST_MAIN("dialer_vet")
