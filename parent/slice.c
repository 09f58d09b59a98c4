/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: what each process is told of the configuration, and
 * no more than that.  Enumerations travel by their value in policy.h
 * or conf.h.
 */

#include <fcntl.h>
#include <stdint.h>

#include "parent.h"

static void
send_environment(struct ipc *ip, const struct conf_variables *list)
{
	const struct conf_variable	*va;

	TAILQ_FOREACH(va, list, va_entry)
		ipc_send(ip, -1, CONF_ENVIRONMENT, conf_environment,
		    .pass = va->va_pass, .pattern = va->va_pattern);
}

/* Records and questions hide the same. */
static void
send_redacts(struct ipc *ip, const struct conf_policy *cp)
{
	const struct conf_redact	*rd;

	TAILQ_FOREACH(rd, &cp->cp_redact, rd_entry)
		ipc_send(ip, -1, CONF_REDACT, conf_redact,
		    .policy = cp->cp_name, .kind = rd->rd_kind,
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

/* What it is made of is ours to know, and who runs in it for people to see. */
static void
send_sandboxes(struct ipc *ip, const struct config *conf)
{
	const struct conf_sandbox	*sb;

	TAILQ_FOREACH(sb, &conf->cf_sandboxes, sb_entry)
		ipc_send(ip, -1, CONF_SANDBOX, conf_sandbox,
		    .name = sb->sb_name, .kind = sb->sb_kind,
		    .is_default = sb == conf->cf_default_sandbox,
		    .restricted = !TAILQ_EMPTY(&sb->sb_for),
		    .policy = sb->sb_policy_name, .cwd = sb->sb_cwd,
		    .user = sb->sb_user_caller ? "caller" : sb->sb_user,
		    .deadline_ms = sb->sb_deadline,
		    .size = sb->sb_kind == SANDBOX_VIRTUAL ? sb->sb_size : 0,
		    .memory = sb->sb_limits.sl_memory,
		    .processes = sb->sb_limits.sl_processes,
		    .file = sb->sb_limits.sl_file,
		    .cpu_ms = sb->sb_limits.sl_cpu,
		    .mountable = box_is_mountable(sb));
}

static void
slice_controld(struct proc *pr, const struct config *conf, struct runtime *rt)
{
	const struct conf_policy	*cp;
	int				 fd;

	if ((fd = runtime_take_control(rt, false)) != -1)
		ipc_send(pr->pr_ipc, fd, CONF_CONTROL, conf_control,
		    .read_only = 0);
	if ((fd = runtime_take_control(rt, true)) != -1)
		ipc_send(pr->pr_ipc, fd, CONF_CONTROL, conf_control,
		    .read_only = 1);
	ipc_send(pr->pr_ipc, -1, CONF_LIMITS, conf_limits,
	    .clients = conf->cf_limit[CONF_LIMIT_CLIENTS],
	    .sessions = conf->cf_limit[CONF_LIMIT_SESSIONS]);
	TAILQ_FOREACH(cp, &conf->cf_policies, cp_entry) {
		ipc_send(pr->pr_ipc, -1, CONF_POLICY_NAME, conf_policy_name,
		    .name = cp->cp_policy->pl_name,
		    .rules = cp->cp_policy->pl_nrules);
		send_environment(pr->pr_ipc, &cp->cp_environment);
		send_environment(pr->pr_ipc, &conf->cf_environment);
	}
	send_sandboxes(pr->pr_ipc, conf);
	send_sessions(pr->pr_ipc, conf);
}

static void
slice_policyd(struct proc *pr, const struct config *conf, struct runtime *rt)
{
	const struct conf_decider	*dc;
	const struct conf_policy	*cp;

	(void)rt;
	ipc_send(pr->pr_ipc, -1, CONF_PENDING, conf_pending,
	    .max = conf->cf_limit[CONF_LIMIT_PENDING]);
	TAILQ_FOREACH(dc, &conf->cf_deciders, dc_entry)
		ipc_send(pr->pr_ipc, -1, CONF_DECIDER_NAME, conf_decider_name,
		    .name = dc->dc_name, .kind = dc->dc_kind,
		    .timeout_ms = dc->dc_options.do_timeout_ms,
		    .concurrency = dc->dc_options.do_concurrency);
	TAILQ_FOREACH(cp, &conf->cf_policies, cp_entry) {
		policy_send(pr->pr_ipc, cp->cp_policy);
		send_redacts(pr->pr_ipc, cp);
	}
	send_sessions(pr->pr_ipc, conf);
}

static void
slice_recorder(struct proc *pr, const struct config *conf, struct runtime *rt)
{
	const struct conf_policy	*cp;
	struct auditfile		*af = runtime_audit(rt);
	bool				 plain;
	int				 fd;

	if (af->af_same)
		ipc_send(pr->pr_ipc, -1, CONF_AUDIT_SAME, empty);
	else if (af->af_fd != -1)
		ipc_send(pr->pr_ipc, af->af_fd, CONF_AUDIT, conf_audit,
		    .path = af->af_path);
	if (af->af_tip != -1)
		ipc_send(pr->pr_ipc, af->af_tip, CONF_TIP, empty);
	if (af->af_ack != -1)
		ipc_send(pr->pr_ipc, af->af_ack, CONF_SPOOL, conf_spool,
		    .size = conf->cf_spool);
	af->af_fd = af->af_tip = af->af_ack = -1;
	if (conf->cf_audit_stdout &&
	    (fd = auditfile_stdout(&plain)) != -1)
		ipc_send(pr->pr_ipc, fd, CONF_STDOUT, conf_stdout,
		    .plain = plain);
	TAILQ_FOREACH(cp, &conf->cf_policies, cp_entry) {
		if (cp->cp_policy->pl_options.po_full == FULL_GAP)
			ipc_send(pr->pr_ipc, -1, CONF_GAP, conf_gap,
			    .policy = cp->cp_name);
		send_redacts(pr->pr_ipc, cp);
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

void
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
	    .timeout_ms = conf->cf_timeout[CONF_TIMEOUT_DIAL],
	    .mark = conf->cf_dial_mark);
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

	if (dc->dc_options.do_trust_file != NULL ||
	    dc->dc_options.do_url == NULL) {
		send_file(pr, rt, FILE_TRUST, dc->dc_options.do_trust_file);
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
	struct conf_decider	*dc;
	const struct conf_pair	*hd;

	TAILQ_FOREACH(dc, &conf->cf_deciders, dc_entry)
		if (dc->dc_options.do_url != NULL) {
			send_resolvers(pr->pr_ipc, conf);
			break;
		}
	TAILQ_FOREACH(dc, &conf->cf_deciders, dc_entry) {
		ipc_send(pr->pr_ipc, -1, CONF_DECIDER, conf_decider,
		    .name = dc->dc_name, .kind = dc->dc_kind);
		option_send(pr->pr_ipc, OPTION_OF_DECIDER, &dc->dc_options);
		TAILQ_FOREACH(hd, &dc->dc_headers, pr_entry)
			ipc_send(pr->pr_ipc, -1, CONF_HEADER, conf_header,
			    .name = hd->pr_key, .value = hd->pr_value);
		send_file(pr, rt, FILE_KEY, dc->dc_options.do_key_file);
		send_file(pr, rt, FILE_PROMPT, dc->dc_options.do_prompt_file);
		send_decider_trust(pr, rt, dc);
	}
}

/* Whether a policy has rules about connections that nobody has read. */
static bool
policy_asks(const struct policy *pl)
{
	const struct rule	*ru;
	uint32_t		 i;

	for (i = 0; i < pl->pl_nrules; i++) {
		ru = pl->pl_rules[i];
		if (ru->ru_tcp || ru->ru_kind == RULE_PASS)
			return true;
	}
	return pl->pl_options.po_refuse == REFUSE_ALERT;
}

static void
slice_engine(struct proc *pr, const struct config *conf, struct runtime *rt)
{
	const struct conf_session	*ss;
	const struct conf_policy	*cp;
	const uint64_t			*t = conf->cf_timeout;

	if (pr->pr_weighs) {
		if (trust_offer(pr, conf) == -1)
			proc_kill(pr, "it cannot have all it needs");
		return;
	}
	if ((cp = session_policy(conf, pr->pr_session)) == NULL)
		fatalx("session %s is not in the configuration",
		    pr->pr_session->se_name);
	ss = conf_session_find(conf, pr->pr_session->se_name);
	ipc_send(pr->pr_ipc, -1, CONF_ENGINE, conf_engine,
	    .policy = cp->cp_name, .asks = policy_asks(cp->cp_policy),
	    .waits = ss != NULL && ss->ss_trust_directory != NULL,
	    .connections = conf->cf_limit[CONF_LIMIT_CONNECTIONS],
	    .handshake_ms = t[CONF_TIMEOUT_HANDSHAKE],
	    .head_ms = t[CONF_TIMEOUT_HEAD],
	    .response_ms = t[CONF_TIMEOUT_RESPONSE],
	    .idle_ms = t[CONF_TIMEOUT_IDLE],
	    .tunnel_ms = t[CONF_TIMEOUT_TUNNEL],
	    .total_ms = t[CONF_TIMEOUT_TOTAL]);
	option_send(pr->pr_ipc, OPTION_OF_POLICY, &cp->cp_policy->pl_options);
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
		[ROLE_CONTROLD] = slice_controld,
		[ROLE_POLICYD] = slice_policyd,
		[ROLE_RECORDER] = slice_recorder,
		[ROLE_DIALER] = slice_dialer,
		[ROLE_DECIDERD] = slice_deciderd,
		[ROLE_K8SD] = slice_k8sd,
		[ROLE_ENGINE] = slice_engine,
	};

	/* podd has nothing of it. */
	if (slices[pr->pr_role] != NULL)
		slices[pr->pr_role](pr, conf, rt);
}
