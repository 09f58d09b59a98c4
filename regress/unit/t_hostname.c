/* SPDX-License-Identifier: ISC */

/* Tests of common/hostname.c; the names are the attack battery's. */

#include "test.h"

#include "../../common/hostname.h"

#define L60	"a23456789012345678901234567890123456789012345678901234567890"
#define L61	L60 "1"
#define L63	L60 "123"

static const char *
canon(const char *in, size_t len)
{
	static char	 out[HOSTNAME_MAX];
	const char	*why = NULL;

	if (hostname_canon(in, len, out, sizeof(out), &why) == 0) {
		CHECK_FOR(in, why == NULL);
		return out;
	}
	CHECK_FOR(in, why != NULL && out[0] == '\0');
	return NULL;
}

static const char *
canon_str(const char *in)
{
	return canon(in, strlen(in));
}

static void
check_refused(const char *in, const char *want)
{
	char		 out[HOSTNAME_MAX];
	const char	*why = NULL;

	CHECK_FOR(in, hostname_canon(in, strlen(in), out, sizeof(out),
	    &why) == -1);
	CHECK_FOR(in, why != NULL && strstr(why, want) != NULL);
	CHECK_STR(out, "");
}

TEST(normalises)
{
	CHECK_STR(canon_str("EVIL.test."), "evil.test");
	CHECK_STR(canon_str("api.good.test"), "api.good.test");
	CHECK_STR(canon_str("API.Good.TEST"), "api.good.test");
	CHECK_STR(canon_str("localhost"), "localhost");
	CHECK_STR(canon_str("_dmarc.good_one.test"), "_dmarc.good_one.test");
	CHECK_STR(canon_str("xn--bcher-kva.test"), "xn--bcher-kva.test");
	CHECK_STR(canon_str("XN--BCHER-KVA.test"), "xn--bcher-kva.test");
	CHECK_STR(canon_str("r3---sn-4g5e.test"), "r3---sn-4g5e.test");
	CHECK_STR(canon_str("1.2.3.4.in-addr.arpa"), "1.2.3.4.in-addr.arpa");
	CHECK_STR(canon_str("123.test"), "123.test");
	CHECK_STR(canon_str("0x7f.test"), "0x7f.test");
	CHECK_STR(canon_str("a.0xzz"), "a.0xzz");
}

TEST(knows_its_own_form)
{
	CHECK(hostname_is_canon("a.good.test"));
	CHECK(hostname_is_canon("192.0.2.1"));
	CHECK(hostname_is_canon("2001:db8::1"));
	CHECK(!hostname_is_canon("A.good.test"));
	CHECK(!hostname_is_canon("a.good.test."));
	CHECK(!hostname_is_canon("2001:DB8::1"));
	CHECK(!hostname_is_canon("a b"));
	CHECK(!hostname_is_canon(""));
}

TEST(refuses_nul)
{
	CHECK_STR(canon("evil.test\0.good.test", 20), NULL);
	CHECK_STR(canon("good.test\0", 10), NULL);
	CHECK_STR(canon("\0good.test", 10), NULL);
	CHECK_STR(canon("127.0.0.1\0", 10), NULL);
	CHECK_STR(canon("::1\0", 4), NULL);
}

TEST(refuses_what_is_no_name)
{
	check_refused("", "empty name");
	check_refused(".", "empty name");
	check_refused("good.test..", "empty label");
	check_refused("good..test", "empty label");
	check_refused(".good.test", "empty label");
	check_refused("good.test@evil.test", "user information");
	check_refused("[evil.test]", "brackets");
	check_refused("[::1]", "port in name, or bad IPv6");
	check_refused("[::ffff:7f00:1]", "port in name, or bad IPv6");
	check_refused("evil.test:443", "port in name");
	check_refused("https://evil.test", "not a URL");
	check_refused("evil.test:", "port in name");
	check_refused("127.0.0.1:80", "port in name");
	check_refused("-good.test", "hyphen");
	check_refused("good-.test", "hyphen");
	check_refused("xn--.test", "hyphen");
	check_refused("*.good.test", "wildcard");
}

TEST(refuses_characters)
{
	static const char	 bad[] = " \t\r\n/\\?#%;,'\"()<>{}|^~`!$&+="
	    "\x7f\x1b";
	char			 name[] = "go?od.test";
	size_t			 i;

	for (i = 0; i < sizeof(bad) - 1; i++) {
		name[2] = bad[i];
		check_refused(name, "character other than");
	}
}

TEST(refuses_not_ascii)
{
	check_refused("b\xc3\xbc" "cher.test", "xn--");
	check_refused("\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", "xn--");
	check_refused("good\xe3\x80\x82test", "xn--");
	check_refused("\xff.test", "xn--");
	/* The Kelvin sign, whose lower case is an ASCII k. */
	check_refused("\xe2\x84\xaa" "ube.test", "xn--");
}

TEST(lengths)
{
	static const char	 n253[] = L63 "." L63 "." L63 "." L61;
	char			 big[257];

	CHECK_INT(strlen(n253), 253);
	CHECK_STR(canon_str(n253), n253);
	CHECK_STR(canon_str(L63 "." L63 "." L63 "." L61 "."), n253);
	check_refused(L63 "." L63 "." L63 "." L61 "b", "253");
	check_refused(L63 "b.test", "63");
	memset(big, 'a', 256);
	big[256] = '\0';
	check_refused(big, "253");
	check_refused("", "empty");
	CHECK_STR(canon(NULL, 0), NULL);
}

TEST(out_size)
{
	char		 out[10];
	const char	*why = NULL;

	CHECK_INT(hostname_canon("good.test", 9, out, 10, &why), 0);
	CHECK_STR(out, "good.test");
	CHECK_INT(hostname_canon("good.test", 9, out, 9, &why), -1);
	CHECK_STR(out, "");
	CHECK_INT(hostname_canon("good.test", 9, out, 0, NULL), -1);
}

TEST(ipv4_spellings)
{
	static const char *const	 bad[] = {
		"0x7f.1", "2130706433", "0177.0.0.1", "127.1", "0x7f000001",
		"0x", "a.0x", "1.2.3.0x4", "256.1.1.1", "1.2.3.4.5", "1.2.3.04",
		"127.0.0.1.", "127.0.0.01", "00.0.0.0", "foo.127", "0X7F.1",
		"169.254.169.254.", "1.2.3", "99999999999", "1.2.3.4.0xff."
	};
	size_t				 i;

	CHECK_STR(canon_str("127.0.0.1"), "127.0.0.1");
	CHECK_STR(canon_str("169.254.169.254"), "169.254.169.254");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_refused(bad[i], "IPv4");
	check_refused("127..1", "empty label");
}

TEST(ipv6_literals)
{
	CHECK_STR(canon_str("::1"), "::1");
	CHECK_STR(canon_str("::"), "::");
	CHECK_STR(canon_str("0:0:0:0:0:0:0:1"), "::1");
	CHECK_STR(canon_str("FD00:EC2::0254"), "fd00:ec2::254");
	CHECK_STR(canon_str("2001:DB8:0:0:1:0:0:1"), "2001:db8::1:0:0:1");
	CHECK_STR(canon_str("64:ff9b::169.254.169.254"),
	    "64:ff9b::a9fe:a9fe");
	check_refused("::ffff:7f00:1", "dotted decimal");
	check_refused("::ffff:127.0.0.1", "dotted decimal");
	check_refused("::127.0.0.1", "dotted decimal");
	check_refused("::1.", "bad IPv6");
	check_refused("fe80::1%eth0", "bad IPv6");
	check_refused("1:2:3:4:5:6:7", "bad IPv6");
	check_refused("::1::", "bad IPv6");
	check_refused("12345::", "bad IPv6");
}

TEST(is_addr)
{
	CHECK(hostname_is_addr("127.0.0.1"));
	CHECK(hostname_is_addr("::1"));
	CHECK(!hostname_is_addr("good.test"));
	CHECK(!hostname_is_addr("1.2.3.4.test"));
	CHECK(!hostname_is_addr(""));
}

static const char *
pattern_fault(const char *pattern)
{
	const char	*why = NULL;

	if (hostname_pattern_check(pattern, &why) == 0) {
		CHECK_FOR(pattern, why == NULL);
		return "";
	}
	CHECK_FOR(pattern, why != NULL);
	return why;
}

static void
check_bad_pattern(const char *pattern, const char *want)
{
	CHECK_FOR(pattern, strstr(pattern_fault(pattern), want) != NULL);
}

TEST(pattern_accepts)
{
	static const char *const	 good[] = {
		"*.good.test", "**.good.test", "api-*.good.test", "**",
		"*.*.good.test", "a.**.good.test", "*.**.good.test",
		"api.good.test", "10.0.0.1", "2001:db8::1", "localhost",
		"*a*b*.good.test", "API.Good.Test.", "a*.b.good.test"
	};
	size_t				 i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK_STR(pattern_fault(good[i]), "");
}

TEST(pattern_too_wide)
{
	static const char *const	 wide[] = {
		"*.com", "**.com", "*", "*.*", "**.**", "foo*.com", "a.*",
		"a.*.com", "**.*.com", "*.com.", "good.test.**", "*.good.*"
	};
	size_t				 i;

	for (i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		check_bad_pattern(wide[i], "two literal labels");
}

TEST(pattern_refuses)
{
	check_bad_pattern("", "empty name");
	check_bad_pattern("***.good.test", "whole label");
	check_bad_pattern("****.good.test", "whole label");
	check_bad_pattern("a**.good.test", "whole label");
	check_bad_pattern("**a.good.test", "whole label");
	check_bad_pattern("a**b.good.test", "whole label");
	check_bad_pattern("*..good.test", "empty label");
	check_bad_pattern(".*.good.test", "empty label");
	check_bad_pattern("*.good.test:443", "character other than");
	check_bad_pattern("https://*.good.test", "character other than");
	check_bad_pattern("*.good.te st", "character other than");
	check_bad_pattern("*.b\xc3\xbc" "cher.test", "xn--");
	check_bad_pattern("xn--*-kva.good.test", "wildcard inside");
	check_bad_pattern("-*.good.test", "hyphen");
	check_bad_pattern("*-.good.test", "hyphen");
	check_bad_pattern("*.0.0.1", "use a prefix");
	check_bad_pattern("10.*.0.1", "use a prefix");
	check_bad_pattern("127.1", "dotted decimal");
	check_bad_pattern("*." L63 "b.test", "63");
	check_bad_pattern("*." L63 "." L63 "." L63 "." L63, "253");
}

TEST(pattern_canon)
{
	char	 out[HOSTNAME_MAX];

	CHECK_INT(hostname_pattern_canon("*.GOOD.Test.", 12, out, sizeof(out),
	    NULL), 0);
	CHECK_STR(out, "*.good.test");
	/* Wide is not malformed: a deny may want it. */
	CHECK_INT(hostname_pattern_canon("**.COM", 6, out, sizeof(out), NULL),
	    0);
	CHECK_STR(out, "**.com");
	CHECK_INT(hostname_pattern_canon("*.a\0b.test", 10, out, sizeof(out),
	    NULL), -1);
	CHECK_STR(out, "");
}

static const struct {
	const char	*pattern;
	const char	*name;
	int		 match;
} matches[] = {
	{ "api.good.test", "api.good.test", 1 },
	{ "api.good.test", "api.good.test.evil.test", 0 },
	{ "api.good.test", "xapi.good.test", 0 },
	{ "good.test", "api.good.test", 0 },
	{ "*.good.test", "api.good.test", 1 },
	{ "*.good.test", "good.test", 0 },
	{ "*.good.test", "xgood.test", 0 },
	{ "*.good.test", "a.b.good.test", 0 },
	{ "*.good.test", "api.good.test.evil.test", 0 },
	{ "*.good.test", "api.good.testx", 0 },
	{ "*good.test", "xgood.test", 1 },
	{ "*good.test", "x.good.test", 0 },
	{ "api-*.good.test", "api-1.good.test", 1 },
	{ "api-*.good.test", "api-.good.test", 1 },
	{ "api-*.good.test", "api-1.x.good.test", 0 },
	{ "api-*.good.test", "api.good.test", 0 },
	{ "*a*b*.good.test", "xaxbx.good.test", 1 },
	{ "*a*b*.good.test", "ab.good.test", 1 },
	{ "*a*b*.good.test", "ba.good.test", 0 },
	{ "*aab.good.test", "aaaab.good.test", 1 },
	{ "*.*.good.test", "a.b.good.test", 1 },
	{ "*.*.good.test", "a.good.test", 0 },
	{ "**.good.test", "a.good.test", 1 },
	{ "**.good.test", "a.b.c.good.test", 1 },
	{ "**.good.test", "good.test", 0 },
	{ "**.good.test", "xgood.test", 0 },
	{ "**.good.test", "good.test.good.test", 1 },
	{ "**.good.test", "good.test.evil.test", 0 },
	{ "a.**.good.test", "a.b.good.test", 1 },
	{ "a.**.good.test", "a.b.c.good.test", 1 },
	{ "a.**.good.test", "a.good.test", 0 },
	{ "a.**.good.test", "b.a.c.good.test", 0 },
	{ "**.b.**.good.test", "a.b.c.good.test", 1 },
	{ "**.b.**.good.test", "b.b.b.good.test", 1 },
	{ "**.b.**.good.test", "b.b.good.test", 0 },
	{ "**.**.good.test", "a.good.test", 0 },
	{ "**.**.good.test", "a.b.good.test", 1 },
	{ "**.x*y.good.test", "a.xy.xzy.good.test", 1 },
	{ "**", "good.test", 1 },
	{ "**", "localhost", 1 },
	{ "**", "127.0.0.1", 0 },
	{ "**", "::1", 0 },
	{ "**.com", "a.b.com", 1 },
	{ "*", "localhost", 1 },
	{ "*", "::1", 0 },
	{ "127.0.0.1", "127.0.0.1", 1 },
	{ "::1", "::1", 1 },
	{ "::1", "127.0.0.1", 0 },
	{ "*.good.test", "", 0 },
	{ "**", "", 0 },
};

TEST(match)
{
	size_t	 i;

	for (i = 0; i < sizeof(matches) / sizeof(matches[0]); i++) {
		char	 both[600];

		snprintf(both, sizeof(both), "%s against %s",
		    matches[i].name, matches[i].pattern);
		CHECK_FOR(both, hostname_match(matches[i].pattern,
		    matches[i].name) == matches[i].match);
	}
}

/* The obvious matcher, exponential and plainly right. */
static int
match_slowly(const char *p, const char *n)
{
	const char	*d;

	if (*p == '\0')
		return *n == '\0';
	if (p[0] == '*' && p[1] == '*') {
		if ((d = strchr(n, '.')) == NULL)
			return p[2] == '\0' && *n != '\0';
		return (p[2] == '.' && match_slowly(p + 3, d + 1)) ||
		    match_slowly(p, d + 1);
	}
	if (*p == '*')
		return match_slowly(p + 1, n) || (*n != '\0' && *n != '.' &&
		    match_slowly(p, n + 1));
	return *p == *n && match_slowly(p + 1, n + 1);
}

/* Writes the i-th word over the letters; 0 if it is not a canonical pattern. */
static int
word(unsigned int i, const char *letters, char *buf)
{
	unsigned int	 base = (unsigned int)strlen(letters) + 1;
	size_t		 len = 0;
	char		 out[HOSTNAME_MAX];

	for (; i > 0; i /= base) {
		if (i % base == 0)
			return 0;
		buf[len++] = letters[i % base - 1];
	}
	buf[len] = '\0';
	return hostname_pattern_canon(buf, len, out, sizeof(out), NULL) == 0 &&
	    strcmp(buf, out) == 0;
}

TEST(match_agrees_with_slow_matcher)
{
	char		 p[16], n[16];
	unsigned int	 i, j, pairs = 0;

	for (i = 1; i < 16384; i++) {
		if (!word(i, "a*.", p))
			continue;
		for (j = 1; j < 6561; j++) {
			if (!word(j, "a.", n))
				continue;
			pairs++;
			CHECK_FOR(p, hostname_match(p, n) ==
			    match_slowly(p, n));
		}
	}
	CHECK(pairs > 10000);
}

/* An exponential matcher would not come back from these. */
TEST(match_has_no_bad_case)
{
	char	 p[HOSTNAME_MAX], n[HOSTNAME_MAX];
	int	 i;

	p[0] = n[0] = '\0';
	for (i = 0; i < 40; i++)
		strlcat(p, "**.a.", sizeof(p));
	strlcat(p, "b.test", sizeof(p));
	for (i = 0; i < 120; i++)
		strlcat(n, "a.", sizeof(n));
	strlcat(n, "test", sizeof(n));
	for (i = 0; i < 1000; i++)
		CHECK(!hostname_match(p, n));
	for (i = 0; i < 1000; i++)
		CHECK(!hostname_match("*a*a*a*a*a*a*a*a*a*a*a*ab.good.test",
		    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		    ".good.test"));
}

TEST_MAIN("hostname")
