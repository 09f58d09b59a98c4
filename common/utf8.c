/* SPDX-License-Identifier: ISC */

/*
 * Every process that writes JSON runs this, and egressctl for what it prints.
 * The text is hostile.
 */

#include "utf8.h"

/*
 * The length of the well-formed sequence at s (Unicode, table 3-7: no overlong
 * forms, no surrogates, nothing above U+10FFFF) and its code point, or 0.
 * Nothing after a byte that does not fit is read: with UTF8_LEN_MAX for a
 * length, s may also be a string that ends in a NUL.
 */
size_t
utf8_decode(const char *s, size_t len, uint32_t *code)
{
	static const uint32_t	 least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const uint8_t		*p = (const uint8_t *)s;
	size_t			 i, n;
	uint32_t		 c;

	if (p[0] < 0x80) {
		*code = p[0];
		return 1;
	}
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (n > len)
		return 0;
	c = p[0] & (0x7fU >> n);
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*code = c;
	return n;
}

/*
 * Characters above ASCII that move the cursor, end the line, reorder what
 * stands beside them, take no room, look like a space, or look like nothing
 * that two readers agree on: so that somebody sees another text than the one
 * that is there, and a model reads what a person does not.  Unicode 16:
 * Default_Ignorable_Code_Point, the categories Cc, Cf, Zs, Zl, Zp and Co, what
 * is blank though a letter, and what never will be a character.
 */
static const struct {
	uint32_t	 first, last;
} unseen[] = {
	{ 0x80, 0xa0 },		/* C1 controls, no-break space */
	{ 0xad, 0xad },		/* soft hyphen */
	{ 0x034f, 0x034f },	/* grapheme joiner */
	{ 0x0600, 0x0605 },	/* Arabic signs before a number */
	{ 0x061c, 0x061c },	/* Arabic letter mark */
	{ 0x06dd, 0x06dd },
	{ 0x070f, 0x070f },
	{ 0x0890, 0x0891 },
	{ 0x08e2, 0x08e2 },
	{ 0x115f, 0x1160 },	/* Hangul fillers */
	{ 0x1680, 0x1680 },	/* Ogham space */
	{ 0x17b4, 0x17b5 },	/* Khmer inherent vowels */
	{ 0x180b, 0x180f },	/* Mongolian selectors */
	{ 0x2000, 0x200f },	/* spaces, zero width, direction */
	{ 0x2028, 0x202f },	/* separators, embeddings */
	{ 0x205f, 0x206f },	/* word joiner, isolates */
	{ 0x2800, 0x2800 },	/* Braille without dots */
	{ 0x3000, 0x3000 },	/* ideographic space */
	{ 0x3164, 0x3164 },	/* Hangul filler */
	{ 0xe000, 0xf8ff },	/* private use */
	{ 0xfdd0, 0xfdef },	/* no characters */
	{ 0xfe00, 0xfe0f },	/* variation selectors */
	{ 0xfeff, 0xfeff },	/* byte order mark */
	{ 0xffa0, 0xffa0 },	/* half-width Hangul filler */
	{ 0xfff0, 0xfffc },	/* annotations, a place for an object */
	{ 0x110bd, 0x110bd },	/* Kaithi number signs */
	{ 0x110cd, 0x110cd },
	{ 0x13430, 0x13440 },	/* Egyptian joiners */
	{ 0x16fe4, 0x16fe4 },	/* Khitan filler */
	{ 0x1bca0, 0x1bca3 },	/* shorthand controls */
	{ 0x1d159, 0x1d159 },	/* a note without a head */
	{ 0x1d173, 0x1d17a },	/* beams and slurs */
	{ 0xe0000, 0xe0fff },	/* tags, more selectors */
	{ 0xf0000, 0x10ffff },	/* private use */
};

int
utf8_unseen(uint32_t c)
{
	size_t	 low = 0, high = sizeof(unseen) / sizeof(unseen[0]), mid;

	if ((c & 0xfffe) == 0xfffe)	/* the last two of every plane */
		return 1;
	while (low < high) {
		mid = (low + high) / 2;
		if (c > unseen[mid].last)
			low = mid + 1;
		else if (c < unseen[mid].first)
			high = mid;
		else
			return 1;
	}
	return 0;
}

/* At most so many bytes, and no character cut in two. */
size_t
utf8_cut(const char *text, size_t len, size_t max)
{
	size_t	 n;

	if (len <= max)
		return len;
	for (n = max; n > max - 4 && (text[n] & 0xc0) == 0x80; n--)
		continue;
	return (text[n] & 0xc0) == 0x80 ? max : n;
}
