/* SPDX-License-Identifier: ISC */

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
check_default_sandbox(struct parse *ps)
{
	struct config	*cf = ps->ps_conf;
	const char	*name = cf->cf_default_sandbox_name;

	if (name == NULL)
		return;
	if ((cf->cf_default_sandbox = conf_sandbox_find(cf, name)) == NULL)
		conf_error(ps, stmt_pos(&ps->ps_global, "default sandbox"),
		    "sandbox \"%s\" is not defined", name);
}

static void
check_refs(struct parse *ps)
{
	struct conf_sandbox	*sb;
	struct conf_session	*ss;

	check_default_sandbox(ps);
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
check_deciders(struct parse *ps, const struct conf_rule *cr)
{
	const struct conf_word	*wd;

	TAILQ_FOREACH(wd, &cr->cr_deciders, wd_entry)
		if (conf_decider_find(ps->ps_conf, wd->wd_text) == NULL)
			conf_error(ps, wd->wd_pos, "decider \"%s\" is not "
			    "defined", wd->wd_text);
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
hosts_overlap(const struct conditions *a, const struct conditions *b)
{
	const struct condition	*ca, *cb;

	if (TAILQ_EMPTY(a) || TAILQ_EMPTY(b))
		return true;
	TAILQ_FOREACH(ca, a, co_entry)
		TAILQ_FOREACH(cb, b, co_entry) {
			if (strcmp(ca->co_text, cb->co_text) == 0)
				return true;
			if (!hostname_is_addr(ca->co_text) &&
			    !hostname_is_addr(cb->co_text) &&
			    patterns_overlap(ca->co_text, cb->co_text))
				return true;
		}
	return false;
}

static bool
ports_overlap(const struct conditions *a, const struct conditions *b)
{
	const struct condition	*ca, *cb;

	if (TAILQ_EMPTY(a) || TAILQ_EMPTY(b))
		return true;
	TAILQ_FOREACH(ca, a, co_entry)
		TAILQ_FOREACH(cb, b, co_entry)
			if (ca->co_first <= cb->co_last &&
			    cb->co_first <= ca->co_last)
				return true;
	return false;
}

/*
 * A tcp or pass rule is decided before anything is read.  If a rule above it
 * first wants to see the request, the two cannot both have their way.
 */
static void
check_shadow(struct parse *ps, const struct conf_policy *cp,
    const struct conf_rule *cr)
{
	const struct rule	*ru = cr->cr_rule, *up;
	const struct conf_rule	*above;

	if (!ru->ru_tcp && ru->ru_kind != RULE_PASS)
		return;
	for (above = TAILQ_FIRST(&cp->cp_rules); above != cr;
	    above = TAILQ_NEXT(above, cr_entry)) {
		up = above->cr_rule;
		if ((!rule_reads(up) && up->ru_scheme == SCHEME_ANY) ||
		    !hosts_overlap(&up->ru_conditions[COND_HOST],
		    &ru->ru_conditions[COND_HOST]) ||
		    !ports_overlap(&up->ru_conditions[COND_PORT],
		    &ru->ru_conditions[COND_PORT]))
			continue;
		conf_error(ps, cr->cr_pos, "%s%s rule must stand above the "
		    "rule of line %u, which looks into requests to the same "
		    "host", rule_kind_name(ru->ru_kind),
		    ru->ru_tcp ? " tcp" : "", above->cr_pos.p_line);
		return;
	}
}

static void
check_policies(struct parse *ps)
{
	struct conf_policy	*cp;
	struct conf_rule	*cr;

	if (ps->ps_conf->cf_spool > 0 && ps->ps_conf->cf_audit_file == NULL)
		conf_error(ps, stmt_pos(&ps->ps_global, "spool"),
		    "spool: there is no audit file");
	TAILQ_FOREACH(cp, &ps->ps_conf->cf_policies, cp_entry) {
		if (!(cp->cp_set & stmt_bit(policy_table, "audit on full")))
			cp->cp_policy->pl_options.po_full =
			    ps->ps_conf->cf_audit_full;
		TAILQ_FOREACH(cr, &cp->cp_rules, cr_entry) {
			check_deciders(ps, cr);
			check_shadow(ps, cp, cr);
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

/* An endpoint that stands before ep and wants the same port, or NULL. */
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

/* The kernel gives a group to one of them only. */
static void
check_group(struct parse *ps, const struct conf_session *own)
{
	const struct conf_session	*ss;

	if (own->ss_refused_group == 0)
		return;
	TAILQ_FOREACH(ss, &ps->ps_conf->cf_sessions, ss_entry) {
		if (ss == own)
			return;
		if (ss->ss_refused_group == own->ss_refused_group)
			conf_error(ps, own->ss_pos, "session \"%s\": refused "
			    "group %u is that of session \"%s\"",
			    own->ss_name, own->ss_refused_group, ss->ss_name);
	}
}

static void
check_endpoints(struct parse *ps)
{
	const struct conf_session	*ss;
	const struct conf_endpoint	*ep;

	TAILQ_FOREACH(ss, &ps->ps_conf->cf_sessions, ss_entry) {
		check_group(ps, ss);
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
