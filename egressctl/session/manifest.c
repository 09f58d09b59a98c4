/* SPDX-License-Identifier: ISC */

/*
 * egressctl: the pod of a sandbox, and all that comes with it, as the daemon
 * would create it; made from the configuration, for review.  Nobody is asked.
 */

#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egressctl.h"
#include "gate.h"
#include "manifest.h"
#include "owned.h"
#include "log.h"
#include "offline/offline.h"
#include "pods.h"

#define SYSTEM_BUNDLE	"/etc/ssl/certs/ca-certificates.crt"
#define TRUST_MAX	(768 * 1024)
#define MERGE_MAX	(64 * 1024)
#define SERVERS_MAX	8
#define RESOLVERS_LEN	1024

static const char	*sandbox;
static const char	*id = "example";	/* of a session */
static int		 native = 1;	/* a cluster that knows sidecars */

/* ---- the block, as k8sd has it ---- */

static char *
text(const char *value)
{
	char	*p;

	if ((p = strdup(value != NULL ? value : "")) == NULL)
		fatal("%s", __func__);
	return p;
}

static void
pairs(struct pairs *to, const struct conf_pairs *from)
{
	const struct conf_pair	*pr;
	struct pair		*pa;

	TAILQ_INIT(to);
	TAILQ_FOREACH(pr, from, pr_entry) {
		if ((pa = calloc(1, sizeof(*pa))) == NULL)
			fatal("%s", __func__);
		pa->pa_key = text(pr->pr_key);
		pa->pa_value = text(pr->pr_value);
		TAILQ_INSERT_TAIL(to, pa, pa_entry);
	}
}

static void
names(struct pairs *to, const struct conf_words *from)
{
	const struct conf_word	*wd;
	struct pair		*pa;

	TAILQ_INIT(to);
	TAILQ_FOREACH(wd, from, wd_entry) {
		if ((pa = calloc(1, sizeof(*pa))) == NULL)
			fatal("%s", __func__);
		pa->pa_key = text(wd->wd_text);
		pa->pa_value = text("");
		TAILQ_INSERT_TAIL(to, pa, pa_entry);
	}
}

static void
block_lists(struct pod_conf *pc, const struct conf_sandbox *sb)
{
	const struct conf_pod	*pd = &sb->sb_pod;
	const struct conf_word	*wd;

	pairs(&pc->pc_env, &sb->sb_environment);
	pairs(&pc->pc_labels, &pd->pd_labels);
	pairs(&pc->pc_annotations, &pd->pd_annotations);
	pairs(&pc->pc_requests, &pd->pd_requests);
	pairs(&pc->pc_limits, &pd->pd_limits);
	pairs(&pc->pc_node_selector, &pd->pd_node_selector);
	pairs(&pc->pc_gate_requests, &pd->pd_gate_requests);
	pairs(&pc->pc_gate_limits, &pd->pd_gate_limits);
	names(&pc->pc_pull_secrets, &pd->pd_pull_secrets);
	TAILQ_INIT(&pc->pc_tolerations);
	TAILQ_FOREACH(wd, &pd->pd_tolerations, wd_entry)
		toleration_add(&pc->pc_tolerations, wd->wd_text);
}

/* In the largest unit that says it exactly, as the parent does. */
static char *
size_text(uint64_t size)
{
	static const char *const	 units[] = { "", "Ki", "Mi", "Gi" };
	char				 out[32];
	size_t				 i = 0;

	if (size == 0)
		return text("");
	for (; i < 3 && size % 1024 == 0; i++)
		size /= 1024;
	snprintf(out, sizeof(out), "%llu%s", (unsigned long long)size,
	    units[i]);
	return text(out);
}

static void
block_texts(struct pod_conf *pc, const struct conf_sandbox *sb)
{
	static const char *const	 pull[] = { "Always", "IfNotPresent",
	    "Never" };
	const struct conf_pod		*pd = &sb->sb_pod;

	pc->pc_name = text(sb->sb_name);
	pc->pc_cluster = text(sb->sb_cluster_name);
	pc->pc_namespace = text(sb->sb_namespace);
	pc->pc_image = text(pd->pd_image);
	pc->pc_box_image = text(pd->pd_box_image);
	pc->pc_cwd = text(sb->sb_cwd != NULL ? sb->sb_cwd : CONF_POD_CWD);
	pc->pc_id = text(pd->pd_id);
	pc->pc_policy = text(sb->sb_policy_name);
	pc->pc_workspace_size = size_text(pd->pd_size);
	pc->pc_claim = text(pd->pd_claim);
	pc->pc_service_account = text(pd->pd_account);
	pc->pc_pull_policy = text(pd->pd_pull_said ? pull[pd->pd_pull_policy] :
	    NULL);
	pc->pc_runtime_class = text(pd->pd_runtime_class);
}

static int64_t
said(uint32_t number)
{
	return number == CONF_UNSAID ? -1 : (int64_t)number;
}

/* 0, or -1 after saying why. */
static int
block_merge(struct pod_conf *pc, const char *path)
{
	size_t	 len;
	FILE	*f;

	if (path == NULL)
		return 0;
	if ((f = fopen(path, "r")) == NULL) {
		perror(path);
		return -1;
	}
	if ((pc->pc_merge = calloc(1, MERGE_MAX + 1)) == NULL)
		fatal("%s", __func__);
	len = fread(pc->pc_merge, 1, MERGE_MAX, f);
	pc->pc_merge[len] = '\0';
	fclose(f);
	return 0;
}

static int
block(struct pod_conf *pc, const struct conf_sandbox *sb)
{
	const struct conf_pod	*pd = &sb->sb_pod;

	memset(pc, 0, sizeof(*pc));
	block_texts(pc, sb);
	block_lists(pc, sb);
	pc->pc_account_token = pd->pd_account_token;
	pc->pc_run_as_user = said(pd->pd_run_as_user);
	pc->pc_run_as_group = said(pd->pd_run_as_group);
	pc->pc_fs_group = said(pd->pd_fs_group);
	pc->pc_read_only_root = pd->pd_read_only_root;
	pc->pc_deadline_ms = sb->sb_deadline;
	pc->pc_ungated = sb->sb_ungated;
	pc->pc_overlay = pd->pd_overlay;
	pc->pc_network_policy = pd->pd_network_policy;
	return block_merge(pc, pd->pd_merge_file);
}

/* ---- what its gate is told ---- */

static void
server_add(struct conf_server *list, size_t *n, const struct addr *ad,
    uint16_t port, struct gate *ga)
{
	char	 address[ADDR_STRLEN];

	if (*n == SERVERS_MAX || addr_classify(ad) == ADDR_LOOPBACK)
		return;
	list[*n].sv_addr = *ad;
	list[(*n)++].sv_port = port;
	if (ga->ga_resolvers[0] != '\0')
		strlcat(ga->ga_resolvers, " ", RESOLVERS_LEN);
	strlcat(ga->ga_resolvers, addr_format(ad, address, sizeof(address)),
	    RESOLVERS_LEN);
}

/* Name servers of this machine may not be those of the daemon's. */
static size_t
servers(const struct config *conf, const struct conf_sandbox *sb,
    struct conf_server *list, struct gate *ga)
{
	const struct conf_endpoint	*ep;
	const struct conf_word		*wd;
	struct addr			 ad;
	size_t				 n = 0;

	TAILQ_FOREACH(wd, &sb->sb_pod.pd_gate_resolvers, wd_entry)
		if (addr_parse(wd->wd_text, &ad) == 0)
			server_add(list, &n, &ad, 53, ga);
	if (n == 0)
		TAILQ_FOREACH(ep, &conf->cf_resolvers, ep_entry)
			server_add(list, &n, &ep->ep_addr, ep->ep_port, ga);
	if (n == 0)
		fputs("egressctl: no resolver and no gate-resolver: the name "
		    "servers of the daemon's machine are missing here\n",
		    stderr);
	return n;
}

static int
trust_read(struct gate *ga, const char *path)
{
	FILE	*f;

	if ((f = fopen(path, "r")) == NULL) {
		perror(path);
		return -1;
	}
	if ((ga->ga_trust = malloc(TRUST_MAX)) == NULL)
		fatal("%s", __func__);
	ga->ga_trust_len = fread(ga->ga_trust, 1, TRUST_MAX, f);
	fclose(f);
	return 0;
}

static int
gate_make(struct gate *ga, const struct config *conf,
    const struct conf_sandbox *sb)
{
	struct conf_server	 list[SERVERS_MAX];
	size_t			 n;
	FILE			*f;

	memset(ga, 0, sizeof(*ga));
	if ((ga->ga_resolvers = calloc(1, RESOLVERS_LEN)) == NULL)
		fatal("%s", __func__);
	n = servers(conf, sb, list, ga);
	if ((f = open_memstream(&ga->ga_conf, &ga->ga_conf_len)) == NULL ||
	    conf_print_pod(conf, sb->sb_policy, list, n, f) == -1 ||
	    fclose(f) == EOF)
		fatal("%s", __func__);
	SHA256Data((const uint8_t *)ga->ga_conf, ga->ga_conf_len,
	    ga->ga_sha256);
	ga->ga_private = conf_policy_is_private(sb->sb_policy);
	return trust_read(ga, conf->cf_upstream_trust != NULL ?
	    conf->cf_upstream_trust : SYSTEM_BUNDLE);
}

/* ---- the list ---- */

/* A Secret of which people can read what is in it; it means the same. */
static void
secret_readable(cJSON *secret, const struct gate *ga)
{
	cJSON	*data;
	char	*trust;

	cJSON_DeleteItemFromObjectCaseSensitive(secret, "data");
	data = kj_object(secret, "stringData");
	kj_put(data, "egressd.conf", ga->ga_conf);
	if ((trust = strndup(ga->ga_trust, ga->ga_trust_len)) == NULL)
		fatal("%s", __func__);
	kj_put(data, "upstream.pem", trust);
	free(trust);
}

static void
items_put(cJSON *items, cJSON *pod, const struct pod_conf *pc,
    const struct gate *ga)
{
	cJSON	*object;

	cJSON_AddItemToArray(items, pod);
	if (pc->pc_ungated)
		return;
	object = owned_object(OWNED_SECRET, pod, "", ga);
	secret_readable(object, ga);
	cJSON_AddItemToArray(items, object);
	if (pc->pc_network_policy)
		cJSON_AddItemToArray(items, owned_object(OWNED_NETWORK, pod,
		    "", ga));
}

/* All that it has is this process's, and goes with it. */
static int
manifest_put(const struct config *conf, const struct conf_sandbox *sb)
{
	struct pod_conf	 pc;
	struct gate	 ga = { .ga_sha256 = "" };
	struct manifest	 mf = {
		.mf_conf = &pc,
		.mf_id = id,
		.mf_namespace = sb->sb_namespace != NULL ? sb->sb_namespace :
		    "default",
		.mf_owner = (uint32_t)getuid(),
		.mf_deadline_ms = sb->sb_deadline,
		.mf_sha256 = ga.ga_sha256,
		.mf_native = native,
	};
	cJSON		*list, *pod;
	char		 why[256], *out;

	if (block(&pc, sb) == -1 || (!sb->sb_ungated &&
	    gate_make(&ga, conf, sb) == -1))
		return EXIT_REFUSED;
	mf.mf_cwd = pc.pc_cwd;
	if (pc.pc_id[0] != '\0')
		mf.mf_id = pc.pc_id;
	if ((pod = manifest_new(&mf, why, sizeof(why))) == NULL) {
		fprintf(stderr, "egressctl: %s\n", why);
		return EXIT_REFUSED;
	}
	list = kj_object(NULL, NULL);
	kj_put(list, "apiVersion", "v1");
	kj_put(list, "kind", "List");
	items_put(kj_array(list, "items"), pod, &pc, &ga);
	if ((out = cJSON_Print(list)) == NULL)
		fatal("%s", __func__);
	puts(out);
	return 0;
}

static void
manifest_option(int ch, const char *value)
{
	if (ch == 'n')
		id = value;
	else
		native = 0;
}

static int
manifest_run(const struct invocation *in)
{
	const struct conf_sandbox	*sb;
	struct config			*conf;
	int				 status = EXIT_REFUSED;

	if ((sb = cluster_sandbox(in, sandbox, &conf)) == NULL)
		return EXIT_REFUSED;
	status = manifest_put(conf, sb);
	conf_free(conf);
	return output_finish(status);
}

const struct command command_cluster_manifest = {
	.co_synopsis = "cluster manifest [-o] [-n id] SANDBOX",
	.co_help = "print the pod of a sandbox and all that comes with it",
	.co_run = manifest_run,
	.co_options = "n:o",
	.co_option = manifest_option,
};

const struct token t_cluster_manifest[] = {
	{ WORD, "sandbox", NULL, NULL, &sandbox, NULL },
	{ 0 }
};
