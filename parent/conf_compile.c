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
 * From what the file says of a policy to what decides.  The parent sends the
 * result on its way to policyd, egressctl evaluates it on the spot: both see
 * the same rules.
 */

#include "conf.h"

static void
compile_words(struct rule *ru, enum cond_kind kind,
    const struct conf_words *words, const char *value)
{
	const struct conf_word	*wd;

	TAILQ_FOREACH(wd, words, wd_entry)
		rule_add(ru, kind, wd->wd_text, value);
}

static void
compile_conditions(struct rule *ru, const struct conf_rule *conf)
{
	const struct conf_ports	*po;
	const struct conf_net	*nt;
	const struct conf_ref	*rf;
	const struct conf_pair	*pr;
	char			 text[PREFIX_STRLEN];

	compile_words(ru, COND_HOST, &conf->ru_hosts, "");
	TAILQ_FOREACH(po, &conf->ru_ports, po_entry)
		rule_add_ports(ru, po->po_first, po->po_last);
	compile_words(ru, COND_METHOD, &conf->ru_methods, "");
	compile_words(ru, COND_PATH, &conf->ru_paths,
	    conf->ru_nocase ? PATH_NOCASE : "");
	TAILQ_FOREACH(nt, &conf->ru_nets, nt_entry)
		rule_add(ru, COND_NET, prefix_format(&nt->nt_prefix, text,
		    sizeof(text)), "");
	TAILQ_FOREACH(rf, &conf->ru_deciders, rf_entry)
		rule_add(ru, COND_DECIDER, rf->rf_name, "");
	TAILQ_FOREACH(pr, &conf->ru_metadata, pr_entry)
		rule_add(ru, COND_METADATA, pr->pr_key, pr->pr_value);
}

static void
compile_rule(struct policy *pl, const struct conf_rule *conf)
{
	struct rule	*ru = policy_add(pl, conf->ru_kind);

	ru->ru_tcp = conf->ru_tcp;
	ru->ru_scheme = conf->ru_scheme;
	ru->ru_to_private = conf->ru_private;
	if (conf->ru_body != -1)
		ru->ru_body = (uint64_t)conf->ru_body;
	ru->ru_timeout_ms = (uint64_t)conf->ru_timeout;
	ru->ru_cache = conf->ru_cache;
	ru->ru_ttl_ms = (uint64_t)conf->ru_ttl;
	ru->ru_uses = conf->ru_uses;
	ru->ru_messages = conf->ru_messages;
	compile_conditions(ru, conf);
}

struct policy *
conf_policy_compile(const struct conf_policy *conf)
{
	struct policy		*pl = policy_new(conf->pl_name);
	const struct conf_rule	*ru;

	pl->pl_allow = conf->pl_default_allow;
	pl->pl_refuse = conf->pl_refuse;
	pl->pl_full = conf->pl_audit_full;
	pl->pl_quota_out = (uint64_t)conf->pl_quota_out;
	pl->pl_pause_denials = conf->pl_pause_denials;
	pl->pl_pause_ms = (uint64_t)conf->pl_pause_window;
	TAILQ_FOREACH(ru, &conf->pl_rules, ru_entry)
		compile_rule(pl, ru);
	return pl;
}
