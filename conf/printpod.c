/* SPDX-License-Identifier: ISC */

/*
 * The configuration of the gate in a pod, made of the running one: run by the
 * parent for each session, and by egressctl for whoever wants to see it.  What
 * a policy says holds there as it does here.  Its deciders are here: there,
 * each of them is of the kind that asks whoever has the control socket.
 *
 * The same words make the same bytes, as their hash is how a pod and its
 * control host know that they mean the same.
 */

#include <string.h>

#include "confparse.h"

/* Statements outside of any block that are about requests, not this machine. */
static const char *const	 shared[] = {
	"log level", "audit on full", "limit connections", "limit pending",
	"timeout dial", "timeout handshake", "timeout head",
	"timeout response", "timeout idle", "timeout tunnel", "timeout total",
};

static void
print_shared(FILE *fp, const struct config *cf)
{
	uint64_t	 set = 0;
	size_t		 i;

	for (i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		set |= stmt_bit(global_table, shared[i]);
	print_stmts(fp, global_table, cf->cf_set & set, cf, "", "\n");
	print_hosts(fp, &cf->cf_hosts);
	print_address_deny(fp, &cf->cf_address_deny);
}

static void
print_servers(FILE *fp, const struct conf_server *sv, size_t n)
{
	size_t	 i;

	for (i = 0; i < n; i++) {
		fputs(i == 0 ? "resolver { " : ", ", fp);
		print_addr(fp, &sv[i].sv_addr);
		if (sv[i].sv_port != 53)
			fprintf(fp, " port %u", sv[i].sv_port);
	}
	if (n > 0)
		fputs(" }\n", fp);
}

static bool
names_decider(const struct conf_policy *cp, const char *name)
{
	const struct conf_rule	*cr;
	const struct condition	*co;

	TAILQ_FOREACH(cr, &cp->cp_rules, cr_entry)
		TAILQ_FOREACH(co, &cr->cr_rule->ru_conditions[COND_DECIDER],
		    co_entry)
			if (strcmp(co->co_text, name) == 0)
				return true;
	return false;
}

/* People have no limit of how many questions they are asked at once. */
static void
print_control_decider(FILE *fp, const struct conf_decider *dc)
{
	const struct decider_options	*op = &dc->dc_options;
	char				 buf[VALUE_STRLEN];

	fputs("decider ", fp);
	print_quoted(fp, dc->dc_name);
	fprintf(fp, " control {\n\ttimeout %s\n",
	    value_format(OPTION_MS, op->do_timeout_ms, buf));
	fprintf(fp, "\tconcurrency %llu\n}\n", dc->dc_kind == DECIDER_OPERATOR ?
	    1024 : (unsigned long long)op->do_concurrency);
}

bool
conf_policy_is_private(const struct conf_policy *cp)
{
	const struct conf_rule	*cr;

	TAILQ_FOREACH(cr, &cp->cp_rules, cr_entry)
		if (cr->cr_rule->ru_to_private || !TAILQ_EMPTY(
		    &cr->cr_rule->ru_conditions[COND_NET]))
			return true;
	return false;
}

int
conf_print_pod(const struct config *cf, const struct conf_policy *cp,
    const struct conf_server *sv, size_t n, FILE *fp)
{
	const struct conf_decider	*dc;

	fputs("control socket \"/run/egressd.sock\" mode 0600 own-container\n"
	    "audit file \"/var/spool/egressd/audit.log\"\n"
	    "spool 64M\n"
	    "audit stdout\n"
	    "uids 64000 - 64031\n"
	    "dial mark 0x45475244\n"
	    "upstream trust file \"/etc/egressd/upstream.pem\"\n", fp);
	print_servers(fp, sv, n);
	print_shared(fp, cf);
	TAILQ_FOREACH(dc, &cf->cf_deciders, dc_entry)
		if (names_decider(cp, dc->dc_name))
			print_control_decider(fp, dc);
	print_policy(fp, cp);
	fputs("session \"pod\" {\n"
	    "\tlisten on 127.0.0.1 port 15001 transparent\n"
	    "\tlisten on ::1 port 15001 transparent optional\n"
	    "\tdns on 127.0.0.1 port 15053\n"
	    "\tdns on ::1 port 15053 optional\n"
	    "\tpolicy ", fp);
	print_quoted(fp, cp->cp_name);
	fputs("\n\ttrust directory \"/trust/pod\"\n"
	    "\trefused group 45\n"
	    "}\n", fp);
	return fflush(fp) == EOF || ferror(fp) ? -1 : 0;
}
