/* SPDX-License-Identifier: ISC */

/*
 * tlsengine/dns/names.c: every name has its own addresses, for good.  The cases
 * share one table, as a session does; the last one fills it.
 */

#include <netinet/in.h>

#include <time.h>

#include "common/addr.h"
#include "test.h"
#include "tlsengine/dns/names.h"

static uint32_t
v4_of(const struct addr *ad)
{
	uint32_t	 word;

	memcpy(&word, ad->ad_bytes, sizeof(word));
	return ntohl(word);
}

static const char *
found(const char *text)
{
	struct addr	 ad;

	CHECK_FOR(text, addr_parse(text, &ad) == 0);
	return names_find(&ad);
}

/* Assigned, and found again by both addresses. */
static enum names_result
assign(const char *name, struct names_pair *np)
{
	enum names_result	 result = names_assign(name, true, np);

	if (result == NAMES_FULL)
		return result;
	CHECK_FOR(name, np->np_v4.ad_af == AF_INET);
	CHECK_FOR(name, np->np_v6.ad_af == AF_INET6);
	CHECK_STR(names_find(&np->np_v4), name);
	CHECK_STR(names_find(&np->np_v6), name);
	return result;
}

static double
seconds(void)
{
	struct timespec	 ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

TEST(nothing_before_the_first)
{
	CHECK(found("198.18.0.2") == NULL);
	CHECK(found("198.19.255.254") == NULL);
	CHECK(found("fd00::1") == NULL);
	CHECK(found("::") == NULL);
}

TEST(enabled)
{
	CHECK(!names_enabled());
	names_enable(true);
	CHECK(names_enabled());
	names_enable(false);
	CHECK(!names_enabled());
}

TEST(no_room_gives_nothing)
{
	struct names_pair	 np;

	CHECK_INT(names_assign("late.test", false, &np), NAMES_FULL);
	CHECK_INT(assign("late.test", &np), NAMES_NEW);
	CHECK_INT(names_assign("late.test", false, &np), NAMES_KNOWN);
}

TEST(same_name_same_pair)
{
	struct names_pair	 a, b, again;

	CHECK_INT(assign("a.test", &a), NAMES_NEW);
	CHECK_INT(assign("b.test", &b), NAMES_NEW);
	CHECK_INT(assign("a.test", &again), NAMES_KNOWN);
	CHECK_INT(addr_cmp(&a.np_v4, &again.np_v4), 0);
	CHECK_INT(addr_cmp(&a.np_v6, &again.np_v6), 0);
	CHECK(addr_cmp(&a.np_v4, &b.np_v4) != 0);
	CHECK(addr_cmp(&a.np_v6, &b.np_v6) != 0);
	CHECK_INT(a.np_v6.ad_bytes[0], 0xfd);
	CHECK_MEM(a.np_v6.ad_bytes, 8, b.np_v6.ad_bytes, 8);
	CHECK_INT(addr_classify(&a.np_v4), ADDR_BENCHMARK);
	CHECK_INT(addr_classify(&a.np_v6), ADDR_PRIVATE);
}

/* Prefixes of each other, and lengths about those of the hash's words. */
TEST(alike)
{
	char			 name[254];
	struct names_pair	 np;
	size_t			 len;

	for (len = 1; len < sizeof(name); len++) {
		memset(name, 'x', len);
		name[len] = '\0';
		CHECK_INT(assign(name, &np), NAMES_NEW);
		name[len - 1] = 'y';
		CHECK_INT(assign(name, &np), NAMES_NEW);
	}
}

/* Neighbours of an address that was given out, and what is not ours. */
TEST(not_given_out)
{
	static const char *const	 texts[] = {
		"0.0.0.0", "198.18.0.0", "198.18.0.1", "198.19.255.255",
		"198.17.255.255", "198.20.0.0", "255.255.255.255", "127.0.0.1",
		"::", "::1", "::ffff:198.18.0.2", "fd00:ec2::254"
	};
	struct names_pair	 np;
	size_t			 i;

	CHECK_INT(assign("neighbour.test", &np), NAMES_NEW);
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK_FOR(texts[i], found(texts[i]) == NULL);
	for (i = 0; i < 12; i++) {
		np.np_v6.ad_bytes[i] ^= 1;
		CHECK(names_find(&np.np_v6) == NULL);
		np.np_v6.ad_bytes[i] ^= 1;
	}
	memset(np.np_v6.ad_bytes + 12, 0, 4);
	CHECK(names_find(&np.np_v6) == NULL);
	memset(np.np_v6.ad_bytes + 12, 0xff, 4);
	CHECK(names_find(&np.np_v6) == NULL);
}

/* ---- names that collide where the hash has no key ------------------------ */

#define FLOOD_BLOCKS	13	/* two spellings each: 8192 names */
#define FLOOD_BITS	0xffff	/* of the hash: a slot in any table of ours */
#define BLOCK_LEN	3

static uint32_t
fnv(uint32_t h, const char *p, size_t len)
{
	for (; len > 0; p++, len--)
		h = (h ^ (unsigned char)*p) * 16777619U;
	return h & FLOOD_BITS;
}

/* Two blocks that bring the hash from one state to the same other state. */
static uint32_t
find_blocks(uint32_t state, char a[BLOCK_LEN + 1], char b[BLOCK_LEN + 1])
{
	static unsigned int	 seen[FLOOD_BITS + 1];
	unsigned int		 n;
	uint32_t		 h;

	memset(seen, 0, sizeof(seen));
	for (n = 1; n < 26 * 26 * 26; n++) {
		snprintf(a, BLOCK_LEN + 1, "%c%c%c", 'a' + n % 26,
		    'a' + n / 26 % 26, 'a' + n / 676);
		h = fnv(state, a, BLOCK_LEN);
		if (seen[h] != 0)
			break;
		seen[h] = n;
	}
	CHECK(n < 26 * 26 * 26);
	n = seen[h];
	snprintf(b, BLOCK_LEN + 1, "%c%c%c", 'a' + n % 26, 'a' + n / 26 % 26,
	    'a' + n / 676);
	return h;
}

static double
time_of(char blocks[FLOOD_BLOCKS][2][BLOCK_LEN + 1], uint32_t *hash)
{
	struct names_pair	 np;
	char			 name[FLOOD_BLOCKS * BLOCK_LEN + 1] = "";
	unsigned int		 n, i;
	double			 start = seconds();

	for (n = 0; n < 1U << FLOOD_BLOCKS; n++) {
		for (i = 0; i < FLOOD_BLOCKS; i++)
			memcpy(name + i * BLOCK_LEN, blocks[i][n >> i & 1],
			    BLOCK_LEN);
		CHECK_FOR(name, names_assign(name, true, &np) == NAMES_NEW);
	}
	*hash = fnv(0, name, strlen(name));
	return seconds() - start;
}

/* They cost what others cost. */
TEST(hash_flood)
{
	char		 flood[FLOOD_BLOCKS][2][BLOCK_LEN + 1];
	char		 plain[FLOOD_BLOCKS][2][BLOCK_LEN + 1];
	uint32_t	 state = 0, hash;
	double		 one, other;
	size_t		 i;

	for (i = 0; i < FLOOD_BLOCKS; i++) {
		state = find_blocks(state, flood[i][0], flood[i][1]);
		strlcpy(plain[i][0], "--0", BLOCK_LEN + 1);
		strlcpy(plain[i][1], "--1", BLOCK_LEN + 1);
	}
	other = time_of(plain, &hash);
	one = time_of(flood, &hash);
	CHECK_INT(hash, state);
	if (one > 10 * other + 0.02)
		test_end(TEST_FAILED, "%f s, others %f s", one, other);
}

/* To the last name: no address twice, none that is reserved, then no more. */
TEST(full)
{
	static uint8_t		 seen[0x20000];
	struct names_pair	 np, first;
	char			 name[32];
	unsigned int		 n, made = 0;
	uint32_t		 v4;
	enum names_result	 result;

	CHECK_INT(assign("n0.full.test", &first), NAMES_NEW);
	for (n = 1;; n++) {
		snprintf(name, sizeof(name), "n%u.full.test", n);
		if ((result = assign(name, &np)) == NAMES_FULL)
			break;
		CHECK_INT(result, NAMES_NEW);
		v4 = v4_of(&np.np_v4) - 0xc6120000U;
		CHECK(v4 > 1 && v4 < sizeof(seen));
		CHECK(v4 % 256 != 0 && v4 % 256 != 255);
		CHECK_INT(seen[v4]++, 0);
		made++;
	}
	CHECK(made > NAMES_MAX / 2 && made < NAMES_MAX);
	CHECK_INT(assign("n0.full.test", &np), NAMES_KNOWN);
	CHECK_INT(addr_cmp(&np.np_v4, &first.np_v4), 0);
	CHECK_INT(assign(name, &np), NAMES_FULL);
	for (n = 1; n <= made; n++) {
		snprintf(name, sizeof(name), "n%u.full.test", n);
		CHECK_INT(assign(name, &np), NAMES_KNOWN);
	}
}

/* All of 198.18.0.0/15: as many addresses have a name as there are names. */
TEST(full_and_counted)
{
	struct addr	 ad = { .ad_af = AF_INET };
	uint32_t	 v4, word;
	unsigned int	 n = 0;

	for (v4 = 0xc6120000U; v4 < 0xc6140000U; v4++) {
		word = htonl(v4);
		memcpy(ad.ad_bytes, &word, sizeof(word));
		n += names_find(&ad) != NULL;
	}
	CHECK_INT(n, NAMES_MAX);
}

TEST_MAIN("names")
