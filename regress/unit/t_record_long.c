/* SPDX-License-Identifier: ISC */

/*
 * Final records of requests about which there is too much to say: whatever an
 * engine may send, the line fits, the chain goes on, and what was left out is
 * told.  Everything about a request is given to record_final() as an engine's
 * messages leave it.
 */

#include <sys/mman.h>

#include <fcntl.h>
#include <unistd.h>

#include "../../common/log.h"
#include "../../recorder/recorder.h"
#include "test.h"

#define BODY_MAX	65536

/* What is as long as it can be. */
enum { PATH = 1, ASKED = 2, ANSWERED = 4, SENT = 8, GOT = 16, ALL = 31 };

static char	 bytes[BODY_MAX], heads[2][FIELDS_LEN];
static char	 names[HOST_LEN + METHOD_LEN + URL_LEN + 3];
static char	 session[SESSION_LEN + 1], reason[PATH_LEN + 1];
static char	 text[4 * LINE_LEN_MAX];
static int	 file = -1;

static void
on_change(int broken)
{
	CHECK_INT(broken, 0);
}

static void
open_file(void)
{
	char	 path[] = "/tmp/t_record_long.XXXXXX", why[64];

	audit_begin();
	audit_commit();
	chain_init();
	if (file != -1)
		close(file);
	CHECK((file = mkstemp(path)) != -1);
	unlink(path);
	CHECK_INT(fcntl(file, F_SETFL, O_APPEND), 0);
	CHECK_INT(audit_offer(dup(file), "audit"), 0);
	CHECK_INT(tip_offer(memfd_create("tip", 0)), 0);
	CHECK_INT(audit_weigh(why, sizeof(why)), 0);
	audit_commit();
}

/* All text is of one byte; lines of a head, 256 of them, are alike long. */
static void
setup(int byte)
{
	static struct event_base	*base;
	size_t				 i, j, at;

	if (base == NULL) {
		log_set_level(LOG_LVL_ERROR);
		CHECK((base = event_base_new()) != NULL);
		audit_init(base, on_change);
		follower_init(base);
	}
	open_file();
	memset(bytes, byte, sizeof(bytes));
	memset(heads, byte, sizeof(heads));
	memset(session, byte, SESSION_LEN);
	memset(reason, byte, PATH_LEN);
	for (i = 0; i < 2; i++)
		for (j = 0; j < 256; j++) {
			at = j * FIELDS_LEN / 256;
			heads[i][at] = "0123456789abcdef"[j >> 4];
			heads[i][at + 1] = "0123456789abcdef"[j & 15];
			heads[i][at + 2] = ':';
			heads[i][at + FIELDS_LEN / 256 - 1] = '\n';
		}
}

static void
set_names(struct request *rq, int byte, size_t path)
{
	memset(names, byte, sizeof(names));
	names[HOST_LEN] = names[HOST_LEN + 1 + METHOD_LEN] = '\0';
	blob_set(&rq->rq_names, names, HOST_LEN + METHOD_LEN + 2 + path);
	blob_add(&rq->rq_names, "", 1);
}

static void
final(const struct request *like, size_t body, int full)
{
	static struct engine		 en = { .en_instance = UINT32_MAX };
	struct request			 rq = *like;
	const struct msg_record_closed	 mc = {
		.at = UINT64_MAX, .bytes_in = UINT64_MAX,
		.bytes_out = UINT64_MAX, .request_body = UINT64_MAX,
		.answer_body = full & GOT ? body : UINT64_MAX,
		.request_hash = { bytes, 32 }, .answer_hash = { bytes, 32 },
		.reason = reason
	};

	en.en_excess = 0;
	strlcpy(en.en_session, session, sizeof(en.en_session));
	memset(en.en_prefix, 'f', REQUEST_PREFIX_LEN);
	if (full & ASKED)
		blob_set(&rq.rq_fields[0], heads[0], FIELDS_LEN);
	if (full & ANSWERED)
		blob_set(&rq.rq_fields[1], heads[1], FIELDS_LEN);
	if (full & SENT)
		blob_set(&rq.rq_body[0], bytes, body);
	if (full & GOT)
		blob_set(&rq.rq_body[1], bytes, body);
	record_final(&en, &rq, RECORD_REQUEST_FAILED, &mc, NULL);
	free(rq.rq_fields[0].bl_data);
	free(rq.rq_fields[1].bl_data);
	free(rq.rq_body[0].bl_data);
	free(rq.rq_body[1].bl_data);
	free(rq.rq_text.bl_data);
}

/* With everything else that a request has at its longest, too. */
static void
final_of(int byte, size_t path, size_t body, int full)
{
	struct request	 rq = {
		.rq_id = UINT64_MAX, .rq_started = UINT64_MAX,
		.rq_scheme = URL_HTTPS, .rq_protocol = PROTOCOL_HTTP11,
		.rq_port = UINT16_MAX, .rq_rule_kind = 4,
		.rq_rule = RULE_NONE - 1, .rq_waited_ms = UINT32_MAX,
		.rq_status = UINT16_MAX, .rq_answered = true,
		.rq_allowed = true
	};

	memset(rq.rq_decider, byte, NAME_LEN);
	memset(rq.rq_address, byte, ADDRESS_LEN);
	set_names(&rq, byte, full & PATH ? path : 0);
	final(&rq, body, full);
	free(rq.rq_names.bl_data);
}

/* The last line is whole, the next can follow it; its length with newline. */
static size_t
last_line(const char **line, uint64_t seq)
{
	struct tail	 ta;
	const char	*why = NULL, *nl;
	ssize_t		 n;

	audit_flush();
	CHECK_INT(tail_read(file, false, &ta, &why), 0);
	CHECK_INT(ta.ta_torn, 0);
	CHECK_INT(ta.ta_end.li_seq, seq);
	CHECK(chain_same(&ta.ta_end, chain_tip()));
	CHECK((n = pread(file, text, sizeof(text) - 1, 0)) > 0);
	text[n] = '\0';
	nl = memrchr(text, '\n', (size_t)n - 1);
	*line = nl == NULL ? text : nl + 1;
	return strlen(*line);
}

/* Bytes of a text, each of which is written so long. */
static size_t
shown(const char *line, const char *key, size_t each)
{
	const char	*p, *end;

	CHECK_FOR(key, (p = strstr(line, key)) != NULL);
	CHECK_FOR(key, (p = strstr(p, "\"preview\":")) != NULL);
	p += sizeof("\"preview\":") - 1;
	if (*p != '"')
		return 0;
	CHECK((end = strstr(p, "\",\"truncated\":")) != NULL);
	return (size_t)(end - p - 1) / each;
}

static int
has(const char *line, const char *word)
{
	return strstr(line, word) != NULL;
}

/* Every combination, of bytes that are written as 1, 2 and 6. */
TEST(any_fits)
{
	static const int	 kinds[] = { 'x', '"', 0x01, 0xff };
	const char		*line;
	char			 what[64];
	size_t			 i, len;
	int			 full;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (full = 0; full <= ALL; full++) {
			setup(kinds[i]);
			final_of(kinds[i], URL_LEN, BODY_MAX, full);
			len = last_line(&line, 1);
			snprintf(what, sizeof(what), "%#x, %d: %zu bytes",
			    (unsigned int)kinds[i], full, len);
			CHECK_FOR(what, len <= LINE_LEN_MAX);
			CHECK_FOR(what, has(line, "\"matched_rule\":{"
			    "\"index\":4294967294,\"kind\":\"narrow\"},"
			    "\"prev\":null}\n"));
			final_of(kinds[i], URL_LEN, BODY_MAX, 0);
			last_line(&line, 2);
			CHECK_FOR(what, !has(line, "\"prev\":null"));
			CHECK_FOR(what, !has(line, "_truncated"));
		}
}

/* What is our own is not longer than what is reserved for it. */
TEST(words)
{
	const char	*line;
	size_t		 texts = SESSION_LEN + NAME_LEN + HOST_LEN +
	    METHOD_LEN + URL_LEN + ADDRESS_LEN + PATH_LEN;

	setup(0xff);
	final_of(0xff, URL_LEN, 0, PATH);
	CHECK(last_line(&line, 1) + HASH_HEX <=
	    JSONW_ESCAPED(texts) + LINE_WORDS / 2);
}

/* To the byte: the longest line loses nothing, a longer one previews. */
TEST(edge)
{
	const int	 full = PATH | SENT | GOT;
	const char	*line;
	size_t		 body = 40000, path = URL_LEN - 2, room;

	setup('"');
	final_of('"', 0, 0, 0);
	final_of('"', path, body, full);
	room = LINE_LEN_MAX - last_line(&line, 2);
	if (room % 2 != 0) {
		session[0] = 'x';
		room++;
	}
	body += room / 4;
	path += room % 4 / 2;
	final_of('"', path, body, full);
	CHECK_INT(last_line(&line, 3), LINE_LEN_MAX);
	CHECK_INT(shown(line, "request_body", 2), body);
	CHECK_INT(shown(line, "response_body", 2), body);
	CHECK(has(line, "\"truncated\":false},\"started_at\""));
	final_of('"', path + 1, body, full);
	CHECK(last_line(&line, 4) < LINE_LEN_MAX);
	CHECK(shown(line, "request_body", 2) > 15000);
	CHECK(shown(line, "response_body", 2) > 15000);
	CHECK(!has(line, "\"truncated\":false"));
	CHECK(!has(line, "_truncated"));
	final_of('"', 0, 0, 0);
	last_line(&line, 5);
}

/* One body may have the room that the other does not need. */
TEST(previews)
{
	const char	*line;

	setup(0xff);
	final_of(0xff, 0, BODY_MAX, SENT);
	last_line(&line, 1);
	CHECK(shown(line, "request_body", 6) > 40000);
	final_of(0xff, 0, BODY_MAX, GOT);
	last_line(&line, 2);
	CHECK(shown(line, "response_body", 6) > 40000);
	CHECK(has(line, "\"truncated\":true},\"started_at\""));
	final_of(0xff, 0, BODY_MAX, SENT | GOT);
	last_line(&line, 3);
	CHECK(shown(line, "request_body", 6) > 20000);
	CHECK(shown(line, "response_body", 6) > 20000);
}

/* Heads are cut last, and only one that is long. */
TEST(cut_heads)
{
	const char	*line;

	setup(0xff);
	final_of(0xff, 0, BODY_MAX, ASKED | SENT | GOT);
	last_line(&line, 1);
	CHECK(!has(line, "_truncated"));
	CHECK(has(line, "\"ff\":\""));
	CHECK(shown(line, "request_body", 6) > 4000);
	final_of(0xff, 0, BODY_MAX, ASKED | ANSWERED);
	last_line(&line, 2);
	CHECK(has(line, "\"request_headers_truncated\":true,"));
	CHECK(has(line, "\"response_headers_truncated\":true,"));
	CHECK(has(line, "\"3f\":\"") && !has(line, "\"40\":\""));
	final_of(0xff, URL_LEN, BODY_MAX, ALL & ~ANSWERED);
	last_line(&line, 3);
	CHECK(has(line, "\"request_headers_truncated\":true,"));
	CHECK(!has(line, "response_headers_truncated"));
	CHECK(shown(line, "response_body", 6) > 7000);
}

TEST_MAIN("record_long")
