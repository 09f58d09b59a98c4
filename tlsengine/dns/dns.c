/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: the wire format of DNS (RFC 1035; 6891 for EDNS) and
 * what is answered.  Every byte of a question was chosen by the agent.  The
 * question goes back as it was spelt, since resolvers mix the case of letters
 * to tell forged answers from true ones; all else is made here.
 */

#include <stdio.h>
#include <string.h>

#include "dns.h"
#include "names.h"

#define NAME_WIRE_MAX	255	/* RFC 1035, 2.3.4 */
#define LABEL_WIRE_MAX	63	/* what is above is compression, or unknown */
#define NAME_TEXT_MAX	(4 * NAME_WIRE_MAX)	/* every byte an escape */
#define QUESTION_MAX_LEN (NAME_WIRE_MAX + 4)
#define RR_LEN		12	/* of a record that points to the question */
#define OPT_LEN		11
#define REVERSE_WIRE_MAX 74	/* 32 nibbles under ip6.arpa */

/* The longest question with an address, the longest reverse with a name. */
_Static_assert(DNS_HEADER_LEN + QUESTION_MAX_LEN + RR_LEN + 16 + OPT_LEN <=
    DNS_ANSWER_MAX, "an address may not fit");
_Static_assert(DNS_HEADER_LEN + REVERSE_WIRE_MAX + 4 + RR_LEN +
    NAME_WIRE_MAX + OPT_LEN <= DNS_ANSWER_MAX, "a name may not fit");

#define FLAG_QR		0x8000	/* an answer */
#define FLAG_OPCODE	0x7800
#define FLAG_AA		0x0400	/* authoritative */
#define FLAG_TC		0x0200	/* truncated */
#define FLAG_RD		0x0100	/* recursion desired */
#define FLAG_RA		0x0080	/* recursion available */
#define FLAG_CD		0x0010	/* checking disabled */

#define TYPE_A		1
#define TYPE_PTR	12
#define TYPE_AAAA	28
#define TYPE_OPT	41
#define TYPE_IXFR	251
#define TYPE_AXFR	252
#define CLASS_IN	1

#define POINTER		0xc000	/* compression; offset of a name */
#define TTL_S		60	/* an engine that starts again forgets */

enum rcode {
	NOERROR = 0,
	FORMERR = 1,
	SERVFAIL = 2,
	NXDOMAIN = 3,
	NOTIMP = 4,
	REFUSED = 5,
	BADVERS = 16		/* the upper bits are the OPT record's */
};

struct query {
	const uint8_t	*qu_in;
	size_t		 qu_len;
	size_t		 qu_pos;
	uint16_t	 qu_flags;
	size_t		 qu_question;	/* length; 0 if it makes no sense */
	uint16_t	 qu_type;
	uint16_t	 qu_class;
	bool		 qu_edns;
	bool		 qu_escaped;	/* bytes that no host name has */
	char		 qu_name[NAME_TEXT_MAX];
};

/* All that is known of a name, whatever type was asked. */
struct answer {
	enum rcode		 an_rcode;
	bool			 an_has_pair;
	struct names_pair	 an_pair;
	const char		*an_name;	/* of an address */
};

/* ---- question ------------------------------------------------------------ */

static bool
get(struct query *qu, void *to, size_t n)
{
	if (n > qu->qu_len - qu->qu_pos)
		return false;
	memcpy(to, qu->qu_in + qu->qu_pos, n);
	qu->qu_pos += n;
	return true;
}

static bool
get16(struct query *qu, uint16_t *value)
{
	uint8_t	 b[2];

	if (!get(qu, b, sizeof(b)))
		return false;
	*value = (uint16_t)(b[0] << 8 | b[1]);
	return true;
}

static bool
is_plain(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/*
 * The text of one label.  A dot within it is no dot between labels: left as
 * it is, `evil.test' in one label would pass for two.
 */
static size_t
label_text(struct query *qu, const uint8_t *label, size_t len, char *text)
{
	size_t	 i, n = 0;

	for (i = 0; i < len; i++) {
		if (is_plain(label[i])) {
			text[n++] = (char)label[i];
			continue;
		}
		qu->qu_escaped = true;
		n += (size_t)snprintf(text + n, sizeof("\\000"), "\\%03u",
		    label[i]);
	}
	return n;
}

/*
 * Compression has nothing to point to in the first name of a packet, except
 * into a loop, so it is not understood at all.
 */
static bool
get_name(struct query *qu)
{
	uint8_t	 label[LABEL_WIRE_MAX], len;
	size_t	 start = qu->qu_pos, n = 0;

	for (;;) {
		if (!get(qu, &len, 1))
			return false;
		if (len == 0)
			break;
		if (len > LABEL_WIRE_MAX || !get(qu, label, len) ||
		    qu->qu_pos - start >= NAME_WIRE_MAX)
			return false;
		if (n > 0)
			qu->qu_name[n++] = '.';
		n += label_text(qu, label, len, qu->qu_name + n);
	}
	qu->qu_name[n] = '\0';
	return true;
}

/* Options are well-formed and ignored (RFC 6891, 6.1.2). */
static bool
options_sound(struct query *qu, size_t end)
{
	uint16_t	 code, len;

	while (qu->qu_pos < end) {
		if (!get16(qu, &code) || !get16(qu, &len) ||
		    len > qu->qu_len - qu->qu_pos)
			return false;
		qu->qu_pos += len;
	}
	return qu->qu_pos == end;
}

static enum rcode
get_opt(struct query *qu)
{
	uint16_t	 type, size, flags, len;
	uint8_t		 root, extended, version;

	if (!get(qu, &root, 1) || root != 0 || !get16(qu, &type) ||
	    type != TYPE_OPT || !get16(qu, &size) || !get(qu, &extended, 1) ||
	    !get(qu, &version, 1) || !get16(qu, &flags) || !get16(qu, &len) ||
	    !options_sound(qu, qu->qu_pos + len))
		return FORMERR;
	qu->qu_edns = true;
	return version == 0 ? NOERROR : BADVERS;
}

static bool
is_transfer(const struct query *qu)
{
	return qu->qu_type == TYPE_AXFR || qu->qu_type == TYPE_IXFR;
}

static enum rcode
query_parse(struct query *qu)
{
	uint16_t	 counts[4];
	enum rcode	 rcode = NOERROR;
	size_t		 i;

	if ((qu->qu_flags & FLAG_OPCODE) != 0)
		return NOTIMP;
	for (i = 0; i < 4; i++)
		get16(qu, &counts[i]);
	if (qu->qu_len > DNS_QUERY_MAX || counts[0] != 1 ||
	    (qu->qu_flags & FLAG_TC) != 0 || !get_name(qu) ||
	    !get16(qu, &qu->qu_type) || !get16(qu, &qu->qu_class))
		return FORMERR;
	qu->qu_question = qu->qu_pos - DNS_HEADER_LEN;
	/* IXFR carries a record (RFC 1995, 3); it is refused later. */
	if (is_transfer(qu))
		return NOERROR;
	if (counts[1] != 0 || counts[2] != 0 || counts[3] > 1)
		return FORMERR;
	if (counts[3] == 1)
		rcode = get_opt(qu);
	if (rcode == NOERROR && qu->qu_pos != qu->qu_len)
		rcode = FORMERR;
	return rcode;
}

/* ---- what is known of it ------------------------------------------------- */

/* One label of 1 to max digits and its dot; -1 if it is anything else. */
static int
reverse_label(const char **p, int base, size_t max)
{
	static const char	 digits[] = "0123456789abcdef";
	const char		*digit, *start = *p;
	int			 value = 0;

	for (; **p != '.'; (*p)++) {
		digit = **p == '\0' ? NULL : strchr(digits, **p);
		if (digit == NULL || digit - digits >= base ||
		    (size_t)(*p - start) == max)
			return -1;
		value = value * base + (int)(digit - digits);
	}
	/* No leading zeros: one spelling per address. */
	if (*p == start || (*start == '0' && *p - start > 1))
		return -1;
	(*p)++;
	return value;
}

static bool
reverse_v4(const char *name, struct addr *ad)
{
	int	 i, value;

	memset(ad, 0, sizeof(*ad));
	ad->ad_af = AF_INET;
	for (i = 3; i >= 0; i--) {
		value = reverse_label(&name, 10, 3);
		if (value == -1 || value > 255)
			return false;
		ad->ad_bytes[i] = (uint8_t)value;
	}
	return strcmp(name, "in-addr.arpa") == 0;
}

static bool
reverse_v6(const char *name, struct addr *ad)
{
	int	 i, value;

	memset(ad, 0, sizeof(*ad));
	ad->ad_af = AF_INET6;
	for (i = 31; i >= 0; i--) {
		if ((value = reverse_label(&name, 16, 1)) == -1)
			return false;
		ad->ad_bytes[i / 2] |= (uint8_t)(i % 2 ? value : value << 4);
	}
	return strcmp(name, "ip6.arpa") == 0;
}

static bool
is_localhost(const char *name)
{
	size_t	 len = strlen(name), own = strlen("localhost");

	return len >= own && strcmp(name + len - own, "localhost") == 0 &&
	    (len == own || name[len - own - 1] == '.');
}

/* RFC 6761, 6.3: loopback is the sandbox's own, whatever is before the dot. */
static void
answer_localhost(struct answer *an)
{
	an->an_has_pair = true;
	addr_parse("127.0.0.1", &an->an_pair.np_v4);
	addr_parse("::1", &an->an_pair.np_v6);
}

static void
answer_name(struct answer *an, bool room, struct dns_asked *asked)
{
	switch (names_assign(asked->da_name, room, &an->an_pair)) {
	case NAMES_NEW:
		asked->da_news = DNS_NEW_NAME;
		/* FALLTHROUGH */
	case NAMES_KNOWN:
		an->an_has_pair = true;
		break;
	case NAMES_FULL:
		asked->da_news = DNS_NO_ROOM;
		an->an_rcode = SERVFAIL;
		break;
	}
}

/*
 * The name counts as asked whatever is asked about it: a secret travels in a
 * TXT question as well as in any other.
 */
static void
resolve(const struct query *qu, bool room, struct answer *an,
    struct dns_asked *asked)
{
	struct addr	 ad;
	char		*name = asked->da_name;

	if (qu->qu_name[0] == '\0')
		return;			/* the root: there is one */
	if (qu->qu_escaped || hostname_canon(qu->qu_name, strlen(qu->qu_name),
	    name, HOSTNAME_MAX, NULL) == -1 || hostname_is_addr(name)) {
		asked->da_news = DNS_BAD_NAME;
		strlcpy(name, qu->qu_name, HOSTNAME_MAX);
		an->an_rcode = NXDOMAIN;
	} else if (is_localhost(name))
		answer_localhost(an);
	else if (reverse_v4(name, &ad) || reverse_v6(name, &ad)) {
		if ((an->an_name = names_find(&ad)) == NULL)
			an->an_rcode = NXDOMAIN;
	} else
		answer_name(an, room, asked);
}

/* ---- answer -------------------------------------------------------------- */

static uint8_t *
put16(uint8_t *p, unsigned int value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
	return p + 2;
}

static uint8_t *
put_rr(uint8_t *p, unsigned int type, const void *data, size_t len)
{
	p = put16(p, POINTER | DNS_HEADER_LEN);
	p = put16(p, type);
	p = put16(p, CLASS_IN);
	p = put16(p, 0);
	p = put16(p, TTL_S);
	p = put16(p, (unsigned int)len);
	memcpy(p, data, len);
	return p + len;
}

/* A canonical name, which is at most 253 bytes of text. */
static uint8_t *
put_ptr(uint8_t *p, const char *name)
{
	uint8_t	 wire[NAME_WIRE_MAX];
	size_t	 len, n = 0;

	for (;; name += len + 1) {
		len = strcspn(name, ".");
		wire[n++] = (uint8_t)len;
		memcpy(wire + n, name, len);
		n += len;
		if (name[len] == '\0')
			break;
	}
	wire[n++] = 0;
	return put_rr(p, TYPE_PTR, wire, n);
}

/* The record that fits the type, or none: the name has nothing of that type. */
static uint8_t *
put_answer(uint8_t *p, const struct query *qu, const struct answer *an)
{
	if (an->an_rcode != NOERROR)
		return p;
	if (qu->qu_type == TYPE_A && an->an_has_pair)
		return put_rr(p, TYPE_A, an->an_pair.np_v4.ad_bytes, 4);
	if (qu->qu_type == TYPE_AAAA && an->an_has_pair)
		return put_rr(p, TYPE_AAAA, an->an_pair.np_v6.ad_bytes, 16);
	if (qu->qu_type == TYPE_PTR && an->an_name != NULL)
		return put_ptr(p, an->an_name);
	return p;
}

static uint8_t *
put_opt(uint8_t *p, enum rcode rcode)
{
	*p++ = 0;
	p = put16(p, TYPE_OPT);
	p = put16(p, DNS_QUERY_MAX);
	p = put16(p, (unsigned int)rcode >> 4 << 8);
	p = put16(p, 0);
	return put16(p, 0);
}

static size_t
reply(const struct query *qu, const struct answer *an, uint8_t *out)
{
	unsigned int	 flags = FLAG_QR | FLAG_RA | (an->an_rcode & 15);
	uint8_t		*p = out + DNS_HEADER_LEN, *end;

	flags |= qu->qu_flags & (FLAG_OPCODE | FLAG_RD | FLAG_CD);
	if (an->an_rcode == NOERROR || an->an_rcode == NXDOMAIN)
		flags |= FLAG_AA;
	memcpy(p, qu->qu_in + DNS_HEADER_LEN, qu->qu_question);
	p += qu->qu_question;
	end = put_answer(p, qu, an);
	memcpy(out, qu->qu_in, 2);
	put16(out + 2, flags);
	put16(out + 4, qu->qu_question > 0);
	put16(out + 6, end > p);
	put16(out + 8, 0);
	put16(out + 10, qu->qu_edns);
	if (qu->qu_edns)
		end = put_opt(end, an->an_rcode);
	return (size_t)(end - out);
}

size_t
dns_answer(const uint8_t *in, size_t len, bool room,
    uint8_t out[DNS_ANSWER_MAX], struct dns_asked *asked)
{
	struct query	 qu = { .qu_in = in, .qu_len = len, .qu_pos = 2 };
	struct answer	 an = { .an_rcode = NOERROR };

	asked->da_news = DNS_NO_NEWS;
	asked->da_name[0] = '\0';
	/* Never answer an answer: two servers would loop. */
	if (len < DNS_HEADER_LEN || !get16(&qu, &qu.qu_flags) ||
	    (qu.qu_flags & FLAG_QR) != 0)
		return 0;
	if ((an.an_rcode = query_parse(&qu)) == NOERROR) {
		resolve(&qu, room, &an, asked);
		if (qu.qu_class != CLASS_IN || is_transfer(&qu))
			an.an_rcode = REFUSED;
	}
	return reply(&qu, &an, out);
}
