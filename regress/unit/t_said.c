/* SPDX-License-Identifier: ISC */

/* Tests of podd's readers: lines, times, and records told again. */

#include "test.h"

#include "../../podd/podd.h"

#define HEAD(seq)	"{\"seq\":" seq ",\"kind\":\"name_asked\"," \
	"\"at\":\"2026-11-18T14:00:00.123Z\",\"session_id\":\"pod\","
#define TAIL		"\"prev\":null}"

static struct said_record	 sr;
static const char		*why;

static int
read_record(const char *text)
{
	return said_record(text, strlen(text), &sr, &why);
}

TEST(members)
{
	static const char	 told[] = "{\"x\":[1,-2,null,true,{\"y\":"
	    "\"\\u0000\\uef80\xc3\xa4\\n\"}]}";

	CHECK_INT(read_record(HEAD("7") "\"x\":[1,-2,null,true,{\"y\":"
	    "\"\\u0000\\uef80\\u00e4\\n\"}]," TAIL), 0);
	CHECK_INT(sr.sr_seq, 7);
	CHECK_INT(sr.sr_at, 1795010400123000000);
	CHECK_MEM(sr.sr_members, sr.sr_len, told, sizeof(told) - 1);
}

static const struct {
	const char	*text;
	uint64_t	 s;
} times[] = {
	{ "1970-01-01T00:00:00.000Z", 0 },
	{ "1999-12-31T23:59:59.000Z", 946684799 },
	{ "2000-02-29T00:00:00.000Z", 951782400 },
	{ "2000-03-01T00:00:00.000Z", 951868800 },
	{ "2024-02-29T12:00:00.000Z", 1709208000 },
	{ "2100-03-01T00:00:00.000Z", 4107542400 },
};

TEST(times)
{
	char	 text[256];
	size_t	 i;

	for (i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		snprintf(text, sizeof(text), "{\"seq\":1,\"kind\":"
		    "\"name_asked\",\"at\":\"%s\",\"session_id\":\"pod\","
		    TAIL, times[i].text);
		CHECK_INT(read_record(text), 0);
		CHECK_INT(sr.sr_at, times[i].s * 1000000000);
	}
}

/* What a line of ours can hold is cut until it does. */
TEST(long_strings)
{
	static char	 text[SAID_RECORD_LEN];
	size_t		 len;

	len = strlcpy(text, HEAD("1") "\"x\":\"", sizeof(text));
	memset(text + len, 'y', sizeof(text) - len);
	strlcpy(text + sizeof(text) - sizeof("\"," TAIL), "\"," TAIL,
	    sizeof("\"," TAIL));
	CHECK_INT(read_record(text), 0);
	CHECK(sr.sr_len < 20000);
	CHECK(memmem(sr.sr_members, sr.sr_len, "\"shortened\":true", 16) !=
	    NULL);
}

TEST(lines_in_pieces)
{
	static const char	 text[] = "one\n\ntwo\nthree";
	struct feed		 fe;
	const char		*line;
	size_t			 i, room, len, lines = 0;

	feed_init(&fe);
	for (i = 0; i < sizeof(text) - 1; i++) {
		*feed_room(&fe, &room) = text[i];
		feed_got(&fe, 1);
		while (feed_next(&fe, &line, &len) == 1)
			lines += len == 3 || len == 0;
	}
	CHECK_INT(lines, 3);
	feed_free(&fe);
}

/* A line without an end has one: the limit. */
TEST(endless_line)
{
	struct feed	 fe;
	const char	*line;
	size_t		 room, len, all = 0;
	char		*to;
	int		 rv;

	feed_init(&fe);
	do {
		to = feed_room(&fe, &room);
		memset(to, 'x', room);
		feed_got(&fe, room);
		all += room;
	} while ((rv = feed_next(&fe, &line, &len)) == 0);
	CHECK_INT(rv, -1);
	CHECK(all > FEED_LEN && all <= 2 * FEED_LEN);
	feed_free(&fe);
}

TEST_MAIN("said")
