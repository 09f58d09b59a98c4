/* SPDX-License-Identifier: ISC */

/*
 * Fuzz target for what podd reads of a gate in a pod: the bytes become lines,
 * and each is read as what its letter says.  What is accepted is a line that
 * the recorder can write, or a question that fits its message.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/jsonr.h"
#include "podd/podd.h"

int	 LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)

static void
check_record(const char *text, size_t len)
{
	struct said_record	 sr;
	struct jsonr		*jr;
	const char		*why;
	size_t			 i;

	if (said_record(text, len, &sr, &why) == -1) {
		REQUIRE(why != NULL);
		return;
	}
	REQUIRE(sr.sr_seq > sr.sr_lost && sr.sr_kind < RECORD_KIND_MAX);
	REQUIRE(sr.sr_len >= 2 && sr.sr_len < SAID_RECORD_LEN);
	for (i = 0; i < sr.sr_len; i++)
		REQUIRE((unsigned char)sr.sr_members[i] >= ' ');
	REQUIRE((jr = jsonr_parse(sr.sr_members, sr.sr_len, &why)) != NULL);
	REQUIRE(jr->jr_type == JSONR_OBJECT);
	REQUIRE(jsonr_member(jr, "seq") == NULL);
	REQUIRE(jsonr_member(jr, "session_id") == NULL);
	REQUIRE(jsonr_member(jr, "origin_seq") == NULL);
	jsonr_free(jr);
}

static void
check_question(const char *text, size_t len)
{
	struct said_question	 sq;
	const char		*why;

	if (said_question(text, len, &sq, &why) == -1) {
		REQUIRE(why != NULL && sq.sq_json == NULL);
		return;
	}
	if (!sq.sq_drop) {
		REQUIRE(sq.sq_ask.scheme < URL_SCHEME_MAX);
		REQUIRE(sq.sq_ask.port != 0 && sq.sq_ask.timeout_ms != 0);
		REQUIRE(strlen(sq.sq_ask.host) <= HOST_LEN);
		REQUIRE(strlen(sq.sq_ask.method) <= METHOD_LEN);
		REQUIRE(strlen(sq.sq_ask.path) <= SHOWN_LEN);
		REQUIRE(strlen(sq.sq_ask.decider) <= NAME_LEN);
	}
	jsonr_free(sq.sq_json);
}

static void
check_answer(const char *text, size_t len)
{
	struct said_answer	 sa;
	const char		*why, *p;

	if (said_answer(text, len, &sa, &why) == -1)
		return;
	for (p = sa.sa_text; *p != '\0'; p++)
		REQUIRE(*p >= ' ' && *p <= '~');
	REQUIRE(sa.sa_sha256[0] == '\0' ||
	    strlen(sa.sa_sha256) == FINGERPRINT_LEN);
}

static void
check_line(const char *line, size_t len)
{
	REQUIRE(memchr(line, '\n', len) == NULL && len <= FEED_LEN);
	if (len < 2)
		return;
	if (*line == 'b')
		check_record(line + 1, len - 1);
	else if (*line == 'c')
		check_question(line + 1, len - 1);
	else
		check_answer(line + 1, len - 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed	 fe;
	const char	*line;
	size_t		 room, len, n;
	char		*to;

	feed_init(&fe);
	while (size > 0) {
		to = feed_room(&fe, &room);
		REQUIRE(room > 0);
		/* Pieces of many lengths, as a socket gives them. */
		n = 1 + data[0] * (size_t)16;
		n = n < room ? n : room;
		n = n < size ? n : size;
		memcpy(to, data, n);
		feed_got(&fe, n);
		data += n;
		size -= n;
		while (feed_next(&fe, &line, &len) == 1)
			check_line(line, len);
	}
	feed_free(&fe);
	return 0;
}
