/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for tlsengine/dns/dns.c.  The first byte says whether there is
 * room for a new name, the rest is a packet.  What comes out is read again
 * here, by a parser that shares nothing with the one under test.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/addr.h"
#include "../../common/hostname.h"
#include "../../tlsengine/dns/dns.h"
#include "../../tlsengine/dns/names.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

#define TYPE_A		1
#define TYPE_PTR	12
#define TYPE_AAAA	28

struct reader {
	const uint8_t	*rd_p;
	const uint8_t	*rd_end;
};

static const uint8_t *
take(struct reader *rd, size_t n)
{
	const uint8_t	*p = rd->rd_p;

	REQUIRE(n <= (size_t)(rd->rd_end - rd->rd_p));
	rd->rd_p += n;
	return p;
}

static unsigned int
number(struct reader *rd, size_t n)
{
	const uint8_t	*p = take(rd, n);
	unsigned int	 value = 0;

	while (n-- > 0)
		value = value << 8 | *p++;
	return value;
}

/* A name without compression, as text; its bytes are not judged. */
static void
name(struct reader *rd, char text[256])
{
	const uint8_t	*start = rd->rd_p;
	unsigned int	 len;
	size_t		 n = 0;

	while ((len = number(rd, 1)) != 0) {
		REQUIRE(len <= 63);
		if (n > 0)
			text[n++] = '.';
		memcpy(text + n, take(rd, len), len);
		n += len;
		REQUIRE(rd->rd_p - start < 255);
	}
	text[n] = '\0';
}

/* The address that a name was given leads back to that name. */
static void
require_way_back(const struct addr *ad, const char *given)
{
	static const uint8_t	 head[] = {
		7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0
	};
	uint8_t			 in[128], out[DNS_ANSWER_MAX];
	char			 text[256];
	struct dns_asked	 asked;
	struct reader		 rd;
	size_t			 n = sizeof(head), question;
	int			 i;

	memcpy(in, head, sizeof(head));
	for (i = 3; i >= 0; i--) {
		snprintf(text, sizeof(text), "%u", ad->ad_bytes[i]);
		in[n++] = (uint8_t)strlen(text);
		memcpy(in + n, text, strlen(text));
		n += strlen(text);
	}
	memcpy(in + n, "\7in-addr\4arpa\0\0\x0c\0\1", 18);
	question = n + 18;
	n = dns_answer(in, question, false, out, &asked);
	REQUIRE(n > question + 12 && out[3] == 0x80);
	rd = (struct reader){ out + question + 12, out + n };
	name(&rd, text);
	REQUIRE(rd.rd_p == rd.rd_end && strcmp(text, given) == 0);
}

/* Only addresses that mean nothing outside, and names that are ours. */
static void
require_answer(struct reader *rd, unsigned int asked)
{
	char		 text[256], canon[HOSTNAME_MAX];
	struct addr	 ad = { .ad_af = AF_INET };
	const char	*given;
	unsigned int	 type, len;

	REQUIRE(number(rd, 2) == 0xc00c);
	REQUIRE((type = number(rd, 2)) == asked);
	REQUIRE(number(rd, 2) == 1);
	REQUIRE(number(rd, 4) == 60);
	len = number(rd, 2);
	if (type == TYPE_PTR) {
		rd->rd_end = rd->rd_p + len;
		name(rd, text);
		REQUIRE(rd->rd_p == rd->rd_end);
		REQUIRE(hostname_canon(text, strlen(text), canon,
		    sizeof(canon), NULL) == 0 && strcmp(text, canon) == 0);
		return;
	}
	REQUIRE(type == TYPE_A || type == TYPE_AAAA);
	REQUIRE(len == (type == TYPE_A ? 4 : 16));
	ad.ad_af = type == TYPE_A ? AF_INET : AF_INET6;
	memcpy(ad.ad_bytes, take(rd, len), len);
	if ((given = names_find(&ad)) == NULL)
		REQUIRE(addr_classify(&ad) == ADDR_LOOPBACK);
	else if (type == TYPE_A)
		require_way_back(&ad, given);
}

static void
require_sound(const uint8_t *in, size_t len, const uint8_t *out, size_t outlen)
{
	struct reader	 rd = { out, out + outlen }, answer;
	char		 text[256];
	const uint8_t	*question;
	unsigned int	 qd, an, ar, type = 0, rcode;

	REQUIRE(outlen >= DNS_HEADER_LEN && outlen <= DNS_ANSWER_MAX);
	REQUIRE(memcmp(take(&rd, 2), in, 2) == 0);
	REQUIRE((*rd.rd_p & 0xfa) == (0x80 | (in[2] & 0x78)));
	rcode = number(&rd, 2) & 15;
	qd = number(&rd, 2);
	an = number(&rd, 2);
	REQUIRE(number(&rd, 2) == 0);
	ar = number(&rd, 2);
	REQUIRE(qd <= 1 && an <= qd && ar <= qd && (rcode == 0 || an == 0));
	question = rd.rd_p;
	if (qd == 1) {
		name(&rd, text);
		type = number(&rd, 2);
		number(&rd, 2);
		REQUIRE((size_t)(rd.rd_p - out) <= len);
		REQUIRE(memcmp(question, in + DNS_HEADER_LEN,
		    (size_t)(rd.rd_p - question)) == 0);
	}
	answer = rd;
	answer.rd_end -= ar * 11;
	if (an == 1)
		require_answer(&answer, type);
	REQUIRE(answer.rd_p == out + outlen - ar * 11);
	if (ar == 1)
		REQUIRE(memcmp(answer.rd_p, "\0\0\x29\4\xd0", 5) == 0 &&
		    answer.rd_p[5] <= 1 &&
		    memcmp(answer.rd_p + 6, "\0\0\0\0\0", 5) == 0);
}

static void
require_told(const struct dns_asked *asked)
{
	char		 canon[HOSTNAME_MAX];
	const char	*p;

	REQUIRE(memchr(asked->da_name, '\0', sizeof(asked->da_name)) != NULL);
	for (p = asked->da_name; *p != '\0'; p++)
		REQUIRE(*p > ' ' && *p < 0x7f);
	if (asked->da_news != DNS_NEW_NAME && asked->da_news != DNS_NO_ROOM)
		return;
	REQUIRE(hostname_canon(asked->da_name, strlen(asked->da_name), canon,
	    sizeof(canon), NULL) == 0 && strcmp(canon, asked->da_name) == 0);
	REQUIRE(!hostname_is_addr(canon));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t			 out[DNS_ANSWER_MAX], again[DNS_ANSWER_MAX];
	struct dns_asked	 asked;
	size_t			 len, n;

	if (size == 0)
		return 0;
	len = size - 1;
	n = dns_answer(data + 1, len, data[0] & 1, out, &asked);
	REQUIRE((n == 0) == (len < DNS_HEADER_LEN || (data[3] & 0x80) != 0));
	require_told(&asked);
	if (n == 0)
		return 0;
	REQUIRE((data[0] & 1) != 0 || asked.da_news != DNS_NEW_NAME);
	require_sound(data + 1, len, out, n);
	/* Asked again it is no news, and the answer is the same. */
	REQUIRE(dns_answer(data + 1, len, false, again, &asked) == n);
	REQUIRE(memcmp(out, again, n) == 0);
	REQUIRE(asked.da_news != DNS_NEW_NAME);
	return 0;
}
