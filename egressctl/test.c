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
 * egressctl: what a policy of the configuration file makes of a request.  The
 * daemon's own parser reads the file and its own rules decide; the daemon need
 * not run, and nothing is asked, dialled or recorded.
 */

#include <stdlib.h>
#include <string.h>

#include "egressctl.h"
#include "offline.h"

struct trial {
	const struct invocation		*tr_in;
	struct url			 tr_url;
	const struct conf_policy	*tr_conf;
	struct policy_verdict		 tr_verdict;
	const struct rule		*tr_missed;	/* would have opened */
	int				 tr_unread;	/* forwarded so */
};

static int
check_method(const char *method, enum url_scheme scheme)
{
	static const char	 set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    "!#$%&'*+-.^_`|~";

	if (scheme == URL_TCP) {
		if (strcmp(method, "-") == 0)
			return 0;
		fputs("egressctl: tcp:// has no method, write \"-\"\n", stderr);
		return -1;
	}
	if (strlen(method) <= METHOD_LEN && *method != '\0' &&
	    method[strspn(method, set)] == '\0')
		return 0;
	fputs("egressctl: method \"", stderr);
	visible_put(stderr, method, VISIBLE_QUOTED);
	fprintf(stderr, "\": must be a word of at most %d bytes, in upper "
	    "case\n", METHOD_LEN);
	return -1;
}

/* -1 after saying what is wrong with method or URL. */
int
test_request(const struct invocation *in, struct url *ur)
{
	const char	*why;

	if ((why = url_parse(in->in_url, ur)) != NULL) {
		fputs("egressctl: URL \"", stderr);
		visible_put(stderr, in->in_url, VISIBLE_QUOTED);
		fprintf(stderr, "\": %s\n", why);
		return -1;
	}
	return check_method(in->in_method, ur->ur_scheme);
}

static void
add_request(cJSON *answer, const struct trial *tr)
{
	const struct url	*ur = &tr->tr_url;
	cJSON			*request;

	cJSON_AddStringToObject(answer, "policy", tr->tr_conf->pl_name);
	request = cJSON_AddObjectToObject(answer, "request");
	cJSON_AddStringToObject(request, "host", ur->ur_host);
	cJSON_AddNumberToObject(request, "port", ur->ur_port);
	cJSON_AddStringToObject(request, "scheme",
	    url_scheme_name(ur->ur_scheme));
	if (ur->ur_scheme == URL_TCP)
		return;
	cJSON_AddStringToObject(request, "method",
	    tr->tr_in->in_method);
	cJSON_AddStringToObject(request, "path", ur->ur_path);
}

/* As it stands in the output of egressd -nv. */
static void
add_rule_text(cJSON *rule, const struct conf_rule *ru)
{
	char	*text;
	size_t	 len;
	FILE	*fp;

	if ((fp = open_memstream(&text, &len)) == NULL)
		fatal("rule %u", ru->ru_index);
	conf_print_rule(ru, fp);
	if (fclose(fp) == EOF)
		fatal("rule %u", ru->ru_index);
	cJSON_AddStringToObject(rule, "text", text);
	free(text);
}

static void
add_rule(cJSON *answer, const struct conf_policy *pl, uint32_t index)
{
	const struct conf_rule	*ru;
	cJSON			*rule;

	TAILQ_FOREACH(ru, &pl->pl_rules, ru_entry)
		if (ru->ru_index == index)
			break;
	rule = cJSON_AddObjectToObject(answer, "matched_rule");
	cJSON_AddNumberToObject(rule, "index", index);
	cJSON_AddStringToObject(rule, "kind", rule_kind_name(ru->ru_kind));
	cJSON_AddStringToObject(rule, "file", ru->ru_pos.p_file);
	cJSON_AddNumberToObject(rule, "line", ru->ru_pos.p_line);
	add_rule_text(rule, ru);
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

/* Of all rules that want someone asked, in that order. */
static void
add_deciders(cJSON *answer, const struct policy_verdict *pv)
{
	const struct condition	*co;
	cJSON			*names;
	unsigned int		 i;

	names = cJSON_AddArrayToObject(answer, "deciders");
	for (i = 0; i < pv->pv_asks; i++) {
		TAILQ_FOREACH(co, &pv->pv_judges[i]->
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

	cJSON_AddStringToObject(answer, "verdict", pv->pv_asks ? "decide" :
	    pv->pv_verdict == VERDICT_ALLOW ? "allow" : "deny");
	if (pv->pv_verdict == VERDICT_DENY && !pv->pv_asks)
		cJSON_AddStringToObject(answer, "reason", pv->pv_reason);
	else
		cJSON_AddNullToObject(answer, "reason");
	cJSON_AddStringToObject(answer, "scope",
	    pv->pv_scope == VERDICT_HOST ? "host" : "once");
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

/* What is not ASCII is escaped, as it may be no UTF-8 either. */
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

/* Why the path as it is written does not explain the verdict. */
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
	cJSON			*answer = cJSON_CreateObject();
	char			*line;

	add_verdict(answer, tr);
	if (ru != NULL)
		add_rule(answer, tr->tr_conf, ru->ru_index);
	else
		cJSON_AddNullToObject(answer, "matched_rule");
	add_readings(answer, tr);
	add_request(answer, tr);
	if ((line = cJSON_PrintUnformatted(answer)) == NULL)
		fatalx("out of memory");
	tr->tr_in->in_output->ou_answer(tr->tr_in->in_command, line, answer);
	cJSON_free(line);
	cJSON_Delete(answer);
}

int
test_run(const struct invocation *in)
{
	struct trial	 tr = { .tr_in = in };
	struct policy	*pl;
	struct config	*conf;

	log_init("egressctl", LOG_LVL_INFO, 0);
	if (test_request(in, &tr.tr_url) == -1 ||
	    (conf = offline_conf(in->in_conf)) == NULL)
		return EXIT_USAGE;
	if ((tr.tr_conf = offline_policy(conf, in->in_policy)) == NULL) {
		conf_free(conf);
		return EXIT_USAGE;
	}
	pl = conf_policy_compile(tr.tr_conf);
	policy_ready(pl);
	tr.tr_unread = offline_evaluate(pl, &tr.tr_url, in->in_method,
	    &tr.tr_verdict);
	tr.tr_missed = offline_missed(pl, &tr.tr_url, in->in_method,
	    &tr.tr_verdict);
	put_answer(&tr);
	policy_free(pl);
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

void
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
