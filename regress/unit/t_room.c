/* SPDX-License-Identifier: ISC */

/*
 * Room in the audit file: what is promised to a request is there for its
 * records when nothing else has room any more, in their longest short form;
 * and it is given back.  The file system is ours, unless a case wants a real
 * one.
 */

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "../../common/log.h"
#include "../../recorder/recorder.h"
#include "test.h"

#define OTHERS	(16 * 1024)	/* that are promised nothing */
#define MARGIN	(1024 * 1024)	/* where nothing can be set aside */

static enum { MADE_UP, TELLS_ONLY, REAL } disk;
static off_t			 disk_end;	/* of what may be set aside */
static off_t			 disk_used;
static struct event_base	*base;
static int			 file = -1;
static int			 nchanges;
static char			 text[256 * 1024];

int
fallocate(int fd, int mode, off_t at, off_t len)
{
	CHECK_INT(mode, FALLOC_FL_KEEP_SIZE);
	if (disk == REAL)
		return (int)syscall(SYS_fallocate, fd, mode, at, len);
	errno = disk == TELLS_ONLY ? EOPNOTSUPP : ENOSPC;
	if (disk == TELLS_ONLY || at + len > disk_end)
		return -1;
	disk_used = at + len;
	return 0;
}

int
fstatvfs(int fd, struct statvfs *vfs)
{
	(void)fd;
	memset(vfs, 0, sizeof(*vfs));
	vfs->f_blocks = disk != REAL;
	vfs->f_bavail = (fsblkcnt_t)(disk_end - disk_used);
	vfs->f_frsize = 1;
	return 0;
}

static void
on_change(int broken)
{
	CHECK_INT(broken, 0);
	nchanges++;
}

static void
setup(void)
{
	char	 path[] = "/tmp/t_room.XXXXXX", why[64];

	if (base == NULL) {
		log_set_level(LOG_LVL_ERROR);
		CHECK((base = event_base_new()) != NULL);
		audit_init(base, on_change);
		follower_init(base);
	}
	disk_used = 0;
	audit_begin();
	audit_commit();
	chain_init();
	if (file != -1)
		close(file);
	CHECK((file = mkstemp(path)) != -1);
	unlink(path);
	CHECK_INT(fcntl(file, F_SETFL, O_APPEND), 0);
	CHECK_INT(audit_offer(dup(file), "audit"), 0);
	CHECK_INT(audit_weigh(why, sizeof(why)), 0);
	audit_commit();
}

static void
say(void)
{
	const struct msg_record_session	 m = {
		.kind = RECORD_SESSION_ENDED, .session = "edge",
		.policy = "coding", .reason = "",
	};

	chain_session(&m);
}

TEST(without_file)
{
	setup();
	audit_begin();
	audit_commit();
	CHECK_INT(room_take(2048), 2048);
	room_put((size_t)2048 * ROOM_REQUEST);
}

TEST(as_far_as_it_goes)
{
	setup();
	disk_end = 10 * ROOM_REQUEST + OTHERS;
	CHECK_INT(room_take(512), 10);
	CHECK_INT(room_take(1), 0);
	CHECK(room_has(OTHERS, 0));
	CHECK(!room_has(OTHERS + 1, 0));
	CHECK(room_has(OTHERS + ROOM_FINAL, ROOM_FINAL));
	room_put(ROOM_REQUEST);
	CHECK_INT(room_take(2), 1);
	room_use(OTHERS);
	CHECK(!room_has(1, 0));
	/* Not every line asks the file system again; a second later it is. */
	disk_end *= 2;
	CHECK(!room_has(1, 0));
	nchanges = 0;
	while (nchanges == 0)
		CHECK(event_base_loop(base, EVLOOP_ONCE) == 0);
	CHECK(room_has(1, 0));
	CHECK_INT(room_take(5), 5);
	room_put((size_t)15 * ROOM_REQUEST);
}

TEST(cannot_be_set_aside)
{
	disk = TELLS_ONLY;
	setup();
	disk_end = 3 * ROOM_REQUEST + OTHERS + MARGIN;
	CHECK_INT(room_take(512), 3);
	CHECK(!room_has(OTHERS + 1, 0));
	room_put((size_t)3 * ROOM_REQUEST);
	disk = MADE_UP;
}

TEST(given_back)
{
	struct stat	 st;

	disk = REAL;
	setup();
	CHECK_INT(room_take(512), 512);
	CHECK_INT(fstat(file, &st), 0);
	CHECK_INT(st.st_size, 0);
	if (st.st_blocks == 0)
		SKIP("the file system sets nothing aside");
	CHECK(st.st_blocks >= 512 * ROOM_REQUEST / 512);
	say();
	audit_begin();
	audit_commit();
	CHECK_INT(fstat(file, &st), 0);
	CHECK(st.st_size > 0);
	CHECK(st.st_blocks * 512 <= 65536);
	room_put((size_t)512 * ROOM_REQUEST);
	disk = MADE_UP;
}

/* The length of the next line that is not a session's, of this kind. */
static size_t
next(const char **at, const char *kind)
{
	const char	*line;
	char		 want[64];

	snprintf(want, sizeof(want), "\"kind\":\"%s\",", kind);
	do {
		line = *at;
		CHECK((*at = strchr(line, '\n')) != NULL);
		++*at;
		CHECK((kind = strstr(line, "\"kind\"")) != NULL);
	} while (strncmp(kind, "\"kind\":\"session", 15) == 0);
	CHECK_FOR(line, strncmp(kind, want, strlen(want)) == 0);
	return (size_t)(*at - line);
}

static void
fill_request(struct request *rq)
{
	static char	 bytes[URL_LEN + 1];

	memset(bytes, 0xff, URL_LEN);
	rq->rq_id = UINT64_MAX;
	rq->rq_scheme = URL_HTTPS;
	rq->rq_protocol = PROTOCOL_HTTP11;
	rq->rq_port = UINT16_MAX;
	rq->rq_rule_kind = 4;
	rq->rq_rule = RULE_NONE - 1;
	rq->rq_waited_ms = UINT32_MAX;
	rq->rq_status = UINT16_MAX;
	rq->rq_answered = true;
	rq->rq_room = ROOM_REQUEST;
	memcpy(rq->rq_decider, bytes, NAME_LEN);
	memcpy(rq->rq_address, bytes, ADDRESS_LEN);
	blob_add(&rq->rq_names, bytes, HOST_LEN);
	blob_add(&rq->rq_names, "", 1);
	blob_add(&rq->rq_names, bytes, METHOD_LEN);
	blob_add(&rq->rq_names, "", 1);
	blob_add(&rq->rq_names, bytes, URL_LEN + 1);
	blob_add(&rq->rq_fields[0], "a: b\r\n", 6);
	blob_add(&rq->rq_fields[1], "a: b\r\n", 6);
	blob_add(&rq->rq_body[0], bytes, 1000);
	blob_add(&rq->rq_body[1], bytes, 1000);
}

/* Until one is lost. */
static void
lose(void)
{
	int	 i;

	for (i = 0; i < 1000 && !audit_full(); i++)
		say();
	CHECK(audit_full());
}

TEST(shortest_records)
{
	static struct engine		 en = { .en_instance = UINT32_MAX };
	static struct request		 rq;
	char				 reason[PATH_LEN + 1] = "";
	const struct msg_record_closed	 mc = {
		.at = UINT64_MAX, .bytes_in = UINT64_MAX,
		.bytes_out = UINT64_MAX, .request_body = UINT64_MAX,
		.answer_body = UINT64_MAX, .request_hash = { text, 32 },
		.answer_hash = { text, 32 }, .reason = reason
	};
	const char			*at = text;
	struct stat			 st;
	ssize_t				 n;

	setup();
	disk_end = ROOM_REQUEST + OTHERS;
	CHECK_INT(room_take(1), 1);
	memset(en.en_session, '"', SESSION_LEN);
	memset(reason, 0xff, PATH_LEN);
	fill_request(&rq);
	lose();
	record_station(&en, &rq, RECORD_REQUEST_OPENED, UINT64_MAX);
	CHECK(!audit_full());
	lose();
	record_station(&en, &rq, RECORD_REQUEST_ALLOWED, UINT64_MAX);
	lose();
	record_final(&en, &rq, RECORD_REQUEST_CLOSED, &mc, NULL);
	CHECK_INT(rq.rq_room, 0);
	audit_flush();
	CHECK_INT(fstat(file, &st), 0);
	CHECK(st.st_size <= disk_end);
	CHECK((n = pread(file, text, sizeof(text) - 1, 0)) > 0);
	text[n] = '\0';
	CHECK(next(&at, "gap") <= ROOM_GAP);
	CHECK(next(&at, "request_opened") <= ROOM_STATION - ROOM_GAP);
	CHECK(next(&at, "gap") <= ROOM_GAP);
	CHECK(next(&at, "request_allowed") <= ROOM_STATION - ROOM_GAP);
	CHECK(next(&at, "gap") <= ROOM_GAP);
	CHECK(strstr(at, "\"path_truncated\":true,") != NULL);
	CHECK(strstr(at, "\"request_headers\":{},"
	    "\"request_headers_truncated\":true,") != NULL);
	CHECK(strstr(at, "\"preview\":null,\"truncated\":true}") != NULL);
	CHECK(next(&at, "request_closed") <= ROOM_FINAL - ROOM_GAP);
	CHECK_STR(at, "");
}

TEST_MAIN("room")
