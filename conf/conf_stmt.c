/* SPDX-License-Identifier: ISC */

/*
 * Statements that are options, read by the rows of their object's table; the
 * tables of what only this folder knows are here, those of policies, rules and
 * deciders in common/.  What is not permitted by a row is an error with a line,
 * never ignored.
 */

#include <string.h>

#define OPTION_ROWS

#include "confparse.h"
#include "name.h"

#define PAIRS_MAX	256

#define CF(m)		.op_slot = offsetof(struct config, m)
#define CL(m)		.op_slot = offsetof(struct conf_cluster, m)
#define SB(m)		.op_slot = offsetof(struct conf_sandbox, m)
#define SS(m)		.op_slot = offsetof(struct conf_session, m)

#define ROW(type, word, ...)						\
	{ .op_word = word, .op_type = OPTION_##type,			\
	    .op_where = OPTION_ANY, __VA_ARGS__ }
#define KIND(type, word, kinds, ...)					\
	{ .op_word = word, .op_type = OPTION_##type,			\
	    .op_where = kinds, __VA_ARGS__ }
#define NEEDED		.op_needed = OPTION_ANY
#define END		{ .op_type = OPTION_END }

static const char *const yesno_words[] = { "no", "yes", NULL };
static const char *const pull_words[] = {
	"always", "if-not-present", "never", NULL
};
static const char *const stale_words[] = { "error", "recreate", NULL };
static const char *const off_words[] = { "off", NULL };

#define LIMIT(name, which, max)						\
	ROW(COUNT, "limit " name, CF(cf_limit[which]), RANGE(1, max))
#define TIMEOUT(name, which, max)					\
	ROW(MS, "timeout " name, CF(cf_timeout[which]), RANGE(100, max))

const struct option global_table[] = {
	ROW(ENUM, "log level", CF(cf_log), WORDS(log_level_words)),
	ROW(HAND, "uids"),
	ROW(HAND, "control socket"),
	ROW(HAND, "control socket read-only"),
	ROW(PATH, "audit file", CF(cf_audit_file)),
	ROW(BYTES, "spool", CF(cf_spool), RANGE(MB, 1024 * GB)),
	ROW(ENUM, "audit on full", CF(cf_audit_full), WORDS(policy_full_words)),
	ROW(FLAG, "audit stdout", CF(cf_audit_stdout)),
	ROW(HAND, "resolver"),
	ROW(COUNT, "dial mark", CF(cf_dial_mark), RANGE(1, UINT32_MAX)),
	ROW(PATH, "upstream trust file", CF(cf_upstream_trust)),
	LIMIT("sessions", CONF_LIMIT_SESSIONS, CONF_SESSIONS_MAX),
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
	ROW(TEXT, "default sandbox", CF(cf_default_sandbox_name)),
	END
};

const struct option cluster_table[] = {
	ROW(FLAG, "in-cluster", CL(cl_in_cluster)),
	ROW(PATH, "kubeconfig", CL(cl_kubeconfig)),
	ROW(TEXT, "context", CL(cl_context)),
	ROW(URL, "server", CL(cl_server)),
	ROW(PATH, "ca file", CL(cl_ca_file)),
	ROW(PATH, "token file", CL(cl_token_file)),
	ROW(PATH, "certificate file", CL(cl_cert_file)),
	ROW(PATH, "key file", CL(cl_key_file)),
	ROW(TEXT, "user", CL(cl_user)),
	ROW(PATH, "password file", CL(cl_password_file)),
	ROW(WORDS, "exec", CL(cl_exec)),
	ROW(LABEL, "namespace", CL(cl_namespace)),
	ROW(TEXT, "tls-server-name", CL(cl_tls_name)),
	ROW(URL_CLEAR, "proxy", CL(cl_proxy)),
	ROW(FLAG, "insecure", CL(cl_insecure)),
	END
};

#define S_LOCAL		(1U << SANDBOX_LOCAL)
#define S_VIRTUAL	(1U << SANDBOX_VIRTUAL)
#define S_KUBE		(1U << SANDBOX_KUBERNETES)
#define S_CUSTOM	(1U << SANDBOX_CUSTOM)
#define S_BOX		(S_LOCAL | S_VIRTUAL)	/* on this machine, held */

const struct option sandbox_table[] = {
	ROW(TEXT, "policy", SB(sb_policy_name), NEEDED),
	KIND(HAND, "user", S_BOX | S_CUSTOM),
	ROW(HAND, "for"),
	ROW(PATH, "cwd", SB(sb_cwd)),
	KIND(YESNO, "forward", S_BOX | S_KUBE, SB(sb_forward),
	    WORDS(yesno_words)),
	KIND(BYTES, "size", S_VIRTUAL, SB(sb_size), RANGE(MB, 1024 * GB)),
	KIND(BYTES, "limit memory", S_BOX, SB(sb_limits.sl_memory),
	    RANGE(MB, 1024 * GB)),
	KIND(COUNT, "limit processes", S_BOX, SB(sb_limits.sl_processes),
	    RANGE(1, 1024 * 1024)),
	KIND(BYTES, "limit file", S_BOX, SB(sb_limits.sl_file),
	    RANGE(1, 1024 * GB)),
	KIND(MS, "limit cpu", S_BOX, SB(sb_limits.sl_cpu),
	    RANGE(SEC, 30 * DAY)),
	KIND(FLAG, "ungated", S_CUSTOM | S_KUBE, SB(sb_ungated)),
	KIND(HAND, "expose", S_LOCAL),
	KIND(HAND, "mount", S_VIRTUAL),
	KIND(HAND, "mount below", S_VIRTUAL),
	ROW(VARIABLES, "environment", SB(sb_environment)),
	ROW(MS, "deadline", SB(sb_deadline), RANGE(SEC, 30 * DAY)),
	KIND(TEXT, "cluster", S_KUBE, SB(sb_cluster_name)),
	KIND(LABEL, "namespace", S_KUBE, SB(sb_namespace)),
	KIND(TEXT, "id", S_KUBE, SB(sb_pod.pd_id)),
	KIND(TEXT, "image", S_KUBE, SB(sb_pod.pd_image)),
	KIND(TEXT, "box-image", S_KUBE, SB(sb_pod.pd_box_image)),
	KIND(ENUM, "pull-policy", S_KUBE, SB(sb_pod.pd_pull_policy),
	    WORDS(pull_words)),
	KIND(NAMES, "pull-secrets", S_KUBE, SB(sb_pod.pd_pull_secrets)),
	KIND(BYTES, "workspace size", S_KUBE, SB(sb_pod.pd_size),
	    RANGE(MB, 1024 * GB)),
	KIND(TEXT, "workspace claim", S_KUBE, SB(sb_pod.pd_claim)),
	KIND(URL, "workspace git", S_KUBE, SB(sb_pod.pd_git)),
	KIND(TEXT, "ref", S_KUBE, SB(sb_pod.pd_git_ref)),
	KIND(MS, "workspace timeout", S_KUBE, SB(sb_pod.pd_git_timeout),
	    RANGE(SEC, DAY)),
	KIND(PAIRS, "labels", S_KUBE, SB(sb_pod.pd_labels)),
	KIND(PAIRS, "annotations", S_KUBE, SB(sb_pod.pd_annotations)),
	KIND(PAIRS, "requests", S_KUBE, SB(sb_pod.pd_requests)),
	KIND(PAIRS, "limits", S_KUBE, SB(sb_pod.pd_limits)),
	KIND(PAIRS, "node-selector", S_KUBE, SB(sb_pod.pd_node_selector)),
	KIND(NAMES, "tolerations", S_KUBE, SB(sb_pod.pd_tolerations)),
	KIND(TEXT, "service-account", S_KUBE, SB(sb_pod.pd_account)),
	KIND(YESNO, "service-account-token", S_KUBE,
	    SB(sb_pod.pd_account_token), WORDS(yesno_words)),
	KIND(TEXT, "runtime-class", S_KUBE, SB(sb_pod.pd_runtime_class)),
	KIND(COUNT, "run-as-user", S_KUBE, SB(sb_pod.pd_run_as_user),
	    RANGE(0, INT32_MAX)),
	KIND(COUNT, "run-as-group", S_KUBE, SB(sb_pod.pd_run_as_group),
	    RANGE(0, INT32_MAX)),
	KIND(COUNT, "fs-group", S_KUBE, SB(sb_pod.pd_fs_group),
	    RANGE(0, INT32_MAX)),
	KIND(YESNO, "read-only-root", S_KUBE, SB(sb_pod.pd_read_only_root),
	    WORDS(yesno_words)),
	KIND(PATH, "manifest merge file", S_KUBE, SB(sb_pod.pd_merge_file)),
	KIND(MS, "heartbeat", S_KUBE, SB(sb_pod.pd_heartbeat),
	    RANGE(SEC, HOUR), WORDS(off_words)),
	KIND(MS, "ready timeout", S_KUBE, SB(sb_pod.pd_ready_timeout),
	    RANGE(SEC, DAY)),
	KIND(ENUM, "on stale", S_KUBE, SB(sb_pod.pd_on_stale),
	    WORDS(stale_words)),
	KIND(YESNO, "delete on stop", S_KUBE, SB(sb_pod.pd_delete_on_stop),
	    WORDS(yesno_words)),
	KIND(PAIRS, "gate-requests", S_KUBE, SB(sb_pod.pd_gate_requests)),
	KIND(PAIRS, "gate-limits", S_KUBE, SB(sb_pod.pd_gate_limits)),
	KIND(NAMES, "gate-resolver", S_KUBE, SB(sb_pod.pd_gate_resolvers)),
	KIND(YESNO, "trust-overlay", S_KUBE, SB(sb_pod.pd_overlay),
	    WORDS(yesno_words)),
	KIND(YESNO, "network-policy", S_KUBE, SB(sb_pod.pd_network_policy),
	    WORDS(yesno_words)),
	END
};

const struct option session_table[] = {
	ROW(HAND, "listen", NEEDED),
	ROW(HAND, "dns"),
	ROW(TEXT, "policy", SS(ss_policy_name), NEEDED),
	ROW(COUNT, "refused group", SS(ss_refused_group), RANGE(1, 65535)),
	ROW(PATH, "trust directory", SS(ss_trust_directory)),
	ROW(HAND, "ca certificate"),
	ROW(PATH, "upstream trust file", SS(ss_upstream_trust)),
	END
};

const struct option *
stmt_find(const struct option *table, const char *name)
{
	const struct option	*op;

	for (op = table; op->op_type != OPTION_END; op++)
		if (op->op_word != NULL && strcmp(op->op_word, name) == 0)
			return op;
	return NULL;
}

uint64_t
stmt_bit(const struct option *table, const char *name)
{
	return UINT64_C(1) << (stmt_find(table, name) - table);
}

bool
stmt_isset(const struct stmt_ctx *sx, const char *name)
{
	return *sx->sx_set & stmt_bit(sx->sx_table, name);
}

struct conf_pos
stmt_pos(const struct stmt_ctx *sx, const char *name)
{
	return sx->sx_pos[stmt_find(sx->sx_table, name) - sx->sx_table];
}

/* Whether a statement may stand here at all; repeatable ones ask no more. */
bool
stmt_permitted(struct stmt_ctx *sx, struct conf_pos pos, const char *name)
{
	const struct option	*op = stmt_find(sx->sx_table, name);

	if (sx->sx_kind & ~op->op_where) {
		conf_error(sx->sx_parse, pos, "%s takes no \"%s\"",
		    sx->sx_noun, name);
		return false;
	}
	*sx->sx_set |= UINT64_C(1) << (op - sx->sx_table);
	sx->sx_pos[op - sx->sx_table] = pos;
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

/*
 * The row of an option that the grammar knows by the form of its value only.
 * NULL after an error: it is none of this object's, or must not stand here.
 */
const struct option *
stmt_row(struct stmt_ctx *sx, struct conf_pos pos, const char *name)
{
	const struct option	*op = stmt_find(sx->sx_table, name);
	const char		*last;

	if (op != NULL)
		return stmt_once(sx, pos, name) ? op : NULL;
	last = strrchr(name, ' ');
	conf_error(sx->sx_parse, pos, "\"%s\" is not expected here",
	    last == NULL ? name : last + 1);
	return NULL;
}

void
stmt_needed(struct stmt_ctx *sx, struct conf_pos pos, const char *object)
{
	const struct option	*op;

	for (op = sx->sx_table; op->op_type != OPTION_END; op++)
		if (op->op_needed & sx->sx_kind &&
		    !stmt_isset(sx, op->op_word))
			conf_error(sx->sx_parse, pos, "%s \"%s\" has no "
			    "\"%s\"", sx->sx_noun, object, op->op_word);
}

static const char *
stmt_text_error(const struct option *op, const char *value)
{
	if (value[0] == '\0')
		return "must not be empty";
	if (op->op_told != 0 && strlen(value) > PATH_LEN)
		return "must have at most 1024 bytes";
	switch (op->op_type) {
	case OPTION_PATH:
		return value_path_error(value);
	case OPTION_URL:
	case OPTION_URL_CLEAR:
		return value_url_error(value, op->op_type == OPTION_URL_CLEAR);
	case OPTION_HEADER:
		return value_header_error(value);
	case OPTION_LABEL:
		return value_label_error(value);
	case OPTION_LOWER:
		return value_lower_error(value);
	case OPTION_MILLI:
		return option_milli(value) != -1 ? NULL : "must be between 0 "
		    "and 2, with three digits after the point at most";
	default:
		return NULL;
	}
}

const char *
conf_value_error(enum option_type type, const char *value)
{
	struct option	 op = { .op_type = type, .op_told = OPTION_ANY };

	return stmt_text_error(&op, value);
}

static void
stmt_word_error(struct stmt_ctx *sx, struct conf_pos pos,
    const struct option *op, const char *value)
{
	char	 list[128];

	words_join(op->op_words, list, sizeof(list));
	conf_error(sx->sx_parse, pos, "%s \"%s\": must be %s", op->op_word,
	    value, list);
}

static void
stmt_word(struct stmt_ctx *sx, struct conf_pos pos, const struct option *op,
    const char *value)
{
	unsigned int	 i;

	for (i = 0; op->op_words[i] != NULL; i++)
		if (strcmp(op->op_words[i], value) == 0) {
			option_set_number(op, sx->sx_object, i);
			return;
		}
	stmt_word_error(sx, pos, op, value);
}

/* A URL with a password is not quoted: messages end in logs. */
static void
stmt_text_check(struct stmt_ctx *sx, struct conf_pos pos,
    const struct option *op, const char *value)
{
	const char	*why;

	if ((why = stmt_text_error(op, value)) == NULL)
		return;
	if (strchr(value, '@') != NULL &&
	    (op->op_type == OPTION_URL || op->op_type == OPTION_URL_CLEAR))
		conf_error(sx->sx_parse, pos, "%s: %s", op->op_word, why);
	else
		conf_error(sx->sx_parse, pos, "%s \"%s\": %s", op->op_word,
		    value, why);
}

/* A text of a form of its own is checked even where it must not stand. */
static bool
stmt_has_form(const struct option *op)
{
	return op->op_type == OPTION_HEADER || op->op_type == OPTION_LABEL ||
	    op->op_type == OPTION_LOWER || op->op_type == OPTION_MILLI;
}

void
stmt_text(struct stmt_ctx *sx, struct conf_pos pos, const char *name,
    const char *value)
{
	const struct option	*op = stmt_find(sx->sx_table, name);

	if (op != NULL && stmt_has_form(op))
		stmt_text_check(sx, pos, op, value);
	if (stmt_row(sx, pos, name) == NULL)
		return;
	if (!option_is_text(op)) {
		stmt_word(sx, pos, op, value);
		return;
	}
	if (!stmt_has_form(op))
		stmt_text_check(sx, pos, op, value);
	*option_text(op, sx->sx_object) = value;
}

void
stmt_number(struct stmt_ctx *sx, struct conf_pos pos, const char *name,
    int64_t value)
{
	const struct option	*op;
	char			 got[VALUE_STRLEN], min[VALUE_STRLEN];
	char			 max[VALUE_STRLEN];

	if ((op = stmt_row(sx, pos, name)) == NULL || value == VALUE_BAD)
		return;
	if (option_in_range(op, (uint64_t)value))
		option_set_number(op, sx->sx_object, (uint64_t)value);
	else
		conf_error(sx->sx_parse, pos,
		    "%s %s: must be between %s and %s", name,
		    value_format(op->op_type, (uint64_t)value, got),
		    value_format(op->op_type, op->op_min, min),
		    value_format(op->op_type, op->op_max, max));
}

/* The row of what and name: `limit sessions' and its like are one each. */
const struct option *
stmt_pair_row(struct stmt_ctx *sx, struct conf_pos pos, const char *what,
    const char *name)
{
	const struct option	*op;
	size_t			 len = strlen(what);
	char			 list[128] = "";

	for (op = sx->sx_table; op->op_type != OPTION_END; op++) {
		if (strncmp(op->op_word, what, len) != 0)
			continue;
		if (strcmp(op->op_word + len, name) == 0)
			return op;
		if (list[0] != '\0')
			strlcat(list, ", ", sizeof(list));
		strlcat(list, op->op_word + len, sizeof(list));
	}
	conf_error(sx->sx_parse, pos, "%s\"%s\": must be one of %s", what,
	    name, list);
	return NULL;
}

/* A time that can be left out by its word. */
void
stmt_off(struct stmt_ctx *sx, struct conf_pos pos, const char *name,
    const char *value)
{
	const struct option	*op;

	if ((op = stmt_row(sx, pos, name)) == NULL)
		return;
	if (op->op_words != NULL && strcmp(op->op_words[0], value) == 0)
		option_set_number(op, sx->sx_object, 0);
	else
		conf_error(sx->sx_parse, pos, "%s \"%s\": must be a time%s%s",
		    name, value, op->op_words != NULL ? " or " : "",
		    op->op_words != NULL ? op->op_words[0] : "");
}

void
stmt_flag(struct stmt_ctx *sx, struct conf_pos pos, const char *name)
{
	const struct option	*op;

	if ((op = stmt_row(sx, pos, name)) != NULL)
		option_set_number(op, sx->sx_object, 1);
}

/* A program is run by its absolute name: there is no PATH to search. */
void
stmt_words(struct stmt_ctx *sx, struct conf_pos pos, const char *name,
    struct conf_words *words)
{
	struct parse	*ps = sx->sx_parse;
	const char	*program, *why;

	if (stmt_row(sx, pos, name) != NULL) {
		program = TAILQ_FIRST(&ps->ps_words)->wd_text;
		if ((why = value_path_error(program)) != NULL)
			conf_error(ps, pos, "%s \"%s\": %s", name, program,
			    why);
		TAILQ_CONCAT(words, &ps->ps_words, wd_entry);
	}
	conf_lists_reset(ps);
}

static void
stmt_pair_check(struct parse *ps, const char *name, bool variable,
    const struct conf_pair *pr)
{
	const struct conf_pair	*other;
	const char		*why;

	why = variable ? name_variable_error(pr->pr_key) :
	    name_error(pr->pr_key);
	if (why != NULL)
		conf_error(ps, pr->pr_pos, "%s \"%s\": %s", name, pr->pr_key,
		    why);
	TAILQ_FOREACH(other, &ps->ps_pairs, pr_entry) {
		if (other == pr)
			return;
		if (strcmp(other->pr_key, pr->pr_key) == 0)
			conf_error(ps, pr->pr_pos, "%s \"%s\" is given "
			    "twice", name, pr->pr_key);
	}
}

/* The pairs that were just read: names, duplicates, number. */
void
stmt_pairs_check(struct parse *ps, const char *name, bool variables)
{
	const struct conf_pair	*pr;
	unsigned int		 n = 0;

	TAILQ_FOREACH(pr, &ps->ps_pairs, pr_entry) {
		if (++n > PAIRS_MAX) {
			conf_error(ps, pr->pr_pos, "%s: more than %d entries",
			    name, PAIRS_MAX);
			return;
		}
		stmt_pair_check(ps, name, variables, pr);
	}
}

void
stmt_variables(struct stmt_ctx *sx, struct conf_pos pos, const char *name,
    struct conf_pairs *pairs)
{
	struct parse	*ps = sx->sx_parse;

	if (stmt_row(sx, pos, name) != NULL) {
		stmt_pairs_check(ps, name, true);
		TAILQ_CONCAT(pairs, &ps->ps_pairs, pr_entry);
	}
	conf_lists_reset(ps);
}

/* Keys and values whose form is judged when the block is whole. */
void
stmt_pairs(struct stmt_ctx *sx, struct conf_pos pos, const char *name)
{
	struct parse		*ps = sx->sx_parse;
	const struct option	*op;
	struct conf_pairs	*pairs;

	if ((op = stmt_row(sx, pos, name)) != NULL) {
		pairs = (void *)((char *)sx->sx_object + op->op_slot);
		TAILQ_CONCAT(pairs, &ps->ps_pairs, pr_entry);
	}
	conf_lists_reset(ps);
}

void
stmt_names(struct stmt_ctx *sx, struct conf_pos pos, const char *name)
{
	struct parse		*ps = sx->sx_parse;
	const struct option	*op;
	struct conf_words	*words;

	if ((op = stmt_row(sx, pos, name)) != NULL) {
		words = (void *)((char *)sx->sx_object + op->op_slot);
		TAILQ_CONCAT(words, &ps->ps_words, wd_entry);
	}
	conf_lists_reset(ps);
}
