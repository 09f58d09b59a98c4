/* SPDX-License-Identifier: ISC */

/*
 * Tests of the configuration that the gate in a pod gets.  What it is made of
 * and what comes of that are in regress/unit/podconf; with GOLDEN=1 in the
 * environment the second is written anew.
 */

#include "conf/conf.h"
#include "test.h"

#define DIR	"regress/unit/podconf/"

static char *
file_read(const char *name)
{
	FILE	*f = fopen(name, "r");
	char	*text = calloc(1, 65536);

	if (f == NULL)
		test_end(TEST_FAILED, "%s is not there", name);
	CHECK(fread(text, 1, 65535, f) > 0);
	fclose(f);
	return text;
}

static struct config *
conf_of(const char *name)
{
	struct conf_errors	 errs = { 0 };
	struct config		*conf;
	char			*text = file_read(name);

	conf = conf_parse_buffer(name, text, strlen(text), &errs);
	if (conf == NULL)
		test_end(TEST_FAILED, "%s", errs.ce_msg[0]);
	conf_errors_free(&errs);
	free(text);
	return conf;
}

static char *
render(const struct config *conf, const char *policy, size_t servers)
{
	struct conf_server	 sv[2] = { { .sv_port = 53 },
	    { .sv_port = 5353 } };
	char			*text;
	size_t			 len;
	FILE			*f = open_memstream(&text, &len);

	CHECK(addr_parse("10.96.0.10", &sv[0].sv_addr) == 0);
	CHECK(addr_parse("fd00::a", &sv[1].sv_addr) == 0);
	CHECK_INT(conf_print_pod(conf, conf_policy_find(conf, policy), sv,
	    servers, f), 0);
	fclose(f);
	return text;
}

static void
check_golden(const struct config *conf, const char *policy, size_t servers)
{
	char	 path[128], *text = render(conf, policy, servers), *want;
	FILE	*f;

	snprintf(path, sizeof(path), DIR "%s.conf", policy);
	if (getenv("GOLDEN") != NULL) {
		CHECK((f = fopen(path, "w")) != NULL);
		fputs(text, f);
		fclose(f);
	}
	want = file_read(path);
	if (strcmp(want, text) != 0)
		test_end(TEST_FAILED, "not as in %s: %s", path, text);
	free(want);
	free(text);
}

TEST(the_least)
{
	struct config	*conf = conf_of(DIR "host");

	check_golden(conf, "least", 1);
	conf_free(conf);
}

/* Deciders of the policy alone, and none of their keys. */
TEST(all_that_a_policy_has)
{
	struct config	*conf = conf_of(DIR "host");

	check_golden(conf, "most", 2);
	conf_free(conf);
}

/* The gate reads it as we do. */
TEST(it_parses)
{
	static const char *const	 names[] = { "least", "most", "near" };
	struct conf_errors		 errs = { 0 };
	struct config			*conf = conf_of(DIR "host"), *gate;
	char				*text;
	size_t				 i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		text = render(conf, names[i], 2);
		gate = conf_parse_buffer(names[i], text, strlen(text), &errs);
		if (gate == NULL)
			test_end(TEST_FAILED, "%s", errs.ce_msg[0]);
		CHECK(conf_session_find(gate, "pod") != NULL);
		CHECK_INT(gate->cf_dial_mark, 0x45475244);
		conf_free(gate);
		free(text);
	}
	conf_free(conf);
}

/* The hash of it names it. */
TEST(the_same_each_time)
{
	struct config	*conf = conf_of(DIR "host");
	struct config	*again = conf_of(DIR "host");
	char		*one = render(conf, "most", 2);
	char		*other = render(again, "most", 2);

	CHECK_STR(one, other);
	free(one);
	free(other);
	conf_free(conf);
	conf_free(again);
}

TEST(what_is_private)
{
	struct config	*conf = conf_of(DIR "host");

	CHECK(!conf_policy_is_private(conf_policy_find(conf, "least")));
	CHECK(conf_policy_is_private(conf_policy_find(conf, "most")));
	CHECK(conf_policy_is_private(conf_policy_find(conf, "near")));
	conf_free(conf);
}

TEST_MAIN("podconf")
