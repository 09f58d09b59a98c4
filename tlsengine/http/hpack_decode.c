/* SPDX-License-Identifier: ISC */

/*
 * Decoding HPACK (RFC 7541); see hpack.h.  Runs in the tlsengine, on the bytes
 * of hostile agents and hostile origins.
 */

#include <stdlib.h>
#include <string.h>

#include "hpack.h"

#define ENTRY_OVERHEAD		32	/* RFC 7541, 4.1 */
#define ENTRIES_MAX		(HPACK_TABLE_SIZE / ENTRY_OVERHEAD)
/* To the smallest size since the last block, and to the one there is (4.2). */
#define SIZE_UPDATES_MAX	2
/* Continuation bytes of an integer; nothing that is permitted needs more. */
#define INTEGER_MAX		3

/* What a byte begins (6), and the bits that it has for an integer. */
#define INDEXED			0x80
#define INDEXED_BITS		7
#define LITERAL_INDEX		0x40
#define LITERAL_INDEX_BITS	6
#define SIZE_UPDATE		0x20
#define SIZE_UPDATE_MASK	0xe0
#define SIZE_UPDATE_BITS	5
#define LITERAL_BITS		4
#define HUFFMAN			0x80
#define LENGTH_BITS		7

struct entry {
	uint16_t	 e_text;
	uint16_t	 e_nlen;
	uint16_t	 e_vlen;
	uint8_t		 e_name_memo;
	uint8_t		 e_value_memo;
};

/*
 * Two rings.  That of the texts, name and value together, is twice as large as
 * all that are alive: one that would cross its end goes to its beginning
 * instead, and meets none there.
 */
struct hpack_table {
	struct entry	 ht_entries[ENTRIES_MAX];
	char		 ht_texts[2 * HPACK_TABLE_SIZE];
};

struct block {
	const unsigned char	*b_p;
	const unsigned char	*b_end;
	char			*b_scratch;
	/* Memos of literals that are not in a table. */
	uint8_t			 b_name_memo;
	uint8_t			 b_value_memo;
};

_Static_assert((ENTRIES_MAX & (ENTRIES_MAX - 1)) == 0 &&
    ENTRIES_MAX <= UINT8_MAX, "the ring's index is a byte and is masked");

/* Names first, values behind them; a block has no more than fills it. */
static char	 scratch[HPACK_HUFFMAN_ROOM(HPACK_BLOCK_MAX)];
static uint8_t	 static_name_memos[HPACK_STATIC_N + 1];
static uint8_t	 static_value_memos[HPACK_STATIC_N + 1];

void
hpack_decoder_init(struct hpack_decoder *hk)
{
	hpack_huffman_init();
	*hk = (struct hpack_decoder){ .hk_max = HPACK_TABLE_SIZE };
}

void
hpack_decoder_free(struct hpack_decoder *hk)
{
	free(hk->hk_table);
	*hk = (struct hpack_decoder){ .hk_max = HPACK_TABLE_SIZE };
}

/* The newest is 0. */
static struct entry *
entry_at(struct hpack_decoder *hk, size_t i)
{
	return &hk->hk_table->ht_entries[(hk->hk_next - 1 - i) &
	    (ENTRIES_MAX - 1)];
}

static void
evict_to(struct hpack_decoder *hk, size_t size)
{
	const struct entry	*e;

	while (hk->hk_size > size) {
		e = entry_at(hk, --hk->hk_n);
		hk->hk_size -= e->e_nlen + e->e_vlen + ENTRY_OVERHEAD;
	}
}

/*
 * The name may be that of an entry which has to go, and its text may be
 * where the new one goes: it is moved, before the value is written.
 */
static void
write_entry(struct hpack_decoder *hk, const struct hpack_field *hp)
{
	struct hpack_table	*ht = hk->hk_table;
	struct entry		 e = { 0, hp->hp_nlen, hp->hp_vlen,
	    *hp->hp_name_memo, *hp->hp_value_memo };
	size_t			 len = hp->hp_nlen + hp->hp_vlen;

	e.e_text = hk->hk_text + len <= sizeof(ht->ht_texts) ?
	    hk->hk_text : 0;
	memmove(ht->ht_texts + e.e_text, hp->hp_name, hp->hp_nlen);
	memcpy(ht->ht_texts + e.e_text + hp->hp_nlen, hp->hp_value,
	    hp->hp_vlen);
	hk->hk_text = e.e_text + len;
	ht->ht_entries[hk->hk_next++ & (ENTRIES_MAX - 1)] = e;
	hk->hk_n++;
	hk->hk_size += len + ENTRY_OVERHEAD;
}

static int
insert(struct hpack_decoder *hk, const struct hpack_field *hp)
{
	size_t	 size = hp->hp_nlen + hp->hp_vlen + ENTRY_OVERHEAD;

	if (size > hk->hk_max) {
		evict_to(hk, 0);
		return 0;
	}
	if (hk->hk_table == NULL &&
	    (hk->hk_table = malloc(sizeof(*hk->hk_table))) == NULL)
		return -1;
	evict_to(hk, hk->hk_max - size);
	write_entry(hk, hp);
	return 0;
}

/* The lowest bits of the next byte and what continues them (5.1). */
static inline int
get_integer(struct block *b, int bits, size_t *n)
{
	size_t	 mask = ((size_t)1 << bits) - 1;
	int	 i;

	if (b->b_p == b->b_end)
		return -1;
	if ((*n = *b->b_p++ & mask) < mask)
		return 0;
	for (i = 0; i < INTEGER_MAX && b->b_p < b->b_end; i++) {
		*n += (size_t)(*b->b_p & 0x7f) << (7 * i);
		if ((*b->b_p++ & 0x80) == 0)
			return 0;
	}
	return -1;
}

/* A string, in place or, if Huffman coded, in the scratch buffer. */
static int
get_string(struct block *b, const char **s, size_t *len)
{
	const unsigned char	*p = b->b_p;
	size_t			 n, room;
	ptrdiff_t		 decoded;

	if (get_integer(b, LENGTH_BITS, &n) == -1)
		return -1;
	room = b->b_end - b->b_p;
	if (n > room)
		return -1;
	*s = (const char *)b->b_p;
	*len = n;
	if (*p & HUFFMAN) {
		if ((decoded = hpack_huffman_decode(b->b_p, n, room,
		    b->b_scratch)) == -1)
			return -1;
		*s = b->b_scratch;
		*len = decoded;
		b->b_scratch += decoded;
	}
	b->b_p += n;
	return 0;
}

static void
static_field(struct hpack_field *hp, size_t index)
{
	const struct hpack_static	*hs = &hpack_static[index];

	hp->hp_name = hs->hs_name;
	hp->hp_nlen = hs->hs_nlen;
	hp->hp_value = hs->hs_value;
	hp->hp_vlen = hs->hs_vlen;
	hp->hp_name_memo = &static_name_memos[hs->hs_first];
	hp->hp_value_memo = &static_value_memos[index];
}

static int
field_at(struct hpack_decoder *hk, struct hpack_field *hp, size_t index)
{
	struct entry	*e;

	if (index == 0 || index > (size_t)HPACK_STATIC_N + hk->hk_n)
		return -1;
	if (index <= HPACK_STATIC_N) {
		static_field(hp, index);
		return 0;
	}
	e = entry_at(hk, index - HPACK_STATIC_N - 1);
	hp->hp_name = hk->hk_table->ht_texts + e->e_text;
	hp->hp_nlen = e->e_nlen;
	hp->hp_value = hp->hp_name + e->e_nlen;
	hp->hp_vlen = e->e_vlen;
	hp->hp_name_memo = &e->e_name_memo;
	hp->hp_value_memo = &e->e_value_memo;
	return 0;
}

static int
get_indexed(struct hpack_decoder *hk, struct block *b, struct hpack_field *hp)
{
	size_t	 index;

	if (get_integer(b, INDEXED_BITS, &index) == -1)
		return -1;
	return field_at(hk, hp, index);
}

static int
get_literal(struct hpack_decoder *hk, struct block *b, int bits,
    struct hpack_field *hp)
{
	size_t	 index;

	b->b_scratch = scratch;
	b->b_name_memo = b->b_value_memo = 0;
	if (get_integer(b, bits, &index) == -1)
		return -1;
	if (index != 0) {
		if (field_at(hk, hp, index) == -1)
			return -1;
	} else {
		if (get_string(b, &hp->hp_name, &hp->hp_nlen) == -1)
			return -1;
		hp->hp_name_memo = &b->b_name_memo;
	}
	hp->hp_value_memo = &b->b_value_memo;
	return get_string(b, &hp->hp_value, &hp->hp_vlen);
}

static int
get_size_updates(struct hpack_decoder *hk, struct block *b)
{
	size_t	 size;
	int	 n;

	for (n = 0; b->b_p < b->b_end &&
	    (*b->b_p & SIZE_UPDATE_MASK) == SIZE_UPDATE; n++) {
		if (n == SIZE_UPDATES_MAX ||
		    get_integer(b, SIZE_UPDATE_BITS, &size) == -1 ||
		    size > HPACK_TABLE_SIZE)
			return -1;
		hk->hk_max = size;
		evict_to(hk, size);
	}
	return 0;
}

int
hpack_decode(struct hpack_decoder *hk, const void *data, size_t len,
    void (*field)(void *, const struct hpack_field *), void *arg)
{
	struct block		 b = { .b_p = data };
	struct hpack_field	 hp;
	int			 kind, r;

	if (len > HPACK_BLOCK_MAX)
		return -1;
	b.b_end = b.b_p + len;
	if (get_size_updates(hk, &b) == -1)
		return -1;
	while (b.b_p < b.b_end) {
		kind = *b.b_p;
		if (kind & INDEXED)
			r = get_indexed(hk, &b, &hp);
		else if (kind & LITERAL_INDEX)
			r = get_literal(hk, &b, LITERAL_INDEX_BITS, &hp);
		else if (kind & SIZE_UPDATE)
			return -1;
		else
			r = get_literal(hk, &b, LITERAL_BITS, &hp);
		if (r == -1)
			return -1;
		field(arg, &hp);
		if ((kind & (INDEXED | LITERAL_INDEX)) == LITERAL_INDEX &&
		    insert(hk, &hp) == -1)
			return -1;
	}
	return 0;
}
