/* SPDX-License-Identifier: ISC */

/*
 * The recorder's audit file: where a chain goes on, what is refused, and that
 * the file verifies line by line whatever happened to the disk.
 */

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "audit_files.h"

static void
refuse(const char *path, const char *reason)
{
	char	 want[PATH_LEN];

	snprintf(want, sizeof(want), "%s: %s", path, reason);
	CHECK_INT(offer(path), -1);
	CHECK_STR(why, want);
	audit_abort();
}

TEST(written_together)
{
	struct stat	 st;

	setup();
	use("a");
	say(10);
	CHECK_INT(stat("a", &st), 0);
	CHECK_INT(st.st_size, 0);
	event_base_loop(base, EVLOOP_ONCE);
	CHECK_INT(verify_file("a"), 10);
	CHECK(strstr(text, "\"prev\":null}") != NULL);
	say(3000);
	CHECK_INT(stat("a", &st), 0);
	CHECK(st.st_size > 2 * AUDIT_BATCH);
	event_base_loop(base, EVLOOP_ONCE);
	CHECK_INT(verify_file("a"), 3010);
}

TEST(goes_on_after_restart)
{
	setup();
	use("a");
	say(3);
	restart();
	CHECK_INT(chain_tip()->li_seq, 0);
	use("a");
	CHECK_INT(chain_tip()->li_seq, 3);
	say(2);
	restart();
	CHECK_INT(verify_file("a"), 5);
}

TEST(rotation)
{
	setup();
	use("a");
	say(3);
	use("b");
	say(2);
	restart();
	text_len = 0;
	load("a");
	load("b");
	CHECK_INT(verify(), 6);
	CHECK(strstr(text, "{\"seq\":4,\"kind\":\"file_opened\",") != NULL);
	CHECK(strstr(text, "\"last_seq\":3,\"last_hash\":\"") != NULL);
}

TEST(same_file_again)
{
	setup();
	use("a");
	say(3);
	CHECK_INT(offer("a"), 0);
	say(70);
	turn_loop();
	audit_commit();
	say(2);
	restart();
	CHECK_INT(verify_file("a"), 75);
	CHECK(strstr(text, "\"gap\"") == NULL);
}

TEST(keep_and_abort)
{
	setup();
	audit_begin();
	CHECK_INT(audit_keep(), -1);
	use("a");
	say(1);
	audit_begin();
	CHECK_INT(audit_keep(), 0);
	CHECK_INT(audit_keep(), -1);
	CHECK_INT(audit_offer(-1, "b"), -1);
	CHECK_INT(tip_offer(tip_of("a")), 0);
	CHECK_INT(tip_offer(-1), -1);
	CHECK_INT(audit_weigh(why, sizeof(why)), 0);
	audit_commit();
	CHECK_INT(offer("b"), 0);
	say(1);
	audit_abort();
	CHECK_STR(audit_path(), "a");
	say(1);
	restart();
	CHECK_INT(verify_file("a"), 3);
}

TEST(lost_descriptor_is_refused)
{
	setup();
	audit_begin();
	CHECK_INT(audit_offer(-1, "a"), 0);
	CHECK_INT(audit_weigh(why, sizeof(why)), -1);
	CHECK_STR(why, "a: no free descriptor");
	audit_abort();
}

/* Numbers that went elsewhere are accounted for. */
TEST(back_to_an_older_file)
{
	setup();
	use("a");
	say(3);
	use("b");
	say(4);
	use("a");
	say(1);
	restart();
	CHECK_INT(verify_file("a"), 10);
	CHECK(strstr(text, "\"reason\":\"audit_switched\",\"lost\":5,"
	    "\"first_seq\":4,\"last_seq\":8,") != NULL);
}

TEST(to_a_file_that_is_ahead)
{
	setup();
	use("a");
	say(9);
	restart();
	use("b");
	say(2);
	use("a");
	say(1);
	restart();
	CHECK_INT(verify_file("a"), 11);
	CHECK(strstr(text, "\"audit_switched\",\"lost\":0,\"first_seq\":null,"
	    "\"last_seq\":null,\"lost_hash\":\"") != NULL);
}

TEST(file_after_none)
{
	setup();
	say(5);
	use("a");
	say(1);
	restart();
	CHECK_INT(verify_file("a"), 7);
	CHECK(strstr(text, "{\"seq\":6,\"kind\":\"file_opened\",") == text);
	CHECK(strstr(text, "\"last_seq\":5,\"last_hash\":null,"
	    "\"prev\":null}") != NULL);
}

TEST(torn_line)
{
	static const char	 torn[] = "{\"seq\":4,\"kind\":\"sess";
	FILE			*f;

	setup();
	use("a");
	say(3);
	restart();
	CHECK((f = fopen("a", "a")) != NULL);
	fputs(torn, f);
	fclose(f);
	CHECK_INT(offer("a"), 0);
	text_len = 0;
	load("a");
	CHECK_MEM(text + text_len - strlen(torn), strlen(torn), torn,
	    strlen(torn));
	audit_commit();
	say(1);
	restart();
	CHECK_INT(verify_file("a"), 5);
	CHECK(strstr(text, "{\"seq\":4,\"kind\":\"gap\",") != NULL);
	CHECK(strstr(text, "\"reason\":\"torn_line\"") != NULL);
	CHECK_INT(number(text, "\"lost_bytes\":"), strlen(torn));
}

TEST(torn_first_line)
{
	setup();
	put("a", "{\"se", 4);
	use("a");
	say(1);
	restart();
	CHECK_INT(verify_file("a"), 2);
	CHECK(strstr(text, "{\"seq\":1,\"kind\":\"gap\",") == text);
	CHECK_INT(number(text, "\"lost_bytes\":"), 4);
}

TEST(other_files_are_refused)
{
	static const char	 passwd[] = "root:x:0:0\nbin:x:1:1\n";
	struct stat		 st;
	char			*big;
	int			 fds[2];

	setup();
	put("a", passwd, strlen(passwd));
	refuse("a", "its last line is not a record");
	put("a", "\n", 1);
	refuse("a", "its last line is not a record");
	put("a", "precious", 8);
	refuse("a", "it is not an audit file");
	CHECK_INT(stat("a", &st), 0);
	CHECK_INT(st.st_size, 8);

	CHECK((big = calloc(1, LINE_LEN_MAX + 1)) != NULL);
	put("a", big, LINE_LEN_MAX + 1);
	refuse("a", "its last line is longer than any record");
	big[LINE_LEN_MAX] = '\n';
	put("a", big, LINE_LEN_MAX + 1);
	refuse("a", "its last line is not a record");
	free(big);

	CHECK_INT(pipe(fds), 0);
	audit_begin();
	CHECK_INT(audit_offer(fds[0], "pipe"), 0);
	CHECK_INT(audit_weigh(why, sizeof(why)), -1);
	CHECK_STR(why, "pipe: Illegal seek");
	audit_abort();
	close(fds[1]);
}

/* The longest line that we write can be gone on from. */
TEST(longest_line)
{
	struct jsonw	*w;
	char		*big;
	size_t		 len;

	setup();
	use("a");
	say(1);
	CHECK((big = malloc(LINE_LEN_MAX)) != NULL);
	memset(big, 'x', LINE_LEN_MAX);
	CHECK((w = chain_begin(RECORD_GAP, 0, NULL, 0)) != NULL);
	jsonw_key(w, "x");
	len = LINE_LEN_MAX - 1 - w->jw_len - 2 -
	    strlen(",\"prev\":\"\"}") - HASH_HEX;
	jsonw_string(w, big, len);
	chain_end();
	free(big);
	restart();
	use("a");
	say(1);
	restart();
	CHECK_INT(verify_file("a"), 3);
}

static void
limit_size(rlim_t size)
{
	struct rlimit	 rl;

	CHECK_INT(getrlimit(RLIMIT_FSIZE, &rl), 0);
	rl.rlim_cur = size == RLIM_INFINITY ? rl.rlim_max : size;
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &rl), 0);
}

/* In the middle of a line, of a batch, of several batches. */
TEST(file_size_limit)
{
	static const rlim_t	 sizes[] = { 1, 900, 270000, 524288 };
	size_t			 i;
	uint64_t		 last;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		setup();
		use("a");
		limit_size(sizes[i]);
		say(3000);
		turn_loop();
		CHECK(!audit_listens());
		say(5);
		CHECK_INT(chain_tip()->li_seq, 3005);
		last = verify_file("a");
		CHECK(last < 3000);
		limit_size(RLIM_INFINITY);
		while (!audit_listens())
			event_base_loop(base, EVLOOP_ONCE);
		say(3);
		turn_loop();
		CHECK_INT(verify_file("a"), 3009);
		CHECK_INT(number(text, "\"first_seq\":"), last + 1);
		CHECK_INT(number(text, "\"last_seq\":"), 3005);
	}
}

/* The operator moves the full file away and reloads. */
TEST(rotation_while_full)
{
	setup();
	use("a");
	limit_size(1000);
	say(10);
	turn_loop();
	CHECK(!audit_listens());
	CHECK_INT(offer("b"), 0);
	limit_size(100);
	audit_commit();
	CHECK_STR(audit_path(), "b");
	CHECK(!audit_listens());
	limit_size(RLIM_INFINITY);
	while (!audit_listens())
		event_base_loop(base, EVLOOP_ONCE);
	say(1);
	turn_loop();
	text_len = 0;
	load("a");
	load("b");
	CHECK_INT(verify(), 12);
	CHECK_INT(number(text, "\"last_seq\":"), 10);
}

/* Followers see the lost lines, and the gap ties these to the chain. */
TEST(follower_during_outage)
{
	struct msg_follow	 m = { .session = "", .kinds = UINT32_MAX };
	char			*line, *nl, hash[160];
	struct link		 li = { 0 }, before;
	ssize_t			 n;
	int			 fds[2];

	setup();
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	use("a");
	follower_new(fds[1], &m);
	limit_size(500);
	say(10);
	turn_loop();
	CHECK(!audit_listens());
	say(1);
	limit_size(RLIM_INFINITY);
	while (!audit_listens())
		event_base_loop(base, EVLOOP_ONCE);
	say(1);
	turn_loop();
	CHECK_INT(verify_file("a"), 13);
	CHECK((n = read(fds[0], text, sizeof(text) - 1)) > 0);
	text[n] = '\0';
	for (line = text; *line != '\0'; line = nl + 1) {
		before = li;
		CHECK((nl = strchr(line, '\n')) != NULL);
		*nl = '\0';
		CHECK_INT(chain_parse(&li, line, strlen(line)), 0);
		CHECK_INT(li.li_seq, before.li_seq + 1);
		snprintf(hash, sizeof(hash), "\"%s\":\"%s\"", li.li_seq == 12 ?
		    "lost_hash" : "prev", before.li_hash);
		CHECK_FOR(line, before.li_seq == 0 ||
		    strstr(line, hash) != NULL);
	}
	CHECK_INT(li.li_seq, 13);
	close(fds[0]);
	turn_loop();
}

/* A disk that is really full, in a mount namespace of our own. */
TEST(full_disk)
{
	uint64_t	 last;
	int		 fd;

	if (geteuid() != 0 || unshare(CLONE_NEWNS) == -1)
		SKIP("needs root");
	setup();
	CHECK_INT(mkdir("disk", 0700), 0);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
	    mount("none", "disk", "tmpfs", 0, "size=64k") == -1) {
		rmdir("disk");
		SKIP("mount: %s", strerror(errno));
	}
	use("disk/a");
	fd = open("disk/fill", O_WRONLY | O_CREAT, 0600);
	while (write(fd, text, 4096) > 0)
		continue;
	say(300);
	turn_loop();
	CHECK(!audit_listens());
	say(5);
	last = verify_file("disk/a");
	CHECK_INT(ftruncate(fd, 0), 0);
	close(fd);
	while (!audit_listens())
		event_base_loop(base, EVLOOP_ONCE);
	say(3);
	turn_loop();
	CHECK_INT(verify_file("disk/a"), 309);
	CHECK_INT(number(text, "\"first_seq\":"), last + 1);
	restart();
	CHECK_INT(umount("disk"), 0);
	rmdir("disk");
}

TEST_MAIN("audit")
