/* SPDX-License-Identifier: ISC */

/* Tests of common/utf8.c. */

#include "test.h"

#include "utf8.h"

TEST(text_is_cut_between_characters)
{
	static const struct {
		const char	*text;
		size_t		 max;
		size_t		 len;
	} cuts[] = {
		{ "abcdefgh", 8, 8 }, { "abcdefgh", 7, 7 },
		{ "abcdef\303\251", 8, 8 }, { "abcdef\303\251", 7, 6 },
		{ "abcd\342\202\254h", 7, 7 }, { "abcd\342\202\254h", 6, 4 },
		{ "abcd\342\202\254h", 5, 4 },
		{ "abc\360\237\230\200", 6, 3 },
		{ "\200\200\200\200\200\200\200\200", 6, 6 },
	};
	size_t	 i;

	for (i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++)
		CHECK_INT(utf8_cut(cuts[i].text, strlen(cuts[i].text),
		    cuts[i].max), cuts[i].len);
}

TEST_MAIN("utf8")
