/* SPDX-License-Identifier: ISC */

/*
 * The tip of an audit file: one chain over rotation, restart and crash in every
 * order, and what is said when a file or its tip is not as it was left.
 */

#include "audit_files.h"

/* As a kill leaves it: what was written is, and nobody says more. */
static void
killed(void)
{
	audit_flush();
	chain_init();
	audit_begin();
	CHECK_INT(tip_offer(-1), 0);
	tip_commit();
	audit_commit();
	chain_init();
}

/* The battery, part K: every order of write, rotate, stop and kill. */
TEST(rotation_in_every_order)
{
	static const char	 acts[] = "wrRsk";
	unsigned int		 round, n, of;
	uint64_t		 last;
	char			 order[8];

	for (round = 0; round < 5 * 5 * 5 * 5; round++) {
		setup();
		use("a");
		say(2);
		for (n = 0, of = round; n < 4; n++, of /= 5)
			order[n] = acts[of % 5];
		order[n] = '\0';
		text_len = 0;
		for (n = 0; n < 4; n++) {
			if (order[n] == 'w') {
				say(2);
				turn_loop();
			} else if (order[n] == 's') {
				restart();
				use("a");
			} else if (order[n] == 'k') {
				killed();
				use("a");
			} else {
				/* R: while we run, and taken up at a reload. */
				if (order[n] == 'r')
					restart();
				turn_loop();
				load("a");
				CHECK_INT(unlink("a"), 0);
				use("a");
			}
		}
		say(1);
		last = chain_tip()->li_seq;
		turn_loop();
		load("a");
		text[text_len] = '\0';
		CHECK_FOR(order, verify() == last);
		CHECK_FOR(order, strncmp(text, "{\"seq\":1,", 9) == 0);
		CHECK_FOR(order, strstr(text, "\"gap\"") == NULL);
	}
}

/* The kill comes after lines were written, and before their tip is. */
TEST(tip_behind)
{
	char	 old[1024];
	size_t	 len;

	setup();
	use("a");
	say(3);
	turn_loop();
	text_len = 0;
	load("a.tip");
	memcpy(old, text, len = text_len);
	say(3);
	killed();
	put("a.tip", old, len);
	use("a");
	say(1);
	restart();
	CHECK_INT(verify_file("a"), 7);
	CHECK(strstr(text, "\"gap\"") == NULL);
}

/* Whatever stands where the tip should be: it goes on, and says so. */
TEST(tip_that_does_not_fit)
{
	static const struct {
		const char	*tip, *reason;
	} cases[] = {
		{ NULL, "tip_missing" },
		{ "", "tip_missing" },
		{ "x", "tip_unreadable" },
		{ "00000000000000000003 ", "tip_unreadable" },
	};
	char	 want[64];
	size_t	 i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup();
		use("a");
		say(3);
		restart();
		if (cases[i].tip == NULL)
			unlink("a.tip");
		else
			put("a.tip", cases[i].tip, strlen(cases[i].tip));
		use("a");
		say(1);
		restart();
		CHECK_INT(verify_file("a"), 5);
		snprintf(want, sizeof(want), "\"reason\":\"%s\",\"lost\":0,",
		    cases[i].reason);
		CHECK_FOR(want, strstr(text, want) != NULL);
		/* And it is mended. */
		use("a");
		say(1);
		restart();
		CHECK_INT(verify_file("a"), 6);
	}
}

/* One bit of it, wherever. */
TEST(tip_changed)
{
	struct link	 li;
	char		 good[1024];
	size_t		 i, len;

	setup();
	use("a");
	say(3);
	restart();
	text_len = 0;
	load("a.tip");
	memcpy(good, text, len = text_len);
	for (i = 0; i < len; i++) {
		good[i] ^= 1;
		put("a.tip", good, len);
		good[i] ^= 1;
		CHECK_INT(tip_offer(tip_of("a")), 0);
		tip_commit();
		CHECK_INT(tip_read(&li), TIP_UNREADABLE);
	}
	put("a.tip", good, len);
	CHECK_INT(tip_offer(tip_of("a")), 0);
	tip_commit();
	CHECK_INT(tip_read(&li), TIP_KNOWN);
	CHECK_INT(li.li_seq, 3);
}

/* The file has lost its end while nobody looked. */
TEST(tail_lost)
{
	char	*nl;

	setup();
	use("a");
	say(6);
	restart();
	CHECK_INT(verify_file("a"), 6);
	nl = memrchr(text, '\n', text_len - 1);
	nl = memrchr(text, '\n', (size_t)(nl - text));
	CHECK_INT(truncate("a", nl + 1 - text), 0);
	use("a");
	say(1);
	restart();
	CHECK_INT(verify_file("a"), 8);
	CHECK(strstr(text, "\"reason\":\"tail_lost\",\"lost\":2,"
	    "\"first_seq\":5,\"last_seq\":6,\"lost_hash\":\"") != NULL);
}

/* Another chain of the same length was put in its place. */
TEST(tail_changed)
{
	setup();
	use("b");
	chain_file();
	say(2);
	restart();
	use("a");
	say(3);
	restart();
	CHECK_INT(rename("b", "a"), 0);
	use("a");
	say(1);
	restart();
	CHECK_INT(verify_file("a"), 5);
	CHECK(strstr(text, "\"reason\":\"tail_changed\",\"lost\":0,") != NULL);
}

/* As `copytruncate' does: the copy and the file are one chain. */
TEST(copied_and_emptied)
{
	setup();
	use("a");
	say(3);
	turn_loop();
	text_len = 0;
	load("a");
	CHECK_INT(truncate("a", 0), 0);
	say(2);
	turn_loop();
	say(1);
	restart();
	load("a");
	text[text_len] = '\0';
	CHECK_INT(verify(), 7);
	CHECK(strstr(text, "{\"seq\":6,\"kind\":\"gap\",") != NULL);
	CHECK(strstr(text, "\"reason\":\"file_cut\",\"lost\":0,") != NULL);
	CHECK(number(text, "\"lost_bytes\":") > 400);
}

/* Cut in the middle of a line while we write it. */
TEST(cut_in_the_middle)
{
	struct stat	 st;

	setup();
	use("a");
	say(5);
	turn_loop();
	CHECK_INT(stat("a", &st), 0);
	CHECK_INT(truncate("a", st.st_size - 10), 0);
	say(2);
	turn_loop();
	say(1);
	restart();
	CHECK_INT(verify_file("a"), 9);
	CHECK(strstr(text, "\"reason\":\"file_cut\",\"lost\":3,"
	    "\"first_seq\":5,\"last_seq\":7,") != NULL);
}

/* Another file, whose chain ended elsewhere, and which was rotated since. */
TEST(rotated_and_back)
{
	setup();
	use("b");
	say(2);
	use("a");
	say(3);
	CHECK_INT(unlink("b"), 0);
	use("b");
	say(1);
	restart();
	CHECK_INT(verify_file("b"), 8);
	CHECK(strstr(text, "\"reason\":\"audit_switched\",\"lost\":4,"
	    "\"first_seq\":3,\"last_seq\":6,") != NULL);
}

TEST_MAIN("tip")
