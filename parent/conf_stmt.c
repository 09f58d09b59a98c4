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
 * The statements that each object of the configuration may hold: tables that
 * the parser fills objects by, and printconf.c prints them by.  What is not
 * permitted here for a kind of object is an error with a line, never ignored.
 */

#include <string.h>

#include "confparse.h"
#include "name.h"

#define SEC		INT64_C(1000)
#define MIN		(60 * SEC)
#define HOUR		(60 * MIN)
#define DAY		(24 * HOUR)
#define KB		INT64_C(1024)
#define GB		(KB * KB * KB)

#define PAIRS_MAX	256

#define ANY		UINT32_MAX
#define CF(m)		offsetof(struct config, m)
#define DC(m)		offsetof(struct conf_decider, m)
#define CL(m)		offsetof(struct conf_cluster, m)
#define SB(m)		offsetof(struct conf_sandbox, m)
#define SS(m)		offsetof(struct conf_session, m)
#define PL(m)		offsetof(struct conf_policy, m)
#define RU(m)		offsetof(struct conf_rule, m)

const char *const conf_decider_kinds[] = {
	"agent", "webhook", "exec", "socket", "operator", NULL
};
const char *const conf_sandbox_kinds[] = {
	"local", "virtual", "kubernetes", "custom", NULL
};
const char *const conf_redact_kinds[] = {
	[REDACT_HEADER] = "header", [REDACT_QUERY] = "query",
	[REDACT_FIELD] = "field",
	[REDACT_KIND_MAX] = NULL
};

static const char *const log_names[] = {
	"error", "warn", "info", "debug", NULL
};
static const char *const full_names[] = {
	[FULL_DENY] = "deny", [FULL_GAP] = "gap", [FULL_MAX] = NULL
};
static const char *const api_names[] = { "anthropic", "openai", NULL };
static const char *const form_names[] = {
	[FORM_AUTO] = "auto", [FORM_SCHEMA] = "schema", [FORM_JSON] = "json",
	[FORM_TOOL] = "tool", [FORM_MAX] = NULL
};
static const char *const refuse_names[] = {
	[REFUSE_403] = "403", [REFUSE_RESET] = "reset",
	[REFUSE_ALERT] = "alert", [REFUSE_MAX] = NULL
};
static const char *const scheme_names[] = {
	[SCHEME_ANY] = "any", [SCHEME_HTTP] = "http",
	[SCHEME_HTTPS] = "https", [SCHEME_MAX] = NULL
};
static const char *const cache_names[] = {
	[CACHE_HOST] = "host", [CACHE_REQUEST] = "request",
	[CACHE_OFF] = "off", [CACHE_MAX] = NULL
};
static const char *const yesno_names[] = { "no", "yes", NULL };

#define LIMIT(name, which, max)						\
	{ "limit " name, ST_COUNT, CF(cf_limit[which]), ANY, 0, 1, max, NULL }
#define TIMEOUT(name, which, max)					\
	{ "timeout " name, ST_MS, CF(cf_timeout[which]), ANY, 0, 100,	\
	    max, NULL }

const struct stmt stmt_global[] = {
	{ "log level", ST_ENUM, CF(cf_log), ANY, 0, 0, 0, log_names },
	{ "uids", ST_BY_HAND, 0, ANY, 0, 0, 0, NULL },
	{ "control socket", ST_BY_HAND, 0, ANY, 0, 0, 0, NULL },
	{ "control socket read-only", ST_BY_HAND, 0, ANY, 0, 0, 0, NULL },
	{ "audit file", ST_PATH, CF(cf_audit_file), ANY, 0, 0, 0, NULL },
	{ "audit on full", ST_ENUM, CF(cf_audit_full), ANY, 0, 0, 0,
	    full_names },
	{ "resolver", ST_BY_HAND, 0, ANY, 0, 0, 0, NULL },
	{ "upstream trust file", ST_PATH, CF(cf_upstream_trust), ANY, 0, 0, 0,
	    NULL },
	LIMIT("sessions", CONF_LIMIT_SESSIONS, 4096),
	LIMIT("clients", CONF_LIMIT_CLIENTS, 1024),
	LIMIT("connections", CONF_LIMIT_CONNECTIONS, 65536),
	LIMIT("pending", CONF_LIMIT_PENDING, 65536),
	TIMEOUT("dial", CONF_TIMEOUT_DIAL, 5 * MIN),
	TIMEOUT("handshake", CONF_TIMEOUT_HANDSHAKE, 5 * MIN),
	TIMEOUT("head", CONF_TIMEOUT_HEAD, 5 * MIN),
	TIMEOUT("response", CONF_TIMEOUT_RESPONSE, DAY),
	TIMEOUT("idle", CONF_TIMEOUT_IDLE, DAY),
	TIMEOUT("tunnel", CONF_TIMEOUT_TUNNEL, 7 * DAY),
	TIMEOUT("total", CONF_TIMEOUT_TOTAL, 30 * DAY),
	{ NULL, 0, 0, 0, 0, 0, 0, NULL }
};

#define D_AGENT		(1U << DECIDER_AGENT)
#define D_WEBHOOK	(1U << DECIDER_WEBHOOK)
#define D_EXEC		(1U << DECIDER_EXEC)
#define D_SOCKET	(1U << DECIDER_SOCKET)
#define D_OPERATOR	(1U << DECIDER_OPERATOR)
#define D_HTTP		(D_AGENT | D_WEBHOOK)

const struct stmt stmt_decider[] = {
	{ "api", ST_ENUM, DC(dc_api), D_AGENT, D_AGENT, 0, 0, api_names },
	{ "url", ST_URL_CLEAR, DC(dc_url), D_HTTP, D_HTTP, 0, 0, NULL },
	{ "insecure", ST_FLAG, DC(dc_insecure), D_HTTP, 0, 0, 0, NULL },
	{ "header", ST_BY_HAND, 0, D_HTTP, 0, 0, 0, NULL },
	{ "model", ST_TEXT, DC(dc_model), D_AGENT, D_AGENT, 0, 0, NULL },
	{ "answer", ST_ENUM, DC(dc_form), D_AGENT, 0, 0, 0, form_names },
	{ "max tokens", ST_COUNT, DC(dc_max_tokens), D_AGENT, 0, 16, 1000000,
	    NULL },
	{ "temperature", ST_TEXT, DC(dc_temperature), D_AGENT, 0, 0, 0, NULL },
	{ "effort", ST_TEXT, DC(dc_effort), D_AGENT, 0, 0, 0, NULL },
	{ "key file", ST_PATH, DC(dc_key_file), D_HTTP, 0, 0, 0, NULL },
	{ "key header", ST_TEXT, DC(dc_key_header), D_HTTP, 0, 0, 0, NULL },
	{ "prompt file", ST_PATH, DC(dc_prompt_file), D_AGENT, 0, 0, 0, NULL },
	{ "trust file", ST_PATH, DC(dc_trust_file), D_HTTP, 0, 0, 0, NULL },
	{ "command", ST_WORDS, DC(dc_command), D_EXEC, D_EXEC, 0, 0, NULL },
	{ "persistent", ST_FLAG, DC(dc_persistent), D_EXEC, 0, 0, 0, NULL },
	{ "user", ST_TEXT, DC(dc_user), D_EXEC, 0, 0, 0, NULL },
	{ "path", ST_PATH, DC(dc_path), D_SOCKET, D_SOCKET, 0, 0, NULL },
	{ "timeout", ST_MS, DC(dc_timeout), ANY, 0, 100, DAY, NULL },
	{ "concurrency", ST_COUNT, DC(dc_concurrency), ANY & ~D_OPERATOR, 0,
	    1, 1024, NULL },
	{ NULL, 0, 0, 0, 0, 0, 0, NULL }
};

const struct stmt stmt_cluster[] = {
	{ "in-cluster", ST_FLAG, CL(cl_in_cluster), ANY, 0, 0, 0, NULL },
	{ "kubeconfig", ST_PATH, CL(cl_kubeconfig), ANY, 0, 0, 0, NULL },
	{ "context", ST_TEXT, CL(cl_context), ANY, 0, 0, 0, NULL },
	{ "server", ST_URL, CL(cl_server), ANY, 0, 0, 0, NULL },
	{ "ca file", ST_PATH, CL(cl_ca_file), ANY, 0, 0, 0, NULL },
	{ "token file", ST_PATH, CL(cl_token_file), ANY, 0, 0, 0, NULL },
	{ "certificate file", ST_PATH, CL(cl_cert_file), ANY, 0, 0, 0, NULL },
	{ "key file", ST_PATH, CL(cl_key_file), ANY, 0, 0, 0, NULL },
	{ "user", ST_TEXT, CL(cl_user), ANY, 0, 0, 0, NULL },
	{ "password file", ST_PATH, CL(cl_password_file), ANY, 0, 0, 0, NULL },
	{ "exec", ST_WORDS, CL(cl_exec), ANY, 0, 0, 0, NULL },
	{ NULL, 0, 0, 0, 0, 0, 0, NULL }
};

#define S_LOCAL		(1U << CONF_SANDBOX_LOCAL)
#define S_VIRTUAL	(1U << CONF_SANDBOX_VIRTUAL)
#define S_KUBE		(1U << CONF_SANDBOX_KUBERNETES)
#define S_CUSTOM	(1U << CONF_SANDBOX_CUSTOM)

const struct stmt stmt_sandbox[] = {
	{ "policy", ST_TEXT, SB(sb_policy_name), ANY, ANY, 0, 0, NULL },
	{ "cwd", ST_PATH, SB(sb_cwd), ANY, 0, 0, 0, NULL },
	{ "expose", ST_BY_HAND, 0, S_LOCAL, 0, 0, 0, NULL },
	{ "mount", ST_BY_HAND, 0, S_VIRTUAL | S_CUSTOM, 0, 0, 0, NULL },
	{ "environment", ST_VARIABLES, SB(sb_environment), ANY, 0, 0, 0, NULL },
	{ "deadline", ST_MS, SB(sb_deadline), ANY, 0, SEC, 30 * DAY, NULL },
	{ "cluster", ST_TEXT, SB(sb_cluster_name), S_KUBE, 0, 0, 0, NULL },
	{ "namespace", ST_TEXT, SB(sb_namespace), S_KUBE, 0, 0, 0, NULL },
	{ "image", ST_TEXT, SB(sb_image), S_KUBE, S_KUBE, 0, 0, NULL },
	{ "workspace git", ST_URL, SB(sb_git), S_KUBE, 0, 0, 0, NULL },
	{ "ref", ST_TEXT, SB(sb_git_ref), S_KUBE, 0, 0, 0, NULL },
	{ "service-account-token", ST_YESNO, SB(sb_account_token), S_KUBE, 0,
	    0, 0, yesno_names },
	{ "recreate", ST_YESNO, SB(sb_recreate), S_KUBE, 0, 0, 0,
	    yesno_names },
	{ NULL, 0, 0, 0, 0, 0, 0, NULL }
};

const struct stmt stmt_session[] = {
	{ "listen", ST_BY_HAND, 0, ANY, ANY, 0, 0, NULL },
	{ "dns", ST_BY_HAND, 0, ANY, 0, 0, 0, NULL },
	{ "policy", ST_TEXT, SS(ss_policy_name), ANY, ANY, 0, 0, NULL },
	{ "trust directory", ST_PATH, SS(ss_trust_directory), ANY, 0, 0, 0,
	    NULL },
	{ "ca certificate", ST_BY_HAND, 0, ANY, 0, 0, 0, NULL },
	{ "upstream trust file", ST_PATH, SS(ss_upstream_trust), ANY, 0, 0, 0,
	    NULL },
	{ NULL, 0, 0, 0, 0, 0, 0, NULL }
};

const struct stmt stmt_policy[] = {
	{ "default", ST_BY_HAND, 0, ANY, 0, 0, 0, NULL },
	{ "refuse with", ST_ENUM, PL(pl_refuse), ANY, 0, 0, 0, refuse_names },
	{ "capture body", ST_BYTES, PL(pl_capture), ANY, 0, 0, 64 * KB, NULL },
	{ "capture hash", ST_FLAG, PL(pl_capture_hash), ANY, 0, 0, 0, NULL },
	{ "capture redact", ST_BY_HAND, 0, ANY, 0, 0, 0, NULL },
	{ "capture show", ST_BY_HAND, 0, ANY, 0, 0, 0, NULL },
	{ "quota out", ST_BYTES, PL(pl_quota_out), ANY, 0, 1, 1024 * KB * GB,
	    NULL },
	{ "pause", ST_BY_HAND, 0, ANY, 0, 0, 0, NULL },
	{ "audit on full", ST_ENUM, PL(pl_audit_full), ANY, 0, 0, 0,
	    full_names },
	{ NULL, 0, 0, 0, 0, 0, 0, NULL }
};

#define R_ALLOW		(1U << RULE_ALLOW)
#define R_DENY		(1U << RULE_DENY)
#define R_ASK		(1U << RULE_DECIDE | 1U << RULE_NARROW)
#define R_READ		(R_ALLOW | R_DENY | R_ASK)

/*
 * tcp and pass are decided before a byte is read, so they take no condition
 * on a request; a deny dials nothing and cuts nothing.
 */
const struct stmt stmt_rule[] = {
	{ "host", ST_BY_HAND, 0, ANY, 0, 0, 0, NULL },
	{ "port", ST_BY_HAND, 0, ANY, 0, 0, 0, NULL },
	{ "scheme", ST_ENUM, RU(ru_scheme), R_READ, 0, 0, 0, scheme_names },
	{ "method", ST_BY_HAND, 0, R_READ, 0, 0, 0, NULL },
	{ "path", ST_BY_HAND, 0, R_READ, 0, 0, 0, NULL },
	{ "body", ST_BYTES, RU(ru_body), R_ALLOW | R_ASK, 0, 0, 1024 * GB,
	    NULL },
	{ "to", ST_BY_HAND, 0, ANY & ~R_DENY, 0, 0, 0, NULL },
	{ "timeout", ST_MS, RU(ru_timeout), R_ASK | STMT_KIND_TCP, 0, 100,
	    DAY, NULL },
	{ "cache", ST_ENUM, RU(ru_cache), R_ASK | STMT_KIND_TCP, 0, 0, 0,
	    cache_names },
	{ "ttl", ST_MS, RU(ru_ttl), R_ASK | STMT_KIND_TCP, 0, SEC, 30 * DAY,
	    NULL },
	{ "uses", ST_COUNT, RU(ru_uses), R_ASK | STMT_KIND_TCP, 0, 1, 1000000,
	    NULL },
	{ "messages", ST_COUNT, RU(ru_messages), R_ASK | STMT_KIND_TCP, 0, 0,
	    100, NULL },
	{ "metadata", ST_PAIRS, RU(ru_metadata), R_ASK | STMT_KIND_TCP, 0, 0,
	    0, NULL },
	{ NULL, 0, 0, 0, 0, 0, 0, NULL }
};

const struct stmt *
stmt_find(const struct stmt *table, const char *name)
{
	const struct stmt	*st;

	for (st = table; st->st_name != NULL; st++)
		if (strcmp(st->st_name, name) == 0)
			return st;
	return NULL;
}

uint32_t
stmt_bit(const struct stmt *table, const char *name)
{
	return 1U << (stmt_find(table, name) - table);
}

bool
stmt_isset(const struct stmt_ctx *sx, const char *name)
{
	return *sx->sx_set & stmt_bit(sx->sx_table, name);
}

/* Whether a statement may stand here at all; repeatable ones ask no more. */
bool
stmt_permitted(struct stmt_ctx *sx, struct conf_pos pos, const char *name)
{
	const struct stmt	*st = stmt_find(sx->sx_table, name);

	if (sx->sx_kind & ~st->st_kinds) {
		conf_error(sx->sx_parse, pos, "%s takes no \"%s\"",
		    sx->sx_noun, name);
		return false;
	}
	*sx->sx_set |= stmt_bit(sx->sx_table, name);
	return true;
}

bool
stmt_once(struct stmt_ctx *sx, struct conf_pos pos, const char *name)
{
	if (stmt_isset(sx, name)) {
		conf_error(sx->sx_parse, pos, "\"%s\" is given twice", name);
		return false;
	}
	return stmt_permitted(sx, pos, name);
}

void
stmt_needed(struct stmt_ctx *sx, struct conf_pos pos, const char *object)
{
	const struct stmt	*st;

	for (st = sx->sx_table; st->st_name != NULL; st++)
		if (st->st_needed & sx->sx_kind &&
		    !stmt_isset(sx, st->st_name))
			conf_error(sx->sx_parse, pos, "%s \"%s\" has no "
			    "\"%s\"", sx->sx_noun, object, st->st_name);
}

static void *
stmt_slot(const struct stmt_ctx *sx, const struct stmt *st)
{
	return (char *)sx->sx_object + st->st_slot;
}

static const char *
stmt_text_error(enum stmt_type type, const char *value)
{
	if (value[0] == '\0')
		return "must not be empty";
	if (type == ST_PATH)
		return value_path_error(value);
	if (type == ST_URL || type == ST_URL_CLEAR)
		return value_url_error(value, type == ST_URL_CLEAR);
	return NULL;
}

/* What may hold a password is not quoted: messages end in logs. */
void
stmt_text(struct stmt_ctx *sx, struct conf_pos pos, const char *name,
    const char *value)
{
	const struct stmt	*st = stmt_find(sx->sx_table, name);
	const char		*why;

	if (!stmt_once(sx, pos, name))
		return;
	why = stmt_text_error(st->st_type, value);
	if (why != NULL && strchr(value, '@') != NULL &&
	    (st->st_type == ST_URL || st->st_type == ST_URL_CLEAR))
		conf_error(sx->sx_parse, pos, "%s: %s", name, why);
	else if (why != NULL)
		conf_error(sx->sx_parse, pos, "%s \"%s\": %s", name, value,
		    why);
	*(const char **)stmt_slot(sx, st) = value;
}

static void
stmt_word_error(struct stmt_ctx *sx, struct conf_pos pos,
    const struct stmt *st, const char *value)
{
	char	 list[128] = "";
	size_t	 i;

	for (i = 0; st->st_names[i] != NULL; i++) {
		if (i > 0)
			strlcat(list, st->st_names[i + 1] == NULL ? " or " :
			    ", ", sizeof(list));
		strlcat(list, st->st_names[i], sizeof(list));
	}
	conf_error(sx->sx_parse, pos, "%s \"%s\": must be %s", st->st_name,
	    value, list);
}

void
stmt_word(struct stmt_ctx *sx, struct conf_pos pos, const char *name,
    const char *value)
{
	const struct stmt	*st = stmt_find(sx->sx_table, name);
	unsigned int		 i;

	if (!stmt_once(sx, pos, name))
		return;
	for (i = 0; st->st_names[i] != NULL; i++)
		if (strcmp(st->st_names[i], value) == 0)
			break;
	if (st->st_names[i] == NULL)
		stmt_word_error(sx, pos, st, value);
	else if (st->st_type == ST_YESNO)
		*(bool *)stmt_slot(sx, st) = i == 1;
	else
		*(unsigned int *)stmt_slot(sx, st) = i;
}

void
stmt_number(struct stmt_ctx *sx, struct conf_pos pos, const char *name,
    int64_t value)
{
	const struct stmt	*st = stmt_find(sx->sx_table, name);
	char			 got[VALUE_STRLEN], min[VALUE_STRLEN];
	char			 max[VALUE_STRLEN];

	if (!stmt_once(sx, pos, name) || value == VALUE_BAD)
		return;
	if (value < st->st_min || value > st->st_max)
		conf_error(sx->sx_parse, pos,
		    "%s %s: must be between %s and %s", name,
		    value_format(st->st_type, value, got),
		    value_format(st->st_type, st->st_min, min),
		    value_format(st->st_type, st->st_max, max));
	else if (st->st_type == ST_COUNT)
		*(unsigned int *)stmt_slot(sx, st) = (unsigned int)value;
	else
		*(int64_t *)stmt_slot(sx, st) = value;
}

void
stmt_flag(struct stmt_ctx *sx, struct conf_pos pos, const char *name)
{
	if (stmt_once(sx, pos, name))
		*(bool *)stmt_slot(sx, stmt_find(sx->sx_table, name)) = true;
}

/* A program is run by its absolute name: there is no PATH to search. */
void
stmt_words(struct stmt_ctx *sx, struct conf_pos pos, const char *name)
{
	struct parse		*ps = sx->sx_parse;
	struct conf_words	*words;
	const char		*program, *why;

	if (stmt_once(sx, pos, name)) {
		program = TAILQ_FIRST(&ps->ps_words)->wd_text;
		if ((why = value_path_error(program)) != NULL)
			conf_error(ps, pos, "%s \"%s\": %s", name, program,
			    why);
		words = stmt_slot(sx, stmt_find(sx->sx_table, name));
		TAILQ_CONCAT(words, &ps->ps_words, wd_entry);
	}
	conf_lists_reset(ps);
}

static void
stmt_pair_check(struct parse *ps, const struct stmt *st,
    const struct conf_pair *pr)
{
	const struct conf_pair	*other;
	const char		*why;

	why = st->st_type == ST_VARIABLES ? name_variable_error(pr->pr_key) :
	    name_error(pr->pr_key);
	if (why != NULL)
		conf_error(ps, pr->pr_pos, "%s \"%s\": %s", st->st_name,
		    pr->pr_key, why);
	TAILQ_FOREACH(other, &ps->ps_pairs, pr_entry) {
		if (other == pr)
			return;
		if (strcmp(other->pr_key, pr->pr_key) == 0)
			conf_error(ps, pr->pr_pos, "%s \"%s\" is given "
			    "twice", st->st_name, pr->pr_key);
	}
}

void
stmt_pairs(struct stmt_ctx *sx, struct conf_pos pos, const char *name)
{
	const struct stmt	*st = stmt_find(sx->sx_table, name);
	struct parse		*ps = sx->sx_parse;
	struct conf_pairs	*pairs = stmt_slot(sx, st);
	const struct conf_pair	*pr;
	unsigned int		 n = 0;

	if (stmt_once(sx, pos, name)) {
		TAILQ_FOREACH(pr, &ps->ps_pairs, pr_entry) {
			if (++n > PAIRS_MAX) {
				conf_error(ps, pr->pr_pos, "%s: more than %d "
				    "entries", name, PAIRS_MAX);
				break;
			}
			stmt_pair_check(ps, st, pr);
		}
		TAILQ_CONCAT(pairs, &ps->ps_pairs, pr_entry);
	}
	conf_lists_reset(ps);
}
