/* SPDX-License-Identifier: ISC */

/*
 * Policies and their rules.
 */

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "confparse.h"
#include "hostname.h"

#define RULES_MAX		4096
#define DECIDERS_MAX		8	/* in one chain */
#define PAUSE_DENIALS_MAX	1000000

void
conf_policy_begin(struct parse *ps, struct conf_pos pos, const char *name)
{
	struct conf_policies		*list = &ps->ps_conf->cf_policies;
	const struct conf_policy	*prior;
	struct conf_policy		*cp, *last;

	prior = conf_policy_find(ps->ps_conf, name);
	last = TAILQ_LAST(list, conf_policies);
	cp = conf_alloc(ps->ps_conf, sizeof(*cp));
	cp->cp_pos = pos;
	cp->cp_index = last == NULL ? 0 : last->cp_index + 1;
	cp->cp_name = name;
	cp->cp_policy = policy_new(name);
	TAILQ_INIT(&cp->cp_rules);
	TAILQ_INIT(&cp->cp_redact);
	TAILQ_INIT(&cp->cp_environment);
	TAILQ_INSERT_TAIL(list, cp, cp_entry);

	ps->ps_policy = cp;
	ps->ps_block.sx_table = policy_table;
	ps->ps_block.sx_object = &cp->cp_policy->pl_options;
	ps->ps_block.sx_set = &cp->cp_set;
	ps->ps_block.sx_kind = 1;
	ps->ps_block.sx_noun = "policy";
	conf_block_begin(ps, pos, name, cp->cp_index,
	    prior == NULL ? NULL : &prior->cp_pos);
}

void
conf_policy_default(struct parse *ps, struct conf_pos pos, bool allow)
{
	if (stmt_once(&ps->ps_block, pos, "default"))
		ps->ps_policy->cp_policy->pl_allow = allow;
}

void
conf_policy_pause(struct parse *ps, struct conf_pos pos, int64_t denials,
    int64_t window)
{
	struct policy_options	*po = &ps->ps_policy->cp_policy->pl_options;
	char			 text[VALUE_STRLEN];

	if (!stmt_once(&ps->ps_block, pos, "pause"))
		return;
	if (denials < 1 || denials > PAUSE_DENIALS_MAX)
		conf_error(ps, pos, "pause after %" PRId64 " denials: must be "
		    "between 1 and %d", denials, PAUSE_DENIALS_MAX);
	if (window == VALUE_BAD)
		return;
	if (window < 1000 || window > 24 * 60 * 60 * 1000)
		conf_error(ps, pos, "pause in %s: must be between 1s and 1d",
		    value_format(OPTION_MS, (uint64_t)window, text));
	po->po_pause_denials = (uint32_t)denials;
	po->po_pause_ms = (uint64_t)window;
}

void
conf_policy_redact(struct parse *ps, struct conf_pos pos,
    enum redact_kind kind, const char *name)
{
	struct conf_redact	*rd;
	const char		*why;
	char			*copy, *p;

	if (kind == REDACT_HEADER &&
	    (why = value_token_error(name)) != NULL)
		conf_error(ps, pos, "header \"%s\": %s", name, why);
	else if (name[0] == '\0')
		conf_error(ps, pos, "%s \"\": must not be empty",
		    redact_kind_name(kind));
	if (strlen(name) > NAME_LEN)
		conf_error(ps, pos, "%s \"%.16s...\": longer than %d bytes",
		    redact_kind_name(kind), name, NAME_LEN);
	if (ps->ps_show && kind == REDACT_HEADER && redact_always(name))
		conf_error(ps, pos, "header \"%s\": is never shown", name);
	copy = conf_strndup(ps->ps_conf, name, strlen(name));
	for (p = copy; kind == REDACT_HEADER && *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	rd = conf_alloc(ps->ps_conf, sizeof(*rd));
	rd->rd_pos = pos;
	rd->rd_kind = kind;
	rd->rd_show = ps->ps_show;
	rd->rd_name = copy;
	TAILQ_INSERT_TAIL(&ps->ps_policy->cp_redact, rd, rd_entry);
}

void
conf_policy_end(struct parse *ps)
{
	const struct conf_policy	*cp = ps->ps_policy;

	ps->ps_now = &ps->ps_global;
	if (cp->cp_policy->pl_nrules > RULES_MAX)
		conf_error(ps, cp->cp_pos, "policy \"%s\": %u rules, at most "
		    "%d", cp->cp_name, cp->cp_policy->pl_nrules, RULES_MAX);
}

#define RULE_NOUN(constant, word)	[constant] = word " rule",

static const char *
conf_rule_noun(enum rule_kind kind, bool tcp)
{
	static const char *const	 nouns[RULE_KIND_MAX] = {
		RULE_KINDS(RULE_NOUN)
	};

	return tcp ? "tcp rule" : nouns[kind];
}

void
conf_rule_begin(struct parse *ps, struct conf_pos pos, enum rule_kind kind,
    bool tcp)
{
	struct conf_rule	*cr;

	cr = conf_alloc(ps->ps_conf, sizeof(*cr));
	cr->cr_pos = pos;
	cr->cr_rule = policy_add(ps->ps_policy->cp_policy, kind);
	cr->cr_rule->ru_tcp = tcp;
	TAILQ_INIT(&cr->cr_deciders);
	TAILQ_INSERT_TAIL(&ps->ps_policy->cp_rules, cr, cr_entry);

	ps->ps_rule = cr;
	ps->ps_nocase = false;
	ps->ps_option.sx_parse = ps;
	ps->ps_option.sx_table = rule_table;
	ps->ps_option.sx_object = cr->cr_rule;
	ps->ps_option.sx_set = &cr->cr_set;
	ps->ps_option.sx_kind = 1U << kind | (tcp ? IN_TCP : 0);
	ps->ps_option.sx_noun = conf_rule_noun(kind, tcp);
	if (kind == RULE_PASS && tcp)
		conf_error(ps, pos, "pass is about TLS: write allow tcp or "
		    "pass");
}

/* The positions are kept until all deciders are known. */
void
conf_rule_deciders(struct parse *ps)
{
	struct conf_word	*wd, *next;
	unsigned int		 n = 0;

	TAILQ_FOREACH_SAFE(wd, &ps->ps_words, wd_entry, next) {
		if (++n <= DECIDERS_MAX)
			continue;
		if (n == DECIDERS_MAX + 1)
			conf_error(ps, wd->wd_pos, "decider \"%s\": more than "
			    "%d in a chain", wd->wd_text, DECIDERS_MAX);
		TAILQ_REMOVE(&ps->ps_words, wd, wd_entry);
	}
	conf_cond_take(ps, COND_DECIDER);
	TAILQ_CONCAT(&ps->ps_rule->cr_deciders, &ps->ps_words, wd_entry);
	conf_lists_reset(ps);
}

void
conf_rule_end(struct parse *ps)
{
	const struct rule	*ru = ps->ps_rule->cr_rule;
	struct conf_pos		 pos = ps->ps_rule->cr_pos;

	/* No port is the usual one for what is not looked into. */
	if (ru->ru_kind == RULE_ALLOW && ru->ru_tcp &&
	    !stmt_isset(&ps->ps_option, "port"))
		conf_error(ps, pos, "allow tcp must say which port");
	if (ru->ru_cache == CACHE_OFF &&
	    (ru->ru_ttl_ms != 0 || ru->ru_uses != 0))
		conf_error(ps, pos, "ttl and uses are about cached answers, "
		    "but cache is off");
}
