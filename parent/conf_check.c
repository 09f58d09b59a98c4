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
 * What can be judged only when the whole configuration has been read: names
 * that refer to other objects, sockets that would collide, and rules that
 * could not be decided when their turn comes.
 */

#include <string.h>

#include "confparse.h"
#include "hostname.h"

static void
check_policy_ref(struct parse *ps, struct conf_pos pos, const char *name,
    const struct conf_policy **policy)
{
	if (name == NULL)
		return;
	if ((*policy = conf_policy_find(ps->ps_conf, name)) == NULL)
		conf_error(ps, pos, "policy \"%s\" is not defined", name);
}

static void
check_refs(struct parse *ps)
{
	struct conf_sandbox	*sb;
	struct conf_session	*ss;

	TAILQ_FOREACH(sb, &ps->ps_conf->cf_sandboxes, sb_entry) {
		check_policy_ref(ps, sb->sb_policy_pos, sb->sb_policy_name,
		    &sb->sb_policy);
		if (sb->sb_cluster_name == NULL)
			continue;
		sb->sb_cluster = conf_cluster_find(ps->ps_conf,
		    sb->sb_cluster_name);
		if (sb->sb_cluster == NULL)
			conf_error(ps, sb->sb_cluster_pos, "cluster \"%s\" is "
			    "not defined", sb->sb_cluster_name);
	}
	TAILQ_FOREACH(ss, &ps->ps_conf->cf_sessions, ss_entry)
		check_policy_ref(ps, ss->ss_policy_pos, ss->ss_policy_name,
		    &ss->ss_policy);
}

static void
check_deciders(struct parse *ps, struct conf_rule *ru)
{
	struct conf_ref	*rf;

	TAILQ_FOREACH(rf, &ru->ru_deciders, rf_entry) {
		rf->rf_decider = conf_decider_find(ps->ps_conf, rf->rf_name);
		if (rf->rf_decider == NULL)
			conf_error(ps, rf->rf_pos, "decider \"%s\" is not "
			    "defined", rf->rf_name);
	}
}

/*
 * Whether one name could match both patterns.  `*' takes any bytes but a dot,
 * `**' takes dots too; that either might also take nothing is of no account,
 * as names have no empty labels.  Worked out from the ends backwards: row[j]
 * tells whether what follows a[i] and b[j] can meet.
 */
static bool
patterns_overlap(const char *a, const char *b)
{
	bool	 row[HOSTNAME_MAX + 1] = { false }, diagonal, below;
	size_t	 i, j, alen = strlen(a), blen = strlen(b);

	for (i = alen + 1; i-- > 0;) {
		diagonal = false;
		for (j = blen + 1; j-- > 0;) {
			below = row[j];
			if (i == alen && j == blen)
				row[j] = true;
			else if (a[i] == '*' && b[j] == '*')
				row[j] = below || row[j + 1];
			else if (a[i] == '*')
				row[j] = below || (j < blen && row[j + 1] &&
				    (b[j] != '.' || a[i + 1] == '*' ||
				    (i > 0 && a[i - 1] == '*')));
			else if (b[j] == '*')
				row[j] = row[j + 1] || (below &&
				    (a[i] != '.' || b[j + 1] == '*' ||
				    (j > 0 && b[j - 1] == '*')));
			else
				row[j] = i < alen && j < blen &&
				    a[i] == b[j] && diagonal;
			diagonal = below;
		}
	}
	return row[0];
}

static bool
hosts_overlap(const struct conf_words *a, const struct conf_words *b)
{
	const struct conf_word	*wa, *wb;

	if (TAILQ_EMPTY(a) || TAILQ_EMPTY(b))
		return true;
	TAILQ_FOREACH(wa, a, wd_entry)
		TAILQ_FOREACH(wb, b, wd_entry) {
			if (strcmp(wa->wd_text, wb->wd_text) == 0)
				return true;
			if (!hostname_is_addr(wa->wd_text) &&
			    !hostname_is_addr(wb->wd_text) &&
			    patterns_overlap(wa->wd_text, wb->wd_text))
				return true;
		}
	return false;
}

static bool
ports_overlap(const struct conf_portlist *a, const struct conf_portlist *b)
{
	const struct conf_ports	*pa, *pb;

	if (TAILQ_EMPTY(a) || TAILQ_EMPTY(b))
		return true;
	TAILQ_FOREACH(pa, a, po_entry)
		TAILQ_FOREACH(pb, b, po_entry)
			if (pa->po_first <= pb->po_last &&
			    pb->po_first <= pa->po_last)
				return true;
	return false;
}

/* Whether a rule matches by more than name and port. */
static bool
rule_reads(const struct conf_rule *ru)
{
	return !TAILQ_EMPTY(&ru->ru_methods) || !TAILQ_EMPTY(&ru->ru_paths) ||
	    ru->ru_scheme != SCHEME_ANY;
}

/*
 * A tcp or pass rule is decided before anything is read.  If a rule above it
 * first wants to see the request, the two cannot both have their way.
 */
static void
check_shadow(struct parse *ps, const struct conf_policy *pl,
    const struct conf_rule *ru)
{
	const struct conf_rule	*above;

	if (!ru->ru_tcp && ru->ru_kind != RULE_PASS)
		return;
	TAILQ_FOREACH(above, &pl->pl_rules, ru_entry) {
		if (above == ru)
			return;
		if (!rule_reads(above) ||
		    !hosts_overlap(&above->ru_hosts, &ru->ru_hosts) ||
		    !ports_overlap(&above->ru_ports, &ru->ru_ports))
			continue;
		conf_error(ps, ru->ru_pos, "%s%s rule must stand above the "
		    "rule of line %u, which looks into requests to the same "
		    "host", rule_kind_name(ru->ru_kind),
		    ru->ru_tcp ? " tcp" : "", above->ru_pos.p_line);
		return;
	}
}

static void
check_policies(struct parse *ps)
{
	struct conf_policy	*pl;
	struct conf_rule	*ru;

	TAILQ_FOREACH(pl, &ps->ps_conf->cf_policies, pl_entry) {
		if (!(pl->pl_set & stmt_bit(stmt_policy, "audit on full")))
			pl->pl_audit_full = ps->ps_conf->cf_audit_full;
		TAILQ_FOREACH(ru, &pl->pl_rules, ru_entry) {
			check_deciders(ps, ru);
			check_shadow(ps, pl, ru);
		}
	}
}

static bool
addr_is_any(const struct addr *ad)
{
	static const struct addr	 zero;

	return memcmp(ad->ad_bytes, zero.ad_bytes,
	    sizeof(zero.ad_bytes)) == 0;
}

/* One that stands before ep and wants the same port. */
static const struct conf_endpoint *
endpoint_clash(const struct conf_endpoints *list,
    const struct conf_endpoint *ep)
{
	const struct conf_endpoint	*other;

	TAILQ_FOREACH(other, list, ep_entry) {
		if (other == ep)
			return NULL;
		if (other->ep_port == ep->ep_port &&
		    other->ep_addr.ad_af == ep->ep_addr.ad_af &&
		    (addr_cmp(&other->ep_addr, &ep->ep_addr) == 0 ||
		    addr_is_any(&other->ep_addr) ||
		    addr_is_any(&ep->ep_addr)))
			return other;
	}
	return NULL;
}

/* DNS is served over TCP too, so all sockets share one set of ports. */
static void
check_endpoint(struct parse *ps, const struct conf_session *own,
    const struct conf_endpoint *ep, bool dns)
{
	const struct conf_endpoint	*other = NULL;
	const struct conf_session	*ss;

	TAILQ_FOREACH(ss, &ps->ps_conf->cf_sessions, ss_entry) {
		other = endpoint_clash(&ss->ss_listen, ep);
		if (other == NULL && (ss != own || dns))
			other = endpoint_clash(&ss->ss_dns, ep);
		if (other != NULL || ss == own)
			break;
	}
	if (other != NULL)
		conf_error(ps, ep->ep_pos, "port %u is taken at %s:%u",
		    ep->ep_port, other->ep_pos.p_file, other->ep_pos.p_line);
}

static void
check_endpoints(struct parse *ps)
{
	const struct conf_session	*ss;
	const struct conf_endpoint	*ep;

	TAILQ_FOREACH(ss, &ps->ps_conf->cf_sessions, ss_entry) {
		TAILQ_FOREACH(ep, &ss->ss_listen, ep_entry)
			check_endpoint(ps, ss, ep, false);
		TAILQ_FOREACH(ep, &ss->ss_dns, ep_entry)
			check_endpoint(ps, ss, ep, true);
	}
}

void
conf_check(struct parse *ps)
{
	const struct config	*cf = ps->ps_conf;

	/* What was skipped may have defined what now seems to be missing. */
	if (!ps->ps_lex.lx_lost) {
		check_refs(ps);
		check_policies(ps);
	}
	check_endpoints(ps);
	if (cf->cf_control != NULL && cf->cf_control_ro != NULL &&
	    strcmp(cf->cf_control->ct_path, cf->cf_control_ro->ct_path) == 0)
		conf_error(ps, cf->cf_control_ro->ct_pos, "control socket "
		    "\"%s\" is given twice", cf->cf_control_ro->ct_path);
}
