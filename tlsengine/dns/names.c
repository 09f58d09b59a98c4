/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: which synthetic addresses stand for which name.  The
 * agent chooses the names, their number and their order, so the table is
 * bounded and its hash keyed.
 *
 * Names are numbered as they come, and the number gives both addresses by
 * arithmetic: the way back needs no second table.  A name costs one small
 * allocation, a pointer and two slots, some 60 bytes; 65,536 names of the
 * greatest length are 20 MB.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

/*
 * Of 198.18.0.0/15 no address is used that ends in 0 or 255, which old stacks
 * and careful firewalls take for networks and broadcasts; 198.18.0.1 is box's.
 */
#define V4_NET		0xc6120000U
#define V4_SIZE		0x20000U
#define V4_PER_BLOCK	254U
#define V4_COUNT	(V4_SIZE / 256 * V4_PER_BLOCK - 1)

#define FIRST_ROOM	64	/* names; doubled when they are used up */

_Static_assert(NAMES_MAX <= V4_COUNT, "more names than addresses");
_Static_assert(NAMES_MAX % FIRST_ROOM == 0 &&
    (NAMES_MAX & (NAMES_MAX - 1)) == 0, "doubling must end at the maximum");

struct name {
	uint32_t	 nm_hash;
	char		 nm_text[];
};

static bool		 enabled;
static struct name	**names;	/* by number */
static uint32_t		*slots;		/* number + 1 by hash, 0: free */
static uint32_t		 nnames;
static uint32_t		 room_for;	/* so many names; twice the slots */
static uint64_t		 key[2];
static uint32_t		 v4_first;
static uint8_t		 v6_net[8];

bool
names_enabled(void)
{
	return enabled;
}

void
names_enable(bool on)
{
	enabled = on;
}

/* ---- hash: SipHash-2-4 (Aumasson and Bernstein, 2012) -------------------- */

static uint64_t
rotate(uint64_t x, unsigned int n)
{
	return x << n | x >> (64 - n);
}

static void
sip_rounds(uint64_t v[4], int n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32) + v[3];
		v[2] += v[1];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

static void
sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_rounds(v, 2);
	v[0] ^= word;
}

static uint32_t
name_hash(const char *name, size_t len)
{
	uint64_t	 v[4], word;
	size_t		 left;

	v[0] = key[0] ^ 0x736f6d6570736575;
	v[1] = key[1] ^ 0x646f72616e646f6d;
	v[2] = key[0] ^ 0x6c7967656e657261;
	v[3] = key[1] ^ 0x7465646279746573;
	for (left = len; left >= sizeof(word); left -= sizeof(word)) {
		memcpy(&word, name, sizeof(word));
		sip_word(v, word);
		name += sizeof(word);
	}
	word = 0;
	memcpy(&word, name, left);
	sip_word(v, word | (uint64_t)len << 56);
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return (uint32_t)(v[0] ^ v[1] ^ v[2] ^ v[3]);
}

/* ---- number and addresses ------------------------------------------------ */

/*
 * The first address is chosen by chance: an engine that is started again for
 * the same sandbox, where the old addresses are remembered, then hardly ever
 * means other names by them.
 */
static void
choose_addresses(void)
{
	arc4random_buf(key, sizeof(key));
	v4_first = arc4random_uniform(V4_COUNT);
	arc4random_buf(v6_net, sizeof(v6_net));
	v6_net[0] = 0xfd;		/* RFC 4193, 3.1 */
}

static void
number_to_pair(uint32_t number, struct names_pair *np)
{
	uint32_t	 nth, v4, id;

	memset(np, 0, sizeof(*np));
	nth = (v4_first + number) % V4_COUNT + 1;	/* 0 is box's */
	v4 = htonl(V4_NET + nth / V4_PER_BLOCK * 256 + nth % V4_PER_BLOCK + 1);
	np->np_v4.ad_af = AF_INET;
	memcpy(np->np_v4.ad_bytes, &v4, sizeof(v4));
	id = htonl(number + 1);		/* 0 is the routers' anycast */
	np->np_v6.ad_af = AF_INET6;
	memcpy(np->np_v6.ad_bytes, v6_net, sizeof(v6_net));
	memcpy(np->np_v6.ad_bytes + 12, &id, sizeof(id));
}

/* The number behind an address, also if no name has it. */
static uint32_t
addr_to_number(const struct addr *ad)
{
	uint32_t	 word, nth;

	if (ad->ad_af == AF_INET6) {
		memcpy(&word, ad->ad_bytes + 12, sizeof(word));
		return ntohl(word) - 1;
	}
	memcpy(&word, ad->ad_bytes, sizeof(word));
	word = ntohl(word) - V4_NET;
	nth = word / 256 * V4_PER_BLOCK + word % 256 - 1;
	return (nth - 1 + V4_COUNT - v4_first) % V4_COUNT;
}

/* Any address yields a number; only a given one maps back to itself. */
const char *
names_find(const struct addr *ad)
{
	struct names_pair	 np;
	uint32_t		 number = addr_to_number(ad);

	if (number >= nnames)
		return NULL;
	number_to_pair(number, &np);
	if (addr_cmp(ad, ad->ad_af == AF_INET6 ? &np.np_v6 : &np.np_v4) != 0)
		return NULL;
	return names[number]->nm_text;
}

/* ---- table --------------------------------------------------------------- */

/* The slot of a name, or the free one where it would be. */
static uint32_t *
slot_find(const char *name, uint32_t hash)
{
	uint32_t	 mask = room_for * 2 - 1, i;

	for (i = hash & mask; slots[i] != 0; i = (i + 1) & mask)
		if (names[slots[i] - 1]->nm_hash == hash &&
		    strcmp(names[slots[i] - 1]->nm_text, name) == 0)
			break;
	return &slots[i];
}

static int
table_grow(void)
{
	uint32_t	 i, room = room_for == 0 ? FIRST_ROOM : room_for * 2;
	uint32_t	*more_slots;
	struct name	**more_names;

	if ((more_slots = calloc(room * 2, sizeof(*slots))) == NULL)
		return -1;
	more_names = reallocarray(names, room, sizeof(*names));
	if (more_names == NULL) {
		free(more_slots);
		return -1;
	}
	free(slots);
	slots = more_slots;
	names = more_names;
	room_for = room;
	for (i = 0; i < nnames; i++)
		*slot_find(names[i]->nm_text, names[i]->nm_hash) = i + 1;
	return 0;
}

static struct name *
name_new(const char *text, uint32_t hash)
{
	size_t		 size = strlen(text) + 1;
	struct name	*nm;

	if ((nm = malloc(sizeof(*nm) + size)) == NULL)
		return NULL;
	nm->nm_hash = hash;
	memcpy(nm->nm_text, text, size);
	return nm;
}

enum names_result
names_assign(const char *text, bool room, struct names_pair *np)
{
	uint32_t	 hash, *slot;
	struct name	*nm;

	if (room_for == 0) {
		choose_addresses();
		if (table_grow() == -1)
			return NAMES_FULL;
	}
	hash = name_hash(text, strlen(text));
	if (*(slot = slot_find(text, hash)) != 0) {
		number_to_pair(*slot - 1, np);
		return NAMES_KNOWN;
	}
	if (!room || nnames == NAMES_MAX)
		return NAMES_FULL;
	if (nnames == room_for) {
		if (table_grow() == -1)
			return NAMES_FULL;
		slot = slot_find(text, hash);
	}
	if ((nm = name_new(text, hash)) == NULL)
		return NAMES_FULL;
	number_to_pair(nnames, np);
	names[nnames++] = nm;
	*slot = nnames;
	return NAMES_NEW;
}
