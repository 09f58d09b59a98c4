/* SPDX-License-Identifier: ISC */

/*
 * egressctl: clusters: what the daemon may do there, as the API server says,
 * and the Role that it needs, for which nobody is asked.
 */

#include <stdio.h>
#include <string.h>

#include "egressctl.h"
#include "offline/offline.h"
#include "pods.h"
#include "rights.h"
#include "show.h"

static const char	*name;		/* of a sandbox or a cluster */

/* ---- check -------------------------------------------------------------- */

static void
check_ask(cJSON *request)
{
	cJSON_AddStringToObject(request, "name", name);
}

static void
check_put(const cJSON *answer)
{
	static const struct column	 columns[] = {
		{ "CHECK",	"what",		NULL },
		{ "STATE",	"state",	NULL },
		{ "",		"text",		NULL },
	};

	table_put(json_get(answer, "checks"), columns,
	    sizeof(columns) / sizeof(columns[0]));
}

/* ---- rbac --------------------------------------------------------------- */

struct right {
	const char	*ri_group;
	const char	*ri_resource;
	const char	*ri_subresource;
	const char	*ri_verb;
};

#define RIGHT_ROW(group, resource, subresource, verb)			\
	{ group, resource, subresource, verb },

static const struct right rights[] = {
	KUBE_RIGHTS(RIGHT_ROW)
	KUBE_GATE_RIGHTS(RIGHT_ROW)
};

#define RIGHT_ONE(...)	+ 1
#define RIGHTS		(sizeof(rights) / sizeof(rights[0]))
#define RIGHTS_UNGATED	(0 KUBE_RIGHTS(RIGHT_ONE))

static int
same_object(const struct right *a, const struct right *b)
{
	return strcmp(a->ri_group, b->ri_group) == 0 &&
	    strcmp(a->ri_resource, b->ri_resource) == 0 &&
	    strcmp(a->ri_subresource, b->ri_subresource) == 0;
}

/* Verbs of one object stand together in the list, and in one rule. */
static void
put_rules(int gated)
{
	const struct right	*ri;
	const struct right	*end = rights + (gated ? RIGHTS :
	    RIGHTS_UNGATED);

	for (ri = rights; ri < end; ri++) {
		if (ri > rights && same_object(ri - 1, ri))
			printf(", \"%s\"", ri->ri_verb);
		else
			printf("- apiGroups: [\"%s\"]\n"
			    "  resources: [\"%s%s%s\"]\n"
			    "  verbs: [\"%s\"", ri->ri_group, ri->ri_resource,
			    *ri->ri_subresource != '\0' ? "/" : "",
			    ri->ri_subresource, ri->ri_verb);
		if (ri + 1 == end || !same_object(ri, ri + 1))
			puts("]");
	}
}

static void
put_head(const char *kind, const char *namespace)
{
	printf("apiVersion: rbac.authorization.k8s.io/v1\n"
	    "kind: %s\n"
	    "metadata:\n"
	    "  name: egressd\n"
	    "  namespace: %s\n", kind, namespace);
}

/* Namespaces are DNS labels by egressd.conf(5): no quotes are needed. */
static void
put_role(const char *namespace, int gated)
{
	put_head("Role", namespace);
	puts("rules:");
	put_rules(gated);
	puts("---");
	put_head("RoleBinding", namespace);
	printf("roleRef:\n"
	    "  apiGroup: rbac.authorization.k8s.io\n"
	    "  kind: Role\n"
	    "  name: egressd\n"
	    "subjects:\n"
	    "- kind: ServiceAccount\n"
	    "  name: egressd\n"
	    "  namespace: %s\n", namespace);
}

/* A sandbox of the configuration, to be freed; NULL after saying why. */
const struct conf_sandbox *
cluster_sandbox(const struct invocation *in, const char *of,
    struct config **conf)
{
	const struct conf_sandbox	*sb;

	if ((*conf = offline_conf(in)) == NULL)
		return NULL;
	if ((sb = conf_sandbox_find(*conf, of)) == NULL)
		fputs("egressctl: the configuration has no such sandbox: ",
		    stderr);
	else if (sb->sb_kind != SANDBOX_KUBERNETES)
		fputs("egressctl: not a kubernetes sandbox: ", stderr);
	else
		return sb;
	visible_put(stderr, of, VISIBLE_TEXT);
	fputc('\n', stderr);
	conf_free(*conf);
	return NULL;
}

static int
rbac_run(const struct invocation *in)
{
	const struct conf_sandbox	*sb;
	struct config			*conf;

	if (name == NULL) {
		put_role("default", 1);
		return output_finish(0);
	}
	if ((sb = cluster_sandbox(in, name, &conf)) == NULL)
		return output_finish(EXIT_REFUSED);
	put_role(sb->sb_namespace != NULL ? sb->sb_namespace : "default",
	    !sb->sb_ungated);
	conf_free(conf);
	return output_finish(0);
}

static const struct command command_check = {
	.co_synopsis = "cluster check SANDBOX | CLUSTER",
	.co_help = "see whether a cluster can be reached, and what is "
	    "permitted there",
	.co_run = exchange_run,
	.co_op = "cluster.check",
	.co_ask = check_ask,
	.co_show = check_put,
	.co_slow = 1,
};

static const struct command command_rbac = {
	.co_synopsis = "cluster rbac [SANDBOX]",
	.co_help = "print the Role that the daemon needs, and its binding",
	.co_run = rbac_run,
};

static const struct token t_check[] = {
	{ WORD, "sandbox or cluster", NULL, NULL, &name, NULL },
	{ 0 }
};

static const struct token t_rbac[] = {
	{ .tk_type = END },
	{ WORD, "sandbox", NULL, NULL, &name, NULL },
	{ 0 }
};

static const struct token t_cluster[] = {
	{ KEYWORD, "check",	t_check,	&command_check, NULL, NULL },
	{ KEYWORD, "manifest",	t_cluster_manifest,
	    &command_cluster_manifest, NULL, NULL },
	{ KEYWORD, "rbac",	t_rbac,		&command_rbac, NULL, NULL },
	{ 0 }
};

const struct command command_cluster = {
	.co_name = "cluster",
	.co_tokens = t_cluster,
};
