/* SPDX-License-Identifier: ISC */

/*
 * tlsengine/dns/dns.c: packets in, packets out.
 */

#include "common/addr.h"
#include "test.h"
#include "tlsengine/dns/dns.h"
#include "tlsengine/dns/names.h"

#define NELEM(a)	(sizeof(a) / sizeof((a)[0]))
#define DROPPED		(-1)

/* Headers: id 0x1234, flags, counts. */
#define HEAD(flags, qd, an, ns, ar)					\
	"\x12\x34" flags "\0" qd "\0" an "\0" ns "\0" ar
#define RD		"\1\0"
#define ASK		HEAD(RD, "\1", "\0", "\0", "\0")
#define ASK_MORE	HEAD(RD, "\1", "\0", "\0", "\1")
#define QNAME		"\1a\4test\0"
#define QUESTION	QNAME "\0\1\0\1"
#define OPT(size, rest)	"\0\0\x29" size rest

static uint8_t		 out[DNS_ANSWER_MAX];
static size_t		 outlen;
static struct dns_asked	 asked;

static unsigned int
word(size_t at)
{
	CHECK(at + 2 <= outlen);
	return (unsigned int)out[at] << 8 | out[at + 1];
}

/* The rcode with its upper bits, which an OPT record has at the end. */
static int
ask_room(const void *in, size_t len, bool room)
{
	int	 rcode;

	outlen = dns_answer(in, len, room, out, &asked);
	if (outlen == 0)
		return DROPPED;
	CHECK(outlen >= DNS_HEADER_LEN && outlen <= DNS_ANSWER_MAX);
	CHECK_MEM(out, 2, in, 2);
	CHECK((out[2] & 0x80) != 0 && (out[2] & 2) == 0);
	rcode = out[3] & 15;
	if (word(10) == 1) {
		CHECK(outlen >= DNS_HEADER_LEN + 11);
		CHECK_MEM(out + outlen - 11, 5, "\0\0\x29\x04\xd0", 5);
		rcode |= out[outlen - 6] << 4;
	}
	return rcode;
}

static int
ask(const void *in, size_t len)
{
	return ask_room(in, len, true);
}

/* A question about dotted text, in the class of the Internet. */
static size_t
question(uint8_t *p, const char *name, unsigned int type)
{
	uint8_t	*start = p;
	size_t	 len;

	memcpy(p, ASK, DNS_HEADER_LEN);
	p += DNS_HEADER_LEN;
	for (; *name != '\0'; name += len + (name[len] == '.')) {
		len = strcspn(name, ".");
		*p++ = (uint8_t)len;
		memcpy(p, name, len);
		p += len;
	}
	*p++ = 0;
	*p++ = (uint8_t)(type >> 8);
	*p++ = (uint8_t)type;
	*p++ = 0;
	*p++ = 1;
	return (size_t)(p - start);
}

static int
ask_name(const char *name, unsigned int type)
{
	uint8_t	 in[512];
	size_t	 len = question(in, name, type);
	int	 rcode = ask(in, len);

	/* The question comes back as it was. */
	CHECK(outlen >= len);
	CHECK_MEM(out + DNS_HEADER_LEN, len - DNS_HEADER_LEN,
	    in + DNS_HEADER_LEN, len - DNS_HEADER_LEN);
	CHECK_INT(word(4), 1);
	return rcode;
}

/* The data of the one answer, which ends the packet. */
static const uint8_t *
answer(unsigned int type, size_t datalen)
{
	size_t	 at = outlen - datalen - 12;

	CHECK(outlen > datalen + 12 + DNS_HEADER_LEN);
	CHECK_INT(word(6), 1);
	CHECK_INT(word(at), 0xc00c);
	CHECK_INT(word(at + 2), type);
	CHECK_INT(word(at + 4), 1);
	CHECK_INT(word(at + 6), 0);
	CHECK_INT(word(at + 8), 60);
	CHECK_INT(word(at + 10), datalen);
	return out + outlen - datalen;
}

static void
address_of(const char *name, struct addr *v4, struct addr *v6)
{
	memset(v4, 0, sizeof(*v4));
	memset(v6, 0, sizeof(*v6));
	v4->ad_af = AF_INET;
	v6->ad_af = AF_INET6;
	CHECK_INT(ask_name(name, 1), 0);
	memcpy(v4->ad_bytes, answer(1, 4), 4);
	CHECK_INT(ask_name(name, 28), 0);
	memcpy(v6->ad_bytes, answer(28, 16), 16);
}

/* ---- shapes -------------------------------------------------------------- */

static const struct {
	const char	*what;
	const char	*in;
	size_t		 len;
	int		 rcode;
	int		 questions;	/* that come back */
} shapes[] = {
#define S(what, in, rcode, questions)					\
	{ what, in, sizeof(in) - 1, rcode, questions }
	S("well", ASK QUESTION, 0, 1),
	S("empty", "", DROPPED, 0),
	S("header less one", "\x12\x34\1\0\0\1\0\0\0\0\0", DROPPED, 0),
	S("an answer", HEAD("\x81\x80", "\1", "\0", "\0", "\0") QUESTION,
	    DROPPED, 0),
	S("an error", HEAD("\x80\1", "\0", "\0", "\0", "\0"), DROPPED, 0),
	S("inverse", HEAD("\x09\0", "\1", "\0", "\0", "\0") QUESTION, 4, 0),
	S("status", HEAD("\x10\0", "\0", "\0", "\0", "\0"), 4, 0),
	S("notify", HEAD("\x20\0", "\1", "\0", "\0", "\0") QUESTION, 4, 0),
	S("update", HEAD("\x28\0", "\1", "\0", "\0", "\0") QUESTION, 4, 0),
	S("truncated flag", HEAD("\3\0", "\1", "\0", "\0", "\0") QUESTION,
	    1, 0),
	S("no question", HEAD(RD, "\0", "\0", "\0", "\0"), 1, 0),
	S("none, one there", HEAD(RD, "\0", "\0", "\0", "\0") QUESTION, 1, 0),
	S("two questions", HEAD(RD, "\2", "\0", "\0", "\0") QUESTION QUESTION,
	    1, 0),
	S("an answer in it", HEAD(RD, "\1", "\1", "\0", "\0") QUESTION
	    "\xc0\x0c\0\1\0\1\0\0\0\0\0\4\1\2\3\4", 1, 1),
	S("an authority", HEAD(RD, "\1", "\0", "\1", "\0") QUESTION
	    "\0\0\2\0\1\0\0\0\0\0\1\0", 1, 1),
	S("two more", HEAD(RD, "\1", "\0", "\0", "\2") QUESTION
	    OPT("\4\xd0", "\0\0\0\0\0\0") OPT("\4\xd0", "\0\0\0\0\0\0"), 1, 1),
	S("counted, not there", ASK_MORE QUESTION, 1, 1),
	S("trailing byte", ASK QUESTION "\0", 1, 1),
	S("trailing after OPT", ASK_MORE QUESTION
	    OPT("\4\xd0", "\0\0\0\0\0\0") "x", 1, 1),
	S("label of 64", ASK "\x40xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	    "xxxxxxxxxxxxxxxxxxxx\0\0\1\0\1", 1, 0),
	S("bit label", ASK "\x41\0\4test\0\0\1\0\1", 1, 0),
	S("points to itself", ASK "\xc0\x0c\0\1\0\1", 1, 0),
	S("points ahead", ASK "\xc0\x12\0\1\0\1\1a\0", 1, 0),
	S("points back after a label", ASK "\1a\xc0\x0c\0\1\0\1", 1, 0),
	S("two that point at each other", ASK "\xc0\x0e\xc0\x0c\0\1\0\1",
	    1, 0),
	S("ends with a zero in a label", ASK "\1\0", 1, 0),
	S("ends before the root", ASK "\1a\4test", 1, 0),
	S("OPT", ASK_MORE QUESTION OPT("\4\xd0", "\0\0\0\0\0\0"), 0, 1),
	S("OPT of a small size", ASK_MORE QUESTION
	    OPT("\0\0", "\0\0\0\0\0\0"), 0, 1),
	S("OPT with a cookie", ASK_MORE QUESTION OPT("\4\xd0",
	    "\0\0\0\0\0\x0c\0\x0a\0\x08" "12345678"), 0, 1),
	S("OPT with an option cut", ASK_MORE QUESTION OPT("\4\xd0",
	    "\0\0\0\0\0\x0b\0\x0a\0\x08" "1234567"), 1, 1),
	S("OPT with half an option", ASK_MORE QUESTION OPT("\4\xd0",
	    "\0\0\0\0\0\2\0\x0a"), 1, 1),
	S("OPT longer than the packet", ASK_MORE QUESTION OPT("\4\xd0",
	    "\0\0\0\0\xff\xff\0\x0a\0\0"), 1, 1),
	S("OPT that hides bytes", ASK_MORE QUESTION OPT("\4\xd0",
	    "\0\0\0\0\0\4\0\x0a\0\4" "1234"), 1, 1),
	S("OPT cut", ASK_MORE QUESTION "\0\0\x29\4\xd0\0\0", 1, 1),
	S("OPT of a name", ASK_MORE QUESTION "\1a\0\0\x29\4\xd0"
	    "\0\0\0\0\0\0", 1, 1),
	S("OPT of a pointer", ASK_MORE QUESTION "\xc0\x0c\0\x29\4\xd0"
	    "\0\0\0\0\0\0", 1, 1),
	S("version 1", ASK_MORE QUESTION OPT("\4\xd0", "\0\1\0\0\0\0"), 16, 1),
	S("TSIG", ASK_MORE QUESTION "\0\0\xfa\0\xff\0\0\0\0\0\0", 1, 1),
	S("additional A", ASK_MORE QUESTION
	    "\xc0\x0c\0\1\0\1\0\0\0\0\0\4\1\2\3\4", 1, 1),
#undef S
};

TEST(shapes)
{
	size_t	 i;

	for (i = 0; i < NELEM(shapes); i++) {
		CHECK_FOR(shapes[i].what, ask(shapes[i].in, shapes[i].len) ==
		    shapes[i].rcode);
		if (shapes[i].rcode == DROPPED)
			continue;
		CHECK_FOR(shapes[i].what, word(4) ==
		    (unsigned int)shapes[i].questions);
		CHECK_FOR(shapes[i].what, shapes[i].rcode == 0 ||
		    (word(6) == 0 && asked.da_news == DNS_NO_NEWS));
		CHECK_FOR(shapes[i].what, word(8) == 0);
		CHECK_FOR(shapes[i].what, (out[2] & 0x78) ==
		    (shapes[i].in[2] & 0x78));
	}
}

/* Whatever is cut off a question, what is left is none. */
TEST(every_cut)
{
	static const char	 whole[] = ASK_MORE QUESTION OPT("\4\xd0",
	    "\0\0\x80\0\0\x08\0\x0a\0\4" "1234");
	size_t			 len = sizeof(whole) - 1, i;
	uint8_t			*cut;

	CHECK_INT(ask(whole, len), 0);
	for (i = 0; i < len; i++) {
		/* A copy of its own, for the sanitizer to see its end. */
		CHECK((cut = malloc(i + 1)) != NULL);
		memcpy(cut, whole, i);
		CHECK_INT(ask(cut, i), i < DNS_HEADER_LEN ? DROPPED : 1);
		free(cut);
	}
}

TEST(oversized)
{
	static uint8_t	 in[DNS_QUERY_MAX + 1];
	static const char whole[] = ASK_MORE QUESTION OPT("\4\xd0",
	    "\0\0\0\0\0\0\0\x0c\0\0");
	size_t		 len = sizeof(whole) - 1, pad = DNS_QUERY_MAX - len;

	/* Padding (RFC 7830) up to the last byte that we take, and one more. */
	memcpy(in, whole, len);
	in[len - 6] = (uint8_t)((pad + 4) >> 8);
	in[len - 5] = (uint8_t)(pad + 4);
	in[len - 2] = (uint8_t)(pad >> 8);
	in[len - 1] = (uint8_t)pad;
	CHECK_INT(ask(in, DNS_QUERY_MAX), 0);
	CHECK_INT(ask(in, DNS_QUERY_MAX + 1), 1);
	CHECK_INT(word(4), 0);
}

static size_t
long_name(char *name, size_t len)
{
	size_t	 i;

	for (i = 0; i < len; i++)
		name[i] = i % 62 == 61 && i < len - 1 ? '.' : 'n';
	name[len] = '\0';
	return len;
}

TEST(longest_name)
{
	uint8_t		 in[512];
	char		 name[300];
	size_t		 i;

	long_name(name, 253);
	CHECK_INT(ask_name(name, 28), 0);
	answer(28, 16);
	CHECK_STR(asked.da_name, name);
	long_name(name, 254);
	CHECK_INT(ask(in, question(in, name, 28)), 1);
	CHECK_INT(word(4), 0);
	/* Labels of one byte. */
	memset(name, 0, sizeof(name));
	memset(name, '.', 253);
	for (i = 0; i < 253; i += 2)
		name[i] = 'o';
	CHECK_INT(ask_name(name, 1), 0);
	name[253] = '.';
	name[254] = 'o';
	CHECK_INT(ask(in, question(in, name, 1)), 1);
}

TEST(header_bits)
{
	static const char	 all[] = HEAD("\1\x7f", "\1", "\0", "\0", "\0")
	    QUESTION;
	static const char	 none[] = HEAD("\0\0", "\1", "\0", "\0", "\0")
	    QUESTION;

	/* RD and CD come back; AA and RA are ours; AD, Z and rcode are not. */
	CHECK_INT(ask(all, sizeof(all) - 1), 0);
	CHECK_INT(word(2), 0x8590);
	CHECK_INT(ask(none, sizeof(none) - 1), 0);
	CHECK_INT(word(2), 0x8480);
}

TEST(edns)
{
	static const char	 in[] = ASK_MORE QUESTION OPT("\xff\xff",
	    "\0\0\x80\0\0\0");

	/* Our own size, version 0, no flags: DO is not echoed. */
	CHECK_INT(ask(in, sizeof(in) - 1), 0);
	CHECK_INT(word(10), 1);
	CHECK_MEM(out + outlen - 11, 11, "\0\0\x29\4\xd0\0\0\0\0\0\0", 11);
}

/* ---- names --------------------------------------------------------------- */

TEST(addresses)
{
	struct addr	 a4, a6, b4, b6, again4, again6;

	address_of("one.names.test", &a4, &a6);
	address_of("two.names.test", &b4, &b6);
	address_of("ONE.Names.tesT", &again4, &again6);
	CHECK_INT(addr_classify(&a4), ADDR_BENCHMARK);
	CHECK_INT(a6.ad_bytes[0], 0xfd);
	CHECK(addr_cmp(&a4, &b4) != 0);
	CHECK(addr_cmp(&a6, &b6) != 0);
	CHECK_INT(addr_cmp(&a4, &again4), 0);
	CHECK_INT(addr_cmp(&a6, &again6), 0);
	CHECK_STR(names_find(&a4), "one.names.test");
	CHECK_STR(names_find(&b6), "two.names.test");
}

TEST(news)
{
	uint8_t	 in[512];
	size_t	 len = question(in, "New.News.Test", 1);

	CHECK_INT(ask_room(in, len, false), 2);
	CHECK_INT(asked.da_news, DNS_NO_ROOM);
	CHECK_STR(asked.da_name, "new.news.test");
	CHECK_INT(word(6), 0);
	CHECK_INT(ask_room(in, len, true), 0);
	CHECK_INT(asked.da_news, DNS_NEW_NAME);
	CHECK_STR(asked.da_name, "new.news.test");
	CHECK_INT(ask_room(in, len, false), 0);
	CHECK_INT(asked.da_news, DNS_NO_NEWS);
	CHECK_INT(ask_name("new.news.test", 28), 0);
	CHECK_INT(asked.da_news, DNS_NO_NEWS);
}

/* The name counts, also where nothing is ever answered. */
TEST(types_without_data)
{
	static const unsigned int	 types[] = { 0, 2, 5, 6, 10, 12, 15, 16,
	    33, 35, 41, 43, 48, 64, 65, 249, 250, 253, 254, 255, 257, 65535 };
	char				 name[64];
	size_t				 i;

	for (i = 0; i < NELEM(types); i++) {
		snprintf(name, sizeof(name), "secret%zu.types.test", i);
		CHECK_FOR(name, ask_name(name, types[i]) == 0);
		CHECK_FOR(name, word(6) == 0 && word(8) == 0);
		CHECK_FOR(name, asked.da_news == DNS_NEW_NAME);
		CHECK_STR(asked.da_name, name);
		CHECK_INT(ask_name(name, 1), 0);
		answer(1, 4);
	}
}

TEST(transfers)
{
	static const char	 ixfr[] = HEAD(RD, "\1", "\0", "\1", "\0")
	    QNAME "\0\xfb\0\1" "\xc0\x0c\0\6\0\1\0\0\0\0\0\x16\0\0"
	    "\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

	CHECK_INT(ask_name("axfr.test", 252), 5);
	CHECK_INT(word(6), 0);
	CHECK_STR(asked.da_name, "axfr.test");
	CHECK_INT(ask_name("ixfr.test", 251), 5);
	CHECK_INT(ask(ixfr, sizeof(ixfr) - 1), 5);
	CHECK_INT(word(4), 1);
}

TEST(classes)
{
	static const unsigned int	 classes[] = { 0, 2, 3, 4, 254, 255 };
	uint8_t				 in[512];
	char				 name[64];
	size_t				 i, len;

	for (i = 0; i < NELEM(classes); i++) {
		snprintf(name, sizeof(name), "secret%zu.class.test", i);
		len = question(in, name, 1);
		in[len - 1] = (uint8_t)classes[i];
		CHECK_FOR(name, ask(in, len) == 5 && word(6) == 0);
		CHECK_FOR(name, asked.da_news == DNS_NEW_NAME);
	}
}

/* Labels that are no part of a host name, and how they are told. */
TEST(bad_names)
{
	static const struct {
		const char	*in;
		size_t		 len;
		const char	*text;
	} names[] = {
#define N(in, text)	{ ASK in "\0\0\1\0\1", \
    sizeof(ASK in "\0\0\1\0\1") - 1, text }
		N("\x09" "evil\0good\4test", "evil\\000good.test"),
		N("\x09" "evil.test", "evil\\046test"),
		N("\x09" "evil\\test", "evil\\092test"),
		N("\1@\4test", "\\064.test"),
		N("\1*\4test", "\\042.test"),
		N("\3a b\4test", "a\\032b.test"),
		N("\4\xc3\xa4zz\4test", "\\195\\164zz.test"),
		N("\4\n\r\33[\4test", "\\010\\013\\027\\091.test"),
		N("\x08" "test:443", "test\\058443"),
		N("\3::1", "\\058\\0581"),
		N("\2-a\4test", "-a.test"),
		N("\2a-\4test", "a-.test"),
		N("\3" "127\1" "0\1" "0\1" "1", "127.0.0.1"),
		N("\3" "127\1" "1", "127.1"),
		N("\4" "0177\1" "0\1" "0\1" "1", "0177.0.0.1"),
		N("\4" "0x7f\1" "1", "0x7f.1"),
		N("\x0a" "2130706433", "2130706433"),
		N("\3api\4test\1" "1", "api.test.1"),
#undef N
	};
	size_t	 i;

	for (i = 0; i < NELEM(names); i++) {
		CHECK_FOR(names[i].text, ask(names[i].in, names[i].len) == 3);
		CHECK_FOR(names[i].text, asked.da_news == DNS_BAD_NAME);
		CHECK_STR(asked.da_name, names[i].text);
		CHECK_INT(word(6), 0);
	}
}

/* Escapes make a name longer than the record's room: it is cut. */
TEST(bad_name_cut)
{
	uint8_t	 in[512];
	char	 name[254];
	size_t	 len, i;

	long_name(name, 253);
	len = question(in, name, 1);
	for (i = DNS_HEADER_LEN; i < len; i++)
		if (in[i] == 'n')
			in[i] = 0xff;
	CHECK_INT(ask(in, len), 3);
	CHECK_INT(strlen(asked.da_name), HOSTNAME_MAX - 1);
}

TEST(root)
{
	CHECK_INT(ask_name("", 2), 0);
	CHECK_INT(word(6), 0);
	CHECK_INT(asked.da_news, DNS_NO_NEWS);
	CHECK_INT(ask_name("", 1), 0);
	CHECK_INT(word(6), 0);
	CHECK_INT(ask_name("", 252), 5);
}

TEST(localhost)
{
	static const char *const	 own[] = { "localhost", "LocalHost",
	    "a.localhost", "secret.a.LOCALHOST" };
	static const char *const	 others[] = { "notlocalhost",
	    "localhost.test", "a.notlocalhost", "localhost6" };
	struct addr			 v4, v6;
	char				 text[ADDR_STRLEN];
	size_t				 i;

	for (i = 0; i < NELEM(own); i++) {
		address_of(own[i], &v4, &v6);
		CHECK_STR(addr_format(&v4, text, sizeof(text)), "127.0.0.1");
		CHECK_STR(addr_format(&v6, text, sizeof(text)), "::1");
		CHECK_INT(asked.da_news, DNS_NO_NEWS);
		CHECK_INT(ask_name(own[i], 16), 0);
		CHECK_INT(word(6), 0);
	}
	for (i = 0; i < NELEM(others); i++) {
		address_of(others[i], &v4, &v6);
		CHECK_INT(addr_classify(&v4), ADDR_BENCHMARK);
	}
}

/* ---- the way back -------------------------------------------------------- */

static const char *
reverse(const struct addr *ad, char *text, size_t size)
{
	size_t	 n = 0;
	int	 i;

	if (ad->ad_af == AF_INET)
		snprintf(text, size, "%u.%u.%u.%u.in-addr.arpa",
		    ad->ad_bytes[3], ad->ad_bytes[2], ad->ad_bytes[1],
		    ad->ad_bytes[0]);
	else {
		for (i = 15; i >= 0; i--)
			n += (size_t)snprintf(text + n, size - n, "%x.%x.",
			    ad->ad_bytes[i] & 15, ad->ad_bytes[i] >> 4);
		strlcat(text, "ip6.arpa", size);
	}
	return text;
}

TEST(pointers)
{
	static const char	 wire[] = "\4back\4test";
	struct addr		 v4, v6;
	char			 text[128];

	address_of("Back.test", &v4, &v6);
	CHECK_INT(ask_name(reverse(&v4, text, sizeof(text)), 12), 0);
	CHECK_MEM(answer(12, sizeof(wire)), sizeof(wire), wire, sizeof(wire));
	CHECK_INT(asked.da_news, DNS_NO_NEWS);
	CHECK_INT(ask_name(reverse(&v6, text, sizeof(text)), 12), 0);
	CHECK_MEM(answer(12, sizeof(wire)), sizeof(wire), wire, sizeof(wire));
	/* The address is there, with nothing but a name. */
	CHECK_INT(ask_name(text, 1), 0);
	CHECK_INT(word(6), 0);
	CHECK_INT(ask_name(text, 16), 0);
	CHECK_INT(word(6), 0);
}

TEST(pointer_of_longest_name)
{
	struct addr	 v4, v6;
	char		 name[254], text[128];

	long_name(name, 252);
	strlcat(name, "p", sizeof(name));
	address_of(name, &v4, &v6);
	CHECK_INT(ask_name(reverse(&v6, text, sizeof(text)), 12), 0);
	answer(12, 255);
}

#define V6_REST	".0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0" \
    ".0.0.0.ip6.arpa"

TEST(pointers_to_nothing)
{
	static const char *const	 others[] = {
		"1.0.18.198.in-addr.arpa", "0.0.18.198.in-addr.arpa",
		"255.255.19.198.in-addr.arpa", "1.0.0.127.in-addr.arpa",
		"8.8.8.8.IN-ADDR.ARPA",
		("1" V6_REST)
	};
	size_t				 i;

	for (i = 0; i < NELEM(others); i++) {
		CHECK_FOR(others[i], ask_name(others[i], 12) == 3);
		CHECK_FOR(others[i], asked.da_news == DNS_NO_NEWS);
	}
}

/* Not quite the name of an address: a name like any other. */
TEST(pointers_that_are_none)
{
	static const char *const	 names[] = {
		"198.in-addr.arpa", "in-addr.arpa", "ip6.arpa",
		"2.0.18.198.in-addr.arpa.test", "02.0.18.198.in-addr.arpa",
		"256.0.18.198.in-addr.arpa", "2.0.18.198.ip6.arpa",
		"1.2.0.18.198.in-addr.arpa", "secret.18.198.in-addr.arpa",
		"0002.0.18.198.in-addr.arpa", "a.0.18.198.in-addr.arpa",
		("10" V6_REST), ("g" V6_REST)
	};
	size_t				 i;

	for (i = 0; i < NELEM(names); i++) {
		CHECK_FOR(names[i], ask_name(names[i], 12) == 0);
		CHECK_FOR(names[i], word(6) == 0);
		CHECK_FOR(names[i], asked.da_news == DNS_NEW_NAME);
	}
}

TEST_MAIN("dns")
