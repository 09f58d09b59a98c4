/* SPDX-License-Identifier: ISC */

/*
 * The recorder's chain and its followers: numbers, hashes, what a record
 * looks like, who gets which, and what a slow follower gets.
 */

#include <sys/socket.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "../../common/log.h"
#include "../../recorder/recorder.h"
#include "test.h"

#define AT	(UINT64_C(1767323045) * 1000000000 + 678999999)

static struct event_base	*base;
static char			 got[2 * 1024 * 1024];
static size_t			 got_len;

/* A fresh chain; whoever followed the old one has hung up. */
static void
setup(void)
{
	if (base == NULL) {
		log_set_level(LOG_LVL_WARN);
		signal(SIGPIPE, SIG_IGN);
		base = event_base_new();
		audit_init(base, NULL);
		follower_init(base);
	}
	event_base_loop(base, EVLOOP_NONBLOCK);
	chain_init();
	CHECK_INT(follower_count(), 0);
}

static int
follow(const char *session, uint32_t kinds)
{
	struct msg_follow	 m = { .session = session, .kinds = kinds };
	int			 fds[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	follower_new(fds[1], &m);
	return fds[0];
}

static void
hang_up(int fd)
{
	close(fd);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static void
say(const char *session, const char *policy, const char *reason)
{
	struct msg_record_session	 m = {
		.kind = RECORD_SESSION_STARTED, .at = AT, .session = session,
		.policy = policy, .reason = reason, .ca = ""
	};

	chain_session(&m);
}

/* Everything that is there, or comes while the loop turns; 0: hung up. */
static ssize_t
receive(int fd)
{
	ssize_t	 n;

	got_len = 0;
	do {
		event_base_loop(base, EVLOOP_NONBLOCK);
		n = read(fd, got + got_len, sizeof(got) - 1 - got_len);
		if (n > 0)
			got_len += (size_t)n;
	} while (n > 0);
	got[got_len] = '\0';
	return n;
}

/* The next line of got, cut at its newline. */
static char *
next_line(char **at)
{
	char	*line = *at, *nl;

	if ((nl = strchr(line, '\n')) == NULL)
		return NULL;
	*nl = '\0';
	*at = nl + 1;
	return line;
}

TEST(time)
{
	CHECK_STR(chain_time(0), "1970-01-01T00:00:00.000Z");
	CHECK_STR(chain_time(AT), "2026-01-02T03:04:05.678Z");
	CHECK_STR(chain_time(AT + 1), "2026-01-02T03:04:05.679Z");
	CHECK_STR(chain_time(UINT64_MAX), "2554-07-21T23:34:33.709Z");
}

TEST(hash)
{
	struct link	 li;

	setup();
	chain_hash(&li, "abc", 3);
	CHECK_STR(li.li_hash, "ba7816bf8f01cfea414140de5dae2223"
	    "b00361a396177a9cb410ff61f20015ad");
	chain_hash(&li, "", 0);
	CHECK_STR(li.li_hash, "e3b0c44298fc1c149afbf4c8996fb924"
	    "27ae41e4649b934ca495991b7852b855");
}

TEST(hex)
{
	unsigned char	 bytes[256];
	char		 out[512], want[3];
	size_t		 i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	chain_hex(out, bytes, sizeof(bytes));
	for (i = 0; i < sizeof(bytes); i++) {
		snprintf(want, sizeof(want), "%02zx", i);
		CHECK_MEM(out + 2 * i, 2, want, 2);
	}
}

TEST(session_record)
{
	struct link	 li;
	char		*at = got, want[512];
	int		 fd;

	setup();
	fd = follow("", UINT32_MAX);
	say("edge", "coding", "");
	say("e\"\n", "", "crash\x1b");
	receive(fd);
	CHECK_STR(next_line(&at), "{\"seq\":1,\"kind\":\"session_started\","
	    "\"at\":\"2026-01-02T03:04:05.678Z\",\"session_id\":\"edge\","
	    "\"policy\":\"coding\",\"reason\":null,\"ca_sha256\":null,"
	    "\"prev\":null}");
	chain_hash(&li, got, strlen(got));
	snprintf(want, sizeof(want), "{\"seq\":2,\"kind\":\"session_started\","
	    "\"at\":\"2026-01-02T03:04:05.678Z\","
	    "\"session_id\":\"e\\\"\\n\",\"policy\":null,"
	    "\"reason\":\"crash\\u001b\",\"ca_sha256\":null,"
	    "\"prev\":\"%s\"}", li.li_hash);
	CHECK_STR(next_line(&at), want);
	CHECK(next_line(&at) == NULL);
	hang_up(fd);
}

TEST(full_stream_chains)
{
	char		*at = got, *line;
	struct link	 li = { 0 }, before;
	char		 prev[96];
	int		 fd, i;

	setup();
	fd = follow("", UINT32_MAX);
	for (i = 0; i < 500; i++)
		say("edge", "coding", "");
	receive(fd);
	for (i = 0; i < 500; i++) {
		before = li;
		CHECK((line = next_line(&at)) != NULL);
		CHECK_INT(chain_parse(&li, line, strlen(line)), 0);
		CHECK_INT(li.li_seq, before.li_seq + 1);
		snprintf(prev, sizeof(prev), i == 0 ? "\"prev\":null}" :
		    "\"prev\":\"%s\"}", before.li_hash);
		CHECK(strstr(line, prev) != NULL);
	}
	CHECK(next_line(&at) == NULL);
	CHECK(chain_same(&li, chain_tip()));
	hang_up(fd);
}

TEST(nobody_listens)
{
	int	 fd;

	setup();
	say("edge", "", "");
	CHECK_INT(chain_tip()->li_seq, 1);
	CHECK_INT(chain_tip()->li_hashed, 0);
	CHECK(chain_begin(RECORD_SESSION_ENDED, AT, "edge", 0) == NULL);
	CHECK_INT(chain_tip()->li_seq, 2);
	fd = follow("", UINT32_MAX);
	say("edge", "", "");
	receive(fd);
	CHECK(strncmp(got, "{\"seq\":3,", 9) == 0);
	CHECK(strstr(got, "\"prev\":null}\n") != NULL);
	CHECK_INT(chain_tip()->li_hashed, 1);
	hang_up(fd);
	say("edge", "", "");
	CHECK_INT(chain_tip()->li_hashed, 0);
}

TEST(filters)
{
	int	 one, kind, none;

	setup();
	one = follow("a", UINT32_MAX);
	kind = follow("", 1U << RECORD_SESSION_STARTED);
	none = follow("", 1U << RECORD_SESSION_ENDED);
	CHECK_INT(follower_count(), 3);
	say("a", "", "");
	say("b", "", "");
	receive(one);
	CHECK(strstr(got, "\"session_id\":\"a\"") != NULL);
	CHECK(strstr(got, "\"session_id\":\"b\"") == NULL);
	receive(kind);
	CHECK(strstr(got, "\"session_id\":\"a\"") != NULL);
	CHECK(strstr(got, "\"session_id\":\"b\"") != NULL);
	CHECK_INT(receive(none), -1);
	CHECK_INT(got_len, 0);
	hang_up(one);
	hang_up(kind);
	hang_up(none);
}

TEST(gap_uses_up_nothing)
{
	struct gap	 ga = { .ga_reason = "audit_full" };
	struct link	 tip;
	struct line	 ln;
	char		 want[512];
	int		 fd;

	setup();
	fd = follow("", UINT32_MAX);
	say("edge", "", "");
	ga.ga_end = *chain_tip();
	say("edge", "", "");
	say("edge", "", "");
	tip = *chain_tip();
	chain_gap(&ga, &ln);
	CHECK(chain_same(&tip, chain_tip()));
	CHECK_INT(ln.ln_link.li_seq, 4);
	snprintf(want, sizeof(want), "\"session_id\":null,"
	    "\"reason\":\"audit_full\",\"lost\":2,\"first_seq\":2,"
	    "\"last_seq\":3,\"lost_hash\":\"%s\",\"lost_bytes\":0,"
	    "\"prev\":\"%s\"}", tip.li_hash, ga.ga_end.li_hash);
	CHECK(ln.ln_len > strlen(want));
	CHECK_MEM(ln.ln_text + ln.ln_len - strlen(want), strlen(want), want,
	    strlen(want));
	hang_up(fd);
}

#define HEX32	"0123456789abcdef0123456789abcdef"
#define HEX64	HEX32 HEX32

TEST(parse)
{
	static const struct {
		const char	*text;
		uint64_t	 seq;	/* 0: refused */
	} cases[] = {
		{ "{\"seq\":1,\"kind\":\"x\",\"prev\":null}", 1 },
		{ "{\"seq\":77,\"kind\":\"x\",\"prev\":\"" HEX64 "\"}", 77 },
		{ "{\"seq\":9007199254740990,\"kind\":\"\",\"prev\":null}",
		    9007199254740990 },
		{ "{\"seq\":9007199254740991,\"kind\":\"\",\"prev\":null}", 0 },
		{ "{\"seq\":99999999999999999999,\"kind\":\"\",\"prev\":null}",
		    0 },
		{ "{\"seq\":0,\"kind\":\"x\",\"prev\":null}", 0 },
		{ "{\"seq\":01,\"kind\":\"x\",\"prev\":null}", 0 },
		{ "{\"seq\":-1,\"kind\":\"x\",\"prev\":null}", 0 },
		{ "{\"seq\":,\"kind\":\"x\",\"prev\":null}", 0 },
		{ "{\"seq\":1,\"prev\":null}", 0 },
		{ "{\"seq\":1,\"kind\":\"x\",\"prev\":nul}", 0 },
		{ "{\"seq\":1,\"kind\":\"x\",\"prev\":null} ", 0 },
		{ "{\"seq\":1,\"kind\":\"x\",\"prev\":\"" HEX64 "0\"}", 0 },
		{ "{\"seq\":1,\"kind\":\"x\",\"prev\":\"g" HEX64 "\"}", 0 },
		{ "{\"seq\":1,\"kind\":\"x\",\"prev\":\"\"}", 0 },
		{ " {\"seq\":1,\"kind\":\"x\",\"prev\":null}", 0 },
		{ "{\"seq\":1", 0 },
		{ "{\"seq\":", 0 },
		{ "root:x:0:0:root:/root:/bin/sh", 0 },
		{ "", 0 },
	};
	struct link	 li;
	size_t		 i;
	int		 rv;

	setup();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(&li, 0, sizeof(li));
		rv = chain_parse(&li, cases[i].text, strlen(cases[i].text));
		CHECK_FOR(cases[i].text, rv == (cases[i].seq > 0 ? 0 : -1));
		CHECK_FOR(cases[i].text, li.li_seq == cases[i].seq);
	}
}

/* It reads nothing: it is let go with a last line, and costs no more. */
TEST(slow_follower)
{
	struct link	 li;
	char		*at = got, *line;
	uint64_t	 n = 0, first;
	int		 slow, good, i;

	setup();
	slow = follow("", UINT32_MAX);
	good = follow("", UINT32_MAX);
	for (i = 0; i < 10000 && follower_count() == 2; i++) {
		say("edge", "coding", "");
		if (i % 100 == 0)
			receive(good);
	}
	CHECK_INT(follower_count(), 1);
	first = chain_tip()->li_seq;
	say("edge", "coding", "");
	CHECK_INT(receive(slow), 0);
	while ((line = next_line(&at)) != NULL &&
	    chain_parse(&li, line, strlen(line)) == 0)
		CHECK_INT(li.li_seq, ++n);
	CHECK(line != NULL);
	CHECK(strstr(line, "\"reason\":\"slow_follower\"") != NULL);
	CHECK_INT(strtoull(strstr(line, "first_seq\":") + 11, NULL, 10), first);
	CHECK_INT(first, n + 1);
	CHECK(next_line(&at) == NULL);
	hang_up(slow);
	CHECK_INT(receive(good), -1);
	hang_up(good);
}

/* More than the queue, but not more than queue and socket together. */
TEST(burst_is_not_slow)
{
	char	 reason[PATH_LEN + 1];
	int	 fd, i;

	setup();
	fd = follow("", UINT32_MAX);
	memset(reason, 'x', PATH_LEN);
	reason[PATH_LEN] = '\0';
	for (i = 0; i < 300; i++)
		say("edge", "coding", reason);
	CHECK_INT(follower_count(), 1);
	receive(fd);
	CHECK(got_len > 300 * PATH_LEN);
	hang_up(fd);
}

TEST(too_many_followers)
{
	int	 fds[FOLLOWERS_MAX], more, i;

	setup();
	for (i = 0; i < FOLLOWERS_MAX; i++)
		fds[i] = follow("", UINT32_MAX);
	more = follow("", UINT32_MAX);
	CHECK_INT(follower_count(), FOLLOWERS_MAX);
	CHECK_INT(receive(more), 0);
	CHECK(strstr(got, "{\"error\":{\"code\":\"too_many_followers\",") ==
	    got);
	close(more);
	for (i = 0; i < FOLLOWERS_MAX; i++)
		hang_up(fds[i]);
	CHECK_INT(follower_count(), 0);
}

TEST(follower_input_is_discarded)
{
	char	 junk[8192];
	int	 fd;

	setup();
	fd = follow("", UINT32_MAX);
	memset(junk, '{', sizeof(junk));
	CHECK_INT(write(fd, junk, sizeof(junk)), sizeof(junk));
	say("edge", "", "");
	CHECK_INT(receive(fd), -1);
	CHECK(strncmp(got, "{\"seq\":1,", 9) == 0);
	shutdown(fd, SHUT_WR);
	CHECK_INT(receive(fd), 0);
	CHECK_INT(follower_count(), 0);
	close(fd);
}

static void
quiet(int severity, const char *msg)
{
	(void)severity, (void)msg;
}

/* What policyd passes on may be no socket at all. */
TEST(follower_that_is_a_file)
{
	struct msg_follow	 m = { .session = "", .kinds = UINT32_MAX };
	int			 level = log_get_level();

	setup();
	log_set_level(LOG_LVL_ERROR);
	event_set_log_callback(quiet);
	follower_new(open("/", O_RDONLY), &m);
	follower_new(-1, &m);
	event_set_log_callback(NULL);
	log_set_level(level);
	CHECK_INT(follower_count(), 0);
}

TEST_MAIN("chain")
