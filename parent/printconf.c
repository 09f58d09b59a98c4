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
 * egressd -nv: prints a configuration in a form that parses to the same.
 * Run by the parent.  Macros and includes are gone, names are canonical, and
 * what was not given is not printed.
 */

#include "confparse.h"

static void
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

static void
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
print_value(FILE *fp, const struct stmt *st, const void *slot)
{
	char	 buf[VALUE_STRLEN];

	switch (st->st_type) {
	case ST_TEXT:
	case ST_PATH:
	case ST_URL:
	case ST_URL_CLEAR:
		putc(' ', fp);
		print_quoted(fp, *(const char *const *)slot);
		break;
	case ST_MS:
	case ST_BYTES:
		fprintf(fp, " %s", value_format(st->st_type,
		    *(const int64_t *)slot, buf));
		break;
	case ST_COUNT:
		fprintf(fp, " %u", *(const unsigned int *)slot);
		break;
	case ST_ENUM:
		fprintf(fp, " %s", st->st_names[*(const unsigned int *)slot]);
		break;
	case ST_YESNO:
		fprintf(fp, " %s", st->st_names[*(const bool *)slot]);
		break;
	case ST_WORDS:
		print_words(fp, slot);
		break;
	case ST_PAIRS:
	case ST_VARIABLES:
		print_pairs(fp, slot);
		break;
	case ST_FLAG:
	case ST_BY_HAND:
		break;
	}
}

/* All statements of an object that were given and need no special care. */
static void
print_stmts(FILE *fp, const struct stmt *table, uint32_t set,
    const void *object, const char *before, const char *after)
{
	const struct stmt	*st;

	for (st = table; st->st_name != NULL; st++) {
		if (st->st_type == ST_BY_HAND ||
		    !(set & stmt_bit(table, st->st_name)))
			continue;
		fprintf(fp, "%s%s", before, st->st_name);
		print_value(fp, st, (const char *)object + st->st_slot);
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

static void
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

static void
print_nets(FILE *fp, const struct conf_nets *nets, const char *sep)
{
	const struct conf_net	*nt;

	TAILQ_FOREACH(nt, nets, nt_entry) {
		fputs(sep, fp);
		print_net(fp, &nt->nt_prefix);
		sep = ", ";
	}
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
	print_stmts(fp, stmt_global, cf->cf_set, cf, "", "\n");
	if (cf->cf_uid_first != 0)
		fprintf(fp, "uids %u - %u\n", cf->cf_uid_first,
		    cf->cf_uid_last);
	print_control(fp, cf->cf_control, false);
	print_control(fp, cf->cf_control_ro, true);
	print_hosts(fp, &cf->cf_hosts);
	print_resolvers(fp, &cf->cf_resolvers);
	if (!TAILQ_EMPTY(&cf->cf_address_deny)) {
		print_nets(fp, &cf->cf_address_deny, "address deny { ");
		fputs(" }\n", fp);
	}
	print_environment(fp, &cf->cf_environment, "");
}

static void
print_decider(FILE *fp, const struct conf_decider *dc)
{
	const struct conf_pair	*pr;

	fputs("decider ", fp);
	print_quoted(fp, dc->dc_name);
	fprintf(fp, " %s", conf_decider_kinds[dc->dc_kind]);
	if (dc->dc_set == 0) {
		putc('\n', fp);
		return;
	}
	fputs(" {\n", fp);
	print_stmts(fp, stmt_decider, dc->dc_set, dc, "\t", "\n");
	TAILQ_FOREACH(pr, &dc->dc_headers, pr_entry) {
		fputs("\theader ", fp);
		print_quoted(fp, pr->pr_key);
		putc(' ', fp);
		print_quoted(fp, pr->pr_value);
		putc('\n', fp);
	}
	fputs("}\n", fp);
}

static void
print_ports(FILE *fp, const struct conf_portlist *ports)
{
	const struct conf_ports	*po;
	bool			 list;

	if ((po = TAILQ_FIRST(ports)) == NULL)
		return;
	list = TAILQ_NEXT(po, po_entry) != NULL;
	fputs(list ? " port { " : " port ", fp);
	for (; po != NULL; po = TAILQ_NEXT(po, po_entry)) {
		fprintf(fp, "%u", po->po_first);
		if (po->po_last != po->po_first)
			fprintf(fp, "-%u", po->po_last);
		if (TAILQ_NEXT(po, po_entry) != NULL)
			fputs(", ", fp);
	}
	if (list)
		fputs(" }", fp);
}

static void
print_condition(FILE *fp, const char *name, const struct conf_words *words)
{
	if (TAILQ_EMPTY(words))
		return;
	fprintf(fp, " %s", name);
	print_words(fp, words);
}

static void
print_to(FILE *fp, const struct conf_rule *ru)
{
	if (TAILQ_EMPTY(&ru->ru_nets)) {
		fputs(ru->ru_private ? " to private" : "", fp);
		return;
	}
	fputs(ru->ru_private ? " to { private" : " to { ", fp);
	print_nets(fp, &ru->ru_nets, ru->ru_private ? ", " : "");
	fputs(" }", fp);
}

static void
print_deciders(FILE *fp, const struct conf_refs *refs)
{
	const struct conf_ref	*rf;
	bool			 list;

	if ((rf = TAILQ_FIRST(refs)) == NULL)
		return;
	list = TAILQ_NEXT(rf, rf_entry) != NULL;
	fputs(list ? " { " : " ", fp);
	for (; rf != NULL; rf = TAILQ_NEXT(rf, rf_entry)) {
		print_quoted(fp, rf->rf_name);
		if (TAILQ_NEXT(rf, rf_entry) != NULL)
			fputs(", ", fp);
	}
	if (list)
		fputs(" }", fp);
}

void
conf_print_rule(const struct conf_rule *ru, FILE *fp)
{
	fprintf(fp, "%s%s", rule_kind_name(ru->ru_kind),
	    ru->ru_tcp ? " tcp" : "");
	print_deciders(fp, &ru->ru_deciders);
	print_condition(fp, "host", &ru->ru_hosts);
	print_ports(fp, &ru->ru_ports);
	print_condition(fp, "method", &ru->ru_methods);
	print_condition(fp, ru->ru_nocase ? "path nocase" : "path",
	    &ru->ru_paths);
	print_to(fp, ru);
	print_stmts(fp, stmt_rule, ru->ru_set, ru, " ", "");
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
		fprintf(fp, "%s ", conf_redact_kinds[rd->rd_kind]);
		print_quoted(fp, rd->rd_name);
	}
	if (n > 0)
		fputs(" }\n", fp);
}

static void
print_policy(FILE *fp, const struct conf_policy *pl)
{
	const struct conf_rule	*ru;
	char			 buf[VALUE_STRLEN];

	fputs("policy ", fp);
	print_quoted(fp, pl->pl_name);
	fputs(" {\n", fp);
	TAILQ_FOREACH(ru, &pl->pl_rules, ru_entry) {
		putc('\t', fp);
		conf_print_rule(ru, fp);
		putc('\n', fp);
	}
	fprintf(fp, "\tdefault %s\n", pl->pl_default_allow ? "allow" : "deny");
	print_stmts(fp, stmt_policy, pl->pl_set, pl, "\t", "\n");
	print_redacts(fp, &pl->pl_redact, false);
	print_redacts(fp, &pl->pl_redact, true);
	print_environment(fp, &pl->pl_environment, "\t");
	if (pl->pl_pause_denials != 0)
		fprintf(fp, "\tpause after %u denials in %s\n",
		    pl->pl_pause_denials,
		    value_format(ST_MS, pl->pl_pause_window, buf));
	fputs("}\n", fp);
}

static void
print_cluster(FILE *fp, const struct conf_cluster *cl)
{
	fputs("cluster ", fp);
	print_quoted(fp, cl->cl_name);
	fputs(" {\n", fp);
	print_stmts(fp, stmt_cluster, cl->cl_set, cl, "\t", "\n");
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
print_sandbox(FILE *fp, const struct conf_sandbox *sb)
{
	fputs("sandbox ", fp);
	print_quoted(fp, sb->sb_name);
	fprintf(fp, " %s", conf_sandbox_kinds[sb->sb_kind]);
	if (sb->sb_program != NULL) {
		putc(' ', fp);
		print_quoted(fp, sb->sb_program);
	}
	fputs(" {\n", fp);
	print_stmts(fp, stmt_sandbox, sb->sb_set, sb, "\t", "\n");
	print_mounts(fp, "expose", &sb->sb_expose);
	print_mounts(fp, "mount", &sb->sb_mounts);
	fputs("}\n", fp);
}

static void
print_endpoints(FILE *fp, const char *name, const struct conf_endpoints *list)
{
	const struct conf_endpoint	*ep;

	TAILQ_FOREACH(ep, list, ep_entry) {
		fprintf(fp, "\t%s on ", name);
		print_addr(fp, &ep->ep_addr);
		fprintf(fp, " port %u%s\n", ep->ep_port,
		    ep->ep_transparent ? " transparent" : "");
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
	print_stmts(fp, stmt_session, ss->ss_set, ss, "\t", "\n");
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
	const struct conf_policy	*pl;
	const struct conf_cluster	*cl;
	const struct conf_sandbox	*sb;
	const struct conf_session	*ss;

	print_global(fp, cf);
	TAILQ_FOREACH(dc, &cf->cf_deciders, dc_entry)
		print_decider(fp, dc);
	TAILQ_FOREACH(pl, &cf->cf_policies, pl_entry)
		print_policy(fp, pl);
	TAILQ_FOREACH(cl, &cf->cf_clusters, cl_entry)
		print_cluster(fp, cl);
	TAILQ_FOREACH(sb, &cf->cf_sandboxes, sb_entry)
		print_sandbox(fp, sb);
	TAILQ_FOREACH(ss, &cf->cf_sessions, ss_entry)
		print_session(fp, ss);
	return fflush(fp) == EOF || ferror(fp) ? -1 : 0;
}
