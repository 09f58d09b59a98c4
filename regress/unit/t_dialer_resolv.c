/* SPDX-License-Identifier: ISC */


/*
 * The name servers of resolv.conf(5), good and bad.
 */

#include "parent/parent.h"
#include "test.h"

struct daemon	 d;

/* The addresses that are found, with spaces between. */
static const char *
parse(const char *text)
{
	static char	 out[256];
	char		 buf[1024], one[ADDR_STRLEN];
	struct addr	 servers[3];
	size_t		 i, n;

	CHECK(strlcpy(buf, text, sizeof(buf)) < sizeof(buf));
	n = resolv_parse(buf, servers, 3);
	out[0] = '\0';
	for (i = 0; i < n; i++) {
		if (i > 0)
			strlcat(out, " ", sizeof(out));
		strlcat(out, addr_format(&servers[i], one, sizeof(one)),
		    sizeof(out));
	}
	return out;
}

static void
quiet(enum log_level level, const char *text)
{
	(void)level, (void)text;
}

TEST(usual)
{
	CHECK_STR(parse("nameserver 1.1.1.1\n"), "1.1.1.1");
	CHECK_STR(parse("nameserver 1.1.1.1"), "1.1.1.1");
	CHECK_STR(parse("# x\nsearch a b\nnameserver 1.1.1.1\n"
	    "options ndots:5\nnameserver 2001:db8::1\n"),
	    "1.1.1.1 2001:db8::1");
	CHECK_STR(parse("  nameserver \t 1.1.1.1 \t\r\n"), "1.1.1.1");
	CHECK_STR(parse("nameserver 127.0.0.53 # local\nnameserver ::1;x\n"),
	    "127.0.0.53 ::1");
}

TEST(none)
{
	CHECK_STR(parse(""), "");
	CHECK_STR(parse("\n\n\n"), "");
	CHECK_STR(parse("# nameserver 1.1.1.1\n;nameserver 1.1.1.1\n"), "");
	CHECK_STR(parse("nameservers 1.1.1.1\nxnameserver 1.1.1.1\n"), "");
	CHECK_STR(parse("nameserver1.1.1.1\nNAMESERVER 1.1.1.1\n"), "");
}

TEST(bad)
{
	log_set_sink(quiet);
	CHECK_STR(parse("nameserver\nnameserver \nnameserver #\n"), "");
	CHECK_STR(parse("nameserver ns.example.com\n"), "");
	CHECK_STR(parse("nameserver 127.1\nnameserver 010.0.0.1\n"
	    "nameserver 9.9.9.9\n"), "9.9.9.9");
	CHECK_STR(parse("nameserver fe80::1%eth0\n"), "");
	CHECK_STR(parse("nameserver 1.1.1.1:53\n"), "");
	CHECK_STR(parse("nameserver [::1]\n"), "");
}

TEST(bounded)
{
	CHECK_STR(parse("nameserver 1.1.1.1\nnameserver 1.1.1.2\n"
	    "nameserver 1.1.1.3\nnameserver 1.1.1.4\n"),
	    "1.1.1.1 1.1.1.2 1.1.1.3");
}

TEST_MAIN("dialer_resolv")
