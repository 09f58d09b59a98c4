/* SPDX-License-Identifier: ISC */

/*
 * HPACK's Huffman code (RFC 7541, 5.2 and appendix B); see hpack.h.  Runs in
 * the tlsengine, on the bytes of hostile agents and hostile origins.
 *
 * A string is read as if ones without end followed it.  The code of EOS is all
 * ones, hence it ends every string, and is an error only if it stands for more
 * than the padding.  What begins in the string and takes bits from behind it
 * was cut off.
 */

#include <endian.h>
#include <string.h>

#include "hpack.h"

#define EOS		256	/* sorts behind all bytes */
#define BITS_MAX	30	/* of a code */
/* Bits looked up at once: two of the most frequent letters. */
#define PAIR_BITS	12
/* Pairs that fit into a window of 57 bits. */
#define PAIRS		4

/* The code is canonical: the symbols by length, then by value, say it all. */
#define ROW(bits, symbols)	{ bits, sizeof(symbols) - 1, symbols }
static const struct {
	uint8_t		 r_bits;
	uint8_t		 r_n;
	const char	*r_symbols;
} rows[] = {
	ROW(5, "012aceiost"),
	ROW(6, " %-./3456789=A_bdfghlmnpru"),
	ROW(7, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
	ROW(8, "&*,;XZ"),
	ROW(10, "!\"()?"),
	ROW(11, "'+|"),
	ROW(12, "#>"),
	ROW(13, "\x00$@[]~"),
	ROW(14, "^}"),
	ROW(15, "<`{"),
	ROW(19, "\\\xc3\xd0"),
	ROW(20, "\x80\x82\x83\xa2\xb8\xc2\xe0\xe2"),
	ROW(21, "\x99\xa1\xa7\xac\xb0\xb1\xb3\xd1\xd8\xd9\xe3\xe5\xe6"),
	ROW(22, "\x81\x84\x85\x86\x88\x92\x9a\x9c\xa0\xa3\xa4\xa9\xaa"
	    "\xad\xb2\xb5\xb9\xba\xbb\xbd\xbe\xc4\xc6\xe4\xe8\xe9"),
	ROW(23, "\x01\x87\x89\x8a\x8b\x8c\x8d\x8f\x93\x95\x96\x97\x98"
	    "\x9b\x9d\x9e\xa5\xa6\xa8\xae\xaf\xb4\xb6\xb7\xbc\xbf"
	    "\xc5\xe7\xef"),
	ROW(24, "\x09\x8e\x90\x91\x94\x9f\xab\xce\xd7\xe1\xec\xed"),
	ROW(25, "\xc7\xcf\xea\xeb"),
	ROW(26, "\xc0\xc1\xc8\xc9\xca\xcd\xd2\xd5\xda\xdb\xee\xf0\xf2"
	    "\xf3\xff"),
	ROW(27, "\xcb\xcc\xd3\xd4\xd6\xdd\xde\xdf\xf1\xf4\xf5\xf6\xf7"
	    "\xf8\xfa\xfb\xfc\xfd\xfe"),
	ROW(28, "\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11"
	    "\x12\x13\x14\x15\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f"
	    "\x7f\xdc\xf9"),
	ROW(30, "\x0a\x0d\x16"),
};

/*
 * Codes aligned to the left, so that they sort as numbers: those of n bits are
 * below limits[n] and stand for symbols[first code - offsets[n]] on.
 */
static uint32_t	 limits[BITS_MAX];
static uint32_t	 offsets[BITS_MAX + 1];
static uint8_t	 symbols[EOS];

/* The one or two symbols that an index begins with; none: a longer code. */
static struct pair {
	uint8_t	 p_symbols[2];
	uint8_t	 p_n;
	uint8_t	 p_bits;
} pairs[1 << PAIR_BITS];

static void
init_codes(void)
{
	uint32_t	 code = 0, at = 0;
	unsigned int	 bits, row = 0;

	for (bits = 1; bits <= BITS_MAX; bits++) {
		code <<= 1;
		offsets[bits] = code - at;
		if (rows[row].r_bits == bits) {
			memcpy(symbols + at, rows[row].r_symbols,
			    rows[row].r_n);
			at += rows[row].r_n;
			code += rows[row++].r_n;
		}
		if (bits < BITS_MAX)
			limits[bits] = code << (32 - bits);
	}
}

/* The symbol at the highest bits of a window. */
static unsigned int
one_symbol(uint64_t window, unsigned int *bits)
{
	uint32_t	 v = window >> 32, at;

	for (*bits = 5; *bits < BITS_MAX && v >= limits[*bits]; )
		++*bits;
	at = (v >> (32 - *bits)) - offsets[*bits];
	return at < EOS ? symbols[at] : EOS;
}

static void
init_pair(uint32_t index)
{
	struct pair	*p = &pairs[index];
	uint64_t	 window = (uint64_t)index << (64 - PAIR_BITS);
	unsigned int	 symbol, bits;

	while (p->p_n < 2) {
		symbol = one_symbol(window << p->p_bits, &bits);
		if (p->p_bits + bits > PAIR_BITS)
			break;
		p->p_symbols[p->p_n++] = symbol;
		p->p_bits += bits;
	}
}

void
hpack_huffman_init(void)
{
	uint32_t	 i;

	if (pairs[0].p_n != 0)
		return;
	init_codes();
	for (i = 0; i < 1 << PAIR_BITS; i++)
		init_pair(i);
}

/* The bits from one on, followed by ones where the string has ended. */
static inline uint64_t
window_at(const unsigned char *s, size_t len, size_t room, size_t bit)
{
	size_t		 at = bit / 8;
	uint64_t	 v = 0;

	if (at >= len)
		return UINT64_MAX;
	if (room - at >= sizeof(v))
		memcpy(&v, s + at, sizeof(v));
	else
		memcpy(&v, s + at, room - at);
	v = be64toh(v);
	if (len - at < sizeof(v))
		v |= UINT64_MAX >> (8 * (len - at));
	return v << (bit % 8);
}

ptrdiff_t
hpack_huffman_decode(const unsigned char *s, size_t len, size_t room,
    char *text)
{
	const struct pair	*p;
	uint64_t		 window;
	size_t			 bit = 0;
	unsigned int		 i, symbol, bits;
	char			*out = text;

	for (;;) {
		window = window_at(s, len, room, bit);
		for (i = 0; i < PAIRS; i++) {
			p = &pairs[window >> (64 - PAIR_BITS)];
			if (p->p_n == 0)
				break;
			memcpy(out, p->p_symbols, sizeof(p->p_symbols));
			out += p->p_n;
			window <<= p->p_bits;
			bit += p->p_bits;
		}
		if (i == PAIRS)
			continue;
		/* Not in the table: a long code, or padding of ones. */
		if (8 * len < bit + 8)
			return bit <= 8 * len ? out - text : -1;
		symbol = one_symbol(window_at(s, len, room, bit), &bits);
		if (symbol == EOS)
			return -1;
		*out++ = symbol;
		bit += bits;
	}
}
