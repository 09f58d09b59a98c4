/* SPDX-License-Identifier: ISC */

/*
 * The conditions of rules: reading and printing each sort of values that
 * common/policy_rows.h names.  For a sort `x' there are x_take(), which checks
 * a value as it was written and adds it to the rule in its canonical form, and
 * x_print(), which writes it in a form that is read to the same.
 */

#include <inttypes.h>
#include <string.h>

#include "confparse.h"
#include "hostname.h"

/* A pattern in a deny rule may be as wide as it likes. */
static void
host_take(struct parse *ps, struct rule *ru, const struct conf_word *wd)
{
	const char	*why;
	char		 pattern[HOSTNAME_MAX];

	if (hostname_pattern_canon(wd->wd_text, strlen(wd->wd_text), pattern,
	    sizeof(pattern), &why) == -1 || (ru->ru_kind != RULE_DENY &&
	    hostname_pattern_check(pattern, &why) == -1))
		conf_error(ps, wd->wd_pos, "host \"%s\": %s", wd->wd_text,
		    why);
	rule_add(ru, COND_HOST, pattern, "");
}

static void
port_take(struct parse *ps, struct rule *ru, const struct conf_word *wd)
{
	int64_t	 first = wd->wd_first, last = wd->wd_last;

	if (value_port(ps, wd->wd_pos, first) == VALUE_BAD ||
	    (last != first && value_port(ps, wd->wd_pos, last) == VALUE_BAD))
		return;
	if (first > last)
		conf_error(ps, wd->wd_pos, "ports %" PRId64 "-%" PRId64 ": the "
		    "first is above the last", first, last);
	else
		rule_add_ports(ru, (uint16_t)first, (uint16_t)last);
}

static void
method_take(struct parse *ps, struct rule *ru, const struct conf_word *wd)
{
	const char	*why;

	if ((why = value_method_error(wd->wd_text)) != NULL)
		conf_error(ps, wd->wd_pos, "method \"%s\": %s", wd->wd_text,
		    why);
	rule_add(ru, COND_METHOD, wd->wd_text, "");
}

static void
path_take(struct parse *ps, struct rule *ru, const struct conf_word *wd)
{
	const char	*why;

	if ((why = value_urlpath_error(wd->wd_text)) != NULL)
		conf_error(ps, wd->wd_pos, "path \"%s\": %s", wd->wd_text,
		    why);
	rule_add(ru, COND_PATH, wd->wd_text, ps->ps_nocase ? PATH_NOCASE : "");
}

/* Loopback and link-local never open, so a prefix there would be a lie. */
static void
net_take(struct parse *ps, struct rule *ru, const struct conf_word *wd)
{
	const struct conf_net	*nt;
	enum addr_class		 class;
	char			 text[PREFIX_STRLEN];

	if (strcmp(wd->wd_text, "private") == 0) {
		ru->ru_to_private = true;
		return;
	}
	if ((nt = value_net(ps, wd->wd_pos, wd->wd_text)) == NULL)
		return;
	class = addr_classify(&nt->nt_prefix.pf_addr);
	if (nt->nt_prefix.pf_len > 0 && class != ADDR_GLOBAL &&
	    !addr_class_openable(class))
		conf_error(ps, wd->wd_pos, "to \"%s\": %s addresses are never "
		    "dialled", wd->wd_text, addr_class_name(class));
	rule_add(ru, COND_NET, prefix_format(&nt->nt_prefix, text,
	    sizeof(text)), "");
}

/* The name of a decider, which is looked up when all of them are known. */
static void
name_take(struct parse *ps, struct rule *ru, const struct conf_word *wd)
{
	const struct condition	*co;

	TAILQ_FOREACH(co, &ru->ru_conditions[COND_DECIDER], co_entry)
		if (strcmp(co->co_text, wd->wd_text) == 0)
			conf_error(ps, wd->wd_pos, "decider \"%s\" is given "
			    "twice", wd->wd_text);
	rule_add(ru, COND_DECIDER, wd->wd_text, "");
}

/* stmt_pairs_check() has looked at the whole list. */
static void
pair_take(struct parse *ps, struct rule *ru, const struct conf_word *wd)
{
	(void)ps;
	rule_add(ru, COND_METADATA, wd->wd_text, wd->wd_value);
}

static void
host_print(const struct condition *co, FILE *fp)
{
	print_quoted(fp, co->co_text);
}

#define method_print	host_print
#define path_print	host_print
#define name_print	host_print

static void
port_print(const struct condition *co, FILE *fp)
{
	fprintf(fp, "%u", co->co_first);
	if (co->co_last != co->co_first)
		fprintf(fp, "-%u", co->co_last);
}

static void
net_print(const struct condition *co, FILE *fp)
{
	fputs(co->co_text, fp);
}

static void
pair_print(const struct condition *co, FILE *fp)
{
	print_quoted(fp, co->co_text);
	putc(' ', fp);
	print_quoted(fp, co->co_value);
}

static const struct values {
	const char	*va_word;
	void		(*va_take)(struct parse *, struct rule *,
			    const struct conf_word *);
	void		(*va_print)(const struct condition *, FILE *);
} values_of[COND_KIND_MAX] = {
#define RULE_CONDITION(kind, word, where, values)			\
	[COND_##kind] = { word, values##_take, values##_print },
#include "policy_rows.h"
};

/* Takes the list of words, pairs or ports that was just read. */
void
conf_cond_take(struct parse *ps, unsigned int kind)
{
	const struct conf_word	*wd;
	const struct conf_pair	*pr;
	struct rule		*ru = ps->ps_rule->cr_rule;

	TAILQ_FOREACH(wd, &ps->ps_words, wd_entry)
		values_of[kind].va_take(ps, ru, wd);
	TAILQ_FOREACH(pr, &ps->ps_pairs, pr_entry)
		values_of[kind].va_take(ps, ru, &(struct conf_word){
		    .wd_pos = pr->pr_pos, .wd_text = pr->pr_key,
		    .wd_value = pr->pr_value });
}

/* The prefixes of a rule, with spaces between, have to fit in a grant. */
static void
nets_check(struct parse *ps, struct conf_pos pos)
{
	char	 nets[PATH_LEN + 1];

	if (rule_nets(ps->ps_rule->cr_rule, nets, sizeof(nets)) == -1)
		conf_error(ps, pos, "to: the prefixes have more than %d bytes "
		    "in all", PATH_LEN);
}

void
conf_cond(struct parse *ps, struct conf_pos pos, const char *name)
{
	const struct option	*op;

	if ((op = stmt_row(&ps->ps_option, pos, name)) != NULL) {
		if (!TAILQ_EMPTY(&ps->ps_pairs))
			stmt_pairs_check(ps, name, false);
		conf_cond_take(ps, op->op_condition);
		if (op->op_condition == COND_NET)
			nets_check(ps, pos);
	}
	conf_lists_reset(ps);
}

/* A list of one needs no braces, unless it is one of prefixes or pairs. */
static bool
in_braces(const struct conditions *list, unsigned int kind)
{
	return kind == COND_METADATA || kind == COND_NET ||
	    TAILQ_NEXT(TAILQ_FIRST(list), co_entry) != NULL;
}

void
conf_cond_print(const struct rule *ru, unsigned int kind, FILE *fp)
{
	const struct conditions	*list = &ru->ru_conditions[kind];
	const struct condition	*co = TAILQ_FIRST(list);
	bool			 private, braces;

	private = kind == COND_NET && ru->ru_to_private;
	if (co == NULL && !private)
		return;
	if (values_of[kind].va_word != NULL)
		fprintf(fp, " %s", values_of[kind].va_word);
	if (kind == COND_PATH && strcmp(co->co_value, PATH_NOCASE) == 0)
		fputs(" nocase", fp);
	if ((braces = co != NULL && in_braces(list, kind)))
		fputs(" {", fp);
	if (private)
		fputs(co != NULL ? " private," : " private", fp);
	for (; co != NULL; co = TAILQ_NEXT(co, co_entry)) {
		putc(' ', fp);
		values_of[kind].va_print(co, fp);
		if (TAILQ_NEXT(co, co_entry) != NULL)
			putc(',', fp);
	}
	if (braces)
		fputs(" }", fp);
}
