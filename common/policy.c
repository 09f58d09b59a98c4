/* SPDX-License-Identifier: ISC */

/*
 * Policies: how they are made, and the walk over their rules.  Whoever asks
 * has made host and path canonical, and has checked them if they came from a
 * peer that it does not trust.
 */

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "policy.h"
#include "reasons.h"
#include "urlpath.h"

#define PORT_HTTP	80
#define PORT_HTTPS	443

static void *
policy_alloc(size_t size)
{
	void	*p;

	if ((p = calloc(1, size)) == NULL)
		fatal("policy");
	return p;
}

static char *
policy_text(const char *text)
{
	char	*copy;

	if ((copy = strdup(text)) == NULL)
		fatal("policy");
	return copy;
}

struct policy *
policy_new(const char *name)
{
	struct policy	*pl = policy_alloc(sizeof(*pl));

	strlcpy(pl->pl_name, name, sizeof(pl->pl_name));
	option_presets(policy_table, &pl->pl_options);
	return pl;
}

/* The array doubles, so it is full when its length is a power of two. */
struct rule *
policy_add(struct policy *pl, enum rule_kind kind)
{
	struct rule	*ru = policy_alloc(sizeof(*ru));
	size_t		 i, n = pl->pl_nrules;

	if ((n & (n - 1)) == 0 && (pl->pl_rules = reallocarray(pl->pl_rules,
	    n == 0 ? 1 : 2 * n, sizeof(*pl->pl_rules))) == NULL)
		fatal("policy");
	ru->ru_index = pl->pl_nrules;
	ru->ru_kind = kind;
	option_presets(rule_table, ru);
	for (i = 0; i < COND_KIND_MAX; i++)
		TAILQ_INIT(&ru->ru_conditions[i]);
	pl->pl_rules[pl->pl_nrules++] = ru;
	return ru;
}

static struct condition *
condition_add(struct rule *ru, enum cond_kind kind, const char *text,
    const char *value)
{
	struct condition	*co = policy_alloc(sizeof(*co));

	co->co_text = policy_text(text);
	co->co_value = policy_text(value);
	TAILQ_INSERT_TAIL(&ru->ru_conditions[kind], co, co_entry);
	return co;
}

void
rule_add(struct rule *ru, enum cond_kind kind, const char *text,
    const char *value)
{
	condition_add(ru, kind, text, value);
}

void
rule_add_ports(struct rule *ru, uint16_t first, uint16_t last)
{
	struct condition	*co = condition_add(ru, COND_PORT, "", "");

	co->co_first = first;
	co->co_last = last;
}

void
policy_ready(struct policy *pl)
{
	hosts_free(pl->pl_hosts);
	pl->pl_hosts = hosts_new(pl);
}

static void
rule_free(struct rule *ru)
{
	struct condition	*co;
	size_t			 i;

	for (i = 0; i < COND_KIND_MAX; i++)
		while ((co = TAILQ_FIRST(&ru->ru_conditions[i])) != NULL) {
			TAILQ_REMOVE(&ru->ru_conditions[i], co, co_entry);
			free(co->co_text);
			free(co->co_value);
			free(co);
		}
	free(ru);
}

void
policy_free(struct policy *pl)
{
	size_t	 i;

	if (pl == NULL)
		return;
	for (i = 0; i < pl->pl_nrules; i++)
		rule_free(pl->pl_rules[i]);
	free(pl->pl_rules);
	hosts_free(pl->pl_hosts);
	redact_free(pl->pl_redact);
	free(pl);
}

/* All or nothing: a prefix that is cut off would be a wider one. */
int
rule_nets(const struct rule *ru, char *buf, size_t size)
{
	const struct condition	*co;
	const char		*space = "";

	buf[0] = '\0';
	TAILQ_FOREACH(co, &ru->ru_conditions[COND_NET], co_entry) {
		if (strlcat(buf, space, size) >= size ||
		    strlcat(buf, co->co_text, size) >= size) {
			buf[0] = '\0';
			return -1;
		}
		space = " ";
	}
	return 0;
}

static int
rule_opens(const struct rule *ru)
{
	return ru->ru_kind == RULE_ALLOW || ru->ru_kind == RULE_PASS;
}

int
rule_reads(const struct rule *ru)
{
#define RULE_READS(kind, ...)						\
	if (!TAILQ_EMPTY(&ru->ru_conditions[COND_##kind]))		\
		return 1;
#include "policy_rows.h"
	return 0;
}

/* The port of a rule that names none. */
static int
usual_port(const struct rule *ru, const struct policy_request *pr)
{
	switch (ru->ru_kind) {
	case RULE_ALLOW:
		if (ru->ru_tcp)
			return 0;
		/* A connection (URL_TCP) may turn out to be http or https. */
		return (pr->pr_port == PORT_HTTP &&
		    pr->pr_scheme != URL_HTTPS &&
		    ru->ru_scheme != SCHEME_HTTPS) ||
		    (pr->pr_port == PORT_HTTPS &&
		    pr->pr_scheme != URL_HTTP && ru->ru_scheme != SCHEME_HTTP);
	case RULE_PASS:
		return pr->pr_port == PORT_HTTPS;
	default:
		return 1;
	}
}

static int
port_matches(const struct rule *ru, const struct policy_request *pr)
{
	const struct conditions	*ports = &ru->ru_conditions[COND_PORT];
	const struct condition	*co;

	if (TAILQ_EMPTY(ports))
		return usual_port(ru, pr);
	TAILQ_FOREACH(co, ports, co_entry)
		if (pr->pr_port >= co->co_first && pr->pr_port <= co->co_last)
			return 1;
	return 0;
}

static int
scheme_matches(const struct rule *ru, enum url_scheme scheme)
{
	if (scheme == URL_TCP)
		return 1;
	if (ru->ru_kind == RULE_ALLOW && ru->ru_tcp)
		return 0;
	if (ru->ru_kind == RULE_PASS && scheme != URL_HTTPS)
		return 0;
	return ru->ru_scheme == SCHEME_ANY ||
	    (ru->ru_scheme == SCHEME_HTTP) == (scheme == URL_HTTP);
}

/* Of the path that is being looked at; none (ur_n is 0) until a rule asks. */
static struct urlpath_readings	 readings;

static int
is_nocase(const struct condition *co)
{
	return strcmp(co->co_value, PATH_NOCASE) == 0;
}

/* In how many readings of a request a condition is met, if that matters. */
enum meets {
	MEETS_NOT,
	MEETS_SOME,
	MEETS_ALL
};

static enum meets
method_meets(const struct rule *ru, const struct policy_request *pr)
{
	const struct conditions	*methods = &ru->ru_conditions[COND_METHOD];
	const struct condition	*co;

	TAILQ_FOREACH(co, methods, co_entry)
		if (strcmp(co->co_text, pr->pr_method) == 0)
			return MEETS_ALL;
	return TAILQ_EMPTY(methods) ? MEETS_ALL : MEETS_NOT;
}

static enum meets
condition_meets(const struct rule *ru, const struct condition *co)
{
	int	 nocase = is_nocase(co);

	if (!rule_opens(ru)) {
		if (urlpath_hit(co->co_text, nocase, &readings) == NULL)
			return MEETS_NOT;
		if (ru->ru_kind != RULE_DECIDE)
			return MEETS_ALL;
	}
	if (urlpath_miss(co->co_text, nocase, &readings) == NULL)
		return MEETS_ALL;
	return rule_opens(ru) ? MEETS_NOT : MEETS_SOME;
}

static enum meets
path_meets(const struct rule *ru, const struct policy_request *pr)
{
	const struct conditions	*paths = &ru->ru_conditions[COND_PATH];
	const struct condition	*co;
	enum meets		 one, best = MEETS_NOT;

	if (TAILQ_EMPTY(paths))
		return MEETS_ALL;
	if (strcmp(pr->pr_path, "*") == 0 ||
	    (readings.ur_n == 0 && urlpath_read(&readings, pr->pr_path) == -1))
		return rule_opens(ru) ? MEETS_NOT : MEETS_SOME;
	TAILQ_FOREACH(co, paths, co_entry)
		if ((one = condition_meets(ru, co)) > best)
			best = one;
	return best;
}

/* The condition that is met least decides. */
static enum meets
rule_meets(const struct rule *ru, const struct policy_request *pr)
{
	enum meets	 one, worst = MEETS_ALL;

#define RULE_READS(kind, word, where, values, meets)			\
	if ((one = meets(ru, pr)) < worst)				\
		worst = one;						\
	if (worst == MEETS_NOT)						\
		return MEETS_NOT;
#include "policy_rows.h"
	return worst;
}

const char *
rule_reading(const struct rule *ru, const char *path)
{
	const struct condition	*co;
	const char		*hit, *miss;

	if (strcmp(path, "*") == 0 || urlpath_read(&readings, path) == -1)
		return NULL;
	TAILQ_FOREACH(co, &ru->ru_conditions[COND_PATH], co_entry) {
		hit = urlpath_hit(co->co_text, is_nocase(co), &readings);
		miss = urlpath_miss(co->co_text, is_nocase(co), &readings);
		if (hit == NULL || miss == NULL)
			continue;
		if (!rule_opens(ru) && miss == readings.ur_text[0])
			return hit;
		if (rule_opens(ru) && miss != readings.ur_text[0])
			return miss;
	}
	return NULL;
}

static void
deny(struct policy_verdict *pv, const struct rule *ru, const char *reason)
{
	pv->pv_verdict = VERDICT_DENY;
	pv->pv_rule = ru;
	pv->pv_reason = reason;
}

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * All these deciders have to allow it.  More than we count are no reason to
 * leave one out, and a failure of today is no verdict of tomorrow: none of
 * this is kept.
 */
static void
ask(struct policy_verdict *pv, const struct rule *opens)
{
	unsigned int	 i;

	pv->pv_scope = VERDICT_ONCE;
	if (pv->pv_asks > ASKING_MAX) {
		deny(pv, pv->pv_asking[0], REASON_DECIDER_ERROR);
		pv->pv_asks = 0;
		return;
	}
	deny(pv, opens != NULL && opens->ru_kind == RULE_DECIDE ? opens :
	    pv->pv_asking[0], REASON_DECIDER_ERROR);
	pv->pv_opens = opens;
	pv->pv_body = opens == NULL ? UINT64_MAX : opens->ru_body;
	for (i = 0; i < pv->pv_asks; i++)
		pv->pv_body = least(pv->pv_body, pv->pv_asking[i]->ru_body);
}

static void
add_asking(struct policy_verdict *pv, const struct rule *ru)
{
	if (pv->pv_asks < ASKING_MAX)
		pv->pv_asking[pv->pv_asks] = ru;
	pv->pv_asks++;
}

/* The walk ended at this rule, or with NULL at the default. */
static void
conclude(const struct policy *pl, const struct rule *ru,
    struct policy_verdict *pv)
{
	int	 opens = ru == NULL ? pl->pl_allow : rule_opens(ru);

	if (ru != NULL && ru->ru_kind == RULE_DECIDE) {
		add_asking(pv, ru);
		ask(pv, ru);
	} else if (!opens) {
		pv->pv_asks = 0;
		deny(pv, ru, ru == NULL ? REASON_DEFAULT_DENY :
		    REASON_MATCHED_DENY_RULE);
	} else if (pv->pv_asks > 0)
		ask(pv, ru);
	else {
		pv->pv_verdict = VERDICT_ALLOW;
		pv->pv_rule = ru;
		pv->pv_body = ru == NULL ? UINT64_MAX : ru->ru_body;
	}
}

static void
evaluate_request(const struct policy *pl, const struct policy_request *pr,
    struct policy_verdict *pv)
{
	const struct rule	*ru;
	struct hosts_walk	 hw;
	enum meets		 meets;

	hosts_begin(&hw, pl, pr->pr_host);
	while ((ru = hosts_next(&hw)) != NULL) {
		if (!scheme_matches(ru, pr->pr_scheme) || !port_matches(ru, pr))
			continue;
		meets = MEETS_ALL;
		if (rule_reads(ru)) {
			/* Another request to this host might match. */
			pv->pv_scope = VERDICT_ONCE;
			if ((meets = rule_meets(ru, pr)) == MEETS_NOT)
				continue;
		}
		/* Met in some readings only, a decide rule is asked as well. */
		if (ru->ru_kind != RULE_NARROW &&
		    (ru->ru_kind != RULE_DECIDE || meets == MEETS_ALL))
			break;
		add_asking(pv, ru);
	}
	conclude(pl, ru, pv);
}

static void
look(struct policy_verdict *pv)
{
	pv->pv_verdict = VERDICT_LOOK;
	pv->pv_asks = 0;
}

/*
 * Before anything is read only host and port are known.  The first rule for
 * them may open or close the connection as a whole.  If it depends on what is
 * asked for, the connection has to be looked into, and what would have it
 * forwarded unread comes too late.
 */
static void
evaluate_connection(const struct policy *pl, const struct policy_request *pr,
    struct policy_verdict *pv)
{
	const struct rule	*ru;
	struct hosts_walk	 hw;
	int			 looks = 0;

	hosts_begin(&hw, pl, pr->pr_host);
	while ((ru = hosts_next(&hw)) != NULL) {
		if (!port_matches(ru, pr))
			continue;
		if (ru->ru_kind == RULE_DENY || ru->ru_kind == RULE_NARROW) {
			if (rule_reads(ru) || ru->ru_scheme != SCHEME_ANY)
				looks = 1;
			else if (ru->ru_kind == RULE_DENY)
				break;
			else
				add_asking(pv, ru);
		} else if (!looks && (ru->ru_tcp || ru->ru_kind == RULE_PASS))
			break;
		else if (!ru->ru_tcp || ru->ru_kind == RULE_DECIDE) {
			look(pv);
			return;
		}
	}
	if (ru == NULL && pl->pl_allow)
		look(pv);
	else
		conclude(pl, ru, pv);
}

void
policy_evaluate(const struct policy *pl, const struct policy_request *pr,
    struct policy_verdict *pv)
{
	*pv = (struct policy_verdict){ .pv_verdict = VERDICT_DENY,
	    .pv_scope = VERDICT_HOST, .pv_reason = "" };
	readings.ur_n = 0;
	if (pr->pr_scheme == URL_TCP)
		evaluate_connection(pl, pr, pv);
	else
		evaluate_request(pl, pr, pv);
}

/* All that a rule wants of a request but its path. */
static int
all_but_path(const struct rule *ru, const struct policy_request *pr)
{
#define RULE_READS(kind, word, where, values, meets)			\
	if (COND_##kind != COND_PATH && meets(ru, pr) == MEETS_NOT)	\
		return 0;
#include "policy_rows.h"
	return scheme_matches(ru, pr->pr_scheme) && port_matches(ru, pr);
}

const struct rule *
policy_missed(const struct policy *pl, const struct policy_request *pr)
{
	const struct rule	*ru;
	struct hosts_walk	 hw;

	hosts_begin(&hw, pl, pr->pr_host);
	while ((ru = hosts_next(&hw)) != NULL)
		if (rule_opens(ru) && all_but_path(ru, pr) &&
		    rule_reading(ru, pr->pr_path) != NULL)
			break;
	return ru;
}
