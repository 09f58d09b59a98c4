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
	struct conf_policy		*pl, *last;

	prior = conf_policy_find(ps->ps_conf, name);
	last = TAILQ_LAST(list, conf_policies);
	pl = conf_alloc(ps->ps_conf, sizeof(*pl));
	pl->pl_pos = pos;
	pl->pl_index = last == NULL ? 0 : last->pl_index + 1;
	pl->pl_name = name;
	pl->pl_capture = 4096;
	TAILQ_INIT(&pl->pl_rules);
	TAILQ_INIT(&pl->pl_redact);
	TAILQ_INIT(&pl->pl_environment);
	TAILQ_INSERT_TAIL(list, pl, pl_entry);

	ps->ps_policy = pl;
	ps->ps_block.sx_table = stmt_policy;
	ps->ps_block.sx_object = pl;
	ps->ps_block.sx_set = &pl->pl_set;
	ps->ps_block.sx_kind = 1;
	ps->ps_block.sx_noun = "policy";
	conf_block_begin(ps, pos, name, pl->pl_index,
	    prior == NULL ? NULL : &prior->pl_pos);
}

void
conf_policy_default(struct parse *ps, struct conf_pos pos, bool allow)
{
	if (stmt_once(&ps->ps_block, pos, "default"))
		ps->ps_policy->pl_default_allow = allow;
}

void
conf_policy_pause(struct parse *ps, struct conf_pos pos, int64_t denials,
    int64_t window)
{
	char	 text[VALUE_STRLEN];

	if (!stmt_once(&ps->ps_block, pos, "pause"))
		return;
	if (denials < 1 || denials > PAUSE_DENIALS_MAX)
		conf_error(ps, pos, "pause after %" PRId64 " denials: must be "
		    "between 1 and %d", denials, PAUSE_DENIALS_MAX);
	if (window == VALUE_BAD)
		return;
	if (window < 1000 || window > 24 * 60 * 60 * 1000)
		conf_error(ps, pos, "pause in %s: must be between 1s and 1d",
		    value_format(ST_MS, window, text));
	ps->ps_policy->pl_pause_denials = (unsigned int)denials;
	ps->ps_policy->pl_pause_window = window;
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
		    conf_redact_kinds[kind]);
	if (strlen(name) > NAME_LEN)
		conf_error(ps, pos, "%s \"%.16s...\": longer than %d bytes",
		    conf_redact_kinds[kind], name, NAME_LEN);
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
	TAILQ_INSERT_TAIL(&ps->ps_policy->pl_redact, rd, rd_entry);
}

void
conf_policy_end(struct parse *ps)
{
	struct conf_policy	*pl = ps->ps_policy;

	if (pl->pl_nrules > RULES_MAX)
		conf_error(ps, pl->pl_pos, "policy \"%s\": %u rules, at most "
		    "%d", pl->pl_name, pl->pl_nrules, RULES_MAX);
}

static const char *
conf_rule_noun(enum rule_kind kind, bool tcp)
{
	static const char *const	 nouns[RULE_KIND_MAX] = {
		[RULE_ALLOW] = "allow rule", [RULE_DENY] = "deny rule",
		[RULE_PASS] = "pass rule", [RULE_DECIDE] = "decide rule",
		[RULE_NARROW] = "narrow rule"
	};

	return tcp ? "tcp rule" : nouns[kind];
}

void
conf_rule_begin(struct parse *ps, struct conf_pos pos, enum rule_kind kind,
    bool tcp)
{
	struct conf_rule	*ru;

	ru = conf_alloc(ps->ps_conf, sizeof(*ru));
	ru->ru_pos = pos;
	ru->ru_index = ps->ps_policy->pl_nrules++;
	ru->ru_kind = kind;
	ru->ru_tcp = tcp;
	ru->ru_body = -1;
	ru->ru_messages = 5;
	TAILQ_INIT(&ru->ru_hosts);
	TAILQ_INIT(&ru->ru_ports);
	TAILQ_INIT(&ru->ru_methods);
	TAILQ_INIT(&ru->ru_paths);
	TAILQ_INIT(&ru->ru_nets);
	TAILQ_INIT(&ru->ru_deciders);
	TAILQ_INIT(&ru->ru_metadata);
	TAILQ_INSERT_TAIL(&ps->ps_policy->pl_rules, ru, ru_entry);

	ps->ps_rule = ru;
	ps->ps_option.sx_parse = ps;
	ps->ps_option.sx_table = stmt_rule;
	ps->ps_option.sx_object = ru;
	ps->ps_option.sx_set = &ru->ru_set;
	ps->ps_option.sx_kind = 1U << kind | (tcp ? STMT_KIND_TCP : 0);
	ps->ps_option.sx_noun = conf_rule_noun(kind, tcp);
	if (kind == RULE_PASS && tcp)
		conf_error(ps, pos, "pass is about TLS: write allow tcp or "
		    "pass");
}

/* Names are looked up when all deciders are known. */
void
conf_rule_deciders(struct parse *ps)
{
	struct conf_refs	*list = &ps->ps_rule->ru_deciders;
	const struct conf_word	*wd;
	struct conf_ref		*rf;
	unsigned int		 n = 0;

	TAILQ_FOREACH(wd, &ps->ps_words, wd_entry) {
		if (++n > DECIDERS_MAX) {
			conf_error(ps, wd->wd_pos, "decider \"%s\": more than "
			    "%d in a chain", wd->wd_text, DECIDERS_MAX);
			break;
		}
		TAILQ_FOREACH(rf, list, rf_entry)
			if (strcmp(rf->rf_name, wd->wd_text) == 0)
				conf_error(ps, wd->wd_pos, "decider \"%s\" is "
				    "given twice", wd->wd_text);
		rf = conf_alloc(ps->ps_conf, sizeof(*rf));
		rf->rf_pos = wd->wd_pos;
		rf->rf_name = wd->wd_text;
		TAILQ_INSERT_TAIL(list, rf, rf_entry);
	}
	conf_lists_reset(ps);
}

/* A deny may be as wide as it likes. */
static void
conf_rule_host(struct parse *ps, struct conf_word *wd)
{
	const char	*why;
	char		 pattern[HOSTNAME_MAX];

	if (hostname_pattern_canon(wd->wd_text, strlen(wd->wd_text), pattern,
	    sizeof(pattern), &why) == -1 ||
	    (ps->ps_rule->ru_kind != RULE_DENY &&
	    hostname_pattern_check(pattern, &why) == -1))
		conf_error(ps, wd->wd_pos, "host \"%s\": %s", wd->wd_text,
		    why);
	wd->wd_text = conf_strndup(ps->ps_conf, pattern, strlen(pattern));
}

void
conf_rule_hosts(struct parse *ps, struct conf_pos pos)
{
	struct conf_word	*wd;

	if (stmt_once(&ps->ps_option, pos, "host")) {
		TAILQ_FOREACH(wd, &ps->ps_words, wd_entry)
			conf_rule_host(ps, wd);
		TAILQ_CONCAT(&ps->ps_rule->ru_hosts, &ps->ps_words, wd_entry);
	}
	conf_lists_reset(ps);
}

void
conf_rule_port(struct parse *ps, struct conf_pos pos, int64_t first,
    int64_t last)
{
	struct conf_ports	*po;

	if (value_port(ps, pos, first) == VALUE_BAD ||
	    (last != first && value_port(ps, pos, last) == VALUE_BAD))
		return;
	if (first > last) {
		conf_error(ps, pos, "ports %" PRId64 "-%" PRId64 ": the first "
		    "is above the last", first, last);
		return;
	}
	po = conf_alloc(ps->ps_conf, sizeof(*po));
	po->po_first = (uint16_t)first;
	po->po_last = (uint16_t)last;
	TAILQ_INSERT_TAIL(&ps->ps_rule->ru_ports, po, po_entry);
}

static void
conf_rule_words(struct parse *ps, struct conf_pos pos, const char *name,
    struct conf_words *list, const char *(*error)(const char *))
{
	const struct conf_word	*wd;
	const char		*why;

	if (stmt_once(&ps->ps_option, pos, name)) {
		TAILQ_FOREACH(wd, &ps->ps_words, wd_entry)
			if ((why = error(wd->wd_text)) != NULL)
				conf_error(ps, wd->wd_pos, "%s \"%s\": %s",
				    name, wd->wd_text, why);
		TAILQ_CONCAT(list, &ps->ps_words, wd_entry);
	}
	conf_lists_reset(ps);
}

void
conf_rule_methods(struct parse *ps, struct conf_pos pos)
{
	conf_rule_words(ps, pos, "method", &ps->ps_rule->ru_methods,
	    value_method_error);
}

void
conf_rule_paths(struct parse *ps, struct conf_pos pos, bool nocase)
{
	ps->ps_rule->ru_nocase = nocase;
	conf_rule_words(ps, pos, "path", &ps->ps_rule->ru_paths,
	    value_urlpath_error);
}

/* Loopback and link-local never open, so a prefix there would be a lie. */
static void
conf_rule_net(struct parse *ps, const struct conf_word *wd)
{
	struct conf_net	*nt;
	enum addr_class	 class;

	if ((nt = value_net(ps, wd->wd_pos, wd->wd_text)) == NULL)
		return;
	class = addr_classify(&nt->nt_prefix.pf_addr);
	if (nt->nt_prefix.pf_len > 0 && class != ADDR_GLOBAL &&
	    !addr_class_openable(class))
		conf_error(ps, wd->wd_pos, "to \"%s\": %s addresses are never "
		    "dialled", wd->wd_text, addr_class_name(class));
	TAILQ_INSERT_TAIL(&ps->ps_rule->ru_nets, nt, nt_entry);
}

/* All of them, with a space between, have to fit in a grant. */
static size_t
conf_rule_nets_length(const struct conf_nets *nets)
{
	const struct conf_net	*nt;
	char			 text[PREFIX_STRLEN];
	size_t			 len = 0;

	TAILQ_FOREACH(nt, nets, nt_entry)
		len += strlen(prefix_format(&nt->nt_prefix, text,
		    sizeof(text))) + 1;
	return len;
}

void
conf_rule_to(struct parse *ps, struct conf_pos pos)
{
	const struct conf_word	*wd;

	if (stmt_once(&ps->ps_option, pos, "to"))
		TAILQ_FOREACH(wd, &ps->ps_words, wd_entry) {
			if (strcmp(wd->wd_text, "private") == 0)
				ps->ps_rule->ru_private = true;
			else
				conf_rule_net(ps, wd);
		}
	if (conf_rule_nets_length(&ps->ps_rule->ru_nets) > PATH_LEN)
		conf_error(ps, pos, "to: the prefixes have more than %d bytes "
		    "in all", PATH_LEN);
	conf_lists_reset(ps);
}

void
conf_rule_end(struct parse *ps)
{
	const struct conf_rule	*ru = ps->ps_rule;

	/* No port is the usual one for what is not looked into. */
	if (ru->ru_kind == RULE_ALLOW && ru->ru_tcp &&
	    !stmt_isset(&ps->ps_option, "port"))
		conf_error(ps, ru->ru_pos, "allow tcp must say which port");
	if (ru->ru_cache == CACHE_OFF &&
	    (ru->ru_ttl != 0 || ru->ru_uses != 0))
		conf_error(ps, ru->ru_pos, "ttl and uses are about cached "
		    "answers, but cache is off");
}
