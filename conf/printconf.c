/* SPDX-License-Identifier: ISC */

/*
 * egressd -nv: prints a configuration in a form that parses to the same.
 * Run by the parent.  Macros and includes are gone, names are canonical, and
 * what was not given is not printed.
 */

#include "confparse.h"

void
print_quoted(FILE *fp, const char *text)
{
	putc('"', fp);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', fp);
		putc(*text, fp);
	}
	putc('"', fp);
}

/* A list of one needs no braces. */
static void
print_words(FILE *fp, const struct conf_words *words)
{
	const struct conf_word	*wd = TAILQ_FIRST(words);
	bool			 list = TAILQ_NEXT(wd, wd_entry) != NULL;

	fputs(list ? " { " : " ", fp);
	for (; wd != NULL; wd = TAILQ_NEXT(wd, wd_entry)) {
		print_quoted(fp, wd->wd_text);
		if (TAILQ_NEXT(wd, wd_entry) != NULL)
			fputs(", ", fp);
	}
	if (list)
		fputs(" }", fp);
}

static void
print_pairs(FILE *fp, const struct conf_pairs *pairs)
{
	const struct conf_pair	*pr;
	const char		*sep = " ";

	fputs(" {", fp);
	TAILQ_FOREACH(pr, pairs, pr_entry) {
		fputs(sep, fp);
		print_quoted(fp, pr->pr_key);
		putc(' ', fp);
		print_quoted(fp, pr->pr_value);
		sep = ", ";
	}
	fputs(" }", fp);
}

void
print_addr(FILE *fp, const struct addr *ad)
{
	char	 buf[ADDR_STRLEN];

	fputs(addr_format(ad, buf, sizeof(buf)), fp);
}

static void
print_net(FILE *fp, const struct prefix *pf)
{
	char	 buf[PREFIX_STRLEN];

	fputs(prefix_format(pf, buf, sizeof(buf)), fp);
}

static void
print_value(FILE *fp, const struct option *op, const void *object)
{
	const void	*slot = (const char *)object + op->op_slot;
	char		 buf[VALUE_STRLEN];

	switch (op->op_type) {
	case OPTION_MS:
	case OPTION_BYTES:
	case OPTION_COUNT:
		if (op->op_words != NULL && option_number(op, object) == 0)
			fprintf(fp, " %s", op->op_words[0]);
		else
			fprintf(fp, " %s", value_format(op->op_type,
			    option_number(op, object), buf));
		break;
	case OPTION_ENUM:
	case OPTION_YESNO:
		fprintf(fp, " %s", op->op_words[option_number(op, object)]);
		break;
	case OPTION_WORDS:
	case OPTION_NAMES:
		print_words(fp, slot);
		break;
	case OPTION_VARIABLES:
	case OPTION_PAIRS:
		print_pairs(fp, slot);
		break;
	default:
		if (!option_is_text(op))
			break;
		putc(' ', fp);
		print_quoted(fp, *(const char *const *)slot);
	}
}

/* All statements of an object that were given and need no special care. */
void
print_stmts(FILE *fp, const struct option *table, uint64_t set,
    const void *object, const char *before, const char *after)
{
	const struct option	*op;

	for (op = table; op->op_type != OPTION_END; op++) {
		if (op->op_type == OPTION_CONDITION)
			conf_cond_print(object, op->op_condition, fp);
		if (op->op_type == OPTION_CONDITION ||
		    op->op_type == OPTION_HAND ||
		    !(set & UINT64_C(1) << (op - table)))
			continue;
		fprintf(fp, "%s%s", before, op->op_word);
		print_value(fp, op, object);
		fputs(after, fp);
	}
}

static void
print_control(FILE *fp, const struct conf_control *ct, bool readonly)
{
	if (ct == NULL)
		return;
	fputs("control socket ", fp);
	print_quoted(fp, ct->ct_path);
	if (readonly)
		fputs(" read-only", fp);
	if (ct->ct_own)
		fputs(" own-container", fp);
	fprintf(fp, " mode %04o", (unsigned int)ct->ct_mode);
	if (ct->ct_owner != NULL) {
		fputs(" owner ", fp);
		print_quoted(fp, ct->ct_owner);
	}
	if (ct->ct_group != NULL) {
		fputs(" group ", fp);
		print_quoted(fp, ct->ct_group);
	}
	putc('\n', fp);
}

void
print_hosts(FILE *fp, const struct conf_hosts *hosts)
{
	const struct conf_host	*ho;

	if (TAILQ_EMPTY(hosts))
		return;
	fputs("hosts {\n", fp);
	TAILQ_FOREACH(ho, hosts, ho_entry) {
		putc('\t', fp);
		print_quoted(fp, ho->ho_name);
		putc(' ', fp);
		print_addr(fp, &ho->ho_addr);
		putc('\n', fp);
	}
	fputs("}\n", fp);
}

static void
print_resolvers(FILE *fp, const struct conf_endpoints *list)
{
	const struct conf_endpoint	*ep;
	const char			*sep = "resolver { ";

	TAILQ_FOREACH(ep, list, ep_entry) {
		fputs(sep, fp);
		print_addr(fp, &ep->ep_addr);
		if (ep->ep_port != 53)
			fprintf(fp, " port %u", ep->ep_port);
		sep = ", ";
	}
	if (!TAILQ_EMPTY(list))
		fputs(" }\n", fp);
}

void
print_address_deny(FILE *fp, const struct conf_nets *nets)
{
	const struct conf_net	*nt;
	const char		*sep = "address deny { ";

	TAILQ_FOREACH(nt, nets, nt_entry) {
		fputs(sep, fp);
		print_net(fp, &nt->nt_prefix);
		sep = ", ";
	}
	if (!TAILQ_EMPTY(nets))
		fputs(" }\n", fp);
}

static void
print_environment(FILE *fp, const struct conf_variables *list,
    const char *indent)
{
	const struct conf_variable	*va;

	TAILQ_FOREACH(va, list, va_entry) {
		fprintf(fp, "%senvironment %s ", indent,
		    va->va_pass ? "pass" : "drop");
		print_quoted(fp, va->va_pattern);
		putc('\n', fp);
	}
}

static void
print_global(FILE *fp, const struct config *cf)
{
	print_stmts(fp, global_table, cf->cf_set, cf, "", "\n");
	if (cf->cf_uid_first != 0)
		fprintf(fp, "uids %u - %u\n", cf->cf_uid_first,
		    cf->cf_uid_last);
	print_control(fp, cf->cf_control, false);
	print_control(fp, cf->cf_control_ro, true);
	print_hosts(fp, &cf->cf_hosts);
	print_resolvers(fp, &cf->cf_resolvers);
	print_address_deny(fp, &cf->cf_address_deny);
	print_environment(fp, &cf->cf_environment, "");
}

static void
print_decider(FILE *fp, const struct conf_decider *dc)
{
	const struct conf_pair	*pr;

	fputs("decider ", fp);
	print_quoted(fp, dc->dc_name);
	fprintf(fp, " %s", decider_kind_name(dc->dc_kind));
	if (dc->dc_set == 0) {
		putc('\n', fp);
		return;
	}
	fputs(" {\n", fp);
	if (!TAILQ_EMPTY(&dc->dc_command)) {
		fputs("\tcommand", fp);
		print_words(fp, &dc->dc_command);
		putc('\n', fp);
	}
	print_stmts(fp, decider_table, dc->dc_set, &dc->dc_options, "\t", "\n");
	TAILQ_FOREACH(pr, &dc->dc_headers, pr_entry) {
		fputs("\theader ", fp);
		print_quoted(fp, pr->pr_key);
		putc(' ', fp);
		print_quoted(fp, pr->pr_value);
		putc('\n', fp);
	}
	fputs("}\n", fp);
}

void
conf_print_rule(const struct conf_rule *cr, FILE *fp)
{
	const struct rule	*ru = cr->cr_rule;

	fprintf(fp, "%s%s", rule_kind_name(ru->ru_kind),
	    ru->ru_tcp ? " tcp" : "");
	print_stmts(fp, rule_table, cr->cr_set, ru, " ", "");
}

static void
print_redacts(FILE *fp, const struct conf_redacts *list, bool show)
{
	const struct conf_redact	*rd;
	unsigned int			 n = 0;

	TAILQ_FOREACH(rd, list, rd_entry) {
		if (rd->rd_show != show)
			continue;
		if (n++ == 0)
			fprintf(fp, "\tcapture %s { ", show ? "show" :
			    "redact");
		else
			fputs(", ", fp);
		fprintf(fp, "%s ", redact_kind_name(rd->rd_kind));
		print_quoted(fp, rd->rd_name);
	}
	if (n > 0)
		fputs(" }\n", fp);
}

void
print_policy(FILE *fp, const struct conf_policy *cp)
{
	const struct policy_options	*po = &cp->cp_policy->pl_options;
	const struct conf_rule		*cr;
	char				 buf[VALUE_STRLEN];

	fputs("policy ", fp);
	print_quoted(fp, cp->cp_name);
	fputs(" {\n", fp);
	TAILQ_FOREACH(cr, &cp->cp_rules, cr_entry) {
		putc('\t', fp);
		conf_print_rule(cr, fp);
		putc('\n', fp);
	}
	fprintf(fp, "\tdefault %s\n", cp->cp_policy->pl_allow ? "allow" :
	    "deny");
	print_stmts(fp, policy_table, cp->cp_set, po, "\t", "\n");
	print_redacts(fp, &cp->cp_redact, false);
	print_redacts(fp, &cp->cp_redact, true);
	print_environment(fp, &cp->cp_environment, "\t");
	if (po->po_pause_denials != 0)
		fprintf(fp, "\tpause after %u denials in %s\n",
		    po->po_pause_denials,
		    value_format(OPTION_MS, po->po_pause_ms, buf));
	fputs("}\n", fp);
}

static void
print_cluster(FILE *fp, const struct conf_cluster *cl)
{
	fputs("cluster ", fp);
	print_quoted(fp, cl->cl_name);
	fputs(" {\n", fp);
	print_stmts(fp, cluster_table, cl->cl_set, cl, "\t", "\n");
	fputs("}\n", fp);
}

static void
print_mounts(FILE *fp, const char *name, const struct conf_mounts *mounts)
{
	const struct conf_mount	*mn;

	TAILQ_FOREACH(mn, mounts, mn_entry) {
		fprintf(fp, "\t%s ", name);
		print_quoted(fp, mn->mn_source);
		if (mn->mn_target != NULL) {
			fputs(" on ", fp);
			print_quoted(fp, mn->mn_target);
		}
		fputs(mn->mn_write ? " read-write\n" : " read-only\n", fp);
	}
}

static void
print_sandbox_users(FILE *fp, const struct conf_sandbox *sb)
{
	const struct conf_starter	*st;

	if (sb->sb_user_caller)
		fputs("\tuser caller\n", fp);
	if (sb->sb_user != NULL) {
		fputs("\tuser ", fp);
		print_quoted(fp, sb->sb_user);
		putc('\n', fp);
	}
	TAILQ_FOREACH(st, &sb->sb_for, st_entry) {
		fprintf(fp, "\tfor %s ", st->st_group ? "group" : "user");
		print_quoted(fp, st->st_name);
		putc('\n', fp);
	}
}

static void
print_sandbox(FILE *fp, const struct conf_sandbox *sb)
{
	fputs("sandbox ", fp);
	print_quoted(fp, sb->sb_name);
	fprintf(fp, " %s", sandbox_kind_name(sb->sb_kind));
	if (sb->sb_program != NULL) {
		putc(' ', fp);
		print_quoted(fp, sb->sb_program);
	}
	fputs(" {\n", fp);
	print_stmts(fp, sandbox_table, sb->sb_set, sb, "\t", "\n");
	print_sandbox_users(fp, sb);
	print_mounts(fp, "expose", &sb->sb_expose);
	print_mounts(fp, "mount", &sb->sb_mounts);
	print_mounts(fp, "mount below", &sb->sb_below);
	fputs("}\n", fp);
}

static void
print_endpoints(FILE *fp, const char *name, const struct conf_endpoints *list)
{
	const struct conf_endpoint	*ep;

	TAILQ_FOREACH(ep, list, ep_entry) {
		fprintf(fp, "\t%s on ", name);
		print_addr(fp, &ep->ep_addr);
		fprintf(fp, " port %u%s%s\n", ep->ep_port,
		    ep->ep_transparent ? " transparent" : "",
		    ep->ep_optional ? " optional" : "");
	}
}

static void
print_session(FILE *fp, const struct conf_session *ss)
{
	fputs("session ", fp);
	print_quoted(fp, ss->ss_name);
	fputs(" {\n", fp);
	print_endpoints(fp, "listen", &ss->ss_listen);
	print_endpoints(fp, "dns", &ss->ss_dns);
	print_stmts(fp, session_table, ss->ss_set, ss, "\t", "\n");
	if (ss->ss_ca_cert != NULL) {
		fputs("\tca certificate ", fp);
		print_quoted(fp, ss->ss_ca_cert);
		fputs(" key ", fp);
		print_quoted(fp, ss->ss_ca_key);
		putc('\n', fp);
	}
	fputs("}\n", fp);
}

int
conf_print(const struct config *cf, FILE *fp)
{
	const struct conf_decider	*dc;
	const struct conf_policy	*cp;
	const struct conf_cluster	*cl;
	const struct conf_sandbox	*sb;
	const struct conf_session	*ss;

	print_global(fp, cf);
	TAILQ_FOREACH(dc, &cf->cf_deciders, dc_entry)
		print_decider(fp, dc);
	TAILQ_FOREACH(cp, &cf->cf_policies, cp_entry)
		print_policy(fp, cp);
	TAILQ_FOREACH(cl, &cf->cf_clusters, cl_entry)
		print_cluster(fp, cl);
	TAILQ_FOREACH(sb, &cf->cf_sandboxes, sb_entry)
		print_sandbox(fp, sb);
	TAILQ_FOREACH(ss, &cf->cf_sessions, ss_entry)
		print_session(fp, ss);
	return fflush(fp) == EOF || ferror(fp) ? -1 : 0;
}
