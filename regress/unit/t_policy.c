/* SPDX-License-Identifier: ISC */

/*
 * Tests of common/policy.c, tables of rules in the words of egressd.conf.
 */

#include "test.h"

#include "hostname.h"

#include "conf/conf.h"

static struct policy_verdict	 pv;

/* The rules of a policy, made ready. */
static struct policy *
make(const char *rules)
{
	struct conf_errors	 errs = { .ce_count = 0 };
	struct conf_policy	*cp;
	struct policy		*pl;
	struct config		*cf;
	char			 text[4096];

	snprintf(text, sizeof(text), "decider \"d\" operator\n"
	    "policy \"p\" {\n%s\n}\n", rules);
	if ((cf = conf_parse_buffer("t", text, strlen(text), &errs)) == NULL)
		test_end(TEST_FAILED, "%s", errs.ce_msg[0]);
	cp = TAILQ_FIRST(&cf->cf_policies);
	pl = cp->cp_policy;
	cp->cp_policy = NULL;
	policy_ready(pl);
	conf_free(cf);
	return pl;
}

static void
ask(const struct policy *pl, enum url_scheme scheme, const char *host,
    uint16_t port, const char *method, const char *path)
{
	struct policy_request	 pr = { host, port, scheme, method, path };

	policy_evaluate(pl, &pr, &pv);
}

/* "GET https://host:port/path" or "tcp://host:port", strictly. */
static void
ask_text(const struct policy *pl, const char *text)
{
	char		 method[16], scheme[8], host[256], path[256] = "";
	unsigned int	 port;

	if (sscanf(text, "%15s %7[a-z]://%255s", method, scheme,
	    host) == 3) {
		if (sscanf(strrchr(host, ':'), ":%u%255s", &port, path) < 1)
			abort();
		*strrchr(host, ':') = '\0';
		if (path[0] == '/' && path[1] == '*' && path[2] == '\0')
			memmove(path, path + 1, 2);
		ask(pl, strcmp(scheme, "http") == 0 ? URL_HTTP : URL_HTTPS,
		    host, (uint16_t)port, method, path);
	} else if (sscanf(text, "tcp://%255s", host) == 1) {
		if (sscanf(strrchr(host, ':'), ":%u", &port) != 1)
			abort();
		*strrchr(host, ':') = '\0';
		ask(pl, URL_TCP, host, (uint16_t)port, "", "");
	} else
		abort();
}

/* "allow 0 host", "deny - default_deny once", "look host", "ask 3". */
static const char *
told(void)
{
	static const char *const	 words[] = {
		[VERDICT_ALLOW] = "allow", [VERDICT_DENY] = "deny",
		[VERDICT_LOOK] = "look",
	};
	static char			 text[128];
	char				 rule[16] = "-";

	if (pv.pv_rule != NULL)
		snprintf(rule, sizeof(rule), "%u", pv.pv_rule->ru_index);
	if (pv.pv_verdict == VERDICT_LOOK)
		snprintf(text, sizeof(text), "look");
	else
		snprintf(text, sizeof(text), "%s %s", pv.pv_asks ? "ask" :
		    words[pv.pv_verdict], rule);
	if (pv.pv_scope == VERDICT_ONCE)
		strlcat(text, " once", sizeof(text));
	return text;
}

struct expect {
	const char	*question;
	const char	*answer;
};

static void
check(const char *rules, const struct expect *ex, size_t n)
{
	struct policy	*pl = make(rules);
	size_t		 i;

	for (i = 0; i < n; i++) {
		ask_text(pl, ex[i].question);
		if (strcmp(told(), ex[i].answer) != 0)
			test_end(TEST_FAILED, "%s: %s, not %s",
			    ex[i].question, told(), ex[i].answer);
	}
	policy_free(pl);
}

#define EXPECT(rules, ...) do {						\
	static const struct expect	 expects[] = { __VA_ARGS__ };	\
									\
	check(rules, expects, sizeof(expects) / sizeof(expects[0]));	\
} while (0)

TEST(empty_denies)
{
	EXPECT("",
	    { "GET https://a.example.com:443/", "deny -" },
	    { "GET http://192.0.2.1:80/", "deny -" },
	    { "tcp://a.example.com:443", "deny -" });
	CHECK_STR(pv.pv_reason, "default_deny");
}

TEST(default_allow)
{
	EXPECT("default allow",
	    { "GET https://a.example.com:443/", "allow -" },
	    { "GET https://a.example.com:8443/", "allow -" },
	    { "GET http://::1:80/", "allow -" },
	    /* Unread it does not go: no rule says so. */
	    { "tcp://a.example.com:5432", "look" });
}

TEST(first_match_decides)
{
	EXPECT("deny host \"a.example.com\"\n"
	    "allow host \"*.example.com\"\n"
	    "deny host \"b.example.com\"\n",
	    { "GET https://a.example.com:443/", "deny 0" },
	    { "GET https://b.example.com:443/", "allow 1" },
	    { "GET https://a.b.example.com:443/", "deny -" },
	    { "GET https://example.com:443/", "deny -" },
	    { "tcp://a.example.com:443", "deny 0" },
	    { "tcp://b.example.com:443", "look" },
	    { "tcp://c.org:443", "deny -" });
}

TEST(hosts)
{
	EXPECT("allow host { \"www.example.com\", \"*.a.example.com\", "
	    "\"**.b.example.com\", \"x*y.example.com\" }\n"
	    "allow host \"192.0.2.1\"\n"
	    "allow host \"2001:db8::1\"\n"
	    "deny host \"*.com\"\n"
	    "allow host \"**\" port 8080\n",
	    { "GET https://www.example.com:443/", "allow 0" },
	    { "GET https://1.a.example.com:443/", "allow 0" },
	    { "GET https://1.2.a.example.com:443/", "deny -" },
	    { "GET https://1.2.b.example.com:443/", "allow 0" },
	    { "GET https://b.example.com:443/", "deny -" },
	    { "GET https://xy.example.com:443/", "allow 0" },
	    { "GET https://x-y.example.com:443/", "allow 0" },
	    { "GET https://192.0.2.1:443/", "allow 1" },
	    { "GET https://2001:db8::1:443/", "allow 2" },
	    { "GET https://some.com:8080/", "deny 3" },
	    { "GET https://some.org:8080/", "allow 4" },
	    { "GET https://org:8080/", "allow 4" },
	    /* Wildcards are for names. */
	    { "GET https://192.0.2.2:8080/", "deny -" });
}

TEST(ports)
{
	EXPECT("allow host \"a.example.com\"\n"
	    "allow host \"b.example.com\" port { 8000-8010, 9000 }\n"
	    "deny host \"c.example.com\"\n"
	    "allow host \"*.example.com\" port 1-65535\n",
	    { "GET https://a.example.com:443/", "allow 0" },
	    { "GET http://a.example.com:80/", "allow 0" },
	    /* The usual port of the other scheme is not the usual one. */
	    { "GET https://a.example.com:80/", "allow 3" },
	    { "GET http://a.example.com:443/", "allow 3" },
	    { "GET https://b.example.com:443/", "allow 3" },
	    { "GET https://b.example.com:8000/", "allow 1" },
	    { "GET http://b.example.com:8010/", "allow 1" },
	    { "GET http://b.example.com:8011/", "allow 3" },
	    { "GET http://b.example.com:9000/", "allow 1" },
	    { "GET https://c.example.com:1/", "deny 2" },
	    { "GET https://c.example.com:65535/", "deny 2" });
	EXPECT("allow host \"a.example.com\"\n",
	    { "GET https://a.example.com:80/", "deny -" },
	    { "GET http://a.example.com:443/", "deny -" },
	    { "GET https://a.example.com:8443/", "deny -" },
	    { "tcp://a.example.com:80", "look" },
	    { "tcp://a.example.com:443", "look" },
	    { "tcp://a.example.com:8443", "deny -" });
}

TEST(schemes)
{
	EXPECT("allow host \"a.example.com\" scheme https\n"
	    "deny host \"b.example.com\" scheme http\n"
	    "allow host \"b.example.com\" port { 80, 443 }\n",
	    { "GET https://a.example.com:443/", "allow 0" },
	    { "GET http://a.example.com:80/", "deny -" },
	    { "GET http://a.example.com:443/", "deny -" },
	    { "GET http://b.example.com:80/", "deny 1" },
	    { "GET https://b.example.com:80/", "allow 2" },
	    { "tcp://a.example.com:80", "deny -" },
	    { "tcp://a.example.com:443", "look" },
	    { "tcp://b.example.com:80", "look" });
}

TEST(methods)
{
	EXPECT("allow host \"a.example.com\" method { GET, HEAD }\n"
	    "deny host \"b.example.com\" method POST\n"
	    "allow host \"b.example.com\"\n",
	    { "GET https://a.example.com:443/", "allow 0 once" },
	    { "HEAD https://a.example.com:443/", "allow 0 once" },
	    { "POST https://a.example.com:443/", "deny - once" },
	    { "get https://a.example.com:443/", "deny - once" },
	    /* The rule is not about this host, so nothing else depends. */
	    { "GET https://c.example.com:443/", "deny -" },
	    { "POST https://b.example.com:443/", "deny 1 once" },
	    { "GET https://b.example.com:443/", "allow 2 once" },
	    { "tcp://b.example.com:443", "look" });
}

/* Where origins differ, what opens wants all of them and what closes one. */
TEST(paths)
{
	EXPECT("deny host \"a.example.com\" path \"/admin/**\"\n"
	    "allow host \"a.example.com\" path \"/v1/**\"\n",
	    { "GET https://a.example.com:443/v1/x", "allow 1 once" },
	    { "GET https://a.example.com:443/v1/x?/admin/", "allow 1 once" },
	    { "GET https://a.example.com:443/v2", "deny - once" },
	    { "GET https://a.example.com:443/admin/x", "deny 0 once" },
	    { "GET https://a.example.com:443//admin/x", "deny 0 once" },
	    { "GET https://a.example.com:443/admin%2Fx", "deny 0 once" },
	    { "GET https://a.example.com:443/v1%2Fx", "deny - once" },
	    { "GET https://a.example.com:443//v1/x", "deny - once" },
	    { "GET https://a.example.com:443/v1;a/x", "deny - once" });
}

/* A deny means every spelling, and an allow its own. */
TEST(path_spellings)
{
	EXPECT("deny path \"/secret\"\n"
	    "deny path nocase { \"/Admin/**\", \"/x\" }\n"
	    "allow path \"/one\"\ndefault allow\n",
	    { "GET https://a.example.com:443/secret/", "deny 0 once" },
	    { "GET https://a.example.com:443/secret%20", "deny 0 once" },
	    { "GET https://a.example.com:443/%2573ecret", "deny 0 once" },
	    { "GET https://a.example.com:443/secret%3B", "deny 0 once" },
	    { "GET https://a.example.com:443/SECRET", "allow - once" },
	    { "GET https://a.example.com:443/aDMIN%2Fx", "deny 1 once" },
	    { "GET https://a.example.com:443/X.", "deny 1 once" },
	    { "GET https://a.example.com:443/one", "allow 2 once" },
	    { "GET https://a.example.com:443/one/", "allow - once" },
	    { "GET https://a.example.com:443/One", "allow - once" });
}

/* A decider is asked, but what it says is not enough. */
TEST(path_may_be_decided)
{
	EXPECT("decide \"d\" path \"/admin/**\"\n"
	    "deny path \"/admin;x/y\"\n"
	    "allow host \"a.example.com\"\n",
	    { "GET https://a.example.com:443/admin/x", "ask 0 once" },
	    { "GET https://b.example.com:443/admin/x", "ask 0 once" },
	    { "GET https://a.example.com:443//admin/x", "ask 0 once" },
	    { "GET https://b.example.com:443//admin/x", "deny - once" },
	    { "GET https://a.example.com:443/admin;x/y", "deny 1 once" },
	    { "OPTIONS https://a.example.com:443/*", "deny 1 once" },
	    { "GET https://a.example.com:443/x", "allow 2 once" });
}

/* Why a verdict is not what the path as it is suggests. */
TEST(path_explained)
{
	struct policy		*pl = make("deny path \"/secret\"\n"
	    "allow path \"/v1/*\" method POST\nallow path \"/v1/*\"\n");
	struct policy_request	 pr = { "a.example.com", 443, URL_HTTPS, "GET",
	    "/v1/a%2Fb" };

	CHECK_STR(rule_reading(pl->pl_rules[0], "/%2573ecret?x"), "/secret");
	CHECK_STR(rule_reading(pl->pl_rules[0], "/secret/"), "/secret/");
	CHECK(rule_reading(pl->pl_rules[0], "/secret?x") == NULL);
	CHECK(rule_reading(pl->pl_rules[0], "*") == NULL);
	CHECK_STR(rule_reading(pl->pl_rules[1], "/v1/a%2Fb"), "/v1/a/b");
	CHECK(rule_reading(pl->pl_rules[1], "/v1/a") == NULL);
	CHECK(rule_reading(pl->pl_rules[1], "/v2/a%2Fb") == NULL);
	CHECK(policy_missed(pl, &pr) == pl->pl_rules[2]);
	pr.pr_path = "/v1/a";
	CHECK(policy_missed(pl, &pr) == NULL);
	policy_free(pl);
}

/* The target of OPTIONS that has no path. */
TEST(asterisk)
{
	EXPECT("allow host \"a.example.com\" path \"/**\"\n"
	    "deny host \"b.example.com\" path \"/x\"\n"
	    "allow host \"b.example.com\"\n"
	    "allow host \"c.example.com\"\n",
	    { "OPTIONS https://a.example.com:443/*", "deny - once" },
	    { "OPTIONS https://b.example.com:443/*", "deny 1 once" },
	    { "OPTIONS https://c.example.com:443/*", "allow 3" });
}

TEST(tcp)
{
	EXPECT("deny tcp host \"no.example.com\"\n"
	    "allow tcp host \"*.example.com\" port 5432\n"
	    "deny host \"plain.example.com\"\n"
	    "allow tcp host \"plain.example.com\" port 22\n"
	    "allow host \"*.example.com\" port { 80, 443, 5432 }\n",
	    { "tcp://db.example.com:5432", "allow 1" },
	    { "tcp://db.example.com:5433", "deny -" },
	    { "tcp://no.example.com:5432", "deny 0" },
	    { "tcp://plain.example.com:22", "deny 2" },
	    { "tcp://db.example.com:443", "look" },
	    /* It opens no request, but it closes them. */
	    { "GET http://db.example.com:5432/", "allow 4" },
	    { "GET http://plain.example.com:5432/", "deny 2" },
	    { "GET https://no.example.com:443/", "deny 0" });
}

/* One without a port, which the grammar refuses, would open nothing. */
TEST(tcp_without_port)
{
	struct policy	*pl = policy_new("p");
	struct rule	*ru = policy_add(pl, RULE_ALLOW);

	ru->ru_tcp = 1;
	policy_ready(pl);
	ask_text(pl, "tcp://a.example.com:443");
	CHECK_STR(told(), "deny -");
	policy_free(pl);
}

TEST(pass)
{
	EXPECT("pass host \"a.example.com\"\n"
	    "pass host \"b.example.com\" port 8443\n"
	    "deny host \"c.example.com\"\n"
	    "pass host \"c.example.com\"\n",
	    { "tcp://a.example.com:443", "allow 0" },
	    { "tcp://a.example.com:80", "deny -" },
	    { "tcp://a.example.com:8443", "deny -" },
	    { "tcp://b.example.com:8443", "allow 1" },
	    { "tcp://c.example.com:443", "deny 2" },
	    /* Its name was not known in time: looked into, and allowed. */
	    { "GET https://a.example.com:443/x", "allow 0" },
	    { "GET http://a.example.com:443/", "deny -" },
	    { "GET https://c.example.com:443/", "deny 2" });
}

/* The grammar refuses these; the walk has its answer all the same. */
TEST(unread_below_what_looks)
{
	struct policy	*pl = policy_new("p");
	struct rule	*ru;

	ru = policy_add(pl, RULE_DENY);
	rule_add(ru, COND_METHOD, "POST", "");
	ru = policy_add(pl, RULE_ALLOW);
	ru->ru_tcp = 1;
	rule_add_ports(ru, 443, 443);
	policy_ready(pl);
	ask_text(pl, "tcp://a.example.com:443");
	CHECK_STR(told(), "deny -");
	policy_add(pl, RULE_PASS);
	policy_ready(pl);
	ask_text(pl, "tcp://a.example.com:443");
	CHECK_STR(told(), "look");
	ask_text(pl, "GET https://a.example.com:443/");
	CHECK_STR(told(), "allow 2 once");
	ask_text(pl, "POST https://a.example.com:443/");
	CHECK_STR(told(), "deny 0 once");
	policy_free(pl);
}

TEST(decide)
{
	EXPECT("allow host \"a.example.com\"\n"
	    "decide tcp \"d\" host \"b.example.com\" port 22\n"
	    "decide \"d\" method POST\n"
	    "default allow\n",
	    { "POST https://a.example.com:443/", "allow 0" },
	    { "POST https://c.example.com:443/", "ask 2 once" },
	    { "POST https://c.example.com:8443/", "ask 2 once" },
	    { "GET https://c.example.com:443/", "allow - once" },
	    { "GET http://b.example.com:22/", "ask 1 once" },
	    { "tcp://b.example.com:22", "ask 1 once" },
	    { "tcp://c.example.com:22", "look" });
	EXPECT("decide \"d\" host \"a.example.com\"\n",
	    { "tcp://a.example.com:1", "look" },
	    { "GET https://a.example.com:443/", "ask 0 once" });
	CHECK_INT(pv.pv_verdict, VERDICT_DENY);
	CHECK_STR(pv.pv_reason, "decider_error");
}

TEST(narrow)
{
	EXPECT("narrow \"d\" host \"*.example.com\"\n"
	    "narrow \"d\" host \"a.example.com\"\n"
	    "pass host \"pass.example.com\"\n"
	    "allow tcp host \"tcp.example.com\" port 22\n"
	    "allow host \"a.example.com\"\n"
	    "deny host \"b.example.com\"\n"
	    "allow host \"a.example.org\"\n",
	    { "GET https://a.example.com:443/", "ask 0 once" },
	    { "GET https://b.example.com:443/", "deny 5" },
	    { "GET https://c.example.com:443/", "deny -" },
	    { "GET https://a.example.org:443/", "allow 6" },
	    { "tcp://pass.example.com:443", "ask 0 once" },
	    { "tcp://tcp.example.com:22", "ask 0 once" },
	    { "tcp://b.example.com:22", "deny 5" },
	    { "tcp://a.example.com:443", "look" });
	EXPECT("narrow \"d\" path \"/x/**\"\ndefault allow\n",
	    { "GET https://a.example.com:443/x/y", "ask 0 once" },
	    { "GET https://a.example.com:443/y", "allow - once" },
	    { "tcp://a.example.com:443", "look" });
}

TEST(attributes)
{
	struct policy	*pl;
	char		 nets[64], small[16];

	pl = make("allow host \"a.example.com\" body 1K to private\n"
	    "allow host \"b.example.com\" to { 10.0.0.0/8, fd00::/8 }\n"
	    "deny host \"c.example.com\"\n");
	ask_text(pl, "PUT https://a.example.com:443/");
	CHECK_STR(told(), "allow 0");
	CHECK_INT(pv.pv_body, 1024);
	CHECK_INT(pv.pv_rule->ru_to_private, 1);
	CHECK_INT(rule_nets(pv.pv_rule, nets, sizeof(nets)), 0);
	CHECK_STR(nets, "");
	ask_text(pl, "PUT https://b.example.com:443/");
	CHECK(pv.pv_body == UINT64_MAX);
	CHECK_INT(pv.pv_rule->ru_to_private, 0);
	CHECK_INT(rule_nets(pv.pv_rule, nets, sizeof(nets)), 0);
	CHECK_STR(nets, "10.0.0.0/8 fd00::/8");
	CHECK_INT(rule_nets(pv.pv_rule, small, sizeof(small)), -1);
	CHECK_STR(small, "");
	ask_text(pl, "PUT https://c.example.com:443/");
	CHECK_INT(pv.pv_body, 0);
	CHECK_STR(pv.pv_reason, "matched_deny_rule");
	policy_free(pl);
}

TEST(kind_names)
{
	CHECK_STR(rule_kind_name(RULE_ALLOW), "allow");
	CHECK_STR(rule_kind_name(RULE_NARROW), "narrow");
	CHECK_STR(rule_kind_name(RULE_KIND_MAX), NULL);
}

TEST(many_labels)
{
	struct policy	*pl = make("allow host \"**.b.c\"\n");
	char		 name[HOSTNAME_MAX];
	size_t		 i;

	for (i = 0; i < 253; i++)
		name[i] = i % 2 ? '.' : 'a';
	name[253] = '\0';
	ask(pl, URL_HTTPS, name, 443, "GET", "/");
	CHECK_STR(told(), "deny -");
	memcpy(name + 250, "b.c", 3);
	ask(pl, URL_HTTPS, name, 443, "GET", "/");
	CHECK_STR(told(), "allow 0");
	policy_free(pl);
}

/* Each of many names finds its own rule, and no other. */
TEST(many_rules)
{
	enum { MANY = 20000 };
	struct policy	*pl = policy_new("p");
	char		 host[64];
	unsigned int	 i;

	for (i = 0; i < MANY; i++) {
		snprintf(host, sizeof(host), i % 2 ? "h%u.example.com" :
		    "*.d%u.example.com", i);
		rule_add(policy_add(pl, RULE_ALLOW), COND_HOST, host, "");
	}
	policy_ready(pl);
	for (i = 0; i < MANY; i++) {
		snprintf(host, sizeof(host), i % 2 ? "h%u.example.com" :
		    "a.d%u.example.com", i);
		ask(pl, URL_HTTPS, host, 443, "GET", "/");
		CHECK_INT(pv.pv_verdict, VERDICT_ALLOW);
		CHECK_INT(pv.pv_rule->ru_index, i);
	}
	ask(pl, URL_HTTPS, "h20001.example.com", 443, "GET", "/");
	CHECK_INT(pv.pv_verdict, VERDICT_DENY);
	policy_free(pl);
}

TEST_MAIN("policy")
