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
 * The parent runs this: what each process is told of the configuration, and
 * no more than that.  Enumerations travel by their value in policy.h
 * or conf.h.
 */

#include <fcntl.h>
#include <stdint.h>

#include "parent.h"

static void
send_rule(struct ipc *ip, const struct rule *ru)
{
	const struct condition	*co;
	unsigned int		 kind;

	ipc_send(ip, -1, CONF_RULE, conf_rule, .index = ru->ru_index,
	    .kind = ru->ru_kind, .tcp = ru->ru_tcp, .scheme = ru->ru_scheme,
	    .to_private = ru->ru_to_private, .body = ru->ru_body,
	    .timeout_ms = ru->ru_timeout_ms, .cache = ru->ru_cache,
	    .ttl_ms = ru->ru_ttl_ms, .uses = ru->ru_uses,
	    .messages = ru->ru_messages);
	for (kind = 0; kind < COND_KIND_MAX; kind++)
		TAILQ_FOREACH(co, &ru->ru_conditions[kind], co_entry)
			ipc_send(ip, -1, CONF_COND, conf_cond, .kind = kind,
			    .first = co->co_first, .last = co->co_last,
			    .text = co->co_text, .value = co->co_value);
}

static void
send_environment(struct ipc *ip, const struct conf_variables *list)
{
	const struct conf_variable	*va;

	TAILQ_FOREACH(va, list, va_entry)
		ipc_send(ip, -1, CONF_ENVIRONMENT, conf_environment,
		    .pass = va->va_pass, .pattern = va->va_pattern);
}

static void
send_policy(struct ipc *ip, const struct conf_policy *conf)
{
	struct policy	*pl = conf_policy_compile(conf);
	uint32_t	 i;

	ipc_send(ip, -1, CONF_POLICY, conf_policy, .name = pl->pl_name,
	    .allow = pl->pl_allow, .refuse = pl->pl_refuse,
	    .on_full = pl->pl_full, .quota_out = pl->pl_quota_out,
	    .pause_denials = pl->pl_pause_denials,
	    .pause_ms = pl->pl_pause_ms);
	for (i = 0; i < pl->pl_nrules; i++)
		send_rule(ip, pl->pl_rules[i]);
	policy_free(pl);
}

/* Records and questions hide the same. */
static void
send_redacts(struct ipc *ip, const struct conf_policy *pl)
{
	const struct conf_redact	*rd;

	TAILQ_FOREACH(rd, &pl->pl_redact, rd_entry)
		ipc_send(ip, -1, CONF_REDACT, conf_redact,
		    .policy = pl->pl_name, .kind = rd->rd_kind,
		    .show = rd->rd_show, .name = rd->rd_name);
}

static void
send_sessions(struct ipc *ip, const struct config *conf)
{
	const struct conf_session	*ss;

	TAILQ_FOREACH(ss, &conf->cf_sessions, ss_entry)
		ipc_send(ip, -1, CONF_SESSION, conf_session,
		    .session = ss->ss_name, .policy = ss->ss_policy_name);
}

static void
slice_policyd(struct proc *pr, const struct config *conf, struct runtime *rt)
{
	const struct conf_decider	*dc;
	const struct conf_policy	*pl;
	int				 fd;

	if ((fd = runtime_take_control(rt, false)) != -1)
		ipc_send(pr->pr_ipc, fd, CONF_CONTROL, conf_control,
		    .read_only = 0);
	if ((fd = runtime_take_control(rt, true)) != -1)
		ipc_send(pr->pr_ipc, fd, CONF_CONTROL, conf_control,
		    .read_only = 1);
	ipc_send(pr->pr_ipc, -1, CONF_LIMITS, conf_limits,
	    .clients = conf->cf_limit[CONF_LIMIT_CLIENTS],
	    .sessions = conf->cf_limit[CONF_LIMIT_SESSIONS],
	    .pending = conf->cf_limit[CONF_LIMIT_PENDING]);
	TAILQ_FOREACH(dc, &conf->cf_deciders, dc_entry)
		ipc_send(pr->pr_ipc, -1, CONF_JUDGE, conf_judge,
		    .name = dc->dc_name, .kind = dc->dc_kind,
		    .timeout_ms = dc->dc_timeout,
		    .concurrency = dc->dc_concurrency);
	TAILQ_FOREACH(pl, &conf->cf_policies, pl_entry) {
		send_policy(pr->pr_ipc, pl);
		send_environment(pr->pr_ipc, &pl->pl_environment);
		send_environment(pr->pr_ipc, &conf->cf_environment);
		send_redacts(pr->pr_ipc, pl);
	}
	send_sessions(pr->pr_ipc, conf);
}

static void
slice_recorder(struct proc *pr, const struct config *conf, struct runtime *rt)
{
	const struct conf_policy	*pl;
	struct auditfile		*af = runtime_audit(rt);

	if (af->af_same)
		ipc_send(pr->pr_ipc, -1, CONF_AUDIT_SAME, empty);
	else if (af->af_fd != -1)
		ipc_send(pr->pr_ipc, af->af_fd, CONF_AUDIT, conf_audit,
		    .path = af->af_path);
	if (af->af_tip != -1)
		ipc_send(pr->pr_ipc, af->af_tip, CONF_TIP, empty);
	af->af_fd = af->af_tip = -1;
	TAILQ_FOREACH(pl, &conf->cf_policies, pl_entry) {
		if (pl->pl_audit_full == FULL_GAP)
			ipc_send(pr->pr_ipc, -1, CONF_GAP, conf_gap,
			    .policy = pl->pl_name);
		send_redacts(pr->pr_ipc, pl);
	}
	send_sessions(pr->pr_ipc, conf);
}

#define DNS_PORT	53
#define RESOLVERS_MAX	3	/* of resolv.conf(5) */
#define OWN_MAX		256	/* addresses of this machine */

static void
send_resolver(struct ipc *ip, const struct addr *ad, uint16_t port)
{
	char	 text[ADDRESS_LEN];

	ipc_send(ip, -1, CONF_RESOLVER, conf_resolver,
	    .address = addr_format(ad, text, sizeof(text)), .port = port);
}

static void
send_system_resolvers(struct ipc *ip)
{
	struct addr	 servers[RESOLVERS_MAX];
	size_t		 i, n = resolv_system(servers, RESOLVERS_MAX);

	for (i = 0; i < n; i++)
		send_resolver(ip, &servers[i], DNS_PORT);
}

/* What a public name must not lead to: ourselves. */
static void
send_own_addresses(struct ipc *ip)
{
	struct addr	 own[OWN_MAX];
	char		 text[ADDRESS_LEN];
	size_t		 i, n = addresses_own(own, OWN_MAX);

	for (i = 0; i < n; i++)
		ipc_send(ip, -1, CONF_DENY_NET, conf_deny_net,
		    .prefix = addr_format(&own[i], text, sizeof(text)));
}

static void
send_resolvers(struct ipc *ip, const struct config *conf)
{
	const struct conf_endpoint	*ep;

	TAILQ_FOREACH(ep, &conf->cf_resolvers, ep_entry)
		send_resolver(ip, &ep->ep_addr, ep->ep_port);
	if (TAILQ_EMPTY(&conf->cf_resolvers))
		send_system_resolvers(ip);
}

static void
slice_dialer(struct proc *pr, const struct config *conf, struct runtime *rt)
{
	const struct conf_host		*ho;
	const struct conf_net		*nt;
	char				 text[ADDRESS_LEN];

	(void)rt;
	ipc_send(pr->pr_ipc, -1, CONF_DIAL, conf_dial,
	    .timeout_ms = conf->cf_timeout[CONF_TIMEOUT_DIAL]);
	TAILQ_FOREACH(ho, &conf->cf_hosts, ho_entry)
		ipc_send(pr->pr_ipc, -1, CONF_HOST, conf_host,
		    .name = ho->ho_name,
		    .address = addr_format(&ho->ho_addr, text, sizeof(text)));
	send_resolvers(pr->pr_ipc, conf);
	send_own_addresses(pr->pr_ipc);
	TAILQ_FOREACH(nt, &conf->cf_address_deny, nt_entry)
		ipc_send(pr->pr_ipc, -1, CONF_DENY_NET, conf_deny_net,
		    .prefix = prefix_format(&nt->nt_prefix, text,
		    sizeof(text)));
}

static void
send_file(struct proc *pr, struct runtime *rt, enum file_kind what,
    const char *path)
{
	int	 fd;

	if (path != NULL && (fd = runtime_take_file(rt, path)) != -1)
		ipc_send(pr->pr_ipc, fd, CONF_FILE, conf_file, .what = what);
}

/*
 * A decider is no origin: without a file of its own it is verified as the
 * system verifies.  Where the system has nothing it cannot be asked.
 */
static void
send_decider_trust(struct proc *pr, struct runtime *rt,
    const struct conf_decider *dc)
{
	int	 fd;

	if (dc->dc_trust_file != NULL || dc->dc_url == NULL) {
		send_file(pr, rt, FILE_TRUST, dc->dc_trust_file);
		return;
	}
	fd = open(SYSTEM_BUNDLE, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		log_warn("decider \"%s\": %s", dc->dc_name, SYSTEM_BUNDLE);
	else
		ipc_send(pr->pr_ipc, fd, CONF_FILE, conf_file,
		    .what = FILE_TRUST);
}

static void
slice_deciderd(struct proc *pr, const struct config *conf, struct runtime *rt)
{
	const struct conf_decider	*dc;
	const struct conf_pair		*hd;

	TAILQ_FOREACH(dc, &conf->cf_deciders, dc_entry)
		if (dc->dc_url != NULL) {
			send_resolvers(pr->pr_ipc, conf);
			break;
		}
	TAILQ_FOREACH(dc, &conf->cf_deciders, dc_entry) {
		ipc_send(pr->pr_ipc, -1, CONF_DECIDER, conf_decider,
		    .name = dc->dc_name, .kind = dc->dc_kind,
		    .api = dc->dc_api, .form = dc->dc_form,
		    .persistent = dc->dc_persistent,
		    .url = dc->dc_url, .model = dc->dc_model,
		    .max_tokens = dc->dc_max_tokens,
		    .temperature = dc->dc_temperature == NULL ? UINT32_MAX :
		    (uint32_t)conf_temperature(dc->dc_temperature),
		    .effort = dc->dc_effort, .key_header = dc->dc_key_header,
		    .timeout_ms = dc->dc_timeout,
		    .concurrency = dc->dc_concurrency);
		TAILQ_FOREACH(hd, &dc->dc_headers, pr_entry)
			ipc_send(pr->pr_ipc, -1, CONF_HEADER, conf_header,
			    .name = hd->pr_key, .value = hd->pr_value);
		send_file(pr, rt, FILE_KEY, dc->dc_key_file);
		send_file(pr, rt, FILE_PROMPT, dc->dc_prompt_file);
		send_decider_trust(pr, rt, dc);
	}
}

static void
slice_k8sd(struct proc *pr, const struct config *conf, struct runtime *rt)
{
	const struct conf_cluster	*cl;

	TAILQ_FOREACH(cl, &conf->cf_clusters, cl_entry) {
		ipc_send(pr->pr_ipc, -1, CONF_CLUSTER, conf_cluster,
		    .name = cl->cl_name, .in_cluster = cl->cl_in_cluster,
		    .context = cl->cl_context, .server = cl->cl_server,
		    .user = cl->cl_user);
		send_file(pr, rt, FILE_KUBECONFIG, cl->cl_kubeconfig);
		send_file(pr, rt, FILE_TRUST, cl->cl_ca_file);
		send_file(pr, rt, FILE_TOKEN, cl->cl_token_file);
		send_file(pr, rt, FILE_CERTIFICATE, cl->cl_cert_file);
		send_file(pr, rt, FILE_KEY, cl->cl_key_file);
		send_file(pr, rt, FILE_PASSWORD, cl->cl_password_file);
	}
}

/* Whether it has something to say of a connection of which nothing is read. */
static bool
policy_asks(const struct conf_policy *pl)
{
	const struct conf_rule	*ru;

	TAILQ_FOREACH(ru, &pl->pl_rules, ru_entry)
		if (ru->ru_tcp || ru->ru_kind == RULE_PASS)
			return true;
	return pl->pl_refuse == REFUSE_ALERT;
}

static void
slice_engine(struct proc *pr, const struct config *conf, struct runtime *rt)
{
	const struct conf_session	*ss;
	const struct conf_policy	*pl;
	const int64_t			*t = conf->cf_timeout;

	if ((pl = session_policy(conf, pr->pr_session)) == NULL)
		fatalx("session %s is not in the configuration",
		    pr->pr_session->se_name);
	ss = conf_session_find(conf, pr->pr_session->se_name);
	ipc_send(pr->pr_ipc, -1, CONF_ENGINE, conf_engine,
	    .policy = pl->pl_name, .refuse = pl->pl_refuse,
	    .asks = policy_asks(pl),
	    .capture = pl->pl_capture, .capture_hash = pl->pl_capture_hash,
	    .quota_out = pl->pl_quota_out,
	    .connections = conf->cf_limit[CONF_LIMIT_CONNECTIONS],
	    .handshake_ms = t[CONF_TIMEOUT_HANDSHAKE],
	    .head_ms = t[CONF_TIMEOUT_HEAD],
	    .response_ms = t[CONF_TIMEOUT_RESPONSE],
	    .idle_ms = t[CONF_TIMEOUT_IDLE],
	    .tunnel_ms = t[CONF_TIMEOUT_TUNNEL],
	    .total_ms = t[CONF_TIMEOUT_TOTAL]);
	if (trust_send(pr, conf, ss) == -1 ||
	    bounds_send(runtime_bounds(rt), pr) == -1)
		/* Without the CA that it should have it would make another. */
		proc_kill(pr, "it cannot have all it needs");
}

void
slice_send(struct proc *pr, const struct config *conf, struct runtime *rt)
{
	static void (*const slices[ROLE_MAX])(struct proc *,
	    const struct config *, struct runtime *) = {
		[ROLE_POLICYD] = slice_policyd,
		[ROLE_RECORDER] = slice_recorder,
		[ROLE_DIALER] = slice_dialer,
		[ROLE_DECIDERD] = slice_deciderd,
		[ROLE_K8SD] = slice_k8sd,
		[ROLE_ENGINE] = slice_engine,
	};

	slices[pr->pr_role](pr, conf, rt);
}
