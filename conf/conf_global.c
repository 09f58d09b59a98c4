/* SPDX-License-Identifier: ISC */

/*
 * Statements of the configuration that stand outside of any block.
 */

#include <inttypes.h>
#include <string.h>

#include "confparse.h"
#include "hostname.h"
#include "name.h"

#define UIDS_MIN	(ROLE_ENGINE + 2)	/* every role, and an engine */
#define HOSTS_MAX	1024
#define VARIABLES_MAX	256	/* patterns in one place */

#define CT(type, word, ...)						\
	{ .op_word = word, .op_type = OPTION_##type,			\
	    .op_where = OPTION_ANY, __VA_ARGS__ }

static const struct option control_table[] = {
	CT(HAND, "read-only"),
	CT(FLAG, "own-container", .op_slot = offsetof(struct conf_control,
	    ct_own)),
	CT(HAND, "mode"),
	CT(TEXT, "owner", .op_slot = offsetof(struct conf_control, ct_owner)),
	CT(TEXT, "group", .op_slot = offsetof(struct conf_control, ct_group)),
	{ .op_type = OPTION_END }
};

void
conf_global_uids(struct parse *ps, struct conf_pos pos, int64_t first,
    int64_t last)
{
	if (!stmt_once(&ps->ps_global, pos, "uids"))
		return;
	if (first < 1 || last >= UINT32_MAX || last < first + UIDS_MIN - 1) {
		conf_error(ps, pos, "uids %" PRId64 " - %" PRId64 ": must be "
		    "at least %d ids between 1 and %u", first, last,
		    UIDS_MIN, UINT32_MAX - 1);
		return;
	}
	ps->ps_conf->cf_uid_first = (uid_t)first;
	ps->ps_conf->cf_uid_last = (uid_t)last;
}

static void
conf_global_host(struct parse *ps, const struct conf_pair *pr)
{
	struct conf_host	*ho, *other;
	const char		*why;
	char			 name[HOSTNAME_MAX];

	ho = conf_alloc(ps->ps_conf, sizeof(*ho));
	ho->ho_pos = pr->pr_pos;
	if (hostname_canon(pr->pr_key, strlen(pr->pr_key), name, sizeof(name),
	    &why) == -1) {
		conf_error(ps, pr->pr_pos, "host \"%s\": %s", pr->pr_key, why);
		return;
	}
	if (hostname_is_addr(name)) {
		conf_error(ps, pr->pr_pos, "host \"%s\": must be a name, not "
		    "an address", pr->pr_key);
		return;
	}
	if (!value_addr(ps, pr->pr_pos, pr->pr_value, &ho->ho_addr))
		return;
	TAILQ_FOREACH(other, &ps->ps_conf->cf_hosts, ho_entry)
		if (strcmp(other->ho_name, name) == 0 &&
		    addr_cmp(&other->ho_addr, &ho->ho_addr) == 0) {
			conf_error(ps, pr->pr_pos, "host \"%s\" has the "
			    "address %s already", name, pr->pr_value);
			return;
		}
	ho->ho_name = conf_strndup(ps->ps_conf, name, strlen(name));
	TAILQ_INSERT_TAIL(&ps->ps_conf->cf_hosts, ho, ho_entry);
}

/* `hosts' may be repeated: each included file brings its own. */
void
conf_global_hosts(struct parse *ps)
{
	const struct conf_pair	*pr;
	const struct conf_host	*ho;
	unsigned int		 n = 0;

	TAILQ_FOREACH(ho, &ps->ps_conf->cf_hosts, ho_entry)
		n++;
	TAILQ_FOREACH(pr, &ps->ps_pairs, pr_entry) {
		if (++n > HOSTS_MAX) {
			conf_error(ps, pr->pr_pos, "hosts: more than %d "
			    "entries", HOSTS_MAX);
			break;
		}
		conf_global_host(ps, pr);
	}
	conf_lists_reset(ps);
}

void
conf_global_resolver(struct parse *ps, struct conf_pos pos, const char *addr,
    int64_t port)
{
	struct conf_endpoint	*ep;

	ep = conf_alloc(ps->ps_conf, sizeof(*ep));
	ep->ep_pos = pos;
	ep->ep_port = (uint16_t)port;
	if (value_addr(ps, pos, addr, &ep->ep_addr) && port != VALUE_BAD)
		TAILQ_INSERT_TAIL(&ps->ps_conf->cf_resolvers, ep, ep_entry);
}

void
conf_global_address_deny(struct parse *ps)
{
	const struct conf_word	*wd;
	struct conf_net		*nt;

	TAILQ_FOREACH(wd, &ps->ps_words, wd_entry)
		if ((nt = value_net(ps, wd->wd_pos, wd->wd_text)) != NULL)
			TAILQ_INSERT_TAIL(&ps->ps_conf->cf_address_deny, nt,
			    nt_entry);
	conf_lists_reset(ps);
}

static void
conf_variable(struct parse *ps, struct conf_variables *list, bool pass,
    const struct conf_word *wd)
{
	struct conf_variable	*va;
	const char		*why;
	unsigned int		 n = 0;

	if ((why = name_pattern_error(wd->wd_text)) != NULL)
		conf_error(ps, wd->wd_pos, "environment \"%s\": %s",
		    wd->wd_text, why);
	TAILQ_FOREACH(va, list, va_entry) {
		n++;
		if (strcmp(va->va_pattern, wd->wd_text) == 0)
			conf_error(ps, wd->wd_pos, "environment \"%s\" is "
			    "given twice", wd->wd_text);
	}
	if (n == VARIABLES_MAX)
		conf_error(ps, wd->wd_pos, "environment \"%s\": more than %d "
		    "patterns", wd->wd_text, VARIABLES_MAX);
	va = conf_alloc(ps->ps_conf, sizeof(*va));
	va->va_pass = pass;
	va->va_pattern = wd->wd_text;
	TAILQ_INSERT_TAIL(list, va, va_entry);
}

/* `environment' may be repeated: the order of pass and drop counts. */
void
conf_environment(struct parse *ps, struct conf_variables *list,
    struct conf_pos pos, const char *action)
{
	const struct conf_word	*wd;
	bool			 pass = strcmp(action, "pass") == 0;

	if (!pass && strcmp(action, "drop") != 0)
		conf_error(ps, pos, "environment \"%s\": must be pass or "
		    "drop", action);
	else
		TAILQ_FOREACH(wd, &ps->ps_words, wd_entry)
			conf_variable(ps, list, pass, wd);
	conf_lists_reset(ps);
}

static void
conf_global_number(struct parse *ps, struct conf_pos pos, const char *what,
    const char *name, int64_t value)
{
	const struct option	*op;

	op = stmt_pair_row(&ps->ps_global, pos, what, name);
	if (op != NULL)
		stmt_number(&ps->ps_global, pos, op->op_word, value);
}

void
conf_global_limit(struct parse *ps, struct conf_pos pos, const char *name,
    int64_t value)
{
	conf_global_number(ps, pos, "limit ", name, value);
}

void
conf_global_timeout(struct parse *ps, struct conf_pos pos, const char *name,
    int64_t value)
{
	conf_global_number(ps, pos, "timeout ", name, value);
}

void
conf_control_begin(struct parse *ps, struct conf_pos pos, const char *path)
{
	struct conf_control	*ct;
	const char		*why;

	ct = conf_alloc(ps->ps_conf, sizeof(*ct));
	ct->ct_pos = pos;
	ct->ct_path = path;
	ct->ct_mode = 0660;
	if ((why = value_socket_error(path)) != NULL)
		conf_error(ps, pos, "control socket \"%s\": %s", path, why);
	ps->ps_control = ct;
	ps->ps_control_set = 0;
	ps->ps_option.sx_parse = ps;
	ps->ps_option.sx_table = control_table;
	ps->ps_option.sx_object = ct;
	ps->ps_option.sx_set = &ps->ps_control_set;
	ps->ps_option.sx_kind = 1;
	ps->ps_option.sx_noun = "control socket";
}

/* The lexer reads decimal; here the digits are octal, as for chmod(1). */
void
conf_control_mode(struct parse *ps, struct conf_pos pos, int64_t digits)
{
	mode_t	 mode = 0;
	int	 shift = 0;
	int64_t	 n;

	if (!stmt_once(&ps->ps_option, pos, "mode"))
		return;
	for (n = digits; n > 0; n /= 10, shift += 3) {
		if (n % 10 > 7 || shift > 6) {
			conf_error(ps, pos, "mode %" PRId64 ": must be "
			    "between 0000 and 0777", digits);
			return;
		}
		mode |= (mode_t)(n % 10) << shift;
	}
	ps->ps_control->ct_mode = mode;
}

void
conf_control_end(struct parse *ps, struct conf_pos pos)
{
	struct conf_control	*ct = ps->ps_control;

	if (stmt_isset(&ps->ps_option, "read-only")) {
		if (stmt_once(&ps->ps_global, pos,
		    "control socket read-only"))
			ps->ps_conf->cf_control_ro = ct;
		return;
	}
	if (!stmt_once(&ps->ps_global, pos, "control socket"))
		return;
	if (ct->ct_mode & 0002)
		conf_error(ps, pos, "mode %04o: must not let everyone write "
		    "to a control socket that is not read-only", ct->ct_mode);
	ps->ps_conf->cf_control = ct;
}
