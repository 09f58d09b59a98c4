/* SPDX-License-Identifier: ISC */

/*
 * egressd-kubeconfig runs this: one context of several files, as kubectl(1)
 * merges them: of each name, and of the current context, the first file that
 * has it counts.  What a member has to be is checked where it is used, and
 * what we do not honour is refused if it would change who we are.
 */

#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "kubeconfig.h"

#define PLUGIN_GROUP	"client.authentication.k8s.io/"

/* ---- members ---- */

static const struct node *
member(const struct node *map, const char *key)
{
	const struct node	*nd;

	if (map == NULL)
		return NULL;
	TAILQ_FOREACH(nd, &map->nd_children, nd_entry)
		if (strcmp(nd->nd_key, key) == 0)
			return nd;
	return NULL;
}

/* Nothing, null and ~ are how YAML leaves a value out. */
static bool
is_null(const struct node *nd)
{
	return nd == NULL || (nd->nd_kind == NODE_TEXT && !nd->nd_quoted &&
	    (nd->nd_len == 0 || strcmp(nd->nd_text, "null") == 0 ||
	    strcmp(nd->nd_text, "~") == 0));
}

static const struct node *
member_kind(const struct node *map, const char *key, enum node_kind kind)
{
	static const char *const	 kinds[] = {
		[NODE_TEXT] = "text", [NODE_LIST] = "a list",
		[NODE_MAP] = "a map"
	};
	const struct node		*nd = member(map, key);

	if (is_null(nd))
		return NULL;
	if (nd->nd_kind != kind)
		fail(nd->nd_file, nd->nd_line, "%s: must be %s", key,
		    kinds[kind]);
	return nd;
}

static const struct node *
member_text(const struct node *map, const char *key)
{
	const struct node	*nd = member_kind(map, key, NODE_TEXT);

	return nd == NULL || nd->nd_len == 0 ? NULL : nd;
}

static bool
member_true(const struct node *map, const char *key)
{
	const struct node	*nd = member_text(map, key);

	if (nd == NULL || strcmp(nd->nd_text, "false") == 0)
		return false;
	if (nd->nd_quoted || strcmp(nd->nd_text, "true") != 0)
		fail(nd->nd_file, nd->nd_line, "%s: must be true or false",
		    key);
	return true;
}

/* ---- names ---- */

/* The map called `inner' of the entry of that name in a list. */
static const struct node *
named_in(const struct node *root, const char *list, const char *inner,
    const char *name)
{
	const struct node	*nd, *found = NULL, *text;

	if ((nd = member_kind(root, list, NODE_LIST)) == NULL)
		return NULL;
	TAILQ_FOREACH(nd, &nd->nd_children, nd_entry) {
		if (nd->nd_kind != NODE_MAP)
			fail(nd->nd_file, nd->nd_line, "%s: must have maps",
			    list);
		text = member_text(nd, "name");
		if (text == NULL || strcmp(text->nd_text, name) != 0)
			continue;
		if (found != NULL)
			fail(nd->nd_file, text->nd_line, "%s: the name is "
			    "given twice", list);
		found = nd;
	}
	if (found == NULL)
		return NULL;
	nd = member_kind(found, inner, NODE_MAP);
	/* A user may have nothing at all. */
	return nd == NULL ? found : nd;
}

static const struct node *
named(struct node **roots, unsigned int n, const char *list, const char *inner,
    const struct node *name)
{
	const struct node	*nd;
	unsigned int		 i;

	for (i = 0; i < n; i++)
		if ((nd = named_in(roots[i], list, inner,
		    name->nd_text)) != NULL)
			return nd;
	fail(name->nd_file, name->nd_line, "%s \"%.64s\" is not in the file",
	    inner, name->nd_text);
}

/* ---- answers ---- */

static void
say_member(const struct node *map, const char *key)
{
	const struct node	*nd = member_text(map, key);

	if (nd != NULL)
		say(key, nd->nd_file, nd->nd_text, nd->nd_len);
}

/* A file, unless its bytes are here. */
static bool
say_data(const struct node *map, const char *key)
{
	const struct node	*nd;
	char			 data_key[64];
	char			*bytes;
	long			 n;

	strlcpy(data_key, key, sizeof(data_key));
	strlcat(data_key, "-data", sizeof(data_key));
	if ((nd = member_text(map, data_key)) == NULL) {
		say_member(map, key);
		return member_text(map, key) != NULL;
	}
	bytes = must(malloc(nd->nd_len / 4 * 3 + 4));
	if ((n = base64_decode(nd->nd_text, nd->nd_len, bytes)) <= 0)
		fail(nd->nd_file, nd->nd_line, "%s: not base64", data_key);
	say(data_key, nd->nd_file, bytes, (size_t)n);
	return true;
}

static void
answer_cluster(const struct node *cluster)
{
	if (member_text(cluster, "server") == NULL)
		fail(cluster->nd_file, cluster->nd_line, "cluster: has no "
		    "server");
	say_member(cluster, "server");
	say_data(cluster, "certificate-authority");
	say_member(cluster, "tls-server-name");
	say_member(cluster, "proxy-url");
	if (member_true(cluster, "insecure-skip-tls-verify"))
		say_text("insecure", cluster->nd_file, "");
}

static void
answer_exec_env(const struct node *exec)
{
	const struct node	*nd = member_kind(exec, "env", NODE_LIST);
	const struct node	*name, *value;
	char			*text;
	size_t			 len;

	if (nd == NULL)
		return;
	TAILQ_FOREACH(nd, &nd->nd_children, nd_entry) {
		if (nd->nd_kind != NODE_MAP ||
		    (name = member_text(nd, "name")) == NULL ||
		    strchr(name->nd_text, '=') != NULL)
			fail(nd->nd_file, nd->nd_line, "env: must have names "
			    "and values");
		value = member_text(nd, "value");
		len = name->nd_len + 2 + (value == NULL ? 0 : value->nd_len);
		text = must(malloc(len));
		strlcpy(text, name->nd_text, len);
		strlcat(text, "=", len);
		strlcat(text, value == NULL ? "" : value->nd_text, len);
		say_text("exec-env", nd->nd_file, text);
	}
}

static void
answer_exec_args(const struct node *exec)
{
	const struct node	*nd = member_kind(exec, "args", NODE_LIST);

	if (nd == NULL)
		return;
	TAILQ_FOREACH(nd, &nd->nd_children, nd_entry) {
		if (nd->nd_kind != NODE_TEXT)
			fail(nd->nd_file, nd->nd_line, "args: must be texts");
		say("exec-arg", nd->nd_file, nd->nd_text, nd->nd_len);
	}
}

static void
answer_exec(const struct node *exec)
{
	const struct node	*version = member_text(exec, "apiVersion");
	const struct node	*mode = member_text(exec, "interactiveMode");

	if (member_text(exec, "command") == NULL)
		fail(exec->nd_file, exec->nd_line, "exec: has no command");
	if (version == NULL || (strcmp(version->nd_text, PLUGIN_GROUP
	    "v1") != 0 && strcmp(version->nd_text, PLUGIN_GROUP
	    "v1beta1") != 0))
		fail(exec->nd_file, version == NULL ? exec->nd_line :
		    version->nd_line, "exec: apiVersion must be "
		    PLUGIN_GROUP "v1 or v1beta1");
	if (mode != NULL && strcmp(mode->nd_text, "Always") == 0)
		fail(mode->nd_file, mode->nd_line, "exec: interactiveMode "
		    "Always: a daemon has no terminal");
	say("exec-command", exec->nd_file, member_text(exec,
	    "command")->nd_text, member_text(exec, "command")->nd_len);
	say("exec-version", exec->nd_file, version->nd_text, version->nd_len);
	answer_exec_args(exec);
	answer_exec_env(exec);
	if (member_true(exec, "provideClusterInfo"))
		say_text("exec-cluster", exec->nd_file, "");
}

/* What would make us somebody else if it were left out. */
static void
refuse_others(const struct node *user)
{
	static const char *const	 keys[] = { "auth-provider", "as",
	    "as-uid", "as-groups", "as-user-extra" };
	const struct node		*nd;
	size_t				 i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!is_null(nd = member(user, keys[i])))
			fail(nd->nd_file, nd->nd_line, "%s: not supported",
			    keys[i]);
}

static void
answer_user(const struct node *user)
{
	const struct node	*exec = member_kind(user, "exec", NODE_MAP);
	bool			 token, basic, cert, key;

	refuse_others(user);
	token = member_text(user, "token") != NULL ||
	    member_text(user, "tokenFile") != NULL;
	basic = member_text(user, "username") != NULL ||
	    member_text(user, "password") != NULL;
	if (token + basic + (exec != NULL) > 1)
		fail(user->nd_file, user->nd_line, "user: more than one of "
		    "token, username and exec");
	cert = say_data(user, "client-certificate");
	key = say_data(user, "client-key");
	if (cert != key)
		fail(user->nd_file, user->nd_line, "user: client-certificate "
		    "and client-key go together");
	/* The file is read again and again: it is the newer of the two. */
	if (member_text(user, "tokenFile") == NULL)
		say_member(user, "token");
	say_member(user, "tokenFile");
	if (basic && (member_text(user, "username") == NULL ||
	    member_text(user, "password") == NULL))
		fail(user->nd_file, user->nd_line, "user: username and "
		    "password go together");
	say_member(user, "username");
	say_member(user, "password");
	if (exec != NULL)
		answer_exec(exec);
}

/* ---- the context ---- */

static const struct node *
current(struct node **roots, unsigned int n)
{
	const struct node	*nd;
	unsigned int		 i;

	for (i = 0; i < n; i++)
		if ((nd = member_text(roots[i], "current-context")) != NULL)
			return nd;
	fail(0, 0, "no current-context, and no context was asked for");
}

void
answer(struct node **roots, unsigned int n, const char *asked)
{
	struct node		 wish = {
		.nd_text = asked,
		.nd_len = strlen(asked)
	};
	const struct node	*context, *cluster, *user;
	unsigned int		 i;

	for (i = 0; i < n; i++) {
		if (roots[i] == NULL || is_null(roots[i]))
			roots[i] = NULL;
		else if (roots[i]->nd_kind != NODE_MAP)
			fail(i, roots[i]->nd_line, "not a kubeconfig");
	}
	context = named(roots, n, "contexts", "context",
	    asked[0] != '\0' ? &wish : current(roots, n));
	if ((cluster = member_text(context, "cluster")) == NULL)
		fail(context->nd_file, context->nd_line, "context: has no "
		    "cluster");
	answer_cluster(named(roots, n, "clusters", "cluster", cluster));
	say_member(context, "namespace");
	if ((user = member_text(context, "user")) != NULL)
		answer_user(named(roots, n, "users", "user", user));
}
