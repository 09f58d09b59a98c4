/* SPDX-License-Identifier: ISC */

/*
 * What a sandbox of the kind kubernetes says of its pod, judged when its block
 * is whole: each value by itself, then what excludes or wants something else.
 */

#include <ctype.h>
#include <string.h>

#include "confparse.h"

#define ID_MAX		255	/* bytes, as of a session's id */
#define PAIRS_MAX	256
#define MS_PER_S	1000

void
conf_pod_begin(struct conf_sandbox *sb)
{
	struct conf_pod	*pd = &sb->sb_pod;

	TAILQ_INIT(&pd->pd_pull_secrets);
	TAILQ_INIT(&pd->pd_labels);
	TAILQ_INIT(&pd->pd_annotations);
	TAILQ_INIT(&pd->pd_requests);
	TAILQ_INIT(&pd->pd_limits);
	TAILQ_INIT(&pd->pd_node_selector);
	TAILQ_INIT(&pd->pd_tolerations);
	TAILQ_INIT(&pd->pd_gate_requests);
	TAILQ_INIT(&pd->pd_gate_limits);
	TAILQ_INIT(&pd->pd_gate_resolvers);
	pd->pd_network_policy = true;
	pd->pd_image = CONF_IMAGE;
	pd->pd_git_timeout = 300 * MS_PER_S;
	pd->pd_heartbeat = 60 * MS_PER_S;
	pd->pd_ready_timeout = 120 * MS_PER_S;
	pd->pd_run_as_user = pd->pd_run_as_group = CONF_UNSAID;
	pd->pd_fs_group = CONF_UNSAID;
}

static const char *
id_error(const char *id)
{
	const char	*p;

	if (strlen(id) > ID_MAX)
		return "has more than 255 bytes";
	for (p = id; *p != '\0'; p++)
		if (!isprint((unsigned char)*p))
			return "must be of printable characters";
	return NULL;
}

/* Where a volume is mounted; the API takes no colon there. */
static const char *
cwd_error(const char *path)
{
	if (path[strspn(path, "/")] == '\0')
		return "must not be the whole file system";
	if (strchr(path, ':') != NULL)
		return "must not contain a colon";
	if (strstr(path, "/../") != NULL || (strlen(path) > 2 &&
	    strcmp(path + strlen(path) - 3, "/..") == 0))
		return "must not contain ..";
	return NULL;
}

static void
check_text(struct parse *ps, const char *name, const char *value,
    const char *(*error)(const char *))
{
	const char	*why;

	if (value != NULL && value[0] != '\0' &&
	    stmt_isset(&ps->ps_block, name) && (why = error(value)) != NULL)
		conf_error(ps, stmt_pos(&ps->ps_block, name), "%s \"%s\": %s",
		    name, value, why);
}

static void
check_names(struct parse *ps, const char *name, const struct conf_words *list,
    const char *(*error)(const char *))
{
	const struct conf_word	*wd, *other;
	const char		*why;
	unsigned int		 n = 0;

	TAILQ_FOREACH(wd, list, wd_entry) {
		if (++n > PAIRS_MAX) {
			conf_error(ps, wd->wd_pos, "%s: more than %d entries",
			    name, PAIRS_MAX);
			return;
		}
		if ((why = error(wd->wd_text)) != NULL)
			conf_error(ps, wd->wd_pos, "%s \"%s\": %s", name,
			    wd->wd_text, why);
		for (other = TAILQ_FIRST(list); other != wd;
		    other = TAILQ_NEXT(other, wd_entry))
			if (strcmp(other->wd_text, wd->wd_text) == 0)
				conf_error(ps, wd->wd_pos, "%s \"%s\" is "
				    "given twice", name, wd->wd_text);
	}
}

/* By these k8sd knows its pods again. */
static bool
is_ours(const char *key)
{
	const char	*slash = strchr(key, '/');
	size_t		 len = slash == NULL ? 0 : (size_t)(slash - key);

	return (len >= 10 && memcmp(slash - 10, "egressd.io", 10) == 0 &&
	    (len == 10 || slash[-11] == '.')) ||
	    strcmp(key, "app.kubernetes.io/managed-by") == 0;
}

static void
check_pair(struct parse *ps, const char *name, const struct conf_pair *pr,
    const char *(*error)(const char *))
{
	const char	*why;

	if ((why = value_qualified_error(pr->pr_key)) != NULL)
		conf_error(ps, pr->pr_pos, "%s \"%s\": %s", name, pr->pr_key,
		    why);
	else if (is_ours(pr->pr_key))
		conf_error(ps, pr->pr_pos, "%s \"%s\": egressd sets it by "
		    "itself", name, pr->pr_key);
	if (error != NULL && (why = error(pr->pr_value)) != NULL)
		conf_error(ps, pr->pr_pos, "%s \"%s\" \"%s\": %s", name,
		    pr->pr_key, pr->pr_value, why);
}

static void
check_pairs(struct parse *ps, const char *name, const struct conf_pairs *list,
    const char *(*error)(const char *))
{
	const struct conf_pair	*pr, *other;
	unsigned int		 n = 0;

	TAILQ_FOREACH(pr, list, pr_entry) {
		if (++n > PAIRS_MAX) {
			conf_error(ps, pr->pr_pos, "%s: more than %d entries",
			    name, PAIRS_MAX);
			return;
		}
		check_pair(ps, name, pr, error);
		for (other = TAILQ_FIRST(list); other != pr;
		    other = TAILQ_NEXT(other, pr_entry))
			if (strcmp(other->pr_key, pr->pr_key) == 0)
				conf_error(ps, pr->pr_pos, "%s \"%s\" is "
				    "given twice", name, pr->pr_key);
	}
}

/* A server that a pod can reach; loopback there is the gate's. */
static const char *
gate_resolver_error(const char *text)
{
	struct addr	 ad;

	if (addr_parse(text, &ad) == -1)
		return "not an address";
	return addr_classify(&ad) == ADDR_LOOPBACK ?
	    "must not be the loopback" : NULL;
}

/* The first option that only a gate makes use of, or NULL. */
static const char *
ungated_error(const struct stmt_ctx *sx)
{
	static const char *const	 gates[] = { "gate-requests",
	    "gate-limits", "gate-resolver", "trust-overlay",
	    "network-policy" };
	size_t				 i;

	for (i = 0; i < sizeof(gates) / sizeof(gates[0]); i++)
		if (stmt_isset(sx, gates[i]))
			return gates[i];
	return NULL;
}

/*
 * A workspace that is not root cannot change the bundles of its image, which
 * then have ours over them; one that is root has them changed by box.
 */
static void
check_gate(struct parse *ps, struct conf_sandbox *sb)
{
	struct conf_pod	*pd = &sb->sb_pod;
	const char	*word;

	check_names(ps, "gate-resolver", &pd->pd_gate_resolvers,
	    gate_resolver_error);
	check_pairs(ps, "gate-requests", &pd->pd_gate_requests,
	    value_quantity_error);
	check_pairs(ps, "gate-limits", &pd->pd_gate_limits,
	    value_quantity_error);
	if (!stmt_isset(&ps->ps_block, "trust-overlay"))
		pd->pd_overlay = pd->pd_run_as_user != CONF_UNSAID &&
		    pd->pd_run_as_user != 0;
	if (sb->sb_ungated && (word = ungated_error(&ps->ps_block)) != NULL)
		conf_error(ps, stmt_pos(&ps->ps_block, word), "%s: sandbox "
		    "\"%s\" is ungated", word, sb->sb_name);
}

static const char *
together_error(const struct stmt_ctx *sx, const struct conf_pod *pd)
{
	if (pd->pd_claim != NULL && stmt_isset(sx, "workspace size"))
		return "workspace size and workspace claim exclude each other";
	if (pd->pd_git == NULL && pd->pd_git_ref != NULL)
		return "ref wants workspace git";
	if (pd->pd_git == NULL && stmt_isset(sx, "workspace timeout"))
		return "workspace timeout wants workspace git";
	return NULL;
}

void
conf_pod_check(struct parse *ps)
{
	struct conf_sandbox	*sb = ps->ps_sandbox;
	struct conf_pod		*pd = &sb->sb_pod;
	const char		*why;

	check_text(ps, "id", pd->pd_id, id_error);
	check_text(ps, "cwd", sb->sb_cwd, cwd_error);
	check_text(ps, "image", pd->pd_image, value_image_error);
	check_text(ps, "box-image", pd->pd_box_image, value_image_error);
	check_text(ps, "workspace claim", pd->pd_claim, value_subdomain_error);
	check_text(ps, "ref", pd->pd_git_ref, value_ref_error);
	check_text(ps, "service-account", pd->pd_account,
	    value_subdomain_error);
	check_text(ps, "runtime-class", pd->pd_runtime_class,
	    value_subdomain_error);
	check_names(ps, "pull-secrets", &pd->pd_pull_secrets,
	    value_subdomain_error);
	check_names(ps, "tolerations", &pd->pd_tolerations, value_taint_error);
	check_pairs(ps, "labels", &pd->pd_labels, value_labelled_error);
	check_pairs(ps, "annotations", &pd->pd_annotations, NULL);
	check_pairs(ps, "requests", &pd->pd_requests, value_quantity_error);
	check_pairs(ps, "limits", &pd->pd_limits, value_quantity_error);
	check_pairs(ps, "node-selector", &pd->pd_node_selector,
	    value_labelled_error);
	pd->pd_delete_said = stmt_isset(&ps->ps_block, "delete on stop");
	pd->pd_pull_said = stmt_isset(&ps->ps_block, "pull-policy");
	if ((why = together_error(&ps->ps_block, pd)) != NULL)
		conf_error(ps, sb->sb_pos, "sandbox \"%s\": %s", sb->sb_name,
		    why);
	check_gate(ps, sb);
}
