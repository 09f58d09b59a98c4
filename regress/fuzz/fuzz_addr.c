/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for common/addr.c.  The input is the text of an address or
 * prefix; its first bytes also serve as a raw address.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/addr.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

static void
require_class(const struct addr *ad)
{
	struct addr	 v4[ADDR_EMBED_MAX];
	enum addr_class	 class = addr_classify(ad);
	size_t		 i, n = addr_embedded(ad, v4);

	REQUIRE(class < ADDR_NCLASSES);
	REQUIRE(n <= ADDR_EMBED_MAX && (n == 0 || ad->ad_af == AF_INET6));
	/* No wrapping makes an address more welcome than it is. */
	for (i = 0; i < n; i++)
		REQUIRE(class >= addr_classify(&v4[i]));
	if (ad->ad_af == AF_INET6 && class == ADDR_GLOBAL && n == 0)
		REQUIRE(ad->ad_bytes[0] >> 5 == 1);
}

static void
require_round_trips(const struct addr *ad)
{
	struct sockaddr_storage	 ss;
	struct addr		 back;
	struct prefix		 pf;
	char			 text[ADDR_STRLEN], again[ADDR_STRLEN];
	socklen_t		 len;
	uint16_t		 port;

	addr_format(ad, text, sizeof(text));
	REQUIRE(addr_parse(text, &back) == 0 && addr_cmp(ad, &back) == 0);
	REQUIRE(strcmp(addr_format(&back, again, sizeof(again)), text) == 0);

	len = addr_to_sockaddr(ad, 65535, &ss);
	REQUIRE(addr_from_sockaddr((struct sockaddr *)&ss, len, &back,
	    &port) == 0);
	REQUIRE(addr_cmp(ad, &back) == 0 && port == 65535);

	REQUIRE(prefix_parse(text, &pf, NULL) == 0 && prefix_match(&pf, ad));
}

/* The same IPv4 address, wrapped, is of the same class or a worse one. */
static void
require_seen_through(const struct addr *v4)
{
	static const struct {
		uint8_t	 bytes[16];
		uint8_t	 offset;
	} wraps[] = {
		{ { [10] = 0xff, 0xff }, 12 },
		{ { 0, 0x64, 0xff, 0x9b }, 12 },
		{ { 0x20, 0x02 }, 2 },
		{ { 0x26, 0x06, 0x47, [10] = 0x5e, 0xfe }, 12 },
	};
	struct addr	 ad;
	size_t		 i;

	for (i = 0; i < sizeof(wraps) / sizeof(wraps[0]); i++) {
		ad.ad_af = AF_INET6;
		memcpy(ad.ad_bytes, wraps[i].bytes, sizeof(ad.ad_bytes));
		memcpy(ad.ad_bytes + wraps[i].offset, v4->ad_bytes, 4);
		REQUIRE(addr_classify(&ad) == addr_classify(v4));
	}
}

static void
fuzz_raw(const uint8_t *data, size_t size)
{
	struct addr	 ad;

	memset(&ad, 0, sizeof(ad));
	if (size >= 16) {
		ad.ad_af = AF_INET6;
		memcpy(ad.ad_bytes, data, 16);
	} else if (size >= 4) {
		ad.ad_af = AF_INET;
		memcpy(ad.ad_bytes, data, 4);
		require_seen_through(&ad);
	} else
		return;
	require_class(&ad);
	require_round_trips(&ad);
}

static void
fuzz_text(const char *text)
{
	struct addr	 ad;
	struct prefix	 pf, back;
	const char	*why = NULL;
	char		 buf[PREFIX_STRLEN];

	if (addr_parse(text, &ad) == 0) {
		require_class(&ad);
		require_round_trips(&ad);
	}
	if (prefix_parse(text, &pf, &why) == -1) {
		REQUIRE(why != NULL && !prefix_valid(&pf));
		return;
	}
	REQUIRE(prefix_valid(&pf) && prefix_match(&pf, &pf.pf_addr));
	prefix_format(&pf, buf, sizeof(buf));
	REQUIRE(prefix_parse(buf, &back, NULL) == 0);
	REQUIRE(addr_cmp(&pf.pf_addr, &back.pf_addr) == 0 &&
	    pf.pf_len == back.pf_len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char	*text;

	if ((text = malloc(size + 1)) == NULL)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	fuzz_text(text);
	free(text);
	fuzz_raw(data, size);
	return 0;
}
