/* SPDX-License-Identifier: ISC */

/*
 * Tests of common/policy.c and common/policy_hosts.c with random policies: a
 * second evaluation, which tries every rule in turn, has to agree with the
 * first, and what is said of scopes and connections has to hold.
 */

#include "test.h"

#include "hostname.h"
#include "policy.h"
#include "urlpath_oracle.h"

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
static const char *const path_patterns[] = {
	"/**", "/x/**", "/x/*", "/y", "/x%2F*", "/x/",
};
static const char *const paths[] = {
	"/", "/x", "/x/y", "//x/y", "/x%2Fy", "/y?q", "/y;z", "*", "/y/",
	"/x%252Fy", "/y%20", "/%2579", "/y%3B", "/Y.", "/x/%20", "/X/y",
};
static const uint16_t ports[] = { 22, 80, 443, 8443 };

#define COUNT(x)	(sizeof(x) / sizeof((x)[0]))
#define PICK(x)		((x)[random_below(COUNT(x))])

static struct policy_verdict	 pv;
static uint64_t			 seed;

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
		rule_add(ru, kind, texts[random_below(ntexts)],
		    kind == COND_PATH && random_below(3) == 0 ?
		    PATH_NOCASE : "");
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

/* What the oracle says, kept: it is slow. */
static char
path_oracle(const char *pattern, const char *path, int nocase)
{
	static char	 known[COUNT(path_patterns)][COUNT(paths)][2];
	size_t		 i = 0, j = 0;
	char		*c;

	while (strcmp(path_patterns[i], pattern) != 0)
		i++;
	while (strcmp(paths[j], path) != 0)
		j++;
	c = &known[i][j][nocase];
	if (*c == '\0')
		*c = oracle_match(pattern, path, nocase);
	return *c;
}

static int
path_fits(const struct condition *co, const char *path, int opens)
{
	char	 how = path_oracle(co->co_text, path,
	    strcmp(co->co_value, PATH_NOCASE) == 0);

	return opens ? how == 'Y' : how != 'n';
}

/* A condition as the manual has it: one of the list, or no list. */
static int
one_of(const struct rule *ru, enum cond_kind kind, const char *text, int opens)
{
	const struct condition	*co;

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
			if (text[0] == '*' ? !opens : path_fits(co, text,
			    opens))
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
	return port_fits(ru, pr) && one_of(ru, COND_HOST, pr->pr_host, 0) &&
	    one_of(ru, COND_METHOD, pr->pr_method, 0) &&
	    one_of(ru, COND_PATH, pr->pr_path, ru->ru_kind == RULE_ALLOW ||
	    ru->ru_kind == RULE_PASS);
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
		/* Where not every origin may agree, deciders do not open. */
		if (ru->ru_kind != RULE_NARROW && (ru->ru_kind != RULE_DECIDE ||
		    one_of(ru, COND_PATH, pr->pr_path, 1)))
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

TEST_MAIN("policy_random")
