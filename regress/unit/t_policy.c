/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/*
 * Tests of common/policy.c and common/policy_hosts.c: tables of rules in the
 * words of egressd.conf, and random policies, where a second evaluation that
 * knows no index has to agree with the first.
 */

#include "test.h"

#include "hostname.h"
#include "urlpath.h"

#include "../../parent/conf.h"

static struct policy_verdict	 pv;

/* The rules of a policy, made ready. */
static struct policy *
make(const char *rules)
{
	struct conf_errors	 errs = { .ce_count = 0 };
	struct policy		*pl;
	struct config		*cf;
	char			 text[4096];

	snprintf(text, sizeof(text), "decider \"d\" operator\n"
	    "policy \"p\" {\n%s\n}\n", rules);
	if ((cf = conf_parse_buffer("t", text, strlen(text), &errs)) == NULL)
		test_end(TEST_FAILED, "%s", errs.ce_msg[0]);
	pl = conf_policy_compile(conf_policy_find(cf, "p"));
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

	if (sscanf(text, "%15s %7[a-z]://%255[^ ]", method, scheme, host) == 3) {
		if (sscanf(strrchr(host, ':'), ":%u%255s", &port, path) < 1)
			abort();
		*strrchr(host, ':') = '\0';
		if (path[0] == '/' && path[1] == '*' && path[2] == '\0')
			memmove(path, path + 1, 2);
		ask(pl, strcmp(scheme, "http") == 0 ? URL_HTTP : URL_HTTPS,
		    host, (uint16_t)port, method, path);
	} else if (sscanf(text, "tcp://%255s", host) == 1) {
		port = (unsigned int)atoi(strrchr(host, ':') + 1);
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

/* ---- tables -------------------------------------------------------------- */

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

/* ---- random policies ----------------------------------------------------- */

#define ROUNDS		4000
#define QUESTIONS	40
#define RULES		12

static const char *const patterns[] = {
	"a.example.com", "b.example.com", "*.example.com", "**.example.com",
	"a*.example.com", "example.com", "**", "*.com", "192.0.2.1", "b.*.com",
	"2001:db8::1", "*.*.example.com", "a.**.com",
};
static const char *const names[] = {
	"a.example.com", "b.example.com", "ab.example.com", "example.com",
	"x.y.example.com", "a.org", "192.0.2.1", "192.0.2.2", "2001:db8::1",
	"com", "a.b.c.com",
};
static const char *const methods[] = { "GET", "POST", "OPTIONS" };
static const char *const path_patterns[] = { "/**", "/x/**", "/x/*", "/y" };
static const char *const paths[] = {
	"/", "/x", "/x/y", "//x/y", "/x%2Fy", "/y?q", "/y;z", "*",
};
static const uint16_t ports[] = { 22, 80, 443, 8443 };

#define COUNT(x)	(sizeof(x) / sizeof((x)[0]))
#define PICK(x)		((x)[random_below(COUNT(x))])

static uint64_t	 seed;

static size_t
random_below(size_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(seed >> 33) % n;
}

static void
random_conditions(struct rule *ru, enum cond_kind kind,
    const char *const *texts, size_t ntexts)
{
	size_t	 n = random_below(4);

	for (n = n == 3 ? 2 : n == 2 ? 1 : 0; n > 0; n--)
		rule_add(ru, kind, texts[random_below(ntexts)], "");
}

static void
random_rule(struct policy *pl)
{
	struct rule	*ru = policy_add(pl, random_below(RULE_KIND_MAX));
	uint16_t	 port;

	random_conditions(ru, COND_HOST, patterns, COUNT(patterns));
	if (random_below(2) == 0) {
		port = PICK(ports);
		rule_add_ports(ru, port, random_below(4) == 0 ? 9999 : port);
	}
	ru->ru_tcp = ru->ru_kind != RULE_PASS && random_below(4) == 0;
	if (ru->ru_tcp || ru->ru_kind == RULE_PASS)
		return;
	if (random_below(4) == 0)
		ru->ru_scheme = random_below(SCHEME_MAX);
	if (random_below(3) == 0)
		random_conditions(ru, COND_METHOD, methods, COUNT(methods));
	if (random_below(3) == 0)
		random_conditions(ru, COND_PATH, path_patterns,
		    COUNT(path_patterns));
}

static struct policy *
random_policy(uint64_t round)
{
	struct policy	*pl = policy_new("p");
	size_t		 n;

	seed = round;
	pl->pl_allow = random_below(4) == 0;
	for (n = random_below(RULES); n > 0; n--)
		random_rule(pl);
	policy_ready(pl);
	return pl;
}

static void
random_request(struct policy_request *pr)
{
	pr->pr_host = PICK(names);
	pr->pr_port = PICK(ports);
	pr->pr_scheme = random_below(2) == 0 ? URL_HTTP : URL_HTTPS;
	pr->pr_method = PICK(methods);
	pr->pr_path = PICK(paths);
}

/* A condition as the manual has it: one of the list, or no list. */
static int
one_of(const struct rule *ru, enum cond_kind kind, const char *text)
{
	const struct condition	*co;
	int			 opens;

	opens = ru->ru_kind == RULE_ALLOW || ru->ru_kind == RULE_PASS;
	TAILQ_FOREACH(co, &ru->ru_conditions[kind], co_entry)
		switch (kind) {
		case COND_HOST:
			if (hostname_match(co->co_text, text))
				return 1;
			break;
		case COND_METHOD:
			if (strcmp(co->co_text, text) == 0)
				return 1;
			break;
		default:
			if (text[0] == '*' ? !opens : opens ?
			    urlpath_match(co->co_text, text) :
			    urlpath_may_match(co->co_text, text))
				return 1;
		}
	return TAILQ_EMPTY(&ru->ru_conditions[kind]);
}

static int
port_fits(const struct rule *ru, const struct policy_request *pr)
{
	const struct condition	*co;

	TAILQ_FOREACH(co, &ru->ru_conditions[COND_PORT], co_entry)
		if (pr->pr_port >= co->co_first && pr->pr_port <= co->co_last)
			return 1;
	if (!TAILQ_EMPTY(&ru->ru_conditions[COND_PORT]))
		return 0;
	if (ru->ru_kind != RULE_ALLOW && ru->ru_kind != RULE_PASS)
		return 1;
	return pr->pr_port == (pr->pr_scheme == URL_HTTPS ? 443 : 80);
}

static int
fits(const struct rule *ru, const struct policy_request *pr)
{
	if (ru->ru_kind == RULE_ALLOW && ru->ru_tcp)
		return 0;
	if (ru->ru_kind == RULE_PASS && pr->pr_scheme != URL_HTTPS)
		return 0;
	if ((ru->ru_scheme == SCHEME_HTTP && pr->pr_scheme != URL_HTTP) ||
	    (ru->ru_scheme == SCHEME_HTTPS && pr->pr_scheme != URL_HTTPS))
		return 0;
	return port_fits(ru, pr) && one_of(ru, COND_HOST, pr->pr_host) &&
	    one_of(ru, COND_METHOD, pr->pr_method) &&
	    one_of(ru, COND_PATH, pr->pr_path);
}

/* Every rule in turn; -1 is the default, and what is narrowed is asked. */
static int
reference(const struct policy *pl, const struct policy_request *pr,
    const char **word)
{
	const struct rule	*ru;
	int			 narrow = -1, opens;
	uint32_t		 i;

	for (i = 0; i < pl->pl_nrules; i++) {
		ru = pl->pl_rules[i];
		if (!fits(ru, pr))
			continue;
		if (ru->ru_kind != RULE_NARROW)
			break;
		if (narrow == -1)
			narrow = (int)i;
	}
	opens = i == pl->pl_nrules ? pl->pl_allow :
	    pl->pl_rules[i]->ru_kind == RULE_ALLOW ||
	    pl->pl_rules[i]->ru_kind == RULE_PASS;
	*word = "deny";
	if (i < pl->pl_nrules && pl->pl_rules[i]->ru_kind == RULE_DECIDE)
		*word = "ask";
	else if (opens && narrow != -1) {
		*word = "ask";
		return narrow;
	} else if (opens)
		*word = "allow";
	return i == pl->pl_nrules ? -1 : (int)i;
}

static const char *
verdict_word(const struct policy_verdict *v)
{
	return v->pv_asks ? "ask" : v->pv_verdict == VERDICT_ALLOW ? "allow" :
	    v->pv_verdict == VERDICT_DENY ? "deny" : "look";
}

TEST(random_reference)
{
	struct policy_request	 pr;
	struct policy		*pl;
	const char		*word;
	uint64_t		 round;
	int			 q, rule, got;

	for (round = 0; round < ROUNDS; round++) {
		pl = random_policy(round);
		for (q = 0; q < QUESTIONS; q++) {
			random_request(&pr);
			policy_evaluate(pl, &pr, &pv);
			rule = reference(pl, &pr, &word);
			got = pv.pv_rule == NULL ? -1 :
			    (int)pv.pv_rule->ru_index;
			if (got != rule || strcmp(verdict_word(&pv), word) != 0)
				test_end(TEST_FAILED, "policy %ju, question "
				    "%d: %s %d, not %s %d", (uintmax_t)round,
				    q, verdict_word(&pv), got, word, rule);
		}
		policy_free(pl);
	}
}

/* What holds for the host holds whatever is asked of it. */
TEST(random_scope)
{
	struct policy_request	 pr, other;
	struct policy_verdict	 one;
	struct policy		*pl;
	uint64_t		 round;
	size_t			 m, p;
	int			 q, reused = 0;

	for (round = 0; round < ROUNDS; round++) {
		pl = random_policy(round);
		for (q = 0; q < QUESTIONS; q++) {
			random_request(&pr);
			policy_evaluate(pl, &pr, &one);
			if (one.pv_scope != VERDICT_HOST)
				continue;
			reused++;
			other = pr;
			for (m = 0; m < COUNT(methods); m++)
				for (p = 0; p < COUNT(paths); p++) {
					other.pr_method = methods[m];
					other.pr_path = paths[p];
					policy_evaluate(pl, &other, &pv);
					CHECK_INT(pv.pv_verdict,
					    one.pv_verdict);
					CHECK_INT(pv.pv_scope, one.pv_scope);
					CHECK(pv.pv_rule == one.pv_rule);
					CHECK(pv.pv_body == one.pv_body);
				}
		}
		policy_free(pl);
	}
	/* Or the above would say nothing. */
	CHECK(reused > ROUNDS * QUESTIONS / 10);
}

/* The word on a connection binds the requests that it could carry. */
TEST(random_connection)
{
	struct policy_request	 pr;
	struct policy_verdict	 whole;
	struct policy		*pl;
	enum url_scheme		 scheme;
	uint64_t		 round;
	int			 q, n[VERDICT_MAX] = { 0 };

	for (round = 0; round < ROUNDS; round++) {
		pl = random_policy(round);
		for (q = 0; q < QUESTIONS; q++) {
			random_request(&pr);
			scheme = pr.pr_scheme;
			pr.pr_scheme = URL_TCP;
			policy_evaluate(pl, &pr, &whole);
			pr.pr_scheme = scheme;
			policy_evaluate(pl, &pr, &pv);
			n[whole.pv_verdict]++;
			if (whole.pv_verdict == VERDICT_DENY)
				CHECK(pv.pv_verdict == VERDICT_DENY ||
				    whole.pv_asks);
			if (whole.pv_verdict != VERDICT_ALLOW)
				continue;
			CHECK(whole.pv_rule->ru_tcp ||
			    whole.pv_rule->ru_kind == RULE_PASS);
			if (!whole.pv_rule->ru_tcp && scheme == URL_HTTPS)
				CHECK(pv.pv_rule == whole.pv_rule);
		}
		policy_free(pl);
	}
	CHECK(n[VERDICT_ALLOW] > 100 && n[VERDICT_DENY] > 100 &&
	    n[VERDICT_LOOK] > 100);
}

/* What goes through with one more deny on top also goes through without. */
TEST(random_deny_on_top)
{
	struct policy_request	 pr;
	struct policy		*pl, *closed;
	struct rule		*ru;
	uint64_t		 round;
	int			 q;

	for (round = 0; round < ROUNDS / 8; round++) {
		closed = policy_new("closed");
		ru = policy_add(closed, RULE_DENY);
		rule_add(ru, COND_PATH, "/x/**", "");
		seed = round;
		closed->pl_allow = random_below(2) == 0;
		for (q = 0; q < RULES; q++)
			random_rule(closed);
		policy_ready(closed);
		pl = policy_new("open");
		seed = round;
		pl->pl_allow = random_below(2) == 0;
		for (q = 0; q < RULES; q++)
			random_rule(pl);
		policy_ready(pl);
		for (q = 0; q < QUESTIONS; q++) {
			random_request(&pr);
			policy_evaluate(closed, &pr, &pv);
			if (pv.pv_verdict != VERDICT_ALLOW)
				continue;
			CHECK(strncmp(pr.pr_path, "/x/", 3) != 0);
			policy_evaluate(pl, &pr, &pv);
			CHECK_INT(pv.pv_verdict, VERDICT_ALLOW);
		}
		policy_free(closed);
		policy_free(pl);
	}
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
