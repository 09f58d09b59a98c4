/* SPDX-License-Identifier: ISC */

/*
 * egressctl: what a policy of the configuration file makes of a request.  The
 * daemon's own parser reads the file and its own rules decide; the daemon need
 * not run, and nothing is asked, dialled or recorded.
 */

#include <stdlib.h>

#include "offline.h"
#include "show.h"

#define EXIT_DENIED	1
#define EXIT_DECIDER	3	/* a decider would be asked */

static struct {
	const char	*policy;
	const char	*method;
	const char	*url;
} options;

struct trial {
	const struct invocation		*tr_in;
	struct url			 tr_url;
	const struct conf_policy	*tr_conf;
	struct policy_verdict		 tr_verdict;
	const struct rule		*tr_missed;	/* would allow it */
	int				 tr_unread;	/* forwarded unread */
};

static void
add_request(cJSON *answer, const struct trial *tr)
{
	const struct url	*ur = &tr->tr_url;
	cJSON			*request;

	cJSON_AddStringToObject(answer, "policy", tr->tr_conf->cp_name);
	request = cJSON_AddObjectToObject(answer, "request");
	cJSON_AddStringToObject(request, "host", ur->ur_host);
	cJSON_AddNumberToObject(request, "port", ur->ur_port);
	cJSON_AddStringToObject(request, "scheme",
	    url_scheme_name(ur->ur_scheme));
	if (ur->ur_scheme == URL_TCP)
		return;
	cJSON_AddStringToObject(request, "method",
	    options.method);
	cJSON_AddStringToObject(request, "path", ur->ur_path);
}

/* The rule as egressd -nv prints it. */
static void
add_rule_text(cJSON *rule, const struct conf_rule *cr)
{
	char	*text;
	size_t	 len;
	FILE	*fp;

	if ((fp = open_memstream(&text, &len)) == NULL)
		fatal("rule");
	conf_print_rule(cr, fp);
	if (fclose(fp) == EOF)
		fatal("rule");
	cJSON_AddStringToObject(rule, "text", text);
	free(text);
}

static void
add_rule(cJSON *answer, const struct conf_policy *cp, const struct rule *ru)
{
	const struct conf_rule	*cr;
	cJSON			*rule;

	TAILQ_FOREACH(cr, &cp->cp_rules, cr_entry)
		if (cr->cr_rule == ru)
			break;
	rule = cJSON_AddObjectToObject(answer, "matched_rule");
	cJSON_AddNumberToObject(rule, "index", ru->ru_index);
	cJSON_AddStringToObject(rule, "kind", rule_kind_name(ru->ru_kind));
	cJSON_AddStringToObject(rule, "file", cr->cr_pos.p_file);
	cJSON_AddNumberToObject(rule, "line", cr->cr_pos.p_line);
	add_rule_text(rule, cr);
}

static void
add_names(cJSON *answer, const char *member, const struct rule *ru,
    enum cond_kind kind)
{
	const struct condition	*co;
	cJSON			*names;

	names = cJSON_AddArrayToObject(answer, member);
	TAILQ_FOREACH(co, &ru->ru_conditions[kind], co_entry) {
		cJSON_AddItemToArray(names, cJSON_CreateString(co->co_text));
	}
}

/* Deciders of all rules that ask, in the order of the rules. */
static void
add_deciders(cJSON *answer, const struct policy_verdict *pv)
{
	const struct condition	*co;
	cJSON			*names;
	unsigned int		 i;

	names = cJSON_AddArrayToObject(answer, "deciders");
	for (i = 0; i < pv->pv_asks; i++) {
		TAILQ_FOREACH(co, &pv->pv_asking[i]->
		    ru_conditions[COND_DECIDER], co_entry) {
			cJSON_AddItemToArray(names,
			    cJSON_CreateString(co->co_text));
		}
	}
}

static void
add_verdict(cJSON *answer, const struct trial *tr)
{
	const struct policy_verdict	*pv = &tr->tr_verdict;
	const struct rule		*ru = pv->pv_rule;

	cJSON_AddStringToObject(answer, "verdict", pv->pv_asks ?
	    rule_kind_name(RULE_DECIDE) : verdict_name(pv->pv_verdict));
	if (pv->pv_verdict == VERDICT_DENY && !pv->pv_asks)
		cJSON_AddStringToObject(answer, "reason", pv->pv_reason);
	else
		cJSON_AddNullToObject(answer, "reason");
	cJSON_AddStringToObject(answer, "scope",
	    verdict_scope_name(pv->pv_scope));
	if (pv->pv_asks)
		add_deciders(answer, pv);
	if (pv->pv_verdict != VERDICT_ALLOW)
		return;
	cJSON_AddBoolToObject(answer, "unread", tr->tr_unread);
	if (ru == NULL)
		return;
	cJSON_AddBoolToObject(answer, "to_private", ru->ru_to_private);
	add_names(answer, "to", ru, COND_NET);
	if (pv->pv_body != UINT64_MAX)
		cJSON_AddNumberToObject(answer, "body", (double)pv->pv_body);
}

/* Adds read_as; bytes that are not ASCII may not be UTF-8 either. */
static void
add_reading(cJSON *object, const char *as)
{
	char	 text[3 * URLPATH_MAX];
	size_t	 n = 0;

	for (; *as != '\0'; as++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
		    *as & 0x80 ? "%%%02hhX" : "%c", (unsigned char)*as);
	cJSON_AddStringToObject(object, "read_as", text);
}

/* Readings of the path that the verdict, or a missed rule, rests on. */
static void
add_readings(cJSON *answer, const struct trial *tr)
{
	const struct rule	*ru = tr->tr_verdict.pv_rule;
	const char		*path = tr->tr_url.ur_path, *as;
	cJSON			*missed;

	if (ru != NULL && (as = rule_reading(ru, path)) != NULL)
		add_reading(answer, as);
	if ((ru = tr->tr_missed) == NULL)
		return;
	missed = cJSON_AddObjectToObject(answer, "missed_rule");
	cJSON_AddNumberToObject(missed, "index", ru->ru_index);
	add_reading(missed, rule_reading(ru, path));
}

static void
put_answer(const struct trial *tr)
{
	const struct rule	*ru = tr->tr_verdict.pv_rule;
	cJSON			*answer = output_object();

	add_verdict(answer, tr);
	if (ru != NULL)
		add_rule(answer, tr->tr_conf, ru);
	else
		cJSON_AddNullToObject(answer, "matched_rule");
	add_readings(answer, tr);
	add_request(answer, tr);
	output_show(tr->tr_in, answer);
}

static int
test_run(const struct invocation *in)
{
	struct trial	 tr = { .tr_in = in };
	struct policy	*pl;
	struct config	*conf;

	log_init("egressctl", LOG_LVL_INFO, 0);
	if (url_request(options.method, options.url, &tr.tr_url) == -1 ||
	    (conf = offline_conf(in)) == NULL)
		return EXIT_USAGE;
	if ((tr.tr_conf = offline_policy(conf, options.policy)) == NULL) {
		conf_free(conf);
		return EXIT_USAGE;
	}
	pl = tr.tr_conf->cp_policy;
	policy_ready(pl);
	tr.tr_unread = offline_evaluate(pl, &tr.tr_url, options.method,
	    &tr.tr_verdict);
	tr.tr_missed = offline_missed(pl, &tr.tr_url, options.method,
	    &tr.tr_verdict);
	put_answer(&tr);
	conf_free(conf);
	if (tr.tr_verdict.pv_asks)
		return EXIT_DECIDER;
	return tr.tr_verdict.pv_verdict == VERDICT_ALLOW ? 0 : EXIT_DENIED;
}

static void
put_line(const char *label, const cJSON *value)
{
	if (value == NULL)
		return;
	printf("%-10s", label);
	json_put(stdout, value);
	putchar('\n');
}

static void
put_rule(const cJSON *rule)
{
	fputs("rule      ", stdout);
	if (rule == NULL) {
		puts("none, the default");
		return;
	}
	json_put(stdout, json_get(rule, "index"));
	fputs(", ", stdout);
	json_put(stdout, json_get(rule, "file"));
	putchar(':');
	json_put(stdout, json_get(rule, "line"));
	fputs(": ", stdout);
	json_put(stdout, json_get(rule, "text"));
	putchar('\n');
}

static void
put_missed(const cJSON *missed)
{
	if (missed == NULL)
		return;
	fputs("          rule ", stdout);
	json_put(stdout, json_get(missed, "index"));
	fputs(" would allow it, but an origin may read the path as ", stdout);
	json_put(stdout, json_get(missed, "read_as"));
	putchar('\n');
}

static void
test_put(const cJSON *answer)
{
	put_line("verdict", json_get(answer, "verdict"));
	put_rule(json_get(answer, "matched_rule"));
	put_line("read as", json_get(answer, "read_as"));
	put_missed(json_get(answer, "missed_rule"));
	put_line("reason", json_get(answer, "reason"));
	put_line("scope", json_get(answer, "scope"));
	if (cJSON_IsTrue(json_get(answer, "unread")))
		puts("          forwarded without being looked into");
	put_line("body", json_get(answer, "body"));
}

static const struct token t_url[] = {
	{ WORD,	   "URL",	NULL,	  NULL, &options.url, NULL },
	{ 0 }
};

static const struct token t_method[] = {
	{ WORD,	   "method",	t_url,	  NULL, &options.method, NULL },
	{ 0 }
};

static const struct token t_policy[] = {
	{ WORD,	   "policy",	t_method, NULL, &options.policy, NULL },
	{ 0 }
};

const struct command command_test = {
	.co_name = "test",
	.co_synopsis = "test POLICY METHOD URL",
	.co_help = "show what a policy makes of a request",
	.co_tokens = t_policy,
	.co_run = test_run,
	.co_show = test_put,
};
